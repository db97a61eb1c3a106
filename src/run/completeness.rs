//! Whether a restart completes the user's job, and whether there was a job at all.

use crate::detect::Job;
use crate::model::{Event, JobChange};

use super::state::RunState;

impl RunState {
    /// Remembers that a job was shown.
    pub(super) fn note_job_shown(&mut self, event: &Event) {
        let told = matches!(
            event,
            Event::Job(JobChange::Started | JobChange::Done | JobChange::Failed { .. })
        );
        if told || matches!(self.detector.job(), Job::InFlight(_)) {
            self.job_shown.in_attempt = true;
            self.job_shown.in_run = true;
        }
    }
}
