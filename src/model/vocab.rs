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

vocabulary! {
    /// What was found out about a run: 45 words, each with its meaning.
    pub enum VerdictId {
        /// A job is in flight and advances at a plausible pace, or just ended well.
        Healthy = "healthy",
        /// The child is up, no job is in flight, it waits for a user or client.
        IdleWaiting = "idle_waiting",
        /// Weights are being read from storage, bytes are flowing.
        LoadingIo = "loading_io",
        /// Files are being fetched and bytes are flowing, short dips included.
        DownloadWait = "download_wait",
        /// First-run compilation or tuning that consumes CPU or GPU and advances or is within budget.
        CompileWarmup = "compile_warmup",
        /// A step that legitimately runs on the CPU (encode, mesh work, announced CPU fallback).
        CpuPhase = "cpu_phase",
        /// The child is stopped on purpose or the machine slept.
        Paused = "paused",
        /// The child ended by itself with code 0.
        Finished = "finished",
        /// Nothing shows that a job is in flight; what moves, if anything, is named.
        Quiet = "quiet",
        /// The job waits for another machine or process, which is named.
        RemoteWait = "remote_wait",
        /// The result is written, the process stays.
        NotEnded = "not_ended",
        /// A job is in flight, no output, and the process tree does nothing (cpu, io about 0) beyond the phase's budget.
        SilentHang = "silent_hang",
        /// MIOpen search or tuning is under way by its own lines (or the agent's op), burns CPU or short GPU bursts, but shows no advance beyond its budget.
        FindStall = "find_stall",
        /// A job is in flight, one core or more is busy without end, no output, and nothing says that MIOpen searches or that a CPU step was announced.
        SpinHang = "spin_hang",
        /// The GPU claims to be busy at a fraction of its usual power and no step completes: wedged queue.
        BusyIdle = "busy_idle",
        /// Tensors, inputs or generator sit on another device than the pipeline expects: error text, or crawl with console evidence of two devices.
        DeviceMismatch = "device_mismatch",
        /// The working set overflows VRAM into system memory; steps go on but several times slower.
        VramSpill = "vram_spill",
        /// The host swaps: high reads and writes together, threads in D state, little CPU and GPU work.
        Thrash = "thrash",
        /// Steady but slow because clocks or power are held down by heat or limits.
        Throttled = "throttled",
        /// Advances at less than a fifth of its own earlier pace, cause not established.
        Crawl = "crawl",
        /// The whole job runs on the CPU although a GPU was meant (CPU-only torch, device cpu); not a single announced CPU step.
        CpuFallback = "cpu_fallback",
        /// A download in flight receives nothing for a long time.
        DownloadStall = "download_stall",
        /// HIP or CUDA out of memory on the device.
        GpuOom = "gpu_oom",
        /// HSA MemoryRegion::BlockAllocator::alloc failed, alive or dead afterwards.
        BlockAllocator = "block_allocator",
        /// AMD card of 24 GiB or less: transformer only offloaded, not unloaded, before the VAE is loaded (warning, before any failure).
        OffloadRisk = "offload_risk",
        /// APU: GTT limit reached while the host still has memory.
        GttExhausted = "gtt_exhausted",
        /// Host memory ran out: kernel killed the child or a host allocation failed.
        HostOom = "host_oom",
        /// Page-locking host memory failed although VRAM is free.
        PinnedMemory = "pinned_memory",
        /// MIOpen found no suitable algorithm (miopenStatusUnknownError).
        NoAlgorithm = "no_algorithm",
        /// MIOpen's cache or database is locked, unreadable or malformed.
        MiopenDb = "miopen_db",
        /// Ring timeout, GPU reset, GPU hang exception, Xid, card lost.
        GpuReset = "gpu_reset",
        /// GPU memory access fault or page fault by the child.
        MemoryFault = "memory_fault",
        /// No device code for this architecture (invalid device function, no binary, Tensile library missing).
        NoKernelImage = "no_kernel_image",
        /// Driver or runtime cannot offer any device (version mismatch, lost after resume).
        GpuUnavailable = "gpu_unavailable",
        /// No permission on /dev/kfd or the render node.
        PermissionKfd = "permission_kfd",
        /// The server port is taken.
        PortInUse = "port_in_use",
        /// A module that the job needs is missing (optional ones are noise).
        MissingDependency = "missing_dependency",
        /// Half / BFloat16 / float mixed in one operation.
        DtypeMismatch = "dtype_mismatch",
        /// CuBLAS, hipBLAS or hipBLASLt call failed.
        BlasError = "blas_error",
        /// A weight file is truncated or damaged.
        CorruptModel = "corrupt_model",
        /// No space left.
        DiskFull = "disk_full",
        /// Output is NaN or black although the job "succeeds".
        NanOutput = "nan_output",
        /// The child died by SIGSEGV or abort without a more specific cause.
        CrashSegv = "crash_segv",
        /// The program failed by an exception or a non-zero exit of its own that no other verdict explains.
        AppError = "app_error",
        /// The child was ended by SIGKILL or SIGTERM from outside, cause not established.
        Killed = "killed",
    }
}

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

impl VerdictId {
    /// Whether this verdict is no fault: the run goes on, or ended well.
    pub const fn is_no_fault(self) -> bool {
        matches!(
            self,
            Self::Healthy
                | Self::IdleWaiting
                | Self::LoadingIo
                | Self::DownloadWait
                | Self::CompileWarmup
                | Self::CpuPhase
                | Self::Paused
                | Self::Finished
                | Self::Quiet
                | Self::RemoteWait
                | Self::NotEnded
        )
    }

    /// The severity that the verdict has by default.
    pub const fn severity(self) -> Severity {
        match self {
            _ if self.is_no_fault() => Severity::Info,
            Self::Throttled
            | Self::Crawl
            | Self::OffloadRisk
            | Self::VramSpill
            | Self::CpuFallback
            | Self::Thrash => Severity::Warn,
            Self::GpuReset | Self::HostOom | Self::GpuUnavailable => Severity::Critical,
            _ => Severity::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_complete_and_round_trip() {
        assert_eq!(VerdictId::ALL.len(), 45);
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
        let verdicts = words(VerdictId::ALL, VerdictId::as_str);
        assert_eq!(words_of_table("Verdicts"), verdicts);
        assert_eq!(words_of_table("Phases"), words(Phase::ALL, Phase::as_str));
        assert_eq!(
            words_of_table("Actions"),
            words(ActionId::ALL, ActionId::as_str)
        );
    }
}
