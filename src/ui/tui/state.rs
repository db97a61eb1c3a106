//! What the user has done to the view, and what a key makes of it. Pure.

use std::time::Duration;

use crate::model::Command;
use crate::run::Snapshot;
use crate::run::snapshot::{LogKind, Stage};

use super::choices::{Choices, Overlay, Screen};
use super::keymap::{self, Action, Binding};
use super::keys::Key;
use super::log_choices::{LogView, Move, Pane, Search};

/// What the user has done to the view.
#[derive(Debug, Clone, Default)]
pub(super) struct UiState {
    pub(super) choices: Choices,
    /// A word in the place of the footer.
    pub(super) toast: Option<String>,
    /// The run belongs to another process, see `TuiOptions::follows`.
    pub(super) follows: bool,
    /// Times that Ctrl-C was pressed.
    interrupts: u8,
    /// The place in the log when the search began.
    before_search: LogView,
}

/// What the screen's thread has to do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Send(Command),
    /// Give the terminal back; the run goes on.
    Leave,
    Suspend,
    Redraw,
}

impl UiState {
    /// Nothing done yet; `follows`: the run belongs to another process.
    pub(super) fn new(follows: bool) -> Self {
        Self {
            follows,
            ..Self::default()
        }
    }

    /// Takes a key; `pane` is where the log is shown.
    pub(super) fn press(
        &mut self,
        key: Key,
        snapshot: Option<&Snapshot>,
        pane: Pane,
    ) -> Option<Effect> {
        self.toast = None;
        let Choices {
            screen, overlay, ..
        } = self.choices;
        let Some(binding) = keymap::find(screen, overlay, key) else {
            if let (true, Key::Char(c)) = (overlay.typing(), key) {
                self.edit(snapshot, pane, |text| text.push(c));
            }
            return None;
        };
        self.run(binding, &key.name(), snapshot, pane)
    }

    /// Runs a command, or says why not; `called` is what the user pressed or chose.
    fn run(
        &mut self,
        binding: &Binding,
        called: &str,
        snapshot: Option<&Snapshot>,
        pane: Pane,
    ) -> Option<Effect> {
        if let Err(why) = keymap::enabled(binding.action, snapshot, &self.choices) {
            self.toast = Some(format!("{called}: {why}"));
            return None;
        }
        let looked_at = snapshot.is_some_and(Snapshot::is_foreign);
        match binding.action {
            // behind a process that is looked at lies the start screen
            Action::Back if looked_at && self.choices.charts.is_plain() => Some(Effect::Leave),
            Action::Run => self.run_picked(snapshot, pane),
            action => {
                if self.look(action, snapshot, pane) {
                    None
                } else {
                    self.act(action, snapshot)
                }
            }
        }
    }

    /// Runs the marked command of the palette; one that cannot be run leaves it open.
    fn run_picked(&mut self, snapshot: Option<&Snapshot>, pane: Pane) -> Option<Effect> {
        let list = keymap::commands(self.choices.screen, &self.choices.typed);
        let Some(binding) = list.get(self.choices.picked.min(list.len().saturating_sub(1))) else {
            self.toast = Some("no command has these letters".to_owned());
            return None;
        };
        if let Err(why) = keymap::enabled(binding.action, snapshot, &self.choices) {
            self.toast = Some(format!("{}: {why}", binding.name));
            return None;
        }
        self.open(Overlay::None);
        if let Some(screen) = keymap::home(binding) {
            self.choices.screen = screen;
        }
        let pane = Pane {
            full: self.choices.screen == Screen::Log,
            ..pane
        };
        self.run(binding, binding.name, snapshot, pane)
    }

