//! The exported environment: values that fail, mislead or do nothing.

use std::collections::BTreeMap;

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Group, Id};
use crate::profile::{Problem, check_environment};

/// Variables that choose cards, outermost first.
const VISIBLE: [&str; 4] = [
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HIP_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
];

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    values(facts, out);
    searches(facts, out);
    visible(facts, out);
}

/// Says that the environment is in order where nobody has said anything else.
pub(super) fn in_order(findings: &mut Vec<Finding>) {
    if !findings.iter().any(|f| f.group == Group::Environment) {
        findings.push(Finding::ok(
            Id::EnvironmentOk,
            "no variable of the environment misleads",
        ));
    }
}

/// What the catalogue of variables says.
fn values(facts: &Facts, out: &mut Vec<Finding>) {
    for (name, value) in &facts.environment {
        let alone = BTreeMap::from([(name.clone(), value.clone())]);
        for problem in check_environment(&alone) {
            // the library itself knows better than the catalogue
            let read = problem.code == "K101" && facts.miopen_knows(name) == Some(true);
            // that it is slow says more than that it is a number
            let told = problem.code == "K104" && find_mode_is_slow(facts, name);
            if !read && !told {
                out.push(of_problem(&problem));
            }
        }
    }
}

fn of_problem(problem: &Problem) -> Finding {
    let cure = problem.fix.clone().unwrap_or_else(|| "unset it".to_owned());
    let what = problem.message.trim_start_matches("your environment: ");
    match problem.code {
        "K101" => Finding::warning(Id::EnvUnknownName, what, cure),
        "K102" => Finding::warning(Id::EnvNoEffect, what, cure),
        "K104" => Finding::note(Id::EnvUnclear, what).cure(cure),
        _ if problem.is_error() => Finding::error(Id::EnvBadValue, what, cure),
        _ => Finding::warning(Id::EnvUnclear, what, cure),
    }
}

fn find_mode_is_slow(facts: &Facts, name: &str) -> bool {
    let value = facts.environment.get("MIOPEN_FIND_MODE");
    name == "MIOPEN_FIND_MODE"
        && value.is_some_and(|v| v == "1" || v.eq_ignore_ascii_case("NORMAL"))
}

/// Settings that make MIOpen search for long, or again and again.
fn searches(facts: &Facts, out: &mut Vec<Finding>) {
    let value = |name: &str| {
        let value = facts.environment.get(name)?;
        Some(value.to_ascii_uppercase())
    };
    if find_mode_is_slow(facts, "MIOPEN_FIND_MODE") {
        out.push(
            Finding::warning(
                Id::FindSlow,
                "MIOPEN_FIND_MODE is NORMAL, the slowest mode",
                "export MIOPEN_FIND_MODE=FAST, or unset MIOPEN_FIND_MODE (DYNAMIC_HYBRID)",
            )
            .why("every convolution is benchmarked with every solver, again in each new process; 1 is NORMAL, FAST is 2"),
        );
    }
    if let Some(enforce) = value("MIOPEN_FIND_ENFORCE").filter(|v| {
        ["2", "3", "4", "DB_UPDATE", "SEARCH", "SEARCH_DB_UPDATE"].contains(&v.as_str())
    }) {
        out.push(
            Finding::warning(
                Id::FindSlow,
                format!("MIOPEN_FIND_ENFORCE={enforce} tunes every convolution"),
                "unset MIOPEN_FIND_ENFORCE",
            )
            .why("it forces the find mode NORMAL and can take hours for one network; it is no cure of a hang"),
        );
    }
    let on = |v: &str| ["1", "ON", "YES", "TRUE", "ENABLE", "ENABLED"].contains(&v);
    if value("MIOPEN_DISABLE_CACHE").is_some_and(|v| on(&v)) {
        out.push(
            Finding::warning(
                Id::KernelCacheOff,
                "MIOPEN_DISABLE_CACHE is on",
                "unset MIOPEN_DISABLE_CACHE",
            )
            .why("every kernel is compiled again in each process"),
        );
    }
}

