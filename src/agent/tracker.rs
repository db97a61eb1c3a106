//! From messages of processes to events of the run: whose word counts, what is news, who
//! is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::agent::{AgentBeat, AgentHello, AgentNote, AgentWord};
use crate::model::{AgentOp, Event, JobChange, Mono, Phase, PhaseChange, Progress, Speaker};

use super::channel::Heard;
use super::protocol::{PROTOCOL, Said};

/// A process that lives this long without a connection is lost.
const LOST: Duration = Duration::from_secs(1);
/// Nobody has said hello for this long although Python runs.
pub const SILENT: Duration = Duration::from_secs(15);
/// A heartbeat that says nothing new is told this often.
const BEAT: Duration = Duration::from_secs(5);
/// An operation that is in flight for less, in milliseconds, is not told of.
const STAYS: u64 = 1000;
/// A bar is told this often, its end at once.
const BAR: Duration = Duration::from_millis(250);
/// Processes that are remembered.
const MOST: usize = 256;

/// An event, and who tells it.
pub type Told = (Option<Speaker>, Event);

/// How much speaks for a process being the one that generates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Hello,
    Torch,
    Works,
}

#[derive(Debug, Clone)]
struct Process {
    conn: u64,
    hello: AgentHello,
    seq: u64,
    rank: Rank,
    beat: Option<(Mono, Box<AgentBeat>)>,
    phase: Option<(Phase, Option<u32>)>,
    bar: Option<(Mono, Progress)>,
    job: JobWord,
    closed: Option<Mono>,
    said_bye: bool,
    lost: bool,
}

/// What is known of a process' jobs.
#[derive(Debug, Clone, Copy, Default)]
struct JobWord {
    /// One runs, by the last word on it.
    runs: bool,
    /// The last heartbeat has said otherwise.
    doubted: bool,
}

/// A process that can be asked for its stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Number of its connection.
    pub conn: u64,
    /// The process.
    pub pid: u32,
    /// SIGUSR2 makes it write its stacks.
    pub by_signal: bool,
}

/// The processes of one attempt.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    server: bool,
    since: Mono,
    processes: BTreeMap<u32, Process>,
    main: Option<u32>,
    hello_seen: bool,
    /// Python was first seen in the tree.
    python: Option<Mono>,
    silence_told: bool,
    /// Who has told the end of a job last.
    job_ended: Option<u32>,
}

impl Tracker {
    /// A new attempt; `server`: it waits for its user between jobs.
    pub fn begin(&mut self, now: Mono, server: bool) {
        *self = Self {
            server,
            since: now,
            ..Self::default()
        };
    }

    /// What follows from something that came in.
    pub fn heard(&mut self, now: Mono, heard: Heard) -> Vec<Told> {
        let mut out = Vec::new();
        match heard {
            Heard::Closed { conn, pid } => {
                if let Some(p) = self.processes.get_mut(&pid).filter(|p| p.conn == conn) {
                    p.closed = Some(now);
                    if p.said_bye {
                        self.end(pid, AgentWord::Ended, &mut out);
                    }
                }
            }
            Heard::Said { conn, pid, message } => {
                if let Said::Hello(hello) = message.said {
                    self.hello(conn, pid, message.seq, hello, &mut out);
                } else if let Some(p) = self.processes.get_mut(&pid)
                    && p.conn == conn
                    && p.hello.protocol == PROTOCOL
                {
                    let missing = message.seq.map_or(0, |s| s.saturating_sub(p.seq + 1));
                    p.seq = message.seq.unwrap_or(p.seq);
                    if missing > 0 {
                        out.push(note(pid, AgentWord::Dropped { n: missing }));
                    }
                    self.said(now, pid, message.said, &mut out);
                }
            }
        }
        out
    }

