//! The line of the log that the user stands on, and what is marked with it. Pure.

use crate::model::Mono;
use crate::run::snapshot::LogLine;
use crate::run::snapshot::LogLines;

use super::log_choices::{LogChoices, LogView, Pane};

impl LogChoices {
    /// The line that the user stands on, always one in sight; absent while the log
    /// follows, and where it is a part of a screen.
    pub(super) fn place(&self, live: &LogLines, pane: Pane) -> Option<usize> {
        if !pane.full || self.view == LogView::Follow {
            return None;
        }
        let (log, end) = self.part(live);
        let lines = self.in_pane(log, end, pane);
        let (first, last) = (*lines.first()?, *lines.last()?);
        let wanted = self.cursor.unwrap_or(last).clamp(first, last);
        lines.into_iter().find(|at| *at >= wanted)
    }

    /// The lines between the mark and the present one that are not hidden, oldest
    /// first; without a mark the present one alone.
    pub(super) fn marked(&self, live: &LogLines, pane: Pane) -> Option<(usize, usize)> {
        let at = self.place(live, pane)?;
        let mark = self.mark.unwrap_or(at);
        Some((at.min(mark), at.max(mark)))
    }

    /// The lines from one to another that are shown.
    pub(super) fn between<'a>(
        &'a self,
        live: &'a LogLines,
        pane: Pane,
        (from, to): (usize, usize),
    ) -> impl Iterator<Item = &'a LogLine> {
        let (log, _) = self.part(live);
        log.iter()
            .take(to.saturating_add(1))
            .skip(from)
            .filter(move |l| self.passes(l, pane))
    }

    /// One line on, with the view where it has to move; past the last line it follows.
    pub(super) fn step(&mut self, live: &LogLines, pane: Pane, up: bool) {
        if self.view == LogView::Follow {
            if up {
                self.freeze(live);
            }
            return;
        }
        let Some(at) = self.place(live, pane) else {
            return;
        };
        let (log, _) = self.part(live);
        let log = log.clone();
        let visible = |at: &usize| log.get(*at).is_some_and(|l| self.passes(l, pane));
        let next = if up {
            (0..at).rev().find(visible)
        } else {
            (at + 1..log.len()).find(visible)
        };
        match next {
            Some(next) => self.stand_on(&log, pane, next),
            None if !up => self.follow(),
            None => {}
        }
    }

    /// Stands on a line of `log`, which is in sight afterwards; a part of the log that
    /// is not seen is moved by as little as it takes.
    fn stand_on(&mut self, log: &LogLines, pane: Pane, at: usize) {
        let end = match &self.view {
            LogView::Frozen { end, .. } => (*end).min(log.len()),
            LogView::Follow => log.len(),
        };
        let lines = self.in_pane(log, end, pane);
        let end = match (lines.first(), lines.last()) {
            (Some(first), _) if at < *first => self.end_from(log, at, pane),
            (_, Some(last)) if at > *last => at + 1,
            _ => end,
        };
        self.cursor = Some(at);
        self.view = LogView::Frozen {
            log: log.clone(),
            end,
        };
    }

    /// Stands on the first line that is not older than `t`, or on the last one.
    pub(super) fn goto(&mut self, live: &LogLines, pane: Pane, t: Mono) {
        let full = Pane { full: true, ..pane };
        let later = |l: &LogLine| l.at >= t && self.passes(l, full);
        let shown = |at: &usize| live.get(*at).is_some_and(|l| self.passes(l, full));
        let Some(last) = (0..live.len()).rev().find(shown) else {
            return;
        };
        let at = live.iter().position(later).unwrap_or(last);
        self.hit = None;
        self.mark = None;
        self.view = LogView::Frozen {
            log: live.clone(),
            end: self.around(live, full, at),
        };
        self.cursor = Some(at);
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_choices::Move;
    use super::super::log_choices::tests::{PANE, five, shown};
    use super::*;

    #[test]
    fn the_line_that_is_stood_on_is_always_in_sight() {
        let live = five();
        let mut c = LogChoices::default();
        assert_eq!(c.place(&live, PANE), None, "it follows");
        let mut seen = Vec::new();
        for up in [true, true, true, true, true, true, false, false, false] {
            c.step(&live, PANE, up);
            seen.push((c.place(&live, PANE).unwrap(), shown(&c, &live)));
        }
        let places: Vec<_> = seen.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [4, 3, 2, 1, 0, 0, 1, 2, 3]);
        assert!(seen.iter().all(|(at, lines)| lines.contains(at)));
        c.go(&live, PANE, Move::Top);
        assert_eq!(c.place(&live, PANE), Some(1), "the nearest line in sight");
        (0..4).for_each(|_| c.step(&live, PANE, false));
        assert_eq!(c.view, LogView::Follow, "past the last line");
    }

    #[test]
    fn a_range_leaves_out_what_is_hidden() {
        let live = five();
        let mut c = LogChoices {
            hidden: [false, true, false],
            ..LogChoices::default()
        };
        c.goto(&live, PANE, Mono::from_secs(3));
        c.mark = Some(0);
        assert_eq!(c.marked(&live, PANE), Some((0, 3)));
        let lines = c.between(&live, PANE, (0, 3)).map(|l| l.text.as_str());
        assert_eq!(
            lines.collect::<Vec<_>>(),
            ["load model", "healthy", "step 1"]
        );
        c.goto(&live, PANE, Mono::from_secs(900));
        assert_eq!(c.place(&live, PANE), Some(4), "later than all: the last");
    }
}
