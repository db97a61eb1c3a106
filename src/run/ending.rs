//! How an attempt ends: evidence, first signal, grace, SIGKILL, stragglers.

use std::time::Duration;

use crate::model::event::{EvidenceItem, EvidenceReport, Level, MAX_BUNDLES};
use crate::model::time::millis;
use crate::model::worker::{OF_DEVICE, refusal};
use crate::model::{Effect, Event, ExitStatus, Mono, Outcome, Scope, Signal, Verdict, VerdictId};

use crate::detect::Job;

use super::live::refuse;
use super::reduce::emit;
use super::snapshot::AgentState;
use super::state::{Next, Pending, Purpose, RunState, Stage, Step, Tried};

/// Collectors have 10 s (R9); two more for the answer to come back.
const EVIDENCE_LIMIT: Duration = Duration::from_secs(12);
/// After the root has ended its output is still drained for a moment.
const DRAIN: Duration = Duration::from_millis(300);
/// Stragglers of a program that ended well may still write the result. They are the attempt as
/// soon as it is known which they are; this is for the case that nobody can say it.
const STRAGGLERS_OF_SUCCESS: Duration = Duration::from_secs(30);
/// Stragglers of one that failed, or that we ended.
pub(super) const STRAGGLERS: Duration = Duration::from_secs(2);
/// A wait for stragglers that lasts this long is told.
const TELL_STRAGGLERS: Duration = Duration::from_secs(1);
/// R10: after SIGKILL everything is gone within 2 s; else we ask who is left.
const ASK_SURVIVORS: Duration = Duration::from_secs(3);
/// And then it is *unkillable*.
const UNKILLABLE: Duration = Duration::from_secs(10);
/// Samples lag behind by up to three periods.
const AFTER_EVIDENCE: Duration = Duration::from_secs(3);

impl RunState {
    /// Asks for evidence, unless the run has taken its fill.
    pub(super) fn capture(&mut self, out: &mut Vec<Effect>) {
        if self.evidence_count >= MAX_BUNDLES {
            return;
        }
        self.evidence_count += 1;
        self.pending = Some(Pending {
            number: self.evidence_count,
            since: self.now,
        });
        out.push(Effect::Capture {
            number: self.evidence_count,
            attempt: self.attempt_number(),
        });
    }

