//! The state of a run: everything that the fold remembers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::detect::{Detector, Thresholds};
use crate::model::attempt::Artefact;
use crate::model::event::{EvidenceReport, RunStarted, Survivor};
use crate::model::{
    AttemptSpec, Backend, Baselines, Bytes, Effective, ExitStatus, GpuSample, Mono, Outcome, Phase,
    Plan, Progress, RungId, Sample, Verdict, VerdictId,
};
use crate::policy::{BudgetState, Position};

use super::faults::Faults;
use super::launcher::Launcher;
use super::log::Log;
use super::resend::Resending;
use super::snapshot::Point;
use super::tiers::TierCounts;
use super::trail::Tracks;

/// Chart points kept: ten minutes at two a second.
const HISTORY: usize = 1200;

/// Warnings from before the first attempt that are kept.
pub(super) const WARNINGS: usize = 8;

/// Phase changes kept for the charts.
const PHASES: usize = 256;

/// The attempt that follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Next {
    /// Its rung; `None`: the profile as given.
    pub(super) rung: Option<RungId>,
    /// The user asked for it: nothing of the budget is spent, and there is no pause.
    pub(super) by_user: bool,
}

impl Next {
    /// An answer to a fault.
    pub(super) fn answer(rung: RungId) -> Self {
        Self {
            rung: Some(rung),
            by_user: false,
        }
    }
}

/// Why an attempt is being ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To start again.
    Restart(Next),
    /// Nothing answers.
    GiveUp,
    /// The user asked.
    User {
        /// By SIGTERM to us.
        terminated: bool,
    },
    /// It ended by itself; only stragglers are left.
    Conclude(ExitStatus),
    /// The result was written and the process stays, which the user does not want.
    KeepResult,
    /// A launcher left these processes, and they show no sign of a job.
    EndLeftovers {
        /// Those processes.
        pids: Vec<u32>,
    },
}

/// How far the ending has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Countdown { kill_at: Mono, held: bool },
    AwaitEvidence { since: Mono },
    Terminating { kill_at: Mono },
    Killing { since: Mono, asked: bool },
}

/// What the run is doing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// Waits for a first reading, so that there is a "before".
    Preparing,
    /// The shell was asked to start a process.
    Launching,
    /// An attempt is watched.
    Watching,
    /// An attempt is being ended.
    Ending { purpose: Purpose, step: Step },
    /// It ended by itself; its output and stragglers are awaited.
    Draining {
        status: ExitStatus,
        since: Mono,
        /// That stragglers are waited for was said.
        told: bool,
    },
    /// Evidence about a process that is gone, before the decision.
    PostMortem { verdict: Box<Verdict>, since: Mono },
    /// The card's memory is not back yet.
    Reclaiming { next: Next, since: Mono, told: Mono },
    /// A pause before the next attempt.
    Delaying { next: Next, until: Mono },
    /// Over.
    Over,
}

/// Evidence that was asked for and has not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) number: u32,
    pub(super) since: Mono,
}

/// What has happened once in the present attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AttemptFlags {
    /// Every process of it is gone.
    pub(super) gone: bool,
    /// A saved section gave a restart back.
    pub(super) refunded: bool,
    /// That the memory in use is above the cap was told.
    pub(super) cap_told: bool,
    /// The hang of a process that is not ours about which advice was given.
    pub(super) advised: Option<VerdictId>,
}

/// What a rung came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tried {
    pub(super) rung: RungId,
    /// The verdict that ended the attempt; absent: somebody ended it.
    pub(super) verdict: Option<VerdictId>,
    /// The same in words, with the time that it ran.
    pub(super) words: String,
}

/// Whether the detector has seen a job in flight, failed or done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JobShown {
    /// In the present attempt.
    pub(super) in_attempt: bool,
    /// In any attempt of the run.
    pub(super) in_run: bool,
}

/// What only a reader of another process's stream keeps, see [`super::follow`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Followed {
    /// An announced kill was released, and what that led to is not told yet.
    pub(super) released: bool,
    /// Whoever supervised the attempt sent a signal: its end says nothing.
    pub(super) signalled: bool,
    /// The user asked for the end of the run; by SIGTERM.
    pub(super) ended_by_user: Option<bool>,
    /// Last attempt whose end stands in the ladder.
    pub(super) noted: u32,
    /// Restarts that the user asked for.
    pub(super) by_user: u32,
    /// Restarts that the record counts beyond what we would count.
    pub(super) restarts_more: i64,
}

