//! Text of a profile file to [`Profile`], with all its problems at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::model::{Phase, Signal};

use super::parse_ladder::ladder;
use super::place::{At, Place, Source};
use super::problem::Problem;
use super::reader::{Reader, Table, dotted};
use super::schema::{
    AgentUse, BudgetSpec, Detect, Env, EnvValue, Goal, Kill, Limit, MachineLimits, Match,
    MatchVendor, PhaseDetect, Profile, Resume, SCHEMA, Tested, Workload,
};

/// Longest file that is read (S601).
pub(super) const MAX_LEN: usize = 64 * 1024;

const TOP: &[&str] = &[
    "schema", "profile", "match", "tested", "workload", "env", "limits", "detect", "kill",
    "budget", "ladder", "x",
];

/// Reads one file, without its parents and without lint.
///
/// # Errors
///
/// Every problem of the text, in its order: syntax (`P101`), unknown keys
/// (`P102`), wrong types (`P103`), unknown words (`P104`), bad values (`P105`),
/// missing keys (`P106`), another schema (`V801`), a file too long (`S601`).
pub fn parse(source: &Arc<Source>) -> Result<Profile, Vec<Problem>> {
    let mut reader = Reader::new(Arc::clone(source));
    if source.text.len() > MAX_LEN {
        reader.error(
            "S601",
            0..0,
            format!("the file has more than {} KiB", MAX_LEN / 1024),
            "here",
            String::from("a profile is a page or two; keep results elsewhere"),
        );
        return Err(reader.problems);
    }
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        for e in errors {
            let span = e.span().unwrap_or(0..0);
            reader.error(
                "P101",
                span,
                format!("not valid TOML: {}", e.message()),
                "here",
                String::from("see https://toml.io for the syntax"),
            );
        }
        return Err(sorted(reader.problems));
    }
    let top = Table {
        name: "",
        entries: document.get_ref(),
    };
    zero_bytes(&mut reader, document.get_ref());
    let profile = file(&mut reader, top, source);
    match profile {
        Some(p) if reader.problems.is_empty() => Ok(p),
        _ => Err(sorted(reader.problems)),
    }
}

/// A zero byte ends a text for the system: nothing that holds one can be an argument, a
/// variable or a path.
fn zero_bytes(r: &mut Reader, table: &DeTable<'_>) {
    for (key, value) in table {
        if key.get_ref().contains('\0') {
            zero_byte(r, key.span());
        }
        zero_bytes_of(r, value.get_ref(), value.span());
    }
}

fn zero_bytes_of(r: &mut Reader, value: &DeValue<'_>, span: Range<usize>) {
    match value {
        DeValue::String(text) if text.contains('\0') => zero_byte(r, span),
        DeValue::Array(list) => {
            for item in list {
                zero_bytes_of(r, item.get_ref(), item.span());
            }
        }
        DeValue::Table(table) => zero_bytes(r, table),
        _ => {}
    }
}

fn zero_byte(r: &mut Reader, span: Range<usize>) {
    r.error(
        "S601",
        span,
        "a zero byte, which no argument, variable or path can hold".to_owned(),
        "here",
        "leave it out".to_owned(),
    );
}

pub(super) fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_cached_key(Problem::sort_key);
    problems
}

fn file(r: &mut Reader, top: Table<'_, '_>, source: &Arc<Source>) -> Option<Profile> {
    if !schema(r, top) {
        return None;
    }
    r.only(top, TOP);
    if top.entries.contains_key("x") {
        r.table(top, "x", "x", None);
    }
    let matches = matches(r, top);
    let tested = tested(r, top);
    let workload = workload(r, top);
    let env = env(r, top);
    let limits = limits(r, top);
    let detect = detect(r, top);
    let kill = kill(r, top);
    let budget = budget(r, top);
    let ladder = ladder(r, top);
    let head = head(r, top)?;
    Some(Profile {
        id: head.id?,
        version: head.version?,
        title: head.title?,
        description: head.description,
        extends: head.extends,
        license: head.license,
        goal: head.goal,
        matches,
        tested,
        workload,
        env,
        limits,
        detect,
        kill,
        budget,
        ladder,
        source: Arc::clone(source),
    })
}

