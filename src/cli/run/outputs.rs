//! The readers of the stream: record, standard output, screen.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cli::CliError;
use crate::model::event::Level;
use crate::model::{Envelope, Event};
use crate::record::{EventSink, Headless, QueueLimits, RunDir, SinkError, SinkThread};
use crate::run::RunState;
use crate::ui::{PlainWriter, SnapshotSlot, TuiHandle};

use super::front::Shown;
use super::planner::Planner;

/// A sink has this long to write what waits at the end.
const FINISH: Duration = Duration::from_secs(5);
/// A blocked standard output must not hold a dead run.
const FINISH_STDOUT: Duration = Duration::from_secs(2);
/// The screen draws at most this often.
const FRAME: Duration = Duration::from_millis(50);

/// Plain text as a reader of the stream.
struct Plain(PlainWriter<io::Stdout>);

impl EventSink for Plain {
    fn accept(&mut self, envelope: &Envelope) -> Result<(), SinkError> {
        self.0.accept(envelope).map_err(to_stdout)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        io::Write::flush(&mut io::stdout()).map_err(to_stdout)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.flush()
    }
}

fn to_stdout(source: io::Error) -> SinkError {
    SinkError::Io {
        what: "standard output".to_owned(),
        source,
    }
}

/// All readers.
pub(super) struct Outputs {
    record: Option<SinkThread>,
    stdout: Option<SinkThread>,
    screen: Option<TuiHandle>,
    had_screen: bool,
    slot: SnapshotSlot,
    published: Option<Instant>,
    dirty: bool,
}

impl Outputs {
    pub(super) fn open(shown: Shown, dir: &RunDir) -> Result<Self, CliError> {
        let thread = |what, sink: Result<SinkThread, io::Error>| {
            sink.map_err(|why| CliError::System { what, why })
        };
        let limits = QueueLimits::default();
        let record = thread(
            "start the recorder",
            SinkThread::start("record", dir.recorder()?, limits),
        )?;
        let writer = |sink| thread("start the writer", sink).map(Some);
        let (stdout, screen) = match shown {
            Shown::Headless => {
                let sink = Headless::new(io::stdout());
                (writer(SinkThread::start("stdout", sink, limits))?, None)
            }
            Shown::Plain => {
                let sink = Plain(PlainWriter::new(io::stdout(), std::process::id()));
                (writer(SinkThread::start("stdout", sink, limits))?, None)
            }
            Shown::Screen(screen, slot) => (None, Some((screen, slot))),
            Shown::Viewers(_) => (None, None),
        };
        let (screen, slot) = screen.unzip();
        Ok(Self {
            record: Some(record),
            stdout,
            had_screen: screen.is_some(),
            screen,
            slot: slot.unwrap_or_default(),
            published: None,
            dirty: true,
        })
    }

    /// Hands an envelope to every reader; never waits.
    pub(super) fn accept(&mut self, env: &Arc<Envelope>) {
        for sink in [&self.record, &self.stdout].into_iter().flatten() {
            sink.try_send(env);
        }
        self.dirty = true;
    }

    /// Gives the screen a new snapshot when there is news and a frame is due.
    pub(super) fn publish(&mut self, state: &RunState, now: Instant) {
        let due = self
            .published
            .is_none_or(|p| now.duration_since(p) >= FRAME);
        if self.screen.is_some() && self.dirty && due {
            self.slot.publish(Arc::new(state.snapshot()));
            self.published = Some(now);
            self.dirty = false;
        }
    }

    /// What the readers have to report about themselves: dropped events, and
    /// readers that failed and were detached.
    pub(super) fn reports(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for (name, sink) in [("record", &mut self.record), ("output", &mut self.stdout)] {
            let Some(thread) = sink else { continue };
            for (what, n) in thread.take_dropped() {
                events.push(Event::Dropped {
                    what: format!("{what} ({name})"),
                    n,
                });
            }
            if let Some(why) = thread.take_failure() {
                events.push(Event::Notice {
                    level: Level::Warn,
                    text: format!("the {name} was detached, the run goes on: {why}"),
                });
                *sink = None;
            }
        }
        events
    }

    /// Leaves the screen for good: the terminal is gone, or the user wants it back.
    /// `false`: there was none.
    pub(super) fn leave_screen(&mut self) -> bool {
        let screen = self.screen.take();
        let stood = screen.is_some();
        if let Some(screen) = screen {
            screen.finish();
        }
        stood
    }

    /// Whether this run began on a screen.
    pub(super) const fn had_screen(&self) -> bool {
        self.had_screen
    }

    /// Whether the screen still stands and shows the end until it is left.
    pub(super) fn screen_is_up(&self) -> bool {
        self.screen.as_ref().is_some_and(TuiHandle::is_alive)
    }

    /// Hands the profiles to the screen; without one nobody looks at them.
    pub(super) fn show_profiles(&self, planner: &Planner) {
        if self.had_screen {
            self.slot.publish_profiles(Arc::new(planner.shelf()));
        }
    }

    /// Tells the screen where the record lies.
    pub(super) fn show_record(&self, folder: &std::path::Path) {
        self.slot.publish_record(folder);
    }

    /// A word for the user on the screen.
    pub(super) fn say(&self, word: String) {
        self.slot.say(word);
    }

    /// Shows the end, whatever the frame rate.
    pub(super) fn publish_last(&mut self, state: &RunState) {
        self.slot.publish(Arc::new(state.snapshot()));
    }

    /// Lets record and standard output finish; what could not be written is told. What comes
    /// later is written nowhere.
    pub(super) fn finish_writers(&mut self) -> Vec<String> {
        let mut complaints = Vec::new();
        for (name, sink, limit) in [
            ("output", self.stdout.take(), FINISH_STDOUT),
            ("record", self.record.take(), FINISH),
        ] {
            if let Some(sink) = sink
                && let Err(e) = sink.finish(limit)
            {
                complaints.push(format!("the {name} is not complete: {e}"));
            }
        }
        complaints
    }
}
