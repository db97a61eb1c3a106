//! A screen on a thread of its own: keys in, frames out, whatever is shown.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::layout::Rect;

use super::keys::{Decoder, Key};
use super::terminal::{self, Input, Keys, Taken};

/// Longest wait for a key before news are looked for again; also the shortest
/// time between two frames (20 a second) that show news.
const BEAT: Duration = Duration::from_millis(50);
/// Shortest time between two frames that answer keys: a key waits for no beat, and
/// one that is held down does not keep us drawing.
const ANSWER: Duration = Duration::from_millis(15);
/// So long after an escape nothing of a sequence comes any more: it was the key.
const ESCAPE: Duration = Duration::from_millis(25);
/// So long after the last byte of a paste its end is lost.
const PASTE: Duration = Duration::from_secs(2);
/// Longest time between two frames: clocks on the screen go on.
const IDLE_FRAME: Duration = Duration::from_secs(1);
/// How long [`TuiHandle::finish`] waits for the thread.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why there is no screen.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// Standard output is no terminal.
    #[error("draw the screen: standard output is not a terminal; use --plain or --headless")]
    NoTerminal,
    /// The terminal could not be set up.
    #[error("take over the terminal: {0}")]
    Terminal(#[source] io::Error),
    /// No thread could be started for it.
    #[error("start the screen's thread: {0}")]
    Thread(#[source] io::Error),
}

/// What is shown, and what keys do to it.
pub(super) trait Face: Send + 'static {
    /// Whether characters are text now.
    fn typing(&self) -> bool;
    /// The question that is open, with what it is about; a key answers none that has not been
    /// on the screen for a frame.
    fn question(&self) -> Option<Question>;
    /// Takes a key; `area` is the screen.
    fn press(&mut self, key: Key, area: Rect) -> After;
    /// Takes what is new; `false`: nothing that is seen.
    fn look(&mut self) -> bool;
    /// Draws all of it.
    fn draw(&mut self, frame: &mut Frame<'_>);
    /// Writes what [`After::Write`] announced, past the screen.
    fn write(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
    /// Whether it is over by itself once it was drawn.
    fn is_over(&self) -> bool {
        false
    }
}

/// An open question, told from every other one.
pub(super) type Question = (u8, usize);

/// What the thread has to do after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    Redraw,
    Suspend,
    /// Let the face write to the terminal.
    Write,
    Leave(End),
}

/// Why the thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It was asked to, or the run is over.
    InOrder,
    /// The user wants the run to go on without a screen.
    Left,
    /// The terminal is gone, or the screen broke down.
    Lost,
}

/// Takes the terminal and shows a face on a thread of its own; `tell` hears how it
/// ended, also when it panics.
pub(super) fn show<F: Face>(
    face: F,
    tell: impl FnMut(End) + Send + 'static,
) -> Result<TuiHandle, TuiError> {
    if !io::stdout().is_terminal() {
        return Err(TuiError::NoTerminal);
    }
    let keys = Keys::open().map_err(|_no_tty| TuiError::NoTerminal)?;
    let stop = Arc::new(AtomicBool::new(false));
    let taken = Taken::take(&stop).map_err(|e| {
        terminal::restore();
        TuiError::Terminal(e)
    })?;
    let mut stage = Stage {
        face,
        stop: Arc::clone(&stop),
        keys,
        decoder: Decoder::default(),
        heard_at: Instant::now(),
        taken,
        asked: None,
        kept: Vec::new(),
    };
    let body = move || {
        let mut farewell = Farewell {
            tell,
            end: End::Lost,
        };
        farewell.end = stage.run();
    };
    let thread = std::thread::Builder::new()
        .name("screen".to_owned())
        .spawn(body)
        .map_err(|e| {
            terminal::restore();
            TuiError::Thread(e)
        })?;
    Ok(TuiHandle {
        stop,
        thread: Some(thread),
    })
}

/// The running screen. Dropping it leaves the screen as [`finish`](Self::finish) does.
#[derive(Debug)]
pub struct TuiHandle {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TuiHandle {
    /// Whether the screen is still shown.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Waits until the screen has ended by itself (the user left it, or the
    /// terminal is gone), at most `limit`. `true`: it has.
    pub fn wait(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        while self.is_alive() {
            if begun.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Asks the screen to leave and waits at most 1 s for it; afterwards the
    /// terminal is given back as far as it can be. A blocked terminal does not
    /// hold the caller.
    pub fn finish(mut self) {
        self.leave();
    }

    fn leave(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let ended = self.wait(FAREWELL);
        terminal::restore();
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            // It cannot have panicked without the hook having said so.
            let _ = thread.join();
        }
    }
}

impl Drop for TuiHandle {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.leave();
        }
    }
}

/// Gives the terminal back and tells that the screen is gone.
struct Farewell<T: FnMut(End)> {
    tell: T,
    end: End,
}

impl<T: FnMut(End)> Drop for Farewell<T> {
    fn drop(&mut self) {
        terminal::restore();
        (self.tell)(self.end);
    }
}

