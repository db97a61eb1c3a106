//! From the answer of one read to a [`Metric`].

use std::collections::HashMap;
use std::time::Instant;

use super::file::{ReadError, ReadResult};
use crate::model::Metric;
use crate::model::time::millis;

/// Remembers of each value whether it was ever there and since when it fails: a
/// file that never existed is *unsupported*, one that has gone is a *failure*.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    tracks: HashMap<&'static str, Track>,
}

#[derive(Debug, Default)]
struct Track {
    seen: bool,
    failing_since: Option<Instant>,
}

impl Tracker {
    /// Whether the value called `key` was ever there.
    pub(crate) fn seen(&self, key: &'static str) -> bool {
        self.tracks.get(key).is_some_and(|track| track.seen)
    }

    /// The metric that follows from this answer for the value called `key`.
    pub(crate) fn settle<T>(&mut self, key: &'static str, answer: ReadResult<T>) -> Metric<T> {
        let track = self.tracks.entry(key).or_default();
        match answer {
            Ok(value) => {
                track.seen = true;
                track.failing_since = None;
                Metric::Fresh(value)
            }
            Err(ReadError::Missing) if !track.seen => {
                track.failing_since = None;
                Metric::Unsupported
            }
            Err(error) => {
                let since = *track.failing_since.get_or_insert_with(Instant::now);
                let why = match error {
                    ReadError::Missing => format!("{key}: no longer there"),
                    other => other.to_string(),
                };
                Metric::Failed {
                    why,
                    for_ms: millis(since.elapsed()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn missing_is_unsupported_until_it_was_seen_once() {
        let mut t = Tracker::default();
        assert_eq!(
            t.settle::<u64>("busy", Err(ReadError::Missing)),
            Metric::Unsupported
        );
        assert_eq!(t.settle("busy", Ok(0)), Metric::Fresh(0));
        let gone = t.settle::<u64>("busy", Err(ReadError::Missing));
        assert!(matches!(gone, Metric::Failed { ref why, .. } if why == "busy: no longer there"));
    }

    #[test]
    fn the_time_of_failing_grows_and_ends_with_a_value() {
        let mut t = Tracker::default();
        let error = || ReadError::text(Path::new("f"), "empty");
        let first = t.settle::<u64>("busy", Err(error()));
        assert!(matches!(first, Metric::Failed { for_ms: 0, .. }));
        std::thread::sleep(std::time::Duration::from_millis(15));
        let Metric::Failed { for_ms, .. } = t.settle::<u64>("busy", Err(error())) else {
            panic!("not failed");
        };
        assert!(for_ms >= 15);
        t.settle("busy", Ok(1));
        let again = t.settle::<u64>("busy", Err(error()));
        assert!(matches!(again, Metric::Failed { for_ms: 0, .. }));
    }
}
