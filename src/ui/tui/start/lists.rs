//! The cards and the three lists, line by line.

use ratatui::text::{Line, Span};

use crate::model::{FoundProcess, GpuSample};
use crate::profile::ShelfEntry;
use crate::ui::card;
use crate::ui::lobby::{self, Lobby, RunLine, RunState};
use crate::ui::text::{self, number, percent};
use crate::ui::tui::panel;
use crate::ui::tui::parts::{Parts, Row, gauge, paragraph};
use crate::ui::tui::theme::Theme;
use crate::ui::words::{Tone, pool, quantity};

use super::choices::{Choices, List};

/// Ranks of the rows above the lists.
pub(super) mod rank {
    pub(in crate::ui::tui::start) const CARD: u8 = 0;
    pub(in crate::ui::tui::start) const TROUBLE: u8 = 1;
    pub(in crate::ui::tui::start) const MORE: u8 = 4;
    pub(in crate::ui::tui::start) const HOST: u8 = 5;
    pub(in crate::ui::tui::start) const SOURCES: u8 = 6;
}

/// Columns of the gauge of memory.
const GAUGE: usize = 12;
/// From this width on each list has its columns.
const WITH_COLUMNS: usize = 70;
/// From this width on the name of a card stands before its readings.
const WITH_NAME: usize = 100;
/// Columns of `read 12 s ago`.
const READ_AGO: usize = 13;
/// Columns that are kept for a command.
const COMMAND: usize = 22;

/// Every card with its readings, the host, and what is wrong with the sources.
pub(super) fn cards(l: &Lobby, theme: Theme, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if l.gpus.is_empty() {
        let sentence = lobby::no_card(l);
        rows.extend(paragraph(
            theme,
            "gpu",
            Tone::Warn,
            &sentence,
            columns,
            2,
            rank::CARD,
        ));
    }
    for g in &l.gpus {
        rows.push(levels(l, g, theme, columns));
        rows.push(more(l, g, theme, columns));
    }
    let host = panel::host(&l.host, theme, columns);
    rows.push(Row::alone(host.line, rank::HOST));
    let ill = l.sources.iter().any(|s| {
        use crate::model::SourceState::{Absent, Ok, Starting};
        !matches!(s.state, Ok | Absent | Starting)
    });
    let rank = if ill { rank::TROUBLE } else { rank::SOURCES };
    let sources = panel::sources(&l.sources, &l.gpus, theme, columns);
    rows.extend(sources.into_iter().map(|row| Row { rank, ..row }));
    rows
}

/// The readings of a card in one line; where there is room, its name before them.
fn levels(l: &Lobby, g: &GpuSample, theme: Theme, columns: usize) -> Row {
    let label = format!("GPU {}", g.index);
    let mut row = Parts::labelled(theme, &label);
    if columns >= WITH_NAME {
        let name = text::pad(&text::clean(&g.name, theme.ascii), 22, theme.ellipsis());
        row = row.put(0, Tone::Strong, name);
    }
    for (at, (label, reading)) in lobby::levels(l, g).into_iter().enumerate() {
        let value = match (label, columns) {
            ("vram" | "gtt" | "power", ..WITH_COLUMNS) | ("", _) => reading.short(),
            _ => format!("{label} {}", reading.short()),
        };
        row = row.put([0, 1, 2, 3][at], reading.tone, value);
        if at == 0 && columns >= WITH_COLUMNS {
            let (_, used, total) = pool(g);
            let share = used
                .last()
                .zip(total.last())
                .and_then(|(u, t)| percent(u.as_gib_f64(), t.as_gib_f64()));
            if let Some(share) = share {
                row = row.symbol(5, Tone::Plain, gauge(theme, share, GAUGE)).put(
                    4,
                    Tone::Plain,
                    format!("{} %", number(share, 0)),
                );
            }
        }
    }
    row.row(columns, rank::CARD)
}

