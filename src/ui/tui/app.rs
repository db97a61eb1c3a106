//! The screen's thread: keys in, frames out.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use crate::model::Command;
use crate::profile::catalog::own_folder;
use crate::run::Snapshot;
use crate::ui::slot::SnapshotSlot;

use super::deliver::{self, Clipboard};
use super::keys::{Decoder, Key};
use super::log_text;
use super::state::{Effect, TOAST, UiState};
use super::terminal::{self, Input, Keys, Taken};
use super::theme::Theme;
use super::view::{self, ViewOptions};

/// Longest wait for a key before the slot is looked at again; also the shortest
/// time between two frames (20 a second) that show news.
const BEAT: Duration = Duration::from_millis(50);
/// Shortest time between two frames that answer keys: a key waits for no beat, and
/// one that is held down does not keep us drawing.
const ANSWER: Duration = Duration::from_millis(15);
/// So long after an escape nothing of a sequence comes any more: it was the key.
const ESCAPE: Duration = Duration::from_millis(25);
/// Longest time between two frames: clocks on the screen go on.
const IDLE_FRAME: Duration = Duration::from_secs(1);
/// How long [`TuiHandle::finish`] waits for the thread.
const FAREWELL: Duration = Duration::from_secs(1);

/// How the screen is run.
#[derive(Debug, Clone)]
pub struct TuiOptions {
    /// Symbols and colours.
    pub theme: Theme,
    /// Leave when the run has ended, instead of showing the last words until a
    /// key is pressed.
    pub leave_at_end: bool,
    /// The run belongs to another process: leaving the view asks nothing, and Ctrl-C
    /// leaves it as well.
    pub follows: bool,
    /// How text is copied.
    pub clipboard: Clipboard,
}

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

/// The running screen. Dropping it leaves the screen as [`finish`](Self::finish) does.
#[derive(Debug)]
pub struct TuiHandle {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Takes the terminal and starts the screen on a thread of its own. What the user
/// asks for arrives at `commands`; [`Command::TerminalLost`] does when the
/// terminal is gone or the user chose to leave the run headless.
///
/// # Errors
///
/// [`TuiError`] if there is no terminal or it cannot be set up; it is then as it
/// was before.
pub fn spawn(
    options: TuiOptions,
    snapshots: SnapshotSlot,
    commands: UnboundedSender<Command>,
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
    let mut state = UiState::new(options.follows);
    state.profiles.folder = own_folder().map(|f| f.display().to_string().into());
    let mut app = App {
        options,
        snapshots,
        commands,
        stop: Arc::clone(&stop),
        keys,
        decoder: Decoder::default(),
        taken,
        state,
        snapshot: None,
        generation: 0,
        news_at: Instant::now(),
        toast_at: Instant::now(),
        heard_at: Instant::now(),
    };
    let body = move || {
        let farewell = Farewell {
            commands: app.commands.clone(),
            in_order: false,
        };
        let end = app.run();
        farewell.end(&end);
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

/// Why the thread ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It was asked to, or the run is over.
    InOrder,
    /// The user wants the run to go on without a screen.
    Left,
    /// The terminal is gone.
    Lost,
}

/// Tells the supervisor that the screen is gone, also when its thread panics.
struct Farewell {
    commands: UnboundedSender<Command>,
    in_order: bool,
}

impl Farewell {
    fn end(mut self, end: &End) {
        self.in_order = *end == End::InOrder;
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        terminal::restore();
        if !self.in_order {
            // A supervisor that no longer listens is gone itself.
            let _ = self.commands.send(Command::TerminalLost);
        }
    }
}

struct App {
    options: TuiOptions,
    snapshots: SnapshotSlot,
    commands: UnboundedSender<Command>,
    stop: Arc<AtomicBool>,
    keys: Keys,
    decoder: Decoder,
    taken: Taken,
    state: UiState,
    snapshot: Option<Arc<Snapshot>>,
    generation: u64,
    /// When the last snapshot came.
    news_at: Instant,
    toast_at: Instant,
    /// When the last bytes of keys came.
    heard_at: Instant,
}

impl App {
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
            dirty |= self.look() | self.taken.resize()?;
            if self.state.toast.is_some() && self.toast_at.elapsed() > TOAST {
                self.state.toast = None;
                dirty = true;
            }
            let since = drawn.elapsed();
            let pause = if pressed { ANSWER } else { BEAT };
            if (dirty && since >= pause) || since >= IDLE_FRAME {
                self.draw()?;
                drawn = Instant::now();
                dirty = false;
                pressed = false;
            }
            let over = self.snapshot.as_ref().is_some_and(|s| s.outcome.is_some());
            if self.options.leave_at_end && over && !dirty {
                return Ok(End::InOrder);
            }
        }
    }

