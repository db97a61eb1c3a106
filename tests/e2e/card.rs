//! The card fails, blocks or vanishes; its memory does not come back at once.

use std::cell::Cell;
use std::time::Duration;

use framepack_tui::model::sample::SourceState;
use framepack_tui::model::{Event, GpuSample, Health, Metric, Outcome};

use crate::harness::{Card, Finished, Home, Running, Start};

const LIMIT: Duration = Duration::from_mins(6);

/// A generation of about a minute.
fn start<'a>(home: &'a Home, card: &'a Card, seconds_a_step: &str) -> Running<'a> {
    let start = Start::new(home)
        .card(card)
        .options(&["--profile", "generic-amd"]);
    let mut run = start.framepack(&["--step-seconds", seconds_a_step]).start();
    run.wait_for_line("latent_padding_size", Duration::from_mins(2));
    run
}

fn assert_finished_in_peace(run: &Finished) {
    run.assert_exit(0);
    let hung = run.all(|e| match e {
        Event::Verdict(v) if v.health == Health::Hung => Some(v.sentence.clone()),
        _ => None,
    });
    assert!(hung.is_empty(), "a false verdict: {hung:?}{}", run.digest());
}

/// What the only card showed, in order.
fn samples(run: &Finished) -> Vec<GpuSample> {
    run.all(|e| match e {
        Event::Sample(s) => s.gpus.first().cloned(),
        _ => None,
    })
}

#[test]
fn failing_read_is_shown_as_failed_and_never_as_zero() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    card.set("busy=42");
    let run = start(&home, &card, "1");
    card.break_file("gpu_busy_percent", "eio");
    let run = run.finish(LIMIT);
    assert_finished_in_peace(&run);
    let samples = samples(&run);
    let failed = samples
        .iter()
        .filter(|s| matches!(s.busy, Metric::Failed { .. }))
        .count();
    assert!(failed >= 4, "{failed} failed readings{}", run.digest());
    let zero = samples
        .iter()
        .find(|s| s.busy.last().is_some_and(|b| *b == 0.0));
    assert!(zero.is_none(), "a zero that was not measured: {zero:?}");
    let memory = samples
        .last()
        .is_some_and(|s| s.vram_used.fresh().is_some());
    assert!(memory, "the other readings go on");
}

#[test]
fn vanished_reading_is_not_zero() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    card.set("busy=42");
    let run = start(&home, &card, "1");
    card.break_file("gpu_busy_percent", "missing");
    let run = run.finish(LIMIT);
    assert_finished_in_peace(&run);
    let samples = samples(&run);
    assert!(
        samples.iter().any(|s| s.busy.fresh() == Some(&42.0)),
        "{}",
        run.digest()
    );
    let last = &samples.last().unwrap().busy;
    assert!(last.fresh().is_none(), "still shown as read: {last:?}");
    assert!(samples.iter().all(|s| s.busy.last() != Some(&0.0)));
}

/// Reading blocks for ever, as on a wedged card: the source is stale after 2 s and lost
/// after 30 s, and the program goes on.
#[test]
fn blocking_read_is_a_lost_source() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let run = start(&home, &card, "2");
    card.break_file("gpu_busy_percent", "stall");
    let run = run.finish(LIMIT);
    assert_finished_in_peace(&run);
    let mut story = run.story();
    for wanted in [SourceState::Stale, SourceState::Lost] {
        let what = format!("source {wanted:?}");
        story.next(&what, |e| match e {
            Event::Source(s) if s.state == wanted && s.name.contains(Card::ADDRESS) => Some(()),
            _ => None,
        });
    }
}

