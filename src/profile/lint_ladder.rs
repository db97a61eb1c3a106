//! Rules of the ladder: L301, L302, L303, and K105 of tiles.

use crate::detect::verdicts::Scope;
use crate::model::{ActionId, Phase, Vendor, VerdictId};

use super::problem::Problem;
use super::schema::{Answer, MatchVendor, Profile, RungSpec};

pub(super) fn check(profile: &Profile, out: &mut Vec<Problem>) {
    for (i, rung) in profile.ladder.iter().enumerate() {
        answers_something(rung, out);
        unlike_earlier(rung, &profile.ladder[..i], out);
        restart_is_right(rung, out);
        says_what_it_alters(rung, out);
        tiles_overlap(rung, out);
    }
    every_cause_has_a_rung(profile, out);
}

/// L301: a rung that is never taken.
fn answers_something(rung: &RungSpec, out: &mut Vec<Problem>) {
    if rung.answers.as_ref().is_none_or(Vec::is_empty) {
        out.push(
            Problem::error("L301", format!("rung `{}` answers nothing", rung.id.value))
                .at(&rung.place)
                .label("never taken")
                .fix("add `answers = [\"silent_hang\"]` with the faults that it is for"),
        );
    }
}

/// L301: the same id, or the same change for nothing but the same faults.
fn unlike_earlier(rung: &RungSpec, earlier: &[RungSpec], out: &mut Vec<Problem>) {
    if let Some(twin) = earlier.iter().find(|e| e.id.value == rung.id.value) {
        out.push(
            Problem::error(
                "L301",
                format!(
                    "two rungs are called `{}` (the first in line {})",
                    rung.id.value,
                    twin.place.line()
                ),
            )
            .at(&rung.id.place)
            .label("used before")
            .fix("give each rung its own id, and `action` where the id is not an action"),
        );
        return;
    }
    let twin = earlier
        .iter()
        .find(|e| same_change(e, rung) && answers_no_more(rung, e));
    if let Some(twin) = twin {
        out.push(
            Problem::error(
                "L301",
                format!(
                    "rung `{}` is identical to `{}` above it",
                    rung.id.value, twin.id.value
                ),
            )
            .at(&rung.place)
            .label("would repeat what has just failed")
            .fix("change something, or remove the rung"),
        );
    }
}

fn same_change(a: &RungSpec, b: &RungSpec) -> bool {
    let env = |r: &RungSpec| -> Vec<(String, String)> {
        r.env
            .iter()
            .map(|(k, v)| (k.clone(), v.value.value.clone()))
            .collect()
    };
    let settings = |r: &RungSpec| -> Vec<(String, String)> {
        r.settings
            .iter()
            .map(|(k, v)| (k.clone(), v.value.clone()))
            .collect()
    };
    let list = |l: &Option<Vec<super::place::At<String>>>| -> Vec<String> {
        l.iter().flatten().map(|a| a.value.clone()).collect()
    };
    // A setting that only an agent can follow is named by the action, so it counts.
    a.action() == b.action()
        && env(a) == env(b)
        && settings(a) == settings(b)
        && list(&a.args) == list(&b.args)
        && list(&a.unset) == list(&b.unset)
}

/// Whether `a` answers no fault in no phase that `b` does not.
fn answers_no_more(a: &RungSpec, b: &RungSpec) -> bool {
    VerdictId::ALL.iter().all(|v| {
        Phase::ALL
            .iter()
            .all(|p| !a.covers(*v, *p) || b.covers(*v, *p))
    })
}

/// L302: a restart after a fault that no restart cures.
fn restart_is_right(rung: &RungSpec, out: &mut Vec<Problem>) {
    for answer in rung.answers.iter().flatten() {
        let problem = match answer.value {
            Answer::Any => Problem::warning(
                "L302",
                format!(
                    "rung `{}` answers `any`, so also `app_error`, `killed` and others after which a restart is wrong",
                    rung.id.value
                ),
            )
            .label("every fault"),
            Answer::Verdict(v) if v.definition().needs_the_user() => Problem::warning(
                "L302",
                format!("rung `{}` restarts after `{v}`, which a restart does not cure", rung.id.value),
            )
            .label("needs the user, not a restart"),
            Answer::Verdict(_) => continue,
        };
        out.push(
            problem
                .at(&answer.place)
                .fix("name the faults that this change is good for"),
        );
    }
}

/// L302: faults that should be answered and are not, in one message.
fn every_cause_has_a_rung(profile: &Profile, out: &mut Vec<Problem>) {
    let vendor = profile.matches.vendor.as_ref().map(|v| v.value);
    let possible = |scope: Scope| match (scope, vendor) {
        (Scope::Anywhere, _) | (_, None) => true,
        (Scope::Gpu, Some(v)) => v != MatchVendor::NoGpu,
        (Scope::Amd, Some(v)) => v == MatchVendor::Card(Vendor::Amd),
    };
    let wants_rung = |v: VerdictId| v.definition().wants_rung.is_some_and(possible);
    let open: Vec<&str> = VerdictId::ALL
        .iter()
        .filter(|v| wants_rung(**v) && !answered(profile, **v))
        .map(|v| v.as_str())
        .collect();
    if !open.is_empty() {
        let fix = if profile.extends.is_some() {
            "add a `[[ladder]]` rung for each"
        } else {
            "add a `[[ladder]]` rung for each, or extend a profile that has them: `extends = \"generic-amd\"`"
        };
        out.push(
            Problem::warning("L302", format!("no rung answers {}", open.join(", ")))
                .at(&profile.id.place)
                .label("ends in giving up")
                .fix(fix),
        );
    }
}

fn answered(profile: &Profile, verdict: VerdictId) -> bool {
    let mut rungs = profile.ladder.iter();
    rungs.any(|r| Phase::ALL.iter().any(|p| r.covers(verdict, *p)))
}

/// L303: another result without a word about it.
fn says_what_it_alters(rung: &RungSpec, out: &mut Vec<Problem>) {
    let by_setting = [
        "conv_tier",
        "conv2d_tier",
        "vae_dtype",
        "vae_device",
        "vae_tile",
    ];
    let alters = matches!(
        rung.action(),
        ActionId::TiledVae | ActionId::VaeCpu | ActionId::Fp32Upcast | ActionId::LowerSettings
    ) || by_setting
        .iter()
        .any(|key| rung.settings.contains_key(*key));
    if alters && rung.alters_result.is_none() {
        out.push(
            Problem::warning(
                "L303",
                format!(
                    "rung `{}` can change the result and does not say how",
                    rung.id.value
                ),
            )
            .at(&rung.place)
            .label("no `alters_result`")
            .fix("add for example `alters_result = \"seams possible\"`"),
        );
    }
}

/// K105: tiles that do not overlap leave visible borders.
fn tiles_overlap(rung: &RungSpec, out: &mut Vec<Problem>) {
    if let Some(tile) = rung.settings.get("vae_tile")
        && !rung.settings.contains_key("vae_overlap")
    {
        out.push(
            Problem::warning(
                "K105",
                format!("rung `{}` has tiles without an overlap", rung.id.value),
            )
            .at(&tile.place)
            .label("tiles alone")
            .fix("add `vae_overlap`, a quarter of the tile"),
        );
    }
}
