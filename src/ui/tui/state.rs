//! What the user has done to the view, and what a key makes of it. Pure.

use std::time::Duration;

use ratatui::layout::Rect;

use crate::model::Command;
use crate::run::Snapshot;
use crate::run::snapshot::{LogKind, Stage};
use crate::ui::profiles::Profiles;
use crate::ui::text::ago;
use crate::ui::words;

use super::choices::{Choices, Overlay, Screen};
use super::keymap::{self, Action, Binding};
use super::keys::Key;
use super::log_choices::{LogView, Move, Pane, Search};
use super::log_text;
use super::profile_choices::ends_something;
use super::profile_keys;
use super::small;

/// What the user has done to the view.
#[derive(Debug, Clone, Default)]
pub(super) struct UiState {
    pub(super) choices: Choices,
    /// A word in the place of the footer.
    pub(super) toast: Option<String>,
    /// The profiles to choose from.
    pub(super) profiles: Profiles,
    /// Times that Ctrl-C was pressed.
    interrupts: u8,
    /// The user wants to be in the shell again when the run has ended.
    pub(super) leaves_at_end: bool,
    /// The place in the log when the search began.
    pub(super) before_search: LogView,
}

/// What the screen's thread has to do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Send(Command),
    /// Give the terminal back; the run goes on.
    Leave,
    Suspend,
    Redraw,
    /// Put this text where the user can paste it from.
    Copy(String),
    /// Write the log to this file, or to one in the folder of the run.
    Export(Option<String>),
}

