//! The story of a run that hangs and comes home, as text.

use std::collections::BTreeMap;

use super::*;
use crate::model::attempt::Artefact;
use crate::model::event::{EvidenceItem, EvidenceReport};
use crate::model::progress::PhaseChange;
use crate::model::{
    ActionId, AttemptSpec, Bytes, Command, EnvChange, EnvOrigin, Line, NextStep, Outcome, Plan,
    Scope, Signal, Stream, Tier, Verdict,
};
use crate::ui::testing;

struct Tape {
    seq: u64,
    writer: PlainWriter<Vec<u8>>,
}

impl Tape {
    fn new() -> Self {
        Self {
            seq: 0,
            writer: PlainWriter::new(Vec::new(), 4242),
        }
    }

    fn at(&mut self, secs: u64, event: Event) {
        self.seq += 1;
        let envelope = Envelope {
            seq: self.seq,
            at: Mono::from_secs(secs),
            from: None,
            event,
        };
        self.writer.accept(&envelope).unwrap();
    }

    fn text(self) -> String {
        String::from_utf8(self.writer.into_inner()).unwrap()
    }
}

fn line(text: &str, bar: bool, chatter: bool) -> Event {
    Event::Line(Line {
        attempt: 1,
        row: 0,
        stream: if bar { Stream::Stderr } else { Stream::Stdout },
        text: text.to_owned(),
        bar,
        truncated: false,
        chatter,
    })
}

fn verdict(health: Health, id: VerdictId, sentence: &str, next: Option<(&str, u64)>) -> Event {
    Event::Verdict(Box::new(Verdict {
        health,
        id,
        sentence: sentence.to_owned(),
        next: next.map(|(what, at)| NextStep {
            what: what.to_owned(),
            at: Mono::from_secs(at),
        }),
        phase: Phase::VaeDecode,
        ..testing::suspect().verdict
    }))
}

fn attempt(number: u32, rung: &str, env: Vec<EnvChange>) -> Event {
    Event::AttemptStarted(Box::new(AttemptSpec {
        number,
        rung: RungId(rung.to_owned()),
        action: ActionId::FastFind,
        tier: Tier::T1,
        argv: Vec::new(),
        env,
        settings: BTreeMap::new(),
        on_cpu: false,
    }))
}

fn started() -> Event {
    Event::RunStarted(Box::new(RunStarted {
        schema: "1.0".to_owned(),
        program: "0.1.0".to_owned(),
        run: "7f3a".to_owned(),
        wall_clock: "2026-07-14T14:00:22+02:00".to_owned(),
        argv: vec!["python".to_owned(), "demo.py".to_owned()],
        cwd: "/home/user/FramePack".to_owned(),
        profile: "rx7900xtx-safe".to_owned(),
        profile_why: "asked for".to_owned(),
        adapter: "framepack".to_owned(),
        gpu: Some(GpuId("0000:0c:00.0".to_owned())),
        vram_cap: Some(Bytes::gib(20)),
        interactive: true,
        plan: Plan::default(),
        attached: None,
    }))
}

fn evidence() -> Event {
    Event::EvidenceTaken(EvidenceReport {
        number: 1,
        attempt: 1,
        dir: "/runs/7f3a/evidence/0001".to_owned(),
        items: vec![EvidenceItem {
            kind: "python_stacks".to_owned(),
            file: None,
            bytes: 0,
            failed: Some("py-spy is not installed".to_owned()),
            absent: true,
        }],
        took_ms: 820,
        asked: None,
    })
}

fn restart() -> Event {
    Event::Decision(Box::new(Decision {
        attempt: 1,
        verdict: VerdictId::SilentHang,
        choice: Choice::Restart {
            by_user: false,
            rung: RungId("fast_find".to_owned()),
            kill_at: Mono::from_secs(84),
        },
        why: "fast_find is the first untried rung that answers silent_hang".to_owned(),
        skipped: vec![crate::model::SkippedRung {
            rung: RungId("full_unload".to_owned()),
            why: "needs the agent".to_owned(),
        }],
        restarts_left: 2,
    }))
}