/// Whether the file has our schema; nothing else is judged if it has not.
fn schema(r: &mut Reader, top: Table<'_, '_>) -> bool {
    let before = r.problems.len();
    match r.uint(top, "schema") {
        Some(at) if at.value == SCHEMA => true,
        Some(at) => {
            r.error(
                "V801",
                at.place.span.clone(),
                format!("schema {} is not one that this program knows", at.value),
                "unknown schema",
                format!("this program reads schema {SCHEMA}; a newer one needs a newer program"),
            );
            false
        }
        None => {
            if r.problems.len() == before {
                r.error(
                    "P106",
                    0..0,
                    String::from("`schema` is missing"),
                    "at the top",
                    format!("add `schema = {SCHEMA}` as the first line"),
                );
            }
            false
        }
    }
}

struct Head {
    id: Option<At<String>>,
    version: Option<At<String>>,
    title: Option<At<String>>,
    description: Option<String>,
    extends: Option<At<String>>,
    license: Option<String>,
    goal: Option<At<Goal>>,
}

fn head(r: &mut Reader, top: Table<'_, '_>) -> Option<Head> {
    const KEYS: &[&str] = &[
        "id",
        "version",
        "title",
        "description",
        "extends",
        "license",
        "goal",
    ];
    if !top.entries.contains_key("profile") {
        r.error(
            "P106",
            0..0,
            String::from("the table [profile] is missing"),
            "in this file",
            String::from("add `[profile]` with `id`, `version` and `title`"),
        );
    }
    let span = top
        .entries
        .get("profile")
        .map_or(0..0, |v| first_line(&v.span(), r));
    let t = r.table(top, "profile", "profile", Some(KEYS))?;
    for (key, example) in [
        ("id", "\"my-profile\""),
        ("version", "\"1.0.0\""),
        ("title", "\"…\""),
    ] {
        if !t.entries.contains_key(key) {
            r.missing("profile", key, span.clone(), example);
        }
    }
    let id = r.string(t, "id").filter(|id| check_id(r, id));
    let extends = r.string(t, "extends").filter(|id| check_id(r, id));
    Some(Head {
        id,
        version: r.string(t, "version").filter(|v| check_version(r, v)),
        title: r.string(t, "title"),
        description: r.plain(t, "description"),
        extends,
        license: r.plain(t, "license"),
        goal: r.word_at(t, "goal", Goal::WORDS),
    })
}

/// The part of a span that lies on its first line, so that an arrow stays short.
pub(super) fn first_line(span: &Range<usize>, r: &Reader) -> Range<usize> {
    let place: Place = r.place(span.clone());
    let text = place.source.text.get(span.clone()).unwrap_or_default();
    span.start..span.start + text.find('\n').unwrap_or(text.len())
}

/// Whether this is a profile id: `[a-z0-9-]{3,48}`.
pub fn is_id(id: &str) -> bool {
    let letters = id
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    letters && (3..=48).contains(&id.len())
}

fn check_id(r: &mut Reader, id: &At<String>) -> bool {
    let ok = is_id(&id.value);
    if !ok {
        r.error(
            "P105",
            id.place.span.clone(),
            format!("`{}` is not a profile id", id.value),
            "not an id",
            String::from("use 3 to 48 of `a`-`z`, `0`-`9` and `-`"),
        );
    }
    ok
}

fn check_version(r: &mut Reader, version: &At<String>) -> bool {
    let parts: Vec<&str> = version.value.split('.').collect();
    let ok = parts.len() == 3 && parts.iter().all(|p| p.parse::<u32>().is_ok());
    if !ok {
        r.error(
            "P105",
            version.place.span.clone(),
            format!("`{}` is not a version", version.value),
            "not a version",
            String::from("write three numbers, such as `\"1.0.0\"`"),
        );
    }
    ok
}

