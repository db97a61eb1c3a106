//! The closed lists: verdicts, phases, actions, and what goes with them.
//!
//! Their spelling is the same in code, JSON, TOML and on screen.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A word that is not in a closed list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {list} `{word}`")]
pub struct UnknownWord {
    /// What kind of word was expected.
    pub list: &'static str,
    /// The word that was found.
    pub word: String,
}

/// Gives an enum the words of one closed list.
macro_rules! words {
    ($name:ident { $( $variant:ident = $word:expr, )+ }) => {
        impl $name {
            /// Every word of the list, in its order.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )+];

            /// The word as it is written in JSON, TOML and on screen.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|v| v.as_str() == s).ok_or_else(|| UnknownWord {
                    list: stringify!($name),
                    word: s.to_owned(),
                })
            }
        }
    };
}

/// Defines an enum whose variants are the words of one closed list.
macro_rules! vocabulary {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $( $(#[$vmeta])* #[serde(rename = $word)] $variant, )+
        }

        words! { $name { $( $variant = $word, )+ } }
    };
}

/// Calls the macro `$with` with every verdict, `Variant module`, in the order of the documents. The module is that of its
/// definition in `detect::verdicts`, and its name is the word in JSON, TOML and on screen.
macro_rules! for_each_verdict {
    ($with:ident) => {
        $with! {
            Healthy healthy
            IdleWaiting idle_waiting
            LoadingIo loading_io
            DownloadWait download_wait
            CompileWarmup compile_warmup
            CpuPhase cpu_phase
            Paused paused
            Finished finished
            Quiet quiet
            RemoteWait remote_wait
            NotEnded not_ended
            SilentHang silent_hang
            FindStall find_stall
            SpinHang spin_hang
            BusyIdle busy_idle
            DeviceMismatch device_mismatch
            VramSpill vram_spill
            Thrash thrash
            Throttled throttled
            Crawl crawl
            SlowLink slow_link
            CpuFallback cpu_fallback
            DownloadStall download_stall
            GpuOom gpu_oom
            BlockAllocator block_allocator
            OffloadRisk offload_risk
            GttExhausted gtt_exhausted
            HostOom host_oom
            PinnedMemory pinned_memory
            NoAlgorithm no_algorithm
            MiopenDb miopen_db
            GpuReset gpu_reset
            MemoryFault memory_fault
            NoKernelImage no_kernel_image
            GpuUnavailable gpu_unavailable
            PermissionKfd permission_kfd
            PortInUse port_in_use
            MissingDependency missing_dependency
            DtypeMismatch dtype_mismatch
            BlasError blas_error
            CorruptModel corrupt_model
            DiskFull disk_full
            NanOutput nan_output
            CrashSegv crash_segv
            AppError app_error
            Killed killed
        }
    };
}
pub(crate) use for_each_verdict;

macro_rules! verdict_id {
    ($( $variant:ident $word:ident )+) => {
        /// What was found out about a run. Its meaning and what follows from it: `VerdictId::definition`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum VerdictId { $( $variant, )+ }

        words! { VerdictId { $( $variant = stringify!($word), )+ } }
    };
}
for_each_verdict!(verdict_id);

vocabulary! {
    /// Where in a generation the program is.
    pub enum Phase {
        /// Process start until the server is up or the pipeline is built.
        Startup = "startup",
        /// Server up, nothing to do.
        Idle = "idle",
        /// Fetching files.
        Download = "download",
        /// Reading weights, moving them to the card.
        ModelLoad = "model_load",
        /// Prompt or image encoders.
        TextEncode = "text_encode",
        /// Denoising steps.
        Sampling = "sampling",
        /// Moving a model off the card.
        Offload = "offload",
        /// Pixels to latents (the start image).
        VaeEncode = "vae_encode",
        /// Latents to pixels.
        VaeDecode = "vae_decode",
        /// Hunyuan3D delight step.
        Delight = "delight",
        /// Hunyuan3D multiview, render, bake.
        Texture = "texture",
        /// Mesh reduction, UV unwrap.
        MeshPost = "mesh_post",
        /// Encoding and writing results.
        Save = "save",
        /// Job over.
        Done = "done",
        /// A job may be in flight, its phase cannot be told.
        Unknown = "unknown",
    }
}

