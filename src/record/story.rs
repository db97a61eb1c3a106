//! The course of a run in few words, gathered from its stream.

use crate::model::event::{Choice, Decision, EvidenceReport, RunStarted};
use crate::model::{AttemptSpec, Envelope, Event, GpuSample, Health, Mono, Outcome, Verdict};

/// Entries of each kind that are kept; the first and the last of more.
const KEPT: usize = 200;

/// What happened at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at: Mono,
    /// About what: `attempt`, `health`, `decision`, …
    pub about: &'static str,
    /// In words.
    pub text: String,
}

/// The course of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Story {
    /// Head of the stream.
    pub started: Option<RunStarted>,
    /// The supervised card as it was first read; without one of that name the first.
    pub card: Option<GpuSample>,
    /// Memory of the machine in bytes.
    pub memory: Option<u64>,
    /// What happened, in order.
    pub moments: Vec<Moment>,
    /// Moments that were not kept.
    pub more_moments: u64,
    /// Attempts, in order.
    pub attempts: Vec<AttemptSpec>,
    /// Bundles of evidence.
    pub evidence: Vec<EvidenceReport>,
    /// The verdict that says most: the most severe one that stood, of several the last.
    pub main: Option<(Mono, Box<Verdict>)>,
    /// How it ended: outcome, exit code, sentence.
    pub end: Option<(Outcome, u8, String)>,
    /// Path of the result.
    pub result: Option<String>,
    /// Events, console lines and samples.
    pub events: u64,
    /// Lines of the console.
    pub lines: u64,
    /// Readings.
    pub samples: u64,
    /// Time of the last event.
    pub last: Mono,
}

impl Story {
    /// Whether the process was there before us.
    pub fn is_watch(&self) -> bool {
        self.started.as_ref().is_some_and(|s| s.attached.is_some())
    }

    /// Takes the next event.
    pub fn take(&mut self, env: &Envelope) {
        self.events += 1;
        self.last = self.last.max(env.at);
        match &env.event {
            Event::RunStarted(head) => self.started = Some((**head).clone()),
            Event::Sample(sample) => {
                self.samples += 1;
                self.take_machine(sample);
            }
            Event::Line(_) => self.lines += 1,
            Event::Verdict(verdict) => self.take_verdict(env.at, verdict),
            Event::AttemptStarted(spec) => {
                let attached = self.started.as_ref().and_then(|s| s.attached);
                let (about, text) = if let Some(attached) = attached {
                    ("watch", format!("process {} is watched", attached.pid))
                } else {
                    let text = format!("attempt {} on {}", spec.number, spec.rung);
                    ("attempt", text)
                };
                self.tell(env.at, about, text);
                if self.attempts.len() < KEPT {
                    self.attempts.push((**spec).clone());
                }
            }
            Event::Decision(decision) => self.tell(env.at, "decision", decided(decision)),
            Event::EvidenceTaken(report) => {
                let text = format!("evidence {}: {}", report.number, report.counts());
                self.tell(env.at, "evidence", text);
                if self.evidence.len() < KEPT {
                    self.evidence.push(report.clone());
                }
            }
            Event::RunFinished {
                outcome,
                exit_code,
                result,
                summary,
            } => {
                self.tell(env.at, "end", summary.clone());
                self.end = Some((outcome.clone(), *exit_code, summary.clone()));
                self.result = result.as_ref().map(|r| r.path.clone());
            }
            other => {
                if let Some((about, text)) = words(other) {
                    self.tell(env.at, about, text);
                }
            }
        }
    }

    fn take_machine(&mut self, sample: &crate::model::Sample) {
        if self.card.is_none() {
            let wanted = self.started.as_ref().and_then(|s| s.gpu.as_ref());
            let ours = sample.gpus.iter().find(|g| Some(&g.id) == wanted);
            self.card = ours.or(sample.gpus.first()).cloned();
        }
        if self.memory.is_none() {
            self.memory = sample.host.mem_total.fresh().map(|b| b.0);
        }
    }

    fn take_verdict(&mut self, at: Mono, verdict: &Verdict) {
        let text = format!(
            "{} {}: {}",
            verdict.health.word(),
            verdict.id,
            verdict.sentence
        );
        self.tell(at, "health", text);
        // a suspicion is no verdict yet
        let stands = verdict.health != Health::Suspect;
        let says_more = |other: &Verdict| verdict.id.severity() >= other.id.severity();
        if stands && self.main.as_ref().is_none_or(|(_, main)| says_more(main)) {
            self.main = Some((at, Box::new(verdict.clone())));
        }
    }

    fn tell(&mut self, at: Mono, about: &'static str, text: String) {
        if self.moments.len() == KEPT {
            self.moments.remove(KEPT / 2);
            self.more_moments += 1;
        }
        self.moments.push(Moment { at, about, text });
    }
}

fn decided(decision: &Decision) -> String {
    let what = match &decision.choice {
        Choice::Restart { rung, .. } => format!("restart on {rung}"),
        Choice::GiveUp => "give up".to_owned(),
        Choice::Advise => "advice only".to_owned(),
        Choice::Hold => "held".to_owned(),
        Choice::Resume => "go on".to_owned(),
    };
    format!("{what} ({}): {}", decision.verdict, decision.why)
}

fn words(event: &Event) -> Option<(&'static str, String)> {
    use crate::model::event::Level;
    Some(match event {
        Event::Notice {
            level: Level::Warn,
            text,
        } => ("warning", text.clone()),
        Event::SpawnFailed { why, .. } => ("launch", format!("could not be started: {why}")),
        Event::SignalSent {
            signal, reached, ..
        } => (
            "signal",
            format!("{} to {reached} processes", signal.name()),
        ),
        Event::Exited(report) => ("exit", report.status.to_string()),
        Event::Kernel { text } => ("kernel", text.clone()),
        Event::Artefact(a) => ("result", format!("{} ({})", a.path, a.extent())),
        Event::Command(command) => ("command", command_word(command)?),
        Event::Flood(flood) => ("flood", flood.words()),
        Event::Dropped { what, n } => ("dropped", format!("{n} {what}")),
        _ => return None,
    })
}

/// The word of a command as in the stream.
fn command_word(command: &crate::model::Command) -> Option<String> {
    let value = serde_json::to_value(command).ok()?;
    value.get("command")?.as_str().map(str::to_owned)
}
