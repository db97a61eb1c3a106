//! How the job stands: what has begun, failed, ended or survived, by the console, the agent and the readings.

use std::time::Duration;

use crate::model::{Cite, JobChange, Mono, Phase, Speaker};

use super::Context;
use crate::detect::after_bar::{AfterBar, Turn};
use crate::detect::errors::WITH;
use crate::detect::job::Job;
use crate::detect::signature;

/// The agent's words and the console's come by two ways, of which neither knows how far the
/// other is: for this long after a failure that was told by the one, what the other tells
/// may be of before. A program that writes into a pipe may keep its lines until it ends.
const TWO_WAYS: Duration = Duration::from_secs(30);
/// The agent reports the begin of a job this long after the console at most: what it says may be
/// read late, behind the last lines of the program.
const SAME_BEGIN: Duration = Duration::from_secs(10);
/// What the agent says this soon after the console has printed an exception may be older: neither
/// way is faster than the other while the supervisor catches up.
const MAY_BE_OLDER: Duration = Duration::from_secs(3);
/// A traceback this close to a failure that was told without a reason gives it.
const SAME_FAILURE: Duration = Duration::from_secs(10);

impl Context {
    /// Whether what `from` tells now may have been before the failure of the job, or before the
    /// exception that the console has just printed.
    pub(super) fn may_be_of_before(&self, now: Mono, from: Option<Speaker>) -> bool {
        let failed = |(at, by): (Mono, _)| by != from && now.since(at) < TWO_WAYS;
        let printed = |cite: &Cite| now.since(cite.at) < MAY_BE_OLDER;
        self.failure.is_some_and(failed)
            || (from == Some(Speaker::Agent) && self.printed.as_ref().is_some_and(printed))
    }

    /// Words of the program about its failure: those with which the job was declared failed,
    /// else what was printed about it, before or after.
    pub(in crate::detect) fn words_of_failure(&self) -> Option<&Cite> {
        let printed = || {
            let (at, _) = self.failure?;
            let near = |cite: &&Cite| {
                cite.at.since(at) <= SAME_FAILURE && at.since(cite.at) <= SAME_FAILURE
            };
            self.printed.as_ref().filter(near)
        };
        self.exception.as_ref().or_else(printed)
    }

    /// No job is in flight any more: a server waits, or the job has ended.
    pub(super) const fn job_is_over(&self) -> bool {
        matches!(self.job, Job::Waiting(_) | Job::Ended)
    }

    /// The last job failed and no other has begun: what is said now is the cleaning up.
    pub(super) const fn has_failed(&self) -> bool {
        self.failure.is_some() && self.job_is_over()
    }

    /// `from` tells that the job went on after whatever was reported.
    pub(super) fn survived(&mut self, now: Mono, from: Option<Speaker>) {
        if !self.may_be_of_before(now, from) && !self.has_failed() {
            self.outlived();
        }
    }

    /// A step of the job ended after whatever was reported.
    pub(super) fn outlived(&mut self) {
        self.errors.survived();
        self.evidence.survived();
        self.chain.clear();
        self.level_error = None;
        self.exception = None;
        self.printed = None;
    }

    /// Another step of the job began: what was reported some time before is survived.
    pub(super) fn step_ended(&mut self, now: Mono) {
        self.errors.outlived(now);
        self.evidence.outlived(now - WITH);
    }

