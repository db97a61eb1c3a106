//! Settings, profile and rung switched while the run is watched.

use std::time::Duration;

use framepack_tui::model::event::Choice;
use framepack_tui::model::{
    ActionId, AttemptSpec, Command, EnvOrigin, Event, Health, Origin, Outcome, Phase, RungId,
    Setting, VerdictId,
};
use framepack_tui::run::snapshot::{RungState, SettingView, Stage};

use crate::sim::{OTHER, Sim, World, plan, rung};

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn set(sim: &mut Sim, value: Option<&str>) {
    sim.feed(Event::Command(Command::Set {
        setting: Setting::FindMode,
        value: value.map(str::to_owned),
    }));
}

fn take(sim: &mut Sim, id: &str) {
    sim.feed(Event::Command(Command::TakeRung {
        rung: RungId(id.to_owned()),
    }));
}

fn find_mode(sim: &Sim) -> SettingView {
    let settings = sim.state.snapshot().settings;
    let found = settings
        .into_iter()
        .find(|s| s.setting == Setting::FindMode);
    found.unwrap_or_else(|| panic!("no view of the find mode"))
}

fn attempt(sim: &Sim) -> AttemptSpec {
    let now = sim.state.snapshot().attempt;
    now.unwrap_or_else(|| panic!("no attempt"))
}

/// The value and the origin of the find mode in the present attempt's environment.
fn env_mode(sim: &Sim) -> Option<(String, EnvOrigin)> {
    let change = attempt(sim)
        .env
        .into_iter()
        .find(|c| c.name == "MIOPEN_FIND_MODE")?;
    Some((change.value?, change.origin))
}

fn warnings(sim: &Sim) -> Vec<String> {
    let text = |e: &framepack_tui::model::Envelope| match &e.event {
        Event::Notice { text, .. } => Some(text.clone()),
        _ => None,
    };
    sim.stream.iter().filter_map(text).collect()
}

fn signals(sim: &Sim) -> usize {
    let sent = |e: &&framepack_tui::model::Envelope| matches!(e.event, Event::SignalSent { .. });
    sim.stream.iter().filter(sent).count()
}

#[test]
fn a_setting_waits_for_the_next_attempt_and_is_applied_on_demand() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(5));
    set(&mut sim, Some("hybrid"));
    sim.run_for(secs(20));
    assert_eq!(attempt(&sim).number, 1, "nothing running is touched");
    assert_eq!(signals(&sim), 0);
    let view = find_mode(&sim);
    assert_eq!((view.now, view.next.as_deref()), (None, Some("HYBRID")));
    assert_eq!(view.origin, Origin::Live);

    let left = sim.state.snapshot().restarts_left;
    sim.feed(Event::Command(Command::ApplyNow));
    assert!(matches!(
        sim.state.snapshot().stage,
        Stage::Terminating { .. }
    ));
    sim.run_for(secs(10));
    let now = attempt(&sim);
    assert_eq!((now.number, now.rung.0.as_str()), (2, RungId::AS_GIVEN));
    assert_eq!(env_mode(&sim), Some(("HYBRID".to_owned(), EnvOrigin::Live)));
    let s = sim.state.snapshot();
    assert_eq!(s.restarts_left, left, "nothing of the budget is spent");
    let view = find_mode(&sim);
    assert_eq!(view.now.as_deref(), Some("HYBRID"));
    assert!(s.evidence.is_empty(), "nothing was wrong");
    let decided = sim.find(|e| matches!(e, Event::Decision(_))).expect("told");
    let signal = sim
        .find(|e| matches!(e, Event::SignalSent { .. }))
        .expect("sent");
    assert!(decided.seq < signal.seq, "first the word, then the deed");
}

#[test]
fn a_setting_goes_back_to_what_the_profile_says() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    set(&mut sim, Some("FAST"));
    assert!(!sim.state.snapshot().chosen.settings.is_empty());
    set(&mut sim, None);
    assert_eq!(find_mode(&sim).next, None);
    assert!(sim.state.snapshot().chosen.settings.is_empty());
}

/// A ladder with a second rung that sets the find mode.
fn two_modes() -> framepack_tui::model::Plan {
    let mut plan = plan();
    let decode = [Phase::VaeEncode, Phase::VaeDecode];
    let mut later = rung(
        "immediate",
        ActionId::ImmediateNaive,
        &[VerdictId::SilentHang],
        &decode,
    );
    let mode = Some("TRUST_VERIFY".to_owned());
    later.env.insert("MIOPEN_FIND_MODE".to_owned(), mode);
    plan.ladder.insert(2, later);
    plan
}

