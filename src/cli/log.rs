//! The supervisor's own log: `supervisor.log` in the run's folder, for faults of the supervisor itself.
//!
//! Off by default. `--log=FILTER` or `FPT_LOG` choose what is written, as `tracing` filters are written:
//! `debug`, or `framepack_tui::cli=trace,warn`. The events of the run are in the record already: here stands
//! what each of them cost and what followed.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The file in the run's folder.
pub(super) const FILE: &str = "supervisor.log";
/// Bytes after which no more is written: a run may last for weeks.
const LARGEST: u64 = 64 << 20;

/// Writes what `filter` lets through to the folder of the run.
///
/// # Errors
/// A filter that cannot be read, or a file that cannot be made; the run goes on without.
pub(super) fn open(folder: &Path, filter: &str) -> Result<(), String> {
    let targets: Targets = filter.parse().map_err(|why| {
        format!("`{filter}` is no filter of a log ({why}): write a level, such as debug")
    })?;
    let path = folder.join(FILE);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(|why| format!("{} cannot be made: {why}", path.display()))?;
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(Bounded(Mutex::new(Bound {
            file,
            left: LARGEST,
        })));
    tracing_subscriber::registry()
        .with(targets)
        .with(layer)
        .try_init()
        .map_err(|why| why.to_string())
}

/// The name of an enum's variant; what is in it may be private, and is in the record.
pub(super) fn variant(value: &impl fmt::Debug) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let mut name = FirstWord(f);
        // it ends by an error behind the name
        let _ = fmt::write(&mut name, format_args!("{value:?}"));
        Ok(())
    })
}

/// Passes on what stands before the first character that is in no name.
struct FirstWord<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for FirstWord<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|c: char| !c.is_alphanumeric());
        self.0.write_str(&text[..end.unwrap_or(text.len())])?;
        end.map_or(Ok(()), |_| Err(fmt::Error))
    }
}

/// A file that is written up to a size, with a last line that says so.
struct Bounded(Mutex<Bound>);

struct Bound {
    file: File,
    left: u64,
}

struct Line<'a>(MutexGuard<'a, Bound>);

impl<'a> MakeWriter<'a> for Bounded {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = bytes.len() as u64;
        let bound = &mut *self.0;
        if bound.left >= size {
            bound.left -= size;
            bound.file.write_all(bytes)?;
        } else if bound.left > 0 {
            bound.left = 0;
            let end = format!("no more is written: {} MiB\n", LARGEST >> 20);
            bound.file.write_all(end.as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_ends_at_its_bound_with_a_line_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let file = File::create(&path).unwrap();
        let bounded = Bounded(Mutex::new(Bound { file, left: 10 }));
        for line in ["first\n", "second\n", "third\n"] {
            bounded.make_writer().write_all(line.as_bytes()).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "first\nno more is written: 64 MiB\n");
    }

    #[derive(Debug)]
    #[expect(dead_code, reason = "read by Debug alone")]
    enum E {
        Fields { secret: u8 },
    }

    #[test]
    fn only_the_name_of_a_variant_is_written() {
        for (value, name) in [(Some("a prompt"), "Some"), (None, "None")] {
            assert_eq!(variant(&value).to_string(), name);
        }
        assert_eq!(variant(&E::Fields { secret: 1 }).to_string(), "Fields");
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let why = open(folder.path(), "cli=loud").unwrap_err();
        assert!(why.contains("`cli=loud` is no filter of a log"), "{why}");
        assert!(!folder.path().join(FILE).exists());
    }
}
