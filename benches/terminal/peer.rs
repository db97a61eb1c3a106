//! Programs of others that show a GPU or a machine in a terminal.

use std::ffi::OsString;
use std::process::Command;

use crate::Outcome;
use crate::home::Home;

/// btop, at two readings a second.
pub(crate) fn btop(home: &Home) -> Outcome<Vec<OsString>> {
    let folder = home.path("config/btop");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("btop.conf"), "update_ms=500\n")?;
    Ok(["btop", "--utf-force"].map(OsString::from).to_vec())
}

/// radeontop, at two readings a second.
pub(crate) fn radeontop() -> Vec<OsString> {
    ["radeontop", "-t", "120"].map(OsString::from).to_vec()
}

/// `btop version: 1.2.13`; an error: it is not there.
pub(crate) fn version(program: &str) -> Outcome<String> {
    let out = Command::new(program)
        .arg("--version")
        .output()
        .map_err(|e| {
            format!("{program} cannot be started ({e}); on Debian: apt-get install {program}")
        })?;
    let text = String::from_utf8_lossy(&out.stdout);
    let word = text.split_whitespace().last().unwrap_or("unknown");
    Ok(format!("{program} {word}"))
}

/// What radeontop says on a machine without a card that it can open.
pub(crate) fn radeontop_refuses() -> Option<String> {
    let out = Command::new("radeontop")
        .args(["-d", "-", "-l", "1"])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&out.stderr);
    let said = said
        .lines()
        .find(|l| !l.trim().is_empty())?
        .trim()
        .to_owned();
    (!out.status.success()).then_some(said)
}
