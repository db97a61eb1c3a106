//! An entry as programs are told of it.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;

use super::digest::Digest;
use super::entry::{Content, Entry, Kind, State};
use super::jobs::Job;

/// An entry as `--json` tells it, see `docs/vault.md`. Absent is `null`.
#[derive(Debug, Clone, Serialize)]
pub struct Told<'a> {
    number: usize,
    name: &'a str,
    path: String,
    what: Kind,
    /// `whole`, `torn` or `foreign`.
    state: &'static str,
    why: Option<&'a str>,
    run: Option<&'a str>,
    attempt: Option<&'a str>,
    program: Option<&'a str>,
    written: Option<Timestamp>,
    age_s: Option<u64>,
    bytes: u64,
    decoder: Option<&'a str>,
    /// The family of models that the latents are for, where the decoder is known by its shape.
    family: Option<&'a str>,
    shape: Option<&'a [u64]>,
    dtype: Option<&'a str>,
    section: Option<u32>,
    sections: Option<u32>,
    scaling_applied: Option<bool>,
    prompt: Option<&'a str>,
    job: Option<ToldJob<'a>>,
    /// Only where it was checked.
    digest: Option<Digest>,
    digest_error: Option<String>,
    /// Of the header, which every list reads.
    seal: Option<Digest>,
}

/// What a job holds, beside what every entry has.
#[derive(Debug, Clone, Serialize)]
struct ToldJob<'a> {
    id: Option<&'a str>,
    state: Option<&'static str>,
    error: Option<&'a str>,
    /// FramePack's inputs.
    inputs: Option<&'a serde_json::Map<String, serde_json::Value>>,
    /// The jobs of ComfyUI's or Studio's queue by their ids, front to back.
    queue: Option<Vec<&'a str>>,
}

impl Entry {
    /// The class of the decoder without its module.
    pub fn decoder(&self) -> Option<&str> {
        self.says("vae_class")?.rsplit('.').next()
    }

    /// Section, and of how many.
    pub fn section(&self) -> (Option<u32>, Option<u32>) {
        let number = |name| self.says(name).and_then(|text| text.parse().ok());
        (number("section"), number("sections"))
    }

    /// FramePack, ComfyUI or diffusers, in their words.
    pub fn program(&self) -> Option<&str> {
        match self.content()? {
            Content::Tensors(_) => self.says("program"),
            Content::Job(Job::FramePack(_)) => Some("framepack"),
            Content::Job(Job::ComfyUi(_)) => Some("comfyui"),
            Content::Job(Job::Studio(_)) => Some("framepack-studio"),
        }
    }

    /// The prompt, where it was stored: with latents only if the setting `vault_prompt`
    /// wants it, with a job of FramePack always, which could not be sent again without.
    pub fn prompt(&self) -> Option<&str> {
        match self.content()? {
            Content::Tensors(_) => self.says("prompt"),
            Content::Job(Job::FramePack(job)) => job.inputs.get("prompt")?.as_str(),
            Content::Job(Job::ComfyUi(_) | Job::Studio(_)) => None,
        }
    }

    /// The same for programs. `number`: place in the list, from 1 on. `digest`: what came
    /// of the check, where it was made.
    pub fn told(
        &self,
        number: usize,
        now: SystemTime,
        digest: Option<std::io::Result<Digest>>,
    ) -> Told<'_> {
        let (state, why) = match &self.state {
            State::Whole(_) => ("whole", None),
            State::Torn(why) => ("torn", Some(why.as_str())),
            State::Foreign(why) => ("foreign", Some(why.as_str())),
        };
        let (section, sections) = self.section();
        let (digest, digest_error) = match digest {
            None => (None, None),
            Some(Ok(digest)) => (Some(digest), None),
            Some(Err(e)) => (None, Some(e.to_string())),
        };
        Told {
            number,
            name: &self.name,
            path: self.path.display().to_string(),
            what: self.kind,
            state,
            why,
            run: self.run.as_deref(),
            attempt: self.attempt(),
            program: self.program(),
            written: self.written.and_then(|t| Timestamp::try_from(t).ok()),
            age_s: self.age(now).map(|age| age.as_secs()),
            bytes: self.bytes.0,
            decoder: self.decoder(),
            family: self.says("vae_family"),
            shape: self.latents().map(|t| &t.shape[..]),
            dtype: self.latents().map(|t| t.dtype.as_str()),
            section,
            sections,
            scaling_applied: self.says("scaling_applied").map(|text| text == "true"),
            prompt: self.prompt(),
            job: self.job().map(told_job),
            digest,
            digest_error,
            seal: self.header().map(|header| header.seal),
        }
    }
}

fn told_job(job: &Job) -> ToldJob<'_> {
    match job {
        Job::FramePack(job) => ToldJob {
            id: Some(&job.id),
            state: Some(job.state.word()),
            error: job.error.as_deref(),
            inputs: Some(&job.inputs),
            queue: None,
        },
        Job::ComfyUi(queue) => ToldJob {
            id: None,
            state: None,
            error: None,
            inputs: None,
            queue: Some(queue.items.iter().map(|i| i.prompt_id.as_str()).collect()),
        },
        Job::Studio(queue) => ToldJob {
            id: None,
            state: None,
            error: None,
            inputs: None,
            queue: Some(queue.items.iter().map(|i| i.id.as_str()).collect()),
        },
    }
}
