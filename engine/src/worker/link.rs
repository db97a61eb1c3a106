//! The socket to the supervisor: a bounded queue, drained by one thread (docs/agent.md).
//!
//! Whoever sends only appends, so a slow or dead reader never slows the work: what does not fit is
//! dropped, oldest first, and counted.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};

/// Messages that wait at most.
const QUEUE: usize = 2000;
/// Bytes that wait for a slow reader before messages are held back in the queue.
const PENDING: usize = 1 << 16;
/// A command longer than this is none.
const LONGEST_COMMAND: usize = 1 << 16;
/// A heartbeat this often.
const BEAT: Duration = Duration::from_secs(1);
/// New messages wait at most this long, which gathers them into few writes.
const TURN: Duration = Duration::from_millis(50);
/// A lost supervisor is looked for this often.
const RETRY: Duration = Duration::from_secs(2);
/// The end of the process waits so long for the reader.
const LAST: Duration = Duration::from_secs(2);
/// Where whoever started this process is gone too, a lost supervisor is given up after this time: two looks for it.
const ALONE: Duration = Duration::from_secs(5);
/// The chunk in work has this long from then on, the way to the next module this long after that.
const CHUNK: Duration = Duration::from_mins(1);
const MODULE: Duration = Duration::from_secs(20);

/// How an end is asked for that nobody else is left to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// After the chunk, which is kept.
    Chunk,
    /// At the next module.
    Module,
    /// Now, from this thread: the one that computes does not come back.
    Now,
}

/// What the link asks of the worker.
pub(super) trait Subject: Send + Sync {
    /// The fields of `hello`.
    fn hello(&self) -> Value;
    /// The fields of `beat`.
    fn beat(&self) -> Value;
    /// The answer to a command, or why there is none.
    fn obey(&self, command: &str) -> Result<Value, String>;
    /// Nobody is left: ends the work.
    fn alone(&self, how: Urgency);
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Map<String, Value>>,
    dropped: u64,
    over: bool,
}

/// The sending end; without a supervisor it does nothing.
pub(super) struct Link {
    queue: Arc<Mutex<Queue>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    /// Connects to the socket at `path`, if there is one. `parent`: the process that has started this one.
    pub(super) fn open(path: Option<PathBuf>, parent: u32, subject: Arc<dyn Subject>) -> Self {
        let queue = Arc::new(Mutex::new(Queue::default()));
        let mut line = path.map(|path| Line::new(path, parent, subject, Arc::clone(&queue)));
        if let Some(line) = &mut line {
            // a short job has ended before a busy machine lets another thread run
            line.connect();
        }
        let thread = line.and_then(|line| {
            let named = std::thread::Builder::new().name("fpt-link".to_owned());
            // without a thread there is no telemetry, and the work goes on
            named.spawn(move || line.run()).ok()
        });
        Self { queue, thread }
    }

    /// Queues one message; never waits.
    pub(super) fn send(&self, kind: &str, fields: Value) {
        if self.thread.is_some() {
            put(&mut lock(&self.queue), kind, fields);
        }
    }

