//! The profiles that can be chosen, shared between whoever reads and saves them and
//! the screen.

use std::sync::{Arc, Mutex, PoisonError};

use crate::profile::ShelfEntry;

/// Every profile, and where those of the user are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profiles {
    /// As [`shelf`](crate::profile::shelf()) gives them.
    pub list: Vec<ShelfEntry>,
    /// Folder of the user's own files; absent: there is no home.
    pub folder: Option<String>,
}

impl Profiles {
    /// The profile of this id.
    pub(super) fn get(&self, id: &str) -> Option<&ShelfEntry> {
        self.list.iter().find(|e| e.id == id)
    }
}

/// A place for the profiles: publishing replaces them, as after one was saved.
#[derive(Debug, Clone, Default)]
pub struct ProfileSlot(Arc<Mutex<Arc<Profiles>>>);

impl ProfileSlot {
    /// A place that holds these.
    pub fn new(profiles: Profiles) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(profiles))))
    }

    /// Replaces them.
    pub fn publish(&self, profiles: Profiles) {
        let fresh = Arc::new(profiles);
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *latest, fresh);
        drop(latest);
        drop(old);
    }

    /// What was published last.
    pub(super) fn latest(&self) -> Arc<Profiles> {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&latest)
    }
}
