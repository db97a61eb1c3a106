//! `busy_idle`: the card claims full work at the power of an idle one, and nothing
//! else moves. A busy counter that stays at 100 % is known from RDNA3 and RDNA4.

use std::time::Duration;

use crate::detect::facts::Facts;
use crate::model::VerdictId;

use super::{Check, Signs, span};

const LIMIT: Duration = Duration::from_mins(1);
const FIRST_SIGN: Duration = Duration::from_secs(20);

pub(super) fn check(f: &Facts<'_>) -> Check {
    let c = &f.channels;
    let Some(contradiction) = c.contradiction_since else {
        return Check::Clear;
    };
    let since = contradiction.max(c.last_word());
    // an open Find is judged by its own clock
    if f.find.is_some() || f.now.since(since) < FIRST_SIGN {
        return Check::Clear;
    }
    let busy = c.figures.busy.unwrap_or_default();
    let power = c.figures.power.unwrap_or_default();
    Signs {
        verdict: VerdictId::BusyIdle,
        since,
        limit: LIMIT.mul_f64(f.ratchet),
        sentence: format!(
            "the card claims {busy:.0} % but draws {power:.0} W, far below its own level at work, and no step has ended for {}",
            span(f.now.since(since))
        ),
        numbers: vec![format!("GPU {busy:.0} % at {power:.0} W")],
        ruled_out: vec!["honest work: power would follow".to_owned()],
        confidence: 0.85,
        seqs: Vec::new(),
    }
    .against_limit(f.now)
}
