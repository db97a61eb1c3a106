//! `memory_fault` of a job that lives: the kernel log has a page fault of the card by this
//! tree, and since then steps take several times as long.

use std::time::Duration;

use crate::detect::facts::Facts;
use crate::detect::thresholds::secs;

use crate::detect::rule::{Check, Grade, Signs};

/// A step that the fault hit may have begun this long before its line in the kernel log.
const BEFORE: Duration = Duration::from_secs(5);
use super::{Definition, Restart, Scope, rule, steps};
use crate::model::VerdictId;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "GPU memory access fault or page fault by the child.",
    job_may_live: true,
    restart: Restart::Always,
    wants_rung: Some(Scope::Gpu),
    explains_slowness: true,
    failure: "the program touched memory of the card that it must not",
    steps: |_, _| steps::RETRY,
    advice: |_, _, _| {
        Some(
        "restart the program and run the job once more; if it comes back, leave out page-locked memory (ComfyUI: --disable-pinned-memory), and install the newest torch and driver for this card".to_owned()
    )
    },
    rules: &[rule(80, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    let Some(fault) = f.fault else {
        return Check::clear("no page fault of the card in the kernel log");
    };
    let Some(bar) = f.pace.bar() else {
        return Check::clear("a page fault, and no steps are counted since");
    };
    let Some(s) = bar.stretch(f.now, f.t.spill_factor) else {
        return Check::clear("steps take what they took before the page fault");
    };
    if s.since + s.step() + BEFORE < fault.first.at {
        return Check::clear("steps were slow before the page fault");
    }
    // a job that is about to end loses more by a restart
    let left = bar.left().map(|steps| secs(steps * s.step_s));
    let ends_soon = left.is_some_and(|left| left <= secs(f.t.ends_soon_s));
    let signs = Signs {
        verdict: VerdictId::MemoryFault,
        grade: if ends_soon { Grade::Slow } else { Grade::Fault },
        since: s.since.max(fault.first.at),
        limit: secs(f.t.spill_s).mul_f64(f.soft_ratchet(VerdictId::MemoryFault)),
        sentence: format!(
            "{} goes on {:.0} times slower since a page fault of the card ({:.0} s a step where {:.1} s were usual)",
            f.phase,
            s.factor(),
            s.step_s,
            s.usual.step_s
        ),
        numbers: vec![format!(
            "{:.1} s a step, usually {:.1} s",
            s.step_s, s.usual.step_s
        )],
        ruled_out: vec!["heat: the fault explains the pace".to_owned()],
        confidence: 0.85,
        cites: fault.cites(),
    };
    if s.ended < f.t.spill_steps_count {
        return Check::NotYet(signs);
    }
    signs.unless_granted(f)
}
