//! Faults that the agent answers inside the program, and what it saves of a restart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use framepack_tui::model::event::Choice;
use framepack_tui::model::{AgentWord, Event, ExitStatus, Outcome, Phase, RungId, VerdictId};

use crate::harness::{Card, Finished, Home, Start, python, workload};

const LIMIT: Duration = Duration::from_mins(6);

/// A tiny generation that writes into the home.
#[derive(Clone, Copy)]
enum Program {
    /// A script with a loop of its own.
    Own,
    /// The same through a diffusers pipeline.
    Pipeline,
    Wan,
    /// Modules and functions with FramePack's names.
    App,
}

impl Program {
    fn command(self, home: &Home) -> Vec<std::ffi::OsString> {
        let (script, words): (&str, &[&str]) = match self {
            Self::Own => ("tiny_framepack.py", &[]),
            Self::Pipeline => ("tiny_framepack.py", &["--pipeline"]),
            Self::Wan => ("tiny_wan.py", &[]),
            Self::App => (
                "tiny_framepack_app.py",
                &["--job", "once", "--exit-on-error"],
            ),
        };
        let mut command = vec![python().into(), workload(script).into(), "--out".into()];
        command.push(home.out().into());
        command.extend(words.iter().map(Into::into));
        command
    }

    /// Runs it beside a card that shows what it does.
    fn run(self, home: &Home, options: &[&str], args: &[&str]) -> Finished {
        let mut card = Card::rx7900xtx();
        card.follow(home, 0);
        Start::new(home)
            .card(&card)
            .options(&["--profile", "generic-amd"])
            .options(options)
            .command(&self.command(home))
            .command(args)
            .start()
            .finish(LIMIT)
    }
}

fn words(run: &Finished) -> Vec<AgentWord> {
    run.all(|e| match e {
        Event::Agent(note) => Some(note.word.clone()),
        _ => None,
    })
}

/// Tiers but the native one that the statistics name as having worked.
fn tiers(run: &Finished) -> BTreeSet<String> {
    let mut tiers = BTreeSet::new();
    for word in words(run) {
        if let AgentWord::Beat(beat) = word {
            let worked = |name: &&String| name.rsplit('.').next() == Some("ok");
            let ok = beat.tiers.keys().filter(worked);
            tiers.extend(ok.cloned());
        }
    }
    tiers
}

fn rungs(run: &Finished) -> Vec<RungId> {
    run.all(|e| match e {
        Event::AttemptStarted(spec) => Some(spec.rung.clone()),
        _ => None,
    })
}

fn videos(home: &Home) -> Vec<PathBuf> {
    let files = std::fs::read_dir(home.out()).unwrap().flatten();
    let mut videos: Vec<_> = files
        .map(|f| f.path())
        .filter(|p| p.extension().is_some_and(|e| e == "mp4"))
        .collect();
    videos.sort_by_key(|p| (p.metadata().unwrap().modified().unwrap(), p.clone()));
    videos
}

/// One attempt, exit code 0, a video.
fn assert_undisturbed(what: &str, run: &Finished, home: &Home) {
    run.assert_exit(0);
    assert_eq!(rungs(run), [RungId::as_given()], "{what}{}", run.digest());
    let restarts = matches!(
        run.last(),
        Some(Event::RunFinished {
            outcome: Outcome::Finished { restarts: 0 },
            ..
        })
    );
    assert!(restarts, "{what}{}", run.digest());
    assert!(!videos(home).is_empty(), "{what}");
}

fn cured_without_a_restart(program: Program) {
    for (fault, tier) in [
        ("miopen", "conv3d.split.ok"),
        ("miopen-once", "conv3d.split.ok"),
        ("miopen-all", "conv3d.cpu.ok"),
    ] {
        let home = Home::new();
        let run = program.run(&home, &[], &["--fault", fault]);
        assert_undisturbed(fault, &run, &home);
        let tiers = tiers(&run);
        assert!(tiers.contains(tier), "{fault}: {tiers:?}{}", run.digest());
        let chosen = tier.split('.').nth(1);
        let told = words(&run).iter().any(|w| {
            matches!(w, AgentWord::Conv(c) if c.what == "chosen" && Some(c.tier.as_str()) == chosen)
        });
        assert!(told, "{fault}{}", run.digest());
    }
    // memory comes back when torch's cache is emptied
    let home = Home::new();
    let run = program.run(&home, &[], &["--fault", "oom"]);
    assert_undisturbed("oom", &run, &home);
}

#[test]
fn in_a_loop_of_its_own() {
    cured_without_a_restart(Program::Own);
}

#[test]
fn in_a_pipeline() {
    cured_without_a_restart(Program::Pipeline);
}

#[test]
fn in_wan() {
    cured_without_a_restart(Program::Wan);
}

#[test]
fn in_an_app_of_framepacks_shape() {
    cured_without_a_restart(Program::App);
}

