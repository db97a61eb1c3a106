//! `[[ladder]]` tables.

use std::collections::BTreeMap;

use toml::de::DeValue;

use crate::model::{ActionId, Tier, VerdictId};

use super::knob::release;
use super::parse::{env_values, first_line, phase_words};
use super::place::At;
use super::reader::{Reader, Table};
use super::schema::{Answer, RungSource, RungSpec};

const KEYS: &[&str] = &[
    "id",
    "action",
    "tier",
    "answers",
    "phases",
    "env",
    "unset",
    "args",
    "settings",
    "cost",
    "source",
    "alters_result",
    "rocm_min",
    "gfx",
    "remove",
];

/// Every rung of the file that can be read.
pub(super) fn ladder(r: &mut Reader, top: Table<'_, '_>) -> Vec<RungSpec> {
    let Some(value) = top.entries.get("ladder") else {
        return Vec::new();
    };
    let DeValue::Array(items) = value.get_ref() else {
        r.error(
            "P103",
            value.span(),
            String::from("`ladder` must be a list of tables"),
            "not a list",
            String::from("write each rung as `[[ladder]]`"),
        );
        return Vec::new();
    };
    let mut rungs = Vec::new();
    for item in items {
        let DeValue::Table(entries) = item.get_ref() else {
            r.error(
                "P103",
                item.span(),
                String::from("a rung must be a table"),
                "not a table",
                String::from("write each rung as `[[ladder]]`"),
            );
            continue;
        };
        let header = first_line(&item.span(), r);
        let table = Table {
            name: "[ladder]",
            entries,
        };
        rungs.extend(rung(r, table, header));
    }
    rungs
}

fn rung(r: &mut Reader, t: Table<'_, '_>, header: std::ops::Range<usize>) -> Option<RungSpec> {
    r.only(t, KEYS);
    if !t.entries.contains_key("id") {
        r.missing("[ladder]", "id", header.clone(), "\"fast_find\"");
    }
    let env = r
        .table(t, "env", "ladder.env", None)
        .map(|e| env_values(r, e))
        .unwrap_or_default();
    let settings = r
        .table(t, "settings", "ladder.settings", None)
        .map_or_else(BTreeMap::new, |s| r.scalars(s));
    let spec = RungSpec {
        action: r.word_at(t, "action", &actions()),
        tier: tier(r, t),
        answers: answers(r, t),
        phases: phases(r, t),
        env,
        unset: r.strings(t, "unset"),
        args: r.strings(t, "args"),
        settings,
        cost: r.plain(t, "cost"),
        source: r.word_at(t, "source", RungSource::WORDS),
        alters_result: r.plain(t, "alters_result"),
        rocm_min: rocm_min(r, t),
        gfx: r.strings(t, "gfx"),
        remove: r.bool(t, "remove").is_some_and(|b| b.value),
        place: r.place(header),
        id: r.string(t, "id").filter(|id| check_id(r, id))?,
    };
    if let (None, Err(_)) = (&spec.action, spec.id.value.parse::<ActionId>())
        && spec.env.is_empty()
        && spec.unset.is_none()
        && spec.answers.is_some()
        && !t.entries.contains_key("action")
    {
        r.error(
            "P106",
            spec.id.place.span.clone(),
            format!("what the rung `{}` does is not said", spec.id.value),
            "not the name of an action",
            String::from("add `action = \"…\"`, such as `action = \"retry_same\"`"),
        );
    }
    Some(spec)
}

/// Words that a rung can do: those after which a restart makes sense.
fn actions() -> Vec<(&'static str, ActionId)> {
    ActionId::ALL
        .iter()
        .filter(|a| {
            !matches!(
                a,
                ActionId::None
                    | ActionId::Wait
                    | ActionId::CoolDown
                    | ActionId::FixEnvironment
                    | ActionId::RebootHost
            )
        })
        .map(|a| (a.as_str(), *a))
        .collect()
}

fn check_id(r: &mut Reader, id: &At<String>) -> bool {
    let letters = id
        .value
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let ok = letters && (2..=40).contains(&id.value.len()) && id.value != "as_given";
    if !ok {
        r.error(
            "P105",
            id.place.span.clone(),
            format!("`{}` is not a rung id", id.value),
            "not an id",
            String::from("use 2 to 40 of `a`-`z`, `0`-`9` and `_`; `as_given` is rung 0"),
        );
    }
    ok
}

fn tier(r: &mut Reader, t: Table<'_, '_>) -> Option<At<Tier>> {
    let number = r.uint(t, "tier")?;
    let tier = match number.value {
        1 => Tier::T1,
        2 => Tier::T2,
        3 => Tier::T3,
        _ => {
            r.error(
                "P105",
                number.place.span.clone(),
                format!("{} is not a tier of a rung", number.value),
                "not a tier",
                String::from("1 without loss, 2 slower or smaller, 3 partly on the CPU"),
            );
            return None;
        }
    };
    Some(number.with(tier))
}

fn rocm_min(r: &mut Reader, t: Table<'_, '_>) -> Option<At<[u32; 2]>> {
    let text = r.string(t, "rocm_min")?;
    let Some(rocm) = release(&text.value) else {
        r.error(
            "P105",
            text.place.span.clone(),
            format!("`{}` is not a release of ROCm", text.value),
            "not a release",
            String::from("write major and minor number, such as `\"7.11\"`"),
        );
        return None;
    };
    Some(text.with(rocm))
}

fn answers(r: &mut Reader, t: Table<'_, '_>) -> Option<Vec<At<Answer>>> {
    let mut words: Vec<(&'static str, Answer)> = VerdictId::ALL
        .iter()
        .filter(|v| !v.is_no_fault())
        .map(|v| (v.as_str(), Answer::Verdict(*v)))
        .collect();
    words.push(("any", Answer::Any));
    let list = r.strings(t, "answers")?;
    Some(
        list.iter()
            .filter_map(|w| r.word("fault", w, &words))
            .collect(),
    )
}

fn phases(r: &mut Reader, t: Table<'_, '_>) -> Option<Vec<At<crate::model::Phase>>> {
    let words = phase_words();
    let list = r.strings(t, "phases")?;
    Some(
        list.iter()
            .filter_map(|w| r.word("phase", w, &words))
            .collect(),
    )
}
