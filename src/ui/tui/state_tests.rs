//! What keys make of the view and of the run.

use super::choices::{Overlay, Screen};
use super::keymap;
use super::keys::Key;
use super::log_choices::{LogView, Pane};
use super::state::{Effect, UiState};
use crate::model::{Command, Mono, Outcome};
use crate::run::Snapshot;
use crate::run::snapshot::{Freshness, Stage};
use crate::ui::slot::Reach;
use crate::ui::testing;

const PANE: Pane = Pane {
    columns: 60,
    rows: 3,
    full: false,
};

fn press(state: &mut UiState, key: Key, s: &Snapshot) -> Option<Effect> {
    state.press(key, Some(s), PANE)
}

#[test]
fn ctrl_c_stops_then_kills_then_leaves() {
    let s = testing::healthy();
    let mut state = UiState::default();
    let key = Key::Ctrl('c');
    assert_eq!(
        press(&mut state, key, &s),
        Some(Effect::Send(Command::Stop))
    );
    assert_eq!(
        press(&mut state, key, &s),
        Some(Effect::Send(Command::Kill))
    );
    assert_eq!(press(&mut state, key, &s), Some(Effect::Leave));
    assert_eq!(
        press(&mut UiState::default(), key, &testing::finished()),
        Some(Effect::Leave)
    );
}

#[test]
fn a_kill_needs_its_own_key_after_the_question() {
    let s = testing::healthy();
    let mut state = UiState::default();
    assert_eq!(press(&mut state, Key::Char('k'), &s), None);
    assert_eq!(press(&mut state, Key::Enter, &s), None);
    assert_eq!(state.choices.overlay, Overlay::None, "enter cancels");
    press(&mut state, Key::Char('k'), &s);
    assert_eq!(
        press(&mut state, Key::Char('y'), &s),
        Some(Effect::Send(Command::Kill))
    );
}

#[test]
fn the_line_of_an_open_find_can_be_copied() {
    let mut state = UiState::default();
    let s = testing::find_stalls();
    let Some(Effect::Copy(line)) = press(&mut state, Key::Char('y'), &s) else {
        panic!("nothing is copied");
    };
    let begin = "MIOpenDriver convbfp16 -n 1 -c 128 --in_d 17 -H 256 -W 256 -k 128";
    assert!(line.starts_with(begin) && !line.contains('\n'), "{line}");
    assert_eq!(press(&mut state, Key::Char('y'), &testing::healthy()), None);
    assert_eq!(
        state.toast.as_deref(),
        Some("y: MIOpen searches for nothing")
    );
    let mut unnamed = s;
    if let Some(find) = &mut unnamed.find {
        find.state.convolution = None;
    }
    assert_eq!(press(&mut state, Key::Char('y'), &unnamed), None);
    assert!(state.toast.unwrap().contains("does not say"));
}

#[test]
fn quitting_a_live_run_asks() {
    let s = testing::healthy();
    let mut state = UiState::default();
    assert_eq!(press(&mut state, Key::Char('q'), &s), None);
    assert_eq!(state.choices.overlay, Overlay::Quit);
    assert_eq!(
        press(&mut state.clone(), Key::Char('1'), &s),
        Some(Effect::Send(Command::Stop))
    );
    assert_eq!(
        press(&mut state.clone(), Key::Char('2'), &s),
        Some(Effect::Leave)
    );
    state.news(&testing::finished());
    assert_eq!(
        state.choices.overlay,
        Overlay::None,
        "nothing is left to ask"
    );
    assert_eq!(
        press(&mut state, Key::Char('q'), &testing::finished()),
        Some(Effect::Leave)
    );
}

#[test]
fn one_key_holds_and_releases() {
    let mut s = testing::hung();
    let mut state = UiState::default();
    assert_eq!(
        press(&mut state, Key::Char('h'), &s),
        Some(Effect::Send(Command::Hold))
    );
    if let Stage::Countdown { held, .. } = &mut s.stage {
        *held = true;
    }
    assert_eq!(
        press(&mut state, Key::Char('h'), &s),
        Some(Effect::Send(Command::Release))
    );
    assert_eq!(press(&mut state, Key::Char('h'), &testing::healthy()), None);
    assert_eq!(state.toast.as_deref(), Some("h: no kill is announced"));
}

