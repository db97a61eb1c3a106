//! The screen of a run that is started on a terminal: the run itself is supervised by another
//! process (see [`super::serve`]), which goes on when the screen is left, closed or killed.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::cli::CliError;
use crate::cli::args::RunArgs;
use crate::cli::follow::feed::Remote;
use crate::cli::follow::profiles::Profiles;
use crate::cli::follow::reader::{Reader, Told};
use crate::cli::show::{last_words, screen_options};
use crate::model::{Command, Request};
use crate::supervise::Signals;
use crate::supervise::control::Link;
use crate::ui::{SnapshotSlot, TuiHandle};

use super::serve::{self, Supervisor};
use super::{Refused, runtime, setup};

/// How often the screen is asked whether it still stands.
const LOOK: Duration = Duration::from_millis(50);
/// A supervisor whose run is over writes what waits, and ends, within this time.
const ENDING: Duration = Duration::from_secs(20);
/// A terminal that is gone may block whoever writes to it.
const GOODBYE: Duration = Duration::from_millis(500);
/// Most of what the supervisor says that is printed.
const MOST_WORDS: u64 = 64 << 10;

/// A run on our screen; its supervisor is ready to begin, or has begun.
pub(in crate::cli) struct Viewer {
    runtime: Runtime,
    screen: TuiHandle,
    slot: SnapshotSlot,
    commands: mpsc::UnboundedReceiver<Request>,
    signals: Signals,
    told: mpsc::UnboundedReceiver<Told>,
    remote: Remote,
    supervisor: Child,
    words: std_mpsc::Receiver<String>,
    /// Id and folder; absent until the supervisor has made it.
    run: Option<(String, PathBuf)>,
    /// The end of the run was asked for before it began.
    ends: Option<Command>,
    /// The screen was left, or its terminal is gone.
    detached: bool,
    profiles: Profiles,
}

/// Why the screen is left.
enum Left {
    /// The run is over, or its supervisor is gone.
    Over(Result<(), CliError>),
    /// The run goes on without us.
    Detached,
}

/// Takes the terminal, starts the supervisor and waits until it has decided everything.
pub(in crate::cli) fn open(args: &RunArgs, ascii: bool) -> Result<Viewer, Refused> {
    // most of what may be wrong is said before a screen is up
    setup::judge(args)?;
    let system = |what| move |why| CliError::System { what, why };
    let runtime = runtime()?;
    let signals = {
        let _signals_need_it = runtime.enter();
        Signals::new().map_err(system("listen to signals"))?
    };
    let (command_to, commands) = mpsc::unbounded_channel();
    let slot = SnapshotSlot::new();
    let screen = crate::ui::spawn(screen_options(ascii, false), slot.clone(), command_to)
        .map_err(|e| system("take over the terminal")(io::Error::other(e)))?;
    let Supervisor {
        process,
        socket,
        words,
    } = serve::start(args).map_err(system("start the supervisor"))?;
    let remote = Remote::new(slot.clone());
    let (told_to, told) = mpsc::unbounded_channel();
    Reader::of_own(Link::over(socket), remote.clone(), slot.clone(), told_to)
        .start()
        .map_err(system("start the reader"))?;
    let viewer = Viewer {
        runtime,
        screen,
        slot,
        commands,
        signals,
        told,
        remote,
        supervisor: process,
        words: collect(words).map_err(system("start the reader"))?,
        run: None,
        ends: None,
        detached: false,
        profiles: Profiles::start(),
    };
    viewer.begun()
}

/// Reads what the supervisor says until it ends.
fn collect(words: io::PipeReader) -> io::Result<std_mpsc::Receiver<String>> {
    let (to, from) = std_mpsc::channel();
    let body = move || {
        let mut text = Vec::new();
        // what was read up to an error is said all the same
        let _ = words.take(MOST_WORDS).read_to_end(&mut text);
        let _ = to.send(String::from_utf8_lossy(&text).into_owned());
    };
    std::thread::Builder::new()
        .name("words".to_owned())
        .spawn(body)?;
    Ok(from)
}

/// What happens next.
enum Came {
    Signal(Command),
    Request(Request),
    Told(Told),
    Nothing,
}

impl Viewer {
    /// Waits until the supervisor has decided everything.
    fn begun(mut self) -> Result<Self, Refused> {
        while self.run.is_none() {
            match self.turn() {
                Some(Left::Over(end)) => {
                    let unheard = self.ends.take();
                    let why = self.leave(end).err();
                    let why = why.unwrap_or_else(|| CliError::SupervisorDied {
                        how: "before the run began".to_owned(),
                    });
                    return Err(Refused { why, unheard });
                }
                // nobody is here to see what it decides
                Some(Left::Detached) => break,
                None => {}
            }
        }
        Ok(self)
    }

    /// Shows the run until it is over, or the screen is left; gives the exit code.
    pub(in crate::cli) fn show(mut self) -> Result<u8, CliError> {
        loop {
            match self.turn() {
                Some(Left::Over(end)) => return self.leave(end),
                Some(Left::Detached) => return Ok(self.detach()),
                None => self.profiles.show(&self.slot),
            }
        }
    }

