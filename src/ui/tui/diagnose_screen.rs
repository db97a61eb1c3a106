//! Why it is judged so, and what follows.
//!
//! | size | what is shown |
//! | --- | --- |
//! | from 110x30 | verdict, timeline, findings and action side by side |
//! | from 80x24 | verdict with the action, timeline, findings below each other |
//! | from 40x10 | the same without titles; rows are shed by their ranks |

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin, Rect};
use ratatui::text::Line;

use crate::run::Snapshot;

use super::chrome::{box_columns, box_rows, centred, header, put, titled};
use super::panel::diagnose;
use super::parts::{Row, shed};
use super::view::{Kind, ViewOptions};

/// Rows of the verdict with its action, and of the timeline, where the screen is 24 high.
const VERDICT: u16 = 6;
const TIMELINE: u16 = 9;
/// Rows of what was done in the panel of the action, and beside the verdict.
const TAKEN: usize = 8;
const TAKEN_SHORT: usize = 1;

/// Draws all but the footer.
pub(super) fn draw(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions, kind: Kind) {
    match kind {
        Kind::Wide => wide(frame, s, o),
        Kind::Narrow => narrow(frame, s, o),
        Kind::Compact | Kind::Line => compact(frame, s, o),
    }
}

/// Verdict and action in one column.
fn judged(s: &Snapshot, o: &ViewOptions, columns: usize, sentence: usize) -> Vec<Row> {
    let mut rows = diagnose::verdict(s, &o.choices.charts, o.theme, columns, sentence);
    rows.extend(diagnose::action(s, o.theme, columns, TAKEN_SHORT));
    rows
}

fn high(lines: &[Line<'static>]) -> u16 {
    u16::try_from(lines.len()).unwrap_or(u16::MAX)
}

fn wide(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let area = frame.area();
    let (theme, c) = (o.theme, &o.choices.charts);
    let columns = usize::from(area.width).saturating_sub(4);
    let spare = usize::from(area.height.saturating_sub(30)) / 2;
    let verdict = shed(diagnose::verdict(s, c, theme, columns, 3), 4 + spare.min(4));
    let timeline = shed(diagnose::timeline(s, c, theme, columns), 9 + spare);
    let [top, first, second, third, _footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(high(&verdict).saturating_add(2)),
        Constraint::Length(high(&timeline).saturating_add(2)),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    let inner = top.inner(Margin::new(1, 0));
    put(frame, inner, vec![header(s, o, inner.width.into())]);
    let inner = titled(frame, theme, first, &diagnose::verdict_title(s, c), true);
    put(frame, inner, verdict);
    let inner = titled(frame, theme, second, &diagnose::timeline_title(s, c), true);
    put(frame, inner, timeline);
    let halves = [Constraint::Percentage(52), Constraint::Percentage(48)];
    let [left, right] = Layout::horizontal(halves).areas(third);
    findings(frame, s, o, left, true);
    let inner = titled(frame, theme, right, "Action", true);
    let rows = diagnose::action(s, theme, inner.width.into(), TAKEN);
    put(frame, inner, shed(rows, inner.height.into()));
}

fn findings(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions, area: Rect, boxed: bool) {
    let (c, d) = (&o.choices.charts, &o.choices.diagnose);
    let title = diagnose::findings_title(s, c, d);
    let inner = titled(frame, o.theme, area, &title, boxed);
    let size = (inner.width.into(), inner.height.into());
    put(frame, inner, diagnose::findings(s, c, d, o.theme, size));
}

fn narrow(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let area = frame.area();
    let (theme, c) = (o.theme, &o.choices.charts);
    let columns = usize::from(area.width).saturating_sub(2);
    let spare = area.height.saturating_sub(24) / 3;
    let [top, first, second, third, _footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(VERDICT + spare.min(6)),
        Constraint::Length(TIMELINE + spare.min(3)),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    let inner = top.inner(Margin::new(1, 0));
    put(frame, inner, vec![header(s, o, inner.width.into())]);
    let inner = titled(frame, theme, first, &diagnose::verdict_title(s, c), false);
    put(
        frame,
        inner,
        shed(judged(s, o, columns, 2), inner.height.into()),
    );
    let inner = titled(frame, theme, second, &diagnose::timeline_title(s, c), false);
    let rows = diagnose::timeline(s, c, theme, columns);
    put(frame, inner, shed(rows, inner.height.into()));
    findings(frame, s, o, third, false);
}

/// Everything in one column without titles.
fn compact(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let area = frame.area().inner(Margin::new(1, 0));
    let area = Rect {
        height: area.height.saturating_sub(1),
        ..area
    };
    let (theme, c) = (o.theme, &o.choices.charts);
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    // half of the room is for what is judged, two rows are for what it rests on
    let two = height / 5;
    let judged = shed(judged(s, o, columns, 2), height.div_ceil(2));
    let left = height.saturating_sub(judged.len() + two);
    let timeline = shed(diagnose::timeline(s, c, theme, columns), left);
    let mut lines = judged;
    lines.extend(timeline);
    let size = (columns, height.saturating_sub(lines.len()));
    let d = &o.choices.diagnose;
    lines.extend(diagnose::findings(s, c, d, theme, size));
    put(frame, area, lines);
}

/// The events behind the marked row.
pub(super) fn cites(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let (c, d) = (&o.choices.charts, &o.choices.diagnose);
    let size = (box_columns(frame), box_rows(frame));
    let lines = diagnose::cites(s, c, d, o.theme, o.choices.picked, size);
    centred(frame, s, o, "Events behind it", lines);
}
