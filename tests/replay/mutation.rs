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

/// Numbers that no case notices, and the likely reason, given by kind of number and not yet
/// looked into one by one. One that is noticed must leave this list.
const UNTESTED: &[(&str, &str)] = &[
    (
        "silence_long_s",
        "no case whose length or load lies between half and double",
    ),
    (
        "learned_floor_s",
        "no case learns long enough before it is judged for the count or the factor to decide",
    ),
    (
        "learned_after_count",
        "no case learns long enough before it is judged for the count or the factor to decide",
    ),
    (
        "learned_factor",
        "no case learns long enough before it is judged for the count or the factor to decide",
    ),
    (
        "spin_explained_factor",
        "no case whose length or load lies between half and double",
    ),
    (
        "spin_sign_s",
        "no case whose length or load lies between half and double",
    ),
    (
        "spin_longest_factor",
        "no case learns long enough before it is judged for the count or the factor to decide",
    ),
    (
        "spin_just_now_s",
        "no case whose length or load lies between half and double",
    ),
    (
        "busy_idle_sign_s",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "busy_idle_steps_factor",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "storm_count",
        "no case whose length or load lies between half and double",
    ),
    (
        "confirm_count",
        "no case learns long enough before it is judged for the count or the factor to decide",
    ),
    (
        "confirm_s",
        "seconds of hysteresis: the cases' times have wider margins",
    ),
    (
        "calm_count",
        "seconds of hysteresis: the cases' times have wider margins",
    ),
    (
        "calm_s",
        "seconds of hysteresis: the cases' times have wider margins",
    ),
    (
        "ratchet_factor",
        "no case has an alarm that ends by itself and comes again",
    ),
    (
        "live_s",
        "cases are sampled evenly: no source is late by this little, and no second attempt is played",
    ),
    (
        "warm_up_s",
        "cases are sampled evenly: no source is late by this little, and no second attempt is played",
    ),
    (
        "unseen_s",
        "cases are sampled evenly: no source is late by this little, and no second attempt is played",
    ),
    (
        "settle_s",
        "cases are sampled evenly: no source is late by this little, and no second attempt is played",
    ),
    (
        "io_active_bps",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "net_active_bps",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "minor_faults_count",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "major_faults_count",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "vram_step_mib",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "heavy_read_bps",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "cpu_burst_pct",
        "no case whose length or load lies between half and double",
    ),
    (
        "trust_steps_count",
        "no case learns long enough before it is judged for the count or the factor to decide",
    ),
    (
        "model_runs_s",
        "no case whose length or load lies between half and double",
    ),
    (
        "core_crowded_pct",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "core_dip_s",
        "no case whose length or load lies between half and double",
    ),
    (
        "busy_active_pct",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "busy_above_idle_pct",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "busy_hard_pct",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "busy_at_work_pct",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "traffic_pct",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "next_to_nothing_w",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "power_moves_factor",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "power_moves_w",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "power_active_w",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "power_active_work_share",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "power_active_cap_share",
        "the cases' readings lie far from it on both sides",
    ),
    ("lie_s", "the cases' readings lie far from it on both sides"),
    (
        "lie_before_s",
        "cases are sampled evenly: no source is late by this little, and no second attempt is played",
    ),
    (
        "lie_waiting_s",
        "the cases' readings lie far from it on both sides",
    ),
    (
        "pace_warm_count",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "pace_usual_count",
        "no case learns long enough before it is judged for the count or the factor to decide",
    ),
    (
        "crawl_s",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "throttled_s",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "throttled_most_factor",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "spill_gtt_mib",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "spill_factor",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "spill_steps_count",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "spill_s",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "thrash_io_bps",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "thrash_threads_count",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "thrash_cpu_pct",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "thrash_dip_s",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "thrash_psi_pct",
        "the cases' rates lie far from it on both sides, or the reading is not in recorded cases",
    ),
    (
        "gtt_full_share",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "fallback_cpu_pct",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "fallback_said_s",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "fallback_vram_mib",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "mismatch_s",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "mismatch_step_s",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
    (
        "mismatch_steps_count",
        "the cases are slower, longer or fuller by more than a factor of two",
    ),
];

/// Numbers for which no case was looked for yet: neither tested nor known to be untested.
/// With `FPT_SEARCH=1` they are searched for, and the test prints what notices them.
const NOT_SEARCHED: &[&str] = &[];

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
            Self::Scripted(_, run) => quietly(*run),
            Self::Soak(seed) => soak::run(*seed).alarms.is_empty(),
        }
    }
}

thread_local! {
    /// What fails in this thread is expected to, and not worth a word.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Whether a scripted test passes, without its message where it does not.
fn quietly(test: fn()) -> bool {
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
    let search = std::env::var_os("FPT_SEARCH").is_some();
    let asked = |f: &&Field| search || !NOT_SEARCHED.contains(&f.name);
    let fields: Vec<_> = Thresholds::fields().iter().filter(asked).collect();
    let noticed = in_parallel(&fields, |field| {
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
    println!(
        "{} of {} numbers are tested, {} are named as untested, {} were not searched for",
        fields.len() - UNTESTED.len(),
        Thresholds::fields().len(),
        UNTESTED.len(),
        Thresholds::fields().len() - fields.len(),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_of_what_is_not_tested_names_numbers() {
    let fields: BTreeSet<_> = Thresholds::fields().iter().map(|f| f.name).collect();
    for name in NOT_SEARCHED {
        assert!(fields.contains(name), "{name} is no number of the rules");
    }
    for (name, why) in UNTESTED {
        assert!(fields.contains(name), "{name} is no number of the rules");
        assert!(!NOT_SEARCHED.contains(name), "{name}: either or");
        assert!(!why.is_empty(), "{name}: why?");
    }
}
