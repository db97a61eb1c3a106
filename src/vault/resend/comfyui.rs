//! ComfyUI's queue: each kept graph is posted, front to back.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::vault::jobs::ComfyQueue;

use super::http::Http;
use super::{Heard, ResendError, Sent};

/// Posts what is not in the server's queue already. A graph that the server refuses does
/// not keep the others back.
pub(super) fn send(
    http: &Http,
    queue: &ComfyQueue,
    heard: &mut dyn FnMut(Heard),
) -> Result<Sent, ResendError> {
    let known = ids(&http.waiting(|| http.get("/queue"))?);
    let (mut queued, mut there, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for item in &queue.items {
        let id = item.prompt_id.clone();
        if known.contains(&id) {
            there.push(id);
            continue;
        }
        match http.post("/prompt", &Value::Object(item.body.clone())) {
            Ok(answer) => {
                // versions that choose the name themselves say which
                let id = answer.get("prompt_id").and_then(Value::as_str);
                let id = id.unwrap_or(&item.prompt_id).to_owned();
                heard(Heard::Queued { id: id.clone() });
                queued.push(id);
            }
            Err(ResendError::Refused {
                status: 400..=499,
                text,
                ..
            }) => refused.push((id, text)),
            Err(e) => return Err(e),
        }
    }
    Ok(Sent::ComfyUi {
        queued,
        there,
        refused,
    })
}

/// Names of what runs and waits, from the answer of `GET /queue`.
fn ids(answer: &Value) -> BTreeSet<String> {
    ["queue_running", "queue_pending"]
        .iter()
        .filter_map(|name| answer.get(name)?.as_array())
        .flatten()
        .filter_map(|item| Some(item.get(1)?.as_str()?.to_owned()))
        .collect()
}
