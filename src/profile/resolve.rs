//! A profile, the user's command and the user's environment become a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::setting::{FIND_ENFORCE, FIND_MODE};
use crate::model::{
    Acts, AgentWay, Answers, Baselines, Budget, Bytes, Chosens, EnvChange, EnvOrigin, GpuId,
    KillPlan, Limits, PhaseLimits, Plan, Rung, RungId, Setting, TimeScale, VerdictId,
};

use super::knob::same_value;
use super::place::{At, Owner};
use super::schema::{AgentUse, Answer, Limit, Profile, Resume, RungSpec};

mod effective;
mod workload;

use effective::effective;
use workload::Told;

/// What the supervisor itself sets, unless the user or the profile says otherwise:
/// output that arrives when it is written, and MIOpen's lines about each Find.
pub const SUPERVISOR_ENV: &[(&str, &str)] = &[
    ("MIOPEN_ENABLE_LOGGING_CMD", "1"),
    ("MIOPEN_LOG_LEVEL", "5"),
    ("PYTHONUNBUFFERED", "1"),
];

/// Why no argument makes a workload follow a setting; fit for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoArgument {
    /// None is known, or the command excludes it. An agent may carry the setting out.
    None(String),
    /// The value is wrong for any way.
    Wrong(String),
}

/// How a workload can follow a setting (key, value): the arguments that do it, or why
/// it cannot.
pub type SettingArgs<'a> = dyn Fn(&str, &str) -> Result<Vec<String>, NoArgument> + 'a;

/// Everything besides the profile that a plan depends on.
pub struct Inputs<'a> {
    /// The user's command.
    pub argv: Vec<String>,
    /// What the user exported: at least every variable of [`env_names`].
    pub user_env: BTreeMap<String, String>,
    /// `--cap`, which wins over the profile.
    pub cap: Option<Bytes>,
    /// The supervised card.
    pub gpu: Option<GpuId>,
    /// Adapter id of the workload (`framepack`, `comfyui`, …).
    pub adapter: String,
    /// Whether the workload is a server, where the profile does not say.
    pub server: bool,
    /// Countdown before a kill; zero when headless.
    pub countdown: Duration,
    /// How the workload can follow a setting, where the profile does not say it.
    pub setting_args: &'a SettingArgs<'a>,
    /// Whether an agent inside the program carries settings out.
    pub agent: AgentWay,
    /// `--agent`, which wins over the profile.
    pub agent_asked: Option<AgentUse>,
    /// Why MIOpen's variables concern nobody here; absent: they do.
    pub no_miopen: Option<String>,
    /// What the user chose while watching; it wins over everything but later rungs.
    pub chosen: Chosens,
}

/// A plan and what the user should be told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The plan.
    pub plan: Plan,
    /// Settings that are shadowed, dropped or cannot be followed; one sentence each.
    pub notices: Vec<String>,
}

/// Why the agent is left out by choice: `--agent`, else what the profile says; absent: it is not.
pub fn agent_off(profile: &Profile, asked: Option<AgentUse>) -> Option<String> {
    let by_profile = profile.workload.agent.as_ref();
    match (asked, by_profile.map(|at| at.value)) {
        (Some(AgentUse::Off), _) => Some("the agent is off (--agent off)".to_owned()),
        (None, Some(AgentUse::Off)) => Some(format!(
            "the agent is off (profile {}; --agent auto puts it in)",
            profile.id.value
        )),
        _ => None,
    }
}

/// Every variable whose exported value [`resolve`] must know.
pub fn env_names(profile: &Profile) -> BTreeSet<String> {
    let unset = profile.env.unset.iter().flatten();
    let rungs = profile.ladder.iter().flat_map(rung_names);
    SUPERVISOR_ENV
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .chain([FIND_MODE, FIND_ENFORCE].map(str::to_owned))
        .chain(profile.env.set.keys().cloned())
        .chain(unset.map(|n| n.value.clone()))
        .chain(rungs)
        .collect()
}

