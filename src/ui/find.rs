//! An open Find in words, the same on screen and in plain text.

use std::time::Duration;

use crate::model::{FindState, Mono};

use super::text::{left, number};

/// A time of a kernel: `4.2 ms`, `8.1 s`.
pub(super) fn kernel_time(ms: f64) -> String {
    match ms {
        1000.0.. => format!("{} s", number(ms / 1000.0, 1)),
        10.0.. => format!("{} ms", number(ms, 0)),
        _ => format!("{} ms", number(ms, 1)),
    }
}

/// How far a tuning is: `12/45`, or `194 left`.
pub(super) fn tuned(find: &FindState) -> Option<String> {
    match (find.tried, find.total, find.left) {
        (Some(tried), Some(total), _) => Some(format!("{tried}/{total}")),
        (_, _, Some(left)) => Some(format!("{left} left")),
        _ => None,
    }
}

/// When the tuning ends by its own estimate, which was made at its last advance.
pub(super) fn eta(find: &FindState, now: Mono) -> Option<String> {
    let told = Duration::try_from_secs_f64(find.eta_s?).ok()?;
    match told.checked_sub(now.since(find.advanced)) {
        Some(rest) => Some(format!("ETA {}", left(rest))),
        None => Some("ETA passed".to_owned()),
    }
}

/// The time of the solver at hand against the best: `41 ms`, `best 4.2 ms`.
pub(super) fn times(find: &FindState) -> (Option<String>, Option<String>) {
    let best = find.best_ms.map(|t| format!("best {}", kernel_time(t)));
    (find.ms.map(kernel_time), best)
}

/// `conv3d fp16 1x96x6x482x834, 3x3x3 to 96: ConvHip…, 12/45, best 4.2 ms, ETA 90 s`.
pub(super) fn line(find: &FindState, now: Mono) -> String {
    let solver = find.solver.as_deref().unwrap_or("no solver named yet");
    let (ms, best) = times(find);
    let parts = [tuned(find), ms, best, eta(find, now)];
    let parts = std::iter::once(solver.to_owned()).chain(parts.into_iter().flatten());
    format!("{}: {}", find.what(), parts.collect::<Vec<_>>().join(", "))
}
