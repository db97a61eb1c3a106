//! The thread that reads a run and shows it.

use std::io::{self, Stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::cli::CliError;
use crate::model::event::Level;
use crate::model::{Envelope, Event};
use crate::record::{EventSink, Headless, SinkError, Tail};
use crate::run::snapshot::Freshness;
use crate::run::{RunState, follow};
use crate::supervise::control::{Hello, Link, ToViewer};
use crate::ui::{PlainWriter, SnapshotSlot};

use super::feed::{Feed, News, Remote};

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
        /// How what was folded stands to the run.
        freshness: Freshness,
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
            freshness: Freshness::Live,
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

    /// Says how what is folded stands to the run.
    fn stand(&mut self, now: Freshness) {
        if let Self::Screen {
            dirty, freshness, ..
        } = self
        {
            *dirty |= std::mem::replace(freshness, now) != now;
        }
    }

    /// Nothing more comes: what is held back is written.
    fn finish(&mut self) {
        if let Self::Plain(out) = self {
            // nobody may read it any more
            let _ = out.finish();
        }
    }

    /// Gives the screen what was read.
    fn publish(&mut self) {
        if let Self::Screen {
            state: Some(state),
            slot,
            published,
            dirty: dirty @ true,
            freshness,
        } = self
        {
            *dirty = false;
            slot.publish(Arc::new(state.snapshot().seen_as(*freshness)));
            *published = Some(Instant::now());
        }
    }

    /// An answer of the supervisor, in the place of the footer.
    fn answer(&self, text: String) {
        if let Self::Screen { slot, .. } = self {
            slot.say(text);
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

/// What the thread tells whoever shows the run.
pub(in crate::cli) enum Told {
    /// The run is ready to begin; its folder is there.
    Begun {
        /// Id of the run.
        run: String,
        /// Its folder.
        folder: PathBuf,
    },
    /// Nothing was launched, or the record broke, or the run is over.
    Ended(Result<(), CliError>),
    /// The profiles on the disk were changed.
    ProfilesChanged,
    /// The supervisor has closed the connection after the end.
    Closed,
}

/// Reads a run to its end.
pub(in crate::cli) struct Reader {
    feed: Feed,
    show: Show,
    last: Option<Envelope>,
    told: mpsc::UnboundedSender<Told>,
}

impl Reader {
    /// Over the record in this folder; with `remote` also over its control socket.
    pub(super) fn new(
        run: &Path,
        tail: Tail,
        remote: Option<Remote>,
        show: Show,
        told: mpsc::UnboundedSender<Told>,
    ) -> Self {
        Self {
            feed: Feed::of_record(run, tail, remote),
            show,
            last: None,
            told,
        }
    }

    /// Over the socket to a supervisor that we have started, on the screen behind `slot`.
    pub(in crate::cli) fn of_own(
        link: Link,
        remote: Remote,
        slot: SnapshotSlot,
        told: mpsc::UnboundedSender<Told>,
    ) -> Self {
        Self {
            feed: Feed::of_own(link, remote),
            show: Show::screen(slot),
            last: None,
            told,
        }
    }

    /// Starts the thread.
    pub(in crate::cli) fn start(mut self) -> io::Result<()> {
        let body = move || {
            let end = self.read();
            if let Err(e) = &end {
                self.show.stand(Freshness::CutOff);
                self.show.tell(self.last.as_ref(), e.to_string());
            }
            self.show.publish();
            self.show.finish();
            self.tell(Told::Ended(end));
            self.linger();
            self.tell(Told::Closed);
        };
        std::thread::Builder::new()
            .name("record".to_owned())
            .spawn(body)
            .map(drop)
    }

    fn tell(&self, told: Told) {
        // nobody listens any more: the user has left
        let _ = self.told.send(told);
    }

    /// Until the run is over, the record breaks, or nobody reads what we write.
    fn read(&mut self) -> Result<(), CliError> {
        loop {
            // asked first: what was written before it let go is then read
            let alive = self.feed.is_alive();
            let before = self.feed.freshness();
            let news = self.feed.next()?;
            let after = self.feed.freshness();
            // the last of a backlog is the present state once it is folded, not before
            self.show.stand(match after {
                Freshness::Live => before,
                behind => behind,
            });
            match news {
                News::Nothing if alive => {
                    self.show.stand(after);
                    self.show.publish();
                }
                News::Nothing => return Err(self.unfinished()),
                News::Message(message) => self.message(message)?,
                News::Events(events) => {
                    for env in events {
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
    }

    /// After the end: what was chosen can be saved as long as the supervisor listens.
    fn linger(&mut self) {
        while self.feed.is_linked() {
            match self.feed.next() {
                Ok(News::Message(message)) => {
                    // nothing is refused after the end
                    let _ = self.message(message);
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn message(&self, message: ToViewer) -> Result<(), CliError> {
        match message {
            ToViewer::Hello(Hello { run, .. }) => {
                if let Some(folder) = self.feed.run() {
                    let folder = folder.to_owned();
                    self.tell(Told::Begun { run, folder });
                }
            }
            ToViewer::Refused {
                why,
                report,
                exit_code,
            } => {
                return Err(CliError::Refused {
                    why,
                    report,
                    exit_code,
                });
            }
            ToViewer::Answer { text } => self.show.answer(text),
            ToViewer::ProfilesChanged => self.tell(Told::ProfilesChanged),
            // the feed gives events as such
            ToViewer::Event(_) => {}
        }
        Ok(())
    }

    fn unfinished(&self) -> CliError {
        match self.feed.place() {
            Some((path, line)) => CliError::Unfinished { path, line },
            None => CliError::SupervisorDied {
                how: "before the run began".to_owned(),
            },
        }
    }
}
