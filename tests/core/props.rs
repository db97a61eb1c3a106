//! Properties that hold whatever the world does.

use std::time::Duration;

use framepack_tui::model::event::Choice;
use framepack_tui::model::{
    Bytes, Command, Effect, Event, ExitStatus, FindMark, Health, JobChange, Metric, Phase, RungId,
    Setting,
};
use framepack_tui::run::{RunState, reduce};
use proptest::prelude::*;

use crate::sim::{OTHER, Sim, World, plan};

/// One thing that the world does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    World(Box<World>),
    Phase(Phase),
    Line(&'static str),
    Bar(f64),
    Job(JobChange),
    Find(FindMark),
    Command(Command),
    Exit(ExitStatus),
    Pass(u64),
}

fn metric(values: &'static [f64]) -> impl Strategy<Value = Metric<f64>> {
    prop_oneof![
        4 => proptest::sample::select(values).prop_map(Metric::Fresh),
        1 => Just(Metric::Failed { why: "EIO".to_owned(), for_ms: 1 }),
        1 => Just(Metric::Stale { value: 0.0, age_ms: 9000 }),
        1 => Just(Metric::Unsupported),
    ]
}

fn world() -> impl Strategy<Value = World> {
    (
        metric(&[0.0, 3.0, 50.0, 100.0]),
        metric(&[18.0, 60.0, 310.0]),
        proptest::sample::select(vec![0.0, 0.2, 3.0, 100.0]),
        proptest::sample::select(vec![0_u64, 5, 390]),
        proptest::sample::select(vec!['S', 'R', 'T', 'D']),
        any::<[bool; 5]>(),
        0_u64..20,
        0_u64..90,
    )
        .prop_map(
            |(busy, power, worker, poller, state, flags, evidence, lag)| World {
                busy,
                power,
                vram: Metric::Fresh(Bytes::gib(17)),
                worker_percent: worker,
                poller_hz: poller,
                state,
                process: flags[0],
                card: flags[1],
                term_kills: flags[2],
                kill_kills: flags[3],
                evidence_answers: flags[4],
                evidence_takes: Duration::from_secs(evidence),
                vram_lags: Duration::from_secs(lag),
                ..World::default()
            },
        )
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => world().prop_map(|w| Act::World(Box::new(w))),
        2 => Just(Act::World(Box::new(World::silent()))),
        2 => proptest::sample::select(Phase::ALL).prop_map(Act::Phase),
        1 => proptest::sample::select(vec![
            "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
            "HIP out of memory",
            "hello",
        ]).prop_map(Act::Line),
        1 => (0.0..25.0_f64).prop_map(Act::Bar),
        2 => proptest::sample::select(vec![
            JobChange::Started, JobChange::Started, JobChange::Waiting, JobChange::Done,
            JobChange::Failed { why: Some("x".to_owned()) },
        ]).prop_map(Act::Job),
        1 => proptest::sample::select(vec![
            FindMark::Opened { key: "k".to_owned() },
            FindMark::Closed { key: String::new() },
            FindMark::Solver { name: "ConvDirectNaiveConvFwd".to_owned() },
        ]).prop_map(Act::Find),
        1 => proptest::sample::select(vec![
            Command::Hold, Command::Release, Command::Wait, Command::FalseAlarm, Command::Evidence,
            Command::TerminalLost, Command::ScreenAttached, Command::ApplyNow, Command::Resend,
            Command::TakeRung { rung: RungId("fast_find".to_owned()) },
            Command::TakeRung { rung: RungId("tiled_vae".to_owned()) },
            Command::Set { setting: Setting::FindMode, value: Some("hybrid".to_owned()) },
            Command::Set { setting: Setting::FindMode, value: None },
            Command::Set { setting: Setting::VramCap, value: Some("99 TiB".to_owned()) },
            Command::UseProfile { id: "generic-amd".to_owned() },
            Command::UseProfile { id: OTHER.to_owned() },
            Command::TakeRung { rung: RungId("other_find".to_owned()) },
            Command::SaveProfile { id: "mine".to_owned() },
        ]).prop_map(Act::Command),
        1 => proptest::sample::select(vec![
            ExitStatus::Code(1), ExitStatus::Signal(9), ExitStatus::Code(0),
        ]).prop_map(Act::Exit),
        6 => (1_u64..150).prop_map(Act::Pass),
    ]
}