fn rung_names(rung: &RungSpec) -> impl Iterator<Item = String> {
    let unset = rung.unset.iter().flatten().map(|n| n.value.clone());
    rung.env.keys().cloned().chain(unset)
}

/// The plan of a run. Layers, each over the one before: what the supervisor sets,
/// the profile, the user's exported environment, the rung in force (R11a).
pub fn resolve(profile: &Profile, inputs: &Inputs<'_>) -> Resolved {
    let mut notices = unheeded(profile);
    let mut env = rung_zero_env(profile, &inputs.user_env, &mut notices);
    choose_find_mode(inputs, &mut env);
    let mut in_force = inputs.user_env.clone();
    for change in &env {
        if let Some(value) = &change.value {
            in_force.insert(change.name.clone(), value.clone());
        }
    }
    let mut told = Told::new(profile, inputs);
    let zero = rung_zero_workload(profile, inputs, &mut told, &mut notices);
    let mut argv = inputs.argv.clone();
    argv.extend(zero.args);
    let ladder: Vec<Rung> = profile
        .ladder
        .iter()
        .map(|spec| rung(spec, &mut told, &in_force))
        .collect();
    let touched: BTreeSet<String> = profile.ladder.iter().flat_map(rung_names).collect();
    in_force.retain(|name, _| touched.contains(name));
    let cap = inputs.chosen.settings.get(&Setting::VramCap);
    let cap = cap.and_then(|c| c.value.parse().ok());
    let mut plan = Plan {
        argv,
        env,
        env_before: in_force,
        settings: zero.settings,
        follow: told.switches(),
        setting_args: told.found,
        agent: inputs.agent.clone(),
        chosen: inputs.chosen.clone(),
        effective: Vec::new(),
        ladder,
        limits: limits(profile),
        baselines: Baselines::default(),
        kill: kill(profile),
        budget: budget(profile),
        gpu: inputs.gpu.clone(),
        vram_cap: cap
            .or(inputs.cap)
            .or_else(|| profile.limits.vram_cap.as_ref().map(|c| c.value)),
        server: profile
            .workload
            .server
            .as_ref()
            .map_or(inputs.server, |s| s.value),
        lost_job: None,
        end_after_result: false,
        countdown: inputs.countdown,
        time_scale: TimeScale::REAL,
    };
    plan.effective = effective(profile, inputs, &plan, &zero.idle);
    Resolved { plan, notices }
}

/// What the profile asks for and this version does not do: said, not passed over.
fn unheeded(profile: &Profile) -> Vec<String> {
    let id = &profile.id.value;
    let mut notices = Vec::new();
    if !profile.limits.temp_pause.is_empty() {
        notices.push(format!(
            "profile {id} sets temp_pause: this version does not wait for a cooler card"
        ));
    }
    if let Some(resume) = &profile.workload.resume
        && resume.value != Resume::None
    {
        notices.push(format!(
            "profile {id} says that the workload can resume: this version does not ask it to; the command starts again, and the agent hands it what the vault kept"
        ));
    }
    notices
}

fn rung_zero_env(
    profile: &Profile,
    user: &BTreeMap<String, String>,
    notices: &mut Vec<String>,
) -> Vec<EnvChange> {
    let mut changes = Vec::new();
    let id = &profile.id.value;
    for (name, value) in SUPERVISOR_ENV {
        let said = user.contains_key(*name)
            || profile.env.set.contains_key(*name)
            || unsets(profile, name);
        if !said {
            changes.push(change(name, value, EnvOrigin::Supervisor, None));
        }
    }
    for (name, setting) in &profile.env.set {
        let wanted = &setting.value.value;
        match user.get(name) {
            None => changes.push(change(name, wanted, EnvOrigin::Profile, None)),
            Some(own) if own == wanted => {}
            Some(own) => {
                notices.push(format!(
                    "your {name}={own} shadows {name}={wanted} of profile {id}"
                ));
                changes.push(change(name, own, EnvOrigin::User, Some(wanted.clone())));
            }
        }
    }
    for name in profile.env.unset.iter().flatten() {
        if let Some(own) = user.get(&name.value) {
            notices.push(format!(
                "your {}={own} stays in force, though profile {id} asks for it to be unset",
                name.value
            ));
        }
    }
    changes.sort_by(|a, b| a.name.cmp(&b.name));
    changes
}

