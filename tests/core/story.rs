//! Stories: a world changes, the core must say and do the right thing in time.

use std::time::Duration;

use framepack_tui::model::{
    ActionId, Command, Envelope, Event, ExitStatus, FindMark, Health, JobChange, Metric, Outcome,
    Phase, RungId, VerdictId,
};
use framepack_tui::run::snapshot::Stage;

use crate::sim::{Sim, World, plan, rung};

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn outcome(sim: &Sim) -> Outcome {
    match sim.state.snapshot().outcome {
        Some((outcome, ..)) => outcome,
        None => panic!("the run is not over"),
    }
}

#[test]
fn a_silent_decode_is_proven_ended_and_restarted_on_fast_find() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    let onset = sim.now;
    sim.world = World::silent();
    sim.run_for(secs(90));

    let suspect = sim
        .find(|e| matches!(e, Event::Verdict(v) if v.health == Health::Suspect))
        .expect("suspected");
    assert!(suspect.at.since(onset) <= secs(20), "R1: first suspicion");
    let hung = sim.hung(VerdictId::SilentHang).expect("declared");
    assert!(
        hung.at.since(onset) >= secs(45),
        "R5: never below the floor"
    );
    assert!(hung.at.since(onset) <= secs(60), "R1: {:?}", hung.at);
    let Event::Verdict(v) = &hung.event else {
        unreachable!()
    };
    assert_eq!(v.phase, Phase::VaeDecode);
    assert!(!v.findings.is_empty() && v.findings.iter().all(|f| !f.seqs.is_empty()));

    let seq = |fits: &dyn Fn(&Event) -> bool| sim.find(fits).map(|e| e.seq);
    let decided = seq(&|e| matches!(e, Event::Decision(_))).expect("decision");
    let evidence = seq(&|e| matches!(e, Event::EvidenceTaken(_))).expect("evidence");
    let signal = seq(&|e| matches!(e, Event::SignalSent { .. })).expect("signal");
    let gone = seq(&|e| matches!(e, Event::GroupGone { .. })).expect("gone");
    let second =
        seq(&|e| matches!(e, Event::AttemptStarted(a) if a.number == 2)).expect("second attempt");
    assert!(hung.seq < decided && decided < evidence && evidence < signal);
    assert!(signal < gone && gone < second);

    let attempt = sim.state.snapshot().attempt.expect("attempt");
    assert_eq!(attempt.rung, RungId("fast_find".to_owned()));
    let change = &attempt.env[0];
    assert_eq!(change.value.as_deref(), Some("FAST"));
    assert_eq!(
        change.overrides.as_deref(),
        Some("NORMAL"),
        "says whom it overrides"
    );

    sim.world = World::default();
    sim.feed(Event::Job(JobChange::Started));
    sim.run_for(secs(20));
    sim.exit(ExitStatus::Code(0));
    sim.run_for(secs(2));
    assert_eq!(outcome(&sim), Outcome::Finished { restarts: 1 });
    assert_eq!(outcome(&sim).exit_code(), 10);
}

#[test]
fn the_lock_held_by_a_blocked_thread_does_not_hide_the_hang() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    let onset = sim.now;
    sim.world = World {
        poller_hz: 390,
        ..World::silent()
    };
    sim.run_for(secs(60));
    let hung = sim.hung(VerdictId::SilentHang).expect("declared");
    assert!(hung.at.since(onset) <= secs(60));
}

#[test]
fn an_honest_crawl_is_left_alone() {
    for percent in [0.8, 0.2, 0.1] {
        let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
        sim.world = World {
            worker_percent: percent,
            worker_slice_ns: 1_000_000,
            ..World::silent()
        };
        sim.run_for(secs(1800));
        assert_eq!(sim.kills(), 0, "{percent} %");
        assert!(sim.hung(VerdictId::SilentHang).is_none(), "{percent} %");
    }
}

#[test]
fn a_server_may_wait_for_hours() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.feed(Event::Job(JobChange::Waiting));
    sim.phase(Phase::Idle);
    sim.world = World::silent();
    sim.run_for(secs(6 * 3600));
    assert_eq!(sim.kills(), 0);
    assert_eq!(sim.state.snapshot().verdict.id, VerdictId::IdleWaiting);
}

