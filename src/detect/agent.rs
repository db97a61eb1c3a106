//! What the agent inside the program tells: whether it is there, which process counts,
//! what is in flight. Whose word counts, it or the console, is [`AgentRank`]'s to say.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::model::agent::{AgentBeat, AgentFinding, AgentNote, AgentWord};
use crate::model::{AgentOp, AgentRank, Cite, CiteKind, Envelope, Event, Finding, Mono, VerdictId};

use super::rule::span;

/// A heartbeat comes each second, and is told at least each five: none for this long means
/// that the interpreter does not run.
const NO_BEAT: Duration = Duration::from_secs(12);
/// An operation in flight this long is worth a word.
const LONG: Duration = Duration::from_secs(10);
/// Findings that are remembered in an attempt.
const FINDINGS: usize = 16;
/// Processes that are remembered.
const MOST: usize = 256;

/// How it stands with the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// Nothing was heard.
    #[default]
    None,
    /// It tells.
    Connected,
    /// Python runs, and nobody has said hello (or in another language).
    Silent,
    /// Its process lives, and the connection is gone.
    Lost,
}

/// The words of one attempt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agent {
    connected: BTreeSet<u32>,
    silent: bool,
    lost: bool,
    rank: AgentRank,
    beat: Option<(Cite, AgentBeat)>,
    /// The operation in flight, and since when.
    op: Option<(AgentOp, Mono)>,
    findings: Vec<(Cite, AgentFinding)>,
}

impl Agent {
    pub(super) fn observe(&mut self, env: &Envelope) {
        let main = self.rank.main();
        if let Event::Agent(note) = &env.event {
            self.note(env, note, main == Some(note.pid));
        }
        self.rank.observe(env);
    }

    fn note(&mut self, env: &Envelope, note: &AgentNote, counts: bool) {
        let pid = note.pid;
        match &note.word {
            AgentWord::Hello(_) => {
                if self.connected.len() < MOST {
                    self.connected.insert(pid);
                }
                self.silent = false;
            }
            AgentWord::Main => {
                self.forget_main();
                self.lost = false;
            }
            AgentWord::Ended | AgentWord::Lost => {
                self.connected.remove(&pid);
                if counts {
                    self.forget_main();
                    self.lost = note.word == AgentWord::Lost;
                }
            }
            AgentWord::Silent { .. } | AgentWord::Refused { .. } => {
                self.silent = self.connected.is_empty();
            }
            AgentWord::Beat(beat) if counts => self.beat(env, beat),
            AgentWord::Finding(finding) if self.findings.len() < FINDINGS => {
                self.findings
                    .push((cite(env, &finding.text), (**finding).clone()));
            }
            _ => {}
        }
    }

    fn forget_main(&mut self) {
        self.beat = None;
        self.op = None;
    }

    fn beat(&mut self, env: &Envelope, beat: &AgentBeat) {
        self.op = beat.op.as_ref().map(|op| {
            let since = Mono(env.at.0.saturating_sub(op.age_ms));
            // one call has one beginning, whatever the clocks of two processes round to
            let same = self
                .op
                .as_ref()
                .filter(|(o, was)| o.is_same(op) && since.0.abs_diff(was.0) < 1500);
            (op.clone(), same.map_or(since, |(_, was)| *was))
        });
        let words = match &self.op {
            Some((op, since)) => format!(
                "heartbeat: {} in flight for {}",
                op.words(),
                span(env.at.since(*since))
            ),
            None => "heartbeat: no operation in flight".to_owned(),
        };
        self.beat = Some((cite(env, &words), beat.clone()));
    }

    /// See [`AgentRank::heed`].
    pub(crate) fn heed<'a>(&mut self, env: &'a Envelope) -> Option<Cow<'a, Envelope>> {
        self.rank.heed(env)
    }

    /// How it stands.
    pub(crate) fn presence(&self) -> Presence {
        if !self.connected.is_empty() && !self.lost {
            Presence::Connected
        } else if self.lost {
            Presence::Lost
        } else if self.silent {
            Presence::Silent
        } else {
            Presence::None
        }
    }

    /// The operation in flight by the last heartbeat, and for how long.
    pub(crate) fn op(&self, now: Mono) -> Option<(&AgentOp, Duration)> {
        let (op, since) = self.op.as_ref()?;
        Some((op, now.since(*since)))
    }

    /// The last heartbeat.
    pub(crate) fn last(&self) -> Option<&AgentBeat> {
        self.beat.as_ref().map(|(_, beat)| beat)
    }

    /// For how long the interpreter has not run, where that is known.
    pub(crate) fn stopped(&self, now: Mono) -> Option<Duration> {
        let (cite, _) = self.beat.as_ref()?;
        let ago = now.since(cite.at);
        (ago >= NO_BEAT).then_some(ago)
    }

    /// Where the last heartbeat stands.
    pub(crate) fn cite(&self) -> Option<&Cite> {
        self.beat.as_ref().map(|(cite, _)| cite)
    }

    /// What it knows about a job that does not move, for a sentence.
    pub(crate) fn clause(&self, now: Mono) -> String {
        let op = match self.op(now) {
            Some((op, age)) if age >= LONG => {
                format!("; {} has been in flight for {}", op.words(), span(age))
            }
            None if self.beat.is_some() => "; no convolution is in flight".to_owned(),
            _ => String::new(),
        };
        match self.stopped(now) {
            Some(ago) => format!(
                "{op}; the interpreter's heartbeat stopped {} ago: native code holds its lock",
                span(ago)
            ),
            None => op,
        }
    }

    /// The same as numbers.
    pub(crate) fn numbers(&self, now: Mono) -> Vec<String> {
        let mut numbers = Vec::new();
        if let Some((op, age)) = self.op(now) {
            numbers.push(format!("in flight for {}: {}", span(age), op.words()));
        }
        match (self.stopped(now), &self.beat) {
            (Some(ago), _) => numbers.push(format!("no heartbeat for {}", span(ago))),
            (None, Some(_)) => numbers.push("the interpreter's heartbeat goes on".to_owned()),
            (None, None) => {}
        }
        numbers
    }

    /// What the agent found of this kind and did not put right.
    pub(crate) fn found(&self, verdict: VerdictId) -> Option<(&Cite, &AgentFinding)> {
        let mut open = self.findings.iter().filter(|(_, f)| !f.fixed);
        open.find(|(_, f)| f.verdict == verdict)
            .map(|(c, f)| (c, f))
    }

    /// All that it found, as findings.
    pub(crate) fn findings(&self) -> impl Iterator<Item = Finding> {
        let told = self
            .findings
            .iter()
            .filter(|(_, f)| !f.verdict.is_no_fault());
        told.map(|(cite, f)| {
            let fixed = if f.fixed { "; it was put right" } else { "" };
            Finding::of_line(f.verdict, &format!("{}{fixed}", f.text), cite)
        })
    }
}

fn cite(env: &Envelope, text: &str) -> Cite {
    Cite {
        seq: env.seq,
        at: env.at,
        kind: CiteKind::Event,
        line: None,
        text: text.chars().take(Cite::MOST).collect(),
    }
}
