//! Errors at the edge: one clear message, its exit code, never a backtrace.

use std::path::PathBuf;

use framepack_engine::worker as engine;
use rustix::io::Errno;

use crate::diagnose::InputError;
use crate::model::{Bytes, exit};
use crate::profile::{Problem, ProfileError};
use crate::record::bundle::{BundleError, ExportError};
use crate::record::{ReadError, StoreError, TailError};
use crate::supervise::LockError;
use crate::vault::{FindError, ResendError, VaultError};

use super::watch::WatchError;
use super::worker::CudaError;

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The profile is not there, or not right.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// No profile's conditions hold on this machine.
    #[error("no profile matches this machine; name one with --profile ({0})")]
    NoProfile(String),
    /// The user's environment holds values that a library does not know.
    #[error("your environment would make the run fail:\n{}", lines(.0))]
    Environment(Vec<Problem>),
    /// `--gpu` names a card that is not there.
    #[error("there is no card `{asked}`; {there}")]
    NoSuchGpu {
        /// What was asked for.
        asked: String,
        /// What there is.
        there: String,
    },
    /// The former option for prompts.
    #[error("--with-prompt is gone: free text, prompts among it, goes out with --with-text=all")]
    WithPrompt,
    /// Free text may go out only on a person's word.
    #[error(
        "no file was written: free text goes out only once you agree; add --yes to agree, or leave --with-text away"
    )]
    TextNotConfirmed,
    /// The cap is larger than the card.
    #[error(
        "the VRAM cap of {cap} ({origin}) is above the card's {total}; give a smaller one with --cap"
    )]
    CapAboveCard {
        /// Cap.
        cap: Bytes,
        /// `--cap`, or the profile.
        origin: String,
        /// Memory of the card.
        total: Bytes,
    },
    /// `--cwd` is no folder.
    #[error("the working directory `{}` is not a folder that can be entered: {why}", path.display())]
    Cwd {
        /// Path.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// The variable of the end-to-end tests holds something else.
    #[error("FPT_TIME_SCALE={asked}: {why}; unset it")]
    TimeScale {
        /// Its value.
        asked: String,
        /// What it must be.
        why: &'static str,
    },
    /// A process is not watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// Another run holds the card.
    #[error("failed to {0}")]
    Lock(#[from] LockError),
    /// No recorded run is meant by this.
    #[error("there is no run `{asked}`; {there}")]
    NoSuchRun {
        /// What was asked for.
        asked: String,
        /// What there is.
        there: String,
    },
    /// Several recorded runs begin like this.
    #[error("`{asked}` may be any of these runs: {}; write more of the id", which.join(", "))]
    AmbiguousRun {
        /// What was asked for.
        asked: String,
        /// Ids that begin with it.
        which: Vec<String>,
    },
    /// Nothing was recorded yet.
    #[error("no run is recorded yet; start one with `framepack-tui run`")]
    NoRuns,
    /// The record of another process cannot be read on.
    #[error("failed to {0}")]
    Record(#[from] TailError),
    /// A record cannot be read.
    #[error("failed to {0}")]
    Read(#[from] ReadError),
    /// A bundle cannot be read.
    #[error("failed to {0}")]
    Bundle(#[from] BundleError),
    /// No bundle could be made.
    #[error("failed to {0}")]
    Export(#[from] ExportError),
    /// A record without its first event cannot be replayed.
    #[error(
        "failed to replay {0}: there is no run_started in it, which holds the plan; its beginning is lost"
    )]
    NoHead(String),
    /// The record of another process has no end, and nobody writes it.
    #[error(
        "failed to read {}:{line}: the record ends here without run_finished, and nobody writes it any more: its supervisor was killed, or the machine went down",
        path.display()
    )]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// The line that is missing.
        line: u64,
    },
    /// There is nothing that can be diagnosed.
    #[error("failed to {0}")]
    Diagnose(#[from] InputError),
    /// The vault cannot be read, or something in it not be removed.
    #[error("failed to {0}")]
    Vault(#[from] VaultError),
    /// No entry of the vault is meant.
    #[error(transparent)]
    NoSuchEntry(#[from] FindError),
    /// An entry of the vault cannot be used.
    #[error("failed to use {name}: {why}")]
    BadEntry {
        /// Name of its file.
        name: String,
        /// Why.
        why: String,
    },
    /// A job was not sent again, or not followed to its end.
    #[error("failed to send the job again: {0}")]
    Resend(#[from] ResendError),
    /// A job that was sent again is not done.
    #[error("the job is not done: {0}")]
    NotDone(String),
    /// The engine cannot do a job, as far as can be told before it is begun.
    #[error("failed to {what}: {why}")]
    Engine {
        /// `decode`, `encode`.
        what: &'static str,
        /// Why.
        why: Box<framepack_engine::Error>,
    },
    /// What is certainly written is more than what is free.
    #[error(
        "failed to decode: {} has {free} free, and {frames} of frames are kept there until the video is whole: make room, or name an output on another disk",
        folder.display()
    )]
    NoRoom {
        /// Where it is written.
        folder: PathBuf,
        /// What is written.
        frames: Bytes,
        /// What is free.
        free: Bytes,
    },
    /// The card cannot be used.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The vault holds no latents.
    #[error("there are no whole latents in the vault; `framepack-tui vault` lists what is there")]
    NoLatents,
    /// The start screen has nothing to be drawn on.
    #[error(
        "the start screen needs a terminal; use --plain to print what is there, or `framepack-tui run -- COMMAND` to start a generation"
    )]
    NoTerminal,
    /// The record cannot be opened.
    #[error("failed to {0}")]
    Store(#[from] StoreError),
    /// The supervisor that was started for a run has refused it.
    #[error("{why}")]
    Refused {
        /// Why.
        why: String,
        /// What it would have printed.
        report: String,
        /// Its exit code.
        exit_code: u8,
    },
    /// The supervisor of the run on this screen is gone, and the run is not over.
    #[error(
        "the supervisor of this run has ended {how}; if its program was started, the guardian process ends it"
    )]
    SupervisorDied {
        /// When, or by what.
        how: String,
    },
    /// The system refused something that never fails in a healthy one.
    #[error("failed to {what}: {why}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        why: std::io::Error,
    },
}

