//! Events in a line of words each.

use crate::model::event::{Choice, Decision, EvidenceReport, GUARDIAN_LOST, ItemState, Level};
use crate::model::progress::PhaseChange;
use crate::model::{
    AttemptSpec, Command, EnvOrigin, Event, Health, JobChange, Mono, Outcome, Scope, Verdict,
    VerdictId,
};
use crate::run::snapshot::kernel_fault;
use crate::ui::text::{self, ago, left, number};
use crate::ui::words::{self, gib};

use std::time::Duration;

/// `2 on rung fast_find (fast_find, tier 1): MIOPEN_FIND_MODE=2 (overrides 1)`.
pub(super) fn attempt(a: &AttemptSpec) -> String {
    let what = if a.number > 1 {
        format!(" ({}, tier {})", a.action, a.tier)
    } else {
        String::new()
    };
    let text = format!("{} on rung {}{what}", a.number, a.rung);
    // What we set for ourselves is of no interest here; the record has it.
    let told = a
        .env
        .iter()
        .filter(|e| !matches!(e.origin, EnvOrigin::Supervisor));
    let env: Vec<_> = told
        .map(|e| {
            let value = e.value.as_ref().map_or_else(
                || format!("{} removed", e.name),
                |v| format!("{}={v}", e.name),
            );
            match &e.overrides {
                Some(before) => format!("{value} (overrides {before})"),
                None => value,
            }
        })
        .collect();
    if env.is_empty() {
        text
    } else {
        format!("{text}: {}", env.join(", "))
    }
}

/// A process that was there before us.
pub(super) fn watched(pid: u32) -> String {
    format!("process {pid} is watched; it is ended on your word alone")
}

pub(super) fn phase(p: &PhaseChange) -> String {
    let section = match (p.section, p.sections) {
        (Some(n), Some(all)) => format!(", section {n} of {all}"),
        (Some(n), None) => format!(", section {n}"),
        (None, _) => String::new(),
    };
    let cpu = if p.on_cpu {
        ", on the CPU: GPU 0 % is right"
    } else {
        ""
    };
    format!("{}{section}{cpu}", p.phase)
}

/// `SUSPECT silent_hang (confidence 0.62) in vae_decode: …; next: … in 25 s`.
pub(super) fn verdict(at: Mono, v: &Verdict) -> String {
    let sure = match v.health {
        Health::Slow | Health::Suspect | Health::Hung | Health::Failing | Health::Failed => {
            format!(" (confidence {})", number(v.confidence, 2))
        }
        _ => String::new(),
    };
    let next = v.next.as_ref().map_or_else(String::new, |next| {
        format!(" Next: {} in {}.", next.what, left(next.at.since(at)))
    });
    // it would only repeat the health, or contradict it
    let id = match v.id {
        VerdictId::Healthy => String::new(),
        id => format!(" {id}"),
    };
    format!(
        "{}{id}{sure} in {}: {}",
        v.health.word(),
        v.phase,
        match next.as_str() {
            "" => v.sentence.clone(),
            next => format!("{}{next}", text::sentence(&v.sentence)),
        }
    )
}

/// What was decided; `ours`: the process was started by us, so that restarts are counted.
pub(super) fn decision(at: Mono, d: &Decision, ours: bool) -> String {
    let what = match &d.choice {
        Choice::Restart { rung, kill_at, .. } if *kill_at > at => {
            format!(
                "kill in {} and restart on rung {rung}",
                left(kill_at.since(at))
            )
        }
        Choice::Restart { rung, .. } => format!("kill now and restart on rung {rung}"),
        Choice::GiveUp => "give up".to_owned(),
        Choice::Advise => "advice only".to_owned(),
        Choice::Hold => "held; nothing happens until it is released".to_owned(),
        Choice::Resume => "the attempt goes on".to_owned(),
    };
    let why = text::sentence(&d.why);
    match d.restarts_left {
        _ if !ours => format!("{what}. {why}"),
        1 => format!("{what}. {why} 1 restart left."),
        n => format!("{what}. {why} {n} restarts left."),
    }
}

fn evidence(e: &EvidenceReport) -> String {
    let lacking = e.items.iter().filter_map(|i| {
        let why = i.failed.as_ref()?;
        let word = match i.state() {
            ItemState::Absent => "absent",
            ItemState::Ok | ItemState::Failed => "failed",
        };
        Some(format!("; {} {word}: {why}", i.kind))
    });
    format!(
        "{} in {} ({}, {}, {} ms){}",
        e.number,
        e.dir,
        e.counts(),
        crate::model::Bytes(e.bytes()),
        e.took_ms,
        lacking.collect::<String>()
    )
}

pub(super) fn end(outcome: &Outcome, exit_code: u8, summary: &str) -> String {
    let word = match outcome {
        Outcome::Finished { .. } => "finished",
        Outcome::Failed => "failed",
        Outcome::GaveUp => "gave up",
        Outcome::Unkillable { .. } => "processes survive",
        Outcome::NotLaunched { .. } => "could not be started",
        Outcome::Interrupted { .. } => "ended by the user",
        Outcome::Left => "left",
        Outcome::Ended => "the process has ended",
        Outcome::LeftoversEnded { .. } => "left-over processes ended",
        Outcome::ResultKept => "the result is kept, the process was ended",
        Outcome::CardHeld { .. } => "the card is held by an earlier run",
    };
    format!("{word}, exit code {exit_code}. {summary}")
}

