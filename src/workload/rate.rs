//! How many lines a second are passed on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::model::{Flood, Line, Repeated};

/// Lines a second in the long run.
pub const LINES_PER_SECOND: u32 = 200;

/// Lines that may come at once.
pub const BURST: u32 = 2000;

/// Only the last state of a bar within this time is kept.
pub const BAR_PERIOD: Duration = Duration::from_millis(100);

/// The last lines that did not pass are kept: a flood's end says what became of it.
const TAIL: usize = 40;

/// Once a flood has used up what may pass, so many lines may pass again before one does: what
/// is shown of it are runs of lines that stand together.
const RUN: f64 = 40.0;

/// Bytes of text in a stretch of a flood before it is passed on.
const STRETCH: usize = 32 << 10;

/// Bytes of a flood's text that are kept in all, and a second in the long run.
const KEPT: usize = 64 << 20;
const KEPT_A_SECOND: usize = 1 << 20;

/// What a kept line costs besides its text.
const OVERHEAD: usize = 24;

/// A flood has ended when nothing came for this long.
const ENDED: Duration = Duration::from_millis(300);

/// Tokens that grow with time.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    per_second: f64,
    burst: f64,
}

impl Bucket {
    fn new(per_second: u32, burst: u32) -> Self {
        Self {
            tokens: f64::from(burst),
            per_second: f64::from(per_second),
            burst: f64::from(burst),
        }
    }

    fn grow(&mut self, by: Duration) {
        self.tokens = (self.tokens + by.as_secs_f64() * self.per_second).min(self.burst);
    }

    fn take(&mut self) -> bool {
        let there = self.tokens >= 1.0;
        if there {
            self.tokens -= 1.0;
        }
        there
    }
}

/// What passes: a line, or a stretch of lines that do not pass one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A line, or a state of a bar.
    Line(Line),
    /// Lines of a flood.
    Flood(Flood),
}

impl Piece {
    /// Whether it is a state of a bar.
    pub const fn is_bar(&self) -> bool {
        matches!(self, Self::Line(line) if line.bar)
    }

    /// How many lines it is.
    pub const fn lines(&self) -> u64 {
        match self {
            Self::Line(_) => 1,
            Self::Flood(flood) => flood.lines,
        }
    }
}

/// How much of a flood is kept.
#[derive(Debug)]
struct FloodBudget {
    left: usize,
    bucket: Bucket,
}

impl Default for FloodBudget {
    fn default() -> Self {
        let a_second = u32::try_from(KEPT_A_SECOND).unwrap_or(u32::MAX);
        Self {
            left: KEPT,
            bucket: Bucket::new(a_second, a_second.saturating_mul(8)),
        }
    }
}

impl FloodBudget {
    fn take(&mut self, bytes: usize) -> bool {
        let cost = u32::try_from(bytes).map_or(f64::INFINITY, f64::from);
        let allowed = bytes <= self.left && self.bucket.tokens >= cost;
        if allowed {
            self.left -= bytes;
            self.bucket.tokens -= cost;
        }
        allowed
    }
}

/// The stretch of a flood that is being put together.
#[derive(Debug, Default)]
struct Stretch {
    flood: Option<Flood>,
    bytes: usize,
    /// The line before was kept.
    keeps: bool,
    budget: FloodBudget,
}

impl Stretch {
    fn push(&mut self, line: Line) {
        let flood = self.flood.get_or_insert_with(|| Flood {
            attempt: line.attempt,
            stream: line.stream,
            row: line.row,
            lines: 0,
            kept: Vec::new(),
        });
        flood.lines += 1;
        let again = flood.kept.last_mut().filter(|last| last.text == line.text);
        if let (Some(last), true) = (again, self.keeps) {
            last.times += 1;
            return;
        }
        let bytes = line.text.len() + OVERHEAD;
        self.keeps = self.budget.take(bytes);
        if self.keeps {
            self.bytes += bytes;
            flood.kept.push(Repeated {
                text: line.text,
                times: 1,
            });
        }
    }

