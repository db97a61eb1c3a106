//! The card: memory against the cap, busy, power, temperatures, charts.

use crate::model::{Bytes, GpuSample, SourceState};
use crate::run::Snapshot;
use crate::run::snapshot::watts_per_busy as watts_per_busy_of;
use crate::ui::card;
use crate::ui::text::{self, number, percent};
use crate::ui::tui::chart_choices::ChartChoices;
use crate::ui::tui::parts::{LABEL, Parts, Row, gauge};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Reading, Tone, gib, pool, quantity, reading};

use super::{charts, holding, marks, rank, strip};

/// Columns of value, gauge and percent in a wide row.
const VALUE: usize = 17;
const GAUGE: usize = 16;
const PERCENT: usize = 5;
/// From this width on a row has a gauge.
const WITH_GAUGE: usize = 62;
/// A chart narrower than this says nothing.
pub(super) const MIN_CHART: usize = 8;

/// The supervised card.
pub(super) fn supervised(s: &Snapshot) -> Option<&GpuSample> {
    s.gpus.iter().find(|g| s.gpu.as_ref() == Some(&g.id))
}

/// Whether the supervised card was read.
pub(in crate::ui::tui) fn has_card(s: &Snapshot) -> bool {
    supervised(s).is_some()
}

/// `GPU 0  Radeon RX 7900 XTX  gfx1100`, and three shorter forms: without the maker,
/// without the architecture, the number alone.
pub(in crate::ui::tui) fn titles(s: &Snapshot) -> [String; 4] {
    match (supervised(s), &s.gpu) {
        (Some(g), _) => {
            let arch = g
                .arch
                .as_deref()
                .map_or_else(String::new, |a| format!("  {a}"));
            let list = card::compute_index(g)
                .filter(|_| g.compute_index != Some(g.index))
                .map_or_else(String::new, |list| format!("  {list}"));
            let others = match s.gpus.len() {
                0 | 1 => String::new(),
                n => format!("  (1 of {n} cards)"),
            };
            let (n, full, brief) = (g.index, &g.name, strip::brief(&g.name));
            [
                format!("GPU {n}  {full}{arch}{list}{others}"),
                format!("GPU {n}  {brief}{arch}{list}{others}"),
                format!("GPU {n}  {brief}{list}{others}"),
                format!("GPU {n}{list}"),
            ]
        }
        (None, Some(id)) => std::array::from_fn(|_| format!("GPU {id}")),
        (None, None) => std::array::from_fn(|_| "GPU  none".to_owned()),
    }
}

/// A value with its share of a whole, ready for a row.
struct Level {
    label: &'static str,
    reading: Reading,
    share: Option<f64>,
    /// A word behind the percent.
    alarm: Option<&'static str>,
    /// A further figure where there is no chart.
    further: Option<String>,
    rank: u8,
}

/// Memory against the cap, or against what the card has.
fn memory(g: &GpuSample, cap: Option<Bytes>) -> Level {
    let (label, used, total) = pool(g);
    let whole = cap.or(total.last().copied());
    let tail = match (cap, whole) {
        (Some(cap), _) => format!("/{} GiB cap", gib(cap)),
        (None, Some(total)) => format!("/{} GiB", gib(total)),
        (None, None) => " GiB".to_owned(),
    };
    let share = used
        .last()
        .zip(whole)
        .and_then(|(used, whole)| percent(used.as_gib_f64(), whole.as_gib_f64()));
    let over = cap.zip(used.last()).is_some_and(|(cap, used)| *used > cap);
    Level {
        label,
        reading: reading(used, |b| format!("{}{tail}", gib(*b))),
        share,
        alarm: over.then_some("OVER CAP"),
        further: None,
        rank: rank::CORE,
    }
}

/// The busy counter, with a word where it is not to be believed.
fn busy_reading(s: &Snapshot, g: &GpuSample) -> Reading {
    let mut r = card::busy(g);
    if s.busy_trust.is_untrusted() && g.busy.last().is_some() {
        r.text = format!("{} untrusted", quantity(&g.busy, 0, "%").text);
        r.tone = Tone::Warn;
    }
    r
}

