//! The lock of the card is free when the card is, whoever of us was killed.

use std::time::Duration;

use framepack_tui::model::{Bytes, CardHeld, Event, Outcome};
use rustix::process::Signal;

use crate::harness::{BINARY, Card, Home, Running, Start, kill, wait_until};

const START: Duration = Duration::from_mins(2);

/// Ignores SIGTERM, so that a guardian needs its SIGKILL.
const STUBBORN: &str = "
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
time.sleep(600)
";

/// A run whose program holds 17 GiB of the card; the process that holds them.
fn start_first<'a>(home: &'a Home, card: &'a Card, program: &str) -> (Running<'a>, u32) {
    let mut words = card.client(Bytes::gib(17));
    words.extend([crate::harness::python().into(), "-c".into(), program.into()]);
    let mut run = Start::new(home).card(card).command(&words).start();
    run.wait_for_line("ready", START);
    let (pid, _) = run.spawned(1);
    (run, pid)
}

fn start_next<'a>(home: &'a Home, card: &'a Card) -> Running<'a> {
    let program = "print('the next one runs', flush=True)";
    Start::new(home).card(card).python(program).start()
}

/// The guardian: the parent of the workload.
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit(") ").next().unwrap();
    fields.split(' ').nth(1).unwrap().parse().unwrap()
}

fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z"))
}

fn held(event: &Event) -> Option<&CardHeld> {
    match event {
        Event::CardHeld(held) => Some(held),
        _ => None,
    }
}

/// The guardian of a killed supervisor ends the program; the next run begins after that.
#[test]
fn the_next_run_waits_for_the_guardian_of_a_killed_supervisor() {
    let (home, card) = (Home::new(), Card::rx7900xtx());
    let (first, pid) = start_first(&home, &card, STUBBORN);
    let guardian = parent(pid);
    // it cannot end the program before the next run has seen it
    kill(guardian, Signal::STOP).unwrap();
    first.murder();
    let mut next = start_next(&home, &card);
    let heard = next.wait_for("card_held", START, |e| {
        held(e).is_some_and(|h| h.guardian == Some(guardian))
    });
    assert!(held(&heard.envelope.event).unwrap().run.is_some());
    assert!(lives(pid));
    kill(guardian, Signal::CONT).unwrap();
    next.spawned(1);
    assert!(!lives(pid) && !lives(guardian));
    let next = next.finish(START);
    next.assert_exit(0);
    let mut story = next.story();
    story.then("card_held", |e| held(e).is_some());
    story.then("card_free", |e| matches!(e, Event::CardFree { .. }));
    story.then("attempt_started", |e| matches!(e, Event::AttemptStarted(_)));
}

/// Nobody ends what is left where both were killed: the next run names it, and begins when it is
/// gone.
#[test]
fn the_next_run_names_what_a_killed_supervisor_and_guardian_have_left() {
    let (home, card) = (Home::new(), Card::rx7900xtx());
    let (first, pid) = start_first(&home, &card, STUBBORN);
    let guardian = parent(pid);
    kill(guardian, Signal::STOP).unwrap();
    first.murder();
    kill(guardian, Signal::KILL).unwrap();
    let mut next = start_next(&home, &card);
    let heard = next.wait_for("card_held", START, |e| {
        held(e).is_some_and(|h| h.guardian.is_none())
    });
    let told = held(&heard.envelope.event).unwrap();
    assert_eq!(told.processes.len(), 1, "{told:?}");
    assert_eq!(
        (told.processes[0].pid, told.processes[0].vram),
        (pid, Some(Bytes::gib(17)))
    );
    assert!(told.run.is_some(), "{told:?}");
    assert!(told.cure().contains(&format!("kill -9 {pid}")), "{told:?}");
    assert!(lives(pid));
    kill(pid, Signal::KILL).unwrap();
    let next = next.finish(START);
    next.assert_exit(0);
    next.story()
        .then("card_free", |e| matches!(e, Event::CardFree { .. }));
}

/// The wait ends with Ctrl-C, and by itself after a minute, and nothing is launched then. Plain
/// output names the process and what ends it.
#[test]
fn the_wait_for_the_card_is_cancelled_by_a_key_and_bounded() {
    let (home, card) = (Home::new(), Card::rx7900xtx());
    let (first, pid) = start_first(&home, &card, STUBBORN);
    let guardian = parent(pid);
    kill(guardian, Signal::STOP).unwrap();
    first.murder();
    kill(guardian, Signal::KILL).unwrap();

    let mut next = start_next(&home, &card);
    next.wait_for("card_held", START, |e| held(e).is_some());
    next.signal(Signal::INT);
    let interrupted = wait_until(START, || {
        next.events().iter().any(|h| {
            matches!(
                &h.envelope.event,
                Event::RunFinished {
                    outcome: Outcome::Interrupted { terminated: false },
                    ..
                }
            )
        })
    });
    assert!(interrupted && lives(pid));
    let began = |e: &Event| matches!(e, Event::AttemptStarted(_));
    assert!(!next.events().iter().any(|h| began(&h.envelope.event)));
    drop(next);

    let mut plain = card.inside(BINARY);
    plain.args(["run", "--plain", "--", "true"]);
    home.dress(&mut plain);
    plain.current_dir(home.dir());
    plain.env("FPT_TIME_SCALE", "1");
    let output = plain.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(69), "{text}");
    assert!(
        text.contains(&format!("(pid {pid}, S, 17.0 GiB)")),
        "{text}"
    );
    assert!(text.contains(&format!("kill -9 {pid}")), "{text}");
    kill(pid, Signal::KILL).unwrap();
}

/// Where the guardian alone is killed, the supervisor ends the program; the next run begins after
/// that, also where the program ignores SIGTERM.
#[test]
fn the_next_run_waits_for_the_supervisor_of_a_killed_guardian() {
    for _ in 0..3 {
        let (home, card) = (Home::new(), Card::rx7900xtx());
        let (first, pid) = start_first(&home, &card, STUBBORN);
        let guardian = parent(pid);
        kill(guardian, Signal::KILL).unwrap();
        // each is refused until the first has ended, and then one begins
        let began = wait_until(START, || {
            let mut next = card.inside(BINARY);
            next.args(["run", "--plain", "--", "sh", "-c", "echo next"]);
            home.dress(&mut next);
            let output = next.current_dir(home.dir()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let began = text.contains("out| next");
            assert!(
                !(began && lives(pid)),
                "it began while {pid} lived:\n{text}"
            );
            let code = output.status.code();
            assert!(
                matches!((began, code), (true, Some(0)) | (false, Some(69))),
                "{code:?}: {text}"
            );
            began
        });
        assert!(began, "no run began");
        first.finish(START).assert_exit(20);
    }
}
