//! What the diagnosis says in the states that a user meets.

use super::choices::{Choices, Overlay, Screen};
use super::keys::Key;
use super::log_choices::Pane;
use super::state::{Effect, UiState};
use super::view::draw;
use crate::model::{CiteKind, Command, Mono};
use crate::run::Snapshot;
use crate::ui::slot::Reach;
use crate::ui::testing;
use crate::ui::testing::screen::{self, SIZES, with};

fn text(s: &Snapshot, choices: &Choices, (width, height): (u16, u16)) -> String {
    screen::of(s, &with(screen::COLOUR, choices.clone()), width, height)
}

/// Keeps a screen in both forms, see [`screen::forms`].
fn keep(name: &str, s: &Snapshot, choices: &Choices) {
    let drawn = screen::each(name, &SIZES, |frame, theme| {
        draw(frame, s, &with(theme, choices.clone()));
    });
    for (name, forms) in drawn {
        insta::assert_snapshot!(name, forms);
    }
}

fn states() -> Vec<(&'static str, Snapshot)> {
    vec![
        ("healthy", testing::healthy()),
        ("suspect", testing::suspect()),
        ("hung", testing::hung()),
        ("failing", testing::failing()),
        ("gave_up", testing::gave_up()),
        ("finished", testing::finished()),
        ("blind", testing::bad_sensors()),
    ]
}

fn diagnose() -> Choices {
    Choices {
        screen: Screen::Diagnose,
        ..Choices::default()
    }
}

#[test]
fn the_diagnosis_in_every_state() {
    for (name, s) in states() {
        keep(name, &s, &diagnose());
    }
}

#[test]
fn the_moment_of_the_cursor() {
    let s = testing::healthy();
    let mut choices = diagnose();
    choices.charts.cursor = Some(Mono::from_secs(674));
    keep("cursor", &s, &choices);
}

#[test]
fn the_events_behind_a_finding() {
    let s = testing::failing();
    let mut choices = diagnose();
    choices.diagnose.row = Some(1);
    choices.overlay = Overlay::Cites;
    keep("cites", &s, &choices);
}

#[test]
fn the_dashboard_names_the_key_for_the_diagnosis() {
    for (name, s) in states() {
        let fault = matches!(name, "hung" | "failing" | "gave_up");
        for size in [(120, 36), (80, 24), (40, 12)] {
            let screen = text(&s, &Choices::default(), size);
            assert_eq!(
                screen.contains("d: why"),
                fault,
                "{name} {size:?}:\n{screen}"
            );
        }
    }
}

#[test]
fn the_verdict_and_what_follows_are_on_every_size() {
    let cases: [(Snapshot, &[&str]); 5] = [
        (
            testing::hung(),
            &["HUNG", "silent_hang", "KILL  in 3 s", "matched", "00:13:40"],
        ),
        (
            testing::suspect(),
            &["SUSPECT", "verdict silent_hang in 34 s"],
        ),
        (testing::failing(), &["FAILING", "gpu_oom", "matched"]),
        (testing::finished(), &["FINISHED", "exit code 10"]),
        (
            testing::bad_sensors(),
            &["BLIND", "not enough to judge", "nothing is done before"],
        ),
    ];
    for (s, words) in cases {
        for size in [(40, 12), (80, 24), (100, 28), (110, 30), (200, 60)] {
            let screen = text(&s, &diagnose(), size);
            for word in words {
                assert!(screen.contains(word), "{word} at {size:?}:\n{screen}");
            }
        }
    }
    let raised = "silent_hang: limit 42 s -> 63 s for this run";
    let screen = text(&testing::suspect(), &diagnose(), (80, 24));
    assert!(screen.contains(raised), "{screen}");
}

#[test]
fn a_missing_reading_says_why() {
    let screen = text(&testing::bad_sensors(), &diagnose(), (120, 36));
    for word in [
        "failed: Input/output",
        "stale 4 s",
        "-- not offered",
        "104 %",
    ] {
        assert!(screen.contains(word), "{word}:\n{screen}");
    }
}

const PANE: Pane = Pane {
    columns: 78,
    rows: 20,
    full: true,
};

fn press(state: &mut UiState, keys: &[Key], s: &Snapshot) -> Option<Effect> {
    let mut effect = None;
    for key in keys {
        effect = state.press(*key, Some(s), PANE);
    }
    effect
}

