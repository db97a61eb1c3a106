//! A process that is not ours: its command stands where a ladder would.

use crate::run::Snapshot;
use crate::ui::tui::parts::{Row, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

use super::rank;

/// What the panel of the ladder is called.
pub(in crate::ui::tui) fn title(s: &Snapshot) -> String {
    if s.is_foreign() {
        format!("Command  {}", s.adapter)
    } else {
        format!("Ladder  {} ({})", s.profile, s.profile_why)
    }
}

/// The command, in at most so many lines.
pub(super) fn command(s: &Snapshot, theme: Theme, columns: usize, lines: usize) -> Vec<Row> {
    let words = s.argv.join(" ");
    let text = if words.is_empty() {
        "cannot be read"
    } else {
        &words
    };
    paragraph(
        theme,
        "command",
        Tone::Plain,
        text,
        columns,
        lines,
        rank::LADDER,
    )
}
