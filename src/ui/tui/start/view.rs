//! Draws the start screen: a pure function of the lobby, the size and what the user
//! has done to the view.
//!
//! | size | what is shown |
//! | --- | --- |
//! | from 110x30 | cards, what runs, below it runs and profiles side by side |
//! | from 80x24 | cards and the three lists below each other |
//! | from 40x10 | a line a card, and the list that has the keys |
//! | below | one line |

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use crate::profile::Fit;
use crate::ui::lobby::{self, HOW_TO_START, Lobby};
use crate::ui::text;
use crate::ui::tui::chrome::{put, titled};
use crate::ui::tui::keymap;
use crate::ui::tui::parts::{Parts, Row, shed};
use crate::ui::tui::theme::Theme;
use crate::ui::tui::view::{Kind, kind};
use crate::ui::words::Tone;

use super::choices::{Choices, List, Over};
use super::lists::{self, rank};
use super::{overlay, state};

/// What the picture depends on besides the lobby.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) lobby: &'a Lobby,
    pub(super) choices: &'a Choices,
    /// A short answer to a key, in the place of the footer.
    pub(super) toast: Option<&'a str>,
    pub(super) theme: Theme,
}

/// Draws the view into the whole frame.
pub(super) fn draw(frame: &mut Frame<'_>, v: View<'_>) {
    let area = frame.area();
    match kind(area) {
        Kind::Line => return line(frame, v),
        Kind::Compact => compact(frame, v),
        Kind::Narrow => narrow(frame, v),
        Kind::Wide => wide(frame, v),
    }
    prompt(frame, v);
    footer(frame, v);
    overlay::draw(frame, v.lobby, v.choices, v.theme);
}

/// Rows below the lists: the line for a command with its hint, and the footer.
const BELOW: u16 = 3;

/// The body of the screen: without the header and what is below.
fn body(area: Rect) -> Rect {
    Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1 + BELOW),
        ..area
    }
}

fn header(frame: &mut Frame<'_>, v: View<'_>) {
    let area = frame.area().inner(Margin::new(1, 0));
    let columns = usize::from(area.width);
    let right = Parts::new(v.theme).put(0, Tone::Good, "LIVE");
    let right_width = right.width().min(columns);
    let left = Parts::new(v.theme)
        .put(0, Tone::Strong, "framepack-tui")
        .put(2, Tone::Plain, "nothing started here yet")
        .put(3, Tone::Dim, "? lists the keys");
    let mut line = left.line(columns.saturating_sub(right_width + 2));
    let gap = columns.saturating_sub(right_width + line.width());
    line.push_span(" ".repeat(gap));
    line.extend(right.line(right_width));
    put(frame, Rect { height: 1, ..area }, vec![line]);
}

/// One line: cards, what runs, what is recorded.
fn line(frame: &mut Frame<'_>, v: View<'_>) {
    let l = v.lobby;
    let mut row = Parts::new(v.theme);
    row = match l.gpus.first() {
        None => row.put(0, Tone::Warn, "no GPU"),
        Some(g) => {
            let levels = lobby::levels(l, g);
            match levels.as_slice() {
                [(_, memory), (_, busy), ..] => row
                    .put(0, Tone::Plain, format!("GPU {}", busy.short()))
                    .put(3, memory.tone, memory.short()),
                others => others.iter().fold(row, |row, (_, instead)| {
                    row.put(0, instead.tone, format!("GPU {}", instead.short()))
                }),
            }
        }
    };
    let runs = l.runs().len();
    row = row
        .put(1, Tone::Strong, format!("{} found", l.found().len()))
        .put(2, Tone::Plain, format!("{runs} runs"));
    let width = frame.area().width.into();
    frame.render_widget(Paragraph::new(row.line(width)), frame.area());
}

fn list(frame: &mut Frame<'_>, v: View<'_>, which: List, area: Rect, boxed: bool) {
    let has_keys = v.choices.list == which;
    let mark = if has_keys {
        v.theme.pick("▶ ", "> ")
    } else {
        ""
    };
    let title = lists::title(v.lobby, which);
    let inner = titled(frame, v.theme, area, &format!("{mark}{title}"), boxed);
    let (columns, rows) = (inner.width.into(), inner.height.into());
    put(
        frame,
        inner,
        lists::lines(v.lobby, v.choices, which, v.theme, columns, rows),
    );
}

/// Rows that a list would like: all of its lines, or a sentence.
fn wanted(l: &Lobby, which: List, columns: usize) -> usize {
    match lists::length(l, which) {
        // a sentence takes two rows of eighty columns
        0 if columns < 100 => 2,
        0 => 1,
        n => n,
    }
}

