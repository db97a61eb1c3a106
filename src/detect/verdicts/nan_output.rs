//! `nan_output` of a training: its loss is no number, step after step. It goes on to its
//! end all the same, and nothing of what it learned is left.

use crate::detect::facts::{Facts, Seen};

use std::time::Duration;

use crate::detect::rule::{Check, Grade, Signs, short, span};

/// Steps in a row: a scaler of losses may skip one.
const STEPS: u64 = 3;
use super::{Definition, rule};
use crate::model::{ActionId, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Output is NaN or black although the job \"succeeds\".",
    may_be_survived: true,
    failure: "the result holds no valid numbers",
    steps: |_, _| &[(ActionId::Fp32Upcast, 2)],
    advice: |_, _, _| {
        Some("the result is not valid: use float32 for the VAE or for attention".to_owned())
    },
    rules: &[rule(140, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    let Some(seen) = f.spoilt.filter(|s| is_loss(s) && s.count >= STEPS) else {
        return Check::clear("no loss that is no number");
    };
    Signs {
        verdict: VerdictId::NanOutput,
        grade: Grade::Fault,
        since: seen.first.at,
        limit: Duration::ZERO,
        sentence: format!(
            "the loss is no number in {} steps (\"{}\"): what is learned from here on is lost",
            seen.count,
            short(seen.last.text.trim_start())
        ),
        numbers: vec![format!(
            "{} steps in {}",
            seen.count,
            span(seen.last.at.since(seen.first.at))
        )],
        ruled_out: vec!["a hang: the steps go on".to_owned()],
        confidence: 0.9,
        cites: seen.cites(),
    }
    .unless_granted(f)
}

fn is_loss(seen: &Seen) -> bool {
    seen.last.text.to_lowercase().contains("loss")
}