#[test]
fn scrolling_freezes_the_log_and_the_end_follows() {
    let s = testing::healthy();
    let mut state = UiState::default();
    press(&mut state, Key::PageUp, &s);
    press(&mut state, Key::PageUp, &s);
    let LogView::Frozen { log, end } = &state.choices.log.view else {
        panic!("follows")
    };
    assert_eq!(*end, 3, "not beyond the first line");
    let mut more = log.clone();
    let mut line = more.front().unwrap().clone();
    line.at = Mono::from_secs(900);
    more.push(line);
    assert_eq!(crate::ui::tui::log_choices::newer(log, &more), 1);
    press(&mut state, Key::PageDown, &s);
    press(&mut state, Key::PageDown, &s);
    assert_eq!(state.choices.log.view, LogView::Follow);
}

fn typing(state: &mut UiState, text: &str, s: &Snapshot) {
    for c in text.chars() {
        assert_eq!(press(state, Key::Char(c), s), None, "{c} is text");
    }
}

#[test]
fn typed_text_fires_no_command() {
    let s = testing::hung();
    let mut state = UiState::default();
    press(&mut state, Key::Char('5'), &s);
    assert_eq!(state.choices.screen, Screen::Log);
    press(&mut state, Key::Char('/'), &s);
    typing(&mut state, "shkq15?:/", &s);
    let search = state.choices.log.search.as_ref().map(|s| s.text.as_str());
    assert_eq!(search, Some("shkq15?:/"));
    press(&mut state, Key::Esc, &s);
    assert_eq!(state.choices.overlay, Overlay::None);
    assert!(state.choices.log.search.is_none());
    press(&mut state, Key::Char('n'), &s);
    assert_eq!(state.toast.as_deref(), Some("n: nothing is searched for"));
    assert_eq!(
        press(&mut state, Key::Char('h'), &s),
        Some(Effect::Send(Command::Hold)),
        "what acts on the run has the same key on every screen"
    );
}

#[test]
fn a_search_is_incremental_and_leaves_no_trace() {
    let s = testing::healthy();
    let mut state = UiState::default();
    press(&mut state, Key::Char('5'), &s);
    press(&mut state, Key::Char('/'), &s);
    typing(&mut state, "vram", &s);
    let hit = state.choices.log.hit.expect("a match");
    assert!(s.log.get(hit).unwrap().text.contains("VRAM"));
    press(&mut state, Key::Char('x'), &s);
    assert_eq!(state.choices.log.hit, None);
    press(&mut state, Key::Backspace, &s);
    assert_eq!(state.choices.log.hit, Some(hit));
    press(&mut state.clone(), Key::Enter, &s);
    press(&mut state, Key::Esc, &s);
    assert_eq!(state.choices.log.view, LogView::Follow);
}

#[test]
fn the_palette_runs_what_is_marked_and_says_why_not() {
    let s = testing::healthy();
    let mut state = UiState::default();
    press(&mut state, Key::Char(':'), &s);
    typing(&mut state, "false", &testing::hung());
    // half a name runs nothing that acts on the run
    assert_eq!(press(&mut state, Key::Enter, &testing::hung()), None);
    assert_eq!(
        state.toast.as_deref(),
        Some("mark a command (down), or type its whole name")
    );
    typing(&mut state, " alarm", &s);
    assert_eq!(press(&mut state, Key::Enter, &s), None);
    assert_eq!(
        state.toast.as_deref(),
        Some("false alarm: there is no alarm")
    );
    assert_eq!(state.choices.overlay, Overlay::Palette, "still open");
    assert_eq!(
        press(&mut state.clone(), Key::Enter, &testing::hung()),
        Some(Effect::Send(Command::FalseAlarm))
    );
    for _ in 0..11 {
        press(&mut state, Key::Backspace, &s);
    }
    typing(&mut state, "kill", &s);
    assert_eq!(press(&mut state, Key::Enter, &s), None);
    assert_eq!(state.choices.overlay, Overlay::Kill, "a kill still asks");
    press(&mut state, Key::Esc, &s);
    press(&mut state, Key::Char(':'), &s);
    typing(&mut state, "wrap", &s);
    press(&mut state, Key::Enter, &s);
    assert!(state.choices.log.wrap);
    assert_eq!(state.choices.screen, Screen::Log, "where it can be seen");
}

#[test]
fn a_word_that_is_no_command_runs_nothing() {
    for word in [
        "settingz", "gpu", "fast", "share", "theme", "verify", "qq", "kil", "xyz",
    ] {
        let s = testing::hung();
        let mut state = UiState::default();
        assert_eq!(palette(&mut state, word, &s), None, "{word}");
        assert_eq!(state.choices.overlay, Overlay::Palette, "{word}");
        assert!(state.toast.is_some(), "{word}");
        assert_eq!(state.choices.screen, Screen::Dashboard, "{word}");
    }
}

