//! The three questions in a run: what is in flight, what moves, what its thread waits for.

use std::time::Duration;

use framepack_tui::model::attempt::Artefact;
use framepack_tui::model::{
    AgentBeat, AgentNote, AgentOp, AgentSteps, AgentWord, Answer, Bytes, Envelope, Event, Health,
    Line, Metric, PeerTraffic, Phase, PhaseChange, Probe, ProbedProcess, ProbedThread, Progress,
    RungId, Stream, Verdict, VerdictId, Wait, WaitTarget, WaitsFor,
};

use crate::sim::{Sim, World, plan};

/// The thread that the world of these tests gives work to.
const WORKER: u32 = 2;
const ROOT: u32 = 101;

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

const fn mins(m: u64) -> Duration {
    Duration::from_mins(m)
}

fn thread(tid: u32, wait: Wait) -> ProbedThread {
    ProbedThread {
        tid,
        name: "python3".to_owned(),
        state: 'S',
        run_ns: 0,
        read: Some(Bytes(0)),
        written: Some(Bytes(0)),
        major_faults: 0,
        minor_faults: 0,
        wait,
    }
}

fn call(call: &str, on: Vec<WaitTarget>) -> Wait {
    Wait::Call {
        call: call.to_owned(),
        timeout_ms: None,
        on,
        channel: None,
    }
}

/// A process in which every thread waits in the same way.
fn waiting(wait: &Wait) -> Probe {
    Probe {
        processes: vec![ProbedProcess {
            pid: ROOT,
            parent: 50,
            name: "python3".to_owned(),
            threads: (1..5).map(|tid| thread(tid, wait.clone())).collect(),
            ..ProbedProcess::default()
        }],
        ..Probe::default()
    }
}

/// A decode that has just stopped moving, its thread in this wait.
fn stopped(wait: &Wait) -> Sim {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.run_for(secs(20));
    sim.world = World::silent();
    sim.probe = Some(waiting(wait));
    sim
}

fn line(sim: &mut Sim, text: String) {
    sim.feed(Event::Line(Line {
        attempt: 1,
        row: 0,
        stream: Stream::Stdout,
        text,
        bar: false,
        truncated: false,
        chatter: false,
    }));
}

fn verdict(sim: &Sim) -> Verdict {
    sim.state.verdict().clone()
}

fn answers(sim: &Sim) -> (Answer, Answer, WaitsFor) {
    let questions = verdict(sim).questions.expect("a process runs");
    (
        questions.job.answer,
        questions.moves.answer,
        questions.waits.answer,
    )
}

#[test]
fn lines_and_repaints_of_a_helper_hide_no_hang() {
    let mut sim = stopped(&call("pause", Vec::new()));
    let began = sim.now;
    for n in 0..12 {
        line(
            &mut sim,
            format!("[watchdog] still alive, {n} s, 17.{n} GB"),
        );
        sim.feed(Event::Progress(Progress {
            what: None,
            done: 5.0,
            total: Some(8.0),
            seconds_per_step: Some(f64::from(n)),
            sampling: true,
            closed: false,
        }));
        sim.run_for(secs(10));
    }
    let hung = sim.hung(VerdictId::SilentHang).expect("a hang");
    assert!(hung.at.since(began) <= secs(90), "{:?}", hung.at);
    let Event::Verdict(v) = &hung.event else {
        panic!()
    };
    let questions = v.questions.as_ref().expect("answers");
    assert_eq!(questions.job.answer, Answer::Yes);
    assert_eq!(questions.moves.answer, Answer::No);
    assert_eq!(questions.waits.answer, WaitsFor::Card);
    assert_eq!(questions.waits.within.as_deref(), Some("pause"));
}

#[test]
fn a_wait_for_somebody_outside_is_shown_and_left_alone() {
    let peer = WaitTarget::Peer {
        network: "tcp".to_owned(),
        address: "203.0.113.9:443".to_owned(),
        inside: None,
        accepted: false,
    };
    let lock = WaitTarget::Lock {
        path: "/m/the.lock".to_owned(),
        holder: Some(9),
        holder_is_dead: false,
    };
    for (wait, id, answer) in [
        (
            call("recvfrom", vec![peer]),
            VerdictId::RemoteWait,
            WaitsFor::Peer,
        ),
        (
            call("flock", vec![lock]),
            VerdictId::RemoteWait,
            WaitsFor::Lock,
        ),
        (
            call("read", vec![WaitTarget::Terminal]),
            VerdictId::IdleWaiting,
            WaitsFor::Person,
        ),
    ] {
        let mut sim = stopped(&wait);
        sim.run_for(mins(30));
        assert_eq!(verdict(&sim).id, id, "{wait:?}");
        assert_eq!(answers(&sim), (Answer::Yes, Answer::No, answer));
        assert_eq!(sim.kills(), 0, "{wait:?}");
    }
}

