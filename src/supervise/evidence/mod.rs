//! Evidence before a kill: what every thread was doing, what the machine said,
//! bounded in time and size.
//!
//! Each collector has its own thread and 3 s. One that does not return is
//! recorded as failed, what it had so far is kept, and it is left behind: a read
//! from a wedged driver may never come back. Everything is read-only; nothing is
//! run but `py-spy dump --nonblocking`, which does not even pause its target, and gdb
//! where the user asked for it. debugfs is never touched (reading `amdgpu_gpu_recover`
//! resets the card).
//!
//! From here the program is sent no signal: whether it registered Python's `faulthandler` for
//! one cannot be seen from outside (`SigCgt` tells that *something* catches it), and a signal
//! that nobody expects ends it. A program that can tell its own stacks does so by
//! [`EvidenceRequest::own_stacks`].

mod environment;
mod gdb;
mod gpu;
mod index;
mod kernel;
mod memory;
mod output;
mod python;
mod ring;
mod threads;
mod tool;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::model::event::{EvidenceItem, EvidenceReport, MAX_BUNDLES};
use crate::model::time::millis;

use super::tree::Target;
use output::{Kept, Output};
pub use ring::EvidenceRing;
use writer::Writer;

/// Time that one collector has.
pub const COLLECTOR_LIMIT: Duration = Duration::from_secs(3);
/// Time that the whole bundle may take.
pub const BUNDLE_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of a bundle: the collectors' own bounds add up to less than this. All but the
/// log is text that repeats itself, which a compressor brings to a tenth: with a log of
/// noise the whole stays below 4 MiB compressed.
pub const MAX_BUNDLE_BYTES: usize = 16 << 20;

/// What a bundle is made of.
#[derive(Debug, Clone, Default)]
pub struct EvidenceRequest {
    /// Number of the bundle in this run, from 1.
    pub number: u32,
    /// Which attempt.
    pub attempt: u32,
    /// Where it goes; made if absent. The recorder's run folder has a place for it.
    pub dir: PathBuf,
    /// Processes of the workload, the root first. Their descendants are found.
    pub pids: Vec<u32>,
    /// Process beside the workload whose other descendants belong to it as well
    /// (those that were orphaned and came to it); itself not looked at.
    pub guardian: Option<u32>,
    /// Envelopes with samples of the last ten minutes, one JSON object each.
    pub samples: Vec<String>,
    /// Envelopes with the last lines of each stream, one JSON object each.
    pub log: Vec<String>,
    /// Lines of the kernel that were seen during the run.
    pub kernel_lines: Vec<String>,
    /// Take native stacks by gdb, which stops the program for a moment: only where the
    /// user asked for it.
    pub gdb: bool,
    /// How the program itself tells its stacks, where something in it can (an agent): put in
    /// by the caller, who alone speaks with it.
    pub own_stacks: Option<OwnStacks>,
    /// The last heartbeat of each agent, one JSON object each.
    pub beats: Vec<String>,
    /// Device folder of each AMD card: `/sys/class/drm/card0/device`.
    pub gpu_roots: Vec<PathBuf>,
}

/// Asks the program for its stacks; blocks for at most two seconds.
#[derive(Clone)]
pub struct OwnStacks(Arc<dyn Fn() -> Result<String, String> + Send + Sync>);

impl OwnStacks {
    /// By this function: the stacks as text, or why there are none.
    pub fn new(ask: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }
}

impl std::fmt::Debug for OwnStacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnStacks")
    }
}

/// Reads one part of the machine's state into an [`Output`]. An error is why
/// there is nothing, or no more than what is already in the output.
type Collect = Box<dyn FnOnce(&Output) -> Result<(), Trouble> + Send>;

/// Why a collector has nothing, or not all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// There is nothing to take here: no such card, program or tool.
    Absent(String),
    /// It is there and could not be had.
    Failed(String),
}

impl Trouble {
    fn absent(why: impl Into<String>) -> Self {
        Self::Absent(why.into())
    }

