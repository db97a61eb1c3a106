//! Charts of the card over one time axis, and what they read at the cursor.

use ratatui::text::{Line, Span};

use crate::model::{Bytes, GpuSample, Mono, Phase};
use crate::run::Snapshot;
use crate::run::snapshot::Point;
use crate::ui::card;
use crate::ui::text::{self, ago, number};
use crate::ui::tui::chart::{Chart, point_at};
use crate::ui::tui::chart_choices::{ChartChoices, Picture};
use crate::ui::tui::parts::{LABEL, Parts, Row};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{Tone, pool};

use super::gpu::{MIN_CHART, supervised};
use super::rank;

type Value = fn(&Point) -> Option<f64>;

/// A quantity over time.
struct Series {
    /// At most seven columns.
    name: &'static str,
    unit: &'static str,
    decimals: usize,
    value: Value,
}

const fn series(name: &'static str, unit: &'static str, decimals: usize, value: Value) -> Series {
    Series {
        name,
        unit,
        decimals,
        value,
    }
}

/// Most important first; those after the third need zoom.
const SERIES: [Series; 7] = [
    series("memory", "GiB", 1, |p| p.mem_used.map(Bytes::as_gib_f64)),
    series("busy", "%", 0, |p| p.busy),
    series("power", "W", 0, |p| p.power_w),
    series("temp C", "C", 0, |p| p.temp_c),
    series("W/busy%", "", 2, Point::watts_per_busy),
    series("sclk", "MHz", 0, |p| p.sclk_mhz),
    series("cpu", "%", 0, |p| p.cpu),
];
const UNZOOMED: usize = 3;
/// Rows that a zoomed chart should have.
const ROWS: usize = 3;

/// Upper edge of each chart.
fn maxima(s: &Snapshot, g: Option<&GpuSample>, picture: &Picture) -> [f64; SERIES.len()] {
    let mut maxima = SERIES.map(|series| {
        let values = picture.history.iter().filter_map(series.value);
        values.filter(|v| v.is_finite()).fold(1.0, f64::max)
    });
    let total = g.and_then(|g| pool(g).2.last().copied()).or(s.vram_cap);
    let power = g.and_then(|g| g.power_cap_w.last().copied());
    let [memory, busy, watts, temp, _, _, cpu] = &mut maxima;
    *memory = total.map_or(*memory, Bytes::as_gib_f64);
    *busy = 100.0;
    *watts = power.filter(|c| *c > 0.0).unwrap_or(*watts);
    *temp = temp.max(100.0);
    *cpu = cpu.max(100.0);
    maxima
}

/// The chart of a series before its values are known.
fn chart<'a>(
    s: &Snapshot,
    picture: &'a Picture,
    c: &ChartChoices,
    theme: Theme,
    at: usize,
    max: f64,
) -> Chart<'a> {
    Chart {
        history: &picture.history,
        now: picture.now,
        span_ms: c.span(picture).0,
        max,
        line: s.vram_cap.filter(|_| at == 0).map(Bytes::as_gib_f64),
        cursor: c.cursor,
        ascii: theme.ascii,
    }
}

/// One row of chart for memory, busy and power.
pub(super) fn sparks(
    s: &Snapshot,
    g: &GpuSample,
    c: &ChartChoices,
    theme: Theme,
    columns: usize,
) -> Vec<String> {
    let picture = c.picture(s);
    let maxima = maxima(s, Some(g), &picture);
    (SERIES.iter().zip(maxima).take(UNZOOMED).enumerate())
        .map(|(at, (series, max))| {
            let chart = Chart {
                // In a single row the cap would be a line through everything.
                line: None,
                ..chart(s, &picture, c, theme, at, max)
            };
            chart.draw(series.value, columns, 1).concat()
        })
        .collect()
}

/// How far the charts go back; absent without a card or a reading.
pub(in crate::ui::tui) fn title(s: &Snapshot, c: &ChartChoices) -> Option<String> {
    let picture = c.picture(s);
    if supervised(s).is_none() || picture.history.is_empty() {
        return None;
    }
    Some(format!("charts: last {}", c.span(&picture).1))
}

/// The readings at the cursor; a reading that there is none of is `--`.
pub(in crate::ui::tui) fn readout(
    s: &Snapshot,
    c: &ChartChoices,
    theme: Theme,
    columns: usize,
) -> Option<Row> {
    let at = c.cursor?;
    let picture = c.picture(s);
    let point = point_at(&picture.history, at);
    let phase = picture.phases.iter().rev().find(|(from, _)| *from <= at);
    let mut row = Parts::labelled(theme, "at")
        .put(0, Tone::Strong, at.clock())
        .put(6, Tone::Dim, format!("-{}", ago(picture.now.since(at))));
    for (rank, series) in (1_u8..).zip(&SERIES) {
        let value = point.and_then(series.value);
        let words = match value {
            Some(v) => format!("{} {}", number(v, series.decimals), series.unit),
            None => "--".to_owned(),
        };
        let name = series.name.trim_end_matches(" C");
        row = row.put(rank, Tone::Plain, format!("{name} {}", words.trim_end()));
    }
    if let Some((_, phase)) = phase {
        row = row.put(4, Tone::Dim, phase.as_str());
    }
    Some(row.row(columns, rank::NEXT))
}

