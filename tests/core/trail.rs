//! What a diagnosis shows of a run: shown verdicts, marks, missing readings, raised limits.

use std::time::Duration;

use framepack_tui::model::{Command, Event, Health, Metric, Mono, Phase, Signal, VerdictId};
use framepack_tui::run::snapshot::{Lack, MarkKind, Quantity, Stage, Trail};

use crate::sim::{Sim, World, plan};

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// A decode that falls silent, until its kill is announced.
fn hung(countdown: Duration) -> Sim {
    let mut plan = plan();
    plan.countdown = countdown;
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.line("decoding");
    sim.world = World::silent();
    while !matches!(sim.state.snapshot().stage, Stage::Countdown { .. }) {
        sim.run_for(secs(1));
    }
    sim
}

fn trail(sim: &Sim) -> Trail {
    sim.state.snapshot().trail
}

fn place(trail: &Trail, is: impl Fn(&MarkKind) -> bool) -> Option<usize> {
    trail.marks.iter().position(|m| is(&m.kind))
}

#[test]
fn a_hang_leaves_its_marks_in_their_order() {
    let mut sim = hung(secs(3));
    sim.run_for(secs(30));
    let trail = trail(&sim);
    let health = |h: Health| {
        place(
            &trail,
            |m| matches!(m, MarkKind::Health { health, .. } if *health == h),
        )
    };
    let order = [
        place(&trail, |m| *m == MarkKind::Attempt { number: 1 }),
        place(&trail, |m| *m == MarkKind::LastLine),
        health(Health::Suspect),
        health(Health::Hung),
        place(&trail, |m| matches!(m, MarkKind::Evidence(_))),
        place(&trail, |m| {
            matches!(
                m,
                MarkKind::Signal {
                    signal: Signal::Term,
                    ..
                }
            )
        }),
        place(&trail, |m| matches!(m, MarkKind::Exit { .. })),
        place(&trail, |m| {
            matches!(m, MarkKind::Vram { complete: true, .. })
        }),
        place(&trail, |m| *m == MarkKind::Attempt { number: 2 }),
    ];
    let places: Vec<_> = order
        .iter()
        .map(|p| p.expect("every mark is there"))
        .collect();
    assert!(places.is_sorted(), "{places:?} of {:#?}", trail.marks);
    assert!(trail.marks.iter().map(|m| m.at).is_sorted());
    let shown = trail.states.iter().map(|s| s.verdict.health);
    let shown: Vec<_> = shown.filter(|h| *h != Health::Starting).take(3).collect();
    assert_eq!(shown, [Health::Healthy, Health::Suspect, Health::Hung]);
    // the verdict of any moment can be looked up
    let hung = trail.marks.iter().find_map(|m| match m.kind {
        MarkKind::Health {
            health: Health::Hung,
            ..
        } => Some(m.at),
        _ => None,
    });
    let at = hung.expect("it hung");
    let of = |t: Mono| trail.state_at(t).map(|s| s.verdict.id);
    assert_eq!(of(at), Some(VerdictId::SilentHang));
    assert_eq!(of(at + secs(25)), Some(VerdictId::Healthy), "attempt 2");
}

#[test]
fn a_false_alarm_raises_the_limit_for_the_run_and_says_from_where() {
    let mut sim = hung(secs(60));
    sim.feed(Event::Command(Command::FalseAlarm));
    let pressed = sim.now;
    let first = trail(&sim).raised;
    let [raised] = first.as_slice() else {
        panic!("{first:?}")
    };
    assert_eq!(raised.verdict, VerdictId::SilentHang);
    let (from, to) = raised.limit.expect("the suspicion told its limit");
    assert_eq!(to, from.mul_f64(1.5));
    assert_eq!(sim.state.snapshot().stage, Stage::Watching, "spared");
    // what does not move stays suspected, and the raised limit counts from the press: before, the
    // silence was forgotten and the run called healthy
    let v = sim.state.snapshot().verdict;
    assert_eq!(v.health, Health::Suspect);
    assert_eq!(v.next.expect("a limit runs").at, pressed + to);
    assert!(v.onset < pressed);
    sim.feed(Event::Command(Command::FalseAlarm));
    let again = trail(&sim).raised;
    assert_eq!(again.len(), 1, "one line a rule: {again:?}");
    assert_eq!(again[0].limit, Some((from, to.mul_f64(1.5))));
}

#[test]
fn why_a_rung_follows_is_known_while_it_is_held() {
    let mut sim = hung(secs(60));
    let why = trail(&sim).why_rung.expect("a restart was decided");
    assert!(why.contains("fast_find"), "{why}");
    sim.feed(Event::Command(Command::Hold));
    assert_ne!(sim.state.snapshot().decision.as_ref(), Some(&why));
    assert_eq!(trail(&sim).why_rung, Some(why));
}

#[test]
fn a_false_alarm_without_an_alarm_raises_nothing() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.feed(Event::Command(Command::FalseAlarm));
    assert!(trail(&sim).raised.is_empty());
}

#[test]
fn stale_failed_and_absent_readings_are_told_apart() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    let fresh = sim.now;
    sim.world.busy = Metric::Stale {
        value: 97.0,
        age_ms: 2_500,
    };
    sim.run_for(secs(4));
    let stale = sim.now;
    sim.world.busy = Metric::Failed {
        why: "EIO".to_owned(),
        for_ms: 0,
    };
    sim.world.power = Metric::Unsupported;
    sim.run_for(secs(4));
    let failed = sim.now;
    sim.world = World::default();
    sim.run_for(secs(4));
    let trail = trail(&sim);
    let lack = |what, t| trail.lapse_at(what, t).map(|l| l.lack.clone());
    assert_eq!(lack(Quantity::Busy, fresh), None);
    assert_eq!(lack(Quantity::Busy, stale), Some(Lack::Stale));
    let why = "EIO".to_owned();
    assert_eq!(lack(Quantity::Busy, failed), Some(Lack::Failed { why }));
    assert_eq!(lack(Quantity::Power, stale), None);
    assert_eq!(lack(Quantity::Power, failed), Some(Lack::Absent));
    assert_eq!(lack(Quantity::Busy, sim.now), None, "it is back");
    let since = trail.lapse_at(Quantity::Busy, stale).map(|l| l.since);
    assert!(since.is_some_and(|t| t < fresh), "when it was last read");
}

#[test]
fn everything_is_bounded() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    for n in 0..3_000_u64 {
        sim.now = Mono(sim.now.0 + 300);
        sim.line("a line");
        sim.feed(Event::Command(Command::Wait));
        if n % 2 == 0 {
            sim.feed(Event::Job(framepack_tui::model::JobChange::Failed {
                why: None,
            }));
        }
    }
    let trail = trail(&sim);
    assert!(trail.raised.is_empty());
    assert!(trail.output.len() <= 1200 && trail.output.len() > 1000);
    assert!(trail.marks.len() <= 128 && trail.states.len() <= 64);
}