fn busy(s: &Snapshot, g: &GpuSample) -> Level {
    Level {
        label: "busy",
        reading: busy_reading(s, g),
        share: g.busy.last().copied().filter(|v| v.is_finite()),
        alarm: None,
        further: None,
        rank: rank::NEXT,
    }
}

fn power(g: &GpuSample) -> Level {
    let cap = g.power_cap_w.last().copied();
    let tail = cap.map_or_else(String::new, |c| format!("/{}", number(c, 0)));
    // the word is too long for the column of labels
    let package = if g.apu { " package" } else { "" };
    Level {
        label: "power",
        reading: reading(&g.power_w, |w| {
            format!("{}{tail} W{package}", number(*w, 0))
        }),
        share: g.power_w.last().zip(cap).and_then(|(w, c)| percent(*w, c)),
        alarm: None,
        further: watts_per_busy(g),
        rank: rank::NEXT + 1,
    }
}

/// Tells a card that works from one that is busy with nothing; absent while it is too
/// idle to tell, or a reading is not fresh.
fn watts_per_busy(g: &GpuSample) -> Option<String> {
    let ratio = watts_per_busy_of(*g.power_w.fresh()?, *g.busy.fresh()?)?;
    Some(format!("{} W/busy%", number(ratio, 2)))
}

/// One row: label, value, gauge, percent, chart; what there is no room for goes.
fn level_row(theme: Theme, level: &Level, columns: usize, spark: Option<String>) -> Row {
    let r = &level.reading;
    let row = Parts::labelled(theme, level.label);
    let tone = if level.alarm.is_some() {
        Tone::Bad
    } else {
        r.tone
    };
    let share = level.share.map(|v| format!("{} %", number(v, 0)));
    if columns < WITH_GAUGE {
        let row = row
            .put(0, tone, &r.text)
            .put(1, r.tone, r.note.as_deref().unwrap_or(""));
        let row = match share {
            Some(share) if level.label != "busy" && r.note.is_none() => row.put(2, tone, share),
            _ => row,
        };
        return row
            .put(1, Tone::Bad, level.alarm.unwrap_or(""))
            .row(columns, level.rank);
    }
    let value = text::pad(&r.text, VALUE, theme.ellipsis());
    let mut row = row.put(0, tone, value);
    row = match (&r.note, level.share, level.alarm) {
        (Some(note), ..) => {
            let room = if spark.is_some() {
                GAUGE + 2 + PERCENT
            } else {
                columns
            };
            row.put(
                1,
                r.tone,
                text::pad(note, room, theme.ellipsis()).trim_end_matches("  "),
            )
        }
        (None, Some(share), Some(alarm)) => row
            .symbol(3, tone, gauge(theme, share, GAUGE))
            .put(1, tone, alarm),
        (None, Some(v), None) => {
            let share = format!("{:>PERCENT$}", share.unwrap_or_default());
            row.symbol(3, Tone::Plain, gauge(theme, v, GAUGE))
                .put(2, Tone::Plain, share)
        }
        (None, None, _) => row.put(9, Tone::Plain, " ".repeat(GAUGE + 2 + PERCENT)),
    };
    if let (None, Some(further)) = (&spark, &level.further) {
        row = row.put(4, Tone::Plain, further);
    }
    // The chart stands in its own column, whatever came before it.
    if let Some(spark) = spark {
        let column = LABEL + VALUE + GAUGE + PERCENT + 4;
        let used = row.width();
        if used < column {
            row = row.put(9, Tone::Plain, " ".repeat(column.saturating_sub(used + 2)));
        }
        row = row.symbol(9, Tone::Plain, spark);
    }
    row.row(columns, level.rank)
}

