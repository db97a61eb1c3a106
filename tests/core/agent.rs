//! The agent's words in the core: whose word counts, how a hang is named.

use std::time::Duration;

use framepack_tui::model::agent::{AgentFinding, AgentHello};
use framepack_tui::model::{
    ActionId, AgentBeat, AgentNote, AgentOp, AgentWay, AgentWord, Command, Effect, Event,
    ExitStatus, Health, JobChange, Mono, Outcome, Phase, PhaseChange, Progress, RungId, Speaker,
    VerdictId,
};
use framepack_tui::run::snapshot::AgentState;

use crate::sim::{Sim, plan, rung};

const PID: u32 = 101;

fn note(word: AgentWord) -> Event {
    Event::Agent(Box::new(AgentNote { pid: PID, word }))
}

fn hello() -> Event {
    note(AgentWord::Hello(AgentHello {
        protocol: 1,
        agent: "0.1.0".to_owned(),
        python: "3.11.4".to_owned(),
        stacks_by_signal: true,
        rank: None,
    }))
}

fn beat(op: Option<AgentOp>) -> Event {
    note(AgentWord::Beat(Box::new(AgentBeat {
        op,
        ..AgentBeat::default()
    })))
}

fn conv(device: &str, age: Duration) -> AgentOp {
    AgentOp {
        name: "conv3d".to_owned(),
        shape: vec![1, 16, 9, 64, 64],
        weight: vec![128, 16, 3, 3, 3],
        dtype: "float16".to_owned(),
        device: device.to_owned(),
        tier: "native".to_owned(),
        age_ms: framepack_tui::model::time::millis(age),
        tid: None,
    }
}

fn phase(phase: Phase) -> Event {
    Event::Phase(PhaseChange {
        phase,
        section: None,
        sections: None,
        on_cpu: false,
    })
}

/// A decode whose agent is connected and has said so.
fn decoding() -> Sim {
    let mut plan = plan();
    plan.agent = AgentWay::On;
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.feed(hello());
    sim.feed(note(AgentWord::Main));
    sim.feed_from(Some(Speaker::Agent), phase(Phase::VaeDecode));
    sim
}

/// Lets time pass with a heartbeat each five seconds, as long as `beats`.
fn pass(sim: &mut Sim, seconds: u64, op: Option<&str>, beats: bool) {
    let begun = sim.now;
    for _ in 0..seconds / 5 {
        sim.run_for(Duration::from_secs(5));
        if beats {
            let age = sim.now.since(begun);
            sim.feed(beat(op.map(|device| conv(device, age))));
        }
    }
}

#[test]
fn guesses_from_the_console_do_not_count_while_the_agent_tells() {
    let mut sim = decoding();
    let progress = |done| {
        Event::Progress(Progress {
            what: None,
            done,
            total: Some(9.0),
            seconds_per_step: None,
            sampling: true,
            closed: false,
        })
    };
    sim.feed(phase(Phase::Save));
    sim.feed(progress(3.0));
    assert_eq!(sim.state.snapshot().phase, Phase::VaeDecode);
    // it has told of no bar and no job yet: there the console is all there is
    assert!((sim.state.snapshot().progress.unwrap().done - 3.0).abs() < 1e-9);
    sim.feed_from(Some(Speaker::Agent), progress(5.0));
    sim.feed(progress(4.0));
    assert!((sim.state.snapshot().progress.unwrap().done - 5.0).abs() < 1e-9);
    sim.feed_from(Some(Speaker::Agent), Event::Job(JobChange::Started));
    sim.feed(Event::Job(JobChange::Done));
    let shown = sim.state.snapshot();
    assert!(matches!(
        shown.job,
        framepack_tui::run::snapshot::JobState::InFlight(_)
    ));
    assert_eq!(shown.agent.state, AgentState::Connected);

    // a section that the console knows of the agent's phase is no contradiction
    sim.phase(Phase::VaeDecode);
    assert_eq!(sim.state.snapshot().section, Some(2));

    sim.feed(note(AgentWord::Lost));
    assert_eq!(sim.state.snapshot().agent.state, AgentState::Lost);
    // what it has given to the vault is there all the same
    assert!(sim.state.snapshot().agent.came);
    sim.feed(phase(Phase::Save));
    assert_eq!(sim.state.snapshot().phase, Phase::Save);
    let log = sim.state.snapshot().log;
    assert!(
        log.iter().any(|l| l.text.starts_with("agent: lost")),
        "{log:?}"
    );
}

