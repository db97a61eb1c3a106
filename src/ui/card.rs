//! The words for one card: what throttles it, its link, its memory pool, what a second
//! source says. The same on screen and in plain text.

use crate::model::{
    Bytes, Disagreement, GpuSample, Link, Metric, Opinion, Resets, ThrottleReason, Vendor,
    is_suspended,
};

use super::text::number;
use super::words::{Reading, Tone, gib, pool, quantity, reading};

/// `HIP 1`, `CUDA 0`: the position in the list that the workload sees before any
/// `*_VISIBLE_DEVICES`; absent where it cannot be told.
pub(super) fn compute_index(g: &GpuSample) -> Option<String> {
    let list = match g.vendor {
        Vendor::Amd => "HIP",
        Vendor::Nvidia => "CUDA",
        Vendor::Unknown => return None,
    };
    g.compute_index.map(|index| format!("{list} {index}"))
}

/// The busy counter, with a word where another source contradicts it.
pub(super) fn busy(g: &GpuSample) -> Reading {
    let mut r = quantity(&g.busy, 0, "%");
    if g.busy.fresh().is_some() && g.disagreements.iter().any(|d| d.value == "busy") {
        r.text = format!("{} disputed", r.text);
        r.tone = Tone::Warn;
    }
    r
}

/// An APU tells the power of the whole package, its CPU included.
pub(super) const fn power_label(g: &GpuSample) -> &'static str {
    if g.apu { "package" } else { "power" }
}

/// The runtime status; a card that is not active is not read, or only in part.
pub(super) fn state(metric: &Metric<String>) -> Reading {
    let mut r = reading(metric, |state| match state.as_str() {
        "suspended" => "asleep (suspended)".to_owned(),
        other => other.to_owned(),
    });
    if r.tone == Tone::Plain && r.text != "active" {
        r.tone = Tone::Warn;
    }
    r
}

/// What stands in the place of all readings of a card that has none: it sleeps, and
/// reading would wake it, or it is gone. Neither is a failure of each reading.
pub(super) fn unread(g: &GpuSample) -> Option<Reading> {
    let read = g.busy.last().is_some() || g.power_w.last().is_some();
    if read || pool(g).1.last().is_some() {
        return None;
    }
    match g.state.last()?.as_str() {
        s if is_suspended(s) => Some(Reading {
            text: "asleep, not read".to_owned(),
            note: Some("reading would wake it".to_owned()),
            tone: Tone::Dim,
        }),
        "gone" => Some(Reading {
            text: "gone".to_owned(),
            note: quantity(&g.busy, 0, "%").note,
            tone: Tone::Bad,
        }),
        _ => None,
    }
}

/// A reading that fails for less is no trouble yet: a counter that needs two readings
/// has none after its first.
const FAILS_MS: u64 = 1_000;

/// How many readings fail of a card of which others are read.
pub(super) fn failing(g: &GpuSample) -> usize {
    const fn fails<T>(metric: &Metric<T>) -> bool {
        matches!(metric, Metric::Failed { for_ms, .. } if *for_ms >= FAILS_MS)
    }
    if unread(g).is_some() {
        return 0;
    }
    let numbers = [
        &g.busy,
        &g.mem_busy,
        &g.video_busy,
        &g.power_w,
        &g.power_cap_w,
        &g.temp_edge,
        &g.temp_junction,
        &g.temp_mem,
        &g.sclk_mhz,
        &g.mclk_mhz,
        &g.fan_rpm,
        &g.fan_percent,
    ];
    let sizes = [
        &g.vram_used,
        &g.vram_total,
        &g.gtt_used,
        &g.gtt_total,
        &g.ttm_limit,
    ];
    let others = [
        fails(&g.state),
        fails(&g.throttle),
        fails(&g.link),
        fails(&g.perf_level),
        fails(&g.resets),
    ];
    numbers.into_iter().filter(|m| fails(m)).count()
        + sizes.into_iter().filter(|m| fails(m)).count()
        + others.into_iter().filter(|fails| *fails).count()
}

