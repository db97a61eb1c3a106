//! `telemetry.csv`: each row becomes two samples and two ticks, as a run takes them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::diagnose::InputError;
use crate::diagnose::notes::Notes;
use crate::diagnose::readings::{Row, Step};
use crate::diagnose::table::{Cells, Table};

use super::{ROWS, io_error, optional};

const COLUMNS: &[&str] = &[
    "t_s",
    "gpu_busy_pct",
    "power_w",
    "vram_used_mib",
    "gtt_used_mib",
    "cpu_pct",
    "io_read_bps",
    "io_write_bps",
    "net_rx_bps",
    "threads_d_state",
    "proc_alive",
];

/// Time in one row where nothing else is known.
const ROW_S: f64 = 1.0;
/// What a clock may deviate before it is a jump.
const JUMP_S: f64 = 2.5;

/// A thing to do for a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Turn {
    /// No readings since `from`.
    Gap { from: f64, seconds: f64 },
    /// A sample.
    Sample { step: Step },
    /// A tick.
    Tick,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Rows {
    path: PathBuf,
    table: Table<BufReader<File>>,
    row: Row,
    line: u64,
    following: Option<(u64, Row)>,
    turns: VecDeque<(f64, Turn)>,
    count: u64,
}

impl Rows {
    /// Opens the table; none: there is no row in it.
    pub(super) fn open(path: &Path, notes: &mut Notes) -> Result<Option<Self>, InputError> {
        let table = match optional(path.to_owned())? {
            Some(lines) => Table::open(ROWS, lines, COLUMNS, notes).map_err(io_error(path))?,
            None => None,
        };
        let Some(table) = table.filter(|t| t.has(0)) else {
            notes.say(format!(
                "{ROWS} is missing or has no times: no reading was judged, so no hang and no slowness can be told"
            ));
            return Ok(None);
        };
        let mut rows = Self {
            path: path.to_owned(),
            table,
            row: Row::default(),
            line: 0,
            following: None,
            turns: VecDeque::new(),
            count: 0,
        };
        rows.following = rows.read(notes)?;
        if rows.following.is_none() {
            notes.say(format!("{ROWS} has no rows: no reading was judged"));
            return Ok(None);
        }
        rows.next_row(notes)?;
        Ok(Some(rows))
    }

    /// The first row; only before anything was taken.
    pub(super) fn first(&self) -> Option<&Row> {
        (self.count == 1).then_some(&self.row)
    }

    /// Whether the first two rows hold readings of a card.
    pub(super) fn has_card(&self) -> bool {
        let following = self.following.as_ref().map(|(_, row)| row);
        self.row.has_card() || following.is_some_and(Row::has_card)
    }

    /// When the next thing is due, and its rank among what is due at the same time.
    pub(super) fn due(&self) -> Option<(f64, u8)> {
        self.turns.front().map(|(t, turn)| {
            let rank = if matches!(turn, Turn::Gap { .. }) {
                0
            } else {
                2
            };
            (*t, rank)
        })
    }

    /// That thing.
    pub(super) fn turn(&self) -> Option<Turn> {
        self.turns.front().map(|(_, turn)| *turn)
    }

    /// The row that it is of.
    pub(super) const fn row(&self) -> &Row {
        &self.row
    }

    /// Its line in the file.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    /// Rows so far.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// It is done.
    pub(super) fn advance(&mut self, notes: &mut Notes) -> Result<(), InputError> {
        self.turns.pop_front();
        if self.turns.is_empty() {
            self.next_row(notes)?;
        }
        Ok(())
    }

    fn next_row(&mut self, notes: &mut Notes) -> Result<(), InputError> {
        let Some((line, row)) = self.following.take() else {
            return Ok(());
        };
        self.following = self.read(notes)?;
        let before = (self.count > 0).then_some(self.row.t);
        self.count += 1;
        (self.line, self.row) = (line, row);
        let t = self.row.t;
        if let Some(from) = before.filter(|b| t - b > JUMP_S) {
            let seconds = t - from - ROW_S;
            self.turns.push_back((t, Turn::Gap { from, seconds }));
        }
        let next = self.following.as_ref().map(|(_, r)| r.t - t);
        let step = next.filter(|s| *s <= JUMP_S).unwrap_or(ROW_S);
        for quarter in [0.0, 0.5] {
            let at = t + quarter * step;
            self.turns.push_back((at, Turn::Sample { step }));
            self.turns.push_back((at + 0.25 * step, Turn::Tick));
        }
        Ok(())
    }

    /// The next row whose time is later than the one before.
    fn read(&mut self, notes: &mut Notes) -> Result<Option<(u64, Row)>, InputError> {
        loop {
            let Some(cells) = self.table.next().map_err(io_error(&self.path))? else {
                return Ok(None);
            };
            let row = self.of(&cells, notes);
            let last = (self.count > 0).then_some(self.row.t);
            match row {
                Some(row) if last.is_none_or(|l| row.t > l) => return Ok(Some((cells.line, row))),
                _ => notes.often("telemetry.csv: rows without their time", || {
                    format!(
                        "{ROWS}:{}: no time, or not later than the row before; left out",
                        cells.line
                    )
                }),
            }
        }
    }

    fn of(&self, cells: &Cells, notes: &mut Notes) -> Option<Row> {
        let mut number = |column| self.table.number(cells, column, notes);
        Some(Row {
            t: number(0)?,
            busy: number(1),
            power: number(2),
            vram_mib: number(3),
            gtt_mib: number(4),
            cpu: number(5),
            read_bps: number(6),
            write_bps: number(7),
            net_bps: number(8),
            d_state: number(9),
            // how it ended is told by events.csv
            alive: number(10) != Some(0.0),
            ..Row::default()
        })
    }
}
