//! The fallback ladder: which rung answers, which cannot be taken and why.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    ActionId, AttemptSpec, EnvChange, EnvOrigin, Phase, Plan, Rung, RungId, SkippedRung, Tier,
    VerdictId,
};

use super::fit::InFlight;

/// Where a run stands on its ladder. The position never goes back by itself (R12); only
/// `retry_same`, which changes nothing, may be taken from any height, once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    taken: BTreeSet<RungId>,
}

/// What the ladder has to offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The rung; absent: none answers.
    pub rung: Option<RungId>,
    /// Rungs that answer but cannot be taken.
    pub skipped: Vec<SkippedRung>,
}

impl Position {
    /// The first untried rung above the present one that answers.
    pub fn next(
        &self,
        plan: &Plan,
        verdict: VerdictId,
        phase: Phase,
        in_flight: &InFlight,
    ) -> Offer {
        let mut skipped = Vec::new();
        let highest = self.highest(plan);
        for (i, rung) in plan.ladder.iter().enumerate() {
            let repeats = rung.action == ActionId::RetrySame;
            let below = highest.is_some_and(|h| i <= h);
            if !rung.answers(verdict, phase) || self.taken.contains(&rung.id) || (below && !repeats)
            {
                continue;
            }
            let lack = rung.unavailable.clone();
            match lack.or_else(|| in_flight.misfit(rung, verdict)) {
                None => {
                    return Offer {
                        rung: Some(rung.id.clone()),
                        skipped,
                    };
                }
                Some(why) => skipped.push(SkippedRung {
                    rung: rung.id.clone(),
                    why,
                }),
            }
        }
        Offer {
            rung: None,
            skipped,
        }
    }

    /// Index of the highest rung taken in this ladder, which may be another than the
    /// one from which it was taken; `None`: the profile as given.
    fn highest(&self, plan: &Plan) -> Option<usize> {
        plan.ladder
            .iter()
            .rposition(|r| self.taken.contains(&r.id) && r.action != ActionId::RetrySame)
    }

    /// Takes a rung.
    pub fn take(&mut self, rung: &RungId) {
        self.taken.insert(rung.clone());
    }

    /// Whether a rung was taken in this run.
    pub fn has_taken(&self, id: &RungId) -> bool {
        self.taken.contains(id)
    }

    /// The rungs taken, of this ladder, in its order.
    pub fn taken(&self, plan: &Plan) -> Vec<RungId> {
        self.in_force(plan).map(|r| r.id.clone()).collect()
    }

    /// The attempt that follows: rungs add up, so that a later one keeps what an
    /// earlier one changed; where both set a variable the later one wins. What the
    /// user chose after a rung was taken wins over that rung.
    pub fn attempt(&self, plan: &Plan, number: u32, rung: Option<&RungId>) -> AttemptSpec {
        let current = plan.ladder.iter().find(|r| Some(&r.id) == rung);
        let mut argv = plan.argv.clone();
        let mut settings = plan.settings.clone();
        let mut changes: BTreeMap<String, EnvChange> = plan
            .env
            .iter()
            .map(|c| (c.name.clone(), c.clone()))
            .collect();
        let mut on_cpu = false;
        for rung in self.in_force(plan) {
            argv.extend(rung.args.iter().cloned());
            let heard = |key: &str| !plan.chosen.silences(&rung.id, key);
            settings.extend(
                rung.settings
                    .iter()
                    .filter(|(key, _)| heard(key))
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
            on_cpu |= rung.on_cpu();
            for (name, value) in rung.env.iter().filter(|(name, _)| heard(name)) {
                let before = plan.env_before.get(name).cloned();
                changes.insert(
                    name.clone(),
                    EnvChange {
                        name: name.clone(),
                        value: value.clone(),
                        origin: EnvOrigin::Rung,
                        overrides: before.filter(|b| Some(b) != value.as_ref()),
                    },
                );
            }
        }
        argv.extend(setting_args(plan, &settings));
        AttemptSpec {
            number,
            rung: rung.cloned().unwrap_or_else(RungId::as_given),
            action: current.map_or(ActionId::None, |r| r.action),
            tier: current.map_or(Tier::T0, |r| r.tier),
            argv,
            env: changes.into_values().collect(),
            settings,
            on_cpu,
        }
    }

    /// The rung in force that sets this setting last.
    pub fn sets(&self, plan: &Plan, key: &str) -> Option<RungId> {
        let heard = |r: &&Rung| r.settings.contains_key(key) && !plan.chosen.silences(&r.id, key);
        let setters = self.in_force(plan).filter(heard);
        setters.last().map(|r| r.id.clone())
    }

    fn in_force<'p>(&'p self, plan: &'p Plan) -> impl Iterator<Item = &'p Rung> {
        plan.ladder.iter().filter(|r| self.taken.contains(&r.id))
    }
}

/// The arguments of all settings, each once: a flag that two settings share is not repeated.
fn setting_args(plan: &Plan, settings: &BTreeMap<String, String>) -> Vec<String> {
    let mut groups: Vec<&Vec<String>> = Vec::new();
    for (key, value) in settings {
        let args = plan.setting_args.get(key).and_then(|v| v.get(value));
        if let Some(args) = args.filter(|a| !groups.contains(a)) {
            groups.push(args);
        }
    }
    groups.into_iter().flatten().cloned().collect()
}