/// Shares rows among the three lists: each a few, then what is left to the one that
/// has the keys, then to the others as they want.
fn share(rows: usize, wanted: [usize; 3], first: List) -> [usize; 3] {
    let least = (rows / 3).min(2);
    let mut out = wanted.map(|w| w.min(least));
    let mut left = rows.saturating_sub(out.iter().sum());
    for step in 0..3 {
        let at = first.step(step) as usize;
        // the others are not squeezed to their least by a long list
        let most = if step == 0 {
            left.min(left / 2 + 1)
        } else {
            left
        };
        let more = wanted[at].saturating_sub(out[at]).min(most);
        out[at] += more;
        left -= more;
    }
    let more = wanted[first as usize]
        .saturating_sub(out[first as usize])
        .min(left);
    out[first as usize] += more;
    left -= more;
    out[2] += left;
    out
}

fn rows_of(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// Everything below each other, each part under a rule.
fn narrow(frame: &mut Frame<'_>, v: View<'_>) {
    header(frame, v);
    let area = body(frame.area());
    let columns = usize::from(area.width).saturating_sub(2);
    let height = usize::from(area.height);
    let cards = lists::cards(v.lobby, v.theme, columns);
    let cards = shed(cards, (height / 3).max(2));
    let rows = height.saturating_sub(cards.len() + 4);
    let shares = share(
        rows,
        List::ALL.map(|which| wanted(v.lobby, which, columns)),
        v.choices.list,
    );
    let [top, found, runs, profiles] = Layout::vertical([
        Constraint::Length(rows_of(cards.len() + 1)),
        Constraint::Length(rows_of(shares[0] + 1)),
        Constraint::Length(rows_of(shares[1] + 1)),
        Constraint::Min(1),
    ])
    .areas(area);
    let inner = titled(frame, v.theme, top, "Cards and host", false);
    put(frame, inner, cards);
    for (which, area) in List::ALL.into_iter().zip([found, runs, profiles]) {
        list(frame, v, which, area, false);
    }
}

/// Cards and what runs over the whole width, runs and profiles side by side.
fn wide(frame: &mut Frame<'_>, v: View<'_>) {
    header(frame, v);
    let area = body(frame.area());
    let columns = usize::from(area.width).saturating_sub(4);
    let height = usize::from(area.height);
    let cards = lists::cards(v.lobby, v.theme, columns);
    let cards = shed(cards, (height / 3).max(2));
    let rest = height.saturating_sub(cards.len() + 2);
    let found = wanted(v.lobby, List::Found, columns).clamp(3, (rest / 2).max(4)) + 2;
    let [top, middle, bottom] = Layout::vertical([
        Constraint::Length(rows_of(cards.len() + 2)),
        Constraint::Length(rows_of(found)),
        Constraint::Min(1),
    ])
    .areas(area);
    let inner = titled(frame, v.theme, top, "Cards and host", true);
    put(frame, inner, cards);
    list(frame, v, List::Found, middle, true);
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(57), Constraint::Percentage(43)]).areas(bottom);
    list(frame, v, List::Runs, left, true);
    list(frame, v, List::Profiles, right, true);
}

/// A line a card, the names of the lists, the list that has the keys.
fn compact(frame: &mut Frame<'_>, v: View<'_>) {
    header(frame, v);
    let area = body(frame.area()).inner(Margin::new(1, 0));
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    let cards: Vec<Row> = lists::cards(v.lobby, v.theme, columns)
        .into_iter()
        .filter(|row| row.rank <= rank::TROUBLE)
        .collect();
    let mut lines = shed(cards, (height / 3).max(1));
    let mut tabs = Parts::new(v.theme);
    for which in List::ALL {
        let name = which.short();
        let count = lists::length(v.lobby, which);
        tabs = if which == v.choices.list {
            tabs.put(0, Tone::Strong, format!("[{name} {count}]"))
        } else {
            tabs.put(1, Tone::Dim, format!("{name} {count}"))
        };
    }
    lines.push(tabs.line(columns));
    let rows = height.saturating_sub(lines.len());
    lines.extend(lists::lines(
        v.lobby,
        v.choices,
        v.choices.list,
        v.theme,
        columns,
        rows,
    ));
    put(frame, area, lines);
}

/// The profile that is taken when none is chosen.
fn best(l: &Lobby) -> Option<&str> {
    let best = l.profiles.iter().find(|p| p.fit == Fit::Best)?;
    Some(&best.id)
}

