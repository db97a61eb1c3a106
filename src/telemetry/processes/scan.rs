//! One look at every process. Each is remembered, so that only what may have changed
//! is read again.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::super::clients::{Descriptors, DrmClient};
use super::super::file;
use super::super::procfs::parse::{self, Stat};
use super::super::source::SourceError;
use super::fold::Seen;
use super::{Classify, Guess, ProcessesConfig};
use crate::model::CardMemory;

/// Bytes of a command line that are read, and words that are kept.
const COMMAND: u64 = 32 << 10;
const WORDS: usize = 256;
/// Bytes of a memory map that are searched for PyTorch.
const MAPS: u64 = 2 << 20;
/// Names in a working directory that are looked at.
const NAMES: usize = 1000;
/// What is costly is read of each process only in every so many looks, unless it
/// promises something.
const RARELY: u64 = 5;

/// Reads the processes, again and again.
pub(super) struct Scan {
    root: PathBuf,
    classify: Classify,
    ticks_per_second: u64,
    /// The process that is being read.
    at: Arc<AtomicU32>,
    look: u64,
    known: HashMap<u32, Known>,
    #[cfg(feature = "nvml")]
    nvml: Option<super::nvml::Holders>,
}

/// What is remembered of a process.
#[derive(Default)]
struct Known {
    start: u64,
    argv: Vec<String>,
    guess: Option<Guess>,
    has_torch: bool,
    clients: Vec<DrmClient>,
    hidden: Option<String>,
    /// CPU ticks at the last look.
    cpu: Option<(Instant, u64)>,
    /// Looks so far.
    looks: u64,
}

impl Scan {
    pub(super) fn new(config: ProcessesConfig, at: Arc<AtomicU32>) -> Self {
        #[cfg(feature = "nvml")]
        let nvml = config
            .nvml
            .then(|| super::nvml::Holders::new(config.root.clone()));
        Self {
            root: config.root,
            classify: config.classify,
            ticks_per_second: ::procfs::ticks_per_second().max(1),
            at,
            look: 0,
            known: HashMap::new(),
            #[cfg(feature = "nvml")]
            nvml,
        }
    }

    /// Every process that is visible.
    pub(super) fn look(&mut self) -> Result<Vec<Seen>, SourceError> {
        let proc = self.root.join("proc");
        let entries = fs::read_dir(&proc).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => SourceError::Absent(format!("no {} here", proc.display())),
            _ => SourceError::Failed(format!("{}: {e}", proc.display())),
        })?;
        self.look += 1;
        let uptime = uptime(&proc);
        #[cfg(feature = "nvml")]
        let mut told = self.told();
        #[cfg(not(feature = "nvml"))]
        let mut told = HashMap::<u32, Vec<CardMemory>>::new();
        let mut seen = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else {
                continue;
            };
            self.at.store(pid, Ordering::Relaxed);
            let dir = entry.path();
            // gone meanwhile
            let Ok(stat) = parse::read_stat(&dir.join("stat")) else {
                continue;
            };
            let told = told.remove(&pid).unwrap_or_default();
            seen.push(self.process(pid, &dir, stat, told, uptime));
        }
        self.at.store(0, Ordering::Relaxed);
        let alive: HashSet<u32> = seen.iter().map(|s| s.pid).collect();
        self.known.retain(|pid, _| alive.contains(pid));
        Ok(seen)
    }

    #[cfg(feature = "nvml")]
    fn told(&mut self) -> HashMap<u32, Vec<CardMemory>> {
        let nvml = self.nvml.as_mut();
        nvml.map(super::nvml::Holders::read).unwrap_or_default()
    }

    fn process(
        &mut self,
        pid: u32,
        dir: &Path,
        stat: Stat,
        told: Vec<CardMemory>,
        uptime: Option<f64>,
    ) -> Seen {
        let known = self.known.entry(pid).or_default();
        if known.start != stat.start {
            *known = Known {
                start: stat.start,
                ..Known::default()
            };
        }
        // What follows waits for locks that a process stuck in the driver may hold for
        // ever; of such a one only what is known already is told.
        if !matches!(stat.state, 'D' | 'Z' | 'X' | 'x') {
            known.read(dir, self.classify, self.look, !told.is_empty());
        }
        let kind = known
            .guess
            .filter(|g| g.sure || known.has_torch || !known.clients.is_empty() || !told.is_empty());
        let ticks = self.ticks_per_second;
        Seen {
            pid,
            parent: stat.ppid,
            start: stat.start,
            kind: kind.map(|g| g.kind),
            argv: known.argv.clone(),
            clients: known.clients.clone(),
            hidden: known.hidden.clone().filter(|_| told.is_empty()),
            cpu_percent: known.cpu_percent(stat.ticks, ticks),
            age_ms: uptime.and_then(|up| age_ms(up, stat.start, ticks)),
            name: stat.comm,
            told,
        }
    }
}

