//! `offload_risk`: on an AMD card of 24 GiB or less the transformer was only offloaded,
//! not unloaded, before the VAE came, and too little of the card's memory is free for a
//! decode. The allocator fails there later.

use std::time::Duration;

use crate::detect::facts::Facts;

use super::{Definition, Restart, advice, rule};
use crate::detect::rule::{Check, Grade, Signs, short};
use crate::model::{ActionId, Phase, Severity, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "AMD card of 24 GiB or less: transformer only offloaded, not unloaded, before the VAE is loaded (warning, before any failure).",
    severity: Severity::Warn,
    job_may_live: true,
    restart: Restart::AfterEnd,
    steps: |_, _| &[(ActionId::FullUnload, 1)],
    advice: |_, facts, _| Some(advice::unload_all(facts)),
    rules: &[rule(130, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    let p = f.pressure;
    if !p.amd || p.apu {
        return Check::clear("not a Radeon board");
    }
    if f.phase != Phase::VaeDecode {
        return Check::clear("no decode is under way");
    }
    let Some(line) = f.placement.only_offloaded() else {
        return Check::clear(if f.placement.unloaded() {
            "the transformer was unloaded completely"
        } else {
            "no word of an offloaded transformer"
        });
    };
    let Some(total) = p.vram_total.filter(|mib| *mib <= f.t.offload_vram_mib) else {
        return Check::clear("the card has more than 24 GiB, or its memory cannot be read");
    };
    let used = p.vram.map(|v| v.used);
    let needed = (f.t.offload_free_share * total).min(f.t.offload_free_mib);
    if let Some(used) = used.filter(|used| total - used >= needed) {
        return Check::Clear(format!("only {used:.0} of {total:.0} MiB in use").into());
    }
    let numbers = vec![match used {
        Some(used) => format!("{used:.0} of {total:.0} MiB in use as the decode begins"),
        None => format!("a card of {total:.0} MiB"),
    }];
    Signs {
        verdict: VerdictId::OffloadRisk,
        grade: Grade::Slow,
        since: f.phase_since,
        limit: Duration::ZERO,
        sentence: format!(
            "the transformer was only offloaded before the VAE came (\"{}\"), {}: on this card the decode may run out of memory; unload it completely",
            short(&line.text),
            numbers.join(", ")
        ),
        numbers,
        ruled_out: vec!["a failure: none has happened yet".to_owned()],
        confidence: 0.7,
        cites: vec![line.clone()],
    }
    .unless_granted(f)
}