fn hang(t: &mut Tape) {
    let section = PhaseChange {
        phase: Phase::VaeDecode,
        section: Some(1),
        sections: Some(4),
        on_cpu: false,
    };
    t.at(30, Event::Phase(section));
    t.at(
        47,
        verdict(
            Health::Suspect,
            VerdictId::SilentHang,
            "Nothing moves for 17 s.",
            Some(("verdict silent_hang", 81)),
        ),
    );
    t.at(
        48,
        verdict(
            Health::Suspect,
            VerdictId::SilentHang,
            "Nothing moves for 18 s.",
            None,
        ),
    );
    t.at(
        81,
        verdict(
            Health::Hung,
            VerdictId::SilentHang,
            "Nothing moves for 51 s.",
            None,
        ),
    );
    t.at(81, restart());
    t.at(82, Event::Command(Command::Evidence));
    t.at(83, evidence());
    t.at(
        84,
        Event::SignalSent {
            attempt: 1,
            signal: Signal::Term,
            scope: Scope::Group,
            reached: 3,
        },
    );
    t.at(85, Event::GroupGone { attempt: 1 });
    for (secs, gib) in [(86, 17), (87, 16), (97, 9)] {
        t.at(
            secs,
            Event::VramWaiting {
                used: Bytes::gib(gib),
                before: Bytes::gib(1),
            },
        );
    }
    t.at(
        99,
        Event::VramReclaimed {
            used: Some(Bytes::gib(1)),
            took_ms: 14_000,
            complete: true,
        },
    );
}