impl UiState {
    /// Nothing done yet; `follows`: the run belongs to another process.
    pub(super) fn new(follows: bool) -> Self {
        Self {
            choices: Choices {
                follows,
                ..Choices::default()
            },
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
        let (screen, overlay) = (self.choices.screen, self.choices.overlay);
        let Some(binding) = keymap::find(screen, overlay, key) else {
            if let (true, Key::Char(c)) = (overlay.typing(), key) {
                self.edit(snapshot, pane, |text| text.push(c));
            }
            return None;
        };
        self.run(binding, &key.name(), snapshot, pane)
    }

    /// Runs a command, or says why not; `called` is what the user pressed or chose.
    pub(super) fn run(
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
            Action::CopyFind => {
                let line = snapshot?.find.as_ref()?.state.driver_line()?;
                Some(Effect::Copy(line))
            }
            Action::CopyLine | Action::CopyRange => self.copy(binding.action, snapshot, pane),
            action => {
                if self.look(action, snapshot, pane) {
                    None
                } else {
                    self.act(action, snapshot)
                }
            }
        }
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
            Action::PickUp => self.pick(snapshot, |at| at.saturating_sub(1)),
            Action::PickDown => self.pick(snapshot, |at| at + 1),
            Action::PickPageUp => self.pick(snapshot, |at| at.saturating_sub(PAGE)),
            Action::PickPageDown => self.pick(snapshot, |at| at + PAGE),
            Action::Narrow => self.open(if self.choices.typed.is_empty() {
                Overlay::None
            } else {
                Overlay::Help
            }),
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
                return self.look_at_diagnose(action, snapshot, pane)
                    || self.look_at_charts(action, snapshot)
                    || self.look_at_profiles(action, snapshot, pane)
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
        if let (Action::LineUp | Action::LineDown, Some(s), true) = (action, snapshot, pane.full) {
            log.step(&s.log, pane, action == Action::LineUp);
            return true;
        }
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
            Action::Mark => {
                let place = snapshot.and_then(|s| log.place(&s.log, pane));
                log.mark = place.filter(|at| log.mark != Some(*at));
                return true;
            }
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

    /// The line that the user stands on, or all from the mark to it, as text.
    fn copy(&mut self, action: Action, snapshot: Option<&Snapshot>, pane: Pane) -> Option<Effect> {
        let newest = &snapshot?.log;
        let log = &self.choices.log;
        let at = log.place(newest, pane)?;
        if action == Action::CopyLine {
            let line = log.part(newest).0.get(at)?;
            return Some(Effect::Copy(log_text::line(line)));
        }
        let range = log.marked(newest, pane)?;
        let text = log_text::lines(log.between(newest, pane, range));
        self.choices.log.mark = None;
        Some(Effect::Copy(text))
    }

    pub(super) fn open(&mut self, overlay: Overlay) {
        self.choices.overlay = overlay;
        self.choices.typed.clear();
        self.choices.picked = 0;
        self.choices.marked = false;
    }

    /// Closes what lies over the screen where the terminal has no room for it: nothing is
    /// asked that cannot be read. `true`: it was.
    pub(super) fn refuse_unseen(&mut self, area: Rect) -> bool {
        let unseen = !small::holds(area, self.choices.overlay);
        if unseen {
            self.open(Overlay::None);
            self.toast = Some(small::TOO_SMALL.to_owned());
        }
        unseen
    }

    /// What does more than change what is seen.
    fn act(&mut self, action: Action, snapshot: Option<&Snapshot>) -> Option<Effect> {
        if let (true, Some(s)) = (profile_keys::switches(action), snapshot) {
            return self.choose(action, s);
        }
        let mut send = |command, said: &str| {
            self.toast = Some(said.to_owned());
            Some(Effect::Send(command))
        };
        let over = snapshot.is_some_and(|s| s.outcome.is_some());
        match action {
            Action::Quit | Action::Interrupt if over || self.choices.leaves_alone() => {
                Some(Effect::Leave)
            }
            Action::Stop => {
                self.open(Overlay::Stop);
                None
            }
            Action::StopAfterStep => {
                self.open(Overlay::AfterStep);
                None
            }
            Action::Quit => {
                self.open(Overlay::Quit);
                None
            }
            Action::Interrupt => Some(self.interrupt(snapshot)),
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
            Action::Resend => {
                let waiting = snapshot.map_or(0, |s| s.resend.waiting);
                send(Command::Resend, &words::prompts_sent(waiting))
            }
            Action::ConfirmAfterStep => {
                self.open(Overlay::None);
                self.toast = Some("the agent is asked to end the job after this step".to_owned());
                Some(Effect::Send(Command::StopAfterStep))
            }
            Action::Evidence if snapshot.is_some_and(|s| words::not_live(s).is_some()) => {
                let said = "evidence is being taken of the run as it is now";
                send(Command::Evidence, said)
            }
            Action::Evidence => send(Command::Evidence, "evidence is being taken"),
            Action::QuitStop => {
                self.leaves_at_end |= self.choices.overlay == Overlay::Quit;
                self.open(Overlay::None);
                self.toast = Some(stopping(snapshot));
                Some(Effect::Send(Command::Stop))
            }
            Action::Export => Some(Effect::Export(None)),
            Action::CopyVerdict => snapshot.map(|s| self.copy_verdict(s)),
            Action::ExportBundle => {
                if let Some(s) = snapshot {
                    self.tell_export(s);
                }
                None
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
    fn interrupt(&mut self, snapshot: Option<&Snapshot>) -> Effect {
        self.open(Overlay::None);
        self.leaves_at_end = true;
        self.interrupts = self.interrupts.saturating_add(1);
        match self.interrupts {
            1 => {
                let how = stopping(snapshot);
                self.toast = Some(format!("{how}; Ctrl-C again kills at once"));
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
        let asks = match self.choices.overlay {
            Overlay::Quit | Overlay::Stop | Overlay::Kill | Overlay::AfterStep | Overlay::Rungs => {
                true
            }
            // The attempt that would end has ended: another one would be meant.
            Overlay::Apply | Overlay::TakeRung if !ends_something(snapshot) => {
                self.toast = Some("the attempt has ended meanwhile".to_owned());
                self.open(Overlay::None);
                return;
            }
            _ => false,
        };
        if snapshot.outcome.is_some() && asks {
            self.open(Overlay::None);
        }
    }
}

/// What a stop does now.
fn stopping(snapshot: Option<&Snapshot>) -> String {
    match snapshot {
        Some(s) if words::not_live(s).is_some() => {
            "stopping: the supervisor of the run is asked".to_owned()
        }
        Some(s) if s.pid.is_some() => format!(
            "stopping: {} sent, SIGKILL after {}",
            s.kill.first.name(),
            ago(s.kill.grace)
        ),
        _ => "stopping: no process lives, the run ends".to_owned(),
    }
}

/// Lines that page up and down go in a list.
pub(super) const PAGE: usize = 10;
/// How long a toast stays.
pub(super) const TOAST: Duration = Duration::from_secs(5);
