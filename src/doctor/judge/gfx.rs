//! `HSA_OVERRIDE_GFX_VERSION` against the real card.

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Id};

use super::versions::relative;

const NAME: &str = "HSA_OVERRIDE_GFX_VERSION";

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    let Some(value) = facts.environment.get(NAME) else {
        return;
    };
    // a value that is no version is told by the catalogue
    let Some(claimed) = arch(value) else { return };
    let mut cards = facts
        .amd_cards()
        .filter_map(|c| Some((c, c.arch.as_deref()?)));
    let Some((card, real)) = cards.next() else {
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
                relative(real).map_or(unset, |(_, version)| format!("export {NAME}={version}")),
            )
            .why("kernels of an architecture with other instructions fault or hang"),
        );
    }
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
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;

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
}