/// What holds a card back: `throttled: power; level low (forced)`.
pub(super) fn held_back(g: &GpuSample) -> Option<String> {
    let reasons = g.throttle.last().filter(|reasons| !reasons.is_empty());
    let forced = g.perf_level.last().filter(|level| *level != "auto");
    let words: Vec<_> = reasons
        .map(|_| format!("throttled: {}", throttle(&g.throttle).text))
        .into_iter()
        .chain(forced.map(|_| format!("level {}", level(&g.perf_level).text)))
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// `none`, or what holds the clocks down: `power, thermal`.
pub(super) fn throttle(metric: &Metric<Vec<ThrottleReason>>) -> Reading {
    let mut r = reading(metric, |reasons| match reasons.as_slice() {
        [] => "none".to_owned(),
        reasons => {
            let words: Vec<_> = reasons.iter().map(|r| r.word()).collect();
            words.join(", ")
        }
    });
    if r.tone == Tone::Plain && r.text != "none" {
        r.tone = Tone::Warn;
    }
    r
}

/// `16.0 GT/s x16`, and the best where that is another.
pub(super) fn link(metric: &Metric<Link>) -> Reading {
    reading(metric, |l| {
        let shown = |gts: f64, width: u8| format!("{} GT/s x{width}", number(gts, 1));
        let now = shown(l.gts, l.width);
        let best = shown(l.max_gts.unwrap_or(l.gts), l.max_width.unwrap_or(l.width));
        if best == now {
            now
        } else {
            format!("{now} (best {best})")
        }
    })
}

/// The performance level; one that is not `auto` is forced.
pub(super) fn level(metric: &Metric<String>) -> Reading {
    let mut r = reading(metric, |level| match level.as_str() {
        "auto" => "auto".to_owned(),
        forced => format!("{forced} (forced)"),
    });
    if r.tone == Tone::Plain && r.text != "auto" {
        r.tone = Tone::Warn;
    }
    r
}

/// What a device core dump means.
pub(super) const CORE_DUMP: &str = "core dump: it hung or was reset in the last minutes";

/// Whether a device core dump lies there.
pub(super) fn has_core_dump(metric: &Metric<Resets>) -> bool {
    metric.last().and_then(|r| r.core_dump) == Some(true)
}

/// Resets as far as the kernel tells.
pub(super) fn resets(metric: &Metric<Resets>) -> Reading {
    let mut r = reading(metric, |r| {
        let count = match r.count {
            Some(1) => "1 since the driver was loaded".to_owned(),
            Some(n) => format!("{n} since the driver was loaded"),
            None => "not counted by this kernel".to_owned(),
        };
        let mut parts = vec![count];
        if !r.kinds.is_empty() {
            parts.push(format!("possible: {}", r.kinds.join(", ")));
        }
        if r.core_dump == Some(true) {
            parts.push(CORE_DUMP.to_owned());
        }
        parts.join("; ")
    });
    let counted = metric.last().and_then(|r| r.count).is_some_and(|n| n > 0);
    if r.tone == Tone::Plain && (counted || has_core_dump(metric)) {
        r.tone = Tone::Warn;
    }
    r
}

/// `41.0/96.0 GiB`, with what is wrong with either.
pub(super) fn used_of(used: &Metric<Bytes>, total: &Metric<Bytes>) -> Reading {
    let whole = total
        .last()
        .map_or_else(|| "--".to_owned(), |total| gib(*total));
    reading(used, |used| format!("{}/{whole} GiB", gib(*used)))
}

/// Which of an APU's two pools counts, with the size of both and the kernel's limit:
/// never their sum. Absent for a card with memory of its own.
pub(super) fn unified(g: &GpuSample) -> Option<String> {
    let size = |m: &Metric<Bytes>| reading(m, |b| format!("{} GiB", gib(*b))).short();
    let (counts, _, _) = pool(g);
    let (gtt, vram) = (size(&g.gtt_total), size(&g.vram_total));
    // the point of it first: a narrow view cuts the end
    let mut words = if counts == "gtt" {
        format!("GTT {gtt} alone counts, not VRAM {vram}")
    } else {
        format!("VRAM {vram} alone counts, not GTT {gtt}")
    };
    if g.ttm_limit.is_supported() {
        words = format!("{words}; TTM limit {}", size(&g.ttm_limit));
    }
    g.apu.then_some(words)
}

/// A value that two sources tell, in the words of the rows.
fn value_word(field: &str) -> &str {
    match field {
        "power_w" => "power",
        "power_cap_w" => "power cap",
        "mem_busy" => "memory busy",
        "vram_used" => "vram in use",
        "vram_total" => "vram",
        "gtt_used" => "gtt in use",
        "gtt_total" => "gtt",
        "temp_edge" => "edge",
        "temp_junction" => "junction",
        "temp_mem" => "mem",
        "fan_rpm" => "fan",
        other => other,
    }
}

/// Name of the second source.
fn second_name(g: &GpuSample) -> &str {
    g.second.as_ref().map_or("second source", |s| &s.source)
}

/// `busy: sysfs 97 %, rocm-smi 0 %`, and what is known of the cause.
pub(super) fn disagreement(g: &GpuSample, d: &Disagreement) -> String {
    let words = format!(
        "{}: {} {}, {} {}",
        value_word(&d.value),
        g.source,
        d.first,
        second_name(g),
        d.second
    );
    match &d.note {
        Some(note) => format!("{words} ({note})"),
        None => words,
    }
}

/// What both sources speak of: a word, what the first says, what the second says.
pub(super) fn opinions(g: &GpuSample, o: &Opinion) -> Vec<(&'static str, Reading, Reading)> {
    let size = |m: &Metric<Bytes>| reading(m, |b| format!("{} GiB", gib(*b)));
    let all = [
        ("busy", quantity(&g.busy, 0, "%"), quantity(&o.busy, 0, "%")),
        (
            power_label(g),
            quantity(&g.power_w, 0, "W"),
            quantity(&o.power_w, 0, "W"),
        ),
        ("vram", size(&g.vram_used), size(&o.vram_used)),
        (
            "junction",
            quantity(&g.temp_junction, 0, "C"),
            quantity(&o.temp_junction, 0, "C"),
        ),
        (
            "mem busy",
            quantity(&g.mem_busy, 0, "%"),
            quantity(&o.mem_busy, 0, "%"),
        ),
        ("gtt", size(&g.gtt_used), size(&o.gtt_used)),
        (
            "edge",
            quantity(&g.temp_edge, 0, "C"),
            quantity(&o.temp_edge, 0, "C"),
        ),
        (
            "mem",
            quantity(&g.temp_mem, 0, "C"),
            quantity(&o.temp_mem, 0, "C"),
        ),
        (
            "fan",
            quantity(&g.fan_rpm, 0, "rpm"),
            quantity(&o.fan_rpm, 0, "rpm"),
        ),
    ];
    // what the second source does not know is no opinion
    all.into_iter().filter(|told| told.2.text != "--").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::testing::cards;

    #[test]
    fn the_pool_that_counts_is_named_and_never_a_sum() {
        let apu = cards::apu();
        assert_eq!(
            unified(&apu).unwrap(),
            "GTT 96.0 GiB alone counts, not VRAM 8.0 GiB; TTM limit 96.0 GiB"
        );
        let mut carved = apu.clone();
        carved.vram_total = Metric::Fresh(Bytes::gib(96));
        carved.gtt_total = Metric::Failed {
            why: "EIO".to_owned(),
            for_ms: 0,
        };
        carved.ttm_limit = Metric::Unsupported;
        assert_eq!(
            unified(&carved).unwrap(),
            "VRAM 96.0 GiB alone counts, not GTT failed"
        );
        assert_eq!(unified(&cards::disagreeing()), None);
    }

    #[test]
    fn a_link_says_its_best_only_where_it_is_another() {
        let l = |gts, width| {
            link(&Metric::Fresh(Link {
                gts,
                width,
                max_gts: Some(16.0),
                max_width: Some(16),
            }))
            .text
        };
        assert_eq!(l(16.0, 16), "16.0 GT/s x16");
        assert_eq!(l(2.5, 8), "2.5 GT/s x8 (best 16.0 GT/s x16)");
        assert_eq!(link(&Metric::Unsupported).text, "--");
    }

    #[test]
    fn a_card_that_sleeps_or_is_gone_does_not_fail() {
        let asleep = cards::asleep();
        let r = unread(&asleep).unwrap();
        assert_eq!((r.text.as_str(), r.tone), ("asleep, not read", Tone::Dim));
        assert_eq!(failing(&asleep), 0);
        let mut gone = asleep;
        gone.state = Metric::Fresh("gone".to_owned());
        let r = unread(&gone).unwrap();
        assert_eq!((r.text.as_str(), r.tone), ("gone", Tone::Bad));
        let mut read = cards::complete();
        read.state = Metric::Fresh("suspended".to_owned());
        assert_eq!(unread(&read), None, "what was read is shown");
        read.busy = Metric::Failed {
            why: "gpu_busy_percent: Input/output error".to_owned(),
            for_ms: 1_500,
        };
        assert_eq!(failing(&read), 1);
    }

    #[test]
    fn what_holds_a_card_back_is_told_apart() {
        assert_eq!(
            held_back(&cards::disagreeing()).unwrap(),
            "throttled: power, thermal; level high (forced)"
        );
        assert_eq!(held_back(&cards::complete()), None);
    }

    #[test]
    fn nothing_throttled_is_told_from_not_known() {
        assert_eq!(throttle(&Metric::Fresh(Vec::new())).text, "none");
        assert_eq!(throttle(&Metric::Unsupported).text, "--");
        let two = vec![ThrottleReason::Power, ThrottleReason::Thermal];
        let r = throttle(&Metric::Fresh(two));
        assert_eq!((r.text.as_str(), r.tone), ("power, thermal", Tone::Warn));
    }

    #[test]
    fn two_sources_are_shown_beside_each_other() {
        let g = cards::disagreeing();
        assert_eq!(
            disagreement(&g, &g.disagreements[0]),
            "busy: sysfs 97 %, rocm-smi 0 % (rocm-smi turns a failed read into 0)"
        );
        let table = opinions(&g, g.second.as_ref().unwrap());
        let busy = &table[0];
        assert_eq!(
            (busy.1.text.as_str(), busy.2.text.as_str()),
            ("97 %", "0 %")
        );
        assert!(
            table
                .iter()
                .all(|(name, ..)| *name != "fan" || g.fan_rpm.is_supported())
        );
    }
}
