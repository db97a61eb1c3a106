//! `find_stall`: MIOpen's search is open by its own lines and does not advance.

use crate::detect::facts::Facts;
use crate::forecast::{cure, forecast};

use super::{Definition, Depth, Restart, Scope, rule, steps};
use crate::detect::rule::{Check, Grade, Signs, loads, span};
use crate::model::{ActionId, Mono, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "MIOpen search or tuning is under way by its own lines (or the agent's op), burns CPU or short GPU bursts, but shows no advance beyond its budget.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Amd),
    depth: Depth::Standstill,
    steps: |phase, _| {
        if steps::is_decode(phase) {
            steps::DECODE
        } else {
            &[(ActionId::FastFind, 1)]
        }
    },
    rules: &[rule(30, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    let Some(find) = f.find else {
        return by_the_agent(f);
    };
    let advanced = find.advanced(f.channels);
    let state = &find.state;
    let stalled = f.now.since(advanced);
    if stalled
        < f.limits
            .find_limit
            .mul_f64(f.t.find_factor * f.t.find_sign_share)
    {
        return Check::Clear(format!("the search advanced {} ago", span(stalled)).into());
    }
    let whose = if f.limits.find_limit_is_users {
        "the limit you set"
    } else {
        "our limit"
    };
    let mut sentence = format!(
        "MIOpen has been searching for {} without an advance ({whose}: {})",
        span(stalled),
        span(f.limits.find_limit)
    );
    if state.is_naive() {
        sentence.push_str("; it times the naive kernel, which may take minutes a launch");
    }
    let cure = cure(state, f.release, f.card).sentence();
    sentence = format!("{sentence}; {cure}");
    let mut numbers = vec![
        format!("Find open for {}", span(f.now.since(state.opened))),
        format!("convolution: {}", state.what()),
    ];
    numbers.extend(state.solver.iter().map(|s| format!("solver: {s}")));
    numbers.extend(state.detail.iter().map(|d| format!("last advance: {d}")));
    let known = state.convolution.as_ref();
    numbers.extend(known.map(|c| forecast(c, f.release, f.card).words()));
    numbers.extend(loads(f.channels.figures));
    Signs {
        verdict: VerdictId::FindStall,
        grade: Grade::Hang,
        since: advanced,
        limit: f.limits.find_limit.mul_f64(f.t.find_factor * f.ratchet),
        sentence,
        numbers,
        ruled_out: vec![
            "a search that advances: no falling count, new solver, better time or ETA".to_owned(),
        ],
        confidence: 0.9,
        cites: vec![find.cites.0.clone(), find.cites.1.clone()],
    }
    .against_limit(f.now)
}

/// MIOpen says nothing, and the agent sees a convolution that does not come back.
fn by_the_agent(f: &Facts<'_>) -> Check {
    let Some((op, age)) = f.conv_on_card() else {
        return Check::clear("no search is open");
    };
    if f.works_elsewhere() || f.compiling {
        return Check::clear("a compiler or a step of the CPU explains it");
    }
    let limit = f.limits.find_limit.mul_f64(f.t.find_factor);
    if age < limit.mul_f64(f.t.find_sign_share) {
        return Check::Clear(format!("a convolution began {} ago", span(age)).into());
    }
    let mut numbers = vec![format!("in flight for {}: {}", span(age), op.words())];
    numbers.extend(loads(f.channels.figures));
    Signs {
        verdict: VerdictId::FindStall,
        grade: Grade::Hang,
        since: Mono(f.now.0.saturating_sub(crate::model::time::millis(age))),
        limit: limit.mul_f64(f.ratchet),
        sentence: format!(
            "{} has been in flight for {}: MIOpen searches or compiles inside the call (our limit: {})",
            op.words(),
            span(age),
            span(f.limits.find_limit)
        ),
        numbers,
        ruled_out: vec![
            "waiting for the card: kernels run after the call that launches them".to_owned(),
        ],
        confidence: 0.85,
        cites: f.beat_cites(),
    }
    .unless_granted(f)
}
