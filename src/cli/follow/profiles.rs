//! The profiles of this machine beside a run that is not ours: to be read, not chosen.

use std::sync::{Arc, OnceLock};

use crate::cli::run::machine;
use crate::profile::{Catalog, Machine, shelf};
use crate::run::Snapshot;
use crate::ui::SnapshotSlot;

/// The profiles, read on a thread of their own: a disk may block.
pub(in crate::cli) struct Profiles {
    catalog: Arc<OnceLock<Catalog>>,
    judged: Option<Machine>,
}

impl Profiles {
    /// Begins to read them; waits for nothing.
    pub(in crate::cli) fn start() -> Self {
        let catalog = Arc::new(OnceLock::new());
        let to = Arc::clone(&catalog);
        let thread = std::thread::Builder::new().name("profiles".to_owned());
        // without them the screen says that there are none
        let _ = thread.spawn(move || drop(to.set(Catalog::load())));
        Self {
            catalog,
            judged: None,
        }
    }

    /// Shows how they suit the machine of the latest snapshot, where that has changed.
    pub(in crate::cli) fn show(&mut self, slot: &SnapshotSlot) {
        let (Some(catalog), Some(run)) = (self.catalog.get(), slot.latest()) else {
            return;
        };
        let machine = machine_of(&run);
        if self.judged.as_ref() != Some(&machine) {
            slot.publish_profiles(Arc::new(shelf(catalog, &machine)));
            self.judged = Some(machine);
        }
    }
}

/// The card that the run uses and what it runs, as its record tells them.
fn machine_of(run: &Snapshot) -> Machine {
    let card = run.gpus.iter().find(|g| Some(&g.id) == run.gpu.as_ref());
    machine::with(card, &run.adapter)
}