#[test]
fn d_goes_there_and_escape_one_level_back() {
    let s = testing::hung();
    let mut state = UiState::default();
    press(&mut state, &[Key::Char('d'), Key::Left], &s);
    assert_eq!(state.choices.screen, Screen::Diagnose);
    assert!(state.choices.charts.cursor.is_some_and(|t| t < s.now));
    assert_eq!(state.choices.charts.range, None, "no range was chosen");
    press(&mut state, &[Key::Esc], &s);
    assert_eq!(state.choices.charts.cursor, None);
    assert_eq!(state.choices.screen, Screen::Diagnose);
    press(&mut state, &[Key::Esc], &s);
    assert_eq!(state.choices.screen, Screen::Dashboard);
}

#[test]
fn marks_are_gone_through() {
    let s = testing::hung();
    let mut state = UiState::default();
    press(&mut state, &[Key::Char('2'), Key::Char('p')], &s);
    let charts = &state.choices.charts;
    assert_eq!(charts.cursor, Some(Mono::from_secs(871)), "the verdict");
    press(&mut state, &[Key::Char('p')], &s);
    let said = state.toast.clone().unwrap();
    assert_eq!(
        said,
        "00:13:57 SUSPECT silent_hang, 17 s after the first sign"
    );
    press(&mut state, &[Key::Char('p'), Key::Char('n')], &s);
    assert_eq!(state.choices.charts.cursor, Some(Mono::from_secs(837)));
    press(&mut state, &[Key::End, Key::Char('n')], &s);
    assert_eq!(state.toast.as_deref(), Some("no later mark"));
    press(&mut state, &[Key::Home], &s);
    let first = state.choices.charts.cursor.unwrap();
    assert_eq!(first, Mono::from_secs(872 - 120), "the left edge");
}

#[test]
fn a_moment_that_is_gone_shows_its_verdict_beside_the_present_one() {
    let s = testing::healthy();
    let mut choices = diagnose();
    choices.charts.cursor = Some(Mono::from_secs(674));
    for size in [(40, 12), (80, 24), (120, 36)] {
        let screen = text(&s, &choices, size);
        assert!(screen.contains("HUNG"), "{screen}");
        assert!(screen.contains("now     ● HEALTHY"), "{screen}");
    }
}

#[test]
fn a_finding_leads_to_the_line_in_the_log() {
    let mut s = testing::hung();
    let mut state = UiState::default();
    press(&mut state, &[Key::Char('d'), Key::Down, Key::Enter], &s);
    assert_eq!(state.choices.overlay, Overlay::Cites);
    press(&mut state, &[Key::Enter], &s);
    assert_eq!(state.choices.screen, Screen::Log);
    let at = state.choices.log.cursor.unwrap();
    assert!(
        s.log
            .get(at)
            .unwrap()
            .text
            .starts_with("latent_padding_size")
    );
    // a reading is a moment of the timeline
    press(
        &mut state,
        &[Key::Char('d'), Key::Enter, Key::Down, Key::Enter],
        &s,
    );
    assert_eq!(state.choices.screen, Screen::Diagnose);
    assert_eq!(state.choices.overlay, Overlay::None);
    assert_eq!(state.toast.as_deref(), Some("at 00:14:32"));
    // one that the log no longer has
    s.verdict.findings[0].cites[0].text = "long gone".to_owned();
    assert_eq!(s.verdict.findings[0].cites[0].kind, CiteKind::Console);
    press(&mut state, &[Key::Enter, Key::Enter], &s);
    let said = state.toast.clone().unwrap();
    assert!(said.contains("no longer keeps this line"), "{said}");
    // a rule that is clear rests on nothing
    let mut state = UiState::default();
    press(&mut state, &[Key::Char('d'), Key::PageDown, Key::Enter], &s);
    assert_eq!(state.choices.overlay, Overlay::None);
    let said = state.toast.clone().unwrap();
    assert_eq!(said, "thrash, no event behind it: psi mem 0.0");
}