    pub(super) fn observe_job(
        &mut self,
        now: Mono,
        seq: u64,
        from: Option<Speaker>,
        change: &JobChange,
    ) {
        if let Some(after) = &mut self.after_bar {
            after.goes_on = false;
        }
        match change {
            // the one that began with the program, told by its agent as well: by another way
            // than the console's lines, so that its last ones may be here before it
            JobChange::Started if self.job.in_flight() && self.in_its_first_phase() => {
                self.step_ended(now);
            }
            JobChange::Started if self.is_begun_job(now, from) => self.begun_by_agent = true,
            JobChange::Started => {
                self.delivered = false;
                self.job = Job::InFlight(now);
                self.begun_by_agent = from == Some(Speaker::Agent);
                self.waits_by_ready_words = false;
                self.result_at = None;
                self.failure = None;
                self.failed_in = None;
                // an error that speaks of the decode is what tells that the job went on
                let resumes = self.after_bar.and(self.last_line.as_ref()).map(|l| l.seq);
                self.errors.clear_but(resumes);
                self.evidence.clear_but(resumes);
                self.chain.clear();
                self.level_error = None;
                self.exception = None;
                self.printed = None;
                self.find = None;
            }
            JobChange::Waiting => {
                self.waits_by_ready_words = !matches!(self.job, Job::Ended | Job::InFlight(_));
                self.serves = true;
                self.has_waited = true;
                if self.job == Job::Unknown {
                    // the server is up all the same
                    self.errors.clear();
                    self.evidence.clear_but(None);
                    self.chain.clear();
                    self.level_error = None;
                    self.printed = None;
                }
                self.job = Job::Waiting(now);
            }
            // a script is one job: the end of a part of it, such as a pipeline call, ends nothing
            JobChange::Done if from == Some(Speaker::Agent) && !self.serves => {
                self.survived(now, from);
            }
            JobChange::Done => {
                self.job = Job::Ended;
                self.after_bar = self.bar_ended.map(AfterBar::new);
                self.survived(now, from);
                self.trouble.survived(now);
            }
            JobChange::Failed { why } => {
                self.job = Job::Ended;
                self.after_bar = None;
                // who told it first: the console's reader tells it again at the exit
                self.failure.get_or_insert((now, from));
                self.failed_in = Some((self.phase, self.section));
                // one who has no words for it does not take back those of another: the
                // agent says why, and the console's reader behind it knows of the exit alone
                if let Some(text) = why {
                    self.exception = Some(self.said(now, seq, text));
                }
            }
        }
    }

    /// Whether the agent reports the begin of the job that the console has seen begin, and whose
    /// end nobody has told: it buries no error of that job.
    fn is_begun_job(&self, now: Mono, from: Option<Speaker>) -> bool {
        let Job::InFlight(since) = self.job else {
            return false;
        };
        from == Some(Speaker::Agent) && !self.begun_by_agent && now.since(since) <= SAME_BEGIN
    }