/// An APU that was probed first and two cards: the list goes by address and tells HIP's
/// order; one of them vanishes and comes back, and the others do not notice.
#[test]
fn one_of_three_cards_vanishes_and_comes_back() {
    let lost = "0000:13:00.0";
    let home = Home::new();
    let card = Card::several(&[
        "strixhalo:bdf=0000:c5:00.0",
        "rx9070xt:bdf=0000:13:00.0",
        "rx7900xtx:bdf=0000:03:00.0",
    ]);
    let mut run = start(&home, &card, "1");
    let seen = Cell::new("there");
    let follow = |wanted: &'static str| {
        let seen = &seen;
        move |e: &Event| {
            let Event::Sample(s) = e else { return false };
            let Some(gpu) = s.gpus.iter().find(|g| g.id.0 == lost) else {
                return false;
            };
            let gone = gpu.state.fresh().is_some_and(|s| s == "gone");
            match (seen.get(), gone) {
                ("there", true) => seen.set("gone"),
                ("gone", false) if gpu.busy.fresh().is_some() => seen.set("back"),
                _ => {}
            }
            seen.get() == wanted
        }
    };
    card.vanish(lost);
    run.wait_for("a card that is gone", LIMIT, follow("gone"));
    card.come_back(lost);
    seen.set("there");
    run.wait_for("the card again", LIMIT, follow("back"));
    let run = run.finish(LIMIT);
    assert_finished_in_peace(&run);
    let all = run.all(|e| match e {
        Event::Sample(s) => Some(s.gpus.clone()),
        _ => None,
    });
    for gpus in &all {
        let order: Vec<_> = gpus
            .iter()
            .map(|g| (g.index, g.id.0.as_str(), g.compute_index))
            .collect();
        assert_eq!(order[0], (0, "0000:03:00.0", Some(2)));
        assert_eq!((order[1].0, order[1].1), (1, lost));
        assert_eq!(order[2], (2, "0000:c5:00.0", Some(0)));
        for other in [&gpus[0], &gpus[2]] {
            let failed = matches!(other.busy, Metric::Failed { .. });
            assert!(!failed, "{}: {:?}", other.id, other.busy);
        }
        let zero = gpus[1].vram_total.last().is_some_and(|total| total.0 == 0);
        assert!(!zero, "memory that was not measured");
    }
}

/// The child sees the cards that the variables show it: the first of them is watched,
/// unless the user says which.
#[test]
fn the_card_that_the_variables_show_the_child_is_watched() {
    let card = Card::several(&[
        "strixhalo:bdf=0000:c5:00.0",
        "rx9070xt:bdf=0000:13:00.0",
        "rx7900xtx:bdf=0000:03:00.0",
    ]);
    for (variable, value, options, want) in [
        ("HIP_VISIBLE_DEVICES", "2", &[][..], "0000:03:00.0"),
        ("CUDA_VISIBLE_DEVICES", "1,0", &[][..], "0000:13:00.0"),
        (
            "HIP_VISIBLE_DEVICES",
            "2",
            &["--gpu", "0000:c5:00.0"][..],
            "0000:c5:00.0",
        ),
        (
            "HIP_VISIBLE_DEVICES",
            "2",
            &["--gpu", "1"][..],
            "0000:13:00.0",
        ),
    ] {
        let home = Home::new();
        let start = Start::new(&home)
            .card(&card)
            .env(variable, value)
            .options(options);
        let run = start.command(&["sleep", "1"]).start().finish(LIMIT);
        run.assert_exit(0);
        let watched = run.all(|e| match e {
            Event::RunStarted(r) => Some(r.gpu.clone().map(|id| id.0)),
            _ => None,
        });
        assert_eq!(
            watched,
            [Some(want.to_owned())],
            "{variable}={value} {options:?}"
        );
    }
}

/// The memory comes back 15 s after the first attempt is gone: the second waits for it,
/// and says so.
#[test]
fn restart_waits_for_the_memory() {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 15);
    let run = Start::new(&home)
        .card(&card)
        .options(&["--profile", "generic-amd"])
        .framepack(&[
            "--fault",
            "hang-idle",
            "--cured-by",
            "MIOPEN_FIND_MODE=FAST",
        ])
        .start()
        .finish(LIMIT);
    run.assert_exit(10);
    let mut story = run.story();
    story.then("end of the first group", |e| {
        matches!(e, Event::GroupGone { attempt: 1 })
    });
    let (_, (used, before)) = story.next("wait for the memory", |e| match e {
        Event::VramWaiting { used, before } => Some((*used, *before)),
        _ => None,
    });
    assert!(
        used.0 > 16 << 30 && before.0 < 1 << 30,
        "{used} of {before}"
    );
    let (_, (took_ms, complete)) = story.next("memory that came back", |e| match e {
        Event::VramReclaimed {
            took_ms, complete, ..
        } => Some((*took_ms, *complete)),
        _ => None,
    });
    assert!(
        complete && (10_000..40_000).contains(&took_ms),
        "{took_ms} ms, {complete}"
    );
    story.then(
        "second attempt",
        |e| matches!(e, Event::AttemptStarted(s) if s.number == 2),
    );
    assert!(matches!(
        run.last(),
        Some(Event::RunFinished {
            outcome: Outcome::Finished { restarts: 1 },
            ..
        })
    ));
}
