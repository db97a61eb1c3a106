//! The second net: an operation of the card that has been in flight on a resting card for
//! several minutes is slow, and after twice that time hung, whatever else goes on in the
//! process. It never delays the limits of the other rules.

use crate::detect::facts::Facts;
use crate::detect::thresholds::secs;
use crate::model::VerdictId;

use super::{Check, Grade, Signs, span};

pub(in crate::detect) fn check(f: &Facts<'_>) -> Check {
    let Some((op, age)) = f.agent.op(f.now).filter(|(op, _)| op.is_on_card()) else {
        return Check::clear("no operation of the card is in flight");
    };
    let works = f.now.since(f.channels.gpu.active);
    if !f.channels.gpu_expected || works < age {
        return Check::clear("the card has worked since the operation began, or cannot be read");
    }
    let longest = f.agent.longest_op(&op.name).mul_f64(f.t.op_slow_factor);
    let slow = secs(f.t.op_slow_s).max(longest).mul_f64(f.ratchet);
    let hung = age >= slow * 2;
    let verdict = if f.conv_on_card().is_some() {
        VerdictId::FindStall
    } else {
        VerdictId::SilentHang
    };
    Signs {
        verdict: if hung { verdict } else { VerdictId::Crawl },
        grade: if hung { Grade::Hang } else { Grade::Slow },
        since: crate::model::Mono(f.now.0.saturating_sub(crate::model::time::millis(age))),
        limit: if hung { slow * 2 } else { slow },
        sentence: format!(
            "{} has been in flight for {} while the card rests",
            op.words(),
            span(age)
        ),
        numbers: vec![format!("in flight for {}: {}", span(age), op.words())],
        ruled_out: vec!["a long kernel: the card does not work".to_owned()],
        confidence: 0.85,
        cites: f.beat_cites(),
    }
    .unless_granted(f)
}
