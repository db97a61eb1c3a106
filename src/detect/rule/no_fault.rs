//! The states that are no faults, each with its sentence.

use std::time::Duration;

use crate::detect::facts::{Facts, figures};
use crate::detect::helpers::Helpers;
use crate::detect::job::Job;
use crate::detect::movement::Source;
use crate::detect::thresholds::secs;
use crate::model::{Phase, VerdictId, WaitsFor};

use super::span;

/// How long a phase lasts before its own no-fault state is shown (as R6: at most
/// one change in two seconds).
const SETTLED: Duration = Duration::from_secs(2);

/// For how long a program that shows nothing is said to start.
const STARTS: Duration = Duration::from_mins(1);

/// Below this, card and processor rest.
const WORKS_PERCENT: f64 = 2.0;

/// Which no-fault state holds while no other rule speaks.
pub(crate) fn no_fault(f: &Facts<'_>) -> (VerdictId, String) {
    match f.job.job {
        // a page of unknown make does not announce every beginning
        Job::Waiting(_) if reads_now(f) => {
            return (
                VerdictId::LoadingIo,
                format!(
                    "no job was announced, but weights are being read from storage{}",
                    figures(&[rate("read", f.channels.figures.read_bps)])
                ),
            );
        }
        Job::Waiting(since) => {
            return (
                VerdictId::IdleWaiting,
                format!(
                    "the server is up and waits for its user (for {})",
                    span(f.now.since(since))
                ),
            );
        }
        Job::Ended => return ended(f),
        Job::Unknown => return no_job_shown(f),
        Job::InFlight(_) if f.only_loaded && f.silent_for() >= secs(f.t.silence_sign_s) => {
            return (
                VerdictId::Quiet,
                format!(
                    "a model is loaded ({}), and no step or pipeline call has begun",
                    f.job.source
                ),
            );
        }
        Job::InFlight(_) => {}
    }
    if let Some(waiting) = waits_for_others(f) {
        return waiting;
    }
    if let Some(find) = f.find {
        let solver = find.state.solver.as_deref().unwrap_or("a solver");
        return (
            VerdictId::CompileWarmup,
            format!(
                "MIOpen searches for {} ({solver}){}",
                span(f.now.since(find.state.opened)),
                figures(&[cpu(f)])
            ),
        );
    }
    if let Some(told) = beside_the_card(f) {
        return told;
    }
    // a phase of a moment is no state worth telling
    if f.now.since(f.phase_since) < SETTLED {
        return (VerdictId::Healthy, advances(f));
    }
    match f.phase {
        Phase::Download => (
            VerdictId::DownloadWait,
            format!(
                "files are being fetched{}",
                figures(&[rate("received", f.channels.figures.net_bps)])
            ),
        ),
        Phase::ModelLoad if f.channels.io.live(f.now, f.t) && recently(f, f.channels.io.active) => {
            (
                VerdictId::LoadingIo,
                format!(
                    "weights are being read from storage{}",
                    figures(&[rate("read", f.channels.figures.read_bps)])
                ),
            )
        }
        Phase::Save | Phase::MeshPost => (
            VerdictId::CpuPhase,
            format!("{} runs on the CPU{}", f.phase, figures(&[cpu(f)])),
        ),
        _ => (VerdictId::Healthy, advances(f)),
    }
}

/// The program said that its job has ended, or its result is written.
fn ended(f: &Facts<'_>) -> (VerdictId, String) {
    let silent = f.silent_for();
    if silent < secs(f.t.not_ended_s) {
        return (VerdictId::Healthy, "the job has ended".to_owned());
    }
    (
        VerdictId::NotEnded,
        format!(
            "the job has ended and its process has stayed for {}{}; it is left alone",
            span(silent),
            waits_in(f)
        ),
    )
}

/// Nothing shows that a job is in flight: what moves is named, and nothing follows from it.
fn no_job_shown(f: &Facts<'_>) -> (VerdictId, String) {
    let c = &f.channels;
    let fetches = f.phase == Phase::Download;
    if let Some(beside) = beside_the_card(f) {
        return beside;
    }
    // a network dips
    if fetches && f.silent_for() < secs(f.t.silence_download_s) {
        return (
            VerdictId::DownloadWait,
            format!(
                "files are being fetched{}",
                figures(&[rate("received", c.figures.net_bps)])
            ),
        );
    }
    if c.reading.live(f.now, f.t) && recently(f, c.reading.active) {
        return (
            VerdictId::LoadingIo,
            format!(
                "files are being read{}",
                figures(&[rate("read", c.figures.read_bps)])
            ),
        );
    }
    if f.now.since(f.attempt_since) < STARTS {
        return (VerdictId::Healthy, "the program starts".to_owned());
    }
    let busy = c.figures.cpu_percent.filter(|p| *p >= f.t.cpu_burst_pct);
    if busy.is_some() && recently(f, c.cpu.active) {
        return (
            VerdictId::CpuPhase,
            format!(
                "the program works on the CPU{}; nothing shows that a job is in flight",
                figures(&[cpu(f)])
            ),
        );
    }
    let (at, source) = f.movement.last();
    let moved = if recently(f, at) {
        format!("; {}", source.words())
    } else {
        format!(
            "; nothing has moved for {}{}",
            span(f.now.since(at)),
            waits_in(f)
        )
    };
    (
        VerdictId::Quiet,
        format!("nothing shows that a job is in flight{moved}"),
    )
}