vocabulary! {
    /// What can be done about a verdict.
    pub enum ActionId {
        /// Nothing.
        None = "none",
        /// Keep waiting, show why.
        Wait = "wait",
        /// One restart with the same or slightly lower settings; not twice.
        RetrySame = "retry_same",
        /// Restart with MIOpen fast find mode.
        FastFind = "fast_find",
        /// Heuristic choice instead of a search (forced immediate-mode fallback); on RDNA it can choose the naive kernel, so tiles come first.
        ImmediateNaive = "immediate_naive",
        /// Unload the transformer completely before the VAE is loaded.
        FullUnload = "full_unload",
        /// Decode in tiles.
        TiledVae = "tiled_vae",
        /// More preserved memory, fewer frames, smaller size, block swap.
        LowerSettings = "lower_settings",
        /// Decode on the CPU.
        VaeCpu = "vae_cpu",
        /// Inputs and generator to the execution device, or no CPU offload.
        FixDevicePlacement = "fix_device_placement",
        /// One precision, upcast VAE or attention.
        Fp32Upcast = "fp32_upcast",
        /// No page-locked host memory.
        DisablePinned = "disable_pinned",
        /// Restart with the listed environment.
        EnvToggle = "env_toggle",
        /// Move the per-user MIOpen cache aside.
        ResetMiopenDb = "reset_miopen_db",
        /// Restart the fetch.
        ResumeDownload = "resume_download",
        /// Free or add host memory, smaller host copies.
        FreeMemory = "free_memory",
        /// Let it run, improve cooling.
        CoolDown = "cool_down",
        /// Tell the user what to change; no restart.
        FixEnvironment = "fix_environment",
        /// Only a reboot helps; no restart.
        RebootHost = "reboot_host",
    }
}

vocabulary! {
    /// How bad a verdict is.
    pub enum Severity {
        /// Nothing to worry about.
        Info = "info",
        /// Worth knowing, nothing has failed.
        Warn = "warn",
        /// The job is lost unless something is done.
        Error = "error",
        /// The card or the host is affected.
        Critical = "critical",
    }
}

vocabulary! {
    /// How much an action gives up.
    pub enum Tier {
        /// No change.
        T0 = "0",
        /// A change without loss: environment, complete unload.
        T1 = "1",
        /// Stays on the GPU but slower or smaller.
        T2 = "2",
        /// Part of the work on the CPU.
        T3 = "3",
        /// Needs the user or the host.
        T4 = "4",
    }
}

impl Tier {
    /// As the tables of actions write it, 0 to 4.
    pub const fn number(self) -> u8 {
        match self {
            Self::T0 => 0,
            Self::T1 => 1,
            Self::T2 => 2,
            Self::T3 => 3,
            Self::T4 => 4,
        }
    }
}

impl ActionId {
    /// What the action gives up, where neither profile nor verdict says otherwise.
    pub const fn tier(self) -> Tier {
        match self {
            Self::None | Self::Wait | Self::CoolDown => Tier::T0,
            Self::RetrySame
            | Self::FastFind
            | Self::FullUnload
            | Self::FixDevicePlacement
            | Self::DisablePinned
            | Self::EnvToggle
            | Self::ResetMiopenDb
            | Self::ResumeDownload => Tier::T1,
            Self::ImmediateNaive
            | Self::TiledVae
            | Self::LowerSettings
            | Self::Fp32Upcast
            | Self::FreeMemory => Tier::T2,
            Self::VaeCpu => Tier::T3,
            Self::FixEnvironment | Self::RebootHost => Tier::T4,
        }
    }
}

impl Phase {
    /// Whether it is known what the program does: it is past its start.
    pub const fn says_something(self) -> bool {
        !matches!(self, Self::Startup | Self::Unknown)
    }

    /// Whether a job is in flight in this phase.
    pub const fn is_of_a_job(self) -> bool {
        self.says_something() && !matches!(self, Self::Idle | Self::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_complete_and_round_trip() {
        assert_eq!(Phase::ALL.len(), 15);
        assert_eq!(ActionId::ALL.len(), 19);
        for v in VerdictId::ALL {
            assert_eq!(v.as_str().parse(), Ok(*v));
            let json = serde_json::to_string(v).unwrap();
            assert_eq!(json, format!("\"{v}\""));
            assert_eq!(serde_json::from_str::<VerdictId>(&json).unwrap(), *v);
        }
        assert!("silent hang".parse::<VerdictId>().is_err());
    }

    /// The words of a table of closed lists in `docs/events.md`, in its order.
    fn words_of_table(title: &str) -> Vec<&'static str> {
        let doc = include_str!("../../docs/events.md");
        let (_, lists) = doc.split_once("## Closed lists").unwrap();
        let (_, table) = lists.split_once(&format!("### {title}\n")).unwrap();
        let table = table.split("\n#").next().unwrap();
        let words = table.lines().filter_map(|line| line.strip_prefix("| `"));
        words.filter_map(|line| line.split('`').next()).collect()
    }

    #[test]
    fn docs_list_every_word() {
        fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<&'static str> {
            all.iter().map(|v| word(*v)).collect()
        }
        assert_eq!(words_of_table("Phases"), words(Phase::ALL, Phase::as_str));
        assert_eq!(
            words_of_table("Actions"),
            words(ActionId::ALL, ActionId::as_str)
        );
    }
}
