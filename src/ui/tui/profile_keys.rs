//! What keys make of the profiles, of a choice and of the questions about it. Pure.

use crate::model::Command;
use crate::model::{Follow, RungId};
use crate::profile::{Owner, is_id};
use crate::run::Snapshot;
use crate::run::snapshot::RungState;
use crate::ui::slot::Reach;

use super::choices::{Choices, Overlay, Screen};
use super::keymap::{Action, no_snapshot};
use super::log_choices::Pane;
use super::profile_choices::{
    ProfilePane, ends_something, offered_id, value_in_force, values, view_of,
};
use super::profile_screen;
use super::state::{Effect, UiState};

impl UiState {
    /// What only changes which part of the profiles is seen. `false`: the action is
    /// none of these.
    pub(super) fn look_at_profiles(
        &mut self,
        action: Action,
        snapshot: Option<&Snapshot>,
        pane: Pane,
    ) -> bool {
        let c = &mut self.choices.profiles;
        match action {
            Action::ShowProfiles => self.choices.screen = Screen::Profiles,
            Action::PaneLeft | Action::PaneRight => {
                c.pane = c.pane.step(action == Action::PaneRight);
                c.line = 0;
            }
            Action::ToList if c.pane == ProfilePane::List => {
                self.choices.screen = Screen::Dashboard;
            }
            Action::ToList => {
                c.pane = ProfilePane::List;
                c.line = 0;
            }
            Action::RowUp | Action::RowDown => {
                if let Some(s) = snapshot {
                    self.move_row(s, pane, action == Action::RowDown);
                }
            }
            _ => return false,
        }
        true
    }

    fn move_row(&mut self, s: &Snapshot, pane: Pane, down: bool) {
        let profiles = self.profiles.clone();
        let c = &mut self.choices.profiles;
        let step = |at: usize, last: usize| {
            if down {
                (at + 1).min(last)
            } else {
                at.min(last).saturating_sub(1)
            }
        };
        match c.pane {
            ProfilePane::List => {
                c.mark(&profiles, s, down);
                c.line = 0;
            }
            ProfilePane::Settings => {
                let last = crate::model::Setting::ALL.len() - 1;
                c.setting = step(c.setting, last);
            }
            _ => {
                let length = profile_screen::length(s, &profiles, c, pane.columns);
                c.line = step(c.line, length.saturating_sub(pane.rows));
            }
        }
    }

    /// What a choice or a question makes of a key, see [`switches`].
    pub(super) fn choose(&mut self, action: Action, s: &Snapshot) -> Option<Effect> {
        match action {
            Action::Choose => self.choose_row(s),
            Action::TakeValue => self.take_value(s),
            Action::ApplyNow => {
                self.open(Overlay::Apply);
                None
            }
            Action::ConfirmApply => {
                self.open(Overlay::None);
                self.say("ending the attempt; the next one has what you chose");
                Some(Effect::Send(Command::ApplyNow))
            }
            Action::SaveAs => {
                self.open(Overlay::Save);
                self.choices.typed = offered_id(s, &self.profiles);
                None
            }
            Action::SaveIt => self.save_it(s),
            Action::Rungs => {
                self.open(Overlay::Rungs);
                let next = |r: &RungState| matches!(r, RungState::Next);
                let running = |r: &RungState| matches!(r, RungState::Running);
                let at = |is: fn(&RungState) -> bool| s.ladder.iter().position(|e| is(&e.state));
                self.choices.picked = at(next).or_else(|| at(running)).unwrap_or(0);
                None
            }
            Action::PickRung => self.pick_rung(s),
            Action::ConfirmRung => {
                let rung = picked_rung(s, self.choices.picked);
                self.open(Overlay::None);
                rung.map(|rung| self.take_rung(rung))
            }
            _ => None,
        }
    }

    fn say(&mut self, what: impl Into<String>) {
        self.toast = Some(what.into());
    }

    /// The marked profile from the next attempt on, or the values of the marked setting.
    fn choose_row(&mut self, s: &Snapshot) -> Option<Effect> {
        if self.choices.profiles.pane == ProfilePane::List {
            return self.use_profile(s);
        }
        let setting = self.choices.profiles.setting();
        let Some(view) = view_of(s, setting) else {
            self.say(format!("{}: not known of this run", setting.name()));
            return None;
        };
        if let Follow::No { why } = &view.follow {
            self.say(format!("{} cannot be switched: {why}", setting.name()));
            return None;
        }
        let picked = value_in_force(view);
        self.open(Overlay::Value);
        self.choices.picked = picked;
        None
    }

