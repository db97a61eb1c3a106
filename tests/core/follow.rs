//! A recorded stream, followed: what was decided is what is shown.

use std::time::Duration;

use framepack_tui::model::{
    Command, Envelope, Event, ExitStatus, JobChange, Limits, Outcome, Phase, RungId, Setting,
    VerdictId,
};
use framepack_tui::run::snapshot::{RungState, Snapshot, Stage, Trail};
use framepack_tui::run::{RunState, follow, reduce};

use crate::sim::{OTHER, Sim, World, plan};

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// A hang in the decode, held and released by the user, restarted, then a good end.
pub(crate) fn recovery() -> Vec<Envelope> {
    let mut plan = plan();
    plan.countdown = secs(3);
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.world = World::silent();
    sim.world.vram_lags = secs(12);
    while !sim
        .stream
        .iter()
        .any(|e| matches!(e.event, Event::Decision(_)))
    {
        sim.run_for(secs(1));
    }
    sim.feed(Event::Command(Command::Hold));
    sim.run_for(secs(8));
    sim.feed(Event::Command(Command::Release));
    sim.run_for(secs(60));
    sim.world = World::default();
    sim.feed(Event::Job(JobChange::Started));
    sim.run_for(secs(20));
    sim.exit(ExitStatus::Code(0));
    sim.run_for(secs(2));
    assert!(sim.state.is_over(), "the story has an end");
    sim.stream
}

/// A failure after which nothing answers.
pub(crate) fn failure() -> Vec<Envelope> {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.line("ModuleNotFoundError: No module named 'einops'");
    sim.exit(ExitStatus::Code(1));
    sim.run_for(secs(30));
    assert!(sim.state.is_over(), "the story has an end");
    sim.stream
}

/// Stopped by the user in the middle of the work.
pub(crate) fn stopped() -> Vec<Envelope> {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.feed(Event::Command(Command::Stop));
    sim.run_for(secs(20));
    assert!(sim.state.is_over(), "the story has an end");
    sim.stream
}

fn set(sim: &mut Sim, value: &str) {
    sim.feed(Event::Command(Command::Set {
        setting: Setting::FindMode,
        value: Some(value.to_owned()),
    }));
}

fn take(sim: &mut Sim, id: &str) {
    let rung = RungId(id.to_owned());
    sim.feed(Event::Command(Command::TakeRung { rung }));
}

/// A setting that was applied, a rung that was chosen, then a good end.
pub(crate) fn switched() -> Vec<Envelope> {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    set(&mut sim, "HYBRID");
    sim.run_for(secs(2));
    sim.feed(Event::Command(Command::ApplyNow));
    sim.feed(Event::Command(Command::ApplyNow));
    sim.run_for(secs(10));
    sim.feed(Event::Job(JobChange::Started));
    take(&mut sim, "fast_find");
    sim.run_for(secs(10));
    sim.exit(ExitStatus::Code(0));
    sim.run_for(secs(2));
    assert!(sim.state.is_over(), "the story has an end");
    sim.stream
}

/// Rung and profile switched while a kill is announced and held.
pub(crate) fn switched_while_held() -> Vec<Envelope> {
    let mut plan = plan();
    plan.countdown = secs(20);
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.world = World::silent();
    sim.world.vram_lags = secs(12);
    while !matches!(sim.state.snapshot().stage, Stage::Countdown { .. }) {
        sim.run_for(secs(1));
    }
    sim.feed(Event::Command(Command::Hold));
    sim.run_for(secs(40));
    take(&mut sim, "retry_same");
    sim.run_for(secs(5));
    take(&mut sim, "fast_find");
    sim.run_for(secs(5));
    let id = OTHER.to_owned();
    sim.feed(Event::Command(Command::UseProfile { id }));
    sim.run_for(secs(5));
    sim.feed(Event::Command(Command::Release));
    sim.run_for(secs(3));
    sim.feed(Event::Command(Command::ApplyNow));
    while !matches!(sim.state.snapshot().stage, Stage::WaitingVram { .. }) {
        sim.run_for(secs(1));
    }
    take(&mut sim, "retry_same");
    sim.run_for(secs(30));
    sim.world = World::default();
    sim.feed(Event::Job(JobChange::Started));
    sim.run_for(secs(20));
    sim.exit(ExitStatus::Code(0));
    sim.run_for(secs(2));
    assert!(sim.state.is_over(), "the story has an end");
    sim.stream
}

fn head(stream: &[Envelope]) -> RunState {
    match &stream[0].event {
        Event::RunStarted(started) => RunState::new(started),
        other => panic!("no head: {other:?}"),
    }
}

/// What a follower and the run itself must agree on.
#[derive(Debug, PartialEq)]
struct Course {
    stage: Stage,
    ladder: Vec<(String, RungState)>,
    restarts_left: u32,
    decision: Option<String>,
    attempt: Option<u32>,
    evidence: usize,
    verdict: VerdictId,
    trail: Trail,
    outcome: Option<(Outcome, u8, String)>,
}

impl Course {
    fn of(s: Snapshot) -> Self {
        Self {
            stage: s.stage,
            ladder: s.ladder.into_iter().map(|l| (l.id.0, l.state)).collect(),
            restarts_left: s.restarts_left,
            decision: s.decision,
            attempt: s.attempt.map(|a| a.number),
            evidence: s.evidence.len(),
            verdict: s.verdict.id,
            trail: s.trail,
            outcome: s.outcome,
        }
    }
}