#[test]
fn a_heartbeat_is_no_progress_and_a_silent_search_is_named_by_its_call() {
    let mut sim = decoding();
    sim.world = sim.world.clone().made_silent();
    pass(&mut sim, 120, Some("cuda:0"), true);
    let hung = sim.hung(VerdictId::FindStall).expect("a hang is declared");
    let Event::Verdict(v) = &hung.event else {
        panic!()
    };
    assert!(v.sentence.contains("conv3d 1x16x9x64x64"), "{}", v.sentence);
    assert!(v.sentence.contains("in flight for"), "{}", v.sentence);
    assert!(!v.findings[0].cites.is_empty());
    assert!(sim.hung(VerdictId::SilentHang).is_none());
}

#[test]
fn without_a_call_in_flight_the_wait_is_elsewhere() {
    for (op, words) in [
        (None, "no convolution is in flight"),
        // no MIOpen on the CPU
        (Some("cpu"), "on cpu has been in flight for"),
    ] {
        let mut sim = decoding();
        sim.world = sim.world.clone().made_silent();
        pass(&mut sim, 120, op, true);
        let hung = sim.hung(VerdictId::SilentHang).expect("a hang is declared");
        let Event::Verdict(v) = &hung.event else {
            panic!()
        };
        assert!(v.sentence.contains(words), "{}", v.sentence);
        assert!(!v.sentence.contains("heartbeat stopped"), "{}", v.sentence);
    }
}

#[test]
fn a_heartbeat_that_stops_means_that_native_code_holds_the_lock() {
    let mut sim = decoding();
    sim.feed(beat(None));
    sim.world = sim.world.clone().made_silent();
    pass(&mut sim, 120, None, false);
    let hung = sim.hung(VerdictId::SilentHang).expect("a hang is declared");
    let Event::Verdict(v) = &hung.event else {
        panic!()
    };
    assert!(
        v.sentence.contains("native code holds its lock"),
        "{}",
        v.sentence
    );
    // what has begun since the last heartbeat is not known
    assert!(!v.sentence.contains("convolution"), "{}", v.sentence);
    assert!(!v.sentence.contains("in flight for"), "{}", v.sentence);
}

#[test]
fn a_call_that_burns_a_core_is_a_search_and_no_loop() {
    let mut sim = decoding();
    sim.world = sim.world.clone().made_silent();
    sim.world.worker_percent = 100.0;
    pass(&mut sim, 240, Some("cuda:0"), true);
    assert!(sim.hung(VerdictId::FindStall).is_some());
    assert!(sim.hung(VerdictId::SpinHang).is_none());

    let mut sim = decoding();
    sim.world = sim.world.clone().made_silent();
    sim.world.worker_percent = 100.0;
    pass(&mut sim, 240, None, true);
    let hung = sim.hung(VerdictId::SpinHang).expect("a loop is declared");
    let Event::Verdict(v) = &hung.event else {
        panic!()
    };
    assert!(
        v.sentence.contains("no convolution is in flight"),
        "{}",
        v.sentence
    );
}

#[test]
fn two_devices_are_told_and_what_was_put_right_is_no_fault() {
    let finding = |fixed| {
        note(AgentWord::Finding(Box::new(AgentFinding {
            verdict: VerdictId::DeviceMismatch,
            text: "the image is on cuda:0, the pipeline on cpu".to_owned(),
            cure: "move it".to_owned(),
            fixed,
        })))
    };
    let mut sim = decoding();
    sim.feed(finding(true));
    sim.run_for(Duration::from_secs(10));
    assert!(sim.first_verdict(VerdictId::DeviceMismatch).is_none());
    let log = sim.state.snapshot().log;
    assert!(log.iter().any(|l| l.text.contains("put right")), "{log:?}");

    sim.feed(finding(false));
    sim.run_for(Duration::from_secs(10));
    let told = sim
        .first_verdict(VerdictId::DeviceMismatch)
        .expect("it is told");
    let Event::Verdict(v) = &told.event else {
        panic!()
    };
    assert_eq!(v.health, Health::Slow);
    let seq = v.findings[0].cites[0].seq;
    let cited = sim.stream.iter().find(|e| e.seq == seq).unwrap();
    assert!(matches!(&cited.event, Event::Agent(_)), "{cited:?}");
}

