//! The latest state, shared between whoever knows it and the screen.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::profile::shelf::ShelfEntry;
use crate::run::Snapshot;

/// A place for the latest snapshot: writing replaces, reading never waits for
/// news. A slow or blocked screen misses intermediate states and holds nothing up.
///
/// There is no wake-up: the screen looks every 50 ms, as often as it may draw.
pub type SnapshotSlot = Slot<Snapshot>;

/// A place for the latest state of any kind, see [`SnapshotSlot`].
#[derive(Debug)]
pub struct Slot<T> {
    inner: Arc<Mutex<Latest<T>>>,
}

/// Which commands reach the supervisor of the run that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// All.
    #[default]
    All,
    /// Those that have a signal; the others do not, for this reason.
    Signals(&'static str),
}

#[derive(Debug)]
struct Latest<T> {
    generation: u64,
    snapshot: Option<Arc<T>>,
    word: Option<String>,
    record: Option<Arc<Path>>,
    profiles: Arc<Vec<ShelfEntry>>,
    reach: Reach,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            inner: Arc::new(Mutex::new(Latest {
                generation: 0,
                snapshot: None,
                word: None,
                record: None,
                profiles: Arc::default(),
                reach: Reach::All,
            })),
        }
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<T> Slot<T> {
    /// An empty slot.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces what is in the slot.
    pub fn publish(&self, snapshot: Arc<T>) {
        let mut latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        latest.generation += 1;
        // The old one is dropped after the lock is released: freeing it may take long.
        let old = latest.snapshot.replace(snapshot);
        drop(latest);
        drop(old);
    }

    /// Replaces the profiles that can be chosen.
    pub fn publish_profiles(&self, profiles: Arc<Vec<ShelfEntry>>) {
        let mut latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut latest.profiles, profiles);
        drop(latest);
        drop(old);
    }

    /// Says where the record of the run lies.
    pub fn publish_record(&self, folder: &Path) {
        let mut latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        latest.record = Some(folder.into());
    }

    /// The folder of the record; absent until the run has one.
    pub fn record(&self) -> Option<Arc<Path>> {
        let latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        latest.record.clone()
    }

    /// The profiles that can be chosen; empty until they were published.
    pub fn profiles(&self) -> Arc<Vec<ShelfEntry>> {
        let latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&latest.profiles)
    }

    /// Says which commands reach the supervisor.
    pub fn publish_reach(&self, reach: Reach) {
        let mut latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        latest.reach = reach;
    }

    /// Which commands reach the supervisor; all, unless it was said otherwise.
    pub fn reach(&self) -> Reach {
        let latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        latest.reach
    }

    /// Leaves a word for the user, in answer to a key; a newer one replaces it.
    pub fn say(&self, word: String) {
        let mut latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        latest.word = Some(word);
    }

    /// The word that was left, once.
    pub fn take_word(&self) -> Option<String> {
        let mut latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        latest.word.take()
    }

    /// The latest snapshot, if one was ever published.
    pub fn latest(&self) -> Option<Arc<T>> {
        let latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        latest.snapshot.clone()
    }

    /// The latest snapshot with its generation, if it is newer than `seen`
    /// (0: nothing seen yet).
    pub fn newer_than(&self, seen: u64) -> Option<(u64, Arc<T>)> {
        let latest = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.generation <= seen {
            return None;
        }
        let snapshot = latest.snapshot.clone()?;
        Some((latest.generation, snapshot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::testing;

    #[test]
    fn a_reader_sees_the_latest_once() {
        let slot = SnapshotSlot::new();
        let reader = slot.clone();
        assert!(reader.newer_than(0).is_none());
        slot.publish(Arc::new(testing::healthy()));
        let mut second = testing::healthy();
        second.run = "second".to_owned();
        slot.publish(Arc::new(second));
        let (seen, snapshot) = reader.newer_than(0).unwrap();
        assert_eq!(snapshot.run, "second");
        assert!(reader.newer_than(seen).is_none());
        assert_eq!(reader.latest().unwrap().run, "second");
        slot.say("not from here".to_owned());
        assert_eq!(reader.take_word().as_deref(), Some("not from here"));
        assert_eq!(reader.take_word(), None);
    }
}
