//! Rules of settings: K103 of those that the agent carries out, and K105 of tiles and of memory.

use std::collections::BTreeMap;

use crate::model::{Bytes, agent_setting};

use super::place::At;
use super::problem::Problem;
use super::schema::Profile;

type Settings = BTreeMap<String, At<String>>;

/// The least that FramePack should keep free on a card of 24 GB: with less the decode did not
/// fit beside the transformer (founding notes).
const PRESERVED_LEAST: Bytes = Bytes::gib(16);
/// Cards of 24 GB, as drivers report them.
const OF_24_GB: std::ops::RangeInclusive<u64> = 22 << 30..=25 << 30;
/// Arguments that keep every model on the card.
const HIGH_VRAM: [&str; 4] = ["--highvram", "--high-vram", "--high_vram", "--gpu-only"];

pub(super) fn check(profile: &Profile, out: &mut Vec<Problem>) {
    let base = &profile.workload.settings;
    high_vram(profile, out);
    preserved(profile, base, out);
    values(profile, base, out);
    overlap(base, base, out);
    for rung in &profile.ladder {
        preserved(profile, &rung.settings, out);
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

/// Memory of the card for which the profile is; absent: it does not say.
fn vram(profile: &Profile) -> Option<Bytes> {
    let tested = profile.tested.vram.as_ref();
    let most = profile.matches.vram_max.as_ref();
    tested.or(most).map(|at| at.value)
}

/// K105: less than 16 GiB kept free on a card of 24 GB. FramePack alone: other programs keep
/// something else free by the same setting.
fn preserved(profile: &Profile, settings: &Settings, out: &mut Vec<Problem>) {
    let framepack = |at: &At<String>| at.value == "framepack";
    let of_24_gb = vram(profile).is_some_and(|v| OF_24_GB.contains(&v.0));
    if !of_24_gb || !profile.workload.adapter.as_ref().is_some_and(framepack) {
        return;
    }
    let Some(at) = settings.get("preserved_memory") else {
        return;
    };
    // with a sign it is an addition to what the program has
    let kept = at.value.parse::<Bytes>().ok();
    let Some(kept) = kept.filter(|kept| *kept < PRESERVED_LEAST) else {
        return;
    };
    out.push(
        Problem::warning(
            "K105",
            format!("FramePack keeps only {kept} free on a card of 24 GB"),
        )
        .at(&at.place)
        .label("too little for the decode")
        .fix("keep 16 GiB or more free, `preserved_memory = \"18 GiB\"`"),
    );
}

/// K105: every model is to stay on a card that cannot hold them. Such modes are for 40 GB and
/// more.
fn high_vram(profile: &Profile, out: &mut Vec<Problem>) {
    let Some(vram) = vram(profile).filter(|v| v.0 <= *OF_24_GB.end()) else {
        return;
    };
    let of_rungs = profile.ladder.iter().flat_map(|r| r.args.iter().flatten());
    let args = profile.workload.args.iter().flatten().chain(of_rungs);
    for arg in args.filter(|a| HIGH_VRAM.contains(&a.value.as_str())) {
        out.push(
            Problem::warning(
                "K105",
                format!("`{}` keeps every model on a card of {vram}", arg.value),
            )
            .at(&arg.place)
            .label("for cards of 40 GB and more")
            .fix("remove it, so that models leave the card when they are not used"),
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
