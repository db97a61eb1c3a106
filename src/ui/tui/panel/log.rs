//! The log: the child's lines and our own words in one order.

use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::run::Snapshot;
use crate::run::snapshot::{LogKind, LogLine};
use crate::ui::text;
use crate::ui::tui::log_choices::{LogChoices, LogView, Pane, newer};
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

/// From this width on a line has its time and its stream.
const WITH_TIME: usize = 60;
/// Columns of the marks on the log screen: the line that the user stands on, and
/// those that would be copied with it.
const MARK: usize = 2;

/// What the title says: following or not, what is hidden or was folded away.
pub(in crate::ui::tui) fn title(s: &Snapshot, c: &LogChoices, full: bool) -> String {
    let mut title = match &c.view {
        LogView::Follow => "Log  follow".to_owned(),
        LogView::Frozen { log, end } => {
            let (end, all) = ((*end).min(log.len()), log.len());
            let new = newer(log, &s.log);
            format!("Log  PAUSED at {end}/{all}  {new} new  (End follows)")
        }
    };
    let mut add = |text: &str| {
        title.push_str("  ");
        title.push_str(text);
    };
    if full && c.mark.is_some() {
        add("MARKED (Y copies)");
    }
    if full {
        let kinds = [
            (LogKind::Stdout, "stdout hidden"),
            (LogKind::Stderr, "stderr hidden"),
            (LogKind::Own, "own words hidden"),
        ];
        for (_, words) in kinds.into_iter().filter(|(k, _)| c.is_hidden(*k)) {
            add(words);
        }
        if let Some(search) = c.search.as_ref().filter(|s| !s.text.is_empty()) {
            add(&format!("/{}", search.text));
        }
    }
    let shown = match &c.view {
        LogView::Follow => &s.log,
        LogView::Frozen { log, .. } => log,
    };
    if full && shown.dropped() > 0 {
        add(&format!(
            "{} older lines in the record alone",
            shown.dropped()
        ));
    }
    if s.chatter > 0 {
        add(&format!("{} library lines folded away", s.chatter));
    }
    title
}

/// The text of a line, as much of it as can be looked at in the pane.
fn body(l: &LogLine, ascii: bool, columns: usize, rows: usize) -> String {
    // A line may be 8 KiB long; a character may take no column at all.
    let most = columns.saturating_mul(rows).saturating_mul(4);
    let seen: String = l.text.chars().take(most).collect();
    text::clean(&seen, ascii)
}

/// What stands before the text.
fn head(l: &LogLine, columns: usize, theme: Theme) -> String {
    let mark = match l.kind {
        LogKind::Stdout => "O",
        LogKind::Stderr => "E",
        LogKind::Own => theme.pick("•", "*"),
    };
    if columns >= WITH_TIME {
        format!("{} {mark} ", l.at.clock())
    } else {
        String::new()
    }
}

/// What was folded into the line: states of one bar, or the same words again.
fn tail(l: &LogLine, columns: usize) -> String {
    let times = u64::from(l.folded) + 1;
    match (l.folded, l.is_bar()) {
        (0, _) => String::new(),
        _ if columns < WITH_TIME => format!("  ({times}x)"),
        (_, true) => format!("  ({times} updates of one bar)"),
        (_, false) => format!("  ({times} times the same)"),
    }
}

/// Columns at the end of a line that has its phase there.
fn reserved(phase: &str) -> usize {
    match text::width(phase) {
        0 => 0,
        n => n + 2,
    }
}

/// The phase of a line at its end, where there is room for it.
fn with_phase(line: &mut Line<'static>, phase: &str, pane: Pane, theme: Theme) {
    let used = line.width() + text::width(phase);
    let gap = pane.columns.checked_sub(used).filter(|gap| *gap >= 2);
    if let Some(gap) = gap.filter(|_| !phase.is_empty()) {
        line.push_span(Span::raw(" ".repeat(gap)));
        line.push_span(Span::styled(phase.to_owned(), theme.style(Tone::Dim)));
    }
}

/// Columns before the text.
fn indent(l: &LogLine, pane: Pane, theme: Theme) -> usize {
    let mark = if pane.full { MARK } else { 0 };
    mark + text::width(&head(l, pane.columns, theme))
}

/// Rows that a line takes in a pane.
pub(in crate::ui::tui) fn height(l: &LogLine, c: &LogChoices, pane: Pane) -> usize {
    if !pane.full || !c.wrap {
        return 1;
    }
    // Both themes take the same columns.
    let theme = Theme {
        ascii: false,
        color: false,
    };
    let room = pane.columns.saturating_sub(indent(l, pane, theme));
    let whole = body(l, false, room, pane.rows) + &tail(l, pane.columns);
    text::pieces(&whole, room, pane.rows).len()
}

