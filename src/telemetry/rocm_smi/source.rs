//! When the library is asked, and what is said when it cannot be.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::super::attention::Attention;
use super::super::file::{ReadError, ReadResult};
use super::super::source::{Answer, Source, SourceError};
use super::super::track::Tracker;
use super::SOURCE;
use super::child::{Reader, Trouble};
use super::locks;
use super::wire::{CardReading, InitFailed, Line, Ready, Value};
use crate::model::{Bytes, GpuId, Metric, Opinion};

/// Longest wait for one answer. Shown as stale after 2 s, but killed only now: killed
/// in the middle of a call, the reader leaves a lock behind that stands in the way of
/// every program that uses the library, and `rsmi_init` alone may wait 5 s for one.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// When nothing was supervised for this long, nothing is asked: every read counts as
/// use of the card and keeps it awake. Sysfs alone is read then, and seldom.
const IDLE_AFTER: Duration = Duration::from_mins(1);
/// Time between two requests before that, while nothing is supervised.
const GENTLE_PERIOD: Duration = Duration::from_secs(10);
/// How long the first answers of sysfs, which tell the cards, are waited for.
const CARDS_WAIT: Duration = Duration::from_secs(3);
/// What does not start is tried again after this time: somebody may install the
/// library or remove a lock.
const RETRY: Duration = Duration::from_mins(1);

/// A card as sysfs knows it.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// PCI address.
    pub(crate) id: GpuId,
    /// Whether sysfs reads it and it does not sleep: then asking does not wake it.
    pub(crate) awake: bool,
}

/// What the library said of a card, and when.
#[derive(Debug, Clone)]
pub(crate) struct Spoken {
    /// PCI address.
    pub(crate) id: GpuId,
    /// When it was asked.
    pub(crate) at: Instant,
    /// What it said.
    pub(crate) opinion: Opinion,
}

/// The cards that sysfs knows; none as long as it has not answered.
type Cards = Box<dyn Fn() -> Option<Vec<Candidate>> + Send>;

/// The library behind its reader process.
pub(crate) struct RocmSmi {
    exe: PathBuf,
    root: PathBuf,
    deadline: Duration,
    cards: Cards,
    watched: Arc<Attention>,
    last_watched: Instant,
    running: Option<Running>,
    /// The first failure of a reader; a second one is the end.
    failed_once: Option<String>,
    off: Option<Off>,
    trackers: HashMap<GpuId, Tracker>,
    last: Vec<Spoken>,
}

/// A reader that is ready.
#[derive(Debug)]
struct Running {
    reader: Reader,
    /// Cards that were there when the library looked for them.
    known: BTreeSet<GpuId>,
    /// Values that the library has no function for.
    lacks: Option<String>,
}

/// Not asked any more, or not for a while.
#[derive(Debug)]
struct Off {
    why: SourceError,
    until: Option<Instant>,
}

impl fmt::Debug for RocmSmi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocmSmi").finish_non_exhaustive()
    }
}

impl RocmSmi {
    /// One whose reader is the program `exe`; `cards` tells the cards that sysfs knows.
    pub(crate) fn new(exe: PathBuf, watched: Arc<Attention>, cards: Cards) -> Self {
        Self {
            exe,
            root: PathBuf::from("/"),
            deadline: DEADLINE,
            cards,
            watched,
            last_watched: Instant::now(),
            running: None,
            failed_once: None,
            off: None,
            trackers: HashMap::new(),
            last: Vec::new(),
        }
    }

