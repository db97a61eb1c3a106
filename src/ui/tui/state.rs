//! What the user has done to the view, and what a key makes of it. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Command, Mono};
use crate::run::Snapshot;
use crate::run::snapshot::{LogLine, Stage};

use super::keymap::{self, Action, Overlay};
use super::keys::Key;

/// Which part of the log is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum LogView {
    /// The newest lines.
    #[default]
    Follow,
    /// The log as it was when the user scrolled, this many lines before its end.
    Frozen {
        /// The log of that moment.
        log: Arc<VecDeque<LogLine>>,
        /// Lines hidden below.
        back: usize,
    },
}

/// What the user has done to the view.
#[derive(Debug, Clone, Default)]
pub(super) struct UiState {
    pub(super) overlay: Overlay,
    pub(super) log: LogView,
    /// A word in the place of the footer.
    pub(super) toast: Option<String>,
    /// The run belongs to another process, see `TuiOptions::follows`.
    pub(super) follows: bool,
    /// Times that Ctrl-C was pressed.
    interrupts: u8,
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

    /// Takes a key; `page` is the height of the log pane in lines.
    pub(super) fn press(
        &mut self,
        key: Key,
        snapshot: Option<&Snapshot>,
        page: usize,
    ) -> Option<Effect> {
        self.toast = None;
        let binding = keymap::find(self.overlay, key)?;
        if let Err(why) = keymap::enabled(binding.action, snapshot) {
            self.toast = Some(format!("{}: {why}", key.name()));
            return None;
        }
        let send = |state: &mut Self, command, said: &str| {
            state.toast = Some(said.to_owned());
            Some(Effect::Send(command))
        };
        let over = snapshot.is_some_and(|s| s.outcome.is_some());
        match binding.action {
            Action::Help => self.overlay = Overlay::Help,
            Action::Close => self.overlay = Overlay::None,
            Action::Kill => self.overlay = Overlay::Kill,
            Action::Quit | Action::Interrupt if over || self.follows => return Some(Effect::Leave),
            Action::Quit => self.overlay = Overlay::Quit,
            Action::Interrupt => return Some(self.interrupt()),
            Action::Hold => {
                let held = snapshot
                    .is_some_and(|s| matches!(s.stage, Stage::Countdown { held: true, .. }));
                return if held {
                    send(self, Command::Release, "released: the kill goes ahead")
                } else {
                    send(
                        self,
                        Command::Hold,
                        "held: nothing happens until you press h again",
                    )
                };
            }
            Action::Wait => return send(self, Command::Wait, "60 s more"),
            Action::FalseAlarm => {
                return send(
                    self,
                    Command::FalseAlarm,
                    "noted as a false alarm; the limit is raised",
                );
            }
            Action::Evidence => return send(self, Command::Evidence, "evidence is being taken"),
            Action::Stop | Action::QuitStop => {
                self.overlay = Overlay::None;
                return send(self, Command::Stop, "asked the run to stop");
            }
            Action::ConfirmKill => {
                self.overlay = Overlay::None;
                return send(self, Command::Kill, "killing the run");
            }
            Action::QuitLeave => return Some(Effect::Leave),
            Action::Suspend => return Some(Effect::Suspend),
            Action::Redraw => return Some(Effect::Redraw),
            Action::LogUp => self.scroll(snapshot, page, true),
            Action::LogDown => self.scroll(snapshot, page, false),
            Action::LogEnd => self.log = LogView::Follow,
        }
        None
    }

    /// Ctrl-C: stop, then kill, then leave.
    fn interrupt(&mut self) -> Effect {
        self.overlay = Overlay::None;
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

    fn scroll(&mut self, snapshot: Option<&Snapshot>, page: usize, up: bool) {
        let page = page.max(1);
        let (log, back) = match std::mem::take(&mut self.log) {
            LogView::Frozen { log, back } => (log, back),
            LogView::Follow => match snapshot {
                Some(s) => (Arc::clone(&s.log), 0),
                None => return,
            },
        };
        let furthest = log.len().saturating_sub(page);
        let back = if up {
            back.saturating_add(page).min(furthest)
        } else {
            back.saturating_sub(page)
        };
        self.log = if back == 0 {
            LogView::Follow
        } else {
            LogView::Frozen { log, back }
        };
    }

    /// Takes a new snapshot: closes questions that have settled themselves.
    pub(super) fn news(&mut self, snapshot: &Snapshot) {
        if snapshot.outcome.is_some() && self.overlay != Overlay::Help {
            self.overlay = Overlay::None;
        }
    }
}

/// Lines of `log` that are newer than the end of `frozen`.
pub(super) fn newer(frozen: &VecDeque<LogLine>, log: &VecDeque<LogLine>) -> usize {
    let end = frozen.back().map_or(Mono::ZERO, |l| l.at);
    log.iter().rev().take_while(|l| l.at > end).count()
}

/// How long a toast stays.
pub(super) const TOAST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::testing;