    /// Waits for keys, at most `wait`; `None`: the terminal is gone.
    fn hear(&mut self, wait: Duration) -> Option<Vec<Key>> {
        let wait = if self.decoder.waits() {
            wait.min(ESCAPE.saturating_sub(self.heard_at.elapsed()))
        } else {
            wait
        };
        match self.keys.read(wait) {
            Input::Lost => None,
            // the wait may have been cut short: by a frame that is due, by a resize
            Input::Quiet if self.heard_at.elapsed() < ESCAPE => Some(Vec::new()),
            Input::Quiet => Some(self.decoder.quiet().into_iter().collect()),
            Input::Bytes(bytes) => {
                self.heard_at = Instant::now();
                let typing = self.state.choices.overlay.typing();
                Some(self.decoder.feed(&bytes, typing))
            }
        }
    }

    /// Takes the latest snapshot and word, if they are news.
    fn look(&mut self) -> bool {
        let word = self.snapshots.take_word();
        let told = word.is_some();
        if told {
            self.state.toast = word;
            self.toast_at = Instant::now();
        }
        let list = self.snapshots.profiles();
        let others = !Arc::ptr_eq(&list, &self.state.profiles.list);
        if others {
            self.state.profiles.list = list;
        }
        told | others | self.look_at_snapshot()
    }

    fn look_at_snapshot(&mut self) -> bool {
        let Some((generation, snapshot)) = self.snapshots.newer_than(self.generation) else {
            return false;
        };
        self.generation = generation;
        self.state.news(&snapshot);
        self.snapshot = Some(snapshot);
        self.news_at = Instant::now();
        true
    }

    /// Does what a key asks for.
    fn press(&mut self, key: Key) -> io::Result<Option<End>> {
        let pane = view::pane(self.taken.area(), &self.state.choices);
        let effect = self.state.press(key, self.snapshot.as_deref(), pane);
        self.toast_at = Instant::now();
        match effect {
            None => {}
            Some(Effect::Send(command)) => {
                // A supervisor that no longer listens is at its end.
                let heard = self.commands.send(command).is_ok();
                return Ok((!heard).then_some(End::InOrder));
            }
            Some(Effect::Leave) => {
                let over = self.snapshot.as_ref().is_some_and(|s| s.outcome.is_some());
                return Ok(Some(if over { End::InOrder } else { End::Left }));
            }
            Some(Effect::Redraw) => self.taken.redraw()?,
            Some(Effect::Copy(text)) => {
                let terminal = self.taken.terminal.backend_mut();
                let record = self.snapshots.record();
                let clipboard = self.options.clipboard;
                let word = deliver::copy(
                    clipboard,
                    text,
                    terminal,
                    record.as_deref(),
                    &self.snapshots,
                )?;
                self.state.toast = word.or(self.state.toast.take());
            }
            Some(Effect::Export(named)) => self.export(named.as_deref()),
            Some(Effect::Suspend) => {
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

    fn export(&self, named: Option<&str>) {
        let Some(s) = self.snapshot.clone() else {
            return;
        };
        let clock = s.now.clock();
        let record = self.snapshots.record();
        deliver::export(
            move || log_text::whole(&s),
            named,
            &clock,
            record.as_deref(),
            &self.snapshots,
        );
    }

    fn draw(&mut self) -> io::Result<()> {
        let options = ViewOptions {
            theme: self.options.theme,
            choices: self.state.choices.clone(),
            toast: self.state.toast.clone(),
            profiles: self.state.profiles.clone(),
            record: (self.snapshots.record()).map(|p| p.display().to_string()),
            silent_for: self.news_at.elapsed(),
        };
        let snapshot = self.snapshot.clone();
        self.taken.terminal.draw(|frame| match &snapshot {
            Some(s) => view::draw(frame, s, &options),
            None => view::draw_waiting(frame, &options),
        })?;
        Ok(())
    }
}
