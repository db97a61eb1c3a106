//! The socket on which agents speak: many processes at once, each with a task of its own,
//! all into one bounded inbox.
//!
//! Only processes of our own user are heard. A process that floods is read on, so that it
//! never waits for us, and what is beyond its allowance is thrown away: the numbers of its
//! messages tell how much that was. The reader of the inbox never waits for anybody.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::profile::catalog::private_folder;

use super::protocol::{LONGEST_ANSWER, LONGEST_LINE, Message, Said, parse};

/// Messages that wait in the inbox at most.
const INBOX: usize = 1024;
/// Processes that are heard at once.
const MOST_PEERS: usize = 64;
/// Messages a second that one process may send, and how many it may have saved up: bars and heartbeats, and beside
/// them all else, so that a bar that floods costs no word of a phase, job or finding.
const A_SECOND: f64 = 200.0;
const SAVED_UP: f64 = 2000.0;
/// Commands that wait for one process.
const COMMANDS: usize = 16;
/// Bytes that wait for a process which does not read.
const UNSENT: usize = 16 << 10;
/// An answer that has not come after this time is not awaited any more.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest path of a socket: the kernel has 108 bytes with the NUL.
const LONGEST_PATH: usize = 107;

/// Why nobody can be heard.
#[derive(Debug, thiserror::Error)]
#[error("listen in {}: {source}", path.display())]
pub struct ChannelError {
    path: PathBuf,
    source: io::Error,
}

/// Why a command has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The process is not connected.
    #[error("the process is not connected")]
    Gone,
    /// Too many commands wait for it.
    #[error("the process does not take commands at present")]
    Busy,
    /// The time is up.
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// It says why it did not do it.
    #[error("{0}")]
    Refused(String),
}

/// Something came in.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A message.
    Said {
        /// Number of the connection.
        conn: u64,
        /// The process at its other end, as the kernel tells it.
        pid: u32,
        /// What it said.
        message: Message,
    },
    /// A connection is over.
    Closed {
        /// Number of the connection.
        conn: u64,
        /// The process that was at its other end.
        pid: u32,
    },
}

/// A process that is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Number of the connection.
    pub conn: u64,
    /// The process, as the kernel tells it.
    pub pid: u32,
}

struct Ask {
    command: Map<String, Value>,
    answer: std::sync::mpsc::SyncSender<Result<Value, AskError>>,
}

struct Line {
    peer: Peer,
    asks: mpsc::Sender<Ask>,
}

#[derive(Default)]
struct Shared {
    lines: Mutex<BTreeMap<u64, Line>>,
    next: AtomicU64,
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, BTreeMap<u64, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to the processes that are connected; may be used from any thread.
#[derive(Clone)]
pub struct Door(Arc<Shared>);

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Door").field(&self.peers()).finish()
    }
}

impl Door {
    /// Who is connected.
    pub fn peers(&self) -> Vec<Peer> {
        self.0.lines().values().map(|l| l.peer).collect()
    }

    /// Sends a command and waits for its answer: not for the thread of the runtime.
    ///
    /// # Errors
    /// When there is no answer in time, or it is a refusal.
    pub fn ask(&self, conn: u64, command: &str, limit: Duration) -> Result<Value, AskError> {
        let (answer, came) = std::sync::mpsc::sync_channel(1);
        let ask = Ask {
            command: [("cmd".to_owned(), Value::from(command))]
                .into_iter()
                .collect(),
            answer,
        };
        {
            let lines = self.0.lines();
            let line = lines.get(&conn).ok_or(AskError::Gone)?;
            line.asks.try_send(ask).map_err(|_full| AskError::Busy)?;
        }
        came.recv_timeout(limit)
            .unwrap_or(Err(AskError::Late(limit)))
    }
}

/// A socket on which nobody listens yet. Dropping it removes it.
#[derive(Debug)]
pub struct Bound {
    listener: StdListener,
    place: Place,
}

/// The files of a socket; removed when it is dropped.
#[derive(Debug)]
struct Place {
    folder: PathBuf,
    path: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        // what is gone already is as good
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The socket. Dropping it ends all connections and removes it.
#[derive(Debug)]
pub struct Channel {
    place: Place,
    door: Door,
    inbox: mpsc::Sender<Heard>,
    listening: JoinHandle<()>,
}

impl Bound {
    /// A socket in a private folder below `$XDG_RUNTIME_DIR`, or the temporary one.
    ///
    /// # Errors
    /// When no place for a socket can be found.
    pub fn new() -> Result<Self, ChannelError> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let places = [runtime, Some(std::env::temp_dir()), Some("/tmp".into())];
        let mut why = None;
        for place in places.into_iter().flatten().filter(|p| p.is_absolute()) {
            match Self::below(&place) {
                Ok(open) => return Ok(open),
                Err(e) => why = why.or(Some(e)),
            }
        }
        Err(why.unwrap_or_else(|| ChannelError {
            path: PathBuf::from("/tmp"),
            source: io::ErrorKind::NotFound.into(),
        }))
    }

