//! A terminal that is too small for the screens: a line of status, and questions as far as
//! all of one can be read.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::run::Snapshot;
use crate::ui::text::{self, number};
use crate::ui::words::{self, Tone};

use super::choices::{Overlay, Screen};
use super::chrome::answer;
use super::consequence;
use super::keymap::{self, Action, Binding};
use super::parts::Parts;
use super::view::{Kind, ViewOptions, kind};

/// Why nothing is asked.
pub(super) const TOO_SMALL: &str = "no room: make it 40x10";

/// Fewest columns in which the answers of a question can be read.
const COLUMNS: u16 = 20;

/// The answers of a question, without the key that interrupts everywhere.
fn answers(overlay: Overlay) -> impl Iterator<Item = &'static Binding> {
    keymap::of(Screen::Dashboard, overlay).filter(|b| b.action != Action::Interrupt)
}

/// Whether a terminal of this size shows what lies over the screen.
pub(super) fn holds(area: Rect, overlay: Overlay) -> bool {
    if overlay == Overlay::None || kind(area) != Kind::Line {
        return true;
    }
    // what it asks, and each answer
    let rows = answers(overlay).count() + 1;
    overlay.asks() && area.width >= COLUMNS && usize::from(area.height) >= rows
}

/// Draws it.
pub(super) fn draw(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let area = frame.area();
    let rows = usize::from(area.height);
    let mut lines = vec![status(s, o, area.width.into())];
    let overlay = o.choices.overlay;
    if overlay.asks() && holds(area, overlay) {
        let question = question(s, o, area.width.into(), rows);
        // the status goes before an answer does
        lines.truncate(rows.saturating_sub(question.len()));
        lines.extend(question);
    } else if let (Some(toast), 2..) = (&o.toast, rows) {
        let answer = answer(toast, o.theme, area.width.into(), rows - 1);
        lines.truncate(rows - answer.len());
        lines.extend(answer);
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Health, what happens, phase, progress.
fn status(s: &Snapshot, o: &ViewOptions, columns: usize) -> Line<'static> {
    let health = words::health(s);
    let mut row = Parts::new(o.theme).symbol(0, health.tone, health.word.to_owned());
    if let Some((how_far, _, tone)) = words::not_live(s) {
        return row.put(0, tone, how_far).line(columns);
    }
    let (stage, _, tone) = words::stage(s);
    row = match &s.outcome {
        Some((_, code, _)) => row.put(1, tone, format!("exit code {code}")),
        None => row.put(2, tone, stage),
    };
    row = row.put(3, Tone::Plain, s.phase.as_str());
    if let Some(share) = s.progress.as_ref().and_then(|p| words::progress(p).percent) {
        row = row.put(4, Tone::Plain, format!("{} %", number(share, 0)));
    }
    row.line(columns)
}

/// What is asked, what an answer does as far as there is room, and the answers.
fn question(s: &Snapshot, o: &ViewOptions, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let title = o.choices.overlay.question().unwrap_or_default();
    let title = text::fit(title, columns, o.theme.ellipsis());
    let answers = answers(o.choices.overlay).map(|b| {
        let key = b.keys.first().map_or_else(String::new, |k| k.name());
        Parts::new(o.theme)
            .symbol(0, Tone::Strong, key)
            .put(0, Tone::Plain, b.name)
            .line(columns)
    });
    let answers: Vec<_> = answers.collect();
    let mut lines = vec![Line::styled(title, o.theme.style(Tone::Strong))];
    let room = rows.saturating_sub(answers.len() + 2);
    lines.extend(consequence::lines(s, o, columns).into_iter().take(room));
    lines.extend(answers);
    lines
}