/// What it is and where, and the readings of second rank.
fn more(l: &Lobby, g: &GpuSample, theme: Theme, columns: usize) -> Row {
    let name = if columns < WITH_NAME {
        g.name.as_str()
    } else {
        ""
    };
    let mut row = Parts::labelled(theme, "")
        .put(0, Tone::Strong, name)
        .put(1, Tone::Dim, g.arch.as_deref().unwrap_or("architecture --"))
        .put(2, Tone::Dim, format!("at {}", g.id));
    let list = card::compute_index(g).filter(|_| g.compute_index != Some(g.index));
    row = row.put(3, Tone::Dim, list.unwrap_or_default());
    if let Some(instead) = card::unread(g) {
        let note = instead.note.unwrap_or_default();
        return row.put(1, instead.tone, note).row(columns, rank::MORE);
    }
    let planned = lobby::is_as_planned(l, g);
    row = row.put(1, Tone::Warn, card::held_back(g).unwrap_or_default());
    for (rank, name, metric, unit) in [
        (3, "edge", &g.temp_edge, "C"),
        (3, "mem", &g.temp_mem, "C"),
        (4, "sclk", &g.sclk_mhz, "MHz"),
        (5, "mclk", &g.mclk_mhz, "MHz"),
        (6, "fan", &g.fan_rpm, "rpm"),
    ] {
        // the hottest place stands above
        if name == lobby::hottest(g).0 {
            continue;
        }
        let r = quantity(metric, 0, unit);
        let r = if planned { r.ageless() } else { r };
        let tone = if r.tone == Tone::Plain {
            Tone::Dim
        } else {
            r.tone
        };
        row = row.put(rank, tone, format!("{name} {}", r.short()));
    }
    if let Some(state) = g.state.last().filter(|s| *s != "active") {
        row = row.put(1, Tone::Warn, state);
    }
    // its room is kept while it says nothing, that nothing moves when it speaks
    let ago = lobby::read_ago(l, g).unwrap_or_default();
    let ago = text::pad(&ago, READ_AGO, theme.ellipsis());
    row.put(2, Tone::Dim, ago).row(columns, rank::MORE)
}

/// Title of a list, with how many lines it has.
pub(super) fn title(l: &Lobby, list: List) -> String {
    let count = length(l, list);
    match count {
        0 => list.name().to_owned(),
        n => format!("{}  {n}", list.name()),
    }
}

/// Lines that a list has.
pub(super) fn length(l: &Lobby, list: List) -> usize {
    match list {
        List::Found => l.found().len(),
        List::Runs => l.runs().len(),
        List::Profiles => l.profiles.len(),
    }
}

/// The lines of a list that fit, the marked one in sight; what is said where it is empty.
pub(super) fn lines(
    l: &Lobby,
    c: &Choices,
    list: List,
    theme: Theme,
    columns: usize,
    rows: usize,
) -> Vec<Line<'static>> {
    let length = length(l, list);
    if length == 0 {
        let sentence = match list {
            List::Found => lobby::nothing_runs(l).to_owned(),
            List::Runs => lobby::no_runs(l),
            List::Profiles => "looking for profiles".to_owned(),
        };
        let clean = text::clean(&sentence, theme.ascii);
        return text::wrap(&clean, columns, rows, theme.ellipsis())
            .into_iter()
            .map(|piece| Line::styled(piece, theme.style(Tone::Dim)))
            .collect();
    }
    let marked = c.mark(list, length);
    let first = (marked + 1)
        .saturating_sub(rows)
        .min(length.saturating_sub(rows));
    let memory = memory_column(l, columns);
    (first..length)
        .take(rows)
        .map(|at| {
            let mark = Mark {
                here: at == marked,
                live: c.list == list,
            };
            match list {
                List::Found => process(l, &l.found()[at], mark, memory, theme, columns),
                List::Runs => run(&l.runs()[at], mark, theme, columns),
                List::Profiles => profile(&l.profiles[at], c, mark, theme, columns),
            }
        })
        .collect()
}

/// Whether a line is the marked one, in the list that has the keys.
#[derive(Clone, Copy)]
struct Mark {
    here: bool,
    live: bool,
}

impl Mark {
    fn begin(self, theme: Theme, text: &str) -> Parts {
        let (symbol, tone) = match self {
            Self {
                here: true,
                live: true,
            } => (theme.pick("▶", ">"), Tone::Strong),
            Self { here: true, .. } => (theme.pick("·", "."), Tone::Dim),
            Self { .. } => (" ", Tone::Plain),
        };
        let text = text::clean(text, theme.ascii);
        Parts::new(theme).symbol(0, tone, format!("{symbol} {text}"))
    }

    /// The tone of what the line is about.
    const fn tone(self) -> Tone {
        match self {
            Self {
                here: true,
                live: true,
            } => Tone::Strong,
            _ => Tone::Plain,
        }
    }
}

