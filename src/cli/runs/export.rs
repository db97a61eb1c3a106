//! `framepack-tui runs export`: one redacted file for a bug report.

use std::path::{Path, PathBuf};

use crate::cli::args::ExportArgs;
use crate::cli::{CliError, find};
use crate::model::Bytes;
use crate::record::bundle::{Wanted, export, looked_for};
use crate::record::redact::Own;

use super::{print, printable};

/// Larger attachments are refused by common bug trackers.
const ATTACHMENT: u64 = 25_000_000;

/// Writes the bundle and says what is in it.
pub(super) fn main(args: &ExportArgs) -> Result<u8, CliError> {
    let run = find::run(args.run.as_deref())?;
    let name = format!("framepack-tui-{}.tgz", run.id);
    let out = match &args.output {
        Some(folder) if folder.is_dir() => folder.join(name),
        Some(file) => file.clone(),
        None => PathBuf::from(name),
    };
    let wanted = Wanted {
        out: &out,
        replace: args.force,
        with_prompt: args.with_prompt,
    };
    let made = export(&run.path, &run.id, &Own::of_this_machine(), wanted)?;
    let mut lines = vec![format!(
        "{}: {} in {} files",
        out.display(),
        Bytes(made.bytes),
        made.contents.members.len() + 2
    )];
    let counts = made.contents.redactions.iter();
    let counts: Vec<String> = counts.map(|(what, n)| format!("{n} x {what}")).collect();
    if counts.is_empty() {
        lines.push(format!(
            "looked for {}: none was found",
            looked_for(args.with_prompt)
        ));
    } else {
        lines.push(format!("replaced by placeholders: {}", counts.join(", ")));
    }
    if args.with_prompt {
        lines.push("prompts are in it, as you asked".to_owned());
    }
    lines.extend(
        made.contents
            .left_out
            .iter()
            .map(|w| format!("left out: {w}")),
    );
    if made.bytes > ATTACHMENT {
        lines.push("it is larger than 25 MB, which many bug trackers refuse".to_owned());
    }
    lines.push(format!(
        "what is private and looks like anything else cannot be told: look through it before you publish it (tar tzf {})",
        shown(&out)
    ));
    print(lines.iter().map(|l| printable(l)))?;
    Ok(0)
}

fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    shell_words::quote(&text).into_owned()
}
