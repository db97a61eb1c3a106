//! The profiles screen in every state and size, and what its keys do.

use super::choices::{Choices, Overlay, Screen};
use super::keys::Key;
use super::log_choices::Pane;
use super::profile_choices::{ProfileChoices, ProfilePane};
use super::state::{Effect, UiState};
use super::theme::Theme;
use super::view::{self, ViewOptions, draw};
use crate::model::{Chosen, Command, Origin, RungId, Setting};
use crate::run::Snapshot;
use crate::ui::slot::Reach;
use crate::ui::testing;
use crate::ui::testing::screen::{self, SIZES, with};

fn options(theme: Theme, s: &Snapshot, choices: Choices) -> ViewOptions {
    ViewOptions {
        profiles: testing::profiles(s.gpu.is_some()),
        ..with(theme, choices)
    }
}

fn choices(pane: ProfilePane, setting: usize) -> Choices {
    Choices {
        screen: Screen::Profiles,
        profiles: ProfileChoices {
            pane,
            setting,
            ..ProfileChoices::default()
        },
        ..Choices::default()
    }
}

fn keep(name: &str, s: &Snapshot, c: &Choices, sizes: &[(u16, u16)]) {
    let drawn = screen::each(name, sizes, |frame, theme| {
        draw(frame, s, &options(theme, s, c.clone()));
    });
    for (name, forms) in drawn {
        insta::assert_snapshot!(name, forms);
    }
}

fn text(s: &Snapshot, c: Choices, width: u16, height: u16) -> String {
    screen::of(s, &options(screen::COLOUR, s, c), width, height)
}

#[test]
fn the_settings_in_every_state() {
    for (name, s) in testing::states() {
        let c = choices(ProfilePane::Settings, 0);
        keep(&format!("settings_{name}"), &s, &c, &SIZES);
    }
}

#[test]
fn every_part_beside_the_settings() {
    let s = testing::healthy();
    for (pane, name) in ProfilePane::ALL {
        if pane != ProfilePane::Settings {
            let name = name.to_lowercase().replace(' ', "_");
            keep(&format!("part_{name}"), &s, &choices(pane, 0), &SIZES);
        }
    }
    let mut broken = choices(ProfilePane::List, 0);
    broken.profiles.marked = Some("old-notes".to_owned());
    keep("part_broken", &s, &broken, &[(120, 36)]);
}

#[test]
fn every_box() {
    let s = testing::healthy();
    for (name, overlay, setting, typed, picked) in [
        ("find_mode", Overlay::Value, 0, "", 2),
        ("cap", Overlay::Value, 4, "21", 0),
        ("save", Overlay::Save, 0, "rx7900xtx-safe-mine", 0),
        ("apply", Overlay::Apply, 0, "", 0),
        ("rungs", Overlay::Rungs, 0, "", 3),
        ("take_rung", Overlay::TakeRung, 0, "", 2),
    ] {
        let c = Choices {
            overlay,
            typed: typed.to_owned(),
            picked,
            ..choices(ProfilePane::Settings, setting)
        };
        keep(&format!("box_{name}"), &s, &c, &[(80, 24), (40, 12)]);
    }
}

fn state(pane: ProfilePane) -> UiState {
    let mut state = UiState::new(false);
    state.choices = choices(pane, 0);
    state.profiles = testing::profiles(true);
    state
}

fn press(state: &mut UiState, keys: &[Key], s: &Snapshot) -> Option<Effect> {
    let area = ratatui::layout::Rect::new(0, 0, 80, 24);
    let mut last = None;
    for key in keys {
        let pane: Pane = view::pane(area, &state.choices);
        last = state.press(*key, Some(s), pane);
    }
    last
}

fn typed(text: &str) -> Vec<Key> {
    text.chars().map(Key::Char).collect()
}

#[test]
fn a_value_is_chosen_from_the_list() {
    let s = testing::healthy();
    let mut ui = state(ProfilePane::Settings);
    press(&mut ui, &[Key::Enter], &s);
    assert_eq!(ui.choices.overlay, Overlay::Value);
    assert_eq!(press(&mut ui.clone(), &[Key::Enter], &s), None);
    let sent = press(&mut ui, &[Key::Up, Key::Enter], &s);
    let wanted = Command::Set {
        setting: Setting::FindMode,
        value: Some("FAST".to_owned()),
    };
    assert_eq!(sent, Some(Effect::Send(wanted)));
    assert_eq!(ui.choices.overlay, Overlay::None);
    assert!(
        ui.toast
            .unwrap()
            .starts_with("find mode FAST from the next")
    );
}

#[test]
fn a_typed_value_is_checked_with_the_cure() {
    let s = testing::healthy();
    let mut ui = state(ProfilePane::Settings);
    ui.choices.profiles.setting = 4;
    press(&mut ui, &[Key::Enter], &s);
    press(&mut ui, &typed("21"), &s);
    assert_eq!(press(&mut ui, &[Key::Enter], &s), None);
    assert_eq!(ui.choices.overlay, Overlay::Value, "it stays open");
    let why = ui.toast.clone().unwrap();
    assert!(why.contains("`21` is not a size such as"), "{why}");
    press(&mut ui, &typed(" GiB"), &s);
    let wanted = Command::Set {
        setting: Setting::VramCap,
        value: Some("21 GiB".to_owned()),
    };
    assert_eq!(
        press(&mut ui, &[Key::Enter], &s),
        Some(Effect::Send(wanted))
    );
}

