//! What follows from a verdict.

use crate::detect::verdicts::RemedyFacts;
use crate::model::Verdict;
use crate::policy::remedy;

use super::report::Action;

/// The action of a verdict; one of a record before 1.3 has none of its own yet.
pub(super) fn action(verdict: &Verdict) -> Action {
    let told = verdict.remedy.clone();
    let remedy = told.unwrap_or_else(|| remedy(verdict, &RemedyFacts::default()));
    Action {
        id: remedy.action,
        tier: remedy.tier,
        auto_restart: remedy.auto_restart,
        env: remedy.env,
        why: remedy.why,
    }
}
