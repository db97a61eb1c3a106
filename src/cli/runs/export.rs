//! `framepack-tui runs export`: one redacted file for a bug report.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use rustix::termios::{QueueSelector, tcflush};

use crate::cli::args::{ExportArgs, WithText};
use crate::cli::{CliError, find};
use crate::model::Bytes;
use crate::record::bundle::{Contents, FreeText, Wanted, export, free_text, looked_for};
use crate::record::redact::Own;

use super::{print, printable};

/// Larger attachments are refused by common bug trackers.
const ATTACHMENT: u64 = 25_000_000;
/// Longest answer that is read.
const ANSWER: u64 = 64;

/// Writes the bundle and says what is in it.
pub(super) fn main(args: &ExportArgs) -> Result<u8, CliError> {
    let run = find::run(args.run.as_deref())?;
    let name = format!("framepack-tui-{}.tgz", run.id);
    let out = match &args.output {
        Some(folder) if folder.is_dir() => folder.join(name),
        Some(file) => file.clone(),
        None => PathBuf::from(name),
    };
    let text = free_text_of(args, &run.path)?;
    let wanted = Wanted {
        out: &out,
        replace: args.force,
        text,
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
        lines.push(format!("looked for {}: none was found", looked_for(text)));
    } else {
        lines.push(format!("replaced by placeholders: {}", counts.join(", ")));
    }
    match text {
        FreeText::Masked => lines.push(masked(&made.contents)),
        FreeText::Searched => lines.push("free text is in it, as you asked".to_owned()),
        FreeText::All => lines.push("free text and prompts are in it, as you asked".to_owned()),
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
    if text != FreeText::Masked {
        lines.push(format!(
            "what is private and looks like anything else cannot be told: look through it before you publish it (tar tzf {})",
            shown(&out)
        ));
    }
    print(lines.iter().map(|l| printable(l)))?;
    Ok(0)
}

/// Which free text goes out, once the user has seen how much of each kind it is and agrees.
fn free_text_of(args: &ExportArgs, run: &Path) -> Result<FreeText, CliError> {
    if args.with_prompt {
        return Err(CliError::WithPrompt);
    }
    let text = match args.with_text {
        None => return Ok(FreeText::Masked),
        Some(WithText::Searched) => FreeText::Searched,
        Some(WithText::All) => FreeText::All,
    };
    let counts = free_text(run)?;
    let mut lines = vec!["this text goes out as it is, but for what looks private:".to_owned()];
    lines.extend(counts.iter().map(|(what, n)| format!("  {n} {what}")));
    lines.push(format!("looked for are {}", looked_for(text)));
    print(lines.iter().map(|l| printable(l)))?;
    if args.yes {
        return Ok(text);
    }
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(CliError::TextNotConfirmed);
    }
    let failed = |why| CliError::System {
        what: "ask on the terminal",
        why,
    };
    // what was typed before the question is drawn is no answer to it
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(|errno| failed(errno.into()))?;
    let mut out = io::stdout().lock();
    write!(out, "Add it to the file? [y/N] ").map_err(failed)?;
    out.flush().map_err(failed)?;
    let mut answer = String::new();
    let line = io::stdin().lock().take(ANSWER).read_line(&mut answer);
    line.map_err(failed)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(text)
    } else {
        Err(CliError::TextNotConfirmed)
    }
}

fn masked(contents: &Contents) -> String {
    let counts: Vec<String> = contents
        .masked
        .iter()
        .map(|(what, n)| format!("{n} {what}"))
        .collect();
    if counts.is_empty() {
        "it holds no free text".to_owned()
    } else {
        format!("left out: {}; --with-text adds them", counts.join(", "))
    }
}

fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    shell_words::quote(&text).into_owned()
}
