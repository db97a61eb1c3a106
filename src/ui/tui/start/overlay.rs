//! The list of keys and the palette of the start screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Clear;

use crate::ui::lobby::{self, Lobby};
use crate::ui::text;
use crate::ui::tui::chrome::{put, titled};
use crate::ui::tui::keymap::{self, Binding};
use crate::ui::tui::naming;
use crate::ui::tui::parts::Parts;
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

use super::choices::{Choices, Over};
use super::state;

/// Columns of text in a box.
const BOX: usize = 66;

/// What lies over the lists.
pub(super) fn draw(frame: &mut Frame<'_>, l: &Lobby, c: &Choices, theme: Theme) {
    match c.over {
        Over::Nothing | Over::Prompt => {}
        Over::Help | Over::Palette => list(frame, l, c, theme),
        Over::Unfit => unfit(frame, l, c, theme),
    }
}

/// A key or a command with its help, or with why it does nothing now.
fn entry(b: &Binding, head: &str, l: &Lobby, c: &Choices, theme: Theme) -> Line<'static> {
    let head = text::pad(&text::clean(head, theme.ascii), 16, theme.ellipsis());
    let row = Parts::new(theme).symbol(0, Tone::Strong, head);
    let row = match state::enabled(b.action, l, c) {
        Ok(()) => row.put(0, Tone::Plain, b.help),
        Err(why) => row.put(0, Tone::Dim, format!("{} (not now: {why})", b.name)),
    };
    row.line(BOX)
}

/// A box in the middle; the footer stays, it says what closes the box.
fn centred(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'static>>, theme: Theme) {
    let area = frame.area();
    let wanted = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let room = area.height.saturating_sub(1);
    let (width, height) = (area.width.min(72), room.min(wanted));
    let at = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (room - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, at);
    let inner = titled(frame, theme, at, title, true);
    put(frame, inner, lines);
}

/// Why the marked profile does not fit, and whether it is meant all the same.
fn unfit(frame: &mut Frame<'_>, l: &Lobby, c: &Choices, theme: Theme) {
    let Some(p) = c.shelf(l) else {
        return;
    };
    let (word, why, tone) = lobby::fit(p);
    let why = why.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"));
    let columns = usize::from(frame.area().width.min(72)).saturating_sub(4);
    let mut lines = vec![
        Parts::new(theme).put(0, tone, why).line(columns),
        Line::default(),
    ];
    for b in keymap::within(c.over.context()) {
        let keys: Vec<_> = b.keys.iter().map(|k| k.name()).collect();
        lines.push(entry(b, &keys.join(" "), l, c, theme));
    }
    centred(frame, &format!("Use profile {}?", p.id), lines, theme);
}

/// The keys or the commands that hold what was typed, the marked one in sight.
fn list(frame: &mut Frame<'_>, l: &Lobby, c: &Choices, theme: Theme) {
    let list = state::listed(c);
    let marked = state::marked(&list, c);
    let rows = usize::from(frame.area().height).saturating_sub(4);
    let first = marked.map_or(0, |at| at + 1).saturating_sub(rows);
    let keys = |b: &Binding| {
        let keys: Vec<_> = b.keys.iter().map(|k| k.name()).collect();
        keys.join(" ")
    };
    let typed = text::clean(&c.typed, theme.ascii);
    let mut lines = vec![Line::styled(
        format!("{}{typed}_", if c.over == Over::Help { "" } else { ":" }),
        theme.style(Tone::Strong),
    )];
    for (at, b) in list.iter().enumerate().skip(first).take(rows) {
        let mark = if Some(at) == marked {
            theme.pick("▶", ">")
        } else {
            " "
        };
        let head = match c.over {
            Over::Help => keys(b),
            _ => b.name.to_owned(),
        };
        lines.push(entry(b, &format!("{mark} {head}"), l, c, theme));
    }
    if list.is_empty() {
        lines.push(Line::styled(naming::UNKNOWN, theme.style(Tone::Dim)));
    }
    // As high as the whole list, so that the box does not jump while one types.
    let all = Choices {
        over: c.over,
        ..Choices::default()
    };
    let whole = state::listed(&all).len() + 1;
    lines.resize(whole.min(rows + 1), Line::default());
    let title = if c.over == Over::Help {
        "Keys"
    } else {
        "Commands"
    };
    centred(frame, title, lines, theme);
}
