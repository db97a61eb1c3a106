//! `framepack-tui` alone: what is there, and one key to each.

mod feed;
mod line;
mod look;
mod records;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::model::Command;
use crate::supervise::Signals;
use crate::ui::plain::lobby_text;
use crate::ui::slot::Slot;
use crate::ui::tui::start::{StartMemory, StartOptions, Wish, spawn};
use crate::ui::{Lobby, Theme};

use super::args::{ShowArgs, StartArgs, WatchArgs};
use super::show::Output;
use super::{CliError, follow, run, watch};
use feed::Feed;
use look::Left;

/// Time between two pictures: the period of the readings.
const PERIOD: Duration = Duration::from_millis(500);
/// How often the screen is asked whether it still stands.
const LOOK: Duration = Duration::from_millis(50);

/// Shows the start screen, and what is opened from it, until the user leaves or a
/// command is started; gives the exit code.
pub(super) fn main(args: StartArgs) -> Result<u8, CliError> {
    let ascii = Theme::detect(args.ascii, |name| std::env::var(name).ok()).ascii;
    let Some(on_screen) = screen(args) else {
        return Err(CliError::NoTerminal);
    };
    let mut feed = Feed::start();
    if !on_screen {
        return print(&mut feed, ascii).map(|()| 0);
    }
    let memory = StartMemory::default();
    let mut word = None;
    loop {
        let wish = match welcome(&mut feed, args.ascii, memory.clone(), word.take())? {
            Left::Back(wish) => wish,
            Left::Ended(code) => return Ok(code),
        };
        match wish {
            Wish::Leave => return Ok(0),
            Wish::Start { line, profile } => {
                let args =
                    line::run_args(&line, profile.as_deref(), args.ascii).map_err(|why| {
                        CliError::System {
                            what: "read the command again",
                            why: io::Error::other(why),
                        }
                    })?;
                // the run has its own readers of the machine
                drop(feed);
                let run::Refused { why, unheard } = match run::screen::open(&args, ascii) {
                    Ok(viewer) => return viewer.show(),
                    Err(refused) => refused,
                };
                if let Some(code) = unheard.as_ref().and_then(ends_us) {
                    return Ok(code);
                }
                memory.refuse(why.to_string());
                feed = Feed::start();
            }
            Wish::Follow { run } => {
                let shown = follow_run(&feed, &run, args.ascii);
                if let Some(code) = shown.signal.as_ref().and_then(ends_us) {
                    return Ok(code);
                }
                word = shown.end.err().map(|e| e.to_string());
            }
            Wish::Look { pid, start } => match look::look(&mut feed, pid, start, args.ascii)? {
                Left::Back(said) => word = said,
                Left::Ended(code) => return Ok(code),
            },
            Wish::Watch { pid, start } => {
                // the watching has its own readers of the machine
                drop(feed);
                let refused = match watch::prepare(&watched(pid, args.ascii), Some(start)) {
                    Ok(ready) => return ready.supervise(),
                    Err(refused) => refused,
                };
                if let Some(code) = refused.unheard.as_ref().and_then(ends_us) {
                    return Ok(code);
                }
                word = Some(refused.why.to_string());
                feed = Feed::start();
            }
        }
    }
}

/// What `watch --pid` would be told.
const fn watched(pid: u32, ascii: bool) -> WatchArgs {
    WatchArgs {
        pid,
        log: None,
        job: false,
        profile: None,
        gpu: None,
        gdb: false,
        show: ShowArgs {
            headless: false,
            plain: false,
            ascii,
        },
    }
}

/// Whether there is a screen to draw on (`Some(true)`), text is wanted
/// (`Some(false)`), or there is nothing for either.
fn screen(args: StartArgs) -> Option<bool> {
    let terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    let shown = ShowArgs {
        headless: false,
        plain: args.plain,
        ascii: args.ascii,
    };
    match Output::choose(shown) {
        Output::Screen { .. } => Some(true),
        // asked for, or a terminal that cannot be drawn on
        _ if args.plain || terminal => Some(false),
        _ => None,
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> CliError {
    move |why| CliError::System { what, why }
}

/// Prints once what is there.
fn print(feed: &mut Feed, ascii: bool) -> Result<(), CliError> {
    let text = lobby_text(&feed.whole(), ascii);
    match io::stdout().lock().write_all(text.as_bytes()) {
        // `framepack-tui --plain | head`
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(system("write to standard output")),
    }
}

/// Shows the start screen until the user wishes something, or a signal ends us.
fn welcome(
    feed: &mut Feed,
    ascii: bool,
    memory: StartMemory,
    word: Option<String>,
) -> Result<Left<Wish>, CliError> {
    let options = StartOptions {
        theme: Theme::detect(ascii, |name| std::env::var(name).ok()),
        check: |line, profile| line::run_args(line, profile, false).map(drop),
        memory,
    };
    on_runtime(async {
        let mut signals = Signals::new().map_err(system("listen to signals"))?;
        let slot = Slot::<Lobby>::new();
        slot.publish(feed.lobby().into());
        if let Some(word) = word {
            slot.say(word);
        }
        let (wish_to, mut wishes) = mpsc::unbounded_channel();
        let screen = spawn(options, slot.clone(), wish_to)
            .map_err(|e| system("take over the terminal")(io::Error::other(e)))?;
        let mut ticks = tokio::time::interval(PERIOD);
        let left = loop {
            tokio::select! {
                biased;
                command = signals.next() => if let Some(code) = ends_us(&command) {
                    break Left::Ended(code);
                },
                wish = wishes.recv() => break Left::Back(wish.unwrap_or(Wish::Leave)),
                _ = ticks.tick() => slot.publish(feed.lobby().into()),
            }
        };
        screen.finish();
        Ok(left)
    })
}

/// Runs it on a runtime of its own: `run` and `follow` have theirs.
fn on_runtime<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("start the runtime"))?;
    runtime.block_on(work)
}

/// The exit code, where a signal to us ends the program.
const fn ends_us(command: &Command) -> Option<u8> {
    match command {
        Command::Terminate => Some(143),
        Command::Stop | Command::Kill | Command::TerminalLost => Some(0),
        _ => None,
    }
}

/// Shows a recorded run.
fn follow_run(feed: &Feed, id: &str, ascii: bool) -> follow::Shown {
    match feed.run(id) {
        Some(run) => follow::show(&run, Output::Screen { ascii }, false),
        // its record was pruned meanwhile
        None => CliError::NoSuchRun {
            asked: id.to_owned(),
            there: "its record is gone".to_owned(),
        }
        .into(),
    }
}