struct Stage<F> {
    face: F,
    stop: Arc<AtomicBool>,
    keys: Keys,
    decoder: Decoder,
    /// When the last bytes came.
    heard_at: Instant,
    taken: Taken,
    /// The question on the screen.
    asked: Option<Question>,
    /// Ctrl keys that came before a question was drawn.
    kept: Vec<Key>,
}

impl<F: Face> Stage<F> {
    fn run(&mut self) -> End {
        match self.watch() {
            Ok(end) => end,
            // Called off by the handle: not the terminal's fault.
            Err(_) if self.stop.load(Ordering::SeqCst) => End::InOrder,
            Err(_) => End::Lost,
        }
    }

    fn watch(&mut self) -> io::Result<End> {
        self.draw()?;
        let mut drawn = Instant::now();
        let mut turn = Instant::now();
        let mut dirty = false;
        let mut pressed = false;
        loop {
            if self.stop.load(Ordering::SeqCst) {
                return Ok(End::InOrder);
            }
            // After a stop from outside the shell has set its own modes.
            let mut away = turn.elapsed() > IDLE_FRAME;
            while !self.keys.foreground() {
                away = true;
                std::thread::sleep(BEAT * 4);
                if self.stop.load(Ordering::SeqCst) {
                    return Ok(End::InOrder);
                }
            }
            if away {
                self.taken.take_again()?;
                dirty = true;
            }
            turn = Instant::now();
            let pause = if pressed { ANSWER } else { BEAT };
            let wait = if dirty {
                pause.saturating_sub(drawn.elapsed())
            } else {
                BEAT
            };
            let Some(keys) = self.hear(wait) else {
                return Ok(End::Lost);
            };
            pressed |= !keys.is_empty();
            dirty |= pressed;
            for key in keys {
                if let Some(end) = self.press(key)? {
                    return Ok(end);
                }
            }
            dirty |= self.face.look() | self.taken.resize()?;
            let since = drawn.elapsed();
            let pause = if pressed { ANSWER } else { BEAT };
            if (dirty && since >= pause) || since >= IDLE_FRAME {
                self.draw()?;
                drawn = Instant::now();
                dirty = false;
                pressed = false;
            }
            if self.face.is_over() && !dirty {
                return Ok(End::InOrder);
            }
        }
    }

    /// Waits for keys, at most `wait`; `None`: the terminal is gone.
    fn hear(&mut self, wait: Duration) -> Option<Vec<Key>> {
        if !self.kept.is_empty() {
            return Some(std::mem::take(&mut self.kept));
        }
        let wait = if self.decoder.waits() {
            wait.min(ESCAPE.saturating_sub(self.heard_at.elapsed()))
        } else {
            wait
        };
        match self.keys.read(wait) {
            Input::Lost => None,
            Input::Quiet if self.decoder.pastes() => {
                if self.heard_at.elapsed() >= PASTE {
                    self.decoder.give_up_paste();
                }
                Some(Vec::new())
            }
            // the wait may have been cut short: by a frame that is due, by a resize
            Input::Quiet if self.heard_at.elapsed() < ESCAPE => Some(Vec::new()),
            Input::Quiet => Some(self.decoder.quiet().into_iter().collect()),
            Input::Bytes(bytes) => {
                self.heard_at = Instant::now();
                Some(self.decoder.feed(&bytes, self.face.typing()))
            }
        }
    }

    /// Whether a key may answer what is asked: it was pressed by somebody who could read it.
    /// Ctrl keys are no answers.
    fn may_answer(&self, key: Key) -> bool {
        let Some(question) = self.face.question() else {
            return true;
        };
        matches!(key, Key::Ctrl(_)) || self.asked == Some(question)
    }

    /// Before a question is drawn: what was pressed until now answers nothing.
    fn drop_keys(&mut self) {
        while let Input::Bytes(bytes) = self.keys.read(Duration::ZERO) {
            self.heard_at = Instant::now();
            let keys = self.decoder.feed(&bytes, false).into_iter();
            self.kept.extend(keys.filter(|k| matches!(k, Key::Ctrl(_))));
        }
    }

    /// Does what a key asks for.
    fn press(&mut self, key: Key) -> io::Result<Option<End>> {
        if !self.may_answer(key) {
            return Ok(None);
        }
        let after = self.face.press(key, self.taken.area());
        // asked again, it must be seen again
        let open = self.face.question();
        self.asked = self.asked.filter(|asked| Some(*asked) == open);
        match after {
            After::Nothing => {}
            After::Leave(end) => return Ok(Some(end)),
            After::Redraw => self.taken.redraw()?,
            After::Write => self.face.write(self.taken.terminal.backend_mut())?,
            After::Suspend => {
                Taken::give_back();
                terminal::suspend()?;
                // Continued, perhaps in the background: look before touching.
                while !self.keys.foreground() && !self.stop.load(Ordering::SeqCst) {
                    std::thread::sleep(BEAT * 4);
                }
                self.taken.take_again()?;
            }
        }
        Ok(None)
    }

    fn draw(&mut self) -> io::Result<()> {
        let open = self.face.question();
        if open.is_some() && open != self.asked {
            self.drop_keys();
        }
        let face = &mut self.face;
        self.taken.terminal.draw(|frame| face.draw(frame))?;
        self.asked = open;
        Ok(())
    }
}
