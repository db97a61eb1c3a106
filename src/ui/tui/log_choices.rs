//! Which part of the log is shown: place, streams, search. Pure.

use regex::{Regex, RegexBuilder};

use crate::model::Mono;
use crate::run::snapshot::LogLines;
use crate::run::snapshot::{LogKind, LogLine};

use super::panel::log_height;

/// Which part of the log is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum LogView {
    /// The newest lines.
    #[default]
    Follow,
    /// The log as it was when the user scrolled.
    Frozen {
        /// The log of that moment.
        log: LogLines,
        /// Index after the lowest line that is shown.
        end: usize,
    },
}

/// A text that is searched for.
#[derive(Debug, Clone)]
pub struct Search {
    /// As typed; a leading `/` begins a regular expression.
    pub text: String,
    /// Absent: nothing typed yet, or not a regular expression (yet).
    pub(super) pattern: Option<Regex>,
}

/// Memory that a typed expression may take, bytes.
const PATTERN_LIMIT: usize = 1 << 20;

impl Search {
    /// Searches for `text`; capitals count only if there are any in it.
    pub fn new(text: String) -> Self {
        let source = match text.strip_prefix('/') {
            Some(expression) => expression.to_owned(),
            None => regex::escape(&text),
        };
        let pattern = RegexBuilder::new(&source)
            .case_insensitive(!text.chars().any(char::is_uppercase))
            .size_limit(PATTERN_LIMIT)
            .build()
            .ok()
            .filter(|_| !source.is_empty());
        Self { text, pattern }
    }

    fn hits(&self, line: &LogLine) -> bool {
        self.pattern
            .as_ref()
            .is_some_and(|p| p.is_match(&line.text))
    }
}

/// How the log is shown.
#[derive(Debug, Clone, Default)]
pub struct LogChoices {
    /// Which part.
    pub view: LogView,
    /// Whether standard output, standard error, our own words are hidden on the
    /// log screen.
    pub hidden: [bool; 3],
    /// Long lines go on below instead of being cut.
    pub wrap: bool,
    /// What is searched for.
    pub search: Option<Search>,
    /// The match that the user stands on: an index into the frozen log.
    pub hit: Option<usize>,
    /// The line that the user stands on: an index into the frozen log.
    pub cursor: Option<usize>,
    /// The other end of what is to be copied: an index into the frozen log.
    pub mark: Option<usize>,
}

/// The pane that the log is shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pane {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// The log screen: filter, wrapping and search count.
    pub(super) full: bool,
}

/// A move through the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    PageUp,
    PageDown,
    LineUp,
    LineDown,
    Top,
}

/// Place of a kind in [`LogChoices::hidden`].
const fn slot(kind: LogKind) -> usize {
    match kind {
        LogKind::Stdout => 0,
        LogKind::Stderr => 1,
        LogKind::Own => 2,
    }
}

impl LogChoices {
    /// Shows or hides a stream. `true`: it is hidden now.
    pub(super) fn toggle(&mut self, kind: LogKind) -> bool {
        let hidden = &mut self.hidden[slot(kind)];
        *hidden = !*hidden;
        *hidden
    }

    pub(super) const fn is_hidden(&self, kind: LogKind) -> bool {
        self.hidden[slot(kind)]
    }

    pub(super) fn passes(&self, line: &LogLine, pane: Pane) -> bool {
        !pane.full || !self.is_hidden(line.kind)
    }

