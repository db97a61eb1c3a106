//! The panels of the view: each makes rows out of a snapshot for a given width.

mod charts;
mod detail;
pub(super) mod diagnose;
mod find;
mod foreign;
mod gpu;
mod health;
mod holding;
mod ladder;
mod log;
mod machine;
mod marks;
pub(super) mod profile;
mod settings;
mod strip;

pub(super) use charts::{charts, readout, title as charts_title};
pub(super) use detail::rows as gpu_detail;
pub(super) use foreign::title as ladder_title;
pub(super) use gpu::{has_card, rows as gpu, short as gpu_short, titles as gpu_titles};
pub(super) use health::{Room, result, rows as health};
pub(super) use ladder::{rows as ladder_rows, short as ladder_short};
pub(super) use log::{height as log_height, rows as log, title as log_title};
pub(super) use machine::{host, rows as machine, silence, sources};

/// Ranks of rows, from the one that stays longest; see the order of shedding in
/// the view.
pub(super) mod rank {
    /// Health, what happens now, the result.
    pub(in crate::ui::tui) const KEEP: u8 = 0;
    /// Phase, memory, the reason.
    pub(in crate::ui::tui) const CORE: u8 = 1;
    /// The next limit, the card's activity.
    pub(in crate::ui::tui) const NEXT: u8 = 2;
    /// What is wrong with the readings, the budget.
    pub(in crate::ui::tui) const TROUBLE: u8 = 3;
    /// What two sources say, where the view is zoomed.
    pub(in crate::ui::tui) const SOURCES: u8 = 4;
    /// The ladder, the decision.
    pub(in crate::ui::tui) const LADDER: u8 = 5;
    /// Details of the card, where the view is zoomed.
    pub(in crate::ui::tui) const DETAIL: u8 = 7;
    /// The process.
    pub(in crate::ui::tui) const PROCESS: u8 = 6;
    /// The other cards, and what else repeats a reading: after the process and its work.
    pub(in crate::ui::tui) const STRIP: u8 = 8;
    /// Temperatures.
    pub(in crate::ui::tui) const TEMPERATURES: u8 = 8;
    /// The host; sources that are well.
    pub(in crate::ui::tui) const HOST: u8 = 10;
}
