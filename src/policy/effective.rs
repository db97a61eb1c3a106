//! The settings of an attempt with who set them: those of rung 0, and over them
//! what the rungs in force say.

use crate::model::setting::{env_path, workload_path};
use crate::model::{Effective, Origin, Plan, RungId};

use super::ladder::Position;

impl Position {
    /// Every setting of the attempt that would follow on this rung (`None`: without
    /// a further rung).
    pub fn effective(&self, plan: &Plan, rung: Option<&RungId>) -> Vec<Effective> {
        let mut list = plan.effective.clone();
        let in_force = |id: &RungId| self.has_taken(id) || Some(id) == rung;
        for rung in plan.ladder.iter().filter(|r| in_force(&r.id)) {
            let env = rung.env.iter().map(|(k, v)| (k, env_path(k), v.clone()));
            let settings = rung.settings.iter();
            let settings = settings.map(|(k, v)| (k, workload_path(k), Some(v.clone())));
            for (name, key, value) in env.chain(settings) {
                if !plan.chosen.silences(&rung.id, name) {
                    put(&mut list, key, value, &rung.id);
                }
            }
        }
        list.sort_by(|a, b| a.key.cmp(&b.key));
        list
    }
}

/// Lays a rung's word over what stands at `key`.
fn put(list: &mut Vec<Effective>, key: String, value: Option<String>, rung: &RungId) {
    let origin = Origin::Rung { rung: rung.clone() };
    match list.iter_mut().find(|e| e.key == key) {
        Some(e) if e.value == value => {}
        Some(e) => {
            let before = e.value.as_deref().unwrap_or("nothing");
            e.overrides = Some(format!("{before} ({})", e.origin));
            e.value = value;
            e.origin = origin;
            e.idle = None;
        }
        None => list.push(Effective {
            key,
            value,
            origin,
            overrides: None,
            idle: None,
        }),
    }
}
