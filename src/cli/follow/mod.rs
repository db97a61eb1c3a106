//! `framepack-tui follow`: a run of another process, from its growing record.

pub(super) mod feed;
pub(super) mod profiles;
pub(super) mod reader;

use std::io;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::model::Command;
use crate::record::store::LOCK;
use crate::record::{RunEntry, Tail, TailError, events_file, is_held};
use crate::supervise::{Owner, Signals};
use crate::ui::SnapshotSlot;

use super::args::FollowArgs;
use super::show::{Output, last_words, screen_options};
use super::{CliError, find};
use feed::Remote;
use profiles::Profiles;
use reader::{Reader, Show, Told};

/// How often the screen is asked whether it still stands.
const LOOK: Duration = Duration::from_millis(50);
/// A run that has just begun writes its first line within this time.
const FIRST_LINE: Duration = Duration::from_secs(5);

/// Shows a run until it is over or the user leaves; gives the exit code.
pub(super) fn main(args: &FollowArgs) -> Result<u8, CliError> {
    let run = find::run(args.run.as_deref())?;
    show(&run, Output::choose(args.show), true).end.map(|()| 0)
}

/// How showing a run came to its end.
pub(super) struct Shown {
    /// The signal to us that ended it, as a command.
    pub(super) signal: Option<Command>,
    /// What was wrong.
    pub(super) end: Result<(), CliError>,
}

impl From<CliError> for Shown {
    fn from(why: CliError) -> Self {
        Self {
            signal: None,
            end: Err(why),
        }
    }
}

/// Shows a run until it is over or the user leaves; `last_words`: says afterwards what
/// became of it.
pub(super) fn show(run: &RunEntry, output: Output, last_words: bool) -> Shown {
    let tail = match open(run) {
        Ok(tail) => tail,
        Err(why) => return why.into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime.map_err(system("start the runtime")) {
        Ok(runtime) => runtime,
        Err(why) => return why.into(),
    };
    let shown = runtime.block_on(watch(run, tail, output, last_words));
    // a reader that waits for a blocked pipe is left behind
    runtime.shutdown_background();
    shown.unwrap_or_else(Into::into)
}

fn system(what: &'static str) -> impl Fn(io::Error) -> CliError {
    move |why| CliError::System { what, why }
}

/// The record, whose file may be a moment younger than its folder.
fn open(run: &RunEntry) -> Result<Tail, CliError> {
    let begun = Instant::now();
    loop {
        match Tail::open(&events_file(&run.path)) {
            Err(TailError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound
                    && is_held(&run.path)
                    && begun.elapsed() < FIRST_LINE =>
            {
                std::thread::sleep(LOOK);
            }
            opened => return Ok(opened?),
        }
    }
}

/// The supervisor of the run, if it is alive and ours.
fn owner(run: &RunEntry) -> Option<Owner> {
    let pid = run.manifest.as_ref()?.pid?;
    is_held(&run.path)
        .then(|| Owner::find(pid, &run.path.join(LOCK)))
        .flatten()
}

async fn watch(
    run: &RunEntry,
    tail: Tail,
    output: Output,
    last_words: bool,
) -> Result<Shown, CliError> {
    let mut signals = Signals::new().map_err(system("listen to signals"))?;
    let (command_to, mut commands) = mpsc::unbounded_channel();
    let slot = SnapshotSlot::new();
    let (screen, show, remote) = match output {
        Output::Headless => (None, Show::headless(), None),
        Output::Plain => (None, Show::plain(owner(run).map(|o| o.pid())), None),
        Output::Screen { ascii } => {
            slot.publish_record(&run.path);
            let screen = crate::ui::spawn(screen_options(ascii, true), slot.clone(), command_to)
                .map_err(|e| system("take over the terminal")(io::Error::other(e)))?;
            let remote = Remote::new(slot.clone());
            (Some(screen), Show::screen(slot.clone()), Some(remote))
        }
    };
    let (told_to, mut told) = mpsc::unbounded_channel();
    Reader::new(&run.path, tail, remote.clone(), show, told_to)
        .start()
        .map_err(system("start the reader"))?;
    let (mut ended, mut signal) = (None, None);
    let mut profiles = screen.as_ref().map(|_| Profiles::start());
    let mut looks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            biased;
            command = signals.next() => if leaves(&command) {
                signal = Some(command);
                break;
            },
            Some(request) = commands.recv() => {
                if request.command == Command::TerminalLost {
                    break;
                }
                let sent = remote.as_ref().is_some_and(|r| r.send(request.clone()));
                if !sent {
                    slot.say(pass_on(run, &request.command));
                }
            }
            Some(told) = told.recv() => match told {
                Told::Ended(end) => {
                    ended = Some(end);
                    if screen.is_none() {
                        break;
                    }
                }
                Told::ProfilesChanged => profiles = screen.as_ref().map(|_| Profiles::start()),
                Told::Begun { .. } | Told::Closed => {}
            },
            _ = looks.tick() => {
                if screen.as_ref().is_some_and(|s| !s.is_alive()) {
                    break;
                }
                if let Some(profiles) = &mut profiles {
                    profiles.show(&slot);
                }
            }
        }
    }
    if let Some(remote) = remote {
        remote.close();
    }
    if let Some(screen) = screen {
        screen.finish();
        if last_words {
            farewell(run, &slot);
        }
    }
    Ok(Shown {
        signal,
        end: ended.unwrap_or(Ok(())),
    })
}

/// Signals to us end the view, never the run.
const fn leaves(command: &Command) -> bool {
    matches!(
        command,
        Command::Stop | Command::Terminate | Command::Kill | Command::TerminalLost
    )
}

/// Hands a key to the supervisor; what to tell the user.
fn pass_on(run: &RunEntry, command: &Command) -> String {
    let ends = matches!(command, Command::Stop | Command::Kill);
    if ends && run.manifest.as_ref().is_some_and(|m| m.watch.is_some()) {
        // a signal only makes the watching leave it
        return "not possible from here; press the key where it is watched".to_owned();
    }
    match owner(run).map(|owner| owner.tell(command)) {
        Some(Ok(said)) => said.to_owned(),
        Some(Err(why)) => why.to_string(),
        None if is_held(&run.path) => {
            "not possible from here: the supervisor cannot be reached".to_owned()
        }
        None => "not possible: nobody supervises this run any more".to_owned(),
    }
}

fn farewell(run: &RunEntry, slot: &SnapshotSlot) {
    let last = slot.latest();
    let outcome = last.as_ref().and_then(|s| s.outcome.as_ref());
    let result = last.as_ref().and_then(|s| s.result.as_ref());
    last_words(outcome, result, &run.path);
}
