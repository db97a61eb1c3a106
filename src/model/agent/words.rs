//! What the agent says, in words for people.

use super::{AgentConv, AgentNote, AgentVault, AgentWord};

/// See [`AgentNote::words`].
pub(super) fn words(note: &AgentNote) -> Option<String> {
    let AgentNote { pid, word } = note;
    Some(match word {
        AgentWord::Hello(hello) if hello.python.is_empty() => {
            format!("in process {pid}, {}", hello.agent)
        }
        AgentWord::Hello(hello) => format!("in process {pid}, Python {}", hello.python),
        AgentWord::Lost => format!(
            "lost: process {pid} lives, and its connection is gone; the console counts again"
        ),
        AgentWord::Silent { for_ms } => format!(
            "silent: Python runs, and it has not said hello in {} s (a program that sets PYTHONPATH itself loses it); the run goes on without it",
            for_ms / 1000
        ),
        AgentWord::Refused { protocol, agent } => format!(
            "silent: the one in process {pid} (version {agent}) speaks version {protocol} of the messages, not ours; the run goes on without it"
        ),
        AgentWord::Conv(conv) => conv_words(conv),
        AgentWord::Finding(f) => {
            let end = if f.fixed {
                "put right"
            } else {
                f.cure.as_str()
            };
            format!("{}: {}{}", f.verdict, f.text, more("; ", end))
        }
        AgentWord::Fix { what, detail } if detail.is_empty() => what.clone(),
        AgentWord::Fix { what, detail } => format!("{what} ({detail})"),
        AgentWord::Vault(vault) => vault_words(vault),
        AgentWord::Preflight { checks } => {
            let bad: Vec<String> = checks
                .iter()
                .filter(|c| c.ok == Some(false))
                .map(|c| format!("{}{}", c.text, more("; ", c.cure.as_deref().unwrap_or(""))))
                .collect();
            if bad.is_empty() {
                return None;
            }
            format!("before the first work: {}", bad.join("; "))
        }
        AgentWord::Problem { text } => text.clone(),
        AgentWord::HookFailed {
            module, message, ..
        } => format!("{module} is not watched: {message}"),
        AgentWord::Main
        | AgentWord::Ended
        | AgentWord::Beat(_)
        | AgentWord::Error { .. }
        | AgentWord::Torch { .. }
        | AgentWord::Dropped { .. } => return None,
    })
}

fn more(before: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{before}{text}")
}

fn conv_words(conv: &AgentConv) -> String {
    let dims: Vec<String> = conv.shape.iter().map(u64::to_string).collect();
    let what = format!("{} {} on {}", conv.op, dims.join("x"), conv.device);
    let why = more(": ", conv.message.as_deref().unwrap_or(""));
    match conv.what.as_str() {
        "failed" => format!("{what}: tier {} failed{why}", conv.tier),
        "chosen" => format!("{what}: tier {} is used from now on", conv.tier),
        other => format!("{what}: tier {} {other}{why}", conv.tier),
    }
}

fn vault_words(vault: &AgentVault) -> String {
    let file = more(" in ", vault.file.as_deref().unwrap_or(""));
    let why = more(": ", vault.message.as_deref().unwrap_or(""));
    format!("vault, {} {}{file}{why}", vault.of, vault.what)
}
