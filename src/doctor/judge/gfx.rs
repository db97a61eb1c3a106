//! `HSA_OVERRIDE_GFX_VERSION` against the real card.

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Id};
use crate::model::GpuSample;

use super::versions::relative;

const NAME: &str = "HSA_OVERRIDE_GFX_VERSION";

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    let Some(value) = facts.environment.get(NAME) else {
        return;
    };
    // a value that is no version is told by the catalogue
    let Some(claimed) = arch(value) else { return };
    for other in facts.other_amd() {
        out.extend(beside(facts, other, value, &claimed));
    }
    let Some((card, real)) = facts
        .supervised_amd()
        .and_then(|c| Some((c, c.arch.as_deref()?)))
    else {
        return;
    };
    let unset = format!("unset {NAME}");
    let kernels = facts
        .libraries
        .known()
        .and_then(|l| l.rocblas_archs.as_ref());
    if claimed == real {
        out.push(
            Finding::note(
                Id::GfxOverrideNeedless,
                format!("{NAME}={value} says what {} is anyway ({real})", card.name),
            )
            .cure(unset),
        );
    } else if kernels.is_some_and(|k| k.contains(real)) {
        out.push(
            Finding::warning(
                Id::GfxOverrideNeedless,
                format!("{NAME}={value} makes {claimed} of a {real} that this torch has kernels for"),
                unset,
            )
            .why("kernels that were tuned for another chip are slower, and MIOpen's databases are kept under the wrong name"),
        );
    } else if relative(real).is_some_and(|(of, _)| of == claimed) {
        out.push(Finding::note(
            Id::GfxOverrideInUse,
            format!(
                "{NAME}={value}: {} ({real}) is taken for {claimed}",
                card.name
            ),
        ));
    } else {
        out.push(
            Finding::error(
                Id::GfxOverrideWrong,
                format!("{NAME}={value} makes {claimed} of a {real}"),
                relative(real)
                    .filter(|(of, _)| !misnames_another(facts, of))
                    .map_or(unset, |(_, version)| format!("export {NAME}={version}")),
            )
            .why("kernels of an architecture with other instructions fault or hang"),
        );
    }
}

/// A card that is not supervised gets the name as well: the variable has no regard for
/// which card it is.
fn beside(facts: &Facts, card: &GpuSample, value: &str, claimed: &str) -> Option<Finding> {
    let real = card.arch.as_deref().filter(|real| !bears(real, claimed))?;
    let finding = Finding::note(
        Id::GfxOverrideWrong,
        format!(
            "{NAME}={value} makes {claimed} of the {real} of {} as well, which is not supervised",
            card.name
        ),
    )
    .why("the variable names every card anew; a program that uses this one faults or hangs");
    Some(match facts.supervised_amd() {
        Some(supervised) => finding.cure(alone(facts, supervised)),
        None => finding.cure(format!("unset {NAME}")),
    })
}

/// Whether a card may be called `claimed` without harm.
fn bears(real: &str, claimed: &str) -> bool {
    real == claimed || relative(real).is_some_and(|(of, _)| of == claimed)
}

/// Whether calling the cards `claimed` would give a wrong name to one that is not
/// supervised and that the command may see.
pub(super) fn misnames_another(facts: &Facts, claimed: &str) -> bool {
    facts
        .other_amd()
        .any(|c| c.arch.as_deref().is_none_or(|real| !bears(real, claimed)))
}

/// How the command is shown one card alone.
pub(super) fn alone(facts: &Facts, card: &GpuSample) -> String {
    // HIP counts in what ROCr has left
    let counted = !facts.environment.contains_key("ROCR_VISIBLE_DEVICES");
    card.compute_index.filter(|_| counted).map_or_else(
        || {
            format!(
                "export HIP_VISIBLE_DEVICES=N, N being the number by which HIP counts {}",
                card.name
            )
        },
        |n| {
            format!(
                "export HIP_VISIBLE_DEVICES={n}, so that the program sees {} alone",
                card.name
            )
        },
    )
}

