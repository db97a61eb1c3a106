//! What the user says about an alarm is obeyed, and stays obeyed.

use std::time::Duration;

use framepack_tui::model::event::Choice;
use framepack_tui::model::{Command, Event, Health, Mono, Phase};
use framepack_tui::run::snapshot::Stage;

use crate::sim::{Sim, World, plan};

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// A run in `vae_decode` in which nothing moves any more, with a person at the screen.
fn silent() -> Sim {
    let mut plan = plan();
    plan.countdown = secs(10);
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.world = World::silent();
    sim
}

fn until(sim: &mut Sim, what: impl Fn(&Sim) -> bool) {
    let begun = sim.now;
    while !what(sim) {
        sim.run_for(Duration::from_millis(250));
        assert!(sim.now.since(begun) < secs(600), "it never came");
    }
}

fn counts_down(sim: &Sim) -> bool {
    matches!(sim.state.snapshot().stage, Stage::Countdown { .. })
}

fn health(sim: &Sim) -> Health {
    sim.state.snapshot().verdict.health
}

fn restarts(sim: &Sim) -> usize {
    let all = sim.stream.iter();
    all.filter(
        |e| matches!(&e.event, Event::Decision(d) if matches!(d.choice, Choice::Restart { .. })),
    )
    .count()
}

fn bundles(sim: &Sim) -> usize {
    let all = sim.stream.iter();
    all.filter(|e| matches!(e.event, Event::EvidenceTaken(_)))
        .count()
}

#[test]
fn a_false_alarm_in_the_countdown_is_obeyed_and_stays_obeyed() {
    // the press may come at any moment of the countdown
    for after in [0, 80, 250, 1_000, 3_000, 9_000] {
        let mut sim = silent();
        until(&mut sim, counts_down);
        sim.run_for(Duration::from_millis(after));
        let onset = sim.state.snapshot().verdict.onset;
        sim.feed(Event::Command(Command::FalseAlarm));
        let pressed = sim.now;
        for _ in 0..8 {
            let s = sim.state.snapshot();
            assert_eq!(s.stage, Stage::Watching, "after {after} ms");
            assert_eq!(s.verdict.health, Health::Suspect, "nothing has moved");
            assert_eq!(s.verdict.onset, onset, "the silence is as old as it is");
            let said = &s.verdict.sentence;
            assert!(
                said.starts_with("you called it a false alarm (limit "),
                "{said}"
            );
            sim.run_for(Duration::from_millis(500));
        }
        assert_eq!((restarts(&sim), sim.kills()), (1, 0), "no second decision");
        assert_eq!(bundles(&sim), 1);
        let healthy = sim
            .stream
            .iter()
            .filter(|e| e.at > pressed)
            .any(|e| matches!(&e.event, Event::Verdict(v) if v.health == Health::Healthy));
        assert!(!healthy, "what does not move is not healthy");
        // the raised limit counts from the press, and what is announced can be read
        let (from, to) = sim.state.snapshot().trail.raised[0].limit.unwrap();
        assert_eq!(to, from.mul_f64(1.5));
        sim.run_for(to.saturating_sub(sim.now.since(pressed) + secs(1)));
        assert_eq!(restarts(&sim), 1);
        until(&mut sim, counts_down);
        assert_eq!(restarts(&sim), 2, "a hang is a hang in the end");
    }
}

#[test]
fn a_second_false_alarm_raises_the_limit_again() {
    let mut sim = silent();
    until(&mut sim, counts_down);
    sim.feed(Event::Command(Command::FalseAlarm));
    let (from, _) = sim.state.snapshot().trail.raised[0].limit.unwrap();
    until(&mut sim, counts_down);
    sim.feed(Event::Command(Command::FalseAlarm));
    let pressed = sim.now;
    assert_eq!(
        sim.state.snapshot().trail.raised[0].limit,
        Some((from, from.mul_f64(2.25)))
    );
    until(&mut sim, counts_down);
    assert!(sim.now.since(pressed) >= from.mul_f64(2.25));
}

#[test]
fn a_minute_more_is_a_minute_more_at_a_suspicion_too() {
    let mut sim = silent();
    until(&mut sim, |sim| health(sim) == Health::Suspect);
    let due = |sim: &Sim| -> (Mono, Mono) {
        let v = sim.state.snapshot().verdict;
        (v.next.unwrap().at, v.onset)
    };
    let (before, onset) = due(&sim);
    sim.run_for(secs(2));
    for n in 1..=2 {
        sim.feed(Event::Command(Command::Wait));
        assert_eq!(health(&sim), Health::Suspect, "nothing has moved");
        assert_eq!(due(&sim), (before + secs(60 * n), onset));
    }
    let said = sim.state.snapshot().verdict.sentence;
    let silence = sim.now.since(onset).as_secs();
    assert!(
        said.contains(&format!("has not moved for {silence} s")),
        "{said}"
    );
    while sim.now < before + secs(119) {
        sim.run_for(secs(1));
        assert_eq!(health(&sim), Health::Suspect);
    }
    until(&mut sim, counts_down);
    assert!(sim.now.since(before) < secs(130));
}

#[test]
fn what_was_granted_ends_with_the_silence() {
    let mut sim = silent();
    until(&mut sim, |sim| health(sim) == Health::Suspect);
    let limit = |sim: &Sim| {
        let v = sim.state.snapshot().verdict;
        v.next.map(|n| n.at.since(v.onset))
    };
    let own = limit(&sim);
    sim.feed(Event::Command(Command::Wait));
    assert_eq!(limit(&sim), own.map(|d| d + secs(60)));
    sim.world = World::default();
    until(&mut sim, |sim| health(sim) == Health::Healthy);
    sim.world = World::silent();
    until(&mut sim, |sim| health(sim) == Health::Suspect);
    assert_eq!(limit(&sim), own, "another silence has its own limit");
}

#[test]
fn a_minute_more_before_anything_is_suspected_is_one_of_the_limit_that_runs() {
    let mut sim = silent();
    sim.run_for(secs(5));
    let next = |sim: &Sim| sim.state.snapshot().verdict.next.unwrap().at;
    let before = next(&sim);
    sim.feed(Event::Command(Command::Wait));
    assert_eq!(next(&sim), before + secs(60));
}
