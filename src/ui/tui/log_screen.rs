//! The log, full size; health and what happens now stay on top.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin, Rect};

use crate::run::Snapshot;

use super::chrome::{brief, header, put, titled};
use super::log_choices::Pane;
use super::panel;
use super::view::{Kind, ViewOptions};

/// Rows of health.
const HEALTH: u16 = 2;

/// Header, health, log, footer.
fn areas(area: Rect, kind: Kind) -> [Rect; 4] {
    let header = u16::from(kind != Kind::Compact);
    Layout::vertical([
        Constraint::Length(header),
        Constraint::Length(HEALTH),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area)
}

/// Where the lines stand.
pub(super) fn pane(area: Rect, kind: Kind) -> Pane {
    let [_, _, log, _] = areas(area, kind);
    let frame = if kind == Kind::Wide { 2 } else { 0 };
    Pane {
        columns: usize::from(log.width.saturating_sub(2 + frame)),
        rows: usize::from(log.height.saturating_sub(1.max(frame))),
        full: true,
    }
}

/// Draws all but the footer.
pub(super) fn draw(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions, kind: Kind) {
    let area = frame.area();
    let [top, health, log, _footer] = areas(area, kind);
    let side = Margin::new(1, 0);
    let columns = usize::from(area.width).saturating_sub(2);
    put(frame, top.inner(side), vec![header(s, o, columns)]);
    let lines = brief(s, o.theme, columns, HEALTH);
    put(frame, health.inner(side), lines);
    let title = panel::log_title(s, &o.choices.log, true);
    let inner = titled(frame, o.theme, log, &title, kind == Kind::Wide);
    let lines = panel::log(s, &o.choices.log, o.theme, pane(area, kind));
    put(frame, inner, lines);
}
