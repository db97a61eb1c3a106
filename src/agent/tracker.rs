//! From messages of processes to events of the run: which process is the main one, what is
//! news, who is lost.
//!
//! Phases and progress come from the main process: the one with the job in flight. Jobs are
//! those of the tree: one begins with the first process that begins one, and has ended when
//! no process has one in flight. Heartbeats come from every process that works.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::agent::{AgentBeat, AgentHello, AgentNote, AgentWord};
use crate::model::{Event, JobChange, Mono, Phase, Progress, Speaker};

use super::channel::Heard;
use super::protocol::{PROTOCOL, Said};

mod jobs;
mod process;

use process::{PhaseState, Process, Rank};

/// A process that lives this long without a connection is lost.
const LOST: Duration = Duration::from_secs(1);
/// A Python process of the tree has been seen for this long, and none has said hello. It
/// says so as the interpreter starts, before the program's own imports. With a look each
/// second the user sees it within five seconds of the start.
pub const SILENT: Duration = Duration::from_millis(3500);
/// A bar is reported this often, its end at once.
const BAR: Duration = Duration::from_millis(250);
/// Processes that are remembered.
const MOST: usize = 256;

/// An event, and who tells it.
pub type Told = (Option<Speaker>, Event);

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

/// Whether Python runs in the tree without an agent.
#[derive(Debug, Clone, Default)]
struct Silence {
    hello_seen: bool,
    reported: bool,
    /// Python processes of the tree, and when each was first seen.
    python: BTreeMap<u32, Mono>,
}

/// The processes of one attempt.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    server: bool,
    since: Mono,
    processes: BTreeMap<u32, Process>,
    main: Option<u32>,
    silence: Silence,
    /// The end of a job was reported.
    job_ended: bool,
    /// A process' job failed while another's goes on: how.
    failed: Option<JobChange>,
    now: Mono,
    /// Processes that have said hello.
    greeted: usize,
}

impl Tracker {
    /// A new attempt; `server`: it waits for its user between jobs.
    pub fn begin(&mut self, now: Mono, server: bool) {
        *self = Self {
            server,
            since: now,
            now,
            ..Self::default()
        };
    }

    /// What follows from something that came in.
    pub fn heard(&mut self, now: Mono, heard: Heard) -> Vec<Told> {
        let mut out = Vec::new();
        self.now = now;
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
                    self.said(pid, message.said, &mut out);
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
        self.silence.hello_seen = true;
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
                self.elect(out);
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
        self.greeted += 1;
        let process = Process::new(conn, hello, seq, self.greeted);
        self.processes.insert(pid, process);
        self.elect(out);
    }

    /// Makes the process the main one that has the job in flight, see
    /// [`Process::displaces`].
    fn elect(&mut self, out: &mut Vec<Told>) {
        let main = self.main.and_then(|pid| self.processes.get(&pid));
        let next = self
            .processes
            .iter()
            .filter(|(pid, p)| p.is_heard() && p.closed.is_none() && self.main != Some(**pid))
            .filter(|(_, p)| main.is_none_or(|main| p.displaces(main, self.now)))
            .max_by_key(|(_, p)| p.claim(self.now))
            .map(|(pid, _)| *pid);
        if let Some(pid) = next
            && let Some(p) = self.processes.get_mut(&pid)
        {
            self.main = Some(pid);
            p.become_main();
            out.push(note(pid, AgentWord::Main));
            if let Some(phase) = p.phase {
                out.push(by_agent(Event::Phase(phase.change())));
            }
        }
    }

