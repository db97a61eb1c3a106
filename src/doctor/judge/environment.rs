//! The exported environment: values that fail, mislead or do nothing.

use std::collections::BTreeMap;

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Group, Id};
use crate::model::visible::Visible;
use crate::profile::{Problem, check_environment};

const ROCR: &str = "ROCR_VISIBLE_DEVICES";
const HIP: &str = "HIP_VISIBLE_DEVICES";
const CUDA: &str = "CUDA_VISIBLE_DEVICES";

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
    let off = |v: &str| ["0", "OFF", "NO", "FALSE", "DISABLE", "DISABLED"].contains(&v);
    for name in ["MIOPEN_NAIVE_DISABLE_IF_ALT", "MIOPEN_NAIVE_TIMEOUT"] {
        // a library that lacks the name is told of with the library
        let read = facts.miopen_knows(name) != Some(false);
        if read && value(name).is_some_and(|v| off(&v)) {
            out.push(
                Finding::warning(
                    Id::FindSlow,
                    format!("{name} is off: a search times the naive kernel to its end"),
                    format!("unset {name}"),
                )
                .why("one launch of that kernel takes seconds to minutes on the shapes of a video decode"),
            );
        }
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

/// What chooses cards, read as a run reads it ([`Visible`]).
fn visible(facts: &Facts, out: &mut Vec<Finding>) {
    if let Visible::Nothing { by } = &facts.visible {
        let names: Vec<&str> = [ROCR, HIP, CUDA]
            .into_iter()
            .filter(|name| by.contains(&format!("{name}=")))
            .collect();
        out.push(
            Finding::warning(
                Id::VisibleDevicesNone,
                format!("{by} shows the program no card"),
                format!("unset {}", names.join(" ")),
            )
            .why("torch may find no GPU then"),
        );
    }
    if facts.amd_cards().next().is_none() {
        return;
    }
    let set = |name: &str| facts.environment.get(name).map(String::as_str);
    // HIP takes an empty list for none, and CUDA's only in place of its own
    let filled = |name| set(name).filter(|v| !v.is_empty());
    let (hip, cuda) = (filled(HIP), filled(CUDA));
    let own = hip.map(|v| (HIP, v)).or_else(|| cuda.map(|v| (CUDA, v)));
    if let (Some(rocr), Some((name, value))) = (set(ROCR), own) {
        out.push(
            Finding::warning(
                Id::VisibleDevicesStacked,
                format!("two variables choose the cards one after another: {ROCR}={rocr}, {name}={value}"),
                format!("keep one: {HIP} for torch on ROCm"),
            )
            .why(format!("{ROCR} filters first and numbers what is left from 0; {name} then counts in that list, so 1 after 1 is no card at all")),
        );
    }
    // beside a card of NVIDIA's the second is for that one
    if let (Some(hip), Some(cuda)) = (hip, cuda)
        && hip != cuda
        && !facts.nvidia()
    {
        out.push(
            Finding::note(
                Id::VisibleDevicesStacked,
                format!("{HIP}={hip} counts, {CUDA}={cuda} does not"),
            )
            .why("HIP reads the second only where the first is not set or empty")
            .cure(format!("unset {CUDA}")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;
    use crate::model::visible::visible as visible_to;

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
        let differ = healthy().with(HIP, "1").with(CUDA, "0");
        let note = found(&differ, Id::VisibleDevicesStacked);
        assert_eq!(note.severity, Severity::Note);
        let empty = healthy().with(HIP, "").with(ROCR, "0");
        assert!(
            absent(&empty, Id::VisibleDevicesStacked),
            "an empty one is none"
        );
        let ordinal = healthy().with(HIP, "0").with("GPU_DEVICE_ORDINAL", "1");
        assert!(
            absent(&ordinal, Id::VisibleDevicesStacked),
            "HIP does not read it"
        );
    }

    /// As the command line does it.
    fn shown(name: &str, value: &str) -> Facts {
        let mut facts = healthy().with(name, value);
        facts.visible = visible_to(&facts.cards, &facts.environment, &|_| None);
        facts
    }

    #[test]
    fn what_hides_every_card_is_told_by_how_it_is_read() {
        for (name, value) in [(HIP, "-1"), (CUDA, "-1"), (ROCR, ""), (HIP, "7")] {
            let none = found(&shown(name, value), Id::VisibleDevicesNone);
            assert_eq!(
                none.what,
                format!("{name}={value} shows the program no card")
            );
            assert_eq!(none.cure.unwrap(), format!("unset {name}"));
            assert!(none.why.unwrap().contains("may"));
        }
        for name in [HIP, CUDA] {
            let empty = shown(name, "");
            assert!(
                absent(&empty, Id::VisibleDevicesNone),
                "HIP takes {name}= for unset"
            );
        }
    }
}
