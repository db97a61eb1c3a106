//! `silent_hang`: a job is in flight and nothing moves on any channel.

use std::time::Duration;

use crate::detect::facts::{Facts, Seen};
use crate::detect::thresholds::secs;
use crate::model::{Phase, VerdictId};

use super::{Check, Grade, Signs, short, span, untrusted};

pub(super) fn check(f: &Facts<'_>) -> Check {
    let silent = f.silent_for();
    let limit = f.silence_limit();
    // a network dips, and a dip is no sign of anything
    let first_sign = if f.phase == Phase::Download {
        limit.saturating_sub(secs(f.t.silence_sign_s))
    } else {
        secs(f.t.silence_sign_s)
    };
    // a card that claims full work is no silence: `busy_idle` judges that
    if f.channels.contradiction_since.is_some() {
        return Check::clear("the card claims full work");
    }
    if silent < first_sign {
        return Check::Clear(format!("something moved {} ago", span(silent)).into());
    }
    let c = &f.channels;
    let mut numbers = Vec::new();
    if let Some(busy) = c.figures.busy {
        numbers.push(format!(
            "GPU {busy:.0} % for {}",
            span(f.now.since(c.gpu.active))
        ));
    }
    numbers.extend(untrusted(f));
    if let Some(power) = c.figures.power {
        numbers.push(format!("{power:.0} W, the level of an idle card"));
    }
    if let Some(cpu) = c.figures.cpu_percent {
        numbers.push(format!(
            "CPU {cpu:.1} %, no working thread ran for {}",
            span(f.now.since(c.cpu.active))
        ));
    }
    numbers.push(format!(
        "no bytes read or written for {}",
        span(f.now.since(c.io.active))
    ));
    numbers.push(format!(
        "no output for {}",
        span(f.now.since(c.output.active))
    ));
    numbers.extend(f.agent.numbers(f.now));
    // an error in the text that nothing followed explains the silence
    let verdict = f
        .seen
        .map_or_else(|| unexplained(f, first_sign), |s| s.verdict);
    let sentence = match f.seen {
        Some(seen) => format!(
            "after \"{}\" ({} x) the program stopped moving",
            short(&seen.last.text),
            seen.count
        ),
        None => format!(
            "a job is in flight in {} and nothing has moved for {}: no GPU work, no CPU, no I/O, no output{}",
            f.phase,
            span(silent),
            f.agent.clause(f.now)
        ),
    };
    Signs {
        verdict,
        grade: Grade::Hang,
        since: c.last_activity(),
        limit,
        sentence,
        numbers,
        ruled_out: vec![
            "model load: no bytes flow".to_owned(),
            "kernel compile: no CPU, no compiler".to_owned(),
            "server waiting for its user: a job is in flight".to_owned(),
        ],
        confidence: confidence(f),
        cites: f.seen.map_or_else(|| f.beat_cites(), Seen::cites),
    }
    .against_limit(f.now)
}

/// What the silence is that no error explains.
fn unexplained(f: &Facts<'_>, first_sign: Duration) -> VerdictId {
    if f.phase == Phase::Download {
        return VerdictId::DownloadStall;
    }
    // kernels run after the call that launched them: who hangs inside it searches
    let searches = f.conv_on_card().is_some_and(|(_, age)| age >= first_sign);
    if searches {
        VerdictId::FindStall
    } else {
        VerdictId::SilentHang
    }
}

/// More channels that agree, more confidence; never certainty.
fn confidence(f: &Facts<'_>) -> f64 {
    let c = &f.channels;
    let live = [&c.gpu, &c.memory, &c.cpu, &c.faults, &c.io]
        .iter()
        .filter(|ch| ch.live(f.now, f.t))
        .count();
    match live {
        5 => 0.97,
        4 => 0.95,
        3 => 0.9,
        _ => 0.8,
    }
}
