//! A server is started again: what becomes of the job that was lost with it.

use std::time::Duration;

use framepack_tui::model::{
    ActionId, AgentWay, Command, Effect, Event, ExitStatus, JobChange, JobProgram, LostJob,
    LostJobs, Mono, Phase, Plan, Resend, ResendWord, RungId, VerdictId,
};

use crate::sim::{Sim, plan, rung};

const ADDRESS: &str = "* Running on local URL:  http://127.0.0.1:7860";
const SERVER: &str = "http://127.0.0.1:7860";

/// A server with an agent, and as many rungs for its death as it takes.
fn server() -> Plan {
    let mut p = plan();
    p.server = true;
    p.agent = AgentWay::On;
    p.countdown = Duration::ZERO;
    p.ladder = (0..5)
        .map(|n| {
            let id = format!("again{n}");
            rung(
                &id,
                ActionId::RetrySame,
                &[VerdictId::GpuOom, VerdictId::Killed],
                &[],
            )
        })
        .collect();
    p
}

fn job(attempt: u32) -> LostJob {
    LostJob {
        entry: "job.r.0123.json".to_owned(),
        program: JobProgram::FramePack,
        job: "0123".to_owned(),
        attempt: Some(attempt),
        failed: false,
        prompts: 1,
    }
}

fn queue(n: u32) -> LostJob {
    let entry = format!("queue.r.{n}.json");
    LostJob {
        job: entry.clone(),
        entry,
        program: JobProgram::ComfyUi,
        attempt: Some(n),
        failed: false,
        prompts: n + 1,
    }
}

fn number(sim: &Sim) -> u32 {
    sim.state.snapshot().attempt.map_or(0, |a| a.number)
}

/// The server dies in its job; the next attempt runs.
fn dies(sim: &mut Sim) {
    let before = number(sim);
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::Sampling);
    sim.run_for(Duration::from_secs(5));
    sim.line("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.53 GiB.");
    sim.exit(ExitStatus::Code(1));
    for _ in 0..200 {
        sim.run_for(Duration::from_secs(1));
        if number(sim) > before {
            return;
        }
    }
    panic!("no attempt after {before}: {:?}", sim.state.verdict());
}

/// What the vault holds.
fn held(sim: &mut Sim, jobs: &[LostJob]) {
    let attempt = number(sim);
    sim.feed(Event::LostJobs(LostJobs {
        attempt,
        jobs: jobs.to_vec(),
        problem: None,
    }));
}

fn answer(sim: &mut Sim, word: ResendWord) {
    let attempt = number(sim);
    sim.feed(Event::Resend(Resend { attempt, word }));
}

fn taken(sim: &mut Sim) {
    answer(
        sim,
        ResendWord::Sent {
            job: "0123".to_owned(),
            server: SERVER.to_owned(),
        },
    );
}

fn words(sim: &Sim) -> Vec<ResendWord> {
    let word = |e: &framepack_tui::model::Envelope| match &e.event {
        Event::Resend(r) => Some(r.word.clone()),
        _ => None,
    };
    sim.stream.iter().filter_map(word).collect()
}

/// What was sent: attempt and entry.
fn sent(sim: &Sim) -> Vec<(u32, String)> {
    let one = |(_, e): &(Mono, Effect)| match e {
        Effect::SendAgain { attempt, job, .. } => Some((*attempt, job.entry.clone())),
        _ => None,
    };
    sim.effects.iter().filter_map(one).collect()
}

fn started() -> Sim {
    let mut sim = Sim::running_in(server(), Phase::Startup);
    sim.line(ADDRESS);
    sim
}

#[test]
fn the_lost_job_is_sent_once_the_server_has_announced_itself() {
    let mut sim = started();
    dies(&mut sim);
    let asked = |(_, e): &(Mono, Effect)| matches!(e, Effect::FindLost { attempt: 2 });
    assert!(sim.effects.iter().any(asked), "the vault is asked");
    held(&mut sim, &[job(1)]);
    assert_eq!(sent(&sim), [], "nobody serves yet");
    sim.line("Loading");
    sim.line(ADDRESS);
    let entry = || "job.r.0123.json".to_owned();
    assert_eq!(sent(&sim), [(2, entry())]);
    sim.line(ADDRESS);
    held(&mut sim, &[]);
    assert_eq!(sent(&sim).len(), 1, "never twice");
    taken(&mut sim);
    // it takes the server down again
    dies(&mut sim);
    sim.line(ADDRESS);
    held(&mut sim, &[job(2)]);
    assert_eq!(sent(&sim), [(2, entry()), (3, entry())]);
}

#[test]
fn a_job_that_ended_is_not_sent() {
    let mut sim = started();
    dies(&mut sim);
    // what an earlier attempt left behind
    held(&mut sim, &[job(7)]);
    sim.line(ADDRESS);
    assert_eq!(sent(&sim), []);
    let given_up = words(&sim)
        .iter()
        .any(|w| matches!(w, ResendWord::GivenUp { job: None, .. }));
    assert!(given_up, "the job in flight was not in the vault");
}

#[test]
fn a_server_that_is_killed_while_it_waits_is_left_alone() {
    let mut sim = started();
    sim.feed(Event::Job(JobChange::Started));
    sim.feed(Event::Job(JobChange::Done));
    sim.feed(Event::Job(JobChange::Waiting));
    sim.run_for(Duration::from_secs(5));
    sim.exit(ExitStatus::Signal(9));
    sim.run_for(Duration::from_mins(1));
    assert!(sim.state.is_over() && number(&sim) == 1);
}

