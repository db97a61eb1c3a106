//! A profile over its parent: tables by key, lists replaced, rungs by id.

use std::collections::BTreeMap;

use super::schema::{
    BudgetSpec, Detect, Env, Kill, MachineLimits, Match, PhaseDetect, Profile, RungSpec, Workload,
};

/// `child` with everything that it does not say taken from `parent`.
///
/// `[tested]` is not inherited: what was measured was the parent, not the child.
pub(super) fn merge(parent: Profile, child: Profile) -> Profile {
    Profile {
        description: child.description.or(parent.description),
        license: child.license.or(parent.license),
        goal: child.goal.or(parent.goal),
        matches: matches(parent.matches, child.matches),
        workload: workload(parent.workload, child.workload),
        env: env(parent.env, child.env),
        limits: limits(parent.limits, child.limits),
        detect: detect(parent.detect, child.detect),
        kill: Kill {
            first: child.kill.first.or(parent.kill.first),
            grace: child.kill.grace.or(parent.kill.grace),
        },
        budget: BudgetSpec {
            restarts: child.budget.restarts.or(parent.budget.restarts),
            period: child.budget.period.or(parent.budget.period),
            total: child.budget.total.or(parent.budget.total),
        },
        ladder: ladder(parent.ladder, child.ladder),
        id: child.id,
        version: child.version,
        title: child.title,
        extends: child.extends,
        tested: child.tested,
        source: child.source,
    }
}

fn over<V>(mut parent: BTreeMap<String, V>, child: BTreeMap<String, V>) -> BTreeMap<String, V> {
    parent.extend(child);
    parent
}

fn matches(parent: Match, child: Match) -> Match {
    Match {
        vendor: child.vendor.or(parent.vendor),
        gfx: child.gfx.or(parent.gfx),
        sm: child.sm.or(parent.sm),
        vram_min: child.vram_min.or(parent.vram_min),
        vram_max: child.vram_max.or(parent.vram_max),
        unified: child.unified.or(parent.unified),
        workload: child.workload.or(parent.workload),
        os: child.os.or(parent.os),
    }
}

fn workload(parent: Workload, child: Workload) -> Workload {
    Workload {
        adapter: child.adapter.or(parent.adapter),
        args: child.args.or(parent.args),
        server: child.server.or(parent.server),
        resume: child.resume.or(parent.resume),
        agent: child.agent.or(parent.agent),
        settings: over(parent.settings, child.settings),
        arguments: over(parent.arguments, child.arguments),
    }
}

/// A name that the child unsets is no longer set, and the other way round.
fn env(parent: Env, child: Env) -> Env {
    let mut set = parent.set;
    for name in child.unset.iter().flatten() {
        set.remove(&name.value);
    }
    let mut unset = child.unset.or(parent.unset);
    if let Some(list) = &mut unset {
        list.retain(|name| !child.set.contains_key(&name.value));
    }
    Env {
        unset,
        set: over(set, child.set),
    }
}

fn limits(parent: MachineLimits, child: MachineLimits) -> MachineLimits {
    MachineLimits {
        vram_cap: child.vram_cap.or(parent.vram_cap),
        temp_pause: over(parent.temp_pause, child.temp_pause),
        host_ram_min: child.host_ram_min.or(parent.host_ram_min),
    }
}

fn detect(parent: Detect, child: Detect) -> Detect {
    let mut phases = parent.phases;
    for (phase, limits) in child.phases {
        let old = phases.remove(&phase).unwrap_or_default();
        phases.insert(
            phase,
            PhaseDetect {
                silence: limits.silence.or(old.silence),
                ceiling: limits.ceiling.or(old.ceiling),
            },
        );
    }
    Detect {
        find_limit: child.find_limit.or(parent.find_limit),
        spin_limit: child.spin_limit.or(parent.spin_limit),
        phases,
    }
}

/// Rungs by id. A new rung goes in front of the next rung of the child's file that
/// the parent has too, else to the end: so `[[ladder]]` with only `id = "vae_cpu"`
/// marks the place before which the rungs above it belong.
fn ladder(parent: Vec<RungSpec>, child: Vec<RungSpec>) -> Vec<RungSpec> {
    let mut out = parent;
    let mut fresh: Vec<RungSpec> = Vec::new();
    for rung in child {
        let found = out.iter().position(|r| r.id.value == rung.id.value);
        let Some(index) = found else {
            if !rung.remove {
                fresh.push(rung);
            }
            continue;
        };
        if rung.remove {
            out.remove(index);
        } else {
            let old = out.remove(index);
            out.insert(index, rung_over(old, rung));
        }
        out.splice(index..index, fresh.drain(..));
    }
    out.append(&mut fresh);
    out
}

fn rung_over(parent: RungSpec, child: RungSpec) -> RungSpec {
    // A rung that only marks a place keeps pointing at the parent's lines.
    let says_something = child.action.is_some()
        || child.answers.is_some()
        || child.phases.is_some()
        || child.args.is_some()
        || child.rocm_min.is_some()
        || child.gfx.is_some()
        || !child.env.is_empty()
        || !child.settings.is_empty();
    RungSpec {
        id: child.id,
        action: child.action.or(parent.action),
        tier: child.tier.or(parent.tier),
        answers: child.answers.or(parent.answers),
        phases: child.phases.or(parent.phases),
        env: over(parent.env, child.env),
        unset: child.unset.or(parent.unset),
        args: child.args.or(parent.args),
        settings: over(parent.settings, child.settings),
        cost: child.cost.or(parent.cost),
        source: child.source.or(parent.source),
        alters_result: child.alters_result.or(parent.alters_result),
        rocm_min: child.rocm_min.or(parent.rocm_min),
        gfx: child.gfx.or(parent.gfx),
        remove: false,
        place: if says_something {
            child.place
        } else {
            parent.place
        },
    }
}
