//! `framepack-tui runs prune`: removes old records.

use std::time::{Duration, SystemTime};

use crate::cli::args::PruneArgs;
use crate::cli::{CliError, find};
use crate::model::Bytes;
use crate::record::retention::{Kept, Retention, remove_run};
use crate::record::{RunEntry, RunStatus};

use super::print;

/// Removes what is old or too many, and says so.
pub(super) fn main(args: &PruneArgs) -> Result<u8, CliError> {
    let now = SystemTime::now();
    let (mut freed, mut gone, mut lines) = (0, 0_usize, Vec::new());
    for run in chosen(args, find::all()?, now) {
        match remove_run(
            &run.path,
            Retention::default().unfinished,
            now,
            args.dry_run,
        ) {
            Ok(bytes) => {
                freed += bytes;
                gone += 1;
                let did = if args.dry_run {
                    "would remove"
                } else {
                    "removed"
                };
                lines.push(format!("{did} {} ({})", run.id, Bytes(bytes)));
            }
            Err(Kept::Held) => {
                let why = match run.status {
                    RunStatus::Finished { .. } => "its end is still shown on a screen",
                    _ => "it is running",
                };
                lines.push(format!("kept {}: {why}", run.id));
            }
            Err(Kept::Unfinished) => lines.push(format!(
                "kept {}: it has no end, and its last event is not a day old",
                run.id
            )),
            Err(Kept::Failed(why)) => lines.push(format!("kept {}: {why}", run.id)),
        }
    }
    let room = if args.dry_run { "would give" } else { "gives" };
    lines.push(format!(
        "{gone} runs, which {room} {} of room",
        Bytes(freed)
    ));
    print(lines)?;
    Ok(0)
}

/// The runs to be removed, oldest first.
fn chosen(args: &PruneArgs, runs: Vec<RunEntry>, now: SystemTime) -> Vec<RunEntry> {
    let keep = match (args.keep, args.older) {
        (Some(keep), _) => keep,
        (None, Some(_)) => 0,
        (None, None) => Retention::default().runs,
    };
    let age = args
        .older
        .map(|days| Duration::from_hours(u64::from(days) * 24));
    let is_old = |run: &RunEntry| {
        age.is_none_or(|age| {
            let touched = run.touched();
            touched.is_some_and(|t| now.duration_since(t).is_ok_and(|a| a >= age))
        })
    };
    let mut chosen: Vec<RunEntry> = runs.into_iter().skip(keep).filter(is_old).collect();
    chosen.reverse();
    chosen
}
