//! Records that are cut off, of other versions, or of two attempts.

use std::fs;
use std::path::PathBuf;

use framepack_tui::diagnose::report::{Report, SourceKind};
use framepack_tui::diagnose::{InputError, Source, diagnose};
use framepack_tui::model::event::RunStarted;
use framepack_tui::model::{
    ActionId, Attached, AttemptSpec, Envelope, Event, ExitReport, ExitStatus, Flood, Health,
    JobChange, Line, Mono, Phase, Plan, Repeated, RungId, Scope, Signal, Stream, Tier, Verdict,
    VerdictId,
};
use tempfile::TempDir;

fn head(schema: &str) -> Event {
    Event::RunStarted(Box::new(RunStarted {
        schema: schema.to_owned(),
        program: "0".to_owned(),
        run: "20260101-0000-abcd".to_owned(),
        wall_clock: "2026-01-01T00:00:00+00:00".to_owned(),
        argv: vec!["python3".to_owned(), "gen.py".to_owned()],
        cwd: "/".to_owned(),
        profile: "x".to_owned(),
        profile_why: "asked for".to_owned(),
        adapter: "diffusers".to_owned(),
        gpu: None,
        vram_cap: None,
        interactive: false,
        attached: None,
        plan: Plan::default(),
    }))
}

fn line(attempt: u32, row: u64, text: &str) -> Event {
    Event::Line(Line {
        attempt,
        stream: Stream::Stderr,
        text: text.to_owned(),
        row,
        bar: false,
        truncated: false,
        chatter: false,
    })
}

/// An attempt that ends with these words and this status.
fn attempt(number: u32, words: &[&str], status: ExitStatus, killed: bool) -> Vec<Event> {
    let mut events = vec![
        Event::AttemptStarted(Box::new(AttemptSpec {
            number,
            rung: RungId::as_given(),
            action: ActionId::None,
            tier: Tier::T0,
            argv: vec!["python3".to_owned()],
            env: Vec::new(),
            settings: std::collections::BTreeMap::new(),
            on_cpu: false,
        })),
        Event::Spawned {
            attempt: number,
            pid: 7,
            pgid: 7,
        },
        Event::Job(JobChange::Started),
    ];
    events.extend((1..).zip(words).map(|(row, w)| line(number, row, w)));
    if killed {
        events.push(Event::SignalSent {
            attempt: number,
            signal: Signal::Kill,
            scope: Scope::Group,
            reached: 1,
        });
    }
    events.push(Event::Exited(ExitReport {
        attempt: number,
        status,
    }));
    events.push(Event::GroupGone { attempt: number });
    events.extend([Event::Tick, Event::Tick, Event::Tick]);
    events
}

fn stream(events: Vec<Event>) -> Vec<String> {
    let envelope = |(seq, event)| Envelope {
        seq,
        at: Mono(seq * 400),
        from: None,
        event,
    };
    let envelopes = (1..).zip(events).map(envelope);
    envelopes
        .map(|e| serde_json::to_string(&e).unwrap())
        .collect()
}

fn folder(text: &str) -> (TempDir, PathBuf) {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("events.jsonl"), text).unwrap();
    let dir = tmp.path().to_owned();
    (tmp, dir)
}

fn judge(text: &str) -> Result<Report, InputError> {
    let (_tmp, dir) = folder(text);
    diagnose(&Source::at(&dir)?)
}

const OOM: &str = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.00 GiB";

fn failed() -> Vec<String> {
    let mut events = vec![head("1.3")];
    events.extend(attempt(1, &["begin", OOM], ExitStatus::Code(1), false));
    stream(events)
}

#[test]
fn a_record_is_judged_anew_and_cites_lines() {
    let got = judge(&(failed().join("\n") + "\n")).unwrap();
    assert_eq!(got.source, SourceKind::Record);
    assert_eq!(got.verdict, VerdictId::GpuOom);
    let cite = &got.findings[0].cites[0];
    assert_eq!(
        (cite.file.as_deref(), cite.line),
        (Some("console"), Some(2))
    );
    assert!(got.notes.iter().any(|n| n.contains("has no end")));
}

