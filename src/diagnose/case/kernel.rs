//! `kernel.log`: `[seconds] text`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::detect::{culprit, kernel_fault};
use crate::diagnose::InputError;
use crate::diagnose::lines::{Lines, TextLine};
use crate::diagnose::notes::Notes;

use super::{KERNEL, io_error, optional};

/// Lines about killed processes that are looked at for our own.
const MOST_VICTIMS: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Kernel {
    path: PathBuf,
    lines: Lines<BufReader<File>>,
    t0: f64,
    next: Option<(f64, TextLine)>,
}

impl Kernel {
    /// Opens the file, if there is one, and looks up the lines that name a process.
    pub(super) fn open(
        path: &Path,
        t0: Option<f64>,
        notes: &mut Notes,
    ) -> Result<(Option<Self>, Vec<String>), InputError> {
        let Some(lines) = optional(path.to_owned())? else {
            return Ok((None, Vec::new()));
        };
        let Some(t0) = t0.filter(|t| t.is_finite()) else {
            notes.say(format!(
                "{KERNEL} is not used: `kernel_t0` in meta.toml, the stamp that is second 0, is missing"
            ));
            return Ok((None, Vec::new()));
        };
        let mut kernel = Self {
            path: path.to_owned(),
            lines,
            t0,
            next: None,
        };
        kernel.read(notes)?;
        Ok((Some(kernel), victims(path)?))
    }

    /// When the next line is due.
    pub(super) fn due(&self) -> Option<f64> {
        self.next.as_ref().map(|(t, _)| *t)
    }

    /// That line.
    pub(super) fn take(&mut self, notes: &mut Notes) -> Result<Option<TextLine>, InputError> {
        let taken = self.next.take().map(|(_, line)| line);
        self.read(notes)?;
        Ok(taken)
    }

    fn read(&mut self, notes: &mut Notes) -> Result<(), InputError> {
        while let Some(line) = self.lines.next().map_err(io_error(&self.path))? {
            if line.text.trim().is_empty() {
                continue;
            }
            if let Some((stamp, said)) = stamped(&line.text) {
                let t = (stamp - self.t0).max(0.0);
                let text = said.to_owned();
                self.next = Some((t, TextLine { text, ..line }));
                return Ok(());
            }
            notes.often("kernel.log: lines without a stamp", || {
                format!(
                    "{KERNEL}:{}: does not begin with [seconds]; left out",
                    line.number
                )
            });
        }
        Ok(())
    }
}

/// Stamp and text of a line as dmesg prints it.
pub(super) fn stamped(line: &str) -> Option<(f64, &str)> {
    let (stamp, said) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let stamp: f64 = stamp.trim().parse().ok()?;
    (stamp.is_finite() && stamp.abs() < 1e12)
        .then(|| (stamp, said.strip_prefix(' ').unwrap_or(said)))
}

/// Whether the kernel says which process it speaks of.
fn names_a_process(text: &str) -> bool {
    kernel_fault(text).is_some_and(|f| f.pid.is_some()) || culprit(text).is_some()
}

fn victims(path: &Path) -> Result<Vec<String>, InputError> {
    let mut found = Vec::new();
    let Some(mut lines) = optional(path.to_owned())? else {
        return Ok(found);
    };
    while let Some(line) = lines.next().map_err(io_error(path))? {
        if found.len() < MOST_VICTIMS && names_a_process(&line.text) {
            found.push(line.text);
        }
    }
    Ok(found)
}
