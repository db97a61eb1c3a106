//! A server that keeps its queue as ComfyUI does (`tests/tools/comfyui-queue`).

use std::path::PathBuf;

use serde_json::json;

use super::root;

/// Its program.
pub(crate) fn comfyui() -> PathBuf {
    root().join("tests/tools/comfyui-queue/main.py")
}

/// Posts a graph of this name to it.
pub(crate) fn submit(port: &str, id: &str) {
    let graph =
        json!({"prompt": {"1": {"class_type": "VAEDecode", "inputs": {}}}, "prompt_id": id});
    let answer = ureq::post(format!("http://127.0.0.1:{port}/prompt"))
        .header("content-type", "application/json")
        .send(graph.to_string())
        .unwrap();
    assert!(answer.status().is_success());
}
