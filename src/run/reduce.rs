//! The fold: one envelope in, effects out.
//!
//! The same envelopes give the same effects, bit for bit; verdicts and decisions
//! that the fold itself emitted change nothing when they come back.

use std::time::Duration;

use crate::detect::Job;
use crate::model::event::{Choice, Level, Standstill};
use crate::model::{
    Command, Effect, Envelope, Event, Health, JobChange, Mono, Outcome, Sample, Verdict, VerdictId,
};
use crate::policy::{decide, default_action};

use super::log::words;
use super::state::{Purpose, RunState, Shown, Stage, Step};

/// Longest wait for a first reading before the first launch.
const FIRST_READING: Duration = Duration::from_millis(1500);
/// A server whose job failed is judged after its last words have come.
const AFTER_FAILED_JOB: Duration = Duration::from_secs(1);
/// A script that printed an exception usually ends; one that stays alive this long
/// is judged alive.
const AFTER_FAILED_SCRIPT: Duration = Duration::from_secs(10);
/// R6: at most one change of the shown verdict in this time.
const BETWEEN_CHANGES: Duration = Duration::from_secs(2);

/// Folds one envelope into the state.
pub fn reduce(state: &mut RunState, env: &Envelope) -> Vec<Effect> {
    state.now = state.now.max(env.at);
    if state.is_over() {
        return Vec::new();
    }
    state.remember(env);
    state.detector.ignore_tracer(state.evidence_touches());
    state.detector.observe(env);
    let mut effects = Vec::new();
    state.apply(&env.event, &mut effects);
    if matches!(env.event, Event::Sample(_) | Event::Tick) {
        state.judge(&mut effects);
        state.advance(&mut effects);
    }
    effects
}

impl RunState {
    /// What the screen shows of an event.
    fn remember(&mut self, env: &Envelope) {
        match &env.event {
            Event::Sample(sample) => self.remember_sample(sample),
            Event::Line(line) => {
                self.last_output = Some(env.at);
                self.log.child(env.at, line);
                return;
            }
            Event::Phase(p) => {
                // a bar belongs to the phase in which it was drawn
                if p.phase != self.phase {
                    self.progress = None;
                }
                self.phase = p.phase;
                self.phase_since = env.at;
                self.section = p.section;
                self.sections = p.sections.or(self.sections);
                self.last_progress = Some(env.at);
            }
            Event::Progress(p) => {
                self.progress = Some(p.clone());
                self.last_progress = Some(env.at);
            }
            Event::Dropped { what, n } => *self.dropped.entry(what.clone()).or_default() += n,
            Event::Survivors { processes, .. } => self.survivors.clone_from(processes),
            _ => {}
        }
        if let Some(text) = words(&env.event) {
            self.log.own(env.at, text);
        }
    }

    fn remember_sample(&mut self, sample: &Sample) {
        self.sample.clone_from(sample);
        if self.attempt.is_none()
            && let Some(used) = self.vram_now()
        {
            self.vram_before = Some(used);
        }
        self.push_point();
    }

    /// Facts that change the course of the run.
    fn apply(&mut self, event: &Event, out: &mut Vec<Effect>) {
        match event {
            Event::Spawned { pid, .. } => {
                self.pid = Some(*pid);
                if self.stage == Stage::Launching {
                    self.stage = Stage::Watching;
                }
            }
            Event::SpawnFailed { not_found, why, .. } if self.stage == Stage::Launching => {
                let outcome = Outcome::NotLaunched {
                    not_found: *not_found,
                };
                let command = self.plan.argv.first().cloned().unwrap_or_default();
                let summary = format!("the command `{command}` could not be started: {why}");
                self.finish(outcome, summary, out);
            }
            Event::Artefact(a) => {
                self.result = Some(a.clone());
                if !self.flags.refunded && self.budget.total() > 0 {
                    self.flags.refunded = true;
                    self.budget.refund();
                }
            }
            Event::Job(JobChange::Failed { .. }) => self.job_failed = Some(self.now),
            Event::Job(JobChange::Started | JobChange::Done) => {
                self.job_failed = None;
                self.latched = None;
            }
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
            Event::GroupGone { attempt } if *attempt == self.attempt_number() => {
                self.flags.gone = true;
                self.pid = None;
            }
            Event::Command(command) => self.command(command, out),
            _ => {}
        }
    }

    fn command(&mut self, command: &Command, out: &mut Vec<Effect>) {
        match command {
            Command::Hold => self.set_held(true, out),
            Command::Release => self.set_held(false, out),
            Command::Wait => {
                if let Stage::Ending {
                    step: Step::Countdown { kill_at, .. },
                    ..
                } = &mut self.stage
                {
                    *kill_at = (*kill_at).max(self.now) + Duration::from_mins(1);
                } else {
                    self.detector.grant(self.now);
                }
            }
            Command::FalseAlarm => {
                self.detector.false_alarm(self.now);
                self.spare("you called it a false alarm; the limit is raised", out);
            }
            Command::Evidence => {
                self.capture(out);
            }
            Command::Stop => self.user_stop(false, out),
            Command::Terminate => self.user_stop(true, out),
            Command::Kill => self.user_kill(out),
            Command::TerminalLost => {
                // nobody can answer a countdown any more
                self.plan.countdown = Duration::ZERO;
            }
        }
    }

