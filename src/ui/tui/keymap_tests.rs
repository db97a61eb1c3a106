//! The registry of commands: no key twice, help for each, nothing destroyed by Enter.

use std::collections::HashSet;

use super::argument::Value;
use super::bindings::BINDINGS;
use super::choices::{Choices, Overlay, Screen};
use super::keymap::*;
use super::keys::Key;
use super::naming::preselected;
use crate::ui::slot::Reach;
use crate::ui::testing;

#[test]
fn no_key_is_bound_twice_and_each_has_help() {
    let mut reached = HashSet::new();
    for (screen, ..) in Screen::ALL {
        for overlay in Overlay::ALL {
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
    for (context, typing) in [
        (Context::Start, false),
        (Context::Prompt, true),
        (Context::Unfit, false),
    ] {
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
    for b in keyless() {
        assert!(!b.help.is_empty() && !b.name.is_empty() && b.keys.is_empty());
    }
    let bound: HashSet<_> = BINDINGS
        .iter()
        .filter(|b| b.context != Context::Command)
        .map(|b| (b.context, b.action))
        .collect();
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
    let own = [
        Context::Everywhere,
        Context::Dashboard,
        Context::Diagnose,
        Context::Profiles,
        Context::Log,
        Context::Command,
    ];
    let all: HashSet<_> = BINDINGS
        .iter()
        .filter(|b| own.contains(&b.context))
        // Ctrl-C is a key; its command is `stop`
        .filter(|b| !matches!(b.action, Action::Palette | Action::Interrupt))
        .map(|b| b.action)
        .collect();
    for (screen, ..) in Screen::ALL {
        assert_eq!(commands_of(screen), all);
        let shown: HashSet<_> = help(screen, "").iter().map(|b| b.action).collect();
        let live: HashSet<_> = of(screen, Overlay::None)
            .chain(keyless())
            .map(|b| b.action)
            .collect();
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
    assert!(names("kl").is_empty(), "letters that happen to be there");
    assert_eq!(names("exit")[0], "quit");
    assert_eq!(names("settings")[0], "profiles");
    let stops = names("stop").iter().filter(|n| **n == "stop").count();
    assert_eq!(stops, 1, "one command is called so");
}

#[test]
fn nothing_that_acts_on_the_run_is_marked_by_a_part_of_a_name() {
    let marked = |typed| {
        let list = commands(Screen::Dashboard, typed);
        preselected(&list, typed).map(|at| list[at].name)
    };
    // words that are no commands, and what they once ran
    for typed in [
        "gpu", "fast", "share", "theme", "verify", "ki", "qui", "fal", "st", "after", "res",
    ] {
        assert_eq!(marked(typed), None, "{typed}");
    }
    assert_eq!(
        marked("false alarm"),
        Some("false alarm"),
        "by its whole name"
    );
    assert_eq!(marked("Kill "), Some("kill"));
    assert_eq!(marked("restart"), Some("apply now"));
    assert_eq!(marked("exit"), Some("quit"));
    assert_eq!(marked("prof"), Some("profiles"));
    assert_eq!(marked("screen"), Some("log screen"));
    assert_eq!(marked("goto 1m"), Some("goto"));
    assert_eq!(marked(""), Some("help"));
}

#[test]
fn an_argument_follows_the_name_of_its_command() {
    let s = testing::healthy();
    for b in BINDINGS.iter().filter(|b| b.argument.is_some()) {
        assert!(!b.name.contains(' '), "{} could not be told apart", b.name);
        let typed = format!("{} x", b.name);
        let list = commands(Screen::Dashboard, &typed);
        assert_eq!(
            list.iter().map(|b| b.action).collect::<Vec<_>>(),
            [b.action]
        );
    }
    let goto = |typed: &str| {
        let (b, _) = told(typed).unwrap();
        value(b, typed, Some(&s))
    };
    assert_eq!(
        goto("goto 00:14:03"),
        Ok(Some(Value::Time(crate::model::Mono(843_000))))
    );
    assert!(
        goto("goto ")
            .unwrap_err()
            .starts_with("say which TIME: 14:03")
    );
    assert!(goto("goto now").unwrap_err().contains("as 14:03"));
    assert_eq!(goto("search "), Ok(None), "not needed");
    assert_eq!(
        goto("search free vram"),
        Ok(Some(Value::Text("free vram".to_owned())))
    );
    assert!(told("goto").is_none() && told("wait 60").is_none());
}

#[test]
fn the_help_is_narrowed_by_words_and_by_keys() {
    let names = |typed| -> Vec<_> {
        let list = help(Screen::Dashboard, typed);
        list.iter().map(|b| b.name).collect()
    };
    assert_eq!(names("")[0], "evidence", "the screen's own first");
    assert_eq!(names("k")[0], "kill", "the key before the words");
    assert_eq!(names("ctrl-z"), ["suspend"]);
    assert_eq!(names("?")[0], "help");
    assert_eq!(names("false alarm"), ["false alarm"]);
    assert!(names("goto").contains(&"goto"), "also without a key");
    assert!(names("qqq").is_empty());
}

#[test]
fn what_cannot_be_done_from_a_view_says_so() {
    let hung = testing::hung();
    let mut choices = Choices {
        follows: true,
        ..Choices::default()
    };
    for action in [Action::Wait, Action::FalseAlarm] {
        assert_eq!(enabled(action, Some(&hung), &choices), Ok(()));
        choices.reach = Reach::Signals("another version");
        let refused = enabled(action, Some(&hung), &choices);
        assert_eq!(refused, Err("another version"));
        choices.reach = Reach::All;
    }
    choices.reach = Reach::Signals("another version");
    for action in [Action::Hold, Action::Stop, Action::Kill, Action::Evidence] {
        assert_eq!(enabled(action, Some(&hung), &choices), Ok(()));
    }
    let leaves = |c: &Choices| {
        let all = of(Screen::Dashboard, Overlay::None);
        let ends = all.filter(|b| matches!(b.action, Action::Quit | Action::Interrupt));
        ends.map(|b| name(b, Some(&hung), c)).collect::<Vec<_>>()
    };
    assert_eq!(leaves(&choices), ["leave", "leave"]);
    choices.follows = false;
    assert_eq!(leaves(&choices), ["quit", "stop"]);
}

/// Nothing goes on behind the last screen, whoever supervised the run.
#[test]
fn what_leaves_the_last_screen_says_that_the_run_is_over() {
    let ended = testing::finished();
    for (follows, watches) in [(false, false), (true, false), (false, true)] {
        let choices = Choices {
            follows,
            watches,
            ..Choices::default()
        };
        let all = of(Screen::Dashboard, Overlay::None);
        let ends = all.filter(|b| matches!(b.action, Action::Quit | Action::Interrupt));
        for binding in ends {
            let help = help_of(binding, Some(&ended), &choices);
            assert_eq!(help, "leave this screen; the run is over");
        }
    }
}

#[test]
fn enter_destroys_nothing() {
    let enter = BINDINGS.iter().filter(|b| b.keys.contains(&Key::Enter));
    let actions: HashSet<_> = enter.map(|b| b.action).collect();
    // Running the marked command is what the palette is for; those that ask
    // still ask. What is chosen counts from the next attempt on, and a rung that
    // would end an attempt asks.
    let harmless = HashSet::from([
        Action::Close,
        Action::Run,
        Action::Choose,
        Action::TakeValue,
        Action::SaveIt,
        Action::PickRung,
        // what was typed ends nothing, and what is opened is only looked at
        Action::Open,
        Action::Launch,
        // looks only
        Action::OpenCites,
        Action::ToCite,
    ]);
    assert_eq!(actions, harmless);
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

#[test]
fn of_a_process_that_is_not_ours_only_what_makes_sense_is_offered() {
    let s = testing::watched();
    let choices = Choices {
        watches: true,
        ..Choices::default()
    };
    for action in [Action::Wait, Action::Rungs, Action::ApplyNow] {
        assert!(enabled(action, Some(&s), &choices).is_err(), "{action:?}");
    }
    for action in [
        Action::Evidence,
        Action::FalseAlarm,
        Action::Stop,
        Action::Kill,
    ] {
        assert_eq!(enabled(action, Some(&s), &choices), Ok(()), "{action:?}");
    }
    let quit = find(Screen::Dashboard, Overlay::None, Key::Char('q')).unwrap();
    assert_eq!(name(quit, Some(&s), &choices), "leave");
}
