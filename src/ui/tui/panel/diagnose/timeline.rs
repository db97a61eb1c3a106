//! The evidence over one time axis, with what each row reads at the cursor, or now.

use ratatui::text::{Line, Span};

use crate::model::{Bytes, Mono, SourceState};
use crate::run::Snapshot;
use crate::run::snapshot::{Lack, Mark, MarkKind, Point, Quantity};
use crate::ui::diagnosis::{is_fault, short_mark};
use crate::ui::text::{self, ago, number};
use crate::ui::tui::chart::{Chart, point_at};
use crate::ui::tui::chart_choices::{ChartChoices, Picture};
use crate::ui::tui::diagnose_choices;
use crate::ui::tui::panel::gpu::supervised;
use crate::ui::tui::panel::rank;
use crate::ui::tui::parts::Row;
use crate::ui::tui::theme::Theme;
use crate::ui::words::{self, Tone, health_tone, pool};

/// How the columns of the timeline are shared.
#[derive(Debug, Clone, Copy)]
struct Columns {
    label: usize,
    chart: usize,
    value: usize,
}

impl Columns {
    const fn of(columns: usize) -> Self {
        let (label, value) = match columns {
            100.. => (10, 26),
            70.. => (8, 18),
            _ => (7, 9),
        };
        Self {
            label,
            chart: columns.saturating_sub(label + value + 1),
            value,
        }
    }
}

/// What the rows are made from.
struct Scene<'a> {
    s: &'a Snapshot,
    theme: Theme,
    picture: &'a Picture,
    span_ms: u64,
    cursor: Option<Mono>,
    columns: Columns,
}

impl Scene<'_> {
    /// The moment that is read out.
    fn moment(&self) -> Mono {
        self.cursor.unwrap_or(self.picture.now)
    }

    fn chart(&self, max: f64) -> Chart<'_> {
        Chart {
            history: &self.picture.history,
            now: self.picture.now,
            span_ms: self.span_ms,
            max,
            line: None,
            cursor: self.cursor,
            ascii: self.theme.ascii,
        }
    }

    /// The column of a moment; what is before the left edge stands there.
    fn cell(&self, t: Mono) -> Option<usize> {
        let chart = self.chart(1.0);
        match chart.cell(t, self.columns.chart) {
            None if t < self.picture.now => Some(0),
            cell => cell,
        }
    }

    /// The column of a moment that is in sight.
    fn seen(&self, t: Mono) -> Option<usize> {
        self.chart(1.0).cell(t, self.columns.chart)
    }

    fn row(
        &self,
        label: &str,
        picture: Vec<Span<'static>>,
        value: &(String, Tone),
        rank: u8,
    ) -> Row {
        let Columns {
            label: room,
            value: last,
            ..
        } = self.columns;
        let theme = self.theme;
        let label = text::pad(label, room, "");
        let mut line = Line::from(vec![Span::styled(label, theme.style(Tone::Dim))]);
        line.extend(picture);
        let gap = (room + self.columns.chart + 1).saturating_sub(line.width());
        line.push_span(" ".repeat(gap));
        let words = text::clean(&value.0, theme.ascii);
        let words = text::fit(&words, last, theme.ellipsis());
        line.push_span(Span::styled(words, theme.style(value.1)));
        Row::alone(line, rank)
    }
}

