//! A command that returns while what it started still runs.

use std::time::Duration;

use framepack_tui::model::agent::AgentHello;
use framepack_tui::model::{
    AgentBeat, AgentNote, AgentWord, Bytes, Event, ExitReport, ExitStatus, JobChange, Outcome,
    Phase, Probe, ProbedProcess, Scope, Signal, VerdictId,
};

use crate::sim::{Sim, World, plan};

const OK: ExitStatus = ExitStatus::Code(0);

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn outcome(sim: &Sim) -> Option<Outcome> {
    sim.state.snapshot().outcome.map(|(outcome, ..)| outcome)
}

/// A process that rests: nothing of it is a sign of a job.
fn resting() -> ProbedProcess {
    ProbedProcess {
        pid: 102,
        parent: 50,
        name: "python3".to_owned(),
        ..ProbedProcess::default()
    }
}

fn probe(process: ProbedProcess) -> Probe {
    Probe {
        processes: vec![process],
        ..Probe::default()
    }
}

/// A command that has returned well; its child rests.
fn left() -> Sim {
    let mut sim = Sim::new(plan());
    sim.world = World {
        idle_power: 20.0,
        ..World::silent()
    };
    sim.run_for(secs(3));
    sim.idle = false;
    sim.probe = Some(probe(resting()));
    sim.return_with(OK);
    sim
}

fn terminated(sim: &Sim) -> Option<Duration> {
    let returned = sim.find(|e| matches!(e, Event::CommandReturned { .. }))?.at;
    let signal = sim.find(|e| matches!(e, Event::SignalSent { .. }))?;
    let Event::SignalSent {
        signal: sent,
        scope,
        ..
    } = signal.event
    else {
        unreachable!()
    };
    assert_eq!(
        (sent, scope),
        (Signal::Term, Scope::Tree),
        "also those that left the group"
    );
    Some(signal.at.since(returned))
}

#[test]
fn what_shows_no_sign_of_a_job_is_ended_and_named() {
    let mut sim = left();
    assert_eq!(sim.state.snapshot().left_running.len(), 1);
    sim.run_for(secs(120));
    let after = terminated(&sim).expect("ended");
    assert!(after >= secs(60) && after <= secs(80), "{after:?}");
    let named = sim.find(|e| {
        matches!(e, Event::Notice { text, .. } if text.contains("python3 (pid 102)") && text.contains("SIGTERM"))
    });
    assert!(named.is_some(), "who was ended is said");
    let ended = outcome(&sim).expect("over");
    assert_eq!(ended, Outcome::LeftoversEnded { pids: vec![102] });
    assert_eq!(ended.exit_code(), 23);
    assert!(sim.first_verdict(VerdictId::Finished).is_none());
}

/// A sign of a job, with its name.
type Sign<'a> = (&'a str, &'a dyn Fn(&mut Sim));

#[test]
fn every_sign_of_a_job_keeps_what_was_left() {
    let hello = || {
        Event::Agent(Box::new(AgentNote {
            pid: 102,
            word: AgentWord::Hello(AgentHello {
                protocol: 1,
                agent: "0.1.0".to_owned(),
                python: "3.11.4".to_owned(),
                stacks_by_signal: true,
                rank: None,
            }),
        }))
    };
    let signs: [Sign<'_>; 8] = [
        ("the agent", &|sim| sim.feed(hello())),
        ("memory of the card", &|sim| {
            sim.world.held = Some(Bytes::gib(2));
        }),
        ("a weight file", &|sim| {
            sim.probe = Some(probe(ProbedProcess {
                weights: Some("/m/dit.safetensors".to_owned()),
                ..resting()
            }));
        }),
        ("a socket, before any job", &|sim| {
            sim.probe = Some(probe(ProbedProcess {
                listens: vec!["tcp 127.0.0.1:7860".to_owned()],
                ..resting()
            }));
        }),
        ("CPU time", &|sim| sim.world.worker_percent = 2.0),
        ("no probe can be taken", &|sim| sim.probe = None),
        ("descriptors that cannot be read", &|sim| {
            sim.probe = Some(probe(ProbedProcess {
                unreadable: Some("permission denied".to_owned()),
                ..resting()
            }));
        }),
        ("memory of the card that cannot be read", &|sim| {
            sim.probe = Some(probe(ProbedProcess {
                card: true,
                ..resting()
            }));
        }),
    ];
    for (what, sign) in signs {
        let mut sim = left();
        sign(&mut sim);
        // longer than the time without a sign, shorter than the limit of a hang
        sim.run_for(secs(100));
        assert_eq!(terminated(&sim), None, "{what}");
        assert_eq!(outcome(&sim), None, "{what}");
        sim.exit(OK);
        sim.run_for(secs(3));
        assert_eq!(
            outcome(&sim),
            Some(Outcome::Finished { restarts: 0 }),
            "{what}"
        );
    }
}

