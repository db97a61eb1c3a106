//! What is removed when somebody wants room.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use crate::model::Bytes;

use super::entry::{Entry, Kind};

/// What is to be removed. All `None`: everything that may be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish<'a> {
    /// Only so much that the rest is no larger, the oldest first.
    pub keep: Option<Bytes>,
    /// Only what is at least so old.
    pub older: Option<Duration>,
    /// Only what is of this run.
    pub run: Option<&'a str>,
}

/// Why an entry stays although the wish meant it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The newest of its kind of a run that goes on.
    Newest,
    /// Of a run that goes on, and the wish named no run.
    Living,
    /// Half written, and its writer is alive.
    BeingWritten,
}

impl Kept {
    /// A sentence without its beginning.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Newest => "it is the newest of its kind of a run that goes on",
            Self::Living => {
                "its run goes on and may need it after a restart; --run or its name removes it"
            }
            Self::BeingWritten => "it is being written",
        }
    }
}

/// What a wish comes to.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// To be removed, oldest first.
    pub remove: Vec<Entry>,
    /// Meant, and kept.
    pub kept: Vec<(Entry, Kept)>,
}

/// Sorts out what a wish means among all entries, newest first. `living`: runs that go on.
/// What is none of ours is never meant by a wish; [`Plan::of`] takes it by name.
pub fn plan(entries: &[Entry], wish: Wish<'_>, living: &BTreeSet<String>, now: SystemTime) -> Plan {
    let of_run = |e: &&Entry| wish.run.is_none_or(|run| e.run.as_deref() == Some(run));
    let ours: Vec<&Entry> = entries
        .iter()
        .filter(|e| e.kind != Kind::Foreign)
        .filter(of_run)
        .collect();
    let mut left: u64 = ours.iter().map(|e| e.bytes.0).sum();
    let mut plan = Plan::default();
    for entry in ours.into_iter().rev() {
        if wish.keep.is_some_and(|keep| left <= keep.0) {
            break;
        }
        let old = |age: Duration| entry.age(now).is_some_and(|a| a >= age);
        if wish.older.is_some_and(|age| !old(age)) {
            continue;
        }
        if plan.add(entry, entries, living, wish.run.is_none()) {
            left -= entry.bytes.0;
        }
    }
    plan
}

impl Plan {
    /// These very entries, and nothing else.
    pub fn of(chosen: &[Entry], entries: &[Entry], living: &BTreeSet<String>) -> Self {
        let mut plan = Self::default();
        for entry in chosen {
            plan.add(entry, entries, living, false);
        }
        plan
    }

    /// Bytes that come free.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.remove.iter().map(|e| e.bytes.0).sum())
    }

    /// True: it goes. `spare`: nothing of a run that goes on does.
    fn add(
        &mut self,
        entry: &Entry,
        entries: &[Entry],
        living: &BTreeSet<String>,
        spare: bool,
    ) -> bool {
        let why = reason(entry, entries, living, spare);
        match why {
            None => self.remove.push(entry.clone()),
            Some(why) => self.kept.push((entry.clone(), why)),
        }
        why.is_none()
    }
}

/// Why this one has to stay. `entries`: all, newest first; `spare`: as in [`Plan::add`].
fn reason(
    entry: &Entry,
    entries: &[Entry],
    living: &BTreeSet<String>,
    spare: bool,
) -> Option<Kept> {
    if entry.writer().is_some() {
        return Some(Kept::BeingWritten);
    }
    if !entry.run.as_ref().is_some_and(|run| living.contains(run)) {
        return None;
    }
    let newest = entries
        .iter()
        .find(|e| e.run == entry.run && e.kind == entry.kind);
    if newest.is_some_and(|e| e.name == entry.name) {
        return Some(Kept::Newest);
    }
    spare.then_some(Kept::Living)
}