    fn end(&mut self, out: &mut Vec<Piece>) {
        self.bytes = 0;
        out.extend(self.flood.take().map(Piece::Flood));
    }
}

/// Bounds the lines of one stream. Errors, MIOpen's lines and the lines that begin and
/// end a job have a reserve that ordinary lines cannot use up.
#[derive(Debug)]
pub struct RateLimit {
    ordinary: Bucket,
    reserve: Bucket,
    last: Option<Instant>,
    bar_sent: Option<Instant>,
    held: Option<Line>,
    /// Lines since the last that passed, the latest ones; not in the flood yet.
    tail: VecDeque<Line>,
    stretch: Stretch,
    /// A flood has used up what may pass.
    shut: bool,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::new(LINES_PER_SECOND, BURST)
    }
}

impl RateLimit {
    /// At most `per_second` lines in the long run and `burst` at once; as many again of
    /// the lines that matter.
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self {
            ordinary: Bucket::new(per_second, burst),
            reserve: Bucket::new(per_second, burst),
            last: None,
            bar_sent: None,
            held: None,
            tail: VecDeque::new(),
            stretch: Stretch::default(),
            shut: false,
        }
    }

    /// Takes a line and appends what may pass to `out`, in order.
    pub fn push(&mut self, line: Line, now: Instant, out: &mut Vec<Piece>) {
        if let Some(last) = self.last {
            let by = now.saturating_duration_since(last);
            self.ordinary.grow(by);
            self.reserve.grow(by);
            self.stretch.budget.bucket.grow(by);
        }
        self.last = Some(now);
        if line.bar {
            self.held = Some(line);
            self.release_bar(now, out);
            return;
        }
        if let Some(bar) = self.held.take() {
            self.pass(bar, out);
        }
        self.pass(line, out);
    }

    /// When a held state of a bar is due.
    pub fn bar_due(&self) -> Option<Instant> {
        self.held.as_ref()?;
        Some(self.bar_sent.map_or_else(Instant::now, |t| t + BAR_PERIOD))
    }

    /// Passes the held state of a bar if it is due.
    pub fn release_bar(&mut self, now: Instant, out: &mut Vec<Piece>) {
        let due = self
            .bar_sent
            .is_none_or(|t| now.saturating_duration_since(t) >= BAR_PERIOD);
        if due && let Some(bar) = self.held.take() {
            self.bar_sent = Some(now);
            self.pass(bar, out);
        }
    }

    /// The stream ended: passes the held state of a bar.
    pub fn flush(&mut self, out: &mut Vec<Piece>) {
        if let Some(bar) = self.held.take() {
            self.pass(bar, out);
        }
    }

    /// When the last lines of a flood are due, if it ends now.
    pub fn tail_due(&self) -> Option<Instant> {
        let last = self.last.filter(|_| !self.tail.is_empty())?;
        Some(last + ENDED)
    }

    /// Passes the last lines of a flood if it has ended.
    pub fn release_tail(&mut self, now: Instant, out: &mut Vec<Piece>) {
        if self.tail_due().is_some_and(|due| now >= due) {
            self.pass_tail(out);
        }
    }

    /// Nothing more is to come: passes all that is held.
    pub fn end(&mut self, out: &mut Vec<Piece>) {
        self.flush(out);
        self.pass_tail(out);
    }

    fn pass_tail(&mut self, out: &mut Vec<Piece>) {
        self.stretch.end(out);
        out.extend(self.tail.drain(..).map(Piece::Line));
    }

    /// Whether an ordinary line may pass now.
    fn takes_ordinary(&mut self) -> bool {
        if self.shut && self.ordinary.tokens < RUN.min(self.ordinary.burst) {
            return false;
        }
        self.shut = !self.ordinary.take();
        !self.shut
    }

    fn pass(&mut self, line: Line, out: &mut Vec<Piece>) {
        if self.takes_ordinary() || (matters(&line.text) && self.reserve.take()) {
            for older in self.tail.drain(..) {
                self.stretch.push(older);
            }
            self.stretch.end(out);
            out.push(Piece::Line(line));
            return;
        }
        if self.tail.len() == TAIL
            && let Some(oldest) = self.tail.pop_front()
        {
            self.stretch.push(oldest);
            if self.stretch.bytes >= STRETCH {
                self.stretch.end(out);
            }
        }
        self.tail.push_back(line);
    }
}

