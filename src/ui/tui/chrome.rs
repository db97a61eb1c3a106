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
use super::consequence;
use super::diagnose_screen;
use super::keymap::{self, Binding};
use super::naming;
use super::panel;
use super::parts::{Parts, paragraph, shed};
use super::profile_boxes;
use super::theme::Theme;
use super::view::ViewOptions;

/// Program, run, attempt, profile; at the right the time and whether it is live.
pub(super) fn header(s: &Snapshot, o: &ViewOptions, columns: usize) -> Line<'static> {
    let theme = o.theme;
    let state = match (&s.outcome, panel::silence(o.silent_for)) {
        (None, _) if let Some((text, _, tone)) = words::not_live(s) => (text, tone),
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
    let attempt = match (&s.attempt, s.pid) {
        (Some(_), Some(pid)) if s.attached => format!("watched pid {pid}"),
        (Some(_), None) if s.attached => "watched".to_owned(),
        (Some(a), _) => format!("attempt {} on {}", a.number, a.rung),
        (None, _) => foreign,
    };
    let own = |what: &str, value: &str| {
        if s.is_foreign() {
            String::new()
        } else {
            format!("{what} {value}")
        }
    };
    let room = columns.saturating_sub(right_width + 2);
    let head = |short: bool| {
        Parts::new(theme)
            .put(3, Tone::Strong, "framepack-tui")
            .put(2, Tone::Plain, &attempt)
            .put(1, Tone::Plain, tabs(o.choices.screen, short))
    };
    // The screens stay in sight: rather with short names than not at all.
    let short = head(false).width() > room;
    let left = head(short)
        .put(3, Tone::Plain, own("profile", &s.profile))
        .put(4, Tone::Dim, own("run", &s.run))
        .put(5, Tone::Dim, &s.adapter);
    let mut line = left.line(room);
    let gap = columns.saturating_sub(right_width + line.width());
    line.push_span(" ".repeat(gap));
    line.extend(right.line(right_width));
    line
}

/// The screens with their keys, the present one in brackets; `short`: by the first
/// letters of their names.
fn tabs(present: Screen, short: bool) -> String {
    const SHORT: usize = 4;
    let tab = |(screen, key, name): (Screen, char, &str)| {
        let name: String = name
            .chars()
            .take(if short { SHORT } else { usize::MAX })
            .collect();
        if screen == present {
            format!("[{key}]{name}")
        } else {
            format!("{key} {name}")
        }
    };
    Screen::ALL.map(tab).join(if short { " " } else { "  " })
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
    if let Some(toast) = &o.toast {
        let lines = answer(toast, o.theme, at.width.into(), area.height.into());
        let rows = u16::try_from(lines.len()).unwrap_or(area.height).max(1);
        let at = Rect {
            y: at.bottom().saturating_sub(rows),
            height: rows,
            ..at
        };
        frame.render_widget(Clear, at);
        put(frame, at, lines);
        return;
    }
    let c = &o.choices;
    let mut row = Parts::new(o.theme);
    if c.overlay == Overlay::Search {
        row = input(row, o);
    }
    let live =
        keymap::footer(c.screen, c.overlay).filter(|b| keymap::enabled(b.action, s, c).is_ok());
    for (at, b) in live.enumerate() {
        let key = b.keys.first().map_or_else(String::new, |k| k.name());
        let rank = u8::try_from(at + 1).unwrap_or(u8::MAX);
        row = row.put(
            rank,
            Tone::Plain,
            format!("{key} {}", keymap::name(b, s, c)),
        );
    }
    frame.render_widget(Clear, at);
    frame.render_widget(Paragraph::new(row.line(at.width.into())), at);
}

/// The answer to a key, in as many rows as it needs, three at most.
pub(super) fn answer(toast: &str, theme: Theme, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let words = text::clean(toast, theme.ascii);
    let pieces = text::wrap(&words, columns, rows.min(3), theme.ellipsis());
    let style = theme.style(Tone::Strong);
    let styled = |piece: String| Line::styled(piece, style);
    pieces.into_iter().map(styled).collect()
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
        Overlay::Value => profile_boxes::value(frame, s, o),
        Overlay::Save => profile_boxes::save(frame, s, o),
        Overlay::Rungs => profile_boxes::rungs(frame, s, o),
        Overlay::Cites => diagnose_screen::cites(frame, s, o),
        Overlay::Apply
        | Overlay::TakeRung
        | Overlay::Quit
        | Overlay::Stop
        | Overlay::Kill
        | Overlay::AfterStep => question(frame, s, o),
    }
}

/// Columns of text in a box in the middle.
pub(super) fn box_columns(frame: &Frame<'_>) -> usize {
    usize::from(frame.area().width.min(BOX)).saturating_sub(4)
}

/// Columns of a box in the middle, with its frame.
const BOX: u16 = 72;

