//! The lists of commands, the help and the palette: marking, typing, running what is
//! marked, with what it was told. Pure.

use crate::model::{Command, Setting};
use crate::run::Snapshot;

use super::argument::Value;
use super::choices::{Overlay, Screen};
use super::diagnose_choices::{cites, shown};
use super::keymap::{self, Action, Binding};
use super::log_choices::{Pane, Search};
use super::naming;
use super::profile_choices::{values, view_of};
use super::state::{Effect, UiState};

/// Longest text that can be typed, characters.
const LONGEST: usize = 200;

impl UiState {
    /// Marks another line of a list that may be shorter than it was.
    pub(super) fn pick(&mut self, snapshot: Option<&Snapshot>, to: impl Fn(usize) -> usize) {
        let c = &mut self.choices;
        let length = match (c.overlay, snapshot) {
            (Overlay::Rungs, Some(s)) => s.ladder.len(),
            (Overlay::Cites, Some(s)) => cites(shown(s, &c.charts).0, &c.diagnose).len(),
            (Overlay::Value, Some(s)) => {
                // Moving in the list gives up what was typed.
                c.typed.clear();
                view_of(s, c.profiles.setting()).map_or(0, |view| values(view).len())
            }
            _ => keymap::listed(c).len(),
        };
        let last = length.saturating_sub(1);
        if matches!(self.choices.overlay, Overlay::Help | Overlay::Palette) {
            let commands = keymap::listed(&self.choices);
            let before = naming::marked(&commands, &self.choices);
            self.choices.picked = before.map_or(0, |at| to(at).min(last));
            self.choices.marked = true;
            return;
        }
        self.choices.picked = to(self.choices.picked.min(last)).min(last);
    }

    /// Runs the marked command of a list; one that cannot be run, or that was told
    /// something that it cannot read, leaves the list open and says why.
    pub(super) fn run_picked(&mut self, snapshot: Option<&Snapshot>, pane: Pane) -> Option<Effect> {
        let list = keymap::listed(&self.choices);
        let marked = naming::marked(&list, &self.choices);
        let Some(binding) = marked.and_then(|at| list.get(at)) else {
            self.toast = Some(naming::why_nothing_runs(list.len()).to_owned());
            return None;
        };
        if let Err(why) = keymap::enabled(binding.action, snapshot, &self.choices) {
            self.toast = Some(format!("{}: {why}", binding.name));
            return None;
        }
        let value = match keymap::value(binding, &self.choices.typed, snapshot) {
            Ok(value) => value,
            Err(why) => {
                self.ask(binding);
                self.toast = Some(format!("{}: {why}", binding.name));
                return None;
            }
        };
        self.open(Overlay::None);
        if let Some(screen) = keymap::home(binding, self.choices.screen) {
            self.choices.screen = screen;
        }
        let pane = Pane {
            full: self.choices.screen == Screen::Log,
            ..pane
        };
        match (value, binding.action, snapshot) {
            (Some(value), action, Some(s)) => self.run_told(action, value, s, pane),
            // Ctrl-C is pressed on purpose; Enter in a list may slip
            (_, Action::Interrupt, _) => self.run(stop_command()?, binding.name, snapshot, pane),
            _ => self.run(binding, binding.name, snapshot, pane),
        }
    }

    /// Waits for what a command has to be told, in the palette.
    fn ask(&mut self, binding: &Binding) {
        if keymap::told(&self.choices.typed).is_none() {
            self.open(Overlay::Palette);
            self.choices.typed = format!("{} ", binding.name);
        }
    }

    /// Runs a command with what it was told.
    fn run_told(
        &mut self,
        action: Action,
        value: Value,
        s: &Snapshot,
        pane: Pane,
    ) -> Option<Effect> {
        let log = &mut self.choices.log;
        match (action, value) {
            (Action::Goto, Value::Time(t)) => {
                log.goto(&s.log, pane, t);
                self.choices.charts.goto(s, t);
                let began = s.log.front().filter(|l| l.at > t);
                self.toast = Some(match began {
                    Some(l) => format!(
                        "at {}; the log that is kept begins at {}",
                        t.clock(),
                        l.at.clock()
                    ),
                    None => format!(
                        "at {}; End follows the log again, Esc the charts",
                        t.clock()
                    ),
                });
            }
            (Action::AutoRange, Value::Range(at)) => self.choices.charts.range = Some(at),
            (Action::Search, Value::Text(text)) => {
                self.before_search = log.view.clone();
                log.hit = None;
                log.search = Some(Search::new(text));
                if !log.find(&s.log, pane, false) {
                    self.toast = Some("nothing in the log matches".to_owned());
                }
            }
            (Action::Set(setting), Value::Choice(value)) => {
                let name = setting.name();
                self.toast = Some(match (&value, setting) {
                    (Some(value), Setting::VramCap) => format!("{name} {value}"),
                    (Some(value), _) => format!("{name} {value} from the next attempt on"),
                    (None, _) => format!("{name} as the profile says"),
                });
                return Some(Effect::Send(Command::Set { setting, value }));
            }
            (Action::Rungs, Value::Rung(at)) => {
                self.open(Overlay::Rungs);
                self.choices.picked = at;
                return self.pick_rung(s);
            }
            (Action::Export, Value::Text(path)) => return Some(Effect::Export(Some(path))),
            _ => {}
        }
        None
    }

    /// Changes the text that is being typed, and what follows from it.
    pub(super) fn edit(
        &mut self,
        snapshot: Option<&Snapshot>,
        pane: Pane,
        change: impl Fn(&mut String),
    ) {
        if self.choices.overlay != Overlay::Search {
            change(&mut self.choices.typed);
            if self.choices.typed.chars().count() > LONGEST {
                self.choices.typed.pop();
            }
            // A value that is typed leaves the mark where it is.
            if self.choices.overlay != Overlay::Value {
                self.choices.picked = 0;
                self.choices.marked = false;
            }
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
}

/// The command that stops the run, which asks.
fn stop_command() -> Option<&'static Binding> {
    keymap::of(Screen::Dashboard, Overlay::None).find(|b| b.action == Action::Stop)
}
