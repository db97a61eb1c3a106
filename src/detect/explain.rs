//! Why a failure happened: the cause that fits a verdict.

use crate::causes::{Explanation, Known};
use crate::model::{ActionId, Backend, CiteKind, Verdict};

use super::Detector;
use super::thresholds::secs;

impl Detector {
    /// The cause of a verdict, by what the attempt has shown; `known`: what else is known.
    pub fn explain(&self, verdict: &Verdict, known: &Known<'_>) -> Option<Explanation> {
        if verdict.id.is_no_fault() {
            return None;
        }
        let console = |c: &&crate::model::Cite| c.kind == CiteKind::Console;
        let mut cites = verdict.findings.iter().flat_map(|f| &f.cites);
        // readings of the seconds before the words came
        let at = cites.find(console).map_or(verdict.onset, |c| c.at);
        let card_full = self
            .pressure
            .vram_full_at
            .is_some_and(|full| at.since(full) <= secs(self.thresholds.full_before_s));
        let known = Known {
            phase: Some(verdict.phase),
            card_full,
            ..known.clone()
        };
        self.context.evidence.explain(verdict.id, &known)
    }

    /// What to do about a ROCm that has no code for the card yet, where the text tells of one.
    pub fn stack_older_than_card(&self, known: &Known<'_>) -> Option<String> {
        self.context.evidence.stack_older_than_card(known)
    }

    /// What to do about a decode that stands still.
    pub fn decode_that_stands(&self, known: &Known<'_>) -> Option<String> {
        self.context.evidence.decode_that_stands(known)
    }

    /// What the program computes with, by its own lines.
    pub fn backend_in_text(&self) -> Backend {
        self.context.evidence.facts().backend()
    }

    /// The actions that change nothing, because the program does so already.
    pub fn actions_in_force(&self, known: &Known<'_>) -> Vec<ActionId> {
        self.context.evidence.in_force(known)
    }
}
