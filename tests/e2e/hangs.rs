//! A generation hangs: proven, evidence taken, ended, started again, brought home.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use framepack_tui::model::event::{Choice, EvidenceReport};
use framepack_tui::model::{EnvOrigin, Event, Health, Outcome, Phase, RungId, Verdict, VerdictId};
use rustix::process::Signal;

use crate::harness::{Card, Finished, Home, Start, kill_group};

/// Start, hang, limit, evidence, kill, restart and a whole generation, on a busy machine.
const LIMIT: Duration = Duration::from_mins(6);
const CURES: [&str; 4] = [
    "--cured-by",
    "MIOPEN_FIND_MODE=2",
    "--cured-by",
    "MIOPEN_FIND_MODE=FAST",
];

/// What a story of a hang must contain.
struct Hang {
    verdict: VerdictId,
    phase: Phase,
    /// From onset to declaration, at most.
    within: Duration,
    /// Rung that brings it home; `None`: any.
    rung: Option<&'static str>,
}

impl Hang {
    /// Checks the whole story in its order.
    fn check(&self, run: &Finished) {
        let mut story = run.story();
        let (_, gone) = story.next("spawned 1", |e| match e {
            Event::Spawned {
                attempt: 1, pgid, ..
            } => Some(*pgid),
            _ => None,
        });
        story.next("suspicion", |e| match e {
            Event::Verdict(v) if v.health == Health::Suspect => Some(()),
            _ => None,
        });
        let (heard, verdict) = story.next("declared hang", |e| match e {
            Event::Verdict(v) if v.health == Health::Hung => Some(Verdict::clone(v)),
            _ => None,
        });
        assert_eq!(
            (verdict.id, verdict.phase),
            (self.verdict, self.phase),
            "{}",
            run.digest()
        );
        let took = heard.envelope.at.since(verdict.onset);
        assert!(took <= self.within, "{took:?} from onset{}", run.digest());
        assert!(
            !verdict.sentence.is_empty() && !verdict.findings.is_empty(),
            "{verdict:?}"
        );

        let (_, to) = story.next("decision to restart", |e| match e {
            Event::Decision(d) => match &d.choice {
                Choice::Restart { rung, .. } => Some(rung.clone()),
                _ => None,
            },
            _ => None,
        });
        let (_, evidence) = story.next("evidence", |e| match e {
            Event::EvidenceTaken(report) => Some(report.clone()),
            _ => None,
        });
        let first_signal = story.then("first signal", |e| matches!(e, Event::SignalSent { .. }));
        assert_on_disk_before(&evidence, first_signal.at);
        story.then(
            "end of the first process",
            |e| matches!(e, Event::Exited(r) if r.attempt == 1),
        );
        story.then("end of the first group", |e| {
            matches!(e, Event::GroupGone { attempt: 1 })
        });
        let (_, second) = story.next("second attempt", |e| match e {
            Event::AttemptStarted(spec) => Some((**spec).clone()),
            _ => None,
        });
        assert_eq!((second.number, &second.rung), (2, &to), "{}", run.digest());
        if let Some(rung) = self.rung {
            assert_eq!(second.rung, RungId(rung.into()), "{}", run.digest());
        }
        if second.rung.0 == "fast_find" {
            let set = second.env.iter().find(|c| c.name == "MIOPEN_FIND_MODE");
            let set = set.expect("the rung sets MIOPEN_FIND_MODE");
            assert_eq!(set.value.as_deref(), Some("FAST"));
            assert_eq!(set.origin, EnvOrigin::Rung);
        }
        story.then(
            "end of the second process",
            |e| matches!(e, Event::Exited(r) if r.attempt == 2),
        );

        assert!(
            kill_group(gone, Signal::CONT).is_err(),
            "process group {gone} lives on"
        );
        assert_brought_home(run, &second.rung);
    }
}

