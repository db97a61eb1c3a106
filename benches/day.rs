//! A day of generations, as fast as it can be simulated: what it costs to watch it.
//!
//!     cargo bench --bench day
//!
//! The day is the fold, the record on disk, the snapshots and the frames of a run at
//! two samples and four frames a second. Reading the sources does not go faster than
//! a real day does, so it is measured at its own pace for a minute and added.

#[path = "support/card.rs"]
mod card;
#[path = "support/figures.rs"]
mod figures;
#[path = "support/terminal_sink.rs"]
mod terminal_sink;
#[path = "support/usage.rs"]
mod usage;
#[path = "support/workload.rs"]
mod workload;

use std::error::Error;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use framepack_tui::model::{Bytes, Event};
use framepack_tui::record::{EventSink, Store};
use framepack_tui::supervise::EvidenceRing;
use framepack_tui::telemetry::{Sampler, SamplerConfig};
use framepack_tui::ui::Theme;
use framepack_tui::ui::tui::ViewOptions;
use rustix::time::{ClockId, clock_gettime};

use card::Card;
use figures::Figure;
use terminal_sink::Sink;
use workload::{PERIOD_MS, Workload};

const GROUP: &str = "A day: 2 samples and 4 frames a second";
const DAY_S: u32 = 86_400;
/// Argument with which this program is the workload that the sources watch.
const CHILD: &str = "--be-a-workload";
/// Threads of that workload.
const THREADS: usize = 48;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|a| a == CHILD) {
        be_a_workload();
    }
    let hours = if figures::quick() { 1 } else { 24 };
    let day = Day::live(hours)?;
    let sampling = sample_for(Duration::from_secs(if figures::quick() { 10 } else { 60 }))?;
    figures::write("day", &day.figures(&sampling))
}

/// What the simulated hours came to.
struct Day {
    hours: u32,
    cpu: Duration,
    parts: Parts,
    rss: Vec<Bytes>,
    record: Bytes,
    drawn: u64,
    frames: u32,
    samples: u32,
    lines: u32,
}

/// Where the time went.
#[derive(Default)]
struct Parts {
    fold: Duration,
    record: Duration,
    snapshot: Duration,
    draw: Duration,
}

/// CPU time of this process, all threads.
fn own_cpu() -> Result<Duration, Box<dyn Error>> {
    Ok(clock_gettime(ClockId::ProcessCPUTime).try_into()?)
}

/// CPU time since then.
fn cpu_since(then: Duration) -> Result<Duration, Box<dyn Error>> {
    Ok(own_cpu()?.saturating_sub(then))
}

fn own_pid() -> Result<i32, Box<dyn Error>> {
    Ok(i32::try_from(std::process::id())?)
}

