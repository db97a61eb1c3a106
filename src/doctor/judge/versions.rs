//! The interpreter, and whether its torch suits the card.

use std::collections::BTreeSet;

use crate::doctor::facts::{Facts, PythonAnswer, PythonFacts, PythonOutcome, TorchFacts};
use crate::doctor::finding::{Finding, Id};
use crate::model::GpuSample;

use super::gfx;

/// Where torch for ROCm lies.
const PYTORCH: &str =
    " --index-url https://download.pytorch.org/whl/rocm6.4   # or the newest rocm index there";

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    let PythonFacts {
        path, chosen_by, ..
    } = &facts.python;
    let shown = path.as_deref().unwrap_or("the interpreter");
    match &facts.python.outcome {
        PythonOutcome::Answered(answer) => {
            out.push(answered(answer, shown, chosen_by));
            out.push(torch(facts, answer, shown));
            out.extend(floors(facts, answer, shown));
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
            install(answer, shown, PYTORCH),
        )
        .why("pip installs the CUDA build unless it is given the index of ROCm; everything then runs on the CPU, or not at all"),
        (Some(_), _) if nvidia && !amd => Finding::error(
            Id::TorchWrongBuild,
            format!("{what}; the card is NVIDIA's"),
            install(answer, shown, ""),
        ),
        (None, None) if nvidia => Finding::error(
            Id::TorchWrongBuild,
            format!("{what}; the card is not used"),
            install(answer, shown, ""),
        ),
        _ => Finding::ok(Id::TorchOk, what),
    }
}

/// The command that installs packages into this environment.
pub(super) fn pip(answer: &PythonAnswer, shown: &str, packages: &str) -> String {
    if answer.uv {
        format!("uv pip install --python {shown} {packages}")
    } else if answer.externally_managed {
        // pip refuses to change what belongs to the distribution
        format!(
            "make an environment and start the generation with its python: {shown} -m venv --system-site-packages .venv && .venv/bin/python -m pip install {packages}"
        )
    } else {
        format!("{shown} -m pip install {packages}")
    }
}

/// How torch gets into this environment; `index`: from where.
fn install(answer: &PythonAnswer, shown: &str, index: &str) -> String {
    if answer.uv {
        format!("uv pip install --python {shown} --reinstall torch torchvision{index}")
    } else if answer.externally_managed {
        // pip refuses to change what belongs to the distribution
        format!(
            "make an environment and start the generation with its python: {shown} -m venv .venv && .venv/bin/python -m pip install torch torchvision{index}"
        )
    } else {
        format!("{shown} -m pip install --force-reinstall torch torchvision{index}")
    }
}

/// First torch with `scaled_dot_product_attention` (its release notes); diffusers, FramePack
/// and ComfyUI compute attention by it.
const TORCH: (u32, u32) = (2, 0);
/// First ROCm whose MIOpen (3.0) has solvers for 3-D convolutions besides the naive kernel and
/// GEMM (changelog of MIOpen 3.0.0), and the first one that AMD names for these cards.
const ROCM: [u32; 2] = [6, 0];
const ROCM_OF_CARDS: [(&str, [u32; 2], &str); 2] = [
    ("gfx1200", [6, 4], "system requirements of ROCm 6.4.1"),
    ("gfx1201", [6, 4], "system requirements of ROCm 6.4.1"),
];