    /// Whether nothing but the start of the program has been told of its job.
    const fn in_its_first_phase(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::Unknown)
    }

    /// The agent's words of a failed job that name an error of which nothing is known any
    /// more: they come by another way than the console's line, and a bar that was told late
    /// has buried it.
    pub(in crate::detect) fn failed_by_agent(&mut self, now: Mono, why: &str) {
        let Some(cite) = self.exception.clone() else {
            return;
        };
        if let Some(reported) = self.of_our_card(why, signature::of_line(why))
            && !self.errors.knows(reported.verdict)
        {
            self.errors.note_heard(reported, cite);
            self.errors.exception(now, true);
        }
    }

    /// A reading while a server may still be at the job whose bar has ended.
    pub(in crate::detect) fn observe_after_bar(&mut self, now: Mono, hard: bool) {
        if !self.goes_on_unsaid() && !matches!(self.job, Job::Waiting(_)) {
            return;
        }
        let search = self.find.is_some();
        let Some(after) = &mut self.after_bar else {
            return;
        };
        match after.observe(now, hard, search) {
            Some(Turn::GoesOn) => {
                self.job = Job::InFlight(after.ended);
                self.phase = Phase::VaeDecode;
                self.phase_since = after.ended;
            }
            Some(Turn::Rests) => {
                self.job = Job::Waiting(now);
                self.phase = Phase::Idle;
                self.phase_since = now;
            }
            None => {}
        }
    }

    /// Whether a job goes on by the readings alone.
    pub(in crate::detect) fn goes_on_unsaid(&self) -> bool {
        self.after_bar.is_some_and(|a| a.goes_on)
    }

    /// When an error was told of the job whose bar has ended, though the server said
    /// neither that it goes on nor that it failed.
    pub(in crate::detect) fn failed_after_bar(&self) -> Option<Mono> {
        let after = self.after_bar?;
        self.errors
            .told_since(after.ended, |at| after.is_of_the_job(at))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::{Event, Line, PhaseChange, Progress, VerdictId};

    #[test]
    fn who_knows_no_reason_does_not_take_back_the_one_that_was_given() {
        let mut context = Context::new(Mono::ZERO, false, BTreeMap::new());
        let failed = |why: Option<&str>| {
            Event::Job(JobChange::Failed {
                why: why.map(str::to_owned),
            })
        };
        let started = Event::Job(JobChange::Started);
        context.observe((Mono(1), 1), None, &started, None);
        context.observe((Mono(2), 2), None, &failed(Some("no room")), None);
        context.observe((Mono(3), 3), None, &failed(None), None);
        let text = context.exception.as_ref().map(|cite| cite.text.as_str());
        assert_eq!(text, Some("no room"));
        context.observe((Mono(4), 4), None, &started, None);
        assert_eq!(context.exception, None);
    }

    fn tells(context: &mut Context, at: u64, from: Option<Speaker>, event: &Event) {
        context.observe((Mono(at), at), from, event, None);
    }

    /// An exception that the console prints at this moment.
    fn raises(context: &mut Context, at: u64) {
        for text in [
            "Traceback (most recent call last):",
            "  File \"/x/gen.py\", line 3, in step",
            "RuntimeError: boom",
        ] {
            tells(context, at, None, &line(text, at));
        }
        assert!(context.printed.is_some());
    }

    fn step(done: f64) -> Event {
        Event::Progress(Progress {
            what: None,
            done,
            total: Some(20.0),
            seconds_per_step: None,
            sampling: true,
            closed: false,
        })
    }

    /// The console has seen a job begin, and a step of it.
    fn sampling() -> Context {
        let mut context = Context::new(Mono::ZERO, false, BTreeMap::new());
        tells(&mut context, 1, None, &Event::Job(JobChange::Started));
        let phase = PhaseChange {
            phase: Phase::Sampling,
            section: None,
            sections: None,
            on_cpu: false,
        };
        tells(&mut context, 2, None, &Event::Phase(phase));
        tells(&mut context, 1000, None, &step(3.0));
        context
    }

    #[test]
    fn words_of_the_agent_that_are_read_behind_an_exception_bury_none() {
        let started = Event::Job(JobChange::Started);
        let agent = Some(Speaker::Agent);
        let mut context = sampling();
        raises(&mut context, 5000);
        // the supervisor catches up: what the agent said came before the exception
        tells(&mut context, 5020, agent, &started);
        tells(&mut context, 5030, agent, &step(4.0));
        assert!(context.printed.is_some());
        assert!(context.begun_by_agent);
        // a step some time later shows that the program went on
        tells(&mut context, 9000, agent, &step(5.0));
        assert!(context.printed.is_none());
    }

    #[test]
    fn the_console_tells_in_its_own_order_and_the_next_job_is_another() {
        let started = Event::Job(JobChange::Started);
        let agent = Some(Speaker::Agent);
        let mut context = sampling();
        raises(&mut context, 5000);
        tells(&mut context, 5030, None, &step(4.0));
        assert!(context.printed.is_none(), "a step behind it survives it");
        // the agent tells of a job long after the console did, or of a second one
        for begins in [&[20_000][..], &[6040, 6050]] {
            let mut context = sampling();
            raises(&mut context, begins[0] - 1);
            for at in begins {
                tells(&mut context, *at, agent, &started);
            }
            assert!(context.printed.is_none(), "{begins:?}");
        }
    }

    /// The knowledge that a line of the console is behind.
    fn knows(context: &Context) -> bool {
        context.errors.knows(VerdictId::HostOom)
    }

    fn line(text: &str, seq: u64) -> Event {
        Event::Line(Line {
            attempt: 1,
            stream: crate::model::Stream::Stderr,
            text: text.to_owned(),
            row: seq,
            bar: false,
            truncated: false,
            chatter: false,
        })
    }

    fn says(context: &mut Context, seq: u64) {
        let text = "memory allocation of 21474836480 bytes failed";
        let error = signature::of_line(text);
        assert!(error.is_some());
        context.observe((Mono(seq), seq), None, &line(text, seq), error);
    }

    #[test]
    fn the_agents_word_of_a_job_that_began_with_the_program_buries_no_last_words() {
        let mut context = Context::new(Mono::ZERO, false, BTreeMap::new());
        let started = Event::Job(JobChange::Started);
        context.observe((Mono(1), 1), None, &started, None);
        says(&mut context, 2);
        context.observe((Mono(3), 3), None, &started, None);
        assert!(knows(&context));
        // of a server whose job has come further, another one has begun
        let phase = PhaseChange {
            phase: Phase::ModelLoad,
            section: None,
            sections: None,
            on_cpu: false,
        };
        context.observe((Mono(4), 4), None, &Event::Phase(phase), None);
        assert!(knows(&context));
        context.observe((Mono(5), 5), None, &started, None);
        assert!(!knows(&context));
    }
}
