//! `framepack-tui runs list`: the recorded runs, newest first.

use serde::Serialize;

use crate::cli::{CliError, find};
use crate::model::worker::listed;
use crate::record::{RunEntry, RunStatus};

use super::{print, printable};

/// Lists them, one a line.
pub(super) fn main(json: bool) -> Result<u8, CliError> {
    let runs = find::to_look_at()?;
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
    end: Option<&'static str>,
    exit_code: Option<u8>,
    watch: Option<u32>,
    wall_clock: Option<&'a str>,
    program: Option<&'a str>,
    argv: Option<&'a [String]>,
    bytes: u64,
    path: String,
}

fn object(run: &RunEntry) -> String {
    let manifest = run.manifest.as_ref();
    let (state, end, exit_code) = match &run.status {
        RunStatus::Running => ("running", None, None),
        RunStatus::Finished { outcome, exit_code } => {
            ("finished", Some(outcome.word()), Some(*exit_code))
        }
        RunStatus::Broken { .. } => ("broken", None, None),
    };
    let listed = Listed {
        run: &run.id,
        state,
        end,
        exit_code,
        watch: run.watched(),
        wall_clock: manifest.map(|m| m.wall_clock.as_str()),
        program: manifest.map(|m| m.program.as_str()),
        argv: manifest.map(|m| m.argv.as_slice()),
        bytes: run.size(),
        path: run.path.display().to_string(),
    };
    // plain fields always have a JSON form
    serde_json::to_string(&listed).unwrap_or_default()
}

fn line(run: &RunEntry) -> String {
    let state = run.state();
    let (when, command) = run.manifest.as_ref().map_or_else(
        || ("?".to_owned(), "?".to_owned()),
        |m| {
            let when = m.wall_clock.get(..19).unwrap_or(&m.wall_clock);
            (when.replace('T', " "), listed(&m.argv))
        },
    );
    let command = printable(&command);
    format!("{}  {when:<19}  {state:<14}  {command}", run.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;
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
            status: RunStatus::Finished {
                outcome: Outcome::Finished { restarts: 1 },
                exit_code: 10,
            },
        };
        assert_eq!(
            line(&run),
            "20260102-0003-00cc  2026-01-02 00:03:07  finished 10     python -c print() [2J"
        );
        run.manifest = None;
        run.status = RunStatus::Running;
        assert!(line(&run).contains("running"));
    }

    /// The words of the list are those of the document.
    #[test]
    fn every_end_is_told_as_the_document_says() {
        let doc = include_str!("../../../docs/events.md");
        let outcomes = [
            Outcome::Finished { restarts: 0 },
            Outcome::Failed,
            Outcome::GaveUp,
            Outcome::Unkillable { pids: Vec::new() },
            Outcome::NotLaunched { not_found: true },
            Outcome::Interrupted { terminated: false },
            Outcome::Left,
            Outcome::Ended,
            Outcome::LeftoversEnded { pids: Vec::new() },
            Outcome::ResultKept,
            Outcome::CardHeld { pids: Vec::new() },
        ];
        for outcome in outcomes {
            let json = serde_json::to_value(&outcome).unwrap();
            assert_eq!(json["end"], outcome.word());
            let row = format!("| `{}` | {} |", outcome.word(), outcome.short());
            assert!(doc.contains(&row), "no row `{row}`");
            let watches = matches!(outcome, Outcome::Left | Outcome::Ended);
            let (code, short) = (outcome.exit_code(), outcome.short());
            let mut run = RunEntry {
                id: "20260102-0003-00cc".to_owned(),
                path: "x".into(),
                manifest: None,
                status: RunStatus::Finished {
                    outcome: outcome.clone(),
                    exit_code: code,
                },
            };
            let want = match code {
                0 => short.to_owned(),
                code => format!("{short} {code}"),
            };
            assert_eq!(run.state(), want);
            run.manifest = Some(Manifest {
                format: "2.0".to_owned(),
                program: "0.1.0".to_owned(),
                run: "20260102-0003-00cc".parse().unwrap(),
                wall_clock: String::new(),
                argv: Vec::new(),
                watch: Some(42),
                pid: None,
            });
            assert_eq!(run.state(), format!("watch {want}"));
            let json: serde_json::Value = serde_json::from_str(&object(&run)).unwrap();
            assert_eq!(json["state"], "finished");
            assert_eq!(json["end"], outcome.word());
            assert_eq!(json["watch"], 42);
            assert!(!watches || code == 0);
            for key in json.as_object().unwrap().keys() {
                assert!(doc.contains(&format!("`{key}`")), "{key} is not told");
            }
        }
        for state in ["running", "finished", "broken"] {
            assert!(doc.contains(&format!("`{state}`")));
        }
    }
}
