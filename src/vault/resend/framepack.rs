//! FramePack's page, through the API that Gradio gives it: the picture is uploaded, the
//! thirteen inputs are posted, and the stream of the job is read to its end.

use std::io::Read;

use serde_json::{Value, json};

use crate::vault::entry::{Entry, open};
use crate::vault::jobs::FramePackJob;

use super::http::{Http, is_silence};
use super::sse::Events;
use super::{Heard, ResendError, Sent, cut};

/// Largest picture, in bytes.
const LARGEST: u64 = 256 << 20;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const UPLOAD: &str = "/gradio_api/upload";
const CALL: &str = "/gradio_api/call/process";

/// Sends the job and follows it to its end.
pub(super) fn send(
    http: &Http,
    job: &FramePackJob,
    entry: &Entry,
    heard: &mut dyn FnMut(Heard),
) -> Result<Sent, ResendError> {
    let (content, body) = form(&job.image, &picture(entry)?);
    let answer = http.waiting(|| http.post_bytes(UPLOAD, &content, &body))?;
    let path = text_at(UPLOAD, &answer, "/0")?;
    let answer = http.post(CALL, &json!({"data": job.data(&path)}))?;
    let id = text_at(CALL, &answer, "/event_id")?;
    if !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(not_understood(CALL, "the event_id is no word"));
    }
    let place = format!("{CALL}/{id}");
    let stream = http.stream(&place)?;
    heard(Heard::Taken { id });
    let mut followed = Followed::default();
    follow(stream, &place, &mut followed, heard)?;
    Ok(Sent::FramePack {
        files: followed.files,
        sections: job.sections(),
    })
}

/// The start picture's bytes.
fn picture(entry: &Entry) -> Result<Vec<u8>, ResendError> {
    let wrong = |why: String| ResendError::Picture(why);
    let path = entry
        .picture
        .as_deref()
        .ok_or_else(|| wrong("it is missing".to_owned()))?;
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    read.map_err(|e| wrong(e.to_string()))?;
    if bytes.len() as u64 == LARGEST || !bytes.starts_with(PNG) {
        return Err(wrong(format!("{} is no PNG", path.display())));
    }
    Ok(bytes)
}

/// Content type and body of a form with one file.
fn form(name: &str, picture: &[u8]) -> (String, Vec<u8>) {
    // a mark out of the picture's own digest cannot be in the picture
    let mark = blake3::hash(picture).to_hex();
    let head = format!(
        "--{mark}\r\ncontent-disposition: form-data; name=\"files\"; filename=\"{}\"\r\n\
         content-type: image/png\r\n\r\n",
        name.replace(['"', '\r', '\n'], "-")
    );
    let mut body = head.into_bytes();
    body.extend_from_slice(picture);
    body.extend_from_slice(format!("\r\n--{mark}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={mark}"), body)
}

/// What the stream has told so far.
#[derive(Debug, Default)]
struct Followed {
    files: Vec<String>,
    progress: Option<String>,
}

/// Reads the stream until the job is over.
fn follow(
    stream: impl Read,
    place: &str,
    followed: &mut Followed,
    heard: &mut dyn FnMut(Heard),
) -> Result<(), ResendError> {
    let lost = |why: String| ResendError::Lost {
        what: format!("GET {place}"),
        why,
    };
    let mut events = Events::new(stream);
    loop {
        let event = events.next().map_err(|e| {
            lost(if is_silence(&e) {
                "the server has been silent for too long".to_owned()
            } else {
                e.to_string()
            })
        })?;
        let Some(event) = event else {
            return Err(lost("the stream ended before the job did".to_owned()));
        };
        match event.name.as_str() {
            "error" => return Err(ResendError::Failed(reason(&event.data))),
            "generating" | "complete" => {
                if let Ok(Value::Array(outputs)) = serde_json::from_str(&event.data) {
                    followed.take(&outputs, heard);
                }
                if event.name == "complete" {
                    return Ok(());
                }
            }
            // a heartbeat
            _ => {}
        }
    }
}