    /// The cards that sysfs knows, after a wait for its first answer.
    fn known_cards(&self) -> Vec<Candidate> {
        let begun = Instant::now();
        loop {
            match (self.cards)() {
                Some(cards) => return cards,
                None if begun.elapsed() > CARDS_WAIT => return Vec::new(),
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Asks for the awake ones among `cards`.
    fn ask(&mut self, cards: &[Candidate]) -> Result<Answer<Vec<Spoken>>, SourceError> {
        let awake: BTreeSet<&GpuId> = cards.iter().filter(|c| c.awake).map(|c| &c.id).collect();
        if awake.is_empty() {
            return self.left_alone("the card sleeps or does not answer, and is not asked");
        }
        let new_card = |r: &Running| awake.iter().any(|id| !r.known.contains(*id));
        if self.running.as_ref().is_some_and(new_card) {
            // the library looks for cards only when it starts
            self.running = None;
        }
        let mut running = match self.running.take() {
            Some(running) => running,
            // looking for cards may wake any of them
            None if awake.len() < cards.len() => {
                return self.left_alone("not started while a card sleeps or does not answer");
            }
            None => self.start(cards)?,
        };
        let asked = Instant::now();
        match running.reader.ask(awake.iter().copied(), self.deadline) {
            Ok(Line::Cards(readings)) => {
                let trouble = trouble(&awake, &readings).or_else(|| running.lacks.clone());
                self.running = Some(running);
                for reading in readings {
                    self.take(reading, asked);
                }
                Ok(Answer {
                    reading: self.last.clone(),
                    trouble,
                })
            }
            Ok(Line::Failed(why)) => {
                self.running = Some(running);
                Err(SourceError::Failed(why))
            }
            Ok(other) => Err(self.strike(format!("its reader answers out of turn: {other:?}"))),
            Err(trouble) => Err(self.strike(trouble.to_string())),
        }
    }

    /// What was last said, where nothing is asked now.
    fn left_alone(&self, why: &str) -> Result<Answer<Vec<Spoken>>, SourceError> {
        if self.last.is_empty() {
            Err(SourceError::Absent(why.to_owned()))
        } else {
            Ok(Answer::good(self.last.clone()))
        }
    }

    /// Starts the reader and waits until its library is ready.
    fn start(&mut self, cards: &[Candidate]) -> Result<Running, SourceError> {
        let first = Reader::start(&self.exe)
            .and_then(|mut reader| Ok((reader.next(self.deadline)?, reader)));
        let (line, reader) = match first {
            Ok(answer) => answer,
            Err(trouble @ Trouble::Start(_)) => {
                return Err(self.rest(SourceError::Failed(trouble.to_string())));
            }
            Err(trouble) => return Err(self.strike(trouble.to_string())),
        };
        let why = match line {
            Line::Ready(Ready { lacks, .. }) => {
                return Ok(Running {
                    reader,
                    known: cards.iter().map(|c| c.id.clone()).collect(),
                    lacks: (!lacks.is_empty())
                        .then(|| format!("this librocm_smi64 is too old for {}", lacks.join(", "))),
                });
            }
            Line::Absent => {
                SourceError::Absent("librocm_smi64 is not installed; sysfs is enough".to_owned())
            }
            Line::Broken(why) => SourceError::Failed(format!("librocm_smi64 does not load: {why}")),
            Line::Lacks(names) => {
                let names = names.join(", ");
                SourceError::Failed(format!("this librocm_smi64 is of no use: it lacks {names}"))
            }
            Line::InitFailed(failed) => {
                let why = init_failed(&self.root, &failed, reader.pid());
                if self.failed_once.is_some() {
                    return Err(self.strike(why));
                }
                SourceError::Failed(why)
            }
            other @ (Line::Cards(_) | Line::Failed(_)) => {
                return Err(self.strike(format!("its reader answers out of turn: {other:?}")));
            }
        };
        Err(self.rest(why))
    }

    /// The reader broke down. It is started once more, then never again.
    fn strike(&mut self, why: String) -> SourceError {
        self.running = None;
        let Some(first) = self.failed_once.take() else {
            let told = SourceError::Failed(format!("librocm_smi64: {why}; started once more"));
            self.failed_once = Some(why);
            return told;
        };
        let both = if first == why {
            format!("librocm_smi64: twice: {why}")
        } else {
            format!("librocm_smi64: {first}; started once more: {why}")
        };
        let off = SourceError::Failed(format!("{both}; switched off, sysfs goes on"));
        self.off = Some(Off {
            why: off.clone(),
            until: None,
        });
        off
    }

    /// It cannot be asked at present; tried again later.
    fn rest(&mut self, why: SourceError) -> SourceError {
        self.off = Some(Off {
            why: why.clone(),
            until: Some(Instant::now() + RETRY),
        });
        why
    }

    fn take(&mut self, reading: CardReading, at: Instant) {
        let tracker = self.trackers.entry(reading.id.clone()).or_default();
        let spoken = Spoken {
            id: reading.id.clone(),
            at,
            opinion: opinion(reading, tracker),
        };
        self.last.retain(|s| s.id != spoken.id);
        self.last.push(spoken);
    }
}

impl Source for RocmSmi {
    type Reading = Vec<Spoken>;

    fn name(&self) -> String {
        SOURCE.to_owned()
    }

    fn read(&mut self) -> Result<Answer<Self::Reading>, SourceError> {
        let watched = self.watched.any();
        if watched {
            self.last_watched = Instant::now();
        }
        match &self.off {
            Some(off) if off.until.is_none_or(|until| Instant::now() < until) => {
                return Err(off.why.clone());
            }
            _ => self.off = None,
        }
        if self.last_watched.elapsed() >= IDLE_AFTER {
            self.running = None;
            return self.left_alone("not asked while nothing is supervised");
        }
        let recent = |s: &Spoken| s.at.elapsed() < GENTLE_PERIOD;
        if !watched && !self.last.is_empty() && self.last.iter().all(recent) {
            return Ok(Answer::good(self.last.clone()));
        }
        let cards = self.known_cards();
        if cards.is_empty() {
            self.running = None;
            return Err(SourceError::Absent(
                "no card of AMD to ask about".to_owned(),
            ));
        }
        self.ask(&cards)
    }
}

/// What is wrong with an answer as a whole.
fn trouble(asked: &BTreeSet<&GpuId>, readings: &[CardReading]) -> Option<String> {
    let missing: Vec<&str> = asked
        .iter()
        .filter(|id| !readings.iter().any(|r| r.id == ***id))
        .map(|id| id.0.as_str())
        .collect();
    (!missing.is_empty()).then(|| format!("librocm_smi64 does not list {}", missing.join(", ")))
}

fn init_failed(root: &Path, failed: &InitFailed, reader: Option<u32>) -> String {
    let InitFailed {
        status,
        words,
        took_ms,
    } = failed;
    let cause = locks::in_the_way(root, *took_ms, reader.unwrap_or_default()).or_else(|| {
        (!root.join("sys/class/kfd").exists())
            .then(|| "the kernel shows no /sys/class/kfd, which it needs".to_owned())
    });
    match cause {
        Some(cause) => {
            format!("librocm_smi64 does not start: {cause} (rsmi_init: status {status})")
        }
        None => format!("librocm_smi64 does not start: it finds no card ({words})"),
    }
}

fn opinion(reading: CardReading, t: &mut Tracker) -> Opinion {
    Opinion {
        source: SOURCE.to_owned(),
        busy: settle(t, "busy", reading.busy),
        mem_busy: settle(t, "memory busy", reading.mem_busy),
        power_w: settle(t, "power", reading.power_w),
        power_cap_w: settle(t, "power cap", reading.power_cap_w),
        vram_used: settle(t, "VRAM in use", reading.vram_used).map(Bytes),
        vram_total: settle(t, "VRAM", reading.vram_total).map(Bytes),
        gtt_used: settle(t, "GTT in use", reading.gtt_used).map(Bytes),
        gtt_total: settle(t, "GTT", reading.gtt_total).map(Bytes),
        temp_edge: settle(t, "edge temperature", reading.temp_edge),
        temp_junction: settle(t, "junction temperature", reading.temp_junction),
        temp_mem: settle(t, "memory temperature", reading.temp_mem),
        fan_rpm: settle(t, "fan", reading.fan_rpm),
    }
}

fn settle<T>(tracker: &mut Tracker, key: &'static str, value: Value<T>) -> Metric<T> {
    let answer: ReadResult<T> = match value {
        Value::Ok(value) => Ok(value),
        Value::NotSupported => Err(ReadError::Missing),
        Value::Error(words) => Err(ReadError::text(Path::new(key), words)),
    };
    tracker.settle(key, answer)
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
