//! Question 1: is a job in flight? Only positive evidence says yes.
//!
//! A script is one job from its first sign of a generation to its written result or its
//! exit. A server has a job between the words, of the agent or of an adapter, that begin
//! and end one. An operation, a job or a phase that the agent of any process reports
//! contradicts "no job".

use std::time::Duration;

use crate::model::{AgentSteps, Mono, Phase, ProcSample, Sample, WaitsFor};

use super::Detector;
use super::probes::Probes;
use super::thresholds::secs;
use super::waits::NOTHING_ENDS_IT;

/// A bar that becomes full this soon after the result was written counted up to it.
const SAME_END: Duration = Duration::from_secs(2);
/// The steps of a request begin this soon after it: a large model may be loaded before.
const REQUEST_TO_STEPS: Duration = Duration::from_mins(10);

/// Whether a job is in flight, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Nothing says so, neither way.
    Unknown,
    /// In flight since.
    InFlight(Mono),
    /// A server waits for its user since.
    Waiting(Mono),
    /// Its result is written, or the program said that it has ended.
    Ended,
}

impl Job {
    pub(crate) const fn in_flight(self) -> bool {
        matches!(self, Self::InFlight(_))
    }
}

/// The answer with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobAnswer {
    pub(crate) job: Job,
    /// What says so, in words.
    pub(crate) source: &'static str,
    /// When the answer became what it is.
    pub(crate) since: Mono,
    /// A sign of a generation is all that there is: no step, no pipeline call.
    pub(crate) by_sign_alone: bool,
}

impl JobAnswer {
    pub(super) const fn unknown(since: Mono) -> Self {
        Self {
            job: Job::Unknown,
            source: "nothing shows that a job is in flight",
            since,
            by_sign_alone: false,
        }
    }
}

/// Signs of a generation that readings give.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    /// The first sign of this attempt.
    first: Option<(Mono, &'static str)>,
    /// The tree holds memory of the supervised card at present.
    pub(super) holds_memory: bool,
    /// Bytes that the tree had read when the attempt began.
    read_before: Option<u64>,
    /// Since when the card works without a longer break while the tree holds memory of it.
    card_works: Option<Mono>,
}

impl Signs {
    pub(super) const fn sign(&self) -> Option<(Mono, &'static str)> {
        self.first
    }

    pub(super) const fn note(&mut self, now: Mono, what: &'static str) {
        if self.first.is_none() {
            self.first = Some((now, what));
        }
    }
}

impl Detector {
    /// Signs that a sample gives.
    pub(super) fn observe_signs(&mut self, now: Mono, sample: &Sample) {
        let Some(process) = &sample.process else {
            return;
        };
        let held = self.holds_memory(process);
        self.signs.holds_memory = held;
        if held {
            self.signs.note(now, "memory of the card is held");
        }
        let hard = self.channels.card_state.is_some_and(|s| s.hard);
        if held && hard && !self.pause.lasts() {
            self.signs.card_works.get_or_insert(now);
        } else if !hard {
            self.signs.card_works = None;
        }
        // a recording has no probes: what a known program reads are its weights
        if self.program.is_known && !self.probes.came() {
            let read = process.read_bytes.fresh().copied();
            let chars = process.read_chars.fresh().copied();
            if let Some(read) = read.max(chars) {
                let before = *self.signs.read_before.get_or_insert(read);
                let mib = super::channels::mib(read.saturating_sub(before));
                if mib >= self.thresholds.sign_read_mib {
                    self.signs
                        .note(now, "the program has read what may be weights");
                }
            }
        }
    }

    /// Whether the tree holds memory of the supervised card: more than an open context.
    fn holds_memory(&self, process: &ProcSample) -> bool {
        let held = self.gpu.as_ref().and_then(|id| process.on_card(id));
        let vram = held.and_then(|c| c.vram.fresh().copied());
        let gtt = held
            .filter(|_| self.pressure.apu)
            .and_then(|c| c.gtt.fresh().copied());
        let mib = super::channels::mib(vram.map_or(0, |b| b.0) + gtt.map_or(0, |b| b.0));
        mib >= self.thresholds.sign_vram_mib
    }

