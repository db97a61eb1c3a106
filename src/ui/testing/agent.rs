//! Runs with an agent inside the program.

use std::sync::Arc;
use std::time::Duration;

use super::healthy;
use crate::model::{AgentOp, Mono, NextStep, Phase, Verdict};
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
        tid: None,
    };
    let tiers = [
        ("conv3d.nocudnn.ok", 1),
        ("conv3d.nocudnn.tried", 1),
        ("conv3d.split.failed", 1),
        ("conv3d.split.ok", 312),
        ("conv3d.split.tried", 313),
    ];
    let s = healthy();
    let mut phases = s.phases.clone();
    Arc::make_mut(&mut phases).push_back((Mono::from_secs(840), Phase::VaeDecode));
    Snapshot {
        verdict: Verdict {
            phase: Phase::VaeDecode,
            onset: Mono::from_secs(840),
            sentence: "the job advances (GPU 98 %, CPU 104 %)".to_owned(),
            next: Some(NextStep {
                what: "silence limit in vae_decode".to_owned(),
                at: Mono::from_secs(910),
            }),
            ..s.verdict.clone()
        },
        phases,
        agent: AgentView {
            state: AgentState::Connected,
            came: true,
            op: Some((op, Duration::from_secs(14))),
            tiers: tiers.map(|(name, n)| (name.to_owned(), n)).to_vec(),
        },
        phase: Phase::VaeDecode,
        phase_since: Mono::from_secs(840),
        progress: None,
        ..s
    }
}

/// The same, and the connection is gone.
pub(in crate::ui) fn agent_lost() -> Snapshot {
    let mut s = with_agent();
    s.agent = AgentView {
        state: AgentState::Lost,
        came: true,
        ..AgentView::default()
    };
    s
}

/// The server's prompts were lost with it: they go out again on the user's word.
pub(in crate::ui) fn queue_lost() -> Snapshot {
    let mut s = with_agent();
    s.resend.waiting = 3;
    s
}
