//! The judgement of the moment, and what is done about it.

use std::time::Duration;

use crate::causes::Known;
use crate::detect::Job;
use crate::detect::verdicts::RemedyFacts;
use crate::model::event::{Level, Standstill};
use crate::model::worker::own_work;
use crate::model::{Effect, Event, GpuSample, Health, Mono, Questions, RungId, Verdict, VerdictId};
use crate::policy::{Standing, advise, decide, explained};

use super::reduce::emit;
use super::state::{Next, Purpose, RunState, Shown, Stage, Step};

/// A server whose job failed is judged after its last words have come.
const AFTER_FAILED_JOB: Duration = Duration::from_secs(1);
/// A script that printed an exception usually ends; one that stays alive this long
/// is judged alive.
const AFTER_FAILED_SCRIPT: Duration = Duration::from_secs(10);
/// The same where the error is known and nothing at all has moved since.
const AFTER_KNOWN_ERROR: Duration = Duration::from_secs(4);
/// R6: at most one change of the shown verdict in this time.
const BETWEEN_CHANGES: Duration = Duration::from_secs(2);
/// A pause is named again after these times.
const PAUSE_REMINDERS: [Duration; 3] = [
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
];

impl RunState {
    /// The judgement of the moment, and what follows from it.
    pub(super) fn judge(&mut self, out: &mut Vec<Effect>) {
        if !self.is_watched() {
            return;
        }
        self.tell_pause(out);
        self.tell_cap(out);
        let mut verdict = match &self.latched {
            Some(v) => (**v).clone(),
            None => self.detector.assess(self.now),
        };
        self.without_job(&mut verdict);
        // a job that failed a moment ago is judged when its last words have come: the
        // idle server behind it is not told first
        let undecided = self.stage == Stage::Watching && self.job_failed.is_some();
        if !undecided {
            self.show(verdict, out);
        }
        let wants = self.detector.wants_probes(self.now) || self.launcher_returned();
        if wants != self.probes_on {
            self.probes_on = wants;
            out.push(Effect::Probe(wants));
        }
        match (&self.stage, self.verdict.health) {
            (Stage::Watching, Health::Hung) if self.is_attached() || !self.job_shown.in_attempt => {
                self.advise_hang(out);
            }
            (Stage::Watching, Health::Hung) => self.answer_hang(out),
            (Stage::Watching, Health::Failing) if self.latched.is_none() => self.answer_fault(out),
            (Stage::Watching, _) => {
                self.flags.advised = None;
                self.answer_failed_job(out);
                self.end_after_result(out);
            }
            (
                Stage::Ending { .. },
                Health::Healthy | Health::Slow | Health::Quiet | Health::Paused,
            ) => {
                self.spare("it moves again", out);
            }
            (Stage::Ending { .. }, Health::Blind) => {
                self.spare("the evidence is no longer enough to judge", out);
            }
            _ => {}
        }
    }

    /// The judgement after a word of the user, who waits for no calming down.
    pub(super) fn judge_again(&mut self, out: &mut Vec<Effect>) {
        let undecided = self.job_failed.is_some() || self.latched.is_some();
        if !self.is_watched() || undecided {
            return;
        }
        let mut verdict = self.detector.assess(self.now);
        self.without_job(&mut verdict);
        self.shown = None;
        self.show(verdict, out);
    }

    /// R7: the record says for how long nothing was judged.
    fn tell_pause(&mut self, out: &mut Vec<Effect>) {
        match (self.detector.is_paused(), self.paused_since) {
            (true, None) => {
                self.paused_since = Some(self.now);
                self.pause_reminders = 0;
            }
            (true, Some(_)) => self.remind_of_pause(out),
            (false, Some(since)) => {
                self.paused_since = None;
                out.push(emit(Event::Standstill {
                    cause: Standstill::ChildStopped,
                    for_ms: crate::model::time::millis(self.ago(since)),
                }));
            }
            (false, None) => {}
        }
    }

    /// A pause that somebody has forgotten is named again, with who causes it.
    fn remind_of_pause(&mut self, out: &mut Vec<Effect>) {
        let due = PAUSE_REMINDERS.get(self.pause_reminders);
        if let Some(sentence) = due.and_then(|due| self.detector.paused_for(*due, self.now)) {
            self.pause_reminders += 1;
            out.push(emit(Event::Notice {
                level: Level::Warn,
                text: format!("still paused: {sentence}"),
            }));
        }
    }