#[test]
fn a_stopped_child_is_paused_and_judged_afresh_afterwards() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        state: 'T',
        ..World::silent()
    };
    sim.run_for(secs(3600));
    let verdict = sim.state.snapshot().verdict;
    assert_eq!(verdict.id, VerdictId::Paused);
    assert!(
        verdict.sentence.contains("kill -CONT"),
        "{}",
        verdict.sentence
    );
    assert_eq!(sim.kills(), 0);
    let reminders = sim.stream.iter().filter_map(|e| match &e.event {
        Event::Notice { text, .. } => text.strip_prefix("still paused: "),
        _ => None,
    });
    let reminders: Vec<_> = reminders.collect();
    assert_eq!(reminders.len(), 3, "{reminders:?}");
    for (reminder, after) in reminders.iter().zip(["60 s ago", "5 min", "30 min"]) {
        assert!(reminder.contains(after), "{reminder}");
    }
    sim.world = World::silent();
    sim.run_for(secs(40));
    assert_eq!(sim.kills(), 0, "the time it was stopped does not count");
    sim.run_for(secs(30));
    assert!(sim.hung(VerdictId::SilentHang).is_some());
}

/// The job waits for a child that is stopped: one pause, until the child runs or the job goes on.
#[test]
fn a_job_that_rests_for_a_stopped_child_stays_paused() {
    let mut sim = Sim::running_in(plan(), Phase::Save);
    sim.world = World {
        stopped: vec![300],
        ..World::silent()
    };
    sim.run_for(secs(3600));
    assert_eq!(sim.state.snapshot().verdict.id, VerdictId::Paused);
    let told = |id| {
        let all = sim.stream.iter();
        all.filter(|e| matches!(&e.event, Event::Verdict(v) if v.id == id))
            .count()
    };
    assert_eq!(told(VerdictId::Paused), 1);
    assert_eq!(sim.kills(), 0);
    sim.step_bar(1.0);
    sim.run_for(secs(3));
    assert_ne!(sim.state.snapshot().verdict.id, VerdictId::Paused);
}

#[test]
fn a_spin_is_called_a_spin_and_an_open_find_a_stall() {
    let spin = World {
        worker_percent: 100.0,
        ..World::silent()
    };
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    let onset = sim.now;
    sim.world = spin.clone();
    sim.run_for(secs(200));
    let hung = sim.hung(VerdictId::SpinHang).expect("spin");
    let after = hung.at.since(onset);
    assert!(after >= secs(120) && after <= secs(140), "{after:?}");

    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    let onset = sim.now;
    sim.world = spin;
    sim.feed(Event::Find(FindMark::Opened {
        key: "conv -n 1 -c 96".to_owned(),
    }));
    sim.run_for(secs(200));
    let hung = sim.hung(VerdictId::FindStall).expect("stall");
    let after = hung.at.since(onset);
    assert!(after >= secs(120) && after <= secs(140), "{after:?}");
    assert!(sim.hung(VerdictId::SpinHang).is_none());
}

/// Steps that end between two readings, or are told twice, say nothing of the card.
#[test]
fn many_steps_between_two_readings_cost_the_card_no_trust() {
    let spin = World {
        worker_percent: 100.0,
        ..World::silent()
    };
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(10));
    for step in 1..=8 {
        sim.step_bar(f64::from(step));
    }
    sim.world = spin.clone();
    sim.phase(Phase::VaeDecode);
    let onset = sim.now;
    sim.run_for(secs(200));
    let hung = sim.hung(VerdictId::SpinHang).expect("spin");
    assert!(hung.at.since(onset) <= secs(140));

    // a card that reads idle through steps is not believed when it does so later
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.world = spin;
    for step in 1..=4 {
        sim.step_bar(f64::from(step));
        sim.run_for(secs(1));
    }
    sim.phase(Phase::VaeDecode);
    sim.run_for(secs(200));
    assert!(sim.hung(VerdictId::SpinHang).is_none());
}

#[test]
fn a_find_that_advances_is_no_stall() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        worker_percent: 100.0,
        ..World::silent()
    };
    sim.feed(Event::Find(FindMark::Opened {
        key: "k".to_owned(),
    }));
    for left in (0..60).rev() {
        sim.run_for(secs(50));
        sim.feed(Event::Find(FindMark::Advance {
            detail: format!("{left} runs left"),
        }));
    }
    assert_eq!(sim.kills(), 0);
    assert_eq!(sim.state.snapshot().verdict.id, VerdictId::CompileWarmup);
}