    fn promote(&mut self, pid: u32, rank: Rank, out: &mut Vec<Told>) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.rank = p.rank.max(rank);
        }
        self.elect(out);
    }

    fn said(&mut self, pid: u32, said: Said, out: &mut Vec<Told>) {
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
                self.beat(pid, beat, out);
            }
            Said::Phase {
                phase,
                section,
                sections,
            } => self.phase(
                pid,
                PhaseState {
                    phase,
                    section,
                    sections,
                },
                out,
            ),
            Said::Progress { done, total, what } => {
                self.promote(pid, Rank::Torch, out);
                if self.main == Some(pid) {
                    self.progress(pid, done, total, what, out);
                }
            }
            Said::JobStarted => self.job_started(pid, out),
            Said::JobEnded => self.job_ended(pid, JobChange::Done, out),
            Said::JobFailed { why } => self.job_ended(pid, JobChange::Failed { why }, out),
            Said::Note(word) => {
                if matches!(word, AgentWord::Torch { .. }) {
                    self.promote(pid, Rank::Torch, out);
                }
                out.push(note(pid, word));
            }
            Said::Bye(last) => {
                if let Some(p) = self.processes.get_mut(&pid) {
                    p.said_bye = true;
                }
                // the counts since the last heartbeat that was passed on
                if last.tiers.keys().any(|name| !name.contains(".native.")) {
                    out.push(note(pid, AgentWord::Beat(last)));
                }
            }
            Said::Hello(_) | Said::Reply { .. } | Said::Unknown { .. } => {}
        }
    }

    fn phase(&mut self, pid: u32, phase: PhaseState, out: &mut Vec<Told>) {
        let was_main = self.main == Some(pid);
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let was = p.phase.replace(phase);
        let news = was.is_none_or(|was| (was.phase, was.section) != (phase.phase, phase.section));
        if was_main && news {
            out.push(by_agent(Event::Phase(phase.change())));
        }
        // a new main process reports its phase by itself
        self.promote(pid, Rank::Works, out);
    }

    fn beat(&mut self, pid: u32, beat: Box<AgentBeat>, out: &mut Vec<Told>) {
        if let Some(runs) = beat.job {
            self.job_by_beat(pid, runs, out);
        }
        let by_beat = |p: &mut Process| p.phase_by_beat(beat.phase?);
        if let Some(phase) = self.processes.get_mut(&pid).and_then(by_beat) {
            self.phase(pid, phase, out);
        }
        let is_main = self.main == Some(pid);
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let told = p.beat(self.now, is_main, beat);
        out.extend(told.map(|beat| note(pid, AgentWord::Beat(beat))));
        self.elect(out);
    }

    fn progress(
        &mut self,
        pid: u32,
        done: f64,
        total: Option<f64>,
        what: Option<String>,
        out: &mut Vec<Told>,
    ) {
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let phase = p.phase.map(|p| p.phase);
        let bar = Progress {
            what,
            done,
            total,
            seconds_per_step: None,
            sampling: matches!(phase, Some(Phase::Sampling | Phase::Delight)),
            closed: false,
        };
        let news = p.bar.as_ref().is_none_or(|(at, told)| {
            let same = told.what == bar.what && told.total == bar.total;
            let soon = self.now.since(*at) < BAR && bar.total != Some(bar.done);
            *told != bar && !(same && soon)
        });
        if news {
            p.bar = Some((self.now, bar.clone()));
            out.push(by_agent(Event::Progress(bar)));
        }
    }

    /// Whether the end of a job was reported in this attempt.
    pub const fn has_told_end(&self) -> bool {
        self.job_ended
    }

    /// Time passes. `lives`: whether a process is there; `python`: the Python processes of
    /// the tree.
    pub fn tick(
        &mut self,
        now: Mono,
        lives: &dyn Fn(u32) -> bool,
        python: &dyn Fn() -> Vec<u32>,
    ) -> Vec<Told> {
        self.now = now;
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
        if !self.silence.hello_seen && !self.silence.reported {
            self.look_for_silence(&python(), &mut out);
        }
        self.elect(&mut out);
        out
    }

    /// Each process counts by its own start: a shell may do other things for minutes before
    /// it starts Python, or start Python for a moment.
    fn look_for_silence(&mut self, python: &[u32], out: &mut Vec<Told>) {
        let seen = &mut self.silence.python;
        seen.retain(|pid, _| python.contains(pid));
        for pid in python.iter().take(MOST) {
            seen.entry(*pid).or_insert(self.now);
        }
        let first = seen.values().min();
        if first.is_some_and(|first| self.now.since(*first) >= SILENT) {
            self.silence.reported = true;
            let for_ms = crate::model::time::millis(self.now.since(self.since));
            out.push(note(0, AgentWord::Silent { for_ms }));
        }
    }

    /// The process group has come to its end.
    pub fn end_all(&mut self) -> Vec<Told> {
        let mut out = Vec::new();
        if let Some(failed) = self.failed.take() {
            self.job_ended = true;
            out.push(by_agent(Event::Job(failed)));
        }
        self.main = None;
        let all = std::mem::take(&mut self.processes).into_iter();
        let heard = all.filter(|(_, p)| p.hello.protocol == PROTOCOL);
        out.extend(heard.map(|(pid, _)| note(pid, AgentWord::Ended)));
        out
    }

    fn end(&mut self, pid: u32, word: AgentWord, out: &mut Vec<Told>) {
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let refused = p.hello.protocol != PROTOCOL;
        let had_job = p.is_heard() && p.job.runs;
        if word == AgentWord::Lost {
            p.lost = true;
        } else {
            self.processes.remove(&pid);
        }
        if self.main == Some(pid) {
            self.main = None;
        }
        let had_job = had_job && word == AgentWord::Ended;
        if !refused {
            out.push(note(pid, word));
        }
        if had_job {
            let serves = self.connected().next().is_some();
            self.job_lost(serves, out);
        }
        self.elect(out);
    }

    /// Those that can be asked for their stacks: the main one first, then those that work.
    pub fn subjects(&self) -> Vec<Subject> {
        let mut list: Vec<Subject> = self.connected().collect();
        let works = |pid| self.processes.get(&pid).is_some_and(Process::works);
        list.sort_by_key(|s| (self.main != Some(s.pid), !works(s.pid)));
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

const fn by_agent(event: Event) -> Told {
    (Some(Speaker::Agent), event)
}

fn note(pid: u32, word: AgentWord) -> Told {
    (None, Event::Agent(Box::new(AgentNote { pid, word })))
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
