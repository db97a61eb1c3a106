//! What is wrong with a profile that could be read. Pure; `docs/profiles.md`
//! lists the rules.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::plan::SILENCE_FLOOR;

use super::knob::{Domain, KnobProblem, check_value, knob};
use super::lint_ladder;
use super::lint_release;
use super::lint_settings;
use super::parse::sorted;
use super::place::{At, Place};
use super::problem::Problem;
use super::schema::{ATTEMPT_DIR, EnvValue, GIB, Goal, Limit, MIB, Profile, RungSource, VALUE};

/// Longest limit of any kind.
const CEILING: Duration = Duration::from_hours(24);
/// Longest grace between the first signal and SIGKILL (R10).
const MAX_GRACE: Duration = Duration::from_mins(2);
/// Shortest limit of an open Find that a person may set.
const FIND_FLOOR: Duration = Duration::from_secs(1);

/// All problems of a profile with its parents merged in, in the order of the file.
pub fn lint(profile: &Profile) -> Vec<Problem> {
    let mut out = Vec::new();
    environment(profile, &mut out);
    arguments(profile, &mut out);
    time_limits(profile, &mut out);
    counts(profile, &mut out);
    memory(profile, &mut out);
    tested(profile, &mut out);
    claims(profile, &mut out);
    lint_settings::check(profile, &mut out);
    lint_release::check(profile, &mut out);
    lint_ladder::check(profile, &mut out);
    sorted(out)
}

/// K101 to K105 and S603 of everything that sets or removes variables.
fn environment(profile: &Profile, out: &mut Vec<Problem>) {
    settings(&profile.env.set, out);
    names(profile.env.unset.as_deref(), out);
    contradiction(&profile.env.set, None, out);
    for rung in &profile.ladder {
        settings(&rung.env, out);
        names(rung.unset.as_deref(), out);
        contradiction(&profile.env.set, Some(&rung.env), out);
    }
}

fn settings(set: &BTreeMap<String, EnvValue>, out: &mut Vec<Problem>) {
    for (name, v) in set {
        match check_value(name, &v.value.value) {
            Ok(()) => path_value(name, &v.value, out),
            Err(p) => {
                let place = match p {
                    KnobProblem::Unknown { .. } | KnobProblem::NoEffect { .. } => &v.key,
                    _ => &v.value.place,
                };
                out.push(from_knob(&p, place));
            }
        }
    }
}

fn names(list: Option<&[At<String>]>, out: &mut Vec<Problem>) {
    for name in list.unwrap_or_default() {
        if knob(&name.value).is_none()
            && let Err(p) = check_value(&name.value, "")
        {
            out.push(from_knob(&p, &name.place));
        }
    }
}

fn from_knob(p: &KnobProblem, place: &Place) -> Problem {
    let label = match p {
        KnobProblem::Unknown { .. } => "unknown variable",
        KnobProblem::NoEffect { .. } => "does nothing",
        KnobProblem::OutOfDomain { .. } => "not a value of this variable",
        KnobProblem::NumberForWord { .. } => "a number",
    };
    let base = match p {
        KnobProblem::Unknown { .. } | KnobProblem::OutOfDomain { .. } => {
            Problem::error(p.code(), p.to_string())
        }
        _ => Problem::warning(p.code(), p.to_string()),
    };
    base.at(place).label(label).fix(p.fix().unwrap_or_default())
}

/// A path is private to the attempt, or it is somebody's own.
fn path_value(name: &str, value: &At<String>, out: &mut Vec<Problem>) {
    let rest = value.value.replace(ATTEMPT_DIR, "");
    if rest.contains(['{', '}']) {
        out.push(
            Problem::error(
                "S601",
                format!("`{}` has a placeholder that does not exist", value.value),
            )
            .at(&value.place)
            .label("unknown placeholder")
            .fix(format!("the only one is `{ATTEMPT_DIR}`")),
        );
        return;
    }
    let is_path = knob(name).is_some_and(|k| k.domain == Domain::Path);
    if !is_path {
        return;
    }
    if rest.split('/').any(|part| part == "..") {
        out.push(
            Problem::error("S601", format!("`{}` leaves its folder", value.value))
                .at(&value.place)
                .label("`..` is not allowed")
                .fix(format!("write a path below `{ATTEMPT_DIR}`")),
        );
    } else if !value.value.starts_with(ATTEMPT_DIR) {
        out.push(
            Problem::warning(
                "S603",
                format!("`{name}` names a folder that other machines do not have"),
            )
            .at(&value.place)
            .label("a path of one machine")
            .fix(format!(
                "write a path below `{ATTEMPT_DIR}`, or export the variable yourself"
            )),
        );
    }
}