#[test]
fn a_card_that_cannot_be_read_blinds_and_never_kills() {
    for broken in [
        Metric::Failed {
            why: "EIO".to_owned(),
            for_ms: 10,
        },
        Metric::Stale {
            value: 0.0,
            age_ms: 60_000,
        },
        Metric::Unsupported,
    ] {
        let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
        sim.world = World {
            busy: broken.clone(),
            power: broken.clone(),
            ..World::silent()
        };
        sim.run_for(secs(3600));
        assert_eq!(sim.kills(), 0, "{broken:?}");
        let told = sim.state.snapshot().verdict;
        assert_eq!(told.health, Health::Blind);
        // no rule was asked, and each says why
        assert!(!told.considered.is_empty());
        assert!(
            told.considered
                .iter()
                .all(framepack_tui::model::Considered::is_not_asked)
        );
    }
}

#[test]
fn a_dead_busy_counter_beside_a_living_power_reading_still_proves_a_hang() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        busy: Metric::Failed {
            why: "EIO".to_owned(),
            for_ms: 10,
        },
        ..World::silent()
    };
    sim.run_for(secs(70));
    assert!(sim.hung(VerdictId::SilentHang).is_some());
}

#[test]
fn an_unreadable_process_blinds() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        process: false,
        ..World::silent()
    };
    sim.run_for(secs(600));
    assert_eq!(sim.kills(), 0);
    assert_eq!(sim.state.snapshot().verdict.health, Health::Blind);
}

#[test]
fn full_busy_at_idle_power_is_a_wedged_queue() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    let onset = sim.now;
    sim.world = World {
        busy: Metric::Fresh(100.0),
        power: Metric::Fresh(60.0),
        ..World::silent()
    };
    sim.run_for(secs(120));
    let hung = sim.hung(VerdictId::BusyIdle).expect("busy_idle");
    assert!(hung.at.since(onset) <= secs(90));
}

#[test]
fn errors_in_the_text_outrank_the_exit() {
    for (text, status, want) in [
        (
            "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
            ExitStatus::Signal(6),
            VerdictId::BlockAllocator,
        ),
        (
            "RuntimeError: miopenStatusUnknownError",
            ExitStatus::Code(1),
            VerdictId::NoAlgorithm,
        ),
        (
            "torch.OutOfMemoryError: HIP out of memory. Tried",
            ExitStatus::Code(1),
            VerdictId::GpuOom,
        ),
        (
            "nothing of the kind",
            ExitStatus::Signal(9),
            VerdictId::Killed,
        ),
        (
            "nothing of the kind",
            ExitStatus::Signal(11),
            VerdictId::CrashSegv,
        ),
        (
            "nothing of the kind",
            ExitStatus::Code(3),
            VerdictId::AppError,
        ),
    ] {
        let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
        sim.line(text);
        sim.exit(status);
        sim.run_for(secs(30));
        assert_eq!(sim.state.snapshot().verdict.id, want, "{text}");
        assert_eq!(outcome(&sim), Outcome::Failed, "{text}");
        assert!(sim.find(|e| matches!(e, Event::EvidenceTaken(_))).is_some());
        assert_eq!(sim.kills(), 0);
    }
}

#[test]
fn rungs_without_an_agent_are_skipped_with_their_reason() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.line("RuntimeError: miopenStatusUnknownError");
    sim.exit(ExitStatus::Code(1));
    sim.run_for(secs(30));
    let decision = sim
        .find(|e| matches!(e, Event::Decision(_)))
        .expect("decision");
    let Event::Decision(d) = &decision.event else {
        unreachable!()
    };
    assert_eq!(d.skipped.len(), 1);
    assert_eq!(d.skipped[0].rung, RungId("tiled_vae".to_owned()));
    assert!(d.why.contains("cannot be taken"), "{}", d.why);
}

#[test]
fn an_allocator_storm_that_stops_moving_is_named_after_its_lines() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    for _ in 0..6 {
        sim.line("HSA exception: MemoryRegion::BlockAllocator::alloc failed.");
    }
    sim.world = World::silent();
    sim.run_for(secs(90));
    assert!(sim.hung(VerdictId::BlockAllocator).is_some());
    assert_eq!(outcome(&sim), Outcome::GaveUp);
}