impl Known {
    fn read(&mut self, dir: &Path, classify: Classify, look: u64, told: bool) {
        self.looks += 1;
        let argv = command(&dir.join("cmdline"));
        // it may have become another program since
        if argv != self.argv || self.looks == 1 {
            self.guess = guess(&argv, dir, classify);
            self.has_torch = false;
            self.looks = 1;
            self.argv = argv;
        }
        if self.argv.is_empty() {
            // a thread of the kernel
            return;
        }
        let pid_turn = self.start.wrapping_add(look).is_multiple_of(RARELY);
        if self.guess.is_some_and(|g| !g.sure) && !self.has_torch && (self.looks < 90 || pid_turn) {
            self.has_torch = has_torch(&dir.join("maps"));
        }
        let promising = self.guess.is_some() || !self.clients.is_empty() || told;
        if promising || pid_turn || self.looks == 1 {
            match Descriptors::look(dir) {
                Ok((_, clients)) => {
                    self.clients = clients;
                    self.hidden = None;
                }
                Err(why) => self.hidden = Some(why),
            }
        }
    }

    /// CPU since the last look, 100 = one core.
    #[expect(
        clippy::cast_precision_loss,
        reason = "ticks of two seconds are far below 2^52"
    )]
    fn cpu_percent(&mut self, ticks: u64, per_second: u64) -> Option<f64> {
        let now = Instant::now();
        let (at, before) = self.cpu.replace((now, ticks))?;
        let seconds = now.duration_since(at).as_secs_f64();
        let used = ticks.saturating_sub(before) as f64 / per_second as f64;
        (seconds > 0.0).then(|| used / seconds * 100.0)
    }
}

/// Words of the command line; none for a thread of the kernel or where it cannot be read.
fn command(path: &Path) -> Vec<String> {
    let bytes = limited(path, COMMAND).unwrap_or_default();
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|b| *b == 0)
        .take(WORDS)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

fn limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the command suggests; its folder is looked at only where that may matter.
fn guess(argv: &[String], dir: &Path, classify: Classify) -> Option<Guess> {
    let alone = classify(argv, "", &[])?;
    if alone.sure {
        return Some(alone);
    }
    let Ok(cwd) = fs::read_link(dir.join("cwd")) else {
        return Some(alone);
    };
    let names: Vec<String> = fs::read_dir(&cwd).map_or_else(
        |_unreadable| Vec::new(),
        |entries| {
            let names = entries.flatten().take(NAMES);
            names
                .map(|e| e.file_name().to_string_lossy().into_owned())
                .collect()
        },
    );
    classify(argv, &cwd.display().to_string(), &names)
}

/// Whether a library of PyTorch is loaded.
fn has_torch(maps: &Path) -> bool {
    let bytes = limited(maps, MAPS).unwrap_or_default();
    bytes.windows(8).any(|w| w == b"libtorch")
}

/// Seconds since boot.
fn uptime(proc: &Path) -> Option<f64> {
    let text = file::read_text(&proc.join("uptime")).ok()?;
    text.split_whitespace()
        .next()?
        .parse()
        .ok()
        .filter(|s: &f64| s.is_finite())
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ticks since boot are far below 2^52, and a negative age becomes none"
)]
fn age_ms(uptime: f64, start: u64, per_second: u64) -> Option<u64> {
    let age = uptime - start as f64 / per_second as f64;
    // a start after the reading of the clock is now
    (age > -1.0).then(|| (age.max(0.0) * 1000.0) as u64)
}