fn lines(problems: &[Problem]) -> String {
    let all: Vec<String> = problems
        .iter()
        .map(|p| format!("  {}", p.one_line()))
        .collect();
    all.join("\n")
}

/// Whether there is no room for one more file, process or piece of memory.
pub(super) fn is_shortage(e: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(e);
    matches!(
        errno,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN)
    )
}

impl CliError {
    /// The exit code, part of the contract.
    pub fn exit_code(&self) -> u8 {
        if self.is_shortage() {
            return exit::SHORTAGE;
        }
        match self {
            Self::Profile(e) => e.exit_code(),
            Self::Watch(e) => e.exit_code(),
            Self::Diagnose(e) if e.is_missing() => exit::MISSING,
            Self::Resend(e) => e.exit_code(),
            Self::Refused { exit_code, .. } => *exit_code,
            Self::NotDone(_) => exit::FAILED,
            Self::Engine { why, .. } => engine::exit_code(why),
            Self::Diagnose(_)
            | Self::BadEntry { .. }
            | Self::Environment(_)
            | Self::Record(_)
            | Self::Read(_)
            | Self::Bundle(_)
            | Self::Export(ExportError::Read(_))
            | Self::NoHead(_)
            | Self::Unfinished { .. } => exit::DATA,
            Self::NoProfile(_)
            | Self::Cwd { .. }
            | Self::NoSuchRun { .. }
            | Self::AmbiguousRun { .. }
            | Self::NoSuchEntry(_)
            | Self::NoLatents
            | Self::NoRuns => exit::MISSING,
            Self::NoTerminal
            | Self::Export(_)
            | Self::WithPrompt
            | Self::TextNotConfirmed
            | Self::TimeScale { .. } => exit::USAGE,
            Self::CapAboveCard { .. } | Self::NoRoom { .. } => exit::NO_ROOM,
            // the card is taken: the same code as a missing one
            Self::NoSuchGpu { .. } | Self::Lock(_) | Self::Cuda(_) => exit::UNAVAILABLE,
            Self::Store(_) | Self::Vault(_) | Self::SupervisorDied { .. } | Self::System { .. } => {
                exit::INTERNAL
            }
        }
    }

    /// Whether the system has no room for one more of what every program needs: open files,
    /// processes, memory.
    fn is_shortage(&self) -> bool {
        if let Self::System { why, .. } = self {
            return is_shortage(why);
        }
        let mut error: Option<&dyn std::error::Error> = Some(self);
        while let Some(e) = error {
            if e.downcast_ref::<std::io::Error>().is_some_and(is_shortage) {
                return true;
            }
            error = e.source();
        }
        false
    }

    /// The message as it is printed: a profile's problems with their source lines.
    pub fn report(&self) -> String {
        match self {
            Self::Profile(e) => {
                let mut text = String::new();
                let handler = miette::NarratableReportHandler::new();
                let graphical = miette::GraphicalReportHandler::new_themed(theme());
                if graphical.render_report(&mut text, e).is_err() {
                    text.clear();
                    // a formatter into a string cannot fail twice for the same reason
                    let _ = handler.render_report(&mut text, e);
                }
                text
            }
            Self::Refused { report, .. } => report.clone(),
            // names of files and words of a command may hold what a terminal obeys
            other => format!("framepack-tui: {other}")
                .chars()
                .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
                .collect(),
        }
    }
}

/// No colour into a file or where the user wants none; no box drawing outside UTF-8.
fn theme() -> miette::GraphicalTheme {
    use std::io::IsTerminal;
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    match (
        colour,
        !crate::ui::Theme::detect(false, |n| std::env::var(n).ok()).ascii,
    ) {
        (true, true) => miette::GraphicalTheme::unicode(),
        (false, true) => miette::GraphicalTheme::unicode_nocolor(),
        (_, false) => miette::GraphicalTheme::none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::FindError;

    #[test]
    fn what_a_terminal_obeys_is_not_printed() {
        let error = CliError::NoSuchEntry(FindError::None {
            asked: "bad.\u{1b}[31mX\u{9b}".to_owned(),
            there: "it is empty\nsee vault list".to_owned(),
        });
        assert_eq!(
            error.report(),
            "framepack-tui: there is no entry `bad. [31mX ` in the vault; it is empty\nsee vault list"
        );
    }
}
