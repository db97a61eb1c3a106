//! A process that somebody else started: judged, advised on, and never ended by itself.

use std::time::Duration;

use framepack_tui::model::event::{Choice, Decision};
use framepack_tui::model::{
    Command, Effect, Event, ExitStatus, Health, JobChange, Outcome, Phase, Scope, Setting, Signal,
    VerdictId,
};
use framepack_tui::run::{RunState, rejudge};

use framepack_tui::ui::PlainWriter;

use crate::sim::{Sim, World, plan};

const fn mins(m: u64) -> Duration {
    Duration::from_mins(m)
}

/// Watched, with a job in flight by the user's word or the log's.
fn in_a_job() -> Sim {
    let mut sim = Sim::attached(plan());
    sim.feed(Event::Tick);
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::VaeDecode);
    sim.run_for(Duration::from_secs(10));
    sim
}

fn signals(sim: &Sim) -> Vec<(Signal, Scope)> {
    let of = |e: &Effect| match e {
        Effect::Signal { signal, scope, .. } => Some((*signal, *scope)),
        _ => None,
    };
    sim.effects.iter().filter_map(|(_, e)| of(e)).collect()
}

fn decisions(sim: &Sim) -> Vec<Decision> {
    let of = |e: &framepack_tui::model::Envelope| match &e.event {
        Event::Decision(d) => Some((**d).clone()),
        _ => None,
    };
    sim.stream.iter().filter_map(of).collect()
}

fn captures(sim: &Sim) -> usize {
    let is = |e: &Effect| matches!(e, Effect::Capture { .. });
    sim.effects.iter().filter(|(_, e)| is(e)).count()
}

fn end(sim: &Sim) -> Option<(Outcome, u8, String)> {
    sim.state.snapshot().outcome
}

#[test]
fn nothing_is_launched_and_nothing_was_set() {
    let sim = in_a_job();
    let launched = |e: &Effect| matches!(e, Effect::Launch(_));
    assert!(!sim.effects.iter().any(|(_, e)| launched(e)));
    let snapshot = sim.state.snapshot();
    assert!(snapshot.attached && snapshot.pid.is_some());
    let attempt = snapshot.attempt.unwrap();
    assert!(attempt.env.is_empty() && attempt.settings.is_empty());
}

#[test]
fn a_hang_is_told_once_with_evidence_and_advice_and_not_acted_on() {
    let mut sim = in_a_job();
    sim.world = World::silent();
    sim.run_for(mins(10));
    assert!(sim.hung(VerdictId::SilentHang).is_some());
    assert_eq!(signals(&sim), []);
    assert_eq!(end(&sim), None);
    let decisions = decisions(&sim);
    assert_eq!(decisions.len(), 1, "{decisions:#?}");
    assert_eq!(decisions[0].choice, Choice::Advise);
    assert!(
        decisions[0].why.contains("not ours"),
        "{}",
        decisions[0].why
    );
    assert_eq!(captures(&sim), 1);
    // and nothing says otherwise
    let mut plain = PlainWriter::new(Vec::new(), 1);
    for env in &sim.stream {
        plain.accept(env).unwrap();
        if let Event::Verdict(v) = &env.event {
            assert!(v.remedy.as_ref().is_none_or(|r| !r.auto_restart), "{v:?}");
        }
    }
    let plain = String::from_utf8(plain.into_inner()).unwrap();
    assert!(plain.contains("not ours: it is up to you"), "{plain}");
    for wrong in ["unasked", "restarts left", "attempt"] {
        assert!(!plain.contains(wrong), "`{wrong}`:\n{plain}");
    }
    // it moves again, and hangs again: that is told again
    sim.world = World::default();
    sim.run_for(Duration::from_secs(30));
    assert_eq!(sim.state.snapshot().verdict.health, Health::Healthy);
    sim.world = World::silent();
    sim.run_for(mins(10));
    assert_eq!(captures(&sim), 2);
    assert_eq!(signals(&sim), []);
}

#[test]
fn silence_without_a_job_is_not_judged() {
    let mut sim = Sim::attached(plan());
    sim.feed(Event::Tick);
    sim.world = World::silent();
    sim.run_for(mins(30));
    let health = sim.state.snapshot().verdict.health;
    assert_eq!(health, Health::Blind);
    let sentence = sim.state.snapshot().verdict.sentence;
    assert!(sentence.contains("not known"), "{sentence}");
    assert_eq!((captures(&sim), signals(&sim)), (0, vec![]));

    // and a diagnosis of its record says the same
    let started = sim.stream.iter().find_map(|e| match &e.event {
        Event::RunStarted(s) => Some((**s).clone()),
        _ => None,
    });
    let mut state = RunState::new(&started.expect("a head"));
    for env in &sim.stream {
        rejudge(&mut state, env);
    }
    let told = state.verdict();
    assert_eq!(told.health, Health::Blind);
    assert!(told.sentence.contains("not known"), "{}", told.sentence);
}

