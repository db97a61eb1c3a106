//! What the screen says in the states that a user meets, and that no snapshot and
//! no size breaks it.

use proptest::prelude::*;

use super::chart_choices::{ChartChoices, Picture};
use super::choices::{Choices, Overlay, Screen};
use super::log_choices::{LogChoices, LogView, Search};
use super::theme::Theme;
use super::view::{ViewOptions, draw};
use crate::model::{Bytes, Health, Mono};
use crate::run::Snapshot;
use crate::run::snapshot::Freshness;
use crate::ui::testing::screen::{self, SIZES, of as text, with};
use crate::ui::testing::{self, Dice};
use crate::ui::words::{self, health};

const UNICODE: Theme = screen::COLOUR;

/// Keeps a screen in both forms, see [`screen::forms`].
fn keep(name: &str, s: &Snapshot, choices: &Choices) {
    let drawn = screen::each(name, &SIZES, |frame, theme| {
        draw(frame, s, &with(theme, choices.clone()));
    });
    for (name, forms) in drawn {
        insta::assert_snapshot!(name, forms);
    }
}

#[test]
fn the_dashboard_in_every_state() {
    let more = vec![
        ("held", testing::held()),
        ("waiting_vram", testing::waiting_vram()),
        ("bad_sensors", testing::bad_sensors()),
        ("odd_cards", testing::odd_cards()),
        ("on_an_apu", testing::on_an_apu()),
        ("find_tunes", testing::find_tunes()),
        ("find_stalls", testing::find_stalls()),
        ("agent", testing::with_agent()),
        ("agent_lost", testing::agent_lost()),
        ("queue_lost", testing::queue_lost()),
    ];
    for (name, s) in testing::states().into_iter().chain(more) {
        keep(name, &s, &Choices::default());
    }
    let watches = Choices {
        watches: true,
        ..Choices::default()
    };
    keep("watched", &testing::watched(), &watches);
    let asked = Choices {
        overlay: Overlay::Kill,
        ..watches
    };
    keep("watched_kill", &testing::watched(), &asked);
}

/// The log screen: following, and stopped on a match with a stream hidden.
fn log_choices(s: &Snapshot, searching: bool) -> Choices {
    let log = if searching {
        LogChoices {
            view: LogView::Frozen {
                log: s.log.clone(),
                end: 5,
            },
            hidden: [false, false, true],
            wrap: true,
            search: Some(Search::new("vram".to_owned())),
            hit: Some(1),
            cursor: Some(4),
            mark: Some(1),
        }
    } else {
        LogChoices::default()
    };
    Choices {
        screen: Screen::Log,
        log,
        ..Choices::default()
    }
}

#[test]
fn the_log_screen_in_every_state() {
    for (name, s) in testing::states() {
        keep(&format!("log_{name}"), &s, &log_choices(&s, false));
    }
    let s = testing::healthy();
    keep("log_searched", &s, &log_choices(&s, true));
}

/// The charts: with a time cursor, or held some time ago over the last minute.
fn chart_choices(s: &Snapshot, held: bool, zoom: bool) -> Choices {
    let charts = if held {
        ChartChoices {
            zoom,
            range: Some(1),
            paused: Some(Picture {
                history: std::sync::Arc::clone(&s.history),
                phases: std::sync::Arc::clone(&s.phases),
                now: Mono(s.now.0 - 41_000),
            }),
            cursor: None,
        }
    } else {
        ChartChoices {
            zoom,
            cursor: Some(Mono(s.now.0 - 95_000)),
            ..ChartChoices::default()
        }
    };
    Choices {
        charts,
        ..Choices::default()
    }
}

#[test]
fn zoomed_charts_in_every_state() {
    let more = [
        ("odd_cards", testing::odd_cards()),
        ("on_an_apu", testing::on_an_apu()),
    ];
    for (name, s) in testing::states().into_iter().chain(more) {
        let choices = match name {
            "healthy" | "hung" => chart_choices(&s, name == "hung", true),
            _ => Choices {
                charts: ChartChoices {
                    zoom: true,
                    ..ChartChoices::default()
                },
                ..Choices::default()
            },
        };
        keep(&format!("zoom_{name}"), &s, &choices);
    }
}

