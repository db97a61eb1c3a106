//! The supervisor's side of the control socket, on a thread of its own: no screen, whatever
//! it sends or does not read, holds up the supervising loop.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};

use crate::model::event::SCHEMA;
use crate::model::{Envelope, Request, os_text};

use super::{
    Hello, LONGEST_REQUEST, Messages, PROTOCOL, SOCKET, ToSupervisor, ToViewer, address, encode,
};

/// Screens that are attached at once.
const MOST_VIEWERS: usize = 8;
/// Messages that wait for the thread.
const WAITING: usize = 65_536;
/// Messages and bytes that wait for one screen.
const UNREAD: usize = 8192;
const UNREAD_BYTES: usize = 16 << 20;
/// Requests that wait for the supervising loop.
const REQUESTS: usize = 64;
/// Shortest time between two requests of one screen: no person is faster.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(10);
/// At the end the screens have this long to take what waits for them.
const FAREWELL: Duration = Duration::from_secs(2);

/// A request of a screen.
#[derive(Debug)]
pub struct Heard {
    /// Number of the screen, for [`Server::answer`].
    pub viewer: u64,
    /// What it asks for.
    pub request: Request,
}

enum Word {
    Event(Arc<Envelope>),
    /// `None`: for all screens.
    Message(Option<u64>, ToViewer),
}

/// The socket with the screens that are attached. Dropping it cuts them off.
#[derive(Debug)]
pub struct Server {
    words: Option<mpsc::Sender<Word>>,
    /// A message for the screens was lost.
    lost: Arc<AtomicBool>,
    viewers: watch::Receiver<usize>,
    thread: Option<JoinHandle<()>>,
}

/// What comes in from the screens.
#[derive(Debug)]
pub struct Incoming {
    /// Their requests.
    pub requests: mpsc::Receiver<Heard>,
    /// How many are attached.
    pub viewers: watch::Receiver<usize>,
}

