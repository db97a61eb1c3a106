//! Messages between the supervisor and the guardian: one JSON object a line, over the
//! stream socket that is the guardian's standard input.
//!
//! From the guardian: `{"spawned":{"pid":41}}` or `{"spawn_failed":{"why":"…","not_found":true}}`,
//! `{"exited":{"code":0}}` or `{"exited":{"signal":9}}` for the root process,
//! `{"ended":{"pid":43,"end":{"code":0}}}` for a process whose parent ended before it,
//! `{"signalled":{"signal":"SIGTERM","scope":"tree","reached":3}}`,
//! `{"survivors":[{"pid":41,"name":"python3","state":"D","wchan":"…"}]}`, and at last
//! `{"gone":{}}` when no descendant is left.
//! To the guardian: `{"signal":{"signal":"SIGTERM","scope":"group"}}`, `{"survivors":{}}`.
//! The end of the stream means that the supervisor is gone.

use serde::{Deserialize, Serialize};

use crate::model::event::Survivor;
use crate::model::{ExitStatus, Scope, Signal};

/// Longest line of the protocol, in bytes.
pub const MAX_LINE: usize = 256 * 1024;

/// Survivors told at most.
pub const MAX_SURVIVORS: usize = 256;

/// An object without content: `{}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// What the guardian reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The workload's root process exists.
    Spawned {
        /// Its id, which is also that of its process group.
        pid: u32,
    },
    /// The workload could not be started.
    SpawnFailed {
        /// Why.
        why: String,
        /// Whether the program was not found.
        not_found: bool,
    },
    /// The root process ended.
    Exited(RootEnd),
    /// Another process ended whose parent had ended before it.
    Ended {
        /// The process.
        pid: u32,
        /// How it ended.
        end: RootEnd,
    },
    /// A signal was sent.
    Signalled {
        /// Which.
        signal: Signal,
        /// To whom.
        scope: Scope,
        /// How many living processes it reached.
        reached: u32,
    },
    /// The living descendants, at most [`MAX_SURVIVORS`].
    Survivors(Vec<Survivor>),
    /// No descendant is left; the guardian exits.
    Gone(Empty),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootEnd {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl From<RootEnd> for ExitStatus {
    fn from(end: RootEnd) -> Self {
        match end {
            RootEnd::Code(c) => Self::Code(c),
            RootEnd::Signal(s) => Self::Signal(s),
        }
    }
}

/// What the supervisor asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Send a signal; answered by [`Report::Signalled`].
    Signal {
        /// Which.
        signal: Signal,
        /// To whom.
        scope: Scope,
    },
    /// List the living descendants; answered by [`Report::Survivors`].
    Survivors(Empty),
}

/// One line of the protocol, newline included.
pub(crate) fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_on_the_wire() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(
            text(encode(&Report::Spawned { pid: 41 })),
            "{\"spawned\":{\"pid\":41}}\n"
        );
        assert_eq!(
            text(encode(&Report::Exited(RootEnd::Signal(9)))),
            "{\"exited\":{\"signal\":9}}\n"
        );
        let ended = Report::Ended {
            pid: 43,
            end: RootEnd::Code(1),
        };
        assert_eq!(
            text(encode(&ended)),
            "{\"ended\":{\"pid\":43,\"end\":{\"code\":1}}}\n"
        );
        assert_eq!(text(encode(&Report::Gone(Empty {}))), "{\"gone\":{}}\n");
        let r: Request = serde_json::from_str("{\"survivors\":{}}").unwrap();
        assert_eq!(r, Request::Survivors(Empty {}));
        let r: Request =
            serde_json::from_str(r#"{"signal":{"signal":"SIGTERM","scope":"group"}}"#).unwrap();
        assert_eq!(
            r,
            Request::Signal {
                signal: Signal::Term,
                scope: Scope::Group
            }
        );
    }
}