#[test]
fn a_job_that_no_server_took_is_owed_to_the_next() {
    let mut sim = started();
    dies(&mut sim);
    held(&mut sim, &[job(1)]);
    // this one dies before it has announced itself
    dies(&mut sim);
    held(&mut sim, &[job(1)]);
    sim.line(ADDRESS);
    assert_eq!(sent(&sim), [(3, "job.r.0123.json".to_owned())]);
}

#[test]
fn a_job_that_takes_every_server_down_is_given_up() {
    let mut p = server();
    p.budget.restarts = 2;
    p.budget.period = Duration::from_secs(1);
    p.budget.total = 6;
    let mut sim = Sim::running_in(p, Phase::Startup);
    sim.line(ADDRESS);
    for n in 1..=3 {
        dies(&mut sim);
        held(&mut sim, &[job(n)]);
        sim.line(ADDRESS);
        taken(&mut sim);
    }
    assert_eq!(sent(&sim).len(), 2, "{:?}", words(&sim));
    let last = words(&sim)
        .into_iter()
        .rfind(|w| matches!(w, ResendWord::GivenUp { .. }));
    let text = last.expect("it is said").words();
    assert!(
        text.contains("sent again 2 times") && text.contains("press Start again"),
        "{text}"
    );
}

#[test]
fn a_restart_of_the_users_own_sends_the_job_and_counts_for_nothing() {
    let mut p = server();
    p.budget.restarts = 1;
    let mut sim = Sim::running_in(p, Phase::Startup);
    sim.line(ADDRESS);
    for n in 1..=3 {
        sim.feed(Event::Job(JobChange::Started));
        sim.run_for(Duration::from_secs(5));
        sim.feed(Event::Command(Command::ApplyNow));
        sim.run_for(Duration::from_secs(30));
        assert_eq!(number(&sim), n + 1);
        held(&mut sim, &[job(n)]);
        sim.line(ADDRESS);
        taken(&mut sim);
    }
    assert_eq!(sent(&sim).len(), 3);
}

#[test]
fn queues_wait_for_the_users_word_and_go_in_their_order() {
    let mut sim = started();
    dies(&mut sim);
    held(&mut sim, &[queue(1), queue(2)]);
    sim.feed(Event::Command(Command::Resend));
    assert_eq!(sent(&sim), [], "nobody serves yet");
    sim.line("To see the GUI go to: http://127.0.0.1:8188");
    sim.run_for(Duration::from_mins(1));
    assert_eq!(sent(&sim), []);
    assert_eq!(sim.state.snapshot().resend.waiting, 5);
    let text = words(&sim)[0].words();
    assert!(
        text.contains("5 prompts") && text.contains("vault resend queue.r.1.json --port 8188"),
        "{text}"
    );
    sim.feed(Event::Command(Command::Resend));
    assert_eq!(sim.state.snapshot().resend.waiting, 0);
    let first = || (2, "queue.r.1.json".to_owned());
    assert_eq!(sent(&sim), [first()]);
    sim.feed(Event::Command(Command::Resend));
    answer(
        &mut sim,
        ResendWord::Queued {
            job: "queue.r.1.json".to_owned(),
            queued: 2,
            there: 0,
            refused: Vec::new(),
        },
    );
    let second = || (2, "queue.r.2.json".to_owned());
    assert_eq!(sent(&sim), [first(), second()]);
    // what could not be sent is asked for once more
    answer(
        &mut sim,
        ResendWord::Failed {
            job: "queue.r.2.json".to_owned(),
            why: "no server answers".to_owned(),
        },
    );
    assert_eq!(sim.state.snapshot().resend.waiting, 3);
    sim.feed(Event::Command(Command::Resend));
    assert_eq!(sent(&sim), [first(), second(), second()]);
}

#[test]
fn without_an_agent_the_user_presses_start() {
    let mut p = server();
    p.agent = AgentWay::Off {
        why: "off".to_owned(),
    };
    p.ladder = plan().ladder;
    let mut sim = Sim::running_in(p, Phase::Startup);
    sim.line(ADDRESS);
    sim.feed(Event::Command(Command::TakeRung {
        rung: RungId("fast_find".to_owned()),
    }));
    sim.run_for(Duration::from_mins(1));
    assert_eq!(number(&sim), 2);
    let said =
        sim.find(|e| matches!(e, Event::Notice { text, .. } if text.contains("press Start again")));
    assert!(said.is_some());
    let asked = |(_, e): &(Mono, Effect)| matches!(e, Effect::FindLost { .. });
    assert!(!sim.effects.iter().any(asked));
    assert!(!sim.state.snapshot().resend.by_itself);
}

#[test]
fn a_server_that_does_not_say_where_it_serves_is_told_of() {
    let mut sim = started();
    dies(&mut sim);
    held(&mut sim, &[job(1)]);
    sim.feed(Event::Job(JobChange::Waiting));
    sim.run_for(Duration::from_secs(15));
    let text: Vec<_> = words(&sim).iter().map(ResendWord::words).collect();
    assert!(
        text.len() == 1 && text[0].contains("has not announced its address"),
        "{text:?}"
    );
}
