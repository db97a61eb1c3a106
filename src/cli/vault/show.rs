//! `framepack-tui vault show`: one entry on a page, its data checked.

use std::time::SystemTime;

use crate::cli::{CliError, page};
use crate::vault::{Digest, Entry, INPUTS, Job, State, Vault};

use super::{HEADER_CHANGED, age, chosen, printable, section, shape};

/// Shows the entry; one that cannot be used ends with the code of a bad file.
pub(super) fn main(vault: &Vault, asked: &str, json: bool) -> Result<u8, CliError> {
    let (number, entry) = chosen(&vault.list()?, asked)?;
    let digest = Digest::of(&entry);
    let wrong = match (&entry.state, &digest) {
        (State::Torn(why), _) => Some(format!("it is torn: {why}")),
        (State::Foreign(why), _) => Some(why.clone()),
        _ if entry.is_header_changed() => Some(HEADER_CHANGED.to_owned()),
        (_, Err(e)) => Some(format!("its data cannot be read: {e}")),
        (_, Ok(Digest::Differs)) => {
            Some("its data were changed after they had been written".to_owned())
        }
        _ => None,
    };
    let now = SystemTime::now();
    let text = text(number, &entry, &digest, now);
    page::print(&entry.told(number, now, Some(digest)), json, false, |_| {
        text
    })?;
    match wrong {
        None => Ok(0),
        Some(why) => Err(CliError::BadEntry {
            name: entry.name,
            why,
        }),
    }
}

fn text(number: usize, entry: &Entry, digest: &std::io::Result<Digest>, now: SystemTime) -> String {
    let mut rows = vec![
        ("entry", format!("{number}  {}", entry.name)),
        ("what", entry.kind.word().to_owned()),
        ("state", state(entry)),
    ];
    let mut row = |name: &'static str, value: Option<String>| {
        rows.extend(value.map(|v| (name, v)));
    };
    row("run", entry.run.clone());
    row("attempt", entry.attempt().map(str::to_owned));
    row("program", entry.program().map(str::to_owned));
    row("age", Some(age(entry.age(now))));
    row("size", Some(entry.bytes.to_string()));
    row("decoder", entry.decoder().map(str::to_owned));
    row("family", entry.says("vae_family").map(family));
    row("from", entry.says("vae_path").map(str::to_owned));
    row("section", section(entry));
    for tensor in entry.header().map_or(&[][..], |h| &h.tensors) {
        let told = format!(
            "{}  {} {}  {} bytes",
            tensor.name,
            shape(&tensor.shape),
            tensor.dtype,
            tensor.bytes
        );
        row("tensor", Some(told));
    }
    row(
        "scaling",
        entry.says("scaling_applied").map(|text| {
            let told = if text == "true" {
                "applied"
            } else {
                "not applied yet"
            };
            let factor = entry.says("scaling_factor");
            factor.map_or_else(|| told.to_owned(), |f| format!("{told}, factor {f}"))
        }),
    );
    job_rows(entry, &mut row);
    row(
        "header",
        entry.header().map(|header| {
            match header.seal {
                Digest::Holds => "holds: it is what was written",
                Digest::Differs => "DIFFERS: it was changed",
                Digest::NotTold => "no seal is named",
            }
            .to_owned()
        }),
    );
    if entry.header().is_some() {
        row(
            "digest",
            Some(match digest {
                Ok(Digest::Holds) => "holds: the data are what was written".to_owned(),
                Ok(Digest::Differs) => "DIFFERS: the data were changed".to_owned(),
                Ok(Digest::NotTold) => "none is named".to_owned(),
                Err(e) => format!("cannot be told: {e}"),
            }),
        );
    }
    row("file", Some(entry.path.display().to_string()));
    let lines = rows
        .iter()
        .map(|(name, value)| printable(&format!("{name:<9} {value}")));
    lines.collect::<Vec<_>>().join("\n")
}

/// The models that the latents are for; a family that could not be told is said to be so.
fn family(word: &str) -> String {
    match word {
        "wan" => "WAN 2.1".to_owned(),
        "wan2.2" => "WAN 2.2".to_owned(),
        "hunyuan" => "HunyuanVideo".to_owned(),
        "unknown" => "cannot be told: decode them with their program".to_owned(),
        other => other.to_owned(),
    }
}

fn job_rows(entry: &Entry, row: &mut impl FnMut(&'static str, Option<String>)) {
    match entry.job() {
        Some(Job::FramePack(job)) => {
            let state = job.state.word();
            let error = job.error.as_ref().map(|e| format!("{state}: {e}"));
            row("job", Some(error.unwrap_or_else(|| state.to_owned())));
            row("sections", job.sections().map(|n| n.to_string()));
            for name in INPUTS {
                let value = job.inputs.get(name);
                row("input", value.map(|v| format!("{name} = {v}")));
            }
        }
        Some(Job::ComfyUi(queue)) => {
            for item in &queue.items {
                row("graph", Some(format!("{}  {}", item.prompt_id, item.state)));
            }
        }
        Some(Job::Studio(queue)) => {
            for item in &queue.items {
                let kind = item.kind.as_deref().unwrap_or("job");
                row("job", Some(format!("{}  {kind}  {}", item.id, item.state)));
            }
            row("saved in", queue.saved_in.clone());
        }
        None => row("prompt", entry.prompt().map(str::to_owned)),
    }
}

fn state(entry: &Entry) -> String {
    match &entry.state {
        State::Whole(_) => "whole".to_owned(),
        State::Torn(why) => format!("torn: {why}"),
        State::Foreign(why) => format!("unusable: {why}"),
    }
}