/// Where convolutions are left alone, a lack of memory comes home on the tiles that only
/// the agent can set.
#[test]
fn a_lack_of_memory_comes_home_on_its_rung() {
    let home = Home::new();
    let profile = home.path("mine.toml");
    std::fs::write(
        &profile,
        "schema = 1\n[profile]\nid = \"mine\"\nversion = \"1.0.0\"\ntitle = \"t\"\nextends = \"generic-amd\"\n[workload.settings]\nconv = \"off\"\n",
    )
    .unwrap();
    let once = home.path("once");
    let args = ["--fault", "oom", "--fault-once", once.to_str().unwrap()];
    let options = ["--profile", profile.to_str().unwrap()];
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let run = Start::new(&home)
        .card(&card)
        .options(&options)
        .command(&Program::Pipeline.command(&home))
        .command(&args)
        .start()
        .finish(LIMIT);
    run.assert_exit(10);
    run.story().verdict(VerdictId::GpuOom);
    let tiles = RungId("tiled_vae".to_owned());
    assert_eq!(rungs(&run), [RungId::as_given(), tiles], "{}", run.digest());
    let set = words(&run)
        .iter()
        .any(|w| matches!(w, AgentWord::Fix { what, .. } if what == "vae_tile"));
    assert!(set, "{:?}", words(&run));
}

/// The runtime's allocator gives up and aborts: the next attempt unloads everything before
/// the decode, and samples only what was not finished.
#[test]
fn an_allocator_storm_comes_home_on_its_rung() {
    let home = Home::new();
    let once = home.path("once");
    let args = [
        "--fault",
        "blockalloc",
        "--fault-once",
        once.to_str().unwrap(),
    ];
    let run = Program::App.run(&home, &[], &args);
    run.assert_exit(10);
    run.story().verdict(VerdictId::BlockAllocator);
    let ends = run.all(|e| match e {
        Event::Exited(report) => Some(report.status),
        _ => None,
    });
    assert_eq!(ends, [ExitStatus::Signal(6), ExitStatus::Code(0)]);
    let unload = RungId("full_unload".to_owned());
    assert_eq!(
        rungs(&run),
        [RungId::as_given(), unload],
        "{}",
        run.digest()
    );
    let set = words(&run)
        .iter()
        .any(|w| matches!(w, AgentWord::Fix { what, .. } if what == "full_unload"));
    assert!(set, "{:?}", words(&run));
    assert_eq!(replayed(&run), 2, "{}", run.digest());
}

/// Sections that were handed back in place of being sampled.
fn replayed(run: &Finished) -> usize {
    let replayed = words(run)
        .into_iter()
        .filter(|w| matches!(w, AgentWord::Vault(v) if v.what == "replayed" && v.of == "section"));
    replayed.count()
}

/// `(24 model steps)`: how many were really computed, by the app's own count.
fn model_steps(run: &Finished) -> Option<u32> {
    let lines = run.all(|e| match e {
        Event::Line(l) => Some(l.text.clone()),
        _ => None,
    });
    let line = lines.iter().rev().find(|l| l.contains("model steps"))?;
    let (before, _) = line.split_once(" model steps")?;
    before.rsplit_once('(')?.1.parse().ok()
}

/// A decode that hangs costs the decode: nothing finished is sampled again, and the video
/// is that of a run without a fault, byte for byte.
#[test]
fn a_hang_in_the_second_section_costs_only_its_decode() {
    let untouched = Home::new();
    let run = Program::App.run(&untouched, &[], &[]);
    assert_undisturbed("no fault", &run, &untouched);
    assert_eq!(model_steps(&run), Some(24));

    let home = Home::new();
    let once = home.path("once");
    let args = [
        "--fault",
        "hang-idle",
        "--fault-once",
        once.to_str().unwrap(),
    ];
    let run = Program::App.run(&home, &[], &args);
    run.assert_exit(10);
    let mut story = run.story();
    // where a card is imitated the agent reports the convolution on it: who hangs inside the
    // call searches, since kernels run after it
    let (_, hung) = story.verdict(VerdictId::FindStall);
    assert_eq!(hung.phase, Phase::VaeDecode);
    assert_eq!(rungs(&run).len(), 2, "{}", run.digest());
    assert_eq!(replayed(&run), 2, "{}", run.digest());
    assert_eq!(model_steps(&run), Some(8), "one section of eight steps");

    let last = |home: &Home| std::fs::read(videos(home).last().unwrap()).unwrap();
    assert!(last(&home) == last(&untouched), "another video");

    the_evidence_holds_the_agents_own_stacks(&run, &home);
}

fn the_evidence_holds_the_agents_own_stacks(run: &Finished, home: &Home) {
    let reports = run.all(|e| match e {
        Event::EvidenceTaken(r) => Some(r.clone()),
        _ => None,
    });
    let text = |kind: &str| {
        let item = reports[0].items.iter().find(|i| i.kind == kind);
        let file = item.and_then(|i| i.file.as_ref());
        let file = file.unwrap_or_else(|| panic!("no {kind}: {reports:#?}"));
        std::fs::read_to_string(Path::new(&home.record()).join(file)).unwrap()
    };
    let stacks = text("python_stacks");
    for word in ["by the agent", "vae_decode", "block_without_cpu"] {
        assert!(stacks.contains(word), "no {word} in {stacks}");
    }
    // the call that does not come back
    assert!(text("agent").contains("conv3d"), "{}", text("agent"));
    let restart = run.all(|e| match e {
        Event::Decision(d) => matches!(d.choice, Choice::Restart { .. }).then(|| d.why.clone()),
        _ => None,
    });
    assert_eq!(restart.len(), 1, "{}", run.digest());
}