#[test]
fn a_follower_sees_the_course_of_the_run() {
    for stream in [
        recovery(),
        failure(),
        stopped(),
        switched(),
        switched_while_held(),
    ] {
        let (mut own, mut theirs) = (head(&stream), head(&stream));
        for env in &stream {
            // between two rounds, when all that follows from the last one is told
            if matches!(env.event, Event::Sample(_)) {
                assert_eq!(
                    Course::of(theirs.snapshot()),
                    Course::of(own.snapshot()),
                    "before event {} at {}",
                    env.seq,
                    env.at.clock()
                );
            }
            let _ = reduce(&mut own, env);
            follow(&mut theirs, env);
        }
        assert_eq!(Course::of(theirs.snapshot()), Course::of(own.snapshot()));
        assert!(theirs.is_over());
    }
}

/// Every recorded verdict and decision is in the snapshot at its event.
fn assert_taken_over(mut state: RunState, stream: &[Envelope]) {
    let (mut verdicts, mut decisions) = (0, 0);
    for env in stream {
        follow(&mut state, env);
        let s = state.snapshot();
        match &env.event {
            Event::Verdict(v) => {
                assert_eq!(s.verdict, **v);
                assert_eq!(s.verdict_since, env.at);
                verdicts += 1;
            }
            Event::Decision(d) => {
                assert_eq!(s.decision.as_ref(), Some(&d.why));
                decisions += 1;
            }
            Event::AttemptStarted(a) => assert_eq!(s.attempt.as_ref(), Some(&**a)),
            Event::RunFinished {
                outcome, exit_code, ..
            } => {
                let told = s.outcome.as_ref().map(|(o, code, _)| (o, code));
                assert_eq!(told, Some((outcome, exit_code)));
            }
            _ => {}
        }
    }
    assert!(verdicts > 2 && decisions > 0, "{verdicts} {decisions}");
    assert!(state.is_over());
}

#[test]
fn a_headless_stream_has_no_ticks_and_tells_the_same() {
    for mut stream in [recovery(), failure()] {
        stream.retain(|e| e.event != Event::Tick);
        assert_taken_over(head(&stream), &stream);
    }
}

/// The reader's rules would have called a hang a second after the last activity, or
/// never: it shows what the record says.
#[test]
fn other_limits_change_nothing() {
    let stream = recovery();
    for limit in [secs(1), Duration::from_hours(24)] {
        let mut changed = stream.clone();
        let Event::RunStarted(started) = &mut changed[0].event else {
            unreachable!()
        };
        started.plan.limits = Limits {
            find_limit: limit,
            spin_limit: limit,
            ..Limits::default()
        };
        for phase in [Phase::Sampling, Phase::VaeDecode] {
            let limits = started.plan.limits.phases.entry(phase).or_default();
            limits.silence = Some(limit);
        }
        assert_taken_over(head(&changed), &changed);
    }
}

/// Whatever this version would say of the budget, the recorded figure is shown.
#[test]
fn the_budget_is_the_recorded_one() {
    let mut stream = recovery();
    for env in &mut stream {
        if let Event::Decision(d) = &mut env.event {
            d.restarts_left += 4;
        }
    }
    let mut state = head(&stream);
    for env in &stream {
        follow(&mut state, env);
    }
    assert_eq!(state.snapshot().restarts_left, 2 + 4);
}

/// A verdict and a restart that our rules know nothing of.
#[test]
fn a_countdown_is_shown_as_it_was_announced() {
    let stream = recovery();
    let (at, kill_at) = stream
        .iter()
        .enumerate()
        .find_map(|(i, e)| match &e.event {
            Event::Decision(d) => match &d.choice {
                framepack_tui::model::event::Choice::Restart { kill_at, .. } => Some((i, *kill_at)),
                _ => None,
            },
            _ => None,
        })
        .unwrap();
    let mut stream = stream[..=at].to_vec();
    let later = kill_at + secs(40);
    if let Event::Decision(d) = &mut stream[at].event {
        d.choice = framepack_tui::model::event::Choice::Restart {
            rung: framepack_tui::model::RungId("tiled_vae".to_owned()),
            kill_at: later,
            by_user: false,
        };
    }
    let mut state = head(&stream);
    // the verdicts are cut out: the decision stands for itself
    for env in stream
        .iter()
        .filter(|e| !matches!(e.event, Event::Verdict(_)))
    {
        follow(&mut state, env);
    }
    let s = state.snapshot();
    let Stage::Countdown {
        rung,
        kill_at,
        held,
    } = s.stage
    else {
        panic!("{:?}", s.stage)
    };
    assert_eq!(
        (rung.0.as_str(), kill_at, held),
        ("tiled_vae", later, false)
    );
}

/// A verdict is told once; its next limit is that of the phase in which it was.
#[test]
fn a_limit_of_another_phase_is_not_shown() {
    let stream = recovery();
    let mut state = head(&stream);
    let mut with_limit = 0;
    for env in &stream {
        follow(&mut state, env);
        let s = state.snapshot();
        if s.verdict.next.is_some() {
            with_limit += 1;
            assert_eq!(s.verdict.phase, s.phase, "at {:?}", env.at);
        }
    }
    assert!(with_limit > 0, "limits are shown at all");
}
