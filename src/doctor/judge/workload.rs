//! The command, its profile, and what it will stumble over after hours of work.

use crate::doctor::facts::{Facts, Look, TorchFacts};
use crate::doctor::finding::{Finding, Id};
use crate::workload::adapter::AdapterKind;

use super::versions::pip;

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    match &facts.profile {
        Look::Known(profile) => out.push(Finding::ok(
            Id::ProfileChosen,
            format!("a run takes profile {}: {}", profile.id, profile.why),
        )),
        Look::Unknown(why) => out.push(Finding::warning(
            Id::ProfileBroken,
            format!("no profile: {why}"),
            "name one: framepack-tui run --profile NAME",
        )),
    }
    for broken in &facts.broken_profiles {
        out.push(Finding::warning(
            Id::ProfileBroken,
            format!("a profile is left out: {broken}"),
            "put the file right, or move it out of the folder of profiles",
        ));
    }
    if let (Some(false), Some(program)) =
        (facts.workload.program_found, facts.workload.argv.first())
    {
        out.push(Finding::error(
            Id::CommandMissing,
            format!("`{program}` was not found"),
            "give its path, or activate the environment that has it",
        ));
    }
    if let (Some(false), Some(script)) = (facts.workload.script_found, &facts.workload.script) {
        out.push(Finding::error(
            Id::CommandMissing,
            format!("the script {script} was not found"),
            "give its path, or the folder it is in: framepack-tui doctor --cwd DIR -- CMD",
        ));
    }
    own_settings(facts, out);
    out.extend(video_writer(facts));
}

/// First ROCm with which MIOpen in ComfyUI pays: its search is short (Comfy-Org/ComfyUI#11366),
/// and users report about half the memory of a decode without it (#16062).
const MIOPEN_PAYS: [u32; 2] = [7, 14];

fn miopen_switch(facts: &Facts) -> Finding {
    let off = Finding::note(
        Id::ComfyuiMiopenOff,
        "ComfyUI switches MIOpen off on AMD cards: no MIOPEN_ variable has an effect on it",
    );
    let because = "it sets torch.backends.cudnn.enabled = False (older versions on every card, newer ones on newer cards), because the first search of a decode took minutes";
    match facts.rocm() {
        Some(rocm) if rocm >= MIOPEN_PAYS => off
            .why(format!("{because}; from ROCm 7.14 on that search is short, and users report that the decode takes about half the memory with MIOpen"))
            .cure("try COMFYUI_ENABLE_MIOPEN=1, which switches it on in versions that know it"),
        Some([major, minor]) => off
            .why(format!("{because}; with ROCm {major}.{minor} it still may, from 7.14 on no longer"))
            .cure("leave it off, or with ROCm 7.14 and later COMFYUI_ENABLE_MIOPEN=1"),
        None => off
            .why(format!("{because}; from ROCm 7.14 on that search is short, and the version of ROCm is not known"))
            .cure("see `python -c 'import torch; print(torch.version.hip)'`: from 7.14 on COMFYUI_ENABLE_MIOPEN=1 is worth a try"),
    }
}

fn own_settings(facts: &Facts, out: &mut Vec<Finding>) {
    let Ok(program) = facts.workload.adapter.parse::<AdapterKind>() else {
        return;
    };
    let off = program.miopen_switch().is_some_and(|switch| {
        let set = facts.environment.get(switch);
        set.is_none_or(|v| v != "1")
    });
    if facts.amd() && off {
        out.push(miopen_switch(facts));
    }
    if facts.amd() && program.autotunes(&facts.workload.argv) {
        out.push(
            Finding::warning(
                Id::AutotuneOn,
                "--fast turns on autotune: torch tunes every convolution",
                "name the others, such as --fast fp16_accumulation, without autotune",
            )
            .why("it sets torch.backends.cudnn.benchmark, which on ROCm is an exhaustive search of MIOpen and beats MIOPEN_FIND_MODE"),
        );
    }
}

