//! The programs that are known, one file each, and the only list of them.
//!
//! To add one: a file here with its [`Program`] and, where its console has words of its own,
//! its [`Dialect`]; a line in the list below; a fixture in `tests/adapters.rs`.

mod comfyui;
mod diffusers;
mod easy_diffusion;
mod fooocus;
mod framepack;
mod framepack_studio;
mod generic;
mod invokeai;
mod kind;
mod krita;
mod musubi;
mod onetrainer;
mod scripts;
mod sd_scripts;
mod sdcpp;
mod sdnext;
mod stability_matrix;
mod swarmui;
mod wangp;
mod webui;

pub use kind::{UnknownAdapter, queue_waits_for_user, title_of};
pub(super) use scripts::{total, unknown_bar};

use std::fmt;

use super::command::Command;
use super::narrator::{Job, Narrator};
use super::tqdm::{self, Bar};
use super::traceback::Exception;
use super::wording::BarKind;
use crate::model::Phase;

/// How much the wording of a program says about which program it is. A console changes over
/// only to one that says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Nothing is known.
    Anything,
    /// A library that many programs use.
    Library,
    /// One program and what was made from it; others may run its code.
    Family,
    /// One program.
    Program,
}

/// What a restart means for the work of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AfterRestart {
    /// What becomes of the job that ran.
    pub job: &'static str,
    /// What the vault keeps of it, with the agent in the program.
    pub kept: &'static str,
    /// What is said before a restart that loses the job of its server; none: the sentence
    /// for any server.
    pub warning: Option<&'static str>,
}

impl AfterRestart {
    /// Of a server whose job is lost.
    const fn lost(warning: Option<&'static str>) -> Self {
        Self {
            job: "it is not sent again",
            kept: "latents before each decode that the agent knows",
            warning,
        }
    }
}

/// What is known of one program. Facts carry the source that they were read in.
pub(super) trait Program: Sync {
    /// The word for it in profiles, events and reports.
    fn name(&self) -> &'static str;

    /// The spelling of its makers.
    fn title(&self) -> &'static str;

    /// What instructions call it.
    fn short_title(&self) -> &'static str {
        self.title()
    }

    fn rank(&self) -> Rank {
        Rank::Program
    }

    /// Whether a command line runs it. Programs are asked in the order of the list.
    fn is_run_by(&self, command: &Command<'_>) -> bool;

    /// Whether it is a server that waits for its user, as far as its command tells.
    fn serves(&self, command: &Command<'_>) -> bool;

    /// The pattern of lines that only this program prints.
    fn unmistakable(&self) -> Option<&'static str> {
        None
    }

    /// Whether a line is typical of it, though not proof.
    fn is_typical(&self, _text: &str) -> bool {
        false
    }

    /// The pattern of the lines with which its log begins, in a text that may hold several.
    fn banner(&self) -> Option<&'static str> {
        None
    }

    /// The program that it starts with arguments of its user's.
    fn starts(&self) -> Option<AdapterKind> {
        None
    }

    /// Whether it starts other programs of its user's choice.
    fn is_launcher(&self) -> bool {
        false
    }

    /// A sentence that says where its user enters arguments of the programs that it starts.
    fn place_of_arguments(&self) -> Option<&'static str> {
        None
    }

    /// Beginnings of another program's lines that this one prints as well, because it runs
    /// that program or its code.
    fn prints_too(&self) -> &'static [&'static str] {
        // a program that starts another one passes on all that it prints
        if self.starts().is_some() { &[""] } else { &[] }
    }

    /// The folder that its users run it in: a name, and what lies there beside the program.
    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("app", &[])
    }

    /// Whether it is no Python program.
    fn is_native(&self) -> bool {
        false
    }

    /// Whether its command has it decode on the CPU.
    fn decodes_on_cpu(&self, _command: &Command<'_>) -> bool {
        false
    }

    /// Reads the console of one attempt.
    fn dialect(&self) -> Box<dyn Dialect>;

    /// The arguments by which it follows a setting; none: no argument is known.
    ///
    /// # Errors
    /// What is wrong with the value.
    fn arguments(&self, _name: &str, _value: &str) -> Result<Option<Vec<String>>, String> {
        Ok(None)
    }

    /// Groups of flags of which a command may have one.
    fn rival_flags(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Whether a lost queue of its server waits for its user's word before it is sent again.
    fn queue_waits_for_user(&self) -> bool {
        false
    }

    /// What a restart means for its work.
    fn after_restart(&self) -> AfterRestart;

    /// The variable that switches MIOpen on, in a program that switches it off on AMD cards.
    fn miopen_switch(&self) -> Option<&'static str> {
        None
    }

    /// The argument in force that has torch tune every convolution.
    fn autotunes(&self, _command: &Command<'_>) -> bool {
        false
    }

    /// Whether it writes its videos with torchvision, and ends at its start without it.
    fn needs_torchvision(&self) -> bool {
        false
    }
}