/// A judgement that was told while the run went on.
fn told(id: VerdictId, health: Health) -> Event {
    Event::Verdict(Box::new(Verdict {
        id,
        health,
        phase: Phase::Sampling,
        section: None,
        confidence: 0.9,
        onset: Mono(400),
        sentence: format!("{id} it was"),
        findings: Vec::new(),
        ruled_out: Vec::new(),
        considered: Vec::new(),
        action: ActionId::None,
        remedy: None,
        next: None,
        questions: None,
        cause: None,
    }))
}

/// A warning of before is no other judgement than today's, and of several that differ the gravest is named.
#[test]
fn only_another_judgement_than_that_of_then_is_told() {
    let note = |before: &[(VerdictId, Health)]| {
        let mut events = vec![head("1.3")];
        events.extend(before.iter().map(|(id, health)| told(*id, *health)));
        events.extend(attempt(1, &["begin", OOM], ExitStatus::Code(1), false));
        let got = judge(&(stream(events).join("\n") + "\n")).unwrap();
        assert_eq!(got.verdict, VerdictId::GpuOom);
        let mut notes = got.notes.into_iter();
        notes.find(|note| note.starts_with("when it ran"))
    };
    let warned = (VerdictId::OffloadRisk, Health::Slow);
    let suspected = (VerdictId::SilentHang, Health::Suspect);
    let hung = (VerdictId::SilentHang, Health::Hung);
    let same = (VerdictId::GpuOom, Health::Failed);
    for before in [&[][..], &[warned, same], &[suspected], &[hung, same]] {
        assert_eq!(note(before), None, "{before:?}");
    }
    let words = note(&[warned, hung, warned]).unwrap();
    assert!(
        words.ends_with("judged as silent_hang: silent_hang it was"),
        "{words}"
    );
    let words = note(&[warned]).unwrap();
    assert!(words.contains("judged as offload_risk"), "{words}");
}

/// A row of the history is a change of what is shown.
#[test]
fn no_two_rows_of_the_history_are_the_same() {
    let mut events = vec![head("1.4")];
    events.extend(attempt(1, &["begin"], ExitStatus::Code(0), false));
    let got = judge(&(stream(events).join("\n") + "\n")).unwrap();
    let rows: Vec<_> = got.history.iter().map(|c| (c.verdict, c.health)).collect();
    assert!(rows.len() > 1, "{rows:?}");
    assert!(rows.windows(2).all(|w| w[0] != w[1]), "{rows:?}");
    assert!(got.history[0].t_s.abs() < 1e-9, "from the first moment on");
}