/// Fragments of lines that a flood of ordinary ones must not push out.
const MATTERS: &[&str] = &[
    "MIOpen",
    "Error",
    "error",
    "Exception",
    "exception",
    "Traceback",
    "HSA ",
    "fault",
    "got prompt",
    "Prompt executed",
    "Decoded.",
    "Running on local URL",
    "latent_padding_size",
    "section_index",
];

/// Whether a line must outlive a flood of ordinary ones.
pub(super) fn matters(text: &str) -> bool {
    MATTERS.iter().any(|m| text.contains(m))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Stream;

    fn line(text: &str, bar: bool) -> Line {
        Line {
            attempt: 1,
            row: 0,
            stream: Stream::Stdout,
            text: text.to_owned(),
            bar,
            truncated: false,
            chatter: false,
        }
    }

    fn texts(out: &[Piece]) -> Vec<&str> {
        let lines = out.iter().filter_map(|piece| match piece {
            Piece::Line(line) => Some(line.text.as_str()),
            Piece::Flood(_) => None,
        });
        lines.collect()
    }

    /// Lines of floods, and those of them that are lost.
    fn floods(out: &[Piece]) -> (u64, u64) {
        let floods = out.iter().filter_map(|piece| match piece {
            Piece::Line(_) => None,
            Piece::Flood(flood) => Some((flood.lines, flood.lost())),
        });
        floods.fold((0, 0), |(n, m), (lines, lost)| (n + lines, m + lost))
    }

    /// Every line in its order, those of floods too; absent where one is lost.
    fn whole(out: &[Piece]) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        for piece in out {
            match piece {
                Piece::Line(line) => lines.push(line.text.clone()),
                Piece::Flood(flood) if flood.lost() > 0 => return None,
                Piece::Flood(flood) => lines.extend(flood.kept.iter().flat_map(|r| {
                    let times = usize::try_from(r.times).unwrap();
                    std::iter::repeat_n(r.text.clone(), times)
                })),
            }
        }
        Some(lines)
    }

    #[test]
    fn a_flood_is_bounded_and_spares_what_matters() {
        let mut r = RateLimit::new(100, 100);
        let start = Instant::now();
        let mut out = Vec::new();
        for i in 0..50_000u32 {
            let at = start + Duration::from_micros(u64::from(i) * 20);
            r.push(line("noise", false), at, &mut out);
        }
        let at = start + Duration::from_secs(1);
        r.push(line("RuntimeError: HIP error", false), at, &mut out);
        let passed = texts(&out);
        assert!(passed.len() <= 202, "{}", passed.len());
        assert_eq!(passed.last(), Some(&"RuntimeError: HIP error"));
        let kept = u64::try_from(passed.len()).unwrap();
        // the same line again and again costs next to nothing
        assert_eq!(floods(&out), (50_001 - kept, 0));
        assert!(out.len() < 220, "{}", out.len());
    }

    #[test]
    fn five_thousand_lines_a_second_are_all_in_the_record_and_every_gap_is_in_its_place() {
        let mut r = RateLimit::default();
        let start = Instant::now();
        let mut out = Vec::new();
        let text = |i: u32| format!("line {i} of a program that tells of each tensor that it sees");
        for i in 0..225_000u32 {
            let at = start + Duration::from_micros(u64::from(i) * 200);
            let mut line = line(&text(i), false);
            line.row = u64::from(i) + 1;
            r.push(line, at, &mut out);
        }
        r.end(&mut out);
        let whole = whole(&out).expect("nothing is lost");
        assert_eq!(whole.len(), 225_000);
        assert!(
            (0..225_000u32)
                .zip(&whole)
                .all(|(i, line)| text(i) == *line)
        );
        // what is shown are runs of lines, and few pieces in all
        let shown = texts(&out).len();
        assert!((9_000..13_000).contains(&shown), "{shown}");
        assert!(out.len() - shown < 1000, "{}", out.len() - shown);
        // each stretch says where it begins
        let mut row = 1;
        for piece in &out {
            match piece {
                Piece::Line(line) => assert_eq!(line.row, row),
                Piece::Flood(flood) => assert_eq!(flood.row, row),
            }
            row += piece.lines();
        }
    }

    #[test]
    fn what_is_kept_of_a_flood_is_bounded_and_what_is_lost_is_counted() {
        let mut r = RateLimit::default();
        let start = Instant::now();
        let mut out = Vec::new();
        let wide = "x".repeat(8000);
        for i in 0..20_000u32 {
            let at = start + Duration::from_micros(u64::from(i) * 10);
            r.push(line(&format!("{i}{wide}"), false), at, &mut out);
        }
        r.end(&mut out);
        let (lines, lost) = floods(&out);
        let shown = u64::try_from(texts(&out).len()).unwrap();
        assert_eq!(lines + shown, 20_000);
        assert!(lost > 10_000, "{lost}");
        let kept = (lines - lost) * 8000;
        assert!(kept <= 10 << 20, "{kept}");
    }

    #[test]
    fn the_last_lines_of_a_flood_pass_when_it_ends() {
        let mut r = RateLimit::new(10, 10);
        let start = Instant::now();
        let mut out = Vec::new();
        for i in 0..1000 {
            r.push(line(&i.to_string(), false), start, &mut out);
        }
        assert_eq!(texts(&out).len(), 10);
        r.release_tail(start + Duration::from_millis(100), &mut out);
        assert_eq!(texts(&out).len(), 10);
        r.release_tail(start + ENDED, &mut out);
        assert_eq!(texts(&out).len(), 10 + TAIL);
        assert_eq!(texts(&out).last(), Some(&"999"));
        assert_eq!(floods(&out), (1000 - 10 - 40, 0));
        for text in ["x", "y", "z", "end"] {
            r.push(line(text, false), start + ENDED, &mut out);
        }
        r.end(&mut out);
        assert_eq!(texts(&out).last(), Some(&"end"));
        assert_eq!(whole(&out).map(|all| all.len()), Some(1004));
    }

    proptest! {
        #[test]
        fn no_line_is_lost_or_out_of_its_place_within_the_budget(
            lines in prop::collection::vec((0..4_u8, 0..40_u64), 0..400),
            per_second in 1..50_u32,
            burst in 1..100_u32,
        ) {
            let mut r = RateLimit::new(per_second, burst);
            let mut at = Instant::now();
            let mut out = Vec::new();
            let mut said = Vec::new();
            for (text, after) in lines {
                at += Duration::from_millis(after);
                let text = ["same", "error", "other", "last"][usize::from(text)];
                said.push(text.to_owned());
                r.push(line(text, false), at, &mut out);
            }
            r.end(&mut out);
            prop_assert_eq!(whole(&out), Some(said));
        }
    }

    #[test]
    fn only_the_last_state_of_a_bar_is_kept() {
        let mut r = RateLimit::default();
        let start = Instant::now();
        let mut out = Vec::new();
        for i in 0..50u64 {
            r.push(
                line(&format!("{i}%"), true),
                start + Duration::from_millis(i),
                &mut out,
            );
        }
        assert_eq!(out.len(), 1);
        assert_eq!(r.bar_due(), Some(start + BAR_PERIOD));
        r.release_bar(start + BAR_PERIOD, &mut out);
        assert_eq!(texts(&out)[1], "49%");
        r.push(
            line("50%", true),
            start + Duration::from_millis(110),
            &mut out,
        );
        r.push(
            line("next", false),
            start + Duration::from_millis(111),
            &mut out,
        );
        assert_eq!(texts(&out)[2..], ["50%", "next"]);
        assert_eq!(floods(&out), (0, 0));
    }
}
