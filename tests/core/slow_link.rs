//! A link below its best is told while models are moved over it, and never else.

use framepack_tui::model::{
    ActionId, Bytes, Event, Health, Link, Metric, Phase, Verdict, VerdictId,
};

use std::time::Duration;

use crate::sim::{Sim, plan};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

const NARROW: Link = Link {
    gts: 16.0,
    width: 4,
    max_gts: Some(16.0),
    max_width: Some(16),
};
const AT_REST: Link = Link {
    gts: 2.5,
    width: 16,
    ..NARROW
};
const FULL: Link = Link {
    width: 16,
    ..NARROW
};

/// A model comes to the card for so many seconds, 1 GiB each.
fn load(sim: &mut Sim, seconds: u64, link: impl Fn(u64) -> Metric<Link>) {
    for second in 0..seconds {
        sim.world.link = link(second);
        sim.world.vram = Metric::Fresh(Bytes::gib(1 + second));
        sim.run_for(secs(1));
    }
}

fn told(sim: &Sim) -> Option<&Verdict> {
    sim.stream.iter().find_map(|e| match &e.event {
        Event::Verdict(v) if v.id == VerdictId::SlowLink => Some(&**v),
        _ => None,
    })
}

#[test]
fn a_narrow_link_is_told_while_a_model_is_loaded() {
    let mut sim = Sim::running_in(plan(), Phase::ModelLoad);
    load(&mut sim, 20, |_| Metric::Fresh(NARROW));
    let verdict = told(&sim).expect("slow_link");
    assert_eq!(verdict.health, Health::Slow);
    assert_eq!(verdict.action, ActionId::FixEnvironment);
    assert!(
        verdict.sentence.contains("16 GT/s x4 of 16 GT/s x16, 25 %"),
        "{}",
        verdict.sentence
    );
    assert_eq!(sim.state.snapshot().attempt.map(|a| a.number), Some(1));
    // what is over is no verdict of the rest of the run
    sim.phase(Phase::Sampling);
    sim.run_for(secs(60));
    assert_ne!(sim.state.snapshot().verdict.id, VerdictId::SlowLink);
}

#[test]
fn other_links_are_not() {
    type LinkAt = fn(u64) -> Metric<Link>;
    let cases: [(&str, LinkAt); 4] = [
        ("at its best", |_| Metric::Fresh(FULL)),
        ("speeds up from its rest", |second| {
            Metric::Fresh(if second < 3 { AT_REST } else { FULL })
        }),
        ("not read", |_| Metric::Unsupported),
        ("its best is not told", |_| {
            Metric::Fresh(Link {
                max_gts: None,
                max_width: None,
                ..NARROW
            })
        }),
    ];
    for (what, link) in cases {
        let mut sim = Sim::running_in(plan(), Phase::ModelLoad);
        load(&mut sim, 20, link);
        assert!(told(&sim).is_none(), "{what}");
    }
    // a link at rest beside a job that moves nothing
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.world.link = Metric::Fresh(AT_REST);
    sim.run_for(secs(60));
    assert!(told(&sim).is_none());
}
