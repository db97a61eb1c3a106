use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::super::super::testing::Tree as Files;
use super::*;

struct Fixture {
    source: ProcSource,
    target: Arc<Mutex<Target>>,
    threads: Arc<Mutex<Vec<ThreadSample>>>,
}

fn fixture(root: &Path, pid: u32, reaper: Option<u32>) -> Fixture {
    let target = Arc::new(Mutex::new(Target {
        pid: Some(pid),
        reaper,
        detail: true,
    }));
    let threads = Arc::new(Mutex::new(Vec::new()));
    let source = ProcSource::new(
        root,
        Arc::clone(&target),
        Arc::clone(&threads),
        Arc::default(),
    );
    Fixture {
        source,
        target,
        threads,
    }
}

impl Fixture {
    fn read(&mut self) -> Option<ProcSample> {
        self.source.tree.scanned = None;
        self.source.read().unwrap().reading.sample
    }
}

/// A shell with children, in a group of their own that is killed at the end.
struct Busy(Child);

impl Busy {
    fn start(script: &str) -> Self {
        let child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Self(child)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

fn kill(pid: &str) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -9 {pid}")])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn our_own_tree_is_seen_and_its_counters_never_fall() {
    let mut shell = Busy::start("sleep 60 & sh -c 'while :; do :; done' & echo $!; wait");
    let spinner = shell.line();
    let mut f = fixture(Path::new("/"), shell.0.id(), None);
    let begin = Instant::now();
    // Until the shell waits and both children are what they are to become.
    let first = loop {
        let sample = f.read().unwrap();
        let mut names = sample.children.clone();
        names.sort();
        if sample.state == Metric::Fresh('S') && names == ["sh", "sleep"] {
            break sample;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{sample:?}");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(first.pid, shell.0.id());
    assert_eq!((first.processes, first.threads), (3, 3));
    assert!(!first.traced);
    assert!(first.rss.last().is_some_and(|b| b.0 > 100_000));
    let threads = lock(&f.threads).clone();
    assert_eq!(threads.len(), 3);
    assert!(
        threads
            .iter()
            .any(|t| t.pid.to_string() == spinner && t.state == 'R')
    );

    let cpu = |s: &ProcSample| *s.cpu_ns.fresh().unwrap();
    let mut later = f.read().unwrap();
    while cpu(&later) < cpu(&first) + 30_000_000 {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "cpu time stands still"
        );
        std::thread::sleep(Duration::from_millis(50));
        later = f.read().unwrap();
    }
    kill(&spinner);
    // The shell may not have reaped it yet; a zombie still has its counters.
    while f.read().unwrap().processes > 2 {
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "the child is still there"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = f.read().unwrap();
    assert!(cpu(&after) >= cpu(&later));
    assert!(after.switches.last() >= later.switches.last());
    assert!(after.read_chars.last() >= later.read_chars.last());
}

#[test]
fn a_tree_that_ended_is_absent() {
    let mut shell = Busy::start("echo up; exec sleep 60");
    assert_eq!(shell.line(), "up");
    let mut f = fixture(Path::new("/"), shell.0.id(), None);
    assert!(f.read().is_some());
    drop(shell);
    assert_eq!(f.read(), None);
    lock(&f.target).pid = None;
    assert_eq!(f.read(), None);
}

fn stat(pid: u32, comm: &str, state: char, parent: u32, ticks: u64, start: u64) -> String {
    format!(
        "{pid} ({comm}) {state} {parent} 1 1 0 -1 0 10 0 2 0 {ticks} 0 0 0 20 0 1 0 {start} 0 0\n"
    )
}

fn process(files: &Files, pid: u32, comm: &str, state: char, parent: u32, ticks: u64) {
    let text = stat(pid, comm, state, parent, ticks, 500);
    files.write(&format!("proc/{pid}/stat"), &text);
    files.write(&format!("proc/{pid}/task/{pid}/stat"), &text);
}

#[test]
fn a_host_that_shows_little_gives_unsupported_not_zero() {
    let files = Files::new();
    process(&files, 7, "python3", 'S', 1, 100);
    files.write("proc/7/task/7/status", "Name:\tpython3\n");
    let mut f = fixture(files.root(), 7, None);
    let s = f.read().unwrap();
    assert_eq!(s.cpu_ns, Metric::Fresh(100 * f.source.tick_ns));
    assert_eq!(s.minor_faults, Metric::Fresh(10));
    assert_eq!(s.major_faults, Metric::Fresh(2));
    for metric in [
        &s.read_bytes,
        &s.write_bytes,
        &s.read_chars,
        &s.write_chars,
        &s.switches,
    ] {
        assert_eq!(*metric, Metric::Unsupported);
    }
    assert_eq!((s.rss, s.swap), (Metric::Unsupported, Metric::Unsupported));
    assert_eq!(s.wait_channel, Metric::Unsupported);
    assert_eq!(s.d_state, Metric::Fresh(0));
    // A thread whose switches cannot be told is left out, not given a zero.
    assert_eq!(*lock(&f.threads), []);
}

#[test]
fn a_file_that_fails_is_a_failure() {
    let files = Files::new();
    process(&files, 7, "python3", 'S', 1, 100);
    std::fs::create_dir(files.root().join("proc/7/io")).unwrap();
    files.write("proc/7/wchan", "0");
    let mut f = fixture(files.root(), 7, None);
    let s = f.read().unwrap();
    assert!(matches!(&s.read_bytes, Metric::Failed { why, .. } if why.starts_with("io: ")));
    assert!(matches!(&s.wait_channel, Metric::Failed { why, .. } if why.starts_with("wchan: ")));
}

#[test]
fn waiting_threads_tracers_and_schedstat_are_seen() {
    let files = Files::new();
    process(&files, 7, "python3", 'R', 1, 100);
    process(&files, 8, "ffmpeg", 'T', 7, 40);
    files.write("proc/7/task/71/stat", &stat(71, "loader", 'D', 1, 3, 501));
    files.write("proc/7/task/7/schedstat", "1000 5 20\n");
    files.write("proc/7/task/71/schedstat", "77 5 4\n");
    files.write("proc/7/task/71/wchan", "folio_wait_bit");
    files.write(
        "proc/8/task/8/status",
        "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t1\n",
    );
    files.write(
        "proc/8/status",
        "TracerPid:\t99\nVmRSS:\t 64 kB\nVmSwap:\t 0 kB\n",
    );
    files.write("proc/7/status", "TracerPid:\t0\nVmRSS:\t 36 kB\n");
    files.write("proc/7/wchan", "0");
    let mut f = fixture(files.root(), 7, None);
    let s = f.read().unwrap();
    assert_eq!((s.processes, s.threads), (2, 3));
    assert_eq!(s.children, ["ffmpeg"]);
    assert_eq!(s.d_state, Metric::Fresh(1));
    assert!(s.traced);
    assert_eq!(s.stopped, [8]);
    assert_eq!(s.switches, Metric::Fresh(30));
    assert_eq!(s.rss, Metric::Fresh(Bytes(100 * 1024)));
    assert_eq!(s.swap, Metric::Fresh(Bytes(0)));
    assert_eq!(s.wait_channel, Metric::Fresh("-".to_owned()));
    let threads = lock(&f.threads).clone();
    assert_eq!(
        threads[1],
        ThreadSample {
            pid: 7,
            tid: 71,
            name: "loader".to_owned(),
            state: 'D',
            run_ns: 77,
            switches: 4,
            wchan: Some("folio_wait_bit".to_owned()),
        }
    );
    // A thread that ends keeps its switches in the sum.
    std::fs::remove_dir_all(files.root().join("proc/7/task/71")).unwrap();
    assert_eq!(f.read().unwrap().switches, Metric::Fresh(30));
}

#[test]
fn a_thread_is_asked_again_once_it_ran() {
    let files = Files::new();
    process(&files, 7, "python3", 'S', 1, 100);
    files.write("proc/7/task/7/schedstat", "1000 5 20\n");
    files.write("proc/7/task/7/wchan", "futex_wait_queue");
    let mut f = fixture(files.root(), 7, None);
    let mut thread = || {
        f.read().unwrap();
        lock(&f.threads)[0].clone()
    };
    assert_eq!(thread().wchan.as_deref(), Some("futex_wait_queue"));
    // it sleeps since: nothing but schedstat is read
    std::fs::remove_file(files.root().join("proc/7/task/7/wchan")).unwrap();
    assert_eq!(thread().wchan.as_deref(), Some("futex_wait_queue"));
    let running = stat(7, "python3", 'R', 1, 101, 500);
    files.write("proc/7/task/7/stat", &running);
    files.write("proc/7/task/7/schedstat", "1000 6 21\n");
    let ran = thread();
    assert_eq!((ran.state, ran.switches, ran.wchan), ('R', 21, None));
    // one that runs is asked each time: it may sleep now without having been put on a CPU
    files.write("proc/7/task/7/stat", &stat(7, "python3", 'D', 1, 101, 500));
    assert_eq!(thread().state, 'D');
}

#[test]
fn totals_of_ended_processes_stay_and_a_reused_number_is_another_process() {
    let files = Files::new();
    process(&files, 6, "guard", 'S', 1, 9000);
    process(&files, 7, "python3", 'S', 6, 100);
    process(&files, 8, "cc1", 'S', 7, 40);
    let mut f = fixture(files.root(), 7, Some(6));
    let tick = f.source.tick_ns;
    assert_eq!(f.read().unwrap().cpu_ns, Metric::Fresh(140 * tick));
    files.write("proc/8/stat", &stat(8, "as", 'S', 7, 2, 900));
    assert_eq!(f.read().unwrap().cpu_ns, Metric::Fresh(142 * tick));
    std::fs::remove_dir_all(files.root().join("proc/8")).unwrap();
    assert_eq!(f.read().unwrap().cpu_ns, Metric::Fresh(142 * tick));
    // The root ends, an orphan of it falls to the reaper.
    process(&files, 9, "orphan", 'S', 6, 1);
    std::fs::remove_dir_all(files.root().join("proc/7")).unwrap();
    let s = f.read().unwrap();
    assert_eq!(s.cpu_ns, Metric::Fresh(143 * tick));
    assert_eq!(s.children, ["orphan"]);
    assert!(matches!(&s.state, Metric::Failed { why, .. } if why.contains("ended")));
}

#[test]
fn another_target_begins_anew() {
    let files = Files::new();
    process(&files, 7, "a", 'S', 1, 100);
    process(&files, 8, "b", 'S', 1, 1);
    let mut f = fixture(files.root(), 7, None);
    f.read();
    lock(&f.target).pid = Some(8);
    assert_eq!(f.read().unwrap().cpu_ns, Metric::Fresh(f.source.tick_ns));
}

#[test]
fn no_proc_is_absent() {
    let files = Files::new();
    let mut f = fixture(files.root(), 7, None);
    assert!(matches!(f.source.read(), Err(SourceError::Absent(_))));
}
