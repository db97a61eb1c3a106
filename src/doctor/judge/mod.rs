//! Facts into findings. Pure: every judge is a function of [`Facts`].

mod allocator;
mod cards;
mod environment;
mod folders;
mod gfx;
mod miopen;
mod permissions;
mod resources;
mod search;
mod sources;
mod versions;
mod workload;

#[cfg(test)]
pub(crate) mod testing;

use super::facts::Facts;
use super::finding::{Finding, Id};

/// Every finding.
pub(super) fn all(facts: &Facts) -> Vec<Finding> {
    let judges: [fn(&Facts, &mut Vec<Finding>); 11] = [
        sources::judge,
        cards::judge,
        permissions::judge,
        versions::judge,
        miopen::judge,
        environment::judge,
        allocator::judge,
        gfx::judge,
        folders::judge,
        resources::judge,
        workload::judge,
    ];
    let mut findings = Vec::new();
    for judge in judges {
        judge(facts, &mut findings);
    }
    environment::in_order(&mut findings);
    findings
}

/// A look that gave no answer.
fn no_answer(what: &str, why: &str) -> Finding {
    Finding::warning(
        Id::CheckNoAnswer,
        format!("{what} could not be looked at: {why}"),
        "see whether the file system answers (`mount`, `df`), then run doctor again",
    )
}

/// A list in words, shortened after `most`.
fn list<'a>(items: impl IntoIterator<Item = &'a str>, most: usize) -> String {
    let items: Vec<&str> = items.into_iter().collect();
    let shown = items
        .iter()
        .take(most)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match items.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::testing::healthy;
    use super::*;
    use crate::doctor::finding::Severity;

    #[test]
    fn a_healthy_machine_is_clean() {
        let bad: Vec<_> = all(&healthy())
            .into_iter()
            .filter(|f| f.severity != Severity::Ok)
            .collect();
        assert_eq!(bad, [], "{bad:#?}");
    }

    #[test]
    fn a_list_is_cut_in_words() {
        assert_eq!(list(["a", "b"], 2), "a, b");
        assert_eq!(list(["a", "b", "c"], 2), "a, b and 1 more");
    }
}
