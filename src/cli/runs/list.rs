//! `framepack-tui runs list`: the recorded runs, newest first.

use serde::Serialize;

use crate::cli::{CliError, find};
use crate::record::{RunEntry, RunStatus};

use super::{print, printable};

/// Lists them, one a line.
pub(super) fn main(json: bool) -> Result<u8, CliError> {
    let runs = find::all()?;
    print(
        runs.iter()
            .map(|run| if json { object(run) } else { line(run) }),
    )?;
    Ok(0)
}

/// A run as `--json` tells it, see `docs/events.md`.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    run: &'a str,
    state: &'static str,
    exit_code: Option<u8>,
    wall_clock: Option<&'a str>,
    program: Option<&'a str>,
    argv: Option<&'a [String]>,
    bytes: u64,
    path: String,
}

fn object(run: &RunEntry) -> String {
    let manifest = run.manifest.as_ref();
    let (state, exit_code) = match run.status {
        RunStatus::Running => ("running", None),
        RunStatus::Finished { exit_code } => ("finished", Some(exit_code)),
        RunStatus::Broken { .. } => ("broken", None),
    };
    let listed = Listed {
        run: &run.id,
        state,
        exit_code,
        wall_clock: manifest.map(|m| m.wall_clock.as_str()),
        program: manifest.map(|m| m.program.as_str()),
        argv: manifest.map(|m| m.argv.as_slice()),
        bytes: run.size(),
        path: run.path.display().to_string(),
    };
    // plain fields always have a JSON form
    serde_json::to_string(&listed).unwrap_or_default()
}

/// How it stands, in a word or two.
pub(super) fn state(run: &RunEntry) -> String {
    match &run.status {
        RunStatus::Running => "running".to_owned(),
        RunStatus::Finished {
            exit_code: code @ (0 | 10),
        } => format!("finished {code}"),
        RunStatus::Finished { exit_code } => format!("ended {exit_code}"),
        RunStatus::Broken { .. } => "broken".to_owned(),
    }
}

fn line(run: &RunEntry) -> String {
    let state = state(run);
    let (when, command) = run.manifest.as_ref().map_or_else(
        || ("?".to_owned(), "?".to_owned()),
        |m| {
            let when = m.wall_clock.get(..19).unwrap_or(&m.wall_clock);
            (when.replace('T', " "), m.argv.join(" "))
        },
    );
    let command = printable(&command);
    format!("{}  {when:<19}  {state:<12}  {command}", run.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Manifest;

    #[test]
    fn one_line_whatever_the_command_holds() {
        let id = "20260102-0003-00cc";
        let mut run = RunEntry {
            id: id.to_owned(),
            path: id.into(),
            manifest: Some(Manifest {
                format: "1.1".to_owned(),
                program: "0.1.0".to_owned(),
                run: id.parse().unwrap(),
                wall_clock: "2026-01-02T00:03:07+00:00".to_owned(),
                argv: vec!["python".to_owned(), "-c\nprint()\x1b[2J".to_owned()],
                watch: None,
                pid: None,
            }),
            status: RunStatus::Finished { exit_code: 10 },
        };
        assert_eq!(
            line(&run),
            "20260102-0003-00cc  2026-01-02 00:03:07  finished 10   python -c print() [2J"
        );
        run.manifest = None;
        run.status = RunStatus::Running;
        assert!(line(&run).contains("running"));
    }
}