/// The ticks that `--headless` leaves out are not missed.
#[test]
fn a_headless_stream_is_judged_as_the_record_of_the_same_run() {
    let mut events = vec![head("1.4")];
    events.extend(attempt(1, &["begin", OOM], ExitStatus::Code(1), false));
    let record = stream(events);
    let headless: Vec<_> = record
        .iter()
        .filter(|l| !l.contains(r#""kind":"tick""#))
        .cloned()
        .collect();
    assert!(headless.len() < record.len());
    let judge = |lines: &[String]| judge(&(lines.join("\n") + "\n")).unwrap();
    let (saved, recorded) = (judge(&headless), judge(&record));
    assert_eq!(saved.verdict, recorded.verdict);
    let lost = |n: &&String| n.contains("missing") || n.contains("lost");
    assert_eq!(saved.notes.iter().find(lost), None);
}

#[test]
fn a_record_that_is_cut_off_is_judged_as_far_as_it_goes() {
    let whole = failed();
    let text = whole.join("\n");
    let cut = &text[..text.len() - 9];
    let got = judge(cut).unwrap();
    assert_eq!(got.verdict, VerdictId::GpuOom);
    let told = got.notes.iter().any(|n| n.contains("cut off"));
    assert!(told, "{:?}", got.notes);
    // the head alone
    let got = judge(&format!("{}\n", whole[0])).unwrap();
    assert!(got.verdict.is_no_fault());
}

/// What was not judged line by line is said with its time, and what is lost with its count.
#[test]
fn a_flood_in_a_record_is_told() {
    let flood = |row, lines, kept: &[(&str, u64)]| {
        Event::Flood(Box::new(Flood {
            attempt: 1,
            stream: Stream::Stdout,
            row,
            lines,
            kept: kept
                .iter()
                .map(|(text, times)| Repeated {
                    text: (*text).to_owned(),
                    times: *times,
                })
                .collect(),
        }))
    };
    let mut events = vec![head("1.8")];
    events.extend(attempt(1, &["begin", OOM], ExitStatus::Code(1), false));
    events.insert(4, flood(2, 900, &[("again", 899), ("once", 1)]));
    events.insert(5, flood(902, 60, &[]));
    let got = judge(&(stream(events).join("\n") + "\n")).unwrap();
    assert_eq!(got.verdict, VerdictId::GpuOom);
    let said = got.notes.iter().find(|n| n.contains("flood")).unwrap();
    assert!(
        said.contains("from 00:00:02 to 00:00:02")
            && said.contains("960 lines not shown; the record has all but 60"),
        "{said}"
    );
}

#[test]
fn older_records_are_read_and_other_majors_refused() {
    let older = failed()
        .join("\n")
        .replace("\"1.3\"", "\"1.0\"")
        .replace("\"row\":2,", "");
    let got = judge(&older).unwrap();
    assert_eq!(got.verdict, VerdictId::GpuOom);
    let newer = failed().join("\n").replace("\"1.3\"", "\"9.0\"");
    let error = judge(&newer).unwrap_err();
    assert!(!error.is_missing());
    assert!(error.to_string().contains("9.0"), "{error}");
}

#[test]
fn without_its_head_a_record_cannot_be_judged() {
    let text = failed()[1..].join("\n");
    let error = judge(&text).unwrap_err();
    assert!(matches!(error, InputError::NoHead { .. }), "{error}");
    assert!(judge("").is_err());
    assert!(judge("no json\n\u{0}\n").is_err());
}

#[test]
fn an_end_that_the_supervisor_made_is_no_verdict_and_both_attempts_count() {
    let mut events = vec![head("1.3")];
    events.extend(attempt(1, &["begin"], ExitStatus::Signal(9), true));
    let killed = stream(events.clone()).join("\n");
    assert!(judge(&killed).unwrap().verdict.is_no_fault());
    events.extend(attempt(2, &["begin", OOM], ExitStatus::Code(1), false));
    events.extend(attempt(3, &["begin"], ExitStatus::Code(0), false));
    let got = judge(&stream(events).join("\n")).unwrap();
    // the main answer is the most severe error that no later success resolved
    assert_eq!(
        got.verdict,
        VerdictId::Finished,
        "the last attempt came to its end"
    );
    let oom = got.history.iter().any(|c| c.verdict == VerdictId::GpuOom);
    assert!(oom, "the error stays in the history");
    assert_eq!(got.history.last().unwrap().verdict, VerdictId::Finished);
}

/// How a process that is not ours ended is told to its parent only.
#[test]
fn the_end_of_a_watched_process_is_left_open() {
    for (words, want) in [
        (&["begin"][..], None),
        (&["begin", OOM], Some(VerdictId::GpuOom)),
    ] {
        let mut watched = head("1.3");
        if let Event::RunStarted(started) = &mut watched {
            started.attached = Some(Attached { pid: 7, start: 1 });
        }
        let mut events = vec![watched];
        events.extend(attempt(1, words, ExitStatus::Unknown, false));
        let got = judge(&(stream(events).join("\n") + "\n")).unwrap();
        assert!(!got.action.auto_restart, "nothing is restarted in a watch");
        assert_eq!(got.workload.watch, Some(7));
        match want {
            Some(want) => assert_eq!(got.verdict, want),
            None => assert!(got.verdict.is_no_fault(), "{}", got.verdict),
        }
    }
}

/// Where nobody tells of a job, silence is not judged, then as now.
#[test]
fn a_watch_without_a_job_is_not_judged() {
    let mut watched = head("1.4");
    if let Event::RunStarted(started) = &mut watched {
        started.attached = Some(Attached { pid: 7, start: 1 });
    }
    let mut events = vec![watched];
    events.extend(attempt(1, &["begin"], ExitStatus::Unknown, false));
    events.retain(|e| !matches!(e, Event::Job(_)));
    // it lives while it is looked at
    events.insert(3, Event::Tick);
    let got = judge(&(stream(events).join("\n") + "\n")).unwrap();
    assert_eq!(got.health, Health::Blind, "{}", got.sentence);
    assert!(got.sentence.contains("not known"), "{}", got.sentence);
}
