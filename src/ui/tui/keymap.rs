//! One registry of keys: the footer, the help and what a key does all come from
//! [`BINDINGS`].

use crate::model::Health;
use crate::run::Snapshot;
use crate::run::snapshot::Stage;

use super::keys::Key;

/// What lies over the view; each has its own keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Overlay {
    /// Nothing.
    #[default]
    None,
    /// The list of keys.
    Help,
    /// What shall become of the run.
    Quit,
    /// Whether to kill.
    Kill,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Help,
    Hold,
    Wait,
    FalseAlarm,
    Evidence,
    Stop,
    Kill,
    Quit,
    Interrupt,
    Suspend,
    Redraw,
    LogUp,
    LogDown,
    LogEnd,
    QuitStop,
    QuitLeave,
    ConfirmKill,
    Close,
}

/// A key with what it does.
pub(super) struct Binding {
    pub(super) overlay: Overlay,
    pub(super) keys: &'static [Key],
    pub(super) action: Action,
    /// For the footer; the more important ones stand first in [`BINDINGS`].
    pub(super) name: &'static str,
    /// For the help.
    pub(super) help: &'static str,
}

const fn bind(
    overlay: Overlay,
    keys: &'static [Key],
    action: Action,
    name: &'static str,
    help: &'static str,
) -> Binding {
    Binding {
        overlay,
        keys,
        action,
        name,
        help,
    }
}

/// Every key, most important first. Enter is never the destructive choice.
pub(super) const BINDINGS: &[Binding] = &{
    use Action as A;
    use Key::{Char, Ctrl, End, Enter, Esc, PageDown, PageUp};
    use Overlay as O;
    [
        bind(O::None, &[Char('?')], A::Help, "help", "show this list"),
        bind(
            O::None,
            &[Char('h')],
            A::Hold,
            "hold",
            "hold an announced kill; again: let it go ahead",
        ),
        bind(
            O::None,
            &[Char('w')],
            A::Wait,
            "wait 60 s",
            "wait 60 s more before acting",
        ),
        bind(
            O::None,
            &[Char('f')],
            A::FalseAlarm,
            "false alarm",
            "the verdict is wrong: spare the run, raise the limit",
        ),
        bind(
            O::None,
            &[Char('e')],
            A::Evidence,
            "evidence",
            "take evidence now; does not disturb the run",
        ),
        bind(
            O::None,
            &[Char('s')],
            A::Stop,
            "stop",
            "stop the run gracefully",
        ),
        bind(
            O::None,
            &[Char('k')],
            A::Kill,
            "kill",
            "kill at once; asks first",
        ),
        bind(
            O::None,
            &[Char('q')],
            A::Quit,
            "quit",
            "quit; asks what becomes of the run",
        ),
        bind(
            O::None,
            &[PageUp],
            A::LogUp,
            "log",
            "scroll the log back; it stops following",
        ),
        bind(
            O::None,
            &[PageDown],
            A::LogDown,
            "log down",
            "scroll the log forward",
        ),
        bind(
            O::None,
            &[End],
            A::LogEnd,
            "follow",
            "end of the log; it follows again",
        ),
        bind(
            O::None,
            &[Ctrl('c')],
            A::Interrupt,
            "stop",
            "stop gracefully; second: kill now; third: leave",
        ),
        bind(
            O::None,
            &[Ctrl('z')],
            A::Suspend,
            "suspend",
            "suspend this screen and the watching, not the program",
        ),
        bind(
            O::None,
            &[Ctrl('l')],
            A::Redraw,
            "redraw",
            "draw everything again",
        ),
        bind(
            O::Help,
            &[Esc, Enter, Char('?'), Char('q')],
            A::Close,
            "close",
            "close the list",
        ),
        bind(
            O::Help,
            &[Ctrl('c')],
            A::Interrupt,
            "stop",
            "stop gracefully",
        ),
        bind(
            O::Quit,
            &[Char('1'), Char('s')],
            A::QuitStop,
            "stop the run",
            "end the run gracefully, then leave",
        ),
        bind(
            O::Quit,
            &[Char('2'), Char('l')],
            A::QuitLeave,
            "leave it headless",
            "leave the screen; the run goes on and is watched",
        ),
        bind(
            O::Quit,
            &[Char('3'), Esc, Enter, Char('q')],
            A::Close,
            "cancel",
            "back to the run",
        ),
        bind(
            O::Quit,
            &[Ctrl('c')],
            A::Interrupt,
            "stop",
            "stop gracefully",
        ),
        bind(
            O::Kill,
            &[Char('y')],
            A::ConfirmKill,
            "kill it",
            "SIGKILL to every process of the run",
        ),
        bind(
            O::Kill,
            &[Char('n'), Esc, Enter, Char('q')],
            A::Close,
            "cancel",
            "back to the run",
        ),
        bind(
            O::Kill,
            &[Ctrl('c')],
            A::Interrupt,
            "stop",
            "stop gracefully",
        ),
    ]
};

