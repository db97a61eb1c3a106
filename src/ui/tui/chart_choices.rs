//! What of the charts is shown: zoom, range, pause, time cursor. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Mono, Phase};
use crate::run::Snapshot;
use crate::run::snapshot::Point;
use crate::ui::text::ago;

use super::chart::{RANGES, span};

/// What the charts are drawn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Points, oldest first.
    pub history: Arc<VecDeque<Point>>,
    /// When each phase began, oldest first.
    pub phases: Arc<VecDeque<(Mono, Phase)>>,
    /// Right edge.
    pub now: Mono,
}

impl Picture {
    fn of(s: &Snapshot) -> Self {
        Self {
            history: Arc::clone(&s.history),
            phases: Arc::clone(&s.phases),
            now: s.now,
        }
    }
}

/// How the charts are shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChartChoices {
    /// The card takes the whole screen but health.
    pub zoom: bool,
    /// Index of the chosen range; absent: the shortest one that shows everything.
    pub range: Option<usize>,
    /// The picture that the charts are held at.
    pub paused: Option<Picture>,
    /// A time of which exact values are read out.
    pub cursor: Option<Mono>,
}

/// Steps of the cursor from one edge to the other.
const STEPS: u64 = 60;
/// Shortest step of the cursor, ms: two readings a second.
const STEP_MS: u64 = 500;
/// Shortest span, ms.
const SHORTEST_MS: u64 = 30_000;

impl ChartChoices {
    /// Whether there is nothing that [`back`](Self::back) would take back.
    pub(super) const fn is_plain(&self) -> bool {
        !self.zoom && self.paused.is_none() && self.cursor.is_none()
    }

    /// What is drawn.
    pub(super) fn picture(&self, s: &Snapshot) -> Picture {
        self.paused.clone().unwrap_or_else(|| Picture::of(s))
    }

    /// Time from edge to edge in ms, and its name.
    pub(super) fn span(&self, picture: &Picture) -> (u64, String) {
        match self.range.map(|at| RANGES.get(at).copied().flatten()) {
            Some(Some((ms, name))) => (ms, name.to_owned()),
            Some(None) => {
                let first = picture.history.front().map_or(picture.now.0, |p| p.at.0);
                let ms = picture.now.0.saturating_sub(first).max(SHORTEST_MS);
                (ms, ago(Duration::from_millis(ms)))
            }
            None => {
                let (ms, name) = span(&picture.history, picture.now);
                (ms, name.to_owned())
            }
        }
    }

    /// Index of the shortest range of at least so many ms.
    pub(super) fn range_of(ms: u64) -> Option<usize> {
        let reaches = |r: &Option<(u64, &str)>| r.is_none_or(|(range, _)| range >= ms);
        RANGES.iter().position(reaches)
    }

    /// A longer or a shorter range than the present one.
    pub(super) fn stretch(&mut self, s: &Snapshot, longer: bool) {
        let (ms, _) = self.span(&self.picture(s));
        let at = self.range.unwrap_or_else(|| {
            let fits = |r: &Option<(u64, &str)>| r.is_none_or(|(range, _)| range >= ms);
            RANGES.iter().position(fits).unwrap_or(0)
        });
        let last = RANGES.len() - 1;
        self.range = Some(if longer {
            at.saturating_add(1).min(last)
        } else {
            at.min(last).saturating_sub(1)
        });
    }

    /// Holds the charts as they are, or lets them go on.
    pub(super) fn pause(&mut self, s: &Snapshot) {
        self.paused = match self.paused {
            Some(_) => None,
            None => Some(Picture::of(s)),
        };
    }

    /// Moves the time cursor; at the right edge it vanishes.
    pub(super) fn move_cursor(&mut self, s: &Snapshot, later: bool) {
        let picture = self.picture(s);
        let (span_ms, _) = self.span(&picture);
        let step = (span_ms / STEPS).max(STEP_MS);
        let now = picture.now.0;
        let first = now.saturating_sub(span_ms);
        let at = self.cursor.map_or(now, |t| t.0);
        let at = if later {
            at.saturating_add(step).max(first)
        } else {
            at.min(now).saturating_sub(step).max(first)
        };
        self.cursor = (at < now).then_some(Mono(at));
    }

    /// Puts the time cursor somewhere, and that into sight.
    pub(super) fn goto(&mut self, s: &Snapshot, t: Mono) {
        let picture = self.picture(s);
        let back = picture.now.0.saturating_sub(t.0);
        if back > self.span(&picture).0 {
            self.range = Self::range_of(back);
        }
        self.cursor = (t < picture.now).then_some(t);
    }

    /// One level back: the cursor, then zoom, then the pause.
    pub(super) fn back(&mut self) {
        if self.cursor.take().is_some() {
            return;
        }
        if self.zoom {
            self.zoom = false;
        } else {
            self.paused = None;
        }
    }

    /// `PAUSED +41 s`, while the charts are held.
    pub(super) fn pause_words(&self, s: &Snapshot) -> Option<String> {
        let held = self.paused.as_ref()?;
        Some(format!("PAUSED +{}", ago(s.now.since(held.now))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::testing;

    #[test]
    fn the_range_goes_from_half_a_minute_to_everything() {
        let s = testing::healthy();
        let mut c = ChartChoices::default();
        let mut names = Vec::new();
        for longer in [
            false, false, false, false, false, true, true, true, true, true, true,
        ] {
            c.stretch(&s, longer);
            names.push(c.span(&c.picture(&s)).1);
        }
        assert_eq!(
            names,
            [
                "2 min",
                "1 min",
                "30 s",
                "30 s",
                "30 s",
                "1 min",
                "2 min",
                "5 min",
                "10 min",
                "4 min 50 s",
                "4 min 50 s"
            ]
        );
    }

    #[test]
    fn the_cursor_stays_between_the_edges() {
        let s = testing::healthy();
        let mut c = ChartChoices::default();
        c.move_cursor(&s, false);
        assert_eq!(c.cursor, Some(Mono(867_000)), "a sixtieth of 5 min");
        (0..100).for_each(|_| c.move_cursor(&s, false));
        assert_eq!(c.cursor, Some(Mono(572_000)));
        (0..60).for_each(|_| c.move_cursor(&s, true));
        assert_eq!(c.cursor, None, "the right edge is now");
    }

    #[test]
    fn a_pause_holds_the_charts_and_says_how_old_they_are() {
        let mut s = testing::healthy();
        let mut c = ChartChoices::default();
        c.pause(&s);
        let held = c.picture(&s);
        s.now = Mono(s.now.0 + 41_000);
        assert_eq!(c.picture(&s), held);
        assert_eq!(c.pause_words(&s).as_deref(), Some("PAUSED +41 s"));
        c.pause(&s);
        assert_eq!(c.picture(&s).now, s.now);
    }
}