/// The find mode that the user chose while watching, with the enforcement that lets
/// it be: any but `NONE` makes MIOpen search as if the mode were NORMAL.
fn choose_find_mode(inputs: &Inputs<'_>, env: &mut Vec<EnvChange>) {
    let Some(mode) = inputs.chosen.settings.get(&Setting::FindMode) else {
        return;
    };
    let mut set = |name: &str, value: &str| {
        let at = env.iter().position(|c| c.name == name);
        let old = at.map(|at| env.remove(at).value);
        let before = old.unwrap_or_else(|| inputs.user_env.get(name).cloned());
        let before = before.filter(|b| b != value);
        env.push(change(name, value, EnvOrigin::Live, before));
    };
    set(FIND_MODE, &mode.value);
    set(FIND_ENFORCE, "NONE");
    env.sort_by(|a, b| a.name.cmp(&b.name));
}

fn unsets(profile: &Profile, name: &str) -> bool {
    let mut unset = profile.env.unset.iter().flatten();
    unset.any(|n| n.value == name)
}

fn change(name: &str, value: &str, origin: EnvOrigin, overrides: Option<String>) -> EnvChange {
    EnvChange {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        origin,
        overrides,
    }
}

/// What rung 0 does to the command.
struct Zero {
    args: Vec<String>,
    settings: BTreeMap<String, String>,
    /// Settings that cannot be followed, with why.
    idle: BTreeMap<String, String>,
}

/// Arguments and settings of rung 0.
fn rung_zero_workload(
    profile: &Profile,
    inputs: &Inputs<'_>,
    told: &mut Told<'_>,
    notices: &mut Vec<String>,
) -> Zero {
    let part = &profile.workload;
    let mut zero = Zero {
        args: values(part.args.as_deref()),
        settings: BTreeMap::new(),
        idle: BTreeMap::new(),
    };
    let mut wanted = plain(&part.settings);
    let id = &profile.id.value;
    if let Some(adapter) = part.adapter.as_ref().filter(|_| !told.meant) {
        let why = format!(
            "profile {id} has arguments and settings for {}, which this {} run does not take",
            adapter.value, inputs.adapter
        );
        if !(zero.args.is_empty() && wanted.is_empty()) {
            notices.push(why.clone());
        }
        zero.args.clear();
        zero.idle = wanted.into_keys().map(|key| (key, why.clone())).collect();
        wanted = BTreeMap::new();
    }
    for (setting, chosen) in &inputs.chosen.settings {
        if !matches!(setting, Setting::FindMode | Setting::VramCap) {
            zero.idle.remove(setting.key());
            wanted.insert(setting.key().to_owned(), chosen.value.clone());
        }
    }
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in wanted {
        match told.follow(&key, &value) {
            Ok(()) => {
                zero.settings.insert(key, value);
            }
            Err(why) => {
                refused.entry(why.clone()).or_default().push(key.clone());
                zero.idle.insert(key, why);
            }
        }
    }
    for (why, keys) in refused {
        notices.push(format!(
            "{} of profile {id}: not in force, {why}",
            keys.join(", ")
        ));
    }
    zero
}

fn rung(spec: &RungSpec, told: &mut Told<'_>, in_force: &BTreeMap<String, String>) -> Rung {
    let settings = plain(&spec.settings);
    let args = values(spec.args.as_deref());
    let mut unavailable = None;
    for (key, value) in &settings {
        if let Err(why) = told.follow(key, value) {
            unavailable.get_or_insert(why);
        }
    }
    let mut env: BTreeMap<String, Option<String>> = spec
        .env
        .iter()
        .map(|(name, v)| (name.clone(), Some(v.value.value.clone())))
        .collect();
    for name in spec.unset.iter().flatten() {
        env.insert(name.value.clone(), None);
    }
    if unavailable.is_none() && args.is_empty() && settings.is_empty() {
        unavailable = already_in_force(&env, in_force);
    }
    Rung {
        id: RungId(spec.id.value.clone()),
        action: spec.action(),
        tier: spec.tier(),
        answers: answers(spec),
        phases: spec.phases.iter().flatten().map(|p| p.value).collect(),
        env,
        args,
        settings,
        cost: spec.cost.clone(),
        source: spec.source.as_ref().map(|s| s.value.as_str().to_owned()),
        alters_result: spec.alters_result.clone(),
        unavailable,
        acts: Acts {
            rocm: spec.rocm_min.as_ref().map(|at| at.value),
            gfx: values(spec.gfx.as_deref()),
        },
    }
}