    /// The same below this folder.
    ///
    /// # Errors
    /// When it cannot be written, or the path would be too long for a socket.
    pub fn below(place: &Path) -> Result<Self, ChannelError> {
        let failed = |source| ChannelError {
            path: place.to_owned(),
            source,
        };
        remove_dead(place);
        let folder = new_folder(place).map_err(failed)?;
        let path = folder.join("s");
        let place = Place { folder, path };
        let listener = bind(&place.path).map_err(failed)?;
        Ok(Self { listener, place })
    }

    /// Listens from now on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the runtime does not take the socket.
    pub fn listen(self) -> Result<(Channel, mpsc::Receiver<Heard>), ChannelError> {
        let Self { listener, place } = self;
        let listener = UnixListener::from_std(listener).map_err(|source| ChannelError {
            path: place.path.clone(),
            source,
        })?;
        let door = Door(Arc::default());
        let (inbox, heard) = mpsc::channel(INBOX);
        let listening = tokio::spawn(listen(listener, Arc::clone(&door.0), inbox.clone()));
        let channel = Channel {
            place,
            door,
            inbox,
            listening,
        };
        Ok((channel, heard))
    }
}

impl Channel {
    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// The way to those who are connected.
    pub fn door(&self) -> Door {
        self.door.clone()
    }

    /// Listens anew where the socket was removed, as cleaners of temporary folders do. Who
    /// is connected stays so.
    pub fn mend(&mut self) {
        let Place { folder, path } = &self.place;
        if path.symlink_metadata().is_ok() {
            return;
        }
        let made = match (folder.parent(), folder.file_name()) {
            (Some(place), Some(name)) => private_folder::make(place, Path::new(name)).map(drop),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let Ok(listener) = made.and_then(|()| UnixListener::from_std(bind(path)?)) else {
            return;
        };
        self.listening.abort();
        let shared = Arc::clone(&self.door.0);
        self.listening = tokio::spawn(listen(listener, shared, self.inbox.clone()));
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.listening.abort();
        self.door.0.lines().clear();
    }
}

fn bind(path: &Path) -> io::Result<StdListener> {
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(io::Error::other("the path is too long for a socket"));
    }
    let listener = StdListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

const PREFIX: &str = "fpt-";

/// A new folder that nobody else can look into, named after our process.
fn new_folder(place: &Path) -> io::Result<PathBuf> {
    let mut tries = 0_u32;
    loop {
        let name = format!("{PREFIX}{}-{tries}", std::process::id());
        let folder = place.join(&name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < 1000 => tries += 1,
            Err(e) => return Err(e),
            Ok(()) => {
                let checked = private_folder::check(place, Path::new(&name));
                if checked.is_err() {
                    let _ = fs::remove_dir(&folder);
                }
                return checked.map(|_there| folder);
            }
        }
    }
}

/// Removes sockets whose supervisor was killed.
fn remove_dead(place: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|n| n.strip_prefix(PREFIX)?.split_once('-'))
            .and_then(|(pid, _)| pid.parse::<u32>().ok());
        let Some(pid) = pid.filter(|p| !Path::new(&format!("/proc/{p}")).exists()) else {
            continue;
        };
        let ours = entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == own);
        if ours && pid != 0 {
            let _ = fs::remove_file(entry.path().join("s"));
            // only an empty one: nothing else of ours is in there
            let _ = fs::remove_dir(entry.path());
        }
    }
}

async fn listen(listener: UnixListener, shared: Arc<Shared>, inbox: mpsc::Sender<Heard>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(why) => {
                // out of descriptors: it may pass
                tracing::warn!(%why, "no agent can connect");
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
        };
        let own = rustix::process::geteuid().as_raw();
        let Ok(peer) = stream.peer_cred() else {
            continue;
        };
        if peer.uid() != own || shared.lines().len() >= MOST_PEERS {
            tracing::warn!(uid = peer.uid(), "an agent is refused");
            continue;
        }
        let pid = peer.pid().and_then(|p| u32::try_from(p).ok()).unwrap_or(0);
        let conn = shared.next.fetch_add(1, Ordering::Relaxed);
        let (asks, asked) = mpsc::channel(COMMANDS);
        let peer = Peer { conn, pid };
        tracing::debug!(conn, pid, "an agent connects");
        shared.lines().insert(conn, Line { peer, asks });
        let (shared, inbox) = (Arc::clone(&shared), inbox.clone());
        tokio::spawn(async move {
            Talk::new(stream, peer, inbox.clone()).run(asked).await;
            shared.lines().remove(&conn);
            tracing::debug!(conn, pid, "an agent leaves");
            // nobody hears it when the run is over
            let _ = inbox.send(Heard::Closed { conn, pid }).await;
        });
    }
}

/// One connection.
struct Talk {
    stream: UnixStream,
    peer: Peer,
    inbox: mpsc::Sender<Heard>,
    /// The beginning of a line.
    partial: Vec<u8>,
    /// The line at hand is too long and is thrown away.
    skipping: bool,
    unsent: Vec<u8>,
    waiting: BTreeMap<
        u64,
        (
            Instant,
            std::sync::mpsc::SyncSender<Result<Value, AskError>>,
        ),
    >,
    next: u64,
    frequent: Allowance,
    other: Allowance,
}