impl Followed {
    /// One update of the page: video, preview, text, bar, two buttons.
    fn take(&mut self, outputs: &[Value], heard: &mut dyn FnMut(Heard)) {
        if let Some(path) = outputs.first().and_then(path_of) {
            let path = cut(path);
            if !self.files.contains(&path) {
                self.files.push(path.clone());
                heard(Heard::File(path));
            }
        }
        let bar = outputs.get(3).and_then(Value::as_str).and_then(hint);
        if let Some(hint) = bar.filter(|h| self.progress.as_ref() != Some(h)) {
            self.progress = Some(hint.clone());
            heard(Heard::Progress(hint));
        }
    }
}

/// The path of a video output; an update without a file has none.
fn path_of(value: &Value) -> Option<&str> {
    let inner = |name| value.get(name).and_then(path_of);
    let own = value.get("path").and_then(Value::as_str);
    own.filter(|path| !path.is_empty())
        .or_else(|| inner("video"))
        .or_else(|| inner("value"))
}

/// What the progress bar says: `Sampling 12/25`.
fn hint(html: &str) -> Option<String> {
    let (_, rest) = html.split_once("<span>")?;
    let (text, _) = rest.split_once("</span>")?;
    (!text.trim().is_empty()).then(|| cut(text.trim()))
}

/// What an `error` event says; Gradio hides it unless the program wants it shown.
fn reason(data: &str) -> String {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let text = match &value {
        Value::String(text) => Some(text.as_str()),
        other => other.get("error").and_then(Value::as_str),
    };
    text.map_or_else(|| "it does not say which".to_owned(), cut)
}

fn text_at(path: &str, answer: &Value, place: &str) -> Result<String, ResendError> {
    answer
        .pointer(place)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| not_understood(path, &format!("there is no {place} in it")))
}

fn not_understood(path: &str, why: &str) -> ResendError {
    ResendError::Answer {
        what: format!("POST {path}"),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> (Result<(), ResendError>, Vec<Heard>) {
        let (mut told, mut followed) = (Vec::new(), Followed::default());
        let done = follow(text.as_bytes(), "/x", &mut followed, &mut |h| told.push(h));
        (done, told)
    }

    #[test]
    fn a_job_is_followed_to_its_end() {
        let (done, told) = heard(concat!(
            "event: generating\ndata: [null, null, \"\", \"\", {}, {}]\n\n",
            "event: generating\ndata: [{\"__type__\": \"update\"}, null, \"\", \"<div><span>Sampling 1/8</span></div>\", {}, {}]\n\n",
            "event: heartbeat\ndata: null\n\n",
            "event: generating\ndata: [{\"video\": {\"path\": \"/o/a_3.mp4\"}}, null, \"\", \"<span>Sampling 1/8</span>\", {}, {}]\n\n",
            "event: complete\ndata: [{\"video\": {\"path\": \"/o/a_3.mp4\"}}, null, \"\", \"\", {}, {}]\n\n",
            "event: error\ndata: null\n\n",
        ));
        assert!(done.is_ok(), "{done:?}");
        let progress = Heard::Progress("Sampling 1/8".to_owned());
        assert_eq!(told, [progress, Heard::File("/o/a_3.mp4".to_owned())]);
    }

    #[test]
    fn an_error_and_a_broken_stream_are_told() {
        let (done, _) = heard("event: error\ndata: {\"error\": \"No input image!\"}\n\n");
        assert!(matches!(done, Err(ResendError::Failed(why)) if why == "No input image!"));
        let (done, _) = heard("event: error\ndata: null\n\n");
        assert!(matches!(done, Err(ResendError::Failed(why)) if why.contains("does not say")));
        let (done, _) = heard("event: generating\ndata: [null]\n\n");
        assert!(matches!(done, Err(ResendError::Lost { .. })), "{done:?}");
    }

    #[test]
    fn the_form_holds_the_picture_between_its_marks() {
        let (content, body) = form("a\"b.png", b"PIXELS");
        let mark = content
            .strip_prefix("multipart/form-data; boundary=")
            .unwrap();
        let text = String::from_utf8(body).unwrap();
        assert!(text.starts_with(&format!("--{mark}\r\n")), "{text}");
        assert!(
            text.ends_with(&format!("\r\n\r\nPIXELS\r\n--{mark}--\r\n")),
            "{text}"
        );
        assert!(
            text.contains("name=\"files\"; filename=\"a-b.png\""),
            "{text}"
        );
    }
}