#[test]
fn a_choice_wins_over_rungs_before_it_and_loses_to_later_ones() {
    let mut sim = Sim::running_in(two_modes(), Phase::VaeDecode);
    sim.world = World::silent();
    sim.run_for(secs(75));
    assert_eq!(attempt(&sim).rung.0, "fast_find");
    assert_eq!(env_mode(&sim), Some(("FAST".to_owned(), EnvOrigin::Rung)));
    sim.world = World::default();
    sim.start(Phase::VaeDecode);
    set(&mut sim, Some("NORMAL"));
    sim.feed(Event::Command(Command::ApplyNow));
    sim.run_for(secs(10));
    assert_eq!(attempt(&sim).rung.0, "fast_find", "it stays on its rung");
    assert_eq!(env_mode(&sim), Some(("NORMAL".to_owned(), EnvOrigin::Live)));
}

#[test]
fn a_rung_chosen_during_the_countdown_is_the_one_that_follows() {
    let mut plan = two_modes();
    plan.countdown = secs(30);
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.world = World::silent();
    while !matches!(sim.state.snapshot().stage, Stage::Countdown { .. }) {
        sim.run_for(secs(1));
    }
    let before = sim.now;
    take(&mut sim, "immediate");
    let Stage::Countdown {
        rung,
        kill_at,
        held,
    } = sim.state.snapshot().stage
    else {
        panic!("the countdown goes on");
    };
    assert_eq!((rung.0.as_str(), held), ("immediate", false));
    assert!(kill_at > before, "nothing is ended earlier for it");
    assert_eq!(signals(&sim), 0);
    sim.run_for(secs(60));
    assert_eq!(attempt(&sim).rung.0, "immediate");
    let s = sim.state.snapshot();
    assert_eq!(s.restarts_left, 2, "it answers a hang");
    assert_eq!(s.evidence.len(), 1);
    let first = s
        .ladder
        .iter()
        .find(|e| e.id.0 == "fast_find")
        .expect("in the ladder");
    assert_eq!(first.state, RungState::Untried);
}

#[test]
fn a_rung_can_be_taken_at_any_time() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    take(&mut sim, "tiled_vae");
    assert!(warnings(&sim).iter().any(|w| w.contains("needs the agent")));
    take(&mut sim, "no_such_rung");
    assert!(warnings(&sim).iter().any(|w| w.contains("no_such_rung")));
    assert_eq!(signals(&sim), 0);
    take(&mut sim, "fast_find");
    sim.run_for(secs(10));
    assert_eq!(attempt(&sim).rung.0, "fast_find");
    assert_eq!(sim.state.snapshot().restarts_left, 3);
}

#[test]
fn what_cannot_be_is_refused_with_a_cure() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(5));
    for (setting, value, words) in [
        (Setting::FindMode, "DYNAMIC", "one of NORMAL, FAST"),
        (Setting::VramCap, "99 GiB", "more than the card has"),
        (Setting::VramCap, "lots", "such as"),
        (Setting::TileSize, "256", "does not tell"),
    ] {
        let before = warnings(&sim).len();
        sim.feed(Event::Command(Command::Set {
            setting,
            value: Some(value.to_owned()),
        }));
        let told = warnings(&sim);
        assert!(told[before].contains(words), "{}", told[before]);
    }
    assert!(sim.state.snapshot().chosen.settings.is_empty());

    sim.feed(Event::Command(Command::Stop));
    sim.feed(Event::Command(Command::ApplyNow));
    sim.run_for(secs(20));
    let (outcome, code, _) = sim.state.snapshot().outcome.expect("over");
    assert_eq!(outcome, Outcome::Interrupted { terminated: false });
    assert_eq!(code, 130, "an end that was asked for stays one");
}

#[test]
fn a_choice_between_two_attempts_is_in_the_next_one() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World::silent();
    sim.world.vram_lags = secs(30);
    while !matches!(sim.state.snapshot().stage, Stage::WaitingVram { .. }) {
        sim.run_for(secs(1));
    }
    take(&mut sim, "retry_same");
    set(&mut sim, Some("HYBRID"));
    sim.run_for(secs(60));
    let now = attempt(&sim);
    assert_eq!((now.number, now.rung.0.as_str()), (2, "retry_same"));
    assert_eq!(env_mode(&sim), Some(("HYBRID".to_owned(), EnvOrigin::Live)));
    let told = |e: &Event| matches!(e, Event::Decision(d) if matches!(d.choice, Choice::Restart { by_user: true, .. }));
    assert!(sim.find(told).is_some());
    assert_ne!(sim.state.snapshot().verdict.health, Health::Hung);
}

