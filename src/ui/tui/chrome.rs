//! What stands around the panels: header, footer, titles, questions.

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use crate::run::Snapshot;
use crate::run::snapshot::Stage;
use crate::ui::text;
use crate::ui::words::{self, Tone};

use super::choices::{Overlay, Screen};
use super::keymap::{self, Binding};
use super::panel;
use super::parts::Parts;
use super::theme::Theme;
use super::view::ViewOptions;

/// Program, run, attempt, profile; at the right the time and whether it is live.
pub(super) fn header(s: &Snapshot, o: &ViewOptions, columns: usize) -> Line<'static> {
    let theme = o.theme;
    let state = match (&s.outcome, panel::silence(o.silent_for)) {
        (Some((_, code, _)), _) => (format!("ENDED {code}"), Tone::Strong),
        (None, _) if s.is_foreign() && s.pid.is_none() => ("ENDED".to_owned(), Tone::Strong),
        (None, Some(silence)) => (silence, Tone::Bad),
        (None, None) if s.is_foreign() => ("READ-ONLY".to_owned(), Tone::Info),
        (None, None) => ("LIVE".to_owned(), Tone::Good),
    };
    let right = Parts::new(theme)
        .put(1, Tone::Plain, s.now.clock())
        .put(0, state.1, state.0);
    let right_width = right.width().min(columns);
    // of a process that is not ours its number is all there is
    let foreign = if s.is_foreign() {
        s.run.clone()
    } else {
        String::new()
    };
    let attempt = s
        .attempt
        .as_ref()
        .map_or(foreign, |a| format!("attempt {} on {}", a.number, a.rung));
    let own = |what: &str, value: &str| {
        if s.is_foreign() {
            String::new()
        } else {
            format!("{what} {value}")
        }
    };
    let left = Parts::new(theme)
        .put(1, Tone::Strong, "framepack-tui")
        .put(2, Tone::Plain, attempt)
        .put(2, Tone::Plain, tabs(o.choices.screen))
        .put(3, Tone::Plain, own("profile", &s.profile))
        .put(4, Tone::Dim, own("run", &s.run))
        .put(5, Tone::Dim, &s.adapter);
    let mut line = left.line(columns.saturating_sub(right_width + 2));
    let gap = columns.saturating_sub(right_width + line.width());
    line.push_span(" ".repeat(gap));
    line.extend(right.line(right_width));
    line
}

/// The screens with their keys, the present one in brackets.
fn tabs(present: Screen) -> String {
    let tab = |(screen, key, name): (Screen, char, &str)| {
        if screen == present {
            format!("[{key}]{name}")
        } else {
            format!("{key} {name}")
        }
    };
    Screen::ALL.map(tab).join("  ")
}

/// The keys that do something now, or the answer to the last one.
pub(super) fn footer(frame: &mut Frame<'_>, s: Option<&Snapshot>, o: &ViewOptions) {
    let area = frame.area();
    let Some(y) = area.height.checked_sub(1) else {
        return;
    };
    let at = Rect {
        y: area.y + y,
        height: 1,
        ..area
    }
    .inner(Margin::new(1, 0));
    let c = &o.choices;
    let mut row = Parts::new(o.theme);
    if let Some(toast) = &o.toast {
        row = row.put(0, Tone::Strong, toast);
    } else {
        if c.overlay == Overlay::Search {
            row = input(row, o);
        }
        let live =
            keymap::of(c.screen, c.overlay).filter(|b| keymap::enabled(b.action, s, c).is_ok());
        for (at, b) in live.enumerate() {
            let key = b.keys.first().map_or_else(String::new, |k| k.name());
            let rank = u8::try_from(at + 1).unwrap_or(u8::MAX);
            row = row.put(rank, Tone::Plain, format!("{key} {}", keymap::name(b, s)));
        }
    }
    frame.render_widget(Clear, at);
    frame.render_widget(Paragraph::new(row.line(at.width.into())), at);
}

/// The line that a search is typed into, its end in sight.
fn input(row: Parts, o: &ViewOptions) -> Parts {
    const ROOM: usize = 30;
    let c = &o.choices.log;
    let Some(search) = &c.search else {
        return row;
    };
    let typed: Vec<_> = search.text.chars().collect();
    let tail: String = typed[typed.len().saturating_sub(ROOM)..].iter().collect();
    let note = match (&search.pattern, c.hit) {
        _ if matches!(search.text.as_str(), "" | "/") => "",
        (None, _) => "not a regular expression yet",
        (Some(_), None) => "no match",
        (Some(_), Some(_)) => "",
    };
    row.put(0, Tone::Strong, format!("/{tail}_"))
        .put(0, Tone::Warn, note)
}

/// A rule with a title over the part below it.
pub(super) fn titled(
    frame: &mut Frame<'_>,
    theme: Theme,
    area: Rect,
    title: &str,
    boxed: bool,
) -> Rect {
    let title = text::clean(title, theme.ascii);
    let room = usize::from(area.width).saturating_sub(6);
    let title = Line::styled(
        format!(" {} ", text::fit(&title, room, theme.ellipsis())),
        // the rule that it stands in is dim, and would make it so
        theme.style(Tone::Strong).remove_modifier(Modifier::DIM),
    );
    let block = Block::new()
        .borders(if boxed { Borders::ALL } else { Borders::TOP })
        .border_set(theme.border())
        .border_style(theme.style(Tone::Dim))
        .title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner.inner(Margin::new(1, 0))
}