#[test]
fn a_lock_whose_holder_is_dead_is_a_hang() {
    let orphan = WaitTarget::Lock {
        path: "/m/the.lock".to_owned(),
        holder: Some(9),
        holder_is_dead: true,
    };
    let mut sim = stopped(&call("flock", vec![orphan]));
    sim.run_for(mins(5));
    assert!(sim.hung(VerdictId::SilentHang).is_some());
}

#[test]
fn a_script_that_shows_no_job_is_quiet_and_nothing_is_done() {
    let mut sim = Sim::new(plan());
    sim.world = World::silent();
    sim.probe = Some(waiting(&call("futex", Vec::new())));
    sim.run_for(mins(60));
    let v = verdict(&sim);
    assert_eq!(
        (v.id, v.health),
        (VerdictId::Quiet, Health::Quiet),
        "{}",
        v.sentence
    );
    assert_eq!(answers(&sim).0, Answer::Unknown);
    assert_eq!(sim.kills(), 0);
    assert!(sim.find(|e| matches!(e, Event::Decision(_))).is_none());
}

#[test]
fn a_loaded_model_alone_is_no_hang() {
    let mut sim = Sim::new(plan());
    sim.run_for(secs(3));
    sim.world = World {
        held: Some(Bytes::gib(12)),
        ..World::silent()
    };
    sim.probe = Some(waiting(&call("futex", Vec::new())));
    sim.run_for(mins(30));
    assert_eq!(verdict(&sim).id, VerdictId::Quiet);
    assert_eq!(sim.kills(), 0);
}

#[test]
fn a_result_that_is_written_ends_the_job_and_not_the_process() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(20));
    // one section is all there is
    let phase = |phase| {
        Event::Phase(PhaseChange {
            phase,
            section: None,
            sections: None,
            on_cpu: false,
        })
    };
    sim.feed(phase(Phase::Save));
    sim.run_for(secs(5));
    sim.feed(Event::Artefact(Artefact {
        path: "/out/a.mp4".to_owned(),
        size: Bytes(10),
        frames: None,
        attempt: 1,
        rung: RungId("as_given".to_owned()),
    }));
    sim.feed(phase(Phase::Done));
    sim.world = World::silent();
    sim.probe = Some(waiting(&call("futex", Vec::new())));
    sim.run_for(mins(10));
    let v = verdict(&sim);
    assert_eq!(v.id, VerdictId::NotEnded, "{v:?}");
    assert_eq!(answers(&sim).0, Answer::Done);
    assert!(v.sentence.contains("futex"), "{}", v.sentence);
    assert_eq!(sim.kills(), 0);
}

fn steps(sim: &mut Sim, counts: [f64; 3]) {
    for done in counts {
        sim.feed(Event::Progress(Progress {
            what: None,
            done,
            total: Some(10.0),
            seconds_per_step: None,
            sampling: true,
            closed: false,
        }));
    }
}

/// The next clip's steps may take less time than the file of the last one takes to be found.
#[test]
fn a_bar_that_begins_after_the_result_is_the_next_clip() {
    let file = Event::Artefact(Artefact {
        path: "/out/a.mp4".to_owned(),
        size: Bytes(10),
        frames: None,
        attempt: 1,
        rung: RungId("as_given".to_owned()),
    });
    for found_late in [false, true] {
        let mut sim = Sim::running_in(plan(), Phase::Sampling);
        sim.run_for(secs(20));
        sim.phase(Phase::Done);
        if !found_late {
            sim.feed(file.clone());
        }
        sim.run_for(secs(1));
        steps(&mut sim, [0.0, 5.0, 10.0]);
        sim.phase(Phase::Unknown);
        if found_late {
            sim.feed(file.clone());
        }
        sim.world = World::silent();
        sim.probe = Some(waiting(&call("futex", Vec::new())));
        sim.run_for(mins(10));
        let told = |id| {
            let says = |e: &Envelope| matches!(&e.event, Event::Verdict(v) if v.id == id);
            sim.stream.iter().any(says)
        };
        assert!(told(VerdictId::SilentHang), "found late: {found_late}");
        assert!(!told(VerdictId::NotEnded), "found late: {found_late}");
    }
}

