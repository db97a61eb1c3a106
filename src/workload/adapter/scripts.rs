//! Programs without wording of their own: diffusers scripts and anything else.

use std::sync::LazyLock;

use regex::Regex;

use super::narrator::{Behind, Job, Narrator};
use super::tqdm::Bar;
use super::wording::{self, ModelRole};
use crate::model::Phase;
use crate::workload::pattern;

/// A bar of denoising steps. What follows the last step is silent and not known: a decode,
/// a file that is written, the program's own work.
///
/// A server of an unknown make does not say when its job is over: its job counts as
/// done after the last step, for a wrong alarm at an idle server costs more than a late
/// one, until its words tell of the decode ([`line`]). One that announced the job tells
/// its end as well.
pub(super) fn bar(bar: &Bar, n: &mut Narrator) {
    if !bar.complete() {
        if !n.in_flight() {
            n.start_job();
        }
        n.enter(Phase::Sampling);
    } else if n.server && !n.announced {
        n.done();
        n.behind = Behind::Bar;
    } else {
        n.enter_after_steps();
    }
}

/// A bar without a name in a program of which nothing is known: it may count the steps of
/// a generation, so a job is in flight while it is not full.
pub(super) fn unnamed_bar(bar: &Bar, n: &mut Narrator) {
    if !bar.complete() {
        n.begin_script_job();
    }
    // beside words about a step it is that step's bar
    if matches!(n.phase(), Phase::Startup | Phase::Download) {
        n.enter(Phase::Unknown);
    }
}

/// The bar over all passes of a job, which A1111 and its kin print once more when the
/// picture is there.
pub(super) fn total(bar: &Bar, n: &mut Narrator) {
    let named = bar.desc.as_deref().is_some_and(|d| TOTAL.is_match(d));
    if n.behind == Behind::Decoding && named && bar.complete() {
        n.done();
    }
}

static TOTAL: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^\W*(?:total|overall) progress\b"));

/// Forge moves a model to the card: the line names its class.
static TARGET: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\W*Memory Management\W+Target: (?P<class>\w+)"));

/// Whether a line behind a bar tells that the decode begins.
fn decodes(text: &str) -> bool {
    let target = TARGET.captures(text);
    target.map_or_else(
        || wording::begins_decode(text),
        |c| wording::role(&c["class"]) == ModelRole::Vae,
    )
}

/// A server takes up a job: SD.Next, `InvokeAI`, and what others say.
static BEGINS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\W*(?:executing|processing|running|starting|started|accepted|received|got|picked up)(?: up)? (?:a |the |new |next )*(?:queue item|job|task|generation|request|prompt)s?\b|^\W*base: pipeline=\S+ task=",
    )
});
/// The job of a server has come to its end: the same programs.
static ENDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\W*(?:processed: |graph stats\b|total graph execution time|total time\b|time taken\b|generated \d+ images?\b)|^\W*(?:queue item|job|task|generation|request|prompt|session|image|inference)\b.{0,80}\b(?:done|completed?|finished|succeeded|saved|executed|cancell?ed|interrupted|took)\b|^\W*(?:all )?(?:done|finished|completed)\W*$",
    )
});

/// It came to its end without a result.
static ENDS_EMPTY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^\W*processed: images=0\b|^\W*error completing request\b"));

/// What a server of unknown make says about its jobs. Gives whether it said something.
pub(super) fn line(text: &str, n: &mut Narrator) -> bool {
    if !n.server {
        return false;
    }
    match n.job {
        Job::Waiting if n.behind == Behind::Bar && decodes(text) => {
            n.resume();
            true
        }
        Job::Waiting if BEGINS.is_match(text) => {
            n.start_job();
            n.announced = true;
            n.enter(Phase::Unknown);
            true
        }
        Job::InFlight if ENDS_EMPTY.is_match(text) => {
            n.fail(None);
            true
        }
        Job::InFlight if ENDS.is_match(text) => {
            n.done();
            true
        }
        _ => false,
    }
}

/// A bar of a step that there is only within a job: a shape's volume is decoded, a mesh
/// is textured. One that stands at its end may be the last word of the job.
pub(super) fn step(bar: &Bar, phase: Phase, n: &mut Narrator) {
    let within = matches!(
        phase,
        Phase::VaeDecode | Phase::Texture | Phase::MeshPost | Phase::VaeEncode
    );
    if !within || bar.complete() {
        return;
    }
    if n.server && n.job == Job::Waiting {
        n.start_job();
    }
    n.begin_script_job();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_jobs() {
        for text in [
            "Executing queue item 12, session 9f1c",
            "Base: pipeline=StableDiffusionXLPipeline task=TEXT_2_IMAGE batch=1/1x1",
            "Starting generation with 20 steps",
            "Processing request 5",
        ] {
            assert!(BEGINS.is_match(text) && !ENDS.is_match(text), "{text}");
        }
        for text in [
            "Graph stats: 9f1c",
            "Processed: images=1 its=1.20",
            "Job 5 finished in 12 s",
            "done",
        ] {
            assert!(ENDS.is_match(text) && !BEGINS.is_match(text), "{text}");
        }
        for text in [
            "Startup time: total=17.10",
            "Running on local URL:  http://127.0.0.1:7860",
            "Model loaded in 8.2s",
            "Started server process [4711]",
        ] {
            assert!(!BEGINS.is_match(text) && !ENDS.is_match(text), "{text}");
        }
    }
}