/// K105: a search that is enforced together with the mode that avoids it.
fn contradiction(
    base: &BTreeMap<String, EnvValue>,
    rung: Option<&BTreeMap<String, EnvValue>>,
    out: &mut Vec<Problem>,
) {
    let get = |name: &str| {
        let own = rung.and_then(|r| r.get(name));
        own.or_else(|| base.get(name))
    };
    let touches = rung.is_none_or(|r| {
        r.contains_key("MIOPEN_FIND_MODE") || r.contains_key("MIOPEN_FIND_ENFORCE")
    });
    let (Some(mode), Some(enforce), true) =
        (get("MIOPEN_FIND_MODE"), get("MIOPEN_FIND_ENFORCE"), touches)
    else {
        return;
    };
    let fast = matches!(mode.value.value.to_ascii_uppercase().as_str(), "FAST" | "2");
    let word = enforce.value.value.to_ascii_uppercase();
    let search = matches!(
        word.as_str(),
        "DB_UPDATE" | "SEARCH" | "SEARCH_DB_UPDATE" | "DB_CLEAN" | "2" | "3" | "4" | "5"
    );
    if fast && search {
        out.push(
            Problem::warning(
                "K105",
                format!("`MIOPEN_FIND_ENFORCE={word}` makes MIOpen search although `MIOPEN_FIND_MODE=FAST` asks it not to"),
            )
            .at(&enforce.value.place)
            .label("turns the find mode into NORMAL")
            .fix("set `MIOPEN_FIND_ENFORCE` to `NONE`"),
        );
    }
}

/// S601 of every argument.
fn arguments(profile: &Profile, out: &mut Vec<Problem>) {
    let rungs = profile.ladder.iter().flat_map(|r| r.args.iter().flatten());
    let given = profile.workload.args.iter().flatten().chain(rungs);
    let mut args: Vec<(String, &At<String>)> = given.map(|a| (a.value.clone(), a)).collect();
    for (key, words) in &profile.workload.arguments {
        let holders = [VALUE, GIB, MIB];
        let takes = |w: &At<String>| holders.iter().any(|h| w.value.contains(h));
        if let (Some(first), false) = (words.first(), words.iter().any(takes)) {
            out.push(
                Problem::error(
                    "S604",
                    format!("the arguments of `{key}` have no place for its value"),
                )
                .at(&first.place)
                .label("the same for every value")
                .fix(format!(
                    "write `{VALUE}` where it belongs, or `{GIB}` or `{MIB}` for a size"
                )),
            );
        }
        args.extend(words.iter().map(|w| {
            let filled = holders.iter();
            let filled = filled.fold(w.value.clone(), |t, h| t.replace(h, "value"));
            (filled, w)
        }));
    }
    for (text, arg) in &args {
        let value = text.split_once('=').map_or(text.as_str(), |(_, v)| v);
        let why = if text.chars().any(|c| ";|&$`<>(){}*?\\\"'!#".contains(c)) {
            "has characters that a shell would act on"
        } else if text.chars().any(char::is_control) {
            "has control characters"
        } else if value.starts_with(['/', '~']) || text.starts_with(['/', '~']) {
            "is a path of one machine"
        } else if value.split('/').any(|part| part == "..") {
            "leaves the folder of the workload"
        } else {
            continue;
        };
        out.push(
            Problem::error(
                "S601",
                format!("argument `{}` {why}", arg.value.escape_debug()),
            )
            .at(&arg.place)
            .label("not allowed in a profile")
            .fix("give it on the command line, behind `--`, where it is yours"),
        );
    }
}

/// D401 of every limit of time.
fn time_limits(profile: &Profile, out: &mut Vec<Problem>) {
    let d = &profile.detect;
    between("find_limit", d.find_limit.as_ref(), FIND_FLOOR, out);
    between("spin_limit", d.spin_limit.as_ref(), SILENCE_FLOOR, out);
    for (phase, limits) in &d.phases {
        let name = format!("silence in {phase}");
        between(&name, limits.silence.as_ref(), SILENCE_FLOOR, out);
        let name = format!("ceiling of {phase}");
        between(&name, limits.ceiling.as_ref(), SILENCE_FLOOR, out);
        if let (Some(s), Some(c)) = (&limits.silence, &limits.ceiling)
            && let (Some(silence), Some(ceiling)) = (s.value.fixed(), c.value.fixed())
            && ceiling < silence
        {
            out.push(
                Problem::error(
                    "D401",
                    format!("the ceiling of {phase} is below its silence"),
                )
                .at(&c.place)
                .label("shorter than `silence`")
                .fix("a phase may last at least as long as it may be silent"),
            );
        }
    }
    if let Some(grace) = &profile.kill.grace
        && grace.value > MAX_GRACE
    {
        out.push(
            Problem::error("D401", "`grace` is longer than two minutes")
                .at(&grace.place)
                .label("too long")
                .fix("use at most `\"2m\"`; a hung program does not answer at all"),
        );
    }
}

