//! musubi-tuner's scripts that generate: `wan_generate_video.py` and its kin.
//!
//! Words as in kohya-ss/musubi-tuner at 30c658c (2026-06): `src/musubi_tuner/*_generate_*.py`.
//! What it trains and caches is no generation and is read as any Python program's.

use std::sync::LazyLock;

use regex::Regex;

use super::super::wording::BarKind;
use super::{AfterRestart, Bar, Command, Dialect, Job, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// Its scripts, which are modules of the package `musubi_tuner` as well.
const SCRIPTS: &[&str] = &[
    "flux_2_generate_image",
    "flux_kontext_generate_image",
    "fpack_generate_video",
    "hidream_o1_generate_image",
    "hv_1_5_generate_video",
    "hv_generate_video",
    "ideogram4_generate_image",
    "kandinsky5_generate_video",
    "krea2_generate_image",
    "qwen_image_generate_image",
    "wan_generate_video",
    "zimage_generate_image",
];

/// See the module.
pub(super) struct MusubiProgram;

impl Program for MusubiProgram {
    fn name(&self) -> &'static str {
        "musubi-tuner"
    }

    fn title(&self) -> &'static str {
        "musubi-tuner"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        let file = command.file().trim_end_matches(".py");
        let module = command.module();
        let module = module.strip_prefix("musubi_tuner.").unwrap_or(module);
        SCRIPTS.contains(&file) || SCRIPTS.contains(&module)
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        false
    }

    fn is_typical(&self, text: &str) -> bool {
        text.contains("musubi_tuner") || text.contains("musubi-tuner")
    }

    fn banner(&self) -> Option<&'static str> {
        Some(r"^INFO:musubi_tuner\.\w+:")
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("musubi-tuner", &["musubi_tuner"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Musubi)
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "the command begins again; a prompt that was typed (`--interactive`) is not sent again",
            kept: "latents before each decode that the agent knows",
            warning: Some(
                "the prompt that was typed into musubi-tuner cannot be sent again: type it after the restart (prompts of --from_file are in their file)",
            ),
        }
    }
}

static SAVED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:Video saved to|Sample save to|Sample images saved? to|Latent saved? to): ")
});
static PICTURES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Encoding (?:image|video|control (?:image|video)) to latents?\b"));
static DECODES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Decoding (?:video|image|latents|output \d+/\d+)\b"));
static DECODED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:Decoded\. Pixel shape|Decoding complete$)"));
/// Words of a step whose successor is not known.
static BETWEEN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:Encoding complete$|Releasing DiT model|Waiting for \d+ seconds to finish block swap|LoRA weights loaded$|Generated\. Latent shape)",
    )
});

#[derive(Debug)]
struct Musubi;

impl Musubi {
    /// A sign of a generation. In interactive mode each prompt is a job.
    fn begins(n: &mut Narrator) {
        n.begin_script_job();
        if n.job == Job::Waiting {
            n.start_job();
        }
    }
}

impl Dialect for Musubi {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        let phase = if text.starts_with("Interactive mode. Enter prompts") {
            n.wait();
            return true;
        } else if text.starts_with("Encoding prompt") || text.starts_with("Encoding image to CLIP")
        {
            Phase::TextEncode
        } else if PICTURES.is_match(text) {
            Phase::VaeEncode
        } else if DECODES.is_match(text) {
            Phase::VaeDecode
        } else if SAVED.is_match(text) {
            // latents are kept before they are decoded, of several outputs one by one
            let latents = text.starts_with("Latent");
            match (latents, n.server) {
                (true, _) => n.enter(Phase::Unknown),
                (false, true) => n.done(),
                (false, false) => n.enter(Phase::Done),
            }
            return true;
        } else if DECODED.is_match(text) {
            n.enter(Phase::Save);
            return true;
        } else if BETWEEN.is_match(text) {
            n.enter(Phase::Unknown);
            return true;
        } else if text == "Done!" {
            n.enter(Phase::Done);
            return true;
        } else {
            return false;
        };
        Self::begins(n);
        n.enter(phase);
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        if bar.complete() {
            n.enter_after_steps();
        } else {
            Self::begins(n);
            n.enter(Phase::Sampling);
        }
    }

    fn kind_of(&self, _bar: &Bar, n: &Narrator) -> Option<BarKind> {
        // FramePack's sections are decoded under a bar without a name
        (n.in_flight() && n.phase() == Phase::VaeDecode).then_some(BarKind::Of(Phase::VaeDecode))
    }
}
