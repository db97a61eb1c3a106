//! The states that are no faults, each with its sentence.

use std::time::Duration;

use crate::detect::facts::{Facts, Job, figures};
use crate::detect::helpers::Helpers;
use crate::model::{Phase, VerdictId};

use super::span;

/// How long a phase lasts before its own no-fault state is shown (as R6: at most
/// one change in two seconds).
const SETTLED: Duration = Duration::from_secs(2);

/// Below this, card and processor rest.
const WORKS_PERCENT: f64 = 2.0;

/// Which no-fault state holds while no other rule speaks.
pub(crate) fn no_fault(f: &Facts<'_>) -> (VerdictId, String) {
    match f.job {
        // a page of unknown make does not tell of every beginning
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
        Job::Ended => {
            return (VerdictId::Healthy, "the job has ended".to_owned());
        }
        Job::Unknown | Job::InFlight(_) => {}
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
    let advances = recently(f, c.progress.active);
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
    if !recently(f, f.channels.last_activity()) {
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