    /// Sends what waits, for a while at most, and ends.
    pub(super) fn close(&self) {
        lock(&self.queue).over = true;
        let Some(thread) = &self.thread else {
            return;
        };
        let end = Instant::now() + LAST;
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn put(queue: &mut Queue, kind: &str, fields: Value) {
    if queue.messages.len() >= QUEUE {
        queue.messages.pop_front();
        queue.dropped += 1;
    }
    let mut message = match fields {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    message.insert("type".to_owned(), json!(kind));
    message.insert("t".to_owned(), json!(now()));
    queue.messages.push_back(message);
}

/// Seconds since the epoch.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// The thread's side.
struct Line {
    path: PathBuf,
    subject: Arc<dyn Subject>,
    queue: Arc<Mutex<Queue>>,
    parent: u32,
    /// Since when nobody is there, and how the end was asked for last.
    alone: Option<(Instant, Option<Urgency>)>,
    socket: Option<UnixStream>,
    seq: u64,
    pending: Vec<u8>,
    received: Vec<u8>,
}

impl Line {
    fn new(
        path: PathBuf,
        parent: u32,
        subject: Arc<dyn Subject>,
        queue: Arc<Mutex<Queue>>,
    ) -> Self {
        Self {
            path,
            subject,
            queue,
            parent,
            alone: None,
            socket: None,
            seq: 0,
            pending: Vec::new(),
            received: Vec::new(),
        }
    }

    fn run(mut self) {
        let (mut tried, mut beaten) = (Instant::now(), None::<Instant>);
        loop {
            let over = lock(&self.queue).over;
            if self.socket.is_none() {
                if over {
                    return;
                }
                if tried.elapsed() >= RETRY {
                    tried = Instant::now();
                    self.connect();
                }
            }
            self.end_alone();
            let due = beaten.is_none_or(|at| at.elapsed() >= BEAT);
            if due && !over && self.socket.is_some() {
                beaten = Some(Instant::now());
                let beat = self.subject.beat();
                put(&mut lock(&self.queue), "beat", beat);
            }
            self.write();
            if over && self.pending.is_empty() && lock(&self.queue).messages.is_empty() {
                return;
            }
            self.read();
        }
    }

    /// The guardian ends the work when the supervisor is killed. Where both were killed at once nobody does, and nobody
    /// sees what comes of it: then the work ends itself, so that it goes on from there when it is begun again.
    fn end_alone(&mut self) {
        if self.socket.is_some() || std::os::unix::process::parent_id() == self.parent {
            self.alone = None;
            return;
        }
        let (since, asked) = self.alone.get_or_insert((Instant::now(), None));
        let how = urgency(since.elapsed());
        if how > *asked {
            *asked = how;
            if let Some(how) = how {
                self.subject.alone(how);
            }
        }
    }

    fn connect(&mut self) {
        let Ok(socket) = UnixStream::connect(&self.path) else {
            return;
        };
        let waits = socket
            .set_read_timeout(Some(TURN))
            .and_then(|()| socket.set_write_timeout(Some(TURN)));
        if waits.is_err() {
            return;
        }
        self.received.clear();
        // a supervisor that was away must know whom it hears
        let mut hello = Queue::default();
        put(&mut hello, "hello", self.subject.hello());
        self.pending = hello
            .messages
            .pop_front()
            .map(|message| self.line(message))
            .unwrap_or_default();
        self.socket = Some(socket);
    }

    fn line(&mut self, mut message: Map<String, Value>) -> Vec<u8> {
        self.seq += 1;
        message.insert("seq".to_owned(), json!(self.seq));
        message.insert("pid".to_owned(), json!(std::process::id()));
        let mut line = Value::Object(message).to_string().into_bytes();
        line.push(b'\n');
        line
    }

    fn write(&mut self) {
        while self.socket.is_some() {
            while self.pending.len() < PENDING {
                let (message, dropped) = {
                    let mut queue = lock(&self.queue);
                    let Some(message) = queue.messages.pop_front() else {
                        break;
                    };
                    (message, std::mem::take(&mut queue.dropped))
                };
                if dropped > 0 {
                    let mut lost = Queue::default();
                    put(&mut lost, "dropped", json!({ "n": dropped }));
                    for message in lost.messages {
                        let line = self.line(message);
                        self.pending.extend(line);
                    }
                }
                let line = self.line(message);
                self.pending.extend(line);
            }
            if self.pending.is_empty() {
                return;
            }
            let Some(mut socket) = self.socket.as_ref() else {
                return;
            };
            match socket.write(&self.pending) {
                Ok(0) => return self.lose(),
                Ok(sent) => {
                    self.pending.drain(..sent);
                }
                Err(e) if waits(&e) => return,
                Err(_gone) => return self.lose(),
            }
        }
    }

    fn read(&mut self) {
        let Some(mut socket) = self.socket.as_ref() else {
            std::thread::sleep(TURN);
            return;
        };
        let mut bytes = [0; 4096];
        match socket.read(&mut bytes) {
            Ok(0) => return self.lose(),
            Ok(n) => self.received.extend_from_slice(&bytes[..n]),
            Err(e) if waits(&e) => return,
            Err(_gone) => return self.lose(),
        }
        while let Some(end) = self.received.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            self.obey(&line);
        }
        if self.received.len() > LONGEST_COMMAND {
            self.lose();
        }
    }

    fn obey(&mut self, line: &[u8]) {
        let command: Value = serde_json::from_slice(line).unwrap_or_default();
        let name = command["cmd"].as_str().unwrap_or_default();
        let mut reply = json!({ "id": command["id"], "cmd": name });
        match self.subject.obey(name) {
            Ok(value) => {
                reply["ok"] = json!(true);
                reply["value"] = value;
            }
            Err(why) => {
                reply["ok"] = json!(false);
                reply["error"] = json!(why);
            }
        }
        put(&mut lock(&self.queue), "reply", reply);
    }

    fn lose(&mut self) {
        self.socket = None;
        self.pending.clear();
    }
}

/// What is asked for by somebody who has been alone for so long.
fn urgency(alone: Duration) -> Option<Urgency> {
    if alone < ALONE {
        None
    } else if alone < ALONE + CHUNK {
        Some(Urgency::Chunk)
    } else if alone < ALONE + CHUNK + MODULE {
        Some(Urgency::Module)
    } else {
        Some(Urgency::Now)
    }
}

fn waits(e: &std::io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
