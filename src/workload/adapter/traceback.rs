//! Python tracebacks: many lines, the last of which says what went wrong.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::exception;
use crate::workload::pattern;

/// Lines after which a traceback without an end is given up.
const LONGEST: u32 = 2000;

/// Files whose frames mean that something beside the job failed.
const ASIDE_FRAMES: &[&str] = &[
    "extensions/",
    "script_callbacks",
    "modules/scripts.py",
    "preview",
    "analytics",
    "httpx/",
    "httpcore/",
    "urllib3/",
    "requests/",
];

/// An exception that was printed in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exception {
    /// Its last line, such as `RuntimeError: miopenStatusUnknownError`.
    pub text: String,
    /// It was raised while a web server handled a request.
    pub in_request: bool,
    /// It was raised by the web server's own code, not by what the request asked for.
    pub by_server: bool,
    /// It was raised beside the job: by an extension, a preview, a thread that asks the net.
    pub aside: bool,
}

impl Exception {
    /// Whether a user's own wish to end the job shows up as this exception.
    pub(super) fn is_interrupt(&self) -> bool {
        exception::is_interrupt(&self.text) || self.text.contains("InterruptProcessingException")
    }

    /// Whether a client has closed its connection before the answer: no fault of the job.
    pub(super) fn is_client_gone(&self) -> bool {
        exception::is_client_gone(&self.text)
    }
}

/// Follows the tracebacks of one stream.
#[derive(Debug, Default)]
pub(super) struct Traceback {
    lines: u32,
    /// One is being printed: the blanks before each of its lines, for some programs indent
    /// what they print.
    indent: Option<usize>,
    in_request: bool,
    aside: bool,
    /// The innermost frame so far is the web server's.
    by_server: bool,
}

/// Blanks at the beginning.
fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

static EXCEPTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[A-Za-z_][\w.]*(?:\s*\([^)]*\))?(?::\s.*|:?)$"));

impl Traceback {
    /// Whether a traceback is being printed.
    pub(super) const fn is_open(&self) -> bool {
        self.indent.is_some()
    }

    /// Takes a line; gives the exception when this line was the last of a traceback.
    pub(super) fn feed(&mut self, text: &str) -> Option<Exception> {
        if text.contains("Traceback (most recent call last)") {
            *self = Self {
                indent: Some(indent(text)),
                ..Self::default()
            };
            return None;
        }
        let before = self.indent?;
        self.lines += 1;
        let text = text.get(indent(text).min(before)..).unwrap_or(text);
        if text.starts_with([' ', '|', '+']) {
            let unix = text.replace('\\', "/");
            if unix.trim_start().starts_with("File ") {
                self.by_server = exception::is_server_frame(&unix);
                self.in_request |= self.by_server;
                self.aside |= ASIDE_FRAMES.iter().any(|f| unix.contains(f));
            }
            self.indent = self.indent.filter(|_| self.lines < LONGEST);
            return None;
        }
        if !EXCEPTION.is_match(text) {
            // Another thread wrote in between.
            self.indent = self.indent.filter(|_| self.lines < LONGEST);
            return None;
        }
        self.indent = None;
        Some(Exception {
            text: text.trim_end().to_owned(),
            in_request: self.in_request,
            by_server: self.by_server,
            aside: self.aside,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(lines: &[&str]) -> Option<Exception> {
        let mut t = Traceback::default();
        lines.iter().filter_map(|l| t.feed(l)).last()
    }

    #[test]
    fn the_last_line_is_the_exception() {
        let e = last(&[
            "MIOpen Error: No suitable algorithm",
            "Traceback (most recent call last):",
            "  File \"demo_gradio.py\", line 3, in worker",
            "    pixels = vae_decode(latents, vae).cpu()",
            "             ^^^^^^^^^^^^^^^^^^^^^^^^",
            " 50%|##   | 4/8 [00:01<00:01, 2it/s]",
            "RuntimeError: miopenStatusUnknownError",
            "Unloaded X as complete.",
        ])
        .unwrap();
        assert_eq!(e.text, "RuntimeError: miopenStatusUnknownError");
        assert!(!e.in_request && !e.is_interrupt());
    }

    #[test]
    fn a_request_that_failed_is_told_apart() {
        let e = last(&[
            "ERROR:    Exception in ASGI application",
            "Traceback (most recent call last):",
            "  File \"/x/site-packages/uvicorn/protocols/http/h11_impl.py\", line 1, in run",
            "h11._util.LocalProtocolError: Too little data for declared Content-Length",
        ])
        .unwrap();
        assert!(e.in_request && e.by_server);
        let e = last(&[
            "Traceback (most recent call last):",
            "  File \"/x/site-packages/gradio/queueing.py\", line 1, in process_events",
            "  File \"/x/app.py\", line 9, in generate",
            "    return pipe(prompt)",
            "ValueError: height must be a multiple of 16",
        ])
        .unwrap();
        assert!(
            e.in_request && !e.by_server,
            "a job that a request asked for"
        );
    }

    #[test]
    fn chains_give_the_final_one() {
        let e = last(&[
            "Traceback (most recent call last):",
            "  File \"a.py\", line 1, in f",
            "ValueError: first",
            "During handling of the above exception, another exception occurred:",
            "Traceback (most recent call last):",
            "  File \"a.py\", line 2, in f",
            "KeyboardInterrupt: User ends the task.",
        ])
        .unwrap();
        assert!(e.is_interrupt());
        assert_eq!(last(&["RuntimeError: no traceback before"]), None);
    }
}
