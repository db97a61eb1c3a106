//! `busy_idle`: the card claims full work at the power of an idle one, and nothing
//! else moves. A busy counter that stays at 100 % is known from RDNA3 and RDNA4; it
//! also stays there while a video is encoded or weights are read, so every other
//! channel must be silent. One busy core proves no work in a phase of the card's: the
//! runtime waits for a queue in a loop.

use crate::detect::facts::Facts;
use crate::detect::movement::Source;
use crate::detect::thresholds::secs;

use super::{Definition, Depth, Restart, Scope, rule, steps};
use crate::detect::rule::{Check, Grade, Signs, span};
use crate::model::VerdictId;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The GPU claims to be busy at a fraction of its usual power and no step completes: wedged queue.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Gpu),
    depth: Depth::Standstill,
    steps: |_, _| steps::RETRY,
    rules: &[rule(40, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    let c = &f.channels;
    let Some(contradiction) = c.contradiction_since else {
        return Check::clear("power follows busy");
    };
    let cpu = if f.card_computes() {
        c.cpu_many.active
    } else {
        f.movement.at(Source::Cpu)
    };
    let m = f.movement;
    let since = contradiction
        .max(m.last_word())
        .max(m.last_transfer())
        .max(cpu);
    if f.overflows() {
        return Check::clear("the card's memory overflows: that explains the power");
    }
    if f.find.is_some() {
        return Check::clear("an open search is judged by its own clock");
    }
    if f.compiling && c.core.since.is_some() {
        return Check::clear("the program said that it compiles, and a core is busy");
    }
    if f.works_elsewhere() {
        return Check::clear("a step of the CPU or a helper is under way");
    }
    if f.now.since(since) < secs(f.t.busy_idle_sign_s) {
        return Check::Clear(format!("something advanced {} ago", span(f.now.since(since))).into());
    }
    let limit = if c.knows_work() {
        secs(f.t.busy_idle_s)
    } else {
        secs(f.t.busy_idle_unknown_s)
    };
    let limit = limit
        .max(f.usual_step().mul_f64(f.t.busy_idle_steps_factor))
        .max(f.longest_stay());
    let busy = c.figures.busy.unwrap_or_default();
    let power = c.figures.power.unwrap_or_default();
    Signs {
        verdict: VerdictId::BusyIdle,
        grade: Grade::Hang,
        since,
        limit: limit.mul_f64(f.ratchet),
        sentence: format!(
            "the card claims {busy:.0} % but draws {power:.0} W, far below its own level at work, and no step has ended for {}",
            span(f.now.since(since))
        ),
        numbers: vec![format!("GPU {busy:.0} % at {power:.0} W")],
        ruled_out: vec![
            "honest work: power would follow".to_owned(),
            "work of the CPU or the disk: neither moves".to_owned(),
        ],
        confidence: 0.85,
        cites: Vec::new(),
    }
    .against_limit(f.now)
}
