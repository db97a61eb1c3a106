//! Each number of the rules, halved and doubled: stories must notice.
//!
//! `limits.txt` says for every number what its half breaks and what its double breaks. A
//! number is *proven* if one of the two alarms in honest work (or shows another state than
//! the right one) and the other one lets a fault be told late; which of them is which way
//! round is the sense of the limit. A number of which nothing but a harmless state hangs is
//! proven by that state alone. Every line is played here: a proof that breaks
//! nothing, or something else than it says, fails, and so does a number without a line.
//!
//! Two stories of [`crate::limits`] belong to each number. `FPT_SEARCH=part_of_a_name`
//! plays everything else that is right or wrong, too (recorded cases, our own corpus,
//! scripted cases, hours of the healthy soak), and prints what notices: minutes a number.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

use framepack_tui::detect::{Field, Thresholds};

use crate::case::Case;
use crate::limits::{self, Limit};
use crate::script::{self, Broken};
use crate::{faults, judge, own, player, quiet, slow, soak, words};

/// What half and double of each number break.
const LIST: &str = include_str!("limits.txt");

/// The changes, in the order of the columns.
const FACTORS: [(&str, f64); 2] = [("half", 0.5), ("double", 2.0)];

/// What a change does to a story, in the words of the list.
const fn word(how: Broken) -> Option<&'static str> {
    match how {
        Broken::Alarm => Some("alarm"),
        Broken::Late => Some("late"),
        Broken::State => Some("state"),
        Broken::Other => None,
    }
}

/// One line of the list.
struct Listed {
    name: &'static str,
    /// What half and double break: `alarm limits`, or `untested: why`.
    cells: [&'static str; 2],
}

fn listed() -> Vec<Listed> {
    let lines = LIST
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let [name, half, double] = cells[..] else {
                panic!("limits.txt: `{line}` is not `number | half | double`");
            };
            let cells = [half, double];
            for why in cells.iter().filter_map(|c| c.strip_prefix("untested:")) {
                assert!(!why.trim().is_empty(), "limits.txt: `{line}`: why?");
            }
            Listed { name, cells }
        })
        .collect()
}

thread_local! {
    /// What fails in this thread is expected to, and not worth a word.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// How a story breaks; none: it ends as it should.
fn breaks(story: fn()) -> Option<(Broken, String)> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let played = catch_unwind(AssertUnwindSafe(story));
    QUIET.set(false);
    let message = played.err()?;
    let text = message.downcast_ref::<String>().cloned();
    Some((script::broken(), text.unwrap_or_default()))
}

/// The number, changed. A count of one has no half: it is left out.
fn changed(field: &Field, factor: f64) -> Thresholds {
    let mut numbers = Thresholds::DEFAULT;
    let mut value = (field.get)(&numbers) * factor;
    if field.name.ends_with("_count") && value < 1.0 {
        value = 0.0;
    }
    (field.set)(&mut numbers, value);
    numbers
}

/// What a change breaks of the two stories of a number.
fn broken_by(field: &Field, factor: f64, limit: &Limit) -> String {
    let numbers = changed(field, factor);
    player::with_numbers(&numbers, || {
        let both = [limit.healthy, limit.late];
        let words = both.into_iter().filter_map(|story| word(breaks(story)?.0));
        words.take(1).collect()
    })
}

/// What is wrong with the stories themselves, the numbers being what they are.
fn unsound(limit: &Limit) -> Option<String> {
    for (what, story) in [("healthy", limit.healthy), ("late", limit.late)] {
        if let Some((_, message)) = breaks(story) {
            return Some(format!(
                "{}: its story `{what}` does not end as written: {message}",
                limit.field
            ));
        }
    }
    None
}

/// One alarms (or shows a wrong state), the other is late (or does).
fn is_proven(cells: [&str; 2]) -> bool {
    matches!(
        cells,
        ["alarm" | "state", "late" | "state"] | ["late" | "state", "alarm" | "state"]
    )
}

/// `f` of each, by as many threads as there are CPUs.
fn in_parallel<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(k) else { break };
                    let result = f(item);
                    done.lock().unwrap().insert(k, result);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