    fn set_held(&mut self, hold: bool, out: &mut Vec<Effect>) {
        let countdown = self.plan.countdown;
        let Stage::Ending {
            step: Step::Countdown { kill_at, held },
            ..
        } = &mut self.stage
        else {
            return;
        };
        *held = hold;
        if !hold {
            *kill_at = self.now + countdown;
        }
        let choice = if hold { Choice::Hold } else { Choice::Resume };
        let why = if hold {
            "held: nothing happens until it is released"
        } else {
            "released: the announced action goes ahead"
        };
        self.tell(choice, why, out);
    }

    /// Leaves a countdown without acting.
    pub(super) fn spare(&mut self, why: &str, out: &mut Vec<Effect>) {
        if matches!(
            self.stage,
            Stage::Ending {
                step: Step::Countdown { .. } | Step::AwaitEvidence { .. },
                purpose: Purpose::Restart(_) | Purpose::GiveUp,
            }
        ) {
            self.stage = Stage::Watching;
            self.tell(Choice::Resume, why, out);
        }
    }

    fn tell(&mut self, choice: Choice, why: &str, out: &mut Vec<Effect>) {
        let decision = crate::model::event::Decision {
            attempt: self.attempt_number(),
            verdict: self.verdict.id,
            choice,
            why: why.to_owned(),
            skipped: Vec::new(),
            restarts_left: self.budget.left(&self.plan.budget, self.now),
        };
        self.decision = Some(decision.why.clone());
        out.push(emit(Event::Decision(Box::new(decision))));
    }

    /// The judgement of the moment, and what follows from it.
    fn judge(&mut self, out: &mut Vec<Effect>) {
        if !self.is_watched() {
            return;
        }
        self.tell_pause(out);
        self.tell_cap(out);
        let verdict = match &self.latched {
            Some(v) => (**v).clone(),
            None => self.detector.assess(self.now),
        };
        // a job that failed a moment ago is judged when its last words have come: the
        // idle server behind it is not told first
        let undecided = self.stage == Stage::Watching && self.job_failed.is_some();
        if !undecided {
            self.show(verdict, out);
        }
        let wants = self.detector.wants_threads();
        if wants != self.threads_on {
            self.threads_on = wants;
            out.push(Effect::SampleThreads(wants));
        }
        match (&self.stage, self.verdict.health) {
            (Stage::Watching, Health::Hung) => self.answer_hang(out),
            (Stage::Watching, _) => self.answer_failed_job(out),
            (Stage::Ending { .. }, Health::Healthy | Health::Slow) => {
                self.spare("it moves again", out);
            }
            (Stage::Ending { .. }, Health::Blind) => {
                self.spare("the evidence is no longer enough to judge", out);
            }
            _ => {}
        }
    }

    /// R7: the record says for how long nothing was judged.
    fn tell_pause(&mut self, out: &mut Vec<Effect>) {
        match (self.detector.is_paused(), self.paused_since) {
            (true, None) => self.paused_since = Some(self.now),
            (false, Some(since)) => {
                self.paused_since = None;
                out.push(emit(Event::Standstill {
                    cause: Standstill::ChildStopped,
                    for_ms: crate::model::time::millis(self.ago(since)),
                }));
            }
            _ => {}
        }
    }

    /// The cap is a warn line here: what is above it is told once an attempt.
    fn tell_cap(&mut self, out: &mut Vec<Effect>) {
        let used = self.card().and_then(crate::model::GpuSample::pool);
        if let (Some(cap), Some((used, _)), false) = (self.plan.vram_cap, used, self.flags.cap_told)
            && used > cap
        {
            self.flags.cap_told = true;
            out.push(emit(Event::Notice {
                level: Level::Warn,
                text: format!("{used} of the card's memory are in use, above the cap of {cap}"),
            }));
        }
    }

    fn is_watched(&self) -> bool {
        self.exited.is_none()
            && matches!(
                self.stage,
                Stage::Watching
                    | Stage::Ending {
                        step: Step::Countdown { .. } | Step::AwaitEvidence { .. },
                        ..
                    }
            )
    }

    /// Takes a verdict over, and tells it if it is news.
    pub(super) fn show(&mut self, mut verdict: Verdict, out: &mut Vec<Effect>) {
        verdict.action = default_action(verdict.id, verdict.phase);
        let news = self
            .shown
            .is_none_or(|s| s.id != verdict.id || s.health != verdict.health);
        let decided = matches!(self.stage, Stage::Ending { .. })
            && verdict.health == Health::Hung
            && self.shown.is_some_and(|s| s.health == Health::Hung);
        if news && decided {
            // a second rule agrees: what is being acted on keeps its name
            return;
        }
        let grave = matches!(
            verdict.health,
            Health::Hung | Health::Failing | Health::Failed | Health::Finished
        );
        let calm_down = self
            .shown
            .is_some_and(|s| self.now.since(s.at) < BETWEEN_CHANGES);
        if news && calm_down && !grave {
            return;
        }
        if news {
            self.shown = Some(Shown {
                id: verdict.id,
                health: verdict.health,
                at: self.now,
            });
            out.push(emit(Event::Verdict(Box::new(verdict.clone()))));
        }
        self.verdict = verdict;
    }

