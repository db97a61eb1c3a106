//! What the console has told about the present attempt: phase, job, search, errors.

mod causes;
mod job;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::causes::Evidence;
use crate::model::{
    AgentWord, Cite, CiteKind, Event, GpuId, GpuSample, MiopenRelease, Mono, Phase, PhaseChange,
    ProcSample, Progress, Speaker,
};

use self::words::{event_cite, line_cite};
use super::after_bar::AfterBar;
use super::chain::Chain;
use super::errors::Errors;
use super::facts::OpenFind;
use super::frame_phase::FramePhases;
use super::job::Job;
use super::signature::{self, Reported};
use super::traceback::Frames;
use super::trouble::{Cards, Trouble};

/// Processes of a tree that are remembered.
const MOST_PIDS: usize = 4096;

/// The longest completed stays in a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stays {
    /// Whatever happened meanwhile.
    pub(crate) any: Duration,
    /// Something was counted or finished meanwhile.
    pub(crate) productive: Duration,
}

/// Context of one attempt.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of one attempt, independent of each other"
)]
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
    /// The last state of a bar: its name, its length, its count.
    last_count: Option<(Option<String>, Option<u64>, u64)>,
    /// A server that does not tell the end of its jobs came to the end of a bar.
    after_bar: Option<AfterBar>,
    pub(super) exception: Option<Cite>,
    /// The last exception that was printed, whether or not a job ended by it.
    pub(super) printed: Option<Cite>,
    /// Where a result was first said to be no valid one.
    pub(super) spoilt_in: Option<(Phase, Option<u32>)>,
    errors: Errors,
    /// What the lines show of causes.
    pub(super) evidence: Evidence,
    frames: Frames,
    /// The phases that the frames of tracebacks name.
    pub(super) frame_phases: FramePhases,
    /// The exceptions of the failure at hand, the first first.
    pub(super) chain: Chain,
    /// A line at the level of an error that nothing has outlived, and how many came after it.
    level_error: Option<(Cite, u32)>,
    /// The program reported a result, and no step of another job came since.
    delivered: bool,
    cards: Cards,
    pub(super) trouble: Trouble,
    /// A model was only moved off the card in part, not taken off.
    pub(super) kept_on_card: Option<Cite>,
    /// The program runs on the CPU as a whole, by its own words.
    pub(super) cpu_only: Option<Cite>,
    /// A part of it does.
    pub(super) part_on_cpu: Option<Cite>,
    /// The program's last word was that it compiles or tunes.
    pub(super) compiling: bool,
    /// When and by whom the last job was said to have failed.
    failure: Option<(Mono, Option<Speaker>)>,
    /// Phase and section in which the last job failed.
    pub(super) failed_in: Option<(Phase, Option<u32>)>,
    /// Longest completed stays in each phase, over the whole run.
    pub(super) longest: BTreeMap<Phase, Stays>,
    /// When something of the job was last counted or finished.
    pub(super) finished_at: Mono,
    /// When a result was last written.
    pub(super) result_at: Option<Mono>,
    /// When the program last said that it writes a result, or has written one.
    pub(super) saved_at: Option<Mono>,
    /// Sections in all, where known.
    pub(super) sections: Option<u32>,
    /// The agent reported the begin of the job that is in flight.
    pub(super) begun_by_agent: bool,
    /// The program waits by the words with which a server comes up, not by the end of a job.
    pub(super) waits_by_ready_words: bool,
    /// The program is a server: it has waited for its user, or its command says so.
    pub(super) serves: bool,
    /// It has waited for its user: it is past its start.
    pub(super) has_waited: bool,
}

