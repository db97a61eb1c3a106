//! Every setting of rung 0 with who set it.

use std::collections::BTreeMap;

use crate::model::setting::{FIND_ENFORCE, FIND_MODE, env_path, size_text, workload_path};
use crate::model::{Effective, EnvChange, EnvOrigin, Origin, Plan, Setting};
use crate::profile::matching::is_meant_for;
use crate::profile::place::{At, Place};
use crate::profile::schema::{Limit, Profile};

use super::Inputs;

/// Everything that is in force on rung 0, by key. `idle`: settings of the workload
/// that it cannot follow, with why.
pub(super) fn effective(
    profile: &Profile,
    inputs: &Inputs<'_>,
    plan: &Plan,
    idle: &BTreeMap<String, String>,
) -> Vec<Effective> {
    let mut list = List(Vec::new());
    environment(profile, inputs, plan, &mut list);
    workload(profile, inputs, plan, idle, &mut list);
    limits(profile, inputs, plan, &mut list);
    supervision(profile, plan, &mut list);
    list.0.sort_by(|a, b| a.key.cmp(&b.key));
    list.0
}

struct List(Vec<Effective>);

impl List {
    fn put(&mut self, key: impl Into<String>, value: Option<String>, origin: Origin) {
        self.0.push(Effective {
            key: key.into(),
            value,
            origin,
            overrides: None,
            idle: None,
        });
    }

    /// A value of the profile, or the default of this program.
    fn said<T>(&mut self, key: impl Into<String>, said: Option<&At<T>>, value: String) {
        let origin = said.map_or(Origin::BuiltIn, |at| of(&at.place));
        self.put(key, Some(value), origin);
    }
}

fn of(place: &Place) -> Origin {
    Origin::Profile {
        file: place.source.name.clone(),
        line: place.line(),
    }
}

fn environment(profile: &Profile, inputs: &Inputs<'_>, plan: &Plan, list: &mut List) {
    let of_profile = |name: &str| profile.env.set.get(name).map(|v| of(&v.value.place));
    for EnvChange {
        name,
        value,
        origin,
        overrides,
    } in &plan.env
    {
        let from_profile = of_profile(name);
        let whose = |by: &EnvOrigin| match by {
            EnvOrigin::Supervisor => Origin::Supervisor,
            EnvOrigin::Profile => from_profile.clone().unwrap_or(Origin::BuiltIn),
            EnvOrigin::User => Origin::Environment,
            EnvOrigin::Live => Origin::Live,
            EnvOrigin::Rung => Origin::BuiltIn,
        };
        let overridden = overrides.as_ref().map(|before| {
            let own = inputs.user_env.get(name) == Some(before);
            match (&from_profile, own) {
                (_, true) => format!("{before} (your environment)"),
                (Some(place), false) => format!("{before} ({place})"),
                (None, false) => before.clone(),
            }
        });
        list.0.push(Effective {
            key: env_path(name),
            value: value.clone(),
            origin: whose(origin),
            overrides: overridden,
            idle: None,
        });
    }
    // what the user exported is in force without any change of ours
    for (name, value) in &inputs.user_env {
        let key = env_path(name);
        if !list.0.iter().any(|e| e.key == key) {
            list.put(key, Some(value.clone()), Origin::Environment);
        }
    }
    for name in [FIND_MODE, FIND_ENFORCE] {
        let key = env_path(name);
        if !list.0.iter().any(|e| e.key == key) {
            list.put(key, None, Origin::BuiltIn);
        }
    }
}

