//! The interpreter, and whether its torch suits the card.

use std::collections::BTreeSet;

use crate::doctor::facts::{Facts, PythonAnswer, PythonFacts, PythonOutcome, TorchFacts};
use crate::doctor::finding::{Finding, Id};

const INSTALL: &str = "pip install --force-reinstall torch torchvision --index-url https://download.pytorch.org/whl/rocm6.4   # or the newest rocm index there";

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    let PythonFacts {
        path, chosen_by, ..
    } = &facts.python;
    let shown = path.as_deref().unwrap_or("the interpreter");
    match &facts.python.outcome {
        PythonOutcome::Answered(answer) => {
            out.push(answered(answer, shown, chosen_by));
            out.push(torch(facts, answer, shown));
            out.extend(archs(facts));
        }
        PythonOutcome::Missing(why) => out.push(
            Finding::warning(
                Id::PythonMissing,
                format!("no Python to ask: {why}"),
                "name it: framepack-tui doctor --python PATH",
            )
            .why("versions of torch and MIOpen are not known"),
        ),
        PythonOutcome::NoAnswer(seconds) => out.push(
            Finding::warning(
                Id::PythonNoAnswer,
                format!("{shown} gave no answer within {seconds} s and was killed"),
                "start it by hand (`python -c 'print(1)'`); a slow disk may need --timeout 120",
            )
            .why(format!("it was chosen by {chosen_by}")),
        ),
        PythonOutcome::Failed(why) => out.push(
            Finding::warning(
                Id::PythonFailed,
                format!("{shown} could not be asked: {why}"),
                "name a Python that works: framepack-tui doctor --python PATH",
            )
            .why(format!("it was chosen by {chosen_by}")),
        ),
    }
    if facts.python.guessed {
        out.push(
            Finding::note(
                Id::PythonGuessed,
                format!("the command tells no interpreter; {shown} was asked instead"),
            )
            .why(format!("chosen by {chosen_by}"))
            .cure("framepack-tui doctor --python PATH -- CMD"),
        );
    }
}

fn answered(answer: &PythonAnswer, shown: &str, chosen_by: &str) -> Finding {
    let wanted = ["torch", "torchvision", "diffusers", "av"];
    let packages = wanted.iter().map(|n| {
        let version = answer.packages.get(*n);
        version.map_or_else(|| format!("no {n}"), |v| format!("{n} {v}"))
    });
    let packages: Vec<String> = packages.collect();
    Finding::ok(
        Id::PythonOk,
        format!(
            "Python {} at {shown} ({chosen_by}): {}",
            answer.version,
            packages.join(", ")
        ),
    )
}

fn torch(facts: &Facts, answer: &PythonAnswer, shown: &str) -> Finding {
    let Some(torch) = &answer.torch else {
        return Finding::warning(
            Id::TorchMissing,
            format!("{shown} has no torch"),
            "if this is not the Python of your generation, name that: framepack-tui doctor --python PATH",
        );
    };
    let TorchFacts {
        version, hip, cuda, ..
    } = torch;
    let (amd, nvidia) = (facts.amd(), facts.nvidia());
    let build = match (hip, cuda) {
        (Some(hip), _) => format!("for ROCm (HIP {hip})"),
        (None, Some(cuda)) => format!("for CUDA {cuda}"),
        (None, None) => "for the CPU alone".to_owned(),
    };
    let what = format!("torch {version} is built {build}");
    match (hip, cuda) {
        (None, _) if amd && !nvidia => Finding::error(
            Id::TorchWrongBuild,
            format!("{what}; the card is AMD's"),
            format!("{shown} -m {INSTALL}"),
        )
        .why("pip installs the CUDA build unless it is given the index of ROCm; everything then runs on the CPU, or not at all"),
        (Some(_), _) if nvidia && !amd => Finding::error(
            Id::TorchWrongBuild,
            format!("{what}; the card is NVIDIA's"),
            format!("{shown} -m pip install --force-reinstall torch torchvision"),
        ),
        (None, None) if nvidia => Finding::error(
            Id::TorchWrongBuild,
            format!("{what}; the card is not used"),
            format!("{shown} -m pip install --force-reinstall torch torchvision"),
        ),
        _ => Finding::ok(Id::TorchOk, what),
    }
}

