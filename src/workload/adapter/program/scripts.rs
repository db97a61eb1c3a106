//! The dialect of programs without wording of their own: scripts, and servers of any make.

use std::sync::LazyLock;

use regex::Regex;

use super::super::narrator::Behind;
use super::super::wording::{self, ModelRole};
use super::{Bar, Dialect, Exception, Job, Narrator};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
#[derive(Debug)]
pub(super) struct Scripts {
    /// The program generates: its steps are those of a generation.
    pub(super) knows_steps: bool,
}

impl Dialect for Scripts {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        line(text, n)
    }

    fn bar(&mut self, bar: &Bar, sampling: bool, n: &mut Narrator) {
        if sampling || self.knows_steps {
            steps(bar, n);
        } else {
            unknown_bar(bar, n);
        }
    }

    fn after_common_words(&mut self, before: Job, n: &mut Narrator) {
        // a server of unknown make ends its job with the result
        if n.server && before == Job::InFlight && n.phase() == Phase::Save {
            n.done();
        }
    }

    fn exception(&mut self, e: &Exception, n: &mut Narrator) {
        end_request(e, n);
    }

    fn step(&mut self, bar: &Bar, phase: Phase, n: &mut Narrator) {
        step(bar, phase, n);
    }

    fn knows_steps(&self) -> bool {
        self.knows_steps
    }
}

/// Ends the job of a server whose jobs are its requests: the request failed, so did the job.
pub(super) fn end_request(e: &Exception, n: &mut Narrator) {
    if n.server && fails(e, n.in_flight()) {
        if e.is_interrupt() {
            n.wait();
        } else {
            n.fail(Some(&e.text));
        }
    }
}

/// Whether an exception that a server of unknown make printed ended its job: not what its
/// own code stumbled over, nor a client that left, nor an extension beside the job.
fn fails(e: &Exception, in_flight: bool) -> bool {
    in_flight && !e.by_server && !e.is_client_gone() && (e.in_request || !e.aside)
}

/// A bar of denoising steps. What follows the last step is silent and not known: a decode,
/// a file that is written, the program's own work.
///
/// A server of an unknown make does not say when its job is over: its job counts as
/// done after the last step, for a wrong alarm at an idle server costs more than a late
/// one, until its words tell of the decode ([`line`]). One that announced the job tells
/// its end as well.
fn steps(bar: &Bar, n: &mut Narrator) {
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

/// A bar that may count anything: it has no name, or one of the program's
/// own: it may count the steps of a generation or its frames, so a job is in flight while it
/// is not full.
pub(in super::super) fn unknown_bar(bar: &Bar, n: &mut Narrator) {
    if !bar.complete() {
        n.begin_script_job();
    }
    // beside words about a step it is that step's bar
    if matches!(n.phase(), Phase::Startup | Phase::Download) {
        n.enter(Phase::Unknown);
    }
}

/// The bar of steps of a program that decodes as soon as it is full.
pub(super) fn steps_then_decode(bar: &Bar, n: &mut Narrator) {
    if bar.complete() {
        n.enter(Phase::VaeDecode);
    } else {
        n.start_job();
        n.enter(Phase::Sampling);
    }
}

/// The bar over all passes of a job, which A1111 and its kin print once more when the
/// picture is there.
pub(in super::super) fn total(bar: &Bar, n: &mut Narrator) {
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

/// The phase that begins as Forge moves a model to the card for a job; absent: it is no such
/// line, or the model is a VAE, which may decode what another job has left.
fn loads_for_job(text: &str) -> Option<Phase> {
    match wording::role(&TARGET.captures(text)?["class"]) {
        ModelRole::Encoder => Some(Phase::TextEncode),
        ModelRole::Diffusion => Some(Phase::ModelLoad),
        ModelRole::Vae => None,
    }
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
fn line(text: &str, n: &mut Narrator) -> bool {
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
        Job::Waiting if n.behind != Behind::Bar && loads_for_job(text).is_some() => {
            n.start_job();
            n.enter(loads_for_job(text).unwrap_or(Phase::Unknown));
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
fn step(bar: &Bar, phase: Phase, n: &mut Narrator) {
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
