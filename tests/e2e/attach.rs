//! A process that somebody else started: `framepack-tui watch --pid N`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use framepack_tui::model::event::{Choice, Level};
use framepack_tui::model::{Event, Health, JobChange, Outcome, Phase, VerdictId};
use rustix::process::Signal;

use crate::harness::{BINARY, Card, Finished, Home, Start, kill, python, wait_until, workload};
use crate::terminal::Terminal;

/// Start, hang and limit, on a busy machine.
const LIMIT: Duration = Duration::from_mins(4);
const SOON: Duration = Duration::from_secs(30);

/// A program of the user's, in a home of its own; ended with the test.
struct Theirs {
    /// Its folders live as long as it does.
    _home: Home,
    child: Child,
}

impl Theirs {
    fn start(home: Home, mut command: Command, stdout: Stdio, stderr: Stdio) -> Self {
        home.dress(&mut command);
        command.current_dir(home.dir()).stdin(Stdio::null());
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        Self { _home: home, child }
    }

    /// A Python program whose output goes into this.
    fn python(program: &str, stdout: impl Into<Stdio>) -> Self {
        let mut command = Command::new(python());
        command.args(["-c", program]);
        Self::start(Home::new(), command, stdout.into(), Stdio::null())
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // it may have ended; what else carries the mark of its home ends with that
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

const IDLE: &str = "import time; print('here', flush=True); time.sleep(600)";

fn output(home: &Home, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(BINARY);
    command.args(words).current_dir(home.dir());
    home.dress(&mut command);
    let Output {
        status,
        stdout,
        stderr,
    } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn assert_untouched(run: &Finished) {
    let sent = run.all(|e| matches!(e, Event::SignalSent { .. }).then_some(()));
    assert!(sent.is_empty(), "a signal was sent{}", run.digest());
    let acted = run.all(|e| match e {
        Event::Decision(d) if d.choice != Choice::Advise => Some(d.choice.clone()),
        _ => None,
    });
    assert!(acted.is_empty(), "{acted:?}{}", run.digest());
}

fn outcome(run: &Finished) -> Outcome {
    match run.last() {
        Some(Event::RunFinished { outcome, .. }) => outcome.clone(),
        other => panic!("no end: {other:?}"),
    }
}

#[test]
fn a_hang_is_proven_with_evidence_and_the_process_lives_on() {
    let (home, theirs) = (Home::new(), Home::new());
    let mut card = Card::rx7900xtx();
    card.follow(&theirs, 0);
    let log = theirs.path("console.log");
    let console = File::create(&log).unwrap();
    let mut command = card.inside(python());
    command.arg(workload("tiny_framepack.py"));
    command.arg("--out").arg(theirs.out());
    command.args(["--fault", "hang-idle"]);
    let both = (console.try_clone().unwrap().into(), console.into());
    let mut job = Theirs::start(theirs, command, both.0, both.1);
    let mut run = Start::new(&home)
        .card(&card)
        .watching(job.pid())
        .options(&["--profile", "generic-amd"])
        .start();
    run.wait_for(
        "suspicion",
        LIMIT,
        |e| matches!(e, Event::Verdict(v) if v.health == Health::Suspect),
    );
    run.wait_for(
        "hang",
        LIMIT,
        |e| matches!(e, Event::Verdict(v) if v.health == Health::Hung),
    );
    run.wait_for("evidence", SOON, |e| matches!(e, Event::EvidenceTaken(_)));
    assert!(job.lives());
    run.signal(Signal::TERM);
    let run = run.finish(SOON);
    run.assert_exit(0);
    assert!(job.lives(), "SIGTERM to us ended it");
    assert_eq!(outcome(&run), Outcome::Left);
    assert_untouched(&run);

    let mut story = run.story();
    story.then("the job by the log", |e| {
        matches!(e, Event::Job(JobChange::Started))
    });
    let (_, verdict) = story.next("hang", |e| match e {
        Event::Verdict(v) if v.health == Health::Hung => Some((**v).clone()),
        _ => None,
    });
    assert_eq!(
        (verdict.id, verdict.phase),
        (VerdictId::SilentHang, Phase::VaeDecode),
        "{}",
        run.digest()
    );
    let (_, why) = story.next("advice", |e| match e {
        Event::Decision(d) => Some(d.why.clone()),
        _ => None,
    });
    assert!(why.contains("not ours"), "{why}");
    let (_, evidence) = story.next("evidence", |e| match e {
        Event::EvidenceTaken(report) => Some(report.clone()),
        _ => None,
    });
    let threads = evidence.items.iter().find(|i| i.kind == "threads").unwrap();
    assert!(threads.file.is_some(), "{threads:?}");

    let manifest = std::fs::read_to_string(home.record().join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["watch"], job.pid());
    let (code, text, _) = output(&home, &["follow", "--plain", "last"]);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("silent_hang") && text.contains("left"),
        "{text}"
    );
    let (_, listed, _) = output(&home, &["runs"]);
    assert!(listed.contains("tiny_framepack.py"), "{listed}");
}

#[test]
fn no_signal_to_us_reaches_it_and_usr2_takes_evidence() {
    for signal in [Signal::INT, Signal::HUP, Signal::TERM] {
        let home = Home::new();
        let mut theirs = Theirs::python(IDLE, Stdio::null());
        let mut run = Start::new(&home).watching(theirs.pid()).start();
        run.spawned(1);
        if signal == Signal::INT {
            run.signal(Signal::USR2);
            run.wait_for("evidence", SOON, |e| matches!(e, Event::EvidenceTaken(_)));
        }
        run.signal(signal);
        let run = run.finish(SOON);
        run.assert_exit(0);
        assert_eq!(outcome(&run), Outcome::Left);
        assert_untouched(&run);
        assert!(theirs.lives(), "{signal:?} to us ended it");
    }
}

#[test]
fn on_the_screen_it_ends_on_the_users_word_after_a_question() {
    let home = Home::new();
    let mut theirs = Theirs::python(IDLE, Stdio::null());
    let pid = theirs.pid().to_string();
    let program: Vec<OsString> = [BINARY, "watch", "--pid", &pid].map(Into::into).into();
    let mut terminal = Terminal::open(&home, (100, 30), &program);
    terminal.wait_for("watched", SOON);
    terminal.press("q");
    terminal.assert_restored(0);
    assert!(theirs.lives());
    drop(terminal);

    let mut terminal = Terminal::open(&home, (100, 30), &program);
    terminal.wait_for("watched", SOON);
    terminal.press("k");
    terminal.wait_for("SIGKILL", SOON);
    assert!(theirs.lives());
    terminal.press("y");
    // the last screen stays until a key
    terminal.wait_for("ENDED", SOON);
    terminal.press("q");
    terminal.assert_restored(130);
    assert!(wait_until(SOON, || !theirs.lives()), "it lives on");
}

#[test]
fn a_process_that_ends_is_told_with_what_is_known() {
    let home = Home::new();
    let theirs = Theirs::python("import time; time.sleep(600)", Stdio::null());
    let mut run = Start::new(&home).watching(theirs.pid()).start();
    run.spawned(1);
    kill(theirs.pid(), Signal::KILL).unwrap();
    let run = run.finish(SOON);
    run.assert_exit(0);
    assert_eq!(outcome(&run), Outcome::Ended);
    assert_untouched(&run);
}

#[test]
fn the_kernel_may_know_why_it_ended() {
    let home = Home::new();
    let kernel = home.path("kernel.log");
    File::create(&kernel).unwrap();
    let theirs = Theirs::python(IDLE, Stdio::null());
    let mut run = Start::new(&home)
        .env("FPT_KERNEL_LOG", &kernel)
        .watching(theirs.pid())
        .start();
    run.spawned(1);
    run.wait_for("a reading", SOON, |e| matches!(e, Event::Sample(_)));
    let pid = theirs.pid();
    let mut log = OpenOptions::new().append(true).open(&kernel).unwrap();
    writeln!(
        log,
        "Out of memory: Killed process {pid} (python) total-vm:50331648kB, anon-rss:24117248kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:50000kB oom_score_adj:0"
    )
    .unwrap();
    run.wait_for("the kernel's word", SOON, |e| {
        matches!(e, Event::Kernel { .. })
    });
    kill(pid, Signal::KILL).unwrap();
    let run = run.finish(SOON);
    run.assert_exit(20);
    run.story().verdict(VerdictId::HostOom);
    assert_untouched(&run);
}

#[test]
fn a_console_in_a_pipe_is_told_and_silence_is_not_judged() {
    let home = Home::new();
    let theirs = Theirs::python(IDLE, Stdio::piped());
    let mut run = Start::new(&home).watching(theirs.pid()).start();
    let told = run.wait_for(
        "a word about the console",
        SOON,
        |e| matches!(e, Event::Notice { level: Level::Warn, text } if text.contains("a pipe")),
    );
    let Event::Notice { text, .. } = told.envelope.event else {
        unreachable!();
    };
    assert!(
        text.contains("telemetry alone") && text.contains("--job"),
        "{text}"
    );
    let blind = run.wait_for(
        "no judgement",
        SOON,
        |e| matches!(e, Event::Verdict(v) if v.health == Health::Blind),
    );
    let Event::Verdict(verdict) = blind.envelope.event else {
        unreachable!();
    };
    assert!(
        verdict.sentence.contains("not known"),
        "{}",
        verdict.sentence
    );
    run.signal(Signal::INT);
    run.finish(SOON).assert_exit(0);
}

/// The log of a program that writes through `tee`.
#[test]
fn a_log_is_read_from_its_end_on() {
    let home = Home::new();
    let theirs = Theirs::python(IDLE, Stdio::piped());
    let log = home.path("tee.log");
    std::fs::write(&log, "long ago\n").unwrap();
    let options = ["--log", log.to_str().unwrap()];
    let start = Start::new(&home).watching(theirs.pid());
    let mut run = start.options(&options).start();
    run.spawned(1);
    let mut file = OpenOptions::new().append(true).open(&log).unwrap();
    writeln!(file, "just now").unwrap();
    run.wait_for_line("just now", SOON);
    run.signal(Signal::INT);
    let run = run.finish(SOON);
    let old = run.all(|e| match e {
        Event::Line(line) if line.text.contains("long ago") => Some(()),
        _ => None,
    });
    assert!(old.is_empty(), "what was there before is not read");
}

/// A script whose whole output goes into one file: our words there are not the program's.
#[test]
fn our_own_words_are_not_read_back() {
    let home = Home::new();
    let log = home.path("all.log");
    let out = File::create(&log).unwrap();
    let theirs = Theirs::python(IDLE, out.try_clone().unwrap());
    let mut command = Command::new(BINARY);
    let pid = theirs.pid().to_string();
    command.args(["watch", "--headless", "--pid", &pid]);
    command.current_dir(home.dir()).stdin(Stdio::null());
    home.dress(&mut command);
    let mut watch = command.stdout(out).stderr(Stdio::null()).spawn().unwrap();
    let text = || std::fs::read_to_string(&log).unwrap();
    assert!(wait_until(SOON, || text().contains("\"kind\":\"sample\"")));
    std::thread::sleep(Duration::from_secs(2));
    kill(watch.id(), Signal::INT).unwrap();
    watch.wait().unwrap();
    let text = text();
    assert!(
        text.contains("so does the output of this program"),
        "{text}"
    );
    assert!(!text.contains("\"kind\":\"line\""), "{text}");
}

#[test]
fn what_is_not_watched_says_why() {
    let home = Home::new();
    let refuse = |pid: &str, code: i32, word: &str| {
        let (got, out, err) = output(&home, &["watch", "--headless", "--pid", pid]);
        assert_eq!((got, out.as_str()), (Some(code), ""), "{err}");
        assert!(err.contains(word) && !err.contains("panicked"), "{err}");
    };
    refuse("1", 64, "first process");
    refuse("4194304", 66, "there is no process");
    refuse("0", 64, "0");
    refuse(&std::process::id().to_string(), 64, "above this program");
    let runs = home.path("state/framepack-tui/runs");
    assert!(!Path::new(&runs).exists(), "a refusal left a record");

    let mut run = Start::new(&home).python(IDLE).start();
    let (pid, _) = run.spawned(1);
    refuse(&pid.to_string(), 64, "framepack-tui follow");
    run.signal(Signal::INT);
    run.finish(SOON).assert_exit(130);
}
