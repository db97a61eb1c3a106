//! Each number of the rules, halved and doubled: some case must notice.
//!
//! A *probe* is anything that is right or wrong: a case of `tests/cases` or
//! `tests/corpus`, a scripted case, an hour of the healthy soak. A number is tested if a
//! probe that is right turns wrong when the number is halved or doubled: an alarm where
//! there must be none, or one that comes too late or not at all. Where neither is noticed,
//! the number is named below with the reason.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

use framepack_tui::detect::{Field, Thresholds};

use crate::case::Case;
use crate::{faults, judge, own, player, quiet, slow, soak, words};

/// Numbers that no case notices, and why not. One that is noticed must leave this list.
const UNTESTED: &[(&str, &str)] = &[];

/// Which probe noticed which change when it was last searched for: it is asked first, so
/// that few have to be played. A line that is out of date costs time, nothing else.
const NOTICED: &str = include_str!("noticed.txt");

/// In which probes a number can matter: beginnings of its name, parts of theirs. Playing
/// everything for every number would take a quarter of an hour.
const MATTERS: &[(&[&str], &[&str])] = &[
    (
        &[
            "silence", "learned", "storm", "confirm", "calm", "ratchet", "unseen", "settle",
            "warm_up", "live",
        ],
        &[
            "::a_silent",
            "::a_hang",
            "-silent",
            "silent-hang",
            "a_download",
            "allocator",
            "slept",
            "stall",
            "dips",
            "polled",
            "cannot_be_read",
            "pause",
            "ctrl-z",
            "f1-",
        ],
    ),
    (
        &["find", "model_runs", "trust"],
        &[
            "search",
            "find",
            "solver",
            "first-run",
            "::a_silent",
            "naive",
            "kernels",
            "counter",
        ],
    ),
    (
        &["spin", "core", "cpu_many"],
        &[
            "::a_loop",
            "spins",
            "::kernels",
            "native",
            "a_shape",
            "compilation",
            "cpu",
            "mesh",
            "soak::0",
            "soak::1",
        ],
    ),
    (
        &[
            "busy",
            "contradiction",
            "next_to",
            "power",
            "lie",
            "traffic",
        ],
        &[
            "wedged",
            "queue",
            "apu",
            "counter",
            "a_video",
            "naive",
            "low-power",
            "ffmpeg",
            "hy3d",
            "beside",
            "slow-kernels",
            "::a_silent",
            "no-gauges",
        ],
    ),
    (
        &["pace", "crawl", "throttled", "spill"],
        &[
            "slow::", "crawl", "throttle", "spill", "warm", "shared", "swaps", "held",
        ],
    ),
    (&["thrash"], &["thrash", "swap"]),
    (
        &["gtt", "offload"],
        &[
            "gtt",
            "offload",
            "blockalloc",
            "risk",
            "slow::",
            "two-sections",
        ],
    ),
    (
        &["fallback", "mismatch"],
        &["cpu", "device", "slow::", "torch", "wedged"],
    ),
    (
        &["io", "net", "minor", "major", "vram", "heavy", "cpu"],
        &[
            "weights",
            "disk",
            "download",
            "dips",
            "poll",
            "idle",
            "mapped",
            "memory-of-others",
            "::a_silent",
            "-silent",
            "swap",
            "compile",
            "kernels",
        ],
    ),
];

fn matters(field: &str, probe: &str) -> bool {
    let mut groups = MATTERS
        .iter()
        .filter(|(begin, _)| begin.iter().any(|b| field.starts_with(b)));
    groups.any(|(_, parts)| parts.iter().any(|p| probe.contains(p)))
}

/// The changes.
const FACTORS: [f64; 2] = [0.5, 2.0];

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

    fn is_right(&self) -> bool {
        match self {
            Self::Case(case) => {
                let got = player::play(case);
                judge::never(case, &got).is_empty() && judge::answer(case, &got).is_empty()
            }
            Self::Scripted(_, run) => quietly(run),
            Self::Soak(seed) => soak::run(*seed).alarms.is_empty(),
        }
    }
}

thread_local! {
    /// What fails in this thread is expected to, and not worth a word.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Whether a scripted test passes, without its message where it does not.
fn quietly(test: &fn()) -> bool {
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
    let passes = catch_unwind(AssertUnwindSafe(test)).is_ok();
    QUIET.set(false);
    passes
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
    let right = in_parallel(&all, Probe::is_right);
    let sorted = all.into_iter().zip(right);
    sorted.filter_map(|(p, right)| right.then_some(p)).collect()
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

fn changed(field: &Field, factor: f64) -> Thresholds {
    let mut numbers = Thresholds::DEFAULT;
    let value = (field.get)(&numbers) * factor;
    (field.set)(&mut numbers, value);
    numbers
}

/// The first change of this number that a probe notices.
fn noticed_by(field: &Field, probes: &[Probe]) -> Option<(f64, String)> {
    let known: Vec<_> = NOTICED
        .lines()
        .filter_map(|l| l.split_once(' '))
        .filter(|(name, _)| *name == field.name)
        .filter_map(|(_, rest)| rest.split_once(' '))
        .collect();
    let notices = |factor: f64, probe: &Probe| {
        player::with_numbers(&changed(field, factor), || !probe.is_right())
    };
    for (factor, name) in known {
        let factor = factor.parse().unwrap();
        let probe = probes.iter().find(|p| p.name() == name);
        if probe.is_some_and(|p| notices(factor, p)) {
            return Some((factor, name.to_owned()));
        }
    }
    let mut all = FACTORS
        .into_iter()
        .flat_map(|f| probes.iter().map(move |p| (f, p)))
        .filter(|(_, p)| matters(field.name, &p.name()));
    all.find(|(factor, probe)| notices(*factor, probe))
        .map(|(factor, probe)| (factor, probe.name()))
}

#[test]
fn every_number_is_tested_or_named() {
    let probes = probes();
    let fields = Thresholds::fields();
    let noticed = in_parallel(fields, |field| {
        let by = noticed_by(field, &probes);
        if let Some((factor, probe)) = &by {
            println!("{} {factor} {probe}", field.name);
        }
        by
    });
    let mut wrong = Vec::new();
    for (field, by) in fields.iter().zip(noticed) {
        let listed = UNTESTED.iter().find(|(name, _)| *name == field.name);
        match (&by, listed) {
            (Some(_), None) => {}
            (None, Some((_, why))) => println!("{}: not tested: {why}", field.name),
            (Some((factor, probe)), Some(_)) => wrong.push(format!(
                "{}: is tested now (x {factor} is noticed by {probe}); take it off the list",
                field.name
            )),
            (None, None) => wrong.push(format!(
                "{}: neither half nor double is noticed by any case ({})",
                field.name, field.doc
            )),
        }
    }
    let count = fields.len() - UNTESTED.len();
    println!("{count} of {} numbers are tested", fields.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_of_what_is_not_tested_names_numbers() {
    let fields: BTreeSet<_> = Thresholds::fields().iter().map(|f| f.name).collect();
    for (name, why) in UNTESTED {
        assert!(fields.contains(name), "{name} is no number of the rules");
        assert!(!why.is_empty(), "{name}: why?");
    }
}