#[test]
fn what_follows_is_no_contradiction() {
    use crate::model::{ActionId, Remedy, RungId};
    use crate::run::snapshot::{RungState, Stage};
    let size = (80, 24);
    // which rung answers a fault is known once there is a doubt
    let mut s = testing::healthy();
    for rung in &mut s.ladder {
        if rung.state == RungState::Next {
            rung.state = RungState::Untried;
        }
    }
    s.verdict.remedy = Some(Remedy {
        action: ActionId::None,
        tier: 0,
        auto_restart: false,
        env: std::collections::BTreeMap::new(),
        why: "nothing".to_owned(),
    });
    let screen = text(&s, &diagnose(), size);
    assert!(screen.contains("rung that answers it"), "{screen}");
    assert!(!screen.contains("no rung would follow"), "{screen}");
    assert!(!screen.contains("tier 0"), "{screen}");
    s.restarts_left = 0;
    let screen = text(&s, &diagnose(), size);
    assert!(screen.contains("no restart is left"), "{screen}");
    // nothing is done to what others started
    let mut s = testing::suspect();
    s.attached = true;
    let screen = text(&s, &diagnose(), size);
    assert!(
        screen.contains("it is not ours: nothing is done to it"),
        "{screen}"
    );
    assert!(!screen.contains("would follow") && !screen.contains("restarts left"));
    // what is not seen is no good sign
    let mut s = testing::bad_sensors();
    s.verdict.phase = crate::model::Phase::Unknown;
    let screen = text(&s, &diagnose(), size);
    assert!(screen.contains("BLIND  in no known phase"), "{screen}");
    assert!(screen.contains("too little is seen"), "{screen}");
    assert!(!screen.contains("nothing speaks against"), "{screen}");
    // no rung follows the end of a run
    let mut s = testing::hung();
    for held in [false, true] {
        if let Stage::Countdown { rung, held: h, .. } = &mut s.stage {
            *rung = RungId::give_up();
            *h = held;
        }
        let screen = text(&s, &diagnose(), (80, 24));
        assert!(!screen.contains("give_up"), "{screen}");
        assert!(screen.contains(if held { "ends the run" } else { "given up" }));
    }
}

#[test]
fn a_verdict_of_before_lasts_until_the_next() {
    let s = testing::healthy();
    let states = &s.trail.states;
    let (first, second) = (states[0].at, states[1].at);
    let mut choices = diagnose();
    choices.charts.cursor = Some(first);
    let screen = text(&s, &choices, (80, 24));
    let title = format!("from {} until {}", first.clock(), second.clock());
    assert!(screen.contains(&title), "{title}:\n{screen}");
    let lasts = format!("for {}", Mono(second.0 - first.0).clock());
    assert!(screen.contains(&lasts), "{lasts}:\n{screen}");
}

#[test]
fn the_verdict_is_copied_as_text() {
    let s = testing::failing();
    let mut state = UiState::default();
    let effect = press(&mut state, &[Key::Char('d'), Key::Char('y')], &s);
    let Some(Effect::Copy(text)) = effect else {
        panic!("{effect:?}");
    };
    insta::assert_snapshot!("copied", text);
    press(&mut state, &[Key::Char('x')], &s);
    let said = state.toast.clone().unwrap();
    assert_eq!(
        said,
        "in a shell: framepack-tui runs export 20260714-140022-7f3a"
    );
}

#[test]
fn what_acts_on_the_run_works_here_and_not_where_it_is_not_reached() {
    let s = testing::hung();
    let mut state = UiState::default();
    for (key, command) in [
        ('f', Command::FalseAlarm),
        ('w', Command::Wait),
        ('h', Command::Hold),
        ('e', Command::Evidence),
    ] {
        let effect = press(&mut state, &[Key::Char('2'), Key::Char(key)], &s);
        assert_eq!(effect, Some(Effect::Send(command)));
    }
    state.choices.reach = Reach::Signals("the run of another user");
    for key in ['f', 'w', 'o'] {
        let effect = press(&mut state, &[Key::Char('2'), Key::Char(key)], &s);
        assert_eq!(effect, None);
        let said = state.toast.clone().unwrap();
        assert!(said.ends_with("the run of another user"), "{said}");
    }
}

#[test]
fn a_range_from_the_palette_stays_on_this_screen() {
    let s = testing::healthy();
    let mut state = UiState::default();
    press(&mut state, &[Key::Char('2'), Key::Char(':')], &s);
    let typed: Vec<_> = "range 2m".chars().map(Key::Char).collect();
    press(&mut state, &typed, &s);
    press(&mut state, &[Key::Enter], &s);
    assert_eq!(state.choices.charts.range, Some(2));
    assert_eq!(state.choices.screen, Screen::Diagnose);
}
