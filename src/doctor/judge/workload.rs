//! The command, its profile, and what it will stumble over after hours of work.

use crate::doctor::facts::{Facts, Look};
use crate::doctor::finding::{Finding, Id};

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
    comfyui(facts, out);
    out.extend(video_writer(facts));
}

fn comfyui(facts: &Facts, out: &mut Vec<Finding>) {
    if facts.workload.adapter != "comfyui" {
        return;
    }
    let switch = facts.environment.get("COMFYUI_ENABLE_MIOPEN");
    if facts.amd() && switch.is_none_or(|v| v != "1") {
        out.push(
            Finding::note(
                Id::ComfyuiMiopenOff,
                "ComfyUI switches MIOpen off on AMD cards: no MIOPEN_ variable has an effect on it",
            )
            .why("it sets torch.backends.cudnn.enabled = False (older versions on every card, newer ones on newer cards); convolutions then need no search")
            .cure("COMFYUI_ENABLE_MIOPEN=1 switches it on in versions that know it"),
        );
    }
    let words = &facts.workload.argv;
    let fast = words.iter().position(|w| w == "--fast");
    let autotune = fast.is_some_and(|at| {
        let options = words[at + 1..].iter().take_while(|w| !w.starts_with('-'));
        options.into_iter().any(|w| w == "autotune")
            || words.get(at + 1).is_none_or(|w| w.starts_with('-'))
    });
    if facts.amd() && autotune {
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
    let has_av = answer.packages.contains_key("av");
    let shown = facts.python.path.as_deref().unwrap_or("python");
    let what = match answer.write_video? {
        true if has_av => return None,
        true => "torchvision.io.write_video needs PyAV, which is missing",
        false => "this torchvision has no video writer (torchvision.io.write_video)",
    };
    let cure = if answer.write_video == Some(true) {
        format!("{shown} -m pip install av")
    } else {
        format!(
            "{shown} -m pip install 'torchvision<0.26' with the torch that fits it, or a version of the program that writes with PyAV (`av`) or imageio"
        )
    };
    let why = "it was removed with torchvision 0.26; the program fails when it writes the first section, after all the work on the GPU";
    Some(if facts.workload.adapter == "framepack" {
        Finding::error(Id::NoVideoWriter, what, cure).why(why)
    } else {
        Finding::note(Id::NoVideoWriter, what).why(why).cure(cure)
    })
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
        facts.answer_mut().write_video = None;
        assert!(
            absent(&facts, Id::NoVideoWriter),
            "no torchvision, no writer needed"
        );
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let mut facts = healthy();
        facts.workload.program_found = Some(false);
        facts.broken_profiles = vec!["x.toml".to_owned()];
        found(&facts, Id::CommandMissing);
        found(&facts, Id::ProfileBroken);
    }
}