#[test]
fn the_last_line_is_as_the_profile_says() {
    let mut s = testing::healthy();
    let chosen = Chosen {
        value: "HYBRID".to_owned(),
        over: Vec::new(),
    };
    s.chosen.settings.insert(Setting::FindMode, chosen);
    let mut ui = state(ProfilePane::Settings);
    press(&mut ui, &[Key::Char(' ')], &s);
    let down = [Key::Down; 9];
    press(&mut ui, &down, &s);
    let reset = Command::Set {
        setting: Setting::FindMode,
        value: None,
    };
    assert_eq!(press(&mut ui, &[Key::Enter], &s), Some(Effect::Send(reset)));
}

#[test]
fn what_cannot_follow_says_why() {
    let s = testing::healthy();
    let mut ui = state(ProfilePane::Settings);
    press(&mut ui, &[Key::Down, Key::Enter], &s);
    assert_eq!(ui.choices.overlay, Overlay::None);
    let why = ui.toast.unwrap();
    assert!(
        why.starts_with("chunk size cannot be switched: FramePack has no"),
        "{why}"
    );
}

#[test]
fn a_profile_is_used_next_and_a_broken_one_is_not() {
    let s = testing::healthy();
    let mut ui = state(ProfilePane::List);
    let sent = press(&mut ui, &[Key::Up, Key::Enter], &s);
    let Some(Effect::Send(Command::UseProfile { id })) = sent else {
        panic!("{sent:?}")
    };
    assert_ne!(id, s.profile);
    ui.choices.profiles.marked = Some("old-notes".to_owned());
    assert_eq!(press(&mut ui, &[Key::Enter], &s), None);
    assert!(
        ui.toast
            .clone()
            .unwrap()
            .starts_with("old-notes cannot be used: old-notes.toml, line 9")
    );
    ui.choices.profiles.marked = None;
    assert_eq!(press(&mut ui, &[Key::Enter], &s), None);
    assert_eq!(ui.toast.unwrap(), "rx7900xtx-safe is chosen already");
}

#[test]
fn a_restart_asks_and_enter_is_not_the_answer() {
    let s = testing::healthy();
    let mut ui = state(ProfilePane::Settings);
    assert_eq!(press(&mut ui, &[Key::Char('a')], &s), None);
    assert_eq!(ui.choices.overlay, Overlay::Apply);
    assert_eq!(press(&mut ui.clone(), &[Key::Enter], &s), None);
    let sent = press(&mut ui.clone(), &[Key::Char('y')], &s);
    assert_eq!(sent, Some(Effect::Send(Command::ApplyNow)));
    ui.news(&testing::waiting_vram());
    assert_eq!(ui.choices.overlay, Overlay::None, "the attempt has ended");
    press(&mut ui, &[Key::Char('a')], &testing::hung());
    assert_eq!(ui.choices.overlay, Overlay::None);
    assert!(ui.toast.unwrap().contains("this attempt ends anyway"));
}

#[test]
fn saving_asks_for_an_id_that_is_free() {
    let s = testing::healthy();
    let mut ui = state(ProfilePane::Settings);
    press(&mut ui, &[Key::Char('m')], &s);
    assert_eq!(ui.choices.typed, "rx7900xtx-safe-mine");
    let save = |id: &str| Some(Effect::Send(Command::SaveProfile { id: id.to_owned() }));
    let sent = press(&mut ui.clone(), &[Key::Enter], &s);
    assert_eq!(sent, save("rx7900xtx-safe-mine"));
    ui.choices.typed = "night-run".to_owned();
    assert_eq!(press(&mut ui, &[Key::Enter], &s), None);
    assert!(ui.toast.clone().unwrap().contains("already"));
    ui.choices.typed = "My Card".to_owned();
    assert_eq!(press(&mut ui, &[Key::Enter], &s), None);
    assert_eq!(ui.choices.overlay, Overlay::Save);
    let mut own = s.clone();
    own.profile = "night-run".to_owned();
    let mut ui = state(ProfilePane::Settings);
    let sent = press(&mut ui, &[Key::Char('m'), Key::Enter], &own);
    assert_eq!(sent, save("night-run"), "one's own is changed itself");
}

#[test]
fn a_finished_run_can_be_saved_and_not_switched() {
    let s = testing::finished();
    let mut ui = state(ProfilePane::Settings);
    assert_eq!(press(&mut ui, &[Key::Enter], &s), None);
    assert!(ui.toast.clone().unwrap().contains("can be saved"));
    assert_eq!(press(&mut ui, &[Key::Char('a')], &s), None);
    assert!(ui.toast.clone().unwrap().contains("the run is over"));
    let sent = press(&mut ui, &[Key::Char('m'), Key::Enter], &s);
    assert!(matches!(
        sent,
        Some(Effect::Send(Command::SaveProfile { .. }))
    ));
}

