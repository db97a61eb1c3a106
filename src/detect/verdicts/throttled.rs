//! `throttled`: steady, but slow, while clocks or power are held down: the card says so
//! itself, or it draws less than it drew at the usual pace although it is as busy.

use crate::detect::facts::Facts;
use crate::detect::pace::Stretch;
use crate::detect::thresholds::secs;

use super::{Definition, rule};
use crate::detect::rule::{Check, Grade, Signs};
use crate::model::{ActionId, Severity, ThrottleReason, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Steady but slow because clocks or power are held down by heat or limits.",
    severity: Severity::Warn,
    job_may_live: true,
    explains_slowness: true,
    steps: |_, _| &[(ActionId::CoolDown, 0)],
    advice: |_, _, _| Some("let it run, improve the cooling".to_owned()),
    rules: &[rule(110, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    if f.fault.is_some() {
        return Check::clear("a page fault of the card explains the pace");
    }
    let Some(bar) = f.pace.bar() else {
        return Check::clear("no steps are counted");
    };
    let Some(usual) = bar.usual() else {
        return Check::clear("no usual pace of these steps yet");
    };
    let Some(s) = bar.stretch(f.now, f.t.throttled_factor) else {
        return Check::Clear(format!("steps take their usual {:.1} s", usual.step_s).into());
    };
    let said = f.pressure.held_down.since.is_some();
    if !said && let Some(why) = not_by_power(f, &s) {
        return why;
    }
    let mut numbers = vec![format!(
        "{:.1} s a step, usually {:.1} s",
        s.step_s, usual.step_s
    )];
    if let (Some(now), Some(before)) = (s.power, usual.power) {
        numbers.push(format!("{now:.0} W, at the usual pace {before:.0} W"));
    }
    numbers.extend(f.pressure.temp.map(|t| format!("{t:.0} °C")));
    if said {
        let reasons: Vec<_> = f.pressure.reasons.iter().map(|r| r.word()).collect();
        numbers.push(format!("the card says: {}", reasons.join(", ")));
    }
    let heat = f.pressure.reasons.contains(&ThrottleReason::Thermal);
    let cause = if heat {
        "heat holds its clocks down"
    } else {
        "its clocks or its power are held down"
    };
    let signs = Signs {
        verdict: VerdictId::Throttled,
        grade: Grade::Slow,
        since: s.since,
        limit: secs(f.t.throttled_s).mul_f64(f.soft_ratchet(VerdictId::Throttled)),
        sentence: format!(
            "the card works steadily, but {:.1} times as slowly as before: {cause} ({})",
            s.factor(),
            numbers.join(", ")
        ),
        numbers,
        ruled_out: vec![
            "another program on the card: power would stay".to_owned(),
            "memory overflow: the VRAM is not full".to_owned(),
        ],
        confidence: if said { 0.95 } else { 0.75 },
        cites: Vec::new(),
    };
    if s.ended < f.t.throttled_steps_count {
        return Check::NotYet(signs);
    }
    signs.unless_granted(f)
}

/// Why power does not explain the pace, if it does not.
fn not_by_power(f: &Facts<'_>, s: &Stretch) -> Option<Check> {
    let (Some(now), Some(before), Some(busy)) = (s.power, s.usual.power, s.busy) else {
        return Some(Check::clear("power or busy cannot be read"));
    };
    let share = now / before.max(1.0);
    if share >= f.t.throttled_power_share {
        let why = format!("{now:.0} W, as before ({before:.0} W)");
        return Some(Check::Clear(why.into()));
    }
    // the clocks that power pays for come first: a pace that fell while the power still
    // stood has another cause, whatever the power does later
    let at_first = s.power_at_first.unwrap_or(now);
    if at_first >= f.t.throttled_power_share * before {
        let why = format!("{at_first:.0} W when the steps became slow, as before ({before:.0} W)");
        return Some(Check::Clear(why.into()));
    }
    if busy < f.t.throttled_busy_pct {
        return Some(Check::Clear(
            format!("the card is only {busy:.0} % busy").into(),
        ));
    }
    if f.pressure.vram_is_full(f.t) {
        return Some(Check::clear("the VRAM is full"));
    }
    if s.factor() > f.t.throttled_most_factor / share.max(0.01) {
        let why = format!("{:.0} times as slow: too much for {now:.0} W", s.factor());
        return Some(Check::Clear(why.into()));
    }
    None
}
