//! An own profile made from the text of another one: comments and order of keys
//! are kept, and the result is checked before anybody writes it.

use std::sync::Arc;

use crate::model::setting::{FIND_ENFORCE, FIND_MODE, Setting, size_text};

use super::catalog::Catalog;
use super::lint::lint;
use super::parse::{is_id, parse};
use super::place::{Owner, Place, Source};
use super::problem::{Problem, ProfileError};
use super::schema::Profile;

mod text;

use text::TextError;

const MODE: &[&str] = &["env", "set", FIND_MODE];
const ENFORCE: &[&str] = &["env", "set", FIND_ENFORCE];

/// What the new profile is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProfile {
    /// Its id: 3 to 48 of `a`-`z`, `0`-`9` and `-`. That of the user's own source: the
    /// source itself is changed.
    pub id: String,
    /// Its title; absent: a plain one that claims nothing, or the old one where the
    /// source itself is changed.
    pub title: Option<String>,
}

/// The text of an own profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole file.
    pub text: String,
    /// What the user should know: a value that a parent still sets, a measurement
    /// that no longer counts. One sentence each.
    pub notes: Vec<String>,
}

/// Why no profile could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The source has errors itself.
    #[error("`{name}` cannot be read: {why}")]
    Unreadable {
        /// The source.
        name: String,
        /// Its first error, with line and cure.
        why: String,
    },
    /// Not an id.
    #[error("`{0}` is not a profile id; use 3 to 48 of `a`-`z`, `0`-`9` and `-`")]
    Id(String),
    /// The result has errors: a value that its library does not know, a size without unit, …
    #[error("the profile would not be usable: {0}")]
    Refused(String),
    /// Taking a value out would lose comments.
    #[error("`{key}` of `{name}` stands among comments in one value; take it out by hand")]
    ByHand {
        /// The key.
        key: String,
        /// The file.
        name: String,
    },
}

/// The text of an own profile: `source` with the changes, another id, title and version.
///
/// The version of a new profile is `1.0.0`; where the user's own source is changed
/// under its id the last number goes up, unless nothing changes. A setting with
/// `None` is taken out. `extends`, `[match]`, comments and the order of keys stay.
/// `[tested]` becomes a comment as soon as a setting changes: what was measured were
/// the old ones. `catalog` has the parents.
///
/// # Errors
///
/// See [`EditError`]; the result parses and is free of lint errors.
pub fn save_as(
    catalog: &Catalog,
    source: &Source,
    new: &NewProfile,
    changes: &[(Setting, Option<String>)],
) -> Result<Edited, EditError> {
    let base = parse(&Arc::new(source.clone())).map_err(|problems| EditError::Unreadable {
        name: source.name.clone(),
        why: first_error(&problems),
    })?;
    if !is_id(&new.id) {
        return Err(EditError::Id(new.id.clone()));
    }
    let mut notes = Vec::new();
    let mut text = source.text.clone();
    for (setting, value) in changes {
        text =
            write(&text, *setting, value.as_deref()).map_err(|e| by_hand(e, *setting, source))?;
    }
    let other = |e| by_hand(e, Setting::FindMode, source);
    if text != source.text && !base.tested.is_empty() {
        let (id, version) = (&base.id.value, &base.version.value);
        let why = format!("Measured with {id} {version}, before its settings were changed:");
        text = text::comment_out(&text, "tested", &why).map_err(other)?;
        notes.push(format!(
            "[tested] of {id} is now a comment: it was measured with other settings"
        ));
    }
    text = head(&text, &base, new).map_err(other)?;
    let profile = check(catalog, source, &text)?;
    notes.extend(changes.iter().filter_map(|(setting, value)| {
        let (still, place) = value_in(&profile, *setting).filter(|_| value.is_none())?;
        let (file, line) = (&place.source.name, place.line());
        Some(format!(
            "{} stays {still}: a parent sets it ({file}:{line})",
            setting.key()
        ))
    }));
    Ok(Edited { text, notes })
}

/// What a profile says about a setting, in the words of the file, and where; absent:
/// nothing.
pub fn value_in(profile: &Profile, setting: Setting) -> Option<(String, &Place)> {
    if let Some(key) = workload_key(setting) {
        let at = profile.workload.settings.get(key)?;
        return Some((at.value.clone(), &at.place));
    }
    if setting == Setting::VramCap {
        let cap = profile.limits.vram_cap.as_ref()?;
        return Some((size_text(cap.value), &cap.place));
    }
    let mode = profile.env.set.get(FIND_MODE)?;
    Some((mode.value.value.clone(), &mode.value.place))
}

