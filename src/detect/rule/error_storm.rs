//! A known error again and again, and no progress: the program neither dies nor goes
//! on. The lines themselves are no sign of life, nor is the core that prints them.

use crate::detect::facts::Facts;

use super::{Check, Grade, Signs, span};

pub(in crate::detect) fn check(f: &Facts<'_>) -> Check {
    let Some(seen) = f.seen.filter(|s| count(s.count) >= f.t.storm_count) else {
        return Check::clear("no known error again and again");
    };
    let c = &f.channels;
    // an allocator that recovers lets the card or the transfers go on
    let since = seen
        .first
        .at
        .max(f.movement.last_word())
        .max(f.movement.last_transfer())
        .max(c.gpu_hard.active);
    if f.works_elsewhere() || f.now.since(since) < f.silence_limit().mul_f64(f.t.storm_sign_share) {
        return Check::clear("the job advances beside the error");
    }
    Signs {
        verdict: seen.verdict,
        grade: Grade::Hang,
        since,
        limit: f.silence_limit(),
        sentence: format!(
            "\"{}\" came {} times, and nothing has advanced for {}",
            super::short(&seen.last.text),
            seen.count,
            span(f.now.since(since))
        ),
        numbers: vec![format!(
            "{} copies in {}",
            seen.count,
            span(seen.last.at.since(seen.first.at))
        )],
        ruled_out: vec![
            "an error that was survived: no step, transfer or work of the card followed".to_owned(),
        ],
        confidence: 0.9,
        cites: seen.cites(),
    }
    .against_limit(f.now)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for a threshold")]
const fn count(n: u64) -> f64 {
    n as f64
}
