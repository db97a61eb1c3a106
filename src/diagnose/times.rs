//! The times that a log has before its lines, and whether the job stood still by them.
//!
//! A text has no readings, but a job of which nothing came for ten minutes, and after which
//! nothing but its end came, did not get on.

use std::sync::LazyLock;

use jiff::civil::date;
use regex::Regex;

use crate::model::{Event, JobChange, Phase, Progress};

/// Nothing came for so long, in seconds.
const STOOD_S: i64 = 600;
/// A clock that goes back by more than this has passed midnight.
const HALF_A_DAY_S: i64 = 12 * 3600;
/// Characters at the beginning of a line in which its time stands.
const WIDTH: usize = 48;

/// A time of day, perhaps with its date.
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:\b(?P<y>20\d\d)-(?P<mo>\d\d)-(?P<d>\d\d)[T ]|\b)(?P<h>[01]\d|2[0-3]):(?P<m>[0-5]\d):(?P<s>[0-5]\d)(?:[.,Z+\-\]\s]|$)",
    )
    .ok()
});
/// What goes on beside a job: requests of a page, a server that says that it lives.
static BESIDE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?:"?(?:GET|POST|HEAD|OPTIONS) /\S* HTTP/|Server: alive=|\bheartbeat\b|\bkeep-?alive\b)"#).ok()
});
/// How much a bar has done, the total, and the time it has taken: `619M/4.99G [20:41<`.
static BAR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?P<what>.{0,120}?)\d+%\|.*\| *(?P<done>[\d.]+[kKMGT]?)/(?P<total>[\d.]+[kKMGT]?) \[(?P<took>(?:\d+:)?\d\d:\d\d)<",
    )
    .ok()
});

/// A time in which nothing came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stood {
    /// Seconds.
    pub(super) for_s: i64,
    /// Row of the last line before it.
    pub(super) from_row: u64,
    /// That line.
    pub(super) from: String,
    /// The phase that it fell into.
    pub(super) phase: Phase,
    /// A search of MIOpen was open.
    pub(super) searches: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The time of the last line that is not beside the job: seconds, row, text.
    last: Option<(i64, u64, String)>,
    /// Days that a clock without a date has gone round.
    midnights: i64,
    stood: Option<Stood>,
    bars: Vec<Bar>,
    /// How far each bar of the adapter has come.
    furthest: Vec<(Option<String>, f64)>,
}

/// The state of a bar since which it has not advanced.
#[derive(Debug)]
struct Bar {
    what: String,
    done: String,
    since_s: i64,
    row: u64,
}

/// Bars that are remembered.
const MOST_BARS: usize = 16;

/// The job as it was before a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    pub(super) in_flight: bool,
    pub(super) phase: Phase,
    pub(super) searches: bool,
}

impl Times {
    /// Takes a line as it was printed, before what follows from it.
    pub(super) fn line(&mut self, row: u64, text: &str, before: Before) {
        let now = self.gap(text, before);
        self.bar(row, text, before);
        let beside = self.last.is_some() && BESIDE.as_ref().is_some_and(|r| r.is_match(text));
        match now {
            _ if beside || text.trim().is_empty() => {}
            Some(now) => self.last = Some((now, row, text.trim().to_owned())),
            // it came at a time that is not known
            None => self.last = None,
        }
    }

    /// The time of a line; a long one since the last is noted.
    fn gap(&mut self, text: &str, before: Before) -> Option<i64> {
        let mut now = moment(text)? + self.midnights * 24 * 3600;
        if let Some((last, row, from)) = &self.last {
            if *last - now > HALF_A_DAY_S {
                self.midnights += 1;
                now += 24 * 3600;
            }
            let for_s = now - last;
            let phase = phase_at(from, before.phase);
            let decodes = phase == Phase::VaeDecode && phase != before.phase;
            if for_s >= STOOD_S && (before.in_flight || decodes) {
                self.stood = Some(Stood {
                    for_s,
                    from_row: *row,
                    from: from.clone(),
                    phase,
                    searches: before.searches,
                });
            }
        }
        Some(now)
    }

