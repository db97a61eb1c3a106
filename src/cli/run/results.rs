//! Looking for the files that the workload writes, off the supervising thread:
//! a folder may lie on a network that does not answer.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::sync::mpsc;

use crate::workload::artefacts::{self, Found};

/// What a look found.
#[derive(Debug)]
pub(super) struct Look {
    /// Which attempt it was made for.
    pub(super) attempt: u32,
    /// Files written since the attempt began, newest first.
    pub(super) found: Vec<Found>,
    /// A last look, after the process has ended.
    pub(super) last: bool,
}

/// Where and since when to look.
#[derive(Debug, Clone)]
pub(super) struct Finder {
    roots: Vec<PathBuf>,
    /// Where our own worker writes, and by which line it says that its result is there: nothing else is its result,
    /// whoever writes in the same folder.
    own: Option<(PathBuf, String)>,
    /// It has said so.
    wrote: bool,
    since: SystemTime,
    attempt: u32,
    to: mpsc::Sender<Look>,
    /// What the look before has found, so that a growing file is not taken.
    earlier: Vec<Found>,
    /// The result that was told last.
    told: Option<(PathBuf, u64)>,
    looking: bool,
}

impl Finder {
    /// `own`: the output of our own worker.
    pub(super) fn new(
        argv: &[String],
        cwd: &Path,
        own: Option<&Path>,
        to: mpsc::Sender<Look>,
    ) -> Self {
        Self {
            roots: artefacts::roots(argv, cwd),
            own: own.map(|own| (cwd.join(own), as_heard(&format!("Wrote {}", own.display())))),
            wrote: false,
            since: SystemTime::now(),
            attempt: 0,
            to,
            earlier: Vec::new(),
            told: None,
            looking: false,
        }
    }

    /// A new attempt begins: only its own files count.
    pub(super) fn begin(&mut self, attempt: u32) {
        self.since = SystemTime::now();
        self.attempt = attempt;
        self.earlier.clear();
        self.told = None;
        self.wrote = false;
        self.looking = false;
    }

    /// A line of the console; whether it names a result. That of our own worker is one even where an earlier process has
    /// put it there, and was killed before it could say so.
    pub(super) fn hear(&mut self, line: &str) -> bool {
        let Some((_, words)) = &self.own else {
            return artefacts::path_in_line(line).is_some();
        };
        let wrote = *words == as_heard(line);
        self.wrote |= wrote;
        wrote
    }

    /// Looks in the background; at most one look is under way, but a last one
    /// always starts.
    pub(super) fn look(&mut self, last: bool) {
        if self.looking && !last {
            return;
        }
        self.looking = true;
        let (roots, since, attempt, to) = (
            self.roots.clone(),
            self.since,
            self.attempt,
            self.to.clone(),
        );
        let own = self.own.as_ref();
        let own = own.map(|(path, _)| self.wrote.then(|| path.clone()));
        tokio::task::spawn_blocking(move || {
            let found = match own {
                Some(wrote) => wrote
                    .and_then(|path| artefacts::at(&path))
                    .into_iter()
                    .collect(),
                None => artefacts::find(&roots, since),
            };
            // the receiver is gone only when the run is over
            let _ = to.blocking_send(Look {
                attempt,
                found,
                last,
            });
        });
    }

    /// The result of a look, if it is news.
    pub(super) fn news(&mut self, look: &Look) -> Option<Found> {
        if look.attempt != self.attempt {
            return None;
        }
        self.looking = false;
        // after the end nothing grows any more
        let earlier = if look.last { &[][..] } else { &self.earlier };
        let result = artefacts::result(&look.found, earlier).cloned();
        self.earlier.clone_from(&look.found);
        let result = result?;
        let key = (result.path.clone(), result.size);
        if self.told.as_ref() == Some(&key) {
            return None;
        }
        self.told = Some(key);
        Some(result)
    }
}

/// What a console leaves of a text for sure: it breaks lines, and may take spaces and control characters away.
fn as_heard(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let solid = |c: &char| !c.is_whitespace() && !c.is_control();
    line.chars().filter(solid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_worker_is_heard_whatever_its_output_is_called() {
        let (to, _from) = mpsc::channel(1);
        let finder = |own: &str| {
            let own = Some(Path::new(own));
            Finder::new(&[], Path::new("/home"), own, to.clone())
        };
        for (own, line) in [
            ("out/o.mp4", "Wrote out/o.mp4"),
            ("out/trail ", "Wrote out/trail"),
            ("out/t\tb.gif", "Wrote out/t    b.gif"),
            ("two\nlines", "Wrote two"),
        ] {
            let mut finder = finder(own);
            assert!(!finder.hear("Wrote another"), "{own:?}");
            assert!(finder.hear(line), "{own:?}");
        }
    }
}