#[test]
fn a_run_whose_supervisor_is_not_reached_is_not_switched() {
    let s = testing::healthy();
    let mut ui = state(ProfilePane::Settings);
    ui.choices.reach = Reach::Signals("the run of another user");
    for key in [Key::Enter, Key::Char('a'), Key::Char('m'), Key::Char('o')] {
        assert_eq!(press(&mut ui, &[key], &s), None);
        assert_eq!(ui.choices.overlay, Overlay::None);
        assert!(
            ui.toast
                .clone()
                .unwrap()
                .contains("the run of another user")
        );
    }
}

#[test]
fn a_rung_asks_only_where_it_ends_an_attempt() {
    let take = |rung: &str| {
        Some(Effect::Send(Command::TakeRung {
            rung: RungId(rung.to_owned()),
        }))
    };
    let mut ui = UiState::default();
    let s = testing::healthy();
    press(&mut ui, &[Key::Char('o')], &s);
    assert_eq!(ui.choices.overlay, Overlay::Rungs);
    assert_eq!(press(&mut ui, &[Key::Enter], &s), None);
    assert_eq!(ui.choices.overlay, Overlay::TakeRung);
    assert_eq!(press(&mut ui.clone(), &[Key::Enter], &s), None);
    assert_eq!(press(&mut ui, &[Key::Char('y')], &s), take("tiled_vae"));
    let hung = testing::hung();
    let mut ui = UiState::default();
    let keys = [Key::Char('o'), Key::Down, Key::Enter];
    assert_eq!(press(&mut ui, &keys, &hung), take("tiled_vae"));
    press(
        &mut ui,
        &[Key::Char('o'), Key::Down, Key::Down, Key::Enter],
        &hung,
    );
    assert_eq!(ui.choices.overlay, Overlay::Rungs);
    assert!(
        ui.toast
            .unwrap()
            .starts_with("full_unload cannot be taken: needs the agent")
    );
}

#[test]
fn left_and_right_go_through_the_parts() {
    let s = testing::healthy();
    let mut ui = state(ProfilePane::Settings);
    press(&mut ui, &[Key::Left, Key::Left], &s);
    assert_eq!(ui.choices.profiles.pane, ProfilePane::List);
    press(&mut ui, &[Key::Right; 9], &s);
    assert_eq!(ui.choices.profiles.pane, ProfilePane::Problems);
    press(&mut ui, &[Key::Left], &s);
    press(&mut ui, &[Key::Down; 99], &s);
    let bottom = ui.choices.profiles.line;
    assert!(
        bottom > 0 && bottom < 60,
        "{bottom}: the last page, not beyond"
    );
    press(&mut ui, &[Key::Esc, Key::Esc], &s);
    assert_eq!(ui.choices.screen, Screen::Dashboard);
}

#[test]
fn the_question_says_what_ends_and_what_starts() {
    let s = testing::healthy();
    let mut c = choices(ProfilePane::Settings, 0);
    c.overlay = Overlay::Apply;
    let shown = text(&s, c, 120, 36);
    for words in [
        "attempt 2 on fast_find, pid 41822, after 00:03:07",
        "section 2/4",
        "1 bundle of evidence",
        "find mode FAST",
        "HYBRID",
    ] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
}

#[test]
fn a_profile_that_waits_is_told_from_one_in_force() {
    let shown = |s: &Snapshot| text(s, choices(ProfilePane::List, 0), 80, 24);
    let mut s = testing::healthy();
    assert!(shown(&s).contains("▶ rx7900xtx-safe  ● best match  in force"));
    s.profile = "night-run".to_owned();
    s.chosen.profile = Some("night-run".to_owned());
    let next = std::sync::Arc::make_mut(&mut s.effective_next);
    for e in next.iter_mut() {
        if let Origin::Profile { file, .. } = &mut e.origin {
            *file = "/home/user/.config/framepack-tui/profiles/night-run.toml".to_owned();
        }
    }
    assert!(
        shown(&s).contains("→ night-run       ● match  next"),
        "{}",
        shown(&s)
    );
    s.effective = s.effective_next.clone();
    assert!(shown(&s).contains("▶ night-run       ● match  in force"));
}

#[test]
fn the_question_names_no_rung_that_the_ladder_lacks() {
    let mut s = testing::healthy();
    let rung = s.attempt.clone().unwrap().rung;
    let mut asked = choices(ProfilePane::Settings, 0);
    asked.overlay = Overlay::Apply;
    let named = |s: &Snapshot| {
        let o = options(
            Theme {
                color: false,
                ascii: true,
            },
            s,
            asked.clone(),
        );
        let lines = super::consequence::lines(s, &o, 100);
        let words = format!("the next attempt on {rung}");
        lines.iter().any(|l| l.to_string().contains(&words))
    };
    assert!(named(&s));
    s.ladder.retain(|e| e.id != rung);
    assert!(!named(&s));
}
