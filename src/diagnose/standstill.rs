//! A hang in a text without readings: what its own times show of it, and what to do if the
//! program stands still where the text ends.

use std::collections::BTreeMap;

use crate::model::time::clock;
use crate::model::{
    ActionId, Backend, Finding, Health, JobChange, Phase, Remedy, Verdict, VerdictId,
};

use crate::causes::{Pasted, TILES};

use super::log::cite;
use super::tail::Tail;
use super::times::Stood;

/// How sure a hang is that only the times of a log show: what is very slow looks the same.
const CONFIDENCE: f64 = 0.6;

/// The verdict that names a standstill.
pub(super) const fn id(phase: Phase, searches: bool) -> VerdictId {
    match phase {
        _ if searches => VerdictId::FindStall,
        Phase::Download => VerdictId::DownloadStall,
        _ => VerdictId::SilentHang,
    }
}

/// The verdict about a job of which nothing came for a long time, by the log's own times.
pub(super) fn verdict(mut from: Verdict, stood: &Stood) -> Verdict {
    from.id = id(stood.phase, stood.searches);
    from.health = Health::Hung;
    from.phase = stood.phase;
    from.confidence = CONFIDENCE;
    let span = u64::try_from(stood.for_s).map(std::time::Duration::from_secs);
    from.sentence = format!(
        "by the log's own times nothing came of the job for {} after line {}, and it never went on: it stood still {}, or is very slow",
        span.map_or_else(|_| "a long time".to_owned(), clock),
        stood.from_row,
        place(stood.phase)
    );
    let cite = cite(0, stood.from_row, &stood.from);
    from.findings = vec![Finding::of_line(from.id, &from.sentence, &cite)];
    from
}

/// The last that the text tells.
pub(super) fn where_it_stands(tail: &Tail) -> String {
    if let Some(find) = &tail.find {
        let solver = find
            .solver
            .as_ref()
            .map_or_else(String::new, |s| format!(", with the solver {s}"));
        return format!(
            "it ends within a search of MIOpen for {}{solver}, {}",
            find.key,
            place(tail.phase)
        );
    }
    let steps = tail.progress.as_ref().and_then(|p| {
        let total = p.total?;
        Some(format!(" at {} of {}", amount(p.done), amount(total)))
    });
    match (&tail.job, tail.phase) {
        (Some(JobChange::Waiting), _) => "it ends with a server that waits for its user".to_owned(),
        (Some(JobChange::Done), _) => "its last job came to its end".to_owned(),
        (_, Phase::Unknown) => "it does not tell what the program was doing".to_owned(),
        (_, phase) => format!("it ends {}{}", place(phase), steps.unwrap_or_default()),
    }
}

/// A phase as the place in a sentence.
const fn place(phase: Phase) -> &'static str {
    match phase {
        Phase::Startup => "in the start of the program",
        Phase::Idle => "with a server at rest",
        Phase::Download => "in a download",
        Phase::ModelLoad => "while models are loaded",
        Phase::TextEncode => "while the prompt is encoded",
        Phase::Sampling => "while it samples",
        Phase::Offload => "while a model leaves the card",
        Phase::VaeEncode => "while the VAE encodes",
        Phase::VaeDecode => "while the VAE decodes",
        Phase::Delight => "in the delight step",
        Phase::Texture => "while the texture is made",
        Phase::MeshPost => "while the mesh is reduced",
        Phase::Save => "while the result is saved",
        Phase::Done => "after its job",
        Phase::Unknown => "at a place that it does not tell",
    }
}

/// A count, or bytes where it is as large as those of a file.
fn amount(value: f64) -> String {
    const LARGE: f64 = 1e6;
    if value < LARGE {
        format!("{value:.0}")
    } else if value < 1e9 {
        format!("{:.0} MB", value / 1e6)
    } else {
        format!("{:.2} GB", value / 1e9)
    }
}

/// What to do if it stands still there; absent: no job is at work. `decode`: what is done about
/// a decode.
pub(super) fn advice(
    tail: &Tail,
    backend: Backend,
    in_force: &[ActionId],
    pasted: &Pasted,
    decode: Option<String>,
) -> Option<String> {
    if matches!(tail.job, Some(JobChange::Waiting | JobChange::Done)) {
        return None;
    }
    let words = tail.words();
    let compiles = words.iter().rev().take(MOST_SINCE_COMPILED).any(|word| {
        let text = word.text.to_ascii_lowercase();
        text.contains("compilation is in progress") || text.contains("compiling kernels")
    });
    if compiles {
        return Some(COMPILES.to_owned());
    }
    let said = match (tail.phase, backend) {
        (Phase::VaeDecode | Phase::VaeEncode, _) => return decode,
        (Phase::Download, _) => {
            "stop it and start it again, which resumes the download; HF_HUB_DISABLE_XET=1 takes the older way"
        }
        (Phase::ModelLoad | Phase::TextEncode | Phase::Offload, Backend::Hip)
            if pasted.is_memory_full() && !in_force.contains(&ActionId::DisablePinned) =>
        {
            MEMORY_FULL
        }
        (Phase::ModelLoad | Phase::TextEncode | Phase::Offload, _) if pasted.is_memory_full() => {
            "RAM and swap are full: take a quantised model (GGUF, fp8) or close what else uses memory; a machine that swaps loads for very long"
        }
        (Phase::ModelLoad | Phase::TextEncode | Phase::Offload, Backend::Hip)
            if pasted.has_memory_left() && !in_force.contains(&ActionId::DisablePinned) =>
        {
            "the memory has room, so start without page-locked memory (ComfyUI: --disable-pinned-memory) or with HSA_ENABLE_SDMA=0"
        }
        (Phase::ModelLoad | Phase::TextEncode | Phase::Offload, Backend::Hip)
            if !in_force.contains(&ActionId::DisablePinned) =>
        {
            "look at `free -h` (a machine that swaps loads for very long: take a quantised model); with memory to spare start without page-locked memory (ComfyUI: --disable-pinned-memory) or with HSA_ENABLE_SDMA=0"
        }
        (Phase::ModelLoad | Phase::TextEncode | Phase::Offload, _) => {
            "look at `free -h`: a machine that swaps loads for very long; take a quantised model (GGUF, fp8) or close what else uses memory"
        }
        (Phase::Sampling | Phase::Delight | Phase::Texture, Backend::Hip | Backend::Unknown)
            if tail.job.is_some() =>
        {
            "look at the card's load (`amd-smi`, `nvidia-smi`): at 0 % for minutes restart it, on AMD with MIOPEN_FIND_MODE=FAST; `py-spy dump` shows where it waits"
        }
        _ if tail.find.is_some() => {
            "start with MIOPEN_FIND_MODE=FAST: MIOpen searches its kernels at the first use of a size"
        }
        _ => return None,
    };
    Some(said.to_owned())
}

