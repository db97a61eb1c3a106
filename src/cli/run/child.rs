//! What the guardian and the child's output tell, as events.

use std::time::{Duration, Instant};

use crate::model::event::Level;
use crate::model::{Event, ExitReport, ExitStatus, JobChange, Line, Phase, Scope, Signal};
use crate::workload::adapter::Adapter;
use crate::workload::external::ChildEvent;

use super::shell::Shell;

/// The last look for results may take this long before the end is told anyway.
const LAST_LOOK: Duration = Duration::from_secs(3);

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
            ChildEvent::DroppedLines(n) => self.post(Event::Dropped {
                what: "lines".to_owned(),
                n,
            }),
            ChildEvent::Exited(status) => self.exited(attempt, status),
            ChildEvent::Gone => self.gone(attempt),
            ChildEvent::Signalled {
                signal,
                scope,
                reached,
            } => self.post(Event::SignalSent {
                attempt,
                signal,
                scope,
                reached,
            }),
            ChildEvent::Survivors(processes) => self.post(Event::Survivors { attempt, processes }),
            ChildEvent::GuardianLost => self.guardian_lost(),
        }
    }

    fn spawned(&mut self, attempt: u32, root: u32, group: u32) {
        let guardian = self.child.as_ref().and_then(|c| c.guardian_pid);
        self.exit_seen = false;
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

    fn exited(&mut self, attempt: u32, status: ExitStatus) {
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
        self.exit_seen = true;
        self.post(Event::Exited(ExitReport { attempt, status }));
    }

    /// Every process is gone; the end is told after the last look for results.
    fn gone(&mut self, attempt: u32) {
        if self.pid.is_some() && !self.exit_seen {
            self.exited(attempt, ExitStatus::Unknown);
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

    /// The guardian died (someone killed it): what it held is ended, for nothing
    /// would end it if we died as well.
    fn guardian_lost(&mut self) {
        self.post(Event::Notice {
            level: Level::Warn,
            text: "the guardian process is gone; all that the workload started is ended".to_owned(),
        });
        if let Some(child) = &self.child {
            child.signal(Signal::Kill, Scope::Tree);
        }
    }
}