/// Every file of the bundle was written before the first signal.
fn assert_on_disk_before(evidence: &EvidenceReport, signal: std::time::SystemTime) {
    let kept: Vec<_> = evidence
        .items
        .iter()
        .filter_map(|i| i.file.as_ref())
        .collect();
    assert!(kept.len() >= 3, "hardly any evidence: {evidence:#?}");
    for item in &evidence.items {
        assert!(
            item.file.is_some() || item.failed.is_some(),
            "neither file nor reason: {item:?}"
        );
    }
    let dir = Path::new(&evidence.dir);
    let mut files = 0;
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let meta = entry.unwrap().metadata().unwrap();
        let written = meta.modified().unwrap();
        assert!(
            written <= signal,
            "evidence written {:?}, first signal {:?} after 1970",
            written.duration_since(UNIX_EPOCH),
            signal.duration_since(UNIX_EPOCH)
        );
        files += 1;
    }
    assert!(
        files >= kept.len(),
        "{files} files on disk, {} reported",
        kept.len()
    );
}

/// Exit code 10, one restart, and a video that is the last word.
fn assert_brought_home(run: &Finished, rung: &RungId) {
    run.assert_exit(10);
    let Some(Event::RunFinished {
        outcome, result, ..
    }) = run.last()
    else {
        panic!("no end{}", run.digest());
    };
    assert_eq!(*outcome, Outcome::Finished { restarts: 1 });
    let video = result.as_ref().expect("a result");
    assert_eq!((video.attempt, &video.rung), (2, rung));
    assert_eq!(Path::new(&video.path).extension(), Some("mp4".as_ref()));
    let size = std::fs::metadata(&video.path).unwrap().len();
    assert!(size > 1000, "{} has {size} bytes", video.path);
}

/// Limits pass in a quarter of their time; one silent hang and one stalled search wait for the real ones.
const QUICK: u32 = 4;

/// Runs the generation with a card that shows what it does.
fn run_with_following_card(home: &Home, time_scale: u32, args: &[&str]) -> Finished {
    let mut card = Card::rx7900xtx();
    card.follow(home, 0);
    let start = Start::new(home)
        .time_scale(time_scale)
        .card(&card)
        .options(&["--profile", "generic-amd"]);
    start.framepack(args).start().finish(LIMIT)
}

/// Runs it with a card that works until the decode of the section with the fault, and
/// then idles: what a spinning CPU looks like there. A card that never shows the work
/// of a denoising step would prove nothing by its idleness.
fn run_with_card_that_goes_idle(home: &Home, time_scale: u32, args: &[&str]) -> Finished {
    let card = Card::rx7900xtx();
    let start = Start::new(home)
        .time_scale(time_scale)
        .card(&card)
        .options(&["--profile", "generic-amd"]);
    // steps that take their time, so that the card is read in the middle of some
    let args = [args, &["--step-seconds", "0.4"]].concat();
    let mut run = start.framepack(&args).start();
    run.spawned(1);
    card.set("busy=97 power_w=318");
    run.wait_for(
        "the decode of section 2",
        LIMIT,
        |e| matches!(e, Event::Phase(p) if p.phase == Phase::VaeDecode && p.section == Some(2)),
    );
    card.set("busy=0 power_w=18");
    run.finish(LIMIT)
}

#[test]
fn silent_hang_in_the_decode_comes_home_on_fast_find() {
    let home = Home::new();
    let mut args = vec!["--fault", "hang-idle"];
    args.extend(CURES);
    let run = run_with_following_card(&home, 1, &args);
    Hang {
        // the agent reports the convolution in which it hangs
        verdict: VerdictId::FindStall,
        phase: Phase::VaeDecode,
        within: Duration::from_secs(90),
        rung: Some("fast_find"),
    }
    .check(&run);

    let record = framepack_tui::record::Record::open(&home.record()).unwrap();
    let seqs: Vec<u64> = record.envelopes.iter().map(|e| e.seq).collect();
    let gapless: Vec<u64> = (1..).take(seqs.len()).collect();
    assert_eq!(seqs, gapless, "the record has a gap");
    let told = record
        .envelopes
        .iter()
        .filter(|e| !matches!(e.event, Event::Tick))
        .count();
    assert_eq!(told, run.events.len(), "record and stream differ");
    assert!(
        home.record().join("evidence/001").is_dir(),
        "no evidence/001 in the record"
    );
}

#[test]
fn hang_with_the_interpreter_lock_held() {
    let home = Home::new();
    let mut args = vec!["--fault", "hang-idle-gil"];
    args.extend(CURES);
    let run = run_with_following_card(&home, QUICK, &args);
    Hang {
        verdict: VerdictId::SilentHang,
        phase: Phase::VaeDecode,
        within: Duration::from_secs(90),
        rung: Some("fast_find"),
    }
    .check(&run);
    assert_scaled(&run, QUICK);
}

