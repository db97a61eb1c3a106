//! The judgement over an end.

use std::time::Duration;

use crate::model::{Cite, ExitStatus, Finding, Mono, Phase, Verdict, VerdictId};

use super::errors::Deadly;
use super::facts::Seen;
use super::job::Job;
use super::rule::{self, EndFacts, OnCpu};
use super::{Detector, Life};

/// After the last words of a job that a program of unknown make buried, or of a runtime
/// that ends the process.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// The same where the job did not even begin with a word.
const UNANNOUNCED: Duration = Duration::from_secs(2);
/// The same after an exception that speaks of no known error.
const AFTER_ANY: Duration = Duration::from_secs(10);
/// What is this close to the end of all activity, or lies this far before it, tells what
/// the last activity was.
const JUST_BEFORE: Duration = Duration::from_secs(2);

impl Detector {
    /// The judgement over the end of the process (`status`), or of its job while
    /// the process lives (`None`).
    pub fn end(&self, status: Option<ExitStatus>, now: Mono) -> Verdict {
        let c = &self.context;
        let on_cpu = c.cpu_only.as_ref().filter(|_| c.job.in_flight());
        self.end_of(status, now, on_cpu.map(OnCpu::Whole))
    }

    /// The judgement that the program, or a part of it, computes on the processor, by its own
    /// words; none: it does not say so, or was told to.
    pub fn runs_on_the_processor(&self) -> Option<Verdict> {
        let c = &self.context;
        let unasked = |_: &&Cite| !c.evidence.facts().asks_for_cpu();
        let whole = c.cpu_only.as_ref().filter(unasked).map(OnCpu::Whole);
        let part = c.part_on_cpu.as_ref().map(OnCpu::Part);
        let verdict = self.end_of(None, Mono::ZERO, Some(whole.or(part)?));
        (verdict.id == VerdictId::CpuFallback).then_some(verdict)
    }

    /// The same; `on_cpu`: what counts of the program's words about the processor.
    fn end_of(&self, status: Option<ExitStatus>, now: Mono, on_cpu: Option<OnCpu<'_>>) -> Verdict {
        let c = &self.context;
        let killed = matches!(status, Some(ExitStatus::Signal(9) | ExitStatus::Code(137)));
        let seen = match status {
            Some(_) => c.seen_at_end(now),
            None => c.seen(now),
        };
        // a job that nobody declared failed has no words but what was printed
        let words = c
            .words_of_failure()
            .or_else(|| c.printed.as_ref().filter(|_| status.is_none()))
            .or_else(|| c.level_error());
        let (exception, followed) = match words.and_then(|w| c.chain.of(w)) {
            Some((first, later)) => (Some(first), later),
            None => (words, &[][..]),
        };
        let end = rule::judge_end(&EndFacts {
            status,
            seen,
            exception,
            followed,
            on_cpu,
            oom_killer: c.trouble.oom(now, killed),
            spoilt: c.spoilt(),
        });
        let mut v = self.verdict_of(end.verdict, end.health, &end.sentence, now);
        if v.phase == Phase::Idle && c.failed_after_bar().is_some() {
            v.phase = Phase::VaeDecode;
        }
        // a server is idle again by the time its failed job is judged
        if let Some((phase, section)) = c.failed_in.filter(|_| !end.is_good()) {
            v.phase = phase;
            v.section = section;
        }
        // where an error was raised counts for more than what the program said last
        let told = end.cites.iter().map(|c| c.seq);
        if let Some(phase) = c.frame_phases.of_lines(told).filter(|_| !end.is_good()) {
            v.section = v.section.filter(|_| v.phase == phase);
            v.phase = phase;
        }
        let of_job = c.has_waited || c.frame_phases.spoke_of_a_job();
        if v.phase == Phase::Startup && of_job && !end.is_good() {
            v.phase = Phase::Unknown;
        }
        if end.verdict == VerdictId::NanOutput
            && let Some((phase, section)) = c.spoilt_in.filter(|(p, _)| *p != Phase::Idle)
        {
            v.phase = phase;
            v.section = section;
        }
        v.onset = end.cites.first().map_or(now, |c| c.at.min(now));
        v.confidence = end.confidence;
        let others = if end.is_good() {
            Vec::new()
        } else {
            let mut others = c.others(now, end.verdict);
            others.extend(self.agent.findings());
            others
        };
        v.findings = vec![Finding {
            verdict: end.verdict,
            text: end.sentence,
            seqs: end.cites.iter().map(|c| c.seq).collect(),
            cites: end.cites,
            count: end.count,
        }];
        v.findings.extend(others);
        let why = if status.is_some() {
            "the process has ended; its words, the kernel's and its exit status decide"
        } else {
            "the job is over; the words of the program and of the kernel decide"
        };
        v.considered = rule::not_asked(Some((v.id, &v.sentence)), why);
        v
    }

    /// Whether a known error was told, and nothing has moved since it ended the job.
    pub fn rests_after_an_error(&self, now: Mono) -> bool {
        let quiet = |at: Mono| now.since(at) >= LAST_WORDS;
        self.context.seen(now).is_some() && self.moves_of_a_job().into_iter().all(quiet)
    }