/// Columns of a key or of a name in so many.
const fn head_columns(columns: usize) -> usize {
    if columns < 60 { 11 } else { 17 }
}

/// A key or a command with its help, or with why it does nothing now.
fn entry(b: &Binding, s: &Snapshot, o: &ViewOptions, head: &str, columns: usize) -> Line<'static> {
    let theme = o.theme;
    let head = text::pad(head, head_columns(columns), theme.ellipsis());
    let row = Parts::new(theme).symbol(0, Tone::Strong, head);
    let row = match keymap::enabled(b.action, Some(s), &o.choices) {
        Ok(()) => row.put(0, Tone::Plain, keymap::help_of(b, Some(s), &o.choices)),
        Err(why) => row.put(0, Tone::Dim, format!("{} (not now: {why})", b.name)),
    };
    row.line(columns)
}

/// The keys of a command; those that an ASCII terminal has.
fn keys(b: &Binding, theme: Theme) -> String {
    let keys = b.keys.iter().map(|k| k.name());
    let keys: Vec<_> = keys.filter(|k| !theme.ascii || k.is_ascii()).collect();
    keys.join(" ")
}

/// The health word and what comes next, for the lower edge of a box: the box lies over
/// the rows that say it.
fn edge(s: &Snapshot, theme: Theme, columns: usize) -> Line<'static> {
    let health = words::health(s);
    let word = format!("{} {}", theme.health(health.symbol), health.word);
    let room = columns.saturating_sub(text::width(&word) + 2);
    let row = Parts::new(theme).symbol(0, health.tone, word);
    let row = match (&s.outcome, &s.stage, &s.verdict.next) {
        (Some((_, code, _)), ..) => row.put(1, Tone::Plain, format!("exit code {code}")),
        // rank 0: rather cut than left out
        (None, ..) if words::not_live(s).is_some() => {
            let (_, text, tone) = words::stage(s);
            row.put(0, tone, text)
        }
        (None, Stage::Watching, Some(n)) => row.put(0, Tone::Plain, words::next_limit(s, n, room)),
        (None, Stage::Watching, None) => row.put(1, Tone::Plain, &s.verdict.sentence),
        (None, ..) => {
            let (head, text, tone) = words::stage(s);
            row.put(0, tone, format!("{head}  {text}"))
        }
    };
    row.line(columns)
}

/// Health in so few rows above another screen: while the run is only watched, the next
/// limit beside the health word, then the reason.
pub(super) fn brief(s: &Snapshot, theme: Theme, columns: usize, rows: u16) -> Vec<Line<'static>> {
    let room = panel::Room {
        columns,
        sentence: 1,
        result: false,
    };
    let mut lines = shed(panel::health(s, theme, room), rows.into());
    let watched = matches!(s.stage, Stage::Watching) && !words::needs_start_again(s);
    if watched && s.outcome.is_none() && s.verdict.next.is_some() && !s.is_foreign() {
        let sentence = &s.verdict.sentence;
        let reason = paragraph(theme, "reason", Tone::Plain, sentence, columns, 1, 0);
        let phase = lines.drain(..).nth(1);
        lines = vec![edge(s, theme, columns)];
        lines.extend(reason.into_iter().map(|row| row.line));
        lines.extend(phase.filter(|_| rows > 2));
    }
    lines
}

/// A box in the middle, with what lies in it.
pub(super) fn centred(
    frame: &mut Frame<'_>,
    s: &Snapshot,
    o: &ViewOptions,
    title: &str,
    lines: Vec<Line<'static>>,
) {
    let area = frame.area();
    let wanted = u16::try_from(lines.len())
        .unwrap_or(u16::MAX)
        .saturating_add(2);
    // The footer stays: it says what closes the box.
    let (width, height) = (
        area.width.min(BOX),
        area.height.saturating_sub(1).min(wanted),
    );
    let at = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height.saturating_sub(1) - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, at);
    let inner = titled(frame, o.theme, at, title, true);
    put(frame, inner, lines);
    let low = Rect {
        x: at.x.saturating_add(2),
        y: at.bottom().saturating_sub(1),
        width: at.width.saturating_sub(4),
        height: at.height.min(1),
    };
    let mut line = edge(s, o.theme, usize::from(low.width).saturating_sub(2));
    line.spans.insert(0, " ".into());
    line.push_span(" ");
    // without the rule below it, which is dim and would make it so
    let low = Rect {
        width: u16::try_from(line.width()).unwrap_or(low.width),
        ..low
    };
    frame.render_widget(Clear, low);
    put(frame, low, vec![line]);
}

/// Rows that a box in the middle has for text.
pub(super) fn box_rows(frame: &Frame<'_>) -> usize {
    usize::from(frame.area().height).saturating_sub(3)
}

