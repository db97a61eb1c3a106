//! Which part of the profiles is shown, and what stands in the lists to choose from.
//! Pure.

use crate::model::{Origin, Setting};
use crate::profile::ShelfEntry;
use crate::profile::edit::value_in;
use crate::run::Snapshot;
use crate::run::snapshot::{SettingView, Stage};
use crate::ui::profiles::Profiles;

/// A part of the screen; left and right go from one to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProfilePane {
    /// Every profile.
    List,
    /// The settings of this run that can be switched.
    #[default]
    Settings,
    /// All settings of this run, with who set them.
    InForce,
    /// The marked profile: what it is for and how it suits the machine.
    About,
    /// Its ladder.
    Ladder,
    /// What lint says about it.
    Problems,
}

impl ProfilePane {
    /// Every one with its name, from left to right.
    pub(in crate::ui) const ALL: [(Self, &'static str); 6] = [
        (Self::List, "Profiles"),
        (Self::Settings, "Settings"),
        (Self::InForce, "In force"),
        (Self::About, "About"),
        (Self::Ladder, "Ladder"),
        (Self::Problems, "Problems"),
    ];

    fn at(self) -> usize {
        let mut all = Self::ALL.iter();
        all.position(|(p, _)| *p == self).unwrap_or(0)
    }

    /// The next one, or the one before; the ends are ends.
    pub(super) fn step(self, right: bool) -> Self {
        let at = self.at();
        let to = if right { at + 1 } else { at.saturating_sub(1) };
        Self::ALL.get(to).map_or(self, |(p, _)| *p)
    }

    /// What stands beside the list.
    pub(super) fn detail(self) -> Self {
        if self == Self::List {
            Self::About
        } else {
            self
        }
    }
}

/// What the user has chosen to see of the profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileChoices {
    /// Which part has the keys.
    pub pane: ProfilePane,
    /// The marked profile; absent: the one in force.
    pub marked: Option<String>,
    /// The marked setting, an index into [`Setting::ALL`].
    pub setting: usize,
    /// First line that is shown of a part that is only read.
    pub line: usize,
}

impl ProfileChoices {
    /// The marked setting.
    pub(super) fn setting(&self) -> Setting {
        let at = self.setting.min(Setting::ALL.len() - 1);
        Setting::ALL[at]
    }

    /// The marked profile, if it is there.
    pub(super) fn marked<'p>(
        &self,
        profiles: &'p Profiles,
        s: &Snapshot,
    ) -> Option<&'p ShelfEntry> {
        let id = self.marked.as_deref().unwrap_or(&s.profile);
        profiles.get(id).or_else(|| profiles.list.first())
    }

    /// Marks the next profile, or the one before.
    pub(super) fn mark(&mut self, profiles: &Profiles, s: &Snapshot, down: bool) {
        let marked = self.marked(profiles, s).map(|e| &e.id);
        let at = profiles.list.iter().position(|e| Some(&e.id) == marked);
        let at = at.unwrap_or(0);
        let to = if down { at + 1 } else { at.saturating_sub(1) };
        if let Some(entry) = profiles.list.get(to) {
            self.marked = Some(entry.id.clone());
        }
    }
}

/// The view of a setting, if the run has any.
pub(super) fn view_of(s: &Snapshot, setting: Setting) -> Option<&SettingView> {
    s.settings.iter().find(|v| v.setting == setting)
}

/// The values to choose from: those worth offering, the present one, and last `None`:
/// as the profile says.
pub(super) fn values(view: &SettingView) -> Vec<Option<String>> {
    let offered = view.setting.choices().iter().map(|c| (*c).to_owned());
    let mut list: Vec<String> = offered.collect();
    if let Some(next) = &view.next
        && !list.contains(next)
    {
        list.push(next.clone());
    }
    list.into_iter().map(Some).chain([None]).collect()
}

/// The line of [`values`] that is in force already.
pub(super) fn value_in_force(view: &SettingView) -> usize {
    let list = values(view);
    let at = list.iter().position(|v| *v == view.next);
    at.unwrap_or(list.len() - 1)
}

/// What the profile of the run says about a setting.
pub(super) fn profile_says(s: &Snapshot, profiles: &Profiles, setting: Setting) -> Option<String> {
    let profile = profiles.get(&s.profile)?.profile.as_ref()?;
    value_in(profile, setting).map(|(value, _)| value)
}

/// Whether the profile that was chosen waits for the next attempt: what the present
/// one has of a profile is not what the next one will have.
pub(super) fn profile_waits(s: &Snapshot) -> bool {
    let line = |origin: &Origin| match origin {
        Origin::Profile { file, line } => Some((file.clone(), *line)),
        _ => None,
    };
    let by_default =
        |o: &Origin| matches!(o, Origin::BuiltIn | Origin::Supervisor | Origin::Detected);
    let differs = |here: &[crate::model::Effective], there: &[crate::model::Effective]| {
        here.iter().filter(|e| line(&e.origin).is_some()).any(|e| {
            let other = there.iter().find(|o| o.key == e.key);
            other.is_none_or(|o| {
                by_default(&o.origin) || line(&o.origin).is_some_and(|l| Some(l) != line(&e.origin))
            })
        })
    };
    s.chosen.profile.is_some()
        && (differs(&s.effective, &s.effective_next) || differs(&s.effective_next, &s.effective))
}

/// The changes that the next attempt brings: `find mode FAST -> HYBRID`.
pub(super) fn changes(s: &Snapshot, arrow: &str) -> Vec<String> {
    let word = |v: &Option<String>| v.clone().unwrap_or_else(|| NOT_SET.to_owned());
    let mut out: Vec<String> = Vec::new();
    if profile_waits(s) {
        out.push(format!("profile {}", s.profile));
    }
    let changed = s.settings.iter().filter(|v| v.now != v.next);
    out.extend(changed.map(|v| {
        let name = v.setting.name();
        format!("{name} {} {arrow} {}", word(&v.now), word(&v.next))
    }));
    out
}

/// The word for a setting that nobody sets: the program does as it does by itself.
pub(super) const NOT_SET: &str = "not set";

/// The id that is offered for an own profile: that of the user's own profile in force,
/// else a new one made of the shipped one's.
pub(super) fn offered_id(s: &Snapshot, profiles: &Profiles) -> String {
    const LONGEST: usize = 48;
    const MINE: &str = "-mine";
    let own = profiles
        .get(&s.profile)
        .is_some_and(|e| e.owner == crate::profile::Owner::User);
    if own {
        return s.profile.clone();
    }
    let letters = s.profile.chars().take(LONGEST - MINE.len());
    letters.collect::<String>() + MINE
}

/// Whether taking another rung, or a restart, ends an attempt that nothing else ends.
pub(super) const fn ends_something(s: &Snapshot) -> bool {
    matches!(s.stage, Stage::Watching)
}