/// How far it goes back, and where the cursor stands.
pub(in crate::ui::tui) fn title(s: &Snapshot, c: &ChartChoices) -> String {
    let chosen = diagnose_choices::timeline(s, c);
    let picture = chosen.picture(s);
    let (_, span) = chosen.span(&picture);
    let at = match c.cursor {
        Some(t) => {
            let back = ago(picture.now.since(t));
            format!("cursor {} (-{back})", t.clock())
        }
        None => format!("now {}", picture.now.clock()),
    };
    let parts = [
        c.pause_words(s),
        Some(format!("Timeline  last {span}")),
        Some(at),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// The rows with their ranks.
pub(in crate::ui::tui) fn rows(
    s: &Snapshot,
    c: &ChartChoices,
    theme: Theme,
    columns: usize,
) -> Vec<Row> {
    let chosen = diagnose_choices::timeline(s, c);
    let picture = chosen.picture(s);
    let scene = Scene {
        s,
        theme,
        picture: &picture,
        span_ms: chosen.span(&picture).0,
        cursor: c.cursor,
        columns: Columns::of(columns),
    };
    let mut rows = vec![axis(&scene), phases(&scene)];
    rows.extend(Quantity::ALL.map(|what| quantity(&scene, what)));
    rows.extend([output(&scene), health(&scene), marks(&scene)]);
    rows.extend(sources(&scene, columns));
    rows
}

/// Times along the axis, the cursor among them.
fn axis(scene: &Scene<'_>) -> Row {
    const STEPS: [u64; 9] = [5, 10, 20, 30, 60, 120, 300, 600, 3600];
    /// Columns of a time with the gap behind it.
    const EACH: u64 = 11;
    let room = scene.columns.chart;
    let width = u64::try_from(room).unwrap_or(u64::MAX).max(1);
    let now = scene.picture.now.0;
    let fits =
        |secs: &&u64| secs.saturating_mul(1000).saturating_mul(width) / EACH >= scene.span_ms;
    let step = STEPS.iter().find(fits).map_or(scene.span_ms, |s| s * 1000);
    let step = step.max(1);
    let first = now.saturating_sub(scene.span_ms);
    let mut cells = vec![' '; room];
    let mut t = first.div_ceil(step).saturating_mul(step);
    while t <= now {
        let words = Mono(t).clock();
        let words = words.strip_prefix("00:").unwrap_or(&words);
        if let Some(at) = scene.seen(Mono(t)) {
            write_at(&mut cells, at, words);
        }
        let Some(next) = t.checked_add(step) else {
            break;
        };
        t = next;
    }
    if let Some(at) = scene.cursor.and_then(|t| scene.seen(t)) {
        write_at(&mut cells, at, scene.theme.pick("▼", "v"));
    }
    let picture = Span::styled(
        cells.into_iter().collect::<String>(),
        scene.theme.style(Tone::Dim),
    );
    let what = match scene.cursor {
        Some(t) => format!("at {}", t.clock()),
        None => "now".to_owned(),
    };
    scene.row("", vec![picture], &(what, Tone::Dim), rank::HOST + 1)
}

/// Writes a text into cells if all of it has room.
fn write_at(cells: &mut [char], at: usize, words: &str) -> bool {
    let length = words.chars().count();
    let Some(place) = cells.get_mut(at..at.saturating_add(length)) else {
        return false;
    };
    for (cell, c) in place.iter_mut().zip(words.chars()) {
        *cell = c;
    }
    true
}

/// Columns that a part of a name needs to say something.
const SHORTEST: usize = 4;

/// Stretches with names, each from its begin to that of the next.
fn stretches(scene: &Scene<'_>, list: &[(Mono, &str, Tone)]) -> Vec<Span<'static>> {
    let theme = scene.theme;
    let room = scene.columns.chart;
    let placed: Vec<_> = list
        .iter()
        .filter_map(|(t, name, tone)| Some((scene.cell(*t)?, *name, *tone)))
        .collect();
    let mut spans = Vec::new();
    let mut used = 0;
    for (n, (from, name, tone)) in placed.iter().enumerate() {
        let to = placed.get(n + 1).map_or(room, |(next, ..)| *next);
        let Some(length) = to.checked_sub(*from).filter(|l| *l > 0 && *from >= used) else {
            continue;
        };
        if *from > used {
            spans.push(Span::raw(" ".repeat(from - used)));
        }
        let closed = to < room;
        let body = length - usize::from(closed);
        // a letter or two say nothing, but of a fault, which is to be seen without colour
        let mut words = match body {
            0..SHORTEST if text::width(name) > body && *tone != Tone::Bad => String::new(),
            _ => text::fit(name, body, ""),
        };
        let gap = body.saturating_sub(text::width(&words));
        words.push_str(&theme.pick("─", "-").repeat(gap));
        if closed {
            words.push_str(theme.pick("┤", "|"));
        }
        spans.push(Span::styled(words, theme.style(*tone)));
        used = to;
    }
    spans
}

fn phases(scene: &Scene<'_>) -> Row {
    let list = &scene.picture.phases;
    let named: Vec<_> = list
        .iter()
        .map(|(t, p)| (*t, p.as_str(), Tone::Plain))
        .collect();
    let t = scene.moment();
    let at = list.iter().rev().find(|(from, _)| *from <= t);
    let value = at.map_or_else(
        || ("--".to_owned(), Tone::Dim),
        |(_, p)| (p.as_str().to_owned(), Tone::Plain),
    );
    scene.row("phase", stretches(scene, &named), &value, rank::NEXT)
}

fn health(scene: &Scene<'_>) -> Row {
    let s = scene.s;
    let word = |h: crate::model::Health| {
        if is_fault(h) {
            h.word().to_owned()
        } else {
            h.word().to_lowercase()
        }
    };
    let mut states: Vec<_> = s
        .trail
        .states
        .iter()
        .map(|state| (state.at, state.verdict.health))
        .collect();
    // equal words in a row are one stretch, whatever the verdict
    states.dedup_by(|b, a| a.1 == b.1);
    if states.is_empty() {
        states.push((s.verdict_since, s.verdict.health));
    }
    let named: Vec<_> = states
        .iter()
        .map(|(at, h)| (*at, word(*h), health_tone(*h)))
        .collect();
    let list: Vec<_> = named
        .iter()
        .map(|(at, word, tone)| (*at, word.as_str(), *tone))
        .collect();
    let t = scene.moment();
    let at = list.iter().rev().find(|(from, ..)| *from <= t);
    let value = at.map_or_else(
        || ("--".to_owned(), Tone::Dim),
        |(_, word, tone)| ((*word).to_owned(), *tone),
    );
    scene.row("health", stretches(scene, &list), &value, rank::CORE)
}

/// What a quantity is called, its value, and what may be shed of it.
type Reader = (&'static str, &'static str, fn(&Point) -> Option<f64>, u8);

const fn reader(what: Quantity) -> Reader {
    match what {
        Quantity::Busy => ("gpu busy", "busy", |p| p.busy, rank::NEXT),
        Quantity::Power => ("power", "power", |p| p.power_w, rank::LADDER),
        Quantity::Memory => (
            "memory",
            "memory",
            |p| p.mem_used.map(Bytes::as_gib_f64),
            rank::STRIP,
        ),
        Quantity::Cpu => ("cpu", "cpu", |p| p.cpu, rank::TROUBLE),
        Quantity::Io => ("io", "io", |p| p.io_bps, rank::HOST),
    }
}

/// Upper edge of a row.
fn top(scene: &Scene<'_>, what: Quantity, value: fn(&Point) -> Option<f64>) -> f64 {
    let s = scene.s;
    let g = supervised(s);
    let seen = scene.picture.history.iter().filter_map(value);
    let seen = seen.filter(|v| v.is_finite()).fold(1.0, f64::max);
    match what {
        Quantity::Busy => 100.0,
        Quantity::Power => {
            let cap = g.and_then(|g| g.power_cap_w.last().copied());
            cap.filter(|c| *c > 0.0).unwrap_or(seen)
        }
        Quantity::Memory => {
            let total = g.and_then(|g| pool(g).2.last().copied());
            total.or(s.vram_cap).map_or(seen, Bytes::as_gib_f64)
        }
        Quantity::Cpu => seen.max(100.0),
        Quantity::Io => seen,
    }
}

fn quantity(scene: &Scene<'_>, what: Quantity) -> Row {
    let (long, short, value, rank) = reader(what);
    let chart = scene.chart(top(scene, what, value));
    let picture = chart.draw(value, scene.columns.chart, 1).concat();
    let label = if scene.columns.label > text::width(long) {
        long
    } else {
        short
    };
    scene.row(
        label,
        vec![Span::raw(picture)],
        &read(scene, what, value),
        rank,
    )
}

/// The reading of a moment; one that there is none of says why.
fn read(scene: &Scene<'_>, what: Quantity, value: fn(&Point) -> Option<f64>) -> (String, Tone) {
    let t = scene.moment();
    let point = point_at(&scene.picture.history, t);
    if let Some(v) = point.and_then(value) {
        let words = match what {
            Quantity::Busy | Quantity::Cpu => format!("{} %", number(v, 0)),
            Quantity::Power => format!("{} W", number(v, 0)),
            Quantity::Memory => format!("{} GiB", number(v, 1)),
            Quantity::Io => rate(v),
        };
        return (words, Tone::Plain);
    }
    match scene.s.trail.lapse_at(what, t) {
        None => ("--".to_owned(), Tone::Dim),
        Some(lapse) => match &lapse.lack {
            Lack::Absent => ("-- not offered".to_owned(), Tone::Dim),
            Lack::Stale => (format!("stale {}", ago(t.since(lapse.since))), Tone::Warn),
            Lack::Failed { why } => (format!("failed: {why}"), Tone::Bad),
        },
    }
}

/// Bytes a second.
fn rate(v: f64) -> String {
    const KIB: f64 = 1024.0;
    match v {
        v if v < KIB => format!("{} B/s", number(v, 0)),
        v if v < KIB * KIB => format!("{} KiB/s", number(v / KIB, 0)),
        v => format!("{} MiB/s", number(v / KIB / KIB, 1)),
    }
}

/// When something was printed.
fn output(scene: &Scene<'_>) -> Row {
    let mut cells = vec![' '; scene.columns.chart];
    for t in scene.s.trail.output.iter() {
        if let Some(at) = scene.seen(*t) {
            write_at(&mut cells, at, "|");
        }
    }
    let t = scene.moment();
    let last = scene.s.trail.output.iter().rev().find(|o| **o <= t);
    let value = last.map_or_else(
        || ("none yet".to_owned(), Tone::Dim),
        |o| (format!("{} ago", ago(t.since(*o))), Tone::Plain),
    );
    let picture = Span::raw(cells.into_iter().collect::<String>());
    scene.row("output", vec![picture], &value, rank::TROUBLE)
}

/// How much a mark matters to be named.
const fn grade(kind: &MarkKind) -> u8 {
    match kind {
        MarkKind::Health { health, .. } if is_fault(*health) => 0,
        MarkKind::LastLine => 1,
        MarkKind::FalseAlarm | MarkKind::Kernel { .. } | MarkKind::JobFailed => 2,
        MarkKind::Signal { .. } | MarkKind::Exit { .. } => 3,
        MarkKind::Health { .. } | MarkKind::Attempt { .. } => 4,
        _ => 5,
    }
}

/// Writes the words of a mark beside it, if they have room there: after it, else before.
fn name_mark(cells: &mut [char], at: usize, words: &str) -> bool {
    let length = words.chars().count();
    if text::width(words) != length {
        return false;
    }
    let free = |c: &[char]| c.iter().all(|c| *c == ' ');
    // one cell between the symbol and its words, one before what comes next
    let (from, to) = (at + 2, (at + 3 + length).min(cells.len()));
    let fits = from + length <= cells.len() && cells.get(at + 1..to).is_some_and(free);
    if fits {
        return write_at(cells, from, words);
    }
    let Some(from) = at.checked_sub(length + 1) else {
        return false;
    };
    let fits = cells.get(from.saturating_sub(1)..at).is_some_and(free);
    fits && write_at(cells, from, words)
}

/// What happened: every mark, and the words of those that there is room for.
fn marks(scene: &Scene<'_>) -> Row {
    let theme = scene.theme;
    let mut cells = vec![' '; scene.columns.chart];
    let seen = scene.s.trail.marks.iter();
    let mut seen: Vec<_> = seen.filter_map(|m| Some((scene.seen(m.at)?, m))).collect();
    for (at, _) in &seen {
        write_at(&mut cells, *at, theme.pick("▲", "^"));
    }
    seen.sort_by_key(|(_, m)| grade(&m.kind));
    for (at, m) in &seen {
        let words = text::clean(&short_mark(m), theme.ascii);
        // rather a word of it than none
        let first = words.split(' ').next().unwrap_or_default();
        if !name_mark(&mut cells, *at, &words) && m.kind == MarkKind::LastLine {
            name_mark(&mut cells, *at, first);
        }
    }
    // the last one that has happened at the moment
    let t = scene.moment();
    let last = scene.s.trail.marks.iter().rev().find(|m| m.at <= t);
    let value = last.map_or_else(
        || (String::new(), Tone::Dim),
        |m| (last_mark(m), Tone::Plain),
    );
    let picture = Span::raw(cells.into_iter().collect::<String>());
    scene.row("marks", vec![picture], &value, rank::TROUBLE)
}

/// `13:40 last line`, `14:31 HUNG +51 s`.
fn last_mark(m: &Mark) -> String {
    let at = m.at.clock();
    let at = at.strip_prefix("00:").unwrap_or(&at);
    let words = short_mark(m);
    match &m.kind {
        MarkKind::Health { health, .. } if words.starts_with('+') => {
            format!("{at} {} {words}", health.word())
        }
        _ => format!("{at} {words}"),
    }
}

/// Whether the readings can be trusted: sources that are not well, the largest gap.
fn sources(scene: &Scene<'_>, columns: usize) -> Option<Row> {
    use SourceState as S;
    let s = scene.s;
    let ill = s
        .sources
        .iter()
        .filter(|src| matches!(src.state, S::Failing | S::Stale | S::Lost));
    let ill: Vec<_> = ill
        .map(|src| format!("{} {}", src.name, words::source(src).0))
        .collect();
    let from = scene.picture.now.0.saturating_sub(scene.span_ms);
    let seen = scene.picture.history.iter().map(|p| p.at.0);
    let seen: Vec<_> = seen.filter(|t| *t >= from).collect();
    let gaps = seen
        .windows(2)
        .filter_map(|w| w.get(1)?.checked_sub(*w.first()?));
    let gap = gaps.max().map_or_else(String::new, |ms| {
        let secs = std::time::Duration::from_millis(ms).as_secs_f64();
        format!("; largest gap {} s", number(secs, 1))
    });
    let (words, tone, rank) = match (ill.is_empty(), s.sources.is_empty()) {
        (true, true) => return None,
        (true, false) => (format!("all fresh{gap}"), Tone::Plain, rank::PROCESS),
        (false, _) => (format!("{}{gap}", ill.join("; ")), Tone::Warn, rank::NEXT),
    };
    let theme = scene.theme;
    let label = text::pad("sources", scene.columns.label, "");
    let words = text::clean(&words, theme.ascii);
    let room = columns.saturating_sub(scene.columns.label);
    let words = text::fit(&words, room, theme.ellipsis());
    let line = Line::from(vec![
        Span::styled(label, theme.style(Tone::Dim)),
        Span::styled(words, theme.style(tone)),
    ]);
    Some(Row::alone(line, rank))
}
