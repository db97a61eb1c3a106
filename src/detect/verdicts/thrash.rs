//! `thrash`: the host swaps. Much is read and written at once, threads wait in
//! uninterruptible sleep, and neither the CPU nor the card does much.

use crate::detect::facts::Facts;
use crate::detect::thresholds::secs;

use super::{Definition, Restart, advice, rule};
use crate::detect::rule::{Check, Grade, Signs, loads, span};
use crate::model::{ActionId, Phase, Severity, VerdictId};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The host swaps: high reads and writes together, threads in D state, little CPU and GPU work.",
    severity: Severity::Warn,
    job_may_live: true,
    restart: Restart::AfterFailure,
    explains_slowness: true,
    steps: |_, _| &[(ActionId::FreeMemory, 2)],
    advice: |_, facts, _| {
        facts
            .own
            .map(|work| advice::smaller_pieces(work).to_owned())
    },
    rules: &[rule(100, check)],
    ..Definition::fault()
};

fn check(f: &Facts<'_>) -> Check {
    if matches!(f.phase, Phase::Download | Phase::Save) {
        return Check::clear("files are being written by right");
    }
    let Some(since) = f.pressure.thrash.since else {
        return Check::clear("no heavy reads and writes together beside an idle CPU and card");
    };
    let c = f.channels.figures;
    let rate = |bps: Option<f64>| bps.unwrap_or_default() / 1e6;
    let mut numbers = vec![format!(
        "{:.0} MB/s read and {:.0} MB/s written",
        rate(c.read_bps),
        rate(c.write_bps)
    )];
    numbers.extend(
        f.pressure
            .d_state
            .map(|d| format!("{d:.0} threads wait for the disk")),
    );
    numbers.extend(loads(c));
    let psi = f.pressure.psi_mem.filter(|p| *p >= 1.0);
    numbers.extend(psi.map(|p| format!("tasks wait for memory {p:.0} % of the time")));
    Signs {
        verdict: VerdictId::Thrash,
        grade: Grade::Slow,
        since,
        limit: secs(f.t.thrash_s).mul_f64(f.soft_ratchet(VerdictId::Thrash)),
        sentence: format!(
            "the machine has been swapping for {}: memory is moved to disk and back instead of work being done ({})",
            span(f.now.since(since)),
            numbers.join(", ")
        ),
        numbers,
        ruled_out: vec![
            "model load: it reads and does not write".to_owned(),
            "download: nothing is fetched in this phase".to_owned(),
        ],
        confidence: 0.85,
        cites: Vec::new(),
    }
    .unless_granted(f)
}