/// The lines that fit, the newest below.
pub(in crate::ui::tui) fn rows(
    s: &Snapshot,
    c: &LogChoices,
    theme: Theme,
    pane: Pane,
) -> Vec<Line<'static>> {
    let (log, end) = c.part(&s.log);
    let place = c.place(&s.log, pane);
    let marked = c.marked(&s.log, pane);
    let mut before = None;
    let mut rows: Vec<_> = c
        .in_pane(log, end, pane)
        .into_iter()
        .filter_map(|at| log.get(at).map(|l| (at, l)))
        .flat_map(|(at, l)| {
            let mark = match (place, marked) {
                (Some(place), _) if place == at => theme.pick("▶ ", "> "),
                (_, Some((from, to))) if (from..=to).contains(&at) => theme.pick("┃ ", "| "),
                _ => "  ",
            };
            // once for each stretch of a phase: it costs the room of the text
            let begins = pane.columns >= WITH_TIME && before.replace(l.phase) != Some(l.phase);
            line(l, c, theme, pane, mark, begins)
        })
        .collect();
    // A single line that is higher than the pane.
    rows.truncate(pane.rows);
    if rows.is_empty() && !log.is_empty() && pane.full {
        let all = "every line is of a stream that is hidden; o, e and . show them";
        let cut = text::fit(all, pane.columns, theme.ellipsis());
        rows.push(Line::styled(cut, theme.style(Tone::Dim)));
    }
    rows
}

/// The rows of a line: `mark` before it on the log screen, its phase at the end if
/// `phase`.
fn line(
    l: &LogLine,
    c: &LogChoices,
    theme: Theme,
    pane: Pane,
    mark: &str,
    phase: bool,
) -> Vec<Line<'static>> {
    let tone = match l.kind {
        LogKind::Own => Tone::Info,
        _ => Tone::Plain,
    };
    let indent = indent(l, pane, theme);
    let room = pane.columns.saturating_sub(indent);
    let mut head = vec![Span::styled(
        head(l, pane.columns, theme),
        theme.style(Tone::Dim),
    )];
    if pane.full {
        head.insert(0, Span::styled(mark.to_owned(), theme.style(Tone::Strong)));
    }
    let phase = if phase { l.phase.as_str() } else { "" };
    if pane.full && c.wrap {
        let whole = body(l, theme.ascii, room, pane.rows) + &tail(l, pane.columns);
        let pieces = text::pieces(&whole, room, pane.rows);
        let first = pieces.first().map(|p| spans(p, c, theme, tone, pane));
        let mut lines = vec![Line::from([head, first.unwrap_or_default()].concat())];
        if let Some(first) = lines.first_mut() {
            with_phase(first, phase, pane, theme);
        }
        for piece in pieces.iter().skip(1) {
            let gap = Span::raw(" ".repeat(indent.min(pane.columns)));
            lines.push(Line::from(
                [vec![gap], spans(piece, c, theme, tone, pane)].concat(),
            ));
        }
        return lines;
    }
    let tail = tail(l, pane.columns);
    let body = text::fit(
        &body(l, theme.ascii, room, 1),
        room.saturating_sub(text::width(&tail) + reserved(phase)),
        theme.ellipsis(),
    );
    let mut all = head;
    all.extend(spans(&body, c, theme, tone, pane));
    if !tail.is_empty() && room > text::width(&tail) {
        all.push(Span::styled(tail, theme.style(Tone::Dim)));
    }
    let mut line = Line::from(all);
    with_phase(&mut line, phase, pane, theme);
    vec![line]
}

/// A piece of text with what is searched for set apart.
fn spans(piece: &str, c: &LogChoices, theme: Theme, tone: Tone, pane: Pane) -> Vec<Span<'static>> {
    let style = theme.style(tone);
    let pattern = c.search.as_ref().and_then(|s| s.pattern.as_ref());
    let Some(pattern) = pattern.filter(|_| pane.full) else {
        return vec![Span::styled(piece.to_owned(), style)];
    };
    let mut spans = Vec::new();
    let mut from = 0;
    for found in pattern.find_iter(piece).filter(|m| !m.is_empty()) {
        spans.push(Span::styled(piece[from..found.start()].to_owned(), style));
        spans.push(Span::styled(
            found.as_str().to_owned(),
            style.add_modifier(Modifier::REVERSED),
        ));
        from = found.end();
    }
    spans.push(Span::styled(piece[from..].to_owned(), style));
    spans
}
