//! `framepack-tui run`: setup, the supervising loop, the last words.

mod child;
mod effects;
mod front;
pub(super) mod machine;
mod outputs;
mod planner;
mod results;
mod saving;
mod setup;
mod shell;

use crate::cli::CliError;
use crate::cli::args::RunArgs;
use crate::record::Retention;

use front::Front;

/// Runs a generation to its end and gives the exit code.
pub(super) fn main(args: RunArgs) -> Result<u8, CliError> {
    let asked = setup::judge(&args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| CliError::System {
            what: "start the runtime",
            why,
        })?;
    let front = {
        let _signals_need_it = runtime.enter();
        Front::open(asked.output)?
    };
    let setup = setup::setup(&args, asked)?;
    drop(args);
    let store = setup.store.clone();
    let code = runtime.block_on(shell::supervise(setup, front))?;
    // blocked collectors and readers are left behind, not waited for
    runtime.shutdown_background();
    if let Err(e) = store.prune(Retention::default(), std::time::SystemTime::now()) {
        setup::complain(&format!("old records were not pruned: {e}"));
    }
    Ok(code)
}