    /// Answers the question again.
    pub(super) fn answer_job(&mut self, now: Mono) {
        let mut next = self.judge_job(now);
        let same =
            std::mem::discriminant(&next.job) == std::mem::discriminant(&self.job_answer.job);
        if same {
            next.since = self.job_answer.since;
            if let (Job::InFlight(since), Job::InFlight(was)) = (next.job, self.job_answer.job) {
                next.job = Job::InFlight(since.min(was));
            }
        } else if next.job.in_flight() && self.job_answer.job == Job::Unknown {
            // what happened before there was a job is no movement of it, and no silence
            self.movement.begin_job(now);
        }
        self.job_answer = next;
    }

    fn judge_job(&self, now: Mono) -> JobAnswer {
        let answer = |job, source| JobAnswer {
            job,
            source,
            since: now,
            by_sign_alone: false,
        };
        if let Some(job) = self.agent.job() {
            return answer(Job::InFlight(job.since), job.source);
        }
        let open = self.is_anything_open(now);
        match self.context.job {
            Job::InFlight(_) if !open && self.serves_idle(now) => answer(
                Job::Waiting(now),
                "its thread waits for a client on a socket of its own",
            ),
            Job::InFlight(_) if !open && self.has_written_result(now) => {
                answer(Job::Ended, "the result is written, and nothing is open")
            }
            Job::InFlight(since) => answer(Job::InFlight(since), self.source_of_begin()),
            Job::Waiting(_) if self.works_unannounced(now) => {
                let since = self.signs.card_works.unwrap_or(now);
                answer(
                    Job::InFlight(since),
                    "the card works for this tree, which holds its memory",
                )
            }
            Job::Waiting(since) => answer(Job::Waiting(since), "the program waits for its user"),
            Job::Ended => answer(Job::Ended, "the program said that the job has ended"),
            Job::Unknown => self.judge_signs(now),
        }
    }

    /// A script that has shown no begin of a job, but may have shown a sign of one.
    fn judge_signs(&self, now: Mono) -> JobAnswer {
        let sign = self.signs.sign();
        let Some((since, source)) = sign.filter(|_| !self.program.serves) else {
            return JobAnswer::unknown(now);
        };
        if self.serves_idle(now) {
            return JobAnswer {
                job: Job::Waiting(now),
                source: "its thread waits for a client on a socket of its own",
                since: now,
                by_sign_alone: false,
            };
        }
        JobAnswer {
            job: Job::InFlight(since),
            source,
            since: now,
            by_sign_alone: true,
        }
    }

