//! MIOpen's Find while one is open: which convolution, which solver, how far, and what
//! follows from the shape.

use crate::model::time::clock;
use crate::model::{Health, VerdictId};
use crate::run::Snapshot;
use crate::run::snapshot::{FindView, Forecast};
use crate::ui::find::{eta, times, tuned};
use crate::ui::text::ago;
use crate::ui::tui::parts::{Parts, Row, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone};

use super::rank;

/// Nothing where no Find is open.
pub(super) fn rows(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let Some(view) = s.find.as_ref().filter(|_| s.outcome.is_none()) else {
        return Vec::new();
    };
    let find = &view.state;
    let open = format!("open {}", clock(s.now.since(find.opened)));
    let what = find.what();
    let (shape, filter) = what.split_once(", ").unwrap_or((&what, ""));
    let copies = find.driver_line().map_or("", |_| "y copies it");
    let mut rows = vec![
        Parts::labelled(theme, "find")
            .put(0, Tone::Strong, shape)
            .put(3, Tone::Plain, filter)
            .put(2, Tone::Plain, open)
            .put(4, Tone::Dim, copies)
            .row(columns, rank::CORE),
    ];
    rows.extend(solver(s, view, theme, columns));
    if let Some(forecast) = &view.forecast {
        let bad = forecast.may_be_only_naive();
        let tone = if bad { Tone::Warn } else { Tone::Dim };
        let words = forecast.words();
        let rank = if bad { rank::NEXT } else { rank::TROUBLE };
        rows.extend(paragraph(theme, "gemm", tone, &words, columns, 2, rank));
    } else if let Some(why) = view
        .cure
        .why
        .as_ref()
        .filter(|_| view.state.workspace.is_some())
    {
        rows.extend(paragraph(
            theme,
            "gemm",
            Tone::Warn,
            why,
            columns,
            2,
            rank::NEXT,
        ));
    }
    if needs_cure(s, view) {
        let text = &view.cure.text;
        let plain = Tone::Plain;
        rows.extend(paragraph(
            theme,
            "cure",
            plain,
            text,
            columns,
            3,
            rank::NEXT,
        ));
    }
    rows
}

/// Whether anything is wrong with it: a search that goes on needs no cure.
fn needs_cure(s: &Snapshot, view: &FindView) -> bool {
    let stalls = s.verdict.id == VerdictId::FindStall
        || matches!(s.verdict.health, Health::Suspect | Health::Hung);
    let naive = view.state.is_naive();
    let refused = view.state.workspace.is_some();
    let only = view.forecast.as_ref();
    stalls || naive || refused || only.is_some_and(Forecast::may_be_only_naive)
}

/// The solver and its figures: in a row, or in two where they need them.
fn solver(s: &Snapshot, view: &FindView, theme: Theme, columns: usize) -> Vec<Row> {
    let find = &view.state;
    let row = Parts::labelled(theme, "solver");
    let Some(name) = &find.solver else {
        let row = row.put(0, Tone::Dim, "none named yet");
        return vec![row.row(columns, rank::CORE)];
    };
    let tone = if find.is_naive() {
        Tone::Warn
    } else {
        Tone::Plain
    };
    let (ms, best) = times(find);
    let untimed = || {
        let since = ago(s.now.since(find.solver_since));
        format!("for {since}, not timed yet")
    };
    let ms = match ms {
        Some(ms) => ms,
        None if find.is_tuning() => String::new(),
        None => untimed(),
    };
    let eta = eta(find, s.now).filter(|_| words::moves(s));
    let figures = |row: Parts| {
        row.put(2, Tone::Plain, tuned(find).unwrap_or_default())
            .put(3, Tone::Plain, &ms)
            .put(1, Tone::Plain, best.as_deref().unwrap_or_default())
            .put(1, Tone::Plain, eta.as_deref().unwrap_or_default())
    };
    let name = row.put(0, tone, name);
    let whole = figures(name.clone());
    if whole.width() <= columns {
        return vec![whole.row(columns, rank::CORE)];
    }
    let second = figures(Parts::labelled(theme, "time"));
    vec![
        name.row(columns, rank::CORE),
        second.row(columns, rank::NEXT),
    ]
}
