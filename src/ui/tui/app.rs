//! The screen of a run: its face on the stage.

use std::sync::Arc;
use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::Rect;
use tokio::sync::mpsc::UnboundedSender;

use crate::model::Command;
use crate::run::Snapshot;
use crate::ui::slot::SnapshotSlot;

use super::keys::Key;
use super::stage::{self, After, End, Face, TuiError, TuiHandle};
use super::state::{Effect, TOAST, UiState};
use super::theme::Theme;
use super::view::{self, ViewOptions};

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
    let farewell = commands.clone();
    let app = App {
        state: UiState::new(options.follows),
        options,
        snapshots,
        commands,
        snapshot: None,
        generation: 0,
        news_at: Instant::now(),
        toast_at: Instant::now(),
    };
    stage::show(app, move |end| {
        if end != End::InOrder {
            // A supervisor that no longer listens is gone itself.
            let _ = farewell.send(Command::TerminalLost);
        }
    })
}

struct App {
    options: TuiOptions,
    snapshots: SnapshotSlot,
    commands: UnboundedSender<Command>,
    state: UiState,
    snapshot: Option<Arc<Snapshot>>,
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
}

impl Face for App {
    fn typing(&self) -> bool {
        self.state.choices.overlay.typing()
    }

    fn press(&mut self, key: Key, area: Rect) -> After {
        let pane = view::log_pane(area, &self.state.choices);
        let effect = self.state.press(key, self.snapshot.as_deref(), pane);
        self.toast_at = Instant::now();
        match effect {
            None => After::Nothing,
            Some(Effect::Send(command)) => match self.commands.send(command) {
                Ok(()) => After::Nothing,
                // A supervisor that no longer listens is at its end.
                Err(_) => After::Leave(End::InOrder),
            },
            Some(Effect::Leave) if self.run_is_over() => After::Leave(End::InOrder),
            Some(Effect::Leave) => After::Leave(End::Left),
            Some(Effect::Redraw) => After::Redraw,
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
        told | faded | self.look_at_snapshot()
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let options = ViewOptions {
            theme: self.options.theme,
            choices: self.state.choices.clone(),
            toast: self.state.toast.clone(),
            silent_for: self.news_at.elapsed(),
        };
        match &self.snapshot {
            Some(s) => view::draw(frame, s, &options),
            None => view::draw_waiting(frame, &options),
        }
    }

    fn is_over(&self) -> bool {
        self.options.leave_at_end && self.run_is_over()
    }
}