#[test]
fn what_is_marked_by_hand_runs_by_half_a_name() {
    let s = testing::hung();
    let mut state = UiState::default();
    press(&mut state, Key::Char(':'), &s);
    typing(&mut state, "false", &s);
    press(&mut state, Key::Down, &s);
    assert_eq!(
        press(&mut state, Key::Enter, &s),
        Some(Effect::Send(Command::FalseAlarm))
    );
}

#[test]
fn every_key_that_ends_something_asks() {
    let mut s = testing::healthy();
    s.agent.state = crate::run::snapshot::AgentState::Connected;
    for follows in [false, true] {
        for (key, overlay, command) in [
            ('s', Overlay::Stop, Command::Stop),
            ('k', Overlay::Kill, Command::Kill),
        ] {
            let mut state = UiState::new(follows);
            assert_eq!(press(&mut state, Key::Char(key), &s), None, "{key}");
            assert_eq!(state.choices.overlay, overlay);
            for no in [Key::Enter, Key::Esc, Key::Char('n')] {
                let mut state = state.clone();
                assert_eq!(press(&mut state, no, &s), None);
                assert_eq!(state.choices.overlay, Overlay::None);
            }
            let sent = press(&mut state, Key::Char('y'), &s);
            assert_eq!(sent, Some(Effect::Send(command)));
            assert!(!state.leaves_at_end, "the last screen stays");
        }
    }
    let mut state = UiState::default();
    assert_eq!(press(&mut state, Key::Char('S'), &s), None);
    assert_eq!(state.choices.overlay, Overlay::AfterStep);
    assert_eq!(
        press(&mut state, Key::Char('y'), &s),
        Some(Effect::Send(Command::StopAfterStep))
    );
    // who quits, or interrupts, wants the shell again
    for keys in [[Key::Char('q'), Key::Char('1')], [Key::Ctrl('c'); 2]] {
        let mut state = UiState::default();
        for key in keys {
            press(&mut state, key, &s);
        }
        assert!(state.leaves_at_end);
    }
}

#[test]
fn nothing_is_asked_where_it_cannot_be_read() {
    use ratatui::layout::Rect;

    let s = testing::healthy();
    let area = |columns, rows| Rect::new(0, 0, columns, rows);
    for (key, size, is_asked) in [
        ('k', (30, 8), true),
        ('s', (30, 8), true),
        ('q', (30, 8), true),
        ('q', (30, 3), false),
        ('k', (30, 2), false),
        ('k', (12, 8), false),
        (':', (30, 8), false),
        ('?', (30, 8), false),
        ('?', (40, 10), true),
    ] {
        let mut state = UiState::default();
        press(&mut state, Key::Char(key), &s);
        let refused = state.refuse_unseen(area(size.0, size.1));
        assert_eq!(refused, !is_asked, "{key} at {size:?}");
        assert_eq!(state.choices.overlay == Overlay::None, refused);
        assert_eq!(state.toast.is_some(), refused);
    }
}

#[test]
fn keys_of_the_charts_change_only_the_picture() {
    let s = testing::hung();
    let mut state = UiState::default();
    for key in [Key::Char('z'), Key::Char(' '), Key::Char('+'), Key::Left] {
        assert_eq!(press(&mut state, key, &s), None);
    }
    let charts = &state.choices.charts;
    assert!(charts.zoom && charts.paused.is_some() && charts.cursor.is_some());
    assert_eq!(charts.range, Some(2), "5 min become 2 min");
    // Escape goes one level back, and never further than out.
    for (zoom, paused) in [(true, true), (false, true), (false, false), (false, false)] {
        assert_eq!(press(&mut state, Key::Esc, &s), None);
        let charts = &state.choices.charts;
        assert_eq!((charts.zoom, charts.paused.is_some()), (zoom, paused));
    }
    press(&mut state, Key::Char('0'), &s);
    assert_eq!(state.choices.charts.range, None);
    assert_eq!(
        press(&mut state, Key::Char('h'), &s),
        Some(Effect::Send(Command::Hold))
    );
}

#[test]
fn tab_goes_around() {
    let s = testing::healthy();
    let mut state = UiState::default();
    for screen in [
        Screen::Diagnose,
        Screen::Profiles,
        Screen::Log,
        Screen::Dashboard,
    ] {
        press(&mut state, Key::Tab, &s);
        assert_eq!(state.choices.screen, screen);
    }
    press(&mut state, Key::BackTab, &s);
    assert_eq!(state.choices.screen, Screen::Log);
    press(&mut state, Key::Char('1'), &s);
    assert_eq!(state.choices.screen, Screen::Dashboard);
}

