//! The judgement over a text, or over the part of one program in it.

use crate::model::{ActionId, Considered, ExitStatus, Health, JobChange, Mono, Verdict, VerdictId};

use super::reader::{Reader, rests_on_words};
use crate::diagnose::prompt;
use crate::diagnose::shell::tell_shell;
use crate::diagnose::standstill::{self, where_it_stands};
use crate::diagnose::tail::Tail;

/// A traceback this many lines before the end is what ended the program.
const LAST_LINES: u64 = 60;

/// Why no rule about a job at work is asked.
const NO_READINGS: &str = "a text has no readings";

/// What is said where nothing is found.
const NO_FAULT: &str = "the text alone shows no fault; a hang cannot be seen in a pasted log";

impl Reader {
    /// The hang that the log's own times show; where somebody ended the program it is the reason.
    pub(super) fn stood(&self, fault: Option<&Verdict>) -> Option<Verdict> {
        let stood = self.times.stood()?;
        if fault.is_some_and(|f| f.id != VerdictId::Killed) {
            return None;
        }
        let blank = self.detector.end(Some(ExitStatus::Code(0)), Mono::ZERO);
        let mut verdict = self.prescribed(standstill::verdict(blank, stood));
        verdict.remedy = verdict
            .remedy
            .map(|r| standstill::with_tiles(r, stood.phase));
        Some(verdict)
    }

    /// What to do if the program stands still where the text ends.
    fn if_it_stands(&self, tail: &Tail) -> Option<String> {
        let in_force = self.detector.actions_in_force(&self.known());
        let decode = self.detector.decode_that_stands(&self.known());
        let too_old = self.detector.stack_older_than_card(&self.known());
        too_old.or_else(|| {
            let backend = self.detector.backend_in_text();
            standstill::advice(tail, backend, &in_force, &self.pasted, decode)
        })
    }

    /// The judgement over the whole text; none: it shows no fault.
    pub(super) fn judge(&mut self, exit: Option<ExitStatus>) -> Option<Verdict> {
        let mut lines = Vec::new();
        self.splitter.flush(&mut lines);
        self.lines(lines);
        if let Some((line, printed)) = self.joiner.rest() {
            self.line(line, &printed);
        }
        let by_shell = self.ended.take().filter(|_| exit.is_none());
        let exit = exit.or(by_shell.as_ref().map(|(status, _)| *status));
        let recent = |at: u64| self.row.saturating_sub(at) <= LAST_LINES;
        let fatal = self.traceback.is_some_and(recent);
        if exit.is_some() || (self.in_flight() && fatal) || !self.adapter.is_server() && fatal {
            for event in self.adapter.finish(exit == Some(ExitStatus::Code(0))) {
                self.post(event);
            }
        }
        let verdict = self.detector.end(exit, Mono::ZERO);
        let mut verdict = self.prescribed(verdict);
        if let Some((status, cite)) = &by_shell {
            tell_shell(&mut verdict, *status, cite);
        }
        let told = rests_on_words(&verdict);
        (exit.is_some() || told).then_some(verdict)
    }

    /// A program of which the text says that it computes on the processor alone, and not that
    /// it was told to; there is no word of a job.
    pub(super) fn on_the_processor(&self) -> Option<Verdict> {
        let verdict = self.detector.runs_on_the_processor()?;
        Some(self.prescribed(verdict))
    }

    /// A server, or a program that tells of its result, ended by itself without a word.
    pub(super) fn silent_end(&self) -> Option<Verdict> {
        let kind = self.adapter.kind();
        let cite = self
            .prompt
            .ended_alone()
            .filter(|_| self.adapter.is_server() || kind.is_native())?;
        let verdict = self.detector.end(Some(ExitStatus::Unknown), Mono::ZERO);
        let verdict = prompt::silent_end(verdict, &self.tail, cite, kind.is_native())?;
        Some(self.prescribed(verdict))
    }

    /// Somebody who interrupts a job may have waited for it in vain.
    pub(super) fn explain_interrupt(&self, ended: &mut Verdict, before: &Tail) {
        let mut at = before.clone();
        if let Some(phase) = self.frame {
            (at.phase, at.job) = (phase, Some(JobChange::Started));
            ended.phase = phase;
        }
        let remedy = ended.remedy.as_mut();
        let Some(remedy) = remedy.filter(|r| r.action == ActionId::None) else {
            return;
        };
        if let Some(advice) = self.if_it_stands(&at) {
            ended.phase = at.phase;
            remedy.why = format!("{}. If it stood still there: {advice}", remedy.why);
        }
    }

    /// What is said where the text shows no fault.
    pub(super) fn nothing(&self, tail: &Tail) -> Verdict {
        let (id, health) = match tail.job {
            Some(JobChange::Waiting) => (VerdictId::IdleWaiting, Health::Healthy),
            Some(JobChange::Done) => (VerdictId::Healthy, Health::Healthy),
            _ => (VerdictId::Healthy, Health::Blind),
        };
        let mut verdict = self.detector.end(Some(ExitStatus::Code(0)), Mono::ZERO);
        verdict.id = id;
        verdict.health = health;
        verdict.phase = tail.phase;
        verdict.findings.clear();
        verdict.sentence = format!("{NO_FAULT}; {}", where_it_stands(tail));
        if let Some(advice) = self.if_it_stands(tail) {
            verdict.remedy = Some(standstill::nothing_but(format!(
                "nothing, as far as the text tells. If it stands still there for more than a few minutes: {advice}"
            )));
        }
        let mut verdict = not_asked(verdict);
        if let Some(own) = verdict.considered.first_mut() {
            own.verdict = id;
            own.why.clone_from(&verdict.sentence);
        }
        verdict
    }
}

/// The rules about a job at work need what a text does not hold.
pub(super) fn not_asked(mut verdict: Verdict) -> Verdict {
    let rules = verdict.considered.iter_mut();
    for rule in rules.filter(|c| c.is_not_asked()) {
        rule.why = format!("{}{NO_READINGS}", Considered::NOT_ASKED);
    }
    verdict
}
