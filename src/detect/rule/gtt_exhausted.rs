//! `gtt_exhausted`: an APU's mapped memory is near its limit while the host has more.
//! That alone is no failure: the program's error text is.

use std::time::Duration;

use crate::detect::facts::Facts;
use crate::model::VerdictId;

use super::{Check, Grade, Signs};

pub(super) fn check(f: &Facts<'_>) -> Check {
    let p = f.pressure;
    let Some(gtt) = p.gtt.filter(|_| p.apu) else {
        return Check::clear("not an APU, or its mapped memory cannot be read");
    };
    if gtt.share() < f.t.gtt_full_share {
        return Check::Clear(format!("{:.0} % of the limit mapped", 100.0 * gtt.share()).into());
    }
    let host = p.available.map(|a| format!("{a:.0} MiB free in the host"));
    let mut numbers = vec![format!(
        "{:.0} of {:.0} MiB that may be mapped",
        gtt.used, gtt.total
    )];
    numbers.extend(host);
    Check::NotYet(Signs {
        verdict: VerdictId::GttExhausted,
        grade: Grade::Slow,
        since: f.now,
        limit: Duration::ZERO,
        sentence: format!(
            "the memory that the card may map is used up: {}",
            numbers[0]
        ),
        numbers,
        ruled_out: Vec::new(),
        confidence: 0.5,
        cites: Vec::new(),
    })
}
