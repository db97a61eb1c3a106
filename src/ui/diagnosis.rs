//! A judgement in words, the same on screen, in plain text and when it is copied.

use std::fmt::Write;
use std::time::Duration;

use crate::model::event::{EvidenceReport, ItemState};
use crate::model::{
    ActionId, Bytes, Cite, CiteKind, Considered, Finding, Health, Mono, Phase, RuleState, Verdict,
    VerdictId,
};
use crate::run::Snapshot;
use crate::run::snapshot::{Mark, MarkKind, Raised};

use super::questions::asked;
use super::text::{ago, number};
use super::words::{self, Tone, gib};

/// What a rule said, in a word.
pub(super) const fn rule(state: RuleState) -> (&'static str, Tone) {
    match state {
        RuleState::Match => ("matched", Tone::Bad),
        RuleState::NotYet => ("not yet", Tone::Warn),
        RuleState::Clear => ("clear", Tone::Dim),
    }
}

/// `in vae_decode, section 1`.
pub(super) fn place(v: &Verdict) -> String {
    match (v.phase, v.section) {
        (Phase::Unknown, _) => "in no known phase".to_owned(),
        (phase, Some(n)) => format!("in {phase}, section {n}"),
        (phase, None) => format!("in {phase}"),
    }
}

/// Whether something went wrong, or may have: the numbers of a diagnosis make sense.
pub(super) const fn is_doubt(v: &Verdict) -> bool {
    matches!(
        v.health,
        Health::Slow | Health::Suspect | Health::Hung | Health::Failing | Health::Failed
    )
}

/// Whether the run is lost unless something is done.
pub(super) const fn is_fault(health: Health) -> bool {
    matches!(health, Health::Hung | Health::Failing | Health::Failed)
}

/// `silent_hang in vae_decode, section 1`; what the health says already is left out.
pub(super) fn what(v: &Verdict) -> String {
    match v.id {
        VerdictId::Healthy | VerdictId::Finished => place(v),
        id => format!("{id} {}", place(v)),
    }
}

/// Where a piece of evidence stands: `console line 412`.
pub(super) fn source(c: &Cite) -> String {
    let kind = match c.kind {
        CiteKind::Console => "console",
        CiteKind::Kernel => "kernel",
        CiteKind::Event => "event",
        CiteKind::Telemetry => "reading",
    };
    match c.line {
        Some(n) => format!("{kind} line {n}"),
        None => kind.to_owned(),
    }
}

/// How many events are behind a finding, and where the first stands.
pub(super) fn cited(f: &Finding) -> String {
    match f.cites.as_slice() {
        [] => match f.seqs.as_slice() {
            [] => String::new(),
            [one] => format!("event {one}"),
            [first, .., last] => format!("events {first}-{last}"),
        },
        [one] => source(one),
        [first, rest @ ..] => format!("{}, {} more", source(first), rest.len()),
    }
}

/// A limit: in seconds up to two minutes, so that two of them compare at a glance.
fn span(d: Duration) -> String {
    match d.as_secs() {
        s @ 0..120 => format!("{s} s"),
        _ => ago(d),
    }
}

/// `silent_hang: limit 42 s -> 63 s for this run`.
pub(super) fn raised(r: &Raised) -> String {
    match r.limit {
        Some((from, to)) => format!(
            "{}: limit {} -> {} for this run",
            r.verdict,
            span(from),
            span(to)
        ),
        None => format!("{}: limit raised for this run", r.verdict),
    }
}

fn bundle(e: &EvidenceReport) -> String {
    let got = e.items.iter().filter(|i| i.state() == ItemState::Ok);
    let got: Vec<_> = got.map(|i| i.kind.as_str()).collect();
    format!(
        "evidence {}: {} ({}, {})",
        e.number,
        got.join(" "),
        e.counts(),
        Bytes(e.bytes())
    )
}

/// What happened, in a sentence.
pub(super) fn mark(m: &Mark) -> String {
    match &m.kind {
        MarkKind::Attempt { number } => format!("attempt {number} began"),
        MarkKind::LastLine => "last line before the silence".to_owned(),
        MarkKind::Health {
            health,
            verdict,
            after,
        } => match health {
            Health::Healthy => "healthy again".to_owned(),
            _ => format!(
                "{} {verdict}, {} after the first sign",
                health.word(),
                ago(*after)
            ),
        },
        MarkKind::Kernel { words } => format!("kernel: {words}"),
        MarkKind::JobFailed => "the job failed".to_owned(),
        MarkKind::Evidence(e) => bundle(e),
        MarkKind::Signal { signal, reached } => {
            format!("{} sent, reached {reached}", signal.name())
        }
        MarkKind::Exit { status } => format!("the process ended: {status}"),
        MarkKind::Vram {
            used,
            took,
            complete,
        } => {
            let used = used.map_or_else(|| "--".to_owned(), gib);
            let took = number(took.as_secs_f64(), 1);
            match complete {
                true => format!("VRAM is back: {used} GiB in use after {took} s"),
                false => format!("VRAM did not come back in {took} s: {used} GiB in use"),
            }
        }
        MarkKind::Held => "held by you".to_owned(),
        MarkKind::Resumed => "what was announced is called off, or goes on".to_owned(),
        MarkKind::Wait => "60 s more, by you".to_owned(),
        MarkKind::FalseAlarm => "false alarm, by you".to_owned(),
    }
}

