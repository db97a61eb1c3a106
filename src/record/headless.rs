//! The stream as JSON lines for programs: `run --headless`.

use std::io::{BufWriter, Write};

use crate::model::{Envelope, Event};

use super::recorder::encode;
use super::sink::{EventSink, SinkError};

/// Writes every envelope but [`Event::Tick`] as one line of JSON, each flushed
/// at once so that a reader of the pipe is never behind.
#[derive(Debug)]
pub struct Headless<W: Write> {
    out: BufWriter<W>,
    line: Vec<u8>,
}

impl<W: Write> Headless<W> {
    /// Writes to `out`, which is standard output in the program.
    pub fn new(out: W) -> Self {
        Self {
            out: BufWriter::new(out),
            line: Vec::new(),
        }
    }

    /// The writer underneath.
    pub fn get_ref(&self) -> &W {
        self.out.get_ref()
    }
}

fn io_error(source: std::io::Error) -> SinkError {
    SinkError::Io {
        what: "standard output".to_owned(),
        source,
    }
}

impl<W: Write + Send> EventSink for Headless<W> {
    fn accept(&mut self, envelope: &Envelope) -> Result<(), SinkError> {
        if envelope.event == Event::Tick {
            return Ok(());
        }
        encode(envelope, &mut self.line)?;
        self.out.write_all(&self.line).map_err(io_error)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.out.flush().map_err(io_error)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.flush()
    }
}
