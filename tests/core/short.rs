//! Programs that are past their start before anything of them was judged.

use std::time::Duration;

use framepack_tui::model::{Event, ExitStatus, Health, JobChange, Phase};

use crate::sim::{Sim, plan};

const MOMENT: Duration = Duration::from_millis(500);

/// Just started, and nothing of it judged.
fn begun() -> Sim {
    let mut sim = Sim::new(plan());
    for _ in 0..20 {
        if sim.state.snapshot().pid.is_some() {
            return sim;
        }
        sim.run_for(Duration::from_millis(1));
    }
    panic!("not launched");
}

fn shown(sim: &Sim) -> (Health, String) {
    let verdict = sim.state.snapshot().verdict;
    (verdict.health, verdict.sentence)
}

fn told(sim: &Sim) -> Vec<Health> {
    let verdicts = sim.stream.iter().filter_map(|env| match &env.event {
        Event::Verdict(v) => Some(v.health),
        _ => None,
    });
    verdicts.collect()
}

#[test]
fn a_program_is_shown_to_start_until_it_tells_of_more() {
    let mut sim = begun();
    assert_eq!(
        shown(&sim),
        (Health::Starting, "the program starts".to_owned())
    );
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::Startup);
    assert_eq!(shown(&sim).0, Health::Starting);
    // no sample comes meanwhile: it is shorter than the time between two
    for phase in [Phase::ModelLoad, Phase::VaeDecode, Phase::Save] {
        sim.phase(phase);
        let verdict = sim.state.snapshot().verdict;
        assert_eq!(
            (verdict.health, verdict.phase),
            (Health::Healthy, Phase::ModelLoad)
        );
    }
    let before = told(&sim);
    sim.exit(ExitStatus::Code(0));
    assert_eq!(shown(&sim).0, Health::Healthy, "not judged yet");
    sim.run_for(Duration::from_secs(2));
    assert_eq!(shown(&sim).0, Health::Finished);
    assert_eq!(told(&sim)[before.len()..], [Health::Finished]);
}

#[test]
fn that_it_starts_is_not_held_to_where_the_next_phase_comes_at_once() {
    let mut sim = begun();
    sim.feed(Event::Job(JobChange::Started));
    sim.run_for(MOMENT);
    assert_eq!(told(&sim), [Health::Starting]);
    sim.phase(Phase::Save);
    sim.run_for(MOMENT);
    assert_eq!(told(&sim), [Health::Starting, Health::Healthy]);
}
