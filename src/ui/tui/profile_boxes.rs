//! The boxes of the profiles screen: values of a setting, the id of an own profile,
//! the ladder.

use ratatui::Frame;
use ratatui::text::Line;

use crate::model::{Origin, Setting};
use crate::profile::Owner;
use crate::run::Snapshot;
use crate::ui::text;
use crate::ui::words::{self, Tone};

use super::chrome::{box_columns, box_rows, centred};
use super::panel::profile::{cursor, rung_changes};
use super::parts::Parts;
use super::profile_choices::{profile_says, rung_of, values, view_of};
use super::view::ViewOptions;

/// A sentence in as many rows as it takes, four at most.
fn say(out: &mut Vec<Line<'static>>, frame: &Frame<'_>, o: &ViewOptions, tone: Tone, words: &str) {
    let words = text::clean(words, o.theme.ascii);
    let rows = text::wrap(&words, box_columns(frame), 4, o.theme.ellipsis());
    out.extend(
        rows.into_iter()
            .map(|l| Line::styled(l, o.theme.style(tone))),
    );
}

/// The values of the marked setting, and what is typed.
pub(super) fn value(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let c = &o.choices;
    let setting = c.profiles.setting();
    let Some(view) = view_of(s, setting) else {
        return;
    };
    let theme = o.theme;
    let width = box_columns(frame);
    let mut lines = Vec::new();
    let typed = text::clean(&c.typed, theme.ascii);
    let hint = if c.typed.is_empty() {
        format!("or type one, such as {}", setting.example())
    } else {
        setting.parse(&c.typed).err().unwrap_or_default()
    };
    let row = Parts::new(theme).put(0, Tone::Strong, format!("= {typed}_"));
    let tone = if c.typed.is_empty() {
        Tone::Dim
    } else {
        Tone::Warn
    };
    lines.push(row.put(1, tone, hint).line(width));
    let list = values(view);
    let picked = c.picked.min(list.len() - 1);
    let rows = box_rows(frame).saturating_sub(1);
    let first = (picked + 1).saturating_sub(rows);
    for (at, value) in list.iter().enumerate().skip(first).take(rows) {
        let marked = at == picked && c.typed.is_empty();
        let word = value.clone().unwrap_or_else(|| {
            let says = profile_says(s, &o.profiles, setting);
            let says = says.unwrap_or_else(|| "it says nothing".to_owned());
            format!("as the profile says ({says})")
        });
        let word = text::clean(&word, theme.ascii);
        let tone = if marked { Tone::Strong } else { Tone::Plain };
        let mut row =
            Parts::new(theme).symbol(0, tone, format!("{} {word}", cursor(theme, marked)));
        if value.is_some() && *value == view.now {
            row = row.put(1, Tone::Info, "in force");
        }
        if value.is_some() && *value == view.next && view.next != view.now {
            row = row.put(1, Tone::Info, "chosen for the next attempt");
        }
        lines.push(row.line(width));
    }
    centred(frame, s, o, setting.name(), lines);
}

/// Under which id, what it holds, where it goes.
pub(super) fn save(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let theme = o.theme;
    let id = o.choices.typed.trim();
    let mut lines = Vec::new();
    let typed = text::clean(&o.choices.typed, theme.ascii);
    lines.push(Line::styled(
        format!("id {typed}_"),
        theme.style(Tone::Strong),
    ));
    let existing = o.profiles.get(id);
    let (tone, note) = match existing {
        _ if !crate::profile::is_id(id) => {
            (Tone::Warn, "an id is 3 to 48 of a-z, 0-9 and -".to_owned())
        }
        Some(e) if e.owner == Owner::User && id == s.profile => (
            Tone::Info,
            "changes your profile; its version goes up".to_owned(),
        ),
        Some(e) if e.owner == Owner::User => (
            Tone::Warn,
            "you have a profile of this id already".to_owned(),
        ),
        Some(_) => (
            Tone::Warn,
            "takes the place of the shipped profile of this id".to_owned(),
        ),
        None => (Tone::Info, "a new profile".to_owned()),
    };
    say(&mut lines, frame, o, tone, &note);
    let path = match (existing, &o.profiles.folder) {
        (Some(e), _) if e.owner == Owner::User => format!("file {}", e.path),
        (_, Some(folder)) => format!("file {folder}/{id}.toml"),
        (_, None) => "no home folder: it cannot be saved".to_owned(),
    };
    say(&mut lines, frame, o, Tone::Dim, &path);
    let chosen = s.chosen.settings.iter();
    let mut chosen: Vec<_> = chosen
        .map(|(k, v)| format!("{} {}", k.name(), v.value))
        .collect();
    // `--cap` is kept as well
    let cap = view_of(s, Setting::VramCap).filter(|v| v.origin == Origin::CommandLine);
    if let Some(value) = cap.and_then(|v| v.next.as_ref()) {
        chosen.push(format!("{} {value} (--cap)", Setting::VramCap.name()));
    }
    let what = match chosen.as_slice() {
        [] => format!("an exact copy of {}: nothing was chosen", s.profile),
        list => format!("{} with {}", s.profile, list.join(", ")),
    };
    say(&mut lines, frame, o, Tone::Plain, &what);
    say(
        &mut lines,
        frame,
        o,
        Tone::Dim,
        "comments and the order of keys are kept",
    );
    centred(frame, s, o, "Save as an own profile", lines);
}

/// The ladder, the marked rung in sight.
pub(super) fn rungs(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let theme = o.theme;
    let width = box_columns(frame);
    let picked = o.choices.picked.min(s.ladder.len().saturating_sub(1));
    let name = s.ladder.iter().map(|e| text::width(&e.id.0)).max();
    let name = name.unwrap_or(0).min(20);
    let mut lines = Vec::new();
    let mut at = 0;
    for (n, e) in s.ladder.iter().enumerate() {
        let (word, more, tone) = words::rung(e);
        let id = text::pad(&text::clean(&e.id.0, theme.ascii), name, theme.ellipsis());
        let marked = n == picked;
        let head = format!(
            "{} {} {n:>2} {id}",
            cursor(theme, marked),
            theme.rung(&e.state)
        );
        let head_tone = if marked { Tone::Strong } else { tone };
        let row = Parts::new(theme)
            .symbol(0, head_tone, head)
            .put(0, tone, word);
        if marked {
            at = lines.len();
            lines.push(row.line(width));
            let spec = rung_of(s, &o.profiles, &e.id.0).map(rung_changes);
            for words in more.map(str::to_owned).into_iter().chain(spec) {
                let words = text::clean(&words, theme.ascii);
                let rows = text::wrap(&words, width.saturating_sub(7), 3, theme.ellipsis());
                let dim = theme.style(Tone::Dim);
                lines.extend(
                    rows.into_iter()
                        .map(|l| Line::styled(format!("       {l}"), dim)),
                );
            }
        } else {
            lines.push(row.put(1, Tone::Dim, more.unwrap_or_default()).line(width));
        }
    }
    if s.ladder.is_empty() {
        lines.push(Line::raw("this profile has no rungs"));
    }
    let rows = box_rows(frame);
    let last = lines.len().saturating_sub(rows);
    let first = (at + 4).saturating_sub(rows).min(at).min(last);
    let lines = lines.into_iter().skip(first).take(rows).collect();
    centred(frame, s, o, "Which rung follows?", lines);
}
