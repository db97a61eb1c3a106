//! The jobs of the tree: one begins with the first process that begins one, and has ended
//! once no process has one in flight.

use crate::model::{Event, JobChange};

use super::process::{JobState, Rank};
use super::{Told, Tracker, by_agent};

impl Tracker {
    /// A heartbeat says where the process stands, whatever was lost before it. One alone that
    /// differs may have been made at the very moment at which the job began or ended.
    pub(super) fn job_by_beat(&mut self, pid: u32, runs: bool, out: &mut Vec<Told>) {
        let Some(p) = self.processes.get_mut(&pid) else {
            return;
        };
        let differs = p.job.runs != runs;
        if !differs || !std::mem::replace(&mut p.job.doubted, true) {
            p.job.doubted = differs;
            return;
        }
        if runs {
            self.job_started(pid, out);
        } else {
            p.job = JobState {
                ended: true,
                ..JobState::default()
            };
            self.job_lost(true, out);
            self.elect(out);
        }
    }

    /// Whether a job runs in a process other than this one.
    fn job_runs_beside(&self, pid: u32) -> bool {
        let mut others = self.processes.iter().filter(|(other, _)| **other != pid);
        others.any(|(_, p)| p.is_heard() && p.job.runs)
    }

    pub(super) fn job_started(&mut self, pid: u32, out: &mut Vec<Told>) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.job = JobState {
                runs: true,
                ..JobState::default()
            };
        }
        self.promote(pid, Rank::Works, out);
        if !self.job_runs_beside(pid) {
            self.failed = None;
            out.push(by_agent(Event::Job(JobChange::Started)));
        }
    }

    /// The job of a process has ended: that of the tree has with the last one, and has
    /// failed if one of them has.
    pub(super) fn job_ended(&mut self, pid: u32, change: JobChange, out: &mut Vec<Told>) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.job = JobState {
                ended: true,
                ..JobState::default()
            };
            p.rank = p.rank.max(Rank::Works);
        }
        if self.job_runs_beside(pid) {
            if matches!(change, JobChange::Failed { .. }) {
                self.failed.get_or_insert(change);
            }
        } else {
            let change = self.failed.take().unwrap_or(change);
            self.report_end(change, out);
        }
        self.elect(out);
    }

    fn report_end(&mut self, change: JobChange, out: &mut Vec<Told>) {
        self.job_ended = true;
        out.push(by_agent(Event::Job(change)));
        if self.server {
            out.push(by_agent(Event::Job(JobChange::Waiting)));
        }
    }

    /// A job runs no more in a process, and how it ended is not known: a server waits again,
    /// the end of a script will tell. `serves`: a process is there that can wait.
    pub(super) fn job_lost(&mut self, serves: bool, out: &mut Vec<Told>) {
        if self.processes.values().any(|p| p.is_heard() && p.job.runs) {
            return;
        }
        if let Some(failed) = self.failed.take() {
            self.report_end(failed, out);
        } else if self.server && serves {
            out.push(by_agent(Event::Job(JobChange::Waiting)));
        }
    }
}