/// FramePack and many scripts hand the finished frames to torchvision.
fn video_writer(facts: &Facts) -> Option<Finding> {
    let answer = facts.python.answer()?;
    let program = facts.workload.adapter.parse::<AdapterKind>();
    let framepack = program.is_ok_and(AdapterKind::needs_torchvision);
    let python = facts.python.path.as_deref().unwrap_or("python");
    let (what, why, cure) = match answer.write_video {
        // without torch as well this is another Python than FramePack's, which is said
        None if framepack => (
            "torchvision is missing, with which FramePack writes its videos",
            "FramePack imports it as it starts, and ends there",
            torchvision(answer.torch.as_ref()?, |packages| {
                pip(answer, python, packages)
            }),
        ),
        Some(true) if !answer.packages.contains_key("av") => (
            "torchvision.io.write_video needs PyAV, which is missing",
            "torchvision misses it only when it writes: the program fails at the first section, after all the work on the GPU",
            pip(answer, python, "av"),
        ),
        None | Some(true) => return None,
        Some(false) => (
            "this torchvision has no video writer (torchvision.io.write_video)",
            "it was removed with torchvision 0.26; the program fails when it writes the first section, after all the work on the GPU",
            format!(
                "{} with the torch that fits it, or a version of the program that writes with PyAV (`av`) or imageio",
                pip(answer, python, "'torchvision<0.26'")
            ),
        ),
    };
    Some(if framepack {
        Finding::error(Id::NoVideoWriter, what, cure).why(why)
    } else {
        Finding::note(Id::NoVideoWriter, what).why(why).cure(cure)
    })
}

/// How a torchvision that fits this torch, and has a writer, is installed. torch is named
/// with its version: pip would put another one in its place, for another maker's cards.
fn torchvision(torch: &TorchFacts, pip: impl Fn(&str) -> String) -> String {
    const WITHOUT_WRITER: (u32, u32) = (2, 11);
    let TorchFacts { version, .. } = torch;
    if torch.release().is_none_or(|of| of >= WITHOUT_WRITER) {
        return format!("{} with the torch that fits it", pip("'torchvision<0.26'"));
    }
    let from = match version.split_once('+').map(|(_, build)| build) {
        None => String::new(),
        Some(build) if has_index(build) => {
            format!(" --index-url https://download.pytorch.org/whl/{build}")
        }
        Some(_) => {
            return format!(
                "install the torchvision that belongs to torch {version}, from where that came"
            );
        }
    };
    pip(&format!("torch=={version} torchvision{from}"))
}

