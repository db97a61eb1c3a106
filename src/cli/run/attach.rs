//! A process that is not ours in the place of one that we start.

use std::os::fd::OwnedFd;

use crate::model::{AttemptSpec, Command, Event};
use crate::workload::adapter::{self, LaunchInfo};
use crate::workload::external::{self, AttachSpec, ConsoleFile};

use super::shell::Shell;

/// The process that is to be watched.
#[derive(Debug)]
pub(in crate::cli) struct Attachment {
    /// Process id.
    pub(in crate::cli) pid: u32,
    /// When it began, in clock ticks since boot.
    pub(in crate::cli) start: u64,
    /// Stays with this very process.
    pub(in crate::cli) handle: OwnedFd,
    /// Its process group.
    pub(in crate::cli) group: u32,
    /// Where its output can be read.
    pub(in crate::cli) console: Vec<ConsoleFile>,
    /// The user says that a job is in flight.
    pub(in crate::cli) job: bool,
}

/// Who asks for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// A key, a command of the screen.
    User,
    /// The same of an attached screen, by its number.
    Viewer(u64),
    /// A signal to us: from the shell, the system, whoever follows the record.
    Signal,
}

/// What a wish means for a process that is not ours: it is ended by the user's own word
/// alone, never by a signal to us, and nobody but us needs the terminal.
pub(super) fn for_attached(command: Command, asked: Asked) -> Command {
    match (command, asked) {
        (Command::TerminalLost, _)
        | (Command::Stop | Command::Terminate | Command::Kill, Asked::Signal) => Command::Leave,
        (command, _) => command,
    }
}

impl Shell {
    /// Watches the process that is there; nothing is started.
    pub(super) fn attach(&mut self, spec: AttemptSpec) {
        let number = spec.number;
        let launch = LaunchInfo {
            argv: spec.argv.clone(),
            on_cpu: false,
        };
        self.adapter = Some(adapter::new(self.kind, &launch));
        self.finder.begin(number);
        self.attempt = Some(spec);
        let attached = match self.attachment.take() {
            Some(of) => external::attach(AttachSpec {
                pid: of.pid,
                start: of.start,
                handle: of.handle,
                group: of.group,
                console: of.console,
                attempt: number,
            })
            .map_err(|e| e.to_string()),
            None => Err("it is not there any more".to_owned()),
        };
        match attached {
            Ok(running) => self.child = Some(running),
            Err(why) => self.post(Event::SpawnFailed {
                attempt: number,
                why,
                not_found: false,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_signal_to_us_ends_a_process_that_is_not_ours() {
        use Asked::{Signal, User};
        for command in [Command::Stop, Command::Terminate, Command::Kill] {
            assert_eq!(for_attached(command.clone(), Signal), Command::Leave);
            assert_eq!(for_attached(command.clone(), User), command);
        }
        for asked in [Signal, User] {
            assert_eq!(for_attached(Command::TerminalLost, asked), Command::Leave);
            assert_eq!(for_attached(Command::Evidence, asked), Command::Evidence);
        }
    }
}
