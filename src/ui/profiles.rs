//! The profiles that can be chosen, as the screen is handed them.

use std::sync::Arc;

use crate::profile::ShelfEntry;

/// Every profile, and where those of the user are written. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profiles {
    /// As [`shelf`](crate::profile::shelf()) gives them.
    pub list: Arc<Vec<ShelfEntry>>,
    /// Folder of the user's own files; absent: there is no home.
    pub folder: Option<Arc<str>>,
}

impl Profiles {
    /// The profile of this id.
    pub(super) fn get(&self, id: &str) -> Option<&ShelfEntry> {
        self.list.iter().find(|e| e.id == id)
    }
}
