//! What follows from a verdict that does not say it itself.

use crate::model::Verdict;
use crate::policy::{RemedyFacts, remedy};

use super::report::Action;

/// The action of a verdict.
pub(super) fn action(verdict: &Verdict) -> Action {
    let said = verdict.remedy.clone();
    // of the default table, where nothing else is known
    let remedy = said.unwrap_or_else(|| remedy(verdict, &RemedyFacts::default()));
    Action {
        id: remedy.action,
        tier: remedy.tier,
        auto_restart: remedy.auto_restart,
        env: remedy.env,
        why: remedy.why,
    }
}
