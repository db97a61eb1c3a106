//! A record through today's rules: the same words, effects and times, or the difference.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use framepack_tui::model::{Envelope, Event, Limits, Mono, Phase};
use framepack_tui::run::replay::{Comparison, Deed, Difference, Replay};
use proptest::prelude::*;

use crate::{follow, props};

fn replay(stream: &[Envelope]) -> (String, Comparison) {
    let Event::RunStarted(started) = &stream[0].event else {
        panic!("no head")
    };
    let mut replay = Replay::new(started);
    let mut effects = String::new();
    for env in stream {
        for effect in replay.feed(env) {
            // every digit: floats are printed so that they read back to the same bits
            writeln!(effects, "{effect:?}").unwrap();
        }
    }
    (effects, replay.finish())
}

/// As it comes out of a record.
fn recorded(stream: &[Envelope]) -> Vec<Envelope> {
    let lines = stream.iter().map(|e| serde_json::to_string(e).unwrap());
    lines.map(|l| serde_json::from_str(&l).unwrap()).collect()
}

fn differences(comparison: &Comparison) -> Vec<String> {
    let differ = |p: &&framepack_tui::run::replay::Pair| {
        p.difference() != Difference::Same || p.is_reworded()
    };
    comparison
        .pairs
        .iter()
        .filter(differ)
        .map(|p| format!("{p:?}"))
        .collect()
}

#[test]
fn the_same_rules_say_the_same_at_the_same_time() {
    for stream in [
        follow::recovery(),
        follow::failure(),
        follow::stopped(),
        follow::switched(),
        follow::switched_while_held(),
    ] {
        let (effects, comparison) = replay(&recorded(&stream));
        assert_eq!(differences(&comparison), Vec::<String>::new());
        assert!(!comparison.differs() && comparison.reworded() == 0);
        assert!(comparison.has_ticks && comparison.parted.is_none());
        for kind in ["Launch(", "Finish("] {
            assert!(effects.contains(kind), "{kind}");
        }
        let (again, second) = replay(&stream);
        assert_eq!(again, effects, "bit for bit");
        assert_eq!(second, comparison);
    }
}

/// As it comes out of `--headless`.
fn headless(stream: &[Envelope]) -> Vec<Envelope> {
    let mut kept = recorded(stream);
    kept.retain(|e| e.event != Event::Tick);
    kept
}

/// The ticks are not in it, and are put back.
#[test]
fn a_saved_headless_stream_replays_to_itself() {
    for stream in [
        follow::recovery(),
        follow::failure(),
        follow::stopped(),
        follow::switched(),
        follow::switched_while_held(),
    ] {
        let (_, comparison) = replay(&headless(&stream));
        assert!(!comparison.has_ticks);
        let differ: Vec<_> = differences(&comparison)
            .into_iter()
            .filter(|p| !p.contains("Verdict("))
            .collect();
        assert_eq!(differ, Vec::<String>::new());
        assert!(!comparison.differs(), "{:?}", differences(&comparison));
    }
}

fn with_limits(mut stream: Vec<Envelope>, limits: Limits) -> Vec<Envelope> {
    if let Event::RunStarted(started) = &mut stream[0].event {
        started.plan.limits = limits;
    }
    stream
}

fn verdict(comparison: &Comparison, difference: Difference) -> bool {
    let verdicts = comparison.pairs.iter().filter(|p| {
        p.told()
            .is_some_and(|t| matches!(t.deed, Deed::Verdict(..)))
    });
    verdicts.into_iter().any(|p| p.difference() == difference)
}

#[test]
fn another_limit_is_seen_as_earlier_later_or_lost() {
    let silence = |seconds| Limits {
        phases: BTreeMap::from([(
            Phase::VaeDecode,
            framepack_tui::model::plan::PhaseLimits {
                silence: Some(Duration::from_secs(seconds)),
                ..Default::default()
            },
        )]),
        ..Limits::default()
    };
    let stream = follow::recovery();
    let (_, late) = replay(&with_limits(stream.clone(), silence(100)));
    assert!(
        late.differs() && verdict(&late, Difference::Lost),
        "{:?}",
        differences(&late)
    );
    // what the record answers is no longer what would have been decided
    assert!(late.parted.is_some_and(|at| at > Mono::ZERO));
    let (_, early) = replay(&with_limits(stream, silence(20)));
    assert!(
        verdict(&early, Difference::Earlier),
        "{:?}",
        differences(&early)
    );
}

#[test]
fn a_record_that_was_cut_off_misses_nothing() {
    let stream = follow::recovery();
    for cut in (1..stream.len()).step_by(5) {
        let (_, comparison) = replay(&stream[..cut]);
        // what was said upon the last event may stand behind the cut: that is no difference
        let differs = differences(&comparison);
        assert_eq!(differs, Vec::<String>::new(), "{cut}");
        assert!(!comparison.differs());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// R16: whatever happens, a record gives what it gave.
    #[test]
    fn any_run_replays_to_itself(acts in proptest::collection::vec(props::act(), 1..25)) {
        let sim = props::play(&acts, Duration::from_secs(2));
        let (_, comparison) = replay(&recorded(&sim.stream));
        let wrong: Vec<_> = differences(&comparison)
            .into_iter()
            // a capture that the world did not answer
            .filter(|p| !p.contains("Evidence("))
            .collect();
        prop_assert_eq!(wrong, Vec::<String>::new());
    }
}