    fn use_profile(&mut self, s: &Snapshot) -> Option<Effect> {
        let profiles = self.profiles.clone();
        let entry = self.choices.profiles.marked(&profiles, s)?;
        let id = entry.id.clone();
        if let Some(why) = &entry.broken {
            self.say(format!("{id} cannot be used: {why}"));
        } else if id == s.profile {
            self.say(format!("{id} is chosen already"));
        } else {
            self.say(format!("profile {id} from the next attempt on"));
            return Some(Effect::Send(Command::UseProfile { id }));
        }
        None
    }

    /// What was typed, else the marked line.
    fn take_value(&mut self, s: &Snapshot) -> Option<Effect> {
        let setting = self.choices.profiles.setting();
        let view = view_of(s, setting)?;
        let typed = self.choices.typed.trim();
        let value = if typed.is_empty() {
            let mut list = values(view);
            list.swap_remove(self.choices.picked.min(list.len() - 1))
        } else {
            match setting.parse(typed) {
                Ok(value) => Some(value),
                Err(why) => {
                    self.say(why);
                    return None;
                }
            }
        };
        let chosen = s.chosen.settings.contains_key(&setting);
        self.open(Overlay::None);
        let name = setting.name();
        if (value == view.next && value.is_some()) || (value.is_none() && !chosen) {
            self.say(format!("{name} stays as it is"));
            return None;
        }
        self.say(match &value {
            Some(value) if view.follow == Follow::Ours => format!("{name} {value}"),
            Some(value) => format!("{name} {value} from the next attempt on; a applies it now"),
            None if view.follow == Follow::Ours => format!("{name} as the profile says"),
            None => format!("{name} as the profile says from the next attempt on"),
        });
        Some(Effect::Send(Command::Set { setting, value }))
    }

    fn save_it(&mut self, s: &Snapshot) -> Option<Effect> {
        let id = self.choices.typed.trim().to_owned();
        if !is_id(&id) {
            self.say("an id is 3 to 48 of a-z, 0-9 and -");
            return None;
        }
        let taken = self
            .profiles
            .get(&id)
            .is_some_and(|e| e.owner == Owner::User && id != s.profile);
        if taken {
            self.say(format!("you have a profile {id} already; type another id"));
            return None;
        }
        self.open(Overlay::None);
        self.say(format!("saving {id}"));
        Some(Effect::Send(Command::SaveProfile { id }))
    }

    /// Takes the marked rung at once if that ends nothing, else asks.
    pub(super) fn pick_rung(&mut self, s: &Snapshot) -> Option<Effect> {
        let picked = self.choices.picked;
        let entry = s.ladder.get(picked.min(s.ladder.len().saturating_sub(1)))?;
        let id = entry.id.clone();
        if id.0 == RungId::AS_GIVEN {
            self.say("a run never goes back to where it began; a restarts as it is");
            return None;
        }
        if let RungState::Unavailable { why } = &entry.state {
            self.say(format!("{id} cannot be taken: {why}"));
            return None;
        }
        if ends_something(s) {
            self.choices.overlay = Overlay::TakeRung;
            return None;
        }
        self.open(Overlay::None);
        Some(self.take_rung(id))
    }

    fn take_rung(&mut self, rung: RungId) -> Effect {
        self.say(format!("{rung} follows"));
        Effect::Send(Command::TakeRung { rung })
    }
}

fn picked_rung(s: &Snapshot, picked: usize) -> Option<RungId> {
    let at = picked.min(s.ladder.len().saturating_sub(1));
    s.ladder.get(at).map(|e| e.id.clone())
}

/// Whether an action chooses what follows, or saves it.
pub(super) const fn switches(action: Action) -> bool {
    matches!(
        action,
        Action::Choose
            | Action::TakeValue
            | Action::ApplyNow
            | Action::ConfirmApply
            | Action::SaveAs
            | Action::SaveIt
            | Action::Rungs
            | Action::PickRung
            | Action::ConfirmRung
    )
}

/// Whether the run can be switched from here, where an action does that.
pub(super) fn switchable(
    action: Action,
    snapshot: Option<&Snapshot>,
    choices: &Choices,
) -> Result<(), &'static str> {
    if !switches(action) {
        return Ok(());
    }
    let pane = choices.profiles.pane;
    match (action, snapshot) {
        (_, None) => Err(no_snapshot(choices)),
        (Action::Choose, _) if !matches!(pane, ProfilePane::List | ProfilePane::Settings) => {
            Err("nothing to choose in this part")
        }
        (Action::Choose | Action::TakeValue, Some(s)) if s.outcome.is_some() => {
            Err("the run is over; what was chosen in it can be saved")
        }
        (Action::SaveAs | Action::SaveIt, Some(s))
            if s.outcome.is_some() && choices.reach != Reach::All =>
        {
            Err("the run is over, and its supervisor has ended: nothing can be saved from here")
        }
        (_, Some(s)) if s.outcome.is_some() => Ok(()),
        (_, Some(_)) => match choices.reach {
            Reach::All => Ok(()),
            Reach::Signals(why) => Err(why),
        },
    }
}
