//! What follows from a verdict.

use crate::model::event::{Choice, Decision};
use crate::model::{ActionId, Mono, Phase, Plan, RungId, Verdict, VerdictId};

use super::budget::BudgetState;
use super::ladder::Position;

/// The decision and, for a restart, the rung to take.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// For the log.
    pub decision: Decision,
    /// The rung.
    pub rung: Option<RungId>,
}

/// The action that a verdict calls for where a ladder says nothing better: the
/// default table of the vocabulary.
pub const fn default_action(verdict: VerdictId, phase: Phase) -> ActionId {
    let decode = matches!(phase, Phase::VaeDecode | Phase::VaeEncode);
    match verdict {
        VerdictId::SilentHang if decode => ActionId::FastFind,
        VerdictId::SilentHang => ActionId::EnvToggle,
        VerdictId::SpinHang
        | VerdictId::BusyIdle
        | VerdictId::MemoryFault
        | VerdictId::BlasError
        | VerdictId::GpuReset
        | VerdictId::Killed => ActionId::RetrySame,
        VerdictId::NoAlgorithm => ActionId::TiledVae,
        VerdictId::GpuOom | VerdictId::VramSpill if decode => ActionId::TiledVae,
        VerdictId::GpuOom | VerdictId::VramSpill => ActionId::LowerSettings,
        VerdictId::BlockAllocator | VerdictId::OffloadRisk => ActionId::FullUnload,
        VerdictId::HostOom | VerdictId::Thrash => ActionId::FreeMemory,
        VerdictId::PinnedMemory => ActionId::DisablePinned,
        VerdictId::MiopenDb => ActionId::ResetMiopenDb,
        VerdictId::DeviceMismatch => ActionId::FixDevicePlacement,
        VerdictId::DtypeMismatch | VerdictId::NanOutput => ActionId::Fp32Upcast,
        VerdictId::DownloadStall => ActionId::ResumeDownload,
        VerdictId::FindStall | VerdictId::Crawl => ActionId::FastFind,
        VerdictId::Throttled => ActionId::CoolDown,
        VerdictId::GpuUnavailable => ActionId::RebootHost,
        VerdictId::GttExhausted
        | VerdictId::PermissionKfd
        | VerdictId::NoKernelImage
        | VerdictId::PortInUse
        | VerdictId::MissingDependency
        | VerdictId::CorruptModel
        | VerdictId::DiskFull
        | VerdictId::CpuFallback
        | VerdictId::CrashSegv
        | VerdictId::AppError => ActionId::FixEnvironment,
        VerdictId::Healthy | VerdictId::IdleWaiting | VerdictId::Paused | VerdictId::Finished => {
            ActionId::None
        }
        VerdictId::LoadingIo
        | VerdictId::DownloadWait
        | VerdictId::CompileWarmup
        | VerdictId::CpuPhase => ActionId::Wait,
    }
}

/// Decides about a fault. `alive`: the process still runs (a server whose job
/// failed is not ended for want of a rung).
pub fn decide(
    plan: &Plan,
    position: &Position,
    budget: &BudgetState,
    verdict: &Verdict,
    attempt: u32,
    alive_server: bool,
    now: Mono,
) -> Answer {
    let offer = position.next(plan, verdict.id, verdict.phase);
    let left = budget.left(&plan.budget, now);
    let where_ = format!("{} in {}", verdict.id, verdict.phase);
    let give_up = if alive_server {
        Choice::Advise
    } else {
        Choice::GiveUp
    };
    let (choice, why, rung) = match offer.rung {
        Some(rung) if left > 0 => (
            Choice::Restart {
                rung: rung.clone(),
                kill_at: now + plan.countdown,
                by_user: false,
            },
            format!(
                "{where_}: rung {rung} answers it, is the first untried one, and {left} of {} restarts are left",
                plan.budget.restarts
            ),
            Some(rung),
        ),
        Some(rung) => (
            give_up,
            format!(
                "{where_}: rung {rung} would answer it, but the budget of {} restarts in {} min ({} in a run) is spent",
                plan.budget.restarts,
                plan.budget.period.as_secs() / 60,
                plan.budget.total
            ),
            None,
        ),
        None => (
            give_up,
            no_rung(
                &where_,
                verdict.id,
                verdict.phase,
                position,
                plan,
                !offer.skipped.is_empty(),
            ),
            None,
        ),
    };
    Answer {
        decision: Decision {
            attempt,
            verdict: verdict.id,
            choice,
            why,
            skipped: offer.skipped,
            restarts_left: left.saturating_sub(u32::from(rung.is_some())),
        },
        rung,
    }
}

fn no_rung(
    where_: &str,
    verdict: VerdictId,
    phase: Phase,
    position: &Position,
    plan: &Plan,
    skipped: bool,
) -> String {
    let action = default_action(verdict, phase);
    let tried: Vec<&RungId> = plan
        .ladder
        .iter()
        .filter(|r| r.answers(verdict, phase) && position.has_taken(&r.id))
        .map(|r| &r.id)
        .collect();
    let mut why = format!("{where_}: ");
    if skipped {
        why.push_str("the rungs that answer it cannot be taken here");
    } else if tried.is_empty() {
        why.push_str("no rung of this ladder answers it");
        if action != ActionId::RetrySame {
            why.push_str(", and a blind restart would not help");
        }
    } else {
        let list: Vec<_> = tried.iter().map(|r| r.0.as_str()).collect();
        why.push_str("every rung that answers it was tried: ");
        why.push_str(&list.join(", "));
    }
    if matches!(action, ActionId::None | ActionId::Wait) {
        return why;
    }
    why.push_str("; advice: ");
    why.push_str(advice(action));
    why
}

/// One sentence of advice an action, for people.
pub const fn advice(action: ActionId) -> &'static str {
    match action {
        ActionId::None => "nothing",
        ActionId::Wait => "keep waiting",
        ActionId::RetrySame => "start it once more",
        ActionId::FastFind => "start it with MIOPEN_FIND_MODE=FAST",
        ActionId::ImmediateNaive => {
            "start it with MIOPEN_DEBUG_FORCE_IMMED_MODE_FALLBACK=1, after smaller tiles"
        }
        ActionId::FullUnload => "unload the transformer completely before the VAE is loaded",
        ActionId::TiledVae => "decode in tiles, or in smaller ones",
        ActionId::LowerSettings => "preserve more memory, fewer frames, a smaller size",
        ActionId::VaeCpu => "decode on the CPU",
        ActionId::FixDevicePlacement => {
            "put inputs and generator on the execution device, or switch CPU offload off"
        }
        ActionId::Fp32Upcast => "use one precision; upcast the VAE or attention to float32",
        ActionId::DisablePinned => "switch page-locked host memory off",
        ActionId::EnvToggle => "change what the evidence points to, then start it again",
        ActionId::ResetMiopenDb => "move MIOpen's per-user cache aside",
        ActionId::ResumeDownload => "start the download again",
        ActionId::FreeMemory => "free or add host memory, keep smaller host copies",
        ActionId::CoolDown => "let it run, improve the cooling",
        ActionId::FixEnvironment => "see the program's last lines and change what they name",
        ActionId::RebootHost => "only a reboot helps",
    }
}
