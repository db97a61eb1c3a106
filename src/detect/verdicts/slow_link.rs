//! `slow_link`: the card's PCIe link has fewer lanes, or runs at a lower speed, than card and slot
//! allow, while data is moved over it. A link at rest saves power and says nothing.
//!
//! The kernel logs the same at boot (`available PCIe bandwidth, limited by ...`); `LnkSta` of
//! `lspci -vv` marks such a link `(downgraded)`.

use std::time::Duration;

use super::{Definition, rule};
use crate::detect::facts::Facts;
use crate::detect::movement::Source;
use crate::detect::rule::{Check, Grade, Signs};
use crate::model::{GpuSample, Link, Mono, Phase, Severity, VerdictId, time};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The card's PCIe link runs narrower or slower than card and slot allow while data is moved.",
    severity: Severity::Warn,
    job_may_live: true,
    advice: |_, _, _| {
        Some("switch the machine off, seat the card and its riser cable anew and use the slot next to the processor; in the firmware set that slot's PCIe generation to automatic; `sudo lspci -vv | grep LnkSta:` shows the link".to_owned())
    },
    watch: Some(is_slow_at_work),
    rules: &[rule(135, check)],
    ..Definition::fault()
};

/// Data moved for this long over such a link; one at rest needs milliseconds to speed up.
const LIMIT: Duration = Duration::from_secs(5);

fn is_slow_at_work(f: &Facts<'_>, card: &GpuSample) -> Option<bool> {
    let moves = f.movement.at(Source::CardMemory) == f.now;
    let link = card.link.fresh().filter(|_| moves_models(f) && moves)?;
    Some(lost_share(link) > 0.0)
}

const fn moves_models(f: &Facts<'_>) -> bool {
    matches!(f.phase, Phase::ModelLoad | Phase::Offload)
}

/// The part of the bandwidth that card and slot allow and the link does not give, 0 to 1.
fn lost_share(link: &Link) -> f64 {
    let lanes = link.max_width.unwrap_or(link.width).max(link.width);
    let gts = link.max_gts.unwrap_or(link.gts).max(link.gts);
    1.0 - link.gts * f64::from(link.width) / (gts * f64::from(lanes))
}

fn check(f: &Facts<'_>) -> Check {
    if !moves_models(f) {
        return Check::clear("no model is moved");
    }
    let Some(link) = f.watches.card().and_then(|card| card.link.fresh()) else {
        return Check::clear("the card has no link of its own, or it cannot be read");
    };
    let Some(held) = f.watches.held(VerdictId::SlowLink) else {
        return Check::clear("no data is moved, or the link is at its best meanwhile");
    };
    let best = Link {
        gts: link.max_gts.unwrap_or(link.gts),
        width: link.max_width.unwrap_or(link.width),
        ..*link
    };
    let number = format!(
        "{} GT/s x{} of {} GT/s x{}",
        link.gts, link.width, best.gts, best.width
    );
    Signs {
        verdict: VerdictId::SlowLink,
        grade: Grade::Slow,
        since: Mono(f.now.0.saturating_sub(time::millis(held))),
        limit: LIMIT,
        sentence: format!(
            "models reach the card slowly: its PCIe link runs at {number}, {:.0} % of what card and slot allow",
            100.0 * (1.0 - lost_share(link))
        ),
        numbers: vec![number],
        ruled_out: vec!["a link that saves power: data was moved over it".to_owned()],
        confidence: 0.8,
        cites: Vec::new(),
    }
    .against_limit(f.now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_of_lanes_and_of_speed() {
        let lost = |gts, width, max_gts, max_width| {
            lost_share(&Link {
                gts,
                width,
                max_gts,
                max_width,
            })
        };
        for (lost, share) in [
            (lost(16.0, 16, Some(16.0), Some(16)), 0.0),
            (lost(16.0, 4, Some(16.0), Some(16)), 0.75),
            (lost(2.5, 16, Some(16.0), Some(16)), 0.843_75),
            (lost(8.0, 8, Some(16.0), Some(16)), 0.75),
            // what card and slot allow is not told
            (lost(8.0, 4, None, None), 0.0),
            // a bridge that tells less than the link runs at
            (lost(16.0, 16, Some(8.0), Some(8)), 0.0),
        ] {
            assert!((lost - share).abs() < 1e-9, "{lost} for {share}");
        }
    }
}
