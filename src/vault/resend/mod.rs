//! Sends a kept job again to a server on this machine.
//!
//! [`resend`] blocks: FramePack's until the job is over, since hanging up stops the
//! generator that feeds the page; ComfyUI's until every graph is queued.

mod comfyui;
mod framepack;
mod http;
mod server;
mod sse;

use std::time::Duration;

use crate::model::exit;

use super::entry::Entry;
use super::jobs::Job;

pub use server::{Server, ServerError};

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// For the server to accept the first connection.
    pub wait: Duration,
    /// For one request to be answered.
    pub answer: Duration,
    /// Without a byte of a stream, in which a living server sends something each 15 s. A
    /// program that holds Python's interpreter lock is silent, too, so this is long.
    pub silence: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wait: Duration::from_mins(1),
            answer: Duration::from_mins(1),
            silence: Duration::from_mins(15),
        }
    }
}

/// What happens on the way; texts are the server's, cut and unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// FramePack has taken the job.
    Taken {
        /// The server's name for it.
        id: String,
    },
    /// What its progress bar says.
    Progress(String),
    /// It has written a file.
    File(String),
    /// ComfyUI has queued a graph.
    Queued {
        /// The server's name for it.
        id: String,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The job is over.
    FramePack {
        /// The files that it told of, in their order; the last is the longest.
        files: Vec<String>,
        /// Sections of the job; each gives a file.
        sections: Option<u32>,
    },
    /// The graphs are in the server's queue.
    ComfyUi {
        /// Names of those that were queued now.
        queued: Vec<String>,
        /// Names of those that were in its queue already.
        there: Vec<String>,
        /// Names of those that the server would not take, and why.
        refused: Vec<(String, String)>,
    },
}

impl Sent {
    /// Nothing is left to be done by the entry: as many files as sections, no graph
    /// refused. FramePack tells its page "end" after an exception and after a stop as
    /// well, so files are what counts.
    pub const fn is_whole(&self) -> bool {
        match self {
            Self::FramePack {
                files,
                sections: Some(sections),
            } => files.len() >= *sections as usize,
            Self::FramePack { files, .. } => !files.is_empty(),
            Self::ComfyUi { refused, .. } => refused.is_empty(),
        }
    }
}

/// Why a job could not be sent again, or not be followed to its end.
#[derive(Debug, thiserror::Error)]
pub enum ResendError {
    /// The entry is no job, or not a whole one.
    #[error("{0} is not a job that can be sent again: {1}")]
    NoJob(String, String),
    /// The start picture cannot be used.
    #[error("the picture of the job cannot be used: {0}")]
    Picture(String),
    /// Nobody answers.
    #[error("no server answers at {server}: {why}")]
    NoServer {
        /// Where.
        server: Server,
        /// The system's answer.
        why: String,
    },
    /// The first request, before anything of the job was sent, comes to no answer.
    #[error("the server does not answer {what}: {why}")]
    NoAnswer {
        /// `POST /gradio_api/upload` or `GET /queue`.
        what: String,
        /// Why.
        why: String,
    },
    /// The server says no.
    #[error("the server refuses {what} with {status}: {text}")]
    Refused {
        /// `POST /prompt` or the like.
        what: String,
        /// HTTP status.
        status: u16,
        /// Begin of its answer.
        text: String,
    },
    /// The server says something that was not expected.
    #[error("the server's answer to {what} cannot be understood: {why}")]
    Answer {
        /// `POST /prompt` or the like.
        what: String,
        /// Why.
        why: String,
    },
    /// The connection ended too early, or a deadline passed.
    #[error("the connection to the server was lost in {what}: {why}")]
    Lost {
        /// `POST /prompt` or the like.
        what: String,
        /// Why.
        why: String,
    },
    /// The server ended the job with an error.
    #[error("the server ended the job with an error: {0}")]
    Failed(String),
}

impl ResendError {
    /// Exit code of `vault resend`, part of the contract.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NoJob(..) | Self::Picture(_) => exit::DATA,
            Self::NoServer { .. } | Self::NoAnswer { .. } => exit::UNAVAILABLE,
            Self::Refused { .. } | Self::Answer { .. } | Self::Lost { .. } | Self::Failed(_) => {
                exit::FAILED
            }
        }
    }
}

/// Sends the job of this entry to the server, and says on the way what is `heard`.
/// Blocks, see the module; the end of the server ends it, too.
pub fn resend(
    entry: &Entry,
    server: Server,
    options: Options,
    heard: &mut dyn FnMut(Heard),
) -> Result<Sent, ResendError> {
    let http = http::Http::new(server, options);
    match entry.job() {
        Some(Job::FramePack(job)) => framepack::send(&http, job, entry, heard),
        Some(Job::ComfyUi(queue)) => comfyui::send(&http, queue, heard),
        Some(Job::Studio(_)) => {
            let why = "it is FramePack-Studio's queue, which its own page loads: press Load Queue";
            Err(ResendError::NoJob(entry.name.clone(), why.to_owned()))
        }
        None => {
            let why = match &entry.state {
                super::State::Torn(why) | super::State::Foreign(why) => why.clone(),
                super::State::Whole(_) => format!("it holds {}", entry.kind.word()),
            };
            Err(ResendError::NoJob(entry.name.clone(), why))
        }
    }
}

/// Text of a server, cut to a sentence's length.
fn cut(text: &str) -> String {
    const LONGEST: usize = 400;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
