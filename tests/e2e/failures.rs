//! A generation fails by itself: the right name for it, the right next step.

use std::time::Duration;

use framepack_tui::model::event::{Choice, Decision};
use framepack_tui::model::{Event, ExitStatus, VerdictId};
use rustix::process::Signal;

use crate::harness::{Card, Finished, Home, Start, kill};

const LIMIT: Duration = Duration::from_mins(4);

/// Runs a generation that fails in the decode of its second section.
fn run(home: &Home, fault: &str) -> Finished {
    run_with(home, fault, &[])
}

fn run_with(home: &Home, fault: &str, options: &[&str]) -> Finished {
    let mut card = Card::rx7900xtx();
    card.follow(home, 0);
    let start = Start::new(home)
        .card(&card)
        .options(&["--profile", "generic-amd"])
        .options(options);
    start.framepack(&["--fault", fault]).start().finish(LIMIT)
}

/// Every attempt failed for `verdict`; what could have helped is named if it cannot be
/// followed; the run ends as failed and says why.
fn assert_failed_as(run: &Finished, verdict: VerdictId) -> Vec<Decision> {
    run.assert_exit(20);
    let mut story = run.story();
    for _ in ends(run) {
        story.verdict(verdict);
    }
    let decisions = run.all(|e| match e {
        Event::Decision(d) => Some(Decision::clone(d)),
        _ => None,
    });
    for d in &decisions {
        assert_eq!(d.verdict, verdict, "{}", run.digest());
        assert!(!d.why.is_empty());
        for skipped in &d.skipped {
            assert!(!skipped.why.is_empty(), "{skipped:?}");
        }
    }
    let last = decisions.last().expect("a decision");
    assert!(
        matches!(last.choice, Choice::GiveUp | Choice::Advise),
        "last decision: {last:?}"
    );
    let Some(Event::RunFinished { summary, .. }) = run.last() else {
        panic!("no end{}", run.digest());
    };
    assert!(!summary.is_empty());
    decisions
}

fn ends(run: &Finished) -> Vec<ExitStatus> {
    run.all(|e| match e {
        Event::Exited(report) => Some(report.status),
        _ => None,
    })
}

#[test]
fn no_suitable_algorithm_names_the_rungs_it_cannot_take() {
    let home = Home::new();
    // with the agent its rungs can be taken
    let run = run_with(&home, "miopen", &["--agent", "off"]);
    let decisions = assert_failed_as(&run, VerdictId::NoAlgorithm);
    let skipped = decisions.iter().any(|d| !d.skipped.is_empty());
    assert!(
        skipped,
        "tiles need help from inside the program{}",
        run.digest()
    );
}

#[test]
fn out_of_device_memory() {
    let home = Home::new();
    // with the agent it would not fail
    let run = run_with(&home, "oom", &["--agent", "off"]);
    assert_failed_as(&run, VerdictId::GpuOom);
}

#[test]
fn allocator_storm_then_abort() {
    let home = Home::new();
    let run = run(&home, "blockalloc");
    assert_failed_as(&run, VerdictId::BlockAllocator);
    assert_eq!(ends(&run)[0], ExitStatus::Signal(6));
}

#[test]
fn killed_from_outside() {
    let home = Home::new();
    let run = run(&home, "sigkill");
    assert_failed_as(&run, VerdictId::Killed);
    assert_eq!(ends(&run)[0], ExitStatus::Signal(9));
}

#[test]
fn segmentation_fault() {
    let home = Home::new();
    let run = run(&home, "segfault");
    assert_failed_as(&run, VerdictId::CrashSegv);
    assert_eq!(ends(&run), [ExitStatus::Signal(11)], "not tried again");
}

#[test]
fn exit_without_a_word() {
    let home = Home::new();
    let run = run(&home, "exit");
    assert_failed_as(&run, VerdictId::AppError);
    assert_eq!(ends(&run), [ExitStatus::Code(3)], "not tried again");
}

/// SIGKILL with the kernel's own word for it.
#[test]
fn killed_by_the_kernel_for_want_of_memory() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let log = home.path("kmsg");
    std::fs::write(&log, "").unwrap();
    let mut run = Start::new(&home)
        .card(&card)
        .options(&["--profile", "generic-amd"])
        .env("FPT_KERNEL_LOG", &log)
        .framepack(&["--step-seconds", "2"])
        .start();
    let (pid, _) = run.spawned(1);
    run.wait_for_line("latent_padding_size", Duration::from_mins(2));
    std::fs::write(&log, out_of_memory(pid)).unwrap();
    kill(pid, Signal::KILL).unwrap();
    // `host_oom` may be tried once more; this time nothing ends it.
    let run = run.finish(LIMIT);
    let mut story = run.story();
    let said = "Out of memory: Killed process";
    story.then(
        "the kernel's line",
        |e| matches!(e, Event::Kernel { text } if text.contains(said)),
    );
    let verdicts = run.all(|e| match e {
        Event::Verdict(v) => Some(v.id),
        _ => None,
    });
    assert!(verdicts.contains(&VerdictId::HostOom), "{}", run.digest());
    assert!(
        !verdicts.contains(&VerdictId::Killed),
        "the cause is known{}",
        run.digest()
    );
}

/// A record of /dev/kmsg, as the kernel's OOM killer writes it.
pub(crate) fn out_of_memory(pid: u32) -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
    format!(
        "3,1207,{micros},-;Out of memory: Killed process {pid} (python) total-vm:41236480kB, \
         anon-rss:30121984kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:61440kB oom_score_adj:0\n"
    )
}