/// Minutes until a core that is busy behind a full bar of steps is called a spin; a line of the
/// program may come with the end of the bar.
fn spins_after(line: Option<&str>) -> Option<u64> {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(20));
    steps(&mut sim, [0.0, 5.0, 10.0]);
    if let Some(line) = line {
        sim.line(line);
        sim.run_for(secs(1));
    }
    sim.phase(Phase::Unknown);
    sim.world = World {
        worker_percent: 100.0,
        ..World::silent()
    };
    (0..20).find(|_| {
        sim.run_for(mins(1));
        sim.hung(VerdictId::SpinHang).is_some()
    })
}

#[test]
fn a_step_that_the_program_announces_behind_its_bar_has_more_time_on_one_core() {
    let unsaid = spins_after(None).expect("a spin");
    assert!(unsaid <= 3, "{unsaid} min");
    for line in [
        "Colour matching 81 frames",
        "VAE decoding",
        "Postprocessing with RIFE on CPU",
        "[upscale] 4x, tile 512",
        "stabilising the clip ...",
    ] {
        let said = spins_after(Some(line)).expect("it is no licence for ever");
        assert!((9..=13).contains(&said), "{line}: {said} min");
    }
}

fn conv(age: Duration) -> Event {
    Event::Agent(Box::new(AgentNote {
        pid: ROOT,
        word: AgentWord::Beat(Box::new(AgentBeat {
            op: Some(AgentOp {
                name: "matmul".to_owned(),
                shape: vec![4096, 4096],
                weight: Vec::new(),
                dtype: "float16".to_owned(),
                device: "cuda:0".to_owned(),
                tier: "native".to_owned(),
                age_ms: framepack_tui::model::time::millis(age),
                tid: Some(WORKER),
            }),
            ops: 1,
            ..AgentBeat::default()
        })),
    }))
}

/// The second net: whatever else goes on, here a core that works.
#[test]
fn an_operation_of_a_resting_card_is_slow_after_five_minutes_and_hung_after_ten() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(20));
    sim.world = World {
        worker_percent: 60.0,
        ..World::silent()
    };
    // the card came to rest before the operation began
    sim.run_for(secs(5));
    let began = sim.now;
    let mut slow = None;
    for s in (0..900).step_by(5) {
        sim.feed(conv(secs(s)));
        sim.run_for(secs(5));
        if slow.is_none() && verdict(&sim).health == Health::Slow {
            slow = Some(sim.now.since(began));
        }
        if sim.hung(VerdictId::SilentHang).is_some() {
            break;
        }
    }
    let slow = slow.unwrap_or_else(|| panic!("slow first: {:?}", verdict(&sim)));
    assert!((secs(295)..secs(330)).contains(&slow), "{slow:?}");
    let hung = sim.hung(VerdictId::SilentHang).expect("hung then");
    let hung = hung.at.since(began);
    assert!((secs(595)..secs(640)).contains(&hung), "{hung:?}");
}

/// A poll loop is time passing, however long it lasts; one long sleep within a decode is not.
#[test]
fn short_sleeps_that_repeat_are_no_hang() {
    let nap = Wait::Call {
        call: "clock_nanosleep".to_owned(),
        timeout_ms: Some(800),
        on: Vec::new(),
        channel: None,
    };
    let mut sim = stopped(&nap);
    for round in 0..240 {
        // it ran in between
        if let Some(probe) = &mut sim.probe {
            for t in &mut probe.processes[0].threads {
                t.run_ns = 1000 * round;
            }
        }
        sim.run_for(secs(5));
    }
    assert_eq!(sim.kills(), 0);
    let long = Wait::Call {
        call: "clock_nanosleep".to_owned(),
        timeout_ms: Some(100_000_000),
        on: Vec::new(),
        channel: None,
    };
    let mut sim = stopped(&long);
    sim.run_for(mins(5));
    assert!(sim.hung(VerdictId::SilentHang).is_some());
}

