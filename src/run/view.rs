//! State ▸ snapshot.

use crate::detect::Job;
use crate::model::{ActionId, RungId, Tier};

use super::snapshot::{Freshness, JobState, LadderEntry, RungState, Snapshot, Stage as Shown};
use super::state::{Next, Purpose, RunState, Stage, Step};

impl RunState {
    /// The present state for readers.
    pub fn snapshot(&self) -> Snapshot {
        let (cpu_percent, read_bps, write_bps) = self.detector.rates();
        Snapshot {
            run: self.started.run.clone(),
            now: self.now,
            freshness: Freshness::Live,
            wall_clock: self.started.wall_clock.clone(),
            argv: self.started.argv.clone(),
            attached: self.is_attached(),
            profile: self.started.profile.clone(),
            profile_why: self.started.profile_why.clone(),
            adapter: self.started.adapter.clone(),
            attempt: self.attempt.clone(),
            attempt_since: self.attempt_since,
            pid: self.pid,
            gpus: self.sample.gpus.clone(),
            gpu: self.plan.gpu.clone(),
            card_idle: self.detector.idle().cloned(),
            busy_trust: self.detector.busy_trust().clone(),
            vram_cap: self.plan.vram_cap,
            process: self.sample.process.clone(),
            cpu_percent,
            working: self.detector.working().cloned(),
            read_bps,
            write_bps,
            host: self.sample.host.clone(),
            sources: self.sample.sources.clone(),
            history: self.history.clone(),
            last_output: self.last_output,
            last_progress: self.last_progress,
            phase: self.phase,
            phase_since: self.phase_since,
            phases: self.phases.clone(),
            section: self.section,
            sections: self.sections,
            progress: self.progress.clone(),
            job: self.job_state(),
            find: self.detector.find().map(Box::new),
            agent: self.view_agent(),
            resend: self.view_resend(),
            verdict: self.verdict.clone(),
            verdict_since: self.shown.map_or(self.now, |s| s.at),
            trail: self.tracks.trail.clone(),
            stage: self.view_stage(),
            ladder: self.view_ladder(),
            restarts_left: self.restarts_left(),
            settings: self.view_settings(),
            effective: self.effective.clone(),
            effective_next: self.effective_next.clone(),
            chosen: self.plan.chosen.clone(),
            budget: self.plan.budget.clone(),
            kill: self.plan.kill.clone(),
            server: self.plan.server,
            decision: self.decision.clone(),
            log: self.log.lines.clone(),
            chatter: self.log.chatter,
            dropped: self.dropped.iter().map(|(k, v)| (k.clone(), *v)).collect(),
            faults: self.faults.list(),
            warnings: self.warnings.clone(),
            evidence: self.evidence.clone(),
            survivors: self.survivors.clone(),
            left_running: self.left_running(),
            ended: self.program_has_ended(),
            result: self.result.clone(),
            results: self.results,
            outcome: self.outcome.clone(),
        }
    }

    /// Whether the program of the attempt has ended. What a launcher left goes on with it.
    fn program_has_ended(&self) -> bool {
        self.flags.gone || (self.exited.is_some() && !self.launcher_returned())
    }

    /// Whether a job is in flight.
    pub(super) fn job_state(&self) -> JobState {
        match self.detector.job() {
            Job::Unknown => JobState::Unknown,
            Job::InFlight(t) => JobState::InFlight(t),
            Job::Waiting(t) => JobState::Waiting(t),
            Job::Ended => JobState::Ended,
        }
    }

    fn view_stage(&self) -> Shown {
        match &self.stage {
            Stage::Preparing => self.view_preparing(),
            Stage::Launching | Stage::Watching | Stage::Draining { .. } => Shown::Watching,
            Stage::Ending { purpose, step } => match step {
                Step::Countdown { kill_at, held } => Shown::Countdown {
                    rung: Self::following(purpose),
                    kill_at: *kill_at,
                    held: *held,
                },
                Step::AwaitEvidence { since } => Shown::TakingEvidence { since: *since },
                Step::Terminating { kill_at } => Shown::Terminating { kill_at: *kill_at },
                Step::Killing { since, .. } => Shown::Killing { since: *since },
            },
            Stage::PostMortem { since, .. } => Shown::TakingEvidence { since: *since },
            Stage::Reclaiming { since, .. } => Shown::WaitingVram {
                used: self.vram_now(),
                before: self.vram_before.unwrap_or_default(),
                until: Self::reclaim_until(*since),
            },
            Stage::Delaying { until, .. } => Shown::Delay { until: *until },
            Stage::Over => Shown::Ended,
        }
    }

    fn restarts_left(&self) -> u32 {
        let own = i64::from(self.budget.left(&self.plan.budget, self.now));
        u32::try_from((own + self.followed.restarts_more).max(0)).unwrap_or(u32::MAX)
    }

    /// What was decided on and has not begun.
    pub(super) fn decided(&self) -> Option<&Next> {
        match &self.stage {
            Stage::Ending {
                purpose: Purpose::Restart(next),
                ..
            }
            | Stage::Reclaiming { next, .. }
            | Stage::Delaying { next, .. } => Some(next),
            _ => None,
        }
    }

    fn following(purpose: &Purpose) -> RungId {
        match purpose {
            Purpose::Restart(next) => next.rung.clone().unwrap_or_else(RungId::as_given),
            _ => RungId::give_up(),
        }
    }

    fn view_ladder(&self) -> Vec<LadderEntry> {
        let next = if let Some(next) = self.decided() {
            next.rung.clone()
        } else {
            let position = &self.position;
            let in_flight = self.in_flight();
            let offer = position.next(&self.plan, self.verdict.id, self.phase, &in_flight);
            offer.rung
        };
        let current = self.attempt.as_ref().map(|a| &a.rung);
        let running = !matches!(
            self.stage,
            Stage::Over | Stage::Preparing | Stage::Reclaiming { .. } | Stage::Delaying { .. }
        );
        let result_of = |id: &RungId| {
            self.tried
                .iter()
                .rev()
                .find(|t| t.rung == *id)
                .map(|t| t.words.clone())
        };
        let state_of = |id: &RungId, unavailable: Option<&String>, is_next: bool| {
            if running && current == Some(id) {
                RungState::Running
            } else if let Some(result) = result_of(id) {
                RungState::Tried { result }
            } else if let Some(why) = unavailable {
                RungState::Unavailable { why: why.clone() }
            } else if is_next {
                RungState::Next
            } else {
                RungState::Untried
            }
        };
        let as_given = RungId::as_given();
        let mut entries = vec![LadderEntry {
            state: state_of(&as_given, None, false),
            id: as_given,
            action: ActionId::None,
            tier: Tier::T0,
        }];
        entries.extend(self.plan.ladder.iter().map(|r| LadderEntry {
            id: r.id.clone(),
            action: r.action,
            tier: r.tier,
            state: state_of(&r.id, r.unavailable.as_ref(), next.as_ref() == Some(&r.id)),
        }));
        entries
    }
}
