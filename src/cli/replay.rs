//! `framepack-tui replay`: a record through today's rules, beside what was said then.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::model::event::RunStarted;
use crate::model::{Effect, Envelope, Event, Mono, exit};
use crate::record::{Events, bundle};
use crate::run::replay::{Comparison, Difference, Pair, Replay};
use crate::ui::PlainWriter;

use super::args::ReplayArgs;
use super::runs::{print, printable};
use super::{CliError, find};

/// Groups of the comparison, in their order.
const GROUPS: [&str; 3] = ["verdicts", "decisions", "effects"];

/// Replays it and tells the difference.
pub(super) fn main(args: &ReplayArgs) -> Result<u8, CliError> {
    let mut play = Play::new(args.speed);
    let name = match args.run.as_deref().map(Path::new) {
        Some(file) if file.is_file() && bundle::is_bundle(file) => {
            for envelope in bundle::open(file)?.events() {
                play.take(envelope)?;
            }
            file.display().to_string()
        }
        Some(file) if file.is_file() => {
            play.all(Events::open(file)?)?;
            file.display().to_string()
        }
        _ => {
            let run = find::run(args.run.as_deref())?;
            play.all(Events::open(&run.path)?)?;
            run.id
        }
    };
    let events = play.events;
    let (Some(head), Some(replay)) = (play.head, play.replay) else {
        return Err(CliError::NoHead(name));
    };
    let comparison = replay.finish();
    print(
        report(&name, &head, events, &comparison)
            .iter()
            .map(|l| printable(l)),
    )?;
    let failed = args.assert && comparison.differs();
    Ok(if failed { exit::DIFFERS } else { exit::DONE })
}

/// A replay under way.
struct Play {
    replay: Option<Replay>,
    head: Option<Box<RunStarted>>,
    events: u64,
    /// Plain lines in real time, so many times as fast.
    shown: Option<(f64, PlainWriter<io::Stdout>)>,
    begun: Instant,
}

impl Play {
    fn new(speed: Option<f64>) -> Self {
        Self {
            replay: None,
            head: None,
            events: 0,
            shown: speed.map(|s| (s, PlainWriter::following(io::stdout(), None))),
            begun: Instant::now(),
        }
    }

    fn all(&mut self, mut events: Events) -> Result<(), CliError> {
        while let Some((envelope, _)) = events.next()? {
            self.take(&envelope)?;
        }
        if let Some((_, out)) = &mut self.shown {
            // what is written last may find no reader: the comparison is made all the same
            let _ = out.finish();
        }
        Ok(events.require_any()?)
    }

    fn take(&mut self, envelope: &Envelope) -> Result<(), CliError> {
        self.events += 1;
        if let (None, Event::RunStarted(head)) = (&self.replay, &envelope.event) {
            self.head = Some(head.clone());
            self.replay = Some(Replay::new(head));
        }
        let Some(replay) = &mut self.replay else {
            return Ok(());
        };
        let effects = replay.feed(envelope);
        match self.show(envelope, effects) {
            // `replay --speed 10 | head`: the comparison is made all the same
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.shown = None,
            said => said.map_err(|why| CliError::System {
                what: "write to standard output",
                why,
            })?,
        }
        Ok(())
    }

    /// What was seen then, and what today's rules say of it.
    fn show(&mut self, envelope: &Envelope, effects: Vec<Effect>) -> io::Result<()> {
        let Some((speed, out)) = &mut self.shown else {
            return Ok(());
        };
        let due = Duration::from_millis(envelope.at.0).div_f64(*speed);
        std::thread::sleep(due.saturating_sub(self.begun.elapsed()));
        if !Replay::is_output(&envelope.event) {
            out.accept(envelope)?;
        }
        for effect in effects {
            if let Effect::Emit(event) = effect {
                // what is no output of the rules alone comes back in the record
                if Replay::is_output(&event) {
                    out.accept(&Envelope {
                        event: *event,
                        ..*envelope
                    })?;
                }
            }
        }
        Ok(())
    }
}

fn report(name: &str, head: &RunStarted, events: u64, comparison: &Comparison) -> Vec<String> {
    let mut lines = vec![format!(
        "replay of {name}: {events} events, recorded by framepack-tui {}, replayed by {}",
        head.program,
        env!("CARGO_PKG_VERSION")
    )];
    for group in GROUPS {
        let counts = comparison.counts(group);
        let counts: Vec<String> = counts
            .iter()
            .map(|(d, n)| format!("{n} {}", d.word()))
            .collect();
        let counts = if counts.is_empty() {
            "none".to_owned()
        } else {
            counts.join(", ")
        };
        lines.push(format!("{group:<10} {counts}"));
    }
    if comparison.reworded() > 0 {
        lines.push(format!(
            "{} of the same are told in other words or numbers",
            comparison.reworded()
        ));
    }
    if let Some(at) = comparison.parted {
        lines.push(format!("from {} on the record answers other decisions than today's: what follows may differ for that alone", stamp(at)));
    }
    if !comparison.has_ticks {
        lines.push("this stream has no ticks (run --headless): they are put back where its numbers leave room, less than a turn of the clock (250 ms) off".to_owned());
    }
    lines.push(String::new());
    lines.extend(comparison.pairs.iter().filter_map(row));
    lines
}

fn row(pair: &Pair) -> Option<String> {
    let told = pair.told()?;
    let difference = pair.difference();
    let then = match (difference, &pair.then) {
        (Difference::Earlier | Difference::Later, Some(then)) => {
            format!(" (then {})", stamp(then.at))
        }
        _ => String::new(),
    };
    let words = match (difference, told.words.is_empty()) {
        (Difference::Same, _) | (_, true) => String::new(),
        _ => {
            // the words of a judgement begin with it
            let deed = format!("{}: ", told.deed);
            format!(
                ": {}",
                told.words.strip_prefix(&deed).unwrap_or(&told.words)
            )
        }
    };
    Some(format!(
        "{:<8} {}{then}  {}{words}",
        difference.word(),
        stamp(told.at),
        told.deed
    ))
}

/// `hh:mm:ss.t`.
fn stamp(at: Mono) -> String {
    format!("{}.{}", at.clock(), at.0 % 1000 / 100)
}
