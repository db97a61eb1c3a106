//! The card's own level at rest, and a busy counter that is not believed.

use std::time::Duration;

use framepack_tui::model::{
    BusyTrust, Bytes, Event, IdleBaseline, JobChange, Metric, Phase, VerdictId,
};
use framepack_tui::run::{RunState, reduce};
use proptest::prelude::*;

use crate::props::{Act, act, play};
use crate::sim::{Sim, World, plan};

fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn idle(sim: &Sim) -> IdleBaseline {
    sim.state.snapshot().card_idle.unwrap_or_default()
}

fn notices(sim: &Sim, with: &str) -> usize {
    let fits = |e: &Event| matches!(e, Event::Notice { text, .. } if text.contains(with));
    sim.stream.iter().filter(|e| fits(&e.event)).count()
}

fn is_untrusted(sim: &Sim) -> bool {
    sim.state.snapshot().busy_trust.is_untrusted()
}

/// What is seen in a job, the hang included, is checked every half second.
fn until_the_second_attempt(sim: &mut Sim, in_job: impl Fn(&Sim)) {
    let again = |e: &Event| matches!(e, Event::AttemptStarted(a) if a.number == 2);
    for _ in 0..400 {
        if sim.find(again).is_some() {
            return;
        }
        if sim.find(|e| matches!(e, Event::GroupGone { .. })).is_none() {
            in_job(sim);
        }
        sim.run_for(Duration::from_millis(500));
    }
    panic!("no second attempt");
}

#[test]
fn three_readings_before_the_launch_are_the_level_at_rest() {
    let mut sim = Sim::new(plan());
    sim.world.power_cap = Metric::Fresh(355.0);
    sim.run_for(secs(1));
    assert!(!sim.alive, "two readings are not enough");
    sim.run_for(Duration::from_millis(500));
    assert!(sim.alive, "and no more is waited for");
    let level = IdleBaseline {
        busy: Some(0.0),
        power_w: Some(20.0),
        samples: 3,
        in_use: None,
    };
    assert_eq!(idle(&sim), level);
    sim.start(Phase::Sampling);
    assert_eq!(idle(&sim), level, "an attempt is no rest");
    assert_eq!(sim.state.snapshot().busy_trust, BusyTrust::Trusted);
}

#[test]
fn a_counter_that_lies_before_the_launch_is_told_once_and_left_out() {
    let mut sim = Sim::new(plan());
    sim.world.power_cap = Metric::Fresh(355.0);
    sim.world.idle_busy = 99.0;
    sim.world.idle_power = 24.0;
    sim.run_for(secs(2));
    assert!(sim.alive, "the launch does not wait for a judgement");
    assert!(!is_untrusted(&sim), "it may be a burst");
    sim.run_for(secs(4));
    sim.start(Phase::VaeDecode);
    assert!(is_untrusted(&sim));
    assert_eq!(
        notices(
            &sim,
            "busy reads 99 % at 24 W while no job runs: not trusted for the rest of this run"
        ),
        1
    );
    assert_eq!(idle(&sim).in_use, None, "nobody works on it");
    // what the counter says is neither work nor a wedged queue
    sim.world = World {
        busy: Metric::Fresh(99.0),
        power: Metric::Fresh(25.0),
        ..sim.world.clone().made_silent()
    };
    sim.run_for(secs(60));
    let hung = sim.hung(VerdictId::SilentHang).expect("power tells");
    let Event::Verdict(v) = &hung.event else {
        unreachable!()
    };
    let said = v.findings.iter().any(|f| f.text.contains("not trusted"));
    assert!(said, "{:?}", v.findings);
    assert!(sim.hung(VerdictId::BusyIdle).is_none());
    sim.run_for(secs(60));
    assert_eq!(notices(&sim, "not trusted for the rest"), 1);
}

#[test]
fn a_burst_before_the_launch_costs_the_counter_nothing() {
    let mut sim = Sim::new(plan());
    sim.world.power_cap = Metric::Fresh(355.0);
    sim.world.idle_busy = 99.0;
    sim.world.idle_power = 40.0;
    sim.run_for(Duration::from_millis(4500));
    assert!(sim.alive);
    assert_eq!(idle(&sim).busy, None, "nor is it the level at rest");
    assert_eq!(idle(&sim).in_use, None);
    sim.world.idle_busy = 1.0;
    sim.run_for(Duration::from_millis(500));
    sim.world.idle_busy = 99.0;
    sim.run_for(secs(4));
    sim.start(Phase::Sampling);
    assert!(!is_untrusted(&sim));
    assert_eq!(notices(&sim, "not trusted"), 0);
}

