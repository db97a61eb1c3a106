//! What the console has told about the present attempt: phase, job, search, errors.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{
    AgentWord, Cite, CiteKind, Event, FindMark, Finding, GpuId, GpuSample, JobChange, Line,
    MiopenRelease, Mono, Phase, PhaseChange, ProcSample, Progress, Speaker, VerdictId,
};

use super::after_bar::{AfterBar, Turn};
use super::errors::{Deadly, Entry, Errors, foremost};
use super::facts::{Job, OpenFind, Seen};
use super::signature::{self, Hint, Rank, Reported};
use super::traceback::Frames;
use super::trouble::{Cards, Trouble};

/// A server that waits this long has nothing to do with what failed before.
const LONG_IDLE: Duration = Duration::from_secs(10);
/// The agent's words and the console's come by two ways, of which neither knows how far the
/// other is: for this long after a failure that was told by the one, what the other tells
/// may be of before. A program that writes into a pipe may keep its lines until it ends.
const TWO_WAYS: Duration = Duration::from_secs(30);
/// A traceback this close to a failure that was told without a reason gives it.
const SAME_FAILURE: Duration = Duration::from_secs(10);

/// Processes of a tree that are remembered.
const MOST_PIDS: usize = 4096;

/// Context of one attempt.
#[derive(Debug, Clone)]
pub(super) struct Context {
    /// Processes of the tree, the dead included.
    pids: BTreeSet<u32>,
    pub(super) phase: Phase,
    pub(super) phase_since: Mono,
    pub(super) section: Option<u32>,
    pub(super) job: Job,
    /// The rung decodes on the CPU.
    pub(super) rung_on_cpu: bool,
    /// The program announced a CPU step.
    pub(super) announced_cpu: bool,
    pub(super) find: Option<OpenFind>,
    /// Which MIOpen, as far as told.
    pub(super) release: MiopenRelease,
    /// What the console said last.
    last_line: Option<Cite>,
    /// That was a bar of steps at its end.
    bar_ended: Option<Mono>,
    /// A server that does not tell the end of its jobs came to the end of a bar.
    after_bar: Option<AfterBar>,
    pub(super) exception: Option<Cite>,
    /// The last exception that was printed, whether or not a job ended by it.
    pub(super) printed: Option<Cite>,
    /// Where a result was first said to be no valid one.
    pub(super) spoilt_in: Option<(Phase, Option<u32>)>,
    errors: Errors,
    frames: Frames,
    cards: Cards,
    pub(super) trouble: Trouble,
    /// A model was only moved off the card in part, not taken off.
    pub(super) kept_on_card: Option<Cite>,
    /// The program runs on the CPU as a whole, by its own words.
    pub(super) cpu_only: Option<Cite>,
    /// The program's last word was that it compiles or tunes.
    pub(super) compiling: bool,
    /// When and by whom the last job was said to have failed.
    failure: Option<(Mono, Option<Speaker>)>,
    /// Phase and section in which the last job failed.
    pub(super) failed_in: Option<(Phase, Option<u32>)>,
    /// Longest completed stay in each phase, over the whole run.
    pub(super) longest: BTreeMap<Phase, Duration>,
}

impl Context {
    pub(super) fn new(now: Mono, rung_on_cpu: bool, longest: BTreeMap<Phase, Duration>) -> Self {
        Self {
            pids: BTreeSet::new(),
            phase: Phase::Startup,
            phase_since: now,
            section: None,
            job: Job::Unknown,
            rung_on_cpu,
            announced_cpu: false,
            find: None,
            release: MiopenRelease::default(),
            last_line: None,
            bar_ended: None,
            after_bar: None,
            exception: None,
            printed: None,
            spoilt_in: None,
            errors: Errors::default(),
            frames: Frames::default(),
            cards: Cards::default(),
            trouble: Trouble::default(),
            kept_on_card: None,
            cpu_only: None,
            compiling: false,
            failure: None,
            failed_in: None,
            longest,
        }
    }

    /// Whether the present step is meant to run on the CPU.
    pub(super) fn on_cpu(&self) -> bool {
        self.announced_cpu
            || (self.rung_on_cpu && matches!(self.phase, Phase::VaeDecode | Phase::VaeEncode))
    }

    /// Whether the program may fetch something now. Everywhere else traffic of the
    /// machine is someone else's: a film that is watched while a decode hangs.
    pub(super) const fn may_fetch(&self) -> bool {
        matches!(
            self.phase,
            Phase::Startup
                | Phase::Download
                | Phase::ModelLoad
                | Phase::TextEncode
                | Phase::Unknown
        )
    }