/// The card is known to hold nothing of a process that has it open.
#[test]
fn an_open_card_that_holds_nothing_is_no_sign() {
    let mut sim = left();
    sim.world.held = Some(Bytes(0));
    sim.probe = Some(probe(ProbedProcess {
        card: true,
        ..resting()
    }));
    sim.run_for(secs(120));
    assert!(terminated(&sim).is_some());
}

#[test]
fn a_sign_that_goes_begins_the_time_anew() {
    let mut sim = left();
    sim.run_for(secs(50));
    sim.world.worker_percent = 5.0;
    sim.run_for(secs(10));
    sim.world.worker_percent = 0.0;
    sim.run_for(secs(50));
    assert_eq!(terminated(&sim), None);
    sim.run_for(secs(60));
    assert!(terminated(&sim).is_some());
}

#[test]
fn after_a_job_a_socket_is_no_sign() {
    let mut sim = left();
    sim.feed(Event::Job(JobChange::Started));
    sim.feed(Event::Job(JobChange::Done));
    sim.probe = Some(probe(ProbedProcess {
        listens: vec!["tcp 127.0.0.1:7860".to_owned()],
        ..resting()
    }));
    sim.run_for(secs(120));
    assert!(terminated(&sim).is_some());
}

#[test]
fn the_end_of_the_last_process_is_that_of_the_run() {
    for status in [ExitStatus::Signal(9), ExitStatus::Code(1)] {
        let mut sim = left();
        sim.run_for(secs(5));
        sim.exit(status);
        sim.run_for(secs(20));
        assert_eq!(outcome(&sim), Some(Outcome::Failed), "{status}");
    }
}

/// The job may fail before it can be said that the command has returned.
#[test]
fn a_job_that_fails_at_once_is_no_success_and_a_helper_is_none() {
    for (job_before, status, good) in [
        (false, ExitStatus::Code(1), false),
        (false, ExitStatus::Signal(11), false),
        (false, ExitStatus::Signal(15), true),
        (false, OK, true),
        (true, ExitStatus::Code(1), true),
    ] {
        let mut sim = Sim::new(plan());
        sim.run_for(secs(3));
        if job_before {
            sim.feed(Event::Job(JobChange::Started));
            sim.feed(Event::Job(JobChange::Done));
        }
        let attempt = 1;
        sim.feed(Event::Exited(ExitReport {
            attempt,
            status: OK,
        }));
        sim.feed(Event::ProcessEnded {
            attempt,
            pid: 102,
            status,
        });
        sim.feed(Event::GroupGone { attempt });
        sim.alive = false;
        sim.run_for(secs(20));
        let finished = outcome(&sim) == Some(Outcome::Finished { restarts: 0 });
        assert_eq!(finished, good, "{job_before} {status}");
    }
}

/// What a launcher left: a job in the middle of its steps beside a helper.
fn left_in_its_steps() -> Sim {
    let mut sim = Sim::new(plan());
    sim.world = World::silent();
    sim.run_for(secs(3));
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::Sampling);
    sim.step_bar(4.0);
    sim.return_with(OK);
    sim.run_for(secs(4));
    sim.step_bar(8.0);
    sim
}

fn process_ends(sim: &mut Sim, pid: u32, status: ExitStatus) {
    sim.feed(Event::ProcessEnded {
        attempt: 1,
        pid,
        status,
    });
}

