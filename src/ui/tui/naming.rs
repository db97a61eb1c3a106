//! Which command a typed word names, and which one of a list is marked by it.

use super::choices::Choices;
use super::keymap::{Action, Binding, told};

/// What is said where nothing is called as was typed.
pub(super) const UNKNOWN: &str = "no such command";
/// What is said where nothing is marked.
const UNMARKED: &str = "mark a command (down), or type its whole name";

/// Why Enter runs nothing in a list without a marked command; `listed`: its length.
pub(super) const fn why_nothing_runs(listed: usize) -> &'static str {
    if listed == 0 { UNKNOWN } else { UNMARKED }
}

/// Other words for a command.
const fn aliases(action: Action) -> &'static [&'static str] {
    match action {
        Action::Quit => &["exit", "q!"],
        Action::ShowProfiles => &["settings", "edit"],
        Action::ApplyNow => &["restart", "retry"],
        _ => &[],
    }
}

/// How well a command is named, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// By its whole name.
    Name,
    /// By the beginning of it.
    Beginning,
    /// By the beginning of one of its words.
    Word,
    /// By a part of its name.
    Part,
    /// A word of its help begins so.
    Help,
}

/// How well `typed` names a command; absent: not at all.
pub(super) fn likeness(binding: &Binding, typed: &str) -> Option<Likeness> {
    let typed = typed.trim().to_lowercase();
    if typed.is_empty() {
        return Some(Likeness::Beginning);
    }
    let begins = |text: &str| text.split(' ').any(|word| word.starts_with(&typed));
    let names = || std::iter::once(&binding.name).chain(aliases(binding.action));
    if names().any(|name| **name == typed) {
        Some(Likeness::Name)
    } else if names().any(|name| name.starts_with(&typed)) {
        Some(Likeness::Beginning)
    } else if names().any(|name| begins(name)) {
        Some(Likeness::Word)
    } else if binding.name.contains(&typed) {
        Some(Likeness::Part)
    } else {
        begins(&binding.help.to_lowercase()).then_some(Likeness::Help)
    }
}

/// Whether a command ends or restarts something, or changes what is done about an alarm.
const fn acts_on_the_run(action: Action) -> bool {
    matches!(
        action,
        Action::Stop
            | Action::Interrupt
            | Action::Kill
            | Action::Quit
            | Action::StopAfterStep
            | Action::FalseAlarm
            | Action::Hold
            | Action::Wait
            | Action::Resend
            | Action::ApplyNow
            | Action::Rungs
            | Action::Suspend
    )
}

/// The line of a list that is marked though the user marked none: the first one, where it is
/// named well enough. One that acts on the run is marked only by its whole name.
pub(super) fn preselected(list: &[&Binding], typed: &str) -> Option<usize> {
    let first = list.first()?;
    let by_key = || first.keys.iter().any(|k| k.name() == typed);
    let likeness = likeness(first, typed);
    let named = match likeness {
        Some(Likeness::Name) => true,
        _ if told(typed).is_some() => true,
        Some(Likeness::Beginning | Likeness::Word) => !acts_on_the_run(first.action),
        Some(Likeness::Part | Likeness::Help) | None => by_key() && !acts_on_the_run(first.action),
    };
    named.then_some(0)
}

/// The marked line of the help or the palette.
pub(super) fn marked(list: &[&Binding], choices: &Choices) -> Option<usize> {
    if choices.marked {
        return Some(choices.picked.min(list.len().checked_sub(1)?));
    }
    preselected(list, &choices.typed)
}