    fn press(state: &mut UiState, key: Key, s: &Snapshot) -> Option<Effect> {
        state.press(key, Some(s), 3)
    }

    #[test]
    fn a_followed_run_is_left_without_a_question() {
        for key in [Key::Char('q'), Key::Ctrl('c')] {
            let mut state = UiState::new(true);
            let effect = press(&mut state, key, &testing::healthy());
            assert_eq!(effect, Some(Effect::Leave));
        }
    }

    #[test]
    fn ctrl_c_stops_then_kills_then_leaves() {
        let s = testing::healthy();
        let mut state = UiState::default();
        let key = Key::Ctrl('c');
        assert_eq!(
            press(&mut state, key, &s),
            Some(Effect::Send(Command::Stop))
        );
        assert_eq!(
            press(&mut state, key, &s),
            Some(Effect::Send(Command::Kill))
        );
        assert_eq!(press(&mut state, key, &s), Some(Effect::Leave));
        assert_eq!(
            press(&mut UiState::default(), key, &testing::finished()),
            Some(Effect::Leave)
        );
    }

    #[test]
    fn a_kill_needs_its_own_key_after_the_question() {
        let s = testing::healthy();
        let mut state = UiState::default();
        assert_eq!(press(&mut state, Key::Char('k'), &s), None);
        assert_eq!(press(&mut state, Key::Enter, &s), None);
        assert_eq!(state.overlay, Overlay::None, "enter cancels");
        press(&mut state, Key::Char('k'), &s);
        assert_eq!(
            press(&mut state, Key::Char('y'), &s),
            Some(Effect::Send(Command::Kill))
        );
    }

    #[test]
    fn quitting_a_live_run_asks() {
        let s = testing::healthy();
        let mut state = UiState::default();
        assert_eq!(press(&mut state, Key::Char('q'), &s), None);
        assert_eq!(state.overlay, Overlay::Quit);
        assert_eq!(
            press(&mut state.clone(), Key::Char('1'), &s),
            Some(Effect::Send(Command::Stop))
        );
        assert_eq!(
            press(&mut state.clone(), Key::Char('2'), &s),
            Some(Effect::Leave)
        );
        state.news(&testing::finished());
        assert_eq!(state.overlay, Overlay::None, "nothing is left to ask");
        assert_eq!(
            press(&mut state, Key::Char('q'), &testing::finished()),
            Some(Effect::Leave)
        );
    }

    #[test]
    fn one_key_holds_and_releases() {
        let mut s = testing::hung();
        let mut state = UiState::default();
        assert_eq!(
            press(&mut state, Key::Char('h'), &s),
            Some(Effect::Send(Command::Hold))
        );
        if let Stage::Countdown { held, .. } = &mut s.stage {
            *held = true;
        }
        assert_eq!(
            press(&mut state, Key::Char('h'), &s),
            Some(Effect::Send(Command::Release))
        );
        assert_eq!(press(&mut state, Key::Char('h'), &testing::healthy()), None);
        assert_eq!(state.toast.as_deref(), Some("h: no kill is announced"));
    }

    #[test]
    fn scrolling_freezes_the_log_and_the_end_follows() {
        let s = testing::healthy();
        let mut state = UiState::default();
        press(&mut state, Key::PageUp, &s);
        press(&mut state, Key::PageUp, &s);
        let LogView::Frozen { log, back } = &state.log else {
            panic!("follows")
        };
        assert_eq!(*back, 4, "not beyond the first line");
        let mut more = (**log).clone();
        let mut line = more[0].clone();
        line.at = Mono::from_secs(900);
        more.push_back(line);
        assert_eq!(newer(log, &more), 1);
        press(&mut state, Key::PageDown, &s);
        press(&mut state, Key::PageDown, &s);
        assert_eq!(state.log, LogView::Follow);
    }
}
