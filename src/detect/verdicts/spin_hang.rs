//! `spin_hang`: a core is busy without end, no output, the card idle, and nothing
//! says that MIOpen searches or that a CPU step was announced.

use std::time::Duration;

use crate::detect::facts::{Facts, Seen};
use crate::detect::movement::Source;
use crate::detect::thresholds::secs;

use super::{Definition, Depth, RemedyFacts, Restart, Scope, Step, rule, steps};
use crate::detect::rule::{Check, Grade, Signs, span, untrusted};
use crate::model::{ActionId, Phase, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "A job is in flight, one core or more is busy without end, no output, and nothing says that MIOpen searches or that a CPU step was announced.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Anywhere),
    depth: Depth::Standstill,
    steps: steps_of,
    rules: &[rule(50, check)],
    ..Definition::fault()
};

fn steps_of(phase: Phase, facts: &RemedyFacts) -> &'static [Step] {
    if !steps::is_decode(phase) {
        steps::RETRY
    } else if facts.backend.beside_rocm().is_some() {
        &[
            (ActionId::RetrySame, 1),
            (ActionId::TiledVae, 2),
            (ActionId::VaeCpu, 3),
        ]
    } else {
        &[
            (ActionId::RetrySame, 1),
            (ActionId::FastFind, 1),
            (ActionId::TiledVae, 2),
            (ActionId::VaeCpu, 3),
        ]
    }
}

/// The console's two streams are read one after the other.
const AT_ONCE: Duration = Duration::from_secs(2);

fn check(f: &Facts<'_>) -> Check {
    let c = &f.channels;
    let Some(busy_since) = c.core.since else {
        return Check::clear("no core is busy without a break");
    };
    if f.overflows() {
        return Check::clear("the card's memory overflows: steps take several times as long");
    }
    if f.find.is_some() {
        return Check::clear("an open search explains the busy core");
    }
    if f.conv_on_card().is_some() {
        return Check::clear("a convolution in flight explains the busy core");
    }
    if computes_on_cpu(f) {
        return Check::clear("an operation on the CPU explains the busy core");
    }
    if f.works_elsewhere() || f.cpu_is_normal() {
        return Check::clear("work of the CPU is expected here");
    }

    let limit = limit(f);
    // other threads do not move the job
    let since = busy_since.max(f.movement.last_but_cpu());
    let spinning = f.now.since(since);
    if spinning < (limit / 2).max(limit.saturating_sub(secs(f.t.spin_sign_s))) {
        return Check::Clear(
            format!("a word, a transfer or the card {} ago", span(spinning)).into(),
        );
    }
    let cpu = c.figures.cpu_percent.unwrap_or_default();
    let mut numbers = vec![
        format!("CPU {cpu:.0} % for {}", span(f.now.since(busy_since))),
        format!("no output for {}", span(f.now.since(c.output.active))),
    ];
    if let Some(busy) = c.figures.busy {
        numbers.push(format!("GPU {busy:.0} %"));
    }
    numbers.extend(untrusted(f));
    numbers.extend(f.agent.numbers(f.now));
    Signs {
        // an error in the text that nothing followed explains the loop
        verdict: f.seen.map_or(VerdictId::SpinHang, |s| s.verdict),
        grade: Grade::Hang,
        since,
        limit,
        sentence: format!(
            "a core has been busy in {} for {} without a word, and the card does nothing{}",
            f.phase,
            span(spinning),
            f.agent.clause(f.now)
        ),
        numbers,
        ruled_out: vec![
            "MIOpen search: none is open by its lines".to_owned(),
            "announced CPU step: none".to_owned(),
            "kernel compile: no compiler runs".to_owned(),
        ],
        confidence: if c.gpu_expected { 0.85 } else { 0.6 },
        cites: f.seen.map_or_else(|| f.beat_cites(), Seen::cites),
    }
    .against_limit(f.now)
}

/// Whether the program said something as its bar of steps was full: what comes then, such as
/// colours that are matched or frames that are interpolated, may be work of one core.
fn announces_a_step(f: &Facts<'_>) -> bool {
    let said = f.movement.at(Source::Words);
    f.phase == Phase::Unknown && f.pace.has_done_all_steps() && f.phase_since.since(said) <= AT_ONCE
}

fn works_on_many_cores(f: &Facts<'_>) -> bool {
    let many = &f.channels.cpu_many;
    f.now.since(many.active) < secs(f.t.spin_just_now_s) && many.seen.is_some()
}

/// Whether the operation in flight works on the CPU by right. PyTorch uses all cores for one, so a
/// single busy core does not show one in a program that holds memory of a card and does not say
/// that it computes without it.
fn computes_on_cpu(f: &Facts<'_>) -> bool {
    let Some((op, _)) = f.agent.op(f.now) else {
        return false;
    };
    let by_right = f.on_cpu || !f.holds_card_memory || works_on_many_cores(f);
    op.tier == "cpu" || (op.device == "cpu" && by_right)
}

fn limit(f: &Facts<'_>) -> Duration {
    let c = &f.channels;
    let many_cores = works_on_many_cores(f);
    let readings_rest = c.gpu_expected && !c.card_is_trusted(f.t);
    let factor = if f.compiling || many_cores || readings_rest {
        f.t.spin_explained_factor
    } else if !c.gpu_expected || f.phase == Phase::Texture || announces_a_step(f) {
        f.t.spin_alike_factor
    } else {
        1.0
    };
    let limit = f.limits.spin_limit.mul_f64(f.t.spin_factor * factor);
    let stay = f.learned.long_stay(f.phase, f.t);
    let longest = f.longest.any.max(stay.unwrap_or_default());
    let longest = longest.mul_f64(f.t.spin_longest_factor);
    limit.max(longest).mul_f64(f.ratchet)
}
