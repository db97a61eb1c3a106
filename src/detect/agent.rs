//! What the agents inside the processes of the tree report: whether one is connected, in
//! which process a job is in flight, what is in flight and when it moved last. Whose phase
//! counts, the agent's or the console's, is decided by [`AgentRank`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::agent::{AgentBeat, AgentFinding, AgentNote, AgentWord};
use crate::model::{
    AgentOp, AgentRank, AgentSteps, Cite, CiteKind, Envelope, Event, Finding, JobChange, Mono,
    Speaker, VerdictId,
};

use super::rule::span;

mod process;

use process::Process;

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

/// Positive evidence that a job is in flight in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentJob {
    /// The process.
    pub(crate) pid: u32,
    /// Since when, as far as it is known.
    pub(crate) since: Mono,
    /// What shows it, in words.
    pub(crate) source: &'static str,
}

/// The process, and where it is known the thread, that the job hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The process.
    pub(crate) pid: u32,
    /// The thread.
    pub(crate) tid: Option<u32>,
}

/// What the agents of one attempt have said, for each process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agent {
    connected: BTreeSet<u32>,
    processes: BTreeMap<u32, Process>,
    silent: bool,
    lost: bool,
    rank: AgentRank,
    findings: Vec<(Cite, AgentFinding)>,
    /// The longest operation of each name that has ended.
    longest: BTreeMap<String, Duration>,
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
            AgentWord::Main => self.lost = false,
            AgentWord::Ended | AgentWord::Lost => {
                self.connected.remove(&pid);
                self.processes.remove(&pid);
                if counts {
                    self.lost = note.word == AgentWord::Lost;
                }
            }
            AgentWord::Silent { .. } | AgentWord::Refused { .. } => {
                self.silent = self.connected.is_empty();
            }
            AgentWord::Beat(beat) => self.beat(env, pid, beat),
            AgentWord::Finding(finding) if self.findings.len() < FINDINGS => {
                self.findings
                    .push((cite(env, &finding.text), (**finding).clone()));
            }
            _ => {}
        }
    }

    fn process(&mut self, pid: u32) -> Option<&mut Process> {
        if self.processes.len() >= MOST && !self.processes.contains_key(&pid) {
            return None;
        }
        Some(self.processes.entry(pid).or_default())
    }

    fn beat(&mut self, env: &Envelope, pid: u32, beat: &AgentBeat) {
        let Some(process) = self.process(pid) else {
            return;
        };
        let before = process.op.clone();
        process.beat(env.at, beat);
        let goes_on = |(_, since): &(AgentOp, Mono)| {
            let now = process.op.as_ref();
            now.is_some_and(|(_, at)| at == since)
        };
        let ended = before.filter(|op| !goes_on(op));
        let words = match &process.op {
            Some((op, since)) => format!(
                "heartbeat: {} in flight for {}",
                op.words(),
                span(env.at.since(*since))
            ),
            None => "heartbeat: no operation in flight".to_owned(),
        };
        process.beat = Some((cite(env, &words), beat.clone()));
        if let Some((op, since)) = ended
            && (self.longest.len() < FINDINGS || self.longest.contains_key(&op.name))
        {
            let longest = self.longest.entry(op.name).or_default();
            *longest = env.at.since(since).max(*longest);
        }
    }

    /// How long the longest operation of this name took that has ended; zero: none was seen.
    pub(crate) fn longest_op(&self, name: &str) -> Duration {
        self.longest.get(name).copied().unwrap_or_default()
    }

    /// See [`AgentRank::heed`].
    pub(crate) fn heed<'a>(&mut self, env: &'a Envelope) -> Option<Cow<'a, Envelope>> {
        if env.from == Some(Speaker::Agent) {
            self.main_says(env);
        }
        self.rank.heed(env)
    }

    /// Phases, progress and jobs come from the main process, before the console's guesses
    /// are put beside them.
    fn main_says(&mut self, env: &Envelope) {
        if let Event::Job(change) = &env.event
            && *change != JobChange::Started
        {
            // the end of the last one that ran in the tree
            for process in self.processes.values_mut() {
                process.job(env.at, false);
            }
            return;
        }
        let Some(process) = self.rank.main().and_then(|pid| self.process(pid)) else {
            return;
        };
        match &env.event {
            Event::Job(_) => process.job(env.at, true),
            Event::Phase(p) => process.enter(env.at, p.phase, p.section),
            Event::Progress(bar) => process.progress(env.at, bar),
            _ => {}
        }
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

    /// The job in flight, by the strongest evidence of any process: its own report of a job,
    /// then a phase of one, then an operation. Absent: nothing says so.
    pub(crate) fn job(&self) -> Option<AgentJob> {
        let earliest = |since: fn(&Process) -> Option<Mono>, source| {
            let shown = self.processes.iter();
            let shown = shown.filter_map(|(pid, p)| Some((since(p)?, *pid)));
            let (since, pid) = shown.min()?;
            Some(AgentJob { pid, since, source })
        };
        earliest(|p| p.job, "the agent reports a job")
            .or_else(|| {
                earliest(
                    Process::phase_of_a_job,
                    "the agent reports a phase of a job",
                )
            })
            .or_else(|| {
                let since = |p: &Process| p.lasting_op().map(|(_, since)| *since);
                earliest(since, "the agent reports an operation in flight")
            })
    }

    /// The oldest operation in flight over all processes, and for how long.
    pub(crate) fn op(&self, now: Mono) -> Option<(&AgentOp, Duration)> {
        let all = self.processes.values().filter_map(|p| p.op.as_ref());
        let (op, since) = all.min_by_key(|(_, since)| *since)?;
        Some((op, now.since(*since)))
    }

    /// The process and thread of the oldest operation, else of the job, else of a phase of
    /// one. Of several equal processes the main one comes first.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let with_op = self.processes.iter().filter_map(|(pid, p)| {
            let (op, since) = p.lasting_op()?;
            Some((*since, *pid, op.tid))
        });
        if let Some((_, pid, tid)) = with_op.min() {
            let tid = tid.or_else(|| self.thread(pid));
            return Some(Holder { pid, tid });
        }
        let main = self.rank.main();
        let first = |since: fn(&Process) -> Option<Mono>| {
            let shown = self.processes.iter();
            let shown = shown.filter_map(|(pid, p)| Some((main != Some(*pid), since(p)?, *pid)));
            shown.min().map(|(_, _, pid)| pid)
        };
        let pid = first(|p| p.job).or_else(|| first(Process::phase_of_a_job))?;
        let tid = self.thread(pid);
        Some(Holder { pid, tid })
    }

    fn thread(&self, pid: u32) -> Option<u32> {
        self.processes.get(&pid)?.beat.as_ref()?.1.holder
    }

    /// The steps that a bar of a process counts, with that process.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u32, AgentSteps)> {
        let all = self.processes.iter();
        all.filter_map(|(pid, p)| Some((*pid, p.beat.as_ref()?.1.steps?)))
    }

    /// The holder's process; without a holder the main one.
    fn subject(&self) -> Option<&Process> {
        let pid = self.holder().map(|h| h.pid).or(self.rank.main())?;
        self.processes.get(&pid)
    }

    /// When the holder's process last ended an operation, changed its phase or advanced a
    /// count.
    pub(crate) fn last_move(&self) -> Option<Mono> {
        self.subject()?.moved
    }

    /// When the holder's Python stack last changed to one that differed from the look 30 s
    /// before: the moment of that change.
    pub(crate) fn stack_changed(&self) -> Option<Mono> {
        self.subject()?.stack_changed
    }

    /// The last heartbeat.
    pub(crate) fn last(&self) -> Option<&AgentBeat> {
        let (_, beat) = self.subject()?.beat.as_ref()?;
        Some(beat)
    }

    /// For how long the interpreter has not run, where that is known.
    pub(crate) fn stopped(&self, now: Mono) -> Option<Duration> {
        let ago = now.since(self.cite()?.at);
        (ago >= NO_BEAT).then_some(ago)
    }

    /// Where the last heartbeat stands.
    pub(crate) fn cite(&self) -> Option<&Cite> {
        let (cite, _) = self.subject()?.beat.as_ref()?;
        Some(cite)
    }

    /// What it knows about a job that does not move, for a sentence.
    pub(crate) fn clause(&self, now: Mono) -> String {
        let stopped = self.stopped(now);
        let op = match self.op(now) {
            Some((op, age)) if age >= LONG => {
                format!("; {} has been in flight for {}", op.words(), span(age))
            }
            // an interpreter that has stopped says nothing of what has begun since
            None if stopped.is_none() && self.last().is_some() => {
                "; no convolution is in flight".to_owned()
            }
            _ => String::new(),
        };
        match stopped {
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
        match (self.stopped(now), self.last()) {
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