#[test]
fn a_hang_that_comes_home() {
    let mut t = Tape::new();
    t.at(0, started());
    t.at(1, attempt(1, RungId::AS_GIVEN, Vec::new()));
    t.at(2, line("Free VRAM 23.1 GB\u{1b}[0m", false, false));
    t.at(2, line("MIOpen(HIP): Info [FindConvolution]", false, true));
    for (secs, bar) in [
        (3, "  0%|  "),
        (4, "  4%|  "),
        (5, " 12%|# "),
        (16, " 13%|# "),
    ] {
        t.at(secs, line(bar, true, false));
    }
    hang(&mut t);
    let rung = EnvChange {
        name: "MIOPEN_FIND_MODE".to_owned(),
        value: Some("2".to_owned()),
        origin: EnvOrigin::Rung,
        overrides: Some("1".to_owned()),
    };
    t.at(100, attempt(2, "fast_find", vec![rung]));
    t.at(110, Event::Job(JobChange::Waiting));
    t.at(
        120,
        Event::Sample(Box::new(Sample {
            gpus: testing::bad_sensors().gpus,
            ..Sample::default()
        })),
    );
    let result = Artefact {
        path: "/home/user/out/video.mp4".to_owned(),
        size: Bytes::mib(11),
        frames: None,
        attempt: 2,
        rung: RungId("fast_find".to_owned()),
    };
    t.at(190, Event::Tick);
    t.at(
        200,
        Event::RunFinished {
            outcome: Outcome::Finished { restarts: 1 },
            exit_code: 10,
            result: Some(result),
            summary: "Finished on rung fast_find.".to_owned(),
        },
    );
    let text = t.text();
    assert!(text.ends_with("\n/home/user/out/video.mp4\n"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\r'));
    insta::assert_snapshot!(text);
}

#[test]
fn a_folder_of_pictures_is_so_many_frames() {
    for (frames, want) in [
        (
            Some(97),
            "written: /out/v (97 frames, 11.0 MiB, attempt 1 on as_given)",
        ),
        (
            Some(1),
            "written: /out/v (1 frame, 11.0 MiB, attempt 1 on as_given)",
        ),
        (None, "written: /out/v (11.0 MiB, attempt 1 on as_given)"),
    ] {
        let written = Artefact {
            path: "/out/v".to_owned(),
            size: Bytes::mib(11),
            frames,
            attempt: 1,
            rung: RungId(RungId::AS_GIVEN.to_owned()),
        };
        let mut t = Tape::new();
        t.at(1, Event::Artefact(written));
        let text = t.text();
        assert!(text.contains(want), "{text}");
    }
}

#[test]
fn a_job_begins_once_however_many_tell_of_it() {
    let mut t = Tape::new();
    t.at(0, started());
    t.at(1, attempt(1, "as_given", Vec::new()));
    // guessed, then told by the agent
    t.at(1, Event::Job(JobChange::Started));
    t.at(2, Event::Job(JobChange::Started));
    t.at(3, Event::Job(JobChange::Done));
    t.at(4, Event::Job(JobChange::Started));
    // of another attempt nothing is known
    t.at(5, attempt(2, "fast_find", Vec::new()));
    t.at(6, Event::Job(JobChange::Started));
    let text = t.text();
    let told: Vec<_> = text.lines().filter(|l| l.contains(" job: ")).collect();
    assert_eq!(
        told,
        [
            "00:00:01 job: began",
            "00:00:03 job: ended well",
            "00:00:04 job: began",
            "00:00:06 job: began",
        ]
    );
}

#[test]
fn a_status_line_a_minute() {
    let mut t = Tape::new();
    t.at(0, started());
    for secs in 1..=300 {
        t.at(secs, Event::Tick);
    }
    assert_eq!(t.text().matches(" status: ").count(), 5);
}

#[test]
fn a_run_without_result_says_so() {
    let mut t = Tape::new();
    t.at(
        5,
        Event::RunFinished {
            outcome: Outcome::GaveUp,
            exit_code: 21,
            result: None,
            summary: "Hung on every rung.".to_owned(),
        },
    );
    let text = t.text();
    assert_eq!(
        text,
        "00:00:05 end: gave up, exit code 21. Hung on every rung.\n00:00:05 result: none was written\n"
    );
}

fn on(stream: Stream, text: &str) -> Event {
    Event::Line(Line {
        attempt: 1,
        row: 0,
        stream,
        text: text.to_owned(),
        bar: false,
        truncated: false,
        chatter: false,
    })
}

fn lines_of(t: Tape) -> Vec<String> {
    let lines = t.text();
    lines.lines().map(str::to_owned).collect()
}

#[test]
fn a_line_that_comes_again_is_written_once_and_counted() {
    let mut t = Tape::new();
    for _ in 0..4 {
        t.at(1, line("waiting", false, false));
    }
    t.at(2, line("waiting", false, true));
    t.at(2, line("done", false, false));
    t.at(2, line("done", false, false));
    t.at(3, line("once", false, false));
    assert_eq!(
        lines_of(t),
        [
            "out| waiting",
            "out| (the same line 3 more times)",
            "out| done",
            "out| (the same line again)",
            "out| once"
        ]
    );
}

#[test]
fn the_first_of_equal_lines_is_not_delayed_and_a_count_not_for_long() {
    let mut t = Tape::new();
    t.at(0, line("tick", false, false));
    let written = |t: &Tape| String::from_utf8(t.writer.out.clone()).unwrap();
    assert_eq!(written(&t), "out| tick\n");
    for secs in 1..=10 {
        t.at(secs, line("tick", false, false));
    }
    assert_eq!(written(&t), "out| tick\n");
    // nothing else is printed: time alone brings it
    t.at(11, Event::Tick);
    assert_eq!(
        written(&t),
        "out| tick\nout| (the same line 10 more times)\n"
    );
    t.at(12, line("tick", false, false));
    t.at(12, Event::Job(JobChange::Started));
    let text = written(&t);
    let counted = text.find("(the same line again)").unwrap();
    assert!(counted < text.find("job:").unwrap(), "{text}");
}

#[test]
fn equal_lines_of_two_streams_and_of_two_attempts_are_told_apart() {
    let mut t = Tape::new();
    for stream in [
        Stream::Stdout,
        Stream::Stderr,
        Stream::Stdout,
        Stream::Stderr,
    ] {
        t.at(1, on(stream, "x"));
    }
    t.at(1, on(Stream::Stderr, "y"));
    let lines = lines_of(t);
    assert_eq!(lines[..2], ["out| x", "err| x"]);
    assert_eq!(lines.last().unwrap(), "err| y");
    let again = lines
        .iter()
        .filter(|l| l.ends_with("(the same line again)"));
    assert_eq!(again.count(), 2, "{lines:?}");
}

#[test]
fn what_is_held_back_is_written_where_nothing_more_comes() {
    let gone = Event::GroupGone { attempt: 1 };
    for end in [Some(gone), None] {
        let mut t = Tape::new();
        t.at(0, line("7%|#  | 7/100", true, false));
        t.at(1, line("9%|#  | 9/100", true, false));
        t.at(1, on(Stream::Stdout, "a"));
        t.at(1, on(Stream::Stdout, "a"));
        match end {
            Some(end) => t.at(2, end),
            None => t.writer.finish().unwrap(),
        }
        let lines = lines_of(t);
        assert!(
            lines.contains(&"err| 9%|#  | 9/100".to_owned()),
            "{lines:?}"
        );
        assert!(
            lines.contains(&"out| (the same line again)".to_owned()),
            "{lines:?}"
        );
    }
}

/// The last state of a bar ends with a newline, and is the line that is written.
#[test]
fn a_bar_that_ends_well_is_not_written_twice() {
    let mut t = Tape::new();
    t.at(0, line("91%|## | 91/100", true, false));
    t.at(1, line("99%|## | 99/100", true, false));
    t.at(1, on(Stream::Stderr, "100%|###| 100/100"));
    assert_eq!(
        lines_of(t),
        ["err| 91%|## | 91/100", "err| 100%|###| 100/100"]
    );
}