/// Each of these filters what the one before has left, and numbers it anew.
fn visible(facts: &Facts, out: &mut Vec<Finding>) {
    let set: Vec<(&str, &str)> = VISIBLE
        .iter()
        .filter_map(|n| Some((*n, facts.environment.get(*n)?.as_str())))
        .collect();
    for (name, value) in &set {
        if value.trim().is_empty() || value.trim() == "-1" {
            out.push(
                Finding::warning(
                    Id::VisibleDevicesNone,
                    format!("{name}={value} hides every card"),
                    format!("unset {name}"),
                )
                .why("torch then sees no GPU"),
            );
        }
    }
    let amd = set
        .iter()
        .filter(|(name, _)| facts.amd() || *name != "ROCR_VISIBLE_DEVICES");
    let amd: Vec<&(&str, &str)> = amd.collect();
    if let [first, rest @ .., last] = &amd[..] {
        let same = rest.iter().chain([last]).all(|(name, value)| {
            // HIP reads either of the two; the same value twice is one choice
            first.0 != "ROCR_VISIBLE_DEVICES" && *value == first.1 && *name != first.0
        });
        if !same {
            let all: Vec<String> = amd.iter().map(|(n, v)| format!("{n}={v}")).collect();
            out.push(
                Finding::warning(
                    Id::VisibleDevicesStacked,
                    format!("several variables choose the cards: {}", all.join(", ")),
                    "keep one: HIP_VISIBLE_DEVICES for torch on ROCm",
                )
                .why("ROCR_VISIBLE_DEVICES filters first and numbers what is left from 0; HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES) then counts in that list, so 1 after 1 is no card at all"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;

    #[test]
    fn the_catalogue_is_heard() {
        let bad = healthy().with("MIOPEN_FIND_MODE", "DYNAMIC");
        assert_eq!(found(&bad, Id::EnvBadValue).severity, Severity::Error);
        let nothing = healthy().with("MIOPEN_FIND_TIME_LIMIT", "30");
        assert_eq!(found(&nothing, Id::EnvNoEffect).severity, Severity::Warning);
        let mut unknown = healthy().with("MIOPEN_FIND_MOOD", "1");
        found(&unknown, Id::EnvUnknownName);
        unknown
            .library_mut()
            .names
            .insert("MIOPEN_FIND_MOOD".to_owned());
        assert!(absent(&unknown, Id::EnvUnknownName), "this one reads it");
        found(&healthy().with("MIOPEN_LOG_LEVEL", "5"), Id::EnvironmentOk);
        let slow = healthy().with("MIOPEN_FIND_MODE", "1");
        assert!(absent(&slow, Id::EnvUnclear), "told once");
        found(&healthy().with("MIOPEN_FIND_MODE", "2"), Id::EnvUnclear);
        assert!(absent(&bad, Id::EnvironmentOk));
    }

    #[test]
    fn one_is_the_slowest_mode_not_the_fast_one() {
        let facts = healthy().with("MIOPEN_FIND_MODE", "1");
        assert!(
            found(&facts, Id::FindSlow)
                .why
                .unwrap()
                .contains("FAST is 2")
        );
        let facts = healthy().with("MIOPEN_FIND_ENFORCE", "search");
        found(&facts, Id::FindSlow);
        assert!(absent(
            &healthy().with("MIOPEN_FIND_MODE", "FAST"),
            Id::FindSlow
        ));
        found(
            &healthy().with("MIOPEN_DISABLE_CACHE", "1"),
            Id::KernelCacheOff,
        );
    }

    #[test]
    fn filters_that_compose_are_told() {
        let one = healthy().with("HIP_VISIBLE_DEVICES", "1");
        assert!(absent(&one, Id::VisibleDevicesStacked));
        let both = one.with("ROCR_VISIBLE_DEVICES", "1");
        found(&both, Id::VisibleDevicesStacked);
        let twins = healthy()
            .with("HIP_VISIBLE_DEVICES", "1")
            .with("CUDA_VISIBLE_DEVICES", "1");
        assert!(absent(&twins, Id::VisibleDevicesStacked));
        found(
            &healthy().with("HIP_VISIBLE_DEVICES", "-1"),
            Id::VisibleDevicesNone,
        );
    }
}