    fn bar(&mut self, row: u64, text: &str, before: Before) {
        // most lines are no bar
        let bar = BAR.as_ref().filter(|_| text.contains("%|"));
        let Some(c) = bar.and_then(|r| r.captures(text)) else {
            return;
        };
        let what = format!("{}/{}", &c["what"], &c["total"]);
        let took = seconds(&c["took"]);
        let Some(bar) = self.bars.iter_mut().find(|b| b.what == what) else {
            if self.bars.len() == MOST_BARS {
                self.bars.remove(0);
            }
            self.bars.push(Bar {
                what,
                done: c["done"].to_owned(),
                since_s: took,
                row,
            });
            return;
        };
        if bar.done != c["done"] || took < bar.since_s {
            (bar.done, bar.since_s, bar.row) = (c["done"].to_owned(), took, row);
        } else if took - bar.since_s >= STOOD_S && c["done"] != c["total"] {
            self.stood = Some(Stood {
                for_s: took - bar.since_s,
                from_row: bar.row,
                from: text.trim().to_owned(),
                phase: before.phase,
                searches: false,
            });
        }
    }

    /// Something followed from the line at hand.
    pub(super) fn observe(&mut self, event: &Event) {
        let moves = match event {
            Event::Job(job) => !matches!(job, JobChange::Failed { .. }),
            Event::Phase(_) | Event::Find(_) | Event::Artefact(_) => true,
            Event::Progress(p) => self.advances(p),
            _ => false,
        };
        if moves {
            self.stood = None;
        }
    }

    /// Whether a bar is further than it was; one that is painted again is not.
    fn advances(&mut self, p: &Progress) -> bool {
        if let Some((_, done)) = self.furthest.iter_mut().find(|(what, _)| *what == p.what) {
            let same = done.to_bits() == p.done.to_bits();
            *done = p.done;
            return !same;
        }
        if self.furthest.len() == MOST_BARS {
            self.furthest.remove(0);
        }
        self.furthest.push((p.what.clone(), p.done));
        true
    }

    /// The time in which nothing came and after which nothing of the job came any more.
    pub(super) const fn stood(&self) -> Option<&Stood> {
        self.stood.as_ref()
    }
}

/// The phase, where the line tells it better than the adapter knows.
fn phase_at(text: &str, known: Phase) -> Phase {
    let text = text.to_ascii_lowercase();
    let decodes = text.contains("vae") && text.contains("decod") || text.contains("decoding");
    let over = ["time=", "took", "taking", "complete", "done", "finished"];
    if decodes && !text.contains("encod") && !over.iter().any(|word| text.contains(word)) {
        Phase::VaeDecode
    } else {
        known
    }
}

/// Seconds since the beginning of its day, or of 2000 where the date stands there.
fn moment(text: &str) -> Option<i64> {
    let end = text
        .char_indices()
        .nth(WIDTH)
        .map_or(text.len(), |(i, _)| i);
    let c = TIME.as_ref()?.captures(&text[..end])?;
    let number = |name: &str| c.name(name).and_then(|m| m.as_str().parse::<i64>().ok());
    let of_day = number("h")? * 3600 + number("m")? * 60 + number("s")?;
    let day = match (number("y"), number("mo"), number("d")) {
        (Some(y), Some(m), Some(d)) => {
            let day = jiff::civil::Date::new(
                i16::try_from(y).ok()?,
                i8::try_from(m).ok()?,
                i8::try_from(d).ok()?,
            );
            i64::from((day.ok()? - date(2000, 1, 1)).get_days())
        }
        _ => 0,
    };
    Some(day * 24 * 3600 + of_day)
}

