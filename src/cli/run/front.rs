//! What meets the user before anything is known: signals and the screen.
//!
//! A driver that has to wake its card, or hangs, keeps the setup waiting for seconds.
//! The screen stands by then, and says that the machine is being looked at.

use std::io;
use std::os::unix::net::UnixStream;

use tokio::sync::mpsc;

use crate::cli::CliError;
use crate::cli::show::{Output, screen_options};
use crate::model::Request;
use crate::supervise::Signals;
use crate::ui::{SnapshotSlot, TuiHandle, TuiOptions};

/// Where the run is shown.
pub(super) enum Shown {
    /// On our own terminal.
    Screen(TuiHandle, SnapshotSlot),
    /// By the process at the other end, and by those that attach.
    Viewers(UnixStream),
    Headless,
    Plain,
}

/// Signals, screen and the commands of both. Dropping it gives the terminal back.
pub(super) struct Front {
    pub(super) shown: Shown,
    pub(super) commands: mpsc::UnboundedReceiver<Request>,
    pub(super) signals: Signals,
}

impl Front {
    /// The same for a run that is shown by other processes, the first at this end.
    pub(super) fn for_viewers(first: UnixStream) -> Result<Self, CliError> {
        let signals = Signals::new().map_err(|why| CliError::System {
            what: "listen to signals",
            why,
        })?;
        let (_no_screen, commands) = mpsc::unbounded_channel();
        Ok(Self {
            shown: Shown::Viewers(first),
            commands,
            signals,
        })
    }

    /// Needs a tokio runtime with I/O. What comes before the supervising loop runs is
    /// kept for it: from here on a signal must not end us with the terminal taken.
    /// `watches`: the process is not ours.
    pub(super) fn open(output: Output, watches: bool) -> Result<Self, CliError> {
        let system = |what| move |why| CliError::System { what, why };
        let signals = Signals::new().map_err(system("listen to signals"))?;
        let (command_to, commands) = mpsc::unbounded_channel();
        let shown = match output {
            Output::Headless => Shown::Headless,
            Output::Plain => Shown::Plain,
            Output::Screen { ascii } => {
                let slot = SnapshotSlot::new();
                let options = TuiOptions {
                    watches,
                    ..screen_options(ascii, false)
                };
                let screen = crate::ui::spawn(options, slot.clone(), command_to)
                    .map_err(io::Error::other)
                    .map_err(system("take over the terminal"))?;
                Shown::Screen(screen, slot)
            }
        };
        Ok(Self {
            shown,
            commands,
            signals,
        })
    }
}
