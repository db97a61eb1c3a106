//! The terminal itself: raw mode, alternate screen, and giving it back whatever
//! happens. No mouse capture; bracketed paste, so that pasted text presses no keys.
//!
//! Two traps decide how this is written. ratatui asks the terminal for its cursor
//! when it resizes, and waits seconds for an answer that may not come, so its own
//! resizing is not used. A write to a terminal that is not read blocks, so every
//! write waits for room and can be called off.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::queue;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{tcgetpgrp, tcgetwinsize};

/// Whether the terminal is ours now. Cleared by whoever gives it back first: the
/// screen's thread, a panic, or the handle.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Longest wait for room when the terminal is given back.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What the input has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// Bytes of keys.
    Bytes(Vec<u8>),
    /// Nothing within the time.
    Quiet,
    /// The terminal is gone.
    Lost,
}

/// Where keys come from: standard input, or the controlling terminal when
/// standard input is something else. crossterm sets raw mode on the same one.
pub(super) struct Keys {
    tty: Option<File>,
}

impl Keys {
    /// Finds the source of keys; an error: there is none.
    pub(super) fn open() -> io::Result<Self> {
        let tty = if io::stdin().is_terminal() {
            None
        } else {
            Some(File::open("/dev/tty")?)
        };
        Ok(Self { tty })
    }

    fn with<T>(&self, f: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        match &self.tty {
            Some(tty) => f(tty.as_fd()),
            None => f(io::stdin().as_fd()),
        }
    }

    /// Waits for keys, at most `limit`, and reads what is there.
    pub(super) fn read(&self, limit: Duration) -> Input {
        let out = io::stdout();
        self.with(|keys| {
            let mut fds = [
                PollFd::from_borrowed_fd(keys, PollFlags::IN),
                PollFd::from_borrowed_fd(out.as_fd(), PollFlags::empty()),
            ];
            // An interrupted wait (a resize) is a quiet one.
            if poll_for(&mut fds, limit).unwrap_or(0) == 0 {
                return Input::Quiet;
            }
            let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            if fds.iter().any(|fd| fd.revents().intersects(gone)) {
                Input::Lost
            } else if fds[0].revents().contains(PollFlags::IN) {
                let mut bytes = vec![0; 256];
                match rustix::io::read(keys, &mut bytes) {
                    Ok(0) => Input::Lost,
                    Ok(n) => {
                        bytes.truncate(n);
                        Input::Bytes(bytes)
                    }
                    Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Input::Quiet,
                    Err(_) => Input::Lost,
                }
            } else {
                Input::Quiet
            }
        })
    }

    /// Whether our process group may use the terminal now. In the background
    /// (`bg`), touching it would stop us, and with us the watching.
    pub(super) fn foreground(&self) -> bool {
        // Without job control on this terminal there is no background.
        self.with(|keys| tcgetpgrp(keys).map_or(true, |group| group == getpgrp()))
    }
}

fn poll_for(fds: &mut [PollFd<'_>], limit: Duration) -> io::Result<usize> {
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    Ok(poll(fds, Some(&limit))?)
}

/// Writes to the terminal past the standard library's lock on it, so that a
/// blocked screen never holds up whoever wants to print.
pub(super) struct Screen {
    frame: Vec<u8>,
    /// Set by whoever wants the screen's thread to leave.
    stop: Arc<AtomicBool>,
    /// Nothing is written any more, and that is no error: ratatui shows the cursor
    /// when it is dropped, and complains on standard error when it cannot.
    mute: Arc<AtomicBool>,
}

/// Bytes a write: a pty that has room at all takes so many.
const CHUNK: usize = 512;

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        if self.mute.load(Ordering::SeqCst) {
            return Ok(());
        }
        let wanted = || TAKEN.load(Ordering::SeqCst) && !self.stop.load(Ordering::SeqCst);
        let written = write_while(&frame, wanted);
        self.mute.store(written.is_err(), Ordering::SeqCst);
        written
    }
}

