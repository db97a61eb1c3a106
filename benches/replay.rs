//! An hour of a record through the rules.
//!
//!     cargo bench --bench replay

#[path = "support/figures.rs"]
mod figures;
#[path = "support/usage.rs"]
mod usage;
#[path = "support/workload.rs"]
mod workload;

use std::error::Error;
use std::time::Instant;

use framepack_tui::model::{Bytes, Event};
use framepack_tui::record::{EventSink, Events, Store, events_file};
use framepack_tui::run::replay::Replay;

use figures::Figure;
use workload::{PERIOD_MS, Workload};

const GROUP: &str = "A record of one hour at 2 samples a second";
const HOUR_MS: u64 = 3_600_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let dir = Store::at(folder.path()).create(&["bench".to_owned()], &jiff::Zoned::now())?;
    let mut recorder = dir.recorder()?;
    let mut run = Workload::start();
    let mut text = 0;
    for half in 0..HOUR_MS / PERIOD_MS {
        run.half_second(false);
        run.tick();
        for env in run.stream.drain(..) {
            text += serde_json::to_vec(&*env)?.len() + 1;
            recorder.accept(&env)?;
        }
        // more often than the recorder's thread does
        if half % 2 == 1 {
            recorder.flush()?;
        }
    }
    recorder.finish()?;
    let size = Bytes(events_file(dir.path()).metadata()?.len());
    let rounds = if figures::quick() { 1 } else { 5 };
    let mut times = Vec::new();
    let mut told = 0;
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut events = Events::open(dir.path())?;
        let mut replay = None;
        while let Some((envelope, _)) = events.next()? {
            if let Event::RunStarted(head) = &envelope.event {
                replay = Some(Replay::new(head));
            }
            if let Some(replay) = &mut replay {
                replay.feed(&envelope);
            }
        }
        let comparison = replay.ok_or("no head")?.finish();
        times.push(begun.elapsed().as_secs_f64());
        assert!(!comparison.differs(), "the same rules say the same");
        told = comparison.pairs.len();
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let rss = usage::rss(i32::try_from(std::process::id())?)?;
    figures::write(
        "replay",
        &[
            Figure::ours(GROUP, "replayed within", "s")
                .value(median)
                .at_most(2.0)
                .note(format!(
                    "median of {rounds}; fastest {:.3}, slowest {:.3}; {told} verdicts, decisions and effects the same",
                    times[0],
                    times[times.len() - 1]
                )),
            Figure::ours(GROUP, "memory (RSS) after the replay", "MiB").value(usage::mib(rss)),
            Figure::ours(GROUP, "on disk", "MiB")
                .value(usage::mib(size))
                .at_most(50.0)
                .note(format!("{:.1} MiB of text", usage::mib(Bytes(text as u64)))),
        ],
    )
}