/// What a process may still send of one kind.
struct Allowance {
    left: f64,
    counted: Instant,
}

impl Allowance {
    fn new() -> Self {
        Self {
            left: SAVED_UP,
            counted: Instant::now(),
        }
    }

    /// Whether one more is allowed.
    fn any(&mut self) -> bool {
        let now = Instant::now();
        let saved = (now - self.counted).as_secs_f64() * A_SECOND;
        self.counted = now;
        self.left = (self.left + saved).min(SAVED_UP);
        self.left >= 1.0
    }

    /// Takes one, where it is allowed.
    fn take(&mut self) -> bool {
        let any = self.any();
        if any {
            self.left -= 1.0;
        }
        any
    }
}

impl Talk {
    fn new(stream: UnixStream, peer: Peer, inbox: mpsc::Sender<Heard>) -> Self {
        Self {
            stream,
            peer,
            inbox,
            partial: Vec::new(),
            skipping: false,
            unsent: Vec::new(),
            waiting: BTreeMap::new(),
            next: 1,
            frequent: Allowance::new(),
            other: Allowance::new(),
        }
    }

    async fn run(mut self, mut asked: mpsc::Receiver<Ask>) {
        let mut chunk = vec![0; 16 << 10];
        loop {
            tokio::select! {
                ready = self.stream.readable() => {
                    if ready.is_err() {
                        return;
                    }
                    match self.stream.try_read(&mut chunk) {
                        Ok(0) => return,
                        Ok(n) => if !self.read(&chunk[..n]).await { return },
                        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_gone) => return,
                    }
                    // a flood must leave the others their turn
                    tokio::task::yield_now().await;
                }
                ready = self.stream.writable(), if !self.unsent.is_empty() => {
                    if ready.is_err() || !self.write() {
                        return;
                    }
                }
                ask = asked.recv() => match ask {
                    Some(ask) => self.send(ask),
                    // the channel is closed
                    None => return,
                },
            }
        }
    }

    fn send(&mut self, mut ask: Ask) {
        let now = Instant::now();
        self.waiting.retain(|_, (since, _)| now - *since < PATIENCE);
        let id = self.next;
        self.next += 1;
        ask.command.insert("id".to_owned(), Value::from(id));
        let Ok(mut line) = serde_json::to_vec(&Value::Object(ask.command)) else {
            return;
        };
        line.push(b'\n');
        if self.unsent.len() + line.len() > UNSENT {
            // whoever waits is gone or reads the answer at once
            let _ = ask.answer.try_send(Err(AskError::Busy));
            return;
        }
        self.unsent.extend_from_slice(&line);
        self.waiting.insert(id, (now, ask.answer));
    }

    fn write(&mut self) -> bool {
        match self.stream.try_write(&self.unsent) {
            Ok(n) => {
                self.unsent.drain(..n);
                true
            }
            Err(e) => e.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Takes lines out of what came; `false`: nobody listens any more.
    async fn read(&mut self, mut bytes: &[u8]) -> bool {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            let (head, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            let skip = std::mem::take(&mut self.skipping);
            let mut line = std::mem::take(&mut self.partial);
            if skip || line.len() + head.len() > self.longest() {
                continue;
            }
            line.extend_from_slice(head);
            if !self.line(&line).await {
                return false;
            }
        }
        if self.skipping || self.partial.len() + bytes.len() > self.longest() {
            self.partial = Vec::new();
            self.skipping = true;
        } else {
            self.partial.extend_from_slice(bytes);
        }
        true
    }

    fn longest(&self) -> usize {
        if self.waiting.is_empty() {
            LONGEST_LINE
        } else {
            LONGEST_ANSWER
        }
    }

    async fn line(&mut self, line: &[u8]) -> bool {
        // a flood is not even looked into
        if !self.frequent.any() && !self.other.any() {
            return true;
        }
        // what is no message is nobody's
        let Ok(mut message) = parse(line) else {
            self.frequent.take();
            return true;
        };
        let frequent = matches!(
            message.said,
            Said::Beat { .. } | Said::Progress { .. } | Said::Unknown { .. }
        );
        let allowance = if frequent {
            &mut self.frequent
        } else {
            &mut self.other
        };
        if !allowance.take() {
            return true;
        }
        if let Said::Reply { id, result } = message.said {
            if let Some((_, answer)) = self.waiting.remove(&id) {
                // whoever asked may have stopped waiting
                let _ = answer.try_send(result.map_err(AskError::Refused));
            }
            // its number counts on: without it the next message would look like a loss
            message.said = Said::Unknown {
                kind: "reply".to_owned(),
            };
        }
        let heard = Heard::Said {
            conn: self.peer.conn,
            pid: self.peer.pid,
            message,
        };
        if !frequent {
            return self.inbox.send(heard).await.is_ok();
        }
        !matches!(
            self.inbox.try_send(heard),
            Err(mpsc::error::TrySendError::Closed(_))
        )
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