/// The key in `[workload.settings]`; absent for what stands elsewhere.
const fn workload_key(setting: Setting) -> Option<&'static str> {
    match setting {
        Setting::FindMode | Setting::VramCap => None,
        _ => Some(setting.key()),
    }
}

/// One setting written where it belongs, or taken out.
fn write(text: &str, setting: Setting, value: Option<&str>) -> Result<String, TextError> {
    if setting == Setting::FindMode {
        return find_mode(text, value);
    }
    let number = matches!(setting, Setting::ChunkSize | Setting::TileSize);
    match workload_key(setting) {
        Some(key) => put(text, &["workload", "settings", key], value, number),
        None => put(text, &["limits", setting.key()], value, number),
    }
}

fn put(text: &str, path: &[&str], value: Option<&str>, number: bool) -> Result<String, TextError> {
    match value {
        Some(wanted) if text::get(text, path).as_deref() == Some(wanted) => Ok(text.to_owned()),
        Some(wanted) => text::set(text, path, text::scalar(wanted, number)),
        None => text::remove(text, path),
    }
}

/// `MIOPEN_FIND_MODE`, and beside every mode but NORMAL `MIOPEN_FIND_ENFORCE=NONE`:
/// anything above NONE would turn the mode into NORMAL (MIOpen, `find_controls.cpp`).
fn find_mode(text: &str, value: Option<&str>) -> Result<String, TextError> {
    let enforce = text::get(text, ENFORCE);
    let none = enforce
        .as_ref()
        .is_some_and(|e| e.eq_ignore_ascii_case("NONE"));
    let text = put(text, MODE, value, false)?;
    match value {
        Some(mode) if mode.eq_ignore_ascii_case("NORMAL") => Ok(text),
        Some(_) if none => Ok(text),
        Some(_) => put(&text, ENFORCE, Some("NONE"), false),
        None if none && !text::has_why(&text, ENFORCE) => text::remove(&text, ENFORCE),
        None => Ok(text),
    }
}

/// Id, title and version.
fn head(text: &str, base: &Profile, new: &NewProfile) -> Result<String, TextError> {
    let id = &base.id.value;
    let itself = !base.is_shipped() && *id == new.id;
    let title = match &new.title {
        Some(title) => title.clone(),
        None if itself => base.title.value.clone(),
        None if base.tested.is_empty() || text != base.source.text => {
            format!("Own copy of {id} (untested)")
        }
        None => format!("Own copy of {id}"),
    };
    let unchanged = text == base.source.text && title == base.title.value;
    let version = match (itself, unchanged) {
        (false, _) => String::from("1.0.0"),
        (true, true) => base.version.value.clone(),
        (true, false) => next(&base.version.value),
    };
    let text = put(text, &["profile", "id"], Some(&new.id), false)?;
    let text = put(&text, &["profile", "title"], Some(&title), false)?;
    put(&text, &["profile", "version"], Some(&version), false)
}

/// `1.2.3` becomes `1.2.4`.
fn next(version: &str) -> String {
    let Some((front, patch)) = version.rsplit_once('.') else {
        return version.to_owned();
    };
    let patch: u32 = patch.parse().unwrap_or_default();
    format!("{front}.{}", patch.saturating_add(1))
}

/// The result with its parents, if it can be used.
fn check(catalog: &Catalog, source: &Source, text: &str) -> Result<Profile, EditError> {
    let file = Arc::new(Source {
        name: source.name.clone(),
        text: text.to_owned(),
        owner: Owner::User,
    });
    let refused = |problems: &[Problem]| EditError::Refused(first_error(problems));
    let profile = parse(&file).map_err(|problems| refused(&problems))?;
    let profile = catalog.with_parents(profile).map_err(|e| match e {
        ProfileError::Invalid { problems, .. } => refused(&problems),
        e => EditError::Refused(e.to_string()),
    })?;
    let problems = lint(&profile);
    if problems.iter().any(Problem::is_error) {
        return Err(refused(&problems));
    }
    Ok(profile)
}

fn by_hand(error: TextError, setting: Setting, source: &Source) -> EditError {
    match error {
        TextError::NotTable(why) => EditError::Refused(why),
        TextError::Comments => EditError::ByHand {
            key: setting.key().to_owned(),
            name: source.name.clone(),
        },
    }
}

/// The first error with its cure; the line is that of a text nobody has seen, so it is left out.
fn first_error(problems: &[Problem]) -> String {
    let first = problems.iter().find(|p| p.is_error());
    first.map_or_else(String::new, |p| match &p.fix {
        Some(fix) => format!("{} ({fix})", p.message),
        None => p.message.clone(),
    })
}

#[cfg(test)]
mod tests;