#[test]
fn a_suspicion_is_confirmed_between_two_attempts() {
    let mut sim = Sim::new(plan());
    sim.world.power_cap = Metric::Fresh(355.0);
    sim.world.idle_busy = 99.0;
    sim.world.idle_power = 24.0;
    sim.start(Phase::Sampling);
    assert!(!is_untrusted(&sim));
    // a job that hangs is no time without a job
    sim.world = World {
        busy: Metric::Fresh(99.0),
        power: Metric::Fresh(24.0),
        ..sim.world.clone().made_silent()
    };
    until_the_second_attempt(&mut sim, |sim| assert!(!is_untrusted(sim)));
    sim.idle = true;
    sim.run_for(secs(6));
    assert!(is_untrusted(&sim));
}

#[test]
fn what_a_card_reads_right_after_a_wake_does_not_count() {
    let mut sim = Sim::new(plan());
    sim.world.power_cap = Metric::Fresh(355.0);
    sim.world.idle_busy = 99.0;
    sim.world.idle_power = 24.0;
    sim.world.runtime = Metric::Fresh("suspended".to_owned());
    sim.run_for(Duration::from_millis(500));
    sim.world.runtime = Metric::Fresh("active".to_owned());
    sim.run_for(Duration::from_millis(1500));
    assert!(sim.alive, "the launch does not wait for it");
    assert!(idle(&sim).samples <= 1, "{:?}", idle(&sim));
    sim.run_for(secs(13));
    assert!(!is_untrusted(&sim), "latched by the firmware");
    sim.world.idle_busy = 0.0;
    sim.start(Phase::Sampling);
    assert!(!is_untrusted(&sim));
}

#[test]
fn work_under_a_counter_that_is_not_believed_is_seen_by_its_power() {
    let mut sim = Sim::new(plan());
    sim.world.power_cap = Metric::Fresh(355.0);
    sim.world.idle_busy = 99.0;
    sim.run_for(secs(6));
    sim.start(Phase::VaeDecode);
    sim.world = World {
        busy: Metric::Fresh(0.0),
        power: Metric::Fresh(250.0),
        ..sim.world.clone().made_silent()
    };
    sim.run_for(secs(1200));
    assert!(is_untrusted(&sim));
    assert_eq!(sim.kills(), 0);
}

#[test]
fn without_power_a_counter_that_is_not_believed_leaves_the_card_unread() {
    let mut sim = Sim::new(plan());
    sim.world.power_cap = Metric::Fresh(355.0);
    sim.world.idle_busy = 99.0;
    sim.run_for(secs(6));
    sim.start(Phase::VaeDecode);
    sim.world = World {
        busy: Metric::Fresh(0.0),
        power: Metric::Unsupported,
        ..sim.world.clone().made_silent()
    };
    sim.run_for(secs(1200));
    assert_eq!(sim.kills(), 0, "0 % is no proof of rest");
}

#[test]
fn the_job_of_another_before_the_launch_is_no_rest() {
    let mut sim = Sim::new(plan());
    sim.world.power_cap = Metric::Fresh(355.0);
    sim.world.idle_busy = 97.0;
    sim.world.idle_power = 210.0;
    sim.world.idle_vram = Bytes::gib(7);
    sim.start(Phase::VaeDecode);
    assert!(!is_untrusted(&sim));
    assert_eq!(
        idle(&sim).in_use.as_deref(),
        Some("another program works on it: 97 % busy, 210 W, 7.0 GiB held")
    );
    assert_eq!(
        notices(&sim, "the card is not at rest before the launch"),
        1
    );
    assert_eq!(
        notices(
            &sim,
            "others hold 7.0 GiB of the card's 24.0 GiB: the cap of 20.0 GiB cannot be reached, only 17.0 GiB are free"
        ),
        1
    );
    // its level is not taken for the card's: a card that falls to 22 W rests
    sim.world = sim.world.clone().made_silent();
    sim.run_for(secs(60));
    assert!(sim.hung(VerdictId::SilentHang).is_some());
}

