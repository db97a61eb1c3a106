//! Requests of screens that show what is no longer so, and who sees an announcement.

use std::time::Duration;

use framepack_tui::model::event::Choice;
use framepack_tui::model::{Command, Event, Phase, Request, RungId, Setting, VerdictId};
use framepack_tui::run::COUNTDOWN;
use framepack_tui::run::snapshot::Stage;

use crate::sim::{Sim, World, plan};

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// A command that is given at what the screen shows now.
fn at_this(sim: &Sim, command: Command) -> Request {
    Request {
        command,
        seen: sim.state.snapshot().seen(),
    }
}

fn refused(sim: &Sim, request: &Request) -> bool {
    sim.state.stale(request, false).is_some()
}

fn attempt(sim: &Sim) -> u32 {
    sim.state.snapshot().seen().attempt
}

/// Ended for the word of a user, so that another attempt begins.
fn restart(sim: &mut Sim) {
    let before = attempt(sim);
    sim.feed(Event::Command(Command::ApplyNow));
    sim.run_for(secs(20));
    assert_eq!(attempt(sim), before + 1);
}

#[test]
fn what_was_meant_for_one_attempt_is_not_done_to_the_next() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    sim.run_for(secs(5));
    let rung = RungId("fast_find".to_owned());
    let of_attempt = [
        Command::Wait,
        Command::FalseAlarm,
        Command::Resend,
        Command::StopAfterStep,
        Command::ApplyNow,
        Command::TakeRung { rung },
    ];
    let of_attempt = of_attempt.map(|command| at_this(&sim, command));
    let of_run = [Command::Stop, Command::Kill, Command::Evidence];
    let of_run = of_run.map(|command| at_this(&sim, command));
    for request in of_attempt.iter().chain(&of_run) {
        assert!(!refused(&sim, request), "{request:?}");
    }
    restart(&mut sim);
    for request in &of_attempt {
        let why = sim.state.stale(request, false);
        let why = why.unwrap_or_else(|| panic!("{request:?} is obeyed"));
        assert!(why.contains("attempt 2 has begun"), "{why}");
        // also where the last choice was made on the same screen
        assert!(sim.state.stale(request, true).is_some());
    }
    for request in &of_run {
        assert!(!refused(&sim, request), "{request:?}");
    }
}

#[test]
fn a_kill_that_is_announced_no_more_is_not_held() {
    let mut plan = plan();
    plan.countdown = secs(20);
    let mut sim = Sim::running_in(plan, Phase::VaeDecode);
    let early = at_this(&sim, Command::Hold);
    assert!(refused(&sim, &early), "nothing is announced");
    sim.world = World::silent();
    while !matches!(sim.state.snapshot().stage, Stage::Countdown { .. }) {
        sim.run_for(secs(1));
    }
    let (hold, alarm) = (
        at_this(&sim, Command::Hold),
        at_this(&sim, Command::FalseAlarm),
    );
    assert!(!refused(&sim, &hold) && !refused(&sim, &alarm));
    sim.world = World::default();
    sim.run_for(secs(10));
    assert_ne!(
        sim.state.snapshot().seen().verdict,
        Some(VerdictId::SilentHang)
    );
    assert!(refused(&sim, &hold), "it moves again");
    assert!(refused(&sim, &alarm), "the verdict is another one");
}

#[test]
fn a_choice_of_another_screen_is_neither_applied_nor_saved_unseen() {
    let mut sim = Sim::running_in(plan(), Phase::Sampling);
    let id = "mine".to_owned();
    let requests = [Command::ApplyNow, Command::SaveProfile { id }];
    let requests = requests.map(|command| at_this(&sim, command));
    sim.feed(Event::Command(Command::Set {
        setting: Setting::FindMode,
        value: Some("FAST".to_owned()),
    }));
    for request in &requests {
        assert!(refused(&sim, request), "{request:?}");
        assert_eq!(
            sim.state.stale(request, true),
            None,
            "the choice was its own"
        );
        let again = at_this(&sim, request.command.clone());
        assert!(!refused(&sim, &again), "{again:?}");
    }
}

/// Restarts that were decided, with the time that each leaves.
fn announced(sim: &Sim) -> Vec<u64> {
    let restarts = sim.stream.iter().filter_map(|env| match &env.event {
        Event::Decision(d) => match &d.choice {
            Choice::Restart { kill_at, .. } => Some(kill_at.0 - env.at.0),
            _ => None,
        },
        _ => None,
    });
    restarts.collect()
}

#[test]
fn a_kill_is_announced_while_a_screen_is_attached() {
    let countdown = framepack_tui::model::time::millis(COUNTDOWN);
    for (commands, left) in [
        (&[][..], 0),
        (&[Command::ScreenAttached], countdown),
        (&[Command::ScreenAttached, Command::TerminalLost], 0),
    ] {
        let mut sim = Sim::running_in(plan(), Phase::VaeDecode);
        for command in commands {
            sim.feed(Event::Command(command.clone()));
        }
        sim.world = World::silent();
        sim.run_for(secs(70));
        assert_eq!(announced(&sim).first(), Some(&left), "{commands:?}");
    }
}
