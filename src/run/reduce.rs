//! The fold: one envelope in, effects out.
//!
//! The same envelopes give the same effects, bit for bit; verdicts and decisions
//! that the fold itself emitted change nothing when they come back.

use crate::model::event::Level;
use crate::model::{
    AttemptSpec, Effect, Envelope, Event, JobChange, Outcome, RungId, Sample, Verdict, VerdictId,
};

use super::log::words;
use super::state::{RunState, Stage, Step, WARNINGS};

/// Folds one envelope into the state.
pub fn reduce(state: &mut RunState, env: &Envelope) -> Vec<Effect> {
    state.now = state.now.max(env.at);
    if state.is_over() {
        // the last verdict comes back after what followed from it
        if matches!(env.event, Event::Verdict(_)) {
            state.tracks.event(env.at, &env.event);
        }
        return Vec::new();
    }
    // what the agent tells itself is not guessed from the console
    let Some(env) = state.detector.heed(env) else {
        return Vec::new();
    };
    let env = &*env;
    state.remember(env);
    state.detector.ignore_tracer(state.evidence_touches());
    let mut effects = Vec::new();
    if matches!(env.event, Event::Job(JobChange::Started)) {
        state.tell_failed_job(&mut effects);
    }
    state.observe(env);
    state.apply(&env.event, &mut effects);
    state.look_again(&env.event);
    state.tell_trust(&mut effects);
    if matches!(env.event, Event::Sample(_) | Event::Tick) {
        state.judge(&mut effects);
        state.advance(&mut effects);
    }
    effects
}

impl RunState {
    /// What the screen shows of an event.
    pub(super) fn remember(&mut self, env: &Envelope) {
        self.tracks.event(env.at, &env.event);
        match &env.event {
            Event::Sample(sample) => self.remember_sample(sample),
            Event::Line(line) => {
                self.last_output = Some(env.at);
                self.log.child(env.at, self.phase, line);
                return;
            }
            Event::Flood(flood) => {
                self.last_output = Some(env.at);
                self.log.gap(env.at, self.phase, flood);
                let lost = flood.lost();
                if lost > 0 {
                    *self.dropped.entry("lines".to_owned()).or_default() += lost;
                }
                return;
            }
            Event::Phase(p) => {
                // a bar belongs to the phase in which it was drawn
                if p.phase != self.phase {
                    self.progress = None;
                }
                self.enter_phase(env.at, p.phase);
                self.section = p.section;
                self.sections = p.sections.or(self.sections);
                self.last_progress = Some(env.at);
            }
            Event::Progress(p) => {
                self.progress = Some(p.clone());
                self.last_progress = Some(env.at);
            }
            Event::Dropped { what, n } => *self.dropped.entry(what.clone()).or_default() += n,
            Event::Kernel { text } => self.faults.line(env.at, text),
            Event::Notice {
                level: Level::Warn,
                text,
            } if self.attempt.is_none() && self.warnings.len() < WARNINGS => {
                self.warnings.push(text.clone());
            }
            Event::Survivors { processes, .. } => self.survivors.clone_from(processes),
            _ => {}
        }
        let text = self
            .attached_words(&env.event)
            .or_else(|| words(&env.event));
        if let Some(text) = text {
            self.log.event(env.at, self.phase, &env.event, text);
        }
    }

    fn remember_sample(&mut self, sample: &Sample) {
        self.sample.clone_from(sample);
        if self.attempt.is_none()
            && let Some(used) = self.vram_now()
        {
            self.vram_before = Some(used);
        }
        let id = self.plan.gpu.as_ref();
        let card = sample.gpus.iter().find(|g| Some(&g.id) == id);
        self.tracks.sample(self.now, sample, card);
    }

    /// Judges by the event; a point of the charts has the rates that its own sample gave.
    pub(super) fn observe(&mut self, env: &Envelope) {
        self.detector.observe(env);
        if matches!(env.event, Event::Sample(_)) {
            self.push_point();
        }
    }

    /// What an event means for the course of the run.
    fn apply(&mut self, event: &Event, out: &mut Vec<Effect>) {
        let profile = self.started.profile.clone();
        let job_before = self.job_shown.in_run;
        self.facts(event);
        if self.job_shown.in_run && !job_before {
            self.warn_of_nothing_kept(out);
        }
        match event {
            Event::Replanned(r) if r.profile != profile => self.redecide(out),
            Event::SpawnFailed { not_found, why, .. } if self.stage == Stage::Launching => {
                let outcome = Outcome::NotLaunched {
                    not_found: *not_found,
                };
                let command = self.plan.argv.first().cloned().unwrap_or_default();
                let summary = format!("the command `{command}` could not be started: {why}");
                self.finish(outcome, summary, out);
            }
            Event::Command(command) => self.command(command, out),
            Event::SignalSent { reached: 0, .. } => self.reached_nobody(out),
            Event::GuardianLost { attempt } => self.guardian_lost(*attempt, out),
            _ => {}
        }
        self.resend_event(event, out);
    }

