//! We are ended: by a key, a signal, or without warning. Nobody is left behind.

use std::time::Duration;

use framepack_tui::model::{Event, Outcome, Signal as Sent};
use rustix::process::Signal;

use crate::harness::{Finished, Home, Running, Start, assert_none_left, recorded_text};

const START: Duration = Duration::from_mins(2);
/// SIGKILL follows this long after SIGTERM, by the rules of the shell.
const GRACE_MS: u64 = 10_000;

/// Works on for ten minutes, ends at SIGTERM.
const OBEDIENT: &str = "
import time
print('ready', flush=True)
for n in range(600):
    time.sleep(1)
    print('tick', n, flush=True)
";

/// Ignores SIGTERM and SIGINT, and so does its child, which has left the process group and
/// holds the output pipes open. Both are silent: a broken pipe does not end them either.
const STUBBORN: &str = "
import os, signal, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    print('ready', flush=True)
while True:
    time.sleep(1)
";

fn start<'a>(home: &'a Home, program: &str) -> Running<'a> {
    let mut run = Start::new(home).python(program).start();
    run.wait_for_line("ready", START);
    run
}

fn assert_interrupted(run: &Finished, code: u8, terminated: bool) {
    run.assert_exit(code);
    let Some(Event::RunFinished { outcome, .. }) = run.last() else {
        panic!("no end{}", run.digest());
    };
    assert_eq!(*outcome, Outcome::Interrupted { terminated });
}

fn sent(event: &Event) -> Option<Sent> {
    match event {
        Event::SignalSent { signal, .. } => Some(*signal),
        _ => None,
    }
}

fn signals(run: &Finished) -> Vec<Sent> {
    run.all(sent)
}

#[test]
fn sigterm_ends_the_run() {
    let home = Home::new();
    let run = start(&home, OBEDIENT);
    run.signal(Signal::TERM);
    let run = run.finish(Duration::from_secs(30));
    assert_interrupted(&run, 143, true);
    assert_eq!(signals(&run), [Sent::Term], "{}", run.digest());
}

#[test]
fn interrupt_ends_the_run() {
    let home = Home::new();
    let run = start(&home, OBEDIENT);
    run.signal(Signal::INT);
    let run = run.finish(Duration::from_secs(30));
    assert_interrupted(&run, 130, false);
}

/// A workload that ignores SIGTERM is killed after the grace time, with the child that
/// left its group.
#[test]
fn stubborn_workload_is_killed_after_the_grace_time() {
    let home = Home::new();
    let run = start(&home, STUBBORN);
    run.signal(Signal::TERM);
    let run = run.finish(Duration::from_mins(1));
    assert_interrupted(&run, 143, true);
    let sent = signals(&run);
    assert_eq!(sent.first(), Some(&Sent::Term));
    assert!(sent.contains(&Sent::Kill), "{}", run.digest());
}

/// The second Ctrl-C does not wait for the grace time.
#[test]
fn second_interrupt_kills_at_once() {
    let home = Home::new();
    let mut run = start(&home, STUBBORN);
    run.signal(Signal::INT);
    // two signals that arrive while the supervisor is not scheduled are one
    let first = run.wait_for("SIGTERM", START, |e| sent(e) == Some(Sent::Term));
    run.signal(Signal::INT);
    let run = run.finish(Duration::from_secs(30));
    assert_interrupted(&run, 130, false);
    let killed = run
        .events
        .iter()
        .find(|h| sent(&h.envelope.event) == Some(Sent::Kill));
    let killed = killed.unwrap_or_else(|| panic!("no SIGKILL{}", run.digest()));
    let waited = killed.envelope.at.0 - first.envelope.at.0;
    assert!(waited < GRACE_MS, "after {waited} ms{}", run.digest());
}

#[test]
fn no_orphan_after_we_are_killed() {
    let home = Home::new();
    let run = start(&home, STUBBORN);
    run.murder();
    assert_none_left(&home);
}

/// The same in the middle of a real generation.
#[test]
fn no_generation_goes_on_after_we_are_killed() {
    let home = Home::new();
    let mut run = Start::new(&home)
        .framepack(&["--step-seconds", "5"])
        .start();
    run.wait_for_line("latent_padding_size", START);
    run.murder();
    assert_none_left(&home);
    // What was written up to a second before is in the record.
    let record = recorded_text(&home.record());
    assert!(record.contains(r#""kind":"spawned""#), "{record}");
}

/// A lost terminal is no end.
#[test]
fn hangup_lets_the_run_go_on() {
    let home = Home::new();
    let program = "
import time
print('ready', flush=True)
time.sleep(6)
print('done', flush=True)
";
    let run = start(&home, program);
    run.signal(Signal::HUP);
    let run = run.finish(Duration::from_mins(1));
    run.assert_exit(0);
    let mut story = run.story();
    story.then(
        "its last line",
        |e| matches!(e, Event::Line(l) if l.text == "done"),
    );
}

/// A child that fails leaves its own child behind, with the pipes open. (After a success what is
/// left is the attempt: see `launcher`.)
#[test]
fn grandchild_is_ended_with_a_run_that_fails() {
    let home = Home::new();
    let program = "
import os, sys, time
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
print('done', flush=True)
sys.exit(3)
";
    let run = Start::new(&home)
        .python(program)
        .start()
        .finish(Duration::from_mins(1));
    run.assert_exit(20);
    assert_eq!(signals(&run).first(), Some(&Sent::Term), "{}", run.digest());
}

/// What a command leaves behind after a success and what rests is ended after a minute, by name.
#[test]
fn grandchild_that_shows_no_job_is_ended_after_a_minute() {
    let home = Home::new();
    let run = Start::new(&home)
        .command(&["bash", "-c", "setsid sleep 600 & echo done"])
        .start()
        .finish(Duration::from_mins(3));
    run.assert_exit(23);
    let named = run.all(|e| match e {
        Event::Notice { text, .. } if text.contains("sleep (pid ") => Some(()),
        _ => None,
    });
    assert_eq!(named.len(), 1, "{}", run.digest());
}
