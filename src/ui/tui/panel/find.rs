//! MIOpen's Find while one is open: which convolution, which solver, how far, and what
//! follows from the shape.

use crate::model::time::clock;
use crate::model::{Health, VerdictId};
use crate::run::Snapshot;
use crate::run::snapshot::FindView;
use crate::ui::find::{eta, times, tuned};
use crate::ui::text::ago;
use crate::ui::tui::parts::{Parts, Row, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

use super::rank;

/// Nothing where no Find is open.
pub(super) fn rows(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let Some(view) = s.find.as_ref().filter(|_| s.outcome.is_none()) else {
        return Vec::new();
    };
    let find = &view.state;
    let open = format!("open {}", clock(s.now.since(find.opened)));
    let mut rows = vec![
        Parts::labelled(theme, "find")
            .put(0, Tone::Strong, find.what())
            .put(2, Tone::Plain, open)
            .row(columns, rank::CORE),
        solver(s, view, theme).row(columns, rank::CORE),
    ];
    if let Some(forecast) = &view.forecast {
        let bad = forecast.may_be_only_naive();
        let tone = if bad { Tone::Warn } else { Tone::Dim };
        let words = forecast.words();
        let rank = if bad { rank::NEXT } else { rank::TROUBLE };
        rows.extend(paragraph(theme, "memory", tone, &words, columns, 2, rank));
    }
    if needs_cure(s, view) {
        let keys = match find.driver_line() {
            Some(_) => "  (y copies the MIOpenDriver line)",
            None => "",
        };
        let text = format!("{}{keys}", view.cure.text);
        let plain = Tone::Plain;
        rows.extend(paragraph(
            theme,
            "cure",
            plain,
            &text,
            columns,
            4,
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
    let only = view.forecast.as_ref();
    stalls || naive || only.is_some_and(|f| f.may_be_only_naive())
}

fn solver(s: &Snapshot, view: &FindView, theme: Theme) -> Parts {
    let find = &view.state;
    let row = Parts::labelled(theme, "solver");
    let Some(name) = &find.solver else {
        return row.put(0, Tone::Dim, "none named yet");
    };
    let tone = if find.is_naive() {
        Tone::Warn
    } else {
        Tone::Plain
    };
    let (ms, best) = times(find);
    let ms = ms.unwrap_or_else(|| {
        let since = ago(s.now.since(find.solver_since));
        format!("for {since}, not timed yet")
    });
    let mut row = row
        .put(0, tone, name)
        .put(2, Tone::Plain, tuned(find).unwrap_or_default());
    if !find.is_tuning() || find.ms.is_some() {
        row = row.put(3, Tone::Plain, ms);
    }
    row.put(1, Tone::Plain, best.unwrap_or_default()).put(
        1,
        Tone::Plain,
        eta(find, s.now).unwrap_or_default(),
    )
}