pub(crate) fn play(acts: &[Act], countdown: Duration) -> Sim {
    let mut p = plan();
    p.countdown = countdown;
    let mut sim = Sim::running_in(p, Phase::VaeDecode);
    for a in acts {
        match a.clone() {
            Act::World(w) => sim.world = *w,
            Act::Phase(p) => sim.phase(p),
            Act::Line(t) => sim.line(t),
            Act::Bar(d) => sim.step_bar(d),
            Act::Job(j) => sim.feed(Event::Job(j)),
            Act::Find(f) => sim.feed(Event::Find(f)),
            Act::Command(c) => sim.feed(Event::Command(c)),
            Act::Exit(s) => sim.exit(s),
            Act::Pass(s) => sim.run_for(Duration::from_secs(s)),
        }
    }
    sim
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// R9: evidence is taken, or its time is over, before the first signal to an
    /// attempt whose root still lives; no two first signals in one attempt.
    #[test]
    fn no_kill_without_evidence_before_it(
        acts in proptest::collection::vec(act(), 1..30),
        countdown in 0_u64..5,
    ) {
        let sim = play(&acts, Duration::from_secs(countdown));
        let mut asked = None;
        let mut answered = false;
        let mut exited = false;
        for e in &sim.stream {
            match &e.event {
                Event::AttemptStarted(_) => { asked = None; answered = false; exited = false; }
                // nothing is wrong: the user confirmed it
                Event::Decision(d) if matches!(d.choice, Choice::Restart { by_user: true, .. }) => answered = true,
                Event::Exited(_) => exited = true,
                Event::EvidenceTaken(_) => answered = true,
                Event::Decision(_) => asked = asked.or(Some(e.at)),
                Event::SignalSent { .. } if !exited => {
                    let waited = asked.is_some_and(|at| e.at.since(at) >= Duration::from_secs(10));
                    prop_assert!(answered || waited, "signal {} without evidence", e.seq);
                }
                _ => {}
            }
        }
    }

    /// R13, R12: restarts never exceed the budget; a rung is never taken twice.
    #[test]
    fn restarts_stay_within_the_budget(acts in proptest::collection::vec(act(), 1..40)) {
        let sim = play(&acts, Duration::ZERO);
        let mut by_user = false;
        let mut rungs = Vec::new();
        for e in &sim.stream {
            match &e.event {
                Event::Decision(d) => if let Choice::Restart { by_user: asked, .. } = d.choice {
                    by_user = asked;
                },
                Event::AttemptStarted(_) if by_user => by_user = false,
                Event::AttemptStarted(a) => rungs.push(a.rung.clone()),
                _ => {}
            }
        }
        prop_assert!(rungs.len() <= 1 + plan().budget.total as usize);
        let chose = |e: &framepack_tui::model::Envelope| {
            matches!(&e.event, Event::Command(Command::TakeRung { .. }))
        };
        if !sim.stream.iter().any(chose) {
            let mut unique = rungs.clone();
            unique.sort();
            unique.dedup();
            prop_assert_eq!(unique.len(), rungs.len());
        }
    }

    /// R4: a window in which the card or the process cannot be read never kills.
    #[test]
    fn a_blind_window_never_kills(
        acts in proptest::collection::vec(act(), 0..12),
        blind_card in any::<bool>(),
        secs in 60_u64..4000,
    ) {
        let mut sim = play(&acts, Duration::ZERO);
        // let whatever is under way come to its end first
        sim.world = World::default();
        sim.run_for(Duration::from_mins(5));
        if sim.state.is_over() || !sim.alive {
            return Ok(());
        }
        sim.feed(Event::Job(JobChange::Started));
        sim.phase(Phase::VaeDecode);
        sim.run_for(Duration::from_secs(10));
        let before = sim.kills();
        let failed = || Metric::Failed { why: "EIO".to_owned(), for_ms: 1 };
        sim.world = if blind_card {
            World { busy: failed(), power: failed(), ..World::silent() }
        } else {
            World { process: false, ..World::silent() }
        };
        sim.run_for(Duration::from_secs(secs));
        prop_assert_eq!(sim.kills(), before);
    }

    /// R16: the same envelopes give the same effects.
    #[test]
    fn reduce_is_deterministic(acts in proptest::collection::vec(act(), 1..25)) {
        let sim = play(&acts, Duration::from_secs(2));
        let Event::RunStarted(started) = &sim.stream[0].event else { unreachable!() };
        let mut state = RunState::new(started);
        let mut effects = Vec::new();
        for env in &sim.stream {
            // also across the JSON of the record
            let json = serde_json::to_string(env).unwrap();
            let env = serde_json::from_str(&json).unwrap();
            effects.extend(reduce(&mut state, &env));
        }
        let before: Vec<&Effect> = sim.effects.iter().map(|(_, e)| e).collect();
        let again: Vec<&Effect> = effects.iter().collect();
        prop_assert_eq!(before, again);
        prop_assert_eq!(state.snapshot(), sim.state.snapshot());
    }

    /// R6: nothing is ever called hung without a suspicion before it.
    #[test]
    fn no_hang_without_a_suspicion(acts in proptest::collection::vec(act(), 1..30)) {
        let sim = play(&acts, Duration::ZERO);
        let mut last = Health::Starting;
        for e in &sim.stream {
            if let Event::Verdict(v) = &e.event {
                if v.health == Health::Hung {
                    prop_assert_eq!(last, Health::Suspect);
                }
                last = v.health;
            }
        }
    }
}
