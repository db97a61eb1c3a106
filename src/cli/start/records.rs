//! The recorded runs and the profiles, read again and again on a thread of their own: a
//! home on a disk that does not answer must not hold the screen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cli::find;
use crate::profile::{Card, Catalog, Fit, Machine, ShelfEntry, shelf};
use crate::record::{RunEntry, Store};
use crate::workload::adapter::AdapterKind;

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(2);
/// Profiles are read in every so many looks.
const PROFILES: u32 = 5;

/// What was read last.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Recorded runs, newest first; absent: not read yet.
    pub(super) runs: Option<Vec<RunEntry>>,
    /// Why they cannot be listed.
    pub(super) trouble: Option<String>,
    /// Every profile with how it suits the cards.
    pub(super) profiles: Vec<ShelfEntry>,
    /// The cards that the profiles were last judged for, and the present ones; absent: not known
    /// yet, and no profile is judged.
    judged: Option<Vec<Card>>,
    cards: Option<Vec<Card>>,
}

/// The running reader; dropping it ends its thread.
#[derive(Debug)]
pub(super) struct Records {
    kept: Arc<Mutex<Kept>>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::Thread>,
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Records {
    /// Starts it; waits for nothing.
    pub(super) fn start() -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (of_thread, ends) = (Arc::clone(&kept), Arc::clone(&stop));
        let body = move || {
            let mut catalog = Catalog::load();
            for look in 0_u32.. {
                if look > 0 && look.is_multiple_of(PROFILES) {
                    catalog = Catalog::load();
                    lock(&of_thread).judged = None;
                }
                look_at(&of_thread, &catalog);
                std::thread::park_timeout(PERIOD);
                if ends.load(Ordering::SeqCst) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("records".to_owned());
        let thread = match thread.spawn(body) {
            Ok(handle) => Some(handle.thread().clone()),
            Err(e) => {
                lock(&kept).trouble = Some(format!("no thread could be started: {e}"));
                None
            }
        };
        Self { kept, stop, thread }
    }

    /// What was read last.
    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }

    /// The cards that profiles are judged for; looks at once where they are others.
    pub(super) fn set_cards(&self, cards: Vec<Card>) {
        let mut kept = lock(&self.kept);
        if kept.cards.as_ref() != Some(&cards) {
            kept.cards = Some(cards);
            drop(kept);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }
}

fn look_at(kept: &Mutex<Kept>, catalog: &Catalog) {
    let runs = find::all();
    {
        let mut kept = lock(kept);
        match runs {
            Ok(runs) => {
                kept.runs = Some(runs);
                kept.trouble = None;
            }
            Err(e) => kept.trouble = Some(e.to_string()),
        }
        if kept.judged == kept.cards {
            return;
        }
    }
    let Some(cards) = lock(kept).cards.clone() else {
        return;
    };
    let machine = Machine {
        cards: cards.clone(),
        // what will be run is not known yet; FramePack is what this program is for
        adapter: AdapterKind::Framepack.as_str().to_owned(),
    };
    let mut profiles = shelf(catalog, &machine);
    profiles.sort_by_key(|p| match p.fit {
        Fit::Best => 0,
        Fit::Fits => 1,
        Fit::Other => 2,
    });
    let mut kept = lock(kept);
    kept.profiles = profiles;
    kept.judged = Some(cards);
}

/// Where runs are kept, as people write it.
pub(super) fn place() -> String {
    let root = Store::open_default().unwrap_or_else(|_no_home| Store::fallback());
    let root = root.root();
    let below_home = std::env::var_os("HOME")
        .filter(|h| !h.is_empty())
        .and_then(|home| {
            root.strip_prefix(home)
                .ok()
                .map(|rest| rest.display().to_string())
        });
    below_home.map_or_else(|| root.display().to_string(), |rest| format!("~/{rest}"))
}
