//! The panels of the diagnosis.

mod action;
mod findings;
mod timeline;
mod verdict;

pub(in crate::ui::tui) use action::rows as action;
pub(in crate::ui::tui) use findings::{cites, rows as findings, title as findings_title};
pub(in crate::ui::tui) use timeline::{rows as timeline, title as timeline_title};
pub(in crate::ui::tui) use verdict::{rows as verdict, title as verdict_title};