#[test]
fn a_followed_run_is_left_without_a_question() {
    for key in [Key::Char('q'), Key::Ctrl('c')] {
        let mut state = UiState::new(true);
        let effect = press(&mut state, key, &testing::healthy());
        assert_eq!(effect, Some(Effect::Leave));
    }
}

#[test]
fn a_followed_run_is_never_asked_about() {
    let mut state = UiState::new(true);
    state.choices.reach = Reach::Signals("the run of another user");
    for key in [Key::Char('w'), Key::Char('f')] {
        assert_eq!(press(&mut state, key, &testing::hung()), None);
        let said = state.toast.clone().unwrap();
        assert!(said.ends_with("the run of another user"), "{said}");
    }
    // also where quitting was chosen from a list
    press(&mut state, Key::Char(':'), &testing::healthy());
    typing(&mut state, "quit", &testing::healthy());
    let effect = press(&mut state, Key::Enter, &testing::healthy());
    assert_eq!(effect, Some(Effect::Leave));
}

fn palette(state: &mut UiState, text: &str, s: &Snapshot) -> Option<Effect> {
    press(state, Key::Char(':'), s);
    typing(state, text, s);
    press(state, Key::Enter, s)
}

#[test]
fn goto_takes_log_and_charts_to_a_time() {
    let s = testing::healthy();
    let mut state = UiState::default();
    press(&mut state, Key::Char('5'), &s);
    assert_eq!(palette(&mut state, "goto 00:12:11", &s), None);
    assert_eq!(state.choices.overlay, Overlay::None);
    assert_eq!(state.choices.charts.cursor, Some(Mono::from_secs(731)));
    assert_eq!(state.choices.log.cursor, Some(2), "Loading transformer");
    // the charts reach back as far as that
    palette(&mut state, "goto 00:00:10", &s);
    let charts = &state.choices.charts;
    assert_eq!(charts.span(&charts.picture(&s)).1, "4 min 50 s");
    let said = state.toast.clone().unwrap();
    assert!(
        said.contains("the log that is kept begins at 00:11:25"),
        "{said}"
    );
    assert_eq!(palette(&mut state, "range 2m", &s), None);
    assert_eq!(state.choices.charts.range, Some(2));
    assert_eq!(state.choices.screen, Screen::Dashboard);
}

#[test]
fn what_cannot_be_read_leaves_the_palette_open() {
    let s = testing::healthy();
    let mut state = UiState::default();
    for (typed, says) in [
        ("goto", "goto: say which TIME: 14:03"),
        ("noon", "goto: write a time as 14:03"),
    ] {
        if state.choices.overlay == Overlay::None {
            press(&mut state, Key::Char(':'), &s);
        }
        typing(&mut state, typed, &s);
        assert_eq!(press(&mut state, Key::Enter, &s), None);
        let said = state.toast.clone().unwrap();
        assert!(said.starts_with(says), "{said}");
        assert_eq!(state.choices.overlay, Overlay::Palette, "{typed}");
    }
    assert_eq!(
        state.choices.typed, "goto noon",
        "what is missing is waited for"
    );
    press(&mut state, Key::Esc, &s);
    palette(&mut state, "search transformer", &s);
    assert_eq!(state.choices.screen, Screen::Log);
    assert_eq!(state.choices.log.hit, Some(2));
    assert_eq!(
        palette(&mut state, "export ~/run.log", &s),
        Some(Effect::Export(Some("~/run.log".to_owned())))
    );
}

#[test]
fn a_setting_is_switched_in_the_palette() {
    let mut s = testing::healthy();
    for v in &mut s.settings {
        v.follow = crate::model::Follow::Ours;
    }
    let mut state = UiState::default();
    assert_eq!(
        palette(&mut state, "find hybrid", &s),
        Some(Effect::Send(Command::Set {
            setting: crate::model::Setting::FindMode,
            value: Some("HYBRID".to_owned()),
        }))
    );
    assert_eq!(
        state.toast.as_deref(),
        Some("find mode HYBRID from the next attempt on")
    );
    assert_eq!(palette(&mut state, "cap much", &s), None);
    assert_eq!(state.choices.overlay, Overlay::Palette);
    let said = state.toast.clone().unwrap();
    assert!(said.contains("is not a size such as `20 GiB`"), "{said}");
    let mut follower = UiState::new(true);
    follower.choices.reach = Reach::Signals("the run of another user");
    assert_eq!(palette(&mut follower, "cap 21G", &s), None);
    let said = follower.toast.clone().unwrap();
    assert_eq!(said, "cap: the run of another user");
}

