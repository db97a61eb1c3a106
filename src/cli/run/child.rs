//! What the guardian and the child's output tell, as events.

use std::time::{Duration, Instant};

use crate::model::event::Survivor;
use crate::model::{Event, ExitReport, ExitStatus, JobChange, Line, Phase, Scope, Signal};
use crate::workload::adapter::Adapter;
use crate::workload::external::ChildEvent;

use super::shell::Shell;

/// The last look for results may take this long before the end is told anyway.
const LAST_LOOK: Duration = Duration::from_secs(3);
/// Most processes that a program leaves behind end within this time.
const RETURNED: Duration = Duration::from_millis(800);
/// The guardian answers at once or not at all.
const NO_ANSWER: Duration = Duration::from_secs(4);

/// The root process ended, and whether others still run is not known yet.
pub(super) struct Returned {
    status: ExitStatus,
    at: Instant,
    /// The guardian was asked who lives.
    asked: bool,
    /// Processes that have ended since.
    ended: Vec<(u32, ExitStatus)>,
}

/// The command has returned, and processes that it started still run.
pub(super) struct LeftRunning {
    /// How the command ended.
    status: ExitStatus,
    /// How the last of them ended.
    last: Option<ExitStatus>,
}

impl LeftRunning {
    /// How the job ended, as far as exit codes say it.
    fn status(&self) -> ExitStatus {
        match self.status {
            ExitStatus::Code(0) => self.last.unwrap_or(self.status),
            failed => failed,
        }
    }
}

impl Shell {
    /// One word of the child.
    pub(super) fn child_event(&mut self, event: ChildEvent) {
        let attempt = self.attempt.as_ref().map_or(0, |a| a.number);
        match event {
            ChildEvent::Spawned { pid, pgid } => self.spawned(attempt, pid, pgid),
            ChildEvent::SpawnFailed { why, not_found } => {
                self.child = None;
                self.post(Event::SpawnFailed {
                    attempt,
                    why,
                    not_found,
                });
            }
            ChildEvent::Line(line) => self.line(line),
            ChildEvent::Flood(flood) => self.post(Event::Flood(Box::new(flood))),
            ChildEvent::DroppedLines(n) => self.post(Event::Dropped {
                what: "lines".to_owned(),
                n,
            }),
            ChildEvent::Exited(status) => self.root_ended(attempt, status),
            ChildEvent::Ended { pid, status } => self.process_ended(attempt, pid, status),
            ChildEvent::Gone => self.gone(attempt),
            ChildEvent::Signalled {
                signal,
                scope,
                reached,
            } => self.signalled(attempt, (signal, scope), reached),
            ChildEvent::Survivors(processes) => self.survivors(attempt, processes),
            ChildEvent::GuardianLost => self.post(Event::GuardianLost { attempt }),
        }
    }

    fn signalled(&mut self, attempt: u32, (signal, scope): (Signal, Scope), reached: u32) {
        let owed = self.signals_owed.iter();
        let answered = owed
            .enumerate()
            .find(|(_, asked)| **asked == (signal, scope));
        if let Some(at) = answered.map(|(at, _)| at) {
            self.signals_owed.remove(at);
        }
        self.post(Event::SignalSent {
            attempt,
            signal,
            scope,
            reached,
        });
    }

    fn spawned(&mut self, attempt: u32, root: u32, group: u32) {
        let guardian = self.child.as_ref().and_then(|c| c.guardian_pid);
        self.exit_seen = false;
        self.returned = None;
        self.left_running = None;
        self.ending = false;
        self.pid = Some(root);
        self.sampler.set_target(Some(root), guardian);
        self.sampler
            .set_supervised(true, self.planner.card.as_ref().map(|c| &c.id));
        // the group of a process that is not ours may be that of its shell, or ours
        if self.attached.is_none() {
            self.pgid = Some(group);
            self.watchdog.set_group(Some(group), guardian);
        }
        self.post(Event::Spawned {
            attempt,
            pid: root,
            pgid: group,
        });
        let attached = self.attached;
        let begin = |a: &mut Box<dyn Adapter + Send>| match attached {
            None => a.start(),
            Some(job) => a.join(job),
        };
        let events = self.adapter.as_mut().map(begin).unwrap_or_default();
        self.adapted(events);
    }

    fn line(&mut self, line: Line) {
        let events = self
            .adapter
            .as_mut()
            .map(|a| a.feed(&line))
            .unwrap_or_default();
        let names_a_result = self.finder.hear(&line.text);
        self.post(Event::Line(line));
        self.adapted(events);
        if names_a_result {
            self.finder.look(false);
        }
    }

    /// Events of the adapter; some of them mean that a file may have been written.
    fn adapted(&mut self, events: Vec<Event>) {
        for event in events {
            let look = match &event {
                Event::Phase(p) => p.phase != Phase::VaeDecode,
                Event::Job(JobChange::Done | JobChange::Waiting) => true,
                _ => false,
            };
            self.post(event);
            if look {
                self.finder.look(false);
            }
        }
    }

