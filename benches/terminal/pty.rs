//! A program in a terminal whose screen is read as it changes.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use vt100::Parser;

use crate::Outcome;
use crate::home::Home;

/// The screen and when it changed last.
struct State {
    parser: Parser,
    changed: Instant,
    bytes: u64,
    over: bool,
}

struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The terminal. Dropping it kills the program.
pub(crate) struct Pty {
    shared: Arc<Shared>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Closing it hangs up.
    _master: Box<dyn MasterPty + Send>,
    /// When the program was started.
    pub(crate) started: Instant,
}

impl Pty {
    /// Starts a program.
    pub(crate) fn open(home: &Home, (cols, rows): (u16, u16), words: &[OsString]) -> Outcome<Self> {
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size)?;
        let mut command = CommandBuilder::from_argv(words.to_vec());
        command.cwd(home.path("home"));
        command.env_clear();
        for (name, value) in home.environment() {
            command.env(name, value);
        }
        let mut output = pair.master.try_clone_reader()?;
        let keys = pair.master.take_writer()?;
        let started = Instant::now();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                parser: Parser::new(rows, cols, 0),
                changed: started,
                bytes: 0,
                over: false,
            }),
            news: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(n @ 1..) = output.read(&mut bytes) {
                let mut state = theirs.lock();
                state.changed = Instant::now();
                state.parser.process(&bytes[..n]);
                state.bytes += n as u64;
                drop(state);
                theirs.news.notify_all();
            }
            theirs.lock().over = true;
            theirs.news.notify_all();
        });
        let child = pair.slave.spawn_command(command)?;
        Ok(Self {
            shared,
            keys,
            child,
            _master: pair.master,
            started,
        })
    }

    /// Waits until the screen is as wanted; gives the time of the change that made it
    /// so. `None`: it did not within `limit`, or the program ended.
    pub(crate) fn wait_for(
        &self,
        limit: Duration,
        mut wanted: impl FnMut(&str) -> bool,
    ) -> Option<Instant> {
        let end = Instant::now() + limit;
        let mut state = self.shared.lock();
        loop {
            if wanted(&state.parser.screen().contents()) {
                return Some(state.changed);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || state.over {
                return None;
            }
            let wait = self.shared.news.wait_timeout(state, left);
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What the screen shows.
    pub(crate) fn text(&self) -> String {
        self.shared.lock().parser.screen().contents()
    }

    /// Bytes that the program has written.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.lock().bytes
    }

    /// Presses keys; gives the time.
    pub(crate) fn press(&mut self, keys: &str) -> Outcome<Instant> {
        let at = Instant::now();
        self.keys.write_all(keys.as_bytes())?;
        self.keys.flush()?;
        Ok(at)
    }

    /// Process of the program.
    pub(crate) fn pid(&self) -> Outcome<i32> {
        let pid = self
            .child
            .process_id()
            .ok_or("the program has no process")?;
        Ok(pid.try_into()?)
    }

    /// Waits for the program's own end.
    pub(crate) fn wait_for_end(&mut self, limit: Duration) -> Outcome<()> {
        let end = Instant::now() + limit;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > end {
                return Err(format!("it does not end:\n{}", self.text()).into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if let Some(pid) = self.pid().ok().and_then(Pid::from_raw) {
            // fails when it has ended, which is what is wanted
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
