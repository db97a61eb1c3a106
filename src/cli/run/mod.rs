//! `framepack-tui run`: setup, the supervising loop, the last words.

mod agent;
pub(super) mod attach;
mod audience;
mod child;
mod claim;
mod effects;
pub(super) mod front;
mod last_screen;
pub(super) mod learned;
pub(super) mod machine;
mod outputs;
pub(super) mod planner;
mod requests;
mod resend;
mod results;
mod saving;
pub(super) mod screen;
pub(super) mod serve;
pub(super) mod setup;
mod shell;
#[cfg(test)]
mod visible_tests;

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::cli::CliError;
use crate::cli::args::RunArgs;
use crate::cli::show::Output;
use crate::cli::worker;
use crate::model::Command;
use crate::record::Retention;

use front::Front;
use setup::Setup;

/// Longest wait for a signal that came while everything was decided.
const SIGNAL: Duration = Duration::from_millis(5);

/// Runs a generation and gives the exit code: at its end, or when its screen is left.
pub(super) fn main(args: RunArgs) -> Result<u8, CliError> {
    if let Output::Screen { ascii } = Output::choose(args.show) {
        let viewer = screen::open(&args, ascii).map_err(|refused| refused.why)?;
        drop(args);
        return viewer.show();
    }
    let asked = setup::judge(&args)?;
    let output = asked.output;
    let ready = ready(output, false, || setup::setup(&args, asked));
    let ready = ready.map_err(|refused| refused.why)?;
    drop(args);
    ready.supervise()
}

/// Why nothing was launched. The terminal is as it was before.
pub(super) struct Refused {
    /// What was wrong.
    pub(super) why: CliError,
    /// A signal, or a wish of the user, that came meanwhile and was not obeyed.
    pub(super) unheard: Option<Command>,
}

impl From<CliError> for Refused {
    fn from(why: CliError) -> Self {
        Self { why, unheard: None }
    }
}

/// A run that is decided and shown; nothing was launched yet.
pub(super) struct Ready {
    setup: Setup,
    front: Front,
    runtime: Runtime,
}

/// Shows that the machine is being looked at while `decide` does; `watches`: the process
/// is not ours.
pub(super) fn ready(
    output: Output,
    watches: bool,
    decide: impl FnOnce() -> Result<Setup, CliError>,
) -> Result<Ready, Refused> {
    let runtime = runtime()?;
    let front = {
        let _signals_need_it = runtime.enter();
        Front::open(output, watches)?
    };
    decided(decide(), front, runtime)
}

fn runtime() -> Result<Runtime, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| CliError::System {
            what: "start the runtime",
            why,
        })
}

/// What was decided, with what came meanwhile where it is a refusal.
fn decided(
    setup: Result<Setup, CliError>,
    mut front: Front,
    runtime: Runtime,
) -> Result<Ready, Refused> {
    match setup {
        Ok(setup) => Ok(Ready {
            setup,
            front,
            runtime,
        }),
        Err(why) => {
            let unheard = runtime.block_on(async {
                let first = tokio::time::timeout(SIGNAL, front.signals.next());
                first
                    .await
                    .ok()
                    .or_else(|| front.commands.try_recv().ok().map(|r| r.command))
            });
            Err(Refused { why, unheard })
        }
    }
}

impl Ready {
    /// Launches it and supervises it to its end; gives the exit code.
    pub(super) fn supervise(self) -> Result<u8, CliError> {
        let Self {
            setup,
            front,
            runtime,
        } = self;
        let store = setup.store.clone();
        let own = (setup.own.is_some()).then(|| worker::Leftovers::before(&setup.started.argv));
        let code = runtime.block_on(shell::supervise(setup, front))?;
        // blocked collectors and readers are left behind, not waited for
        runtime.shutdown_background();
        if let Err(e) = store.prune(Retention::default(), std::time::SystemTime::now()) {
            setup::complain(&format!("old records were not pruned: {e}"));
        }
        if let Some(leftovers) = own.flatten() {
            leftovers.tidy();
        }
        Ok(code)
    }
}