impl Server {
    /// Serves the run `run` in this folder. `first`: a screen that is connected already and
    /// is sent all events. The last value says why no other can attach, where none can.
    ///
    /// # Errors
    /// When there is no thread or runtime for it.
    pub fn start(
        run: &str,
        folder: &Path,
        first: Option<StdStream>,
    ) -> io::Result<(Self, Incoming, Option<io::Error>)> {
        let (socket, refused) = match Socket::bind(folder) {
            Ok(socket) => (Some(socket), None),
            Err(why) => (None, Some(why)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (to, words) = mpsc::channel(WAITING);
        let (requests_to, requests) = mpsc::channel(REQUESTS);
        let (count, viewers) = watch::channel(usize::from(first.is_some()));
        let lost = Arc::new(AtomicBool::new(false));
        let (gone_to, gone) = mpsc::channel(MOST_VIEWERS);
        let hub = Hub {
            hello: Hello {
                protocol: PROTOCOL,
                schema: SCHEMA.to_owned(),
                run: run.to_owned(),
                folder: os_text::from_os(folder.as_os_str()),
                next: 1,
            },
            viewers: BTreeMap::new(),
            number: 0,
            lost: Arc::clone(&lost),
            count,
            requests: requests_to,
            gone: gone_to,
        };
        let serve = move || {
            runtime.block_on(hub.serve(words, gone, socket, first));
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(serve)?;
        let server = Self {
            words: Some(to),
            lost,
            viewers: viewers.clone(),
            thread: Some(thread),
        };
        Ok((server, Incoming { requests, viewers }, refused))
    }

    /// Hands on an event; never waits.
    pub fn accept(&self, envelope: &Arc<Envelope>) {
        self.say(Word::Event(Arc::clone(envelope)));
    }

    /// Tells a screen what became of its request.
    pub fn answer(&self, viewer: u64, text: String) {
        self.say(Word::Message(Some(viewer), ToViewer::Answer { text }));
    }

    /// Tells every screen.
    pub fn tell_all(&self, message: ToViewer) {
        self.say(Word::Message(None, message));
    }

    fn say(&self, word: Word) {
        let full = self.words.as_ref().map(|words| words.try_send(word));
        if matches!(full, Some(Err(_))) {
            self.lost.store(true, Ordering::Release);
        }
    }

    /// Screens that are attached.
    pub fn viewers(&self) -> usize {
        *self.viewers.borrow()
    }

    /// Sends what waits, and cuts the screens off.
    pub fn finish(mut self) {
        self.words = None;
        if let Some(thread) = self.thread.take() {
            // the thread waits for nobody longer than its own limit, and the words of its panic
            // went to standard error
            let _ = thread.join();
        }
    }
}

/// The listening socket; removed when it is dropped.
struct Socket {
    listener: StdListener,
    path: PathBuf,
}

impl Socket {
    fn bind(folder: &Path) -> io::Result<Self> {
        let (_open, path) = address(folder)?;
        let listener = StdListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: folder.join(SOCKET),
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // without a listener it lets nobody in
        let _ = std::fs::remove_file(&self.path);
    }
}

struct Viewer {
    outbox: mpsc::Sender<Arc<[u8]>>,
    unread: Arc<AtomicUsize>,
    writer: tokio::task::JoinHandle<()>,
    reader: tokio::task::JoinHandle<()>,
}

impl Viewer {
    /// `false`: it does not read.
    fn send(&self, line: &Arc<[u8]>) -> bool {
        let unread = self.unread.fetch_add(line.len(), Ordering::AcqRel);
        unread < UNREAD_BYTES && self.outbox.try_send(Arc::clone(line)).is_ok()
    }

    fn cut(&self) {
        self.writer.abort();
        self.reader.abort();
    }
}

struct Hub {
    hello: Hello,
    viewers: BTreeMap<u64, Viewer>,
    number: u64,
    lost: Arc<AtomicBool>,
    count: watch::Sender<usize>,
    requests: mpsc::Sender<Heard>,
    gone: mpsc::Sender<u64>,
}

impl Hub {
    async fn serve(
        mut self,
        mut words: mpsc::Receiver<Word>,
        mut gone: mpsc::Receiver<u64>,
        socket: Option<Socket>,
        first: Option<StdStream>,
    ) {
        let first = first.and_then(|stream| {
            stream.set_nonblocking(true).ok()?;
            UnixStream::from_std(stream).ok()
        });
        if let Some(stream) = first {
            self.admit(stream);
        }
        self.counted();
        let listener = socket
            .as_ref()
            .and_then(|s| UnixListener::from_std(s.listener.try_clone().ok()?).ok());
        loop {
            tokio::select! {
                word = words.recv() => match word {
                    Some(word) => self.pass_on(word),
                    None => break,
                },
                Some(viewer) = gone.recv() => self.leave(viewer),
                stream = accept(listener.as_ref()) => {
                    if of_our_user(&stream) && self.viewers.len() < MOST_VIEWERS {
                        self.admit(stream);
                        self.counted();
                    }
                }
            }
        }
        drop(socket);
        self.finish().await;
    }

    fn counted(&self) {
        // without a supervising loop nobody counts
        let _ = self.count.send(self.viewers.len());
    }

    fn admit(&mut self, stream: UnixStream) {
        let (from, to) = stream.into_split();
        let (outbox, lines) = mpsc::channel(UNREAD);
        let unread = Arc::new(AtomicUsize::new(0));
        self.number += 1;
        let number = self.number;
        let writer = tokio::spawn(write(to, lines, Arc::clone(&unread)));
        let (requests, gone) = (self.requests.clone(), self.gone.clone());
        let reader = tokio::spawn(async move {
            read(from, number, requests).await;
            // the hub has ended
            let _ = gone.send(number).await;
        });
        let viewer = Viewer {
            outbox,
            unread,
            writer,
            reader,
        };
        self.viewers.insert(number, viewer);
        self.send(Some(number), &ToViewer::Hello(self.hello.clone()));
    }

    fn leave(&mut self, number: u64) {
        if let Some(viewer) = self.viewers.remove(&number) {
            viewer.cut();
            self.counted();
        }
    }

    fn pass_on(&mut self, word: Word) {
        if self.lost.swap(false, Ordering::AcqRel) {
            // what is missing is in the record
            let all: Vec<u64> = self.viewers.keys().copied().collect();
            for number in all {
                self.leave(number);
            }
        }
        match word {
            Word::Event(envelope) => {
                self.hello.next = envelope.seq + 1;
                if !self.viewers.is_empty() {
                    self.send(None, &ToViewer::Event(Box::new((*envelope).clone())));
                }
            }
            Word::Message(to, message) => self.send(to, &message),
        }
    }

    /// Sends a message to a screen, or to all; those that do not read are cut off.
    fn send(&mut self, to: Option<u64>, message: &ToViewer) {
        let Ok(line) = encode(message) else {
            // the recorder tells of an event without a JSON form
            return;
        };
        let line: Arc<[u8]> = line.into();
        let meant = self
            .viewers
            .iter()
            .filter(|(n, _)| to.is_none_or(|t| t == **n));
        let deaf: Vec<u64> = meant
            .filter(|(_, v)| !v.send(&line))
            .map(|(n, _)| *n)
            .collect();
        for number in deaf {
            self.leave(number);
        }
    }

    async fn finish(self) {
        let until = Instant::now() + FAREWELL;
        for viewer in self.viewers.into_values() {
            let Viewer {
                outbox,
                mut writer,
                reader,
                ..
            } = viewer;
            drop(outbox);
            reader.abort();
            let left = until.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, &mut writer).await.is_err() {
                writer.abort();
            }
        }
    }
}

/// The next connection; never, where nobody can connect.
async fn accept(listener: Option<&UnixListener>) -> UnixStream {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // no descriptor is free: that may pass
            Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}

fn of_our_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

async fn write(
    mut to: OwnedWriteHalf,
    mut lines: mpsc::Receiver<Arc<[u8]>>,
    unread: Arc<AtomicUsize>,
) {
    while let Some(line) = lines.recv().await {
        if to.write_all(&line).await.is_err() {
            return;
        }
        unread.fetch_sub(line.len(), Ordering::AcqRel);
    }
}

/// Hands on requests until the screen leaves, or sends anything else.
async fn read(mut from: OwnedReadHalf, viewer: u64, requests: mpsc::Sender<Heard>) {
    let mut messages = Messages::new(LONGEST_REQUEST);
    let mut chunk = vec![0; 4096];
    loop {
        match from.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(n) => messages.push(&chunk[..n]),
        }
        loop {
            match messages.take() {
                Ok(None) => break,
                Ok(Some(ToSupervisor::Request(request))) => {
                    if requests.send(Heard { viewer, request }).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(BETWEEN_REQUESTS).await;
                }
                Err(_foreign) => return,
            }
        }
    }
}