#[test]
fn an_oom_that_was_survived_is_forgotten() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.line("torch.OutOfMemoryError: HIP out of memory. Tried");
    sim.phase(Phase::Sampling);
    sim.step_bar(1.0);
    sim.exit(ExitStatus::Code(3));
    sim.run_for(secs(30));
    assert_eq!(sim.state.snapshot().verdict.id, VerdictId::AppError);
}

#[test]
fn a_death_without_words_is_judged_by_its_signal() {
    for (signal, verdict) in [(9, VerdictId::Killed), (11, VerdictId::CrashSegv)] {
        let mut sim = Sim::running_in(plan(), Phase::Sampling);
        sim.feed(Event::Job(JobChange::Failed { why: None }));
        sim.exit(ExitStatus::Signal(signal));
        sim.run_for(secs(5));
        assert!(sim.first_verdict(verdict).is_some(), "{signal}");
    }
}

#[test]
fn the_kernels_victim_died_of_host_memory() {
    let mut sim = Sim::running_in(plan(), Phase::ModelLoad);
    sim.feed(Event::Kernel {
        text: "Out of memory: Killed process 101 (python) total-vm:1kB".to_owned(),
    });
    sim.exit(ExitStatus::Signal(9));
    sim.run_for(secs(30));
    assert_eq!(sim.state.snapshot().verdict.id, VerdictId::HostOom);
}

#[test]
fn an_attempt_knows_which_fault_it_answers() {
    let mut plan = plan();
    let of_memory = [VerdictId::HostOom];
    plan.ladder
        .push(rung("free_memory", ActionId::FreeMemory, &of_memory, &[]));
    let mut sim = Sim::running_in(plan, Phase::ModelLoad);
    assert_eq!(sim.state.answers(), None);
    sim.feed(Event::Kernel {
        text: "Out of memory: Killed process 101 (python) total-vm:1kB".to_owned(),
    });
    sim.exit(ExitStatus::Signal(9));
    sim.run_for(secs(30));
    let rung = |sim: &Sim| sim.state.snapshot().attempt.map(|a| a.rung.0);
    assert_eq!(rung(&sim).as_deref(), Some("free_memory"));
    assert_eq!(sim.state.answers(), Some(VerdictId::HostOom));
    // the user's own wish answers nothing
    sim.feed(Event::Command(Command::TakeRung {
        rung: RungId("retry_same".to_owned()),
    }));
    sim.run_for(secs(60));
    assert_eq!(rung(&sim).as_deref(), Some("retry_same"));
    assert_eq!(sim.state.answers(), None);
}

#[test]
fn the_restart_waits_for_vram_and_is_refused_if_it_never_comes() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        vram_lags: secs(20),
        ..World::silent()
    };
    sim.run_for(secs(62));
    assert!(matches!(
        sim.state.snapshot().stage,
        Stage::WaitingVram { .. }
    ));
    assert!(
        sim.find(|e| matches!(e, Event::VramWaiting { .. }))
            .is_some()
    );
    sim.run_for(secs(30));
    let back = sim
        .find(|e| matches!(e, Event::VramReclaimed { complete: true, .. }))
        .expect("reclaimed");
    let again = sim
        .find(|e| matches!(e, Event::AttemptStarted(a) if a.number == 2))
        .expect("second attempt");
    assert!(back.seq < again.seq);

    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        vram_lags: secs(4000),
        ..World::silent()
    };
    sim.run_for(secs(300));
    assert_eq!(outcome(&sim), Outcome::GaveUp);
}

#[test]
fn what_survives_sigkill_is_named_and_blocks() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        term_kills: false,
        kill_kills: false,
        ..World::silent()
    };
    sim.run_for(secs(120));
    assert_eq!(outcome(&sim), Outcome::Unkillable { pids: vec![101] });
    assert_eq!(
        sim.kills(),
        3,
        "TERM, KILL to the group, KILL to the tree; no loop"
    );
}

