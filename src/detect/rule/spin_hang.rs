//! `spin_hang`: a core is busy without end, no output, the card idle, and nothing
//! says that MIOpen searches or that a CPU step was announced.

use crate::detect::facts::Facts;
use crate::model::{Phase, VerdictId};

use super::{Check, Signs, span};

/// Without a card to look at, honest CPU work and a spin look alike.
const WITHOUT_CARD: u32 = 5;
/// A limit is never shorter than this many times the longest such phase so far.
const TIMES_LONGEST: u32 = 5;

pub(super) fn check(f: &Facts<'_>) -> Check {
    let c = &f.channels;
    let Some(busy_since) = c.core_busy_since else {
        return Check::Clear;
    };
    if f.find.is_some() || f.on_cpu || f.compilers || cpu_is_normal(f.phase) {
        return Check::Clear;
    }
    let mut limit = f.limits.spin_limit;
    if !c.gpu_expected {
        limit *= WITHOUT_CARD;
    }
    if let Some(longest) = f.longest {
        limit = limit.max(longest * TIMES_LONGEST);
    }
    let limit = limit.mul_f64(f.ratchet);
    let since = [
        busy_since,
        c.last_word(),
        c.gpu.active,
        c.memory.active,
        c.io.active,
        c.net.active,
    ]
    .into_iter()
    .max()
    .unwrap_or(busy_since);
    let spinning = f.now.since(since);
    if spinning < limit / 2 {
        return Check::Clear;
    }
    let cpu = c.figures.cpu_percent.unwrap_or_default();
    let mut numbers = vec![
        format!("CPU {cpu:.0} % for {}", span(f.now.since(busy_since))),
        format!("no output for {}", span(f.now.since(c.output.active))),
    ];
    if let Some(busy) = c.figures.busy {
        numbers.push(format!("GPU {busy:.0} %"));
    }
    Signs {
        verdict: VerdictId::SpinHang,
        since,
        limit,
        sentence: format!(
            "a core has been busy in {} for {} without a word, and the card does nothing",
            f.phase,
            span(spinning)
        ),
        numbers,
        ruled_out: vec![
            "MIOpen search: none is open by its lines".to_owned(),
            "announced CPU step: none".to_owned(),
            "kernel compile: no compiler runs".to_owned(),
        ],
        confidence: if c.gpu_expected { 0.85 } else { 0.6 },
        seqs: Vec::new(),
    }
    .against_limit(f.now)
}

/// Phases whose work is the CPU's: imports, reading weights, encoding the video,
/// mesh work.
const fn cpu_is_normal(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Startup
            | Phase::Download
            | Phase::ModelLoad
            | Phase::MeshPost
            | Phase::Save
            | Phase::Offload
            | Phase::Unknown
    )
}