#[test]
fn cursor_and_pause_on_the_dashboard() {
    let s = testing::healthy();
    for (width, height) in [(80, 24), (120, 36)] {
        let o = with(UNICODE, chart_choices(&s, false, false));
        let screen = text(&s, &o, width, height);
        for word in ["at      00:12:57", "power 287 W"] {
            assert!(screen.contains(word), "{screen}");
        }
        insta::assert_snapshot!(format!("cursor_{width}x{height}"), screen);
        let o = with(UNICODE, chart_choices(&s, true, false));
        let screen = text(&s, &o, width, height);
        assert!(screen.contains("PAUSED +41 s"), "{screen}");
    }
    let mut s = testing::no_gpu();
    s.history = testing::healthy().history;
    let screen = text(&s, &with(UNICODE, chart_choices(&s, false, true)), 80, 24);
    assert!(screen.contains("no GPU is watched"), "{screen}");
}

#[test]
fn the_last_readings_are_not_shown_as_those_of_now() {
    for (width, height) in [(80, 24), (120, 36), (40, 12)] {
        let of = |s: &Snapshot, choices: Choices| text(s, &with(UNICODE, choices), width, height);
        let zoom = Choices {
            charts: ChartChoices {
                zoom: true,
                ..ChartChoices::default()
            },
            ..Choices::default()
        };
        for s in [testing::finished(), testing::gave_up()] {
            for choices in [Choices::default(), zoom.clone()] {
                let screen = of(&s, choices);
                assert!(screen.contains("at the end"), "{screen}");
                assert!(
                    !screen.contains(" now") && !screen.contains(" ago"),
                    "{screen}"
                );
            }
        }
        let screen = of(&testing::healthy(), Choices::default());
        assert!(!screen.contains("the end"), "{screen}");
    }
    let mut s = testing::no_gpu();
    s.outcome = testing::finished().outcome;
    let screen = text(&s, &with(UNICODE, Choices::default()), 80, 24);
    assert!(screen.contains("no GPU was watched"), "{screen}");
    assert!(!screen.contains("at the end  GPU"), "{screen}");
}

#[test]
fn no_box_hides_health_and_what_comes_next() {
    for overlay in [Overlay::Help, Overlay::Palette, Overlay::Quit] {
        let choices = Choices {
            overlay,
            ..Choices::default()
        };
        for (width, height) in [(80, 24), (40, 12), (40, 10)] {
            let o = with(UNICODE, choices.clone());
            let screen = text(&testing::hung(), &o, width, height);
            assert!(screen.contains("HUNG  KILL  in 3 s"), "{screen}");
            let screen = text(&testing::suspect(), &o, width, height);
            assert!(screen.contains("SUSPECT  in "), "{screen}");
        }
    }
}

/// What must not be cut comes first, and whole.
#[test]
fn the_limit_and_a_hold_are_told_whole_where_there_is_little_room() {
    let o = with(UNICODE, Choices::default());
    let screen = text(&testing::healthy(), &o, 40, 12);
    assert!(screen.contains("in 13 s: silence limit\n"), "{screen}");
    let screen = text(&testing::held(), &o, 40, 12);
    for word in ["HELD  (h releases)", "before rung fast_find", "for you"] {
        assert!(screen.contains(word), "`{word}`:\n{screen}");
    }
}

#[test]
fn the_way_back_and_the_marks_are_in_the_footer_of_the_diagnosis() {
    let choices = Choices {
        screen: Screen::Diagnose,
        ..Choices::default()
    };
    let o = with(UNICODE, choices);
    for s in [testing::healthy(), testing::hung()] {
        let screen = text(&s, &o, 80, 24);
        for word in ["Esc back", "n next mark", "p mark back"] {
            assert!(screen.contains(word), "`{word}`:\n{screen}");
        }
    }
}

#[test]
fn every_screen_says_the_next_limit_and_the_reason() {
    let s = testing::suspect();
    for screen in [Screen::Log, Screen::Profiles] {
        let choices = Choices {
            screen,
            ..Choices::default()
        };
        for (width, height) in [(120, 36), (80, 24), (40, 10)] {
            let drawn = text(&s, &with(UNICODE, choices.clone()), width, height);
            assert!(drawn.contains("SUSPECT  in "), "{drawn}");
            assert!(drawn.contains("reason  "), "{drawn}");
        }
    }
}

