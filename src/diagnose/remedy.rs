//! What follows from a verdict that does not say it itself.

use crate::model::{ActionId, Health, Remedy, Verdict};
use crate::policy::default_action;

use super::report::Action;

/// The action of a verdict.
pub(super) fn action(verdict: &Verdict) -> Action {
    let remedy = verdict.remedy.clone().unwrap_or_else(|| default(verdict));
    Action {
        id: remedy.action,
        tier: remedy.tier,
        auto_restart: remedy.auto_restart,
        env: remedy.env,
        why: remedy.why,
    }
}

/// The default table of the vocabulary.
fn default(verdict: &Verdict) -> Remedy {
    let action = default_action(verdict.id, verdict.phase);
    let tier = match action {
        ActionId::None | ActionId::Wait | ActionId::CoolDown => 0,
        ActionId::TiledVae
        | ActionId::LowerSettings
        | ActionId::FreeMemory
        | ActionId::Fp32Upcast
        | ActionId::ImmediateNaive => 2,
        ActionId::VaeCpu => 3,
        ActionId::FixEnvironment | ActionId::RebootHost => 4,
        _ => 1,
    };
    use crate::model::VerdictId as V;
    let auto_restart = match verdict.id {
        id if id.is_no_fault() => false,
        V::NanOutput | V::Crawl | V::Throttled | V::Killed | V::GpuReset => false,
        V::OffloadRisk | V::Thrash => verdict.health == Health::Failed,
        _ => tier < 4,
    };
    Remedy {
        action,
        tier,
        auto_restart,
        env: std::collections::BTreeMap::new(),
        why: String::new(),
    }
}