    /// The log that is shown, and the index after its lowest line.
    pub(super) fn part<'a>(&'a self, live: &'a LogLines) -> (&'a LogLines, usize) {
        match &self.view {
            LogView::Follow => (live, live.len()),
            LogView::Frozen { log, end } => (log, (*end).min(log.len())),
        }
    }

    /// The lines in the pane, from the top: as many as fit above `end`; where
    /// there are too few, from the first line on.
    pub(super) fn in_pane(&self, log: &LogLines, end: usize, pane: Pane) -> Vec<usize> {
        let mut lines = Vec::new();
        let mut used = 0;
        for at in (0..end).rev() {
            let Some(line) = log.get(at).filter(|l| self.passes(l, pane)) else {
                continue;
            };
            used += log_height(line, self, pane);
            if used > pane.rows && !lines.is_empty() {
                break;
            }
            lines.push(at);
            if used >= pane.rows {
                break;
            }
        }
        lines.reverse();
        lines
    }

    /// The end at which a pane that begins with line `from` is full.
    pub(super) fn end_from(&self, log: &LogLines, from: usize, pane: Pane) -> usize {
        let mut used = 0;
        let mut end = from;
        for (at, line) in log.iter().enumerate().skip(from) {
            if !self.passes(line, pane) {
                continue;
            }
            used += log_height(line, self, pane);
            if used > pane.rows && end > from {
                break;
            }
            end = at + 1;
        }
        end
    }

    /// The end of a pane with line `at` in its middle.
    pub(super) fn around(&self, log: &LogLines, pane: Pane, at: usize) -> usize {
        let half = Pane {
            rows: pane.rows.div_ceil(2),
            ..pane
        };
        self.end_from(log, at, half)
            .max(self.end_from(log, 0, pane))
    }

    /// Moves; arriving at the end follows again.
    pub(super) fn go(&mut self, live: &LogLines, pane: Pane, to: Move) {
        let (log, end) = self.part(live);
        let log = log.clone();
        let visible = |at: &usize| log.get(*at).is_some_and(|l| self.passes(l, pane));
        let first_page = self.end_from(&log, 0, pane);
        let down = match to {
            Move::PageUp => {
                let top = self.in_pane(&log, end, pane).first().copied().unwrap_or(0);
                Err(top)
            }
            Move::LineUp => Err((0..end).rev().find(visible).unwrap_or(0)),
            Move::Top => Err(0),
            Move::PageDown => Ok(self.end_from(&log, end, pane)),
            Move::LineDown => Ok((end..log.len()).find(visible).map_or(end, |at| at + 1)),
        };
        let end = match down {
            Err(up) => up.max(first_page),
            Ok(down) => down,
        };
        let more = (end..log.len()).any(|at| visible(&at));
        if more {
            self.view = LogView::Frozen { log, end };
        } else {
            self.follow();
        }
    }

    /// Back to the newest lines.
    pub(super) fn follow(&mut self) {
        self.view = LogView::Follow;
        self.hit = None;
        self.cursor = None;
        self.mark = None;
    }

    /// Stops following, or follows again.
    pub(super) fn freeze(&mut self, live: &LogLines) {
        if self.view == LogView::Follow {
            self.view = LogView::Frozen {
                log: live.clone(),
                end: live.len(),
            };
        } else {
            self.follow();
        }
    }

    /// Goes to a match: `newer` than the present one, or older; without a present
    /// one, up from the lowest line. Around the ends. `false`: nothing matches.
    pub(super) fn find(&mut self, live: &LogLines, pane: Pane, newer: bool) -> bool {
        let (log, end) = self.part(live);
        let log = log.clone();
        let Some(search) = &self.search else {
            return false;
        };
        let is_hit = |at: &usize| {
            log.get(*at)
                .is_some_and(|l| self.passes(l, pane) && search.hits(l))
        };
        let found = match (self.hit, newer) {
            (Some(hit), true) => (hit + 1..log.len()).chain(0..=hit).find(is_hit),
            (Some(hit), false) => (0..hit).rev().chain((hit..log.len()).rev()).find(is_hit),
            (None, _) => (0..end).rev().chain((end..log.len()).rev()).find(is_hit),
        };
        let Some(hit) = found else {
            return false;
        };
        let in_sight = self.in_pane(&log, end, pane).contains(&hit);
        let end = if in_sight {
            end
        } else {
            self.around(&log, pane, hit)
        };
        self.hit = Some(hit);
        self.cursor = Some(hit);
        self.view = LogView::Frozen { log, end };
        true
    }
}