    fn hello(
        &mut self,
        conn: u64,
        pid: u32,
        seq: Option<u64>,
        hello: AgentHello,
        out: &mut Vec<Told>,
    ) {
        let seq = seq.unwrap_or(1);
        self.hello_seen = true;
        if hello.protocol != PROTOCOL {
            let AgentHello {
                protocol, agent, ..
            } = hello.clone();
            out.push(note(pid, AgentWord::Refused { protocol, agent }));
        } else if let Some(p) = self.processes.get_mut(&pid).filter(|p| seq > p.seq) {
            // the same process, after a moment without a connection
            p.conn = conn;
            p.closed = None;
            p.seq = seq;
            if std::mem::take(&mut p.lost) {
                out.push(note(pid, AgentWord::Hello(hello)));
                self.choose(pid, out);
            }
            return;
        } else {
            // a program that was started in the place of another in the same process
            self.end(pid, AgentWord::Ended, out);
            out.push(note(pid, AgentWord::Hello(hello.clone())));
        }
        if self.processes.len() >= MOST {
            return;
        }
        let usable = hello.protocol == PROTOCOL;
        let process = Process {
            conn,
            hello,
            seq,
            rank: Rank::Hello,
            beat: None,
            phase: None,
            bar: None,
            job: JobWord::default(),
            closed: None,
            said_bye: false,
            lost: false,
        };
        self.processes.insert(pid, process);
        if usable {
            self.choose(pid, out);
        }
    }

    /// The process is the one that counts if nobody else is more likely to be.
    fn choose(&mut self, pid: u32, out: &mut Vec<Told>) {
        let rank = |pid: &u32| {
            let p = self.processes.get(pid)?;
            (!p.lost).then_some(p.rank)
        };
        let own = rank(&pid);
        let present = self.main.as_ref().and_then(rank);
        if self.main != Some(pid) && own > present {
            self.main = Some(pid);
            out.push(note(pid, AgentWord::Main));
        }
    }

