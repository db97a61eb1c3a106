//! The source: a probe every two seconds while somebody asks for them.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::super::procfs::{Members, Target};
use super::super::source::{Answer, Source, SourceError, lock};
use super::reader::Reader;
use crate::model::Probe;

/// Other sources are woken together with this one; a probe is not taken sooner than this
/// after the last.
const LEAST_PAUSE: Duration = Duration::from_millis(1500);

/// A probe that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Latest {
    /// Root and reaper of the tree.
    pub(super) of: (Option<u32>, Option<u32>),
    /// The probe.
    pub(super) probe: Probe,
}

/// Takes probes.
#[derive(Debug)]
pub(super) struct ProbeSource {
    reader: Reader,
    root: std::path::PathBuf,
    target: Arc<Mutex<Target>>,
    members: Arc<Mutex<Members>>,
    latest: Arc<Mutex<Option<Latest>>>,
    /// Whose probe was last taken, and when; none since nobody asked.
    last: Option<((Option<u32>, Option<u32>), Instant)>,
}

impl ProbeSource {
    /// A source over the folder that has `proc` in it.
    pub(super) fn new(
        root: &Path,
        target: Arc<Mutex<Target>>,
        members: Arc<Mutex<Members>>,
        latest: Arc<Mutex<Option<Latest>>>,
    ) -> Self {
        Self {
            reader: Reader::new(root),
            root: root.to_owned(),
            target,
            members,
            latest,
            last: None,
        }
    }
}

impl Source for ProbeSource {
    type Reading = ();

    fn name(&self) -> String {
        "probe".to_owned()
    }

    fn read(&mut self) -> Result<Answer<()>, SourceError> {
        let target = *lock(&self.target);
        let of = (target.pid, target.reaper);
        let (Some(root), true) = (target.pid, target.detail) else {
            if self.last.take().is_some() {
                self.reader = Reader::new(&self.root);
                *lock(&self.latest) = None;
            }
            return Ok(Answer::good(()));
        };
        if let Some((last, at)) = self.last
            && last == of
            && at.elapsed() < LEAST_PAUSE
        {
            return Ok(Answer::good(()));
        }
        let members = lock(&self.members).clone();
        // the source of the tree has not looked at this target yet, or nobody lives there
        if members.of != of || members.pids.is_empty() {
            return Ok(Answer::good(()));
        }
        let begun = Instant::now();
        let probe = self.reader.probe(root, &members.pids);
        self.last = Some((of, begun));
        *lock(&self.latest) = Some(Latest { of, probe });
        Ok(Answer::good(()))
    }
}
