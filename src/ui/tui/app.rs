//! The screen of a run: its face on the stage.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::Rect;
use tokio::sync::mpsc::UnboundedSender;

use crate::model::{Command, Request, Seen};
use crate::profile::catalog::own_folder;
use crate::run::Snapshot;
use crate::ui::slot::SnapshotSlot;

use super::choices::Overlay;
use super::deliver::{self, Clipboard};
use super::keymap;
use super::keys::Key;
use super::log_text;
use super::stage::{self, After, End, Face, Question, TuiError, TuiHandle};
use super::state::{Effect, TOAST, UiState};
use super::theme::Theme;
use super::view::{self, ViewOptions};

/// How the screen is run.
#[derive(Debug, Clone)]
pub struct TuiOptions {
    /// Symbols and colours.
    pub theme: Theme,
    /// Leave when the run has ended, instead of showing the last words until `q` or
    /// Ctrl-C leaves them.
    pub leave_at_end: bool,
    /// The run belongs to another process: leaving the view asks nothing, and Ctrl-C
    /// leaves it as well.
    pub follows: bool,
    /// The process is not ours: leaving asks nothing and touches nothing, Ctrl-C leaves
    /// as well, and its end is asked about.
    pub watches: bool,
    /// How text is copied.
    pub clipboard: Clipboard,
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
    commands: UnboundedSender<Request>,
) -> Result<TuiHandle, TuiError> {
    let farewell = commands.clone();
    let mut state = UiState::new(options.follows);
    state.choices.watches = options.watches;
    state.profiles.folder = own_folder().map(|f| f.display().to_string().into());
    let app = App {
        state,
        options,
        snapshots,
        commands,
        snapshot: None,
        drawn: Seen::default(),
        to_copy: None,
        generation: 0,
        news_at: Instant::now(),
        toast_at: Instant::now(),
    };
    stage::show(app, move |end| {
        if end != End::InOrder {
            // A supervisor that no longer listens is gone itself.
            let _ = farewell.send(Request {
                command: Command::TerminalLost,
                seen: Seen::default(),
            });
        }
    })
}

struct App {
    options: TuiOptions,
    snapshots: SnapshotSlot,
    commands: UnboundedSender<Request>,
    state: UiState,
    snapshot: Option<Arc<Snapshot>>,
    /// What was drawn last: a key answers that, not what came since.
    drawn: Seen,
    /// Text that is to be copied.
    to_copy: Option<String>,
    generation: u64,
    /// When the last snapshot came.
    news_at: Instant,
    toast_at: Instant,
}

impl App {
    fn run_is_over(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|s| s.outcome.is_some())
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

    fn request(&self, command: Command) -> Request {
        Request {
            command,
            seen: self.drawn.clone(),
        }
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
}

impl Face for App {
    fn typing(&self) -> bool {
        self.state.choices.overlay.typing()
    }

    fn question(&self) -> Option<Question> {
        let c = &self.state.choices;
        c.overlay.asks().then_some((c.overlay as u8, c.picked))
    }

    fn press(&mut self, key: Key, area: Rect) -> After {
        self.toast_at = Instant::now();
        // the terminal may have become smaller since
        if self.state.refuse_unseen(area) {
            return After::Nothing;
        }
        let pane = view::pane(area, &self.state.choices);
        let effect = self.state.press(key, self.snapshot.as_deref(), pane);
        self.state.refuse_unseen(area);
        // before the run has begun nothing lies over the screen
        if self.snapshot.is_none() && self.state.choices.overlay != Overlay::None {
            self.state.open(Overlay::None);
            let waits = keymap::no_snapshot(&self.state.choices);
            self.state.toast = Some(if self.options.follows {
                format!("{waits}; q leaves")
            } else {
                format!("{waits}; Ctrl-C ends it")
            });
        }
        match effect {
            None => After::Nothing,
            Some(Effect::Send(command)) => match self.commands.send(self.request(command)) {
                Ok(()) => After::Nothing,
                // A supervisor that no longer listens is at its end.
                Err(_) => After::Leave(End::InOrder),
            },
            Some(Effect::Leave) if self.run_is_over() => After::Leave(End::InOrder),
            Some(Effect::Leave) => After::Leave(End::Left),
            Some(Effect::Redraw) => After::Redraw,
            Some(Effect::Copy(text)) => {
                self.to_copy = Some(text);
                After::Write
            }
            Some(Effect::Export(named)) => {
                self.export(named.as_deref());
                After::Nothing
            }
            Some(Effect::Suspend) => After::Suspend,
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
        let faded = self.state.toast.is_some() && self.toast_at.elapsed() > TOAST;
        if faded {
            self.state.toast = None;
        }
        let list = self.snapshots.profiles();
        let others = !Arc::ptr_eq(&list, &self.state.profiles.list);
        if others {
            self.state.profiles.list = list;
        }
        let reach = self.snapshots.reach();
        let reached = std::mem::replace(&mut self.state.choices.reach, reach) != reach;
        told | faded | others | reached | self.look_at_snapshot()
    }

    /// Copies text through the terminal, or says why not.
    fn write(&mut self, mut out: &mut dyn Write) -> io::Result<()> {
        let Some(text) = self.to_copy.take() else {
            return Ok(());
        };
        let record = self.snapshots.record();
        let clipboard = self.options.clipboard;
        let word = deliver::copy(
            clipboard,
            text,
            &mut out,
            record.as_deref(),
            &self.snapshots,
        )?;
        self.state.toast = word.or(self.state.toast.take());
        Ok(())
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let options = ViewOptions {
            theme: self.options.theme,
            choices: self.state.choices.clone(),
            toast: self.state.toast.clone(),
            record: (self.snapshots.record()).map(|p| p.display().to_string()),
            profiles: self.state.profiles.clone(),
            silent_for: self.news_at.elapsed(),
        };
        match &self.snapshot {
            Some(s) => {
                self.drawn = s.seen();
                view::draw(frame, s, &options);
            }
            None => view::draw_waiting(frame, &options),
        }
    }

    fn is_over(&self) -> bool {
        (self.options.leave_at_end || self.state.leaves_at_end) && self.run_is_over()
    }
}