    /// Remembers the processes of the tree: the kernel's victim may be any of them.
    pub(super) fn observe_tree(&mut self, p: &ProcSample) {
        let pids = p.per_thread.iter().map(|t| t.pid);
        for pid in pids.chain([p.pid]) {
            if self.pids.len() < MOST_PIDS {
                self.pids.insert(pid);
            }
        }
    }

    /// The words of a line: without what the traceback around it is indented by.
    pub(super) fn words<'t>(&self, text: &'t str) -> &'t str {
        self.frames.dedent(text)
    }

    /// Folds one event in, which `from` tells; `error`: what a line reports by itself.
    pub(super) fn observe(
        &mut self,
        (now, seq): (Mono, u64),
        from: Option<Speaker>,
        event: &Event,
        error: Option<Reported>,
    ) {
        match event {
            Event::Spawned { pid, .. } => {
                self.pids.insert(*pid);
            }
            Event::Line(line) => {
                self.last_line = Some(line_cite(now, seq, line));
                self.bar_ended = None;
                self.observe_words(now, seq, line, error);
                self.compiling |= signature::is_compilation(&line.text);
            }
            Event::Phase(p) => self.observe_phase(now, from, p),
            Event::Progress(p) => self.observe_progress(now, from, p),
            Event::Artefact(_) if !self.may_be_of_before(now, from) => self.errors.survived(),
            // another tier did it: what MIOpen or torch printed about the one before is past
            Event::Agent(note) => {
                if let AgentWord::Conv(conv) = &note.word
                    && conv.what == "chosen"
                {
                    self.survived(now, Some(Speaker::Agent));
                }
            }
            Event::Job(change) => self.observe_job(now, seq, from, change),
            Event::Find(mark) => self.observe_find(now, seq, mark),
            Event::Kernel { text } => {
                let cite = Cite {
                    kind: CiteKind::Kernel,
                    ..event_cite(now, seq, text)
                };
                self.trouble.line(&cite, &self.cards, &self.pids);
            }
            _ => {}
        }
    }

    /// Remembers which card is ours and what kind of memory it has.
    pub(super) fn observe_cards(&mut self, cards: &[GpuSample], ours: Option<&GpuId>) {
        self.cards.observe(cards, ours);
    }

    fn observe_words(&mut self, now: Mono, seq: u64, line: &Line, error: Option<Reported>) {
        let text = line.text.as_str();
        self.same_words_again(now, seq, line);
        let said = self.frames.refine(text, error);
        let reported = self.of_our_card(text, said);
        match reported {
            Some(r) => {
                if r.verdict == VerdictId::NanOutput && self.errors.spoilt().is_none() {
                    self.spoilt_in = Some((self.phase, self.section));
                }
                self.errors.note(r, line_cite(now, seq, line));
            }
            None if !signature::is_request(text) => self.errors.plain_line(),
            None => {}
        }
        if self.frames.line(text) {
            self.errors.exception(now, reported.is_some());
            self.printed = Some(line_cite(now, seq, line));
        }
        match signature::hint(text) {
            Some(Hint::KeptOnCard) => self.kept_on_card = Some(line_cite(now, seq, line)),
            Some(Hint::TakenOff) => self.kept_on_card = None,
            Some(Hint::CpuOnly) => {
                self.cpu_only
                    .get_or_insert_with(|| line_cite(now, seq, line));
            }
            None => {}
        }
    }

    /// The line in which the program itself says what was heard from its agent before.
    fn same_words_again(&mut self, now: Mono, seq: u64, line: &Line) {
        let heard = self.exception.as_mut().filter(|cite| cite.line.is_none());
        if let Some(cite) = heard.filter(|cite| line.text.contains(&cite.text)) {
            *cite = line_cite(now, seq, line);
        }
    }

    /// Whether what `from` tells now may have been before the failure of the job.
    fn may_be_of_before(&self, now: Mono, from: Option<Speaker>) -> bool {
        self.failure
            .is_some_and(|(at, by)| by != from && now.since(at) < TWO_WAYS)
    }

    /// Words of the program about its failure: those with which the job was declared failed,
    /// else what was printed about it, before or after.
    pub(super) fn words_of_failure(&self) -> Option<&Cite> {
        let printed = || {
            let (at, _) = self.failure?;
            let near = |cite: &&Cite| {
                cite.at.since(at) <= SAME_FAILURE && at.since(cite.at) <= SAME_FAILURE
            };
            self.printed.as_ref().filter(near)
        };
        self.exception.as_ref().or_else(printed)
    }

    /// `from` tells that the job went on after whatever was reported.
    fn survived(&mut self, now: Mono, from: Option<Speaker>) {
        if self.may_be_of_before(now, from) {
            return;
        }
        self.errors.survived();
        self.exception = None;
        self.printed = None;
    }

    fn observe_phase(&mut self, now: Mono, from: Option<Speaker>, p: &PhaseChange) {
        let after = matches!(p.phase, Phase::VaeDecode | Phase::Idle);
        self.after_bar = self.after_bar.filter(|_| after);
        if p.phase != self.phase || p.section != self.section {
            let stay = now.since(self.phase_since);
            let longest = self.longest.entry(self.phase).or_default();
            *longest = stay.max(*longest);
            self.phase_since = now;
            self.find = None;
            // "compiling, this takes minutes" comes before the empty bar that is first to
            // tell of the phase in which it happens
            self.compiling &= matches!(
                self.phase,
                Phase::Startup | Phase::ModelLoad | Phase::TextEncode | Phase::Unknown
            );
            if self.job.in_flight() {
                self.errors.outlived(now);
            }
        }
        let falls_back = p.on_cpu && !self.announced_cpu;
        if falls_back || matches!(p.phase, Phase::Save | Phase::Done) {
            // the program answers its error itself, or had its result all the same
            self.survived(now, from);
        }
        self.phase = p.phase;
        self.section = p.section;
        self.announced_cpu = p.on_cpu;
    }

    fn observe_progress(&mut self, now: Mono, from: Option<Speaker>, p: &Progress) {
        self.find = None;
        let total = p.total.filter(|t| p.sampling && *t > 0.0);
        self.bar_ended = total.filter(|t| p.done >= *t).map(|_| now);
        // the job went on after an error: the error was survived
        if p.sampling && p.done > 0.0 {
            self.compiling = false;
            self.survived(now, from);
            self.trouble.survived(now);
        }
    }

    fn observe_job(&mut self, now: Mono, seq: u64, from: Option<Speaker>, change: &JobChange) {
        if let Some(after) = &mut self.after_bar {
            after.goes_on = false;
        }
        match change {
            // the one that began with the program, told by its agent as well: by another way
            // than the console's lines, so that its last ones may be here before it
            JobChange::Started if self.job.in_flight() && self.in_its_first_phase() => {
                self.errors.outlived(now);
            }
            JobChange::Started => {
                self.job = Job::InFlight(now);
                self.failure = None;
                self.failed_in = None;
                // an error that speaks of the decode is what tells that the job went on
                let resumes = self.after_bar.and(self.last_line.as_ref()).map(|l| l.seq);
                self.errors.clear_but(resumes);
                self.exception = None;
                self.printed = None;
                self.find = None;
            }
            JobChange::Waiting => {
                if self.job == Job::Unknown {
                    // the server is up all the same
                    self.errors.clear();
                    self.printed = None;
                }
                self.job = Job::Waiting(now);
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

    /// Whether nothing but the start of the program has been told of its job.
    const fn in_its_first_phase(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::Unknown)
    }

    /// The agent's words of a failed job that name an error of which nothing is known any
    /// more: they come by another way than the console's line, and a bar that was told late
    /// has buried it.
    pub(super) fn failed_by_agent(&mut self, now: Mono, why: &str) {
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

    /// A lack of memory is one of the GTT where the card has that for its memory.
    fn of_our_card(&self, text: &str, said: Option<Reported>) -> Option<Reported> {
        match said {
            Some(r) if r.verdict == VerdictId::GpuOom && self.cards.runs_out_of_gtt(text) => {
                Some(Reported {
                    verdict: VerdictId::GttExhausted,
                    rank: r.rank,
                })
            }
            other => other,
        }
    }

    /// A reading while a server may still be at the job whose bar has ended.
    pub(super) fn observe_after_bar(&mut self, now: Mono, hard: bool) {
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
    pub(super) fn goes_on_unsaid(&self) -> bool {
        self.after_bar.is_some_and(|a| a.goes_on)
    }

    /// When an error was told of the job whose bar has ended, though the server said
    /// neither that it goes on nor that it failed.
    pub(super) fn failed_after_bar(&self) -> Option<Mono> {
        let after = self.after_bar?;
        self.errors
            .told_since(after.ended, |at| after.is_of_the_job(at))
    }

    fn observe_find(&mut self, now: Mono, seq: u64, mark: &FindMark) {
        // a mark is read from the line before it
        let cite = self
            .last_line
            .clone()
            .unwrap_or_else(|| event_cite(now, seq, ""));
        if let FindMark::Release(told) = mark {
            self.release.learn(*told);
        }
        OpenFind::fold(&mut self.find, now, cite, mark);
    }

    /// Words of the program: the last line, where it has them.
    fn said(&self, at: Mono, seq: u64, text: &str) -> Cite {
        match &self.last_line {
            Some(line) if line.text.contains(text) => line.clone(),
            _ => Cite {
                kind: CiteKind::Console,
                ..event_cite(at, seq, text)
            },
        }
    }

    /// Whether the program's last words announce that a model is moved to the card or off it.
    pub(super) fn last_words_move_a_model(&self) -> bool {
        let last = self.last_line.as_ref();
        last.is_some_and(|l| signature::announces_a_move(&l.text))
    }

    /// What explains a failure at this moment: the foremost of what console and kernel
    /// reported and nothing outlived.
    pub(super) fn seen(&self, now: Mono) -> Option<&Seen> {
        foremost(self.errors.causes(now).chain(self.trouble.causes())).map(|e| &e.seen)
    }

    /// The same at the end of the process. What failed a job long ago does not explain
    /// the end of the idle server.
    pub(super) fn seen_at_end(&self, now: Mono) -> Option<&Seen> {
        let idle = match self.job {
            Job::Waiting(since) => now.since(since) > LONG_IDLE,
            _ => false,
        };
        // words that come with the end explain it: a job may begin without one
        let fresh = |e: &&Entry| !idle || now.since(e.seen.last.at) <= LONG_IDLE;
        let errors = self.errors.causes_of_end(now);
        let causes = errors.chain(self.trouble.causes()).filter(fresh);
        foremost(causes).map(|e| &e.seen)
    }

    /// What else was reported in the same story.
    pub(super) fn others(&self, now: Mono, main: VerdictId) -> Vec<Finding> {
        let besides = |e: &&Entry| e.seen.verdict != main && e.rank > Rank::Aftermath;
        let entries = self.errors.causes(now).chain(self.trouble.causes());
        let mut findings: Vec<Finding> =
            entries.filter(besides).map(|e| e.seen.finding()).collect();
        let memory = matches!(main, VerdictId::BlockAllocator | VerdictId::GpuOom);
        if let Some(cite) = self.kept_on_card.as_ref().filter(|_| memory) {
            findings.push(Finding::of_line(
                VerdictId::OffloadRisk,
                "the model stays on the card while the next one is loaded",
                cite,
            ));
        }
        if let Some(cite) = &self.cpu_only
            && main != VerdictId::CpuFallback
        {
            findings.push(Finding::of_line(
                VerdictId::CpuFallback,
                "the program says that it runs on the CPU",
                cite,
            ));
        }
        findings
    }

    /// The job came to its end, but its result is black.
    pub(super) fn spoilt(&self) -> Option<&Seen> {
        self.errors.spoilt()
    }

    /// When an exception with the signature of a known error was last printed.
    pub(super) fn failed_while_waiting(&self, now: Mono) -> Option<Mono> {
        self.errors.failed(now)
    }

    /// Whether an exception of a known kind is among the last lines.
    pub(super) fn has_just_failed(&self, now: Mono) -> bool {
        self.errors.is_fresh() && self.errors.deadly().is_some() && self.seen(now).is_some()
    }

    /// Since when the words, or the kernel, say that the job is over though the process
    /// lives.
    pub(super) fn deadly(&self) -> Option<(Mono, Deadly)> {
        let lost = self.trouble.fatal.map(|at| (at, Deadly::Abort));
        let reset = self.trouble.reset().map(|at| (at, Deadly::Known));
        lost.or_else(|| self.errors.deadly()).or(reset)
    }
}

fn line_cite(at: Mono, seq: u64, line: &Line) -> Cite {
    Cite {
        kind: CiteKind::Console,
        line: Some(line.row).filter(|row| *row != 0),
        ..event_cite(at, seq, &line.text)
    }
}

fn event_cite(at: Mono, seq: u64, text: &str) -> Cite {
    Cite {
        seq,
        at,
        kind: CiteKind::Event,
        line: None,
        text: text.chars().take(Cite::MOST).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// The knowledge that a line of the console is behind.
    fn knows(context: &Context) -> bool {
        context.errors.knows(VerdictId::HostOom)
    }

    fn says(context: &mut Context, seq: u64) {
        let text = "memory allocation of 21474836480 bytes failed";
        let line = Line {
            attempt: 1,
            stream: crate::model::Stream::Stderr,
            text: text.to_owned(),
            row: seq,
            bar: false,
            truncated: false,
            chatter: false,
        };
        let error = signature::of_line(text);
        assert!(error.is_some());
        let at = Mono(seq);
        context.observe((at, seq), None, &Event::Line(line), error);
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