fn workload(
    profile: &Profile,
    inputs: &Inputs<'_>,
    plan: &Plan,
    idle: &BTreeMap<String, String>,
    list: &mut List,
) {
    let w = &profile.workload;
    let adapter = w.adapter.as_ref();
    match adapter.filter(|a| is_meant_for(&a.value, &inputs.adapter)) {
        Some(at) => list.said("workload.adapter", Some(at), at.value.clone()),
        None => list.put(
            "workload.adapter",
            Some(inputs.adapter.clone()),
            Origin::Detected,
        ),
    }
    match &w.server {
        Some(at) => list.said("workload.server", Some(at), plan.server.to_string()),
        None => list.put(
            "workload.server",
            Some(plan.server.to_string()),
            Origin::Detected,
        ),
    }
    match (inputs.agent_asked, &w.agent) {
        (Some(asked), said) => list.0.push(Effective {
            key: "workload.agent".to_owned(),
            value: Some(asked.word().to_owned()),
            origin: Origin::CommandLine,
            overrides: said
                .as_ref()
                .filter(|at| at.value != asked)
                .map(|at| format!("{} ({})", at.value.word(), of(&at.place))),
            idle: None,
        }),
        (None, Some(at)) => {
            list.said("workload.agent", Some(at), at.value.word().to_owned());
        }
        (None, None) => {}
    }
    let appended = plan.argv.get(inputs.argv.len()..).unwrap_or_default();
    if let (Some(first), false) = (w.args.iter().flatten().next(), appended.is_empty()) {
        list.said("workload.args", Some(first), appended.join(" "));
    }
    let keys = w.settings.keys().chain(plan.settings.keys());
    let keys: std::collections::BTreeSet<&String> = keys.collect();
    for key in keys {
        let written = w.settings.get(key);
        let chosen = Setting::of_key(key).and_then(|s| inputs.chosen.settings.get(&s));
        let from_profile = written.map(|at| (at.value.clone(), of(&at.place)));
        let (value, origin, overrides) = match (chosen, from_profile) {
            (Some(c), before) => (
                c.value.clone(),
                Origin::Live,
                before
                    .filter(|(v, _)| *v != c.value)
                    .map(|(v, place)| format!("{v} ({place})")),
            ),
            (None, Some((value, place))) => (value, place, None),
            (None, None) => continue,
        };
        list.0.push(Effective {
            key: workload_path(key),
            value: Some(value),
            origin,
            overrides,
            idle: idle.get(key).cloned(),
        });
    }
}

fn limits(profile: &Profile, inputs: &Inputs<'_>, plan: &Plan, list: &mut List) {
    let written = profile.limits.vram_cap.as_ref();
    let cap = plan.vram_cap.map(|_| shown_cap(profile, inputs));
    let origin = if inputs.chosen.settings.contains_key(&Setting::VramCap) {
        Origin::Live
    } else if inputs.cap.is_some() {
        Origin::CommandLine
    } else {
        written.map_or(Origin::BuiltIn, |at| of(&at.place))
    };
    let overrides = written
        .filter(|_| !matches!(origin, Origin::Profile { .. }))
        .filter(|at| Some(at.value) != plan.vram_cap)
        .map(|at| format!("{} ({})", size_text(at.value), of(&at.place)));
    list.0.push(Effective {
        key: Setting::VramCap.path(),
        value: cap.flatten(),
        origin,
        overrides,
        idle: None,
    });
    if let Some(at) = &profile.limits.host_ram_min {
        list.said("limits.host_ram_min", Some(at), at.value.to_string());
    }
    for (sensor, at) in &profile.limits.temp_pause {
        list.0.push(Effective {
            key: format!("limits.temp_pause.{sensor}"),
            value: Some(format!("{} °C", at.value)),
            origin: of(&at.place),
            overrides: None,
            idle: Some("this version does not wait for a cooler card".to_owned()),
        });
    }
}

/// The cap in the form in which a profile has it.
fn shown_cap(profile: &Profile, inputs: &Inputs<'_>) -> Option<String> {
    let live = inputs.chosen.settings.get(&Setting::VramCap);
    let bytes = inputs
        .cap
        .or_else(|| profile.limits.vram_cap.as_ref().map(|c| c.value));
    live.map(|c| c.value.clone())
        .or_else(|| bytes.map(size_text))
}

fn supervision(profile: &Profile, plan: &Plan, list: &mut List) {
    let time = |d: std::time::Duration| humantime::format_duration(d).to_string();
    let d = &profile.detect;
    list.said(
        "detect.find_limit",
        d.find_limit.as_ref(),
        time(plan.limits.find_limit),
    );
    list.said(
        "detect.spin_limit",
        d.spin_limit.as_ref(),
        time(plan.limits.spin_limit),
    );
    for (phase, said) in &d.phases {
        let limits = [("silence", &said.silence), ("ceiling", &said.ceiling)];
        for (name, limit) in limits {
            if let Some(at) = limit {
                let value = match at.value {
                    Limit::Auto => "auto".to_owned(),
                    Limit::Is(d) => time(d),
                };
                list.said(format!("detect.phase.{phase}.{name}"), Some(at), value);
            }
        }
    }
    let k = &profile.kill;
    list.said(
        "kill.first",
        k.first.as_ref(),
        plan.kill.first.name().to_owned(),
    );
    list.said("kill.grace", k.grace.as_ref(), time(plan.kill.grace));
    let b = &profile.budget;
    list.said(
        "budget.restarts",
        b.restarts.as_ref(),
        plan.budget.restarts.to_string(),
    );
    list.said("budget.period", b.period.as_ref(), time(plan.budget.period));
    list.said(
        "budget.total",
        b.total.as_ref(),
        plan.budget.total.to_string(),
    );
}
