//! The charts of the card, as large as the terminal; health and what happens now
//! stay on top.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin};

use crate::run::Snapshot;

use super::chrome::{brief, header, put, titled};
use super::panel;
use super::parts::shed;
use super::view::{Kind, ViewOptions, gpu_title};

/// Draws all but the footer.
pub(super) fn draw(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions, kind: Kind) {
    let small = kind == Kind::Compact;
    let health_rows: u16 = if small { 2 } else { 3 };
    let [top, health, card, _footer] = Layout::vertical([
        Constraint::Length(u16::from(!small)),
        Constraint::Length(health_rows),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let side = Margin::new(1, 0);
    let columns = usize::from(top.width).saturating_sub(2);
    put(frame, top.inner(side), vec![header(s, o, columns)]);
    let lines = brief(s, o.theme, columns, health_rows);
    put(frame, health.inner(side), lines);

    let inner = titled(
        frame,
        o.theme,
        card,
        &gpu_title(s, o, card.width),
        kind == Kind::Wide,
    );
    let (columns, height) = (usize::from(inner.width), usize::from(inner.height));
    let c = &o.choices.charts;
    let mut words = panel::gpu_short(s, o.theme, columns, false);
    words.extend(panel::gpu_detail(s, o.theme, columns));
    // the charts are what the view is zoomed for
    let most = if small { 3 } else { height / 2 };
    let mut lines = shed(words, most);
    lines.extend(panel::readout(s, c, o.theme, columns).map(|row| row.line));
    let left = height.saturating_sub(lines.len());
    lines.extend(panel::charts(s, c, o.theme, columns, left));
    put(frame, inner, lines);
}