    /// What only changes what is seen. `false`: the action is none of these.
    fn look(&mut self, action: Action, snapshot: Option<&Snapshot>, pane: Pane) -> bool {
        match action {
            Action::Help => self.open(Overlay::Help),
            Action::Palette => self.open(Overlay::Palette),
            Action::Close => {
                if self
                    .choices
                    .log
                    .search
                    .as_ref()
                    .is_some_and(|s| s.text.is_empty())
                {
                    self.choices.log.search = None;
                }
                self.open(Overlay::None);
            }
            Action::Kill => self.open(Overlay::Kill),
            Action::PickUp => self.choices.picked = self.choices.picked.saturating_sub(1),
            Action::PickDown => self.pick_down(),
            Action::Erase => self.edit(snapshot, pane, |text| {
                text.pop();
            }),
            Action::ShowDashboard => self.choices.screen = Screen::Dashboard,
            Action::ShowLog => self.choices.screen = Screen::Log,
            Action::NextScreen => self.choices.screen = self.choices.screen.step(1),
            Action::PreviousScreen => {
                self.choices.screen = self.choices.screen.step(Screen::ALL.len() - 1);
            }
            _ => {
                return self.look_at_charts(action, snapshot)
                    || self.look_at_log(action, snapshot, pane);
            }
        }
        true
    }

    /// What changes the charts that are seen.
    fn look_at_charts(&mut self, action: Action, snapshot: Option<&Snapshot>) -> bool {
        let charts = &mut self.choices.charts;
        match (action, snapshot) {
            (Action::Zoom, _) => charts.zoom = !charts.zoom,
            (Action::AutoRange, _) => charts.range = None,
            (Action::Back, _) => charts.back(),
            (Action::PauseCharts, Some(s)) => charts.pause(s),
            (Action::Shorter | Action::Longer, Some(s)) => {
                charts.stretch(s, action == Action::Longer);
            }
            (Action::Earlier | Action::Later, Some(s)) => {
                charts.move_cursor(s, action == Action::Later);
            }
            _ => return false,
        }
        true
    }

    /// What changes the log that is seen.
    fn look_at_log(&mut self, action: Action, snapshot: Option<&Snapshot>, pane: Pane) -> bool {
        let log = &mut self.choices.log;
        let to = match action {
            Action::LogUp => Move::PageUp,
            Action::LogDown => Move::PageDown,
            Action::LineUp => Move::LineUp,
            Action::LineDown => Move::LineDown,
            Action::LogTop => Move::Top,
            Action::LogEnd => {
                log.follow();
                return true;
            }
            Action::Freeze => {
                if let Some(s) = snapshot {
                    log.freeze(&s.log);
                }
                return true;
            }
            Action::ShowStdout => return self.toggle(LogKind::Stdout, "standard output"),
            Action::ShowStderr => return self.toggle(LogKind::Stderr, "standard error"),
            Action::ShowOwn => return self.toggle(LogKind::Own, "the words of this program"),
            Action::Wrap => {
                log.wrap = !log.wrap;
                return true;
            }
            Action::Search => {
                self.before_search = log.view.clone();
                log.hit = None;
                log.search = Some(Search::new(String::new()));
                self.open(Overlay::Search);
                return true;
            }
            Action::DropSearch => {
                log.search = None;
                log.hit = None;
                log.view = std::mem::take(&mut self.before_search);
                self.open(Overlay::None);
                return true;
            }
            Action::NextHit | Action::PreviousHit => {
                let newer = action == Action::NextHit;
                if !snapshot.is_some_and(|s| log.find(&s.log, pane, newer)) {
                    self.toast = Some("nothing in the log matches".to_owned());
                }
                return true;
            }
            _ => return false,
        };
        if let Some(s) = snapshot {
            log.go(&s.log, pane, to);
        }
        true
    }

    fn toggle(&mut self, kind: LogKind, name: &str) -> bool {
        let hidden = self.choices.log.toggle(kind);
        let what = if hidden { "hidden" } else { "shown" };
        self.toast = Some(format!("{name}: {what}"));
        true
    }

    fn open(&mut self, overlay: Overlay) {
        self.choices.overlay = overlay;
        self.choices.typed.clear();
        self.choices.picked = 0;
    }