/// The state of a run.
#[derive(Debug, Clone)]
pub struct RunState {
    pub(super) started: RunStarted,
    pub(super) plan: Plan,
    pub(super) now: Mono,
    pub(super) stage: Stage,
    pub(super) detector: Detector,
    pub(super) position: Position,
    pub(super) budget: BudgetState,
    pub(super) attempt: Option<AttemptSpec>,
    pub(super) attempt_since: Mono,
    pub(super) pid: Option<u32>,
    pub(super) exited: Option<(ExitStatus, Mono)>,
    pub(super) flags: AttemptFlags,
    /// What a command that has returned left running.
    pub(super) launcher: Launcher,
    /// Since when the result is written and the process stays.
    pub(super) not_ended_since: Option<Mono>,
    /// What the program computes with, by its own words.
    pub(super) backend: Backend,
    /// Architectures of which the loaded MIOpen has a shipped find database; absent: not told.
    pub(super) find_dbs: Option<Vec<String>>,
    /// Tiers of the convolution fallback that the run has used.
    pub(super) tiers: TierCounts,
    /// Whether a job was shown.
    pub(super) job_shown: JobShown,
    pub(super) followed: Followed,
    /// All settings of the attempt that runs or ran last.
    pub(super) effective: Arc<Vec<Effective>>,
    /// The same of the attempt that would follow.
    pub(super) effective_next: Arc<Vec<Effective>>,
    pub(super) tried: Vec<Tried>,
    /// The card's memory in use before the first launch.
    pub(super) vram_before: Option<Bytes>,
    pub(super) pending: Option<Pending>,
    pub(super) evidence_count: u32,
    /// When the last bundle came back: collectors attach to the process.
    pub(super) evidence_at: Option<Mono>,
    pub(super) evidence: Vec<EvidenceReport>,
    /// Probes are being taken.
    pub(super) probes_on: bool,
    /// That the busy counter is not believed was told.
    pub(super) trust_told: bool,
    /// The workload has been stopped or traced since.
    pub(super) paused_since: Option<Mono>,
    /// Reminders of this pause that were shown.
    pub(super) pause_reminders: usize,
    /// The job ended with an error while the process lives.
    pub(super) job_failed: Option<Mono>,
    /// A judgement that stays until something new begins.
    pub(super) latched: Option<Box<Verdict>>,
    /// The fault of a living job that was decided about last in this attempt.
    pub(super) fault_answered: Option<VerdictId>,
    /// The fault that the next attempt answers, or this one if it has begun since.
    pub(super) answers: Option<VerdictId>,
    pub(super) verdict: Verdict,
    /// When the questions behind it were last answered.
    pub(super) answered_at: Option<Mono>,
    /// Identity and time of the verdict that was last emitted.
    pub(super) shown: Option<Shown>,
    pub(super) decision: Option<String>,
    pub(super) survivors: Vec<Survivor>,
    pub(super) result: Option<Artefact>,
    /// Results written in the run.
    pub(super) results: u32,
    pub(super) outcome: Option<(Outcome, u8, String)>,
    // what the screen shows
    pub(super) sample: Sample,
    pub(super) history: Arc<VecDeque<Point>>,
    pub(super) log: Log,
    pub(super) phase: Phase,
    pub(super) phase_since: Mono,
    pub(super) phases: Arc<VecDeque<(Mono, Phase)>>,
    pub(super) section: Option<u32>,
    pub(super) sections: Option<u32>,
    pub(super) progress: Option<Progress>,
    pub(super) last_output: Option<Mono>,
    pub(super) last_progress: Option<Mono>,
    pub(super) dropped: BTreeMap<String, u64>,
    pub(super) faults: Faults,
    pub(super) tracks: Tracks,
    /// Jobs of a server that were lost with an attempt.
    pub(super) resend: Resending,
    /// Attempt of which the user asked the end after a step.
    pub(super) step_stop: Option<u32>,
    /// An agent has said hello, in whichever attempt.
    pub(super) agent_came: bool,
    /// Warnings from before the first attempt.
    pub(super) warnings: Vec<String>,
    /// The first attempt waits for the card.
    pub(super) card_wait: Option<super::card_wait::CardWait>,
}

/// What was last told about the health of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shown {
    pub(super) id: VerdictId,
    pub(super) health: crate::model::Health,
    pub(super) at: Mono,
}

impl RunState {
    /// The state before anything happened; `started` is the head of the stream.
    pub fn new(started: &RunStarted) -> Self {
        Self::with_thresholds(started, Thresholds::DEFAULT)
    }

