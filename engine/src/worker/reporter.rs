//! Reports state and progress to the supervisor, and takes its commands: shared by the thread that computes and the
//! link's thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::link::{Link, Subject, Urgency};
use super::{EXIT_STOPPED, MemoryProbe, Settings};
use crate::error::{Error, Result};
use crate::ops::tiered::{Op, Watcher};

/// Version of the messages, see docs/agent.md.
const PROTOCOL: u64 = 1;
/// Progress is reported this often, its end at once.
const OFTEN: Duration = Duration::from_millis(100);
/// The most messages about convolutions.
const CONV_WORDS: usize = 100;

/// An operation in flight.
struct InFlight {
    about: Value,
    since: Instant,
    words: String,
}

/// The part that changes while the worker runs.
struct Now {
    phase: &'static str,
    since: Instant,
    progress: Option<(usize, usize, &'static str)>,
    told: Option<Instant>,
    module: String,
    op: Option<InFlight>,
    calls: u64,
    tiers: BTreeMap<String, u64>,
    device: String,
    conv_words: usize,
}

/// Whether the user has asked to stop, and how soon.
const GO_ON: u8 = 0;
const AFTER_PIECE: u8 = 1;
pub(super) const AT_ONCE: u8 = 2;

/// Sends events to the supervisor and keeps what heartbeats and commands need.
pub(super) struct Reporter {
    argv: Vec<String>,
    run: Option<String>,
    attempt: Option<u64>,
    now: Mutex<Now>,
    asked: AtomicU8,
    memory: Mutex<Option<MemoryProbe>>,
    link: OnceLock<Link>,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").finish_non_exhaustive()
    }
}

