//! The settings of the run: those that can be switched, and all that are in force.

use ratatui::text::{Line, Span};

use crate::model::{Effective, Follow, Origin, Setting};
use crate::profile::Profile;
use crate::profile::edit::value_in;
use crate::run::Snapshot;
use crate::run::snapshot::SettingView;
use crate::ui::text;
use crate::ui::tui::parts::Parts;
use crate::ui::tui::profile_choices::{
    NOT_SET, ProfileChoices, ProfilePane, changes, ends_something,
};
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

use super::profile::cursor;

/// Columns of a setting's name.
const NAME: usize = 16;
/// Columns of a value, where there is room for a table.
const VALUE: usize = 12;
/// From so many columns on each setting has its note, else only the marked one.
const ROOMY: usize = 60;

/// Two rows a setting: its values, and how the program is told or why it cannot be;
/// then what the next attempt brings.
pub(super) fn switches(
    s: &Snapshot,
    c: &ProfileChoices,
    theme: Theme,
    columns: usize,
) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
    let mut lines = Vec::new();
    let mut at = None;
    for view in &s.settings {
        let marked = c.pane == ProfilePane::Settings && view.setting == c.setting();
        let from = lines.len();
        lines.push(values(view, marked, theme, columns).line(columns));
        let rows = match (marked, columns >= ROOMY) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 0,
        };
        lines.extend(note(view, theme, columns, rows));
        if marked {
            at = Some((from, lines.len() - 1));
        }
    }
    if s.settings.is_empty() {
        let words = "the record of this run does not tell its settings";
        lines.push(Line::styled(words, theme.style(Tone::Dim)));
    }
    lines.push(Line::default());
    lines.push(waiting(s, theme).line(columns));
    (lines, at)
}

/// The value, and the one from the next attempt on.
fn values(view: &SettingView, marked: bool, theme: Theme, columns: usize) -> Parts {
    let word = |v: &Option<String>| v.clone().unwrap_or_else(|| NOT_SET.to_owned());
    let name = text::pad(view.setting.name(), NAME, theme.ellipsis());
    let tone = if marked { Tone::Strong } else { Tone::Plain };
    let row = Parts::new(theme).symbol(0, tone, format!("{} {name}", cursor(theme, marked)));
    let dim = if view.now.is_none() {
        Tone::Dim
    } else {
        Tone::Strong
    };
    let now = text::clean(&word(&view.now), theme.ascii);
    let wide = if columns >= ROOMY { VALUE } else { 0 };
    let row = row.symbol(0, dim, text::pad(&now, text::width(&now).max(wide), ""));
    let row = if view.now == view.next {
        row
    } else {
        let next = text::clean(&word(&view.next), theme.ascii);
        let next = format!("{} {next}", theme.pick("→", "->"));
        row.symbol(0, Tone::Warn, next)
    };
    if view.next.is_none() && view.origin == Origin::BuiltIn {
        return row;
    }
    row.put(1, Tone::Dim, view.origin.to_string())
}

/// How the program is told, or why it cannot follow.
fn note(view: &SettingView, theme: Theme, columns: usize, rows: usize) -> Vec<Line<'static>> {
    const INDENT: usize = 4;
    let (tone, words) = match &view.follow {
        Follow::Yes { how } => (Tone::Dim, format!("told as {how}")),
        Follow::Ours => (Tone::Dim, "a line of ours; moves at once".to_owned()),
        Follow::No { why } => (Tone::Warn, format!("cannot follow: {why}")),
    };
    let words = text::clean(&words, theme.ascii);
    let room = columns.saturating_sub(INDENT);
    text::wrap(&words, room, rows, theme.ellipsis())
        .into_iter()
        .map(|l| {
            let indent = Span::raw(" ".repeat(INDENT));
            Line::from(vec![indent, Span::styled(l, theme.style(tone))])
        })
        .collect()
}

