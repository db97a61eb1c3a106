//! What the console says about where things are: on which device a pipeline runs and
//! its inputs lie, that all of it runs on the CPU, and whether the transformer left the
//! card before the VAE came.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::{Cite, CiteKind, Event, JobChange, Line, Mono};

/// Where something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Device {
    Cpu,
    Card,
}

/// How the transformer was moved off the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Offloaded,
    Unloaded,
}

/// Words of one attempt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placement {
    /// Where the pipeline of this job runs, and where its inputs lie.
    runs_on: Option<(Device, Cite)>,
    given_on: Option<(Device, Cite)>,
    /// The program said that it runs on the CPU as a whole.
    all_cpu: Option<Cite>,
    /// The user asked for that.
    cpu_asked: bool,
    transformer: Option<(Left, Cite)>,
}

impl Placement {
    /// Another attempt of the same command.
    pub(super) fn begin(&self) -> Self {
        Self {
            cpu_asked: self.cpu_asked,
            ..Self::default()
        }
    }

    pub(super) fn observe(&mut self, at: Mono, seq: u64, event: &Event) {
        match event {
            Event::RunStarted(started) => self.cpu_asked = asks_for_cpu(&started.argv),
            Event::Line(line) => self.line(at, seq, line),
            Event::Job(change) if *change != JobChange::Started => {
                self.runs_on = None;
                self.given_on = None;
                self.transformer = None;
            }
            _ => {}
        }
    }

    fn line(&mut self, at: Mono, seq: u64, line: &Line) {
        let text = line.text.as_str();
        if line.bar || line.chatter {
            return;
        }
        let cite = || Cite {
            seq,
            at,
            kind: CiteKind::Console,
            line: Some(line.row).filter(|row| *row != 0),
            text: text.chars().take(Cite::MOST).collect(),
        };
        if let Some(device) = device_after(&RUNS_ON, text) {
            self.runs_on = Some((device, cite()));
        }
        if let Some(device) = device_after(&GIVEN_ON, text) {
            self.given_on = Some((device, cite()));
        }
        if says_all_cpu(text) {
            self.all_cpu.get_or_insert_with(cite);
        }
        if let Some(c) = MOVES.as_ref().and_then(|r| r.captures(text)) {
            let verb = c["verb"].to_lowercase();
            self.transformer = if verb.starts_with("offload") {
                Some((Left::Offloaded, cite()))
            } else if verb.starts_with("unload") {
                Some((Left::Unloaded, cite()))
            } else {
                None
            };
        }
    }

    /// The lines that name two devices, where a pipeline and its inputs differ.
    pub(crate) fn two_devices(&self) -> Option<(&Cite, &Cite)> {
        let (runs, a) = self.runs_on.as_ref()?;
        let (given, b) = self.given_on.as_ref()?;
        (runs != given).then_some((a, b))
    }

    /// The line by which the program runs on the CPU although nobody asked for it.
    pub(crate) fn all_cpu(&self) -> Option<&Cite> {
        self.all_cpu.as_ref().filter(|_| !self.cpu_asked)
    }

    /// Whether the user asked for the CPU.
    pub(crate) const fn cpu_asked(&self) -> bool {
        self.cpu_asked
    }

    /// The line by which the transformer was offloaded, if it was not unloaded since.
    pub(crate) fn only_offloaded(&self) -> Option<&Cite> {
        match &self.transformer {
            Some((Left::Offloaded, cite)) => Some(cite),
            _ => None,
        }
    }

    /// Whether it was unloaded as a whole.
    pub(crate) fn unloaded(&self) -> bool {
        matches!(self.transformer, Some((Left::Unloaded, _)))
    }
}

type Pattern = LazyLock<Option<Regex>>;

/// Where a pipeline computes. ComfyUI's `load device` and `offload device` are where
/// weights are kept.
static RUNS_ON: Pattern = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:\b|_)(?:execution[ _]device|(?:pipe(?:line)?|model|unet|transformer|denoiser)(?:'s|\.| is| runs| expects)?[ _]?(?:inputs )?(?:device|on)(?: is)?)\s*[:=]?\s*(?:torch\.device\()?(?:type=)?['"]?(?P<dev>cpu|cuda|hip|gpu)\b"#).ok()
});

/// Where its inputs lie.
static GIVEN_ON: Pattern = LazyLock::new(|| {
    Regex::new(r#"(?i)\b(?:images?|inputs?|latents?|tensors?|generator|noise|mask|embed\w*|cond\w*)\b[^;]{0,80}?\b(?:device|on|is)\b\s*[:=]?\s*(?:on )?(?:torch\.device\()?(?:type=)?['"]?(?P<dev>cpu|cuda|hip|gpu)\b"#).ok()
});

static MOVES: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(?:\[[^\]]*\]\s*)?(?P<verb>offload(?:ing|ed)|unload(?:ing|ed)|moving|moved|load(?:ing|ed))\b.*(?:transformer|unet|dit\b|diffusion ?model)").ok()
});

