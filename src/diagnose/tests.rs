//! `docs/diagnose.md` against the code.

use std::collections::BTreeSet;

use serde_json::Value;

use super::notes::Notes;
use super::report::{Cited, OpenSearch, Report, SCHEMA, SourceKind, Words};
use super::story::{Names, Story};
use crate::model::{
    Answer, Answered, Cite, CiteKind, Considered, Finding, Health, JobChange, Mono, Phase,
    Questions, Remedy, RuleState, Verdict, VerdictId, Waits, WaitsFor,
};

const DOC: &str = include_str!("../../docs/diagnose.md");

struct Plain;

impl Names for Plain {
    fn cited(&self, cite: &Cite) -> Cited {
        Cited {
            kind: cite.kind,
            file: Some("console.log".to_owned()),
            line: cite.line,
            t_s: Some(self.seconds(cite.at)),
            text: cite.text.clone(),
        }
    }

    fn seconds(&self, at: Mono) -> f64 {
        f64::from(u32::try_from(at.0).unwrap()) / 1000.0
    }
}

fn verdict(id: VerdictId, health: Health, at: u64) -> Verdict {
    Verdict {
        id,
        health,
        phase: Phase::VaeDecode,
        section: Some(1),
        confidence: 0.9,
        onset: Mono(at),
        sentence: format!("{id} it is"),
        findings: vec![Finding {
            verdict: id,
            text: "seen".to_owned(),
            seqs: vec![1],
            cites: vec![Cite {
                seq: 1,
                at: Mono(at),
                kind: CiteKind::Console,
                line: Some(7),
                text: "words".to_owned(),
            }],
            count: 2,
        }],
        ruled_out: vec!["no swap".to_owned()],
        considered: vec![Considered {
            verdict: VerdictId::Thrash,
            state: RuleState::Clear,
            why: "no swap".to_owned(),
        }],
        cause: None,
        action: crate::model::ActionId::FastFind,
        remedy: Some(Remedy {
            action: crate::model::ActionId::FastFind,
            tier: 1,
            auto_restart: true,
            env: [("MIOPEN_FIND_MODE".to_owned(), "FAST".to_owned())].into(),
            why: "it is the search".to_owned(),
        }),
        next: None,
        questions: Some(Box::new(questions())),
    }
}

fn questions() -> Questions {
    Questions {
        job: Answered::new(Answer::Yes, "a bar of steps", Some(12.0)),
        moves: Answered::new(
            Answer::No,
            "a step 45 s ago, and nothing of the job since",
            Some(20.5),
        ),
        waits: Waits {
            answer: WaitsFor::Card,
            pid: Some(807),
            tid: Some(812),
            within: Some("ioctl".to_owned()),
            detail: Some("/dev/kfd".to_owned()),
            for_s: Some(40.0),
        },
    }
}

fn report(told: &[(f64, VerdictId, Health)]) -> Report {
    let mut story = Story::default();
    for (t, id, health) in told {
        story.tell(*t, &verdict(*id, *health, 1000), &Plain);
    }
    let end = verdict(VerdictId::Healthy, Health::Healthy, 1000);
    story.report(SourceKind::Case, (&end, 400.0), &Plain, Notes::default())
}

/// A report with something of everything, for the tests of its form.
pub(crate) fn full() -> Report {
    let mut report = report(&[
        (0.0, VerdictId::Healthy, Health::Starting),
        (20.0, VerdictId::SilentHang, Health::Suspect),
        (65.5, VerdictId::SilentHang, Health::Hung),
    ]);
    report.path = "case".to_owned();
    report.ended = Some("ended by the user (exit code 130)".to_owned());
    report.find = Some(OpenSearch {
        key: "convfp16 -n 1".to_owned(),
        solver: Some("ConvDirectNaiveConvFwd".to_owned()),
        detail: None,
        line: Some(9),
    });
    report.last_words = vec![Words {
        line: Some(9),
        text: "\u{1b}[2JMIOpen(HIP): Info".to_owned(),
    }];
    report.workload.adapter = "framepack".to_owned();
    report.workload.gpu = Some("AMD Radeon RX 7900 XTX".to_owned());
    report.notes = vec!["telemetry.csv:1: there is no column `power_w`".to_owned()];
    report.stats.duration_s = Some(400.0);
    report
}

fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                if key != "env" {
                    fields(value, into);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|v| fields(v, into)),
        _ => {}
    }
}

#[test]
fn the_document_names_every_field_and_word() {
    let mut names = BTreeSet::new();
    fields(&serde_json::to_value(full()).unwrap(), &mut names);
    for kind in [
        SourceKind::Case,
        SourceKind::Record,
        SourceKind::Bundle,
        SourceKind::Log,
    ] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        names.insert(kind.word().to_owned());
    }
    let missing: Vec<_> = names
        .iter()
        .filter(|f| !DOC.contains(&format!("`{f}`")))
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
    assert!(DOC.contains(&format!("version {SCHEMA}")));
}

#[test]
fn suspicions_are_no_verdicts() {
    let got = full();
    let shown: Vec<_> = got.history.iter().map(|c| (c.t_s, c.verdict)).collect();
    assert_eq!(
        shown,
        [(0.0, VerdictId::Healthy), (65.5, VerdictId::SilentHang)]
    );
    assert_eq!(got.suspicions.len(), 1);
    assert_eq!(got.verdict, VerdictId::SilentHang);
    assert_eq!((got.onset_s, got.detected_at_s), (Some(1.0), Some(65.5)));
    assert_eq!((got.action.tier, got.action.auto_restart), (1, true));
}