#[test]
fn rungs_that_need_the_agent_go_with_it_and_come_back() {
    let mut plan = plan();
    plan.agent = AgentWay::On;
    let mut split = rung(
        "conv_split",
        ActionId::EnvToggle,
        &[VerdictId::SilentHang],
        &[Phase::VaeDecode],
    );
    split.settings = [("conv_tier".to_owned(), "split".to_owned())].into();
    plan.ladder = vec![split];
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    let why = |sim: &Sim| {
        let shown = sim.state.snapshot();
        let entry = shown
            .ladder
            .iter()
            .find(|l| l.id == RungId("conv_split".to_owned()));
        match &entry.unwrap().state {
            framepack_tui::run::snapshot::RungState::Unavailable { why } => Some(why.clone()),
            _ => None,
        }
    };
    assert_eq!(why(&sim), None);
    let silent = AgentWord::Silent { for_ms: 4_000 };
    sim.feed(Event::Agent(Box::new(AgentNote {
        pid: 0,
        word: silent,
    })));
    assert!(why(&sim).unwrap().contains("say hello"));
    assert_eq!(sim.state.snapshot().agent.state, AgentState::Silent);
    sim.feed(hello());
    assert_eq!(why(&sim), None);

    let spec = sim.state.snapshot().attempt.unwrap();
    assert_eq!(sim.state.agent_settings(&spec).get("conv_tier"), None);
    let mut spec = spec;
    spec.settings
        .insert("conv_tier".to_owned(), "split".to_owned());
    assert_eq!(sim.state.agent_settings(&spec)["conv_tier"], "split");
}

fn in_section(phase: Phase, section: u32) -> Event {
    Event::Phase(PhaseChange {
        phase,
        section: Some(section),
        sections: Some(3),
        on_cpu: false,
    })
}

/// A program with a loop of its own: its console tells each stage, its agent only decodes.
#[test]
fn an_agent_that_knows_no_phase_leaves_it_to_the_console() {
    let mut sim = decoding();
    let agent = Some(Speaker::Agent);
    let shown = |sim: &Sim| {
        let shown = sim.state.snapshot();
        (shown.phase, shown.section)
    };
    // the decode of section 1 ends; what the console said of it is over, too
    sim.feed(in_section(Phase::VaeDecode, 1));
    sim.feed_from(agent, phase(Phase::Startup));
    assert_eq!(shown(&sim), (Phase::Startup, Some(1)));
    sim.feed(in_section(Phase::Save, 1));
    sim.feed(in_section(Phase::ModelLoad, 2));
    sim.feed(in_section(Phase::Sampling, 2));
    assert_eq!(shown(&sim), (Phase::Sampling, Some(2)));
    // it knows nothing new
    sim.feed_from(agent, phase(Phase::Unknown));
    assert_eq!(shown(&sim), (Phase::Sampling, Some(2)));
    // a decode of its own inside the steps: a true phase counts, in the console's section
    sim.feed_from(agent, phase(Phase::VaeDecode));
    assert_eq!(shown(&sim), (Phase::VaeDecode, Some(2)));
    // and the steps go on behind it
    sim.feed_from(agent, phase(Phase::Startup));
    assert_eq!(shown(&sim), (Phase::Sampling, Some(2)));

    sim.world = sim.world.clone().made_silent();
    pass(&mut sim, 120, None, true);
    let hung = sim.hung(VerdictId::SilentHang).expect("a hang is declared");
    let Event::Verdict(v) = &hung.event else {
        panic!()
    };
    assert_eq!(v.phase, Phase::Sampling);
}

#[test]
fn a_section_that_the_console_tells_late_is_the_agents_phase_too() {
    let mut sim = decoding();
    sim.feed_from(Some(Speaker::Agent), phase(Phase::Sampling));
    sim.feed(in_section(Phase::ModelLoad, 2));
    let shown = sim.state.snapshot();
    assert_eq!((shown.phase, shown.section), (Phase::Sampling, Some(2)));
    // where the agent itself counts them, that counts
    sim.feed_from(Some(Speaker::Agent), in_section(Phase::Sampling, 3));
    sim.feed(in_section(Phase::ModelLoad, 2));
    let shown = sim.state.snapshot();
    assert_eq!((shown.phase, shown.section), (Phase::Sampling, Some(3)));
}

