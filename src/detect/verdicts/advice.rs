//! Advice that several verdicts share.

use super::RemedyFacts;
use crate::model::worker::OwnWork;
use crate::model::{ActionId, Bytes, Cite, Verdict};

pub(super) fn unload_all(facts: &RemedyFacts) -> String {
    format!(
        "unload the transformer completely before the VAE is loaded{}",
        preserve(facts.vram)
    )
}

pub(super) fn smaller_job(facts: &RemedyFacts, action: ActionId) -> Option<String> {
    (action == ActionId::LowerSettings).then(|| {
        format!(
            "make the job smaller: fewer frames, a smaller size or a quantised model{}; close what else uses the card",
            preserve(facts.vram).replacen(", ", "; in FramePack ", 1)
        )
    })
}

/// What FramePack and its like should leave free: three quarters of the card.
fn preserve(vram: Option<Bytes>) -> String {
    let Some(vram) = vram.filter(|v| v.0 >= 4 << 30) else {
        return String::new();
    };
    let gib = vram.0.div_ceil(1 << 30);
    format!(", preserve {} of {gib} GiB", gib * 3 / 4)
}

/// What helps our own worker where the host's memory is too small.
pub(super) const fn smaller_pieces(work: OwnWork) -> &'static str {
    match work {
        OwnWork::Decode => {
            "give it more host memory (free some, add swap, raise the limit that the console names) and the same command, which goes on after the frames that are finished; or name a profile with smaller pieces (vae_chunk, vae_tile), with which it begins anew"
        }
        OwnWork::Encode => {
            "give it more host memory (free some, add swap, raise the limit that the console names), or name a profile with smaller pieces (vae_chunk, vae_tile); an encode begins anew"
        }
    }
}

/// The module that Python did not find.
pub(super) fn missing_module(verdict: &Verdict) -> Option<&str> {
    let mut lines = verdict.findings.iter().flat_map(|f| &f.cites);
    lines.find_map(|c: &Cite| {
        let rest = c.text.split_once("No module named ")?.1;
        let name = rest.trim_start_matches(['\'', '"']);
        let end = name
            .find(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-'))
            .unwrap_or(name.len());
        Some(&name[..end]).filter(|n| !n.is_empty())
    })
}
