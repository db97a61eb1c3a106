//! The names of the options of torch's allocator, which changed with 2.9.

use crate::doctor::facts::{Facts, TorchFacts};
use crate::doctor::finding::{Finding, Id};

const CURRENT: &str = "PYTORCH_ALLOC_CONF";
/// Names that torch 2.9 deprecates.
const OLD: [&str; 2] = ["PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"];
/// The first torch that reads the current name.
const SINCE: (u32, u32) = (2, 9);

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    let value = |name: &str| facts.environment.get(name);
    let old: Vec<&str> = OLD.into_iter().filter(|n| value(n).is_some()).collect();
    let release = facts.torch().and_then(TorchFacts::release);
    let all: Vec<&str> = old
        .iter()
        .copied()
        .chain(value(CURRENT).map(|_| CURRENT))
        .collect();
    let differ = all.iter().any(|n| value(n) != value(all[0]));
    if all.len() > 1 && differ {
        let keep = match release {
            Some(r) if r < SINCE => "keep PYTORCH_HIP_ALLOC_CONF (this torch is older than 2.9)",
            _ => "keep PYTORCH_ALLOC_CONF alone and unset the others",
        };
        out.push(
            Finding::warning(
                Id::AllocatorShadowed,
                format!(
                    "{} are set to different values: one shadows the others",
                    all.join(" and ")
                ),
                keep,
            )
            .why("torch takes one of them, which one depends on its version"),
        );
    }
    match release {
        Some(r) if r < SINCE && value(CURRENT).is_some() && old.is_empty() => out.push(
            Finding::warning(
                Id::AllocatorUnread,
                format!("{CURRENT} is not read by torch {}.{}", r.0, r.1),
                format!("export PYTORCH_HIP_ALLOC_CONF=\"${CURRENT}\""),
            )
            .why("the name is read from torch 2.9 on"),
        ),
        Some(r) if r >= SINCE && !old.is_empty() && value(CURRENT).is_none() => out.push(
            Finding::note(
                Id::AllocatorDeprecated,
                format!(
                    "{} is a deprecated name in torch {}.{}",
                    old.join(" and "),
                    r.0,
                    r.1
                ),
            )
            .why("it still works and prints a warning")
            .cure(format!(
                "export {CURRENT}=\"${}\"; unset {}",
                old[0],
                old.join(" ")
            )),
        ),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;

    fn torch(version: &str) -> Facts {
        let mut facts = healthy();
        facts.answer_mut().torch.as_mut().unwrap().version = version.to_owned();
        facts
    }

    #[test]
    fn the_right_name_depends_on_the_torch() {
        let conf = "expandable_segments:True";
        let old = torch("2.8.0").with(CURRENT, conf);
        found(&old, Id::AllocatorUnread);
        let new = torch("2.10.0+rocm7.1").with("PYTORCH_HIP_ALLOC_CONF", conf);
        let deprecated = found(&new, Id::AllocatorDeprecated);
        assert!(
            deprecated
                .cure
                .unwrap()
                .contains("export PYTORCH_ALLOC_CONF")
        );
        let fine = torch("2.8.0").with("PYTORCH_HIP_ALLOC_CONF", conf);
        assert!(absent(&fine, Id::AllocatorDeprecated));
        assert!(absent(&fine, Id::AllocatorUnread));
    }

    #[test]
    fn names_that_differ_shadow_each_other() {
        let facts = healthy()
            .with(CURRENT, "max_split_size_mb:128")
            .with("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64");
        found(&facts, Id::AllocatorShadowed);
        let same = healthy()
            .with(CURRENT, "max_split_size_mb:128")
            .with("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128");
        assert!(absent(&same, Id::AllocatorShadowed));
    }
}