/// What is wrong with the line of a number, if anything; and whether it is proven.
fn check(field: &Field, limits: &[Limit], list: &[Listed]) -> Result<bool, String> {
    let limit = limits.iter().find(|l| l.field == field.name);
    if let Some(wrong) = limit.and_then(unsound) {
        return Err(wrong);
    }
    let truth =
        FACTORS.map(|(_, factor)| limit.map_or_else(String::new, |l| broken_by(field, factor, l)));
    let Some(line) = list.iter().find(|l| l.name == field.name) else {
        return Err(format!(
            "{}: is not in limits.txt; the line would be `{} | {} | {}` ({})",
            field.name, field.name, truth[0], truth[1], field.doc
        ));
    };
    let mut wrong = String::new();
    for (((how, _), cell), truth) in FACTORS.iter().zip(line.cells).zip(&truth) {
        let says = if cell.starts_with("untested:") {
            ""
        } else {
            cell
        };
        if says != truth {
            let found = match truth.as_str() {
                "" => "nothing is broken: `untested: why`",
                other => other,
            };
            writeln!(
                wrong,
                "{} {how}: limits.txt says `{cell}`, but {found}",
                field.name
            )
            .unwrap();
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(is_proven([&truth[0], &truth[1]]))
}

#[test]
fn half_and_double_of_every_number_break_what_the_list_says() {
    let limits = limits::all();
    let list = listed();
    let checked = in_parallel(Thresholds::fields(), |f| check(f, &limits, &list));
    let proven = checked.iter().filter(|c| matches!(c, Ok(true))).count();
    let untested = (list.iter())
        .filter(|l| l.cells.iter().all(|c| c.starts_with("untested:")))
        .count();
    for l in &list {
        for (cell, (how, _)) in l.cells.iter().zip(FACTORS) {
            if cell.starts_with("untested:") {
                println!("{} {how}: {cell}", l.name);
            }
        }
    }
    let by_alarms = (list.iter())
        .filter(|l| l.cells.contains(&"alarm") && l.cells.contains(&"late"))
        .count();
    println!(
        "of {} numbers {proven} are proven both ways ({by_alarms} by a false alarm and a late one), {untested} are untested, the others one way",
        Thresholds::fields().len()
    );
    let wrong: Vec<_> = checked.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_and_the_stories_name_each_number_once() {
    let known = |name: &str| Thresholds::fields().iter().any(|f| f.name == name);
    let list = listed();
    let limits = limits::all();
    let names = list.iter().map(|l| l.name);
    let mut seen = BTreeSet::new();
    for (of, name) in names
        .map(|n| ("limits.txt", n))
        .chain(limits.iter().map(|l| ("the stories", l.field)))
    {
        assert!(known(name), "{of}: {name} is no number of the rules");
        let first = seen.insert((of, name));
        assert!(first, "{of}: {name} comes twice");
    }
}

/// Anything else that is right or wrong.
enum Probe {
    Case(&'static Case),
    Scripted(&'static str, fn()),
    Soak(u64),
}

impl Probe {
    fn name(&self) -> String {
        match self {
            Self::Case(c) => format!("case::{}", c.name),
            Self::Scripted(name, _) => (*name).to_owned(),
            Self::Soak(seed) => format!("soak::{seed}"),
        }
    }

    fn broken(&self) -> Option<Broken> {
        match self {
            Self::Case(case) => {
                let got = player::play(case);
                judge::broken(case, &got)
            }
            Self::Scripted(_, run) => breaks(*run).map(|(how, _)| how),
            Self::Soak(seed) => (!soak::run(*seed).alarms.is_empty()).then_some(Broken::Alarm),
        }
    }
}

/// What is right with the numbers in force.
fn probes() -> Vec<Probe> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    // cases live as long as the tests
    let given: &'static [Case] = Box::leak(own::folder(&root).into_boxed_slice());
    let cases = given.iter().chain(own::cases()).map(Probe::Case);
    let scripted = [quiet::ALL, faults::ALL, slow::ALL, words::ALL].concat();
    let scripted = scripted
        .iter()
        .map(|(name, run)| Probe::Scripted(name, *run));
    let all: Vec<_> = cases
        .chain(scripted)
        .chain((0..4).map(Probe::Soak))
        .collect();
    let broken = in_parallel(&all, Probe::broken);
    let sorted = all.into_iter().zip(broken);
    sorted
        .filter_map(|(p, broken)| broken.is_none().then_some(p))
        .collect()
}

/// Only on demand: a line that says `untested` must stay true of all probes.
#[test]
fn what_is_untested_is_noticed_by_nothing() {
    let Some(part) = std::env::var_os("FPT_SEARCH") else {
        return;
    };
    let part = part.to_string_lossy().into_owned();
    let probes = probes();
    let list = listed();
    let mut wrong = Vec::new();
    for field in Thresholds::fields()
        .iter()
        .filter(|f| f.name.contains(&part))
    {
        let line = list.iter().find(|l| l.name == field.name);
        for (k, (how, factor)) in FACTORS.into_iter().enumerate() {
            let numbers = changed(field, factor);
            let broken = in_parallel(&probes, |p| player::with_numbers(&numbers, || p.broken()));
            let found: Vec<_> = (probes.iter().zip(broken))
                .filter_map(|(p, how)| Some(format!("{} {}", word(how?)?, p.name())))
                .collect();
            println!("{} {how}: {}", field.name, found.join(", "));
            if !found.is_empty() && line.is_none_or(|l| l.cells[k].starts_with("untested:")) {
                wrong.push(format!("{} {how}: is noticed by {}", field.name, found[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
