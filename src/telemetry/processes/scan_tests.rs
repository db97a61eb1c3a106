//! The search over an imitated `/proc`, and over the real one.

use std::os::unix::fs::symlink;

use super::super::clients::texts::text;
use super::super::testing::Tree;
use super::*;
use crate::model::Bytes;

/// Python is sure when its script is FramePack's.
fn classify(argv: &[String], _cwd: &str, names: &[String]) -> Option<Guess> {
    if argv.first()? != "python" {
        return None;
    }
    let sure = argv.iter().any(|a| a == "demo_gradio.py");
    let here = names.iter().any(|n| n == "diffusers_helper");
    Some(Guess {
        kind: if sure || here {
            "framepack"
        } else {
            "diffusers"
        },
        sure: sure || here,
    })
}

struct Machine {
    tree: Tree,
    search: Search,
}

impl Machine {
    fn new() -> Self {
        let tree = Tree::new();
        tree.write("proc/uptime", "1000.50 9.00\n");
        let config = ProcessesConfig {
            root: tree.root().to_owned(),
            nvml: false,
            ..ProcessesConfig::new(classify)
        };
        let search = Search {
            scan: scan::Scan::new(config, Arc::default()),
            supervisors: Arc::default(),
        };
        Self { tree, search }
    }

    fn process(&self, pid: u32, parent: u32, state: char, command: &str) {
        let stat = format!(
            "{pid} (some (name)) {state} {parent} 1 1 0 -1 0 10 0 2 0 7 3 0 0 20 0 1 0 40000 0 0\n"
        );
        self.tree.write(&format!("proc/{pid}/stat"), &stat);
        let words = command.replace(' ', "\0") + if command.is_empty() { "" } else { "\0" };
        self.tree.write(&format!("proc/{pid}/cmdline"), &words);
        std::fs::create_dir_all(self.path(pid, "fd")).unwrap();
    }

    fn path(&self, pid: u32, name: &str) -> PathBuf {
        self.tree.root().join(format!("proc/{pid}/{name}"))
    }

    fn descriptor(&self, pid: u32, fd: u32, to: &str, info: &str) {
        symlink(to, self.path(pid, &format!("fd/{fd}"))).unwrap();
        self.tree.write(&format!("proc/{pid}/fdinfo/{fd}"), info);
    }

    fn look(&mut self) -> Vec<FoundProcess> {
        self.search.read().unwrap().reading
    }
}

const RENDER: &str = "/dev/dri/renderD128";

#[test]
fn a_machine_with_a_generation_a_script_and_a_desktop() {
    let mut m = Machine::new();
    m.process(1, 0, 'S', "init");
    m.process(2, 0, 'S', "");
    m.process(40, 1, 'R', "python demo_gradio.py --port 7860");
    m.descriptor(40, 3, RENDER, &text(7, "18664448 KiB"));
    // the same client once more, and a file that only looks like one
    m.descriptor(40, 4, RENDER, &text(7, "18664448 KiB"));
    m.descriptor(40, 5, "/tmp/x", &text(8, "4 KiB"));
    m.process(50, 1, 'S', "python plain_script.py");
    m.process(60, 1, 'S', "compositor");
    m.descriptor(60, 9, RENDER, &text(9, "90 MiB"));
    let found = m.look();
    let pids: Vec<_> = found.iter().map(|f| (f.pid, f.kind.as_deref())).collect();
    assert_eq!(pids, [(40, Some("framepack")), (60, None)]);
    let g = &found[0];
    assert_eq!(g.argv, ["python", "demo_gradio.py", "--port", "7860"]);
    assert_eq!(g.memory[0].vram, Some(Bytes(18_664_448 << 10)));
    assert_eq!(g.name, "some (name)");
    assert_eq!((g.cpu_percent, g.hidden.as_deref()), (None, None));
    let ticks = 40_000 * 1000 / ::procfs::ticks_per_second();
    assert_eq!(g.age_ms, Some(1_000_500 - ticks));

    // PyTorch makes a generation of the script, a helper of FramePack's folder another
    m.tree
        .write("proc/50/maps", "7f00-7f01 r-xp /x/libtorch_cpu.so\n");
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("diffusers_helper")).unwrap();
    m.process(70, 1, 'S', "python studio.py");
    symlink(home.path(), m.path(70, "cwd")).unwrap();
    let found = m.look();
    let kind = |pid| found.iter().find(|f| f.pid == pid)?.kind.clone();
    assert_eq!(kind(50).as_deref(), Some("diffusers"));
    assert_eq!(kind(70).as_deref(), Some("framepack"));
    assert_eq!(found[0].cpu_percent, Some(0.0), "a measured zero");
}

#[test]
fn a_process_stuck_in_the_driver_is_not_asked_again() {
    let mut m = Machine::new();
    m.process(40, 1, 'R', "python demo_gradio.py");
    m.descriptor(40, 3, RENDER, &text(7, "1 GiB"));
    assert_eq!(m.look().len(), 1);
    m.process(40, 1, 'D', "python demo_gradio.py");
    // reading it would block for ever
    for name in ["cmdline", "fdinfo/3"] {
        std::fs::remove_file(m.path(40, name)).unwrap();
        super::super::testing::fifo(&m.path(40, name));
    }
    let found = m.look();
    assert_eq!(found[0].memory[0].vram, Some(Bytes::gib(1)));
    assert_eq!(found[0].kind.as_deref(), Some("framepack"));
}

#[test]
fn another_program_under_the_same_number_begins_anew() {
    let mut m = Machine::new();
    m.process(40, 1, 'R', "sh run.sh");
    assert_eq!(m.look(), []);
    m.process(40, 1, 'R', "python demo_gradio.py");
    assert_eq!(m.look().len(), 1, "it executed another program");
    std::fs::remove_dir_all(m.tree.root().join("proc/40")).unwrap();
    assert_eq!(m.look(), []);
    m.tree.write("proc/41/stat", "garbage");
    assert_eq!(m.look(), []);
}

#[test]
fn a_blocked_entry_holds_up_nobody_and_is_named() {
    let m = Machine::new();
    m.process(40, 1, 'R', "python demo_gradio.py");
    std::fs::remove_file(m.path(40, "cmdline")).unwrap();
    super::super::testing::fifo(&m.path(40, "cmdline"));
    let config = ProcessesConfig {
        root: m.tree.root().to_owned(),
        nvml: false,
        ..ProcessesConfig::new(classify)
    };
    let processes = Processes::start(config);
    let begun = Instant::now();
    while processes.at.load(Ordering::Relaxed) != 40 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    let (found, status) = processes.latest();
    assert_eq!((found, processes.answered()), (Vec::new(), false));
    assert_eq!(status.state, SourceState::Starting);
    while processes.latest().1.state != SourceState::Stale {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
    let why = processes.latest().1.why.unwrap();
    assert!(why.ends_with("at process 40"), "{why}");
}

#[test]
fn the_real_machine_is_survived() {
    let processes = Processes::start(ProcessesConfig {
        nvml: false,
        ..ProcessesConfig::new(classify)
    });
    let begun = Instant::now();
    while !processes.answered() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(processes.latest().1.state, SourceState::Ok);
}
