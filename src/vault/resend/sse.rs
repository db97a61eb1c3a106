//! Server-sent events: `event:` and `data:` lines, an empty line behind each event.

use std::io::{self, BufRead, BufReader, Read};

/// Longest event that is kept, in bytes; what is longer loses its data.
const LONGEST: u64 = 16 << 20;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// `generating`, `complete`, `error`, `heartbeat`.
    pub(super) name: String,
    /// Its data lines.
    pub(super) data: String,
}

/// The events of a stream.
pub(super) struct Events<R> {
    from: BufReader<R>,
    longest: u64,
}

impl<R: Read> Events<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from: BufReader::new(from),
            longest: LONGEST,
        }
    }

    /// The next one; `None` at the end of the stream. Half an event at the end is none.
    pub(super) fn next(&mut self) -> io::Result<Option<Event>> {
        let (mut event, mut any) = (Event::default(), false);
        while let Some(line) = self.line()? {
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                if any {
                    return Ok(Some(event));
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut event.name),
                "data" => {
                    if !event.data.is_empty() {
                        event.data.push('\n');
                    }
                    if (event.data.len() + value.len()) as u64 <= self.longest {
                        event.data.push_str(value);
                    }
                }
                // a comment, an id, a time to wait
                _ => continue,
            }
            any = true;
        }
        Ok(None)
    }

    /// A line with its end; too long a one is cut. `None`: nothing more comes.
    fn line(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        let limit = self.longest + 64;
        (&mut self.from).take(limit).read_until(b'\n', &mut bytes)?;
        if bytes.len() as u64 == limit && bytes.last() != Some(&b'\n') {
            self.from.skip_until(b'\n')?;
        }
        // the stream may break off anywhere
        Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &[u8], longest: u64) -> Vec<(String, String)> {
        let mut events = Events::new(text);
        events.longest = longest;
        let mut found = Vec::new();
        while let Some(event) = events.next().unwrap() {
            found.push((event.name, event.data));
        }
        found
    }

    fn told(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn events_are_told_apart() {
        let text = b": hello\n\nevent: generating\r\ndata: [1,\r\ndata:2]\r\n\r\nevent: heartbeat\ndata: null\n\n\n\nevent: comp";
        assert_eq!(
            all(text, 100),
            [told("generating", "[1,\n2]"), told("heartbeat", "null")]
        );
    }

    #[test]
    fn an_endless_line_loses_its_data_only() {
        let text = format!(
            "event: generating\ndata: {}\n\nevent: complete\ndata: []\n\n",
            "x".repeat(5000)
        );
        assert_eq!(
            all(text.as_bytes(), 100),
            [told("generating", ""), told("complete", "[]")]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), longest in 0_u64..50) {
            for (_, data) in all(&bytes, longest) {
                prop_assert!(data.len() <= 300);
            }
        }

        #[test]
        fn what_was_sent_is_heard(sent in prop::collection::vec(("[a-z]{1,9}", "[^\r\n]{0,30}"), 0..6)) {
            let text: Vec<_> = sent.iter().map(|(n, d)| format!("event: {n}\ndata: {d}\n\n")).collect();
            let text = text.concat();
            prop_assert_eq!(all(text.as_bytes(), 1000), sent);
        }
    }
}