fn command(c: &Command) -> String {
    let word = match c {
        Command::Hold => "hold",
        Command::Release => "release",
        Command::Wait => "wait 60 s more",
        Command::FalseAlarm => "false alarm",
        Command::Evidence => "take evidence",
        Command::Stop => "stop",
        Command::Terminate => "terminate",
        Command::Kill => "kill",
        Command::TerminalLost => "the terminal is gone, the run goes on",
        Command::ScreenAttached => "a screen is attached",
        Command::Leave => "leave the process alone",
        Command::Resend => "send the lost queue again",
        Command::StopAfterStep => "end the job after this step",
        Command::ApplyNow => "restart with what was chosen",
        Command::Set {
            setting,
            value: Some(value),
        } => return format!("set {} to {value}", setting.name()),
        Command::Set {
            setting,
            value: None,
        } => return format!("set {} as the profile says", setting.name()),
        Command::UseProfile { id } => return format!("use profile {id}"),
        Command::TakeRung { rung } => return format!("take rung {rung}"),
        Command::SaveProfile { id } => return format!("save as profile {id}"),
    };
    word.to_owned()
}

/// The kernel's line, behind our words for it where we have some.
fn kernel(text: &str) -> String {
    match kernel_fault(text) {
        Some(fault) => format!("{}: {text}", fault.words()),
        None => text.to_owned(),
    }
}

/// What an event that needs no memory says, and about what.
pub(super) fn line(event: &Event) -> Option<(&'static str, String)> {
    Some(match event {
        Event::Notice {
            level: Level::Info,
            text,
        } => ("notice", text.clone()),
        Event::Notice {
            level: Level::Warn,
            text,
        } => ("warning", text.clone()),
        Event::Spawned { pid, pgid, .. } => ("started", format!("pid {pid}, process group {pgid}")),
        Event::SpawnFailed { why, .. } => ("not started", why.clone()),
        Event::Job(JobChange::Started) => ("job", "began".to_owned()),
        Event::Job(JobChange::Waiting) => ("job", "none; the server waits for its user".to_owned()),
        Event::Job(JobChange::Done) => ("job", "ended well".to_owned()),
        Event::Job(JobChange::Failed { why: Some(why) }) => ("job", format!("failed: {why}")),
        Event::Job(JobChange::Failed { why: None }) => ("job", "failed without a word".to_owned()),
        Event::Replanned(r) => ("next attempt", r.what.clone()),
        Event::Resend(r) => ("lost job", r.word.words()),
        Event::ProfileSaved { id, path } => ("profile", format!("{id} saved as {path}")),
        Event::Artefact(a) => (
            "written",
            format!(
                "{} ({}, attempt {} on {})",
                a.path,
                a.extent(),
                a.attempt,
                a.rung
            ),
        ),
        Event::Agent(note) => ("agent", note.words()?),
        Event::Kernel { text } => ("kernel", kernel(text)),
        Event::EvidenceTaken(e) => ("evidence", evidence(e)),
        Event::SignalSent {
            signal,
            scope,
            reached,
            ..
        } => {
            let whom = match scope {
                Scope::Group => "the process group",
                Scope::Tree => "every descendant",
            };
            (
                "signal",
                format!("{} to {whom}, reached {reached}", signal.name()),
            )
        }
        Event::Command(c) => ("command", command(c)),
        Event::Source(s) => ("source", format!("{} {}", s.name, words::source(s).0)),
        Event::Standstill { cause, for_ms } => (
            "standstill",
            format!(
                "{} for {}",
                cause.words(),
                ago(Duration::from_millis(*for_ms))
            ),
        ),
        Event::Flood(flood) => ("flood", flood.words()),
        Event::Dropped { what, n } => ("dropped", format!("{n} {what}")),
        other => return ending(other),
    })
}

/// The same for what happens between two attempts.
fn ending(event: &Event) -> Option<(&'static str, String)> {
    Some(match event {
        Event::Exited(e) => ("exited", format!("attempt {}: {}", e.attempt, e.status)),
        Event::GroupGone { attempt } => (
            "exited",
            format!("every process of attempt {attempt} is gone"),
        ),
        Event::CommandReturned { processes, .. } => {
            let each = processes.iter().map(|p| format!("{} {}", p.pid, p.name));
            let list: Vec<_> = each.collect();
            (
                "returned",
                format!(
                    "the command has returned; what it started is watched as the job: {}",
                    list.join(", ")
                ),
            )
        }
        Event::ProcessEnded { pid, status, .. } => {
            ("exited", format!("process {pid} of the command: {status}"))
        }
        Event::GuardianLost { .. } => ("guardian", GUARDIAN_LOST.to_owned()),
        Event::CardHeld(held) => (
            "card",
            format!(
                "waits for {}: {}; {}",
                held.gpu,
                held.holders(),
                held.cure()
            ),
        ),
        Event::CardFree { gpu, took_ms } => (
            "card",
            format!(
                "{gpu} is free after {}",
                ago(Duration::from_millis(*took_ms))
            ),
        ),
        Event::Survivors { processes, .. } => {
            let each = processes.iter().map(|p| {
                let wait = p
                    .wchan
                    .as_ref()
                    .map_or_else(String::new, |w| format!(" in {w}"));
                format!("{} {} {}{wait}", p.pid, p.name, p.state)
            });
            let list: Vec<_> = each.collect();
            ("survivors", format!("survive SIGKILL: {}", list.join(", ")))
        }
        Event::VramReclaimed {
            used,
            took_ms,
            complete,
        } => {
            let took = ago(Duration::from_millis(*took_ms));
            let used = used.map_or_else(
                || "-- (unreadable)".to_owned(),
                |b| format!("{} GiB", gib(b)),
            );
            let how = if *complete {
                "is back"
            } else {
                "did not come back; the wait is given up"
            };
            ("vram", format!("{how} after {took}, in use {used}"))
        }
        _ => return None,
    })
}