/// Reads the lines of one program, in the order in which they come.
pub(super) trait Dialect: fmt::Debug + Send {
    /// What a line says in the program's own words. Gives whether it said something.
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool;

    /// A bar of denoising steps has advanced. `sampling`: it is known to be one.
    fn bar(&mut self, bar: &Bar, sampling: bool, n: &mut Narrator);

    /// Words that any program may use were read; `before`: the job before them.
    fn after_common_words(&mut self, _before: Job, _n: &mut Narrator) {}

    /// What a bar counts, where the program's own words tell more than the bar's.
    fn kind_of(&self, _bar: &Bar, _n: &Narrator) -> Option<BarKind> {
        None
    }

    /// A bar over the weights that are read has advanced.
    fn weights(&mut self, _bar: &Bar, _n: &mut Narrator) {}

    /// A bar of denoising steps was closed before its end.
    fn bar_closed(&mut self, _n: &mut Narrator) {}

    /// What the program said last of a failure, where it raises no exceptions.
    fn last_error(&self) -> Option<&str> {
        None
    }

    /// A traceback has come to its end.
    fn exception(&mut self, _e: &Exception, _n: &mut Narrator) {}

    /// A bar of another phase has advanced.
    fn step(&mut self, _bar: &Bar, _phase: Phase, _n: &mut Narrator) {}

    /// Whether its steps are a generation's: a bar without a name counts them, a texture
    /// belongs to a job. Not so in a program of which nothing is known.
    fn knows_steps(&self) -> bool {
        true
    }
}

/// One list, out of which the kinds, their names and their files are known.
macro_rules! programs {
    ($($(#[$doc:meta])* $kind:ident: $program:expr,)*) => {
        /// A program, or a family of them, whose console we know.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum AdapterKind {
            $($(#[$doc])* $kind,)*
        }

        impl AdapterKind {
            /// Every kind, in the order in which a command line is compared with them.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            pub(super) const fn program(self) -> &'static dyn Program {
                match self {
                    $(Self::$kind => &$program,)*
                }
            }
        }
    };
}

programs! {
    /// FramePack-Studio.
    FramepackStudio: framepack_studio::StudioProgram,
    /// musubi-tuner's scripts that generate.
    MusubiTuner: musubi::MusubiProgram,
    /// `WanGP`.
    Wangp: wangp::WangpProgram,
    /// FramePack, its F1 variant and forks that keep its lines.
    Framepack: framepack::FramepackProgram,
    /// ComfyUI with any node packs.
    Comfyui: comfyui::ComfyuiProgram,
    /// stable-diffusion.cpp.
    StableDiffusionCpp: sdcpp::SdcppProgram,
    /// `InvokeAI`.
    Invokeai: invokeai::InvokeaiProgram,
    /// SD.Next.
    Sdnext: sdnext::SdnextProgram,
    /// Fooocus.
    Fooocus: fooocus::FooocusProgram,
    /// Easy Diffusion.
    EasyDiffusion: easy_diffusion::EasyDiffusionProgram,
    /// SwarmUI, which starts ComfyUI.
    Swarmui: swarmui::SwarmuiProgram,
    /// Krita AI Diffusion, which starts ComfyUI.
    Krita: krita::KritaProgram,
    /// OneTrainer.
    OneTrainer: onetrainer::OneTrainerProgram,
    /// kohya's sd-scripts.
    SdScripts: sd_scripts::SdScriptsProgram,
    /// Stability Matrix.
    StabilityMatrix: stability_matrix::StabilityMatrixProgram,
    /// Stable Diffusion web UI of AUTOMATIC1111, and Forge.
    Webui: webui::WebuiProgram,
    /// A Python program with tqdm bars, as diffusers pipelines print them.
    Diffusers: diffusers::DiffusersProgram,
    /// Anything else.
    Generic: generic::GenericProgram,
}

/// Lines of ComfyUI's memory management, which other programs have copied.
const COMFYUI_MEMORY: &[&str] = &["Total VRAM ", "Set vram state to: "];

/// Whether a program's own name, as its authors chose it, speaks of a page that serves.
fn is_named_as_server(command: &Command<'_>) -> bool {
    let named = if command.file().is_empty() {
        command.module()
    } else {
        command.file()
    };
    ["gradio", "server", "webui", "launch.py"]
        .iter()
        .any(|word| named.contains(word))
}