    /// Facts that hold whoever decides.
    pub(super) fn facts(&mut self, event: &Event) {
        self.resend.facts(event);
        self.note_job_shown(event);
        match event {
            Event::Spawned { pid, .. } => {
                self.pid = Some(*pid);
                if self.stage == Stage::Launching {
                    self.stage = Stage::Watching;
                }
            }
            Event::Artefact(a) => {
                // a file that grows is told again
                let known = self.result.as_ref().is_some_and(|r| r.path == a.path);
                self.results += u32::from(!known);
                self.result = Some(a.clone());
                if !self.flags.refunded && self.budget.total() > 0 {
                    self.flags.refunded = true;
                    self.budget.refund();
                }
            }
            Event::Job(JobChange::Failed { .. }) => self.job_failed = Some(self.now),
            Event::Job(JobChange::Started) => {
                self.job_failed = None;
                self.latched = None;
                self.fault_answered = None;
            }
            Event::Job(JobChange::Done) => {
                // it came to an end, but perhaps to no result
                self.job_failed = self.detector.is_spoilt().then_some(self.now);
                self.latched = None;
            }
            // the job goes on after all
            Event::Progress(p) if p.sampling && p.done > 0.0 => self.latched = None,
            Event::EvidenceTaken(report) => {
                self.evidence.push(report.clone());
                self.evidence_at = Some(self.now);
                if self.pending.is_some_and(|p| p.number == report.number) {
                    self.pending = None;
                }
            }
            Event::Exited(report) if report.attempt == self.attempt_number() => {
                self.exited = Some((report.status, self.now));
                // also while a kill was only announced: it ended by itself, perhaps well
                if matches!(
                    self.stage,
                    Stage::Watching
                        | Stage::Launching
                        | Stage::Ending {
                            step: Step::Countdown { .. } | Step::AwaitEvidence { .. },
                            ..
                        }
                ) {
                    self.stage = Stage::Draining {
                        status: report.status,
                        since: self.now,
                        told: false,
                    };
                }
            }
            Event::Replanned(plan) => {
                self.replanned(plan);
                self.agent_event(event);
            }
            Event::Agent(_) => self.agent_event(event),
            Event::GroupGone { attempt } if *attempt == self.attempt_number() => {
                self.flags.gone = true;
                self.pid = None;
            }
            _ => {}
        }
        self.launcher_event(event);
        self.card_event(event);
    }

    /// Moves on what only waits for time.
    fn advance(&mut self, out: &mut Vec<Effect>) {
        match self.stage.clone() {
            Stage::Preparing => self.advance_preparing(out),
            Stage::Ending { purpose, step } => self.advance_ending(purpose, step, out),
            Stage::Draining {
                status,
                since,
                told,
            } => self.advance_draining(status, since, told, out),
            Stage::PostMortem { verdict, since } => self.advance_post_mortem(&verdict, since, out),
            Stage::Reclaiming { next, since, told } => {
                self.advance_reclaiming(next, since, told, out);
            }
            Stage::Delaying { next, until } if self.now >= until => {
                self.resend.by_user = next.by_user;
                if next.by_user {
                    self.answers = None;
                }
                self.launch(next.rung.as_ref(), out);
            }
            Stage::Watching => {
                self.miss_address(out);
                self.advance_launcher(out);
            }
            Stage::Launching | Stage::Delaying { .. } | Stage::Over => {}
        }
    }

    /// Starts an attempt on a rung (`None`: the profile as given).
    pub(super) fn launch(&mut self, rung: Option<&RungId>, out: &mut Vec<Effect>) {
        let number = self.attempt_number() + 1;
        if let Some(rung) = rung {
            self.position.take(rung);
        }
        let mut spec = self.position.attempt(&self.plan, number, rung);
        let begin = self.begin_with(&mut spec);
        if number == 1 && !self.is_attached() {
            self.tell_others(out);
        }
        self.begin_attempt(&spec);
        out.push(emit(Event::AttemptStarted(Box::new(spec))));
        out.push(begin);
        if number > 1 {
            self.ask_for_lost(out);
        }
    }

    /// Forgets what belonged to the attempt before.
    pub(super) fn begin_attempt(&mut self, spec: &AttemptSpec) {
        self.attempt = Some(spec.clone());
        self.attempt_since = self.now;
        self.tell_settings();
        self.effective = self.effective_next.clone();
        self.pid = None;
        self.exited = None;
        self.flags = super::state::AttemptFlags::default();
        self.launcher = super::launcher::Launcher::default();
        self.job_shown.in_attempt = false;
        self.not_ended_since = None;
        self.backend = crate::model::Backend::default();
        self.resend.begin_attempt();
        self.job_failed = None;
        self.latched = None;
        self.fault_answered = None;
        self.paused_since = None;
        self.progress = None;
        self.section = None;
        self.sections = None;
        self.enter_phase(self.now, crate::model::Phase::Startup);
        self.last_output = None;
        self.last_progress = None;
        self.survivors.clear();
        self.detector.set_limits(&self.plan.limits);
        self.detector.begin_attempt(self.now, spec.on_cpu);
        self.stage = Stage::Launching;
    }

    /// Ends the run.
    pub(super) fn finish(&mut self, outcome: Outcome, summary: String, out: &mut Vec<Effect>) {
        let refused = self
            .refusal()
            .filter(|_| matches!(outcome, Outcome::Failed));
        let exit_code = refused.unwrap_or_else(|| outcome.exit_code());
        let summary = match self.tiers.words() {
            Some(tiers) => format!("{summary}; {tiers}"),
            None => summary,
        };
        self.stage = Stage::Over;
        self.detector.end_attempt();
        self.outcome = Some((outcome.clone(), exit_code, summary.clone()));
        self.log.own(self.now, self.phase, summary.clone());
        self.tell_missing_evidence(out);
        out.push(emit(Event::RunFinished {
            outcome: outcome.clone(),
            exit_code,
            result: self.result.clone(),
            summary,
        }));
        out.push(Effect::Finish(outcome));
    }

    /// Whether this verdict means that the job came to a good end.
    pub(super) fn is_good_end(verdict: &Verdict) -> bool {
        verdict.id == VerdictId::Finished
    }
}

/// An effect that appends to the log.
pub(super) fn emit(event: Event) -> Effect {
    Effect::Emit(Box::new(event))
}
