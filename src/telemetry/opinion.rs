//! Two sources on one card: where they contradict each other.
//!
//! Both read at moments of their own, up to half a second apart, so values that move
//! differ honestly. A difference counts only where it is larger than a tolerance, points
//! the same way against the first source's last *two* readings, and does so in three
//! answers of the second source in a row, of a busy counter in ten. Sizes, which do not move, count at once, and so
//! does a zero where the first source cannot read: librocm_smi64 makes zeros of errors.

use std::collections::BTreeMap;

use crate::model::{Bytes, Disagreement, GpuSample, Metric, Opinion};

/// Answers in a row that a difference has to last.
const IN_A_ROW: u32 = 3;
/// The same for a busy counter: that of an RX 500 jumps between 0 and 100, so that two
/// honest readers of it may differ three times in a row by chance.
const BUSY_IN_A_ROW: u32 = 10;
/// What is known of a zero where the first source fails.
const ZERO_NOTE: &str = "librocm_smi64 says 0 where it cannot read";

/// A difference of the moment.
#[derive(Debug, Clone, PartialEq)]
struct Difference {
    told: Disagreement,
    /// Whether the second source says more; absent where the first one says nothing.
    more: Option<bool>,
    at_once: bool,
}

/// What was seen of one card.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    before: Option<GpuSample>,
    /// Per value: direction, and answers in a row.
    streaks: BTreeMap<String, (Option<bool>, u32)>,
}

impl Comparison {
    /// The contradictions between a card and what a second source says of it. `new`:
    /// the second source has answered since the last call.
    pub(crate) fn of(
        &mut self,
        card: &GpuSample,
        second: &Opinion,
        new: bool,
    ) -> Vec<Disagreement> {
        let now = differences(card, second);
        if new {
            let before = self.before.replace(card.clone());
            let then = before.map_or_else(|| now.clone(), |b| differences(&b, second));
            let lasting = |d: &&Difference| {
                then.iter()
                    .any(|t| t.told.value == d.told.value && t.more == d.more)
            };
            let old = std::mem::take(&mut self.streaks);
            for d in now.iter().filter(lasting) {
                let n = match old.get(&d.told.value) {
                    Some((more, n)) if *more == d.more => n.saturating_add(1),
                    _ => 1,
                };
                self.streaks.insert(d.told.value.clone(), (d.more, n));
            }
        }
        let proven = |d: &Difference| {
            let streak = self.streaks.get(&d.told.value);
            d.at_once
                || streak.is_some_and(|(more, n)| *more == d.more && *n >= in_a_row(&d.told.value))
        };
        now.into_iter().filter(proven).map(|d| d.told).collect()
    }
}

/// Answers in a row that a difference in this value has to last.
fn in_a_row(value: &str) -> u32 {
    match value {
        "busy" | "mem_busy" => BUSY_IN_A_ROW,
        _ => IN_A_ROW,
    }
}

/// How far two honest readings of one value may lie apart.
enum Tolerance {
    /// Not at all; it does not move, so a difference counts at once.
    None,
    /// So much, or this part of the larger one, whichever is more.
    Within(f64, f64),
}

/// Every difference beyond its tolerance. A card that sleeps, resets or is gone is not
/// compared: the second source's last word is then older than that.
fn differences(card: &GpuSample, second: &Opinion) -> Vec<Difference> {
    use Tolerance::{None as Exact, Within};
    match &card.state {
        Metric::Unsupported => {}
        Metric::Fresh(state) if state == "active" => {}
        _ => return Vec::new(),
    }
    let c = card;
    let s = second;
    // name, first, second, unit, decimals, tolerance
    let numbers = [
        ("busy", &c.busy, &s.busy, "%", Within(25.0, 0.0)),
        ("mem_busy", &c.mem_busy, &s.mem_busy, "%", Within(25.0, 0.0)),
        ("power_w", &c.power_w, &s.power_w, "W", Within(20.0, 0.2)),
        (
            "power_cap_w",
            &c.power_cap_w,
            &s.power_cap_w,
            "W",
            Within(1.0, 0.0),
        ),
        (
            "temp_edge",
            &c.temp_edge,
            &s.temp_edge,
            "°C",
            Within(8.0, 0.0),
        ),
        (
            "temp_junction",
            &c.temp_junction,
            &s.temp_junction,
            "°C",
            Within(12.0, 0.0),
        ),
        ("temp_mem", &c.temp_mem, &s.temp_mem, "°C", Within(8.0, 0.0)),
        ("fan_rpm", &c.fan_rpm, &s.fan_rpm, "rpm", Within(300.0, 0.2)),
    ];
    let mut found: Vec<Difference> = numbers
        .into_iter()
        .filter_map(|(value, first, second, unit, tolerance)| {
            let say = |n: &f64| format!("{} {unit}", plain(*n));
            difference(value, first, second, &tolerance, |n| *n, say)
        })
        .collect();
    let used = Within(512.0 * MIB, 0.05);
    let sizes = [
        ("vram_used", &c.vram_used, &s.vram_used, &used),
        ("vram_total", &c.vram_total, &s.vram_total, &Exact),
        ("gtt_used", &c.gtt_used, &s.gtt_used, &used),
        ("gtt_total", &c.gtt_total, &s.gtt_total, &Exact),
    ];
    found.extend(
        sizes
            .into_iter()
            .filter_map(|(value, first, second, tolerance)| {
                difference(
                    value,
                    first,
                    second,
                    tolerance,
                    |b| bytes(*b),
                    |b| exact(*b),
                )
            }),
    );
    found
}

const MIB: f64 = 1_048_576.0;

#[expect(
    clippy::cast_precision_loss,
    reason = "compared against tolerances of megabytes"
)]
fn bytes(b: Bytes) -> f64 {
    b.0 as f64
}

/// At most one decimal.
fn plain(n: f64) -> String {
    let text = format!("{n:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Exact: two sizes that differ may read alike in GiB.
fn exact(b: Bytes) -> String {
    format!("{b} ({} B)", b.0)
}

fn difference<T: PartialEq>(
    value: &str,
    first: &Metric<T>,
    second: &Metric<T>,
    tolerance: &Tolerance,
    number: impl Fn(&T) -> f64,
    say: impl Fn(&T) -> String,
) -> Option<Difference> {
    // one that does not speak, or only of the past, contradicts nobody
    let said = second.fresh()?;
    let theirs = number(said);
    let told = |first: String, note: Option<&str>| Disagreement {
        value: value.to_owned(),
        first,
        second: say(said),
        note: note.map(str::to_owned),
    };
    match first {
        Metric::Fresh(ours) if ours == said => None,
        Metric::Fresh(read) => {
            let ours = number(read);
            let at_once = matches!(tolerance, Tolerance::None);
            let allowed = match tolerance {
                Tolerance::None => 0.0,
                Tolerance::Within(least, part) => least.max(part * ours.abs().max(theirs.abs())),
            };
            ((ours - theirs).abs() > allowed || at_once).then(|| Difference {
                told: told(say(read), None),
                more: Some(theirs > ours),
                at_once,
            })
        }
        Metric::Failed { why, .. } => {
            let zero = theirs == 0.0;
            Some(Difference {
                told: told(why.clone(), zero.then_some(ZERO_NOTE)),
                more: None,
                at_once: zero,
            })
        }
        Metric::Stale { .. } | Metric::Unsupported => None,
    }
}

#[cfg(test)]
#[path = "opinion_tests.rs"]
mod tests;
