//! Which lost jobs of a server are sent again.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Budget, JobProgram, LostJob};

/// How the last job of an attempt stood when the attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastJob {
    /// Nobody told of one.
    #[default]
    Unknown,
    /// It was in flight.
    InFlight,
    /// It had come to its end, or its user had stopped it.
    Ended,
    /// It had failed, and the program lived on.
    Failed,
}

/// What has gone before.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// Number of the attempt that ended.
    pub attempt: u32,
    /// Its last job.
    pub last: LastJob,
    /// Entries that were to be sent in an earlier attempt, and that no server has taken.
    pub owed: &'a BTreeSet<String>,
    /// How often each job was sent again after a fault, by its identity.
    pub sends: &'a BTreeMap<String, u32>,
}

/// What is done with the lost jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fates {
    /// To be sent again by itself, in this order.
    pub send: Vec<LostJob>,
    /// To be sent on the user's word, in this order.
    pub ask: Vec<LostJob>,
    /// Not to be sent: each with the reason.
    pub give_up: Vec<(String, String)>,
}

/// Decides about what the vault holds, oldest first. A job that had ended or was stopped is
/// left alone, and so is one that failed in peace while the next one ran. A job takes a server
/// down no more often than the budget has restarts in its period: then it is not sent again.
pub fn fates(lost: &[LostJob], past: &Past<'_>, budget: &Budget) -> Fates {
    let mut fates = Fates::default();
    let chosen = failed_last(lost, past);
    for job in lost {
        if job.program == JobProgram::ComfyUi {
            fates.ask.push(job.clone());
            continue;
        }
        if !is_lost(job, past, chosen) {
            continue;
        }
        let sent = past.sends.get(&job.job).copied().unwrap_or(0);
        if sent >= budget.restarts {
            let why = format!(
                "it was sent again {sent} times in this run, and each attempt at it had to be ended"
            );
            fates.give_up.push((job.job.clone(), why));
        } else {
            fates.send.push(job.clone());
        }
    }
    fates
}

/// The failed job that the restart answers: the newest of the attempt, if that ended with a
/// failed job.
fn failed_last<'a>(lost: &'a [LostJob], past: &Past<'_>) -> Option<&'a LostJob> {
    if past.last != LastJob::Failed {
        return None;
    }
    let mut newest = lost.iter().rev();
    newest.find(|j| j.failed && j.program == JobProgram::FramePack && of_attempt(j, past))
}

fn of_attempt(job: &LostJob, past: &Past<'_>) -> bool {
    job.attempt.is_none_or(|a| a == past.attempt)
}

fn is_lost(job: &LostJob, past: &Past<'_>, failed_last: Option<&LostJob>) -> bool {
    if past.owed.contains(&job.entry) {
        return true;
    }
    match (past.last, failed_last) {
        (LastJob::Ended, _) => false,
        (LastJob::Failed, Some(last)) => job == last,
        _ => !job.failed && of_attempt(job, past),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, attempt: u32, failed: bool) -> LostJob {
        LostJob {
            entry: format!("job.r.{id}.json"),
            program: JobProgram::FramePack,
            job: id.to_owned(),
            attempt: Some(attempt),
            failed,
            prompts: 1,
        }
    }

    fn queue(prompts: u32) -> LostJob {
        LostJob {
            entry: "queue.r.1.json".to_owned(),
            program: JobProgram::ComfyUi,
            job: "queue.r.1.json".to_owned(),
            prompts,
            ..job("", 1, false)
        }
    }

    fn sent(kept: &[LostJob], attempt: u32, last: LastJob) -> Vec<String> {
        let past = Past {
            attempt,
            last,
            owed: &BTreeSet::new(),
            sends: &BTreeMap::new(),
        };
        let fates = fates(kept, &past, &Budget::default());
        fates.send.into_iter().map(|j| j.job).collect()
    }

    #[test]
    fn the_job_in_flight_is_sent_and_what_failed_before_is_not() {
        let lost = [job("a", 1, true), job("b", 1, false)];
        assert_eq!(sent(&lost, 1, LastJob::InFlight), ["b"]);
        assert_eq!(sent(&lost, 1, LastJob::Unknown), ["b"]);
    }

    #[test]
    fn the_job_that_failed_last_is_sent_and_no_older_one() {
        let lost = [job("a", 1, true), job("b", 1, true)];
        assert_eq!(sent(&lost, 1, LastJob::Failed), ["b"]);
        // the console says failed at an exit in the middle of a job
        assert_eq!(sent(&[job("a", 1, false)], 1, LastJob::Failed), ["a"]);
    }

    #[test]
    fn what_ended_or_is_of_another_attempt_is_left_alone() {
        let lost = [job("a", 1, false)];
        assert_eq!(sent(&lost, 1, LastJob::Ended), Vec::<String>::new());
        assert_eq!(sent(&lost, 2, LastJob::InFlight), Vec::<String>::new());
    }

    #[test]
    fn what_no_server_has_taken_is_owed_still() {
        let lost = [job("a", 1, false)];
        let owed = [lost[0].entry.clone()].into();
        let past = Past {
            attempt: 2,
            last: LastJob::Unknown,
            owed: &owed,
            sends: &BTreeMap::new(),
        };
        assert_eq!(fates(&lost, &past, &Budget::default()).send, lost);
    }

    #[test]
    fn a_job_that_takes_every_server_down_is_given_up() {
        let budget = Budget::default();
        let lost = [job("a", 1, false)];
        for sends in 0..=budget.restarts {
            let sends: BTreeMap<_, _> = [("a".to_owned(), sends)].into();
            let past = Past {
                attempt: 1,
                last: LastJob::InFlight,
                owed: &BTreeSet::new(),
                sends: &sends,
            };
            let fates = fates(&lost, &past, &budget);
            let poison = sends["a"] == budget.restarts;
            assert_eq!(fates.give_up.len(), usize::from(poison), "{sends:?}");
            assert_eq!(fates.send.len(), usize::from(!poison));
        }
    }

    #[test]
    fn a_queue_is_never_sent_unasked() {
        let past = Past {
            attempt: 1,
            last: LastJob::InFlight,
            owed: &["queue.r.1.json".to_owned()].into(),
            sends: &BTreeMap::new(),
        };
        let fates = fates(&[queue(3)], &past, &Budget::default());
        assert_eq!((fates.send.len(), fates.ask.len()), (0, 1));
    }
}