#[test]
fn a_rung_that_ends_an_attempt_still_asks() {
    let s = testing::healthy();
    let mut state = UiState::default();
    assert_eq!(palette(&mut state, "rung tiled_vae", &s), None);
    assert_eq!(state.choices.overlay, Overlay::TakeRung);
    assert_eq!(press(&mut state.clone(), Key::Enter, &s), None);
    assert_eq!(
        press(&mut state, Key::Char('y'), &s),
        Some(Effect::Send(Command::TakeRung {
            rung: crate::model::RungId("tiled_vae".to_owned()),
        }))
    );
}

#[test]
fn the_help_runs_what_is_marked_and_escape_goes_back_by_steps() {
    let s = testing::healthy();
    let mut state = UiState::default();
    press(&mut state, Key::Char('?'), &s);
    typing(&mut state, "k", &s);
    assert_eq!(press(&mut state, Key::Enter, &s), None);
    assert_eq!(
        state.choices.overlay,
        Overlay::Help,
        "it is not marked by itself"
    );
    press(&mut state, Key::Down, &s);
    assert_eq!(press(&mut state, Key::Enter, &s), None);
    assert_eq!(state.choices.overlay, Overlay::Kill, "a kill still asks");
    press(&mut state, Key::Esc, &s);
    press(&mut state, Key::Char('?'), &s);
    typing(&mut state, "s", &s);
    press(&mut state, Key::Down, &s);
    assert_eq!(press(&mut state, Key::Enter, &s), None);
    assert_eq!(
        state.choices.overlay,
        Overlay::Stop,
        "from a list a stop asks"
    );
    assert_eq!(press(&mut state, Key::Enter, &s), None);
    assert_eq!(state.choices.overlay, Overlay::None, "enter cancels");
    press(&mut state, Key::Char('?'), &s);
    typing(&mut state, "false alarm", &s);
    assert_eq!(press(&mut state, Key::Enter, &s), None);
    assert_eq!(
        state.toast.as_deref(),
        Some("false alarm: there is no alarm")
    );
    assert_eq!(press(&mut state, Key::Esc, &s), None);
    assert_eq!(
        (state.choices.overlay, state.choices.typed.as_str()),
        (Overlay::Help, "")
    );
    press(&mut state, Key::Esc, &s);
    assert_eq!(state.choices.overlay, Overlay::None);
    press(&mut state, Key::Char('?'), &s);
    typing(&mut state, "goto", &s);
    press(&mut state, Key::Enter, &s);
    assert_eq!(
        state.choices.overlay,
        Overlay::Palette,
        "it has to be told a time"
    );
    assert_eq!(state.choices.typed, "goto ");
}

#[test]
fn what_is_copied_is_what_is_marked() {
    let s = testing::healthy();
    let full = Pane { full: true, ..PANE };
    let mut state = UiState::default();
    press(&mut state, Key::Char('5'), &s);
    press(&mut state, Key::Char('y'), &s);
    assert_eq!(
        state.toast.as_deref(),
        Some("y: stop the log first (space, or up)")
    );
    let mut go = |key| state.press(key, Some(&s), full);
    for key in [Key::Up, Key::Up] {
        assert_eq!(go(key), None);
    }
    assert_eq!(
        go(Key::Char('y')),
        Some(Effect::Copy("phase sampling, section 2 of 4".to_owned()))
    );
    assert_eq!(go(Key::Char('Y')), None, "nothing is marked");
    for key in [Key::Char('m'), Key::Up] {
        assert_eq!(go(key), None);
    }
    let Some(Effect::Copy(text)) = go(Key::Char('Y')) else {
        panic!("not copied")
    };
    assert_eq!(
        text,
        "00:12:53 O model_load     latent_padding_size = 18, is_last_section = False\n\
         00:12:54 * sampling       phase sampling, section 2 of 4\n"
    );
    assert_eq!(go(Key::Char('x')), Some(Effect::Export(None)));
}

#[test]
fn a_stop_says_what_happens() {
    let s = testing::healthy();
    let mut state = UiState::default();
    press(&mut state, Key::Char('s'), &s);
    press(&mut state, Key::Char('y'), &s);
    assert_eq!(
        state.toast.as_deref(),
        Some("stopping: SIGTERM sent, SIGKILL after 10 s")
    );
}

