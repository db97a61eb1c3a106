//! What the agent inside the program means for the run: which settings it is to carry
//! out, rungs that need it, and how it stands on the screen.

use std::collections::BTreeMap;

use crate::detect::Presence;
use crate::model::{AgentWay, AgentWord, AttemptSpec, Event, RungId, VerdictId};

use super::snapshot::{AgentState, AgentView};
use super::state::RunState;

/// Why a rung cannot be taken that only an agent carries out.
const NO_HELLO: &str = "it needs the agent, which did not say hello";

impl RunState {
    /// What the agent of an attempt is to carry out: settings that no argument of the
    /// command follows, and the cap in bytes as `vram_cap`.
    pub fn agent_settings(&self, spec: &AttemptSpec) -> BTreeMap<String, String> {
        let by_agent = |key: &str, value: &str| self.is_by_agent(key, value);
        let mut settings: BTreeMap<String, String> = spec
            .settings
            .iter()
            .filter(|(key, value)| by_agent(key, value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if let Some(cap) = self.plan.vram_cap {
            settings.insert("vram_cap".to_owned(), cap.0.to_string());
        }
        settings
    }

    /// The rung in force that sets this setting, if one does.
    pub fn setter(&self, key: &str) -> Option<RungId> {
        self.position.sets(&self.plan, key)
    }

    /// The fault that this attempt was begun to answer; none where it is the first, or the user asked for it.
    pub const fn answers(&self) -> Option<VerdictId> {
        self.answers
    }

    /// Whether the workload is a server.
    pub const fn is_server(&self) -> bool {
        self.plan.server
    }

    /// Whether no argument of the command follows it.
    fn is_by_agent(&self, key: &str, value: &str) -> bool {
        let args = self.plan.setting_args.get(key);
        args.is_none_or(|values| !values.contains_key(value))
    }

    /// Rungs that only the agent carries out come and go with it.
    pub(super) fn agent_event(&mut self, event: &Event) {
        if let Event::Agent(note) = event
            && matches!(note.word, AgentWord::Hello(_))
        {
            self.agent_came = true;
        }
        let changes = match event {
            Event::Agent(note) => matches!(
                note.word,
                AgentWord::Hello(_) | AgentWord::Silent { .. } | AgentWord::Refused { .. }
            ),
            Event::Replanned(_) => true,
            _ => false,
        };
        if !changes || self.plan.agent != AgentWay::On {
            return;
        }
        let missing = self.detector.presence() == Presence::Silent;
        for i in 0..self.plan.ladder.len() {
            let rung = &self.plan.ladder[i];
            let needs = rung.settings.iter().any(|(k, v)| self.is_by_agent(k, v));
            let ours = rung.unavailable.as_deref() == Some(NO_HELLO);
            let now = match (missing, needs, ours) {
                (true, true, _) if rung.unavailable.is_none() => Some(NO_HELLO.to_owned()),
                (false, _, true) => None,
                _ => continue,
            };
            self.plan.ladder[i].unavailable = now;
        }
    }

    /// How it stands.
    pub(super) fn view_agent(&self) -> AgentView {
        let state = match (self.detector.presence(), &self.plan.agent) {
            (Presence::Connected, _) => AgentState::Connected,
            (Presence::Lost, _) => AgentState::Lost,
            (Presence::Silent, _) => AgentState::Silent,
            (Presence::None, AgentWay::On) if self.pid.is_some() => AgentState::Awaited,
            (Presence::None, AgentWay::Off { .. }) => AgentState::Off,
            (Presence::None, _) => AgentState::None,
        };
        let op = self.detector.op(self.now);
        let tiers = self.detector.beat().map(|b| &b.tiers);
        AgentView {
            state,
            came: self.agent_came,
            op: op.map(|(op, age)| (op.clone(), age)),
            tiers: tiers
                .into_iter()
                .flatten()
                .filter(|(name, _)| !name.contains(".native."))
                .map(|(name, n)| (name.clone(), *n))
                .collect(),
        }
    }
}
