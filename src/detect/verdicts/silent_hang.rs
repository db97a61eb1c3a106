//! `silent_hang`: a job is in flight, it does not move, and what its thread waits for can
//! be a hang. Also the download that receives nothing.

use std::time::Duration;

use crate::detect::facts::{Facts, Seen};
use crate::detect::thresholds::secs;

use super::{Definition, Depth, RemedyFacts, Restart, Scope, Step, rule, steps};
use crate::detect::rule::op_stuck;
use crate::detect::rule::{Check, Grade, Signs, short, span, untrusted};
use crate::model::{ActionId, Phase, Vendor, VerdictId, WaitsFor};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "A job is in flight, no output, and the process tree does nothing (cpu, io about 0) beyond the phase's budget.",
    restart: Restart::Always,
    wants_rung: Some(Scope::Anywhere),
    depth: Depth::Standstill,
    steps: steps_of,
    advice: |_, _, action| (action == ActionId::EnvToggle).then(|| COPYING.to_owned()),
    rules: &[rule(10, check), rule(60, op_stuck::check)],
    ..Definition::fault()
};

/// What points to ROCm's copy engines.
const COPYING: &str = "a model was being moved between host and card as everything stopped, so ROCm's copy engines are the first suspect: start it once more without them";

fn steps_of(phase: Phase, facts: &RemedyFacts) -> &'static [Step] {
    if steps::is_decode(phase) {
        if facts.backend.beside_rocm().is_some() {
            steps::SMALLER_DECODE
        } else {
            steps::DECODE
        }
    } else if facts.vendor == Some(Vendor::Nvidia) {
        // no variable is known that cures a hang of a CUDA program
        steps::RETRY
    } else if facts.copies || phase == Phase::Offload {
        &[(ActionId::EnvToggle, 1)]
    } else {
        steps::RETRY
    }
}

fn check(f: &Facts<'_>) -> Check {
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
        let (_, source) = f.movement.last();
        return Check::Clear(format!("{} ({} ago)", source.words(), span(silent)).into());
    }
    // an error in the text that nothing followed explains the silence
    let verdict = f
        .seen
        .map_or_else(|| unexplained(f, first_sign), |s| s.verdict);
    let grade = match can_be_a_hang(f, verdict) {
        Ok(grade) => grade,
        Err(why) => return Check::Clear(why.into()),
    };
    Signs {
        verdict,
        grade,
        since: f.movement.last().0,
        limit,
        sentence: sentence(f, silent),
        numbers: numbers(f),
        ruled_out: vec![
            "model load: no bytes of the job flow".to_owned(),
            "kernel compile: no compiler of the tree uses CPU".to_owned(),
            "server waiting for its user: a job is in flight".to_owned(),
        ],
        confidence: confidence(f),
        cites: f.seen.map_or_else(|| f.beat_cites(), Seen::cites),
    }
    .unless_granted(f)
}

/// Whether the wait of the holder can be a hang; else what it waits for.
fn can_be_a_hang(f: &Facts<'_>, verdict: VerdictId) -> Result<Grade, String> {
    let waits = &f.waits;
    let on = || waits.detail.clone().unwrap_or_default();
    if verdict == VerdictId::DownloadStall {
        // a network comes back; a start from nothing costs what was fetched
        let long = f.silent_for() >= secs(f.t.download_restart_s);
        return Ok(if long { Grade::Hang } else { Grade::Slow });
    }
    if f.only_loaded {
        return Err("a model is loaded, and no step or pipeline call has begun".to_owned());
    }
    match waits.answer {
        WaitsFor::Card | WaitsFor::Itself | WaitsFor::Kernel | WaitsFor::Process => Ok(Grade::Hang),
        // read, but of nobody that is known: where all may be over it waits for its next order
        WaitsFor::Unknown if f.between_phases && waits.within.is_some() => Err(format!(
            "nothing of the job is open, and its thread waits in {} for something outside",
            waits.within.as_deref().unwrap_or_default()
        )),
        // a total at rest is evidence about each of its parts; one that moves is not
        WaitsFor::Unknown | WaitsFor::None => {
            let rest = f.totals_rest_for();
            if rest >= f.silent_for().min(f.silence_limit()) {
                Ok(Grade::Hang)
            } else {
                Err(format!(
                    "what the job's thread waits for cannot be read, and the tree moved {} ago",
                    span(rest)
                ))
            }
        }
        WaitsFor::Lock if f.lock_is_orphaned => Ok(Grade::Hang),
        WaitsFor::Lock => Err(format!("the job waits for a lock: {}", on())),
        WaitsFor::Peer => Err(format!("the job waits for a peer: {}", on())),
        WaitsFor::Client => Err(format!("the job's thread waits for a client: {}", on())),
        WaitsFor::Time => Err("the job's thread sleeps".to_owned()),
        WaitsFor::Person => Err("the job's thread waits for a person at a terminal".to_owned()),
    }
}

fn sentence(f: &Facts<'_>, silent: Duration) -> String {
    if let Some(seen) = f.seen {
        return format!(
            "after \"{}\" ({} x) the program stopped moving",
            short(&seen.last.text),
            seen.count
        );
    }
    if f.phase == Phase::Download {
        return format!("a download has received nothing for {}", span(silent));
    }
    let beside = if f.totals_rest_for() < silent.min(f.silence_limit()) {
        "; what else the program does is not the job's"
    } else {
        ""
    };
    format!(
        "a job is in flight in {} and has not moved for {}: no GPU work, no CPU time of its thread, no bytes, no step{}{}{beside}",
        f.phase,
        span(silent),
        wait_clause(f),
        f.agent.clause(f.now)
    )
}

/// What the holder waits in, for a sentence.
fn wait_clause(f: &Facts<'_>) -> String {
    let waits = &f.waits;
    let (Some(tid), Some(within)) = (waits.tid, waits.within.as_deref()) else {
        return String::new();
    };
    let on = waits.detail.as_deref();
    let on = on.map(|d| format!(" ({d})")).unwrap_or_default();
    format!("; its thread {tid} waits in {within}{on}")
}

fn numbers(f: &Facts<'_>) -> Vec<String> {
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
        use crate::detect::movement::Source;
        numbers.push(format!(
            "CPU {cpu:.1} %, the job's thread did no work for {}",
            span(f.now.since(f.movement.at(Source::Cpu)))
        ));
    }
    numbers.push(format!(
        "no bytes of the job for {}",
        span(f.now.since(f.movement.last_transfer()))
    ));
    numbers.push(format!(
        "no output for {}",
        span(f.now.since(c.output.active))
    ));
    numbers.extend(f.agent.numbers(f.now));
    numbers
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

/// More channels that agree, more confidence; never certainty, and less where nobody can
/// tell what the holder waits for.
fn confidence(f: &Facts<'_>) -> f64 {
    let c = &f.channels;
    let live = [&c.gpu, &c.memory, &c.cpu, &c.faults, &c.io]
        .iter()
        .filter(|ch| ch.live(f.now, f.t))
        .count();
    let by_channels = match live {
        5 => 0.97,
        4 => 0.95,
        3 => 0.9,
        _ => 0.8,
    };
    match f.waits.answer {
        WaitsFor::Card | WaitsFor::Itself | WaitsFor::Kernel => by_channels,
        _ if f.probed => f64::min(by_channels, 0.9),
        _ => by_channels,
    }
}
