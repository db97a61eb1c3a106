//! The benchmark itself inside the imitation, with the card at `/sys`.

use std::error::Error;
use std::process::{Command, ExitCode};

use crate::card::{self, Card};

/// Folder of the imitated card; set: we are inside the namespace already.
const INSIDE: &str = "FPT_BENCH_CARD";

/// The card, where this is the program inside.
pub(crate) fn card() -> Option<Card> {
    std::env::var_os(INSIDE).map(|root| Card(root.into()))
}

/// Runs this program again with the card at `/sys`. The tool takes a third of a second
/// to get there, which must not be measured with the program.
pub(crate) fn enter(args: &[String]) -> Result<ExitCode, Box<dyn Error>> {
    // not in /dev/shm: inside the imitation that is a private one
    let folder = tempfile::Builder::new().prefix("fpt-card-").tempdir()?;
    let card = Card::make(folder.path())?;
    let status = Command::new("python3")
        .arg(card::tool())
        .arg("run")
        .arg(card.root())
        .arg("--")
        .arg(std::env::current_exe()?)
        .args(args)
        .env(INSIDE, card.root())
        .status()?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