impl Reporter {
    pub(super) fn new(settings: &Settings, argv: Vec<String>) -> Self {
        Self {
            argv,
            run: settings.run.clone(),
            attempt: settings.attempt,
            now: Mutex::new(Now {
                phase: "startup",
                since: Instant::now(),
                progress: None,
                told: None,
                module: String::new(),
                op: None,
                calls: 0,
                tiers: BTreeMap::new(),
                device: "cpu".to_owned(),
                conv_words: 0,
            }),
            asked: AtomicU8::new(GO_ON),
            memory: Mutex::default(),
            link: OnceLock::new(),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts sending through `link`.
    pub(super) fn speak(&self, link: Link) {
        // it is called once
        let _ = self.link.set(link);
    }

    /// Sends what still waits and closes the link.
    pub(super) fn end(&self) {
        let (calls, tiers) = {
            let now = self.now();
            (now.calls, json!(now.tiers))
        };
        self.send("bye", json!({ "calls": calls, "tiers": tiers }));
        if let Some(link) = self.link.get() {
            link.close();
        }
    }

    pub(super) fn send(&self, kind: &str, fields: Value) {
        if let Some(link) = self.link.get() {
            link.send(kind, fields);
        }
    }

    /// Sets the device, and the probe of its memory.
    pub(super) fn device(&self, name: &str, memory: Option<MemoryProbe>) {
        name.clone_into(&mut self.now().device);
        *self.probe() = memory;
    }

    /// Drops the probe of the device's memory, which would keep the device's memory allocated.
    pub(super) fn leave_device(&self) {
        *self.probe() = None;
    }

    fn probe(&self) -> MutexGuard<'_, Option<MemoryProbe>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that a phase of the closed list begins.
    pub(super) fn phase(&self, phase: &'static str, fields: Value) {
        let (was, was_s) = {
            let mut now = self.now();
            let was = (now.phase, now.since.elapsed().as_secs_f64());
            now.phase = phase;
            now.since = Instant::now();
            now.progress = None;
            now.module.clear();
            was
        };
        let mut message =
            json!({ "phase": phase, "was": was, "was_s": was_s, "memory": self.memory() });
        if let (Value::Object(message), Value::Object(more)) = (&mut message, fields) {
            message.extend(more);
        }
        self.send("phase", message);
    }

    /// Notes the module that finished last, for heartbeats.
    pub(super) fn module(&self, name: &str) {
        name.clone_into(&mut self.now().module);
    }

    /// Reports `done` of `total`, at most every [`OFTEN`].
    pub(super) fn progress(&self, done: usize, total: usize, unit: &'static str) {
        {
            let mut now = self.now();
            now.progress = Some((done, total, unit));
            let soon = now.told.is_some_and(|at| at.elapsed() < OFTEN);
            if soon && done != total {
                return;
            }
            now.told = Some(Instant::now());
        }
        let message = json!({ "n": done, "total": total, "desc": unit, "unit": unit });
        self.send("progress", message);
    }

    fn memory(&self) -> Value {
        let read = self.probe().as_ref().and_then(|memory| memory());
        read.map_or(Value::Null, |m| {
            json!({ "device": 0, "allocated": m.allocated, "reserved": m.reserved, "peak": m.peak })
        })
    }

    /// Returns [`Error::Stopped`] if the user has asked to stop at `least` as soon.
    pub(super) fn check_cancelled(&self, least: u8) -> Result<()> {
        if self.asked.load(Ordering::Relaxed) >= least {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// [`Reporter::check_cancelled`] between two pieces, where any request to stop counts.
    pub(super) fn check_cancelled_between_pieces(&self) -> Result<()> {
        self.check_cancelled(AFTER_PIECE)
    }

    fn stacks(&self) -> Value {
        let here = {
            let now = self.now();
            let progress = now
                .progress
                .map(|(done, total, unit)| format!("{done} of {total} {unit}"));
            let op = now.op.as_ref().map(|op| {
                format!(
                    "{}, for {:.1} s",
                    op.words,
                    op.since.elapsed().as_secs_f64()
                )
            });
            let module = Some(now.module.clone()).filter(|module| !module.is_empty());
            let module = module.map(|module| format!("after {module}"));
            let first = Some(format!(
                "{} for {:.1} s",
                now.phase,
                now.since.elapsed().as_secs_f64()
            ));
            let frames = [first, progress, module, op];
            frames.into_iter().flatten().collect::<Vec<_>>()
        };
        let main = std::process::id();
        let mut threads = vec![json!({ "thread": "main", "ident": main, "frames": here })];
        for (id, name, state) in threads_of_this_process() {
            if id != u64::from(main) {
                let frame = format!("state {state}");
                threads.push(json!({ "thread": name, "ident": id, "frames": [frame] }));
            }
        }
        Value::Array(threads)
    }
}

/// Number, name and state of each thread.
fn threads_of_this_process() -> Vec<(u64, String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let mut threads: Vec<_> = tasks
        .flatten()
        .filter_map(|task| {
            let id: u64 = task.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
            let (head, rest) = stat.rsplit_once(')')?;
            let name = head.split_once('(')?.1;
            let state = rest.split_whitespace().next()?;
            Some((id, name.to_owned(), state.to_owned()))
        })
        .collect();
    threads.sort();
    threads
}

/// CPU time of all threads so far: fields 14 and 15 of /proc/self/stat, which Linux counts in
/// hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u32 = ticks.filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
    f64::from(ticks) / 100.0
}

impl Subject for Reporter {
    fn hello(&self) -> Value {
        json!({
            "protocol": PROTOCOL,
            "agent": format!("framepack-engine {}", env!("CARGO_PKG_VERSION")),
            "python": "",
            "executable": std::env::current_exe().ok(),
            "argv": self.argv,
            "run": self.run,
            "attempt": self.attempt,
            "stacks_signal": null,
        })
    }

    fn beat(&self) -> Value {
        let now = self.now();
        let ops: Vec<Value> = now
            .op
            .iter()
            .map(|op| {
                let mut about = op.about.clone();
                about["device"] = json!(now.device);
                about["age_s"] = json!(op.since.elapsed().as_secs_f64());
                about
            })
            .collect();
        let progress = now
            .progress
            .map(|(done, total, unit)| json!({ "n": done, "total": total, "desc": unit }));
        let mut beat = json!({
            "phase": now.phase,
            "phase_s": now.since.elapsed().as_secs_f64(),
            "progress": progress,
            "ops": ops,
            "calls": now.calls,
            "tiers": now.tiers,
            "cpu_s": cpu_seconds(),
        });
        drop(now);
        beat["memory"] = self.memory();
        beat
    }

    fn obey(&self, command: &str) -> std::result::Result<Value, String> {
        match command {
            "stacks" => Ok(self.stacks()),
            "snapshot" => Ok(self.beat()),
            "interrupt" => {
                self.asked.store(AT_ONCE, Ordering::Relaxed);
                Ok(json!(true))
            }
            "stop_after_step" => {
                self.asked.fetch_max(AFTER_PIECE, Ordering::Relaxed);
                Ok(json!(true))
            }
            other => Err(format!("`{other}` is no command")),
        }
    }

    fn alone(&self, how: Urgency) {
        match how {
            Urgency::Chunk => self.asked.fetch_max(AFTER_PIECE, Ordering::Relaxed),
            Urgency::Module => self.asked.fetch_max(AT_ONCE, Ordering::Relaxed),
            // as good as a kill, which every file on disk is made for
            Urgency::Now => std::process::exit(EXIT_STOPPED.into()),
        };
    }
}

impl Watcher for Reporter {
    fn begins(&self, op: Op<'_>) {
        let dtype = match op.dtype {
            candle_core::DType::F32 => "float32",
            candle_core::DType::F16 => "float16",
            candle_core::DType::BF16 => "bfloat16",
            other => other.as_str(),
        };
        let about = json!({
            "name": op.name, "shape": op.shape, "weight": op.weight, "dtype": dtype,
            "tier": op.tier, "thread": 1,
        });
        let words = format!("{} {:?}, tier {}", op.name, op.shape, op.tier);
        let mut now = self.now();
        now.calls += 1;
        now.op = Some(InFlight {
            about,
            since: Instant::now(),
            words,
        });
    }

    fn ends(&self, op: Op<'_>, result: std::result::Result<(), &Error>) {
        let end = if result.is_ok() { "ok" } else { "failed" };
        let word = {
            let mut now = self.now();
            let flight = now.op.take();
            // native counts its failures only; `calls` has all
            if result.is_err() || op.tier != "native" {
                *now.tiers
                    .entry(format!("{}.{}.{end}", op.name, op.tier))
                    .or_default() += 1;
            }
            if result.is_ok() || now.conv_words >= CONV_WORDS {
                return;
            }
            now.conv_words += 1;
            let took = flight.map(|flight| flight.since.elapsed().as_secs_f64());
            json!({
                "event": "failed", "op": op.name, "tier": op.tier, "shape": op.shape, "weight": op.weight,
                "device": now.device, "took_s": took,
                "message": result.err().map(ToString::to_string),
            })
        };
        self.send("conv", word);
    }
}

#[cfg(test)]
#[path = "reporter_tests.rs"]
mod tests;
