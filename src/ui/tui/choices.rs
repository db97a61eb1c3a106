//! What the user has chosen to see. With a snapshot, a theme and a size it decides
//! the picture.

use super::chart_choices::ChartChoices;
use super::diagnose_choices::DiagnoseChoices;
use super::log_choices::LogChoices;
use super::profile_choices::ProfileChoices;
use crate::ui::slot::Reach;

/// A screen that fills the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Screen {
    /// The whole run at a glance.
    #[default]
    Dashboard,
    /// Why it is judged so, and what follows.
    Diagnose,
    /// The profiles, and the settings that can be switched.
    Profiles,
    /// The log, full size.
    Log,
}

impl Screen {
    /// Every screen with its key and its name, in the order of the header.
    pub(super) const ALL: [(Self, char, &'static str); 4] = [
        (Self::Dashboard, '1', "Dashboard"),
        (Self::Diagnose, '2', "Diagnose"),
        (Self::Profiles, '3', "Profiles"),
        (Self::Log, '5', "Log"),
    ];

    /// The screen so many places on, around the end.
    pub(super) fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|(s, ..)| *s == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()].0
    }
}

/// What lies over the screen; each has its own keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Overlay {
    /// Nothing.
    #[default]
    None,
    /// The list of keys.
    Help,
    /// Commands to choose from by their words.
    Palette,
    /// The line that a search is typed into.
    Search,
    /// What shall become of the run.
    Quit,
    /// Whether to stop, where that was chosen from a list.
    Stop,
    /// Whether to kill.
    Kill,
    /// Whether to end the job after its step.
    AfterStep,
    /// The values of a setting.
    Value,
    /// Whether to restart with what was chosen.
    Apply,
    /// Under which id an own profile is saved.
    Save,
    /// The ladder to choose from.
    Rungs,
    /// Whether to end the attempt for the chosen rung.
    TakeRung,
    /// The events behind a finding.
    Cites,
}

impl Overlay {
    /// Every one.
    #[cfg(test)]
    pub(in crate::ui) const ALL: [Self; 14] = [
        Self::None,
        Self::Help,
        Self::Palette,
        Self::Search,
        Self::Quit,
        Self::Stop,
        Self::Kill,
        Self::AfterStep,
        Self::Value,
        Self::Apply,
        Self::Save,
        Self::Rungs,
        Self::TakeRung,
        Self::Cites,
    ];

    /// The question that it asks, where an answer ends something.
    pub(super) const fn question(self) -> Option<&'static str> {
        Some(match self {
            Self::Apply => "Restart with what you chose?",
            Self::TakeRung => "End the attempt for this rung?",
            Self::Quit => "Quit: what becomes of the run?",
            Self::Stop => "Stop the run?",
            Self::Kill => "Kill the run?",
            Self::AfterStep => "End the job after this step?",
            _ => return None,
        })
    }

    /// Whether it asks a question whose answer ends something.
    pub(super) const fn asks(self) -> bool {
        self.question().is_some()
    }

    /// Whether characters are text here.
    pub(super) const fn typing(self) -> bool {
        matches!(
            self,
            Self::Help | Self::Palette | Self::Search | Self::Value | Self::Save
        )
    }
}

/// What the user has chosen to see.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Which screen.
    pub screen: Screen,
    /// What lies over it.
    pub overlay: Overlay,
    /// What was typed into the palette or the help, as a value or as an id.
    pub typed: String,
    /// The marked line of a list.
    pub picked: usize,
    /// The user marked a line of the palette or the help by hand.
    pub marked: bool,
    /// The run belongs to another process, see `TuiOptions::follows`.
    pub follows: bool,
    /// Which commands reach the supervisor.
    pub reach: Reach,
    /// The process is not ours, see `TuiOptions::watches`.
    pub watches: bool,
    /// Which part of the log is shown, and how.
    pub log: LogChoices,
    /// How the charts are shown.
    pub charts: ChartChoices,
    /// Which part of the profiles is shown.
    pub profiles: ProfileChoices,
    /// Which part of the diagnosis is shown.
    pub diagnose: DiagnoseChoices,
}

impl Choices {
    /// Whether leaving the view leaves whatever runs as it is.
    pub(super) const fn leaves_alone(&self) -> bool {
        self.follows || self.watches
    }
}