/// Whether the kernels of the build fit the card. rocBLAS stands for all libraries: the
/// names of its files tell the architectures, and torch need not be started.
fn archs(facts: &Facts) -> Vec<Finding> {
    let torch = facts.torch().filter(|t| t.hip.is_some());
    let libraries = facts.libraries.known();
    let (Some(_), Some(libraries)) = (torch, libraries) else {
        return Vec::new();
    };
    let Some(known) = libraries.rocblas_archs.as_ref().filter(|a| !a.is_empty()) else {
        return Vec::new();
    };
    let override_set = facts.environment.contains_key("HSA_OVERRIDE_GFX_VERSION");
    let cards = facts
        .amd_cards()
        .filter_map(|c| Some((c, c.arch.as_deref()?)));
    cards
        .filter(|(_, arch)| !override_set && !known.contains(*arch))
        .map(|(card, arch)| {
            Finding::warning(
                Id::TorchLacksArch,
                format!("the libraries of this torch have no kernels for {arch} ({})", card.name),
                cure_of_arch(arch, known),
            )
            .why(format!(
                "rocBLAS has {}; a program then ends with `no kernel image` or `invalid device function`",
                super::list(known.iter().map(String::as_str), 12)
            ))
        })
        .collect()
}

/// A relative whose kernels run on the card, where that is known to work.
pub(super) fn relative(arch: &str) -> Option<(&'static str, &'static str)> {
    match arch {
        "gfx1031" | "gfx1032" | "gfx1033" | "gfx1034" | "gfx1035" | "gfx1036" => {
            Some(("gfx1030", "10.3.0"))
        }
        "gfx1101" | "gfx1102" | "gfx1103" => Some(("gfx1100", "11.0.0")),
        _ => None,
    }
}

fn cure_of_arch(arch: &str, known: &BTreeSet<String>) -> String {
    match relative(arch).filter(|(of, _)| known.contains(*of)) {
        Some((of, version)) => {
            format!(
                "export HSA_OVERRIDE_GFX_VERSION={version} (the kernels of {of} run on {arch}), or install a build that has {arch}"
            )
        }
        None => format!(
            "install a build of torch that has {arch}: a newer ROCm index of pytorch.org, or AMD's wheels for {arch}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;
    use crate::model::Vendor;

    fn with_torch(hip: Option<&str>, cuda: Option<&str>) -> Facts {
        let mut facts = healthy();
        let torch = facts.answer_mut().torch.as_mut().unwrap();
        torch.hip = hip.map(str::to_owned);
        torch.cuda = cuda.map(str::to_owned);
        facts
    }

    #[test]
    fn a_build_for_another_maker_is_an_error() {
        let wrong = found(&with_torch(None, Some("12.8")), Id::TorchWrongBuild);
        assert_eq!(wrong.severity, Severity::Error);
        assert!(wrong.cure.unwrap().contains("whl/rocm"));
        found(&with_torch(None, None), Id::TorchWrongBuild);
        let mut other = with_torch(Some("6.4"), None);
        other.cards[0].vendor = Vendor::Nvidia;
        other.system_mut().amd_devices.clear();
        found(&other, Id::TorchWrongBuild);
        let mut none = with_torch(None, Some("12.8"));
        none.cards.clear();
        none.system_mut().amd_devices.clear();
        assert!(absent(&none, Id::TorchWrongBuild));
    }

    #[test]
    fn a_card_without_kernels_is_told_what_may_stand_in() {
        let mut facts = healthy();
        facts.cards[0].arch = Some("gfx1101".to_owned());
        let lacks = found(&facts, Id::TorchLacksArch);
        assert!(
            lacks
                .cure
                .unwrap()
                .contains("HSA_OVERRIDE_GFX_VERSION=11.0.0")
        );
        facts.cards[0].arch = Some("gfx1151".to_owned());
        let lacks = found(&facts, Id::TorchLacksArch);
        assert!(!lacks.cure.unwrap().contains("HSA_OVERRIDE"));
        let facts = facts.with("HSA_OVERRIDE_GFX_VERSION", "11.0.0");
        assert!(absent(&facts, Id::TorchLacksArch));
    }

    #[test]
    fn an_interpreter_that_does_not_answer_is_told_as_it_is() {
        let mut facts = healthy();
        for (outcome, id) in [
            (PythonOutcome::NoAnswer(30), Id::PythonNoAnswer),
            (PythonOutcome::Missing("x".to_owned()), Id::PythonMissing),
            (PythonOutcome::Failed("x".to_owned()), Id::PythonFailed),
        ] {
            facts.python.outcome = outcome;
            assert_eq!(found(&facts, id).severity, Severity::Warning);
            assert!(absent(&facts, Id::TorchMissing));
        }
        let mut facts = healthy();
        facts.answer_mut().torch = None;
        found(&facts, Id::TorchMissing);
        facts.python.guessed = true;
        found(&facts, Id::PythonGuessed);
    }
}
