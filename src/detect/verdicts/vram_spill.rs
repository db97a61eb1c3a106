//! `vram_spill`: the VRAM is full, system memory is mapped for the card, and steps go on
//! several times slower.

use crate::detect::facts::Facts;
use crate::detect::thresholds::secs;

use super::{Definition, Restart, Scope, advice, rule, steps};
use crate::detect::rule::{Check, Grade, Signs};
use crate::model::{Mono, Severity, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The working set overflows VRAM into system memory; steps go on but several times slower.",
    severity: Severity::Warn,
    job_may_live: true,
    restart: Restart::Always,
    wants_rung: Some(Scope::Gpu),
    explains_slowness: true,
    steps: |phase, _| steps::smaller(phase),
    advice: |_, facts, action| advice::smaller_job(facts, action),
    rules: &[rule(90, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    let p = f.pressure;
    if p.apu {
        return Check::clear("VRAM is a part of the host's memory here");
    }
    let Some(vram) = p.vram else {
        return Check::clear("how full the VRAM is cannot be told");
    };
    if !p.vram_is_full(f.t) {
        return Check::Clear(format!("{:.0} % of the VRAM in use", 100.0 * vram.share()).into());
    }
    let spilled = p.gtt_taken();
    if let Some(mib) = spilled.filter(|g| *g < f.t.spill_gtt_mib)
        && !draws_less(f)
    {
        return Check::Clear(
            format!("only {mib:.0} MiB of system memory mapped more, and the power is as before")
                .into(),
        );
    }
    let (since, pace, ended) = match slow(f, spilled.is_some()) {
        Ok(found) => found,
        Err(why) => return Check::clear(why),
    };
    let mut numbers = vec![
        pace,
        format!("VRAM {:.0} of {:.0} MiB", vram.used, vram.total),
    ];
    numbers.extend(spilled.map(|g| format!("{g:.0} MiB of system memory mapped since the launch")));
    let signs = Signs {
        verdict: VerdictId::VramSpill,
        // where mapped memory cannot be read, another program may have taken the card
        grade: if spilled.is_some_and(|g| g >= f.t.spill_gtt_mib) && !ends_soon(f) {
            Grade::Fault
        } else {
            Grade::Slow
        },
        since,
        limit: secs(f.t.spill_s).mul_f64(f.soft_ratchet(VerdictId::VramSpill)),
        sentence: format!(
            "the card's memory is full and the rest lies in system memory, so {} goes on much slower ({})",
            f.phase,
            numbers.join(", ")
        ),
        numbers,
        ruled_out: vec!["heat: the memory explains the pace".to_owned()],
        confidence: if spilled.is_some() { 0.9 } else { 0.7 },
        cites: Vec::new(),
    };
    if ended < f.t.spill_steps_count {
        return Check::NotYet(signs);
    }
    signs.unless_granted(f)
}

/// Whether the card draws clearly less than it did at the usual pace.
fn draws_less(f: &Facts<'_>) -> bool {
    let bar = f.pace.bar();
    let stretch = bar.and_then(|b| b.stretch(f.now, f.t.spill_factor));
    let powers = stretch.and_then(|s| s.power.zip(s.usual.power));
    powers.is_some_and(|(now, usual)| now < f.t.spill_power_share * usual)
}

/// Whether the job ends soon at its pace: a restart would cost more.
fn ends_soon(f: &Facts<'_>) -> bool {
    let Some(bar) = f.pace.bar() else {
        return false;
    };
    let pace = bar.stretch(f.now, f.t.spill_factor).map(|s| s.step_s);
    let left = bar.left().zip(pace.or(bar.median_s()));
    left.is_some_and(|(steps, step_s)| secs(steps * step_s) <= secs(f.t.ends_soon_s))
}

/// Since when steps are slow, in words, and how many have ended.
fn slow(f: &Facts<'_>, mapped_is_known: bool) -> Result<(Mono, String, f64), &'static str> {
    let Some(bar) = f.pace.bar() else {
        return Err("no steps are counted");
    };
    if let Some(s) = bar.stretch(f.now, f.t.spill_factor) {
        let pace = format!("{:.1} s a step, usually {:.1} s", s.step_s, s.usual.step_s);
        return Ok((s.since, pace, s.ended));
    }
    let Some(step) = bar.median_s() else {
        return Err("no step was measured yet");
    };
    let ended = bar.steps_ended();
    // the same bar before this one: the second section of a video
    if let Some(before) = f.pace.before()
        && step > before.step_s * f.t.spill_factor
    {
        let pace = format!("{step:.1} s a step, before {:.1} s", before.step_s);
        return Ok((bar.began, pace, ended));
    }
    // from the first step on: then the card itself must tell that it waits
    // by the mean of the steps: one reading may fall between two of them
    let mean = bar.usual().and_then(|u| u.power);
    let power = mean.or(f.channels.figures.power).zip(f.pressure.cap);
    let starved = power.is_some_and(|(p, cap)| p < f.t.spill_cap_share * cap);
    if mapped_is_known && starved && step >= f.t.spill_step_s {
        return Ok((bar.began, format!("{step:.1} s a step"), ended));
    }
    Err("steps take what they usually take")
}
