//! The thread that reads the record and shows it.

use std::io::{self, Stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::cli::CliError;
use crate::model::event::Level;
use crate::model::{Envelope, Event};
use crate::record::{EventSink, Headless, SinkError, Tail, is_held};
use crate::run::{RunState, follow};
use crate::ui::{PlainWriter, SnapshotSlot};

/// How often a record that does not grow is looked at.
const POLL: Duration = Duration::from_millis(100);
/// The screen draws at most this often.
const FRAME: Duration = Duration::from_millis(50);

/// Where the events go.
pub(super) enum Show {
    Plain(Box<PlainWriter<Stdout>>),
    Headless(Headless<Stdout>),
    Screen {
        state: Option<Box<RunState>>,
        slot: SnapshotSlot,
        published: Option<Instant>,
        /// Something was folded since.
        dirty: bool,
    },
}

impl Show {
    /// Plain lines; `pid`: the supervisor, if it can be reached.
    pub(super) fn plain(pid: Option<u32>) -> Self {
        Self::Plain(Box::new(PlainWriter::following(io::stdout(), pid)))
    }

    /// JSON lines.
    pub(super) fn headless() -> Self {
        Self::Headless(Headless::new(io::stdout()))
    }

    /// The screen behind this slot.
    pub(super) const fn screen(slot: SnapshotSlot) -> Self {
        Self::Screen {
            state: None,
            slot,
            published: None,
            dirty: false,
        }
    }

    fn take(&mut self, env: &Envelope) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.accept(env),
            Self::Headless(out) => out.accept(env).map_err(|e| match e {
                SinkError::Io { source, .. } => source,
                SinkError::Encode { .. } => io::Error::other(e),
            }),
            Self::Screen {
                state,
                published,
                dirty,
                ..
            } => {
                *dirty = true;
                if let (None, Event::RunStarted(started)) = (&state, &env.event) {
                    *state = Some(Box::new(RunState::new(started)));
                }
                if let Some(state) = state {
                    follow(state, env);
                }
                if published.is_none_or(|at| at.elapsed() >= FRAME) {
                    self.publish();
                }
                Ok(())
            }
        }
    }

    /// Gives the screen what was read.
    fn publish(&mut self) {
        if let Self::Screen {
            state: Some(state),
            slot,
            published,
            dirty: dirty @ true,
        } = self
        {
            *dirty = false;
            slot.publish(Arc::new(state.snapshot()));
            *published = Some(Instant::now());
        }
    }

    /// Why nothing more comes, in the log of the last screen.
    fn tell(&mut self, last: Option<&Envelope>, text: String) {
        if let (Self::Screen { slot, .. }, Some(last)) = (&self, last) {
            slot.say(text.clone());
            let env = Envelope {
                seq: last.seq,
                at: last.at,
                from: None,
                event: Event::Notice {
                    level: Level::Warn,
                    text,
                },
            };
            // folding a notice writes nothing
            let _ = self.take(&env);
        }
    }
}

/// Reads a record to its end.
pub(super) struct Reader {
    run: PathBuf,
    tail: Tail,
    show: Show,
    last: Option<Envelope>,
}

impl Reader {
    /// Over the record in this folder.
    pub(super) fn new(run: &Path, tail: Tail, show: Show) -> Self {
        Self {
            run: run.to_owned(),
            tail,
            show,
            last: None,
        }
    }

    /// Starts the thread; how it ended goes to `done`.
    pub(super) fn start(mut self, done: oneshot::Sender<Result<(), CliError>>) -> io::Result<()> {
        let body = move || {
            let end = self.read();
            if let Err(e) = &end {
                self.show.tell(self.last.as_ref(), e.to_string());
            }
            self.show.publish();
            // nobody listens any more: the user has left
            let _ = done.send(end);
        };
        std::thread::Builder::new()
            .name("record".to_owned())
            .spawn(body)
            .map(drop)
    }

    /// Until the run is over, the record breaks, or nobody reads what we write.
    fn read(&mut self) -> Result<(), CliError> {
        loop {
            // asked first: what was written before it let go is then read
            let held = is_held(&self.run);
            let news = self.tail.poll()?;
            if news.is_empty() {
                if !held {
                    return Err(CliError::Unfinished {
                        path: self.tail.path().to_owned(),
                        line: self.tail.next_line(),
                    });
                }
                self.show.publish();
                std::thread::sleep(POLL);
            }
            for env in news {
                match self.show.take(&env) {
                    Ok(()) => {}
                    Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    Err(why) => {
                        return Err(CliError::System {
                            what: "write to standard output",
                            why,
                        });
                    }
                }
                let over = matches!(env.event, Event::RunFinished { .. });
                self.last = Some(env);
                if over {
                    return Ok(());
                }
            }
        }
    }
}
