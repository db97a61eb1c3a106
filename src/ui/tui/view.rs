//! Draws a snapshot: a pure function of the snapshot, the size and what the user
//! has done to the view.
//!
//! | size | what is shown |
//! | --- | --- |
//! | from 110x30 | card and health, machine and ladder side by side, log |
//! | from 80x24 | card, health, log below each other, small charts |
//! | from 40x10 | the same without titles; what there is no room for is shed: charts, host, temperatures, process, log, ladder |
//! | below | one line of status, and a question where there is room for all of it |

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Margin, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;

use crate::model::Health;
use crate::run::Snapshot;
use crate::ui::profiles::Profiles;
use crate::ui::text;
use crate::ui::words::{self, Tone, health_tone};

use super::choices::{Choices, Screen};
use super::chrome::{footer, header, overlay, put, titled};
use super::diagnose_screen;
use super::log_choices::Pane;
use super::log_screen;
use super::panel::{self, Room, rank};
use super::parts::{Parts, Row, shed};
use super::profile_screen;
use super::small;
use super::theme::Theme;
use super::zoom;

/// What the picture depends on besides the snapshot.
#[derive(Debug, Clone)]
pub struct ViewOptions {
    /// Symbols and colours.
    pub theme: Theme,
    /// What the user has chosen to see.
    pub choices: Choices,
    /// A short answer to a key, in the place of the footer.
    pub toast: Option<String>,
    /// The profiles to choose from.
    pub profiles: Profiles,
    /// Folder of the run's record, where there is one.
    pub record: Option<String>,
    /// Time since the snapshot was made: a supervisor that is silent is said to be.
    pub silent_for: Duration,
}

impl ViewOptions {
    /// The plain view in a theme.
    pub fn new(theme: Theme) -> Self {
        Self {
            theme,
            choices: Choices::default(),
            toast: None,
            profiles: Profiles::default(),
            record: None,
            silent_for: Duration::ZERO,
        }
    }
}

/// Which layout a size gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Compact,
    Narrow,
    Wide,
}

pub(super) const fn kind(area: Rect) -> Kind {
    match (area.width, area.height) {
        (110.., 30..) => Kind::Wide,
        (80.., 24..) => Kind::Narrow,
        (40.., 10..) => Kind::Compact,
        _ => Kind::Line,
    }
}

/// Draws the view into the whole frame.
pub fn draw(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let area = frame.area();
    match (kind(area), o.choices.screen) {
        (Kind::Line, _) => return small::draw(frame, s, o),
        (kind, Screen::Log) => log_screen::draw(frame, s, o, kind),
        (kind, Screen::Diagnose) => diagnose_screen::draw(frame, s, o, kind),
        (kind, Screen::Profiles) => profile_screen::draw(frame, s, o, kind),
        (kind, Screen::Dashboard) if o.choices.charts.zoom => zoom::draw(frame, s, o, kind),
        (Kind::Compact, _) => compact(frame, s, o),
        (Kind::Narrow, _) => narrow(frame, s, o),
        (Kind::Wide, _) => wide(frame, s, o),
    }
    footer(frame, Some(s), o);
    overlay(frame, s, o);
}

/// Draws the view before the first snapshot has come.
pub(super) fn draw_waiting(frame: &mut Frame<'_>, o: &ViewOptions) {
    let (word, text) = if o.choices.follows {
        ("READING", "the record of the run")
    } else {
        let text = "looking at the machine, nothing launched yet";
        (Health::Starting.word(), text)
    };
    let word = format!("{} {word}", o.theme.health(Health::Starting));
    let row = Parts::new(o.theme)
        .symbol(0, health_tone(Health::Starting), word)
        .put(1, Tone::Plain, text);
    let width = frame.area().width.into();
    frame.render_widget(Paragraph::new(row.line(width)), frame.area());
    if kind(frame.area()) != Kind::Line {
        footer(frame, None, o);
    }
}

