//! The face of the start screen.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::Rect;
use tokio::sync::mpsc::UnboundedSender;

use crate::ui::lobby::Lobby;
use crate::ui::slot::Slot;
use crate::ui::tui::keys::Key;
use crate::ui::tui::stage::{self, After, End, Face, Question, TuiError, TuiHandle};
use crate::ui::tui::state::TOAST;
use crate::ui::tui::theme::Theme;
use crate::ui::tui::view::{Kind, kind};

use super::choices::{List, Over};
use super::state::{Effect, State};
use super::view::{View, draw};

/// What the user wants; the screen is left when one is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// To leave; the terminal may be gone.
    Leave,
    /// To start a command.
    Start {
        /// What was typed.
        line: String,
        /// Id of the profile that was chosen.
        profile: Option<String>,
    },
    /// To see the run of this id.
    Follow {
        /// Which.
        run: String,
    },
    /// To look at a process.
    Look {
        /// Process id.
        pid: u32,
        /// When it began, see [`crate::model::FoundProcess::start`].
        start: u64,
    },
    /// To judge a process.
    Watch {
        /// Process id.
        pid: u32,
        /// When it began, see [`crate::model::FoundProcess::start`].
        start: u64,
    },
}

/// Judges a line with the profile that was chosen, before the screen is left for it;
/// an error in words is shown and the line kept.
pub type Check = fn(line: &str, profile: Option<&str>) -> Result<(), String>;

/// What the user has done to the start screen, kept while another screen is shown.
#[derive(Debug, Clone, Default)]
pub struct StartMemory(Arc<Mutex<State>>);

impl StartMemory {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command that was wished could not be started: the line is open again as it
    /// was typed, with why.
    pub fn refuse(&self, why: String) {
        self.state().refuse(why);
    }
}

/// How the start screen is run.
#[derive(Debug, Clone)]
pub struct StartOptions {
    /// Symbols and colours.
    pub theme: Theme,
    /// Whether a line can be started.
    pub check: Check,
    /// Where the user was before.
    pub memory: StartMemory,
}

/// Takes the terminal and shows the start screen on a thread of its own; exactly one
/// wish arrives at `wishes`, after which the screen leaves.
///
/// # Errors
///
/// [`TuiError`] if there is no terminal or it cannot be set up; it is then as it
/// was before.
pub fn spawn(
    options: StartOptions,
    lobby: Slot<Lobby>,
    wishes: UnboundedSender<Wish>,
) -> Result<TuiHandle, TuiError> {
    let farewell = wishes.clone();
    let start = Start {
        options,
        slot: lobby,
        generation: 0,
        lobby: Arc::default(),
        toast_at: Instant::now(),
        wishes,
    };
    stage::show(start, move |end| {
        if end != End::InOrder {
            // Nobody listens any more where the program is at its end.
            let _ = farewell.send(Wish::Leave);
        }
    })
}

struct Start {
    options: StartOptions,
    slot: Slot<Lobby>,
    generation: u64,
    lobby: Arc<Lobby>,
    toast_at: Instant,
    wishes: UnboundedSender<Wish>,
}

impl Start {
    fn wish(&self, wish: Wish) -> After {
        // Nobody listens any more where the program is at its end.
        let _ = self.wishes.send(wish);
        After::Leave(End::InOrder)
    }

    /// Leaves for the command that was typed, or says what is wrong with it.
    fn launch(&self) -> After {
        let mut state = self.options.memory.state();
        let line = state.choices.prompt.text();
        let profile = state.choices.profile.clone();
        if let Err(why) = (self.options.check)(&line, profile.as_deref()) {
            state.choices.prompt.error = Some(why);
            return After::Nothing;
        }
        state.choices.over = Over::Nothing;
        drop(state);
        self.wish(Wish::Start { line, profile })
    }
}

impl Face for Start {
    fn typing(&self) -> bool {
        self.options.memory.state().choices.over.typing()
    }

    fn question(&self) -> Option<Question> {
        let state = self.options.memory.state();
        let c = &state.choices;
        (c.over == Over::Unfit).then(|| (0, c.marked[List::Profiles as usize]))
    }

    fn press(&mut self, key: Key, area: Rect) -> After {
        let effect = {
            let mut state = self.options.memory.state();
            let effect = state.press(key, &self.lobby);
            // nothing is asked or typed that cannot be seen
            if kind(area) == Kind::Line {
                state.choices.over = Over::Nothing;
            }
            effect
        };
        self.toast_at = Instant::now();
        match effect {
            None => After::Nothing,
            Some(Effect::Leave) => self.wish(Wish::Leave),
            Some(Effect::Suspend) => After::Suspend,
            Some(Effect::Redraw) => After::Redraw,
            Some(Effect::Follow(run)) => self.wish(Wish::Follow { run }),
            Some(Effect::Look(pid, start)) => self.wish(Wish::Look { pid, start }),
            Some(Effect::Watch(pid, start)) => self.wish(Wish::Watch { pid, start }),
            Some(Effect::Launch) => self.launch(),
        }
    }

    fn look(&mut self) -> bool {
        let mut state = self.options.memory.state();
        let mut news = false;
        if let Some(word) = self.slot.take_word() {
            state.toast = Some(word);
            self.toast_at = Instant::now();
            news = true;
        }
        if state.toast.is_some() && self.toast_at.elapsed() > TOAST {
            state.toast = None;
            news = true;
        }
        if let Some((generation, lobby)) = self.slot.newer_than(self.generation) {
            let toast = state.toast.clone();
            state.news(&self.lobby, &lobby);
            if state.toast != toast {
                self.toast_at = Instant::now();
            }
            self.generation = generation;
            self.lobby = lobby;
            news = true;
        }
        news
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let state = self.options.memory.state();
        draw(
            frame,
            View {
                lobby: &self.lobby,
                choices: &state.choices,
                toast: state.toast.as_deref(),
                theme: self.options.theme,
            },
        );
    }
}
