//! The verdict in plain sentences.

use crate::model::time::clock;
use crate::model::{Mono, Verdict};
use crate::run::Snapshot;
use crate::run::snapshot::{ShownState, Stage};
use crate::ui::diagnosis::{is_doubt, is_fault, place, raised, what};
use crate::ui::text::{ago, number};
use crate::ui::tui::chart_choices::ChartChoices;
use crate::ui::tui::diagnose_choices::shown;
use crate::ui::tui::panel::rank;
use crate::ui::tui::parts::{LABEL, Parts, Row, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone, health_tone};

/// Whose verdict it is: the present one, or that of the time cursor.
pub(in crate::ui::tui) fn title(s: &Snapshot, c: &ChartChoices) -> String {
    let (v, since) = shown(s, c);
    if is_present(s, v) {
        "Verdict".to_owned()
    } else {
        let until =
            superseded(s, since).map_or_else(String::new, |t| format!(" until {}", t.clock()));
        format!(
            "Verdict from {}{until}  (Esc: the present one)",
            since.clock()
        )
    }
}

/// Whether it is the verdict in force.
fn is_present(s: &Snapshot, v: &Verdict) -> bool {
    std::ptr::eq(v, &raw const s.verdict)
}

/// When a verdict of before gave way to the next.
fn superseded(s: &Snapshot, since: Mono) -> Option<Mono> {
    let later = s.trail.states.iter().map(|state| state.at);
    later.filter(|at| *at > since).min()
}

/// How things are now, while a moment that is gone is looked at.
fn present(s: &Snapshot, theme: Theme, columns: usize) -> Row {
    let health = words::health(s);
    let word = format!("{} {}", theme.health(health.symbol), health.word);
    let row = Parts::labelled(theme, "now").symbol(0, health.tone, word);
    let row = if let Some((_, code, _)) = &s.outcome {
        row.put(1, Tone::Plain, format!("exit code {code}"))
    } else {
        let (head, words, tone) = words::stage(s);
        row.put(1, tone, format!("{head}  {words}"))
    };
    row.row(columns, rank::KEEP)
}

/// The last fault before the present state.
fn earlier(s: &Snapshot) -> Option<&ShownState> {
    let mut before = s.trail.states.iter().rev().skip(1);
    before.find(|state| is_fault(state.verdict.health))
}

/// Health word, verdict, place, confidence, first sign, declared, duration.
fn head(s: &Snapshot, v: &Verdict, since: Mono, theme: Theme) -> Parts {
    // of a moment that is gone its own verdict is shown
    let shown = words::health(s);
    let (symbol, text, tone) = if is_present(s, v) {
        (shown.symbol, shown.word, shown.tone)
    } else {
        (v.health, v.health.word(), health_tone(v.health))
    };
    let row = Parts::new(theme).symbol(0, tone, format!("{} {text}", theme.health(symbol)));
    if s.is_foreign() || (is_present(s, v) && !shown.judged) {
        return row;
    }
    let row = row.put(1, Tone::Strong, what(v));
    if !is_doubt(v) {
        let until = superseded(s, since).filter(|_| !is_present(s, v));
        let lasts = until.unwrap_or(s.now).since(since);
        return row.put(3, Tone::Plain, format!("for {}", clock(lasts)));
    }
    let took = ago(since.since(v.onset));
    row.put(
        3,
        Tone::Plain,
        format!("confidence {}", number(v.confidence, 2)),
    )
    .put(2, Tone::Plain, format!("first sign {}", v.onset.clock()))
    .put(
        2,
        Tone::Plain,
        format!("declared {} ({took})", since.clock()),
    )
}

/// The head in as many rows as it takes: what there is no room for goes below.
fn heads(s: &Snapshot, v: &Verdict, since: Mono, theme: Theme, columns: usize) -> Vec<Row> {
    let whole = head(s, v, since, theme);
    if whole.width() <= columns || !is_doubt(v) || s.is_foreign() {
        return vec![whole.row(columns, rank::KEEP)];
    }
    let word = format!("{} {}", theme.health(v.health), v.health.word());
    let first = Parts::new(theme)
        .symbol(0, health_tone(v.health), word)
        .put(0, Tone::Strong, v.id.as_str())
        .put(1, Tone::Plain, place(v))
        .put(
            2,
            Tone::Plain,
            format!("confidence {}", number(v.confidence, 2)),
        );
    let took = ago(since.since(v.onset));
    let times = Parts::labelled(theme, "sign")
        .put(0, Tone::Plain, v.onset.clock())
        .put(
            1,
            Tone::Plain,
            format!("declared {} ({took} later)", since.clock()),
        );
    vec![
        first.row(columns, rank::KEEP),
        times.row(columns, rank::TROUBLE),
    ]
}

/// The whole verdict in at most `sentence` rows of reason.
pub(in crate::ui::tui) fn rows(
    s: &Snapshot,
    c: &ChartChoices,
    theme: Theme,
    columns: usize,
    sentence: usize,
) -> Vec<Row> {
    let (v, since) = shown(s, c);
    let mut rows = Vec::new();
    if !is_present(s, v) {
        rows.push(present(s, theme, columns));
    }
    rows.extend(heads(s, v, since, theme, columns));
    let mut add = |label: &str, tone, words: &str, lines, rank| {
        rows.extend(paragraph(theme, label, tone, words, columns, lines, rank));
    };
    add("reason", Tone::Plain, &v.sentence, sentence, rank::CORE);
    if let Some((_, code, words)) = &s.outcome {
        let words = format!("exit code {code}: {words}");
        add("end", words::health(s).tone, &words, 3, rank::CORE);
    }
    for r in &s.trail.raised {
        add("raised", Tone::Strong, &raised(r), 1, rank::NEXT);
    }
    // what is announced is told with the action
    let next = v
        .next
        .as_ref()
        .filter(|_| matches!(s.stage, Stage::Watching) && !is_doubt(v));
    if let (Some(n), None) = (next, &s.outcome) {
        let words = words::limit(n, s.now, columns.saturating_sub(LABEL));
        add("limit", Tone::Strong, &words, 1, rank::NEXT);
    }
    if let Some(fault) = earlier(s).filter(|_| is_present(s, v)) {
        let words = format!(
            "{} {} at {}  (p: the marks before)",
            fault.verdict.health.word(),
            what(&fault.verdict),
            fault.at.clock()
        );
        add("before", Tone::Plain, &words, 1, rank::LADDER);
    }
    if !v.ruled_out.is_empty() {
        let words = v.ruled_out.join("; ");
        add("is not", Tone::Plain, &words, 2, rank::LADDER);
    }
    rows
}