/// `[1:]20:41` in seconds.
fn seconds(clock: &str) -> i64 {
    clock
        .split(':')
        .filter_map(|n| n.parse::<i64>().ok())
        .fold(0, |sum, n| sum * 60 + n)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AT_WORK: Before = Before {
        in_flight: true,
        phase: Phase::Sampling,
        searches: false,
    };

    fn of(lines: &[&str]) -> Option<Stood> {
        let mut times = Times::default();
        for (row, line) in (1..).zip(lines) {
            times.line(row, line, AT_WORK);
        }
        times.stood().cloned()
    }

    #[test]
    fn every_pattern_is_valid() {
        assert!(TIME.is_some() && BESIDE.is_some() && BAR.is_some());
    }

    #[test]
    fn a_long_time_in_which_nothing_came() {
        let stood = of(&[
            "Okt 29 19:12:51 strix python[8812]: decoding 1 latents",
            "Okt 29 21:47:03 strix systemd[1104]: Stopping comfyui.service",
            "Okt 29 21:48:33 strix systemd[1104]: Killing",
        ]);
        let stood = stood.unwrap();
        assert_eq!((stood.for_s, stood.from_row), (9252, 1));
        assert_eq!(stood.phase, Phase::VaeDecode);
        // over midnight, with dates and without
        for (from, to) in [
            (
                "[2026-11-02 23:55:00,114] step",
                "[2026-11-03 00:10:01,002] stop",
            ),
            ("23:55:00-310441 INFO step", "00:10:01-310441 INFO stop"),
            ("2026-12-31T23:55:00.1Z step", "2027-01-01T00:10:01.1Z stop"),
        ] {
            assert_eq!(of(&[from, to]).unwrap().for_s, 901, "{from}");
        }
    }

    #[test]
    fn what_goes_on_beside_the_job_is_no_movement() {
        let mut lines = vec!["10:00:00 INFO VAE decode: tile=False".to_owned()];
        for minute in 1..=20 {
            lines.push(format!(
                "10:{minute:02}:00 INFO Server: alive=True current='VAE'"
            ));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let stood = of(&lines).unwrap();
        assert_eq!((stood.for_s, stood.from_row), (1200, 1));
        assert_eq!(of(&lines[..9]), None, "not long enough");
    }

    #[test]
    fn what_comes_after_shows_that_it_went_on() {
        let mut times = Times::default();
        times.line(1, "10:00:00 a", AT_WORK);
        times.line(2, "10:20:00 b", AT_WORK);
        assert!(times.stood().is_some());
        times.observe(&Event::Job(JobChange::Done));
        assert_eq!(times.stood(), None);
    }

    #[test]
    fn a_bar_that_is_painted_with_the_same_count() {
        let bar = |done: &str, took: &str| {
            format!("model-00001.safetensors:  12%|#2   | {done}/4.99G [{took}<2:24:44, 503kB/s]")
        };
        let (first, last) = (bar("619M", "00:41"), bar("619M", "20:41"));
        assert_eq!(of(&[&first, &last]).unwrap().for_s, 1200);
        assert_eq!(of(&[&first, &bar("700M", "20:41")]), None);
        assert_eq!(of(&[&first, &bar("619M", "05:41")]), None);
    }

    #[test]
    fn a_line_without_a_time_may_have_come_at_any() {
        assert_eq!(of(&["10:00:00 a", "steps: 3", "11:00:00 b"]), None);
    }

    #[test]
    fn a_rest_between_jobs_is_none() {
        let mut times = Times::default();
        let rest = Before {
            in_flight: false,
            ..AT_WORK
        };
        times.line(1, "10:00:00 Prompt executed in 3 s", rest);
        times.line(2, "12:00:00 got prompt", rest);
        assert_eq!(times.stood(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(lines in prop::collection::vec("\\PC{0,60}|2026-9\\d-\\d\\d 2\\d:\\d\\d:\\d\\d x|\\d\\d?%\\|#\\| \\d/\\d \\[\\d\\d:\\d\\d<", 0..20)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let _ = of(&lines);
        }
    }
}