fn matches(r: &mut Reader, top: Table<'_, '_>) -> Match {
    const KEYS: &[&str] = &[
        "vendor", "gfx", "sm", "vram_min", "vram_max", "unified", "workload", "os",
    ];
    let Some(t) = r.table(top, "match", "match", Some(KEYS)) else {
        return Match::default();
    };
    Match {
        vendor: r.word_at(t, "vendor", MatchVendor::WORDS),
        gfx: r.strings(t, "gfx"),
        sm: r.strings(t, "sm"),
        vram_min: r.size(t, "vram_min"),
        vram_max: r.size(t, "vram_max"),
        unified: r.bool(t, "unified"),
        workload: r.strings(t, "workload"),
        os: r.strings(t, "os"),
    }
}

fn tested(r: &mut Reader, top: Table<'_, '_>) -> Tested {
    const TEXT: &[&str] = &[
        "gpu",
        "gfx",
        "sm",
        "driver",
        "rocm",
        "cuda",
        "miopen",
        "torch",
        "python",
        "workload_rev",
        "fingerprint",
    ];
    const KEYS: &[&str] = &[
        "gpu",
        "gfx",
        "sm",
        "driver",
        "rocm",
        "cuda",
        "miopen",
        "torch",
        "python",
        "workload_rev",
        "fingerprint",
        "compute_units",
        "vram",
    ];
    let Some(t) = r.table(top, "tested", "tested", Some(KEYS)) else {
        return Tested::default();
    };
    let mut facts = BTreeMap::new();
    for key in TEXT {
        if let Some(v) = r.string(t, key) {
            facts.insert((*key).to_owned(), v);
        }
    }
    Tested {
        facts,
        compute_units: r.uint(t, "compute_units"),
        vram: r.size(t, "vram"),
    }
}

fn workload(r: &mut Reader, top: Table<'_, '_>) -> Workload {
    const KEYS: &[&str] = &[
        "adapter",
        "args",
        "server",
        "resume",
        "agent",
        "settings",
        "arguments",
    ];
    let Some(t) = r.table(top, "workload", "workload", Some(KEYS)) else {
        return Workload::default();
    };
    let settings = r
        .table(t, "settings", "workload.settings", None)
        .map(|s| r.scalars(s))
        .unwrap_or_default();
    Workload {
        adapter: r.string(t, "adapter"),
        args: r.strings(t, "args"),
        server: r.bool(t, "server"),
        resume: r.word_at(t, "resume", Resume::WORDS),
        agent: r.word_at(t, "agent", AgentUse::WORDS),
        settings,
        arguments: arguments(r, t),
    }
}

fn arguments(r: &mut Reader, workload: Table<'_, '_>) -> BTreeMap<String, Vec<At<String>>> {
    let Some(t) = r.table(workload, "arguments", "workload.arguments", None) else {
        return BTreeMap::new();
    };
    let keys: Vec<String> = t
        .entries
        .keys()
        .map(|key| key.get_ref().to_string())
        .collect();
    keys.into_iter()
        .filter_map(|key| {
            let words = r.strings(t, &key)?;
            Some((key, words))
        })
        .collect()
}

fn env(r: &mut Reader, top: Table<'_, '_>) -> Env {
    let Some(t) = r.table(top, "env", "env", Some(&["unset", "set"])) else {
        return Env::default();
    };
    Env {
        unset: r.strings(t, "unset"),
        set: r
            .table(t, "set", "env.set", None)
            .map(|s| env_values(r, s))
            .unwrap_or_default(),
    }
}

/// `NAME = "value"` or `NAME = { value = "…", why = "…" }`.
pub(super) fn env_values(r: &mut Reader, table: Table<'_, '_>) -> BTreeMap<String, EnvValue> {
    let mut out = BTreeMap::new();
    for (key, value) in table.entries {
        let name = key.get_ref().as_ref();
        let full = dotted(table.name, name);
        let (text, why) = if let DeValue::Table(entries) = value.get_ref() {
            let t = Table {
                name: &full,
                entries,
            };
            r.only(t, &["value", "why"]);
            if !entries.contains_key("value") {
                r.missing(&full, "value", value.span(), "\"…\"");
            }
            (r.string(t, "value"), r.plain(t, "why"))
        } else {
            (r.text(&full, value), None)
        };
        if let Some(value) = text {
            let key = r.place(key.span());
            out.insert(name.to_owned(), EnvValue { value, why, key });
        }
    }
    out
}

