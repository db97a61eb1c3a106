//! `framepack-tui vault`: what was kept of generations.

pub(super) mod args;
mod list;
mod prune;
mod resend;
mod show;

use std::time::Duration;

use crate::vault::{Entry, Vault};

use super::CliError;
use super::runs::{print, printable};
use args::{VaultArgs, VaultCommand};

/// Why an entry is not used whose `seal` does not fit.
pub(super) const HEADER_CHANGED: &str = "its header was changed after it had been written";

/// Does what was asked; without a word it lists.
pub(super) fn main(args: &VaultArgs) -> Result<u8, CliError> {
    let vault = Vault::open_default()?;
    match &args.command {
        None => list::main(&vault, false),
        Some(VaultCommand::List { json }) => list::main(&vault, *json),
        Some(VaultCommand::Show { entry, json }) => show::main(&vault, entry, *json),
        Some(VaultCommand::Prune(args)) => prune::main(&vault, args),
        Some(VaultCommand::Resend(args)) => resend::main(&vault, args),
    }
}

/// The entry's number in the list, and the entry.
fn chosen(entries: &[Entry], asked: &str) -> Result<(usize, Entry), CliError> {
    let entry = Vault::find(entries, asked)?;
    let number = entries.iter().position(|e| e.name == entry.name);
    Ok((number.map_or(0, |n| n + 1), entry))
}

/// An age in its largest unit; `?` where the time cannot be read.
fn age(age: Option<Duration>) -> String {
    let Some(age) = age else {
        return "?".to_owned();
    };
    match age.as_secs() {
        s @ ..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min", s / 60),
        s @ 3600..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// A shape as `1x16x9x88x68`.
fn shape(of: &[u64]) -> String {
    let parts: Vec<String> = of.iter().map(u64::to_string).collect();
    parts.join("x")
}

/// `section 2/3`, where the entry names one.
fn section(entry: &Entry) -> Option<String> {
    match entry.section() {
        (Some(n), Some(of)) => Some(format!("{n}/{of}")),
        (Some(n), None) => Some(n.to_string()),
        _ => None,
    }
}