impl Day {
    fn live(hours: u32) -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let dir = Store::at(folder.path()).create(&["bench".to_owned()], &jiff::Zoned::now())?;
        let mut recorder = dir.recorder()?;
        let mut ring = EvidenceRing::new();
        let mut sink = Sink::new(120, 36)?;
        let options = ViewOptions::new(Theme {
            ascii: false,
            color: true,
        });
        let mut run = Workload::start();
        let mut day = Self {
            hours,
            cpu: Duration::ZERO,
            parts: Parts::default(),
            rss: Vec::new(),
            record: Bytes(0),
            drawn: 0,
            frames: 0,
            samples: 0,
            lines: 0,
        };
        let per_hour = 3_600_000 / u32::try_from(PERIOD_MS)?;
        let cpu = own_cpu()?;
        for half in 0..hours * per_hour {
            for turn in [|run: &mut Workload| run.half_second(false), Workload::tick] {
                let begun = Instant::now();
                turn(&mut run);
                let after_fold = Instant::now();
                day.parts.fold += after_fold - begun;
                for env in run.stream.drain(..) {
                    day.samples += u32::from(matches!(env.event, Event::Sample(_)));
                    day.lines += u32::from(matches!(env.event, Event::Line(_)));
                    ring.observe(&env);
                    recorder.accept(&env)?;
                }
                if half % 2 == 0 {
                    // as often as the recorder's thread does
                    recorder.flush()?;
                }
                let after_record = Instant::now();
                day.parts.record += after_record - after_fold;
                let snapshot = run.state.snapshot();
                let made = Instant::now();
                day.parts.snapshot += made - after_record;
                day.drawn += sink.draw(&snapshot, &options.clone())?;
                day.parts.draw += made.elapsed();
                day.frames += 1;
            }
            if (half + 1) % per_hour == 0 {
                day.rss.push(usage::rss(own_pid()?)?);
            }
        }
        recorder.finish()?;
        day.cpu = cpu_since(cpu)?;
        day.record = Bytes(dir.path().join("events.jsonl.gz").metadata()?.len());
        Ok(day)
    }

    fn figures(&self, sampling: &Sampling) -> Vec<Figure> {
        let seconds = f64::from(self.hours * 3600);
        let percent = |used: Duration| used.as_secs_f64() / seconds * 100.0;
        let day = percent(self.cpu);
        let read = sampling.share * 100.0;
        let first = self.rss.first().copied().unwrap_or_default();
        let last = self.rss.last().copied().unwrap_or_default();
        let most = self.rss.iter().copied().max().unwrap_or_default();
        let p = &self.parts;
        // measured on the wall: their proportions are told, not what others took meanwhile
        let whole = p.fold + p.record + p.snapshot + p.draw;
        let part = |wall: Duration| day * wall.div_duration_f64(whole);
        let scale = f64::from(DAY_S) / seconds;
        vec![
            Figure::ours(GROUP, "CPU, all of it", "% of a core")
                .value(day + read)
                .at_most(1.0)
                .note("the two lines below together"),
            Figure::ours(GROUP, "CPU: fold, record, snapshots, frames at 120x36", "% of a core")
                .value(day)
                .note(format!(
                    "{:.1} s of CPU for {} h: {} samples, {} lines, {} frames; fold {:.3} %, record {:.3} %, snapshot {:.3} %, draw {:.3} %",
                    self.cpu.as_secs_f64(),
                    self.hours,
                    self.samples,
                    self.lines,
                    self.frames,
                    part(p.fold),
                    part(p.record),
                    part(p.snapshot),
                    part(p.draw)
                )),
            Figure::ours(GROUP, "CPU: reading the sources", "% of a core")
                .value(read)
                .note(format!(
                    "{:.2} ms a round over {} rounds at their own pace, imitated card, {THREADS} threads of a real process tree",
                    sampling.per_round_ms, sampling.rounds
                )),
            Figure::ours(GROUP, "memory (RSS), highest at the end of an hour", "MiB")
                .value(usage::mib(most))
                .at_most(60.0)
                .note(format!(
                    "after hour 1: {:.1}, after hour {}: {:.1}",
                    usage::mib(first),
                    self.hours,
                    usage::mib(last)
                )),
            Figure::ours(GROUP, "memory gained after the first hour", "MiB")
                .value(usage::mib(last) - usage::mib(first)),
            Figure::ours(GROUP, "record on disk", "MiB a day")
                .value(usage::mib(self.record) * scale),
            Figure::ours(GROUP, "written to the terminal", "MiB a day")
                .value(usage::mib(Bytes(self.drawn)) * scale),
        ]
    }
}

/// What reading the sources costs.
struct Sampling {
    share: f64,
    per_round_ms: f64,
    rounds: u32,
}

fn sample_for(time: Duration) -> Result<Sampling, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let card = Card::make(folder.path())?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let sampler = Sampler::start(SamplerConfig {
        sys_root: card.root().to_owned(),
        ..SamplerConfig::default()
    });
    assert_eq!(sampler.cards().len(), 1, "the imitated card");
    sampler.set_target(Some(child.id()), None);
    sampler.set_supervised(true, None);
    // the first rounds look for things that stay
    std::thread::sleep(Duration::from_secs(2));
    let (cpu, begun) = (own_cpu()?, Instant::now());
    let mut rounds = 0;
    while begun.elapsed() < time {
        std::thread::sleep(Duration::from_millis(PERIOD_MS));
        let sample = sampler.sample();
        assert!(
            sample.process.is_some_and(|p| p.threads > 48),
            "the workload"
        );
        rounds += 1;
    }
    let (used, elapsed) = (cpu_since(cpu)?, begun.elapsed());
    child.kill()?;
    child.wait()?;
    Ok(Sampling {
        share: used.as_secs_f64() / elapsed.as_secs_f64(),
        per_round_ms: used.as_secs_f64() * 1e3 / f64::from(rounds),
        rounds,
    })
}

/// Threads that wait, until standard input ends.
fn be_a_workload() -> ! {
    for _ in 0..THREADS {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
    }
    // an error is an end as well
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    std::process::exit(0)
}