/// The job waits for somebody who is not of the tree: a peer, the holder of a lock, a
/// person, or for time to pass.
fn waits_for_others(f: &Facts<'_>) -> Option<(VerdictId, String)> {
    let silent = f.silent_for();
    if silent < secs(f.t.remote_wait_s) {
        return None;
    }
    let on = f
        .waits
        .detail
        .as_deref()
        .unwrap_or("it cannot be told which");
    let silent = span(silent);
    Some(match f.waits.answer {
        WaitsFor::Peer if f.peer_is_uncounted => (
            VerdictId::RemoteWait,
            format!(
                "the job has waited for {silent} for a peer ({on}); whether bytes move there cannot be counted"
            ),
        ),
        WaitsFor::Peer => (
            VerdictId::RemoteWait,
            format!("the job has waited for {silent} for a peer ({on}), and no bytes have moved"),
        ),
        WaitsFor::Lock if !f.lock_is_orphaned => (
            VerdictId::RemoteWait,
            format!("the job has waited for {silent} for a lock ({on})"),
        ),
        WaitsFor::Person => (
            VerdictId::IdleWaiting,
            format!("the job has waited for {silent} for a person at a terminal"),
        ),
        WaitsFor::Client => (
            VerdictId::IdleWaiting,
            format!("the job's thread has waited for {silent} for a client ({on})"),
        ),
        WaitsFor::Time => (
            VerdictId::Quiet,
            format!("a job is in flight, and its thread sleeps ({silent} by now)"),
        ),
        _ => return None,
    })
}

/// What the thread of the job waits in, for a sentence.
fn waits_in(f: &Facts<'_>) -> String {
    match (f.waits.tid, f.waits.within.as_deref()) {
        (Some(tid), Some(within)) => format!(", its thread {tid} waits in {within}"),
        _ => String::new(),
    }
}

/// What the program does beside the card.
fn beside_the_card(f: &Facts<'_>) -> Option<(VerdictId, String)> {
    if f.helpers == Helpers::Compile || f.compiling {
        return Some((
            VerdictId::CompileWarmup,
            format!("kernels are being compiled{}", figures(&[cpu(f)])),
        ));
    }
    if f.on_cpu {
        return Some((
            VerdictId::CpuPhase,
            format!(
                "{} runs on the CPU, as announced{}",
                f.phase,
                figures(&[cpu(f)])
            ),
        ));
    }
    if f.helpers == Helpers::Encode {
        return Some((
            VerdictId::CpuPhase,
            format!("a video is being encoded by a helper{}", figures(&[cpu(f)])),
        ));
    }
    if reads_weights(f) {
        return Some((
            VerdictId::LoadingIo,
            format!(
                "{} waits for what is read from storage{}",
                f.phase,
                figures(&[rate("read", f.channels.figures.read_bps)])
            ),
        ));
    }
    None
}

/// Programs read weights when they are first needed, so in any phase: much is read, no
/// model runs on the card and nothing else advances.
fn reads_weights(f: &Facts<'_>) -> bool {
    let c = &f.channels;
    let card_rests = !c.gpu_expected || !recently(f, c.gpu_hard.active);
    let mine = !matches!(
        f.phase,
        Phase::Download
            | Phase::ModelLoad
            | Phase::Save
            | Phase::MeshPost
            | Phase::Done
            | Phase::Idle
    );
    let advances = recently(f, f.movement.at(Source::Counter));
    mine && !advances && c.reading.live(f.now, f.t) && recently(f, c.reading.active) && card_rests
}

/// Weights are being read at this moment.
fn reads_now(f: &Facts<'_>) -> bool {
    let c = &f.channels;
    c.reading.active > f.phase_since && c.reading.live(f.now, f.t) && recently(f, c.reading.active)
}

fn recently(f: &Facts<'_>, at: crate::model::Mono) -> bool {
    f.now.since(at) < Duration::from_secs(5)
}

fn cpu(f: &Facts<'_>) -> Option<String> {
    let percent = f.channels.figures.cpu_percent?;
    Some(format!("CPU {percent:.0} %"))
}

fn rate(verb: &str, bps: Option<f64>) -> Option<String> {
    Some(format!("{:.1} MB/s {verb}", bps? / 1e6))
}

fn advances(f: &Facts<'_>) -> String {
    if let Some(bar) = f.pace.bar()
        && let (done, Some(total)) = bar.counted()
    {
        let step = bar.median_s().map(|s| format!("{s:.1} s a step"));
        return format!(
            "the job advances: step {done:.0} of {total:.0}{}",
            figures(&[step])
        );
    }
    let busy = f.channels.figures.busy.map(|b| format!("GPU {b:.0} %"));
    if !recently(f, f.movement.last().0) {
        let rests = super::span(f.silent_for());
        return format!("a job is in flight; nothing has moved for {rests}");
    }
    // what cannot be read proves no rest
    let figures_known = [f.channels.figures.busy, f.channels.figures.cpu_percent];
    let mut known = figures_known.into_iter().flatten().peekable();
    let works = known.peek().is_none() || known.any(|v| v >= WORKS_PERCENT);
    let told = [
        f.channels.output.active,
        f.channels.progress.active,
        f.channels.io.active,
    ]
    .into_iter()
    .any(|at| at > f.phase_since && recently(f, at));
    if works || told {
        return format!("the job advances{}", figures(&[busy, cpu(f)]));
    }
    format!(
        "a job is in flight and rests at the moment{}",
        figures(&[busy, cpu(f)])
    )
}
