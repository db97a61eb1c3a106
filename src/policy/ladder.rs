//! The fallback ladder: which rung answers, which cannot be taken and why.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    ActionId, AttemptSpec, EnvChange, EnvOrigin, Phase, Plan, Rung, RungId, SkippedRung, Tier,
    VerdictId,
};

/// Where a run stands on its ladder. The position never goes back (R12); only
/// `retry_same`, which changes nothing, may be taken from any height, once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// Index of the highest rung taken; `None`: the profile as given.
    highest: Option<usize>,
    taken: BTreeSet<RungId>,
}

/// What the ladder has to offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Index of the rung in the plan's ladder; absent: none answers.
    pub rung: Option<usize>,
    /// Rungs that answer but cannot be taken.
    pub skipped: Vec<SkippedRung>,
}

impl Position {
    /// The first untried rung above the present one that answers.
    pub fn next(&self, plan: &Plan, verdict: VerdictId, phase: Phase) -> Offer {
        let mut skipped = Vec::new();
        for (i, rung) in plan.ladder.iter().enumerate() {
            let repeats = rung.action == ActionId::RetrySame;
            let below = self.highest.is_some_and(|h| i <= h);
            if !rung.answers(verdict, phase) || self.taken.contains(&rung.id) || (below && !repeats)
            {
                continue;
            }
            match &rung.unavailable {
                None => {
                    return Offer {
                        rung: Some(i),
                        skipped,
                    };
                }
                Some(why) => skipped.push(SkippedRung {
                    rung: rung.id.clone(),
                    why: why.clone(),
                }),
            }
        }
        Offer {
            rung: None,
            skipped,
        }
    }

    /// Takes a rung of the plan's ladder.
    pub fn take(&mut self, plan: &Plan, index: usize) {
        if let Some(rung) = plan.ladder.get(index) {
            self.taken.insert(rung.id.clone());
            if rung.action != ActionId::RetrySame {
                self.highest = self.highest.max(Some(index));
            }
        }
    }

    /// Whether a rung was taken in this run.
    pub fn has_taken(&self, id: &RungId) -> bool {
        self.taken.contains(id)
    }

    /// The attempt that follows: rungs add up, so that a later one keeps what an
    /// earlier one changed; where both set a variable the later one wins.
    pub fn attempt(&self, plan: &Plan, number: u32, rung: Option<usize>) -> AttemptSpec {
        let current = rung.and_then(|i| plan.ladder.get(i));
        let mut argv = plan.argv.clone();
        let mut settings = plan.settings.clone();
        let mut changes: BTreeMap<String, EnvChange> = plan
            .env
            .iter()
            .map(|c| (c.name.clone(), c.clone()))
            .collect();
        let mut on_cpu = false;
        for rung in self.in_force(plan) {
            for arg in &rung.args {
                argv.push(arg.clone());
            }
            settings.extend(rung.settings.clone());
            on_cpu |= rung.on_cpu();
            for (name, value) in &rung.env {
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
        AttemptSpec {
            number,
            rung: current.map_or_else(|| RungId(RungId::AS_GIVEN.to_owned()), |r| r.id.clone()),
            action: current.map_or(ActionId::None, |r| r.action),
            tier: current.map_or(Tier::T0, |r| r.tier),
            argv,
            env: changes.into_values().collect(),
            settings,
            on_cpu,
        }
    }

    fn in_force<'p>(&'p self, plan: &'p Plan) -> impl Iterator<Item = &'p Rung> {
        plan.ladder.iter().filter(|r| self.taken.contains(&r.id))
    }
}
