//! Signals that come to us, as commands.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::model::Command;

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Int,
    Term,
    Hup,
    Usr1,
    Usr2,
}

/// Turns signals into commands; remembers what came before.
#[derive(Debug, Clone, Copy, Default)]
struct Translator {
    stopping: bool,
    held: bool,
}

impl Translator {
    fn translate(&mut self, came: Came) -> Command {
        match came {
            // Asked to stop already: the user is in earnest.
            Came::Int if self.stopping => Command::Kill,
            Came::Int => {
                self.stopping = true;
                Command::Stop
            }
            Came::Term => {
                self.stopping = true;
                Command::Terminate
            }
            Came::Hup => Command::TerminalLost,
            Came::Usr1 => {
                self.held = !self.held;
                if self.held {
                    Command::Hold
                } else {
                    Command::Release
                }
            }
            Came::Usr2 => Command::Evidence,
        }
    }

    fn note(&mut self, command: &Command) {
        match command {
            Command::Hold => self.held = true,
            Command::Release | Command::FalseAlarm => self.held = false,
            Command::Stop | Command::Terminate => self.stopping = true,
            _ => {}
        }
    }
}

/// The signals that we understand: SIGINT (stop; once more: kill), SIGTERM
/// (terminate), SIGHUP (the terminal is gone), SIGUSR1 (hold, then release),
/// SIGUSR2 (take evidence). From its creation on none of them ends the process.
#[derive(Debug)]
pub struct Signals {
    int: Signal,
    term: Signal,
    hup: Signal,
    usr1: Signal,
    usr2: Signal,
    translator: Translator,
}

impl Signals {
    /// Begins to listen. Needs a tokio runtime with I/O.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
            usr1: signal(SignalKind::user_defined1())?,
            usr2: signal(SignalKind::user_defined2())?,
            translator: Translator::default(),
        })
    }

    /// The next command. Safe to drop and call again (in a `select!`).
    pub async fn next(&mut self) -> Command {
        let came = tokio::select! {
            Some(()) = self.int.recv() => Came::Int,
            Some(()) = self.term.recv() => Came::Term,
            Some(()) = self.hup.recv() => Came::Hup,
            Some(()) = self.usr1.recv() => Came::Usr1,
            Some(()) = self.usr2.recv() => Came::Usr2,
            else => return std::future::pending().await,
        };
        self.translator.translate(came)
    }

    /// Takes note of a command that came by key, so that SIGUSR1 releases what a
    /// key has held and SIGINT after a key's stop kills.
    pub fn note(&mut self, command: &Command) {
        self.translator.note(command);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal as Sent, getpid, kill_process};

    #[test]
    fn the_second_interrupt_is_in_earnest() {
        let mut t = Translator::default();
        assert_eq!(t.translate(Came::Int), Command::Stop);
        assert_eq!(t.translate(Came::Term), Command::Terminate);
        assert_eq!(t.translate(Came::Int), Command::Kill);
        let mut t = Translator::default();
        t.note(&Command::Stop);
        assert_eq!(t.translate(Came::Int), Command::Kill);
    }

    #[test]
    fn usr1_toggles_and_knows_of_keys() {
        let mut t = Translator::default();
        assert_eq!(t.translate(Came::Usr1), Command::Hold);
        assert_eq!(t.translate(Came::Usr1), Command::Release);
        t.note(&Command::Hold);
        assert_eq!(t.translate(Came::Usr1), Command::Release);
    }

    #[tokio::test]
    async fn real_signals_arrive_and_end_nothing() {
        let mut signals = Signals::new().unwrap();
        for (sent, command) in [
            (Sent::USR2, Command::Evidence),
            (Sent::HUP, Command::TerminalLost),
            (Sent::USR1, Command::Hold),
            (Sent::INT, Command::Stop),
            (Sent::TERM, Command::Terminate),
            (Sent::INT, Command::Kill),
        ] {
            kill_process(getpid(), sent).unwrap();
            let got = tokio::time::timeout(std::time::Duration::from_secs(5), signals.next());
            assert_eq!(got.await.unwrap(), command);
        }
    }
}
