//! Who was killed, and what follows: the wait for a card, and the loss of a guardian.

use std::time::Duration;

use framepack_tui::model::{
    Bytes, CardHeld, CardHolder, Command, Event, GpuId, Outcome, Phase, Scope, Signal,
};
use framepack_tui::run::replay::Replay;
use framepack_tui::run::snapshot::Stage;

use crate::sim::{Sim, plan};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn held(pids: &[u32]) -> Event {
    Event::CardHeld(CardHeld {
        gpu: GpuId("0000:0c:00.0".to_owned()),
        run: Some("20261127-2231-7f3a".to_owned()),
        guardian: None,
        processes: pids
            .iter()
            .map(|pid| CardHolder {
                pid: *pid,
                name: "python".to_owned(),
                state: 'S',
                vram: Some(Bytes::gib(17)),
            })
            .collect(),
    })
}

fn free() -> Event {
    Event::CardFree {
        gpu: GpuId("0000:0c:00.0".to_owned()),
        took_ms: 40_000,
    }
}

fn launched(sim: &Sim) -> bool {
    sim.find(|e| matches!(e, Event::AttemptStarted(_)))
        .is_some()
}

fn outcome(sim: &Sim) -> Option<Outcome> {
    match &sim.find(|e| matches!(e, Event::RunFinished { .. }))?.event {
        Event::RunFinished { outcome, .. } => Some(outcome.clone()),
        _ => None,
    }
}

/// Replays the stream of the simulation by today's rules.
fn differs(sim: &Sim) -> bool {
    let Event::RunStarted(started) = &sim.stream[0].event else {
        panic!("no head")
    };
    let mut replay = Replay::new(started);
    for env in &sim.stream {
        replay.feed(env);
    }
    replay.finish().differs()
}

#[test]
fn nothing_is_launched_while_the_card_is_held() {
    let mut sim = Sim::new(plan());
    sim.feed(held(&[41]));
    sim.run_for(secs(40));
    assert!(!launched(&sim));
    let Stage::CardHeld { held, until } = sim.state.snapshot().stage else {
        panic!("{:?}", sim.state.snapshot().stage)
    };
    assert!(held.cure().contains("kill -9 41"));
    assert!(until > sim.now);
    sim.feed(free());
    sim.run_for(secs(3));
    assert!(launched(&sim));
    assert!(!differs(&sim));
}

/// Other processes in the meantime do not make the wait longer.
#[test]
fn the_wait_is_given_up_after_a_minute() {
    let mut sim = Sim::new(plan());
    sim.feed(held(&[41, 42]));
    sim.run_for(secs(40));
    sim.feed(held(&[42]));
    sim.run_for(secs(25));
    assert!(!launched(&sim));
    assert_eq!(outcome(&sim), Some(Outcome::CardHeld { pids: vec![42] }));
    let end = sim.find(|e| {
        matches!(e, Event::RunFinished { exit_code: 69, summary, .. } if summary.contains("kill -9 42"))
    });
    assert!(end.is_some());
    assert!(!differs(&sim));
}

#[test]
fn the_wait_is_cancelled_by_the_user() {
    for (command, terminated) in [
        (Command::Stop, false),
        (Command::Terminate, true),
        (Command::Kill, false),
    ] {
        let mut sim = Sim::new(plan());
        sim.feed(held(&[41]));
        sim.run_for(secs(5));
        sim.feed(Event::Command(command));
        assert_eq!(outcome(&sim), Some(Outcome::Interrupted { terminated }));
        sim.run_for(secs(5));
        assert!(!launched(&sim) && !differs(&sim));
    }
}

/// The core kills all that the workload started, so the record holds the cause of the signal.
#[test]
fn a_lost_guardian_is_answered_by_a_kill_that_replays() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(5));
    sim.feed(Event::GuardianLost { attempt: 1 });
    let kill = sim.find(|e| {
        matches!(
            e,
            Event::SignalSent {
                signal: Signal::Kill,
                scope: Scope::Tree,
                attempt: 1,
                ..
            }
        )
    });
    assert!(kill.is_some());
    sim.run_for(secs(10));
    assert!(!differs(&sim));
}

#[test]
fn the_guardian_of_an_attempt_that_is_over_changes_nothing() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(5));
    sim.feed(Event::GuardianLost { attempt: 0 });
    sim.run_for(secs(2));
    assert_eq!(sim.kills(), 0);
}

/// Evidence that is not back when the run ends is told as missing, so a replay asks for no more
/// than the record holds.
#[test]
fn evidence_that_the_end_did_not_wait_for_is_told_and_replays() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.world.evidence_answers = false;
    sim.run_for(secs(5));
    sim.feed(Event::GuardianLost { attempt: 1 });
    sim.run_for(secs(60));
    assert!(outcome(&sim).is_some());
    let missing = sim.find(|e| matches!(e, Event::EvidenceTaken(r) if r.items[0].failed.is_some()));
    assert!(missing.is_some());
    assert!(!differs(&sim));
}
