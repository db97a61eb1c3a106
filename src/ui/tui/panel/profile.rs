//! The profiles: the list, and what stands beside it.

use ratatui::text::{Line, Span};

use crate::profile::schema::{Answer, RungSpec};
use crate::profile::{Condition, Fit, Holds, Owner, ShelfEntry};
use crate::run::Snapshot;
use crate::ui::profiles::Profiles;
use crate::ui::text;
use crate::ui::tui::parts::{Parts, paragraph};
use crate::ui::tui::profile_choices::{ProfileChoices, ProfilePane, profile_waits};
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

use super::settings;

/// First and last line of what is marked.
type Marked = Option<(usize, usize)>;

/// Lines that a sentence may take.
const LINES: usize = 6;

/// The list, shipped ones first.
pub(in crate::ui::tui) fn list(
    s: &Snapshot,
    profiles: &Profiles,
    c: &ProfileChoices,
    theme: Theme,
    columns: usize,
) -> (Vec<Line<'static>>, Marked) {
    let mut lines = Vec::new();
    let mut at = None;
    let marked = c.marked(profiles, s).map(|e| e.id.as_str());
    let name = profiles.list.iter().map(|e| text::width(&e.id)).max();
    let name = name.unwrap_or(0).min(20);
    for (owner, head) in [(Owner::Shipped, "shipped"), (Owner::User, "yours")] {
        let of = profiles.list.iter().filter(|e| e.owner == owner);
        for (nth, e) in of.enumerate() {
            if nth == 0 {
                lines.push(Line::styled(head, theme.style(Tone::Dim)));
            }
            let is_marked = marked == Some(&e.id);
            if is_marked {
                at = Some((lines.len(), lines.len()));
            }
            lines.push(entry(s, e, is_marked, theme, name).line(columns));
        }
    }
    if profiles.list.is_empty() {
        lines.push(Line::styled("no profile is known", theme.style(Tone::Dim)));
    }
    (lines, at)
}

/// The cursor of a list.
pub(in crate::ui::tui) fn cursor(theme: Theme, marked: bool) -> &'static str {
    if marked { theme.pick("›", ">") } else { " " }
}

fn entry(s: &Snapshot, e: &ShelfEntry, marked: bool, theme: Theme, name: usize) -> Parts {
    let own = e.id == s.profile;
    let (sign, state) = match own {
        false => (" ", None),
        true if profile_waits(s) => (theme.pick("→", "="), Some("next")),
        true => (theme.pick("▶", "*"), Some("in force")),
    };
    let id = text::pad(&text::clean(&e.id, theme.ascii), name, theme.ellipsis());
    let (symbol, word, tone) = fit(e, theme);
    let head = format!("{}{sign} {id}", cursor(theme, marked));
    let head_tone = if marked { Tone::Strong } else { Tone::Plain };
    Parts::new(theme)
        .symbol(0, head_tone, head)
        .symbol(0, tone, format!("{symbol} {word}"))
        .put(1, Tone::Info, state.unwrap_or_default())
        .put(2, Tone::Warn, problems_word(e))
}

fn problems_word(e: &ShelfEntry) -> String {
    match e.problems.len() {
        _ if e.broken.is_some() => String::new(),
        0 => String::new(),
        1 => "1 warning".to_owned(),
        n => format!("{n} warnings"),
    }
}

/// How a profile suits the machine: symbol and words.
fn fit(e: &ShelfEntry, theme: Theme) -> (&'static str, String, Tone) {
    if e.broken.is_some() {
        return (theme.pick("✗", "x"), "cannot be used".to_owned(), Tone::Bad);
    }
    match e.fit {
        Fit::Best => (theme.pick("●", "*"), "best match".to_owned(), Tone::Good),
        Fit::Fits => (theme.pick("●", "*"), "match".to_owned(), Tone::Plain),
        Fit::Other => {
            let bad = e.conditions.iter().find(|c| c.holds != Holds::Yes);
            let word = match bad {
                Some(c) if c.holds == Holds::Unknown => format!("{} unknown", c.what),
                Some(c) => format!("other {}", c.what),
                None => "no match".to_owned(),
            };
            (theme.pick("○", "o"), word, Tone::Dim)
        }
    }
}

/// The part beside the list.
pub(in crate::ui::tui) fn detail(
    s: &Snapshot,
    profiles: &Profiles,
    c: &ProfileChoices,
    theme: Theme,
    columns: usize,
) -> (Vec<Line<'static>>, Marked) {
    let part = c.pane.detail();
    match part {
        ProfilePane::Settings => return settings::switches(s, c, theme, columns),
        ProfilePane::InForce => return (settings::in_force(s, theme, columns), None),
        _ => {}
    }
    let Some(e) = c.marked(profiles, s) else {
        let none = Line::styled("no profile is known", theme.style(Tone::Dim));
        return (vec![none], None);
    };
    let lines = match part {
        ProfilePane::Ladder => ladder(e, theme, columns),
        ProfilePane::Problems => problems(e, theme, columns),
        _ => about(s, e, theme, columns),
    };
    (lines, None)
}

