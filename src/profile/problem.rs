//! What can be wrong with a profile or an environment, in a form that shows the line.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, Severity, SourceCode};

use crate::model::exit;

use super::place::Place;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The profile can be used.
    Warning,
    /// It cannot.
    Error,
}

/// One thing that is wrong, with its reason and its cure.
///
/// `P…` codes come from reading the file, the others from the lint rules in
/// `docs/profiles.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `K103`, `P102`, …
    pub code: &'static str,
    /// Error or warning.
    pub level: Level,
    /// What is wrong and why, a lower-case fragment.
    pub message: String,
    /// What the arrow under the source line says.
    pub label: String,
    /// How to put it right.
    pub fix: Option<String>,
    /// Where it is; absent for the user's exported environment.
    pub place: Option<Place>,
}

impl Problem {
    /// An error.
    pub(super) fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            level: Level::Error,
            message: message.into(),
            label: String::from("here"),
            fix: None,
            place: None,
        }
    }

    /// A warning.
    pub(super) fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            ..Self::error(code, message)
        }
    }

    /// With the place it concerns.
    #[must_use]
    pub(super) fn at(mut self, place: &Place) -> Self {
        self.place = Some(place.clone());
        self
    }

    /// With the words at the arrow.
    #[must_use]
    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With the cure.
    #[must_use]
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.level == Level::Error
    }

    /// `profiles/x.toml:12: K103: reason (cure)` for logs and plain output.
    pub fn one_line(&self) -> String {
        let place = self
            .place
            .as_ref()
            .map_or_else(String::new, |p| format!("{}:{}: ", p.source.name, p.line()));
        let fix = self
            .fix
            .as_ref()
            .map_or_else(String::new, |f| format!(" ({f})"));
        format!("{place}{}: {}{fix}", self.code, self.message)
    }

    /// Order in a report: by place, then code.
    pub(super) fn sort_key(&self) -> (String, usize, &'static str) {
        self.place.as_ref().map_or_else(
            || (String::new(), 0, self.code),
            |p| (p.source.name.clone(), p.span.start, self.code),
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn severity(&self) -> Option<Severity> {
        Some(match self.level {
            Level::Warning => Severity::Warning,
            Level::Error => Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.fix
            .as_ref()
            .map(|f| Box::new(f) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place
            .as_ref()
            .map(|p| p.source.as_ref() as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.place.as_ref()?;
        let label = LabeledSpan::new_with_span(Some(self.label.clone()), place.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

/// What kind of failure a [`ProfileError`] is; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such profile or file: exit code 66.
    NotFound,
    /// It is there but cannot be used: exit code 65.
    Invalid,
}

/// Why a profile could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No profile has this id.
    #[error("no profile is called `{name}`")]
    NotFound {
        /// What was asked for.
        name: String,
        /// Ids that look like it; all ids where none does.
        near: Vec<String>,
    },
    /// There is no such file.
    #[error("there is no profile file `{path}`")]
    NoFile {
        /// What was asked for.
        path: String,
    },
    /// The file is there and cannot be read.
    #[error("cannot read profile file `{path}`: {why}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        why: String,
    },
    /// The profile has errors.
    #[error("profile `{name}` cannot be used: {}", count(problems))]
    Invalid {
        /// Id or path.
        name: String,
        /// All that is wrong, in the order of the file; warnings too.
        problems: Vec<Problem>,
    },
}

/// `1 error` or `3 errors`.
fn count(problems: &[Problem]) -> String {
    match problems.iter().filter(|p| p.is_error()).count() {
        1 => String::from("1 error"),
        n => format!("{n} errors"),
    }
}

impl ProfileError {
    /// Not there, or not usable.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } | Self::NoFile { .. } => ErrorKind::NotFound,
            Self::Unreadable { .. } | Self::Invalid { .. } => ErrorKind::Invalid,
        }
    }

    /// The file it is about, as far as it names one.
    pub(super) fn file(&self) -> Option<&str> {
        match self {
            Self::NotFound { .. } => None,
            Self::NoFile { path } | Self::Unreadable { path, .. } => Some(path),
            Self::Invalid { name, .. } => Some(name),
        }
    }

    /// The process exit code that goes with it.
    pub const fn exit_code(&self) -> u8 {
        match self.kind() {
            ErrorKind::NotFound => exit::MISSING,
            ErrorKind::Invalid => exit::DATA,
        }
    }
}

impl Diagnostic for ProfileError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self {
            Self::NotFound { near, .. } if near.is_empty() => None,
            Self::NotFound { near, .. } => {
                Some(Box::new(format!("did you mean {}?", or_list(near))))
            }
            Self::NoFile { .. } => Some(Box::new(
                "a name with `/` or ending in `.toml` is taken for a file; give the id of a profile otherwise",
            )),
            Self::Unreadable { .. } | Self::Invalid { .. } => None,
        }
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        match self {
            Self::Invalid { problems, .. } => {
                Some(Box::new(problems.iter().map(|p| p as &dyn Diagnostic)))
            }
            _ => None,
        }
    }
}

/// `` `a`, `b` or `c` ``.
pub(super) fn or_list<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("`{}`", w.as_ref())).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// The words most like `word`, best first, at most three; none if nothing is like it.
pub(super) fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let lower = word.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|k| (strsim::jaro_winkler(&lower, &k.to_lowercase()), k))
        .filter(|(score, _)| *score >= 0.84)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored
        .into_iter()
        .take(3)
        .map(|(_, k)| k.to_owned())
        .collect()
}

/// `did you mean …?`, or the whole list where nothing is like the word.
pub(super) fn suggest(word: &str, known: &[&str]) -> String {
    let close = near(word, known.iter().copied());
    match close.first() {
        Some(best) => format!("did you mean `{best}`?"),
        None => format!("known here: {}", known.join(", ")),
    }
}