#[test]
fn a_desktop_beside_a_cap_that_fits_is_no_news() {
    let mut sim = Sim::new(plan());
    sim.world.idle_busy = 20.0;
    sim.world.idle_vram = Bytes::gib(3);
    sim.start(Phase::Sampling);
    assert_eq!(notices(&sim, "others hold"), 0);
    assert_eq!(notices(&sim, "not at rest"), 0);
}

#[test]
fn a_server_whose_counter_stays_full_loses_it_for_the_run() {
    let mut p = plan();
    p.server = true;
    let mut sim = Sim::running_in(p, Phase::Sampling);
    sim.run_for(secs(30));
    assert_eq!(sim.state.snapshot().busy_trust, BusyTrust::Trusted);
    sim.feed(Event::Job(JobChange::Waiting));
    sim.phase(Phase::Idle);
    sim.world = World {
        busy: Metric::Fresh(100.0),
        power: Metric::Fresh(102.6),
        ..World::silent()
    };
    sim.run_for(secs(8));
    assert!(!is_untrusted(&sim), "averages lag");
    sim.run_for(secs(4));
    assert!(is_untrusted(&sim));
    assert_eq!(
        notices(
            &sim,
            "busy reads 100 % at 103 W while the program waits for its user"
        ),
        1
    );
    assert_eq!(sim.state.snapshot().verdict.id, VerdictId::IdleWaiting);
    // the next job is honest
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::Sampling);
    sim.world = World::default();
    sim.run_for(secs(600));
    assert!(is_untrusted(&sim), "once and for the run");
    assert_eq!(sim.kills(), 0);
}

#[test]
fn between_two_attempts_the_card_rests_as_well() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        vram_lags: secs(15),
        idle_power: 31.0,
        idle_busy: 100.0,
        ..World::silent()
    };
    until_the_second_attempt(&mut sim, |_| {});
    sim.idle = true;
    sim.run_for(secs(6));
    assert_eq!(idle(&sim).power_w, Some(31.0));
    // 600 MiB held, the level at work known: nothing of it is another's job
    assert!(is_untrusted(&sim));
    assert_eq!(
        notices(&sim, "busy reads 100 % at 31 W while no job runs"),
        1
    );
}

/// The snapshot after each event, with whether an attempt's processes may live.
fn replayed(sim: &Sim, mut see: impl FnMut(&Event, bool, &RunState)) {
    let Event::RunStarted(started) = &sim.stream[0].event else {
        unreachable!()
    };
    let mut state = RunState::new(started);
    let mut lives = false;
    for env in &sim.stream {
        reduce(&mut state, env);
        match &env.event {
            Event::AttemptStarted(_) => lives = true,
            Event::GroupGone { .. } => lives = false,
            _ => {}
        }
        see(&env.event, lives, &state);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Once untrusted, always; nothing is learned of rest while an attempt lives.
    #[test]
    fn trust_never_comes_back_and_an_attempt_is_no_rest(
        acts in proptest::collection::vec(act(), 1..25),
    ) {
        let sim = play(&acts, Duration::ZERO);
        let mut lost: Option<BusyTrust> = None;
        let mut rest = None;
        let mut wrong = None;
        replayed(&sim, |event, lives, state| {
            if !matches!(event, Event::Sample(_)) {
                return;
            }
            let s = state.snapshot();
            if lost.as_ref().is_some_and(|l| *l != s.busy_trust) {
                wrong = Some(format!("{lost:?} became {:?}", s.busy_trust));
            }
            if s.busy_trust.is_untrusted() {
                lost = Some(s.busy_trust);
            }
            if lives && rest.is_some() && rest != Some(s.card_idle.clone()) {
                wrong = Some(format!("{rest:?} became {:?}", s.card_idle));
            }
            rest = Some(s.card_idle);
        });
        prop_assert_eq!(wrong, None);
        prop_assert!(notices(&sim, "not trusted for the rest") <= 1);
    }

    /// Whatever the card reads while jobs run, its counter is not marked for it.
    #[test]
    fn a_job_never_costs_the_counter_its_trust(
        acts in proptest::collection::vec(act(), 1..25),
    ) {
        let waits = |a: &Act| matches!(a, Act::Job(JobChange::Waiting));
        let acts: Vec<Act> = acts.into_iter().filter(|a| !waits(a)).collect();
        let sim = play(&acts, Duration::ZERO);
        prop_assert_eq!(&sim.state.snapshot().busy_trust, &BusyTrust::Trusted);
    }
}