/// Large charts, `height` rows in all with the axis; empty without a card.
pub(in crate::ui::tui) fn charts(
    s: &Snapshot,
    c: &ChartChoices,
    theme: Theme,
    columns: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let g = supervised(s);
    let room = columns.saturating_sub(LABEL);
    if g.is_none() || height < 4 || room < MIN_CHART {
        return Vec::new();
    }
    let picture = c.picture(s);
    // Names of phases need a row of their own.
    let named = c.zoom && height > 4;
    let height = height - if named { 2 } else { 1 };
    let shown = if c.zoom {
        (height / ROWS).clamp(UNZOOMED, SERIES.len())
    } else {
        UNZOOMED
    };
    let each = height / shown;
    let mut lines = Vec::new();
    let all = SERIES.iter().zip(maxima(s, g, &picture)).take(shown);
    for (at, (series, max)) in all.enumerate() {
        let chart = chart(s, &picture, c, theme, at, max);
        // What is left over goes to the memory.
        let each = if at == 0 { each + height % shown } else { each };
        let mut rows = chart.draw(series.value, room, each);
        let cap = s.vram_cap.filter(|_| at == 0).zip(chart.line_row(each));
        if let (Some((cap, _)), 2..) = (cap, each) {
            name_cap(&mut rows, theme, cap);
        }
        for (at, row) in rows.into_iter().enumerate() {
            let label = match at {
                0 if each > 1 => {
                    let decimals = if max < 10.0 { series.decimals } else { 0 };
                    format!("{:>6}", number(max, decimals))
                }
                _ if at + 1 == each && series.name == "power" => {
                    g.map_or(series.name, card::power_label).to_owned()
                }
                _ if at + 1 == each => series.name.to_owned(),
                _ if cap.is_some_and(|(_, row)| row == at) => "   cap".to_owned(),
                _ => String::new(),
            };
            lines.push(labelled(theme, &label, row));
        }
    }
    let frame = chart(s, &picture, c, theme, 0, 1.0);
    if named {
        lines.push(labelled(theme, "phase", phase_row(&picture, &frame, room)));
    }
    // held charts may end anywhere
    let edge = match (c.paused.is_some(), s.outcome.is_some()) {
        (true, _) => "held",
        (false, true) => "end",
        (false, false) => "now",
    };
    let axis = axis_row(&picture, c, &frame, room, edge);
    let axis = format!("{}{axis}", " ".repeat(LABEL));
    lines.push(Line::styled(axis, theme.style(Tone::Dim)));
    lines
}

fn labelled(theme: Theme, label: &str, row: String) -> Line<'static> {
    let label = text::pad(label, LABEL, theme.ellipsis());
    Line::from(vec![
        Span::styled(label, theme.style(Tone::Dim)),
        Span::raw(row),
    ])
}

/// Writes `cap 20.0` into the line of the cap, where nothing else is drawn.
fn name_cap(rows: &mut [String], theme: Theme, cap: Bytes) {
    let dash = theme.pick("┄", ".");
    let name = format!(" cap {} ", number(cap.as_gib_f64(), 1));
    let run = dash.repeat(name.len());
    if let Some(row) = rows.iter_mut().find(|r| r.contains(&run)) {
        *row = row.replacen(&run, &name, 1);
    }
}

/// Writes `text` over `row` from a cell on, as far as there is room before `end`.
fn write(row: &mut [char], from: usize, end: usize, text: &str) {
    let end = end.min(row.len());
    for (cell, c) in row.iter_mut().take(end).skip(from).zip(text.chars()) {
        *cell = c;
    }
}

/// Where phases begin in sight; the first may have begun before.
fn phase_cells(picture: &Picture, chart: &Chart<'_>, columns: usize) -> Vec<(usize, bool, Phase)> {
    let mut cells: Vec<(usize, bool, Phase)> = Vec::new();
    let first = Mono(picture.now.0.saturating_sub(chart.span_ms));
    for (from, phase) in &*picture.phases {
        match chart.cell(*from, columns) {
            Some(cell) => cells.push((cell, true, *phase)),
            None if *from < first => {
                cells.clear();
                cells.push((0, false, *phase));
            }
            None => {}
        }
    }
    cells
}

/// Names of phases from where they begin.
fn phase_row(picture: &Picture, chart: &Chart<'_>, columns: usize) -> String {
    let mut row = vec![' '; columns];
    let cells = phase_cells(picture, chart, columns);
    for (at, (cell, begins, phase)) in cells.iter().enumerate() {
        let end = cells.get(at + 1).map_or(columns, |next| next.0);
        let tick = match (begins, chart.ascii) {
            (true, false) => "│",
            (true, true) => "|",
            (false, _) => "",
        };
        write(&mut row, *cell, end, &format!("{tick}{}", phase.as_str()));
    }
    row.into_iter().collect()
}

/// The time axis: ticks where a phase begins, the word for its right edge, and the cursor.
fn axis_row(
    picture: &Picture,
    c: &ChartChoices,
    chart: &Chart<'_>,
    columns: usize,
    edge: &str,
) -> String {
    let mut row = vec![' '; columns];
    let tick = if chart.ascii { '\'' } else { '╵' };
    for (cell, begins, _) in phase_cells(picture, chart, columns) {
        if let Some(place) = row.get_mut(cell).filter(|_| begins) {
            *place = tick;
        }
    }
    write(&mut row, 0, columns, &format!("-{}", c.span(picture).1));
    write(&mut row, columns.saturating_sub(edge.len()), columns, edge);
    let cursor = c.cursor.and_then(|t| chart.cell(t, columns));
    if let Some(place) = cursor.and_then(|at| row.get_mut(at)) {
        *place = if chart.ascii { '^' } else { '▲' };
    }
    row.into_iter().collect()
}
