//! `framepack-tui run`: setup, the supervising loop, the last words.

mod child;
mod effects;
pub(super) mod machine;
mod outputs;
mod results;
mod setup;
mod shell;

use crate::cli::CliError;
use crate::cli::args::RunArgs;
use crate::record::Retention;

/// Runs a generation to its end and gives the exit code.
pub(super) fn main(args: RunArgs) -> Result<u8, CliError> {
    let setup = setup::setup(&args)?;
    drop(args);
    let store = setup.store.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| CliError::System {
            what: "start the runtime",
            why,
        })?;
    let code = runtime.block_on(shell::supervise(setup))?;
    // blocked collectors and readers are left behind, not waited for
    runtime.shutdown_background();
    if let Err(e) = store.prune(Retention::default(), std::time::SystemTime::now()) {
        setup::complain(&format!("old records were not pruned: {e}"));
    }
    Ok(code)
}
