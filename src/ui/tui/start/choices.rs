//! What the user has chosen to see on the start screen. With a lobby, a theme and a
//! size it decides the picture.

use crate::model::FoundProcess;
use crate::profile::ShelfEntry;
use crate::ui::lobby::{Lobby, RunLine};

use super::prompt::Prompt;
use crate::ui::tui::keymap::Context;

/// A list of the start screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum List {
    /// Generations and other users of the cards.
    #[default]
    Found,
    /// Recorded runs.
    Runs,
    /// Profiles.
    Profiles,
}

impl List {
    pub(super) const ALL: [Self; 3] = [Self::Found, Self::Runs, Self::Profiles];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Found => "Found running",
            Self::Runs => "Recent runs",
            Self::Profiles => "Profiles",
        }
    }

    /// Its name where there is little room.
    pub(super) const fn short(self) -> &'static str {
        match self {
            Self::Found => "Found",
            Self::Runs => "Runs",
            Self::Profiles => "Profiles",
        }
    }

    /// The list so many places on, around the end.
    pub(super) fn step(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// What lies over the start screen; each has its own keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Over {
    #[default]
    Nothing,
    Help,
    Palette,
    /// A command is being typed.
    Prompt,
    /// Whether a profile that does not fit is meant.
    Unfit,
}

impl Over {
    pub(super) const fn context(self) -> Context {
        match self {
            Self::Nothing => Context::Start,
            Self::Help => Context::Help,
            Self::Palette => Context::Palette,
            Self::Prompt => Context::Prompt,
            Self::Unfit => Context::Unfit,
        }
    }

    /// Whether characters are text here.
    pub(super) const fn typing(self) -> bool {
        !matches!(self, Self::Nothing | Self::Unfit)
    }
}

/// What the user has chosen to see.
#[derive(Debug, Clone, Default)]
pub(super) struct Choices {
    /// The list whose lines are marked by the arrow keys.
    pub(super) list: List,
    /// The marked line of each list, in the order of [`List::ALL`].
    pub(super) marked: [usize; 3],
    pub(super) over: Over,
    /// What was typed into the palette, or narrows the list of keys.
    pub(super) typed: String,
    /// The marked line of the palette, or the first one shown of the help.
    pub(super) picked: usize,
    /// The user marked a line of the palette or the help by hand.
    pub(super) by_hand: bool,
    /// The user moved the mark of the profiles; else it stays on the best match.
    pub(super) profile_marked: bool,
    pub(super) prompt: Prompt,
    /// Id of the profile for the next command; absent: the best match.
    pub(super) profile: Option<String>,
    /// That it does not fit is known, and it is meant all the same.
    pub(super) unfit_is_meant: bool,
}

impl Choices {
    /// The marked line of a list that has `length` lines.
    pub(super) fn mark(&self, list: List, length: usize) -> usize {
        self.marked[list as usize].min(length.saturating_sub(1))
    }

    pub(super) fn process<'l>(&self, lobby: &'l Lobby) -> Option<&'l FoundProcess> {
        let all = lobby.found();
        all.get(self.mark(List::Found, all.len()))
    }

    pub(super) fn run<'l>(&self, lobby: &'l Lobby) -> Option<&'l RunLine> {
        let all = lobby.runs();
        all.get(self.mark(List::Runs, all.len()))
    }

    pub(super) fn shelf<'l>(&self, lobby: &'l Lobby) -> Option<&'l ShelfEntry> {
        let all = &lobby.profiles;
        all.get(self.mark(List::Profiles, all.len()))
    }

    /// Keeps each mark on its line when the lists change.
    pub(super) fn news(&mut self, before: &Lobby, after: &Lobby) {
        let at = |list: List, found: Option<usize>, old: usize| match found {
            Some(at) => (list as usize, at),
            None => (list as usize, old),
        };
        let process = self.process(before).and_then(|m| {
            let same = |f: &FoundProcess| (f.pid, f.start) == (m.pid, m.start);
            after.found().iter().position(same)
        });
        let run = self
            .run(before)
            .and_then(|m| after.runs().iter().position(|r| r.id == m.id));
        let same = |m: &ShelfEntry| after.profiles.iter().position(|p| p.id == m.id);
        // the list begins with the best match
        let profile = if self.profile_marked {
            self.shelf(before).and_then(same)
        } else {
            Some(0)
        };
        for (list, place) in [
            at(List::Found, process, self.marked[0]),
            at(List::Runs, run, self.marked[1]),
            at(List::Profiles, profile, self.marked[2]),
        ] {
            self.marked[list] = place;
        }
    }
}
