//! How long MIOpen's search for a solver takes with what is installed.

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Id};

/// Architectures of RDNA for which AMD has merged find databases, and where
/// (`projects/miopen/src/kernels` of ROCm/rocm-libraries).
const MERGED: [(&str, &str); 5] = [
    ("gfx1100", "rocm-libraries#9529, July 2026"),
    ("gfx1102", "rocm-libraries#9529, July 2026"),
    ("gfx1201", "rocm-libraries#9529, July 2026"),
    ("gfx1151", "rocm-libraries#10050, after July 2026"),
    ("gfx1200", "rocm-libraries#10050, after July 2026"),
];
/// First ROCm whose search leaves the naive kernel out (MIOpen 3.5.2 in its changelog).
const SHORT: [u32; 2] = [7, 14];

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let arch = facts.supervised_amd().and_then(|card| card.arch.as_deref());
    let arch = arch.and_then(|a| a.split(':').next());
    let Some(arch) = arch else {
        return Vec::new();
    };
    let found = [database(facts, arch), long(facts), needless(facts, arch)];
    found.into_iter().flatten().collect()
}

/// Whether a search leaves the naive kernel out, or bounds it: by the names in the library,
/// else by the version.
fn is_short(facts: &Facts) -> Option<bool> {
    let names = ["MIOPEN_NAIVE_DISABLE_IF_ALT", "MIOPEN_NAIVE_TIMEOUT"];
    let known = names.map(|name| facts.miopen_knows(name));
    if known.contains(&Some(true)) {
        return Some(true);
    }
    let by_version = facts.rocm().map(|rocm| rocm >= SHORT);
    if known.contains(&None) {
        by_version
    } else {
        Some(false)
    }
}

/// Whether fast find is set, by the user or by the profile.
fn fast(facts: &Facts) -> bool {
    const NAME: &str = "MIOPEN_FIND_MODE";
    let own = facts.environment.get(NAME);
    let of_profile = || {
        let profile = facts.profile.known();
        profile.is_some_and(|p| p.sets.contains(NAME))
    };
    own.map_or_else(of_profile, |v| v == "2" || v.eq_ignore_ascii_case("FAST"))
}

fn long(facts: &Facts) -> Option<Finding> {
    // the first search of a video decode takes minutes then, unless it is left out
    (is_short(facts) == Some(false) && !fast(facts)).then(|| {
        Finding::note(
            Id::MiopenSearchLong,
            "this MIOpen times the naive kernel in every search, which takes minutes at the first decode of a size",
        )
        .why("from ROCm 7.14 (MIOpen 3.5.2) on a search leaves that kernel out where another solver works; neither MIOPEN_NAIVE_DISABLE_IF_ALT nor MIOPEN_NAIVE_TIMEOUT is known here")
        .cure("torch for ROCm 7.14 or later, or MIOPEN_FIND_MODE=FAST")
    })
}

fn database(facts: &Facts, arch: &str) -> Option<Finding> {
    let path = facts.libraries.known()?.find_dbs.as_ref()?.path.as_str();
    if facts.has_find_db(arch)? {
        return Some(Finding::ok(
            Id::MiopenFindDb,
            format!(
                "MIOpen comes with a find database for {arch} ({path}): its shapes need no search"
            ),
        ));
    }
    let (_, merged) = MERGED.iter().find(|(of, _)| *of == arch)?;
    Some(
        Finding::note(
            Id::MiopenFindDb,
            format!("no find database for {arch} comes with this MIOpen: every new shape is searched once"),
        )
        .why(format!(
            "AMD merged one ({merged}); the first release that has it was not found"
        ))
        .cure(format!("look for {arch}*.fdb.txt in share/miopen/db of a newer ROCm")),
    )
}

fn needless(facts: &Facts, arch: &str) -> Option<Finding> {
    let needless = fast(facts) && is_short(facts) == Some(true) && facts.has_find_db(arch)?;
    needless.then(|| {
        Finding::note(
            Id::FastFindNeedless,
            "MIOPEN_FIND_MODE=FAST saves little here, and takes solvers by estimate",
        )
        .why(format!(
            "MIOpen comes with a find database for {arch}, and its searches do not wait for the naive kernel"
        ))
        .cure("unset MIOPEN_FIND_MODE, unless a search stalls")
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::facts::{FindDbs, Look};
    use crate::doctor::finding::Severity;

    /// The healthy machine with these names in its library and these databases beside it.
    fn with(names: &[&str], archs: &[&str]) -> Facts {
        let mut facts = healthy();
        let Look::Known(libraries) = &mut facts.libraries else {
            panic!("known")
        };
        if let Some(Look::Known(miopen)) = &mut libraries.miopen {
            miopen.names.extend(names.iter().map(|n| (*n).to_owned()));
        }
        libraries.find_dbs = Some(FindDbs {
            path: "/home/ada/v/torch/share/miopen/db".to_owned(),
            archs: archs.iter().map(|a| (*a).to_owned()).collect(),
        });
        facts
    }

    fn without_profile(mut facts: Facts) -> Facts {
        facts.profile = Look::Unknown("none".to_owned());
        facts
    }

    #[test]
    fn a_database_for_the_card_is_found_or_missed() {
        let has = found(&with(&[], &["gfx1100", "gfx942"]), Id::MiopenFindDb);
        assert_eq!(has.severity, Severity::Ok);
        assert!(has.what.contains("gfx1100"), "{}", has.what);
        let lacks = found(&with(&[], &["gfx942"]), Id::MiopenFindDb);
        assert_eq!(lacks.severity, Severity::Note);
        assert!(lacks.why.unwrap().contains("was not found"));
        let mut other = with(&[], &["gfx942"]);
        other.cards[0].arch = Some("gfx1030".to_owned());
        assert!(absent(&other, Id::MiopenFindDb), "none is merged for it");
        assert!(absent(&healthy(), Id::MiopenFindDb), "no folder, no word");
    }

    #[test]
    fn a_search_that_times_the_naive_kernel_is_said_where_nothing_prevents_it() {
        let facts = without_profile(with(&[], &[]));
        let long = found(&facts, Id::MiopenSearchLong);
        assert_eq!(long.severity, Severity::Note);
        assert!(long.cure.unwrap().contains("ROCm 7.14"));
        let fast = facts.with("MIOPEN_FIND_MODE", "FAST");
        assert!(absent(&fast, Id::MiopenSearchLong));
        for name in ["MIOPEN_NAIVE_DISABLE_IF_ALT", "MIOPEN_NAIVE_TIMEOUT"] {
            let newer = without_profile(with(&[name], &[]));
            assert!(absent(&newer, Id::MiopenSearchLong), "{name}");
        }
        assert!(absent(&healthy(), Id::MiopenSearchLong), "the profile's");
    }

    #[test]
    fn fast_find_is_needless_only_with_both() {
        let name = "MIOPEN_NAIVE_DISABLE_IF_ALT";
        found(&with(&[name], &["gfx1100"]), Id::FastFindNeedless);
        assert!(absent(&with(&[name], &[]), Id::FastFindNeedless));
        assert!(absent(&with(&[], &["gfx1100"]), Id::FastFindNeedless));
        let mode = with(&[name], &["gfx1100"]).with("MIOPEN_FIND_MODE", "HYBRID");
        assert!(absent(&mode, Id::FastFindNeedless));
    }
}
