//! What has to be known of a card beside its levels: throttled, forced, asleep, reset;
//! sources that contradict each other; what the kernel said.

use crate::model::{BusyTrust, GpuSample, KernelFault};
use crate::run::Snapshot;
use crate::ui::card;
use crate::ui::text::ago;
use crate::ui::tui::parts::{Parts, Row, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

use super::rank;

/// Contradictions that are shown one by one.
const SHOWN: usize = 2;

/// All of it; nothing for a card that is well.
pub(super) fn rows(s: &Snapshot, g: &GpuSample, theme: Theme, columns: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = marks(g, theme, columns).into_iter().collect();
    if let BusyTrust::Untrusted { why, .. } = &s.busy_trust {
        let words = format!("busy counter not believed: {why}");
        let rank = rank::TROUBLE;
        rows.extend(paragraph(
            theme,
            "trust",
            Tone::Warn,
            &words,
            columns,
            2,
            rank,
        ));
    }
    rows.extend(disagreements(g, theme, columns));
    rows.extend(kernel(s, theme, columns));
    rows
}

fn marks(g: &GpuSample, theme: Theme, columns: usize) -> Option<Row> {
    let state = card::state(&g.state);
    let odd = g.state.last().is_some_and(|state| state != "active");
    let held = g.throttle.last().is_some_and(|r| !r.is_empty());
    let forced = g.perf_level.last().is_some_and(|level| level != "auto");
    let dumped = card::has_core_dump(&g.resets);
    let resets = g.resets.last().and_then(|r| r.count).filter(|n| *n > 0);
    if !(odd || held || forced || dumped || resets.is_some()) {
        return None;
    }
    let mut row = Parts::labelled(theme, "card");
    if odd {
        row = row.put(0, Tone::Warn, state.short());
    }
    // before the reasons: behind them it would be read as one of them
    if forced {
        let level = card::level(&g.perf_level).short();
        row = row.put(2, Tone::Warn, format!("level {level}"));
    }
    if held {
        let why = card::throttle(&g.throttle).short();
        row = row.put(1, Tone::Warn, format!("throttled: {why}"));
    }
    if dumped {
        row = row.put(0, Tone::Bad, "core dump");
    }
    if let Some(n) = resets {
        let words = if n == 1 { "reset" } else { "resets" };
        row = row.put(
            3,
            Tone::Warn,
            format!("{n} {words} since the driver was loaded"),
        );
    }
    Some(row.row(columns, rank::TROUBLE))
}

/// Both sides of each contradiction; neither is taken for the truth.
fn disagreements(g: &GpuSample, theme: Theme, columns: usize) -> Vec<Row> {
    let more = g.disagreements.len().saturating_sub(SHOWN);
    let mut rows = Vec::new();
    for (at, d) in g.disagreements.iter().take(SHOWN).enumerate() {
        let mut words = card::disagreement(g, d);
        if at + 1 == SHOWN && more > 0 {
            words = format!("+{more} more; {words}");
        }
        let label = if at == 0 { "differ" } else { "" };
        let rank = rank::TROUBLE;
        rows.extend(paragraph(
            theme,
            label,
            Tone::Warn,
            &words,
            columns,
            2,
            rank,
        ));
    }
    rows
}

/// The last fault of the card, or of none that is named, and how many there were.
fn kernel(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let ours = |f: &&KernelFault| !f.is_of_another(s.gpu.as_ref());
    let of_ours = s.faults.iter().filter(|(_, fault)| ours(&fault));
    let (at, fault) = of_ours.clone().next_back()?;
    let when = format!("{} {} ago", fault.words(), ago(s.now.since(*at)));
    let mut row = Parts::labelled(theme, "kernel").put(0, Tone::Bad, when);
    let card = s.gpus.iter().find(|g| fault.gpu.as_ref() == Some(&g.id));
    let whose = match (card, &fault.gpu) {
        (Some(g), _) => format!("GPU {}", g.index),
        (None, Some(id)) => id.to_string(),
        (None, None) => String::new(),
    };
    row = row.put(2, Tone::Plain, whose);
    if let Some(name) = &fault.process {
        row = row.put(3, Tone::Plain, format!("by {name}"));
    }
    let before = of_ours.count() - 1;
    if before > 0 {
        row = row.put(4, Tone::Dim, format!("{before} more before"));
    }
    Some(row.row(columns, rank::NEXT))
}
