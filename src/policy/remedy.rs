//! What follows from a verdict by itself: the default table of the vocabulary
//! (`tests/cases/README.md`), with a sentence for people.

use std::collections::BTreeMap;

use crate::causes::Explanation;
use crate::detect::verdicts::{RemedyFacts, Step, may_restart};
use crate::model::{ActionId, Cause, Remedy, Tier, Verdict};

/// The remedy of a verdict.
pub fn remedy(verdict: &Verdict, facts: &RemedyFacts) -> Remedy {
    let all = (verdict.id.definition().steps)(verdict.phase, facts);
    let new = all.iter().filter(|(id, _)| !facts.in_force.contains(id));
    let new: Vec<Step> = new.copied().collect();
    // where every step is taken already, the last is the best that is known
    let steps = if new.is_empty() { all } else { new.as_slice() };
    let tries = usize::try_from(facts.tries).unwrap_or(usize::MAX);
    let (action, tier) = steps
        .get(tries.min(steps.len().saturating_sub(1)))
        .copied()
        .unwrap_or((ActionId::None, 0));
    // what was tried in vain is not advised again: the table's next step is
    if let Some(cause) = facts.cause.as_ref().filter(|_| tries == 0) {
        return cured(verdict, facts, cause, (action, tier));
    }
    // one restart with nothing changed is enough to tell chance from a cause
    let again = action == ActionId::RetrySame && tries > 0;
    let env = environment(action);
    Remedy {
        action,
        tier,
        auto_restart: may_restart(verdict, facts.recovered, facts.kept) && !again,
        why: sentence(verdict, facts, action, &env),
        env,
    }
}

/// The same, with the words of the cause in the verdict.
pub fn explained(verdict: &mut Verdict, facts: &RemedyFacts) -> Remedy {
    if let Some(cause) = &facts.cause {
        if let Some(sentence) = &cause.sentence {
            verdict.sentence.clone_from(sentence);
        }
        verdict.cause = Some(Box::new(Cause {
            id: cause.id.clone(),
            source: cause.source.clone(),
        }));
    }
    remedy(verdict, facts)
}

/// The remedy that the cause names, with the table's action where it names none.
fn cured(verdict: &Verdict, facts: &RemedyFacts, cause: &Explanation, by_table: Step) -> Remedy {
    let (action, tier) = cause.action.map_or(by_table, |id| (id, id.tier().number()));
    let unasked = may_restart(verdict, facts.recovered, facts.kept);
    let by_user = action.tier() == Tier::T4;
    Remedy {
        action,
        tier,
        auto_restart: unasked && !by_user,
        // the table's variables belong to the table's instruction
        env: if cause.env.is_empty() && cause.action != Some(ActionId::EnvToggle) {
            environment(action)
        } else {
            cause.env.clone()
        },
        why: cause.cure.clone(),
    }
}

/// Environment that a restart needs for an action.
fn environment(action: ActionId) -> BTreeMap<String, String> {
    let set: &[(&str, &str)] = match action {
        ActionId::FastFind => &[
            ("MIOPEN_FIND_MODE", "FAST"),
            ("MIOPEN_FIND_ENFORCE", "NONE"),
        ],
        ActionId::ImmediateNaive => &[("MIOPEN_DEBUG_FORCE_IMMED_MODE_FALLBACK", "1")],
        // the only variable that follows from a verdict by itself: see `steps`
        ActionId::EnvToggle => &[("HSA_ENABLE_SDMA", "0")],
        _ => &[],
    };
    set.iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn sentence(
    verdict: &Verdict,
    facts: &RemedyFacts,
    action: ActionId,
    env: &BTreeMap<String, String>,
) -> String {
    let words = words(verdict, facts, action);
    if env.is_empty() {
        return words;
    }
    let list: Vec<String> = env.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let list = list.join(" ");
    if words.contains("MIOPEN_FIND_MODE=FAST") || list.is_empty() {
        return words;
    }
    format!("{words} ({list})")
}

/// What is to be done, without the variables.
fn words(verdict: &Verdict, facts: &RemedyFacts, action: ActionId) -> String {
    (verdict.id.definition().advice)(verdict, facts, action)
        .unwrap_or_else(|| super::decide::advice(action).to_owned())
}

#[cfg(test)]
#[path = "remedy_tests.rs"]
mod tests;