#[test]
fn a_search_is_typed_below_the_log() {
    let s = testing::healthy();
    let mut choices = log_choices(&s, true);
    choices.overlay = Overlay::Search;
    insta::assert_snapshot!("log_search", text(&s, &with(UNICODE, choices), 80, 24));
}

#[test]
fn questions_and_lists() {
    for (name, overlay, typed) in [
        ("help", Overlay::Help, ""),
        ("help_narrowed", Overlay::Help, "log"),
        ("palette", Overlay::Palette, ""),
        ("palette_told", Overlay::Palette, "goto 17:00"),
        ("quit", Overlay::Quit, ""),
        ("stop", Overlay::Stop, ""),
        ("kill", Overlay::Kill, ""),
    ] {
        let choices = Choices {
            overlay,
            typed: typed.to_owned(),
            picked: if name == "help" { 30 } else { 0 },
            marked: name == "help",
            ..Choices::default()
        };
        let s = testing::healthy();
        for (width, height) in [(80, 24), (40, 12)] {
            let forms = screen::forms(width, height, |frame, theme| {
                let o = ViewOptions {
                    record: Some("/home/user/.local/state/framepack-tui/runs/7f3a".to_owned()),
                    ..with(theme, choices.clone())
                };
                draw(frame, &s, &o);
            });
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), forms);
        }
    }
}

#[test]
fn what_matters_is_on_every_larger_screen() {
    let cases: Vec<(Snapshot, &[&str])> = vec![
        (
            testing::hung(),
            &[
                "HUNG",
                "silent_hang",
                "KILL  in 3 s",
                "fast_find",
                "(h holds it)",
            ],
        ),
        (
            testing::suspect(),
            &["SUSPECT", "in 34 s: verdict silent_hang"],
        ),
        (testing::waiting_vram(), &["17.2 -> 0.9 GiB, at most 48 s"]),
        (
            testing::finished(),
            &["FINISHED", "exit code 10", "260714_140311_884_5712_37.mp4"],
        ),
        (testing::no_gpu(), &["no GPU"]),
        (
            testing::odd_cards(),
            &[
                "97 % disputed",
                "sysfs 97 %, rocm-smi 0 %",
                "throttled: power, thermal",
                "ring timeout gfx_0.0.0 on this card 12 s ago",
                "HIP_VISIBLE_DEVICES=0 makes the program use GPU 1",
            ],
        ),
        (
            testing::on_an_apu(),
            &[
                "99 % untrusted",
                "busy reads 99 % at 24 W",
                "117 W package",
                "python 98 %",
            ],
        ),
        (
            testing::bad_sensors(),
            &[
                "BLIND",
                "failed",
                "stale 4 s",
                "LOST",
                "dropped 12 lines, 3 samples",
            ],
        ),
    ];
    for (s, words) in cases {
        for (width, height) in [(80, 24), (100, 28), (110, 30), (200, 60)] {
            let screen = text(&s, &ViewOptions::new(UNICODE), width, height);
            for word in words {
                assert!(
                    screen.contains(word),
                    "{word} at {width}x{height}:\n{screen}"
                );
            }
        }
    }
}

#[test]
fn a_restarted_server_asks_for_a_press() {
    let mut s = testing::healthy();
    s.job = crate::run::snapshot::JobState::Waiting(crate::model::Mono::from_secs(700));
    for (width, height) in [(40, 10), (80, 24), (120, 36)] {
        let screen = text(&s, &ViewOptions::new(UNICODE), width, height);
        assert!(screen.contains("PRESS START AGAIN"), "{screen}");
    }
}

#[test]
fn a_silent_supervisor_is_said_to_be() {
    let o = ViewOptions {
        silent_for: std::time::Duration::from_secs(4),
        ..ViewOptions::new(UNICODE)
    };
    assert!(text(&testing::healthy(), &o, 80, 24).contains("NO NEWS FOR 4 s"));
}

/// What would be read as the present state of a run, in any of its states.
const OF_NOW: [&str; 12] = [
    "LIVE",
    "HEALTHY",
    "SUSPECT",
    "HUNG",
    "FAILING",
    "SLOW",
    "KILL in",
    "HELD",
    "WATCHING",
    "ends in",
    "alarm after",
    "h holds",
];