    /// Whether an exception of a known kind is among the last lines, and nothing says that
    /// the job outlived it.
    pub fn has_just_failed(&self, now: Mono) -> bool {
        self.context.has_just_failed(now)
    }

    /// When what a job cannot do without was last active. A server's helper thread or a
    /// page that polls holds a core, so one core alone says nothing.
    fn moves_of_a_job(&self) -> [Mono; 9] {
        let ch = &self.channels;
        [
            ch.output.active,
            ch.progress.active,
            ch.gpu.active,
            ch.gpu_hard.active,
            ch.memory.active,
            ch.cpu_many.active,
            ch.children.active,
            ch.io.active,
            ch.net.active,
        ]
    }

    /// Whether the job is over by the words of the program, its runtime or the kernel
    /// though nobody said so: they came a moment ago and nothing moved since.
    pub fn died_in_silence(&self, now: Mono) -> bool {
        let c = &self.context;
        let unfinished = match c.job {
            Job::InFlight(_) => true,
            // a program that shows no job may handle its exception: no verdict follows
            // while the process lives. What the runtime or the kernel ends is no error of
            // Python's, and a server without its page never gets a job.
            Job::Unknown => {
                let no_page = |s: &Seen| s.verdict == VerdictId::PortInUse;
                matches!(c.deadly(), Some((_, Deadly::Abort)))
                    || (c.phase == Phase::Startup && c.seen(now).is_some_and(no_page))
            }
            Job::Waiting(_) | Job::Ended => false,
        };
        if self.life != Life::Running || self.pause.lasts() {
            return false;
        }
        if self.failed_after_bar(now) {
            return true;
        }
        if let Job::Waiting(since) = c.job {
            return self.failed_unannounced(since, now);
        }
        if !unfinished {
            return false;
        }
        let Some((at, deadly)) = c.deadly() else {
            return false;
        };
        let ch = &self.channels;
        let quiet = |patience: Duration| move |m: Mono| now.since(m) >= patience;
        let mut all = self.moves_of_a_job().into_iter();
        match deadly {
            // a process that is being ended may write its core for long
            Deadly::Abort => [at, ch.output.active, ch.progress.active, ch.gpu_hard.active]
                .into_iter()
                .all(quiet(LAST_WORDS)),
            Deadly::Known => quiet(LAST_WORDS)(at) && all.all(quiet(LAST_WORDS)),
            // the call that the agent sees has not returned: the exception is of another thread
            Deadly::Unknown if self.agent.job().is_some() => false,
            Deadly::Unknown => {
                let quiet = quiet(AFTER_ANY);
                quiet(at) && all.all(quiet) && quiet(ch.cpu.active) && quiet(ch.faults.active)
            }
        }
    }

    /// Whether the job of a server that does not tell its end failed behind its bar: the
    /// error came, and neither words nor work of the card since.
    fn failed_after_bar(&self, now: Mono) -> bool {
        let quiet = |at: Mono| now.since(at) >= UNANNOUNCED;
        let ch = &self.channels;
        self.context.failed_after_bar().is_some_and(|at| {
            [at, ch.output.active, ch.gpu_hard.active]
                .into_iter()
                .all(quiet)
        })
    }

    /// Whether an exception of a known kind came while the server waited: there was a job
    /// whose beginning it did not tell. What a core or the counter does says nothing then.
    fn failed_unannounced(&self, since: Mono, now: Mono) -> bool {
        let quiet = |at: Mono| now.since(at.max(self.channels.output.active)) >= UNANNOUNCED;
        let failed = self.context.failed_while_waiting(now);
        failed.is_some_and(|at| at > since && quiet(at))
    }

    /// Whether the job that has just ended well left a result that is none.
    pub fn is_spoilt(&self) -> bool {
        self.context.spoilt().is_some()
    }

    /// The driver's last word about a reset of the card: it came back, or not.
    pub fn card_recovered(&self) -> Option<bool> {
        self.context.trouble.recovered
    }

    /// Whether a model was being moved between host and card as everything stopped: the
    /// program's last words say so, or the card's memory still changed when nothing was
    /// read any more.
    pub fn was_copying(&self) -> bool {
        let ch = &self.channels;
        let last = self.movement.last().0;
        let filled = ch.memory.seen.is_some()
            && last.since(ch.memory.active) <= JUST_BEFORE
            && ch.memory.active.since(ch.io.active) >= JUST_BEFORE;
        matches!(
            self.context.phase,
            Phase::ModelLoad | Phase::Offload | Phase::TextEncode | Phase::Save
        ) && (filled || self.context.last_words_move_a_model())
    }

    /// Whether MIOpen's own lines name the naive kernel in the search that is open.
    pub fn runs_naive(&self) -> bool {
        let find = self.context.find.as_ref();
        find.and_then(|f| f.state.solver.as_deref())
            .is_some_and(|s| s.to_lowercase().contains("naive"))
    }
}
