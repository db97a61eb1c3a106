//! MIOpen's Find in plain text: only one that takes its time is told of.

use std::time::Duration;

use crate::model::{FindMark, FindState, Mono};
use crate::ui::find::line;
use crate::ui::text::ago;

/// A Find that is over sooner is not told of: a decode has dozens.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Shortest time between two lines about the same one.
const AGAIN: Duration = Duration::from_secs(30);

/// The Find that is open, and what was said of it.
#[derive(Debug, Default)]
pub(super) struct Finds {
    open: Option<FindState>,
    /// When, and what.
    told: Option<(Mono, String)>,
}

impl Finds {
    /// Takes a mark; the words where one ends that was told of.
    pub(super) fn take(&mut self, at: Mono, mark: &FindMark) -> Option<String> {
        let before = self.open.as_ref().map(|f| (f.what(), f.opened));
        FindState::fold(&mut self.open, at, mark);
        let same = self.open.as_ref().map(|f| f.opened) == before.as_ref().map(|b| b.1);
        if same {
            return None;
        }
        self.told.take()?;
        let (what, opened) = before?;
        Some(format!("{what}: over after {}", ago(at.since(opened))))
    }

    /// The program went on.
    pub(super) fn forget(&mut self) {
        (self.open, self.told) = (None, None);
    }

    /// What is to be said now.
    pub(super) fn due(&mut self, at: Mono) -> Option<String> {
        let open = self.open.as_ref()?;
        let soon = match &self.told {
            None => at.since(open.opened) < AT_ONCE,
            Some((told, _)) => at.since(*told) < AGAIN,
        };
        if soon {
            return None;
        }
        let text = line(open, at);
        if self.told.as_ref().is_some_and(|(_, said)| *said == text) {
            return None;
        }
        self.told = Some((at, text.clone()));
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FindFigures;

    #[test]
    fn only_a_find_that_takes_its_time_is_told_of() {
        let mut f = Finds::default();
        let at = Mono::from_secs;
        let key = "conv -n 1".to_owned();
        let opened = FindMark::Opened { key: key.clone() };
        let closed = FindMark::Closed { key };
        assert_eq!(f.take(at(10), &opened), None);
        assert_eq!(f.due(at(11)), None);
        assert_eq!(f.take(at(12), &closed), None);
        assert_eq!(f.take(at(20), &opened), None);
        let solver = FindMark::Solver {
            name: "ConvHipX".to_owned(),
        };
        assert_eq!(f.take(at(21), &solver), None);
        let figures = FindMark::Figures(FindFigures {
            tried: Some(12),
            total: Some(45),
            best_ms: Some(4.2),
            eta_s: Some(90.0),
            ..FindFigures::default()
        });
        assert_eq!(f.take(at(21), &figures), None);
        assert_eq!(
            f.due(at(26)).as_deref(),
            Some("conv -n 1: ConvHipX, 12/45, best 4.2 ms, ETA 1 min 25 s")
        );
        assert_eq!(f.due(at(30)), None);
        assert!(f.due(at(56)).unwrap().contains("ETA 55 s"));
        assert_eq!(
            f.take(at(58), &closed).as_deref(),
            Some("conv -n 1: over after 38 s")
        );
        assert_eq!(f.due(at(99)), None);
    }
}