#[test]
fn a_countdown_can_be_held_released_and_spared() {
    let mut p = plan();
    p.countdown = secs(3);
    let mut sim = Sim::running_in(p.clone(), Phase::VaeDecode);
    sim.world = World::silent();
    while !matches!(sim.state.snapshot().stage, Stage::Countdown { .. }) {
        sim.run_for(Duration::from_millis(500));
    }
    sim.feed(Event::Command(Command::Hold));
    sim.run_for(secs(600));
    assert_eq!(sim.kills(), 0, "held");
    sim.feed(Event::Command(Command::Release));
    sim.run_for(secs(6));
    assert!(sim.kills() > 0, "released");

    // a minute that was granted while it was held is not lost by the release
    let mut sim = Sim::running_in(p.clone(), Phase::VaeDecode);
    sim.world = World::silent();
    while !matches!(sim.state.snapshot().stage, Stage::Countdown { .. }) {
        sim.run_for(Duration::from_millis(500));
    }
    for command in [Command::Hold, Command::Wait, Command::Release] {
        sim.feed(Event::Command(command));
    }
    sim.run_for(secs(50));
    assert_eq!(sim.kills(), 0, "a minute more");
    sim.run_for(secs(20));
    assert!(sim.kills() > 0, "the minute is over");

    let mut sim = Sim::running_in(p, Phase::VaeDecode);
    sim.world = World::silent();
    while !matches!(sim.state.snapshot().stage, Stage::Countdown { .. }) {
        sim.run_for(Duration::from_millis(500));
    }
    sim.world = World::default();
    sim.run_for(secs(10));
    assert_eq!(sim.kills(), 0, "it moved again");
    assert!(matches!(sim.state.snapshot().stage, Stage::Watching));
}

#[test]
fn the_user_may_stop_at_any_time() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.feed(Event::Command(Command::Stop));
    sim.run_for(secs(2));
    assert_eq!(outcome(&sim), Outcome::Interrupted { terminated: false });

    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.world.term_kills = false;
    sim.feed(Event::Command(Command::Terminate));
    sim.run_for(secs(30));
    assert_eq!(outcome(&sim), Outcome::Interrupted { terminated: true });
}

#[test]
fn a_server_whose_job_failed_is_not_ended_for_want_of_a_rung() {
    let mut p = plan();
    p.server = true;
    let mut sim = Sim::running_in(p, Phase::VaeDecode);
    sim.line("ValueError: boom");
    sim.feed(Event::Job(JobChange::Failed {
        why: Some("ValueError: boom".to_owned()),
    }));
    sim.feed(Event::Job(JobChange::Waiting));
    sim.phase(Phase::Idle);
    sim.world = World::silent();
    sim.run_for(secs(600));
    assert_eq!(sim.kills(), 0);
    let v = sim.first_verdict(VerdictId::AppError).expect("told");
    let Event::Verdict(v) = &v.event else {
        unreachable!()
    };
    assert_eq!(v.health, Health::Failing);
    assert!(sim.alive);
}

#[test]
fn a_suspended_machine_cuts_the_window() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World::silent();
    sim.run_for(secs(40));
    sim.feed(Event::Standstill {
        cause: framepack_tui::model::event::Standstill::MachineSuspended,
        for_ms: 3_600_000,
    });
    sim.run_for(secs(40));
    assert_eq!(sim.kills(), 0);
}

#[test]
fn a_second_hang_on_the_last_rung_gives_up() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World::silent();
    sim.run_for(secs(80));
    sim.feed(Event::Job(JobChange::Started));
    sim.phase(Phase::VaeDecode);
    sim.run_for(secs(120));
    assert_eq!(outcome(&sim), Outcome::GaveUp);
    assert_eq!(outcome(&sim).exit_code(), 21);
    let tried = sim.state.snapshot().ladder;
    assert!(format!("{tried:?}").contains("silent_hang after"));
}

#[test]
fn the_power_of_an_open_context_is_no_work() {
    // figures of an H200: 79 W before the launch, 123 W with a context, cap 700 W
    let mut sim = Sim::new(plan());
    sim.world.idle_power = 79.0;
    sim.world.power_cap = Metric::Fresh(700.0);
    sim.start(Phase::VaeDecode);
    sim.world = World {
        power: Metric::Fresh(123.0),
        ..sim.world.clone().made_silent()
    };
    sim.run_for(secs(60));
    assert!(sim.hung(VerdictId::SilentHang).is_some());
}

#[test]
fn a_busy_counter_stuck_at_zero_does_not_hide_work() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.world = World {
        power: Metric::Fresh(300.0),
        ..World::silent()
    };
    sim.run_for(secs(1200));
    assert_eq!(sim.kills(), 0);
}

