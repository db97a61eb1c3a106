//! Bundles of real processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::model::event::ItemState;
use crate::supervise::tree::Member;

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _reaped = self.0.wait();
    }
}

fn until(child: &Ended, there: impl Fn(&[Member]) -> bool) {
    let target = Target {
        pids: vec![child.0.id()],
        guardian: None,
    };
    let end = Instant::now() + Duration::from_secs(20);
    while !target.members().is_ok_and(|m| there(&m)) {
        assert!(Instant::now() < end, "{:?}", target.members());
        thread::sleep(Duration::from_millis(10));
    }
}

fn item<'a>(report: &'a EvidenceReport, kind: &str) -> &'a EvidenceItem {
    report.items.iter().find(|i| i.kind == kind).unwrap()
}

fn index_of(dir: &Path) -> index::Index {
    let text = fs::read(dir.join(index::FILE)).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn text(dir: &Path, report: &EvidenceReport, kind: &str) -> String {
    let item = item(report, kind);
    let file = item
        .file
        .as_ref()
        .unwrap_or_else(|| panic!("{kind}: {item:?}"));
    fs::read_to_string(dir.join(file)).unwrap()
}

#[test]
fn a_bundle_of_a_real_tree_tells_what_it_does() {
    let tmp = tempfile::tempdir().unwrap();
    let child = Command::new("sh")
        .args(["-c", "sleep 60; exit 1"])
        .env("MIOPEN_FIND_MODE", "2")
        .env("HF_TOKEN", "hf_never_shown")
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn();
    let child = Ended(child.unwrap());
    until(&child, |members| members.iter().any(|m| m.name == "sleep"));
    let request = EvidenceRequest {
        number: 1,
        attempt: 2,
        dir: tmp.path().join("evidence/001"),
        pids: vec![child.0.id()],
        samples: vec![r#"{"seq":1}"#.to_owned()],
        kernel_lines: vec!["amdgpu: ring gfx timeout".to_owned()],
        ..EvidenceRequest::default()
    };
    let report = collect(&request);
    assert_eq!((report.number, report.attempt), (1, 2));
    assert!(report.took_ms < 10_000);
    let threads = text(tmp.path(), &report, "threads");
    assert!(
        threads.contains(&format!("process {} sh", child.0.id())),
        "{threads}"
    );
    assert!(threads.contains(" sleep (parent"), "{threads}");
    assert!(threads.contains("voluntary_ctxt_switches"), "{threads}");
    let environment = text(tmp.path(), &report, "environment");
    assert!(environment.contains("MIOPEN_FIND_MODE=2"));
    assert!(!environment.contains("hf_never_shown"));
    assert!(text(tmp.path(), &report, "memory").contains("MemAvailable"));
    assert!(text(tmp.path(), &report, "maps").contains("in all"));
    assert!(text(tmp.path(), &report, "fdinfo").contains("x pipe"));
    assert!(text(tmp.path(), &report, "kernel").contains("ring gfx timeout"));
    assert_eq!(text(tmp.path(), &report, "samples"), "{\"seq\":1}\n");
    // Nothing is not zero bytes, it is a reason.
    let log = item(&report, "log_tail");
    assert_eq!(
        (&log.file, log.failed.as_deref()),
        (&None, Some("none yet"))
    );
    assert_eq!(item(&report, "gpu").failed.as_deref(), Some("no AMD card"));
    let stacks = item(&report, "python_stacks").failed.clone().unwrap();
    assert!(stacks.contains("no Python process"), "{stacks}");
    let saved = fs::read(tmp.path().join("evidence/001/report.json")).unwrap();
    assert_eq!(
        serde_json::from_slice::<EvidenceReport>(&saved).unwrap(),
        report
    );
    let index = index_of(&request.dir);
    let state = |kind: &str| index.items.iter().find(|i| i.kind == kind).unwrap().state;
    assert_eq!(state("threads"), ItemState::Ok);
    assert_eq!(state("gpu"), ItemState::Absent);
    assert_eq!(state("log_tail"), ItemState::Absent);
    assert_eq!(index.items.len(), report.items.len());
    let mode = fs::metadata(&request.dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn python_is_found_and_a_missing_tool_names_its_cure() {
    let child = Command::new("python3")
        .args(["-c", "import time; time.sleep(60)"])
        .process_group(0)
        .spawn();
    let child = Ended(child.unwrap());
    // A version manager's shim may come first.
    until(&child, |members| members.iter().any(python::is_python));
    let tmp = tempfile::tempdir().unwrap();
    let report = collect(&EvidenceRequest {
        number: 1,
        attempt: 1,
        dir: tmp.path().join("evidence/001"),
        pids: vec![child.0.id()],
        ..EvidenceRequest::default()
    });
    let stacks = item(&report, "python_stacks");
    match &stacks.failed {
        Some(why) => assert!(why.contains("py-spy"), "{why}"),
        None => assert!(text(tmp.path(), &report, "python_stacks").contains("Thread")),
    }
}

#[test]
fn processes_that_are_gone_are_a_reason_and_not_an_error() {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let tmp = tempfile::tempdir().unwrap();
    let report = collect(&EvidenceRequest {
        number: 1,
        dir: tmp.path().join("001"),
        pids: vec![child.id()],
        ..EvidenceRequest::default()
    });
    let why = item(&report, "threads").failed.clone().unwrap();
    assert!(why.contains("no process of the attempt"), "{why}");
}

#[test]
fn a_collector_that_hangs_is_left_behind_with_what_it_had() {
    let begun = Instant::now();
    let parts = gather(
        vec![
            Collector::new("gpu", "gpu.txt", 4096, |out| {
                out.line("gpu_busy_percent 0");
                out.doing("while reading mem_busy_percent");
                loop {
                    thread::park();
                }
            }),
            Collector::new("kernel", "kernel.txt", 4096, |_| panic!("a defect")),
            Collector::new("maps", "maps.txt", 4096, |out| {
                out.line("fine");
                Ok(())
            }),
        ],
        Duration::from_secs(1),
    );
    assert!(begun.elapsed() < Duration::from_secs(3));
    let trouble: Vec<_> = parts.iter().map(|p| p.trouble.clone()).collect();
    let silent = "no answer within 1 s, while reading mem_busy_percent";
    assert_eq!(trouble[0], Some(Trouble::Failed(silent.to_owned())));
    assert!(matches!(trouble[1], Some(Trouble::Failed(_))));
    assert_eq!(trouble[2], None);
    assert!(parts[0].took_ms >= 1000 && parts[2].took_ms < 1000);
    assert_eq!(parts[0].kept.bytes, b"gpu_busy_percent 0\n");
}

#[test]
fn outputs_are_bounded_and_say_so() {
    let out = Output::new(1024);
    for _ in 0..100 {
        out.line("x".repeat(99));
    }
    let kept = String::from_utf8(out.take().bytes).unwrap();
    assert!(kept.len() <= 1024, "{}", kept.len());
    assert!(kept.ends_with("bytes left out]\n"), "{kept}");
    let out = Output::new(1024);
    let lines: Vec<_> = (0..100)
        .map(|n| format!("{{\"seq\":{n},\"pad\":\"{}\"}}", "x".repeat(50)))
        .collect();
    output::latest(&out, lines.iter()).unwrap();
    let kept = String::from_utf8(out.take().bytes).unwrap();
    let kept: Vec<_> = kept.lines().collect();
    assert_eq!(kept, lines[100 - kept.len()..]);
    assert!(!kept.is_empty());
}

#[test]
fn bounds_of_the_collectors_add_up_to_less_than_a_bundle() {
    let everything = EvidenceRequest {
        gdb: true,
        own_stacks: Some(OwnStacks::new(|| Ok(String::new()))),
        beats: vec![String::new()],
        ..EvidenceRequest::default()
    };
    let target = Target {
        pids: Vec::new(),
        guardian: None,
    };
    let mut all = lookers(&everything);
    all.extend(tools(&everything, &target));
    let sum: usize = all.iter().map(|c| c.max_bytes).sum();
    assert!(sum + MIB < MAX_BUNDLE_BYTES, "{sum}");
}

#[test]
fn an_eleventh_bundle_and_a_folder_that_cannot_be_made_are_told() {
    let report = collect(&EvidenceRequest {
        number: 11,
        ..EvidenceRequest::default()
    });
    assert!(
        report.items[0]
            .failed
            .as_ref()
            .unwrap()
            .contains("at most 10")
    );
    let report = collect(&EvidenceRequest {
        number: 1,
        dir: "/dev/null/evidence".into(),
        samples: vec!["{}".to_owned()],
        ..EvidenceRequest::default()
    });
    let why = item(&report, "samples").failed.clone().unwrap();
    assert!(why.contains("/dev/null/evidence"), "{why}");
}

#[test]
fn a_card_is_read_without_its_dangerous_files_and_not_woken() {
    let tmp = tempfile::tempdir().unwrap();
    let awake = tmp.path().join("card0/device");
    let asleep = tmp.path().join("card1/device");
    let falling = tmp.path().join("card2/device");
    for dir in [&awake, &asleep, &falling] {
        fs::create_dir_all(dir.join("hwmon/hwmon3")).unwrap();
        fs::create_dir_all(dir.join("power")).unwrap();
        fs::write(dir.join("gpu_busy_percent"), "100\n").unwrap();
        fs::write(dir.join("pcie_bw"), "1 2 3\n").unwrap();
        fs::write(dir.join("gpu_metrics"), [0xff, 0x00, 0x10]).unwrap();
        fs::write(dir.join("hwmon/hwmon3/power1_average"), "21000000\n").unwrap();
    }
    fs::write(awake.join("power/runtime_status"), "active\n").unwrap();
    fs::write(asleep.join("power/runtime_status"), "suspended\n").unwrap();
    fs::write(falling.join("power/runtime_status"), "suspending\n").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        awake.join("a_fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let out = Output::new(64 << 10);
    gpu::collect(&out, &[awake, asleep, falling]).unwrap();
    let text = String::from_utf8(out.take().bytes).unwrap();
    let (first, second) = text.split_once("card1/device").unwrap();
    assert!(first.contains("gpu_busy_percent\n100\n"), "{first}");
    assert!(first.contains("power1_average\n21000000"), "{first}");
    assert!(first.contains("ff0010"), "{first}");
    assert!(
        !first.contains("pcie_bw") && !first.contains("a_fifo"),
        "{first}"
    );
    assert!(
        second.contains("not woken") && !second.contains("gpu_busy"),
        "{second}"
    );
}

#[test]
fn what_a_program_tells_of_its_own_stacks_is_a_part() {
    let tmp = tempfile::tempdir().unwrap();
    let ask = |number, own: OwnStacks| {
        collect(&EvidenceRequest {
            number,
            dir: tmp.path().join(format!("evidence/00{number}")),
            own_stacks: Some(own),
            beats: vec!["{\"pid\":7}".to_owned()],
            ..EvidenceRequest::default()
        })
    };
    let report = ask(
        1,
        OwnStacks::new(|| Ok("Thread 1\n  in decode\n".to_owned())),
    );
    let told = text(tmp.path(), &report, "python_stacks");
    assert_eq!(told, "Thread 1\n  in decode\n");
    assert_eq!(text(tmp.path(), &report, "agent"), "{\"pid\":7}\n");

    let report = ask(
        2,
        OwnStacks::new(|| Err("no answer within 1000 ms".to_owned())),
    );
    let item = report.items.iter().find(|i| i.kind == "python_stacks");
    let why = item.unwrap().failed.clone().unwrap();
    assert!(why.contains("no answer within 1000 ms"), "{why}");
}

#[test]
fn native_stacks_are_taken_only_when_asked_and_the_program_goes_on() {
    let child = Command::new("sleep").arg("60").process_group(0).spawn();
    let child = Ended(child.unwrap());
    until(&child, |members| members.iter().any(|m| m.name == "sleep"));
    let tmp = tempfile::tempdir().unwrap();
    let mut request = EvidenceRequest {
        number: 1,
        dir: tmp.path().join("evidence/001"),
        pids: vec![child.0.id()],
        ..EvidenceRequest::default()
    };
    let report = collect(&request);
    assert!(!report.items.iter().any(|i| i.kind == "native_stacks"));
    request.gdb = true;
    let report = collect(&request);
    let stacks = item(&report, "native_stacks");
    match &stacks.failed {
        // not there, or not allowed to look, or too slow on a busy machine
        Some(why) => assert!(why.contains("gdb"), "{why}"),
        None => assert!(text(tmp.path(), &report, "native_stacks").contains("Thread")),
    }
    until(&child, |members| {
        members.iter().all(|m| m.state != 'T' && m.state != 't')
    });
}

#[test]
fn a_tool_that_others_may_have_put_there_is_not_run() {
    let tmp = tempfile::tempdir().unwrap();
    let bin = tmp.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let tool = bin.join("py-spy");
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&bin, 0o755);
    set(&tool, 0o644);
    assert!(!tool::is_executable(&tool));
    set(&tool, 0o755);
    assert!(tool::is_executable(&tool) && tool::is_trustworthy(&tool));
    set(&tool, 0o757);
    assert!(!tool::is_trustworthy(&tool));
    set(&tool, 0o755);
    set(&bin, 0o777);
    assert!(!tool::is_trustworthy(&tool));
}
