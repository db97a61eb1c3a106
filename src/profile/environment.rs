//! The environment that the user exported, judged before anything is launched.

use std::collections::BTreeMap;

use crate::model::agent_setting;

use super::knob::{KnobProblem, check_value, knob};
use super::problem::Problem;

/// Variables of the agent's, and the settings that they are.
const AGENT: [(&str, &str); 2] = [("FPT_CONV", "conv"), ("FPT_CONV_TIER", "conv_tier")];

/// Problems of the variables that the user has exported.
///
/// A value that its library does not know is an error: the run would fail, or do
/// something else than the user believes. A name known to do nothing, or a
/// `MIOPEN_…` name that no examined version reads, is a warning. Variables that
/// are not in the catalogue are nobody's business.
pub fn check_environment(vars: &BTreeMap<String, String>) -> Vec<Problem> {
    let relevant = |name: &str| knob(name).is_some() || name.starts_with("MIOPEN_");
    vars.iter()
        .filter(|(name, _)| relevant(name))
        .filter_map(|(name, value)| check_value(name, value).err())
        .map(|problem| judge(&problem))
        .chain(
            AGENT
                .iter()
                .filter_map(|(name, key)| agents(name, key, vars)),
        )
        .collect()
}

/// What is wrong with a variable of the agent's; an empty one counts as unset.
fn agents(name: &str, key: &str, vars: &BTreeMap<String, String>) -> Option<Problem> {
    let value = vars.get(name).filter(|value| !value.is_empty())?;
    let takes = agent_setting(key)?.takes;
    if takes.has(value) {
        return None;
    }
    let value = value.escape_debug();
    let message = format!("your environment: `{name}={value}` is not a value that the agent knows");
    Some(Problem::error("K103", message).fix(format!("write {takes}, or `unset {name}`")))
}

fn judge(problem: &KnobProblem) -> Problem {
    let message = match problem {
        KnobProblem::Unknown { name, .. } => {
            format!("`{name}` is set in your environment, but no examined MIOpen version reads it")
        }
        other => format!("your environment: {other}"),
    };
    let base = match problem {
        KnobProblem::OutOfDomain { .. } => Problem::error(problem.code(), message),
        _ => Problem::warning(problem.code(), message),
    };
    let name = match problem {
        KnobProblem::Unknown { name, .. }
        | KnobProblem::NoEffect { name, .. }
        | KnobProblem::OutOfDomain { name, .. }
        | KnobProblem::NumberForWord { name, .. } => name,
    };
    let fix = match problem {
        KnobProblem::Unknown { near, .. } if near.is_empty() => format!("`unset {name}`"),
        KnobProblem::OutOfDomain { .. } => {
            format!("{}, or `unset {name}`", problem.fix().unwrap_or_default())
        }
        _ => problem.fix().unwrap_or_default(),
    };
    base.fix(fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Vec<Problem> {
        check_environment(&BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn values_that_miopen_does_not_know_are_refused() {
        let found = check("MIOPEN_FIND_MODE", "DYNAMIC");
        assert_eq!(
            found[0].one_line(),
            "K103: your environment: `MIOPEN_FIND_MODE=DYNAMIC` is not a value that MIOpen knows: \
             MIOpen throws `stoul` and every convolution fails \
             (use DYNAMIC_HYBRID, or `unset MIOPEN_FIND_MODE`)"
        );
        assert!(found[0].is_error());
        assert!(check("MIOPEN_FIND_ENFORCE", "DB_ONLY")[0].is_error());
    }

    #[test]
    fn names_that_do_nothing_are_warnings() {
        let found = check("MIOPEN_FIND_TIME_LIMIT", "30");
        assert_eq!(found[0].level, super::super::problem::Level::Warning);
        assert!(found[0].fix.as_ref().unwrap().contains("find_limit"));
        assert!(!check("MIOPEN_FIND_MOOD", "FAST")[0].is_error());
        assert!(!check("MIOPEN_FIND_MODE", "1")[0].is_error());
    }

    #[test]
    fn values_that_the_agent_does_not_know_are_refused() {
        let found = check("FPT_CONV_TIER", "purple");
        assert_eq!(
            found[0].one_line(),
            "K103: your environment: `FPT_CONV_TIER=purple` is not a value that the agent knows \
             (write one of `native`, `split`, `nocudnn`, `cpu`, or `unset FPT_CONV_TIER`)"
        );
        assert!(found[0].is_error());
        for (name, value) in [
            ("FPT_CONV", "watch"),
            ("FPT_CONV", ""),
            ("FPT_CONV_TIER", "cpu"),
        ] {
            assert!(check(name, value).is_empty(), "{name}={value}");
        }
    }

    #[test]
    fn other_variables_are_left_alone() {
        assert!(check("PATH", "/usr/bin").is_empty());
        assert!(check("MIOPEN_FIND_MODE", "FAST").is_empty());
    }
}
