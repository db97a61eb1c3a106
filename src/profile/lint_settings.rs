//! Rules of settings: K103 of those that the agent carries out, and K105 of tiles.

use std::collections::BTreeMap;

use crate::model::agent_setting;

use super::place::At;
use super::problem::Problem;
use super::schema::Profile;

type Settings = BTreeMap<String, At<String>>;

pub(super) fn check(profile: &Profile, out: &mut Vec<Problem>) {
    let base = &profile.workload.settings;
    values(profile, base, out);
    overlap(base, base, out);
    for rung in &profile.ladder {
        values(profile, &rung.settings, out);
        overlap(base, &rung.settings, out);
    }
}

/// K103: a value that the agent would leave out when it reads it, long after the start. Where the profile names the
/// program's own argument for a setting, its values are the program's business.
fn values(profile: &Profile, settings: &Settings, out: &mut Vec<Problem>) {
    for (key, value) in settings {
        let Some(setting) = agent_setting(key) else {
            continue;
        };
        if profile.workload.arguments.contains_key(key) || setting.takes.has(&value.value) {
            continue;
        }
        out.push(
            Problem::error(
                "K103",
                format!(
                    "`{key} = {}` is not a value of this setting",
                    value.value.escape_debug()
                ),
            )
            .at(&value.place)
            .label("not a value of this setting")
            .fix(format!("write {}", setting.takes)),
        );
    }
}

/// K105: an overlap that leaves nothing of the tile. Of a rung: with what the profile sets without it.
fn overlap(base: &Settings, own: &Settings, out: &mut Vec<Problem>) {
    let get = |key: &str| {
        let at = own.get(key).or_else(|| base.get(key))?;
        Some((at, at.value.parse::<u64>().ok()?))
    };
    let touched = own.contains_key("vae_tile") || own.contains_key("vae_overlap");
    let (Some((_, tile)), Some((at, shared)), true) =
        (get("vae_tile"), get("vae_overlap"), touched)
    else {
        return;
    };
    if shared < tile {
        return;
    }
    out.push(
        Problem::warning(
            "K105",
            format!("tiles of {tile} pixels cannot overlap by {shared}"),
        )
        .at(&at.place)
        .label("as large as the tile")
        .fix(format!(
            "use a quarter of the tile, `vae_overlap = {}`",
            tile / 4
        )),
    );
}
