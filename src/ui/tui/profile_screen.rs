//! The profiles, the settings that can be switched, and what is in force; health and
//! what happens now stay on top.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin, Rect};
use ratatui::text::Line;

use crate::run::Snapshot;
use crate::ui::profiles::Profiles;

use super::chrome::{brief, header, put, titled};
use super::log_choices::Pane;
use super::panel::profile;
use super::profile_choices::{ProfileChoices, ProfilePane};
use super::theme::Theme;
use super::view::{Kind, ViewOptions};

/// Rows of health.
const HEALTH: u16 = 2;
/// Columns of the list where it stands beside the rest.
const LIST: u16 = 44;

/// Header, health, list, detail, footer; list and detail are one where there is no
/// room for both.
fn areas(area: Rect, kind: Kind) -> [Rect; 4] {
    let header = u16::from(kind != Kind::Compact);
    let [top, health, body, _footer] = Layout::vertical([
        Constraint::Length(header),
        Constraint::Length(HEALTH),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    if kind != Kind::Wide {
        return [top, health, body, body];
    }
    let halves = [Constraint::Length(LIST), Constraint::Min(1)];
    let [list, detail] = Layout::horizontal(halves).areas(body);
    [top, health, list, detail]
}

/// Where the lines of the detail stand.
pub(super) fn pane(area: Rect, kind: Kind) -> Pane {
    let [_, _, _, detail] = areas(area, kind);
    let frame = if kind == Kind::Wide { 2 } else { 0 };
    Pane {
        columns: usize::from(detail.width.saturating_sub(2 + frame)),
        rows: usize::from(detail.height.saturating_sub(1.max(frame))),
        full: true,
    }
}

/// Lines of the part that is read, for scrolling.
pub(super) fn length(
    s: &Snapshot,
    profiles: &Profiles,
    choices: &ProfileChoices,
    columns: usize,
) -> usize {
    let theme = Theme {
        ascii: false,
        color: false,
    };
    profile::detail(s, profiles, choices, theme, columns)
        .0
        .len()
}

/// Draws all but the footer.
pub(super) fn draw(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions, kind: Kind) {
    let area = frame.area();
    let [top, health, list, detail] = areas(area, kind);
    let side = Margin::new(1, 0);
    let columns = usize::from(area.width).saturating_sub(2);
    put(frame, top.inner(side), vec![header(s, o, columns)]);
    let lines = brief(s, o.theme, columns, HEALTH);
    put(frame, health.inner(side), lines);
    let c = &o.choices.profiles;
    let boxed = kind == Kind::Wide;
    if boxed || c.pane == ProfilePane::List {
        let title = list_title(o, c.pane == ProfilePane::List);
        let inner = titled(frame, o.theme, list, &title, boxed);
        let (lines, marked) = profile::list(s, &o.profiles, c, o.theme, inner.width.into());
        put(frame, inner, window(lines, marked, 0, inner.height.into()));
    }
    if boxed || c.pane != ProfilePane::List {
        let title = detail_title(s, o, kind);
        let inner = titled(frame, o.theme, detail, &title, boxed);
        let (lines, marked) = profile::detail(s, &o.profiles, c, o.theme, inner.width.into());
        put(
            frame,
            inner,
            window(lines, marked, c.line, inner.height.into()),
        );
    }
}

fn list_title(o: &ViewOptions, keys: bool) -> String {
    let name = format!("Profiles  {}", o.profiles.list.len());
    if keys { bracket(&name) } else { name }
}

/// The part that has the keys stands in brackets, as the screen does in the header.
fn bracket(name: &str) -> String {
    format!("[{name}]")
}

/// The parts that can be shown, the present one in brackets; where there is no room,
/// the present one with its place among them.
fn detail_title(s: &Snapshot, o: &ViewOptions, kind: Kind) -> String {
    let c = &o.choices.profiles;
    let shown = c.pane.detail();
    let marked = c.marked(&o.profiles, s).map_or("", |e| e.id.as_str());
    let of = match shown {
        ProfilePane::Settings | ProfilePane::InForce => "this run",
        _ => marked,
    };
    let all = ProfilePane::ALL;
    let at = all.iter().position(|(p, _)| *p == shown).unwrap_or(0);
    let name = all.get(at).map_or("", |(_, name)| name);
    if kind == Kind::Compact {
        return format!("{name}  {}/{}  {of}", at + 1, all.len());
    }
    let first = usize::from(kind == Kind::Wide);
    let tabs: Vec<String> = all[first..]
        .iter()
        .map(|(part, name)| match () {
            () if *part == c.pane => bracket(name),
            () => (*name).to_owned(),
        })
        .collect();
    format!("{}  of {of}", tabs.join("  "))
}

/// The rows that fit: from `first` on, or further down so that the marked rows are
/// in sight.
fn window(
    lines: Vec<Line<'static>>,
    marked: Option<(usize, usize)>,
    first: usize,
    rows: usize,
) -> Vec<Line<'static>> {
    let last = lines.len().saturating_sub(rows);
    let first = match marked {
        // Its first row before its last one.
        Some((from, to)) => (to + 1).saturating_sub(rows).min(from),
        None => first,
    };
    lines.into_iter().skip(first.min(last)).take(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marked_row_is_in_sight() {
        let lines = || (0..9).map(|n| Line::raw(n.to_string())).collect::<Vec<_>>();
        let shown = |marked, first, rows| {
            let lines = window(lines(), marked, first, rows);
            lines.iter().map(ToString::to_string).collect::<String>()
        };
        assert_eq!(shown(None, 0, 3), "012");
        assert_eq!(shown(None, 99, 3), "678");
        assert_eq!(shown(Some((4, 5)), 0, 3), "345");
        assert_eq!(shown(Some((8, 8)), 0, 3), "678");
        assert_eq!(shown(Some((2, 7)), 0, 3), "234");
        assert_eq!(shown(Some((2, 7)), 0, 0), "");
    }
}
