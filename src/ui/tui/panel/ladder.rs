//! The ladder with the state of every rung, and the budget.

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::model::time::clock;
use crate::run::Snapshot;
use crate::run::snapshot::RungState;
use crate::ui::text::{self, ago};
use crate::ui::tui::parts::{LABEL, Parts, Row, later};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone};

use super::foreign::command;
use super::rank;

/// Restarts left, evidence taken, and whose ladder it is.
fn budget(s: &Snapshot, theme: Theme, columns: usize) -> Row {
    let b = &s.budget;
    let left = match (s.restarts_left, b.restarts) {
        (n, all) if n <= all => format!("{n} of {all} restarts left ({})", minutes(b.period)),
        // another version of this program counts in another way
        (n, _) => format!("{n} restarts left"),
    };
    let taken = match s.evidence.len() {
        0 => "no evidence taken".to_owned(),
        1 => "1 bundle of evidence".to_owned(),
        n => format!("{n} bundles of evidence"),
    };
    let tone = if s.restarts_left == 0 {
        Tone::Warn
    } else {
        Tone::Plain
    };
    // the header, which has no room for it beside the screens at 80 columns, names the
    // attempt; the profile stands here
    let profile = format!("profile {}", text::clean(&s.profile, theme.ascii));
    Parts::labelled(theme, "budget")
        .put(0, tone, left)
        .put(2, Tone::Dim, taken)
        .put(1, Tone::Plain, profile)
        .row(columns, rank::TROUBLE + 1)
}

/// `30 min`; to the second where it is no whole number of minutes.
fn minutes(d: Duration) -> String {
    match (d.as_secs() / 60, d.as_secs() % 60) {
        (whole, 0) if whole > 0 => format!("{whole} min"),
        _ => ago(d),
    }
}

/// What a restart would go on with. Nothing is resumed: the command starts again.
fn resume(s: &Snapshot, theme: Theme, columns: usize, rank: u8) -> Option<Row> {
    if s.outcome.is_some() {
        return None;
    }
    let how = if s.server {
        "press Start again"
    } else {
        "from the beginning"
    };
    let kept = match s.results {
        0 => "no result to keep".to_owned(),
        1 => "keeps 1 result".to_owned(),
        n => format!("keeps {n} results"),
    };
    let row = Parts::labelled(theme, "resume")
        .put(0, Tone::Plain, how)
        .put(1, Tone::Plain, kept);
    Some(row.row(columns, rank))
}

/// The ladder in one or two rows, the budget, and what a restart would resume.
pub(in crate::ui::tui) fn short(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    if s.is_foreign() {
        return command(s, theme, columns, 2);
    }
    let items = s.ladder.iter().enumerate().map(|(n, e)| {
        let (word, _, tone) = words::rung(e);
        let id = text::clean(&e.id.0, theme.ascii);
        (format!("{} {n} {id} {word}", theme.rung(&e.state)), tone)
    });
    let mut rows = flow(theme, "ladder", items, columns, 2);
    rows.push(budget(s, theme, columns));
    rows.extend(resume(s, theme, columns, rank::LADDER + 1));
    rows
}

/// Items one after the other in rows that are filled as far as they go.
fn flow(
    theme: Theme,
    label: &str,
    items: impl Iterator<Item = (String, Tone)>,
    columns: usize,
    lines: usize,
) -> Vec<Row> {
    let room = columns.saturating_sub(LABEL);
    let begin = |label: &str| {
        vec![Span::styled(
            text::pad(label, LABEL, theme.ellipsis()),
            theme.style(Tone::Dim),
        )]
    };
    let (mut rows, mut spans, mut used) = (Vec::new(), begin(label), 0);
    for (item, tone) in items {
        let item = text::fit(&item, room, theme.ellipsis());
        let width = text::width(&item);
        if used > 0 && used + 2 + width > room {
            rows.push(std::mem::replace(&mut spans, begin("")));
            used = 0;
            if rows.len() == lines {
                if let Some(last) = rows.last_mut() {
                    last.push(Span::raw(format!(" {}", theme.ellipsis())));
                }
                break;
            }
        }
        if used > 0 {
            spans.push(Span::raw("  "));
            used += 2;
        }
        used += width;
        spans.push(Span::styled(item, theme.style(tone)));
    }
    if used > 0 {
        rows.push(spans);
    }
    rows.into_iter()
        .enumerate()
        .map(|(at, spans)| Row {
            line: Line::from(spans),
            rank: if at > 0 {
                later(rank::LADDER)
            } else {
                rank::LADDER
            },
            goes_on: (at > 0).then_some((theme.ellipsis(), columns)),
        })
        .collect()
}

/// One row a rung, then the budget and what a restart would resume.
pub(in crate::ui::tui) fn rows(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    if s.is_foreign() {
        return command(s, theme, columns, 6);
    }
    let name = s
        .ladder
        .iter()
        .map(|e| text::width(&e.id.0))
        .max()
        .unwrap_or(0)
        .min(18);
    let mut rows: Vec<_> = s
        .ladder
        .iter()
        .enumerate()
        .map(|(n, e)| {
            let (word, more, tone) = words::rung(e);
            let id = text::pad(&text::clean(&e.id.0, theme.ascii), name, theme.ellipsis());
            let more = match (&e.state, more) {
                (RungState::Running, _) => clock(s.now.since(s.attempt_since)),
                (_, Some(more)) => more.to_owned(),
                (_, None) => String::new(),
            };
            let rank = match e.state {
                RungState::Running | RungState::Next => rank::NEXT,
                _ => rank::LADDER,
            };
            let rung = format!("{} {n:>2} {id}", theme.rung(&e.state));
            Parts::new(theme)
                .symbol(0, tone, rung)
                .put(0, tone, word)
                .put(0, Tone::Dim, more)
                .row(columns, rank)
        })
        .collect();
    rows.push(budget(s, theme, columns));
    // a ladder may be longer than the panel
    rows.extend(resume(s, theme, columns, rank::TROUBLE + 1));
    rows
}