/// Whether pytorch.org has an index of this name: `cpu`, `cu128`, `rocm6.4`.
fn has_index(build: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let of_rocm = build.strip_prefix("rocm").and_then(|v| v.split_once('.'));
    build == "cpu"
        || build.strip_prefix("cu").is_some_and(digits)
        || of_rocm.is_some_and(|(major, minor)| digits(major) && digits(minor))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::finding::Severity;

    fn comfy(line: &str) -> Facts {
        let mut facts = healthy();
        facts.workload.adapter = "comfyui".to_owned();
        facts.workload.argv = line.split(' ').map(str::to_owned).collect();
        facts
    }

    #[test]
    fn comfyui_is_told_that_miopen_is_off() {
        let off = found(&comfy("python main.py"), Id::ComfyuiMiopenOff);
        assert_eq!(off.severity, Severity::Note);
        let on = comfy("python main.py").with("COMFYUI_ENABLE_MIOPEN", "1");
        assert!(absent(&on, Id::ComfyuiMiopenOff));
        assert!(absent(&healthy(), Id::ComfyuiMiopenOff));
    }

    #[test]
    fn autotune_is_seen_alone_and_among_others() {
        found(
            &comfy("python main.py --fast autotune --port 1"),
            Id::AutotuneOn,
        );
        found(&comfy("python main.py --fast"), Id::AutotuneOn);
        assert!(absent(
            &comfy("python main.py --fast fp16_accumulation"),
            Id::AutotuneOn
        ));
    }

    #[test]
    fn a_missing_writer_is_worst_for_framepack() {
        let mut facts = healthy();
        facts.answer_mut().write_video = Some(false);
        let bad = found(&facts, Id::NoVideoWriter);
        assert_eq!(bad.severity, Severity::Error);
        facts.workload.adapter = "diffusers".to_owned();
        assert_eq!(found(&facts, Id::NoVideoWriter).severity, Severity::Note);
        let mut facts = healthy();
        facts.answer_mut().packages.remove("av");
        assert!(
            found(&facts, Id::NoVideoWriter)
                .cure
                .unwrap()
                .ends_with("pip install av")
        );
        facts.workload.adapter = "diffusers".to_owned();
        facts.answer_mut().write_video = None;
        assert!(
            absent(&facts, Id::NoVideoWriter),
            "no torchvision, no writer needed"
        );
    }

    #[test]
    fn each_trouble_with_the_writer_has_its_own_reason_and_cure() {
        let told = |change: fn(&mut Facts)| {
            let mut facts = healthy();
            change(&mut facts);
            let told = found(&facts, Id::NoVideoWriter);
            assert_eq!(told.severity, Severity::Error);
            (told.what, told.why.unwrap(), told.cure.unwrap())
        };
        let (_, why, cure) = told(|f| f.answer_mut().write_video = Some(false));
        assert!(why.contains("removed with torchvision 0.26"), "{why}");
        assert!(cure.contains("pip install 'torchvision<0.26'"), "{cure}");
        let (_, why, cure) = told(|f| drop(f.answer_mut().packages.remove("av")));
        assert!(
            !why.contains("0.26") && why.contains("only when it writes"),
            "{why}"
        );
        assert_eq!(cure, "/home/ada/v/bin/python -m pip install av");
        let (_, _, cure) = told(|f| {
            f.answer_mut().packages.remove("av");
            f.answer_mut().uv = true;
        });
        assert_eq!(cure, "uv pip install --python /home/ada/v/bin/python av");
        let (what, why, _) = told(|f| f.answer_mut().write_video = None);
        assert!(what.starts_with("torchvision is missing"), "{what}");
        assert!(why.contains("as it starts"), "{why}");
    }

    #[test]
    fn framepack_without_torchvision_is_told_which_fits_its_torch() {
        let cure = |version: &str| {
            let mut facts = healthy();
            facts.answer_mut().write_video = None;
            facts.answer_mut().torch.as_mut().unwrap().version = version.to_owned();
            found(&facts, Id::NoVideoWriter).cure.unwrap()
        };
        let pip = "/home/ada/v/bin/python -m pip install";
        for build in ["rocm6.4", "cu128", "cpu"] {
            assert_eq!(
                cure(&format!("2.9.1+{build}")),
                format!(
                    "{pip} torch==2.9.1+{build} torchvision --index-url https://download.pytorch.org/whl/{build}"
                )
            );
        }
        assert_eq!(cure("2.9.1"), format!("{pip} torch==2.9.1 torchvision"));
        assert!(cure("2.11.0").starts_with(&format!("{pip} 'torchvision<0.26'")));
        for own in [
            "2.9.1+rocm7.10.0a1",
            "2.9.1+gitabc",
            "2.9.1+cu",
            "2.9.1+rocm7",
        ] {
            assert!(cure(own).contains("from where that came"), "{own}");
        }
        let mut other = healthy();
        other.answer_mut().write_video = None;
        other.answer_mut().torch = None;
        assert!(
            absent(&other, Id::NoVideoWriter),
            "the Python of something else"
        );
    }

    #[test]
    fn a_script_that_is_not_there_is_an_error() {
        let mut facts = healthy();
        facts.workload.script_found = Some(false);
        let gone = found(&facts, Id::CommandMissing);
        assert_eq!(gone.severity, Severity::Error);
        assert_eq!(
            gone.what,
            "the script /home/ada/FramePack/demo_gradio.py was not found"
        );
        facts.workload.script_found = None;
        assert!(absent(&facts, Id::CommandMissing), "not known is not gone");
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let mut facts = healthy();
        facts.workload.program_found = Some(false);
        facts.broken_profiles = vec!["x.toml".to_owned()];
        found(&facts, Id::CommandMissing);
        found(&facts, Id::ProfileBroken);
    }

    #[test]
    fn comfyuis_switch_comes_with_its_reason_and_the_version_that_it_pays_from() {
        let off = |hip: Option<&str>| {
            let mut facts = healthy();
            facts.workload.adapter = "comfyui".to_owned();
            let torch = facts.answer_mut().torch.as_mut().unwrap();
            torch.hip = hip.map(str::to_owned);
            found(&facts, Id::ComfyuiMiopenOff)
        };
        let newer = off(Some("7.14.60850"));
        assert!(newer.why.unwrap().contains("half the memory"));
        assert!(newer.cure.unwrap().contains("COMFYUI_ENABLE_MIOPEN=1"));
        let older = off(Some("7.2.26015"));
        assert!(older.why.unwrap().contains("with ROCm 7.2 it still may"));
        assert!(older.cure.unwrap().starts_with("leave it off"));
        let unknown = off(None);
        assert!(unknown.cure.unwrap().contains("torch.version.hip"));
    }
}
