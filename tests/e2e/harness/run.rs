//! One run of the real binary: start it, read its stream, signal it, see it end.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use framepack_tui::model::{Envelope, Event};
use rustix::process::Signal;

use super::card::Card;
use super::home::Home;
use super::leftovers::assert_none_left;
use super::story::{Story, digest};
use super::tools::{BINARY, kill, python, wait_until, workload};

/// An event and when its line was read.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    /// What the line said.
    pub(crate) envelope: Envelope,
    /// When we read it.
    pub(crate) at: SystemTime,
}

/// How to start a run; `run --headless` unless told otherwise.
pub(crate) struct Start<'a> {
    home: &'a Home,
    verb: &'static str,
    card: Option<&'a Card>,
    through: Vec<OsString>,
    options: Vec<OsString>,
    command: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

impl<'a> Start<'a> {
    /// In this home, without a card.
    pub(crate) fn new(home: &'a Home) -> Self {
        Self {
            home,
            verb: "run",
            card: None,
            through: Vec::new(),
            options: vec!["--headless".into()],
            command: Vec::new(),
            env: Vec::new(),
        }
    }

    /// A process that runs already is watched in the place of one that is started.
    pub(crate) fn watching(mut self, pid: u32) -> Self {
        self.verb = "watch";
        self.options
            .extend(["--pid".into(), pid.to_string().into()]);
        self
    }

    /// Our own worker is run: `decode` or `encode` with these words.
    pub(crate) fn engine<S: AsRef<std::ffi::OsStr>>(
        mut self,
        verb: &'static str,
        words: &[S],
    ) -> Self {
        self.verb = verb;
        let words = words.iter().map(|w| w.as_ref().to_owned());
        self.options.extend(words);
        self
    }

    /// With this card at `/sys`; the tiny workloads play programs that compute on it.
    pub(crate) fn card(mut self, card: &'a Card) -> Self {
        self.card = Some(card);
        self.env.push(("TINY_PLAYS".into(), "rocm".into()));
        self
    }

    /// Beginning of a command line that executes the rest: a shell that prepares something
    /// inside the card's tree.
    #[cfg(feature = "rocm-smi")]
    pub(crate) fn through(mut self, words: &[&str]) -> Self {
        self.through.extend(words.iter().map(OsString::from));
        self
    }

    /// Further options of `run`.
    pub(crate) fn options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(OsString::from));
        self
    }

    /// A variable that the user has exported.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<Path>) -> Self {
        self.env.push((name.into(), value.as_ref().into()));
        self
    }

    /// The run's clock goes this much faster than the machine's. Times of the stream are those of
    /// that clock, so what is asked of them stays the same.
    pub(crate) fn time_scale(mut self, factor: u32) -> Self {
        let factor = factor.to_string().into();
        self.env.push(("FPT_TIME_SCALE".into(), factor));
        self
    }

    /// The command to supervise, word by word.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(mut self, words: &[S]) -> Self {
        self.command
            .extend(words.iter().map(|w| w.as_ref().to_owned()));
        self
    }

    /// A tiny FramePack generation that writes into the home.
    pub(crate) fn framepack(self, args: &[&str]) -> Self {
        let out = self.home.out();
        self.command(&[python(), workload("tiny_framepack.py"), "--out".into(), out])
            .command(args)
    }

    /// A Python program given as text.
    pub(crate) fn python(self, program: &str) -> Self {
        self.command(&[python().as_os_str(), "-c".as_ref(), program.as_ref()])
    }

    /// Starts it.
    pub(crate) fn start(self) -> Running<'a> {
        let mut words = self.through.iter().cloned().chain([BINARY.into()]);
        let program = words.next().unwrap_or_else(|| BINARY.into());
        let mut command = match self.card {
            Some(card) => card.inside(&program),
            None => Command::new(&program),
        };
        command.args(words).arg(self.verb).args(&self.options);
        if !self.command.is_empty() {
            command.arg("--").args(&self.command);
        }
        command.current_dir(self.home.dir());
        self.home.dress(&mut command);
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Running::follow(self.home, command.spawn().unwrap())
    }
}

/// A run under way.
pub(crate) struct Running<'a> {
    home: &'a Home,
    child: Child,
    heard: Arc<Mutex<Vec<Heard>>>,
    stdout: Option<JoinHandle<Vec<String>>>,
    stderr: Option<JoinHandle<String>>,
}