/// The pane that is scrolled at this size: that of the log, or of a profile.
pub(super) fn pane(area: Rect, choices: &Choices) -> Pane {
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    // from a diagnosis one goes to a line of the log
    if matches!(choices.screen, Screen::Log | Screen::Diagnose) {
        return log_screen::pane(area, kind(area));
    }
    if choices.screen == Screen::Profiles {
        return profile_screen::pane(area, kind(area));
    }
    let (columns, rows) = match kind(area) {
        Kind::Line | Kind::Compact => (columns.saturating_sub(2), 3),
        Kind::Narrow => (columns.saturating_sub(2), height.saturating_sub(19).max(4)),
        Kind::Wide => (columns.saturating_sub(4), height.saturating_sub(26).max(4)),
    };
    Pane {
        columns,
        rows,
        full: false,
    }
}

/// The lines of the log that fit into a pane of the dashboard.
fn log_lines(s: &Snapshot, o: &ViewOptions, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let pane = Pane {
        columns,
        rows,
        full: false,
    };
    panel::log(s, &o.choices.log, o.theme, pane)
}

/// Everything in one column without titles.
fn compact(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let theme = o.theme;
    let area = frame.area().inner(Margin::new(1, 0));
    let columns = usize::from(area.width);
    let height = usize::from(area.height).saturating_sub(1);
    let mut rows = vec![Row::alone(header(s, o, columns), rank::TEMPERATURES)];
    let room = Room {
        columns,
        sentence: 3,
        result: true,
    };
    rows.extend(panel::health(s, theme, room));
    rows.extend(panel::gpu_short(s, theme, columns, true));
    rows.extend(panel::machine(s, theme, columns));
    rows.extend(panel::ladder_short(s, theme, columns));
    // The log goes after the temperatures and before the ladder; one line stays
    // as long as there is room for what comes first.
    let keep = |rank| rows.iter().filter(|r| r.rank <= rank).count();
    let log = match height.saturating_sub(keep(rank::PROCESS)) {
        0 => height.saturating_sub(keep(rank::NEXT)).min(1),
        spare => spare.min(3),
    };
    let log = log.min(s.log.len());
    let mut lines = shed(rows, height.saturating_sub(log));
    let log = height.saturating_sub(lines.len());
    lines.extend(log_lines(s, o, columns, log));
    frame.render_widget(
        Paragraph::new(Text::from(lines)),
        Rect {
            height: area.height - 1,
            ..area
        },
    );
}

/// Three parts below each other.
fn narrow(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let theme = o.theme;
    let area = frame.area();
    let columns = usize::from(area.width).saturating_sub(2);
    let mut card = panel::gpu(s, theme, columns, Some(&o.choices.charts));
    card.extend(panel::machine(s, theme, columns));
    let mut health = panel::health(
        s,
        theme,
        Room {
            columns,
            sentence: 2,
            result: true,
        },
    );
    health.extend(panel::ladder_short(s, theme, columns));
    // Header, footer, three titles, four lines of log.
    let room = usize::from(area.height).saturating_sub(9);
    let (card, health) = shed_both(card, health, room);
    let high = |lines: &Vec<_>| {
        u16::try_from(lines.len())
            .unwrap_or(u16::MAX)
            .saturating_add(1)
    };
    let [top, first, second, third, _footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(high(&card)),
        Constraint::Length(high(&health)),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    put(
        frame,
        top.inner(Margin::new(1, 0)),
        vec![header(s, o, columns)],
    );
    let inner = titled(frame, theme, first, &gpu_title(s, o, first.width), false);
    put(frame, inner, card);
    let inner = titled(frame, theme, second, "Health", false);
    put(frame, inner, health);
    let inner = titled(
        frame,
        theme,
        third,
        &panel::log_title(s, &o.choices.log, false),
        false,
    );
    put(frame, inner, log_lines(s, o, columns, inner.height.into()));
}

/// Sheds rows of two panels together, so that the less important go first
/// wherever they stand.
fn shed_both(
    first: Vec<Row>,
    second: Vec<Row>,
    height: usize,
) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
    let ranks = |limit: u8, rows: &[Row]| rows.iter().filter(|r| r.rank <= limit).count();
    let total = |limit| ranks(limit, &first) + ranks(limit, &second);
    // The highest rank of which every row has room.
    let limit = (0..u8::MAX).take_while(|l| total(*l) <= height).last();
    let Some(limit) = limit else {
        let rows = shed(second, height);
        return (Vec::new(), rows);
    };
    let spare = height - total(limit);
    let a = ranks(limit, &first);
    let first_more = ranks(limit + 1, &first) - a;
    let a = a + first_more.min(spare);
    let b = height - a;
    (shed(first, a), shed(second, b))
}

