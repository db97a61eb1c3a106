//! Two hundred hours of varied healthy work, made from seeds and played through the pure
//! core at 2 Hz (R2): no kill, no restart, and hardly a suspicion.
//!
//! Time in which the machine slept does not count.

mod dice;
mod work;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use framepack_tui::model::event::Choice;
use framepack_tui::model::{Health, Severity};

use crate::player::Outcome;

/// Hours that must be played.
const HOURS: f64 = 200.0;
/// No event in this many hours: with 95 % confidence the rate is below 3 / hours (one-sided).
const BOUND_OF_NONE: f64 = 3.0;
/// R2: one suspicion in so many healthy hours at most.
const HOURS_A_SUSPICION: f64 = 2.0;

/// What came of one run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Awake time.
    pub(crate) hours: f64,
    /// Suspicions that came and went.
    pub(crate) suspicions: Vec<String>,
    /// Faults that were declared, restarts and ends that were decided, signals.
    pub(crate) alarms: Vec<String>,
}

/// Plays the run of this seed.
pub(crate) fn run(seed: u64) -> Report {
    let script = work::script(seed);
    let got = script.play();
    let mut report = Report {
        hours: f64::from(script.awake()) / 3600.0,
        ..Report::default()
    };
    judge(seed, &got, &mut report);
    if !report.alarms.is_empty() {
        report.alarms.push(got.story());
    }
    report
}

fn judge(seed: u64, got: &Outcome, report: &mut Report) {
    let mut suspected = None;
    for (t, v) in &got.verdicts {
        let said = || {
            format!(
                "run {seed} at {t:.0} s: {} {} in {}",
                v.health.word(),
                v.id,
                v.phase
            )
        };
        if v.health == Health::Suspect {
            // one suspicion however often it is told
            if suspected != Some(v.id) {
                report.suspicions.push(said());
            }
            suspected = Some(v.id);
            continue;
        }
        suspected = None;
        if v.id.severity() >= Severity::Error {
            report.alarms.push(said());
        }
    }
    for (t, d) in &got.decisions {
        if matches!(d.choice, Choice::Restart { .. } | Choice::GiveUp) {
            report
                .alarms
                .push(format!("run {seed} at {t:.0} s: {:?}", d.choice));
        }
    }
}

#[test]
fn two_hundred_healthy_hours_without_a_kill() {
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Report::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while sum.lock().unwrap().hours < HOURS {
                    let one = run(next.fetch_add(1, Ordering::Relaxed));
                    let mut sum = sum.lock().unwrap();
                    sum.hours += one.hours;
                    sum.suspicions.extend(one.suspicions);
                    sum.alarms.extend(one.alarms);
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap();
    println!(
        "{:.1} healthy hours in {} runs: {} alarms, kills or restarts; {} suspicions (one in {:.1} h)",
        sum.hours,
        next.into_inner(),
        sum.alarms.len(),
        sum.suspicions.len(),
        sum.hours / f64::from(u32::try_from(sum.suspicions.len().max(1)).unwrap()),
    );
    println!(
        "with none in {:.0} h, false kills are rarer than {:.4} an hour (one-sided, 95 %)",
        sum.hours,
        BOUND_OF_NONE / sum.hours
    );
    assert!(sum.alarms.is_empty(), "{}", sum.alarms.join("\n"));
    let suspicions = f64::from(u32::try_from(sum.suspicions.len()).unwrap());
    assert!(
        suspicions * HOURS_A_SUSPICION <= sum.hours,
        "{}",
        sum.suspicions.join("\n")
    );
}
