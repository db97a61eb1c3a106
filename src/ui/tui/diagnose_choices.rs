//! What of a diagnosis is shown: the moment that is looked at, the marked row, the events
//! behind a finding. Pure.

use crate::model::{Cite, Considered, Finding, Mono, RuleState, Verdict, VerdictId};
use crate::run::Snapshot;
use crate::ui::diagnosis::{is_doubt, is_fault};
use crate::ui::questions::{Asked, asked};

use super::chart_choices::ChartChoices;

/// Which part of a diagnosis is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiagnoseChoices {
    /// The marked row of the findings and rules; absent: the first below the questions.
    pub row: Option<usize>,
}

impl DiagnoseChoices {
    /// The marked one of these rows; 0 where there are none.
    pub(super) fn marked_row(&self, list: &[Item<'_>]) -> usize {
        let first = || {
            let answer = |item: &Item<'_>| matches!(item, Item::Question(_));
            list.iter().position(|item| !answer(item)).unwrap_or(0)
        };
        let row = self.row.unwrap_or_else(first);
        row.min(list.len().saturating_sub(1))
    }
}

/// A row of the findings and rules.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item<'a> {
    /// One of the three questions with its answer.
    Question(Asked),
    Rule(&'a Considered),
    /// What findings speak for, where no rule is told (records before 1.3).
    Unasked(VerdictId, RuleState),
    Finding(&'a Finding),
    /// A look-alike that it is not.
    RuledOut(&'a str),
}

/// The three questions, the rules in the order of what they said, each with its findings
/// below it, then what no rule stands for.
pub(super) fn items(v: &Verdict) -> Vec<Item<'_>> {
    let questions = v.questions.as_deref().map(asked);
    let mut list: Vec<Item<'_>> = questions
        .into_iter()
        .flatten()
        .map(Item::Question)
        .collect();
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
    let mut rest = Vec::new();
    for (f, _) in v.findings.iter().zip(&told).filter(|(_, told)| !**told) {
        let head = Item::Unasked(f.verdict, unasked(v));
        if !rest.contains(&head) {
            rest.push(head);
        }
        rest.push(Item::Finding(f));
    }
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

/// What the rule behind a finding must have said.
const fn unasked(v: &Verdict) -> RuleState {
    if is_fault(v.health) {
        RuleState::Match
    } else {
        RuleState::NotYet
    }
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
    list.get(c.marked_row(&list)).cloned()
}

/// The events behind the marked row: of a rule those of its findings.
pub(super) fn cites<'a>(v: &'a Verdict, c: &DiagnoseChoices) -> Vec<&'a Cite> {
    let of = |f: &'a Finding| f.cites.iter();
    let id = match marked(v, c) {
        Some(Item::Finding(f)) => return of(f).collect(),
        Some(Item::Rule(rule)) => rule.verdict,
        Some(Item::Unasked(id, _)) => id,
        Some(Item::Question(_) | Item::RuledOut(_)) | None => return Vec::new(),
    };
    let mut list: Vec<&Cite> = Vec::new();
    let own = v.findings.iter().filter(|f| f.verdict == id);
    for cite in own.flat_map(of) {
        // findings of one rule share their events
        if !list.contains(&cite) {
            list.push(cite);
        }
    }
    list
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
