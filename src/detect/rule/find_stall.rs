//! `find_stall`: MIOpen's search is open by its own lines and does not advance.

use crate::detect::facts::Facts;
use crate::forecast::{cure, forecast};
use crate::model::VerdictId;

use super::{Check, Grade, Signs, span};

pub(super) fn check(f: &Facts<'_>) -> Check {
    let Some(find) = f.find else {
        return Check::clear("no search is open");
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
    if let Some(cpu) = f.channels.figures.cpu_percent {
        numbers.push(format!("CPU {cpu:.0} %"));
    }
    if let Some(busy) = f.channels.figures.busy {
        numbers.push(format!("GPU {busy:.0} %"));
    }
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
