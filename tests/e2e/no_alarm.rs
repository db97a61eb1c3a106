//! Nothing is wrong, though it may look so: no alarm, no signal.

use std::time::Duration;

use framepack_tui::model::event::Standstill;
use framepack_tui::model::{Event, Health, JobChange, VerdictId};
use rustix::process::Signal;

use crate::harness::{Card, Finished, Home, Start, kill_group, python, workload};

const LIMIT: Duration = Duration::from_mins(6);
/// Longer than any silence limit with its assessments.
const LONG_SILENCE: Duration = Duration::from_secs(75);

/// Nobody was called hung, nothing was decided, signalled or started again.
fn assert_no_alarm(run: &Finished) {
    for heard in &run.events {
        let alarm = match &heard.envelope.event {
            Event::Verdict(v) => {
                !v.id.is_no_fault()
                    && matches!(v.health, Health::Hung | Health::Failing | Health::Failed)
            }
            Event::Decision(_) | Event::EvidenceTaken(_) => true,
            Event::AttemptStarted(spec) => spec.number > 1,
            _ => false,
        };
        assert!(
            !alarm,
            "false alarm at {:?}{}",
            heard.envelope,
            run.digest()
        );
    }
}

fn assert_no_signal(run: &Finished) {
    let signals = run.all(|e| matches!(e, Event::SignalSent { .. }).then_some(()));
    assert!(signals.is_empty(), "{}", run.digest());
}

#[test]
fn healthy_generation() {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let start =
        Start::new(&home)
            .card(&card)
            .options(&["--profile", "generic-amd", "--cap", "20GiB"]);
    let run = start.framepack(&[]).start().finish(LIMIT);
    run.assert_exit(0);
    assert_no_alarm(&run);
    assert_no_signal(&run);

    let Some(Event::RunStarted(head)) = run.events.first().map(|h| &h.envelope.event) else {
        panic!("no head{}", run.digest());
    };
    assert_eq!(head.gpu.as_ref().map(|g| g.0.as_str()), Some(Card::ADDRESS));
    assert_eq!(head.vram_cap.map(|b| b.0), Some(20 << 30));
    assert!(!head.interactive);

    let sections = run.all(|e| match e {
        Event::Artefact(a) => Some(a.path.clone()),
        _ => None,
    });
    assert_eq!(
        sections.len(),
        3,
        "a video after each section: {sections:?}"
    );
    let Some(Event::RunFinished {
        result: Some(result),
        ..
    }) = run.last()
    else {
        panic!("no result{}", run.digest());
    };
    assert_eq!(Some(&result.path), sections.last());
    let busiest = run.all(|e| match e {
        Event::Sample(s) => s.gpus.first().and_then(|g| g.busy.fresh().copied()),
        _ => None,
    });
    assert!(
        busiest.contains(&97.0),
        "the card's work was not seen: {busiest:?}"
    );
}

/// The same program without any card: a notice, and the run goes on.
#[test]
fn no_card_is_a_notice() {
    let home = Home::new();
    let run = Start::new(&home).framepack(&[]).start().finish(LIMIT);
    run.assert_exit(0);
    assert_no_alarm(&run);
    let Some(Event::RunStarted(head)) = run.events.first().map(|h| &h.envelope.event) else {
        panic!("no head{}", run.digest());
    };
    let notices = run.all(|e| match e {
        Event::Notice { text, .. } => Some(text.clone()),
        _ => None,
    });
    // The machine that runs the tests may have a card of its own.
    assert!(
        head.gpu.is_some() || !notices.is_empty(),
        "{}",
        run.digest()
    );
}

#[test]
fn slow_decode_is_not_a_hang() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let start = Start::new(&home)
        .card(&card)
        .options(&["--profile", "generic-amd"]);
    let run = start.framepack(&CRAWL).start().finish(LIMIT);
    run.assert_exit(0);
    assert_no_alarm(&run);
    assert_no_signal(&run);
}

/// A decode of more than a minute without a line.
const CRAWL: [&str; 4] = ["--fault", "crawl", "--crawl-seconds", "0.5"];

#[test]
fn stopped_child_is_left_alone_and_goes_on() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut run = Start::new(&home)
        .card(&card)
        .options(&["--profile", "generic-amd"])
        .framepack(&["--step-seconds", "1", "--sections", "1"])
        .start();
    let (_, pgid) = run.spawned(1);
    run.wait_for_line("latent_padding_size", Duration::from_mins(2));
    kill_group(pgid, Signal::STOP).unwrap();
    std::thread::sleep(LONG_SILENCE);
    kill_group(pgid, Signal::CONT).unwrap();
    let run = run.finish(LIMIT);
    run.assert_exit(0);
    assert_no_alarm(&run);
    assert_no_signal(&run);
    let cut = run.all(|e| match e {
        Event::Standstill { cause, .. } => Some(*cause),
        _ => None,
    });
    assert!(cut.contains(&Standstill::ChildStopped), "{}", run.digest());
}

#[test]
fn server_waits_for_its_user() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let server = workload("tiny_framepack_server.py");
    let words = [
        python(),
        server,
        "--port".into(),
        free_port().into(),
        "--out".into(),
        home.out(),
    ];
    let mut run = Start::new(&home)
        .card(&card)
        .options(&["--profile", "generic-amd"])
        .command(&words)
        .start();
    run.wait_for(
        "the server to wait for its user",
        Duration::from_mins(2),
        |e| matches!(e, Event::Job(JobChange::Waiting)),
    );
    std::thread::sleep(LONG_SILENCE);
    run.signal(Signal::TERM);
    let run = run.finish(Duration::from_secs(30));
    run.assert_exit(143);
    assert_no_alarm(&run);
    let verdicts = run.all(|e| match e {
        Event::Verdict(v) => Some(v.id),
        _ => None,
    });
    assert!(
        verdicts.contains(&VerdictId::IdleWaiting),
        "{}",
        run.digest()
    );
}

/// A port that was free a moment ago.
fn free_port() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port().to_string()
}