/// The clock of the stream went this much faster than ours from the first event to the declared
/// hang, and no limit was passed over.
fn assert_scaled(run: &Finished, factor: u32) {
    let mut story = run.story();
    let (first, ()) = story.next("the first sample", |e| {
        matches!(e, Event::Sample(_)).then_some(())
    });
    let (declared, onset) = story.next("declared hang", |e| match e {
        Event::Verdict(v) if v.health == Health::Hung => Some(v.onset),
        _ => None,
    });
    let of_run = declared.envelope.at.since(first.envelope.at).as_secs_f64();
    let real = declared.at.duration_since(first.at).unwrap().as_secs_f64();
    let ratio = of_run / real / f64::from(factor);
    assert!((0.9..1.1).contains(&ratio), "{of_run} s in {real} s");
    let waited = declared.envelope.at.since(onset);
    assert!(waited >= Duration::from_secs(45), "{waited:?}");
}

#[test]
fn silent_hang_while_sampling() {
    let home = Home::new();
    let once = home.path("once");
    let args = [
        "--fault",
        "hang-sampling",
        "--fault-once",
        once.to_str().unwrap(),
    ];
    let run = run_with_following_card(&home, QUICK, &args);
    Hang {
        // the agent reports the convolution in which it hangs
        verdict: VerdictId::FindStall,
        phase: Phase::Sampling,
        within: Duration::from_secs(90),
        rung: None,
    }
    .check(&run);
}

#[test]
fn endless_computation_is_a_spin_hang() {
    let home = Home::new();
    let once = home.path("once");
    let args = [
        "--fault",
        "hang-spin",
        "--fault-once",
        once.to_str().unwrap(),
    ];
    let run = run_with_card_that_goes_idle(&home, QUICK, &args);
    // the agent reports the convolution on the imitated card, which explains the busy core
    Hang {
        verdict: VerdictId::FindStall,
        phase: Phase::VaeDecode,
        within: Duration::from_mins(4),
        rung: None,
    }
    .check(&run);
}

#[test]
fn endless_search_is_a_find_stall() {
    let home = Home::new();
    let mut args = vec!["--fault", "hang-spin", "--mark-find"];
    args.extend(CURES);
    let run = run_with_card_that_goes_idle(&home, 1, &args);
    Hang {
        verdict: VerdictId::FindStall,
        phase: Phase::VaeDecode,
        within: Duration::from_mins(3),
        rung: Some("fast_find"),
    }
    .check(&run);
}

/// A hang that no rung cures ends in an honest give-up, not in a loop.
#[test]
fn hang_on_every_rung_is_given_up() {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    // the agent would have a cure
    let run = Start::new(&home)
        .time_scale(QUICK)
        .card(&card)
        .options(&["--profile", "generic-amd", "--agent", "off"])
        .framepack(&["--fault", "hang-idle"])
        .start()
        .finish(LIMIT);
    run.assert_exit(21);
    let attempts = rungs(&run);
    assert!(
        (2..=4).contains(&attempts.len()),
        "attempts: {attempts:?}{}",
        run.digest()
    );
    assert!(
        matches!(
            run.last(),
            Some(Event::RunFinished {
                outcome: Outcome::GaveUp,
                ..
            })
        ),
        "{}",
        run.digest()
    );
    let given_up = run.all(|e| match e {
        Event::Decision(d) if d.choice == Choice::GiveUp => Some(d.why.clone()),
        _ => None,
    });
    assert_eq!(given_up.len(), 1, "{}", run.digest());
}

/// Where every convolution of a kind hangs, the agent makes it of others.
#[test]
fn a_hang_that_no_variable_cures_comes_home_on_split_convolutions() {
    let home = Home::new();
    let run = run_with_following_card(&home, QUICK, &["--fault", "hang-idle"]);
    run.assert_exit(10);
    let rungs = rungs(&run);
    assert_eq!(rungs.last().unwrap().0, "conv_split", "{rungs:?}");
}

fn rungs(run: &Finished) -> Vec<RungId> {
    run.all(|e| match e {
        Event::AttemptStarted(spec) => Some(spec.rung.clone()),
        _ => None,
    })
}