#[test]
fn a_lost_queue_is_sent_by_one_key_where_there_is_one() {
    let mut snapshot = testing::healthy();
    let mut ui = UiState::default();
    assert_eq!(ui.press(Key::Char('r'), Some(&snapshot), PANE), None);
    assert_eq!(ui.toast.as_deref(), Some("r: no queue was lost"));
    snapshot.resend.waiting = 3;
    let sent = ui.press(Key::Char('r'), Some(&snapshot), PANE);
    assert_eq!(sent, Some(Effect::Send(Command::Resend)));
    assert_eq!(ui.toast.as_deref(), Some("3 prompts are being sent again"));
    let mut reader = UiState::new(true);
    reader.choices.reach = Reach::Signals("the run of another user");
    assert_eq!(reader.press(Key::Char('r'), Some(&snapshot), PANE), None);
    assert_eq!(reader.toast.as_deref(), Some("r: the run of another user"));
}

/// Whatever a key is for: after the end it does what it does, or says that the run is over.
#[test]
fn after_the_end_a_key_that_is_about_the_run_says_that_it_is_over() {
    // of the screen alone: no run would change these
    const OF_THE_SCREEN: [&str; 4] = [
        "nothing is searched for",
        "stop the log first (space, or up)",
        "no line is marked (m marks one)",
        "nothing to choose in this part",
    ];
    let away = Reach::Signals("its supervisor is not reached yet");
    let states = [
        testing::finished(),
        testing::gave_up(),
        testing::healthy(),
        testing::find_stalls(),
        testing::hung(),
    ];
    for (mut s, reach) in states
        .into_iter()
        .zip([Reach::All, away].into_iter().cycle())
    {
        s.outcome = Some((
            Outcome::Interrupted { terminated: false },
            130,
            String::new(),
        ));
        s.find = None;
        let mut refused = 0;
        for (screen, ..) in Screen::ALL {
            for overlay in Overlay::ALL {
                let mut choices = UiState::new(true).choices;
                (choices.screen, choices.overlay, choices.reach) = (screen, overlay, reach);
                for b in keymap::of(screen, overlay).chain(keymap::keyless()) {
                    let Err(why) = keymap::enabled(b.action, Some(&s), &choices) else {
                        continue;
                    };
                    refused += 1;
                    let fits = why.starts_with("the run is over") || OF_THE_SCREEN.contains(&why);
                    assert!(fits, "{} on {screen:?}, {overlay:?}: {why}", b.name);
                }
            }
        }
        assert!(refused > 40, "{refused}");
    }
}

/// A screen that reads a long record ends the run, and does nothing else to it.
#[test]
fn a_screen_that_is_behind_acts_on_nothing_that_it_does_not_show() {
    let states = [testing::healthy(), testing::suspect(), testing::hung()];
    for (s, percent) in states.into_iter().zip([0, 42, 99]) {
        let s = s.seen_as(Freshness::CatchingUp { percent });
        for key in ['h', 'w', 'f', 'a', 'o'] {
            let mut state = UiState::new(true);
            if matches!(key, 'a' | 'o') {
                state.choices.screen = Screen::Profiles;
            }
            assert_eq!(press(&mut state, Key::Char(key), &s), None, "{key}");
            let said = state.toast.clone().unwrap();
            assert!(said.contains("behind the run"), "{key}: {said}");
            assert_eq!(state.choices.overlay, Overlay::None, "{key}");
        }
        let mut state = UiState::new(true);
        let mut before = s.clone();
        // what it shows is from before the process began
        before.pid = None;
        assert_eq!(
            press(&mut state, Key::Char('e'), &before),
            Some(Effect::Send(Command::Evidence))
        );
        assert!(state.toast.unwrap().contains("as it is now"));
        for (key, command) in [('s', Command::Stop), ('k', Command::Kill)] {
            let mut state = UiState::new(true);
            assert_eq!(press(&mut state, Key::Char(key), &s), None);
            assert_eq!(
                press(&mut state, Key::Char('y'), &s),
                Some(Effect::Send(command))
            );
        }
        let mut state = UiState::new(true);
        assert_eq!(press(&mut state, Key::Char('q'), &s), Some(Effect::Leave));
    }
    let mut state = UiState::new(true);
    let nothing = state.press(Key::Char('e'), None, PANE);
    assert_eq!(nothing, None);
    assert!(state.toast.unwrap().contains("still being read"));
}