/// Lines of `log` that are newer than the end of `frozen`.
pub(super) fn newer(frozen: &LogLines, log: &LogLines) -> usize {
    let end = frozen.back().map_or(Mono::ZERO, |l| l.at);
    log.iter().rev().take_while(|l| l.at > end).count()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn log(texts: &[(LogKind, &str)]) -> LogLines {
        let line = |(at, (kind, text)): (usize, &(LogKind, &str))| LogLine {
            at: Mono::from_secs(u64::try_from(at).unwrap()),
            kind: *kind,
            text: (*text).to_owned(),
            phase: crate::model::Phase::Startup,
            bar: false,
            folded: 0,
        };
        texts.iter().enumerate().map(line).collect()
    }

    pub(in crate::ui::tui) const PANE: Pane = Pane {
        columns: 40,
        rows: 2,
        full: true,
    };

    pub(in crate::ui::tui) fn five() -> LogLines {
        log(&[
            (LogKind::Stdout, "load model"),
            (LogKind::Stderr, "CUDA warning"),
            (LogKind::Own, "healthy"),
            (LogKind::Stdout, "step 1"),
            (LogKind::Stdout, "cuda step 2"),
        ])
    }

    pub(in crate::ui::tui) fn shown(c: &LogChoices, live: &LogLines) -> Vec<usize> {
        let (log, end) = c.part(live);
        c.in_pane(log, end, PANE)
    }

    #[test]
    fn moves_stop_at_the_first_line_and_follow_at_the_last() {
        let live = five();
        let mut c = LogChoices::default();
        let mut go = |to| {
            c.go(&live, PANE, to);
            shown(&c, &live)
        };
        assert_eq!(go(Move::LineUp), [2, 3]);
        assert_eq!(go(Move::PageUp), [0, 1]);
        assert_eq!(go(Move::PageUp), [0, 1]);
        assert_eq!(go(Move::LineDown), [1, 2]);
        assert_eq!(go(Move::PageDown), [3, 4]);
        assert_eq!(c.view, LogView::Follow);
    }

    #[test]
    fn hidden_streams_are_skipped() {
        let live = five();
        let mut c = LogChoices::default();
        assert!(c.toggle(LogKind::Stdout));
        assert_eq!(shown(&c, &live), [1, 2]);
        c.go(&live, PANE, Move::PageUp);
        assert_eq!(c.view, LogView::Follow, "everything is in sight");
        c.toggle(LogKind::Own);
        assert_eq!(shown(&c, &live), [1]);
    }

    #[test]
    fn wrapped_lines_take_their_room() {
        let live = log(&[
            (LogKind::Stdout, "short"),
            (LogKind::Stdout, &"long ".repeat(14)),
        ]);
        let mut c = LogChoices::default();
        assert_eq!(shown(&c, &live), [0, 1]);
        c.wrap = true;
        assert_eq!(shown(&c, &live), [1]);
    }

    #[test]
    fn a_search_goes_up_and_around() {
        let live = five();
        let mut c = LogChoices {
            search: Some(Search::new("cuda".to_owned())),
            ..LogChoices::default()
        };
        let hits: Vec<_> = [false, false, false, true, true]
            .into_iter()
            .map(|newer| c.find(&live, PANE, newer).then_some(c.hit).flatten())
            .collect();
        assert_eq!(hits, [Some(4), Some(1), Some(4), Some(1), Some(4)]);
        c.search = Some(Search::new("/^CU.A".to_owned()));
        assert!(c.find(&live, PANE, false));
        assert_eq!(c.hit, Some(1));
        for none in ["", "/", "/(", "absent"] {
            c.search = Some(Search::new(none.to_owned()));
            assert!(!c.find(&live, PANE, false), "{none}");
        }
    }

    #[test]
    fn a_match_in_a_hidden_stream_is_none() {
        let live = five();
        let mut c = LogChoices {
            search: Some(Search::new("warning".to_owned())),
            hidden: [false, true, false],
            ..LogChoices::default()
        };
        assert!(!c.find(&live, PANE, false));
    }
}
