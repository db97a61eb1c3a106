//! Comma-separated tables of a case: columns by their names, whatever their order.

use std::io::{self, BufRead};

use super::lines::{Lines, TextLine};
use super::notes::Notes;
use super::readings::plausible;

/// See the module.
#[derive(Debug)]
pub(super) struct Table<R> {
    file: &'static str,
    lines: Lines<R>,
    /// For each known column its place in a row, if it is there.
    places: Vec<Option<usize>>,
    columns: &'static [&'static str],
}

/// One row: line number and its cells in the order of the known columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cells {
    pub(super) line: u64,
    cells: Vec<Option<String>>,
}

impl<R: BufRead> Table<R> {
    /// Reads the head. `columns`: those that are known; what is missing or not known is
    /// noted. None: the file is empty.
    pub(super) fn open(
        file: &'static str,
        mut lines: Lines<R>,
        columns: &'static [&'static str],
        notes: &mut Notes,
    ) -> io::Result<Option<Self>> {
        let Some(head) = lines.next()? else {
            return Ok(None);
        };
        let names: Vec<&str> = head
            .text
            .trim_start_matches('\u{feff}')
            .split(',')
            .map(str::trim)
            .collect();
        let places: Vec<_> = columns
            .iter()
            .map(|c| names.iter().position(|n| n == c))
            .collect();
        for (column, place) in columns.iter().zip(&places) {
            if place.is_none() {
                notes.say(format!(
                    "{file}:1: there is no column `{column}`; what it would show is not judged"
                ));
            }
        }
        let unknown = names.iter().filter(|n| !columns.contains(n));
        for name in unknown.filter(|n| !n.is_empty()) {
            notes.often("unknown columns", || {
                let name: String = name.chars().take(60).collect();
                format!("{file}:1: the column `{name}` is not known and not used")
            });
        }
        Ok(Some(Self {
            file,
            lines,
            places,
            columns,
        }))
    }

    /// Whether this column is there.
    pub(super) fn has(&self, column: usize) -> bool {
        self.places.get(column).is_some_and(Option::is_some)
    }

    /// The next row that is not empty.
    pub(super) fn next(&mut self) -> io::Result<Option<Cells>> {
        loop {
            let Some(TextLine { number, text, .. }) = self.lines.next()? else {
                return Ok(None);
            };
            if text.trim().is_empty() {
                continue;
            }
            let all: Vec<&str> = text.split(',').collect();
            let cells = self.places.iter().map(|place| {
                let cell = all.get((*place)?)?.trim();
                (!cell.is_empty()).then(|| cell.to_owned())
            });
            return Ok(Some(Cells {
                line: number,
                cells: cells.collect(),
            }));
        }
    }

    /// A number of a row; what is none is noted and absent.
    pub(super) fn number(&self, row: &Cells, column: usize, notes: &mut Notes) -> Option<f64> {
        let text = row.text(column)?;
        let number = text.parse().ok().filter(|v| plausible(*v));
        if number.is_none() {
            let (file, name) = (self.file, self.columns.get(column).unwrap_or(&""));
            notes.often(&format!("{file}: cells that are no readings"), || {
                let text: String = text.chars().take(60).collect();
                format!(
                    "{file}:{}: `{text}` in the column `{name}` is no reading; taken as not read",
                    row.line
                )
            });
        }
        number
    }
}

impl Cells {
    /// A cell that is not empty.
    pub(super) fn text(&self, column: usize) -> Option<&str> {
        self.cells.get(column)?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: &[&str] = &["t_s", "b", "c"];

    fn read(text: &[u8]) -> (Vec<(u64, Option<f64>, Option<f64>)>, Vec<String>) {
        let mut notes = Notes::default();
        let mut rows = Vec::new();
        if let Some(mut table) =
            Table::open("x.csv", Lines::new(text), COLUMNS, &mut notes).unwrap()
        {
            while let Some(row) = table.next().unwrap() {
                let mut number = |c| table.number(&row, c, &mut notes);
                rows.push((row.line, number(0), number(1)));
            }
        }
        (rows, notes.into_list())
    }

    #[test]
    fn by_name_with_gaps_and_bad_cells() {
        let (rows, notes) = read(b"b,zzz,t_s\n5,1,0\n\nnan,1,1\n,,2\n7\n");
        assert_eq!(
            rows,
            [
                (2, Some(0.0), Some(5.0)),
                (4, Some(1.0), None),
                (5, Some(2.0), None),
                (6, None, Some(7.0))
            ]
        );
        assert_eq!(
            notes,
            [
                "x.csv:1: there is no column `c`; what it would show is not judged",
                "x.csv:1: the column `zzz` is not known and not used",
                "x.csv:4: `nan` in the column `b` is no reading; taken as not read"
            ]
        );
        assert_eq!(read(b"").0, []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_table(bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(b','), Just(b'\n'), Just(b'1')], 0..300)) {
            let mut text = b"t_s,b,c\n".to_vec();
            text.extend(&bytes);
            for (line, t, b) in read(&text).0 {
                prop_assert!(line > 1);
                prop_assert!(t.into_iter().chain(b).all(plausible));
            }
        }
    }
}
