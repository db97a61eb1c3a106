//! What a diagnosis shows besides the readings, for the states that a user meets. All
//! figures are invented.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{
    ActionId, Answer, Answered, Bytes, Cite, CiteKind, Considered, Finding, Health, Mono, Phase,
    Questions, Remedy, RuleState, Signal, Verdict, VerdictId, Waits, WaitsFor,
};
use crate::run::Snapshot;
use crate::run::snapshot::{Lack, Lapse, Mark, MarkKind, Quantity, Raised, ShownState, Trail};

use super::base::evidence;

fn secs(t: u64) -> Mono {
    Mono::from_secs(t)
}

/// A verdict of a moment without its reasons.
fn brief(id: VerdictId, health: Health, onset: u64) -> Verdict {
    Verdict {
        id,
        health,
        phase: Phase::VaeDecode,
        section: Some(1),
        confidence: 0.9,
        onset: secs(onset),
        sentence: "The decode showed no activity of any kind.".to_owned(),
        findings: Vec::new(),
        considered: considered(id),
        remedy: None,
        ruled_out: Vec::new(),
        action: ActionId::None,
        next: None,
        questions: None,
        cause: None,
    }
}

fn state(at: u64, verdict: Verdict) -> ShownState {
    ShownState {
        at: secs(at),
        verdict: Arc::new(verdict),
    }
}

fn mark(at: u64, kind: MarkKind) -> Mark {
    Mark { at: secs(at), kind }
}

fn health(at: u64, health: Health, after: u64) -> Mark {
    let kind = MarkKind::Health {
        health,
        verdict: VerdictId::SilentHang,
        after: Duration::from_secs(after),
    };
    mark(at, kind)
}

/// Every second of some, two a second before a moment and none after.
fn output(from: u64, to: u64) -> Arc<VecDeque<Mono>> {
    Arc::new((from * 1000..=to * 1000).step_by(700).map(Mono).collect())
}

/// The rules that were asked, that of `id` matching.
pub(super) fn considered(id: VerdictId) -> Vec<Considered> {
    use VerdictId as V;
    let rule = |verdict: V, why: &str| Considered {
        verdict,
        state: if verdict == id {
            RuleState::Match
        } else {
            RuleState::Clear
        },
        why: why.to_owned(),
    };
    let mut rules = vec![
        rule(V::SilentHang, "quiet for 52 s, limit 42 s"),
        rule(V::GpuOom, "headroom 6.2 GiB"),
        rule(V::BusyIdle, "power follows busy"),
        rule(V::FindStall, "no search is open"),
        rule(V::BlockAllocator, "no such line"),
        rule(V::GpuReset, "no reset in the kernel log"),
        rule(V::Thrash, "psi mem 0.0"),
    ];
    rules.sort_by_key(|c| c.state != RuleState::Match);
    rules
}

/// The findings of a silent hang with what they rest on.
pub(super) fn silent_findings(since: Mono, silent_s: u64) -> Vec<Finding> {
    let cites = vec![
        Cite {
            seq: 4182,
            at: since,
            kind: CiteKind::Console,
            line: Some(412),
            text: "latent_padding_size = 18, is_last_section = False".to_owned(),
        },
        Cite::reading(
            4391,
            since + Duration::from_secs(silent_s),
            "GPU 0 %, CPU 0 %, 0 bytes read or written".to_owned(),
        ),
    ];
    let finding = |text: String| Finding {
        verdict: VerdictId::SilentHang,
        text,
        seqs: vec![4182, 4391],
        cites: cites.clone(),
        count: 1,
    };
    vec![
        finding(format!("GPU busy below 2 % for {silent_s} s")),
        finding(format!("CPU below 0.5 % for {silent_s} s")),
        finding(format!("no byte read or written for {silent_s} s")),
        finding(format!("vae_decode for {silent_s} s, limit 42 s")),
    ]
}

/// Of a run that hung once and came home by a restart.
pub(super) fn restarted() -> Trail {
    use VerdictId as V;
    let failed = Mark {
        at: secs(682),
        kind: MarkKind::Vram {
            used: Some(Bytes::mib(410)),
            took: Duration::from_millis(1_800),
            complete: true,
        },
    };
    Trail {
        states: Arc::new(VecDeque::from([
            state(1, brief(V::Healthy, Health::Starting, 0)),
            state(40, brief(V::Healthy, Health::Healthy, 40)),
            state(637, brief(V::SilentHang, Health::Suspect, 620)),
            state(672, brief(V::SilentHang, Health::Hung, 620)),
            state(685, brief(V::Healthy, Health::Starting, 685)),
            state(690, brief(V::Healthy, Health::Healthy, 690)),
        ])),
        marks: Arc::new(VecDeque::from([
            mark(0, MarkKind::Attempt { number: 1 }),
            mark(620, MarkKind::LastLine),
            health(637, Health::Suspect, 17),
            health(672, Health::Hung, 52),
            mark(673, MarkKind::Evidence(evidence(1, 1))),
            mark(
                675,
                MarkKind::Signal {
                    signal: Signal::Term,
                    reached: 2,
                },
            ),
            failed,
            mark(685, MarkKind::Attempt { number: 2 }),
        ])),
        output: output(690, 870),
        ..Trail::default()
    }
}