#[test]
fn a_job_that_sleeps_does_not_advance() {
    let mut sim = Sim::attached(plan());
    sim.world = World::silent();
    sim.feed(Event::Tick);
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::Sampling);
    sim.run_for(Duration::from_secs(4));
    let sentence = sim.state.snapshot().verdict.sentence;
    assert!(!sentence.contains("advances"), "{sentence}");
}

#[test]
fn a_failed_job_of_a_living_process_is_advised_on() {
    let mut sim = in_a_job();
    sim.line("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.");
    sim.feed(Event::Job(JobChange::Failed { why: None }));
    sim.run_for(mins(2));
    let decisions = decisions(&sim);
    assert_eq!(decisions.len(), 1, "{decisions:#?}");
    assert_eq!(decisions[0].choice, Choice::Advise);
    assert_eq!(signals(&sim), []);
    assert_eq!(end(&sim), None);
}

#[test]
fn the_user_ends_it_and_only_its_tree_is_reached() {
    let mut sim = in_a_job();
    sim.feed(Event::Command(Command::Kill));
    sim.run_for(Duration::from_secs(5));
    assert_eq!(signals(&sim), [(Signal::Kill, Scope::Tree)]);
    let (outcome, code, _) = end(&sim).unwrap();
    assert_eq!(
        (outcome, code),
        (Outcome::Interrupted { terminated: false }, 130)
    );
    let mut sim = in_a_job();
    sim.feed(Event::Command(Command::Stop));
    sim.run_for(Duration::from_secs(5));
    assert!(signals(&sim).iter().all(|(_, scope)| *scope == Scope::Tree));
    assert!(end(&sim).is_some());
}

#[test]
fn leaving_touches_nothing() {
    let mut sim = in_a_job();
    sim.feed(Event::Command(Command::Leave));
    let (outcome, code, summary) = end(&sim).unwrap();
    assert_eq!((outcome, code), (Outcome::Left, 0));
    assert!(summary.contains("goes on"), "{summary}");
    assert_eq!(signals(&sim), []);
    // a run of ours is not left by this
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.feed(Event::Command(Command::Leave));
    assert_eq!(end(&sim), None);
}

#[test]
fn what_cannot_be_switched_says_so() {
    let mut sim = in_a_job();
    for command in [
        Command::ApplyNow,
        Command::Set {
            setting: Setting::FindMode,
            value: Some("FAST".to_owned()),
        },
        Command::UseProfile { id: "x".to_owned() },
    ] {
        sim.feed(Event::Command(command));
    }
    let refused = |e: &Event| matches!(e, Event::Notice { text, .. } if text.contains("not started from here"));
    let count = sim.stream.iter().filter(|e| refused(&e.event)).count();
    assert_eq!(count, 3);
    assert!(
        !sim.stream
            .iter()
            .any(|e| matches!(e.event, Event::Replanned(_)))
    );
    assert_eq!(signals(&sim), []);
}

#[test]
fn an_end_that_nobody_explains_is_told_as_such_and_one_that_is_explained_with_the_cause() {
    let mut sim = in_a_job();
    sim.exit(ExitStatus::Unknown);
    sim.run_for(Duration::from_secs(5));
    let (outcome, code, summary) = end(&sim).unwrap();
    assert_eq!((outcome, code), (Outcome::Ended, 0));
    assert!(
        summary.contains("exit code is not ours to know"),
        "{summary}"
    );
    assert_eq!(captures(&sim), 0);

    let mut sim = in_a_job();
    sim.line("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.");
    sim.exit(ExitStatus::Unknown);
    sim.run_for(Duration::from_secs(20));
    let (outcome, code, _) = end(&sim).unwrap();
    assert_eq!((outcome, code), (Outcome::Failed, 20));
    assert_eq!(sim.state.snapshot().verdict.id, VerdictId::GpuOom);
    assert_eq!(signals(&sim), []);
}

#[test]
fn a_process_that_may_not_be_ended_is_watched_on() {
    let mut sim = in_a_job();
    sim.feed(Event::SignalSent {
        attempt: 1,
        signal: Signal::Kill,
        scope: Scope::Tree,
        reached: 0,
    });
    assert_eq!(end(&sim), None);
    sim.world.kill_kills = false;
    sim.feed(Event::Command(Command::Kill));
    sim.feed(Event::SignalSent {
        attempt: 1,
        signal: Signal::Kill,
        scope: Scope::Tree,
        reached: 0,
    });
    sim.run_for(mins(1));
    assert_eq!(end(&sim), None, "not called unkillable");
    let told =
        |e: &Event| matches!(e, Event::Notice { text, .. } if text.contains("may not end it"));
    assert!(sim.stream.iter().any(|e| told(&e.event)));
}