/// A rung that only sets variables, all of which rung 0 has already, would repeat
/// what has just failed. One that changes nothing by intention is a retry.
fn already_in_force(
    env: &BTreeMap<String, Option<String>>,
    in_force: &BTreeMap<String, String>,
) -> Option<String> {
    let same = env
        .iter()
        .all(|(name, v)| match (in_force.get(name), v.as_ref()) {
            (Some(now), Some(then)) => same_value(name, now, then),
            (now, then) => now == then,
        });
    if env.is_empty() || !same {
        return None;
    }
    let list: Vec<String> = env
        .iter()
        .map(|(name, v)| match v {
            Some(v) => format!("{name}={v}"),
            None => format!("no {name}"),
        })
        .collect();
    Some(format!("{} is in force already", list.join(", ")))
}

fn answers(spec: &RungSpec) -> Answers {
    let mut list: Vec<VerdictId> = Vec::new();
    for answer in spec.answers.iter().flatten() {
        match answer.value {
            Answer::Any => return Answers::Any,
            Answer::Verdict(v) => list.push(v),
        }
    }
    Answers::These(list)
}

fn limits(profile: &Profile) -> Limits {
    let built_in = Limits::default();
    let detect = &profile.detect;
    let fixed = |l: &Option<At<Limit>>| l.as_ref().and_then(|l| l.value.fixed());
    let find_limit = fixed(&detect.find_limit);
    let chosen = |l: &At<Limit>| l.place.source.owner == Owner::User;
    Limits {
        find_limit: find_limit.unwrap_or(built_in.find_limit),
        find_limit_is_users: find_limit.is_some() && detect.find_limit.as_ref().is_some_and(chosen),
        spin_limit: fixed(&detect.spin_limit).unwrap_or(built_in.spin_limit),
        phases: detect
            .phases
            .iter()
            .map(|(phase, l)| {
                let limits = PhaseLimits {
                    silence: fixed(&l.silence),
                    ceiling: fixed(&l.ceiling),
                };
                (*phase, limits)
            })
            .collect(),
    }
}

fn kill(profile: &Profile) -> KillPlan {
    let built_in = KillPlan::default();
    KillPlan {
        first: value_or(profile.kill.first.as_ref(), built_in.first),
        grace: value_or(profile.kill.grace.as_ref(), built_in.grace),
    }
}

fn budget(profile: &Profile) -> Budget {
    let built_in = Budget::default();
    let count = |n: &Option<At<u64>>, default: u32| {
        n.as_ref()
            .map_or(default, |n| u32::try_from(n.value).unwrap_or(u32::MAX))
    };
    Budget {
        restarts: count(&profile.budget.restarts, built_in.restarts),
        period: value_or(profile.budget.period.as_ref(), built_in.period),
        total: count(&profile.budget.total, built_in.total),
    }
}

fn value_or<T: Copy>(at: Option<&At<T>>, default: T) -> T {
    at.map_or(default, |a| a.value)
}

fn values(list: Option<&[At<String>]>) -> Vec<String> {
    list.unwrap_or_default()
        .iter()
        .map(|a| a.value.clone())
        .collect()
}

fn plain(map: &BTreeMap<String, At<String>>) -> BTreeMap<String, String> {
    map.iter()
        .map(|(k, v)| (k.clone(), v.value.clone()))
        .collect()
}

#[cfg(test)]
mod tests;