/// Writes all of `bytes`, waiting for room as long as `wanted` says.
fn write_while(mut bytes: &[u8], mut wanted: impl FnMut() -> bool) -> io::Result<()> {
    let out = io::stdout();
    while !bytes.is_empty() {
        let mut fds = [PollFd::from_borrowed_fd(out.as_fd(), PollFlags::OUT)];
        let ready = match poll_for(&mut fds, Duration::from_millis(50)) {
            Ok(ready) => ready > 0,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => false,
            Err(e) => return Err(e),
        };
        if fds[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
        {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if !wanted() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !ready {
            continue;
        }
        match rustix::io::write(out.as_fd(), &bytes[..bytes.len().min(CHUNK)]) {
            Ok(n) => bytes = &bytes[n..],
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// The terminal in our hands; dropping gives it back.
pub(super) struct Taken {
    pub(super) terminal: Terminal<CrosstermBackend<Screen>>,
    stop: Arc<AtomicBool>,
    mute: Arc<AtomicBool>,
    size: Rect,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.mute.store(true, Ordering::SeqCst);
    }
}

impl Taken {
    /// Takes the terminal: raw mode, alternate screen, no cursor.
    pub(super) fn take(stop: &Arc<AtomicBool>) -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let size = size();
        let mute = Arc::new(AtomicBool::new(false));
        let taken = Self {
            terminal: fresh(size, stop, &mute)?,
            stop: Arc::clone(stop),
            mute,
            size,
        };
        let mut bytes = Vec::new();
        queue!(
            bytes,
            EnterAlternateScreen,
            EnableBracketedPaste,
            Hide,
            Clear(ClearType::All)
        )?;
        write_while(&bytes, || !stop.load(Ordering::SeqCst))?;
        Ok(taken)
    }

    /// Follows a change of size; `true` when there was one.
    pub(super) fn resize(&mut self) -> io::Result<bool> {
        let changed = size() != self.size;
        if changed {
            self.redraw()?;
        }
        Ok(changed)
    }

    /// Forgets what is on the screen, so that the next frame draws all of it.
    pub(super) fn redraw(&mut self) -> io::Result<()> {
        self.size = size();
        let before = std::mem::take(&mut self.mute);
        before.store(true, Ordering::SeqCst);
        self.terminal = fresh(self.size, &self.stop, &self.mute)?;
        let mut bytes = Vec::new();
        queue!(bytes, Hide, Clear(ClearType::All))?;
        write_while(&bytes, || !self.stop.load(Ordering::SeqCst))
    }

    /// Size of the screen.
    pub(super) const fn area(&self) -> Rect {
        self.size
    }

    /// Gives the terminal back, for a while or for good.
    pub(super) fn give_back() {
        restore();
    }

    /// Takes the terminal again after [`give_back`](Self::give_back), or when
    /// someone else may have changed its modes.
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        // crossterm takes raw mode for set when it was set before.
        disable_raw_mode()?;
        *self = Self::take(&Arc::clone(&self.stop))?;
        Ok(())
    }
}

fn fresh(
    size: Rect,
    stop: &Arc<AtomicBool>,
    mute: &Arc<AtomicBool>,
) -> io::Result<Terminal<CrosstermBackend<Screen>>> {
    let screen = Screen {
        frame: Vec::new(),
        stop: Arc::clone(stop),
        mute: Arc::clone(mute),
    };
    let options = TerminalOptions {
        viewport: Viewport::Fixed(size),
    };
    Terminal::with_options(CrosstermBackend::new(screen), options)
}

/// Size of the terminal; 80x24 where it does not say.
fn size() -> Rect {
    match tcgetwinsize(io::stdout().as_fd()) {
        Ok(s) if s.ws_col > 0 && s.ws_row > 0 => Rect::new(0, 0, s.ws_col, s.ws_row),
        _ => Rect::new(0, 0, 80, 24),
    }
}

/// Gives the terminal back if it is ours. Never blocks for long: what a stuck
/// terminal does not take is left out.
pub(super) fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Best effort on a terminal that may be gone; there is nobody to tell.
    let _ = disable_raw_mode();
    let mut bytes = Vec::new();
    if queue!(bytes, DisableBracketedPaste, Show, LeaveAlternateScreen).is_ok() {
        let begun = std::time::Instant::now();
        let _ = write_while(&bytes, || begun.elapsed() < LAST_WORDS);
    }
}

/// A panic anywhere gives the terminal back before its message is printed; the
/// hook that was there before runs after.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

/// Stops this process, and only this one, until it is continued: the workload has
/// a process group of its own and goes on.
pub(super) fn suspend() -> io::Result<()> {
    kill_process(getpid(), Signal::STOP)?;
    // Another thread may be the one that takes the signal: this one must not go on
    // before the stop has reached it.
    std::thread::sleep(Duration::from_millis(50));
    Ok(())
}