    /// The run ends before the evidence that was asked for is on disk: the stream says so, for
    /// nothing follows its end.
    pub(super) fn tell_missing_evidence(&mut self, out: &mut Vec<Effect>) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let waited = self.now.since(pending.since).as_secs();
        out.push(emit(Event::EvidenceTaken(EvidenceReport {
            number: pending.number,
            attempt: self.attempt_number(),
            dir: String::new(),
            items: vec![EvidenceItem {
                kind: "bundle".to_owned(),
                file: None,
                bytes: 0,
                failed: Some(format!(
                    "it was not on disk when the run ended, {waited} s later"
                )),
                absent: false,
            }],
            took_ms: millis(self.now.since(pending.since)),
            asked: Some(pending.since),
        })));
    }

    /// Whether collectors are, or were a moment ago, attached to the process: their
    /// tracing and stopping is not the user's.
    pub(super) fn evidence_touches(&self) -> bool {
        self.evidence_pending()
            || self
                .evidence_at
                .is_some_and(|at| self.now.since(at) < self.of_machine(AFTER_EVIDENCE))
    }

    /// A limit on the machine's own work, which goes no faster at a time scale.
    pub(super) fn of_machine(&self, limit: Duration) -> Duration {
        self.started.plan.time_scale.run_time(limit)
    }

    /// Whether a kill still has to wait for evidence.
    fn evidence_pending(&self) -> bool {
        self.pending
            .is_some_and(|p| self.now.since(p.since) < self.of_machine(EVIDENCE_LIMIT))
    }

    /// The user asks for a graceful end; a second time: at once.
    pub(super) fn user_stop(&mut self, terminated: bool, out: &mut Vec<Effect>) {
        match &self.stage {
            Stage::Ending {
                purpose: Purpose::User { .. },
                step: Step::Terminating { .. } | Step::Killing { .. },
            } => self.user_kill(out),
            Stage::Ending {
                step: step @ Step::Killing { .. },
                ..
            } => {
                // it is being killed already; what follows is no restart any more
                self.stage = Stage::Ending {
                    purpose: Purpose::User { terminated },
                    step: *step,
                };
            }
            Stage::Over => {}
            _ if self.process_lives() => {
                self.signal(self.plan.kill.first, self.scope(), out);
                self.stage = Stage::Ending {
                    purpose: Purpose::User { terminated },
                    step: Step::Terminating {
                        kill_at: self.now + self.plan.kill.grace,
                    },
                };
            }
            _ => self.finish(
                Outcome::Interrupted { terminated },
                "ended by the user".to_owned(),
                out,
            ),
        }
    }

    /// The user asks for the end of the job after the step that it is at: the agent raises
    /// an exception there, by which a program cleans up and a server goes on.
    pub(super) fn stop_after_step(&mut self, out: &mut Vec<Effect>) {
        if self.stage != Stage::Watching || !self.process_lives() {
            return refuse("no process runs that could be ended after a step", out);
        }
        if self.view_agent().state != AgentState::Connected {
            return refuse(
                "only the agent can end a job after a step, and it is not connected: stop the run instead",
                out,
            );
        }
        if matches!(self.detector.job(), Job::Waiting(_)) {
            // it would end the next one at its first step
            return refuse("no job runs", out);
        }
        self.step_stop = Some(self.attempt_number());
        out.push(Effect::StopAfterStep {
            attempt: self.attempt_number(),
        });
    }

    /// Whether the process ended by the exception that the user's word raised in it.
    fn ended_after_step(&self, status: ExitStatus) -> bool {
        self.step_stop == Some(self.attempt_number())
            && matches!(status, ExitStatus::Signal(2) | ExitStatus::Code(130))
    }

    /// The user asks for a kill.
    pub(super) fn user_kill(&mut self, out: &mut Vec<Effect>) {
        let terminated = matches!(
            self.stage,
            Stage::Ending {
                purpose: Purpose::User { terminated: true },
                ..
            }
        );
        if self.process_lives() {
            self.kill(Purpose::User { terminated }, out);
        } else if !self.is_over() {
            self.finish(
                Outcome::Interrupted { terminated },
                "ended by the user".to_owned(),
                out,
            );
        }
    }

    /// Whether an attempt has processes that must be ended.
    fn process_lives(&self) -> bool {
        self.attempt.is_some()
            && !self.flags.gone
            && !matches!(
                self.stage,
                Stage::Preparing
                    | Stage::PostMortem { .. }
                    | Stage::Reclaiming { .. }
                    | Stage::Delaying { .. }
                    | Stage::Over
            )
    }

    pub(super) fn signal(&self, signal: Signal, scope: Scope, out: &mut Vec<Effect>) {
        out.push(Effect::Signal {
            attempt: self.attempt_number(),
            signal,
            scope,
        });
    }

    /// Nobody but us ends the workload any more: all of it is killed at once, for nothing would
    /// end it if we died as well.
    pub(super) fn guardian_lost(&mut self, attempt: u32, out: &mut Vec<Effect>) {
        if attempt == self.attempt_number() && self.process_lives() {
            self.signal(Signal::Kill, Scope::Tree, out);
        }
    }

    fn kill(&mut self, purpose: Purpose, out: &mut Vec<Effect>) {
        if !self.is_attached() {
            self.signal(Signal::Kill, Scope::Group, out);
        }
        self.signal(Signal::Kill, Scope::Tree, out);
        self.stage = Stage::Ending {
            purpose,
            step: Step::Killing {
                since: self.now,
                asked: false,
            },
        };
    }

    pub(super) fn advance_ending(&mut self, purpose: Purpose, step: Step, out: &mut Vec<Effect>) {
        if self.flags.gone && self.drained() {
            self.attempt_over(purpose, out);
            return;
        }
        let now = self.now;
        match step {
            Step::Countdown { kill_at, held } if !held && now >= kill_at => {
                self.set_step(purpose, Step::AwaitEvidence { since: now });
                self.end_after_evidence(out);
            }
            Step::AwaitEvidence { .. } => self.end_after_evidence(out),
            Step::Terminating { kill_at } => {
                let root_gone_for = self.exited.map(|(_, at)| now.since(at));
                let stragglers_late =
                    root_gone_for.is_some_and(|d| d >= Self::straggler_grace(&purpose));
                if now >= kill_at || stragglers_late {
                    self.kill(purpose, out);
                }
            }
            Step::Killing { since, asked } => {
                if now.since(since) >= self.of_machine(UNKILLABLE) {
                    let pids = self.survivors.iter().map(|s| s.pid).collect();
                    let summary = match self.survivors.len() {
                        // nobody answered who is left
                        0 => "processes survive SIGKILL; the card may need a reset".to_owned(),
                        1 => "1 process survives SIGKILL; the card may need a reset".to_owned(),
                        n => format!("{n} processes survive SIGKILL; the card may need a reset"),
                    };
                    self.finish(Outcome::Unkillable { pids }, summary, out);
                } else if !asked && now.since(since) >= self.of_machine(ASK_SURVIVORS) {
                    out.push(Effect::ListSurvivors {
                        attempt: self.attempt_number(),
                    });
                    self.set_step(purpose, Step::Killing { since, asked: true });
                }
            }
            Step::Countdown { .. } => {}
        }
    }

    fn set_step(&mut self, purpose: Purpose, step: Step) {
        self.stage = Stage::Ending { purpose, step };
    }

    /// First signal, once the evidence is on disk (or its time is over).
    fn end_after_evidence(&mut self, out: &mut Vec<Effect>) {
        if self.evidence_pending() {
            return;
        }
        let Stage::Ending { purpose, .. } = self.stage.clone() else {
            return;
        };
        self.signal(self.plan.kill.first, self.scope(), out);
        self.set_step(
            purpose,
            Step::Terminating {
                kill_at: self.now + self.plan.kill.grace,
            },
        );
    }

    fn straggler_grace(purpose: &Purpose) -> Duration {
        match purpose {
            Purpose::Conclude(ExitStatus::Code(0)) => STRAGGLERS_OF_SUCCESS,
            _ => STRAGGLERS,
        }
    }

    pub(super) fn drained(&self) -> bool {
        self.exited
            .is_none_or(|(_, at)| self.now.since(at) >= self.of_machine(DRAIN))
    }

    /// Every process of the attempt is gone.
    fn attempt_over(&mut self, purpose: Purpose, out: &mut Vec<Effect>) {
        match purpose {
            Purpose::Restart(next) => {
                if next.by_user {
                    self.note_end("ended for your changes");
                } else {
                    self.note_tried();
                }
                self.begin_reclaim(next, out);
            }
            Purpose::GiveUp => {
                self.note_tried();
                let summary = format!("gave up: {}", self.decision.clone().unwrap_or_default());
                self.finish(Outcome::GaveUp, summary, out);
            }
            Purpose::User { terminated } => {
                self.note_end("ended by the user");
                self.finish(
                    Outcome::Interrupted { terminated },
                    "ended by the user".to_owned(),
                    out,
                );
            }
            Purpose::Conclude(status) => self.conclude(status, out),
            Purpose::KeepResult => self.result_kept(out),
            Purpose::EndLeftovers { pids } => self.leftovers_ended(pids, out),
        }
    }

    pub(super) fn advance_draining(
        &mut self,
        status: ExitStatus,
        since: Mono,
        told: bool,
        out: &mut Vec<Effect>,
    ) {
        if self.flags.gone && self.drained() {
            self.conclude(self.launcher.final_status(status), out);
            return;
        }
        if self.is_attached() {
            // what it leaves behind is not ours to end
            return;
        }
        let grace = Self::straggler_grace(&Purpose::Conclude(status));
        // a run in which something was ended after a success is not finished
        let purpose = match status {
            ExitStatus::Code(0) => Purpose::EndLeftovers { pids: Vec::new() },
            _ => Purpose::Conclude(status),
        };
        let waited = self.now.since(since);
        if !told && waited >= TELL_STRAGGLERS {
            self.stage = Stage::Draining {
                status,
                since,
                told: true,
            };
            out.push(emit(Event::Notice {
                level: Level::Info,
                text: format!(
                    "the program ended, but processes that it started still run; \
                     what is left after {} s is ended",
                    grace.as_secs()
                ),
            }));
        }
        if waited >= grace {
            self.signal(Signal::Term, Scope::Tree, out);
            self.set_step(
                purpose,
                Step::Terminating {
                    kill_at: self.now + STRAGGLERS,
                },
            );
        }
    }

    /// The program ended by itself: was it well?
    fn conclude(&mut self, status: ExitStatus, out: &mut Vec<Effect>) {
        if self.ended_untold(status, out) {
            return;
        }
        if self.ended_after_step(status) {
            self.note_end("ended by the user");
            return self.finish(
                Outcome::Interrupted { terminated: false },
                "ended by the user, after a step".to_owned(),
                out,
            );
        }
        let verdict = self.detector.end(Some(status), self.now);
        self.latched = None;
        self.show(verdict.clone(), out);
        self.detector.end_attempt();
        if Self::is_good_end(&verdict) {
            self.note_tried();
            let restarts = self.attempt_number().saturating_sub(1);
            let summary = match restarts {
                0 => "finished".to_owned(),
                1 => "finished after one restart".to_owned(),
                n => format!("finished after {n} restarts"),
            };
            self.finish(Outcome::Finished { restarts }, summary, out);
            return;
        }
        self.capture(out);
        self.stage = Stage::PostMortem {
            verdict: Box::new(verdict),
            since: self.now,
        };
    }

    /// The code of our own worker, where it ended because it cannot do its job.
    pub(super) fn refusal(&self) -> Option<u8> {
        let (status, _) = self.exited?;
        refusal(&self.started.argv, status)
    }

    pub(super) fn advance_post_mortem(
        &mut self,
        verdict: &Verdict,
        since: Mono,
        out: &mut Vec<Effect>,
    ) {
        if self.evidence_pending() && self.now.since(since) < self.of_machine(EVIDENCE_LIMIT) {
            return;
        }
        // no rung mends a file, whatever the words; a card that fails by words that we know may have one
        let hopeless = |code: u8| code != OF_DEVICE || verdict.id == VerdictId::AppError;
        if self.refusal().is_some_and(hopeless) {
            self.note_tried();
            let summary = format!("failed: {}", verdict.sentence);
            return self.finish(Outcome::Failed, summary, out);
        }
        let rung = self.settle(verdict, false, out);
        self.note_tried();
        if let Some(rung) = rung {
            self.begin_reclaim(Next::answer(rung), out);
        } else {
            let why = self.decision.clone().unwrap_or_default();
            self.finish(Outcome::Failed, format!("failed: {why}"), out);
        }
    }

    pub(super) fn note_tried(&mut self) {
        self.note(Some(self.verdict.id), self.verdict.id.as_str());
    }

    /// What became of the attempt, for its rung.
    pub(super) fn note_end(&mut self, how: &str) {
        self.note(None, how);
    }

    fn note(&mut self, verdict: Option<VerdictId>, how: &str) {
        if let Some(attempt) = &self.attempt {
            let ran = crate::model::time::clock(self.ago(self.attempt_since));
            self.tried.push(Tried {
                rung: attempt.rung.clone(),
                verdict,
                words: format!("{how} after {ran}"),
            });
        }
    }
}