/// Versions below which a video model does not run, or not on this card.
fn floors(facts: &Facts, answer: &PythonAnswer, shown: &str) -> Vec<Finding> {
    let Some(torch) = &answer.torch else {
        return Vec::new();
    };
    let index = if torch.hip.is_some() { PYTORCH } else { "" };
    let mut out = Vec::new();
    if let Some((major, minor)) = torch.release().filter(|r| *r < TORCH) {
        out.push(
            Finding::warning(
                Id::TorchOld,
                format!("torch {major}.{minor} is older than what video models need (2.0)"),
                install(answer, shown, index),
            )
            .why("scaled_dot_product_attention, by which they compute attention, came with torch 2.0"),
        );
    }
    let Some([major, minor]) = facts.rocm() else {
        return out;
    };
    let arch = facts.supervised_amd().and_then(|card| card.arch.as_deref());
    let of_card = ROCM_OF_CARDS.iter().find(|(of, ..)| Some(*of) == arch);
    let floor = match of_card {
        Some((of, rocm, source)) => (
            *rocm,
            format!("AMD names {of} as supported from then on ({source})"),
        ),
        None => (
            ROCM,
            "MIOpen 3.0 brought its 3-D convolutions (changelog of ROCm 6.0)".to_owned(),
        ),
    };
    let ([a, b], why) = floor;
    if [major, minor] < [a, b] {
        out.push(
            Finding::warning(
                Id::RocmOld,
                format!("torch is built for ROCm {major}.{minor}; the lowest that makes sense here is {a}.{b}"),
                install(answer, shown, index),
            )
            .why(why),
        );
    }
    out
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
    let lacks = |card: &GpuSample| {
        let arch = card.arch.clone()?;
        (!override_set && !known.contains(&arch)).then_some(arch)
    };
    let supervised = facts.supervised_amd();
    let main = supervised.and_then(|card| {
        let arch = lacks(card)?;
        Some(
            Finding::warning(
                Id::TorchLacksArch,
                format!("the libraries of this torch have no kernels for {arch} ({})", card.name),
                cure_of_arch(facts, card, &arch, known),
            )
            .why(format!(
                "rocBLAS has {}; a program then ends with `no kernel image` or `invalid device function`",
                super::list(known.iter().map(String::as_str), 12)
            )),
        )
    });
    let others = facts.other_amd().filter_map(|card| {
        let arch = lacks(card)?;
        let note = Finding::note(
            Id::TorchLacksArch,
            format!(
                "the libraries of this torch have no kernels for {arch} ({}), which is not supervised",
                card.name
            ),
        )
        .why("a program that uses this card ends with `no kernel image` or `invalid device function`");
        Some(match supervised {
            Some(supervised) => note.cure(gfx::alone(facts, supervised)),
            None => note,
        })
    });
    main.into_iter().chain(others).collect()
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

fn cure_of_arch(facts: &Facts, card: &GpuSample, arch: &str, known: &BTreeSet<String>) -> String {
    match relative(arch).filter(|(of, _)| known.contains(*of)) {
        // the variable would give another card a wrong name
        Some((of, _)) if gfx::misnames_another(facts, of) => format!(
            "{}, then run doctor again; or install a build that has {arch}",
            gfx::alone(facts, card)
        ),
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
    use super::super::testing::{absent, beside_an_apu, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;
    use crate::model::Vendor;
    use crate::model::visible::Visible;

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
    fn versions_below_the_floor_are_warned_of_with_their_source() {
        let with = |torch: &str, hip: &str, arch: &str| {
            let mut facts = with_torch(Some(hip), None);
            let told = facts.answer_mut().torch.as_mut().unwrap();
            told.version = torch.to_owned();
            facts.cards[0].arch = Some(arch.to_owned());
            facts
        };
        let old = found(&with("1.13.1", "5.2", "gfx1030"), Id::TorchOld);
        assert!(old.why.unwrap().contains("scaled_dot_product_attention"));
        let old = found(&with("2.3.0", "5.7.31921", "gfx1100"), Id::RocmOld);
        assert!(old.what.contains("ROCm 5.7"), "{}", old.what);
        assert!(old.why.unwrap().contains("changelog"));
        let card = found(&with("2.6.0", "6.3", "gfx1201"), Id::RocmOld);
        assert!(card.what.ends_with("is 6.4"), "{}", card.what);
        for (torch, hip, arch) in [
            ("2.0.1", "6.0", "gfx1100"),
            ("2.9.1", "6.4.43484", "gfx1201"),
            ("2.13.0+rocm7.14.0", "7.14.60850", "gfx1151"),
        ] {
            let facts = with(torch, hip, arch);
            assert!(absent(&facts, Id::TorchOld), "{torch}");
            assert!(absent(&facts, Id::RocmOld), "{torch} {arch}");
        }
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
    fn graphics_beside_the_card_are_a_note_and_never_an_override() {
        for apu_first in [true, false] {
            let mut facts = beside_an_apu(apu_first);
            let beside = found(&facts, Id::TorchLacksArch);
            assert_eq!(beside.severity, Severity::Note);
            assert!(beside.what.contains("gfx1036"), "{}", beside.what);
            let cure = beside.cure.unwrap();
            assert!(cure.starts_with("export HIP_VISIBLE_DEVICES=0"), "{cure}");
            facts.visible = Visible::These {
                cards: vec![usize::from(apu_first)],
                by: "HIP_VISIBLE_DEVICES=0".to_owned(),
            };
            assert!(absent(&facts, Id::TorchLacksArch), "it is not shown");
            // now the card itself has none, and both are shown
            facts.cards[usize::from(apu_first)].arch = Some("gfx1101".to_owned());
            let alone = found(&facts, Id::TorchLacksArch).cure.unwrap();
            assert!(alone.contains("GFX_VERSION=11.0.0"), "{alone}");
            facts.visible = Visible::All;
            for f in crate::doctor::judge::all(&facts) {
                let cure = f.cure.unwrap_or_default();
                assert!(!cure.contains("HSA_OVERRIDE"), "{cure}");
            }
        }
    }

    #[test]
    fn torch_comes_into_an_environment_as_that_environment_allows() {
        let cure = |change: fn(&mut PythonAnswer)| {
            let mut facts = with_torch(None, Some("12.8"));
            change(facts.answer_mut());
            found(&facts, Id::TorchWrongBuild).cure.unwrap()
        };
        assert!(cure(|_| {}).starts_with("/home/ada/v/bin/python -m pip install --force"));
        let uv = cure(|a| a.uv = true);
        assert!(uv.starts_with("uv pip install --python /home/ada/v/bin/python --reinstall"));
        let system = cure(|a| a.externally_managed = true);
        assert!(system.contains("-m venv .venv && .venv/bin/python -m pip install torch"));
        assert!(system.contains("whl/rocm"), "{system}");
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
