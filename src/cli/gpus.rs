//! `framepack-tui gpus`: what every card reads, once or as a stream.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::oneshot;

use crate::model::event::SCHEMA;
use crate::model::{
    Command, GpuId, GpuSample, HostSample, Metric, Sample, SourceState, SourceStatus,
};
use crate::supervise::Signals;
use crate::telemetry::{NEEDS_TWO, Sampler, SamplerConfig};
use crate::ui::Theme;
use crate::ui::plain::cards_text;

use super::CliError;
use super::args::GpusArgs;
use super::clock;
use super::run::machine;

/// Longest wait for the first answer of every source: a second opinion comes from a
/// process of its own, and some values need two readings.
const FIRST_ANSWERS: Duration = Duration::from_secs(3);

/// Longest wait for a second reading: one is due after half a second.
const SECOND_ANSWER: Duration = Duration::from_millis(1_500);

/// The readings in JSON, as documented in `docs/events.md`.
#[derive(Debug, Serialize)]
struct Reading<'a> {
    schema: &'static str,
    /// RFC 3339 with offset.
    wall_clock: String,
    gpus: &'a [GpuSample],
    host: &'a HostSample,
    sources: &'a [SourceStatus],
}

/// Prints them; gives the exit code.
pub(super) fn main(args: &GpusArgs) -> Result<u8, CliError> {
    let sampler = Sampler::start(SamplerConfig {
        period: SamplerConfig::default().period.min(args.interval),
        ..SamplerConfig::with_own_reader()
    });
    let cards = sampler.cards();
    let only = match &args.gpu {
        // there is no card: then none that was asked for either
        Some(asked) => machine::choose(&cards, Some(asked))?.map(|card| card.id),
        None => None,
    };
    let look = Look {
        sampler,
        only,
        json: args.json,
        ascii: Theme::detect(args.ascii, |name| std::env::var(name).ok()).ascii,
    };
    look.wait();
    if args.watch {
        look.sampler.set_watched(true);
        return watch(&look, args.interval);
    }
    match io::stdout().lock().write_all(look.now(false).as_bytes()) {
        // `framepack-tui gpus | head`
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        written => written.map(|()| 0).map_err(system(WRITING)),
    }
}

const WRITING: &str = "write to standard output";

fn system(what: &'static str) -> impl Fn(io::Error) -> CliError {
    move |why| CliError::System { what, why }
}

/// Where the readings come from and how they are told.
struct Look {
    sampler: Sampler,
    /// The card that was asked for.
    only: Option<GpuId>,
    json: bool,
    ascii: bool,
}

impl Look {
    /// Waits until every source has answered, or has had its time, and for the second
    /// answer of a card that tells something by two.
    fn wait(&self) {
        let begun = Instant::now();
        let starting = |s: &Sample| s.sources.iter().any(|s| s.state == SourceState::Starting);
        while begun.elapsed() < FIRST_ANSWERS && starting(&self.sampler.sample()) {
            thread::sleep(Duration::from_millis(10));
        }
        let begun = Instant::now();
        let by_two = |s: &Sample| s.gpus.iter().any(needs_two);
        while begun.elapsed() < SECOND_ANSWER && by_two(&self.sampler.sample()) {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The readings of now, to be printed. `again`: others were printed before.
    fn now(&self, again: bool) -> String {
        let now = clock::now();
        let sample = ours(self.sampler.sample(), self.only.as_ref());
        if self.json {
            let wall_clock = now.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string();
            return json(&sample, wall_clock);
        }
        let text = cards_text(&sample, self.ascii);
        if again {
            format!("\n{}\n{text}", now.strftime("%H:%M:%S"))
        } else {
            text
        }
    }
}

/// Whether the card counts why it throttles, and was read once.
fn needs_two(g: &GpuSample) -> bool {
    matches!(&g.throttle, Metric::Failed { why, .. } if why.contains(NEEDS_TWO))
}

/// What was asked for. Nobody is watched here, so the source that watches a process has
/// nothing to say.
fn ours(mut sample: Sample, only: Option<&GpuId>) -> Sample {
    sample.process = None;
    sample.sources.retain(|s| s.name != "proc");
    sample.gpus.retain(|g| only.is_none_or(|id| *id == g.id));
    sample
}

fn json(sample: &Sample, wall_clock: String) -> String {
    let reading = Reading {
        schema: SCHEMA,
        wall_clock,
        gpus: &sample.gpus,
        host: &sample.host,
        sources: &sample.sources,
    };
    // plain data with text keys cannot fail to be written
    let mut line = serde_json::to_string(&reading).unwrap_or_default();
    line.push('\n');
    line
}

/// Prints the readings again and again, until the user or the reader has enough. A
/// reader that is slower than the readings misses some of them.
fn watch(look: &Look, interval: Duration) -> Result<u8, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("start the runtime"))?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(system("listen to signals"))?;
        let (texts, mut written) = writer().map_err(system("start the writer"))?;
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut again = false;
        loop {
            tokio::select! {
                biased;
                command = signals.next() => match command {
                    Command::Terminate => return Ok(143),
                    Command::Stop | Command::Kill | Command::TerminalLost => return Ok(0),
                    _ => {}
                },
                end = &mut written => return match end {
                    Ok(Err(e)) if e.kind() != io::ErrorKind::BrokenPipe => Err(system(WRITING)(e)),
                    _ => Ok(0),
                },
                _ = ticks.tick() => {
                    if !matches!(texts.try_send(look.now(again)), Err(TrySendError::Full(_))) {
                        again = true;
                    }
                }
            }
        }
    })
}

