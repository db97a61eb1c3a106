//! Jobs of a server that were lost with an attempt, and what becomes of them in the next.

use serde::{Deserialize, Serialize};

/// Whose job it is: it decides how, and on whose word, it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobProgram {
    /// One job of FramePack's page: sent again by itself.
    #[serde(rename = "framepack")]
    FramePack,
    /// All that waited and ran in a ComfyUI: sent again on the user's word.
    #[serde(rename = "comfyui")]
    ComfyUi,
}

/// One entry of the rescue vault that was not done (`docs/vault.md`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostJob {
    /// Name of the entry.
    pub entry: String,
    /// Whose.
    pub program: JobProgram,
    /// The same inputs have the same one; of a queue the entry's name.
    pub job: String,
    /// The attempt that it was last seen in; absent: the entry does not tell.
    pub attempt: Option<u32>,
    /// An exception ended it.
    pub failed: bool,
    /// Graphs of a queue; 1 for a job.
    pub prompts: u32,
}

/// What the vault holds of this run when an attempt begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostJobs {
    /// The attempt that begins.
    pub attempt: u32,
    /// Oldest first.
    pub jobs: Vec<LostJob>,
    /// Why the vault cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A graph that the server would not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedPrompt {
    /// Its name.
    pub prompt: String,
    /// Why, in the server's words.
    pub why: String,
}

/// What becomes of a lost job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resend {
    /// The attempt whose server it is for.
    pub attempt: u32,
    /// What.
    #[serde(flatten)]
    pub word: ResendWord,
}

/// See [`Resend`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub enum ResendWord {
    /// It is being sent (decided by the rules).
    Sending {
        /// Which.
        job: String,
        /// To where.
        server: String,
    },
    /// It is not sent by itself (decided by the rules).
    GivenUp {
        /// Which; absent: none is known.
        job: Option<String>,
        /// Why.
        why: String,
    },
    /// A queue waits for the user's word (decided by the rules).
    Waiting {
        /// Graphs in all.
        prompts: u32,
        /// The entries that hold them, oldest first.
        entries: Vec<String>,
        /// The server that would take them.
        server: String,
        /// What to type in another terminal to send them from there.
        command: String,
    },
    /// The server has taken it.
    Sent {
        /// Which.
        job: String,
        /// To where.
        server: String,
    },
    /// Somebody has started it at this server already.
    There {
        /// Which.
        job: String,
    },
    /// It came to its end, all files written.
    Done {
        /// Which.
        job: String,
        /// Files that it wrote.
        files: u32,
    },
    /// It came to its end with fewer files: it failed, or its user stopped it.
    Ended {
        /// Which.
        job: String,
        /// Files that it wrote.
        files: u32,
        /// Files of the whole job; absent: not known.
        of: Option<u32>,
    },
    /// Graphs are in the server's queue.
    Queued {
        /// The entry.
        job: String,
        /// How many were queued now.
        queued: u32,
        /// How many were there already.
        there: u32,
        /// What the server would not take.
        refused: Vec<RefusedPrompt>,
    },
    /// It could not be sent, or not be followed to its end.
    Failed {
        /// Which.
        job: String,
        /// Why.
        why: String,
    },
}

/// What helps where a job cannot be sent again from here.
const CURE: &str = "press Start again in the browser";

impl ResendWord {
    /// Whether the rules say it themselves.
    pub const fn is_decided(&self) -> bool {
        matches!(
            self,
            Self::Sending { .. } | Self::GivenUp { .. } | Self::Waiting { .. }
        )
    }

    /// Whether its user has to press Start in the browser.
    pub fn asks_for_start(&self) -> bool {
        match self {
            Self::GivenUp { job, .. } => !job.as_ref().is_some_and(|j| j.starts_with(QUEUE)),
            Self::Failed { job, .. } => !job.starts_with(QUEUE),
            _ => false,
        }
    }