#[test]
fn a_screen_that_is_behind_says_how_far_and_shows_no_state_as_the_present_one() {
    let more = [("held", testing::held()), ("find", testing::find_stalls())];
    for (name, s) in testing::states().into_iter().chain(more) {
        let s = s.seen_as(Freshness::CatchingUp { percent: 42 });
        for (width, height) in [(30, 8), (40, 10), (80, 24), (120, 36)] {
            let screen = text(&s, &ViewOptions::new(UNICODE), width, height);
            if s.outcome.is_some() {
                assert!(!screen.contains("CATCHING UP"), "{name}:\n{screen}");
                continue;
            }
            // the log is what was said then, at its times
            let log = |l: &&str| l.trim_start_matches(['┌', ' ']).starts_with("Log");
            let state: Vec<_> = screen.lines().take_while(|l| !log(l)).collect();
            let state = state.join("\n");
            assert!(state.contains("CATCHING UP"), "{name}:\n{screen}");
            assert!(state.contains("42 %"), "{name}:\n{screen}");
            for word in OF_NOW {
                assert!(!state.contains(word), "{word} in {name}:\n{screen}");
            }
        }
    }
}

#[test]
fn a_record_that_breaks_off_shows_no_state_as_the_present_one() {
    let s = testing::suspect().seen_as(Freshness::CutOff);
    for (width, height) in [(30, 8), (40, 10), (80, 24), (120, 36)] {
        let screen = text(&s, &ViewOptions::new(UNICODE), width, height);
        assert!(
            screen.contains("UNKNOWN") && screen.contains("CUT OFF"),
            "{screen}"
        );
        for word in ["LIVE", "SUSPECT", "ends in", "in 2"] {
            assert!(!screen.contains(word), "{word} in:\n{screen}");
        }
    }
}

/// Nobody knows when something ends that stands still.
#[test]
fn nothing_is_said_of_when_a_bar_ends_that_does_not_move() {
    let left = |s: &Snapshot| words::bar_left(s);
    let healthy = testing::healthy();
    assert_eq!(left(&healthy).as_deref(), Some("55 s"));
    let mut late = healthy.clone();
    // three steps of 6.8 s, and more
    late.last_progress = Some(Mono(late.now.0 - 20_000));
    assert!(left(&late).is_some());
    late.last_progress = Some(Mono(late.now.0 - 21_000));
    assert_eq!(left(&late), None, "silent within its limit");
    let doubts = [
        Health::Suspect,
        Health::Hung,
        Health::Failing,
        Health::Failed,
        Health::Paused,
    ];
    for doubt in doubts {
        let mut s = healthy.clone();
        s.verdict.health = doubt;
        assert_eq!(left(&s), None, "{doubt:?}");
        for (width, height) in [(80, 24), (120, 36)] {
            let screen = text(&s, &ViewOptions::new(UNICODE), width, height);
            assert!(
                screen.contains("17/25") && !screen.contains("ends in"),
                "{screen}"
            );
        }
    }
    let mut gone = healthy.clone();
    gone.ended = true;
    assert_eq!(left(&gone), None);
    let mut unknown = healthy;
    unknown.last_progress = None;
    assert_eq!(left(&unknown), None);
    let mut find = testing::find_tunes();
    let with = text(&find, &ViewOptions::new(UNICODE), 120, 36);
    assert!(with.contains("ETA"), "{with}");
    find.verdict.health = Health::Suspect;
    let without = text(&find, &ViewOptions::new(UNICODE), 120, 36);
    assert!(!without.contains("ETA"), "{without}");
}