fn between(name: &str, limit: Option<&At<Limit>>, floor: Duration, out: &mut Vec<Problem>) {
    let Some(at) = limit else { return };
    let Some(time) = at.value.fixed() else { return };
    let (message, label, fix) = if time < floor {
        let floor = humantime::format_duration(floor);
        (
            format!("{name} is below the floor of {floor}, so honest work would be killed"),
            "too short",
            format!("use `\"{floor}\"` or more, or `\"auto\"`"),
        )
    } else if time > CEILING {
        (
            format!("{name} is above the ceiling of 24 hours, so a hang would never be seen"),
            "too long",
            String::from("use `\"24h\"` or less, or `\"auto\"`"),
        )
    } else {
        return;
    };
    out.push(
        Problem::error("D401", message)
            .at(&at.place)
            .label(label)
            .fix(fix),
    );
}

/// D401 of the restart budget.
fn counts(profile: &Profile, out: &mut Vec<Problem>) {
    let b = &profile.budget;
    for (name, count) in [("restarts", &b.restarts), ("total", &b.total)] {
        if let Some(n) = count
            && n.value > 100
        {
            out.push(
                Problem::error("D401", format!("`{name}` allows {} restarts", n.value))
                    .at(&n.place)
                    .label("too many")
                    .fix("a ladder has a few rungs; use 100 or less"),
            );
        }
    }
    if let Some(period) = &b.period
        && (period.value < Duration::from_secs(1) || period.value > CEILING)
    {
        out.push(
            Problem::error("D401", "`period` must lie between 1 second and 24 hours")
                .at(&period.place)
                .label("out of range")
                .fix("use for example `\"30m\"`"),
        );
    }
}

/// Caps that make no sense.
fn memory(profile: &Profile, out: &mut Vec<Problem>) {
    let Some(cap) = &profile.limits.vram_cap else {
        return;
    };
    if cap.value.0 == 0 {
        out.push(
            Problem::error("D401", "a cap of zero leaves nothing to run in")
                .at(&cap.place)
                .label("zero")
                .fix("leave `vram_cap` out for no cap"),
        );
    }
    let most = [&profile.tested.vram, &profile.matches.vram_max];
    if let Some(vram) = most.into_iter().flatten().find(|v| v.value < cap.value) {
        out.push(
            Problem::warning(
                "K105",
                format!(
                    "the cap of {} is above the card's {}",
                    cap.value, vram.value
                ),
            )
            .at(&cap.place)
            .label("never reached")
            .fix("use a cap below the VRAM of the card"),
        );
    }
}

/// M201: conditions that the tested machine does not meet.
fn tested(profile: &Profile, out: &mut Vec<Problem>) {
    let m = &profile.matches;
    for (key, list) in [("gfx", &m.gfx), ("sm", &m.sm)] {
        if let (Some(list), Some(fact)) = (list, profile.tested.facts.get(key))
            && list.iter().all(|v| v.value != fact.value)
        {
            out.push(excluded(key, &fact.place));
        }
    }
    if let Some(vram) = &profile.tested.vram {
        let low = m.vram_min.as_ref().is_some_and(|l| vram.value < l.value);
        let high = m.vram_max.as_ref().is_some_and(|l| vram.value > l.value);
        if low || high {
            out.push(excluded("vram", &vram.place));
        }
    }
}

fn excluded(key: &str, place: &Place) -> Problem {
    Problem::error(
        "M201",
        format!("[match] excludes the machine of [tested]: `{key}` does not meet it"),
    )
    .at(place)
    .label("not matched")
    .fix("widen [match], or correct [tested]")
}

/// R501: claims without a measurement behind them.
fn claims(profile: &Profile, out: &mut Vec<Problem>) {
    if !profile.tested.is_empty() {
        return;
    }
    if let Some(goal) = &profile.goal
        && matches!(goal.value, Goal::Reliable | Goal::Fast)
    {
        out.push(
            Problem::warning("R501", "the goal is claimed, but [tested] names no machine")
                .at(&goal.place)
                .label("not measured")
                .fix("leave `goal` out until it was measured"),
        );
    }
    for rung in &profile.ladder {
        if let Some(source) = &rung.source
            && source.value == RungSource::Measured
        {
            out.push(
                Problem::warning(
                    "R501",
                    format!(
                        "rung `{}` says measured, but [tested] names no machine",
                        rung.id.value
                    ),
                )
                .at(&source.place)
                .label("not measured")
                .fix("write `\"guess\"`, `\"note\"` or `\"vendor\"`"),
            );
        }
    }
}
