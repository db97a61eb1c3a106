//! The answers to the three questions, in the form in which a verdict carries them.

use crate::model::{Answer, Answered, Mono, Questions, Waits, WaitsFor};

use super::job::Job;
use super::rule;
use super::thresholds::secs;
use super::{Detector, Life};

impl Detector {
    /// The three questions and their answers at this moment; absent while no process runs.
    pub fn answered(&self, now: Mono) -> Option<Questions> {
        (self.life == Life::Running).then(|| self.questions(now))
    }

    fn questions(&self, now: Mono) -> Questions {
        let moves = self.answer_moves(now);
        let waits = if moves.answer == Answer::Yes {
            let holder = self.holder(now);
            Waits {
                answer: WaitsFor::None,
                pid: holder.map(|h| h.0),
                tid: holder.map(|h| h.1),
                ..Waits::UNKNOWN
            }
        } else {
            self.waits(now)
        };
        Questions {
            job: self.answer_in_flight(),
            moves,
            waits,
        }
    }

    fn answer_in_flight(&self) -> Answered {
        let job = &self.job_answer;
        let (answer, since) = match job.job {
            Job::InFlight(since) => (Answer::Yes, since),
            Job::Waiting(_) => (Answer::No, job.since),
            Job::Ended => (Answer::Done, job.since),
            Job::Unknown => (Answer::Unknown, job.since),
        };
        Answered::new(answer, job.source, Some(seconds(since)))
    }

    fn answer_moves(&self, now: Mono) -> Answered {
        let (at, source) = self.movement.last();
        let facts = self.view(now);
        if let Some(why) = facts.channels.blind(now, &self.thresholds) {
            return Answered::new(Answer::Unknown, why, None);
        }
        if now.since(at) < secs(self.thresholds.silence_sign_s) {
            return Answered::new(Answer::Yes, source.words(), Some(seconds(at)));
        }
        if self.peer_is_uncounted(now) {
            let why = "bytes of the peer that the job waits for cannot be counted";
            return Answered::new(Answer::Unknown, why, Some(seconds(at)));
        }
        let still = format!(
            "nothing of the job for {}; before that {}",
            rule::span(now.since(at)),
            source.words()
        );
        Answered::new(Answer::No, still, Some(seconds(at)))
    }

    /// Whether the holder waits for a peer whose bytes have no count.
    pub(super) fn peer_is_uncounted(&self, now: Mono) -> bool {
        let holder = self.holder(now);
        let thread = holder.and_then(|id| self.probes.thread(now, id));
        thread.is_some_and(|(_, t)| super::waits::peer_is_uncounted(&t.wait))
    }
}

/// Seconds of the stream, to a tenth.
#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a run are far below 2^52"
)]
fn seconds(at: Mono) -> f64 {
    (at.0 as f64 / 100.0).round() / 10.0
}
