//! Screens as text that a test can keep: what stands there, and how it is styled.
//!
//! [`forms`] gives the two forms that every screen is kept in: symbols with colours,
//! and ASCII without. After the text come the styles, one line for each row that has
//! any: `3  1-9 green bold, 12-20 dim` is the fourth row from the top, columns from 0,
//! both ends included.

use std::fmt::Write;

use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use ratatui::{Frame, Terminal};

use crate::run::Snapshot;
use crate::ui::tui::{Choices, Theme, ViewOptions, draw as draw_run};

/// Symbols and colours.
pub(in crate::ui) const COLOUR: Theme = Theme {
    ascii: false,
    color: true,
};
/// Neither.
pub(in crate::ui) const MONO: Theme = Theme {
    ascii: true,
    color: false,
};

/// What `draw` paints into a terminal of this size.
pub(in crate::ui) fn painted(width: u16, height: u16, draw: impl FnOnce(&mut Frame<'_>)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(draw).unwrap();
    terminal.backend().buffer().clone()
}

/// The text of a screen, one line a row, without trailing spaces.
pub(in crate::ui) fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut row = String::new();
        let mut skip = 0;
        for x in 0..buffer.area.width {
            // The second cell of a wide character holds nothing of its own.
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = crate::ui::text::width(symbol).saturating_sub(1);
            row.push_str(symbol);
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

/// The styles of a screen, see the module.
pub(in crate::ui) fn styles(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut runs: Vec<(u16, u16, String)> = Vec::new();
        for x in 0..buffer.area.width {
            let words = style(&buffer[(x, y)]);
            if words.is_empty() {
                continue;
            }
            match runs.last_mut() {
                Some((_, to, before)) if *to + 1 == x && *before == words => *to = x,
                _ => runs.push((x, x, words)),
            }
        }
        let runs: Vec<_> = (runs.into_iter())
            .map(|(from, to, words)| format!("{from}-{to} {words}"))
            .collect();
        if !runs.is_empty() {
            writeln!(out, "{y:>2}  {}", runs.join(", ")).unwrap();
        }
    }
    out
}

/// Colour, background and weight of a cell in words; nothing for the terminal's own.
fn style(cell: &Cell) -> String {
    let mut words = Vec::new();
    if cell.fg != Color::Reset {
        words.push(cell.fg.to_string().to_lowercase());
    }
    if cell.bg != Color::Reset {
        words.push(format!("on-{}", cell.bg.to_string().to_lowercase()));
    }
    for (modifier, name) in [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::REVERSED, "reversed"),
    ] {
        if cell.modifier.contains(modifier) {
            words.push(name.to_owned());
        }
    }
    words.join(" ")
}

/// Both forms of a screen with their styles. Asserts what every screen promises: no
/// background is painted, and the second form is ASCII without a colour.
pub(in crate::ui) fn forms(
    width: u16,
    height: u16,
    draw: impl Fn(&mut Frame<'_>, Theme),
) -> String {
    let form = |theme: Theme| {
        let buffer = painted(width, height, |frame| draw(frame, theme));
        let text = text(&buffer);
        for cell in &buffer.content {
            assert_eq!(cell.bg, Color::Reset, "painted behind text:\n{text}");
            assert!(theme.color || cell.fg == Color::Reset, "coloured:\n{text}");
        }
        assert!(!theme.ascii || text.is_ascii(), "not ASCII:\n{text}");
        (text, styles(&buffer))
    };
    let (text, look) = form(COLOUR);
    let (mono, mono_look) = form(MONO);
    format!("{text}-- styles\n{look}\n== ASCII, no colour\n{mono}-- styles\n{mono_look}")
}

/// Sizes that every screen is kept in.
pub(in crate::ui) const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (40, 12)];

/// A screen in both forms in each of these sizes, with the name that it is kept under.
pub(in crate::ui) fn each(
    name: &str,
    sizes: &[(u16, u16)],
    draw: impl Fn(&mut Frame<'_>, Theme),
) -> Vec<(String, String)> {
    let sizes = sizes.iter();
    sizes
        .map(|(width, height)| {
            let name = format!("{name}_{width}x{height}");
            (name, forms(*width, *height, &draw))
        })
        .collect()
}

/// What is asked of a view of a run.
pub(in crate::ui) fn with(theme: Theme, choices: Choices) -> ViewOptions {
    ViewOptions {
        choices,
        ..ViewOptions::new(theme)
    }
}

/// The text of a view of a run, one line a row, without trailing spaces.
pub(in crate::ui) fn of(s: &Snapshot, o: &ViewOptions, width: u16, height: u16) -> String {
    text(&painted(width, height, |frame| draw_run(frame, s, o)))
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;
    use ratatui::text::{Line, Span};

    use super::*;

    #[test]
    fn runs_of_equal_style_are_one() {
        let buffer = painted(12, 2, |frame| {
            let bad = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
            let line = Line::from(vec![Span::raw("a "), Span::styled("HUNG x", bad)]);
            frame.render_widget(line, frame.area());
        });
        assert_eq!(text(&buffer), "a HUNG x\n\n");
        assert_eq!(styles(&buffer), " 0  2-7 red bold\n");
    }
}
