//! What the supervised tree holds on its card, and what others hold.

use crate::model::{Bytes, GpuSample, Metric, SourceState, TreeOnCard};
use crate::run::Snapshot;
use crate::ui::text::ago;
use crate::ui::tui::parts::{Parts, Row, paragraph, shortened};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone, gib, reading};

use super::gpu::supervised;
use super::rank;

/// Of the pool that counts: ours, and others', which eats the cap. Absent where it is not
/// known; a cap that they make impossible is said.
pub(super) fn shares(s: &Snapshot, g: &GpuSample, theme: Theme, columns: usize) -> Vec<Row> {
    let tree = s.process.as_ref();
    let known = || {
        let on = tree?.on_card(&g.id)?;
        let ours = if g.pool_is_gtt() { &on.gtt } else { &on.vram }.fresh()?;
        Some((ours, g.held_by_others(tree)?))
    };
    let Some((ours, others)) = known() else {
        return Vec::new();
    };
    let total = g.pool().map_or(u64::MAX, |(_, total)| total.0);
    // what others hold is not there for us, whatever the cap says
    let over = |cap: &Bytes| cap.0.saturating_add(others.0) > total;
    if let Some(cap) = s.vram_cap.filter(over) {
        let words = format!(
            "ours {} GiB, others {} GiB: the cap of {cap} cannot be reached, only {} are free for ours",
            gib(*ours),
            gib(others),
            Bytes(total.saturating_sub(others.0))
        );
        let rank = rank::TROUBLE;
        let rows = paragraph(theme, "held", Tone::Warn, &words, columns, 2, rank);
        return shortened(rows, rank);
    }
    let row = Parts::labelled(theme, "held")
        .put(0, Tone::Plain, format!("ours {} GiB", gib(*ours)))
        .put(0, Tone::Plain, format!("others {} GiB", gib(others)));
    // a desktop's share is no news
    let rank = if others.0 >= total / 8 {
        rank::PROCESS
    } else {
        rank::TEMPERATURES + 1
    };
    vec![row.row(columns, rank)]
}

/// What the processes of the tree hold and do on the card; why that is not known.
pub(super) fn on_card(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let g = supervised(s)?;
    let tree = s.process.as_ref()?;
    let row = Parts::labelled(theme, "on gpu");
    let rank = rank::PROCESS + 1;
    let Some(on) = tree.on_card(&g.id) else {
        let clients = s.sources.iter().find(|src| src.name == "clients")?;
        let why = match clients.state {
            SourceState::Ok => "-- it has not opened this card".to_owned(),
            _ => format!("-- not known: {}", words::source(clients).0),
        };
        return Some(row.put(0, Tone::Dim, why).row(columns, rank));
    };
    Some(told(row, on).row(columns, rank))
}

fn told(row: Parts, on: &TreeOnCard) -> Parts {
    let size = |m: &Metric<Bytes>| reading(m, |b| format!("{} GiB", gib(*b)));
    let (vram, gtt) = (size(&on.vram), size(&on.gtt));
    let mut row = row.put(0, vram.tone, format!("vram {}", vram.short())).put(
        1,
        gtt.tone,
        format!("gtt {}", gtt.short()),
    );
    if on.evicted.last().is_some_and(|b| b.0 > 0) {
        let evicted = size(&on.evicted).short();
        row = row.put(1, Tone::Warn, format!("evicted {evicted}"));
    }
    if let Some(ms) = on.evicted_ms.last().filter(|ms| **ms > 0) {
        let time = ago(std::time::Duration::from_millis(*ms));
        row = row.put(2, Tone::Warn, format!("kept off for {time}"));
    }
    if on.queues.is_supported() {
        let queues = reading(&on.queues, ToString::to_string);
        row = row.put(4, queues.tone, format!("queues {}", queues.short()));
    }
    if on.busy.is_supported() {
        let busy = words::quantity(&on.busy, 0, "%");
        row = row.put(1, busy.tone, format!("busy {}", busy.short()));
    }
    if on.cu_occupancy.is_supported() {
        let units = reading(&on.cu_occupancy, ToString::to_string);
        row = row.put(5, units.tone, format!("CUs {}", units.short()));
    }
    // the reason behind the colon is for the long form
    let note = on.compute_note.as_deref().unwrap_or_default();
    row.put(3, Tone::Dim, note.split(':').next().unwrap_or_default())
}

/// The engines that fdinfo counts, with the time that the tree had of each.
pub(super) fn engines(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let on = s.process.as_ref()?.on_card(&supervised(s)?.id)?;
    let mut row = Parts::labelled(theme, "engine");
    for e in on.engines.iter().filter(|e| e.ns > 0) {
        let time = ago(std::time::Duration::from_nanos(e.ns));
        row = row.put(1, Tone::Plain, format!("{} {time}", e.engine));
    }
    let any = on.engines.iter().any(|e| e.ns > 0);
    any.then(|| row.row(columns, rank::DETAIL))
}
