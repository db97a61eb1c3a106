//! Every profile there is, with how it suits the machine and what is wrong with it.

use std::path::Path;
use std::sync::Arc;

use super::catalog::Catalog;
use super::lint::lint;
use super::matching::{Choice, Condition, Machine, best, judge};
use super::place::Owner;
use super::problem::{Problem, ProfileError};
use super::schema::Profile;

/// How a profile suits the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The one that is taken without `--profile`.
    Best,
    /// Its conditions hold.
    Fits,
    /// They do not, or are not known to, or the file cannot be used.
    Other,
}

/// One profile of the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfEntry {
    /// Its id; the name of the file where no id could be read.
    pub id: String,
    /// One line; absent where the file could not be read.
    pub title: Option<String>,
    /// A sentence or two, the parent's where it has none.
    pub description: Option<String>,
    /// Version of the content; absent where the file could not be read.
    pub version: Option<String>,
    /// Shipped, or the user's.
    pub owner: Owner,
    /// The file; `profiles/NAME.toml` for a shipped one.
    pub path: String,
    /// Id of the parent.
    pub extends: Option<String>,
    /// How it suits the machine.
    pub fit: Fit,
    /// Why it is the best, as a sentence that ends in the id; absent for the others.
    pub why: Option<String>,
    /// Every condition of `[match]`, met or not; empty where there is none.
    pub conditions: Vec<Condition>,
    /// Warnings and errors of lint with file, line and cure, one a line.
    pub problems: Vec<String>,
    /// Why it cannot be used: file, line and cure in words.
    pub broken: Option<String>,
    /// The profile with its parents merged in; absent where it cannot be used.
    pub profile: Option<Arc<Profile>>,
}

/// Every profile of the catalogue: first the shipped ones, then the user's, by id.
///
/// Which one is the best is asked of [`best`], and whether one fits is answered by
/// the same comparison.
pub fn shelf(catalog: &Catalog, machine: &Machine) -> Vec<ShelfEntry> {
    let choice = best(&catalog.all(), machine);
    let mut out: Vec<ShelfEntry> = catalog
        .ids()
        .into_iter()
        .map(|id| match catalog.get(&id) {
            Ok(profile) => usable(id, profile, choice.as_ref(), machine),
            Err(error) => unusable(catalog, id, &error),
        })
        .collect();
    out.sort_by_key(|e| e.owner == Owner::User);
    out
}

fn usable(id: String, profile: Profile, choice: Option<&Choice>, machine: &Machine) -> ShelfEntry {
    let judged = judge(&profile.matches, machine);
    let choice = choice.filter(|c| c.id == id);
    let fit = match choice {
        Some(_) => Fit::Best,
        None if judged.fits() => Fit::Fits,
        None => Fit::Other,
    };
    ShelfEntry {
        title: Some(profile.title.value.clone()),
        description: profile.description.clone(),
        version: Some(profile.version.value.clone()),
        owner: profile.source.owner,
        path: profile.source.name.clone(),
        extends: profile.extends.as_ref().map(|p| p.value.clone()),
        fit,
        why: choice.map(|c| c.why.clone()),
        conditions: judged.conditions,
        problems: lint(&profile).iter().map(Problem::one_line).collect(),
        broken: None,
        profile: Some(Arc::new(profile)),
        id,
    }
}

fn unusable(catalog: &Catalog, id: String, error: &ProfileError) -> ShelfEntry {
    let written = catalog.written(&id);
    let path = written
        .map(|p| p.source.name.clone())
        .or_else(|| error.file().map(str::to_owned))
        .unwrap_or_else(|| id.clone());
    let problems: Vec<String> = match error {
        ProfileError::Invalid { problems, .. } => problems.iter().map(Problem::one_line).collect(),
        _ => Vec::new(),
    };
    ShelfEntry {
        title: written.map(|p| p.title.value.clone()),
        description: written.and_then(|p| p.description.clone()),
        version: written.map(|p| p.version.value.clone()),
        // A shipped profile is tested to be free of errors; what cannot be read is the user's.
        owner: written.map_or(Owner::User, |p| p.source.owner),
        path,
        extends: written.and_then(|p| p.extends.as_ref().map(|e| e.value.clone())),
        fit: Fit::Other,
        why: None,
        conditions: Vec::new(),
        broken: Some(why_broken(error)),
        problems,
        profile: None,
        id,
    }
}

/// The first error in words, and how many more there are.
fn why_broken(error: &ProfileError) -> String {
    let ProfileError::Invalid { problems, .. } = error else {
        return error.to_string();
    };
    let mut errors = problems.iter().filter(|p| p.is_error());
    let Some(first) = errors.next() else {
        return error.to_string();
    };
    let fix = first
        .fix
        .as_ref()
        .map_or_else(String::new, |f| format!(" ({f})"));
    let place = first.place.as_ref().map_or_else(String::new, |p| {
        let name = Path::new(&p.source.name)
            .file_name()
            .map_or_else(|| p.source.name.clone(), |n| n.display().to_string());
        format!("{name}, line {}: ", p.line())
    });
    let more = match errors.count() {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    format!("{place}{}{fix}{more}", first.message)
}

#[cfg(test)]
mod tests;