/// What is done about a load that stands still while RAM and swap are full.
const MEMORY_FULL: &str = "RAM and swap are full: ComfyUI's page-locked copies of the weights take them. Start it with --disable-pinned-memory --disable-async-offload (newer versions: --disable-dynamic-vram as well), or take a quantised model (GGUF, fp8)";

/// Lines after a word of a compilation that may still belong to it.
const MOST_SINCE_COMPILED: usize = 5;

/// What is done about a first use that compiles.
const COMPILES: &str = "wait: kernels are compiled before their first use, which may take tens of minutes; the next start does not wait for them";

/// A remedy that changes nothing.
pub(super) fn nothing_but(why: String) -> Remedy {
    Remedy {
        action: ActionId::None,
        tier: 0,
        auto_restart: false,
        env: BTreeMap::new(),
        why,
    }
}

/// Phases in which a job is at work; what is done if it stands still in one is known.
pub(super) const fn is_work(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::VaeDecode
            | Phase::VaeEncode
            | Phase::Sampling
            | Phase::TextEncode
            | Phase::ModelLoad
            | Phase::Offload
            | Phase::Download
    )
}

/// Nobody takes the next step of the ladder here, so the remedy names it too.
pub(super) fn with_tiles(mut remedy: Remedy, phase: Phase) -> Remedy {
    if remedy.action == ActionId::FastFind && phase == Phase::VaeDecode {
        let tiles = format!("; if it stands still again, decode in tiles ({TILES})");
        remedy.why.push_str(&tiles);
    }
    remedy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_has_its_verdict() {
        assert_eq!(id(Phase::VaeDecode, false), VerdictId::SilentHang);
        assert_eq!(id(Phase::VaeDecode, true), VerdictId::FindStall);
        assert_eq!(id(Phase::Download, false), VerdictId::DownloadStall);
    }

    fn at(phase: Phase, job: JobChange) -> Tail {
        let mut tail = Tail::default();
        (tail.phase, tail.job) = (phase, Some(job));
        tail
    }

    #[test]
    fn a_job_at_work_has_a_hint_and_one_at_rest_none() {
        let pasted = Pasted::default();
        let decode = at(Phase::VaeDecode, JobChange::Started);
        let hint = advice(&decode, Backend::Hip, &[], &pasted, Some("x".to_owned()));
        assert_eq!(hint.as_deref(), Some("x"));
        let rest = at(Phase::Idle, JobChange::Waiting);
        assert_eq!(advice(&rest, Backend::Hip, &[], &pasted, None), None);
        let done = at(Phase::VaeDecode, JobChange::Done);
        assert_eq!(advice(&done, Backend::Hip, &[], &pasted, None), None);
    }

    #[test]
    fn a_load_that_stands_still_is_told_by_the_memory_that_was_pasted() {
        let load = at(Phase::ModelLoad, JobChange::Started);
        let advised = |lines: &[&str], in_force: &[ActionId]| {
            let mut pasted = Pasted::default();
            for line in lines {
                pasted.observe(line);
            }
            advice(&load, Backend::Hip, in_force, &pasted, None).unwrap()
        };
        let full = [
            "$ free -m",
            "Mem: 31990 31402 204 310 383 121",
            "Swap: 8191 8188 3",
        ];
        assert!(advised(&full, &[]).contains("--disable-async-offload"));
        let pinned = advised(&full, &[ActionId::DisablePinned]);
        assert!(
            !pinned.contains("pinned") && !pinned.contains("`free"),
            "{pinned}"
        );
        let room = ["Mem: 31990 1402 30204 310 383 30121"];
        assert!(!advised(&room, &[]).contains("`free"));
        assert!(advised(&[], &[]).contains("`free"));
    }

    #[test]
    fn bytes_are_told_as_such() {
        assert_eq!(amount(20.0), "20");
        assert_eq!(amount(619e6), "619 MB");
        assert_eq!(amount(4.99e9), "4.99 GB");
    }
}