    fn answer_hang(&mut self, out: &mut Vec<Effect>) {
        let answer = decide(
            &self.plan,
            &self.position,
            &self.budget,
            &self.verdict,
            self.attempt_number(),
            false,
            self.now,
        );
        self.decision = Some(answer.decision.why.clone());
        out.push(emit(Event::Decision(Box::new(answer.decision))));
        self.capture(out);
        self.stage = Stage::Ending {
            purpose: answer.rung.map_or(Purpose::GiveUp, Purpose::Restart),
            step: Step::Countdown {
                kill_at: self.now + self.plan.countdown,
                held: false,
            },
        };
    }

    /// The job failed and the process lives: a server that caught the exception.
    fn answer_failed_job(&mut self, out: &mut Vec<Effect>) {
        let patience = if self.plan.server {
            AFTER_FAILED_JOB
        } else {
            AFTER_FAILED_SCRIPT
        };
        let Some(at) = self.job_failed.filter(|at| self.ago(*at) >= patience) else {
            return;
        };
        if matches!(self.detector.job(), Job::InFlight(_)) {
            self.job_failed = None;
            return;
        }
        self.job_failed = None;
        let mut verdict = self.detector.end(None, self.now);
        verdict.onset = verdict.onset.min(at);
        self.show(verdict.clone(), out);
        self.latched = Some(Box::new(verdict.clone()));
        let answer = decide(
            &self.plan,
            &self.position,
            &self.budget,
            &verdict,
            self.attempt_number(),
            true,
            self.now,
        );
        self.decision = Some(answer.decision.why.clone());
        out.push(emit(Event::Decision(Box::new(answer.decision))));
        self.capture(out);
        if let Some(rung) = answer.rung {
            self.stage = Stage::Ending {
                purpose: Purpose::Restart(rung),
                step: Step::Countdown {
                    kill_at: self.now + self.plan.countdown,
                    held: false,
                },
            };
        }
    }

    /// Moves on what only waits for time.
    fn advance(&mut self, out: &mut Vec<Effect>) {
        match self.stage.clone() {
            Stage::Preparing => {
                let no_card = self.plan.gpu.is_none();
                if no_card
                    || self.vram_before.is_some()
                    || self.now.since(Mono::ZERO) >= FIRST_READING
                {
                    self.launch(None, out);
                }
            }
            Stage::Ending { purpose, step } => self.advance_ending(purpose, step, out),
            Stage::Draining {
                status,
                since,
                told,
            } => self.advance_draining(status, since, told, out),
            Stage::PostMortem { verdict, since } => self.advance_post_mortem(&verdict, since, out),
            Stage::Reclaiming { rung, since, told } => {
                self.advance_reclaiming(rung, since, told, out);
            }
            Stage::Delaying { rung, until } if self.now >= until => self.launch(Some(rung), out),
            Stage::Launching | Stage::Watching | Stage::Delaying { .. } | Stage::Over => {}
        }
    }

    /// Starts an attempt on a rung (`None`: the profile as given).
    pub(super) fn launch(&mut self, rung: Option<usize>, out: &mut Vec<Effect>) {
        let number = self.attempt_number() + 1;
        let spec = self.position.attempt(&self.plan, number, rung);
        self.attempt = Some(spec.clone());
        self.attempt_since = self.now;
        self.pid = None;
        self.exited = None;
        self.flags = super::state::AttemptFlags::default();
        self.job_failed = None;
        self.latched = None;
        self.paused_since = None;
        self.progress = None;
        self.section = None;
        self.sections = None;
        self.phase = crate::model::Phase::Startup;
        self.phase_since = self.now;
        self.last_output = None;
        self.last_progress = None;
        self.survivors.clear();
        self.detector.begin_attempt(self.now, spec.on_cpu);
        self.stage = Stage::Launching;
        out.push(emit(Event::AttemptStarted(Box::new(spec.clone()))));
        out.push(Effect::Launch(Box::new(spec)));
        if number > 1 && self.plan.server {
            out.push(emit(Event::Notice {
                level: Level::Info,
                text: "the server was restarted and waits for a job: press Start again".to_owned(),
            }));
        }
    }

    /// Ends the run.
    pub(super) fn finish(&mut self, outcome: Outcome, summary: String, out: &mut Vec<Effect>) {
        let exit_code = outcome.exit_code();
        self.stage = Stage::Over;
        self.detector.end_attempt();
        self.outcome = Some((outcome.clone(), exit_code, summary.clone()));
        self.log.own(self.now, summary.clone());
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
