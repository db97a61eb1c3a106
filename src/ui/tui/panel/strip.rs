//! The cards that are not supervised, in one row.

use crate::model::GpuSample;
use crate::run::Snapshot;
use crate::ui::card;
use crate::ui::text::{clean, fit, width};
use crate::ui::tui::parts::{LABEL, Parts, Row};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{Reading, Tone, pool, quantity};

use super::rank;

/// Columns of a name.
const NAME: usize = 16;
/// Columns between two cards.
const GAP: usize = 2;

/// Each other card with number, name, busy, power and memory; those without room are
/// counted.
pub(super) fn row(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let others: Vec<_> = s
        .gpus
        .iter()
        .filter(|g| s.gpu.as_ref() != Some(&g.id))
        .map(|g| short(g, theme))
        .collect();
    if others.is_empty() {
        return None;
    }
    let more = |shown: usize| match others.len() - shown {
        0 => String::new(),
        n => format!("+{n} more"),
    };
    let fits = |shown: &usize| {
        let cards: usize = others[..*shown].iter().map(|(w, _)| width(w) + GAP).sum();
        // the last one has no gap behind it, what is left out has none either
        LABEL + cards + width(&more(*shown)) <= columns + GAP * usize::from(*shown == others.len())
    };
    // where not even one fits, it is cut
    let shown = (1..=others.len()).rev().find(fits).unwrap_or(1);
    let mut row = Parts::labelled(theme, "cards");
    for (at, (words, tone)) in others.iter().take(shown).enumerate() {
        row = row.put(u8::from(at > 0) * 2, *tone, words);
    }
    Some(row.put(1, Tone::Dim, more(shown)).row(columns, rank::STRIP))
}

/// A name without its maker.
pub(super) fn brief(mut name: &str) -> &str {
    for maker in ["AMD ", "NVIDIA ", "GeForce ", "Radeon "] {
        name = name.strip_prefix(maker).unwrap_or(name);
    }
    name
}

/// `GPU 1 8060S: busy 3 %, 14 W, gtt 2.1/96.0 GiB`, or what is the matter.
fn short(g: &GpuSample, theme: Theme) -> (String, Tone) {
    let name = fit(&clean(brief(&g.name), theme.ascii), NAME, theme.ellipsis());
    let (words, tone) = values(g);
    let place = card::compute_index(g)
        .filter(|_| g.compute_index != Some(g.index))
        .map_or_else(String::new, |list| format!(" ({list})"));
    (
        clean(
            &format!("GPU {}{place} {name}: {}", g.index, words.join(", ")),
            theme.ascii,
        ),
        tone,
    )
}

/// Busy, power and memory with one word for what is wrong with them; of a card that
/// sleeps only that.
fn values(g: &GpuSample) -> (Vec<String>, Tone) {
    let state = card::state(&g.state);
    if state.tone == Tone::Warn && g.state.fresh().is_some() {
        return (vec![state.text], Tone::Dim);
    }
    let (name, used, total) = pool(g);
    let all = [
        quantity(&g.busy, 0, "%"),
        quantity(&g.power_w, 0, "W"),
        card::used_of(used, total),
    ];
    let failed = |r: &Reading| r.tone == Tone::Bad;
    if all.iter().all(failed) {
        return (vec!["failed".to_owned()], Tone::Bad);
    }
    let mut words: Vec<_> = all.iter().map(|r| r.text.clone()).collect();
    words[0].insert_str(0, "busy ");
    if name == "gtt" {
        words[2].insert_str(0, "gtt ");
    }
    // stale: once for all
    let aged = all.iter().find(|r| r.tone == Tone::Warn);
    words.extend(aged.and_then(|r| r.note.clone()));
    if g.throttle.last().is_some_and(|r| !r.is_empty()) {
        words.push("throttled".to_owned());
    }
    if !g.disagreements.is_empty() {
        words.push("sources differ".to_owned());
    }
    let trouble = words.len() > all.len() || all.iter().any(failed);
    (words, if trouble { Tone::Warn } else { Tone::Plain })
}