    /// In a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::Sending { job, server } => {
                format!("the lost job {job} is sent again to {server}")
            }
            Self::GivenUp {
                job: Some(job),
                why,
            } if job.starts_with(QUEUE) => {
                format!("the lost queue {job} waits in the vault: {why}")
            }
            Self::GivenUp {
                job: Some(job),
                why,
            } => {
                format!("the lost job {job} is not sent again: {why}; {CURE}")
            }
            Self::GivenUp { job: None, why } => {
                format!("the lost job is not sent again: {why}; {CURE}")
            }
            Self::Waiting {
                prompts, command, ..
            } => format!(
                "{} of the lost queue {} for your word: {command}",
                counted(*prompts),
                if *prompts == 1 { "waits" } else { "wait" },
            ),
            Self::Sent { job, server } => format!("{server} has taken the job {job} again"),
            Self::There { job } => {
                format!("the lost job {job} was started again in the browser already")
            }
            Self::Done { job, files } => {
                format!("the job {job} that was sent again is done, files {files}")
            }
            Self::Ended { job, files, of } => format!(
                "the job {job} that was sent again ended with {files}{} files: it failed or was stopped",
                of.map(|n| format!(" of {n}")).unwrap_or_default()
            ),
            Self::Queued {
                queued,
                there,
                refused,
                ..
            } => {
                let there = match there {
                    0 => String::new(),
                    n => format!(", {n} were there already"),
                };
                let kept = refused.first().map(|first| {
                    format!(
                        ", {} refused ({}: {}), which stay in the vault",
                        refused.len(),
                        first.prompt,
                        first.why
                    )
                });
                let kept = kept.unwrap_or_default();
                format!("{} queued again{there}{kept}", counted(*queued))
            }
            Self::Failed { job, why } if job.starts_with(QUEUE) => {
                format!("the queue {job} could not be sent again: {why}; it stays in the vault")
            }
            Self::Failed { job, why } => {
                format!("the job {job} could not be sent again: {why}; {CURE}")
            }
        }
    }
}

/// How the names of queues begin.
const QUEUE: &str = "queue.";

fn counted(prompts: u32) -> String {
    match prompts {
        1 => "1 prompt".to_owned(),
        n => format!("{n} prompts"),
    }
}

impl ResendWord {
    /// A queue that waits for the user's word.
    pub fn waiting(queues: &[LostJob], server: &str) -> Self {
        let entries: Vec<String> = queues.iter().map(|q| q.entry.clone()).collect();
        Self::Waiting {
            prompts: queues.iter().map(|q| q.prompts).sum(),
            command: commands(&entries, server),
            entries,
            server: server.to_owned(),
        }
    }
}

/// What the user can type in another terminal to send these entries.
fn commands(entries: &[String], server: &str) -> String {
    let port = server.trim_end_matches('/').rsplit(':').next();
    let port = port.unwrap_or_default();
    let each = entries
        .iter()
        .map(|e| format!("framepack-tui vault resend {e} --port {port}"));
    each.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_queue_names_the_command_that_sends_it() {
        let queue = |n: u32| LostJob {
            entry: format!("queue.r.{n}.json"),
            program: JobProgram::ComfyUi,
            job: format!("queue.r.{n}.json"),
            attempt: Some(n),
            failed: false,
            prompts: 3 * n,
        };
        let word = ResendWord::waiting(&[queue(1)], "http://127.0.0.1:8188");
        assert_eq!(
            word.words(),
            "3 prompts of the lost queue wait for your word: framepack-tui vault resend queue.r.1.json --port 8188"
        );
        assert!(word.is_decided() && !word.asks_for_start());
        let text = ResendWord::waiting(&[queue(1), queue(2)], "http://[::1]:8188/").words();
        assert!(text.starts_with("9 prompts"), "{text}");
        assert!(
            text.ends_with("; framepack-tui vault resend queue.r.2.json --port 8188"),
            "{text}"
        );
    }

    #[test]
    fn what_failed_says_why_and_the_cure() {
        let job = "0123".to_owned();
        let why = "no server answers".to_owned();
        let failed = ResendWord::Failed { job, why };
        assert!(failed.asks_for_start());
        let failed = failed.words();
        assert!(failed.contains("no server answers; press Start again in the browser"));
        let job = "queue.r.1.json".to_owned();
        let why = "no server answers".to_owned();
        let failed = ResendWord::Failed { job, why }.words();
        assert!(failed.ends_with("it stays in the vault"), "{failed}");
    }
}