/// How the thread of the job ended in [`steps_of_a_page_stop`].
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// It waits in its loop, whose bar is open.
    InItsLoop,
    /// It left its loop.
    LeftTheLoop,
    /// Its bar stays open, and the agent says whether the call of the steps has returned.
    KeptItsBar { left: Option<bool> },
}

/// A heartbeat of the agent, whose program has a bar of 24 steps.
fn counts_steps(left: Option<bool>) -> Event {
    let steps = AgentSteps {
        tid: Some(WORKER),
        total: 24.0,
        left,
    };
    Event::Agent(Box::new(AgentNote {
        pid: ROOT,
        word: AgentWord::Beat(Box::new(AgentBeat {
            steps: Some(steps),
            ..AgentBeat::default()
        })),
    }))
}

/// Steps of a page that stop at a third of their bar, whose thread then waits in a futex beside
/// a thread that takes clients. `asked`: seconds before the steps at which a client asked that has
/// had no byte of an answer; negative: after their begin.
fn steps_of_a_page_stop(end: End, asked: Option<i64>) -> Sim {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(mins(12));
    let steps = sim.now;
    sim.feed(Event::Progress(Progress {
        what: None,
        done: 8.0,
        total: Some(24.0),
        seconds_per_step: Some(1.0),
        sampling: true,
        closed: end == End::LeftTheLoop,
    }));
    if let End::KeptItsBar { left } = end {
        sim.feed(counts_steps(left));
    }
    let address = "tcp 127.0.0.1:7860".to_owned();
    let listener = WaitTarget::Listener {
        address: address.clone(),
    };
    let mut probe = waiting(&call("futex", Vec::new()));
    probe.processes[0].threads[0].wait = call("poll", vec![listener]);
    probe.processes[0].listens = vec![address];
    sim.world = World::silent();
    for _ in 0..900 {
        let age = asked.map(|s| sim.now.since(steps).as_secs().cast_signed() + s);
        probe.network = Metric::Fresh(PeerTraffic {
            unanswered_ms: age
                .and_then(|s| u64::try_from(s * 1000).ok())
                .into_iter()
                .collect(),
            ..PeerTraffic::default()
        });
        sim.probe = Some(probe.clone());
        sim.run_for(secs(2));
    }
    sim
}

#[test]
fn steps_that_a_server_left_wait_for_the_next_order() {
    let sim = steps_of_a_page_stop(End::LeftTheLoop, None);
    assert_eq!(sim.kills(), 0, "{:?}", verdict(&sim));
    assert!(sim.hung(VerdictId::SilentHang).is_none());
    let sim = steps_of_a_page_stop(End::InItsLoop, None);
    assert!(sim.hung(VerdictId::SilentHang).is_some());
}

#[test]
fn a_page_may_keep_the_bar_of_a_job_that_it_gave_up() {
    let kept = |left, asked| steps_of_a_page_stop(End::KeptItsBar { left }, asked);
    let sim = kept(Some(true), None);
    assert_eq!(sim.kills(), 0, "{:?}", verdict(&sim));
    assert!(sim.hung(VerdictId::SilentHang).is_none());
    // its thread is still in the call, or that is not known, or the client waits
    for (left, asked) in [
        (Some(false), None),
        (None, None),
        (Some(true), Some(2)),
        (Some(false), Some(2)),
    ] {
        let sim = kept(left, asked);
        let hung = sim.hung(VerdictId::SilentHang);
        assert!(hung.is_some(), "{left:?} {asked:?}");
    }
}

#[test]
fn steps_whose_client_still_waits_for_the_answer_were_not_cancelled() {
    for asked in [2, 90, 9 * 60] {
        let sim = steps_of_a_page_stop(End::LeftTheLoop, Some(asked));
        assert!(sim.hung(VerdictId::SilentHang).is_some(), "{asked}");
    }
    // a client that asked later, or long before for news of the page, has no part in them
    for asked in [-30, 11 * 60] {
        let sim = steps_of_a_page_stop(End::LeftTheLoop, Some(asked));
        let hung = sim.hung(VerdictId::SilentHang);
        assert!(hung.is_none(), "{asked}: {hung:?}");
        assert_eq!(sim.kills(), 0);
    }
}
