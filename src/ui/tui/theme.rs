//! Symbols and colours: the terminal's own sixteen, nothing painted behind text.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

use crate::model::{Health, RuleState};
use crate::run::snapshot::RungState;
use crate::ui::words::Tone;

/// How things are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Only characters of ASCII.
    pub ascii: bool,
    /// The terminal's colours; without, tone is told by weight only.
    pub color: bool,
}

/// Box lines for terminals that know only ASCII.
const ASCII_BORDER: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

impl Theme {
    /// The theme that the environment asks for: ASCII when `ascii` is set or the
    /// locale is not UTF-8, no colour when `NO_COLOR` is set and not empty
    /// (<https://no-color.org>) or `TERM` is `dumb`. `env` looks a variable up.
    pub fn detect(ascii: bool, env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|v| !v.is_empty());
        // The first of these that is set decides, as in setlocale(3).
        let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(set)
            .is_some_and(|v| {
                let v = v.to_ascii_lowercase();
                v.contains("utf-8") || v.contains("utf8")
            });
        Self {
            ascii: ascii || !utf8,
            color: set("NO_COLOR").is_none() && set("TERM").as_deref() != Some("dumb"),
        }
    }

    /// One of two forms of a symbol.
    pub(super) const fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }

    /// Where text was cut.
    pub(super) const fn ellipsis(self) -> &'static str {
        self.pick("…", "~")
    }

    /// Box lines.
    pub(super) const fn border(self) -> border::Set<'static> {
        if self.ascii {
            ASCII_BORDER
        } else {
            border::PLAIN
        }
    }

    /// The style of a tone.
    pub(super) fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        let (color, weight) = match tone {
            Tone::Plain => return style,
            Tone::Dim => return style.add_modifier(Modifier::DIM),
            Tone::Strong => return style.add_modifier(Modifier::BOLD),
            Tone::Good => (Color::Green, Modifier::BOLD),
            Tone::Info => (Color::Cyan, Modifier::empty()),
            Tone::Warn => (Color::Yellow, Modifier::BOLD),
            Tone::Bad => (Color::Red, Modifier::BOLD),
        };
        let style = style.add_modifier(weight);
        match (self.color, tone) {
            (true, _) => style.fg(color),
            (false, Tone::Bad) => style.add_modifier(Modifier::UNDERLINED),
            (false, _) => style,
        }
    }

    /// The symbol of a health; its word always stands beside it.
    pub(super) const fn health(self, health: Health) -> &'static str {
        match health {
            Health::Starting => self.pick("○", "o"),
            Health::Healthy => self.pick("●", "*"),
            Health::Quiet => self.pick("·", "."),
            Health::Paused => self.pick("‖", "="),
            Health::Slow => self.pick("◐", "~"),
            Health::Suspect => self.pick("▲", "?"),
            Health::Hung => self.pick("✖", "X"),
            Health::Failing => self.pick("▼", "!"),
            Health::Failed => self.pick("✗", "x"),
            Health::Finished => self.pick("✓", "+"),
            Health::Blind => self.pick("◌", "-"),
        }
    }

    /// The symbol of what a rule said; its word always stands beside it.
    pub(super) const fn rule(self, state: RuleState) -> &'static str {
        match state {
            RuleState::Match => self.pick("●", "*"),
            RuleState::NotYet => self.pick("◐", "~"),
            RuleState::Clear => self.pick("○", "o"),
        }
    }

    /// The symbol of a rung's state; its word always stands beside it.
    pub(super) const fn rung(self, state: &RungState) -> &'static str {
        match state {
            RungState::Tried { .. } => self.pick("■", "#"),
            RungState::Running => self.pick("▶", ">"),
            RungState::Next => self.pick("→", "="),
            RungState::Untried => self.pick("·", "."),
            RungState::Unavailable { .. } => self.pick("⊘", "/"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(vars: &[(&str, &str)]) -> Theme {
        Theme::detect(false, |name| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn environment_decides() {
        assert_eq!(
            theme(&[("LANG", "en_US.UTF-8")]),
            Theme {
                ascii: false,
                color: true
            }
        );
        assert!(theme(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")]).ascii);
        assert!(!theme(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8")]).ascii);
        assert!(theme(&[]).ascii, "no locale is the C locale");
        assert!(!theme(&[("NO_COLOR", "1")]).color);
        assert!(theme(&[("NO_COLOR", "")]).color);
    }

    #[test]
    fn without_colour_no_style_carries_one() {
        let mono = Theme {
            ascii: false,
            color: false,
        };
        for tone in [Tone::Good, Tone::Info, Tone::Warn, Tone::Bad] {
            let style = mono.style(tone);
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
