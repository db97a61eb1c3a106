//! Where the events of a run come from: its control socket where that can be reached, its
//! record for what was before, and where it cannot.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cli::CliError;
use crate::model::{Envelope, Request};
use crate::record::{Tail, events_file, is_held};
use crate::run::snapshot::Freshness;
use crate::supervise::control::{AttachError, Hello, Link, RequestSender, ToViewer};
use crate::ui::{Reach, SnapshotSlot};

/// How often a record that does not grow is looked at.
pub(super) const POLL: Duration = Duration::from_millis(100);
/// Time between two attempts to attach to a supervisor.
const AGAIN: Duration = Duration::from_secs(1);
/// A recorder hands on what it has within a second: what is not in the record after this
/// time will not come.
const BEHIND: Duration = Duration::from_secs(5);
/// Events that are shown at once.
const AT_ONCE: usize = 256;
/// A reader that has been at the end is behind again with more than so many bytes unread: a
/// recorder that writes once a second writes less, a screen that was stopped leaves more.
const BACKLOG: u64 = 64 << 10;

const ATTACHING: Reach = Reach::Signals("its supervisor is not reached yet");

/// The way to the supervisor, for the thread that hears the keys.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Remote {
    way: Arc<Mutex<Way>>,
    slot: SnapshotSlot,
}

/// How requests reach the supervisor.
#[derive(Debug, Default)]
enum Way {
    /// Not at all, for now.
    #[default]
    None,
    Connected(RequestSender),
    /// Never again: the screen is left, and its reader must not attach once more.
    Left,
}

