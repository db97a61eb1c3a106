//! The three questions behind a verdict in words, the same on screen, in plain text and when
//! they are copied.

use std::time::Duration;

use crate::model::time::clock;
use crate::model::{Answered, Questions, Waits, WaitsFor};

use super::text::ago;

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// `job`, `moves` or `waits`: its key in JSON.
    pub(super) name: &'static str,
    /// The answer in a word.
    pub(super) answer: &'static str,
    /// What says so; empty: nothing does.
    pub(super) source: String,
}

impl Asked {
    /// `yes; a bar of steps`.
    pub(super) fn words(&self) -> String {
        format!("{}; {}", self.answer, self.source)
    }
}

/// All three in their order.
pub(super) fn asked(q: &Questions) -> [Asked; 3] {
    let [job, moves] = [("job", &q.job), ("moves", &q.moves)].map(|(name, a)| Asked {
        name,
        answer: a.answer.as_str(),
        source: a.source.clone(),
    });
    [
        Asked {
            source: since(&q.job),
            ..job
        },
        moves,
        Asked {
            name: "waits",
            answer: q.waits.answer.as_str(),
            source: waits(&q.waits),
        },
    ]
}

fn since(answered: &Answered) -> String {
    let source = &answered.source;
    match answered.since_s.map(Duration::try_from_secs_f64) {
        Some(Ok(since)) => format!("{source}, since {}", clock(since)),
        _ => source.clone(),
    }
}

/// `thread 812 of process 807 in ioctl (/dev/kfd) for 48 s`.
fn waits(w: &Waits) -> String {
    if w.answer == WaitsFor::None {
        return "the job moves".to_owned();
    }
    let mut words = match (w.tid, w.pid) {
        (Some(tid), Some(pid)) if tid != pid => format!("thread {tid} of process {pid}"),
        (Some(tid), _) => format!("thread {tid}"),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => return "the thread of the job is not known or cannot be read".to_owned(),
    };
    if let Some(within) = &w.within {
        words = format!("{words} in {within}");
    }
    if let Some(detail) = &w.detail {
        words = format!("{words} ({detail})");
    }
    match w.for_s.map(Duration::try_from_secs_f64) {
        Some(Ok(span)) => format!("{words} for {}", ago(span)),
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Answer;

    fn questions(waits: Waits) -> Questions {
        Questions {
            job: Answered::new(Answer::Yes, "a bar of steps", Some(72.4)),
            moves: Answered::new(
                Answer::No,
                "a step 49 s ago, and nothing of the job since",
                Some(80.0),
            ),
            waits,
        }
    }

    fn words(waits: Waits) -> String {
        let [_, _, waits] = asked(&questions(waits));
        format!("{} {}: {}", waits.name, waits.answer, waits.source)
    }

    #[test]
    fn an_answer_says_its_source_and_since_when() {
        let [job, moves, _] = asked(&questions(Waits::UNKNOWN));
        assert_eq!(
            (job.answer, job.source.as_str()),
            ("yes", "a bar of steps, since 00:01:12")
        );
        assert_eq!(
            (moves.answer, moves.source.as_str()),
            ("no", "a step 49 s ago, and nothing of the job since")
        );
    }

    #[test]
    fn a_time_that_is_no_time_is_left_out() {
        let mut q = questions(Waits::UNKNOWN);
        for since_s in [None, Some(f64::NAN), Some(-1.0)] {
            q.job.since_s = since_s;
            assert_eq!(asked(&q)[0].source, "a bar of steps");
        }
    }

    #[test]
    fn a_wait_names_its_thread_and_place() {
        let card = Waits {
            answer: WaitsFor::Card,
            pid: Some(807),
            tid: Some(812),
            within: Some("ioctl".to_owned()),
            detail: Some("/dev/kfd".to_owned()),
            for_s: Some(48.0),
        };
        assert_eq!(
            words(card.clone()),
            "waits card: thread 812 of process 807 in ioctl (/dev/kfd) for 48 s"
        );
        let main = Waits {
            tid: Some(807),
            within: None,
            detail: None,
            for_s: None,
            ..card
        };
        assert_eq!(words(main), "waits card: thread 807");
        assert_eq!(
            words(Waits::UNKNOWN),
            "waits unknown: the thread of the job is not known or cannot be read"
        );
        let none = Waits {
            answer: WaitsFor::None,
            tid: Some(1),
            ..Waits::UNKNOWN
        };
        assert_eq!(words(none), "waits none: the job moves");
    }
}