    const fn source_of_begin(&self) -> &'static str {
        if self.context.begun_by_agent {
            "the agent reported the begin of a job"
        } else {
            "the console reports a job or a bar of steps"
        }
    }

    /// Whether a phase, a bar or a search is open by the words of the program.
    pub(super) fn is_anything_open(&self, now: Mono) -> bool {
        let c = &self.context;
        let phase = self.phase_in_flight(now);
        let phase = phase.says_something() && !matches!(phase, Phase::Idle | Phase::Done);
        phase || c.find.is_some() || (self.pace.is_unfilled() && !self.was_left(now))
    }

    /// Whether nothing of the job is open: by its words and readings alone it may be over.
    pub(super) fn is_between_phases(&self, now: Mono) -> bool {
        self.agent.job().is_none() && !self.is_anything_open(now)
    }

    /// The steps of the bar at hand as the agent sees them, and their process; absent: the bar
    /// is full, or the agent does not see it.
    pub(super) fn counted_steps(&self) -> Option<(u32, AgentSteps)> {
        let bar = self.pace.bar().filter(|_| self.pace.is_unfilled())?;
        let total = bar.total?.to_bits();
        let mut all = self.agent.steps();
        all.find(|(_, steps)| steps.total.to_bits() == total)
    }

    /// Whether the agent has seen the call return to which the steps of the bar at hand belong.
    pub(super) fn steps_returned(&self) -> bool {
        let steps = self.counted_steps();
        steps.is_some_and(|(_, steps)| steps.left == Some(true))
    }

    /// Whether the steps of a server were left before their bar was full: its user cancelled
    /// the job, or its client went away. A script whose loop ends early goes on with the same
    /// job, and so does a server whose client waits for the answer.
    fn was_left(&self, now: Mono) -> bool {
        (self.pace.is_closed() || self.steps_returned())
            && (self.program.serves || self.probes.listens(now))
            && !self.owes_answer(now)
    }

    /// Whether a client waits for the answer to the request of the steps at hand. A connection
    /// on which an answer, or progress, was sent since it asked says nothing.
    pub(super) fn owes_answer(&self, now: Mono) -> bool {
        let Some(bar) = self.pace.bar().filter(|_| self.pace.is_unfilled()) else {
            return false;
        };
        // the kernel's ages are those of the moment of the probe
        let begun = bar.began + SAME_END;
        let of_the_steps = |asked: Mono| asked <= begun && begun.since(asked) <= REQUEST_TO_STEPS;
        self.probes.unanswered(now).any(of_the_steps)
    }

    /// The phase, but for steps that were left: what follows them is not known.
    pub(super) fn phase_in_flight(&self, now: Mono) -> Phase {
        match self.context.phase {
            Phase::Sampling if self.was_left(now) => Phase::Unknown,
            phase => phase,
        }
    }

    /// Whether the tree is a server that waits for a client: the thread of the job, or that
    /// of the process at the other end of its wait, waits on a listening socket. Where the
    /// main thread only sleeps or joins, another thread of it may serve the socket while the
    /// thread that worked last waits in a futex.
    pub(super) fn serves_idle(&self, now: Mono) -> bool {
        let Some(probe) = self.probes.recent(now) else {
            return false;
        };
        if !self.probes.listens(now) {
            return false;
        }
        let Some(holder) = self.holder(now) else {
            return false;
        };
        let waits = self.waits(now);
        if waits.answer == WaitsFor::Client {
            return true;
        }
        let process = waits.pid.and_then(|pid| probe.process(pid));
        let Some(process) = process.or_else(|| probe.process(holder.0)) else {
            return false;
        };
        let rests = matches!(waits.answer, WaitsFor::Process | WaitsFor::Time)
            || (holder.0 == holder.1 && waits.detail.as_deref() == Some(NOTHING_ENDS_IT));
        rests && Probes::server_thread(process).is_some()
    }

    /// Whether a script has written its result after its last step and has nothing open.
    fn has_written_result(&self, now: Mono) -> bool {
        let c = &self.context;
        let Some(written) = c.result_at.filter(|_| !self.program.serves) else {
            return false;
        };
        let sections = c.section.zip(c.sections);
        let all = sections.is_none_or(|(done, total)| done >= total);
        let counter = self.movement.at(super::movement::Source::Counter);
        // the last count of the bar and the file come by two ways; a bar that begins after the file
        // is the next clip's, however short its steps are
        let next = |moment| self.pace.has_begun_steps_since(moment);
        all && counter.since(written) <= SAME_END
            && !next(written)
            // a file may be found late, the program's own word of it comes at once
            && !c.saved_at.is_some_and(next)
            && self.probes.written(now).is_none()
    }

    /// Whether a server whose jobs have no words of their own works: its card has worked for
    /// some time while the tree holds memory of it, and nobody announced the end of a job.
    fn works_unannounced(&self, now: Mono) -> bool {
        let since = self.signs.card_works;
        let long = since.is_some_and(|s| now.since(s) >= secs(self.thresholds.unannounced_s));
        let was = self.job_answer.job.in_flight() && self.context.waits_by_ready_words;
        self.context.waits_by_ready_words
            && self.probes.came()
            && !self.serves_idle(now)
            && (long || was)
    }
}
