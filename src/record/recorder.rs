//! The recorder: the stream as packed JSON lines in the run's folder.

use std::fs::File;

use crate::model::{Envelope, Event};

use super::pack::Packer;
use super::queue::Class;
use super::sink::{EventSink, SinkError};
use super::store::EVENTS;

/// Appends every envelope to `events.jsonl.gz`. What matters is flushed at once,
/// what decides is on the disk (`fdatasync`) before the next envelope.
#[derive(Debug)]
pub struct Recorder {
    out: Packer<File>,
    line: Vec<u8>,
}

impl Recorder {
    /// A recorder over an open file; see [`super::RunDir::recorder`].
    pub fn new(file: File) -> Self {
        Self {
            out: Packer::new(file),
            line: Vec::new(),
        }
    }

    fn sync(&mut self) -> Result<(), SinkError> {
        self.flush()?;
        match self.out.get_ref().map(File::sync_data) {
            // A pipe, a FIFO or a character device has nothing to sync.
            Some(Err(e)) if e.raw_os_error() != Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                Err(io_error(e))
            }
            _ => Ok(()),
        }
    }
}

fn io_error(source: std::io::Error) -> SinkError {
    SinkError::Io {
        what: EVENTS.to_owned(),
        source,
    }
}

/// One envelope as a line of JSON, with its newline, into an emptied buffer. The
/// whole line is made first so that a failed encoding leaves no half line behind.
pub(super) fn encode(envelope: &Envelope, line: &mut Vec<u8>) -> Result<(), SinkError> {
    line.clear();
    serde_json::to_writer(&mut *line, envelope).map_err(|source| SinkError::Encode {
        seq: envelope.seq,
        source,
    })?;
    line.push(b'\n');
    Ok(())
}

/// Whether the event has to survive a power cut that comes right after it.
const fn is_durable(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStarted(_) | Event::Verdict(_) | Event::Decision(_) | Event::RunFinished { .. }
    )
}

impl EventSink for Recorder {
    fn accept(&mut self, envelope: &Envelope) -> Result<(), SinkError> {
        encode(envelope, &mut self.line)?;
        if matches!(envelope.event, Event::RunFinished { .. }) {
            // alone in the last member: who lists the runs need not unpack more
            self.out.close_member().map_err(io_error)?;
        }
        self.out.add(&self.line).map_err(io_error)?;
        if is_durable(&envelope.event) {
            self.sync()
        } else if Class::of(&envelope.event) == Class::Important {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.out.flush().map_err(io_error)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.out.close_member().map_err(io_error)?;
        self.sync()
    }
}
