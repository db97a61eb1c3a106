//! `events.csv`: what the supervisor itself saw.

use std::collections::VecDeque;
use std::path::Path;

use crate::diagnose::InputError;
use crate::diagnose::notes::Notes;
use crate::diagnose::player::Happening;
use crate::diagnose::table::Table;
use crate::model::ExitStatus;

use super::{EVENTS, io_error, optional};

const COLUMNS: &[&str] = &["t_s", "event", "detail"];
/// Rows that are kept.
const MOST: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Happenings(VecDeque<(f64, u64, Happening)>);

impl Happenings {
    pub(super) fn read(path: &Path, notes: &mut Notes) -> Result<Self, InputError> {
        let mut list = Vec::new();
        if let Some(lines) = optional(path.to_owned())?
            && let Some(mut table) =
                Table::open(EVENTS, lines, COLUMNS, notes).map_err(io_error(path))?
        {
            while let Some(row) = table.next().map_err(io_error(path))? {
                let t = table.number(&row, 0, notes);
                let what = happening(row.text(1).unwrap_or(""), row.text(2).unwrap_or(""));
                match (t, what) {
                    (Some(t), Some(what)) if list.len() < MOST => list.push((t, row.line, what)),
                    _ => notes.often("events.csv: rows that are not known", || {
                        format!(
                            "{EVENTS}:{}: not an event that is known (exit with code= or signal=, stopped, continued); left out",
                            row.line
                        )
                    }),
                }
            }
        }
        list.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self(list.into()))
    }

    /// When the next one is due.
    pub(super) fn due(&self) -> Option<f64> {
        self.0.front().map(|(t, ..)| *t)
    }

    /// That one: time, line, what.
    pub(super) fn take(&mut self) -> Option<(f64, u64, Happening)> {
        self.0.pop_front()
    }

    /// How the process ended, if it did.
    pub(super) fn exit(&self) -> Option<ExitStatus> {
        self.0.iter().rev().find_map(|(_, _, what)| match what {
            Happening::Exit(status) => Some(*status),
            _ => None,
        })
    }
}

fn happening(event: &str, detail: &str) -> Option<Happening> {
    match event {
        "stopped" => Some(Happening::Stopped),
        "continued" => Some(Happening::Continued),
        "exit" => Some(Happening::Exit(status(detail))),
        _ => None,
    }
}

/// `code=1`, `signal=SIGKILL`, `signal=9`.
pub(super) fn status(detail: &str) -> ExitStatus {
    let known = match detail.split_once('=') {
        Some(("code", n)) => n.trim().parse().ok().map(ExitStatus::Code),
        Some(("signal", name)) => signal(name.trim()).map(ExitStatus::Signal),
        _ => None,
    };
    known.unwrap_or(ExitStatus::Unknown)
}

fn signal(name: &str) -> Option<i32> {
    let known = match name.trim_start_matches("SIG") {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ILL" => 4,
        "TRAP" => 5,
        "ABRT" => 6,
        "BUS" => 7,
        "FPE" => 8,
        "KILL" => 9,
        "SEGV" => 11,
        "PIPE" => 13,
        "TERM" => 15,
        "SYS" => 31,
        number => return number.parse().ok().filter(|n| (1..=64).contains(n)),
    };
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_words_and_numbers() {
        assert_eq!(status("code=3"), ExitStatus::Code(3));
        assert_eq!(status("signal=SIGKILL"), ExitStatus::Signal(9));
        assert_eq!(status("signal=11"), ExitStatus::Signal(11));
        for unknown in ["", "code=x", "signal=SIGWHAT", "signal=900"] {
            assert_eq!(status(unknown), ExitStatus::Unknown, "{unknown}");
        }
    }
}