/// The rows of the card; with `sparks` each level has its chart where there is room.
pub(in crate::ui::tui) fn rows(
    s: &Snapshot,
    theme: Theme,
    columns: usize,
    sparks: Option<&ChartChoices>,
) -> Vec<Row> {
    let Some(g) = supervised(s) else {
        return missing(s, theme, columns);
    };
    let room = columns.saturating_sub(LABEL + VALUE + GAUGE + PERCENT + 4 + 2);
    let levels = [memory(g, s.vram_cap), busy(s, g), power(g)];
    let sparks = sparks.filter(|_| room >= MIN_CHART);
    let mut charts = sparks
        .map(|c| charts::sparks(s, g, c, theme, room))
        .unwrap_or_default()
        .into_iter();
    let mut rows: Vec<_> = levels
        .iter()
        .map(|level| level_row(theme, level, columns, charts.next()))
        .collect();
    rows.extend(sparks.and_then(|c| charts::readout(s, c, theme, columns)));
    rows.push(temperatures(g, theme, columns, sparks.is_some()));
    let held = holding::shares(s, g, theme, columns);
    // under the memory
    rows.splice(1..1, held);
    rows.extend(marks::rows(s, g, theme, columns));
    rows.extend(strip::row(s, theme, columns));
    rows
}

/// For a small screen: busy, power and the hottest place in one row. `untitled`: no title above says whether these are
/// the readings of now.
pub(in crate::ui::tui) fn short(
    s: &Snapshot,
    theme: Theme,
    columns: usize,
    untitled: bool,
) -> Vec<Row> {
    let Some(g) = supervised(s) else {
        return missing(s, theme, columns);
    };
    let (b, p) = (busy_reading(s, g), quantity(&g.power_w, 0, "W"));
    let second = Parts::new(theme)
        .put(0, b.tone, format!("busy {}", b.short()))
        .put(1, p.tone, format!("{} {}", card::power_label(g), p.short()));
    let (place, hot) = if g.temp_junction.is_supported() || !g.apu {
        ("junction", quantity(&g.temp_junction, 0, "C"))
    } else {
        ("edge", quantity(&g.temp_edge, 0, "C"))
    };
    let second = second.put(2, hot.tone, format!("{place} {}", hot.short()));
    let mut memory = memory(g, s.vram_cap);
    if untitled && s.outcome.is_some() && memory.reading.note.is_none() {
        // the row below never stands without this one
        memory.reading.note = Some(words::AT_THE_END.to_owned());
    }
    let mut rows = vec![
        level_row(theme, &memory, columns, None),
        second.row(columns, rank::NEXT),
    ];
    rows.splice(1..1, holding::shares(s, g, theme, columns));
    rows.extend(marks::rows(s, g, theme, columns));
    rows.extend(strip::row(s, theme, columns));
    rows
}

/// What is said where there is no card to show.
fn missing(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Row> {
    let sentence = match &s.gpu {
        None if s.is_foreign() => {
            "which card this process uses cannot be seen: another user's, or none".to_owned()
        }
        None if s.outcome.is_some() => {
            "no GPU was watched: VRAM, busy and power are not known.".to_owned()
        }
        None => "no GPU is watched: VRAM, busy and power are not known. The run goes on and is judged by its process, its output and its progress.".to_owned(),
        Some(id) => {
            let source = s.sources.iter().find(|src| {
                src.state != SourceState::Ok && src.name.contains(&id.0)
            });
            match source {
                Some(src) => format!("-- no reading of {id}: {} {}", src.name, words::source(src).0),
                None => format!("-- no reading of {id} yet"),
            }
        }
    };
    crate::ui::tui::parts::paragraph(theme, "gpu", Tone::Warn, &sentence, columns, 3, rank::CORE)
}

fn temperatures(g: &GpuSample, theme: Theme, columns: usize, with_watts: bool) -> Row {
    let mut row = Parts::labelled(theme, "temp");
    let places = [
        (2, "edge", &g.temp_edge, "C"),
        (1, "junction", &g.temp_junction, "C"),
        (2, "mem", &g.temp_mem, "C"),
        (3, "sclk", &g.sclk_mhz, "MHz"),
        (5, "mclk", &g.mclk_mhz, "MHz"),
        (4, "fan", &g.fan_rpm, "rpm"),
    ];
    for (rank, name, metric, unit) in places {
        let r = quantity(metric, 0, unit);
        row = row.put(rank, r.tone, format!("{name} {}", r.short()));
        // where the power row has a chart there is no room for it there
        if let ("sclk", true, Some(further)) = (name, with_watts, watts_per_busy(g)) {
            row = row.put(3, Tone::Plain, further);
        }
    }
    row.row(columns, rank::TEMPERATURES)
}
