//! One registry of commands: the footer, the help, the palette and what a key does
//! all come from [`BINDINGS`].

use crate::model::Health;
use crate::run::Snapshot;
use crate::run::snapshot::Stage;

use super::bindings::BINDINGS;
use super::choices::{Choices, Overlay, Screen};
use super::keys::Key;

/// Where a key is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Context {
    /// On every screen that nothing lies over.
    Everywhere,
    Dashboard,
    Log,
    Help,
    Palette,
    Search,
    Quit,
    Kill,
    /// The start screen, which knows no run.
    Start,
    /// The line that a command is typed into there.
    Prompt,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Help,
    Palette,
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
    ShowDashboard,
    ShowLog,
    NextScreen,
    PreviousScreen,
    LogUp,
    LogDown,
    LogEnd,
    LogTop,
    LineUp,
    LineDown,
    PauseCharts,
    Zoom,
    Shorter,
    Longer,
    AutoRange,
    Earlier,
    Later,
    Back,
    Freeze,
    ShowStdout,
    ShowStderr,
    ShowOwn,
    Wrap,
    Search,
    NextHit,
    PreviousHit,
    DropSearch,
    PickUp,
    PickDown,
    Run,
    Erase,
    QuitStop,
    QuitLeave,
    ConfirmKill,
    Close,
    Type,
    Open,
    LookAt,
    OpenRun,
    ChooseProfile,
    NextList,
    PreviousList,
    Launch,
    Abandon,
    Older,
    Newer,
    CursorLeft,
    CursorRight,
    CursorHome,
    CursorEnd,
    EraseWord,
    EraseLine,
}

/// A key with what it does.
pub(super) struct Binding {
    pub(super) context: Context,
    pub(super) keys: &'static [Key],
    pub(super) action: Action,
    /// For the footer; the more important ones stand first in [`BINDINGS`].
    pub(super) name: &'static str,
    /// For the help.
    pub(super) help: &'static str,
}

/// The contexts whose keys count.
const fn contexts(screen: Screen, overlay: Overlay) -> [Option<Context>; 2] {
    match (overlay, screen) {
        (Overlay::None, Screen::Dashboard) => [Some(Context::Dashboard), Some(Context::Everywhere)],
        (Overlay::None, Screen::Log) => [Some(Context::Log), Some(Context::Everywhere)],
        (Overlay::Help, _) => [Some(Context::Help), None],
        (Overlay::Palette, _) => [Some(Context::Palette), None],
        (Overlay::Search, _) => [Some(Context::Search), None],
        (Overlay::Quit, _) => [Some(Context::Quit), None],
        (Overlay::Kill, _) => [Some(Context::Kill), None],
    }
}

/// The bindings that count, in order.
pub(super) fn of(screen: Screen, overlay: Overlay) -> impl Iterator<Item = &'static Binding> {
    let contexts = contexts(screen, overlay);
    BINDINGS
        .iter()
        .filter(move |b| contexts.contains(&Some(b.context)))
}

/// The bindings of one context, in order.
pub(super) fn within(context: Context) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |b| b.context == context)
}

/// The commands of one context whose words hold the letters of `typed`.
pub(super) fn commands_within(context: Context, typed: &str) -> Vec<&'static Binding> {
    let mut list: Vec<&Binding> = Vec::new();
    for b in within(context) {
        let known = list.iter().any(|c| c.name == b.name);
        if !known && b.action != Action::Palette && holds(b, typed) {
            list.push(b);
        }
    }
    list.sort_by_key(|b| !b.name.contains(&typed.to_lowercase()));
    list
}

/// What `key` does.
pub(super) fn find(screen: Screen, overlay: Overlay, key: Key) -> Option<&'static Binding> {
    of(screen, overlay).find(|b| b.keys.contains(&key))
}

/// The list of the help: the keys of the screen first, then the others.
pub(super) fn help(screen: Screen) -> Vec<&'static Binding> {
    let (here, everywhere): (Vec<_>, Vec<_>) =
        of(screen, Overlay::None).partition(|b| b.context != Context::Everywhere);
    [here, everywhere].concat()
}

/// The commands of the palette whose words hold the letters of `typed` in their
/// order, those of `screen` first; a command with a key here stands with that key.
pub(super) fn commands(screen: Screen, typed: &str) -> Vec<&'static Binding> {
    let mut list: Vec<&Binding> = Vec::new();
    let others = Screen::ALL
        .iter()
        .flat_map(|(other, ..)| of(*other, Overlay::None));
    for b in of(screen, Overlay::None).chain(others) {
        let known = list.iter().any(|c| c.action == b.action);
        if !known && b.action != Action::Palette && holds(b, typed) {
            list.push(b);
        }
    }
    // The words themselves before letters that only happen to be there.
    list.sort_by_key(|b| !b.name.contains(&typed.to_lowercase()));
    list
}

/// Whether the letters of `typed` are in the name or the help of a command, in
/// their order; spaces do not count.
fn holds(binding: &Binding, typed: &str) -> bool {
    let words = format!("{} {}", binding.name, binding.help).to_lowercase();
    let mut rest = words.chars();
    typed
        .to_lowercase()
        .chars()
        .filter(|c| *c != ' ')
        .all(|c| rest.any(|w| w == c))
}

/// The screen that a command needs.
pub(super) const fn home(binding: &Binding) -> Option<Screen> {
    match (binding.action, binding.context) {
        (Action::Evidence, _) => None,
        (_, Context::Dashboard) => Some(Screen::Dashboard),
        (_, Context::Log) => Some(Screen::Log),
        _ => None,
    }
}

