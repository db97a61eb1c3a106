//! `framepack-tui vault prune`: makes room.

use std::collections::BTreeSet;
use std::time::SystemTime;

use crate::cli::{CliError, find};
use crate::record::RunStatus;
use crate::vault::{Entry, FindError, Plan, Vault, Wish, plan};

use super::args::PruneArgs;
use super::{chosen, print, printable};

/// Removes what is meant, and says so.
pub(super) fn main(vault: &Vault, args: &PruneArgs) -> Result<u8, CliError> {
    let entries = vault.list()?;
    let runs = find::all()?.into_iter();
    let living: BTreeSet<String> = runs
        .filter(|run| run.status == RunStatus::Running)
        .map(|run| run.id)
        .collect();
    let plan = if args.entries.is_empty() {
        let run = args.run.as_deref().map(|run| whole_id(&entries, run));
        let wish = Wish {
            keep: args.keep,
            older: args.older,
            run: run.transpose()?,
        };
        plan(&entries, wish, &living, SystemTime::now())
    } else {
        let mut named: Vec<Entry> = Vec::new();
        for asked in &args.entries {
            let (_, entry) = chosen(&entries, asked)?;
            if !named.contains(&entry) {
                named.push(entry);
            }
        }
        Plan::of(&named, &entries, &living)
    };
    let did = if args.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let (mut lines, mut failed) = (Vec::new(), None);
    let (mut gone, mut freed) = (0_usize, crate::model::Bytes(0));
    for entry in &plan.remove {
        let removed = if args.dry_run {
            Ok(())
        } else {
            vault.remove(entry)
        };
        match removed {
            Ok(()) => {
                gone += 1;
                freed.0 += entry.bytes.0;
                lines.push(format!("{did} {} ({})", entry.name, entry.bytes));
            }
            Err(e) => failed = Some(e),
        }
    }
    for (entry, why) in &plan.kept {
        lines.push(format!("kept {}: {}", entry.name, why.words()));
    }
    let room = if args.dry_run { "would give" } else { "gives" };
    lines.push(format!("{gone} entries, which {room} {freed} of room"));
    print(lines.iter().map(|l| printable(l)))?;
    failed.map_or(Ok(0), |e| Err(e.into()))
}

/// The run of the entries that `asked` is, or is the beginning of.
fn whole_id<'a>(entries: &'a [Entry], asked: &str) -> Result<&'a str, CliError> {
    let runs: BTreeSet<&str> = entries.iter().filter_map(|e| e.run.as_deref()).collect();
    if let Some(run) = runs.get(asked) {
        return Ok(run);
    }
    let begins = |run: &&&str| !asked.is_empty() && run.starts_with(asked);
    let found: Vec<&str> = runs.iter().filter(begins).copied().collect();
    match found[..] {
        [run] => Ok(run),
        [] => Err(FindError::None {
            asked: asked.to_owned(),
            there: "no entry is of a run that begins like this".to_owned(),
        }
        .into()),
        _ => Err(CliError::AmbiguousRun {
            asked: asked.to_owned(),
            which: found.into_iter().map(str::to_owned).collect(),
        }),
    }
}