    fn promote(&mut self, pid: u32, rank: Rank, out: &mut Vec<Told>) -> bool {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.rank = p.rank.max(rank);
        }
        self.choose(pid, out);
        self.main == Some(pid)
    }

    fn said(&mut self, now: Mono, pid: u32, said: Said, out: &mut Vec<Told>) {
        match said {
            Said::Beat {
                beat,
                stacks_by_signal,
            } => {
                if let (Some(by_signal), Some(p)) = (stacks_by_signal, self.processes.get_mut(&pid))
                {
                    // the program may have taken the signal for itself
                    p.hello.stacks_by_signal = by_signal;
                }
                if let Some(runs) = beat.job {
                    self.job_by_beat(pid, runs, out);
                }
                self.beat(now, pid, beat, out);
            }
            Said::Phase {
                phase,
                section,
                sections,
            } => {
                let counts = self.promote(pid, Rank::Works, out);
                let Some(p) = self.processes.get_mut(&pid) else {
                    return;
                };
                let news = p.phase != Some((phase, section));
                p.phase = Some((phase, section));
                if counts && news {
                    out.push(by_agent(Event::Phase(PhaseChange {
                        phase,
                        section,
                        sections,
                        on_cpu: false,
                    })));
                }
            }
            Said::Progress { done, total, what } => {
                if self.promote(pid, Rank::Torch, out) {
                    self.progress(now, pid, done, total, what, out);
                }
            }
            Said::JobStarted => self.job(pid, vec![JobChange::Started], out),
            Said::JobEnded => self.job(pid, vec![JobChange::Done], out),
            Said::JobFailed { why } => self.job(pid, vec![JobChange::Failed { why }], out),
            Said::Note(word) => {
                if matches!(word, AgentWord::Torch { .. }) {
                    self.promote(pid, Rank::Torch, out);
                }
                out.push(note(pid, word));
            }
            Said::Bye => {
                if let Some(p) = self.processes.get_mut(&pid) {
                    p.said_bye = true;
                }
            }
            Said::Hello(_) | Said::Reply { .. } | Said::Unknown { .. } => {}
        }
    }

    fn beat(&mut self, now: Mono, pid: u32, mut beat: Box<AgentBeat>, out: &mut Vec<Told>) {
        // thousands a second come and go: only one that stays is worth a word, and until
        // the next word it would seem to stay
        beat.op = beat.op.take().filter(|op| op.age_ms >= STAYS);
        let counts = self.main == Some(pid);
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let news = match &p.beat {
            Some((at, told)) => now.since(*at) >= BEAT || is_news((*at, told), (now, &beat)),
            None => true,
        };
        if !news {
            return;
        }
        p.beat = Some((now, beat.clone()));
        if counts {
            out.push(note(pid, AgentWord::Beat(beat)));
        }
    }

    fn progress(
        &mut self,
        now: Mono,
        pid: u32,
        done: f64,
        total: Option<f64>,
        what: Option<String>,
        out: &mut Vec<Told>,
    ) {
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let phase = p.phase.map(|(phase, _)| phase);
        let bar = Progress {
            what,
            done,
            total,
            seconds_per_step: None,
            sampling: matches!(phase, Some(Phase::Sampling | Phase::Delight)),
        };
        let news = p.bar.as_ref().is_none_or(|(at, told)| {
            let same = told.what == bar.what && told.total == bar.total;
            let soon = now.since(*at) < BAR && bar.total != Some(bar.done);
            *told != bar && !(same && soon)
        });
        if news {
            p.bar = Some((now, bar.clone()));
            out.push(by_agent(Event::Progress(bar)));
        }
    }

    /// A heartbeat tells where the process stands, whatever was lost before it. One alone that
    /// differs may have been made at the very moment at which the job began or ended.
    fn job_by_beat(&mut self, pid: u32, runs: bool, out: &mut Vec<Told>) {
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let differs = p.job.runs != runs;
        if !differs || !std::mem::replace(&mut p.job.doubted, true) {
            p.job.doubted = differs;
            return;
        }
        if runs {
            self.job(pid, vec![JobChange::Started], out);
        } else if self.server {
            // how it ended is lost; a script's end will tell
            self.job(pid, vec![JobChange::Waiting], out);
        }
    }

    fn job(&mut self, pid: u32, mut changes: Vec<JobChange>, out: &mut Vec<Told>) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.job = JobWord {
                runs: changes == [JobChange::Started],
                doubted: false,
            };
        }
        if !self.promote(pid, Rank::Works, out) {
            return;
        }
        let last = changes.last();
        if self.server && !matches!(last, Some(JobChange::Started | JobChange::Waiting)) {
            changes.push(JobChange::Waiting);
        }
        let ends = |c: &JobChange| matches!(c, JobChange::Done | JobChange::Failed { .. });
        if changes.iter().any(ends) {
            self.job_ended = Some(pid);
        }
        out.extend(changes.into_iter().map(|c| by_agent(Event::Job(c))));
    }

    /// Whether the process that counts has told the end of a job in this attempt.
    pub const fn has_told_end(&self) -> bool {
        self.job_ended.is_some()
    }

    /// Time passes. `lives`: whether a process is there; `python`: whether one of the
    /// tree is Python.
    pub fn tick(
        &mut self,
        now: Mono,
        lives: &dyn Fn(u32) -> bool,
        python: &dyn Fn() -> bool,
    ) -> Vec<Told> {
        let mut out = Vec::new();
        let late: Vec<u32> = self
            .processes
            .iter()
            .filter(|(_, p)| !p.lost && p.closed.is_some_and(|at| now.since(at) >= LOST))
            .map(|(pid, _)| *pid)
            .collect();
        for pid in late {
            if lives(pid) {
                self.end(pid, AgentWord::Lost, &mut out);
            } else {
                self.end(pid, AgentWord::Ended, &mut out);
            }
        }
        let gone: Vec<u32> = self
            .processes
            .iter()
            .filter(|(_, p)| p.lost)
            .map(|(pid, _)| *pid)
            .collect();
        for pid in gone.into_iter().filter(|pid| !lives(*pid)) {
            self.end(pid, AgentWord::Ended, &mut out);
        }
        if !self.hello_seen && !self.silence_told && python() {
            // a shell may do other things for minutes before it starts Python
            let there = *self.python.get_or_insert(now);
            if now.since(there) >= SILENT {
                self.silence_told = true;
                let for_ms = crate::model::time::millis(now.since(self.since));
                out.push(note(0, AgentWord::Silent { for_ms }));
            }
        }
        out
    }

    /// The process group has come to its end.
    pub fn end_all(&mut self) -> Vec<Told> {
        let mut out = Vec::new();
        let all: Vec<u32> = self.processes.keys().copied().collect();
        for pid in all {
            self.end(pid, AgentWord::Ended, &mut out);
        }
        out
    }

    fn end(&mut self, pid: u32, word: AgentWord, out: &mut Vec<Told>) {
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let refused = p.hello.protocol != PROTOCOL;
        if word == AgentWord::Lost {
            p.lost = true;
        } else {
            self.processes.remove(&pid);
        }
        if self.main == Some(pid) {
            self.main = None;
        }
        if !refused {
            out.push(note(pid, word));
        }
        if self.main.is_none() {
            let others = self
                .processes
                .iter()
                .filter(|(_, p)| !p.lost && p.closed.is_none() && p.hello.protocol == PROTOCOL);
            let next = others.max_by_key(|(_, p)| p.rank).map(|(pid, _)| *pid);
            if let Some(next) = next {
                self.choose(next, out);
            }
        }
    }

    /// Those that can be asked for their stacks, the one that counts first.
    pub fn subjects(&self) -> Vec<Subject> {
        let mut list: Vec<Subject> = self.connected().collect();
        list.sort_by_key(|s| self.main != Some(s.pid));
        list
    }

    /// The one that generates, while it is connected.
    pub fn main(&self) -> Option<Subject> {
        self.connected().find(|s| self.main == Some(s.pid))
    }

    fn connected(&self) -> impl Iterator<Item = Subject> {
        let connected = self.processes.iter().filter(|(_, p)| p.closed.is_none());
        connected.map(|(pid, p)| Subject {
            conn: p.conn,
            pid: *pid,
            by_signal: p.hello.stacks_by_signal && p.hello.protocol == PROTOCOL,
        })
    }

    /// The last heartbeat of each process, one JSON object each.
    pub fn beats(&self) -> Vec<String> {
        let beats = self.processes.iter().filter_map(|(pid, p)| {
            let (at, beat) = p.beat.as_ref()?;
            let beat = serde_json::to_value(beat).ok()?;
            Some(serde_json::json!({ "pid": pid, "at": at, "beat": beat }).to_string())
        });
        beats.collect()
    }
}

/// Whether a heartbeat says more than that the interpreter runs.
fn is_news((then, told): (Mono, &AgentBeat), (now, beat): (Mono, &AgentBeat)) -> bool {
    let since = |at: Mono, op: &AgentOp| at.0.saturating_sub(op.age_ms);
    let same_op = match (&told.op, &beat.op) {
        (Some(a), Some(b)) => a.is_same(b) && since(then, a).abs_diff(since(now, b)) < STAYS,
        (a, b) => a.is_none() && b.is_none(),
    };
    let failed = |b: &AgentBeat| {
        let counts = b
            .tiers
            .iter()
            .filter(|(name, _)| name.rsplit('.').next() != Some("ok"));
        counts.map(|(_, n)| n).sum::<u64>()
    };
    let new_tier = || beat.tiers.keys().any(|name| !told.tiers.contains_key(name));
    !same_op || told.phase != beat.phase || failed(told) != failed(beat) || new_tier()
}

const fn by_agent(event: Event) -> Told {
    (Some(Speaker::Agent), event)
}

fn note(pid: u32, word: AgentWord) -> Told {
    (None, Event::Agent(Box::new(AgentNote { pid, word })))
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
