//! The lines of a log, bounded in number and bytes, and shared with every snapshot of it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::snapshot::LogLine;

/// Lines of a chunk. A snapshot shares all chunks; only one that changes is copied.
const CHUNK: usize = 256;
/// Most lines that are kept.
const MOST_LINES: usize = 50_000;
/// Most bytes that are kept.
const MOST_BYTES: usize = 32 << 20;
/// Bytes of a line besides its text.
const OVERHEAD: usize = size_of::<LogLine>();

/// The newest lines of a log, oldest first. To clone it costs a pointer for every 256 lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogLines {
    /// None of them is empty.
    chunks: VecDeque<Arc<Vec<LogLine>>>,
    len: usize,
    bytes: usize,
    dropped: u64,
}

impl LogLines {
    /// Lines that are kept.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none is kept.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Older lines that are kept no more; the record has them.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The line at this place, from the oldest one that is kept.
    pub fn get(&self, mut at: usize) -> Option<&LogLine> {
        for chunk in &self.chunks {
            match chunk.get(at) {
                Some(line) => return Some(line),
                None => at -= chunk.len(),
            }
        }
        None
    }

    /// All lines, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &LogLine> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// The oldest line.
    pub fn front(&self) -> Option<&LogLine> {
        self.chunks.front()?.first()
    }

    /// The newest line.
    pub fn back(&self) -> Option<&LogLine> {
        self.chunks.back()?.last()
    }

    /// Appends a line; drops the oldest ones where there are too many.
    pub fn push(&mut self, line: LogLine) {
        self.len += 1;
        self.bytes += bytes(&line);
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < CHUNK => Arc::make_mut(chunk).push(line),
            _ => self.chunks.push_back(Arc::new(vec![line])),
        }
        while (self.len > MOST_LINES || self.bytes > MOST_BYTES) && self.chunks.len() > 1 {
            let Some(oldest) = self.chunks.pop_front() else {
                break;
            };
            self.len -= oldest.len();
            self.bytes -= oldest.iter().map(bytes).sum::<usize>();
            self.dropped += oldest.len() as u64;
        }
    }

    /// Takes out the line at this place, counted from the newest (0).
    pub fn remove_from_end(&mut self, mut nth: usize) -> Option<LogLine> {
        let place = self.chunks.iter().rposition(|chunk| {
            let here = nth < chunk.len();
            if !here {
                nth -= chunk.len();
            }
            here
        })?;
        let chunk = Arc::make_mut(self.chunks.get_mut(place)?);
        let line = chunk.remove(chunk.len() - 1 - nth);
        if chunk.is_empty() {
            self.chunks.remove(place);
        }
        self.len -= 1;
        self.bytes -= bytes(&line);
        Some(line)
    }
}

impl FromIterator<LogLine> for LogLines {
    fn from_iter<I: IntoIterator<Item = LogLine>>(lines: I) -> Self {
        let mut all = Self::default();
        lines.into_iter().for_each(|line| all.push(line));
        all
    }
}

const fn bytes(line: &LogLine) -> usize {
    line.text.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Mono, Phase};
    use crate::run::snapshot::LogKind;

    fn line(n: usize, text: String) -> LogLine {
        LogLine {
            at: Mono(n as u64),
            kind: LogKind::Stdout,
            text,
            phase: Phase::Sampling,
            bar: false,
            folded: 0,
        }
    }

    fn numbered(n: usize) -> LogLine {
        line(n, n.to_string())
    }

    #[test]
    fn the_oldest_lines_go_where_there_are_too_many_and_are_counted() {
        let all: LogLines = (0..MOST_LINES + 10).map(numbered).collect();
        assert!(all.len() <= MOST_LINES && all.len() > MOST_LINES - CHUNK);
        assert_eq!(all.dropped() + all.len() as u64, MOST_LINES as u64 + 10);
        assert_eq!(all.back().map(|l| l.at.0), Some(MOST_LINES as u64 + 9));
        assert_eq!(all.front().map(|l| l.at.0), Some(all.dropped()));
        let long: LogLines = (0..10_000).map(|n| line(n, "x".repeat(8 << 10))).collect();
        assert!(long.bytes <= MOST_BYTES && long.len() > 3_000);
        // a single chunk is never dropped, so the newest line is always there
        assert_eq!(long.back().map(|l| l.at.0), Some(9_999));
    }

    #[test]
    fn a_clone_is_not_changed_by_what_comes_later() {
        let mut lines: LogLines = (0..600).map(numbered).collect();
        let before = lines.clone();
        lines.push(numbered(600));
        lines.remove_from_end(400);
        assert_eq!((before.len(), lines.len()), (600, 600));
        assert!(before.iter().map(|l| l.at.0).eq(0..600));
    }

    proptest! {
        #[test]
        fn it_is_a_list(steps in prop::collection::vec(prop::option::of(0usize..700), 0..900)) {
            let mut list = Vec::new();
            let mut lines = LogLines::default();
            for (n, step) in steps.into_iter().enumerate() {
                if let Some(nth) = step {
                    let removed = (nth < list.len()).then(|| list.remove(list.len() - 1 - nth));
                    prop_assert_eq!(lines.remove_from_end(nth), removed);
                } else {
                    for _ in 0..7 {
                        list.push(numbered(n));
                        lines.push(numbered(n));
                    }
                }
            }
            prop_assert_eq!(lines.len(), list.len());
            prop_assert!(lines.iter().eq(list.iter()));
            prop_assert!(lines.iter().rev().eq(list.iter().rev()));
            for at in [0, 1, list.len() / 2, list.len().saturating_sub(1), list.len()] {
                prop_assert_eq!(lines.get(at), list.get(at));
            }
            prop_assert_eq!(lines.bytes, list.iter().map(bytes).sum::<usize>());
        }
    }
}
