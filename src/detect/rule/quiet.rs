//! The states that are no faults, each with its sentence.

use std::time::Duration;

use crate::detect::facts::{Facts, Job};
use crate::detect::helpers::Helpers;
use crate::model::{Phase, VerdictId};

use super::span;

/// How long a phase lasts before its own no-fault state is shown (as R6: at most
/// one change in two seconds).
const SETTLED: Duration = Duration::from_secs(2);

/// Which no-fault state holds while no other rule speaks.
pub(crate) fn no_fault(f: &Facts<'_>) -> (VerdictId, String) {
    match f.job {
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
                "MIOpen searches for {} ({solver})",
                span(f.now.since(find.state.opened))
            ),
        );
    }
    if f.helpers == Helpers::Compile || f.compiling {
        return (
            VerdictId::CompileWarmup,
            "kernels are being compiled".to_owned(),
        );
    }
    if f.on_cpu {
        return (
            VerdictId::CpuPhase,
            format!("{} runs on the CPU, as announced", f.phase),
        );
    }
    if f.helpers == Helpers::Encode {
        return (
            VerdictId::CpuPhase,
            "a video is being encoded by a helper".to_owned(),
        );
    }
    if reads_weights(f) {
        return (
            VerdictId::LoadingIo,
            format!("{} waits for what is read from storage", f.phase),
        );
    }
    // a phase of a moment is no state worth telling
    if f.now.since(f.phase_since) < SETTLED {
        return (VerdictId::Healthy, "the job advances".to_owned());
    }
    match f.phase {
        Phase::Download => (
            VerdictId::DownloadWait,
            "files are being fetched".to_owned(),
        ),
        Phase::ModelLoad if f.channels.io.live(f.now, f.t) && recently(f, f.channels.io.active) => {
            (
                VerdictId::LoadingIo,
                "weights are being read from storage".to_owned(),
            )
        }
        Phase::Save | Phase::MeshPost => {
            (VerdictId::CpuPhase, format!("{} runs on the CPU", f.phase))
        }
        _ => (VerdictId::Healthy, "the job advances".to_owned()),
    }
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

fn recently(f: &Facts<'_>, at: crate::model::Mono) -> bool {
    f.now.since(at) < Duration::from_secs(5)
}
