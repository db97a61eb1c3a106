//! FramePack's console: `demo_gradio.py`, `demo_gradio_f1.py`, and forks that keep the lines.
//!
//! Sections are numbered by the paddings that are printed (N-1 … 0, or 3, 2, 2, …, 1, 0
//! above four sections, times the window), or plainly by F1.

use std::sync::LazyLock;

use regex::Regex;

use super::super::wording::{ModelRole, role};
use super::{
    AfterRestart, Bar, Command, Dialect, Exception, Job, Narrator, Program, Rank,
    is_named_as_server,
};
use crate::model::Phase;
use crate::workload::pattern;

static MOVED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?P<verb>Loaded|Unloaded|Moving|Offloading|Unloading)\s+(?P<class>\w+)(?:\s+(?:to|from)\s+\S+)?\s+(?:as complete|with preserved memory|to preserve memory|completely)",
    )
});
static PADDING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"latent_padding_size\s*=\s*(?P<padding>\d+),\s*is_last_section\s*=\s*(?P<last>True|False)",
    )
});
static F1: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"section_index\s*=\s*(?P<index>\d+),\s*total_latent_sections\s*=\s*(?P<total>\d+)")
});
static NAMESPACE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?P<name>sections|window|latent_window_size)=(?P<value>\d+)\b"));

/// FramePack's latent window, unless a line says otherwise; its UI hides the slider.
const DEFAULT_WINDOW: u32 = 9;

/// Words of lines that FramePack and its forks print, and hardly anybody else.
const TYPICAL: &[&str] = &["FramePack", "hunyuan_video_packed", "latent_padding"];

/// Whether a name is FramePack's or that of a fork. Our own is neither.
fn is_framepack(name: &str) -> bool {
    let name = name.to_lowercase().replace('_', "-");
    name.contains("framepack") && !name.contains(env!("CARGO_PKG_NAME"))
}

/// See the module.
pub(super) struct FramepackProgram;

impl Program for FramepackProgram {
    fn name(&self) -> &'static str {
        "framepack"
    }

    fn title(&self) -> &'static str {
        "FramePack"
    }

    fn rank(&self) -> Rank {
        Rank::Family
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        let name = command.name();
        // the name of the folder counts where its files could not be read
        let by_folder = command.is_python() && !command.lists_folder();
        is_framepack(name)
            || name.starts_with("demo_gradio")
            || command.has_beside("diffusers_helper")
            || (by_folder && is_framepack(command.folder()))
    }

    fn serves(&self, command: &Command<'_>) -> bool {
        is_named_as_server(command)
    }

    fn unmistakable(&self) -> Option<&'static str> {
        Some(
            r"latent_padding_size\s*=\s*\d+,\s*is_last_section\s*=\s*(?:True|False)|section_index\s*=\s*\d+,\s*total_latent_sections\s*=\s*\d+|^High-VRAM Mode: |DynamicSwap_",
        )
    }

    fn is_typical(&self, text: &str) -> bool {
        TYPICAL.iter().any(|w| text.contains(w))
    }

    fn banner(&self) -> Option<&'static str> {
        Some(r"^Currently enabled native sdp backends|^Namespace\(share=")
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("app", &["diffusers_helper"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Framepack::default())
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "it is sent again by itself",
            kept: "latents before each decode, finished sections",
            warning: None,
        }
    }

    fn needs_torchvision(&self) -> bool {
        true
    }
}

/// How far a section has come. The order matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Begun,
    /// A bar of denoising steps has begun.
    Sampling,
    /// Sampling is over by the program's word. Lines of the two streams can overtake
    /// each other, so a bar may still come.
    Sampled,
    /// The file of this section has been written.
    Decoded,
}

#[derive(Debug, Default)]
struct Section {
    stage: Stage,
    last: bool,
    /// Low-VRAM mode: the transformer's moves are told.
    moves: bool,
}

#[derive(Debug, Default)]
pub(super) struct Framepack {
    paddings: Vec<u32>,
    window: Option<u32>,
    given_sections: Option<u32>,
    /// The section at hand; absent before the first one of a job.
    section: Option<Section>,
    /// The clean-up that follows a failed job is not the beginning of the next one.
    failed: bool,
    /// A server's job counted as done with its last decode; forks write the file after
    /// that line. Lines that may still come before the job is over for good.
    saves: u32,
}

/// Lines after the last `Decoded.` within which an exception of the worker is the job's.
const LINES_OF_SAVE: u32 = 12;

impl Dialect for Framepack {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        self.saves = self.saves.saturating_sub(1);
        if let Some(c) = MOVED.captures(text) {
            self.moved(&c["verb"], role(&c["class"]), n);
        } else if let Some(c) = PADDING.captures(text) {
            let last = &c["last"] == "True";
            self.padding(c["padding"].parse().unwrap_or(0), last, n);
        } else if let Some(c) = F1.captures(text) {
            let index: u32 = c["index"].parse().unwrap_or(0);
            let total: u32 = c["total"].parse().unwrap_or(0);
            self.section(
                n,
                index.saturating_add(1),
                Some(total),
                index.saturating_add(1) >= total,
            );
        } else if text.starts_with("Decoded. ") || text.trim_end() == "Decoded." {
            self.decoded(n);
        } else if text.starts_with("Namespace(") {
            self.namespace(text);
        } else {
            return false;
        }
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        if n.job != Job::InFlight && !bar.complete() {
            self.begin_job(n);
        }
        let section = self.section.get_or_insert_default();
        if section.stage >= Stage::Sampled {
            return;
        }
        section.stage = Stage::Sampling;
        n.enter(match (bar.complete(), section.moves) {
            (false, _) => Phase::Sampling,
            (true, true) => Phase::Offload,
            (true, false) => Phase::VaeDecode,
        });
    }

    fn exception(&mut self, e: &Exception, n: &mut Narrator) {
        if e.in_request || e.aside {
            return;
        }
        if !n.in_flight() {
            if self.saves > 0 && !e.is_interrupt() {
                (self.failed, self.saves) = (true, 0);
                n.fail_after_done(Phase::Save, &e.text);
            }
            return;
        }
        self.failed = true;
        self.end_job();
        if e.is_interrupt() {
            n.wait();
        } else {
            n.fail(Some(&e.text));
        }
    }
}

