//! Requests to a server on this machine: with deadlines, with limits, without proxies
//! and without following it elsewhere.

use std::io::{self, Read};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body, Error};

use super::{Options, ResendError, Server, cut};

/// Longest answer that is read, in bytes. A queue of ComfyUI holds whole graphs.
const LONGEST: u64 = 64 << 20;
/// Longest connecting to a port of this machine.
const CONNECT: Duration = Duration::from_secs(5);
/// Between two tries to connect.
const RETRY: Duration = Duration::from_millis(250);

/// A client of one server.
pub(super) struct Http {
    agent: Agent,
    server: Server,
    options: Options,
}

impl Http {
    pub(super) fn new(server: Server, options: Options) -> Self {
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_send_body(Some(options.answer))
            .timeout_recv_response(Some(options.answer))
            .user_agent(concat!("framepack-tui/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            agent: config.new_agent(),
            server,
            options,
        }
    }

    /// Does `first` until the server accepts the connection, for as long as the options
    /// say. What is lost here may be done once more: the server has nothing of the job yet.
    pub(super) fn waiting<T>(
        &self,
        first: impl Fn() -> Result<T, ResendError>,
    ) -> Result<T, ResendError> {
        let end = Instant::now() + self.options.wait;
        loop {
            match first() {
                Err(ResendError::NoServer { .. }) if Instant::now() < end => sleep(RETRY),
                Err(ResendError::Lost { what, why }) => {
                    return Err(ResendError::NoAnswer { what, why });
                }
                done => return done,
            }
        }
    }

    /// `GET path`; the JSON that is answered.
    pub(super) fn get(&self, path: &str) -> Result<Value, ResendError> {
        let what = format!("GET {path}");
        let request = self.agent.get(self.url(path)).config();
        let request = request.timeout_recv_body(Some(self.options.answer)).build();
        self.json(&what, request.call())
    }

    /// `POST path` with JSON; the JSON that is answered.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, ResendError> {
        self.post_bytes(path, "application/json", body.to_string().as_bytes())
    }

    /// `POST path` with these bytes; the JSON that is answered.
    pub(super) fn post_bytes(
        &self,
        path: &str,
        content: &str,
        body: &[u8],
    ) -> Result<Value, ResendError> {
        let what = format!("POST {path}");
        let request = self.agent.post(self.url(path)).config();
        let request = request.timeout_recv_body(Some(self.options.answer)).build();
        self.json(&what, request.header("content-type", content).send(body))
    }

    /// `GET path` as a stream without an end of its own; dropping it hangs up.
    pub(super) fn stream(&self, path: &str) -> Result<impl Read + use<>, ResendError> {
        let what = format!("GET {path}");
        let request = self.agent.get(self.url(path)).config();
        let request = request.timeout_per_read(Some(self.options.silence)).build();
        let answer = request
            .header("accept", "text/event-stream")
            .call()
            .map_err(|e| self.failed(&what, &e))?;
        let answer = accepted(&what, answer)?;
        Ok(answer.into_body().into_reader())
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server)
    }

    fn json(
        &self,
        what: &str,
        answer: Result<Response<Body>, Error>,
    ) -> Result<Value, ResendError> {
        let answer = answer.map_err(|e| self.failed(what, &e))?;
        let text = body(what, accepted(what, answer)?)?;
        serde_json::from_slice(&text).map_err(|e| ResendError::Answer {
            what: what.to_owned(),
            why: e.to_string(),
        })
    }

    fn failed(&self, what: &str, e: &Error) -> ResendError {
        let refused = match e {
            Error::Io(e) => e.kind() == io::ErrorKind::ConnectionRefused,
            Error::ConnectionFailed | Error::Timeout(ureq::Timeout::Connect) => true,
            _ => false,
        };
        if refused {
            ResendError::NoServer {
                server: self.server,
                why: e.to_string(),
            }
        } else {
            ResendError::Lost {
                what: what.to_owned(),
                why: e.to_string(),
            }
        }
    }
}

/// Whether a stream could not be read because nothing came for too long.
pub(super) fn is_silence(e: &io::Error) -> bool {
    let inner = e.get_ref().and_then(|e| e.downcast_ref::<Error>());
    matches!(inner, Some(Error::Timeout(_))) || e.kind() == io::ErrorKind::TimedOut
}

/// The answer, if its status is one of success.
fn accepted(what: &str, answer: Response<Body>) -> Result<Response<Body>, ResendError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let text = body(what, answer).unwrap_or_default();
    Err(ResendError::Refused {
        what: what.to_owned(),
        status: status.as_u16(),
        text: said(&text),
    })
}

fn body(what: &str, mut answer: Response<Body>) -> Result<Vec<u8>, ResendError> {
    let read = answer.body_mut().with_config().limit(LONGEST).read_to_vec();
    read.map_err(|e| ResendError::Lost {
        what: what.to_owned(),
        why: e.to_string(),
    })
}

/// What an answer of refusal says: `error.message` of ComfyUI with the messages of its
/// nodes, `detail` of Gradio, else its text.
fn said(text: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return cut(&String::from_utf8_lossy(text));
    };
    let mut parts = Vec::new();
    for place in ["/error/message", "/error/details", "/error", "/detail"] {
        parts.extend(value.pointer(place).and_then(Value::as_str));
    }
    let nodes = value.get("node_errors").and_then(Value::as_object);
    for error in nodes.into_iter().flat_map(|nodes| nodes.values()) {
        let errors = error.get("errors").and_then(Value::as_array);
        for error in errors.into_iter().flatten() {
            parts.extend(error.get("message").and_then(Value::as_str));
            parts.extend(error.get("details").and_then(Value::as_str));
        }
    }
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        return cut(&value.to_string());
    }
    cut(&parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let comfy = br#"{"error": {"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation", "details": ""},
            "node_errors": {"3": {"errors": [{"message": "Value not in list", "details": "ckpt_name: 'a' not in []"}]}}}"#;
        assert_eq!(
            said(comfy),
            "Prompt outputs failed validation; Value not in list; ckpt_name: 'a' not in []"
        );
        assert_eq!(
            said(br#"{"detail": "Not authenticated"}"#),
            "Not authenticated"
        );
        assert_eq!(said(b"Internal Server Error"), "Internal Server Error");
        assert_eq!(said(br#"{"x": 1}"#), r#"{"x":1}"#);
    }
}
