//! `framepack-tui runs`: the recorded runs, newest first.

use std::io::{self, Write};

use crate::record::{RunEntry, RunStatus};

use super::{CliError, find};

/// Lists them, one a line.
pub(super) fn main() -> Result<u8, CliError> {
    let mut out = io::stdout().lock();
    for run in find::all()? {
        match writeln!(out, "{}", line(&run)) {
            // `runs | head`
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => break,
            written => written.map_err(|why| CliError::System {
                what: "write to standard output",
                why,
            })?,
        }
    }
    Ok(0)
}

fn line(run: &RunEntry) -> String {
    let state = match &run.status {
        RunStatus::Running => "running".to_owned(),
        RunStatus::Finished { exit_code } => format!("finished {exit_code}"),
        RunStatus::Broken { .. } => "broken".to_owned(),
    };
    let (when, command) = run.manifest.as_ref().map_or_else(
        || ("?".to_owned(), "?".to_owned()),
        |m| {
            let when = m.wall_clock.get(..19).unwrap_or(&m.wall_clock);
            (when.replace('T', " "), m.argv.join(" "))
        },
    );
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let command: String = command.chars().map(printable).collect();
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