/// The same in a word or two, for the timeline.
pub(super) fn short_mark(m: &Mark) -> String {
    match &m.kind {
        MarkKind::Attempt { number } => format!("attempt {number}"),
        MarkKind::LastLine => "last line".to_owned(),
        MarkKind::Health {
            health: Health::Healthy,
            ..
        } => "ok".to_owned(),
        // told right at its first sign: the word says more
        MarkKind::Health { after, health, .. } if after.as_secs() == 0 => {
            health.word().to_lowercase()
        }
        MarkKind::Health { after, .. } => format!("+{}", span(*after)),
        MarkKind::Kernel { words } => words.clone(),
        MarkKind::JobFailed => "job failed".to_owned(),
        MarkKind::Evidence(_) => "dump".to_owned(),
        MarkKind::Signal { signal, .. } => signal.name().trim_start_matches("SIG").to_owned(),
        MarkKind::Exit { .. } => "exit".to_owned(),
        MarkKind::Vram { complete: true, .. } => "VRAM back".to_owned(),
        MarkKind::Vram { .. } => "VRAM kept".to_owned(),
        MarkKind::Held => "held".to_owned(),
        MarkKind::Resumed => "spared".to_owned(),
        MarkKind::Wait => "+60 s".to_owned(),
        MarkKind::FalseAlarm => "false alarm".to_owned(),
    }
}

/// Whether a mark is something that was done, for the list of what was.
pub(super) const fn was_done(m: &Mark) -> bool {
    !matches!(
        m.kind,
        MarkKind::Attempt { .. } | MarkKind::LastLine | MarkKind::Health { .. }
    )
}

fn considered(c: &Considered) -> String {
    match c.why.as_str() {
        "" => c.verdict.to_string(),
        why => format!("{}: {why}", c.verdict),
    }
}

/// The lines of a diagnosis, each with what it is about: verdict, reason, evidence, not
/// yet, ruled out, next. `ours`: the process was started by us.
pub(super) fn lines(v: &Verdict, declared: Mono, ours: bool) -> Vec<(&'static str, String)> {
    let mut out = vec![(
        "verdict",
        format!(
            "{} {}, confidence {}; first sign {}, declared {} ({} later)",
            v.health.word(),
            what(v),
            number(v.confidence, 2),
            v.onset.clock(),
            declared.clock(),
            ago(declared.since(v.onset)),
        ),
    )];
    out.push(("reason", v.sentence.clone()));
    for q in v.questions.iter().flat_map(|q| asked(q)) {
        out.push((q.name, q.words()));
    }
    for f in &v.findings {
        let times = match f.count {
            0 | 1 => String::new(),
            n => format!(" ({n} times)"),
        };
        out.push(("evidence", format!("{}{times}", f.text)));
    }
    // findings of one rule share their events
    let mut seen = Vec::new();
    for c in v.findings.iter().flat_map(|f| &f.cites) {
        if !seen.contains(&(c.seq, c.kind)) {
            seen.push((c.seq, c.kind));
            let text = format!("{} at {}: {}", source(c), c.at.clock(), c.text);
            out.push(("evidence", text));
        }
    }
    for text in &v.ruled_out {
        out.push(("ruled out", text.clone()));
    }
    let (not_asked, asked): (Vec<_>, Vec<_>) = v.considered.iter().partition(|c| c.is_not_asked());
    if let Some(first) = not_asked.first() {
        let why = first.why.trim_start_matches(Considered::NOT_ASKED);
        out.push(("not asked", format!("{} rules: {why}", not_asked.len())));
    }
    for c in asked {
        let told = v
            .ruled_out
            .iter()
            .any(|r| r.starts_with(c.verdict.as_str()));
        match c.state {
            RuleState::Match => {}
            RuleState::NotYet => out.push(("not yet", considered(c))),
            RuleState::Clear if told => {}
            RuleState::Clear => out.push(("ruled out", considered(c))),
        }
    }
    let remedy = v.remedy.as_ref();
    if let Some(r) = remedy.filter(|r| r.action != ActionId::None) {
        let how = words::unasked(r.auto_restart, ours);
        out.push((
            "next",
            format!("{} (tier {}, {how}). {}", r.action, r.tier, r.why),
        ));
    } else if v.action != ActionId::None {
        out.push(("next", v.action.to_string()));
    }
    out
}

/// The whole diagnosis as text to be pasted elsewhere.
pub(super) fn text(s: &Snapshot, v: &Verdict, declared: Mono) -> String {
    let mut out = format!(
        "framepack-tui run {} at {}\ncommand: {}\n",
        s.run,
        s.now.clock(),
        s.argv.join(" ")
    );
    if s.attached {
        out.push_str("watched: a process that was there before, and is not ours\n");
    } else if let Some(a) = &s.attempt {
        let _ = writeln!(out, "attempt: {} on rung {}", a.number, a.rung);
    }
    let mut add = |about: &str, words: &str| {
        let words = super::text::clean(words, false);
        let _ = writeln!(out, "{about}: {words}");
    };
    for (about, words) in lines(v, declared, !s.attached) {
        add(about, &words);
    }
    for m in s.trail.marks.iter().filter(|m| was_done(m)) {
        add("taken", &format!("{} {}", m.at.clock(), mark(m)));
    }
    for r in &s.trail.raised {
        add("limit", &raised(r));
    }
    let (head, stage, _) = words::stage(s);
    add("now", format!("{head} {stage}").trim_end());
    if let Some(why) = &s.decision {
        add("why", why);
    }
    out
}

/// The command that makes a bundle of a run.
pub(super) fn export_command(s: &Snapshot) -> String {
    format!("framepack-tui runs export {}", s.run)
}