/// An answer to a key is read whole at every size, or cut with a sign after three rows.
#[test]
fn an_answer_takes_the_rows_that_it_needs() {
    let toast = "a: this attempt ends anyway; the next one has what you chose";
    let o = ViewOptions {
        toast: Some(toast.to_owned()),
        ..ViewOptions::new(UNICODE)
    };
    for (width, height) in [(24, 5), (30, 8), (40, 10), (80, 24), (120, 36)] {
        for s in [testing::healthy(), testing::finished(), testing::gave_up()] {
            let screen = text(&s, &o, width, height);
            let words: Vec<_> = screen.split_whitespace().collect();
            assert!(
                words.join(" ").contains(toast),
                "{width}x{height}:\n{screen}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_snapshot_no_choice_and_no_size_breaks_the_view(
        seed in any::<u64>(),
        width in 1_u16..=300,
        height in 1_u16..=100,
        ascii in any::<bool>(),
    ) {
        let mut dice = Dice(seed);
        let s = dice.snapshot();
        let choices = dice.choices(&s);
        let theme = Theme { ascii, color: !ascii };
        let o = ViewOptions { profiles: dice.profiles(), ..with(theme, choices) };
        let screen = text(&s, &o, width, height);
        if ascii {
            prop_assert!(screen.is_ascii(), "{}", screen);
        }
        if width >= 40 && height >= 10 {
            prop_assert!(screen.contains(health(&s).word), "{}", screen);
        }
    }

    #[test]
    fn small_sizes_too(seed in any::<u64>(), width in 1_u16..=45, height in 1_u16..=14) {
        let mut dice = Dice(seed);
        let s = dice.snapshot();
        let mut choices = dice.choices(&s);
        choices.overlay = Overlay::None;
        let o = ViewOptions { profiles: dice.profiles(), ..with(UNICODE, choices) };
        let screen = text(&s, &o, width, height);
        if width >= 40 && height >= 10 {
            prop_assert!(screen.contains(health(&s).word), "{}", screen);
        }
    }
}

#[test]
fn a_small_terminal_draws_a_question_with_all_its_answers() {
    let s = testing::healthy();
    for (overlay, words) in [
        (Overlay::Kill, ["Kill the run?", "y  kill it", "n  cancel"]),
        (Overlay::Stop, ["Stop the run?", "y  stop it", "n  cancel"]),
        (
            Overlay::Quit,
            ["Quit: what becomes", "2  leave it", "3  cancel"],
        ),
    ] {
        for size in [(30, 8), (39, 9), (20, 4), (200, 5)] {
            let choices = Choices {
                overlay,
                ..Choices::default()
            };
            let drawn = text(&s, &with(UNICODE, choices), size.0, size.1);
            let seen: Vec<_> = words.iter().filter(|w| drawn.contains(**w)).collect();
            // twenty columns cut the title
            assert!(seen.len() >= 2, "{size:?}\n{drawn}");
        }
    }
    let choices = Choices {
        overlay: Overlay::Kill,
        ..Choices::default()
    };
    insta::assert_snapshot!("kill_30x8", text(&s, &with(UNICODE, choices), 30, 8));
}

#[test]
fn a_process_that_has_ended_is_not_called_healthy() {
    use crate::model::Outcome;
    use crate::run::snapshot::Stage;

    let mut waits = testing::healthy();
    waits.pid = None;
    waits.ended = true;
    waits.stage = Stage::WaitingVram {
        used: Some(Bytes::gib(9)),
        before: Bytes::gib(1),
        until: waits.now,
    };
    let mut drains = testing::healthy();
    drains.ended = true;
    let mut stopped = waits.clone();
    stopped.stage = Stage::Ended;
    let outcome = Outcome::Interrupted { terminated: false };
    stopped.outcome = Some((outcome, 130, "ended by the user".to_owned()));
    for (s, word) in [
        (waits, "RESTARTING"),
        (drains, "ENDING"),
        (stopped, "STOPPED"),
    ] {
        for screen in [
            Screen::Dashboard,
            Screen::Diagnose,
            Screen::Log,
            Screen::Profiles,
        ] {
            for (width, height) in [(120, 36), (80, 24), (40, 10), (30, 8)] {
                let choices = Choices {
                    screen,
                    ..Choices::default()
                };
                let drawn = text(&s, &with(UNICODE, choices), width, height);
                let health: Vec<_> = drawn.lines().filter(|l| l.contains("● HEALTHY")).collect();
                assert!(health.is_empty(), "{screen:?} {width}x{height}\n{drawn}");
                if screen == Screen::Dashboard {
                    assert!(drawn.contains(word), "{width}x{height}\n{drawn}");
                }
            }
        }
    }
}