#[test]
fn a_spin_on_a_crowded_machine_is_still_a_spin() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world = World {
        worker_percent: 30.0,
        cpu_pressure: 95.0,
        ..World::silent()
    };
    sim.run_for(secs(200));
    assert!(sim.hung(VerdictId::SpinHang).is_some());
}

#[test]
fn the_record_says_for_how_long_the_child_was_stopped() {
    let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
    sim.world.state = 'T';
    sim.run_for(secs(100));
    sim.world.state = 'S';
    sim.run_for(secs(2));
    let cut = sim
        .find(|e| matches!(e, Event::Standstill { .. }))
        .expect("told");
    let Event::Standstill { cause, for_ms } = cut.event else {
        unreachable!()
    };
    assert_eq!(cause, framepack_tui::model::event::Standstill::ChildStopped);
    assert!((99_000..=101_000).contains(&for_ms), "{for_ms}");
}

#[test]
fn memory_above_the_cap_is_told_once_an_attempt() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.world.vram = Metric::Fresh(framepack_tui::model::Bytes::gib(22));
    sim.run_for(secs(60));
    let told = sim
        .stream
        .iter()
        .filter(
            |e| matches!(&e.event, Event::Notice { text, .. } if text.contains("above the cap")),
        )
        .count();
    assert_eq!(told, 1);
}

#[test]
fn a_point_of_the_charts_has_the_rates_of_its_own_sample() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.world.read_bps = 0;
    sim.run_for(secs(10));
    sim.world.read_bps = 1 << 20;
    sim.run_for(secs(1));
    let snapshot = sim.state.snapshot();
    let point = snapshot.history.back().expect("points");
    assert!(snapshot.read_bps.is_some_and(|bps| bps > 0.0));
    assert_eq!(
        (point.cpu, point.io_bps),
        (
            snapshot.cpu_percent,
            snapshot
                .read_bps
                .zip(snapshot.write_bps)
                .map(|(r, w)| r + w)
        )
    );
}

#[test]
fn the_snapshot_says_when_each_phase_began() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(10));
    let decode_at = sim.now;
    sim.phase(Phase::VaeDecode);
    sim.phase(Phase::VaeDecode);
    sim.run_for(secs(2));
    let snapshot = sim.state.snapshot();
    let phases: Vec<_> = snapshot.phases.iter().copied().collect();
    assert_eq!(phases[0].1, Phase::Startup);
    assert_eq!(
        phases.last(),
        Some(&(decode_at, Phase::VaeDecode)),
        "a phase that is told again did not begin again"
    );
    assert!(phases.is_sorted_by_key(|(at, _)| *at));
    // The point of a chart holds what the card said, and nothing where it said nothing.
    let point = snapshot.history.back().expect("points");
    assert_eq!(point.busy, Some(97.0));
    assert!(
        point
            .watts_per_busy()
            .is_some_and(|w| (w - 310.0 / 97.0).abs() < 1e-9)
    );
}

#[test]
fn what_our_own_worker_refuses_ends_the_run_with_its_code_and_walks_no_ladder() {
    let ends = |program: &str, code: i32| {
        let mut p = plan();
        p.argv = [program, "worker", "decode"].map(str::to_owned).to_vec();
        let answers = [VerdictId::AppError];
        p.ladder = vec![rung("again", ActionId::TiledVae, &answers, &[])];
        let mut sim = Sim::running_in(p, Phase::VaeDecode);
        sim.feed(Event::Job(JobChange::Failed {
            why: Some("it is damaged".to_owned()),
        }));
        sim.exit(ExitStatus::Code(code));
        sim.run_for(secs(60));
        let told = |e: &Envelope| matches!(e.event, Event::Decision(_));
        let decided = sim.stream.iter().any(told);
        let snapshot = sim.state.snapshot();
        let (end, code, summary) = snapshot.outcome.expect("the run is over");
        assert_eq!(end, Outcome::Failed);
        (code, decided, summary)
    };
    for code in [64, 65, 66, 69] {
        let (end, decided, summary) = ends("/bin/framepack-tui", code);
        assert_eq!((i32::from(end), decided), (code, false));
        assert!(summary.contains("it is damaged"), "{summary}");
    }
    for (program, code) in [("framepack-tui", 1), ("python", 65)] {
        let (end, decided, _) = ends(program, code);
        assert_eq!((end, decided), (20, true), "{program}");
    }
}
