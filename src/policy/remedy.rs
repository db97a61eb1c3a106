//! What follows from a verdict by itself: the default table of the vocabulary
//! (`tests/cases/README.md`), with a sentence for people.

use std::collections::BTreeMap;

use crate::causes::Explanation;
use crate::model::worker::OwnWork;
use crate::model::{
    ActionId, Backend, Bytes, Cause, Cite, Health, Phase, Remedy, Vendor, Verdict, VerdictId,
};

/// What a remedy depends on besides the verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemedyFacts {
    /// The driver's last word about a reset of the card: it came back, or not; absent:
    /// no word.
    pub recovered: Option<bool>,
    /// MIOpen's own lines name the naive kernel.
    pub naive: bool,
    /// A model was being moved between host and card as everything stopped.
    pub copies: bool,
    /// Attempts of this run that ended with the same verdict before.
    pub tries: u32,
    /// The job of a server that was killed can be sent again, and the ladder has a rung for
    /// that by name.
    pub kept: bool,
    /// Memory of the supervised card.
    pub vram: Option<Bytes>,
    /// Its architecture: `gfx1100`, `sm_89`.
    pub arch: Option<String>,
    /// Whose card it is.
    pub vendor: Option<Vendor>,
    /// What the program computes with: MIOpen's variables answer nothing beside ROCm.
    pub backend: Backend,
    /// Actions that change nothing, because the program does so already.
    pub in_force: Vec<ActionId>,
    /// Why it happened, where that is known: its cure comes before the table's.
    pub cause: Option<Explanation>,
    /// What our own worker makes, where it is the program: it has no text encoder, and other
    /// settings than a generation.
    pub own: Option<OwnWork>,
}

/// A step: what to do, and how much it gives up.
type Step = (ActionId, u8);

const RETRY: &[Step] = &[(ActionId::RetrySame, 1)];
const ENVIRONMENT: &[Step] = &[(ActionId::FixEnvironment, 4)];
/// A search or a decode that stands still: from what loses nothing to what loses most.
const DECODE: &[Step] = &[
    (ActionId::FastFind, 1),
    (ActionId::TiledVae, 2),
    (ActionId::VaeCpu, 3),
];
const SMALLER_DECODE: &[Step] = &[(ActionId::TiledVae, 2), (ActionId::VaeCpu, 3)];

/// What points to ROCm's copy engines.
const COPYING: &str = "a model was being moved between host and card as everything stopped, so ROCm's copy engines are the first suspect: start it once more without them";

/// The remedy of a verdict.
pub fn remedy(verdict: &Verdict, facts: &RemedyFacts) -> Remedy {
    let all = steps(verdict.id, verdict.phase, facts);
    let new = all.iter().filter(|(id, _)| !facts.in_force.contains(id));
    let new: Vec<Step> = new.copied().collect();
    // where every step is taken already, the last is the best that is known
    let steps = if new.is_empty() { all } else { new.as_slice() };
    let tries = usize::try_from(facts.tries).unwrap_or(usize::MAX);
    let (action, tier) = steps
        .get(tries.min(steps.len().saturating_sub(1)))
        .copied()
        .unwrap_or((ActionId::None, 0));
    // what was tried in vain is not advised again: the table's next step is
    if let Some(cause) = facts.cause.as_ref().filter(|_| tries == 0) {
        return cured(verdict, facts, cause, (action, tier));
    }
    // one restart with nothing changed is enough to tell chance from a cause
    let again = action == ActionId::RetrySame && tries > 0;
    let env = environment(action);
    Remedy {
        action,
        tier,
        auto_restart: (may_restart(verdict, facts.recovered)
            || (facts.kept && verdict.id == VerdictId::Killed))
            && !again,
        why: sentence(verdict, facts, action, &env),
        env,
    }
}

/// The same, with the words of the cause in the verdict.
pub fn explained(verdict: &mut Verdict, facts: &RemedyFacts) -> Remedy {
    if let Some(cause) = &facts.cause {
        if let Some(sentence) = &cause.sentence {
            verdict.sentence.clone_from(sentence);
        }
        verdict.cause = Some(Box::new(Cause {
            id: cause.id.clone(),
            source: cause.source.clone(),
        }));
    }
    remedy(verdict, facts)
}

