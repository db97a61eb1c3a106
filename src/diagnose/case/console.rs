//! `console.log` with `console.idx`: bytes and when they came.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::diagnose::InputError;
use crate::diagnose::notes::Notes;
use crate::diagnose::player::{Item, Player};
use crate::diagnose::table::Table;

use super::{CONSOLE, INDEX, io_error, optional};

const COLUMNS: &[&str] = &["t_s", "byte_start", "byte_end"];
/// A piece of output is passed on in portions of this size.
const PORTION: u64 = 64 * 1024;

/// What there is of a console.
#[derive(Debug)]
pub(super) enum Found {
    /// With its times.
    Timed(Box<Console>),
    /// Without.
    Untimed,
    /// No console at all.
    Nothing,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Console {
    path: PathBuf,
    log: File,
    length: u64,
    /// Where the file stands.
    at: u64,
    index: Table<BufReader<File>>,
    next: Option<Piece>,
    /// End of the last piece, and its time.
    end: u64,
    last: f64,
    tail: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    t: f64,
    from: u64,
    to: u64,
}

impl Console {
    pub(super) fn open(log: &Path, index: &Path, notes: &mut Notes) -> Result<Found, InputError> {
        let file = match File::open(log) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                notes.say(format!(
                    "{CONSOLE} is missing: neither phases nor errors can be told"
                ));
                return Ok(Found::Nothing);
            }
            Err(source) => return Err(io_error(log)(source)),
        };
        let length = file.metadata().map_err(io_error(log))?.len();
        let table = match optional(index.to_owned())? {
            Some(lines) => Table::open(INDEX, lines, COLUMNS, notes).map_err(io_error(index))?,
            None => None,
        };
        let usable = table.filter(|t| (0..COLUMNS.len()).all(|c| t.has(c)));
        let Some(index) = usable else {
            if length == 0 {
                return Ok(Found::Nothing);
            }
            notes.say(format!(
                "{INDEX} is missing or has no times: when {CONSOLE} was written is not known, so the readings cannot be set against it; only its text is judged"
            ));
            return Ok(Found::Untimed);
        };
        let mut console = Self {
            path: log.to_owned(),
            log: file,
            length,
            at: 0,
            index,
            next: None,
            end: 0,
            last: 0.0,
            tail: false,
        };
        console.next = console.read(notes)?;
        Ok(Found::Timed(Box::new(console)))
    }

    /// When the next piece is due.
    pub(super) fn due(&self) -> Option<f64> {
        self.next.map(|p| p.t)
    }

    /// Passes the next piece on; gives its bytes.
    pub(super) fn play(
        &mut self,
        t: f64,
        player: &mut Player,
        notes: &mut Notes,
        each: &mut impl FnMut(&mut Player),
    ) -> Result<u64, InputError> {
        let Some(piece) = self.next.take() else {
            return Ok(0);
        };
        let path = self.path.clone();
        let failed = io_error(&path);
        if self.at != piece.from {
            self.log
                .seek(SeekFrom::Start(piece.from))
                .map_err(&failed)?;
        }
        let mut buffer = Vec::new();
        let mut left = piece.to - piece.from;
        while left > 0 {
            buffer.clear();
            let portion = left.min(PORTION);
            let n = (&self.log)
                .take(portion)
                .read_to_end(&mut buffer)
                .map_err(&failed)?;
            if n == 0 {
                break;
            }
            left -= u64::try_from(n).unwrap_or(left).min(left);
            player.play(t, None, Item::Output(&buffer));
            each(player);
        }
        self.at = piece.to - left;
        self.end = piece.to;
        self.last = t;
        self.next = self.read(notes)?;
        Ok(piece.to - piece.from - left)
    }

    /// The next piece that makes sense.
    fn read(&mut self, notes: &mut Notes) -> Result<Option<Piece>, InputError> {
        let index = self.path.with_file_name(INDEX);
        while let Some(row) = self.index.next().map_err(io_error(&index))? {
            let t = self.index.number(&row, 0, notes);
            let byte = |c: usize| row.text(c).and_then(|s| s.parse::<u64>().ok());
            let (Some(t), Some(from), Some(to)) = (t, byte(1), byte(2)) else {
                notes.often("console.idx: rows that say nothing", || {
                    format!(
                        "{INDEX}:{}: not a time and two positions; left out",
                        row.line
                    )
                });
                continue;
            };
            if from > to || to > self.length {
                notes.often("console.idx: pieces outside the file", || {
                    format!(
                        "{INDEX}:{}: bytes {from} to {to} of a file of {}; {CONSOLE} is not whole, or another one",
                        row.line, self.length
                    )
                });
            }
            if from != self.end {
                notes.often("console.idx: pieces out of place", || {
                    format!(
                        "{INDEX}:{}: begins at byte {from}, the last piece ended at {}; line numbers may be wrong",
                        row.line, self.end
                    )
                });
            }
            let to = to.min(self.length);
            if from >= to {
                self.end = self.end.max(to);
                continue;
            }
            return Ok(Some(Piece { t, from, to }));
        }
        Ok(self.rest(notes))
    }

    /// What the index does not reach is taken as written with the last piece that it has.
    fn rest(&mut self, notes: &mut Notes) -> Option<Piece> {
        if self.tail || self.end >= self.length {
            return None;
        }
        self.tail = true;
        notes.say(format!(
            "{INDEX} ends at byte {} of {}: the rest of {CONSOLE} has no times and is taken as written at {:.1} s",
            self.end, self.length, self.last
        ));
        Some(Piece {
            t: self.last,
            from: self.end,
            to: self.length,
        })
    }
}