fn use_profile(sim: &mut Sim, id: &str) {
    sim.feed(Event::Command(Command::UseProfile { id: id.to_owned() }));
}

/// Two hangs, the first answered, so that `fast_find` is taken.
fn on_fast_find() -> Sim {
    let mut sim = Sim::running_in(two_modes(), Phase::VaeDecode);
    sim.world = World::silent();
    sim.run_for(secs(75));
    assert_eq!(attempt(&sim).rung.0, "fast_find");
    sim.world = World::default();
    sim.start(Phase::VaeDecode);
    sim
}

#[test]
fn a_rung_that_the_new_ladder_lacks_does_not_follow_under_its_name() {
    let mut plan = plan();
    plan.countdown = secs(30);
    for stage in ["countdown", "held", "memory"] {
        let mut sim = Sim::running_in(plan.clone(), Phase::VaeDecode);
        sim.world = World::silent();
        sim.world.vram_lags = secs(30);
        let there = |sim: &Sim| match sim.state.snapshot().stage {
            Stage::Countdown { .. } => stage != "memory",
            Stage::WaitingVram { .. } => stage == "memory",
            _ => false,
        };
        while !there(&sim) {
            sim.run_for(secs(1));
        }
        if stage == "held" {
            sim.feed(Event::Command(Command::Hold));
            sim.run_for(secs(60));
        }
        use_profile(&mut sim, OTHER);
        if stage == "held" {
            sim.run_for(secs(60));
            assert_eq!(signals(&sim), 0, "held stays held");
            sim.feed(Event::Command(Command::Release));
        }
        sim.run_for(secs(90));
        let now = attempt(&sim);
        assert_eq!(
            (now.number, now.rung.0.as_str()),
            (2, "other_find"),
            "{stage}"
        );
        assert_eq!(now.action, ActionId::ImmediateNaive);
        assert_eq!(sim.state.snapshot().restarts_left, 2, "it answers a hang");
    }
}

#[test]
fn a_restart_with_another_profile_has_no_rung_of_the_old_one() {
    let mut sim = on_fast_find();
    use_profile(&mut sim, OTHER);
    sim.feed(Event::Command(Command::ApplyNow));
    sim.run_for(secs(10));
    let now = attempt(&sim);
    assert_eq!((now.number, now.rung.0.as_str()), (3, RungId::AS_GIVEN));
    let running = |e: &&framepack_tui::run::snapshot::LadderEntry| e.state == RungState::Running;
    let ladder = sim.state.snapshot().ladder;
    assert_eq!(ladder.iter().filter(running).count(), 1);
}

#[test]
fn a_rung_that_is_taken_again_wins_over_the_choice() {
    let mut sim = on_fast_find();
    set(&mut sim, Some("NORMAL"));
    take(&mut sim, "fast_find");
    sim.run_for(secs(10));
    assert_eq!(attempt(&sim).rung.0, "fast_find");
    assert_eq!(env_mode(&sim), Some(("FAST".to_owned(), EnvOrigin::Rung)));
    assert_eq!(find_mode(&sim).now.as_deref(), Some("FAST"));
}

#[test]
fn what_answers_a_hang_is_not_given_up_by_a_late_restart() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World::silent();
    sim.world.vram_lags = secs(30);
    while !matches!(sim.state.snapshot().stage, Stage::WaitingVram { .. }) {
        sim.run_for(secs(1));
    }
    sim.feed(Event::Command(Command::ApplyNow));
    assert!(warnings(&sim).iter().any(|w| w.contains("no attempt runs")));
    sim.run_for(secs(60));
    assert_eq!(attempt(&sim).rung.0, "fast_find");
}

#[test]
fn a_lost_terminal_stays_lost_after_a_switch() {
    let mut plan = plan();
    plan.countdown = secs(600);
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.feed(Event::Command(Command::TerminalLost));
    set(&mut sim, Some("HYBRID"));
    sim.world = World::silent();
    sim.run_for(secs(90));
    assert_eq!(attempt(&sim).number, 2, "nobody could answer a countdown");
}

#[test]
fn the_cap_is_told_once_until_it_moves() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.world.vram = framepack_tui::model::Metric::Fresh(framepack_tui::model::Bytes::gib(22));
    let told = |sim: &Sim| {
        warnings(sim)
            .iter()
            .filter(|w| w.contains("above the cap"))
            .count()
    };
    sim.run_for(secs(5));
    set(&mut sim, Some("HYBRID"));
    sim.run_for(secs(5));
    assert_eq!(told(&sim), 1);
}