fn limits(r: &mut Reader, top: Table<'_, '_>) -> MachineLimits {
    const SENSORS: &[&str] = &["edge", "junction", "memory"];
    const KEYS: &[&str] = &["vram_cap", "temp_pause", "host_ram_min"];
    let Some(t) = r.table(top, "limits", "limits", Some(KEYS)) else {
        return MachineLimits::default();
    };
    let mut temp_pause = BTreeMap::new();
    if let Some(p) = r.table(t, "temp_pause", "limits.temp_pause", Some(SENSORS)) {
        for sensor in SENSORS {
            if let Some(v) = r.uint(p, sensor) {
                temp_pause.insert((*sensor).to_owned(), v);
            }
        }
    }
    MachineLimits {
        vram_cap: r.size(t, "vram_cap"),
        temp_pause,
        host_ram_min: r.size(t, "host_ram_min"),
    }
}

fn limit(r: &mut Reader, table: Table<'_, '_>, key: &str) -> Option<At<Limit>> {
    let text = r.with_unit(table, key, "`\"90s\"`, or `\"auto\"`")?;
    if text.value == "auto" {
        return Some(text.with(Limit::Auto));
    }
    let time = r.time(&text)?;
    Some(time.with(Limit::Is(time.value)))
}

fn detect(r: &mut Reader, top: Table<'_, '_>) -> Detect {
    let known: &[&str] = &["find_limit", "spin_limit", "phase"];
    let Some(t) = r.table(top, "detect", "detect", Some(known)) else {
        return Detect::default();
    };
    let mut phases = BTreeMap::new();
    if let Some(p) = r.table(t, "phase", "detect.phase", None) {
        for (key, value) in p.entries {
            let word = r.at(key.span(), key.get_ref().as_ref().to_owned());
            let Some(phase) = r.word("phase", &word, &phase_words()) else {
                continue;
            };
            let name = format!("detect.phase.{}", word.value);
            let DeValue::Table(entries) = value.get_ref() else {
                r.table(p, &word.value, "detect.phase", None);
                continue;
            };
            let one = Table {
                name: &name,
                entries,
            };
            r.only(one, &["silence", "ceiling"]);
            let limits = PhaseDetect {
                silence: limit(r, one, "silence"),
                ceiling: limit(r, one, "ceiling"),
            };
            phases.insert(phase.value, limits);
        }
    }
    Detect {
        find_limit: limit(r, t, "find_limit"),
        spin_limit: limit(r, t, "spin_limit"),
        phases,
    }
}

/// The phases with their words.
pub(super) fn phase_words() -> Vec<(&'static str, Phase)> {
    Phase::ALL.iter().map(|p| (p.as_str(), *p)).collect()
}

fn kill(r: &mut Reader, top: Table<'_, '_>) -> Kill {
    const SIGNALS: &[(&str, Signal)] = &[("TERM", Signal::Term), ("INT", Signal::Int)];
    let Some(t) = r.table(top, "kill", "kill", Some(&["first", "grace"])) else {
        return Kill::default();
    };
    Kill {
        first: r.word_at(t, "first", SIGNALS),
        grace: r.duration(t, "grace"),
    }
}

fn budget(r: &mut Reader, top: Table<'_, '_>) -> BudgetSpec {
    let known: &[&str] = &["restarts", "period", "total"];
    let Some(t) = r.table(top, "budget", "budget", Some(known)) else {
        return BudgetSpec::default();
    };
    BudgetSpec {
        restarts: r.uint(t, "restarts"),
        period: r.duration(t, "period"),
        total: r.uint(t, "total"),
    }
}
