//! `device_mismatch`: the program's words name two devices, the card claims full work at
//! a fraction of its power, and a step takes very long: every layer waits for a copy.
//! Without the words the same is told, but not answered: work that is bound by the bus
//! looks alike.

use crate::detect::facts::Facts;
use crate::detect::thresholds::secs;

use super::{Definition, Restart, Scope, rule};
use crate::detect::rule::{Check, Grade, Signs, short, span};
use crate::model::{ActionId, Phase, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Tensors, inputs or generator sit on another device than the pipeline expects: error text, or crawl with console evidence of two devices.",
    job_may_live: true,
    restart: Restart::Always,
    wants_rung: Some(Scope::Gpu),
    explains_slowness: true,
    failure: "tensors lie on different devices",
    steps: |_, _| &[(ActionId::FixDevicePlacement, 1)],
    rules: &[rule(70, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    let check = by_pace(f);
    let told = f.agent.found(VerdictId::DeviceMismatch);
    match (&check, told) {
        // it is certain, but costs nothing that anybody noticed: told, not answered
        (Check::Clear(_), Some((cite, finding))) => Check::Match(Signs {
            verdict: VerdictId::DeviceMismatch,
            grade: Grade::Slow,
            since: cite.at,
            limit: secs(0.0),
            sentence: if finding.cure.is_empty() {
                finding.text.clone()
            } else {
                format!("{}; {}", finding.text, finding.cure)
            },
            numbers: vec![finding.text.clone()],
            ruled_out: Vec::new(),
            confidence: 0.95,
            cites: vec![cite.clone()],
        }),
        _ => check,
    }
}

fn by_pace(f: &Facts<'_>) -> Check {
    let told = f.agent.found(VerdictId::DeviceMismatch);
    let two = f
        .placement
        .two_devices()
        .or(told.map(|(cite, _)| (cite, cite)));
    let Some(bar) = f.pace.bar() else {
        return Check::clear("no steps are counted");
    };
    let Some(contradiction) = f.pressure.contradiction.since else {
        return Check::clear(if two.is_some() {
            "two devices are named, but power follows busy"
        } else {
            "no words of two devices, and power follows busy"
        });
    };
    if f.works_elsewhere() || f.find.is_some() || f.compiling {
        return Check::clear("a search, a compiler or a step of the CPU explains it");
    }
    let open = f.now.since(bar.step_since()).as_secs_f64();
    let step = bar.median_s().unwrap_or(0.0).max(open);
    if step < f.t.mismatch_step_s {
        return Check::Clear(format!("a step takes {step:.1} s").into());
    }
    if two.is_none() {
        if !matches!(f.phase, Phase::Sampling | Phase::Delight | Phase::Texture) {
            return Check::clear("no words of two devices, and not a phase of denoising steps");
        }
        let spills = f
            .pressure
            .gtt_taken()
            .is_some_and(|g| g >= f.t.spill_gtt_mib);
        if spills || f.pressure.apu {
            return Check::clear("memory of the host is in use by the card");
        }
        if bar.stretch(f.now, f.t.crawl_factor).is_some() {
            return Check::clear("it was faster before");
        }
    }
    let busy = f.channels.figures.busy.unwrap_or_default();
    let power = f.channels.figures.power.unwrap_or_default();
    let since = contradiction.max(bar.began);
    let mut numbers = vec![
        format!(
            "GPU {busy:.0} % at {power:.0} W for {}",
            span(f.now.since(since))
        ),
        format!("{step:.0} s a step"),
    ];
    numbers.extend(f.pressure.cap.map(|cap| format!("board limit {cap:.0} W")));
    let (limit, grade, confidence) = if two.is_some() {
        (f.t.mismatch_s, Grade::Fault, 0.95)
    } else {
        (f.t.mismatch_unsaid_s, Grade::Slow, 0.5)
    };
    let words = two.map_or_else(String::new, |(a, b)| {
        format!(": \"{}\", but \"{}\"", short(&a.text), short(&b.text))
    });
    let signs = Signs {
        verdict: VerdictId::DeviceMismatch,
        grade,
        since,
        limit: secs(limit).mul_f64(f.soft_ratchet(VerdictId::DeviceMismatch)),
        sentence: format!(
            "the pipeline and its inputs seem to be on two devices{words}; the card claims {busy:.0} % at {power:.0} W and a step takes {step:.0} s"
        ),
        numbers,
        ruled_out: vec![
            "a wedged queue: steps go on".to_owned(),
            "memory overflow: the VRAM is not full".to_owned(),
        ],
        confidence,
        cites: two.map_or_else(Vec::new, |(a, b)| vec![a.clone(), b.clone()]),
    };
    if two.is_none() && bar.steps_ended() < f.t.mismatch_steps_count {
        return Check::NotYet(signs);
    }
    signs.unless_granted(f)
}
