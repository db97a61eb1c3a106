//! A restart is said not to complete the job where it does not, and never repeats a command
//! that has shown none.

use std::time::Duration;

use framepack_tui::model::agent::AgentVault;
use framepack_tui::model::event::{Choice, Decision};
use framepack_tui::model::{
    AgentNote, AgentWay, AgentWord, Event, ExitStatus, JobChange, Outcome, Phase, Plan, VerdictId,
};

use crate::sim::{Sim, World, plan};

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn server(countdown: Duration) -> Plan {
    let mut plan = plan();
    plan.server = true;
    plan.agent = AgentWay::On;
    plan.countdown = countdown;
    plan
}

fn decision(sim: &Sim) -> Decision {
    let found = sim.find(|e| matches!(e, Event::Decision(_)));
    match found.map(|e| e.event.clone()) {
        Some(Event::Decision(decision)) => *decision,
        _ => panic!("no decision"),
    }
}

fn warning(sim: &Sim) -> Option<u64> {
    let said = |e: &Event| matches!(e, Event::Notice { text, .. } if text.contains("cannot be sent again"));
    sim.find(said).map(|e| e.seq)
}

fn hung(plan: Plan, kept: bool) -> Sim {
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    if kept {
        sim.feed(Event::Agent(Box::new(AgentNote {
            pid: 101,
            word: AgentWord::Vault(Box::new(AgentVault {
                what: "saved".to_owned(),
                of: "job".to_owned(),
                ..AgentVault::default()
            })),
        })));
    }
    sim.world = World::silent();
    sim.run_for(secs(90));
    assert!(sim.hung(VerdictId::SilentHang).is_some());
    sim
}

#[test]
fn a_job_that_cannot_be_sent_again_is_said_before_the_kill() {
    let sim = hung(server(Duration::ZERO), false);
    let decided = decision(&sim);
    assert!(
        decided.why.contains("cannot be sent again"),
        "{}",
        decided.why
    );
    let said = warning(&sim).expect("said");
    let signal = sim.find(|e| matches!(e, Event::SignalSent { .. }));
    assert!(signal.is_some_and(|s| s.seq > said));
}

#[test]
fn what_is_said_is_the_programs_own() {
    let mut plan = server(Duration::ZERO);
    let own = "the tasks of this page cannot be sent again: add them anew";
    plan.lost_job = Some(own.to_owned());
    let sim = hung(plan.clone(), false);
    assert!(decision(&sim).why.ends_with(own));
    let notice = |e: &Event| matches!(e, Event::Notice { text, .. } if text == own);
    assert!(sim.find(notice).is_some());
    // a job that is kept is lost by no restart
    assert!(!decision(&hung(plan, true)).why.contains(own));
}

#[test]
fn a_person_gets_ten_seconds_more_for_it() {
    for (kept, seconds) in [(false, 13), (true, 3)] {
        let sim = hung(server(secs(3)), kept);
        let at = sim.find(|e| matches!(e, Event::Decision(_))).map(|e| e.at);
        let Choice::Restart { kill_at, .. } = decision(&sim).choice else {
            panic!("no restart")
        };
        assert_eq!(at.map(|at| kill_at.since(at)), Some(secs(seconds)));
        assert_eq!(warning(&sim).is_some(), !kept);
    }
}

#[test]
fn a_script_runs_its_job_again_and_nothing_is_said() {
    let sim = hung(plan(), false);
    assert_eq!(warning(&sim), None);
}

/// A fault before any job: advice, and the command is not started a second time.
#[test]
fn a_command_that_showed_no_job_is_not_started_again() {
    let mut plan = plan();
    for rung in &mut plan.ladder {
        rung.unavailable = None;
    }
    let mut sim = Sim::new(plan);
    sim.run_for(secs(3));
    sim.line("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.");
    sim.exit(ExitStatus::Code(1));
    sim.run_for(secs(60));
    let second = sim.find(|e| matches!(e, Event::AttemptStarted(a) if a.number == 2));
    assert!(second.is_none());
    let outcome = sim.state.snapshot().outcome.map(|(outcome, ..)| outcome);
    assert_eq!(outcome, Some(Outcome::Failed));
}

/// The same end of an attempt that has shown a job is answered.
#[test]
fn a_command_that_showed_a_job_is_started_again() {
    let mut plan = plan();
    for rung in &mut plan.ladder {
        rung.unavailable = None;
    }
    let mut sim = Sim::new(plan);
    sim.run_for(secs(3));
    sim.feed(Event::Job(JobChange::Started));
    sim.line("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.");
    sim.exit(ExitStatus::Code(1));
    sim.run_for(secs(60));
    let second = sim.find(|e| matches!(e, Event::AttemptStarted(a) if a.number == 2));
    assert!(second.is_some(), "{:?}", decision(&sim));
}

#[test]
fn without_an_agent_it_is_said_at_the_first_job_that_nothing_is_kept() {
    let said = |way: AgentWay| {
        let mut plan = plan();
        plan.agent = way;
        let mut sim = Sim::running_in(plan, Phase::Sampling);
        sim.feed(Event::Job(JobChange::Started));
        sim.run_for(secs(10));
        let kept =
            |e: &Event| matches!(e, Event::Notice { text, .. } if text.contains("can be kept"));
        sim.stream.iter().filter(|e| kept(&e.event)).count()
    };
    let off = AgentWay::Off {
        why: "--agent off".to_owned(),
    };
    assert_eq!(said(off), 1);
    assert_eq!(said(AgentWay::On), 0);
}