impl<'a> Running<'a> {
    fn follow(home: &'a Home, mut child: Child) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let sink = Arc::clone(&heard);
        let stdout = std::thread::spawn(move || {
            let mut foreign = Vec::new();
            for line in lines.map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(envelope) => sink.lock().unwrap().push(Heard {
                        envelope,
                        at: SystemTime::now(),
                    }),
                    Err(e) => foreign.push(format!("{e}: {line}")),
                }
            }
            foreign
        });
        let mut errors = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            // What was read up to the error still counts.
            let _all = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            home,
            child,
            heard,
            stdout: Some(stdout),
            stderr: Some(stderr),
        }
    }

    /// Process of the program itself.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// What was heard up to now.
    pub(crate) fn events(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits for an event; fails when it does not come in time or the program ends first.
    pub(crate) fn wait_for(
        &mut self,
        what: &str,
        limit: Duration,
        is_it: impl Fn(&Event) -> bool,
    ) -> Heard {
        let mut found = None;
        let mut seen = 0;
        let mut ended = false;
        wait_until(limit, || {
            let was_over = self.child.try_wait().unwrap().is_some();
            let heard = self.heard.lock().unwrap();
            found = heard[seen..]
                .iter()
                .find(|h| is_it(&h.envelope.event))
                .cloned();
            seen = heard.len();
            // One more round after the end: the reader may lag behind.
            let done = found.is_some() || (ended && was_over);
            ended = was_over;
            done
        });
        found.unwrap_or_else(|| {
            panic!(
                "{what} did not come within {limit:?}{}",
                digest(&self.events())
            )
        })
    }

    /// Waits until the process of an attempt exists: (pid, pgid).
    pub(crate) fn spawned(&mut self, number: u32) -> (u32, u32) {
        let heard = self.wait_for(
            "spawned",
            Duration::from_mins(3),
            |e| matches!(e, Event::Spawned { attempt, .. } if *attempt == number),
        );
        match heard.envelope.event {
            Event::Spawned { pid, pgid, .. } => (pid, pgid),
            other => unreachable!("{other:?}"),
        }
    }

    /// Waits for a console line that contains `text`.
    pub(crate) fn wait_for_line(&mut self, text: &str, limit: Duration) -> Heard {
        self.wait_for(
            &format!("line `{text}`"),
            limit,
            |e| matches!(e, Event::Line(line) if line.text.contains(text)),
        )
    }

    /// Waits for the end, within `limit`, and checks what holds for every end: whole
    /// stream, no backtrace, nothing left behind.
    pub(crate) fn finish(mut self, limit: Duration) -> Finished {
        let ended = wait_until(limit, || self.child.try_wait().unwrap().is_some());
        assert!(
            ended,
            "still running after {limit:?}{}",
            digest(&self.events())
        );
        let status = self.child.wait().unwrap();
        assert_none_left(self.home);
        let foreign = self.stdout.take().unwrap().join().unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        for word in ["panicked at", "stack backtrace", "RUST_BACKTRACE"] {
            assert!(!stderr.contains(word), "a backtrace:\n{stderr}");
        }
        let finished = Finished {
            status,
            events: self.events(),
            foreign,
            stderr,
        };
        finished.check_stream();
        finished
    }

    /// Kills the program itself, as the kernel's OOM killer would, and waits for its end.
    pub(crate) fn murder(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Only fails when it has already ended.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A run that is over.
pub(crate) struct Finished {
    /// How the program ended.
    pub(crate) status: ExitStatus,
    /// Its stream.
    pub(crate) events: Vec<Heard>,
    /// Lines of standard output that are no events.
    pub(crate) foreign: Vec<String>,
    /// Its standard error.
    pub(crate) stderr: String,
}

impl Finished {
    /// Reads the stream from its beginning.
    pub(crate) fn story(&self) -> Story<'_> {
        Story::new(&self.events)
    }

    /// Checks the exit code, and that the stream says the same.
    pub(crate) fn assert_exit(&self, code: u8) {
        assert_eq!(
            self.status.code(),
            Some(code.into()),
            "exit {:?} instead of {code}; stderr:\n{}{}",
            self.status,
            self.stderr,
            digest(&self.events)
        );
        if let Some(Event::RunFinished { exit_code, .. }) = self.last() {
            assert_eq!(*exit_code, code, "the stream and the exit code disagree");
        }
    }

    /// Last event.
    pub(crate) fn last(&self) -> Option<&Event> {
        self.events.last().map(|h| &h.envelope.event)
    }

    /// Events that `pick` maps to something.
    pub(crate) fn all<T>(&self, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.events
            .iter()
            .filter_map(|h| pick(&h.envelope.event))
            .collect()
    }

    /// Summary of the stream, for messages.
    pub(crate) fn digest(&self) -> String {
        digest(&self.events)
    }

    fn check_stream(&self) {
        assert!(self.foreign.is_empty(), "no events: {:#?}", self.foreign);
        if self.events.is_empty() {
            return;
        }
        let first = &self.events[0].envelope.event;
        assert!(matches!(first, Event::RunStarted(_)), "first: {first:?}");
        let last = self.last();
        assert!(
            matches!(last, Some(Event::RunFinished { .. })),
            "last: {last:?}"
        );
        // ticks are in the record only, so numbers may be missing here, never repeat
        let disordered = self
            .events
            .windows(2)
            .find(|w| w[0].envelope.seq >= w[1].envelope.seq);
        assert!(disordered.is_none(), "out of order: {disordered:?}");
        let late = self
            .events
            .windows(2)
            .find(|w| w[0].envelope.at > w[1].envelope.at);
        assert!(late.is_none(), "time runs backwards: {late:?}");
    }
}
