//! What one reading costs: of a card, of a process tree of 100 threads, of what that
//! tree holds on the card.
//!
//!     cargo bench --bench sample
//!
//! The sources run at their own pace of two readings a second, each on its thread as in
//! the program, over the real `/proc` and with the imitated card at `/sys`. What counts
//! is the CPU time of each thread as the kernel accounts it, so a busy machine lengthens
//! nothing but the run.

#[path = "support/card.rs"]
mod card;
#[path = "support/figures.rs"]
mod figures;
#[path = "support/inside.rs"]
mod inside;
#[path = "support/tree.rs"]
mod tree;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use framepack_tui::model::Metric;
use framepack_tui::telemetry::{Sampler, SamplerConfig};

use card::Card;
use figures::Figure;
use tree::{CHILDREN, FILES, THREADS};

const GROUP: &str = "One reading of the sources, CPU time";
/// Probes that are taken one after the other.
const PROBES: u32 = 5;
type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    if tree::lived()? {
        return Ok(ExitCode::SUCCESS);
    }
    let Some(card) = inside::card() else {
        return inside::enter(&[]);
    };
    let time = Duration::from_secs(if figures::quick() { 20 } else { 60 });
    let all = measure(&card, time)?;
    figures::write("sample", &all)?;
    Ok(ExitCode::SUCCESS)
}

/// The tree that is watched; killed at the end.
struct Tree(Child);

impl Tree {
    /// A client of the card with threads that wait and children that do.
    fn start(card: &Card) -> Outcome<Self> {
        let mut child = Command::new("python3")
            .arg(card::tool())
            .arg("client")
            .arg(card.root())
            .args(["vram=8589934592", "--"])
            .args(tree::command()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().ok_or("no output of the workload")?;
        // it says so when it is whole
        BufReader::new(said).read_line(&mut String::new())?;
        Ok(Self(child))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // only fails when it has ended already; its children end with their standard input
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn measure(card: &Card, time: Duration) -> Outcome<Vec<Figure>> {
    let tree = Tree::start(card)?;
    let config = SamplerConfig {
        rocm_smi: Some(env!("CARGO_BIN_EXE_framepack-tui").into()),
        ..SamplerConfig::default()
    };
    let period = config.period;
    let sampler = Sampler::start(config);
    sampler.set_target(Some(tree.0.id()), None);
    sampler.set_supervised(true, None);
    // the first rounds look for things that stay
    std::thread::sleep(Duration::from_secs(3));
    let sample = sampler.sample();
    let process = sample.process.ok_or("the tree is not seen")?;
    if (process.processes, process.threads) != (CHILDREN + 1, THREADS) {
        let seen = (process.processes, process.threads);
        return Err(format!("another tree: {seen:?} processes and threads").into());
    }
    let on = process.on_cards.first().ok_or("its memory is not seen")?;
    if !matches!(on.vram, Metric::Fresh(b) if b.0 == 8 << 30) {
        return Err(format!("other memory: {on:?}").into());
    }
    let (before, begun) = (cpu_of_threads()?, Instant::now());
    std::thread::sleep(time);
    let (after, elapsed) = (cpu_of_threads()?, begun.elapsed());
    let a_probe = cost_of_a_probe(&sampler)?;
    drop(sampler);
    let rounds = elapsed.div_duration_f64(period);
    let used: BTreeMap<&str, Duration> = after
        .iter()
        .map(|(name, cpu)| {
            let then = before.get(name).copied().unwrap_or_default();
            (name.as_str(), cpu.saturating_sub(then))
        })
        .collect();
    let note = format!(
        "mean of {rounds:.0} rounds at their own pace, {} processes on the machine",
        procfs::process::all_processes()?.count()
    );
    let a_round = |name: &str| -> Outcome<f64> {
        let mut all = used.iter().filter(|(n, _)| n.starts_with(name));
        let (_, cpu) = all.next().ok_or_else(|| format!("no thread `{name}`"))?;
        Ok(cpu.as_secs_f64() * 1e3 / rounds)
    };
    let all: Duration = used.values().sum();
    let memory = &on.source;
    Ok(vec![
        Figure::ours(GROUP, "one card", "ms")
            .value(a_round("sysfs 0")?)
            .at_most(0.5)
            .note(note.clone()),
        Figure::ours(GROUP, "a process tree of 100 threads", "ms")
            .value(a_round("proc")?)
            .at_most(0.3)
            .note(format!("{} processes in it; {note}", CHILDREN + 1)),
        Figure::ours(GROUP, "what that tree holds on the card", "ms")
            .value(a_round("clients")?)
            .note(format!(
                "by {memory}, {FILES} other files open in each process; {note}"
            )),
        Figure::ours(GROUP, "a probe of that tree", "ms")
            .value(a_probe)
            .at_most(10.0)
            .note(format!(
                "mean of {PROBES}, CPU time; taken only while nothing of the job moves"
            )),
        Figure::ours(GROUP, "all sources together", "% of a core")
            .value(all.div_duration_f64(elapsed) * 100.0)
            .note("the host, the kernel log and the search for cards and processes included"),
    ])
}

/// CPU time of one probe, in milliseconds, without the first: that one reads what stays.
fn cost_of_a_probe(sampler: &Sampler) -> Outcome<f64> {
    let take = || {
        let begun = Instant::now();
        loop {
            if let Some(probe) = sampler.take_probe() {
                return Ok(probe);
            }
            if begun.elapsed() > Duration::from_secs(30) {
                return Err("no probe came");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let used = || -> Outcome<Duration> {
        let all = cpu_of_threads()?;
        Ok(*all.get("probe").ok_or("no thread `probe`")?)
    };
    sampler.set_thread_detail(true);
    take()?;
    let before = used()?;
    for _ in 0..PROBES {
        let threads = take()?.threads().count();
        if u32::try_from(threads)? != THREADS {
            return Err(format!("a probe of {threads} threads").into());
        }
    }
    let cpu = used()?.saturating_sub(before);
    sampler.set_thread_detail(false);
    Ok(cpu.as_secs_f64() * 1e3 / f64::from(PROBES))
}

/// CPU time of each thread of this program but the first, by name.
fn cpu_of_threads() -> Outcome<BTreeMap<String, Duration>> {
    let mut all = BTreeMap::new();
    let own = std::process::id().to_string();
    for task in fs::read_dir("/proc/self/task")?.flatten() {
        if task.file_name().to_str() == Some(own.as_str()) {
            continue;
        }
        let name = fs::read_to_string(task.path().join("comm"))?;
        let stat = fs::read_to_string(task.path().join("schedstat"))?;
        let run = stat.split_whitespace().next().ok_or("an empty schedstat")?;
        let sum = all.entry(name.trim().to_owned()).or_default();
        *sum += Duration::from_nanos(run.parse()?);
    }
    Ok(all)
}
