//! `find_stall`: MIOpen's search is open by its own lines and does not advance.

use crate::detect::facts::Facts;
use crate::model::{FindMark, VerdictId};

use super::{Check, Grade, Signs, span};

pub(super) fn check(f: &Facts<'_>) -> Check {
    let Some(find) = f.find else {
        return Check::clear("no search is open");
    };
    // a search that only warnings told of has no last line: a model that runs on the
    // card says that it is over
    let advanced = if find.key == FindMark::UNNAMED {
        find.advanced.max(f.channels.model_ran)
    } else {
        find.advanced
    };
    let stalled = f.now.since(advanced);
    if stalled
        < f.limits
            .find_limit
            .mul_f64(f.t.find_factor * f.t.find_sign_share)
    {
        return Check::Clear(format!("the search advanced {} ago", span(stalled)).into());
    }
    let naive = find
        .solver
        .as_deref()
        .is_some_and(|s| s.to_lowercase().contains("naive"));
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
    if naive {
        sentence.push_str(
            "; it times the naive kernel, which may take minutes a launch: smaller tiles cure the cause, waiting may end it too",
        );
    }
    let mut numbers = vec![
        format!("Find open for {}", span(f.now.since(find.opened))),
        format!("convolution: {}", find.key),
    ];
    numbers.extend(find.solver.iter().map(|s| format!("solver: {s}")));
    numbers.extend(find.detail.iter().map(|d| format!("last advance: {d}")));
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