    /// The root process ended. A command that started others and returned is a launcher: its
    /// end is no end of the job while those run, and the next word says whether they do.
    fn root_ended(&mut self, attempt: u32, status: ExitStatus) {
        if self.ending || self.attached.is_some() {
            self.exited(attempt, status);
        } else {
            self.returned = Some(Returned {
                status,
                at: Instant::now(),
                asked: false,
                ended: Vec::new(),
            });
        }
    }

    /// Time passes after the end of the root process.
    pub(super) fn look_after_return(&mut self) {
        let number = self.attempt.as_ref().map_or(0, |a| a.number);
        let Some(returned) = &mut self.returned else {
            return;
        };
        let waited = returned.at.elapsed();
        if waited >= RETURNED && !returned.asked {
            returned.asked = true;
            if let Some(child) = &self.child {
                child.ask_survivors();
            }
        }
        if waited >= NO_ANSWER || self.ending {
            let status = returned.status;
            let ended = std::mem::take(&mut returned.ended);
            self.returned = None;
            self.exited(number, status);
            self.tell_ended(number, ended);
        }
    }

    /// The living processes, as they were asked for: after the end of the root process they
    /// are what the command left running.
    fn survivors(&mut self, attempt: u32, processes: Vec<Survivor>) {
        let Some(returned) = self.returned.as_mut().filter(|r| r.asked) else {
            return self.post(Event::Survivors { attempt, processes });
        };
        if processes.is_empty() {
            // the word that everything is gone is on its way, unless others were born meanwhile
            returned.at = Instant::now();
            returned.asked = false;
            return;
        }
        let status = returned.status;
        let ended = std::mem::take(&mut returned.ended);
        self.returned = None;
        self.left_running = Some(LeftRunning { status, last: None });
        self.exit_seen = true;
        self.post(Event::Exited(ExitReport { attempt, status }));
        self.tell_ended(attempt, ended);
        self.post(Event::CommandReturned { attempt, processes });
    }

    fn tell_ended(&mut self, attempt: u32, ended: Vec<(u32, ExitStatus)>) {
        for (pid, status) in ended {
            self.post(Event::ProcessEnded {
                attempt,
                pid,
                status,
            });
        }
    }

    fn exited(&mut self, attempt: u32, status: ExitStatus) {
        self.end_job(status);
        self.exit_seen = true;
        self.post(Event::Exited(ExitReport { attempt, status }));
    }

    /// The job is over with the process, or with the last one that a launcher left.
    fn end_job(&mut self, status: ExitStatus) {
        self.stop_sending();
        // what the console tells of the end counts again
        self.agent_ended();
        // an end that we or a signal brought about says nothing about the job
        let by_itself = matches!(status, ExitStatus::Code(c) if !(129..=159).contains(&c));
        if by_itself && !self.ending {
            let success = status == ExitStatus::Code(0);
            let mut events = self
                .adapter
                .as_mut()
                .map(|a| a.finish(success))
                .unwrap_or_default();
            if self.has_own_worker_told() {
                // it has one job, and its own word for the end is there: it is not told twice
                events.retain(|event| !matches!(event, Event::Job(_)));
            }
            self.adapted(events);
        }
    }

    /// A process ended whose parent had ended before it.
    fn process_ended(&mut self, attempt: u32, pid: u32, status: ExitStatus) {
        if let Some(returned) = &mut self.returned {
            // told behind the end of the command, in the order in which they count
            returned.ended.push((pid, status));
            return;
        }
        match &mut self.left_running {
            Some(left) => left.last = Some(status),
            // daemons that come and go while the command runs
            None if status == ExitStatus::Code(0) => return,
            None => {}
        }
        self.post(Event::ProcessEnded {
            attempt,
            pid,
            status,
        });
    }

    /// Every process is gone; the end is told after the last look for results.
    fn gone(&mut self, attempt: u32) {
        if let Some(returned) = self.returned.take() {
            self.exited(attempt, returned.status);
            self.tell_ended(attempt, returned.ended);
        }
        if let Some(left) = self.left_running.take() {
            self.end_job(left.status());
        }
        if self.pid.is_some() && !self.exit_seen {
            self.exited(attempt, ExitStatus::Unknown);
        }
        // the last of them was gone before the signal
        for asked in std::mem::take(&mut self.signals_owed) {
            self.signalled(attempt, asked, 0);
        }
        self.child = None;
        self.pid = None;
        self.pgid = None;
        self.watchdog.set_group(None, None);
        self.sampler.set_target(None, None);
        self.sampler.set_supervised(false, None);
        self.gone_pending = Some((attempt, Instant::now()));
        self.finder.look(true);
    }

    /// Tells the end when the last look is back (`looked`), or took too long.
    pub(super) fn finish_gone(&mut self, looked: bool) {
        if let Some((attempt, since)) = self.gone_pending
            && (looked || since.elapsed() >= LAST_LOOK)
        {
            self.gone_pending = None;
            self.post(Event::GroupGone { attempt });
        }
    }
}
