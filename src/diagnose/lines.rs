//! Lines of a file, one at a time and bounded: foreign files may be of any size and hold
//! anything.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longest line that is read; what is beyond is skipped.
const MOST: u64 = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
}

/// A line: its number from 1, its text, and whether bytes of it had to be replaced or cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextLine {
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) damaged: bool,
}

impl Lines<BufReader<File>> {
    /// Of a file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::new(BufReader::new(File::open(path)?)))
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// The next line, without its end; empty ones as well.
    pub(super) fn next(&mut self) -> io::Result<Option<TextLine>> {
        self.buffer.clear();
        let mut limited = self.reader.by_ref().take(MOST);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let ended = self.buffer.last() == Some(&b'\n');
        let cut = !ended && self.buffer.len() as u64 == MOST && self.skip()?;
        let text = String::from_utf8_lossy(&self.buffer);
        let damaged = cut || matches!(text, std::borrow::Cow::Owned(_));
        Ok(Some(TextLine {
            number: self.number,
            text: text.trim_end_matches(['\n', '\r']).to_owned(),
            damaged,
        }))
    }

    /// Skips the rest of a line; whether there was any.
    fn skip(&mut self) -> io::Result<bool> {
        let mut skipped = false;
        loop {
            let buffer = self.reader.fill_buf()?;
            let end = buffer.iter().position(|b| *b == b'\n');
            let (n, done) = end.map_or((buffer.len(), buffer.is_empty()), |at| (at + 1, true));
            skipped |= n > 1 || (n == 1 && end.is_none());
            self.reader.consume(n);
            if done {
                return Ok(skipped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8]) -> Vec<TextLine> {
        let mut lines = Lines::new(bytes);
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    #[test]
    fn ends_length_and_bad_bytes() {
        let mut bytes = b"a\r\n\nb\xff\n".to_vec();
        bytes.extend(vec![b'x'; 200_000]);
        bytes.extend(b"\nlast");
        let got: Vec<_> = all(&bytes)
            .into_iter()
            .map(|l| (l.number, l.text.len(), l.damaged))
            .collect();
        assert_eq!(
            got,
            [
                (1, 1, false),
                (2, 0, false),
                (3, 4, true),
                (4, 65536, true),
                (5, 4, false)
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_as_many_lines_as_they_have(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            let lines = all(&bytes);
            let ends = bytes.iter().filter(|b| **b == b'\n').count();
            let open = usize::from(!bytes.is_empty() && bytes.last() != Some(&b'\n'));
            prop_assert_eq!(lines.len(), ends + open);
        }
    }
}
