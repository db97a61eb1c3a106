//! The comparison with the answer, in the order in which a case is scored.

use framepack_tui::model::event::Choice;
use framepack_tui::model::{Severity, VerdictId};

use crate::case::{Case, Expected};
use crate::player::Outcome;
use crate::script::Broken;

/// What must never happen: alarms in false-alarm cases (not even a suspicion), verdicts
/// that are wrong here, restarts of what must not be restarted.
pub(crate) fn never(case: &Case, got: &Outcome) -> Vec<String> {
    let want = &case.expected;
    let mut bad = Vec::new();
    if want.false_alarm_case {
        for (t, v) in &got.verdicts {
            if v.id.severity() >= Severity::Error {
                bad.push(format!(
                    "{t:.1} s: {} {} in a false-alarm case",
                    v.health.word(),
                    v.id
                ));
            }
        }
    }
    for (t, d) in &got.decisions {
        let restart = matches!(d.choice, Choice::Restart { .. } | Choice::GiveUp);
        if restart && (want.false_alarm_case || is_restart(d) && !want.action.auto_restart) {
            bad.push(format!("{t:.1} s: {:?} ({})", d.choice, d.why));
        }
    }
    let faults = got.shown().filter(|(_, v)| !v.id.is_no_fault());
    for (t, v) in faults.filter(|(_, v)| want.must_not.contains(&v.id)) {
        bad.push(format!("{t:.1} s: showed {}", v.id));
    }
    bad
}

/// A harmless verdict is wrong only once the fault must be known.
fn calm_too_long(want: &Expected, got: &Outcome) -> Vec<String> {
    let late = want.detect_by_s.unwrap_or(f64::INFINITY);
    let after = got.shown().filter(|(t, _)| *t > late);
    after
        .map(|(t, v)| (t, v.id))
        .chain(got.at(late).map(|v| (late, v)))
        .filter(|(_, v)| v.is_no_fault() && want.must_not.contains(v))
        .map(|(t, v)| format!("{t:.1} s: still {v}"))
        .collect()
}

fn is_restart(d: &framepack_tui::model::event::Decision) -> bool {
    matches!(d.choice, Choice::Restart { .. })
}

/// Main verdict, phase, time, checkpoints, action.
pub(crate) fn answer(case: &Case, got: &Outcome) -> Vec<String> {
    let want = &case.expected;
    let Some((_, main)) = got.main() else {
        return vec!["no verdict at all".to_owned()];
    };
    let mut bad = Vec::new();
    if !right(want).any(|v| v == main.id) {
        bad.push(format!("says {}, expected {}", main.id, want.verdict));
    }
    let phase = if main.id.is_no_fault() {
        got.phase
    } else {
        Some(main.phase)
    };
    if main.id == want.verdict && phase != Some(want.phase) {
        bad.push(format!("phase {phase:?}, expected {}", want.phase));
    }
    bad.extend(time(want, got));
    bad.extend(calm_too_long(want, got));
    for c in &want.checkpoint {
        let there = got.at(c.t_s);
        if !there.is_some_and(|v| c.any_of.contains(&v)) {
            bad.push(format!("at {} s {there:?}, expected {:?}", c.t_s, c.any_of));
        }
    }
    if main.id == want.verdict && !main.id.is_no_fault() && main.action.as_str() != want.action.id {
        bad.push(format!(
            "action {}, expected {}",
            main.action, want.action.id
        ));
    }
    bad
}

fn right(want: &Expected) -> impl Iterator<Item = VerdictId> {
    want.accept.iter().copied().chain([want.verdict])
}

fn time(want: &Expected, got: &Outcome) -> Option<String> {
    let by = want.detect_by_s.filter(|_| !want.false_alarm_case)?;
    let faults: Vec<_> = right(want).filter(|v| !v.is_no_fault()).collect();
    let first = got.shown().find(|(_, v)| faults.contains(&v.id));
    let earliest = want.earliest_s.unwrap_or_default();
    match first {
        None if faults.is_empty() => None,
        None => Some("never detected".to_owned()),
        Some((t, _)) if t > by => Some(format!("late: {t:.1} s, by {by}")),
        Some((t, _)) if t < earliest => Some(format!("premature: {t:.1} s, from {earliest}")),
        Some(_) => None,
    }
}

/// How a case went wrong, if it did.
pub(crate) fn broken(case: &Case, got: &Outcome) -> Option<Broken> {
    let want = &case.expected;
    let never = never(case, got);
    if never.is_empty() && answer(case, got).is_empty() {
        return None;
    }
    let fault = got.verdicts.iter().any(|(_, v)| !v.id.is_no_fault());
    let late = time(want, got).is_some_and(|why| !why.starts_with("premature"));
    Some(match want.verdict.is_no_fault() {
        true if fault => Broken::Alarm,
        true => Broken::State,
        false if late => Broken::Late,
        false => Broken::Other,
    })
}
