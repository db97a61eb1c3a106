//! What only the zoomed view has room for: both sources beside each other, the link, the
//! pools of an APU.

use crate::model::GpuSample;
use crate::run::Snapshot;
use crate::ui::card;
use crate::ui::text::{number, pad, width};
use crate::ui::tui::parts::{Parts, Row, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{Reading, Tone, quantity};

use super::gpu::supervised;
use super::{holding, rank};

/// The details of the supervised card.
pub(in crate::ui::tui) fn rows(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let Some(g) = supervised(s) else {
        return Vec::new();
    };
    let mut rows = both(g, theme, columns);
    rows.extend(device(g, theme, columns));
    if let Some(words) = card::unified(g) {
        let rank = rank::DETAIL;
        rows.extend(paragraph(
            theme,
            "pools",
            Tone::Plain,
            &words,
            columns,
            2,
            rank,
        ));
    }
    rows.extend(idle(s, theme, columns));
    rows.extend(holding::on_card(s, theme, columns));
    rows.extend(holding::engines(s, theme, columns));
    rows
}

/// What the card reads at rest, by which its power is judged.
fn idle(s: &Snapshot, theme: Theme, columns: usize) -> Option<Row> {
    let idle = s.card_idle.as_ref()?;
    let say = |v: Option<f64>, unit| {
        v.map_or_else(|| "--".to_owned(), |v| format!("{} {unit}", number(v, 0)))
    };
    let row = Parts::labelled(theme, "idle");
    let row = if let Some(why) = &idle.in_use {
        // what it read then is no idle level
        let words = "not known (the card worked before the launch)";
        row.put(0, Tone::Warn, words).put(1, Tone::Dim, why)
    } else {
        let power = supervised(s).map_or("power", card::power_label);
        let power = format!("{power} {}", say(idle.power_w, "W"));
        row.put(0, Tone::Plain, format!("busy {}", say(idle.busy, "%")))
            .put(0, Tone::Plain, power)
            .put(1, Tone::Dim, "of the card at rest")
    };
    Some(row.row(columns, rank::DETAIL))
}

/// The first source and the second, value under value.
fn both(g: &GpuSample, theme: Theme, columns: usize) -> Vec<Row> {
    let Some(second) = &g.second else {
        return Vec::new();
    };
    let mut first_row = Parts::labelled(theme, &g.source);
    let mut second_row = Parts::labelled(theme, second_label(&second.source));
    for (rank, (name, ours, theirs)) in (1_u8..).zip(card::opinions(g, second)) {
        let cells = [ours, theirs].map(|r| (format!("{name} {}", r.short()), r));
        let room = cells.iter().map(|(text, _)| width(text)).max().unwrap_or(0);
        let [ours, theirs] = cells;
        let put = |row: Parts, (text, r): (String, Reading)| {
            row.put(rank, r.tone, pad(&text, room, theme.ellipsis()))
        };
        first_row = put(first_row, ours);
        second_row = put(second_row, theirs);
    }
    vec![
        first_row.row(columns, rank::SOURCES),
        second_row.row(columns, rank::SOURCES),
    ]
}

/// The column of labels holds six letters.
fn second_label(source: &str) -> &str {
    if source == "rocm-smi" { "rocm" } else { source }
}

/// Link, level, throttling, fan, video engine, resets: what the card offers of them.
fn device(g: &GpuSample, theme: Theme, columns: usize) -> Option<Row> {
    let offered = [
        (g.link.is_supported(), 1, "link", card::link(&g.link)),
        (
            g.throttle.is_supported(),
            2,
            "throttled",
            card::throttle(&g.throttle),
        ),
        (
            g.mem_busy.is_supported(),
            3,
            "mem busy",
            quantity(&g.mem_busy, 0, "%"),
        ),
        (
            g.video_busy.is_supported(),
            4,
            "video",
            quantity(&g.video_busy, 0, "%"),
        ),
        (
            g.fan_percent.is_supported(),
            5,
            "fan",
            quantity(&g.fan_percent, 0, "%"),
        ),
        (
            g.perf_level.is_supported(),
            3,
            "level",
            card::level(&g.perf_level),
        ),
        (
            g.resets.last().is_some_and(|r| r.count.is_some()),
            6,
            "resets",
            card::resets(&g.resets),
        ),
    ];
    let mut row = Parts::labelled(theme, "device");
    let mut any = false;
    for (rank, name, r) in offered.into_iter().filter(|o| o.0).map(|o| (o.1, o.2, o.3)) {
        any = true;
        row = row.put(rank, r.tone, format!("{name} {}", r.short()));
    }
    any.then(|| row.row(columns, rank::DETAIL))
}