/// The remedy that the cause names, with the table's action where it names none.
fn cured(verdict: &Verdict, facts: &RemedyFacts, cause: &Explanation, by_table: Step) -> Remedy {
    let (action, tier) = cause.action.map_or(by_table, |id| (id, tier_of(id)));
    let unasked = may_restart(verdict, facts.recovered) || facts.kept;
    let by_user = tier_of(action) == 4;
    Remedy {
        action,
        tier,
        auto_restart: unasked && !by_user,
        // the table's variables belong to the table's instruction
        env: if cause.env.is_empty() && cause.action != Some(ActionId::EnvToggle) {
            environment(action)
        } else {
            cause.env.clone()
        },
        why: cause.cure.clone(),
    }
}

/// What an action gives up.
const fn tier_of(action: ActionId) -> u8 {
    match action {
        ActionId::None | ActionId::Wait | ActionId::CoolDown => 0,
        ActionId::RetrySame
        | ActionId::FastFind
        | ActionId::FullUnload
        | ActionId::FixDevicePlacement
        | ActionId::DisablePinned
        | ActionId::EnvToggle
        | ActionId::ResetMiopenDb
        | ActionId::ResumeDownload
        | ActionId::ImmediateNaive => 1,
        ActionId::TiledVae
        | ActionId::LowerSettings
        | ActionId::Fp32Upcast
        | ActionId::FreeMemory => 2,
        ActionId::VaeCpu => 3,
        ActionId::FixEnvironment | ActionId::RebootHost => 4,
    }
}

/// Whether a restart without being asked is right after this verdict at all, by the table.
pub fn may_restart(verdict: &Verdict, recovered: Option<bool>) -> bool {
    let failed = matches!(verdict.health, Health::Failed | Health::Failing);
    match verdict.id {
        VerdictId::SilentHang
        | VerdictId::FindStall
        | VerdictId::SpinHang
        | VerdictId::BusyIdle
        | VerdictId::MemoryFault
        | VerdictId::BlasError
        | VerdictId::NoAlgorithm
        | VerdictId::GpuOom
        | VerdictId::VramSpill
        | VerdictId::PinnedMemory
        | VerdictId::MiopenDb
        | VerdictId::DeviceMismatch
        | VerdictId::DtypeMismatch
        | VerdictId::DownloadStall => true,
        VerdictId::GpuReset => recovered == Some(true),
        // a program that stopped moving after such an error has failed as well
        VerdictId::BlockAllocator | VerdictId::OffloadRisk | VerdictId::HostOom => {
            failed || verdict.health == Health::Hung
        }
        VerdictId::Thrash => failed,
        _ => false,
    }
}

/// What to do, in the order in which it is tried.
const fn steps(verdict: VerdictId, phase: Phase, facts: &RemedyFacts) -> &'static [Step] {
    let decode = matches!(phase, Phase::VaeDecode | Phase::VaeEncode);
    let beside_rocm = facts.backend.beside_rocm().is_some();
    match verdict {
        VerdictId::SilentHang if decode && beside_rocm => SMALLER_DECODE,
        VerdictId::SpinHang if decode && beside_rocm => &[
            (ActionId::RetrySame, 1),
            (ActionId::TiledVae, 2),
            (ActionId::VaeCpu, 3),
        ],
        VerdictId::SilentHang | VerdictId::FindStall if decode => DECODE,
        VerdictId::FindStall => &[(ActionId::FastFind, 1)],
        // no variable is known that cures a hang of a CUDA program
        VerdictId::SilentHang if matches!(facts.vendor, Some(Vendor::Nvidia)) => RETRY,
        VerdictId::SilentHang if facts.copies || matches!(phase, Phase::Offload) => {
            &[(ActionId::EnvToggle, 1)]
        }
        VerdictId::SpinHang if decode => &[
            (ActionId::RetrySame, 1),
            (ActionId::FastFind, 1),
            (ActionId::TiledVae, 2),
            (ActionId::VaeCpu, 3),
        ],
        VerdictId::SilentHang
        | VerdictId::SpinHang
        | VerdictId::BusyIdle
        | VerdictId::MemoryFault
        | VerdictId::BlasError
        | VerdictId::Killed => RETRY,
        VerdictId::GpuReset if matches!(facts.recovered, Some(true)) => &[(ActionId::RetrySame, 2)],
        VerdictId::GpuReset => &[(ActionId::RebootHost, 4)],
        VerdictId::NoAlgorithm => SMALLER_DECODE,
        VerdictId::GpuOom | VerdictId::VramSpill if decode => SMALLER_DECODE,
        VerdictId::GpuOom | VerdictId::VramSpill => &[(ActionId::LowerSettings, 2)],
        VerdictId::BlockAllocator | VerdictId::OffloadRisk => &[(ActionId::FullUnload, 1)],
        VerdictId::HostOom | VerdictId::Thrash => &[(ActionId::FreeMemory, 2)],
        VerdictId::PinnedMemory => &[(ActionId::DisablePinned, 1)],
        VerdictId::MiopenDb => &[(ActionId::ResetMiopenDb, 1)],
        VerdictId::DeviceMismatch => &[(ActionId::FixDevicePlacement, 1)],
        VerdictId::DtypeMismatch | VerdictId::NanOutput => &[(ActionId::Fp32Upcast, 2)],
        VerdictId::DownloadStall => &[(ActionId::ResumeDownload, 1)],
        VerdictId::Crawl if decode || facts.naive => {
            &[(ActionId::FastFind, 1), (ActionId::TiledVae, 2)]
        }
        VerdictId::Throttled => &[(ActionId::CoolDown, 0)],
        VerdictId::GttExhausted
        | VerdictId::GpuUnavailable
        | VerdictId::PermissionKfd
        | VerdictId::NoKernelImage
        | VerdictId::PortInUse
        | VerdictId::MissingDependency
        | VerdictId::CorruptModel
        | VerdictId::DiskFull
        | VerdictId::CpuFallback
        | VerdictId::CrashSegv
        | VerdictId::AppError => ENVIRONMENT,
        VerdictId::Healthy
        | VerdictId::IdleWaiting
        | VerdictId::Paused
        | VerdictId::Finished
        | VerdictId::Quiet
        | VerdictId::NotEnded => &[(ActionId::None, 0)],
        VerdictId::LoadingIo
        | VerdictId::RemoteWait
        | VerdictId::DownloadWait
        | VerdictId::CompileWarmup
        | VerdictId::CpuPhase
        | VerdictId::Crawl => &[(ActionId::Wait, 0)],
    }
}