/// What a question is about, then its answers.
fn question(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let title = o.choices.overlay.question().unwrap_or_default();
    let columns = box_columns(frame);
    let rows = box_rows(frame);
    let answers: Vec<_> = keymap::of(o.choices.screen, o.choices.overlay)
        .map(|b| entry(b, s, o, &keys(b, o.theme), columns))
        .collect();
    let mut lines = consequence::lines(s, o, columns);
    // what is least important stands last
    lines.truncate(rows.saturating_sub(answers.len()).max(1));
    if lines.len() + answers.len() < rows {
        lines.push(Line::default());
    }
    lines.extend(answers);
    centred(frame, s, o, title, lines);
}

/// The commands that a list has room for, the marked one in sight.
fn entries(
    list: &[&Binding],
    s: &Snapshot,
    o: &ViewOptions,
    (columns, rows): (usize, usize),
    head: impl Fn(&Binding) -> String,
) -> Vec<Line<'static>> {
    let marked = naming::marked(list, &o.choices);
    let first = marked.map_or(0, |at| at + 1).saturating_sub(rows);
    let shown = list.iter().enumerate().skip(first).take(rows);
    let mut lines: Vec<_> = shown
        .map(|(at, b)| {
            let mark = if Some(at) == marked {
                o.theme.pick("▶", ">")
            } else {
                " "
            };
            entry(b, s, o, &format!("{mark} {}", head(b)), columns)
        })
        .collect();
    if list.is_empty() {
        lines.push(Line::styled(naming::UNKNOWN, o.theme.style(Tone::Dim)));
    }
    lines
}

/// The line that is typed into.
fn typed(o: &ViewOptions, before: &str) -> Line<'static> {
    let typed = text::clean(&o.choices.typed, o.theme.ascii);
    Line::styled(format!("{before}{typed}_"), o.theme.style(Tone::Strong))
}

/// The keys and commands of the screen; what is typed narrows them.
fn help(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let list = keymap::help(o.choices.screen, &o.choices.typed);
    let (columns, rows) = (box_columns(frame), box_rows(frame).saturating_sub(1));
    let head = |b: &Binding| match b.argument {
        Some(a) if b.keys.is_empty() => format!(":{} {}", b.name, a.name),
        _ => keys(b, o.theme),
    };
    let mut lines = vec![typed(o, "filter: ")];
    lines.extend(entries(&list, s, o, (columns, rows), head));
    let whole = keymap::help(o.choices.screen, "").len();
    lines.resize((whole + 1).min(rows + 1), Line::default());
    let picked = naming::marked(&list, &o.choices).map_or(0, |at| at + 1);
    let title = format!("Keys  {picked} of {}", list.len());
    centred(frame, s, o, &title, lines);
}

/// The commands that match what was typed, and what the marked one wants to be told.
fn palette(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let c = &o.choices;
    let list = keymap::commands(c.screen, &c.typed);
    let (columns, rows) = (box_columns(frame), box_rows(frame).saturating_sub(1));
    let head = |b: &Binding| match b.argument {
        Some(a) => format!("{} {}", b.name, a.name),
        None => b.name.to_owned(),
    };
    let mut lines = vec![typed(o, ":")];
    lines.extend(entries(&list, s, o, (columns, rows), head));
    if let Some((b, rest)) = keymap::told(&c.typed) {
        lines.extend(wanted(b, rest, s, o, columns));
    }
    // As high as the whole list, so that the box does not jump while one types.
    let whole = keymap::commands(c.screen, "").len() + 1;
    lines.resize(whole.min(rows + 1), Line::default());
    centred(frame, s, o, "Commands", lines);
}

/// What a command can be told, and what is wrong with what it is told now.
fn wanted(
    b: &Binding,
    rest: &str,
    s: &Snapshot,
    o: &ViewOptions,
    columns: usize,
) -> Vec<Line<'static>> {
    let Some(argument) = b.argument else {
        return Vec::new();
    };
    let head = head_columns(columns);
    let rows = |label: &str, tone, words: &str| -> Vec<_> {
        let words = text::clean(words, o.theme.ascii);
        let room = columns.saturating_sub(head + 2);
        let pieces = text::wrap(&words, room, 3, o.theme.ellipsis());
        let row = |(at, piece): (usize, &String)| {
            let label = text::pad(if at == 0 { label } else { "" }, head, "");
            Parts::new(o.theme)
                .symbol(0, Tone::Dim, label)
                .put(0, tone, piece)
                .line(columns)
        };
        pieces.iter().enumerate().map(row).collect()
    };
    let name = argument.name.trim_matches(['[', ']']);
    let mut lines = rows(&format!("  {name}"), Tone::Plain, argument.example);
    if let (false, Err(why)) = (rest.is_empty(), (argument.parse)(rest, s)) {
        lines.extend(rows("", Tone::Warn, &why));
    }
    lines
}
