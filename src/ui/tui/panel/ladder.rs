//! The ladder with the state of every rung, and the budget.

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::model::time::clock;
use crate::model::worker::{is_own_decode, is_own_worker};
use crate::run::Snapshot;
use crate::run::snapshot::RungState;
use crate::ui::text::{self, ago};
use crate::ui::tui::parts::{LABEL, Parts, Row, later};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone};
use crate::workload::adapter::queue_waits_for_user;

use super::foreign::command;
use super::rank;

/// Restarts left, evidence taken, and whose ladder it is.
fn budget(s: &Snapshot, theme: Theme, columns: usize) -> Row {
    let b = &s.budget;
    let left = match (s.restarts_left, b.restarts) {
        _ if s.attached => "not ours: rungs are advice".to_owned(),
        (n, all) if n <= all => format!("{n} of {all} restarts left ({})", minutes(b.period)),
        // another version of this program counts in another way
        (n, _) => format!("{n} restarts left"),
    };
    let taken = match s.evidence.len() {
        0 => "no evidence taken".to_owned(),
        1 => "1 bundle of evidence".to_owned(),
        n => format!("{n} bundles of evidence"),
    };
    let tone = if s.restarts_left == 0 && !s.attached {
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

/// A decode of our own worker goes on after those that an attempt has left (docs/engine.md).
const FRAMES: &str = "after the finished frames";

/// What a restart would go on with, and what of it is there: the command starts again, and the agent hands it
/// what the vault kept.
fn resumes(s: &Snapshot) -> (&'static str, String) {
    let how = if s.resend.by_itself && queue_waits_for_user(&s.adapter) {
        "its queue waits for your word"
    } else if s.resend.by_itself {
        "the lost job is sent again"
    } else if s.server {
        "press Start again"
    } else if is_own_decode(&s.argv) {
        FRAMES
    // what an encode of ours has done is kept nowhere
    } else if s.agent.came && !is_own_worker(&s.argv) {
        "what the vault kept"
    } else {
        "from the beginning"
    };
    let kept = match s.results {
        0 if how == FRAMES => "kept beside the output".to_owned(),
        0 => "no result to keep".to_owned(),
        1 => "keeps 1 result".to_owned(),
        n => format!("keeps {n} results"),
    };
    (how, kept)
}

fn resume(s: &Snapshot, theme: Theme, columns: usize, rank: u8) -> Option<Row> {
    if s.outcome.is_some() || s.attached {
        return None;
    }
    let (how, kept) = resumes(s);
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
    let items: Vec<_> = (s.ladder.iter().enumerate())
        .map(|(n, e)| {
            let (word, _, tone) = words::rung(e);
            let id = text::clean(&e.id.0, theme.ascii);
            let item = format!("{} {n} {id} {word}", theme.rung(&e.state));
            (item, tone, matters(&e.state))
        })
        .collect();
    let mut rows = flow(theme, items, columns);
    rows.push(budget(s, theme, columns));
    rows.extend(resume(s, theme, columns, rank::LADDER + 1));
    rows
}

/// The rungs that are looked for: the running one and the one that follows.
const fn matters(state: &RungState) -> bool {
    matches!(state, RungState::Running | RungState::Next)
}

/// Columns of ` +99 more`.
const MORE: usize = 9;

/// The rungs one after the other in two rows. Where they are too many, the last ones
/// are left out, though never what matters, and counted: nobody may take a
/// long ladder for a short one.
fn flow(theme: Theme, mut items: Vec<(String, Tone, bool)>, columns: usize) -> Vec<Row> {
    let room = columns.saturating_sub(LABEL);
    let all = items.len();
    // a ladder that fits as a whole needs no room for a number
    let (mut first, mut second) = split(&items, room);
    if first + second < all {
        (first, second) = split(&items, room.saturating_sub(MORE));
    }
    while first + second < items.len() {
        // Two that matter are kept wherever they stand, unless they alone are too many.
        let least = items.iter().rposition(|(_, _, matters)| !matters);
        items.remove(least.unwrap_or(items.len() - 1));
        (first, second) = split(&items, room.saturating_sub(MORE));
    }
    let row = |label: &str, items: &[(String, Tone, bool)]| {
        let label = text::pad(label, LABEL, theme.ellipsis());
        let mut spans = vec![Span::styled(label, theme.style(Tone::Dim))];
        for (at, (item, tone, _)) in items.iter().enumerate() {
            if at > 0 {
                spans.push(Span::raw("  "));
            }
            let item = text::fit(item, room.saturating_sub(MORE), theme.ellipsis());
            spans.push(Span::styled(item, theme.style(*tone)));
        }
        spans
    };
    let more = |shown: usize| match all - shown {
        0 => String::new(),
        n => format!(" +{n} more"),
    };
    let mut rows = Vec::new();
    if first > 0 {
        let mut spans = row("ladder", &items[..first]);
        if second == 0 {
            spans.push(Span::styled(more(first), theme.style(Tone::Dim)));
        }
        rows.push(Row::alone(Line::from(spans), rank::LADDER));
    }
    if second > 0 {
        let mut spans = row("", &items[first..]);
        spans.push(Span::styled(more(first + second), theme.style(Tone::Dim)));
        rows.push(Row {
            line: Line::from(spans),
            rank: later(rank::LADDER),
            goes_on: Some((more(first).into(), columns)),
        });
    }
    rows
}

/// How many of the items fit into a first and a second row.
fn split(items: &[(String, Tone, bool)], room: usize) -> (usize, usize) {
    let fill = |items: &[(String, Tone, bool)]| {
        let mut used = 0;
        let fits = |(item, _, _): &&(String, Tone, bool)| {
            let gap = if used == 0 { 0 } else { 2 };
            used += gap + text::width(item).min(room);
            used <= room
        };
        items.iter().take_while(fits).count()
    };
    let first = fill(items);
    (first, fill(&items[first..]))
}

/// One row a rung, then the budget and what a restart would resume, in so many
/// `lines`: rungs that have no room are counted and named in one row.
pub(in crate::ui::tui) fn rows(
    s: &Snapshot,
    theme: Theme,
    columns: usize,
    lines: usize,
) -> Vec<Row> {
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
    let below = 1 + usize::from(s.outcome.is_none() && !s.attached);
    let (shown, left_out) = select(s, lines.saturating_sub(below));
    let mut rows: Vec<_> = shown
        .into_iter()
        .filter_map(|n| Some((n, s.ladder.get(n)?)))
        .map(|(n, e)| {
            let (word, more, tone) = words::rung(e);
            let id = text::pad(&text::clean(&e.id.0, theme.ascii), name, theme.ellipsis());
            let more = match (&e.state, more) {
                (RungState::Running, _) => clock(s.now.since(s.attempt_since)),
                (_, Some(more)) => more.to_owned(),
                (_, None) => String::new(),
            };
            let rung = format!("{} {n:>2} {id}", theme.rung(&e.state));
            Parts::new(theme)
                .symbol(0, tone, rung)
                .put(0, tone, word)
                .put(0, Tone::Dim, more)
                .row(columns, rank::NEXT)
        })
        .collect();
    if !left_out.is_empty() {
        let names: Vec<_> = left_out
            .iter()
            .filter_map(|n| Some(s.ladder.get(*n)?.id.0.as_str()))
            .collect();
        let row = Parts::new(theme)
            .put(0, Tone::Plain, format!("+{} more", left_out.len()))
            .put(0, Tone::Dim, names.join(", "));
        rows.push(row.row(columns, rank::NEXT));
    }
    rows.push(budget(s, theme, columns));
    rows.extend(resume(s, theme, columns, rank::TROUBLE + 1));
    rows
}

/// The rungs, by number, that are shown in so many lines, and those that are not: the
/// last ones, though never what matters. One line is kept for their number.
fn select(s: &Snapshot, lines: usize) -> (Vec<usize>, Vec<usize>) {
    let all = s.ladder.len();
    if all <= lines {
        return ((0..all).collect(), Vec::new());
    }
    let room = lines.saturating_sub(1);
    let mut order: Vec<_> = (0..all).collect();
    // stable: what matters first, else as on the ladder
    order.sort_by_key(|n| s.ladder.get(*n).is_none_or(|e| !matters(&e.state)));
    let mut rest = order.split_off(room.min(all));
    order.sort_unstable();
    rest.sort_unstable();
    (order, rest)
}

#[cfg(test)]
mod tests {
    use crate::model::RungId;
    use crate::ui::testing;

    use super::*;

    const THEME: Theme = Theme {
        ascii: true,
        color: false,
    };

    /// A ladder of 16 rungs of which the 12th runs and the 15th follows.
    fn long() -> Snapshot {
        let mut s = testing::healthy();
        let Some(rung) = s.ladder.first().cloned() else {
            return s;
        };
        s.ladder = (0..16)
            .map(|n| {
                let mut rung = rung.clone();
                rung.id = RungId(format!("rung_{n}"));
                rung.state = match n {
                    12 => RungState::Running,
                    15 => RungState::Next,
                    _ => RungState::Untried,
                };
                rung
            })
            .collect();
        s
    }

    fn texts(rows: Vec<Row>) -> Vec<String> {
        rows.into_iter().map(|r| r.line.to_string()).collect()
    }

    #[test]
    fn a_long_ladder_shows_what_matters_and_counts_the_rest() {
        for columns in [38, 58, 78] {
            let rows = short(&long(), THEME, columns);
            let ladder = texts(rows.clone())[..2].join("\n");
            assert!(ladder.contains("12 rung_12 running"), "{ladder}");
            assert!(ladder.contains("15 rung_15 next"), "{ladder}");
            let shown = ladder.matches("rung_").count();
            assert!(
                ladder.ends_with(&format!(" +{} more", 16 - shown)),
                "{ladder}"
            );
            // only one row of it is left
            let one = rows[..2].to_vec();
            let line = super::super::super::parts::shed(one, 1)[0].to_string();
            let shown = line.matches("rung_").count();
            assert!(line.ends_with(&format!(" +{} more", 16 - shown)), "{line}");
            assert!(text::width(&line) <= columns, "{line}");
        }
        let lines = texts(rows(&long(), THEME, 50, 7));
        assert_eq!(lines.len(), 7, "{lines:?}");
        let ladder = lines.join("\n");
        assert!(ladder.contains("rung_12") && ladder.contains("rung_15"));
        assert!(ladder.contains("+12 more"), "{ladder}");
    }

    #[test]
    fn a_short_ladder_is_shown_whole() {
        let mut s = long();
        s.ladder.truncate(3);
        for rows in [short(&s, THEME, 78), rows(&s, THEME, 50, 7)] {
            let ladder = texts(rows).join("\n");
            assert!(
                ladder.contains("rung_2") && !ladder.contains("more"),
                "{ladder}"
            );
        }
    }

    #[test]
    fn a_decode_of_ours_goes_on_after_its_frames() {
        let of = |command: &str| {
            let mut s = crate::ui::testing::healthy();
            s.argv = command.split(' ').map(str::to_owned).collect();
            (s.agent.came, s.results, s.server) = (true, 0, false);
            s.resend.by_itself = false;
            resumes(&s)
        };
        let (how, kept) = of("/bin/framepack-tui worker decode a");
        assert_eq!(
            (how, kept.as_str()),
            ("after the finished frames", "kept beside the output")
        );
        let (how, kept) = of("/bin/framepack-tui worker encode a");
        assert_eq!(
            (how, kept.as_str()),
            ("from the beginning", "no result to keep")
        );
        assert_eq!(of("python a.py").0, "what the vault kept");
    }
}
