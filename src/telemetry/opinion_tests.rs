use proptest::prelude::*;

use super::*;
use crate::model::{GpuId, Vendor};

fn card(busy: Metric<f64>) -> GpuSample {
    let id = GpuId("0000:03:00.0".to_owned());
    let mut card = GpuSample::unread(id, 0, Vendor::Amd, "card".to_owned(), "sysfs");
    card.state = Metric::Fresh("active".to_owned());
    card.busy = busy;
    card
}

fn says(busy: Metric<f64>) -> Opinion {
    Opinion {
        busy,
        ..Opinion::default()
    }
}

fn failed<T>(why: &str) -> Metric<T> {
    Metric::Failed {
        why: why.to_owned(),
        for_ms: 0,
    }
}

#[test]
fn a_zero_where_sysfs_fails_is_told_at_once_with_what_is_known() {
    let mut comparison = Comparison::default();
    let told = comparison.of(
        &card(failed("gpu_busy_percent: Input/output error")),
        &says(Metric::Fresh(0.0)),
        true,
    );
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].value, "busy");
    assert_eq!(told[0].first, "gpu_busy_percent: Input/output error");
    assert_eq!(told[0].second, "0 %");
    assert_eq!(told[0].note.as_deref(), Some(ZERO_NOTE));
}

#[test]
fn a_difference_counts_after_so_many_answers_in_a_row_and_ends_with_agreement() {
    let mut comparison = Comparison::default();
    let sysfs = card(Metric::Fresh(97.0));
    let low = says(Metric::Fresh(12.0));
    for _ in 1..BUSY_IN_A_ROW {
        assert_eq!(comparison.of(&sysfs, &low, true), []);
    }
    // the same answer looked at again is no further one
    assert_eq!(comparison.of(&sysfs, &low, false), []);
    let told = comparison.of(&sysfs, &low, true);
    assert_eq!(
        (told[0].first.as_str(), told[0].second.as_str()),
        ("97 %", "12 %")
    );
    assert_eq!(told[0].note, None);
    assert_eq!(comparison.of(&sysfs, &says(Metric::Fresh(90.0)), true), []);
    assert_eq!(comparison.of(&sysfs, &low, true), [], "counted anew");
}

#[test]
fn a_load_that_jumps_is_no_contradiction() {
    let mut comparison = Comparison::default();
    // the second source is half a period late all the time
    for n in 0..40 {
        let (now, late) = if n % 2 == 0 {
            (100.0, 0.0)
        } else {
            (0.0, 100.0)
        };
        let told = comparison.of(&card(Metric::Fresh(now)), &says(Metric::Fresh(late)), true);
        assert_eq!(told, []);
    }
}

#[test]
fn a_counter_that_jumps_differs_by_chance_but_power_does_not() {
    // an RX 500's counter reads 0 or 100 while a third of the time is worked; read twice
    // at different moments
    let mut comparison = Comparison::default();
    let mut random = 12_345_u32;
    let mut next = move || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if random >> 24 < 85 { 100.0 } else { 0.0 }
    };
    for _ in 0..2000 {
        let (ours, theirs) = (next(), next());
        let told = comparison.of(
            &card(Metric::Fresh(ours)),
            &says(Metric::Fresh(theirs)),
            true,
        );
        assert_eq!(told, []);
    }
    let mut comparison = Comparison::default();
    let mut hot = card(Metric::Unsupported);
    hot.power_w = Metric::Fresh(290.0);
    let mut second = says(Metric::Unsupported);
    second.power_w = Metric::Fresh(30.0);
    let told: Vec<_> = (0..3)
        .map(|_| comparison.of(&hot, &second, true).len())
        .collect();
    assert_eq!(told, [0, 0, 1]);
}

#[test]
fn sizes_count_at_once() {
    let mut sysfs = card(Metric::Unsupported);
    sysfs.vram_total = Metric::Fresh(Bytes(24 << 30));
    let mut second = says(Metric::Unsupported);
    second.vram_total = Metric::Fresh(Bytes(16 << 30));
    let told = Comparison::default().of(&sysfs, &second, true);
    assert_eq!(told[0].value, "vram_total");
    assert_eq!(told[0].first, "24.0 GiB (25769803776 B)");
}

#[test]
fn silence_age_and_sleep_contradict_nobody() {
    let mut comparison = Comparison::default();
    let stale = || Metric::Stale {
        value: 97.0,
        age_ms: 4000,
    };
    let mut asleep = card(failed("the card sleeps"));
    asleep.state = Metric::Fresh("suspended".to_owned());
    let zero = says(Metric::Fresh(0.0));
    for _ in 0..5 {
        assert_eq!(comparison.of(&asleep, &zero, true), []);
        assert_eq!(comparison.of(&card(stale()), &zero, true), []);
        assert_eq!(comparison.of(&card(Metric::Unsupported), &zero, true), []);
        let silent = says(failed("rsmi: status 4"));
        assert_eq!(comparison.of(&card(Metric::Fresh(97.0)), &silent, true), []);
    }
}

fn any_metric() -> impl Strategy<Value = Metric<f64>> {
    prop_oneof![
        any::<f64>().prop_map(Metric::Fresh),
        (0.0..100.0).prop_map(Metric::Fresh),
        any::<f64>().prop_map(|value| Metric::Stale { value, age_ms: 1 }),
        Just(failed("x")),
        Just(Metric::Unsupported),
    ]
}

fn any_bytes() -> impl Strategy<Value = Metric<Bytes>> {
    prop_oneof![
        any::<u64>().prop_map(|b| Metric::Fresh(Bytes(b))),
        Just(failed("x")),
        Just(Metric::Unsupported),
    ]
}

proptest! {
    #[test]
    fn any_two_readings_are_survived(
        rounds in prop::collection::vec((any_metric(), any_metric(), any_bytes(), any_bytes(), any::<bool>()), 1..12),
    ) {
        let mut comparison = Comparison::default();
        for (a, b, c, d, new) in rounds {
            let mut sysfs = card(a.clone());
            (sysfs.power_w, sysfs.fan_rpm, sysfs.temp_mem) = (a.clone(), a.clone(), a);
            (sysfs.vram_used, sysfs.gtt_total) = (c.clone(), c);
            let mut second = says(b.clone());
            (second.power_w, second.fan_rpm, second.temp_mem) = (b.clone(), b.clone(), b);
            (second.vram_used, second.gtt_total) = (d.clone(), d);
            for told in comparison.of(&sysfs, &second, new) {
                prop_assert_ne!(told.first, told.second);
            }
        }
    }

    #[test]
    fn equal_values_never_disagree(busy in -1e6..1e6, used in any::<u64>(), total in any::<u64>()) {
        let mut comparison = Comparison::default();
        let mut sysfs = card(Metric::Fresh(busy));
        sysfs.vram_used = Metric::Fresh(Bytes(used));
        sysfs.vram_total = Metric::Fresh(Bytes(total));
        let second = Opinion {
            vram_used: sysfs.vram_used.clone(),
            vram_total: sysfs.vram_total.clone(),
            ..says(sysfs.busy.clone())
        };
        for _ in 0..4 {
            prop_assert_eq!(comparison.of(&sysfs, &second, true), []);
        }
    }
}