#[test]
fn the_most_severe_is_the_answer_and_a_cause_before_an_end() {
    let main = |told: &[(f64, VerdictId, Health)]| report(told).verdict;
    let hung = (10.0, VerdictId::SilentHang, Health::Hung);
    let killed = (20.0, VerdictId::Killed, Health::Failed);
    let oom = (30.0, VerdictId::GpuOom, Health::Failing);
    let reset = (40.0, VerdictId::GpuReset, Health::Failed);
    assert_eq!(main(&[hung, killed]), VerdictId::SilentHang);
    assert_eq!(main(&[hung, killed, oom]), VerdictId::GpuOom);
    assert_eq!(main(&[hung, oom, reset]), VerdictId::GpuReset);
    let all = report(&[hung, killed, oom]);
    let told: Vec<_> = all.findings.iter().map(|f| f.verdict).collect();
    assert_eq!(
        told,
        [VerdictId::GpuOom, VerdictId::SilentHang, VerdictId::Killed]
    );
}

/// The main answer after these verdicts and changes of the job.
fn main_of(told: &[Result<(VerdictId, Health), JobChange>]) -> VerdictId {
    let mut story = Story::default();
    for (n, what) in (0u32..).zip(told) {
        match what {
            Ok((id, health)) => story.tell(f64::from(n), &verdict(*id, *health, 1), &Plain),
            Err(change) => story.observe_job(change),
        }
    }
    let end = verdict(VerdictId::Healthy, Health::Healthy, 1);
    let report = story.report(SourceKind::Case, (&end, 400.0), &Plain, Notes::default());
    report.verdict
}

#[test]
fn a_warning_that_cleared_and_an_error_that_a_success_resolved_are_not_the_answer() {
    use JobChange::{Done, Started};
    let failed = || Err(JobChange::Failed { why: None });
    let well = || Ok((VerdictId::Healthy, Health::Healthy));
    let hot = || Ok((VerdictId::Throttled, Health::Slow));
    let slow = || Ok((VerdictId::Crawl, Health::Slow));
    let oom = || Ok((VerdictId::GpuOom, Health::Failing));
    let over = || Ok((VerdictId::Finished, Health::Finished));
    assert_eq!(main_of(&[hot(), well()]), VerdictId::Healthy);
    assert_eq!(main_of(&[hot(), slow()]), VerdictId::Crawl);
    assert_eq!(main_of(&[slow(), hot()]), VerdictId::Throttled);
    assert_eq!(main_of(&[oom(), hot()]), VerdictId::GpuOom);
    // the next job came to its result
    let next = [failed(), oom(), Err(Started), well(), Err(Done), well()];
    assert_eq!(main_of(&next), VerdictId::Healthy);
    // it only began, or the program ended without one
    assert_eq!(main_of(&next[..4]), VerdictId::GpuOom);
    assert_eq!(main_of(&[failed(), oom(), over()]), VerdictId::GpuOom);
    assert_eq!(main_of(&[oom(), over()]), VerdictId::Finished);
    // told again after the success
    assert_eq!(
        main_of(&[oom(), Err(Done), failed(), oom(), well()]),
        VerdictId::GpuOom
    );
}

#[test]
fn what_is_no_fault_is_told_as_it_stands_at_the_end() {
    let mut story = Story::default();
    let mut told = verdict(VerdictId::IdleWaiting, Health::Healthy, 1000);
    told.sentence = "waits for 0 s".to_owned();
    let again = told.findings[0].cites[0].clone();
    told.findings[0].cites.push(again);
    story.tell(
        0.0,
        &verdict(VerdictId::DownloadWait, Health::Starting, 0),
        &Plain,
    );
    story.tell(100.0, &told, &Plain);
    let mut end = told.clone();
    end.sentence = "waits for 300 s".to_owned();
    let got = story.report(SourceKind::Case, (&end, 400.0), &Plain, Notes::default());
    assert_eq!(got.sentence, "Waits for 300 s.");
    let texts: Vec<_> = got.findings.iter().map(|f| f.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "seen",
            "from 0 s on for 100 s in vae_decode: files were fetched"
        ]
    );
    assert_eq!(got.findings[0].cites.len(), 1);
}

#[test]
fn a_suspicion_at_the_end_is_told_as_one() {
    let mut story = Story::default();
    story.tell(
        0.0,
        &verdict(VerdictId::Healthy, Health::Healthy, 0),
        &Plain,
    );
    let end = verdict(VerdictId::SilentHang, Health::Suspect, 1000);
    story.tell(20.0, &end, &Plain);
    let got = story.report(SourceKind::Case, (&end, 40.0), &Plain, Notes::default());
    assert_eq!(
        (got.verdict, got.health),
        (VerdictId::Healthy, Health::Healthy)
    );
    assert_eq!(
        got.sentence,
        "Suspected, not proven until the end: silent_hang it is."
    );
}

#[test]
fn without_a_fault_the_last_is_the_answer_and_a_long_wait_is_told() {
    let got = report(&[
        (5.0, VerdictId::LoadingIo, Health::Healthy),
        (125.0, VerdictId::Healthy, Health::Healthy),
        (140.0, VerdictId::IdleWaiting, Health::Healthy),
    ]);
    assert_eq!(got.verdict, VerdictId::IdleWaiting);
    assert_eq!((got.onset_s, got.detected_at_s), (None, None));
    assert!(got.history[0].t_s.abs() < 1e-9, "from the first moment on");
    let waits = got.findings.iter().filter(|f| f.text.contains("for 120 s"));
    assert_eq!(waits.count(), 1, "{:?}", got.findings);
    let nothing = report(&[]);
    assert_eq!(nothing.verdict, VerdictId::Healthy);
}