/// Environment that a restart needs for an action.
fn environment(action: ActionId) -> BTreeMap<String, String> {
    let set: &[(&str, &str)] = match action {
        ActionId::FastFind => &[
            ("MIOPEN_FIND_MODE", "FAST"),
            ("MIOPEN_FIND_ENFORCE", "NONE"),
        ],
        ActionId::ImmediateNaive => &[("MIOPEN_DEBUG_FORCE_IMMED_MODE_FALLBACK", "1")],
        // the only variable that follows from a verdict by itself: see `steps`
        ActionId::EnvToggle => &[("HSA_ENABLE_SDMA", "0")],
        _ => &[],
    };
    set.iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn sentence(
    verdict: &Verdict,
    facts: &RemedyFacts,
    action: ActionId,
    env: &BTreeMap<String, String>,
) -> String {
    let words = match (verdict.id, facts.own) {
        (VerdictId::HostOom | VerdictId::Thrash, Some(work)) => smaller_pieces(work).to_owned(),
        _ => words(verdict, facts, action),
    };
    if env.is_empty() {
        return words;
    }
    let list: Vec<String> = env.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let list = list.join(" ");
    if words.contains("MIOPEN_FIND_MODE=FAST") || list.is_empty() {
        return words;
    }
    format!("{words} ({list})")
}

/// What is to be done, without the variables.
fn words(verdict: &Verdict, facts: &RemedyFacts, action: ActionId) -> String {
    match verdict.id {
        VerdictId::GpuReset if action == ActionId::RetrySame => {
            "the driver says that the card came back: start once more, at lower settings; stop after a second reset".to_owned()
        }
        VerdictId::GpuReset => {
            "the driver does not say that the card came back: only a reboot helps for certain".to_owned()
        }
        VerdictId::GpuUnavailable => {
            "the runtime finds no card: see whether `rocminfo` (NVIDIA: `nvidia-smi`) lists it; if not, look at the driver and at the groups of the user (render, video), in a container at --device /dev/kfd --device /dev/dri (NVIDIA: --gpus all); if it does, look at HIP_VISIBLE_DEVICES and at the build of PyTorch".to_owned()
        }
        VerdictId::BlockAllocator | VerdictId::OffloadRisk => format!(
            "unload the transformer completely before the VAE is loaded{}",
            preserve(facts.vram)
        ),
        VerdictId::GpuOom | VerdictId::VramSpill if action == ActionId::LowerSettings => format!(
            "make the job smaller: fewer frames, a smaller size or a quantised model{}; close what else uses the card",
            preserve(facts.vram).replacen(", ", "; in FramePack ", 1)
        ),
        VerdictId::NoAlgorithm => {
            "no solver of MIOpen fits this convolution: smaller tiles make one fit; the CPU comes last".to_owned()
        }
        VerdictId::HostOom => {
            "free or add host memory (smaller text encoder, fewer copies in RAM, more swap)".to_owned()
        }
        VerdictId::GttExhausted => {
            "the share of host memory that the APU may use is full: raise the limit of the kernel (ttm.pages_limit) or the carve-out in the firmware, or use smaller models".to_owned()
        }
        VerdictId::MiopenDb => {
            "start with a fresh folder for MIOpen's databases (MIOPEN_USER_DB_PATH, MIOPEN_CUSTOM_CACHE_DIR); nothing is deleted".to_owned()
        }
        VerdictId::NoKernelImage => format!(
            "install a build with code for {} (PyTorch: uninstall torch, torchvision and torchaudio, then all three from one index that lists that number; `rocminfo | grep gfx` shows it); a restart cannot help",
            facts.arch.as_deref().unwrap_or("this card's gfx number")
        ),
        VerdictId::PermissionKfd => {
            "add the user to the groups that own /dev/kfd and /dev/dri/renderD* (mostly render and video), then log in again".to_owned()
        }
        VerdictId::PortInUse => {
            "another program has the port: end it, or choose another with --port".to_owned()
        }
        VerdictId::MissingDependency => match missing_module(verdict) {
            Some(name) => format!("install `{name}` into the environment of the program"),
            None => "install what the program's last lines name as missing".to_owned(),
        },
        VerdictId::CorruptModel => {
            "a weight file is damaged or not whole: fetch it again and compare its size".to_owned()
        }
        VerdictId::DiskFull => "make room where the program writes (`df -h` shows which disk is full; outputs, caches and temporary files may lie on different ones)".to_owned(),
        VerdictId::CpuFallback => {
            "the program runs on the CPU: install a build of PyTorch for this card, or remove what makes it choose the CPU".to_owned()
        }
        VerdictId::CrashSegv => {
            "start it without extensions or custom nodes (ComfyUI: --disable-all-custom-nodes, SD.Next: --safe); if it still crashes, reinstall torch, torchvision and torchaudio for this card from one index; a restart alone is no cure".to_owned()
        }
        VerdictId::AppError => {
            "no known cause has these words: search for them together with the program's name; where the last files of a traceback lie under custom_nodes or extensions, update that pack or switch it off".to_owned()
        }
        VerdictId::Killed => {
            "look at `sudo dmesg | grep -i 'killed process'`: if it names the program, the host's memory was short (smaller models, more swap); if not, somebody ended it, and it can be started again".to_owned()
        }
        VerdictId::NanOutput => {
            "the result is not valid: use float32 for the VAE or for attention".to_owned()
        }
        VerdictId::MemoryFault => {
            "restart the program and run the job once more; if it comes back, leave out page-locked memory (ComfyUI: --disable-pinned-memory), and install the newest torch and driver for this card".to_owned()
        }
        VerdictId::Throttled => "let it run, improve the cooling".to_owned(),
        VerdictId::SilentHang if action == ActionId::EnvToggle => COPYING.to_owned(),
        _ => super::decide::advice(action).to_owned(),
    }
}

/// What FramePack and its like should leave free: three quarters of the card.
fn preserve(vram: Option<Bytes>) -> String {
    let Some(vram) = vram.filter(|v| v.0 >= 4 << 30) else {
        return String::new();
    };
    let gib = vram.0.div_ceil(1 << 30);
    format!(", preserve {} of {gib} GiB", gib * 3 / 4)
}

/// What helps our own worker where the host's memory is too small.
const fn smaller_pieces(work: OwnWork) -> &'static str {
    match work {
        OwnWork::Decode => {
            "give it more host memory (free some, add swap, raise the limit that the console names) and the same command, which goes on after the frames that are finished; or name a profile with smaller pieces (vae_chunk, vae_tile), with which it begins anew"
        }
        OwnWork::Encode => {
            "give it more host memory (free some, add swap, raise the limit that the console names), or name a profile with smaller pieces (vae_chunk, vae_tile); an encode begins anew"
        }
    }
}

/// The module that Python did not find.
fn missing_module(verdict: &Verdict) -> Option<&str> {
    let mut lines = verdict.findings.iter().flat_map(|f| &f.cites);
    lines.find_map(|c: &Cite| {
        let rest = c.text.split_once("No module named ")?.1;
        let name = rest.trim_start_matches(['\'', '"']);
        let end = name
            .find(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-'))
            .unwrap_or(name.len());
        Some(&name[..end]).filter(|n| !n.is_empty())
    })
}

#[cfg(test)]
#[path = "remedy_tests.rs"]
mod tests;