    /// One line on, in a list that may be shorter than it was.
    fn pick_down(&mut self) {
        let c = &mut self.choices;
        let length = match c.overlay {
            Overlay::Palette => keymap::commands(c.screen, &c.typed).len(),
            _ => keymap::help(c.screen).len(),
        };
        c.picked = (c.picked + 1).min(length.saturating_sub(1));
    }

    /// Changes the text that is being typed, and what follows from it.
    fn edit(&mut self, snapshot: Option<&Snapshot>, pane: Pane, change: impl Fn(&mut String)) {
        const LONGEST: usize = 200;
        if self.choices.overlay == Overlay::Palette {
            change(&mut self.choices.typed);
            self.choices.picked = 0;
            return;
        }
        let log = &mut self.choices.log;
        let mut text = log.search.take().map_or_else(String::new, |s| s.text);
        change(&mut text);
        if text.chars().count() > LONGEST {
            text.pop();
        }
        log.search = Some(Search::new(text));
        // Each letter searches from where the search began.
        log.hit = None;
        log.view = self.before_search.clone();
        if let Some(s) = snapshot {
            log.find(&s.log, pane, false);
        }
    }

    /// What does more than change what is seen.
    fn act(&mut self, action: Action, snapshot: Option<&Snapshot>) -> Option<Effect> {
        let mut send = |command, said: &str| {
            self.toast = Some(said.to_owned());
            Some(Effect::Send(command))
        };
        let over = snapshot.is_some_and(|s| s.outcome.is_some());
        match action {
            Action::Quit | Action::Interrupt if over || self.follows => Some(Effect::Leave),
            Action::Quit => {
                self.open(Overlay::Quit);
                None
            }
            Action::Interrupt => Some(self.interrupt()),
            Action::Hold => {
                let held = snapshot
                    .is_some_and(|s| matches!(s.stage, Stage::Countdown { held: true, .. }));
                if held {
                    send(Command::Release, "released: the kill goes ahead")
                } else {
                    send(
                        Command::Hold,
                        "held: nothing happens until you press h again",
                    )
                }
            }
            Action::Wait => send(Command::Wait, "60 s more"),
            Action::FalseAlarm => send(
                Command::FalseAlarm,
                "noted as a false alarm; the limit is raised",
            ),
            Action::Evidence => send(Command::Evidence, "evidence is being taken"),
            Action::Stop | Action::QuitStop => {
                self.open(Overlay::None);
                self.toast = Some("asked the run to stop".to_owned());
                Some(Effect::Send(Command::Stop))
            }
            Action::ConfirmKill => {
                self.open(Overlay::None);
                self.toast = Some("killing the run".to_owned());
                Some(Effect::Send(Command::Kill))
            }
            Action::QuitLeave => Some(Effect::Leave),
            Action::Suspend => Some(Effect::Suspend),
            Action::Redraw => Some(Effect::Redraw),
            _ => None,
        }
    }

    /// Ctrl-C: stop, then kill, then leave.
    fn interrupt(&mut self) -> Effect {
        self.open(Overlay::None);
        self.interrupts = self.interrupts.saturating_add(1);
        match self.interrupts {
            1 => {
                self.toast = Some("stopping; Ctrl-C again kills at once".to_owned());
                Effect::Send(Command::Stop)
            }
            2 => {
                self.toast = Some("killing; Ctrl-C again leaves the screen".to_owned());
                Effect::Send(Command::Kill)
            }
            _ => Effect::Leave,
        }
    }

    /// Takes a new snapshot: closes questions that have settled themselves.
    pub(super) fn news(&mut self, snapshot: &Snapshot) {
        let asks = matches!(self.choices.overlay, Overlay::Quit | Overlay::Kill);
        if snapshot.outcome.is_some() && asks {
            self.open(Overlay::None);
        }
    }
}

/// How long a toast stays.
pub(super) const TOAST: Duration = Duration::from_secs(5);