/// A thread that writes what it is sent: a pipe that nobody reads blocks it, and not the
/// signals. Tells when it can write no more.
fn writer() -> io::Result<(SyncSender<String>, oneshot::Receiver<io::Result<()>>)> {
    let (text_to, texts) = sync_channel::<String>(1);
    let (end_to, end) = oneshot::channel();
    thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || {
            let write = |text: String| {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            };
            // nobody listens any more where the program ends
            let _ = end_to.send(texts.into_iter().try_for_each(write));
        })?;
    Ok((text_to, end))
}

/// A time between two readings: `2`, `0.5`, `500ms`, `10s`.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string()),
        Err(_) => humantime::parse_duration(text).map_err(|e| e.to_string()),
    }?;
    if (Duration::from_millis(100)..=Duration::from_hours(1)).contains(&parsed) {
        Ok(parsed)
    } else {
        Err("it has to be between 100ms and 1h".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Vendor;

    fn sample() -> Sample {
        let card = |id: &str, index| {
            let id = GpuId(id.to_owned());
            GpuSample::unread(id, index, Vendor::Amd, "card".to_owned(), "sysfs")
        };
        let source = |name: &str| SourceStatus {
            name: name.to_owned(),
            state: SourceState::Ok,
            age_ms: 0,
            why: None,
        };
        Sample {
            gpus: vec![card("a", 0), card("b", 1)],
            sources: vec![source("sysfs a"), source("proc")],
            ..Sample::default()
        }
    }

    #[test]
    fn one_line_of_json_with_what_the_document_names() {
        let mut all = ours(sample(), None);
        all.gpus[0].busy = Metric::Fresh(0.0);
        let line = json(&all, "2026-01-02T00:03:07.250+00:00".to_owned());
        assert_eq!(line.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["gpus"][0]["busy"]["fresh"], 0.0);
        assert_eq!(value["gpus"][1]["busy"], "unsupported");
        assert_eq!(value["sources"].as_array().unwrap().len(), 1);
        let doc = include_str!("../../docs/events.md");
        let (_, section) = doc
            .split_once("\n## `framepack-tui gpus --json`\n")
            .unwrap();
        for (key, _) in value.as_object().unwrap() {
            assert!(section.contains(&format!("`{key}`")), "{key}");
        }
    }

    #[test]
    fn only_the_card_that_was_asked_for() {
        let one = ours(sample(), Some(&GpuId("b".to_owned())));
        let left: Vec<_> = one.gpus.iter().map(|g| g.index).collect();
        assert_eq!(left, [1], "it keeps its number");
    }

    #[test]
    fn intervals() {
        assert_eq!(interval("2"), Ok(Duration::from_secs(2)));
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(interval("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["0", "-1", "nan", "2h", "1ms", "soon", ""] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