fn sentence(
    theme: Theme,
    label: &str,
    tone: Tone,
    words: &str,
    columns: usize,
) -> Vec<Line<'static>> {
    let rows = paragraph(theme, label, tone, words, columns, LINES, 0);
    rows.into_iter().map(|r| r.line).collect()
}

/// What it is, why it suits or not, where it comes from.
fn about(s: &Snapshot, e: &ShelfEntry, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let mut say = |label: &str, tone, words: &str| {
        out.extend(sentence(theme, label, tone, words, columns));
    };
    if let Some(why) = &e.broken {
        say("broken", Tone::Bad, why);
    }
    if let Some(title) = &e.title {
        say("title", Tone::Strong, title);
    }
    if let Some(words) = &e.description {
        say("about", Tone::Plain, words);
    }
    if e.id == s.profile {
        say("taken", Tone::Info, &s.profile_why);
    }
    if let Some(why) = &e.why {
        say("best", Tone::Good, why);
    }
    for c in &e.conditions {
        out.push(condition(theme, c).line(columns));
    }
    if e.conditions.is_empty() && e.broken.is_none() {
        out.push(Line::raw("fits any machine"));
    }
    let version = e.version.as_deref().unwrap_or("unknown");
    let mut say = |label: &str, words: &str| {
        out.extend(sentence(theme, label, Tone::Dim, words, columns));
    };
    say("version", version);
    if let Some(parent) = &e.extends {
        say("extends", parent);
    }
    say("file", &e.path);
    if let Some(p) = &e.profile {
        out.extend(settings::of_profile(p, theme, columns));
    }
    out
}

fn condition(theme: Theme, c: &Condition) -> Parts {
    let (symbol, word, tone) = match c.holds {
        Holds::Yes => (theme.pick("●", "*"), "ok", Tone::Good),
        Holds::No => (theme.pick("○", "o"), "no match", Tone::Warn),
        Holds::Unknown => (theme.pick("○", "?"), "unknown", Tone::Warn),
    };
    let have = c.have.as_deref().unwrap_or("not known here");
    Parts::labelled(theme, "match")
        .symbol(0, tone, format!("{symbol} {word}"))
        .put(0, Tone::Plain, format!("{} {}", c.what, c.wanted))
        .put(1, Tone::Dim, format!("here: {have}"))
}

fn problems(e: &ShelfEntry, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    if e.problems.is_empty() {
        let word = e.broken.clone();
        let (tone, word) = match word {
            Some(why) => (Tone::Bad, why),
            None => (Tone::Good, "no errors and no warnings".to_owned()),
        };
        return sentence(theme, "lint", tone, &word, columns);
    }
    let tone = if e.broken.is_some() {
        Tone::Bad
    } else {
        Tone::Warn
    };
    let all = e.problems.iter();
    all.flat_map(|p| sentence(theme, "lint", tone, p, columns))
        .collect()
}

fn ladder(e: &ShelfEntry, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let Some(profile) = &e.profile else {
        let why = e.broken.as_deref().unwrap_or("it could not be read");
        return sentence(theme, "broken", Tone::Bad, why, columns);
    };
    let rungs = &profile.ladder;
    if rungs.is_empty() {
        return vec![Line::raw("no rungs: a run ends with its first fault")];
    }
    let all = rungs.iter().enumerate();
    all.flat_map(|(n, r)| rung(n + 1, r, theme, columns))
        .collect()
}

/// A rung in two rows: what it answers, what it changes.
fn rung(n: usize, r: &RungSpec, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let answers: Vec<String> = r
        .answers
        .iter()
        .flatten()
        .map(|a| match a.value {
            Answer::Any => "any".to_owned(),
            Answer::Verdict(v) => v.as_str().to_owned(),
        })
        .collect();
    let head = Parts::new(theme)
        .put(0, Tone::Strong, format!("{n:>2} {}", r.id.value))
        .put(1, Tone::Plain, format!("answers {}", answers.join(", ")))
        .line(columns);
    let env = r.env.iter().map(|(k, v)| format!("{k}={}", v.value.value));
    let unset = r.unset.iter().flatten().map(|n| format!("no {}", n.value));
    let args = r.args.iter().flatten().map(|a| a.value.clone());
    let settings = r.settings.iter().map(|(k, v)| format!("{k} {}", v.value));
    let changes: Vec<String> = env.chain(unset).chain(args).chain(settings).collect();
    let changes = match changes.as_slice() {
        [] => "changes nothing".to_owned(),
        list => list.join(" "),
    };
    let cost = r
        .cost
        .as_ref()
        .map_or_else(String::new, |c| format!("; cost {c}"));
    let words = text::clean(&format!("{changes}{cost}"), theme.ascii);
    let more = text::wrap(&words, columns.saturating_sub(3), 2, theme.ellipsis());
    let more = more
        .into_iter()
        .map(|l| Line::from(Span::styled(format!("   {l}"), theme.style(Tone::Dim))));
    std::iter::once(head).chain(more).collect()
}