/// Silent since; the last state as in `s`.
pub(super) fn silent(s: &Snapshot, onset: Mono) -> Trail {
    use VerdictId as V;
    let since = onset.0 / 1000;
    let mut states = vec![
        state(1, brief(V::Healthy, Health::Starting, 0)),
        state(40, brief(V::Healthy, Health::Healthy, 40)),
    ];
    let mut marks = vec![
        mark(0, MarkKind::Attempt { number: 1 }),
        mark(since, MarkKind::LastLine),
    ];
    let (at, mut verdict) = (s.verdict_since, s.verdict.clone());
    verdict.health = Health::Suspect;
    if at.0 / 1000 > since + 17 || s.verdict.health == Health::Suspect {
        states.push(state(since + 17, verdict));
        marks.push(health(since + 17, Health::Suspect, 17));
    }
    if s.verdict.health != Health::Suspect {
        states.push(ShownState {
            at,
            verdict: Arc::new(s.verdict.clone()),
        });
        let seconds = at.0 / 1000;
        marks.push(health(seconds, s.verdict.health, seconds - since));
    }
    Trail {
        states: Arc::new(states.into()),
        marks: Arc::new(marks.into()),
        output: output(600, since),
        ..Trail::default()
    }
}

/// A further state, with its mark.
pub(super) fn then(trail: &mut Trail, at: Mono, verdict: &Verdict) {
    let shown = ShownState {
        at,
        verdict: Arc::new(verdict.clone()),
    };
    Arc::make_mut(&mut trail.states).push_back(shown);
    let kind = MarkKind::Health {
        health: verdict.health,
        verdict: verdict.id,
        after: Duration::ZERO,
    };
    Arc::make_mut(&mut trail.marks).push_back(Mark { at, kind });
}

/// Readings that are missing: stale, failed, not offered.
pub(super) fn lapses(now: Mono) -> Arc<VecDeque<Lapse>> {
    let lapse = |what, secs, lack| Lapse {
        what,
        from: now - Duration::from_secs(secs),
        to: None,
        since: now - Duration::from_secs(secs),
        lack,
    };
    let failed = Lack::Failed {
        why: "Input/output error".to_owned(),
    };
    Arc::new(VecDeque::from([
        lapse(Quantity::Busy, 12, failed),
        lapse(Quantity::Power, 4, Lack::Stale),
        lapse(Quantity::Memory, 4, Lack::Stale),
        lapse(Quantity::Io, 200, Lack::Absent),
    ]))
}

/// A limit that the user raised.
pub(super) fn raised(at: u64) -> Raised {
    Raised {
        at: secs(at),
        verdict: VerdictId::SilentHang,
        limit: Some((Duration::from_secs(42), Duration::from_secs(63))),
    }
}

/// What follows from a failed allocation.
pub(super) fn smaller_tiles() -> Remedy {
    Remedy {
        action: ActionId::TiledVae,
        tier: 2,
        auto_restart: true,
        env: std::collections::BTreeMap::new(),
        why: "decode in tiles: 6.4 GiB at once do not fit beside 17.8 GiB".to_owned(),
    }
}

/// An error text that was read on the console.
pub(super) fn oom_finding(at: Mono) -> Finding {
    let text = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 6.40 GiB. GPU 0 has a total capacity of 23.98 GiB of which 5.11 GiB is free.";
    Finding {
        verdict: VerdictId::GpuOom,
        text: "an allocation of 6.40 GiB failed with 5.11 GiB free".to_owned(),
        seqs: vec![5120],
        cites: vec![Cite {
            seq: 5120,
            at,
            kind: CiteKind::Console,
            line: Some(731),
            text: text.to_owned(),
        }],
        count: 2,
    }
}

/// The three questions of a job that has been stuck in a call of the driver since `onset`.
pub(super) fn stuck(onset: Mono, silent_s: u64) -> Questions {
    let since_s = Some(Duration::from_millis(onset.0).as_secs_f64());
    Questions {
        job: Answered::new(Answer::Yes, "the agent reports a job", Some(34.0)),
        moves: Answered::new(
            Answer::No,
            format!("a step {silent_s} s ago, and nothing of the job since"),
            since_s,
        ),
        waits: Waits {
            answer: WaitsFor::Card,
            pid: Some(4711),
            tid: Some(4733),
            within: Some("ioctl".to_owned()),
            detail: Some("/dev/kfd".to_owned()),
            for_s: Some(44.0),
        },
    }
}
