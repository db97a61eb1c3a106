//! `cpu_fallback`: a card was meant, but the job's steps keep the CPU busy and the card
//! has not moved since the launch. With the program's own words it is sure; without
//! them only a card whose readings say something can show it.

use crate::detect::facts::Facts;
use crate::detect::thresholds::secs;

use super::{Definition, rule};
use crate::detect::rule::{Check, Grade, Signs, short, span};
use crate::model::{Mono, Phase, Severity, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The whole job runs on the CPU although a GPU was meant (CPU-only torch, device cpu); not a single announced CPU step.",
    severity: Severity::Warn,
    job_may_live: true,
    explains_slowness: true,
    may_be_survived: true,
    failure: "the program computes on the processor",
    advice: |_, _, _| {
        Some(
        "the program runs on the CPU: install a build of PyTorch for this card, or remove what makes it choose the CPU".to_owned()
    )
    },
    rules: &[rule(120, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    if !f.card_meant {
        return Check::clear("no card is supervised");
    }
    if f.placement.cpu_asked() {
        return Check::clear("the command asks for the CPU");
    }
    if f.works_elsewhere() || f.compiling || f.find.is_some() {
        return Check::clear("a step of the CPU was announced, or something is compiled");
    }
    let said = f.placement.all_cpu();
    let stage = match stage(f, said.is_some()) {
        Ok(since) => since,
        Err(why) => return Check::clear(why),
    };
    let cpu = if said.is_some() {
        f.channels.core.since
    } else {
        f.pressure.cpu_busy.since
    };
    let Some(cpu) = cpu else {
        return Check::clear("the CPU is not busy enough for that");
    };
    let since = stage.max(cpu);
    let limit = if said.is_some() {
        f.t.fallback_said_s
    } else {
        f.t.fallback_s
    };
    let percent = f.channels.figures.cpu_percent.unwrap_or_default();
    let mut numbers = vec![format!(
        "CPU {percent:.0} % for {}",
        span(f.now.since(since))
    )];
    numbers.extend(f.channels.figures.busy.map(|b| format!("GPU {b:.0} %")));
    let words = said.map(|c| format!(", as \"{}\" says", short(&c.text)));
    Signs {
        verdict: VerdictId::CpuFallback,
        grade: Grade::Slow,
        since,
        limit: secs(limit).mul_f64(f.soft_ratchet(VerdictId::CpuFallback)),
        sentence: format!(
            "the job runs on the CPU and not on the card{}: {}",
            words.unwrap_or_default(),
            numbers.join(", ")
        ),
        numbers,
        ruled_out: vec!["a step of the CPU: none was announced".to_owned()],
        confidence: if said.is_some() { 0.97 } else { 0.7 },
        cites: said.cloned().into_iter().collect(),
    }
    .unless_granted(f)
}

/// Since when the job has been at work that is the card's; else why that is not known.
fn stage(f: &Facts<'_>, said: bool) -> Result<Mono, &'static str> {
    let steps = matches!(f.phase, Phase::Sampling | Phase::Delight | Phase::Texture);
    if said {
        let works = steps
            || matches!(
                f.phase,
                Phase::TextEncode | Phase::VaeEncode | Phase::VaeDecode
            );
        return if works {
            Ok(f.phase_since)
        } else {
            Err("no work of the card's has begun")
        };
    }
    let p = f.pressure;
    let Some(bar) = f.pace.bar().filter(|_| steps) else {
        return Err("no sampling is under way");
    };
    if p.apu || !f.channels.gpu_expected {
        return Err("the readings of this card do not tell");
    }
    if p.card_worked {
        return Err("the card has worked in this attempt");
    }
    if p.vram_taken().is_some_and(|m| m > f.t.fallback_vram_mib) {
        return Err("a model lies in the card's memory");
    }
    Ok(bar.began)
}