impl Framepack {
    fn namespace(&mut self, text: &str) {
        for c in NAMESPACE.captures_iter(text) {
            let value = c["value"].parse().ok().filter(|v| *v > 0);
            if &c["name"] == "sections" {
                self.given_sections = value;
            } else {
                self.window = value;
            }
        }
    }

    pub(super) fn begin_job(&mut self, n: &mut Narrator) {
        (self.failed, self.saves) = (false, 0);
        self.end_job();
        n.start_job();
    }

    fn end_job(&mut self) {
        self.paddings.clear();
        self.section = None;
    }

    fn moved(&mut self, verb: &str, model: ModelRole, n: &mut Narrator) {
        match n.job {
            // The models that a server loads at its start are told by bars.
            Job::NotYet if n.server => return,
            Job::NotYet => self.begin_job(n),
            Job::InFlight => {}
            // A clean-up after a job may unload the VAE or, after a failure, everything.
            Job::Waiting | Job::Over => {
                let begins = match verb {
                    "Loaded" => true,
                    // right behind the last decode it is the cleaning up of that job
                    "Unloaded" => {
                        let cleans_up = self.failed || self.saves > 0;
                        n.server && !cleans_up && model == ModelRole::Encoder
                    }
                    _ => false,
                };
                if !begins {
                    return;
                }
                self.begin_job(n);
            }
        }
        match (verb, model) {
            ("Loaded", ModelRole::Encoder) => n.enter(Phase::TextEncode),
            ("Loaded", ModelRole::Vae) => n.enter(match &mut self.section {
                Some(section) => {
                    section.stage = Stage::Sampled;
                    Phase::VaeDecode
                }
                None => Phase::VaeEncode,
            }),
            ("Moving" | "Loaded", _) => {
                let section = self.section.get_or_insert_default();
                section.moves = true;
                if section.stage == Stage::Begun {
                    n.enter(Phase::ModelLoad);
                }
            }
            ("Offloading" | "Unloading", _) => {
                if let Some(section) = &mut self.section {
                    section.stage = Stage::Sampled;
                }
                n.enter(Phase::Offload);
            }
            _ => self.unloaded(model, n),
        }
    }

    fn unloaded(&self, model: ModelRole, n: &mut Narrator) {
        match (n.phase(), self.section.is_some()) {
            // The decode is over and the file is being written.
            (Phase::VaeDecode, true) if model == ModelRole::Vae => n.enter(Phase::Save),
            (Phase::Startup | Phase::Idle | Phase::Unknown | Phase::ModelLoad, false) => {
                n.enter(Phase::Offload);
            }
            (Phase::VaeEncode | Phase::TextEncode, false) => n.enter(Phase::ModelLoad),
            _ => {}
        }
    }

    fn padding(&mut self, padding: u32, last: bool, n: &mut Narrator) {
        let over = |s: &Section| s.last && s.stage == Stage::Decoded;
        if self.section.as_ref().is_some_and(over) {
            // A script that runs several jobs.
            self.end_job();
        }
        self.paddings.push(padding);
        let number = u32::try_from(self.paddings.len()).unwrap_or(u32::MAX);
        let total = if last {
            Some(number)
        } else {
            self.given_sections
                .or_else(|| self.total_by_paddings(n.server))
        };
        let paddings = std::mem::take(&mut self.paddings);
        self.section(n, number, total, last);
        self.paddings = paddings;
    }

    /// The number of sections, where the paddings so far leave only one answer.
    fn total_by_paddings(&self, server: bool) -> Option<u32> {
        let first = *self.paddings.first()?;
        let count = u32::try_from(self.paddings.len()).ok()?;
        let last = *self.paddings.last()?;
        let by_step = self
            .paddings
            .windows(2)
            .map(|w| w[0].saturating_sub(w[1]))
            .find(|d| *d > 0);
        let assumed = (server && first % DEFAULT_WINDOW == 0).then_some(DEFAULT_WINDOW);
        let window = self.window.or(by_step).or(assumed)?;
        let left = last / window;
        // 3 is four sections or more, 2 behind 3 can come any number of times.
        let told = first / window <= 2 || left <= 1;
        told.then(|| count.saturating_add(left))
    }

    fn section(&mut self, n: &mut Narrator, number: u32, total: Option<u32>, last: bool) {
        if !n.in_flight() {
            self.begin_job(n);
        }
        self.section = Some(Section {
            last,
            ..Section::default()
        });
        (n.section, n.sections) = (Some(number), total);
        n.enter(Phase::ModelLoad);
    }

    fn decoded(&mut self, n: &mut Narrator) {
        n.begin_script_job();
        let section = self.section.get_or_insert_default();
        section.stage = Stage::Decoded;
        if !section.last {
            n.enter(Phase::Save);
        } else if n.announced {
            n.enter(Phase::Unknown);
        } else if n.server {
            if n.in_flight() {
                self.saves = LINES_OF_SAVE;
            }
            n.done();
            self.end_job();
        } else {
            n.enter(Phase::Done);
        }
    }
}
