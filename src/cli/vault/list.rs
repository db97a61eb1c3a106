//! `framepack-tui vault list`: the entries, newest first.

use std::time::SystemTime;

use crate::cli::CliError;
use crate::model::Bytes;
use crate::vault::{Entry, Job, State, Vault};

use super::{age, print, printable, section, shape};

/// Lists them, one a line.
pub(super) fn main(vault: &Vault, json: bool) -> Result<u8, CliError> {
    let entries = vault.list()?;
    let now = SystemTime::now();
    let numbered = entries.iter().enumerate();
    let mut lines: Vec<String> = if json {
        numbered
            // plain fields always have a JSON form
            .map(|(n, e)| serde_json::to_string(&e.told(n + 1, now, None)).unwrap_or_default())
            .collect()
    } else {
        numbered.map(|(n, e)| line(n + 1, e, now)).collect()
    };
    if !json {
        lines.push(sum(&entries, vault));
    }
    print(lines)?;
    Ok(0)
}

fn sum(entries: &[Entry], vault: &Vault) -> String {
    let root = printable(&vault.root().display().to_string());
    let bytes = entries.iter().map(|e| e.bytes.0).sum();
    match entries.len() {
        0 => format!("the vault is empty: {root}"),
        1 => format!("1 entry, {} in {root}", Bytes(bytes)),
        n => format!("{n} entries, {} in {root}", Bytes(bytes)),
    }
}

fn line(number: usize, entry: &Entry, now: SystemTime) -> String {
    let run = entry.run.as_deref().unwrap_or("--");
    let attempt = entry.attempt().unwrap_or("--");
    let text = format!(
        "{number:>3}  {:<7}  {run:<18}  attempt {attempt:<2}  {:>7}  {:>9}  {}",
        entry.kind.word(),
        age(entry.age(now)),
        entry.bytes.to_string(),
        holds(entry)
    );
    printable(&text)
}

/// What is in it, in a few words.
fn holds(entry: &Entry) -> String {
    match &entry.state {
        State::Torn(why) => return format!("TORN {}: {why}", entry.name),
        State::Foreign(why) => return format!("UNUSABLE {}: {why}", entry.name),
        State::Whole(_) => {}
    }
    let mut words = Vec::new();
    match entry.job() {
        Some(Job::FramePack(job)) => {
            words.push(format!("{} {}", job.id, job.state.word()));
            words.extend(job.sections().map(|n| format!("sections {n}")));
            words.extend(job.error.clone());
        }
        Some(Job::ComfyUi(queue)) => words.push(format!("graphs {}", queue.items.len())),
        Some(Job::Studio(queue)) => words.push(format!("jobs {}", queue.items.len())),
        None => {}
    }
    words.extend(entry.decoder().map(str::to_owned));
    if let Some(latents) = entry.latents() {
        words.push(format!("{} {}", shape(&latents.shape), latents.dtype));
    }
    words.extend(section(entry).map(|s| format!("section {s}")));
    words.join("  ")
}