/// `head` as far as it goes, then `tail` in the room that is left.
fn with_tail(
    head: Parts,
    tail: &str,
    keep: usize,
    tone: Tone,
    theme: Theme,
    columns: usize,
) -> Line<'static> {
    let tail = text::clean(tail, theme.ascii);
    let kept = text::width(&tail).min(keep.min(columns / 2));
    let mut line = head.line(columns.saturating_sub(kept + 2));
    let room = columns.saturating_sub(line.width() + 2);
    line.push_span(Span::raw("  "));
    line.push_span(Span::styled(
        text::fit(&tail, room, theme.ellipsis()),
        theme.style(tone),
    ));
    line
}

/// A piece in a column of its own where there is room for columns.
fn column(text: &str, width: usize, columns: usize, theme: Theme) -> String {
    let text = text::clean(text, theme.ascii);
    if columns >= WITH_COLUMNS {
        text::pad(&text, width, theme.ellipsis())
    } else {
        text
    }
}

/// Columns of the memory: as many as the longest takes, within a third of the line.
fn memory_column(l: &Lobby, columns: usize) -> usize {
    let width = |p: &FoundProcess| text::width(&lobby::memory(p, &l.gpus).0);
    let longest = l.found().iter().map(width).max().unwrap_or(0);
    longest.min(columns / 3)
}

fn process(
    l: &Lobby,
    p: &FoundProcess,
    mark: Mark,
    memory_width: usize,
    theme: Theme,
    columns: usize,
) -> Line<'static> {
    let kind = column(lobby::kind_word(p), 10, columns, theme);
    let (memory, tone) = lobby::memory(p, &l.gpus);
    let mut row = mark
        .begin(theme, &kind)
        .put(
            1,
            Tone::Plain,
            column(&format!("pid {}", p.pid), 11, columns, theme),
        )
        .put(2, tone, column(&memory, memory_width, columns, theme))
        .put(4, Tone::Plain, column(&lobby::cpu(p), 10, columns, theme))
        .put(5, Tone::Plain, column(&lobby::lives(p), 14, columns, theme));
    if let Some(supervisor) = p.supervisor {
        let by = l.run_of(p).map_or_else(
            || format!("supervised by {supervisor}"),
            |run| format!("run {}", run.id.rsplit('-').next().unwrap_or(&run.id)),
        );
        row = row.put(3, Tone::Good, by);
    }
    if p.others > 0 {
        row = row.put(6, Tone::Dim, format!("+{}", p.others));
    }
    let command = lobby::process_command(p);
    with_tail(row, &command, COMMAND, mark.tone(), theme, columns)
}

fn run(r: &RunLine, mark: Mark, theme: Theme, columns: usize) -> Line<'static> {
    let (state, tone) = lobby::run_state(&r.state);
    let began = lobby::began(r);
    // the year and the day say little in a narrow list
    let short = began
        .get(5..)
        .filter(|_| columns < WITH_COLUMNS && r.began.is_some());
    let state = text::pad(&state, if columns < 40 { 8 } else { 14 }, theme.ellipsis());
    let tail = match &r.state {
        RunState::Broken { why } if columns >= 100 => {
            format!("{}  ({why})", lobby::run_command(r))
        }
        _ => lobby::run_command(r),
    };
    let row = mark
        .begin(theme, short.unwrap_or(&began))
        .put(0, tone, state)
        .put(
            2,
            Tone::Dim,
            if columns < WITH_COLUMNS { "" } else { &r.id },
        );
    with_tail(row, &tail, COMMAND, mark.tone(), theme, columns)
}

fn profile(p: &ShelfEntry, c: &Choices, mark: Mark, theme: Theme, columns: usize) -> Line<'static> {
    let (word, why, tone) = lobby::fit(p);
    let chosen = c.profile.as_ref() == Some(&p.id);
    let id = text::pad(&text::clean(&p.id, theme.ascii), 16, theme.ellipsis());
    let (word, tone) = if chosen {
        ("CHOSEN", Tone::Good)
    } else {
        (word, tone)
    };
    let row = mark
        .begin(theme, &id)
        .put(0, tone, text::pad(word, 12, theme.ellipsis()));
    let title = why.or_else(|| p.title.clone()).unwrap_or_default();
    with_tail(row, &title, 8, mark.tone(), theme, columns)
}