static ALL_CPU: Pattern = LazyLock::new(|| {
    Regex::new(r#"(?ix)
        ^\W*(?:\[\w+\]\s*)?(?:using\ |torch\ |default\ |selected\ |compute\ )?device\s*(?:set\ to|is|[:=])?\s*['"]?cpu\b
        | \b(?:running|runs|executing|inference)\ on\ (?:the\ )?cpu\b
        | \b(?:py)?torch\b.{0,20}\b\d+\.\d+\.\d+\S*\+cpu\b
        | \btorch\ not\ compiled\ with\ (?:cuda|hip|rocm)
        | \b(?:no|not\ find)\ (?:\w+\ )?(?:gpu|cuda|hip|rocm)s?\b.{0,60}\b(?:us(?:e|es|ing)|fall\w*\ back|default\w*)\b.{0,20}\bcpu\b
        | \b(?:gpu|cuda|hip|rocm)\b.{0,20}\bnot\ (?:available|found|detected)\b.{0,60}\bcpu\b
        | ^\W*(?:\[\w+\]\s*)?set\ vram\ state\ to:\ disabled
    "#).ok()
});

/// A step or a plan, not the job.
static NOT_ALL: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)\b(vae|decod\w*|encod\w*|conv\w*|offload\w*|text|clip|if|may|could|would|when|to run|load device)\b").ok()
});

fn device_after(pattern: &Pattern, text: &str) -> Option<Device> {
    let found = pattern.as_ref()?.captures(text)?;
    Some(match found["dev"].to_lowercase().as_str() {
        "cpu" => Device::Cpu,
        _ => Device::Card,
    })
}

fn says_all_cpu(text: &str) -> bool {
    let is = |p: &Pattern| p.as_ref().is_some_and(|r| r.is_match(text));
    is(&ALL_CPU) && !is(&NOT_ALL)
}

/// Arguments by which programs are told to run on the CPU.
fn asks_for_cpu(argv: &[String]) -> bool {
    let by_value = |a: &str| matches!(a, "--device" | "--torch-device" | "-d");
    argv.iter()
        .any(|a| a == "--cpu" || a.starts_with("--device=cpu"))
        || argv.windows(2).any(|w| by_value(&w[0]) && w[1] == "cpu")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_in_many_wordings() {
        for (text, want) in [
            (
                "Hy3D: enable_model_cpu_offload active, pipeline execution device: cpu",
                Device::Cpu,
            ),
            ("pipe._execution_device = cuda:0", Device::Card),
            ("[INFO] Pipeline device: cpu", Device::Cpu),
            ("pipeline is on cuda", Device::Card),
            ("transformer device=device(type='cpu')", Device::Cpu),
        ] {
            let got = device_after(&RUNS_ON, &text.replace("device(type", "torch.device(type"));
            assert_eq!(got, Some(want), "{text}");
        }
        for (text, want) in [
            (
                "Image in shape: torch.Size([1, 3, 512, 512]), device: cuda:0",
                Device::Card,
            ),
            ("latents are on cpu", Device::Cpu),
            ("generator device: cpu", Device::Cpu),
            ("input tensor (1, 4, 64, 64) on hip:0", Device::Card),
        ] {
            assert_eq!(device_after(&GIVEN_ON, text), Some(want), "{text}");
        }
        for text in [
            "VAE load device: cuda:0, offload device: cpu, dtype: torch.bfloat16",
            "Loaded CLIPTextModel to cuda:0 as complete.",
            "CLIP/text encoder model load device: cpu, offload device: cpu, current: cpu",
            "Device: cuda:0 AMD Radeon RX 7900 XTX : native",
        ] {
            assert_eq!(device_after(&RUNS_ON, text), None, "{text}");
            assert_eq!(device_after(&GIVEN_ON, text), None, "{text}");
        }
    }

    #[test]
    fn a_job_on_the_cpu_is_told_from_a_step_on_the_cpu() {
        for text in [
            "Device: cpu",
            "[INFO] Device: cpu",
            "Using device: cpu",
            "pytorch version: 2.6.0+cpu",
            "Set vram state to: DISABLED",
            "AssertionError: Torch not compiled with CUDA enabled",
            "No CUDA GPUs found, falling back to CPU",
            "Warning: CUDA is not available, using cpu",
            "Running on CPU",
        ] {
            assert!(says_all_cpu(text), "{text}");
        }
        for text in [
            "[VAE Decode] Falling back to CPU decode",
            "[MIOpen Fallback] conv3d: running on CPU",
            "VAE load device: cpu",
            "Device: cuda:0 AMD Radeon RX 6800 : native",
            "pytorch version: 2.6.0+rocm6.2",
            "enable_model_cpu_offload",
            "Set vram state to: NORMAL_VRAM",
        ] {
            assert!(!says_all_cpu(text), "{text}");
        }
        let argv = |s: &str| s.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(asks_for_cpu(&argv("python3 main.py --cpu")));
        assert!(asks_for_cpu(&argv("python3 run.py --device cpu")));
        assert!(!asks_for_cpu(&argv("python3 main.py --cpu-vae")));
    }
}