    fn why(&self) -> &str {
        match self {
            Self::Absent(why) | Self::Failed(why) => why,
        }
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

struct Collector {
    kind: &'static str,
    file: &'static str,
    max_bytes: usize,
    collect: Collect,
}

impl Collector {
    fn new(
        kind: &'static str,
        file: &'static str,
        max_bytes: usize,
        collect: impl FnOnce(&Output) -> Result<(), Trouble> + Send + 'static,
    ) -> Self {
        Self {
            kind,
            file,
            max_bytes,
            collect: Box::new(collect),
        }
    }
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Collectors that only look, all at once.
fn lookers(request: &EvidenceRequest) -> Vec<Collector> {
    let EvidenceRequest {
        samples,
        log,
        kernel_lines,
        gpu_roots,
        beats,
        ..
    } = request.clone();
    let pids = request.pids.clone();
    let root = pids.first().copied();
    let target = move || Target {
        pids: pids.clone(),
        guardian: request.guardian,
    };
    let (a, b, c, d) = (target(), target(), target(), target());
    let mut list = vec![
        Collector::new("samples", "samples.jsonl", 4 * MIB, move |out| {
            output::latest(out, samples.iter())
        }),
        Collector::new("log_tail", "log_tail.jsonl", 3 * MIB, move |out| {
            output::latest(out, log.iter())
        }),
        Collector::new("threads", "threads.txt", 2 * MIB, move |out| {
            Ok(threads::collect(out, &a)?)
        }),
        Collector::new("fdinfo", "fdinfo.txt", MIB, move |out| {
            Ok(memory::descriptors(out, &b)?)
        }),
        Collector::new("maps", "maps.txt", 256 * KIB, move |out| {
            Ok(memory::maps(out, &c)?)
        }),
        Collector::new("memory", "memory.txt", 512 * KIB, move |out| {
            Ok(memory::limits(out, &d)?)
        }),
        Collector::new("gpu", "gpu.txt", MIB, move |out| {
            gpu::collect(out, &gpu_roots)
        }),
        Collector::new("kernel", "kernel.txt", 512 * KIB, move |out| {
            Ok(kernel::collect(out, &kernel_lines)?)
        }),
        Collector::new("environment", "environment.txt", 256 * KIB, move |out| {
            Ok(environment::collect(out, root)?)
        }),
    ];
    if !beats.is_empty() {
        list.push(Collector::new(
            "agent",
            "agent.jsonl",
            256 * KIB,
            move |out| {
                for line in &beats {
                    out.line(line);
                }
                Ok(())
            },
        ));
    }
    list
}

/// Collectors that run a tool, or hand on what the program tells of itself.
fn tools(request: &EvidenceRequest, target: &Target) -> Vec<Collector> {
    let (ours, own) = (target.clone(), request.own_stacks.clone());
    let mut list = vec![Collector::new(
        "python_stacks",
        "python_stacks.txt",
        MIB,
        move |out| python::collect(out, &ours, own.as_ref(), COLLECTOR_LIMIT),
    )];
    if request.gdb {
        let ours = target.clone();
        list.push(Collector::new(
            "native_stacks",
            "native_stacks.txt",
            512 * KIB,
            move |out| gdb::collect(out, &ours, COLLECTOR_LIMIT),
        ));
    }
    list
}

/// Takes a bundle. Blocks for at most [`BUNDLE_LIMIT`]: run it on a thread of its
/// own. Never fails as a whole; the report says what could not be had, and why.
pub fn collect(request: &EvidenceRequest) -> EvidenceReport {
    let begun = Instant::now();
    let mut report = EvidenceReport {
        number: request.number,
        attempt: request.attempt,
        dir: request.dir.display().to_string(),
        items: Vec::new(),
        took_ms: 0,
        asked: None,
    };
    if request.number > MAX_BUNDLES {
        report.items.push(failed(
            "bundle",
            format!("at most {MAX_BUNDLES} bundles a run"),
        ));
        return report;
    }
    let writer = Writer::start(request.dir.clone());
    writer.write(gather(lookers(request), COLLECTOR_LIMIT));
    let target = Target {
        pids: request.pids.clone(),
        guardian: request.guardian,
    };
    // Last: a tool that attaches shows up in the state of the threads.
    writer.write(gather(
        tools(request, &target),
        COLLECTOR_LIMIT + Duration::from_millis(300),
    ));
    let left = BUNDLE_LIMIT.saturating_sub(begun.elapsed());
    writer.finish(&mut report, begun, left.min(COLLECTOR_LIMIT));
    report
}

fn failed(kind: &str, why: String) -> EvidenceItem {
    EvidenceItem {
        kind: kind.to_owned(),
        file: None,
        bytes: 0,
        failed: Some(why),
        absent: false,
    }
}

/// What a collector came to, not yet on disk.
#[derive(Debug)]
struct Part {
    kind: &'static str,
    file: &'static str,
    kept: Kept,
    trouble: Option<Trouble>,
    took_ms: u64,
}

/// Runs the collectors side by side and takes what they have when their time is
/// up. In the order of the list.
fn gather(collectors: Vec<Collector>, limit: Duration) -> Vec<Part> {
    let (done, results) = mpsc::channel();
    let mut running = Vec::new();
    for (n, collector) in collectors.into_iter().enumerate() {
        let output = Output::new(collector.max_bytes);
        let (theirs, done, collect) = (output.clone(), done.clone(), collector.collect);
        let started = thread::Builder::new()
            .name(format!("evidence {}", collector.kind))
            .spawn(move || {
                // The receiver is gone once the time is up.
                let _too_late = done.send((n, collect(&theirs)));
            });
        let outcome = started.err().map(|e| {
            let why = Trouble::Failed(format!("no thread for it: {e}"));
            (Err(why), Duration::ZERO)
        });
        running.push((collector.kind, collector.file, output, outcome));
    }
    drop(done);
    let begun = Instant::now();
    let end = begun + limit;
    while running.iter().any(|r| r.3.is_none()) {
        let left = end.saturating_duration_since(Instant::now());
        match results.recv_timeout(left) {
            Ok((n, outcome)) => running[n].3 = Some((outcome, begun.elapsed())),
            // Disconnected: the rest panicked.
            Err(_timeout_or_disconnected) => break,
        }
    }
    let panicked = end > Instant::now();
    running
        .into_iter()
        .map(|(kind, file, output, outcome)| Part {
            kind,
            file,
            took_ms: millis(outcome.as_ref().map_or(limit, |(_, took)| *took)),
            trouble: match outcome {
                Some((outcome, _)) => outcome.err(),
                None if panicked => Some(Trouble::Failed("the collector panicked".to_owned())),
                None => Some(Trouble::Failed(no_answer(limit, &output.step()))),
            },
            kept: output.take(),
        })
        .collect()
}

fn no_answer(limit: Duration, step: &str) -> String {
    let secs = limit.as_secs();
    if step.is_empty() {
        format!("no answer within {secs} s")
    } else {
        format!("no answer within {secs} s, {step}")
    }
}

#[cfg(test)]
mod tests;