#[test]
fn bars_count_as_the_console_reads_them_while_the_agent_knows_no_phase() {
    let bar = |done, sampling| {
        Event::Progress(Progress {
            what: None,
            done,
            total: Some(9.0),
            seconds_per_step: None,
            sampling,
            closed: false,
        })
    };
    let mut sim = decoding();
    let shown = |sim: &Sim| sim.state.snapshot().progress.map(|p| (p.done, p.sampling));
    let agent = Some(Speaker::Agent);
    sim.feed_from(agent, phase(Phase::Startup));
    // of a bar that the console does not show the agent's word is all there is
    sim.feed_from(agent, bar(1.0, false));
    assert_eq!(shown(&sim), Some((1.0, false)));
    sim.feed(bar(2.0, true));
    sim.feed_from(agent, bar(2.0, false));
    assert_eq!(shown(&sim), Some((2.0, true)));
    sim.feed_from(agent, phase(Phase::Sampling));
    sim.feed_from(agent, bar(3.0, true));
    sim.feed(bar(4.0, true));
    assert_eq!(shown(&sim), Some((3.0, true)));
}

#[test]
fn the_end_after_a_step_is_the_users_own() {
    let asked = |sim: &Sim| {
        let to = |(_, e): &&(Mono, Effect)| matches!(e, Effect::StopAfterStep { attempt: 1 });
        sim.effects.iter().filter(to).count()
    };
    for (status, outcome) in [
        (
            ExitStatus::Signal(2),
            Outcome::Interrupted { terminated: false },
        ),
        (
            ExitStatus::Code(130),
            Outcome::Interrupted { terminated: false },
        ),
        (ExitStatus::Code(0), Outcome::Finished { restarts: 0 }),
    ] {
        let mut sim = decoding();
        sim.feed(Event::Command(Command::StopAfterStep));
        assert_eq!(asked(&sim), 1);
        sim.exit(status);
        sim.run_for(Duration::from_secs(30));
        let end = sim.state.snapshot().outcome.map(|(end, ..)| end);
        assert_eq!(end, Some(outcome), "{status:?}");
    }
    // a crash stays one, and a Ctrl-C that nobody asked for here too
    for (command, status) in [
        (Some(Command::StopAfterStep), ExitStatus::Signal(11)),
        (None, ExitStatus::Signal(2)),
    ] {
        let mut sim = decoding();
        if let Some(command) = command {
            sim.feed(Event::Command(command));
        }
        sim.exit(status);
        sim.run_for(Duration::from_secs(30));
        let outcome = sim.state.snapshot().outcome.map(|(end, ..)| end);
        assert!(
            !matches!(
                outcome,
                Some(Outcome::Interrupted { .. } | Outcome::Finished { .. })
            ),
            "{status:?}: {outcome:?}"
        );
    }
    // nobody there who could do it
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.feed(Event::Command(Command::StopAfterStep));
    assert_eq!(asked(&sim), 0);
    let said =
        |e: &Event| matches!(e, Event::Notice { text, .. } if text.contains("not connected"));
    assert!(sim.find(said).is_some());
}

/// The agent's words and the console's lines come by two ways: a bar that is told after the
/// line of the error must not bury it.
#[test]
fn words_of_a_failed_job_name_its_error_though_a_late_bar_buried_the_line() {
    let mut plan = plan();
    plan.agent = AgentWay::On;
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    sim.feed(hello());
    sim.feed(note(AgentWord::Main));
    sim.feed_from(Some(Speaker::Agent), phase(Phase::VaeDecode));
    sim.line("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.53 GiB");
    sim.feed_from(
        Some(Speaker::Agent),
        Event::Progress(Progress {
            what: None,
            done: 4.0,
            total: Some(4.0),
            seconds_per_step: Some(0.1),
            sampling: true,
            closed: false,
        }),
    );
    sim.feed_from(
        Some(Speaker::Agent),
        Event::Job(JobChange::Failed {
            why: Some("OutOfMemoryError: HIP out of memory. Tried to allocate 2.53 GiB".to_owned()),
        }),
    );
    sim.exit(ExitStatus::Code(1));
    sim.run_for(Duration::from_mins(1));
    assert!(sim.first_verdict(VerdictId::GpuOom).is_some());
    assert!(sim.first_verdict(VerdictId::AppError).is_none());
}