/// The name of a binding as things stand.
pub(super) fn name(binding: &Binding, snapshot: Option<&Snapshot>) -> &'static str {
    let held = snapshot.is_some_and(|s| matches!(s.stage, Stage::Countdown { held: true, .. }));
    match binding.action {
        Action::Hold if held => "release",
        Action::Quit | Action::Interrupt
            if snapshot.is_some_and(|s| s.outcome.is_some() || s.is_foreign()) =>
        {
            "leave"
        }
        _ => binding.name,
    }
}

/// Whether an action makes sense now; else why not.
pub(super) fn enabled(
    action: Action,
    snapshot: Option<&Snapshot>,
    choices: &Choices,
) -> Result<(), &'static str> {
    if matches!(action, Action::NextHit | Action::PreviousHit) && choices.log.search.is_none() {
        return Err("nothing is searched for");
    }
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
    if s.is_foreign() {
        return Err("not our process");
    }
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

    const OVERLAYS: [Overlay; 6] = [
        Overlay::None,
        Overlay::Help,
        Overlay::Palette,
        Overlay::Search,
        Overlay::Quit,
        Overlay::Kill,
    ];

    #[test]
    fn no_key_is_bound_twice_and_each_has_help() {
        let mut reached = HashSet::new();
        for (screen, ..) in Screen::ALL {
            for overlay in OVERLAYS {
                let mut seen = HashSet::new();
                for b in of(screen, overlay) {
                    assert!(!b.help.is_empty() && !b.name.is_empty() && !b.keys.is_empty());
                    reached.insert((b.context, b.action));
                    for key in b.keys {
                        let name = key.name();
                        assert!(seen.insert(*key), "{name} twice in {screen:?} {overlay:?}");
                        let types = matches!(key, Key::Char(_)) && overlay.typing();
                        assert!(!types, "{name} could not be typed");
                    }
                }
            }
        }
        for (context, typing) in [(Context::Start, false), (Context::Prompt, true)] {
            let mut seen = HashSet::new();
            for b in within(context) {
                assert!(!b.help.is_empty() && !b.name.is_empty() && !b.keys.is_empty());
                reached.insert((b.context, b.action));
                for key in b.keys {
                    let name = key.name();
                    assert!(seen.insert(*key), "{name} twice in {context:?}");
                    let types = matches!(key, Key::Char(_)) && typing;
                    assert!(!types, "{name} could not be typed");
                }
            }
        }
        let bound: HashSet<_> = BINDINGS.iter().map(|b| (b.context, b.action)).collect();
        assert_eq!(reached, bound, "a key that no screen has");
    }

    #[test]
    fn the_palette_has_every_command() {
        let commands_of = |screen| -> HashSet<_> {
            let list = commands(screen, "");
            let actions: HashSet<_> = list.iter().map(|b| b.action).collect();
            assert_eq!(actions.len(), list.len(), "each once");
            actions
        };
        let own = [Context::Everywhere, Context::Dashboard, Context::Log];
        let all: HashSet<_> = BINDINGS
            .iter()
            .filter(|b| own.contains(&b.context) && b.action != Action::Palette)
            .map(|b| b.action)
            .collect();
        for (screen, ..) in Screen::ALL {
            assert_eq!(commands_of(screen), all);
            let shown: HashSet<_> = help(screen).iter().map(|b| b.action).collect();
            let live: HashSet<_> = of(screen, Overlay::None).map(|b| b.action).collect();
            assert_eq!(shown, live, "the help shows every key of the screen");
        }
        for (_, key, _) in Screen::ALL {
            assert!(find(Screen::Log, Overlay::None, Key::Char(key)).is_some());
        }
    }

    #[test]
    fn the_start_screen_has_its_own_palette() {
        let all = commands_within(Context::Start, "");
        let names: HashSet<_> = all.iter().map(|b| b.name).collect();
        assert_eq!(names.len(), all.len(), "each once");
        for b in within(Context::Start).filter(|b| b.action != Action::Palette) {
            assert!(names.contains(b.name), "{}", b.name);
        }
        assert_eq!(
            commands_within(Context::Start, "look")[0].action,
            Action::LookAt
        );
    }

    #[test]
    fn typing_narrows_the_palette() {
        let names = |typed| -> Vec<_> {
            let list = commands(Screen::Dashboard, typed);
            list.iter().map(|b| b.name).collect()
        };
        assert_eq!(names("false")[0], "false alarm");
        assert_eq!(names("Kill")[0], "kill");
        assert!(names("stdout").contains(&"stdout"), "also of other screens");
        assert!(names("qqq").is_empty());
    }

    #[test]
    fn enter_destroys_nothing() {
        let enter = BINDINGS.iter().filter(|b| b.keys.contains(&Key::Enter));
        let actions: HashSet<_> = enter.map(|b| b.action).collect();
        // Running the marked command is what the palette is for; those that ask
        // still ask.
        // A command that was typed ends nothing, and what is opened is only looked at.
        let harmless = [Action::Close, Action::Run, Action::Open, Action::Launch];
        assert_eq!(actions, HashSet::from(harmless));
    }

    #[test]
    fn disabled_keys_say_why() {
        let healthy = testing::healthy();
        let none = Choices::default();
        assert_eq!(
            enabled(Action::Hold, Some(&healthy), &none),
            Err("no kill is announced")
        );
        assert_eq!(
            enabled(Action::FalseAlarm, Some(&healthy), &none),
            Err("there is no alarm")
        );
        assert_eq!(enabled(Action::Stop, Some(&healthy), &none), Ok(()));
        assert_eq!(
            enabled(Action::Stop, Some(&testing::finished()), &none),
            Err("the run is over")
        );
        assert_eq!(enabled(Action::Hold, Some(&testing::hung()), &none), Ok(()));
        assert_eq!(
            enabled(Action::Stop, None, &none),
            Err("the run has not begun")
        );
    }
}