/// `11.0.0` is gfx1100, `9.0.10` gfx90a.
fn arch(version: &str) -> Option<String> {
    let parts: Vec<u32> = version
        .trim()
        .split('.')
        .map(|p| p.parse().ok())
        .collect::<Option<_>>()?;
    let [major, minor, step] = parts[..] else {
        return None;
    };
    (major < 100 && minor < 16 && step < 16).then(|| format!("gfx{major}{minor:x}{step:x}"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, beside_an_apu, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;
    use crate::model::visible::Visible;

    #[test]
    fn versions_are_architectures() {
        assert_eq!(arch("11.0.0").as_deref(), Some("gfx1100"));
        assert_eq!(arch("9.0.10").as_deref(), Some("gfx90a"));
        assert_eq!(arch("10.3.0").as_deref(), Some("gfx1030"));
        assert_eq!(arch("11.0"), None);
        assert_eq!(arch("11.0.99"), None);
    }

    #[test]
    fn an_override_is_judged_by_the_card_and_the_kernels() {
        let same = healthy().with(NAME, "11.0.0");
        assert_eq!(
            found(&same, Id::GfxOverrideNeedless).severity,
            Severity::Note
        );
        let needless = healthy().with(NAME, "10.3.0");
        let f = found(&needless, Id::GfxOverrideNeedless);
        assert_eq!(f.severity, Severity::Warning);
        let mut navi32 = healthy().with(NAME, "11.0.0");
        navi32.cards[0].arch = Some("gfx1101".to_owned());
        found(&navi32, Id::GfxOverrideInUse);
        navi32
            .environment
            .insert(NAME.to_owned(), "10.3.0".to_owned());
        let wrong = found(&navi32, Id::GfxOverrideWrong);
        assert_eq!(wrong.severity, Severity::Error);
        assert!(wrong.cure.unwrap().ends_with("11.0.0"));
        let mut unknown = navi32;
        unknown.cards[0].arch = None;
        assert!(
            absent(&unknown, Id::GfxOverrideWrong),
            "nothing to compare with"
        );
    }

    #[test]
    fn the_supervised_card_is_judged_whatever_lies_first_on_the_bus() {
        for apu_first in [true, false] {
            let facts = beside_an_apu(apu_first);
            let same = facts.clone().with(NAME, "11.0.0");
            let needless = found(&same, Id::GfxOverrideNeedless);
            assert!(needless.what.contains("7900 XTX"), "{}", needless.what);
            let beside = found(&same, Id::GfxOverrideWrong);
            assert_eq!(beside.severity, Severity::Note);
            assert!(beside.what.contains("gfx1036"), "{}", beside.what);
            let cure = beside.cure.unwrap();
            assert!(cure.contains("HIP_VISIBLE_DEVICES=0"), "{cure}");
            let for_the_apu = facts.clone().with(NAME, "10.3.0");
            let warned = found(&for_the_apu, Id::GfxOverrideNeedless);
            assert_eq!(warned.severity, Severity::Warning);
            assert!(
                warned
                    .what
                    .ends_with("gfx1100 that this torch has kernels for")
            );
            assert!(
                absent(&for_the_apu, Id::GfxOverrideWrong),
                "it suits the APU"
            );
        }
    }

    #[test]
    fn an_override_that_misnames_another_card_is_no_cure() {
        for apu_first in [true, false] {
            let mut facts = beside_an_apu(apu_first).with(NAME, "9.0.0");
            facts.cards[usize::from(apu_first)].arch = Some("gfx1101".to_owned());
            let of_card = |facts: &Facts| {
                let all = crate::doctor::judge::all(facts);
                let errors = all
                    .into_iter()
                    .find(|f| f.id == Id::GfxOverrideWrong && f.severity == Severity::Error);
                errors.unwrap().cure.unwrap()
            };
            assert_eq!(of_card(&facts), format!("unset {NAME}"));
            facts.visible = Visible::These {
                cards: vec![usize::from(apu_first)],
                by: "HIP_VISIBLE_DEVICES=0".to_owned(),
            };
            assert_eq!(of_card(&facts), format!("export {NAME}=11.0.0"));
        }
    }
}