/// Card and health, machine and ladder side by side, the log below.
fn wide(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let theme = o.theme;
    let area = frame.area();
    // The path of the result takes the whole width: it is there to be copied.
    let columns = usize::from(area.width).saturating_sub(4);
    let result = match &s.outcome {
        Some(_) => shed(panel::result(s, theme, columns), 2),
        None => Vec::new(),
    };
    let [top, first, second, third, last, _footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(14),
        Constraint::Length(9),
        Constraint::Min(1),
        Constraint::Length(u16::try_from(result.len()).unwrap_or(0)),
        Constraint::Length(1),
    ])
    .areas(area);
    let inner = top.inner(Margin::new(1, 0));
    put(frame, inner, vec![header(s, o, inner.width.into())]);
    put(frame, last.inner(Margin::new(2, 0)), result);
    let halves = [Constraint::Percentage(57), Constraint::Percentage(43)];
    let [left, right] = Layout::horizontal(halves).areas(first);
    let inner = titled(frame, theme, left, &gpu_title(s, o, left.width), true);
    put(frame, inner, card_with_charts(s, o, inner));
    let inner = titled(frame, theme, right, "Health", true);
    let room = Room {
        columns: inner.width.into(),
        sentence: 5,
        result: false,
    };
    put(
        frame,
        inner,
        shed(panel::health(s, theme, room), inner.height.into()),
    );
    let [left, right] = Layout::horizontal(halves).areas(second);
    let inner = titled(frame, theme, left, "Process, host, sources", true);
    put(
        frame,
        inner,
        shed(
            panel::machine(s, theme, inner.width.into()),
            inner.height.into(),
        ),
    );
    let ladder = panel::ladder_title(s);
    let inner = titled(frame, theme, right, &ladder, true);
    put(
        frame,
        inner,
        shed(
            panel::ladder_rows(s, theme, inner.width.into(), inner.height.into()),
            inner.height.into(),
        ),
    );
    let inner = titled(
        frame,
        theme,
        third,
        &panel::log_title(s, &o.choices.log, false),
        true,
    );
    let log = log_lines(s, o, inner.width.into(), inner.height.into());
    put(frame, inner, log);
}

/// Whether the charts are held, the card, how far the charts go back: for a panel of so
/// many columns.
pub(super) fn gpu_title(s: &Snapshot, o: &ViewOptions, columns: u16) -> String {
    let c = &o.choices.charts;
    // the rule on both sides of a title
    let room = usize::from(columns).saturating_sub(6);
    let is_old = s.outcome.is_some() && panel::has_card(s);
    let old = is_old.then(|| words::AT_THE_END.to_owned());
    let with = |card: String| {
        // First, so that no narrow title cuts it off.
        let first = [c.pause_words(s), old.clone()];
        let rest = [Some(card), panel::charts_title(s, c)];
        let parts = first.into_iter().chain(rest);
        parts.flatten().collect::<Vec<_>>().join("  ")
    };
    // rather a shorter name than no word of how far the charts go back
    let forms = panel::gpu_titles(s).map(with);
    let fits = |title: &&String| text::width(title) <= room;
    forms.iter().find(fits).unwrap_or(&forms[3]).clone()
}

fn card_with_charts(s: &Snapshot, o: &ViewOptions, area: Rect) -> Vec<Line<'static>> {
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    let (theme, c) = (o.theme, &o.choices.charts);
    let mut lines = shed(panel::gpu(s, theme, columns, None), height);
    let room = height.saturating_sub(lines.len() + 1);
    let charts = panel::charts(s, c, theme, columns, room);
    if charts.is_empty() {
        // no room below the rows: then in them
        return shed(panel::gpu(s, theme, columns, Some(c)), height);
    }
    let readout = panel::readout(s, c, theme, columns);
    lines.push(readout.map_or_else(Line::default, |row| row.line));
    lines.extend(charts);
    lines
}