/// What `key` does under `overlay`.
pub(super) fn find(overlay: Overlay, key: Key) -> Option<&'static Binding> {
    BINDINGS
        .iter()
        .find(|b| b.overlay == overlay && b.keys.contains(&key))
}

/// The bindings of an overlay, in order.
pub(super) fn of(overlay: Overlay) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |b| b.overlay == overlay)
}

/// The name of a binding as things stand.
pub(super) fn name(binding: &Binding, snapshot: Option<&Snapshot>) -> &'static str {
    let held = snapshot.is_some_and(|s| matches!(s.stage, Stage::Countdown { held: true, .. }));
    match binding.action {
        Action::Hold if held => "release",
        Action::Quit | Action::Interrupt if snapshot.is_some_and(|s| s.outcome.is_some()) => {
            "leave"
        }
        _ => binding.name,
    }
}

/// Whether an action makes sense now; else why not.
pub(super) fn enabled(action: Action, snapshot: Option<&Snapshot>) -> Result<(), &'static str> {
    let needs_run = matches!(
        action,
        Action::Hold
            | Action::Wait
            | Action::FalseAlarm
            | Action::Evidence
            | Action::Stop
            | Action::Kill
            | Action::QuitStop
            | Action::ConfirmKill
    );
    if !needs_run {
        return Ok(());
    }
    let s = snapshot.ok_or("the run has not begun")?;
    if s.outcome.is_some() {
        return Err("the run is over");
    }
    let announced = matches!(s.stage, Stage::Countdown { .. });
    let in_doubt = announced
        || matches!(s.stage, Stage::Watching)
            && matches!(
                s.verdict.health,
                Health::Slow | Health::Suspect | Health::Hung | Health::Failing
            );
    match action {
        Action::Hold if !announced => Err("no kill is announced"),
        Action::Wait if !in_doubt => Err("nothing is about to be done"),
        Action::FalseAlarm if !in_doubt => Err("there is no alarm"),
        Action::Evidence if s.pid.is_none() => Err("no process lives"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::ui::testing;

    #[test]
    fn no_key_is_bound_twice_and_each_has_help() {
        let mut seen = HashSet::new();
        for b in BINDINGS {
            assert!(!b.help.is_empty() && !b.name.is_empty() && !b.keys.is_empty());
            for key in b.keys {
                assert!(
                    seen.insert((b.overlay, *key)),
                    "{} is bound twice",
                    key.name()
                );
            }
        }
    }

    #[test]
    fn enter_destroys_nothing() {
        let enter = BINDINGS.iter().filter(|b| b.keys.contains(&Key::Enter));
        let actions: HashSet<_> = enter.map(|b| b.action).collect();
        assert_eq!(actions, HashSet::from([Action::Close]));
    }

    #[test]
    fn disabled_keys_say_why() {
        let healthy = testing::healthy();
        assert_eq!(
            enabled(Action::Hold, Some(&healthy)),
            Err("no kill is announced")
        );
        assert_eq!(
            enabled(Action::FalseAlarm, Some(&healthy)),
            Err("there is no alarm")
        );
        assert_eq!(enabled(Action::Stop, Some(&healthy)), Ok(()));
        assert_eq!(
            enabled(Action::Stop, Some(&testing::finished())),
            Err("the run is over")
        );
        assert_eq!(enabled(Action::Hold, Some(&testing::hung())), Ok(()));
        assert_eq!(enabled(Action::Stop, None), Err("the run has not begun"));
    }
}