    /// Waits for one thing, not longer than [`LOOK`]; why the screen is left, if it is.
    fn turn(&mut self) -> Option<Left> {
        if self.detached {
            return Some(Left::Detached);
        }
        let Self {
            runtime,
            signals,
            commands,
            told,
            ..
        } = self;
        let came = runtime.block_on(async {
            tokio::select! {
                biased;
                command = signals.next() => Came::Signal(command),
                Some(request) = commands.recv() => Came::Request(request),
                Some(told) = told.recv() => Came::Told(told),
                () = tokio::time::sleep(LOOK) => Came::Nothing,
            }
        });
        match came {
            // whoever waits for our end has read enough
            Came::Signal(_) if self.is_over() => Some(Left::Over(Ok(()))),
            Came::Signal(Command::TerminalLost)
            | Came::Request(Request {
                command: Command::TerminalLost,
                ..
            }) => Some(self.leave_alone()),
            Came::Signal(command) => {
                self.hand_on(command);
                None
            }
            Came::Request(request) => {
                self.ask(request);
                None
            }
            Came::Told(told) => self.heard(told),
            Came::Nothing if self.screen.is_alive() => None,
            Came::Nothing => Some(self.leave_alone()),
        }
    }

    fn is_over(&self) -> bool {
        let last = self.slot.latest();
        last.is_some_and(|s| s.outcome.is_some())
    }

    /// The screen is left by the user, or its terminal is gone.
    fn leave_alone(&mut self) -> Left {
        if self.is_over() {
            return Left::Over(Ok(()));
        }
        self.detached = true;
        Left::Detached
    }

    /// A signal to us is one to the supervisor, which knows what it means.
    fn hand_on(&mut self, command: Command) {
        let signal = match command {
            Command::Terminate => Signal::TERM,
            Command::Hold | Command::Release => Signal::USR1,
            Command::Evidence => Signal::USR2,
            _ => Signal::INT,
        };
        // not waited for yet: the number is still that of our child
        if let Some(pid) = Pid::from_raw(self.supervisor.id().cast_signed()) {
            // one that is gone is noticed by its silence
            let _ = kill_process(pid, signal);
        }
        self.note_end(command);
    }

    fn ask(&mut self, request: Request) {
        self.note_end(request.command.clone());
        if !self.remote.send(request) {
            let word = "not done: the supervisor cannot be reached at this moment";
            self.slot.say(word.to_owned());
        }
    }

    fn note_end(&mut self, command: Command) {
        let ends = matches!(command, Command::Stop | Command::Terminate | Command::Kill);
        if ends && self.run.is_none() {
            self.ends = Some(command);
        }
    }

    fn heard(&mut self, told: Told) -> Option<Left> {
        match told {
            Told::Begun { run, folder } => {
                self.slot.publish_record(&folder);
                self.run = Some((run, folder));
                None
            }
            Told::ProfilesChanged => {
                self.profiles = Profiles::start();
                None
            }
            Told::Ended(Ok(())) => None,
            Told::Ended(Err(why)) => Some(Left::Over(Err(why))),
            // it ends without waiting for us: a signal asked for that
            Told::Closed => Some(Left::Over(Ok(()))),
        }
    }

    /// Gives the terminal back, and says what became of the run.
    fn leave(mut self, end: Result<(), CliError>) -> Result<u8, CliError> {
        self.screen.finish();
        self.remote.close();
        let status = wait(&mut self.supervisor);
        if let Ok(words) = self.words.recv_timeout(GOODBYE) {
            // nowhere else to say it if stderr is closed
            let _ = io::stderr().write_all(words.as_bytes());
        }
        match end {
            Err(refused @ CliError::Refused { .. }) => return Err(refused),
            Err(CliError::Unfinished { .. } | CliError::SupervisorDied { .. }) => {
                if let Some((_, folder)) = &self.run {
                    last_words(None, None, folder);
                }
                return Err(CliError::SupervisorDied {
                    how: how(status, self.run.is_some()),
                });
            }
            Err(other) => return Err(other),
            Ok(()) => {}
        }
        let last = self.slot.latest();
        let outcome = last.as_ref().and_then(|s| s.outcome.as_ref());
        let result = last.as_ref().and_then(|s| s.result.as_ref());
        if let Some((_, folder)) = &self.run {
            last_words(outcome, result, folder);
        }
        outcome.map_or_else(
            || {
                Err(CliError::SupervisorDied {
                    how: how(status, self.run.is_some()),
                })
            },
            |(_, code, _)| Ok(*code),
        )
    }

    /// Leaves the run alone; gives the exit code.
    fn detach(self) -> u8 {
        self.screen.finish();
        self.remote.close();
        let again = match &self.run {
            Some((run, folder)) => {
                format!("record: {}\nframepack-tui follow {run}", folder.display())
            }
            // the newest run, which is this one once it has begun
            None => "framepack-tui follow".to_owned(),
        };
        let text = format!(
            "framepack-tui: the run goes on without a screen (pid {})\n{again}\n",
            self.supervisor.id()
        );
        let (done_to, done) = std_mpsc::channel();
        let say = move || {
            // nobody reads it where the terminal is gone
            let _ = io::stdout().lock().write_all(text.as_bytes());
            let _ = done_to.send(());
        };
        if std::thread::Builder::new().spawn(say).is_ok() {
            let _ = done.recv_timeout(GOODBYE);
        }
        0
    }
}

/// The supervisor's end; absent: it has not ended in time.
fn wait(supervisor: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match supervisor.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < ENDING => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(None) | Err(_) => return None,
        }
    }
}

/// How a supervisor ended that has not told the end of its run.
fn how(status: Option<ExitStatus>, begun: bool) -> String {
    let how = status.map_or_else(
        || "its connection and does not end itself".to_owned(),
        |status| format!("by itself ({status})"),
    );
    if begun {
        how
    } else {
        format!("{how} before the run began")
    }
}
