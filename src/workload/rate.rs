//! How many lines a second are passed on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::model::Line;

/// Lines a second in the long run.
pub const LINES_PER_SECOND: u32 = 200;

/// Lines that may come at once.
pub const BURST: u32 = 2000;

/// Only the last state of a bar within this time is kept.
pub const BAR_PERIOD: Duration = Duration::from_millis(100);

/// The last lines that did not pass are kept: a flood's end says what became of it.
const TAIL: usize = 40;

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

/// Bounds the lines of one stream. Errors, MIOpen's lines and the lines that begin and
/// end a job have a reserve that ordinary lines cannot use up.
#[derive(Debug)]
pub struct RateLimit {
    ordinary: Bucket,
    reserve: Bucket,
    last: Option<Instant>,
    bar_sent: Option<Instant>,
    held: Option<Line>,
    /// Lines since the last that passed, the latest ones; not counted as dropped yet.
    tail: VecDeque<Line>,
    dropped: u64,
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
            dropped: 0,
        }
    }

    /// Takes a line and appends what may pass to `out`, in order.
    pub fn push(&mut self, line: Line, now: Instant, out: &mut Vec<Line>) {
        if let Some(last) = self.last {
            let by = now.saturating_duration_since(last);
            self.ordinary.grow(by);
            self.reserve.grow(by);
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
    pub fn release_bar(&mut self, now: Instant, out: &mut Vec<Line>) {
        let due = self
            .bar_sent
            .is_none_or(|t| now.saturating_duration_since(t) >= BAR_PERIOD);
        if due && let Some(bar) = self.held.take() {
            self.bar_sent = Some(now);
            self.pass(bar, out);
        }
    }

    /// The stream ended: passes the held state of a bar.
    pub fn flush(&mut self, out: &mut Vec<Line>) {
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
    pub fn release_tail(&mut self, now: Instant, out: &mut Vec<Line>) {
        if self.tail_due().is_some_and(|due| now >= due) {
            out.extend(self.tail.drain(..));
        }
    }

    /// Nothing more is to come: passes all that is held.
    pub fn end(&mut self, out: &mut Vec<Line>) {
        self.flush(out);
        out.extend(self.tail.drain(..));
    }

    /// Lines dropped since the last call. States of a bar that a later state rewrote
    /// within [`BAR_PERIOD`] are not counted: a terminal does not show them either.
    pub const fn take_dropped(&mut self) -> u64 {
        std::mem::replace(&mut self.dropped, 0)
    }

    fn pass(&mut self, line: Line, out: &mut Vec<Line>) {
        if self.ordinary.take() || (matters(&line.text) && self.reserve.take()) {
            for _older in self.tail.drain(..) {
                self.dropped += 1;
            }
            out.push(line);
            return;
        }
        if self.tail.len() == TAIL {
            self.tail.pop_front();
            self.dropped += 1;
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

    #[test]
    fn a_flood_is_bounded_counted_and_spares_what_matters() {
        let mut r = RateLimit::new(100, 100);
        let start = Instant::now();
        let mut out = Vec::new();
        for i in 0..50_000u32 {
            let at = start + Duration::from_micros(u64::from(i) * 20);
            r.push(line("noise", false), at, &mut out);
        }
        let at = start + Duration::from_secs(1);
        r.push(line("RuntimeError: HIP error", false), at, &mut out);
        assert!(out.len() <= 202, "{}", out.len());
        assert_eq!(out.last().unwrap().text, "RuntimeError: HIP error");
        let kept = u64::try_from(out.len()).unwrap();
        assert_eq!(r.take_dropped(), 50_001 - kept);
        assert_eq!(r.take_dropped(), 0);
    }

    #[test]
    fn the_last_lines_of_a_flood_pass_when_it_ends() {
        let mut r = RateLimit::new(10, 10);
        let start = Instant::now();
        let mut out = Vec::new();
        for i in 0..1000 {
            r.push(line(&i.to_string(), false), start, &mut out);
        }
        assert_eq!(out.len(), 10);
        r.release_tail(start + Duration::from_millis(100), &mut out);
        assert_eq!(out.len(), 10);
        r.release_tail(start + ENDED, &mut out);
        assert_eq!(out.len(), 10 + TAIL);
        assert_eq!(out.last().unwrap().text, "999");
        assert_eq!(r.take_dropped(), 1000 - 10 - 40);
        r.push(line("x", false), start + ENDED, &mut out);
        r.push(line("y", false), start + ENDED, &mut out);
        r.push(line("z", false), start + ENDED, &mut out);
        r.push(line("end", false), start + ENDED, &mut out);
        r.end(&mut out);
        assert_eq!(out.last().unwrap().text, "end");
        assert_eq!(r.take_dropped(), 0);
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
        assert_eq!(out[1].text, "49%");
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
        let tail: Vec<_> = out[2..].iter().map(|l| l.text.as_str()).collect();
        assert_eq!(tail, ["50%", "next"]);
        assert_eq!(r.take_dropped(), 0);
    }
}