impl Remote {
    /// Not connected yet; the screen behind `slot` is told what can be reached.
    pub(in crate::cli) fn new(slot: SnapshotSlot) -> Self {
        slot.publish_reach(ATTACHING);
        Self {
            way: Arc::default(),
            slot,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_left(&self) -> bool {
        matches!(*self.lock(), Way::Left)
    }

    /// Takes the connection; `false`: no descriptor is free, or the screen is left.
    fn connect(&self, link: &Link) -> bool {
        let mut way = self.lock();
        if matches!(*way, Way::Left) {
            return false;
        }
        *way = link.sender().map_or(Way::None, Way::Connected);
        let connected = matches!(*way, Way::Connected(_));
        if connected {
            self.slot.publish_reach(Reach::All);
        }
        connected
    }

    fn disconnect(&self, why: &'static str) {
        let mut way = self.lock();
        if !matches!(*way, Way::Left) {
            *way = Way::None;
        }
        self.slot.publish_reach(Reach::Signals(why));
    }

    /// Sends a request; `false`: there is no connection.
    pub(in crate::cli) fn send(&self, request: Request) -> bool {
        match &mut *self.lock() {
            Way::Connected(sender) => sender.send(request).is_ok(),
            Way::None | Way::Left => false,
        }
    }

    /// Leaves the supervisor for good.
    pub(in crate::cli) fn close(&self) {
        if let Way::Connected(sender) = std::mem::replace(&mut *self.lock(), Way::Left) {
            sender.close();
        }
    }
}

/// What a look at the feed gives.
pub(super) enum News {
    /// Nothing for now.
    Nothing,
    Events(Vec<Envelope>),
    Message(ToViewer),
}

/// The events of one run, in order.
pub(super) struct Feed {
    /// Its folder; absent until its supervisor has made it.
    run: Option<PathBuf>,
    tail: Option<Tail>,
    link: Option<Link>,
    /// A message that came behind events.
    pending: Option<ToViewer>,
    /// First event that comes over the link.
    link_begins: u64,
    /// Number of the last event that was given.
    last: u64,
    /// Since when the record has ended before the link begins.
    behind: Option<Instant>,
    /// The present state of the run is not reached yet.
    catches_up: bool,
    tried: Option<Instant>,
    /// Absent: nobody presses keys, and the record is enough.
    remote: Option<Remote>,
}

impl Feed {
    /// From the record in this folder; with `remote` also over its control socket.
    pub(super) fn of_record(run: &Path, tail: Tail, remote: Option<Remote>) -> Self {
        Self {
            run: Some(run.to_owned()),
            tail: Some(tail),
            link: None,
            pending: None,
            link_begins: 0,
            last: 0,
            behind: None,
            catches_up: true,
            tried: None,
            remote,
        }
    }

    /// Over the socket to a supervisor that we have started.
    pub(super) fn of_own(link: Link, remote: Remote) -> Self {
        remote.connect(&link);
        Self {
            run: None,
            tail: None,
            link: Some(link),
            pending: None,
            link_begins: 0,
            last: 0,
            behind: None,
            catches_up: false,
            tried: None,
            remote: Some(remote),
        }
    }

    /// The folder, once it is known.
    pub(super) fn run(&self) -> Option<&Path> {
        self.run.as_deref()
    }

    /// The record with the line that comes next, where it was opened.
    pub(super) fn place(&self) -> Option<(PathBuf, u64)> {
        let tail = self.tail.as_ref()?;
        Some((tail.path().to_owned(), tail.next_line()))
    }

    /// Whether the supervisor lives, as far as can be told.
    pub(super) fn is_alive(&self) -> bool {
        self.link.is_some() || self.run.as_deref().is_some_and(is_held)
    }

    /// Whether messages can still come after the last event.
    pub(super) const fn is_linked(&self) -> bool {
        self.link.is_some()
    }

    /// How the events that were given so far stand to the run.
    pub(super) fn freshness(&self) -> Freshness {
        let Some(tail) = self.tail.as_ref().filter(|_| self.catches_up) else {
            return Freshness::Live;
        };
        let (read, length) = tail.extent();
        let percent = read.saturating_mul(100).checked_div(length).unwrap_or(0);
        Freshness::CatchingUp {
            percent: u8::try_from(percent).map_or(99, |p| p.min(99)),
        }
    }

    /// Waits for news, not longer than [`POLL`].
    pub(super) fn next(&mut self) -> Result<News, CliError> {
        self.attach();
        if self.link.is_some() && self.last + 1 >= self.link_begins {
            self.catches_up = false;
            return Ok(self.linked());
        }
        let events = self.recorded()?;
        if !events.is_empty() {
            self.behind = None;
            let extent = self.tail.as_ref().map(Tail::extent);
            self.catches_up |= extent.is_some_and(|(read, length)| length - read > BACKLOG);
            return Ok(News::Events(events));
        }
        // up to a second of events is with the recorder, and comes before those of the link
        self.catches_up &= self.link.is_some();
        if self.link.is_some() && self.behind.get_or_insert_with(Instant::now).elapsed() >= BEHIND {
            // they are lost: the disk is full, or the recorder had to drop them
            self.link_begins = 0;
        }
        std::thread::sleep(POLL);
        Ok(News::Nothing)
    }

    /// What the record has beyond the last event.
    fn recorded(&mut self) -> Result<Vec<Envelope>, CliError> {
        if let (None, Some(run)) = (&self.tail, &self.run) {
            self.tail = Some(Tail::open(&events_file(run))?);
        }
        let Some(tail) = &mut self.tail else {
            return Ok(Vec::new());
        };
        loop {
            let mut events = tail.poll()?;
            let any = !events.is_empty();
            events.retain(|env| env.seq > self.last);
            if let Some(env) = events.last() {
                self.last = env.seq;
            } else if any {
                // known already: the rest of them is passed over at once
                continue;
            }
            return Ok(events);
        }
    }

    fn linked(&mut self) -> News {
        if let Some(message) = self.pending.take() {
            return News::Message(message);
        }
        let mut events = Vec::new();
        let mut wait = POLL;
        while let Some(link) = &mut self.link {
            match link.next(wait) {
                Ok(Some(ToViewer::Event(env))) if env.seq > self.last => {
                    self.last = env.seq;
                    events.push(*env);
                }
                Ok(Some(ToViewer::Event(_))) => {}
                Ok(Some(message)) => {
                    if let ToViewer::Hello(hello) = &message {
                        self.greeted(hello);
                    }
                    if events.is_empty() {
                        return News::Message(message);
                    }
                    // the events before it come first
                    self.pending = Some(message);
                    break;
                }
                Ok(None) => break,
                Err(_) => self.unlink("its supervisor cannot be reached"),
            }
            wait = Duration::ZERO;
            if events.len() >= AT_ONCE {
                break;
            }
        }
        if events.is_empty() {
            News::Nothing
        } else {
            News::Events(events)
        }
    }

    fn greeted(&mut self, hello: &Hello) {
        self.run = Some(crate::model::os_text::to_os(&hello.folder).into());
        self.link_begins = hello.next;
    }

    fn unlink(&mut self, why: &'static str) {
        self.link = None;
        self.behind = None;
        if let Some(remote) = &self.remote {
            remote.disconnect(why);
        }
    }

    /// Attaches to the supervisor of a run that goes on, now and then.
    fn attach(&mut self) {
        let (Some(remote), Some(run), None) = (&self.remote, &self.run, &self.link) else {
            return;
        };
        let soon = self.tried.is_some_and(|at| at.elapsed() < AGAIN);
        if soon || remote.is_left() || !is_held(run) {
            return;
        }
        self.tried = Some(Instant::now());
        match Link::attach(run) {
            Ok((link, hello)) => {
                if remote.connect(&link) {
                    self.link = Some(link);
                    self.greeted(&hello);
                }
            }
            Err(why) => remote.disconnect(match why {
                AttachError::NoSocket(_) | AttachError::Silent(_) => {
                    "its supervisor cannot be reached"
                }
                AttachError::OtherUser => "the run of another user",
                AttachError::OtherVersion => "its supervisor is of another version",
            }),
        }
    }
}