#[test]
fn a_helper_that_ends_well_does_not_make_good_the_end_of_the_job() {
    for status in [
        ExitStatus::Signal(9),
        ExitStatus::Signal(11),
        ExitStatus::Code(1),
    ] {
        let mut sim = left_in_its_steps();
        process_ends(&mut sim, 101, status);
        // the last step is read late
        sim.step_bar(9.0);
        sim.run_for(secs(8));
        sim.exit(OK);
        sim.run_for(secs(20));
        assert_eq!(outcome(&sim), Some(Outcome::Failed), "{status}");
    }
}

#[test]
fn a_helper_that_ends_badly_beside_a_job_that_goes_on_says_nothing() {
    for (pid, status) in [
        (103, ExitStatus::Signal(9)),
        (103, ExitStatus::Signal(15)),
        (101, ExitStatus::Code(1)),
    ] {
        let mut sim = left_in_its_steps();
        process_ends(&mut sim, pid, status);
        sim.run_for(secs(3));
        sim.step_bar(20.0);
        sim.run_for(secs(3));
        sim.exit(OK);
        sim.run_for(secs(20));
        let finished = outcome(&sim) == Some(Outcome::Finished { restarts: 0 });
        assert!(finished, "{status}");
    }
}

#[test]
fn a_launcher_that_failed_is_a_failure_at_once() {
    let mut sim = Sim::new(plan());
    sim.world = World::silent();
    sim.run_for(secs(3));
    sim.return_with(ExitStatus::Code(3));
    sim.run_for(secs(3));
    assert!(terminated(&sim).is_some_and(|after| after <= secs(3)));
    sim.run_for(secs(10));
    assert_eq!(outcome(&sim), Some(Outcome::Failed));
}

/// The agent alone is no work: every Python that the command forks has it. A job in one is.
#[test]
fn a_job_outlives_a_launcher_that_failed() {
    for (job, lives) in [(None, false), (Some(false), false), (Some(true), true)] {
        let mut sim = Sim::new(plan());
        sim.world = World::silent();
        sim.run_for(secs(3));
        sim.idle = false;
        for word in [
            AgentWord::Main,
            AgentWord::Beat(Box::new(AgentBeat {
                job,
                ..AgentBeat::default()
            })),
        ] {
            sim.feed(Event::Agent(Box::new(AgentNote { pid: 102, word })));
        }
        sim.return_with(ExitStatus::Code(3));
        sim.run_for(secs(10));
        assert_eq!(terminated(&sim).is_none(), lives, "{job:?}");
        sim.exit(OK);
        sim.run_for(secs(20));
        assert_eq!(outcome(&sim), Some(Outcome::Failed), "{job:?}");
    }
}

#[test]
fn a_hang_behind_a_launcher_is_declared_and_restarted() {
    let mut sim = Sim::new(plan());
    sim.run_for(secs(3));
    sim.idle = false;
    sim.return_with(OK);
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::VaeDecode);
    sim.run_for(secs(20));
    let onset = sim.now;
    sim.world = World::silent();
    sim.run_for(secs(90));
    let hung = sim.hung(VerdictId::SilentHang).expect("declared");
    assert!(hung.at.since(onset) <= secs(60), "{:?}", hung.at);
    assert!(terminated(&sim).is_some());
    let second = sim.find(|e| matches!(e, Event::AttemptStarted(a) if a.number == 2));
    assert!(second.is_some(), "started again");
    assert!(sim.state.snapshot().left_running.is_empty());
}

/// A reader of the stream sees the same end.
#[test]
fn a_reader_follows_it() {
    let mut sim = left();
    sim.run_for(secs(120));
    let Some(Event::RunStarted(started)) = sim.stream.first().map(|e| e.event.clone()) else {
        unreachable!()
    };
    let mut reader = framepack_tui::run::RunState::new(&started);
    for env in &sim.stream {
        framepack_tui::run::follow(&mut reader, env);
    }
    assert_eq!(reader.snapshot().outcome, sim.state.snapshot().outcome);
}