/// Whether something waits for the next attempt.
fn waiting(s: &Snapshot, theme: Theme) -> Parts {
    let row = Parts::new(theme);
    let how = |them: &str| {
        if ends_something(s) {
            format!("; a applies {them} now")
        } else {
            String::new()
        }
    };
    match changes(s, "").len() {
        0 if s.outcome.is_some() => row,
        0 => row.put(0, Tone::Dim, "the next attempt has these settings too"),
        _ if s.outcome.is_some() => {
            row.put(0, Tone::Warn, "no attempt follows; m saves what was chosen")
        }
        1 => row.put(
            0,
            Tone::Warn,
            format!("1 change waits for the next attempt{}", how("it")),
        ),
        n => row.put(
            0,
            Tone::Warn,
            format!("{n} changes wait for the next attempt{}", how("them")),
        ),
    }
}

/// Every setting with who set it, what it overrides, and what comes next.
pub(super) fn in_force(s: &Snapshot, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let mut keys: Vec<&str> = Vec::new();
    for e in s.effective.iter().chain(s.effective_next.iter()) {
        if !keys.contains(&e.key.as_str()) {
            keys.push(&e.key);
        }
    }
    keys.sort_unstable();
    let of = |list: &[Effective], key: &str| list.iter().find(|e| e.key == key).cloned();
    let mut lines = Vec::new();
    for key in keys {
        let (now, next) = (of(&s.effective, key), of(&s.effective_next, key));
        lines.extend(effective(key, now.as_ref(), next.as_ref(), theme, columns));
    }
    if lines.is_empty() {
        let words = "the record of this run does not tell its settings";
        lines.push(Line::styled(words, theme.style(Tone::Dim)));
    }
    lines
}

/// One setting: key, value and origin; below, what it overrides, why it is idle, what
/// the next attempt has.
fn effective(
    key: &str,
    now: Option<&Effective>,
    next: Option<&Effective>,
    theme: Theme,
    columns: usize,
) -> Vec<Line<'static>> {
    let word = |e: Option<&Effective>| {
        let value = e.and_then(|e| e.value.clone());
        value.unwrap_or_else(|| NOT_SET.to_owned())
    };
    let key = text::pad(
        &text::clean(key, theme.ascii),
        KEY.min(columns / 2),
        theme.ellipsis(),
    );
    let mut head = Parts::new(theme)
        .symbol(0, Tone::Plain, key)
        .put(0, Tone::Strong, word(now));
    if let Some(e) = now {
        head = head.put(1, Tone::Dim, e.origin.to_string());
    }
    let mut lines = vec![head.line(columns)];
    let mut more = |tone, words: String| {
        let words = text::clean(&words, theme.ascii);
        for l in text::wrap(&words, columns.saturating_sub(4), 2, theme.ellipsis()) {
            lines.push(Line::styled(format!("    {l}"), theme.style(tone)));
        }
    };
    if let Some(over) = now.and_then(|e| e.overrides.as_ref()) {
        more(Tone::Dim, format!("overrides {over}"));
    }
    if let Some(why) = now.and_then(|e| e.idle.as_ref()) {
        more(Tone::Warn, format!("has no effect: {why}"));
    }
    let same = now.map(|e| &e.value) == next.map(|e| &e.value);
    if let (Some(e), false) = (next, same) {
        more(
            Tone::Warn,
            format!("next attempt: {}  ({})", word(Some(e)), e.origin),
        );
    } else if !same {
        more(Tone::Warn, format!("next attempt: {NOT_SET}"));
    }
    lines
}

/// Columns of a key.
const KEY: usize = 32;

/// What a profile says about the settings that can be switched.
pub(super) fn of_profile(p: &Profile, theme: Theme, columns: usize) -> Vec<Line<'static>> {
    let says = Setting::ALL.into_iter().filter_map(|setting| {
        let (value, place) = value_in(p, setting)?;
        let line = format!("{}:{}", place.source.name, place.line());
        let row = Parts::labelled(theme, "sets")
            .put(0, Tone::Plain, setting.name())
            .put(0, Tone::Strong, value)
            .put(1, Tone::Dim, line);
        Some(row.line(columns))
    });
    says.collect()
}