impl Context {
    pub(super) fn new(now: Mono, rung_on_cpu: bool, longest: BTreeMap<Phase, Stays>) -> Self {
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
            last_count: None,
            after_bar: None,
            exception: None,
            printed: None,
            spoilt_in: None,
            errors: Errors::default(),
            evidence: Evidence::default(),
            frames: Frames::default(),
            frame_phases: FramePhases::default(),
            chain: Chain::default(),
            level_error: None,
            delivered: false,
            cards: Cards::default(),
            trouble: Trouble::default(),
            kept_on_card: None,
            cpu_only: None,
            part_on_cpu: None,
            compiling: false,
            failure: None,
            failed_in: None,
            longest,
            finished_at: now,
            result_at: None,
            saved_at: None,
            sections: None,
            begun_by_agent: false,
            waits_by_ready_words: false,
            serves: false,
            has_waited: false,
        }
    }

    /// Whether the present step is meant to run on the CPU.
    pub(super) fn on_cpu(&self) -> bool {
        self.announced_cpu
            || (self.rung_on_cpu && matches!(self.phase, Phase::VaeDecode | Phase::VaeEncode))
    }

    /// Whether the program may fetch something now. Everywhere else traffic of the
    /// machine is someone else's: a film that is watched while a decode hangs.
    pub(super) const fn may_fetch(&self, in_flight: bool) -> bool {
        match self.phase {
            Phase::Startup | Phase::Download | Phase::ModelLoad | Phase::TextEncode => true,
            // behind a full bar of steps nothing is fetched any more
            Phase::Unknown => !in_flight,
            _ => false,
        }
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
            Event::Artefact(_) if !self.may_be_of_before(now, from) && !self.has_failed() => {
                self.errors.survived();
                self.evidence.survived();
            }
            // another tier did it: what MIOpen or torch printed about the one before is past
            Event::Agent(note) => match &note.word {
                AgentWord::Conv(conv) if conv.what == "chosen" => {
                    self.survived(now, Some(Speaker::Agent));
                }
                AgentWord::Torch { hip: Some(hip), .. } => {
                    self.release.learn(MiopenRelease::of_hip(hip));
                }
                _ => {}
            },
            Event::Job(change) => self.observe_job(now, seq, from, change),
            Event::Find(mark) => self.observe_find(now, seq, mark),
            Event::Kernel { text } => {
                let cite = Cite {
                    kind: CiteKind::Kernel,
                    ..event_cite(now, seq, text)
                };
                self.trouble.line(&cite, &self.cards, &self.pids);
                self.evidence.observe(text, &cite, |_| true);
            }
            _ => {}
        }
    }

    /// Remembers which card is ours and what kind of memory it has.
    pub(super) fn observe_cards(&mut self, cards: &[GpuSample], ours: Option<&GpuId>) {
        self.cards.observe(cards, ours);
    }

    /// The longest completed stays in the phase at hand.
    pub(super) fn longest_stays(&self) -> Stays {
        self.longest.get(&self.phase).copied().unwrap_or_default()
    }

    fn observe_phase(&mut self, now: Mono, from: Option<Speaker>, p: &PhaseChange) {
        if matches!(p.phase, Phase::Save | Phase::Done) {
            self.saved_at = Some(now);
        }
        // the phase that the line of the result begins comes after it
        self.delivered &= matches!(
            p.phase,
            Phase::Save | Phase::Done | Phase::Idle | Phase::Unknown
        );
        let after = matches!(p.phase, Phase::VaeDecode | Phase::Idle);
        self.after_bar = self.after_bar.filter(|_| after);
        if p.phase != self.phase || p.section != self.section {
            let stay = now.since(self.phase_since);
            let longest = self.longest.entry(self.phase).or_default();
            longest.any = stay.max(longest.any);
            // a bar of whatever program may name a phase that has not come yet
            if self.finished_at > self.phase_since {
                longest.productive = stay.max(longest.productive);
            }
            self.phase_since = now;
            self.find = None;
            // "compiling, this takes minutes" comes before the empty bar that is first to
            // tell of the phase in which it happens, and a late line about a model that is
            // loaded may come after that bar
            let prepares = |p| matches!(p, Phase::Startup | Phase::ModelLoad | Phase::TextEncode);
            self.compiling &=
                self.phase == Phase::Unknown || prepares(self.phase) || prepares(p.phase);
            if self.job.in_flight() {
                self.step_ended(now);
            }
        }
        let falls_back = p.on_cpu && !self.announced_cpu;
        // after a job that failed it is the cleaning up
        let result = matches!(p.phase, Phase::Save | Phase::Done) && !self.job_is_over();
        if falls_back || result {
            // the program answers its error itself, or had its result all the same
            self.survived(now, from);
        }
        self.phase = p.phase;
        self.section = p.section;
        self.sections = p.sections.or(self.sections);
        self.announced_cpu = p.on_cpu;
    }

    fn observe_progress(&mut self, now: Mono, from: Option<Speaker>, p: &Progress) {
        self.find = None;
        self.delivered = false;
        let total = p.total.filter(|t| p.sampling && *t > 0.0);
        self.bar_ended = total.filter(|t| p.done >= *t).map(|_| now);
        // the job went on after an error: the error was survived. A repaint of the same count
        // is no step.
        let count = (p.what.clone(), p.total.map(f64::to_bits), p.done.to_bits());
        let moved = self.last_count.as_ref() != Some(&count);
        self.last_count = Some(count);
        if p.sampling && p.done > 0.0 && moved {
            self.compiling = false;
            if !self.may_be_of_before(now, from) {
                self.outlived();
            }
            self.trouble.survived(now);
        }
    }
}