    /// The same with other numbers in the rules: for tests of the numbers.
    pub fn with_thresholds(started: &RunStarted, thresholds: Thresholds) -> Self {
        let plan = started.plan.clone();
        let mut detector = Detector::new(plan.limits.clone(), plan.gpu.clone())
            .with_thresholds(thresholds.at_scale(plan.time_scale))
            .with_baselines(plan.baselines.clone());
        detector.set_program(plan.server, started.adapter != "generic");
        let verdict = detector.assess(Mono::ZERO);
        Self {
            started: started.clone(),
            now: Mono::ZERO,
            stage: Stage::Preparing,
            detector,
            position: Position::default(),
            budget: BudgetState::default(),
            attempt: None,
            attempt_since: Mono::ZERO,
            pid: None,
            exited: None,
            flags: AttemptFlags::default(),
            launcher: Launcher::default(),
            not_ended_since: None,
            backend: Backend::default(),
            find_dbs: None,
            tiers: TierCounts::default(),
            job_shown: JobShown::default(),
            followed: Followed::default(),
            effective: Arc::new(plan.effective.clone()),
            effective_next: Arc::new(plan.effective.clone()),
            tried: Vec::new(),
            vram_before: None,
            pending: None,
            evidence_count: 0,
            evidence_at: None,
            evidence: Vec::new(),
            probes_on: false,
            trust_told: false,
            paused_since: None,
            pause_reminders: 0,
            job_failed: None,
            latched: None,
            fault_answered: None,
            answers: None,
            verdict,
            answered_at: None,
            shown: None,
            decision: None,
            survivors: Vec::new(),
            result: None,
            results: 0,
            outcome: None,
            sample: Sample::default(),
            history: Arc::new(VecDeque::with_capacity(HISTORY)),
            log: Log::default(),
            phase: Phase::Startup,
            phase_since: Mono::ZERO,
            phases: Arc::new(VecDeque::from([(Mono::ZERO, Phase::Startup)])),
            section: None,
            sections: None,
            progress: None,
            last_output: None,
            last_progress: None,
            dropped: BTreeMap::new(),
            faults: Faults::default(),
            tracks: Tracks::default(),
            resend: Resending::default(),
            step_stop: None,
            agent_came: false,
            warnings: Vec::new(),
            card_wait: None,
            plan,
        }
    }

    /// Number of the attempt that runs or ran last; 0 before the first.
    pub(super) fn attempt_number(&self) -> u32 {
        self.attempt.as_ref().map_or(0, |a| a.number)
    }

    /// The supervised card in the last sample.
    pub(super) fn card(&self) -> Option<&GpuSample> {
        let id = self.plan.gpu.as_ref()?;
        self.sample.gpus.iter().find(|g| &g.id == id)
    }

    /// The card's memory in use, if it was read just now.
    pub(super) fn vram_now(&self) -> Option<Bytes> {
        let card = self.card()?;
        let vram = card.vram_used.fresh().copied()?;
        if !card.apu {
            return Some(vram);
        }
        // on an APU either pool may have been used: both must come back
        let gtt = card.gtt_used.fresh().copied().unwrap_or_default();
        Some(Bytes(vram.0 + gtt.0))
    }

    pub(super) fn push_point(&mut self) {
        let card = self.card();
        let (cpu, read, write) = self.detector.rates();
        let point = Point {
            at: self.now,
            busy: card.and_then(|g| g.busy.fresh().copied()),
            power_w: card.and_then(|g| g.power_w.fresh().copied()),
            mem_used: card.and_then(|g| {
                let fresh = g.vram_used.fresh().is_some() || g.gtt_used.fresh().is_some();
                g.pool().filter(|_| fresh).map(|(used, _)| used)
            }),
            cpu,
            temp_c: card.and_then(|g| {
                let junction = g.temp_junction.fresh();
                junction.or_else(|| g.temp_edge.fresh()).copied()
            }),
            sclk_mhz: card.and_then(|g| g.sclk_mhz.fresh().copied()),
            io_bps: read.zip(write).map(|(r, w)| r + w).or(read).or(write),
        };
        let history = Arc::make_mut(&mut self.history);
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(point);
    }

    /// A phase begins, perhaps the one that there is.
    pub(super) fn enter_phase(&mut self, at: Mono, phase: Phase) {
        if phase != self.phase {
            let phases = Arc::make_mut(&mut self.phases);
            if phases.len() == PHASES {
                phases.pop_front();
            }
            phases.push_back((at, phase));
        }
        self.phase = phase;
        self.phase_since = at;
    }

    /// How long since `at`.
    pub(super) fn ago(&self, at: Mono) -> Duration {
        self.now.since(at)
    }

    /// Other numbers in the rules from here on: for tests of the numbers.
    pub(crate) const fn set_thresholds(&mut self, thresholds: &Thresholds) {
        self.detector.set_thresholds(thresholds);
    }

    /// The judgement in force.
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The phase that the workload is in.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// What phases and steps usually take, earlier runs of the same kind included.
    pub const fn baselines(&self) -> &Baselines {
        self.detector.baselines()
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }
}
