//! Runs with an agent inside the program.

use std::time::Duration;

use super::healthy;
use crate::model::{AgentOp, Mono, Phase};
use crate::run::Snapshot;
use crate::run::snapshot::{AgentState, AgentView};

/// A decode that falls back to lower tiers, with a convolution in flight.
pub(in crate::ui) fn with_agent() -> Snapshot {
    let op = AgentOp {
        name: "conv3d".to_owned(),
        shape: vec![1, 128, 9, 256, 256],
        weight: vec![128, 128, 3, 3, 3],
        dtype: "float16".to_owned(),
        device: "cuda:0".to_owned(),
        tier: "split".to_owned(),
        age_ms: 14_000,
    };
    let tiers = [
        ("conv3d.nocudnn.ok", 2),
        ("conv3d.split.failed", 1),
        ("conv3d.split.ok", 312),
    ];
    Snapshot {
        agent: AgentView {
            state: AgentState::Connected,
            op: Some((op, Duration::from_secs(14))),
            tiers: tiers.map(|(name, n)| (name.to_owned(), n)).to_vec(),
        },
        phase: Phase::VaeDecode,
        phase_since: Mono::from_secs(840),
        progress: None,
        ..healthy()
    }
}

/// The same, and the connection is gone.
pub(in crate::ui) fn agent_lost() -> Snapshot {
    let mut s = with_agent();
    s.agent = AgentView {
        state: AgentState::Lost,
        ..AgentView::default()
    };
    s
}
