//! What follows from a verdict.

use crate::model::event::{Choice, Decision};
use crate::model::{ActionId, Mono, Plan, Remedy, RungId, SkippedRung, Verdict};

use super::budget::BudgetState;
use super::fit::InFlight;
use super::ladder::Position;
use super::remedy::remedy;
use crate::detect::verdicts::{RemedyFacts, may_restart};

/// The decision and, for a restart, the rung to take.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// For the log.
    pub decision: Decision,
    /// The rung.
    pub rung: Option<RungId>,
}

/// Where a run stands as it decides.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The plan in force.
    pub plan: &'a Plan,
    /// Rungs that were taken.
    pub position: &'a Position,
    /// Restarts that were made.
    pub budget: &'a BudgetState,
    /// What runs.
    pub in_flight: &'a InFlight,
    /// Whether the driver says that the card came back after a reset; absent: no word.
    pub recovered: Option<bool>,
    /// The job of a server that was killed can be sent again, and the ladder has a rung for that.
    pub kept: bool,
}

/// Decides about a fault. `alive`: the process still runs (a server whose job
/// failed is not ended for want of a rung). A ladder cannot ask for a restart that the
/// default table forbids, see [`super::remedy`].
pub fn decide(
    standing: &Standing<'_>,
    verdict: &Verdict,
    attempt: u32,
    alive_server: bool,
    now: Mono,
) -> Answer {
    let Standing {
        plan,
        position,
        budget,
        in_flight,
        recovered,
        kept,
    } = *standing;
    let mut offer = position.next(plan, verdict.id, verdict.phase, in_flight);
    let asked = offer.rung.clone();
    if !may_restart(verdict, recovered, kept) {
        offer.rung = None;
    }
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
            match asked {
                Some(rung) => format!(
                    "{where_}: rung {rung} would answer it, but no restart is right here without being asked; advice: {}",
                    counsel(&prescribed(verdict))
                ),
                None => no_rung(&where_, verdict, position, plan, &offer.skipped),
            },
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

/// The remedy of a verdict, by itself where nobody has looked at the facts.
fn prescribed(verdict: &Verdict) -> Remedy {
    let own = verdict.remedy.clone();
    own.unwrap_or_else(|| remedy(verdict, &RemedyFacts::default()))
}

fn no_rung(
    where_: &str,
    verdict: &Verdict,
    position: &Position,
    plan: &Plan,
    skipped: &[SkippedRung],
) -> String {
    let remedy = prescribed(verdict);
    let action = remedy.action;
    let tried: Vec<&RungId> = plan
        .ladder
        .iter()
        .filter(|r| r.answers(verdict.id, verdict.phase) && position.has_taken(&r.id))
        .map(|r| &r.id)
        .collect();
    let mut why = format!("{where_}: ");
    if !skipped.is_empty() {
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
    why.push_str(counsel(&remedy));
    why
}

/// A remedy in few words. Where memory is short, what frees it differs from program to program, and what a user must
/// change differs from cause to cause: there the remedy's own sentence says it.
pub(super) fn counsel(remedy: &Remedy) -> &str {
    match remedy.action {
        ActionId::FreeMemory | ActionId::FixEnvironment => &remedy.why,
        action => advice(action),
    }
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