pub(super) fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(Text::from(lines)), area);
}

/// What lies over the view.
pub(super) fn overlay(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    match o.choices.overlay {
        Overlay::None | Overlay::Search => {}
        Overlay::Help => help(frame, s, o),
        Overlay::Palette => palette(frame, s, o),
        Overlay::Quit => question(frame, s, o, "Quit: what becomes of the run?", &[]),
        Overlay::Kill => question(
            frame,
            s,
            o,
            "Kill the run?",
            &[
                "Every process of the run is ended by SIGKILL, and the run",
                "with it. What is on disk stays there.",
                "",
            ],
        ),
    }
}

/// Columns of text in a box.
const BOX: usize = 66;

/// A key or a command with its help, or with why it does nothing now.
fn entry(b: &Binding, s: &Snapshot, o: &ViewOptions, head: &str) -> Line<'static> {
    let theme = o.theme;
    let head = text::pad(&text::clean(head, theme.ascii), 14, theme.ellipsis());
    let row = Parts::new(theme).symbol(0, Tone::Strong, head);
    let row = match keymap::enabled(b.action, Some(s), &o.choices) {
        Ok(()) => row.put(0, Tone::Plain, b.help),
        Err(why) => row.put(0, Tone::Dim, format!("{} (not now: {why})", b.name)),
    };
    row.line(BOX)
}

fn keys(b: &Binding) -> String {
    let keys: Vec<_> = b.keys.iter().map(|k| k.name()).collect();
    keys.join(" ")
}

/// A box in the middle, with what lies in it.
fn centred(
    frame: &mut Frame<'_>,
    s: &Snapshot,
    o: &ViewOptions,
    title: &str,
    lines: Vec<Line<'static>>,
) {
    // The box must not hide that a kill is announced.
    let title = match s.stage {
        Stage::Countdown { .. } => {
            let (head, text, _) = words::stage(s);
            format!("{title}  {head}  {text}")
        }
        _ => title.to_owned(),
    };
    let area = frame.area();
    let wanted = u16::try_from(lines.len())
        .unwrap_or(u16::MAX)
        .saturating_add(2);
    // The footer stays: it says what closes the box.
    let (width, height) = (
        area.width.min(72),
        area.height.saturating_sub(1).min(wanted),
    );
    let at = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height.saturating_sub(1) - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, at);
    let inner = titled(frame, o.theme, at, &title, true);
    put(frame, inner, lines);
}

/// Rows that a box in the middle has for text.
fn box_rows(frame: &Frame<'_>) -> usize {
    usize::from(frame.area().height).saturating_sub(3)
}

fn question(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions, title: &str, text: &[&str]) {
    let mut lines: Vec<_> = text.iter().map(|t| Line::raw((*t).to_owned())).collect();
    let bindings = keymap::of(o.choices.screen, o.choices.overlay);
    lines.extend(bindings.map(|b| entry(b, s, o, &keys(b))));
    centred(frame, s, o, title, lines);
}

/// The keys of the screen; those that do not fit are reached by scrolling.
fn help(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let list = keymap::help(o.choices.screen);
    let rows = box_rows(frame);
    let first = o.choices.picked.min(list.len().saturating_sub(rows));
    let shown = list.get(first..).unwrap_or_default();
    let lines: Vec<_> = shown
        .iter()
        .take(rows)
        .map(|b| entry(b, s, o, &keys(b)))
        .collect();
    let title = if lines.len() < list.len() {
        let end = first + lines.len();
        format!("Keys  {}-{end} of {}", first + 1, list.len())
    } else {
        "Keys".to_owned()
    };
    centred(frame, s, o, &title, lines);
}

/// The commands that match what was typed, the marked one in sight.
fn palette(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let c = &o.choices;
    let list = keymap::commands(c.screen, &c.typed);
    let picked = c.picked.min(list.len().saturating_sub(1));
    let rows = box_rows(frame).saturating_sub(1);
    let first = (picked + 1).saturating_sub(rows);
    let typed = text::clean(&c.typed, o.theme.ascii);
    let mut lines = vec![Line::styled(
        format!(":{typed}_"),
        o.theme.style(Tone::Strong),
    )];
    for (at, b) in list.iter().enumerate().skip(first).take(rows) {
        let mark = if at == picked {
            o.theme.pick("▶", ">")
        } else {
            " "
        };
        lines.push(entry(b, s, o, &format!("{mark} {}", b.name)));
    }
    if list.is_empty() {
        lines.push(Line::styled(
            "no command has these letters",
            o.theme.style(Tone::Dim),
        ));
    }
    // As high as the whole list, so that the box does not jump while one types.
    let whole = keymap::commands(c.screen, "").len() + 1;
    lines.resize(whole.min(rows + 1), Line::default());
    centred(frame, s, o, "Commands", lines);
}