    /// The cap is a warn line here: what is above it is told once an attempt.
    fn tell_cap(&mut self, out: &mut Vec<Effect>) {
        let used = self.card().and_then(GpuSample::pool);
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

    /// Between two judgements: a program that begins is not shown as one that does not run, or that still starts, once
    /// it tells of more. The next judgement is told as any other.
    pub(super) fn look_again(&mut self, event: &Event) {
        let tells = matches!(
            event,
            Event::Spawned { .. } | Event::Phase(_) | Event::Job(_)
        );
        let begins = self.exited.is_none() && self.latched.is_none();
        if tells && begins && self.verdict.health == Health::Starting {
            let mut verdict = self.detector.beginning(self.now);
            self.without_job(&mut verdict);
            self.prescribe(&mut verdict);
            self.verdict = verdict;
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
        self.prescribe(&mut verdict);
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
        // that it starts was no judgement yet, and is not said of what has gone on
        let begun = verdict.health == Health::Healthy
            && verdict.phase.says_something()
            && self.shown.is_some_and(|s| s.health == Health::Starting);
        if news && calm_down && !grave && !begun {
            return;
        }
        verdict.questions = self.answers_of(news);
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

    /// The three questions behind a verdict: answered again where it is news, else every few
    /// seconds.
    fn answers_of(&mut self, news: bool) -> Option<Box<Questions>> {
        let fresh = |at: Mono| self.now.since(at) < BETWEEN_CHANGES;
        if news || !self.answered_at.is_some_and(fresh) {
            self.answered_at = Some(self.now);
            return self.detector.answered(self.now).map(Box::new);
        }
        self.verdict.questions.clone()
    }

    /// What follows from a verdict, with what is known of the card and of earlier attempts.
    fn prescribe(&self, verdict: &mut Verdict) {
        let card = self.card();
        let tries = self.tried.iter().filter(|t| t.verdict == Some(verdict.id));
        let facts = RemedyFacts {
            recovered: self.detector.card_recovered(),
            naive: self.detector.runs_naive(),
            copies: self.detector.was_copying(),
            kept: self.killed_is_answered(),
            tries: u32::try_from(tries.count()).unwrap_or(u32::MAX),
            vram: card.and_then(|c| c.vram_total.last().copied()),
            arch: card.and_then(|c| c.arch.clone()),
            vendor: card.map(|c| c.vendor),
            backend: self.backend(),
            own: own_work(&self.started.argv),
            ..RemedyFacts::default()
        };
        let known = Known {
            backend: facts.backend,
            card_memory: facts.vram,
            arch: facts.arch.as_deref(),
            program: Some(&self.started.adapter),
            argv: &self.started.argv,
            ..Known::default()
        };
        let cause = self.detector.explain(verdict, &known);
        let in_force = self.detector.actions_in_force(&known);
        let facts = RemedyFacts {
            in_force,
            cause,
            ..facts
        };
        let mut remedy = explained(verdict, &facts);
        // what is not ours is never started again by itself
        remedy.auto_restart &= !self.is_attached();
        verdict.action = remedy.action;
        verdict.remedy = Some(remedy);
    }

    /// Decides about a fault and tells it; the rung that follows, if one does.
    pub(super) fn settle(
        &mut self,
        verdict: &Verdict,
        alive_server: bool,
        out: &mut Vec<Effect>,
    ) -> Option<RungId> {
        let mut verdict = verdict.clone();
        self.prescribe(&mut verdict);
        let standing = Standing {
            plan: &self.plan,
            position: &self.position,
            budget: &self.budget,
            in_flight: &self.in_flight(),
            recovered: self.detector.card_recovered(),
            kept: self.killed_is_answered(),
        };
        let number = self.attempt_number();
        let mut answer = if self.is_attached() {
            advise(&standing, &verdict, number)
        } else {
            let answer = decide(&standing, &verdict, number, alive_server, self.now);
            self.restart_only_a_job(answer, alive_server || self.stage == Stage::Watching)
        };
        self.warn_of_lost_job(&mut answer, out);
        self.decision = Some(answer.decision.why.clone());
        self.answers = answer.rung.as_ref().map(|_| verdict.id);
        out.push(emit(Event::Decision(Box::new(answer.decision))));
        answer.rung
    }

    /// Announces the end of the attempt.
    pub(super) fn announce(&mut self, purpose: Purpose, kill_at: Mono) {
        self.stage = Stage::Ending {
            purpose,
            step: Step::Countdown {
                kill_at,
                held: false,
            },
        };
    }

    fn answer_hang(&mut self, out: &mut Vec<Effect>) {
        let verdict = self.verdict.clone();
        let rung = self.settle(&verdict, false, out);
        self.capture(out);
        let (purpose, countdown) = match rung {
            Some(rung) => (
                Purpose::Restart(Next::answer(rung)),
                self.restart_countdown(),
            ),
            None => (Purpose::GiveUp, self.plan.countdown),
        };
        self.announce(purpose, self.now + countdown);
    }

    /// The job lives but does not come to an end this way. It is never given up for want
    /// of a rung, and answered once.
    fn answer_fault(&mut self, out: &mut Vec<Effect>) {
        if self.fault_answered == Some(self.verdict.id) || !answered(self.verdict.id) {
            self.answer_failed_job(out);
            return;
        }
        self.fault_answered = Some(self.verdict.id);
        let verdict = self.verdict.clone();
        self.answer_alive(&verdict, out);
    }

    /// The job failed and the process lives: a server that caught the exception.
    fn answer_failed_job(&mut self, out: &mut Vec<Effect>) {
        let Some(verdict) = self.judge_failed_job(out) else {
            return;
        };
        self.answer_alive(&verdict, out);
    }

    /// What follows from a fault of a program that lives.
    fn answer_alive(&mut self, verdict: &Verdict, out: &mut Vec<Effect>) {
        let rung = self.settle(verdict, true, out);
        self.capture(out);
        if let Some(rung) = rung {
            let next = Purpose::Restart(Next::answer(rung));
            self.announce(next, self.now + self.restart_countdown());
        }
    }

    /// The next job of a queue begins before the failed one was judged: it is told, and
    /// nothing follows.
    pub(super) fn tell_failed_job(&mut self, out: &mut Vec<Effect>) {
        if let Some(at) = self.job_failed.filter(|_| self.stage == Stage::Watching) {
            let mut verdict = self.detector.end(None, self.now);
            verdict.onset = verdict.onset.min(at);
            self.show(verdict, out);
        }
    }

    /// The judgement over a job that failed, once its last words have come; it stays until
    /// something new begins.
    pub(super) fn judge_failed_job(&mut self, out: &mut Vec<Effect>) -> Option<Verdict> {
        // a program that waits again after its job serves, whatever its name says
        let serves = self.plan.server || matches!(self.detector.job(), Job::Waiting(_));
        let patience = if serves {
            AFTER_FAILED_JOB
        } else {
            AFTER_FAILED_SCRIPT
        };
        let rests = self.detector.rests_after_an_error(self.now);
        let failed = self.job_failed.filter(|at| {
            let ago = self.ago(*at);
            ago >= patience || (rests && ago >= AFTER_KNOWN_ERROR)
        });
        if failed.is_some() && matches!(self.detector.job(), Job::InFlight(_)) {
            self.job_failed = None;
            return None;
        }
        let unsaid = self.job_failed.is_none()
            && self.latched.is_none()
            && self.detector.died_in_silence(self.now);
        if failed.is_none() && !unsaid {
            return None;
        }
        self.job_failed = None;
        let mut verdict = self.detector.end(None, self.now);
        verdict.onset = verdict.onset.min(failed.unwrap_or(self.now));
        self.show(verdict.clone(), out);
        self.latched = Some(Box::new(verdict.clone()));
        Some(verdict)
    }
}

/// Faults of a job that lives which a restart by itself answers, by the default table of
/// the vocabulary. Not every failing verdict: one of a job that failed while the next one
/// goes on is told, and nothing follows.
const fn answered(verdict: VerdictId) -> bool {
    matches!(
        verdict,
        VerdictId::DeviceMismatch | VerdictId::VramSpill | VerdictId::MemoryFault
    )
}