/// The line for a command, and what is wrong with it or what it may hold.
fn prompt(frame: &mut Frame<'_>, v: View<'_>) {
    let area = frame.area();
    let c = v.choices;
    let at = Rect {
        y: area.y + area.height.saturating_sub(BELOW),
        height: BELOW - 1,
        ..area
    }
    .inner(Margin::new(1, 0));
    let columns = usize::from(at.width);
    let profile = match &c.profile {
        Some(id) => format!("with profile {id}, chosen"),
        None => match best(v.lobby) {
            Some(id) => format!("with the profile that matches best: {id}"),
            None => "with the profile that matches best".to_owned(),
        },
    };
    let typing = c.over == Over::Prompt;
    let label = Span::styled("run: ", v.theme.style(Tone::Strong));
    let room = columns.saturating_sub(label.width() + 1);
    let (before, after) = c.prompt.halves();
    let (before, after) = (
        text::clean(&before, v.theme.ascii),
        text::clean(&after, v.theme.ascii),
    );
    let (shown, cursor) = window(&before, &after, room);
    let hint = if typing {
        Parts::new(v.theme)
            .put(1, Tone::Dim, profile)
            .put(0, Tone::Dim, "options of run go before it, as in")
            .put(0, Tone::Dim, "--cap 20GiB -- python demo.py")
    } else {
        Parts::new(v.theme).put(0, Tone::Dim, profile)
    };
    let line = if typing || !c.prompt.is_empty() {
        Line::from(vec![label, Span::raw(shown)])
    } else {
        Parts::new(v.theme)
            .put(0, Tone::Strong, "r")
            .put(0, Tone::Plain, HOW_TO_START)
            .line(columns)
    };
    let (at, hints) = match &c.prompt.error {
        Some(error) => wrong(at, error, v.theme),
        None => (at, vec![hint.line(columns)]),
    };
    frame.render_widget(Clear, at);
    put(frame, at, [vec![line], hints].concat());
    if typing {
        // a real cursor, which a screen reader finds as well
        let x = at.x.saturating_add(rows_of(cursor + "run: ".len()));
        frame.set_cursor_position(Position::new(x.min(at.right().saturating_sub(1)), at.y));
    }
}

/// Most rows for what is wrong with a line: an error that is cut cannot be cured.
const WRONG: usize = 4;

/// What is wrong with the line in as many rows as it takes, and the place of both,
/// higher over the lists where that is more than one.
fn wrong(at: Rect, error: &str, theme: Theme) -> (Rect, Vec<Line<'static>>) {
    let text = text::clean(&format!("not started: {error}"), theme.ascii);
    let rows = text::wrap(&text, at.width.into(), WRONG, theme.ellipsis());
    let more = rows_of(rows.len().saturating_sub(1)).min(at.y);
    let at = Rect {
        y: at.y - more,
        height: at.height + more,
        ..at
    };
    let style = theme.style(Tone::Bad);
    let lines = rows.into_iter().map(|row| Line::styled(row, style));
    (at, lines.collect())
}

/// The part of a line that is shown, with the cursor in it, and the column of that.
fn window(before: &str, after: &str, room: usize) -> (String, usize) {
    let mut skipped = before.chars();
    while text::width(skipped.as_str()) > room {
        skipped.next();
    }
    let before = skipped.as_str();
    let cursor = text::width(before);
    let after = text::fit(after, room.saturating_sub(cursor), "");
    (format!("{before}{after}"), cursor)
}

/// The keys that do something now, or the answer to the last one.
fn footer(frame: &mut Frame<'_>, v: View<'_>) {
    let area = frame.area();
    let at = Rect {
        y: area.y + area.height.saturating_sub(1),
        height: 1,
        ..area
    }
    .inner(Margin::new(1, 0));
    let c = v.choices;
    let mut row = Parts::new(v.theme);
    if let Some(toast) = v.toast {
        row = row.put(0, Tone::Strong, toast);
    } else {
        let live = keymap::within(c.over.context())
            .filter(|b| state::enabled(b.action, v.lobby, c).is_ok());
        for (at, b) in live.enumerate() {
            let key = b.keys.first().map_or_else(String::new, |k| k.name());
            let rank = u8::try_from(at + 1).unwrap_or(u8::MAX);
            let name = state::name(b, v.lobby, c);
            row = row.put(rank, Tone::Plain, format!("{key} {name}"));
        }
    }
    frame.render_widget(Clear, at);
    frame.render_widget(Paragraph::new(row.line(at.width.into())), at);
}
