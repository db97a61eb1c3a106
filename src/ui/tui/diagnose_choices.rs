//! What of a diagnosis is shown: the moment that is looked at, the marked row, the events
//! behind a finding. Pure.

use crate::model::{Cite, Considered, Finding, Mono, RuleState, Verdict};
use crate::run::Snapshot;
use crate::ui::diagnosis::is_doubt;

use super::chart_choices::ChartChoices;

/// Which part of a diagnosis is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiagnoseChoices {
    /// The marked row of the findings and rules.
    pub row: usize,
}

/// A row of the findings and rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Item<'a> {
    Rule(&'a Considered),
    Finding(&'a Finding),
    /// A look-alike that it is not.
    RuledOut(&'a str),
}

/// The rules in the order of what they said, each with its findings below it, then what
/// no rule stands for.
pub(super) fn items(v: &Verdict) -> Vec<Item<'_>> {
    let mut list = Vec::new();
    let mut told = vec![false; v.findings.len()];
    for state in [RuleState::Match, RuleState::NotYet, RuleState::Clear] {
        for rule in v.considered.iter().filter(|c| c.state == state) {
            list.push(Item::Rule(rule));
            for (f, told) in v.findings.iter().zip(&mut told) {
                if f.verdict == rule.verdict && !*told {
                    *told = true;
                    list.push(Item::Finding(f));
                }
            }
        }
    }
    let rest = v.findings.iter().zip(&told).filter(|(_, told)| !**told);
    let rest: Vec<_> = rest.map(|(f, _)| Item::Finding(f)).collect();
    // what speaks comes before what does not
    let first = list.iter().position(|i| match i {
        Item::Rule(c) => c.state == RuleState::Clear,
        _ => false,
    });
    let first = first.unwrap_or(list.len());
    list.splice(first..first, rest);
    list.extend(v.ruled_out.iter().map(|r| Item::RuledOut(r)));
    list
}

/// The verdict that is looked at and since when it is in force: the present one, or that
/// of the time cursor.
pub(super) fn shown<'a>(s: &'a Snapshot, c: &ChartChoices) -> (&'a Verdict, Mono) {
    let state = c.cursor.and_then(|t| s.trail.state_at(t));
    match state {
        // the present one has newer numbers than when it was told
        Some(state) if Some(state) != s.trail.states.back() => (&state.verdict, state.at),
        _ => (&s.verdict, s.verdict_since),
    }
}

/// The marked row, if there is one.
pub(super) fn marked<'a>(v: &'a Verdict, c: &DiagnoseChoices) -> Option<Item<'a>> {
    let list = items(v);
    let at = c.row.min(list.len().saturating_sub(1));
    list.get(at).copied()
}

/// The events behind the marked row: of a rule those of its findings.
pub(super) fn cites<'a>(v: &'a Verdict, c: &DiagnoseChoices) -> Vec<&'a Cite> {
    let of = |f: &'a Finding| f.cites.iter();
    match marked(v, c) {
        Some(Item::Finding(f)) => of(f).collect(),
        Some(Item::Rule(rule)) => {
            let mut list: Vec<&Cite> = Vec::new();
            let own = v.findings.iter().filter(|f| f.verdict == rule.verdict);
            for cite in own.flat_map(of) {
                // findings of one rule share their events
                if !list.contains(&cite) {
                    list.push(cite);
                }
            }
            list
        }
        Some(Item::RuledOut(_)) | None => Vec::new(),
    }
}

/// The charts as the timeline shows them: where the user chose no range, the shortest one
/// that begins well before the first sign.
pub(super) fn timeline(s: &Snapshot, c: &ChartChoices) -> ChartChoices {
    let mut c = c.clone();
    let (v, _) = shown(s, &c);
    if c.range.is_none() && is_doubt(v) {
        let now = c.picture(s).now;
        let age = now.0.saturating_sub(v.onset.0);
        // two fifths of the picture are from before
        c.range = ChartChoices::range_of(age.saturating_mul(5) / 3);
    }
    c
}
