//! Commands that return while their job runs on.

use std::path::Path;
use std::time::Duration;

use framepack_tui::model::{Event, Health, Outcome, Phase, Scope, VerdictId};

use crate::harness::{Card, Finished, Home, Start, python, workload};

const LIMIT: Duration = Duration::from_mins(3);

/// Rests, so that nothing but the agent shows that it lives, and writes a result.
const JOB: &str = "
import sys, time
time.sleep(4)
open(sys.argv[1], 'w').write('done')
sys.exit(int(sys.argv[2]))
";

/// Ways in which a shell leaves `\"$@\"` behind.
const WAYS: [(&str, &str); 5] = [
    ("in the background", "\"$@\" > b.txt 2>&1 & echo started"),
    ("nohup", "nohup \"$@\" > b.txt 2>&1 & echo started"),
    ("setsid", "setsid \"$@\" > b.txt 2>&1 & echo started"),
    ("in a subshell", "(\"$@\" > b.txt 2>&1 &) ; echo started"),
    (
        "forked twice",
        "(setsid bash -c '\"$@\" > b.txt 2>&1 &' again \"$@\" &) ; echo started",
    ),
];

fn launch<'a>(home: &'a Home, way: &str, result: &Path, code: &str) -> Start<'a> {
    Start::new(home).command(&[
        "bash".as_ref(),
        "-c".as_ref(),
        way.as_ref(),
        "launcher".as_ref(),
        python().as_os_str(),
        "-c".as_ref(),
        JOB.as_ref(),
        result.as_os_str(),
        code.as_ref(),
    ])
}

fn left_running(run: &Finished) -> Vec<String> {
    let names = run.all(|e| match e {
        Event::CommandReturned { processes, .. } => {
            Some(processes.iter().map(|p| p.name.clone()).collect::<Vec<_>>())
        }
        _ => None,
    });
    names.concat()
}

fn signals(run: &Finished) -> usize {
    let sent = |e: &Event| matches!(e, Event::SignalSent { .. }).then_some(());
    run.all(sent).len()
}

#[test]
fn what_a_launcher_leaves_comes_to_its_end() {
    for (what, way) in WAYS {
        let home = Home::new();
        let result = home.path("result");
        let run = launch(&home, way, &result, "0").start().finish(LIMIT);
        run.assert_exit(0);
        assert!(result.is_file(), "{what}: no result{}", run.digest());
        let left = left_running(&run);
        assert!(
            left.iter().any(|name| name.starts_with("python")),
            "{what}: {left:?}{}",
            run.digest()
        );
        assert_eq!(signals(&run), 0, "{what}{}", run.digest());
        let ends = run.all(|e| matches!(e, Event::Exited(_)).then_some(()));
        assert_eq!(ends.len(), 1, "{what}: one end{}", run.digest());
    }
}

#[test]
fn a_background_job_that_fails_is_no_success() {
    for (what, code, way) in [
        ("by itself", "3", WAYS[0].1),
        ("as a session of its own", "3", WAYS[2].1),
        (
            "by a signal",
            "0",
            // it kills itself, since a process that sends the signal would end after it
            "bash -c '\"$@\"; kill -9 $$' job \"$@\" > b.txt 2>&1 & echo started",
        ),
    ] {
        let home = Home::new();
        let result = home.path("result");
        let run = launch(&home, way, &result, code).start().finish(LIMIT);
        run.assert_exit(20);
        let Some(Event::RunFinished { outcome, .. }) = run.last() else {
            panic!("{what}: no end{}", run.digest());
        };
        assert_eq!(*outcome, Outcome::Failed, "{what}{}", run.digest());
    }
}

/// Ctrl-C ends what the launcher left, wherever it went.
#[test]
fn the_user_ends_what_a_launcher_left() {
    let home = Home::new();
    let result = home.path("result");
    let mut run = launch(&home, WAYS[4].1, &result, "0").start();
    run.wait_for("the command has returned", LIMIT, |e| {
        matches!(e, Event::CommandReturned { .. })
    });
    run.signal(rustix::process::Signal::INT);
    let run = run.finish(LIMIT);
    run.assert_exit(130);
    assert!(!result.exists(), "it went on{}", run.digest());
}

#[test]
fn a_hang_behind_a_launcher_comes_home() {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let run = Start::new(&home)
        .card(&card)
        .options(&["--profile", "generic-amd"])
        .command(&["bash", "-c", "\"$@\" & echo started", "launcher"])
        .command(&[
            python(),
            workload("tiny_framepack.py"),
            "--out".into(),
            home.out(),
        ])
        .command(&["--fault", "hang-idle"])
        .command(&["--cured-by", "MIOPEN_FIND_MODE=2"])
        .command(&["--cured-by", "MIOPEN_FIND_MODE=FAST"])
        .start()
        .finish(Duration::from_mins(6));
    run.assert_exit(10);
    let mut story = run.story();
    story.then("the return of the command", |e| {
        matches!(e, Event::CommandReturned { attempt: 1, .. })
    });
    story.then("the hang", |e| {
        matches!(e, Event::Verdict(v) if v.id == VerdictId::FindStall
            && v.health == Health::Hung && v.phase == Phase::VaeDecode)
    });
    story.then("a signal to the whole tree", |e| {
        matches!(
            e,
            Event::SignalSent {
                scope: Scope::Tree,
                ..
            }
        )
    });
    story.then(
        "the second attempt",
        |e| matches!(e, Event::AttemptStarted(a) if a.number == 2),
    );
    story.then("its return", |e| {
        matches!(e, Event::CommandReturned { attempt: 2, .. })
    });
}
