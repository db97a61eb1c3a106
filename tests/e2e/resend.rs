//! A server is started again: the job that was lost with it is sent again.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use framepack_tui::model::{AgentWord, Event, JobChange, ResendWord};
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{
    BINARY, Finished, Home, Running, Start, comfyui, free_port, kill, python, submit, wait_until,
    workload,
};
use crate::terminal::Terminal;

const LIMIT: Duration = Duration::from_mins(4);

/// One more try for a hang, and for a server that is killed. The convolution that hung is not
/// made in another way: its bits would be others.
const PROFILE: &str = r#"
schema = 1
[profile]
id = "resend"
version = "1.0.0"
title = "for a test"
[workload.settings]
conv = "watch"
[[ladder]]
id = "again"
action = "retry_same"
answers = ["silent_hang", "spin_hang", "find_stall", "killed"]
cost = "none"
source = "guess"
"#;

fn is_video(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e == "mp4")
}

fn run<'a>(home: &'a Home, words: &[String]) -> Running<'a> {
    let profile = home.path("resend.toml");
    std::fs::write(&profile, PROFILE).unwrap();
    Start::new(home)
        .options(&["--agent", "auto", "--profile", profile.to_str().unwrap()])
        .command(words)
        .start()
}

fn framepack<'a>(home: &'a Home, port: &str, more: &[&str]) -> Running<'a> {
    let mut words: Vec<String> = [
        python().display().to_string(),
        workload("tiny_framepack_server.py").display().to_string(),
        "--port".to_owned(),
        port.to_owned(),
        "--out".to_owned(),
        home.out().display().to_string(),
    ]
    .into();
    words.extend(more.iter().map(|w| (*w).to_owned()));
    run(home, &words)
}

/// The same, whose decode of section 2 hangs once.
fn hanging<'a>(home: &'a Home, port: &str) -> Running<'a> {
    let once = home.path("once").display().to_string();
    let fault = ["--fault", "hang-idle", "--fault-section", "2"];
    let more: Vec<&str> = fault.into_iter().chain(["--fault-once", &once]).collect();
    framepack(home, port, &more)
}

/// Waits for the first section's video: there is something to lose now.
fn first_video(run: &mut Running<'_>) {
    run.wait_for(
        "first video",
        LIMIT,
        |e| matches!(e, Event::Artefact(a) if is_video(&a.path)),
    );
}

/// The server in a program around it: `ahead` is done before it starts.
fn wrapped<'a>(home: &'a Home, port: &str, ahead: &str) -> Running<'a> {
    let server = workload("tiny_framepack_server.py");
    let program = format!(
        "import os, runpy, sys\nsys.argv[0] = {server:?}\nsys.path.insert(0, {:?})\n{ahead}\nrunpy.run_path(sys.argv[0], run_name='__main__')\n",
        server.parent().unwrap(),
    );
    let words: Vec<String> = vec![
        python().display().to_string(),
        "-c".to_owned(),
        program,
        "--port".to_owned(),
        port.to_owned(),
        "--out".to_owned(),
        home.out().display().to_string(),
    ];
    run(home, &words)
}

/// Who pressed Start in the browser.
struct Page(Child);

impl Page {
    fn submit(home: &Home, port: &str) -> Self {
        let mut client = Command::new(python());
        home.dress(&mut client);
        let client = client
            .arg(workload("submit_job.py"))
            .args(["--port", port, "--wait", "120"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(client.unwrap())
    }

    fn code(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // it may be gone already, which is what is wanted
        let _gone = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn words(run: &Finished) -> Vec<ResendWord> {
    run.all(|e| match e {
        Event::Resend(r) => Some(r.word.clone()),
        _ => None,
    })
}

fn assert_nothing_was_sent(run: &Finished) {
    let sent = words(run);
    assert!(
        !sent.iter().any(|w| matches!(w, ResendWord::Sending { .. })),
        "{sent:?}"
    );
}

fn count(run: &Finished, is_it: impl Fn(&Event) -> bool) -> usize {
    run.all(|e| is_it(e).then_some(())).len()
}

fn stop(run: Running<'_>) -> Finished {
    run.signal(Signal::TERM);
    let run = run.finish(LIMIT);
    run.assert_exit(143);
    run
}

/// The last video of the last job: its bytes. Equal frames give equal bytes.
fn video(home: &Home) -> Vec<u8> {
    let files = std::fs::read_dir(home.out()).unwrap();
    let mut videos: Vec<PathBuf> = files
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "mp4"))
        .collect();
    videos.sort_by_key(|p| p.metadata().unwrap().modified().unwrap());
    std::fs::read(videos.last().expect("a video")).unwrap()
}

/// What an undisturbed run writes.
fn undisturbed() -> Vec<u8> {
    let home = Home::new();
    let port = free_port();
    let run = framepack(&home, &port, &[]);
    assert_eq!(Page::submit(&home, &port).code(), Some(0));
    let run = stop(run);
    assert_eq!(words(&run), []);
    video(&home)
}

/// Waits until the job that was sent again is done, and checks the whole story.
fn comes_home(home: &Home, mut run: Running<'_>, mut page: Page) {
    run.wait_for(
        "end of the job",
        LIMIT,
        |e| matches!(e, Event::Resend(r) if matches!(r.word, ResendWord::Done { .. } | ResendWord::Failed { .. })),
    );
    assert_eq!(page.code(), Some(1), "the page's connection broke");
    let run = stop(run);
    let told = words(&run);
    assert!(
        matches!(
            &told[..],
            [
                ResendWord::Sending { job: a, .. },
                ResendWord::Sent { job: b, .. },
                ResendWord::Done { job: c, files: 3 },
            ] if a == b && b == c
        ),
        "{told:?}{}",
        run.digest()
    );
    let attempts = count(&run, |e| matches!(e, Event::AttemptStarted(_)));
    let jobs = count(&run, |e| matches!(e, Event::Job(JobChange::Started)));
    assert_eq!(attempts, 2, "{}", run.digest());
    assert!(jobs >= 2, "{}", run.digest());
    let replayed = count(
        &run,
        |e| matches!(e, Event::Agent(n) if matches!(&n.word, AgentWord::Vault(v) if v.what == "replayed" && v.of == "section")),
    );
    assert!(replayed >= 1, "{}", run.digest());
    assert_eq!(video(home), undisturbed(), "other frames");
    let kept = std::fs::read_dir(home.path("data/framepack-tui/vault")).unwrap();
    let jobs = kept.filter(|f| {
        let name = f.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("job.")
    });
    assert_eq!(jobs.count(), 0, "the job is done");
    replays(home);
}

/// The record gives the same decisions again.
fn replays(home: &Home) {
    let mut replay = Command::new(BINARY);
    home.dress(&mut replay);
    let output = replay
        .args(["replay", "--assert"])
        .arg(home.record())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
}

#[test]
fn a_job_that_hangs_is_sent_again_and_its_frames_are_the_same() {
    let home = Home::new();
    let port = free_port();
    let run = hanging(&home, &port);
    let page = Page::submit(&home, &port);
    comes_home(&home, run, page);
}

/// The decode holds the interpreter's lock: the server lives, its port takes connections, and
/// nobody answers.
#[test]
fn a_job_of_a_server_that_stalls_is_sent_again() {
    let home = Home::new();
    let port = free_port();
    let once = home.path("once").display().to_string();
    let fault = ["--fault", "hang-idle-gil", "--fault-section", "2"];
    let more: Vec<&str> = fault.into_iter().chain(["--fault-once", &once]).collect();
    let mut run = framepack(&home, &port, &more);
    let (pid, _) = run.spawned(1);
    let page = Page::submit(&home, &port);
    first_video(&mut run);
    assert!(wait_until(LIMIT, || stalls(&port)), "it answers");
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "it lives");
    comes_home(&home, run, page);
}

/// Whether the server takes a connection and answers nothing.
fn stalls(port: &str) -> bool {
    let config = ureq::Agent::config_builder()
        .timeout_recv_response(Some(Duration::from_secs(1)))
        .build();
    let asked = config.new_agent().get(format!("http://127.0.0.1:{port}/"));
    matches!(
        asked.call(),
        Err(ureq::Error::Timeout(ureq::Timeout::RecvResponse))
    )
}

/// Started again, the server announces itself and stands still for longer than one answer is
/// waited for.
#[test]
fn a_job_waits_for_a_server_that_stalls_after_its_restart() {
    const STALLS: &str = r#"
import ctypes
second = os.path.exists("first")
open("first", "w").close()
class Console:
    def write(self, text):
        real.write(text)
        if second and "local URL" in text:
            real.flush()
            ctypes.PyDLL(None).sleep(65)
    def __getattr__(self, name): return getattr(real, name)
real, sys.stdout = sys.stdout, Console()
sys.argv += ["--step-seconds", "0.3"]
"#;
    let home = Home::new();
    let port = free_port();
    let mut run = wrapped(&home, &port, STALLS);
    let (pid, _) = run.spawned(1);
    let page = Page::submit(&home, &port);
    first_video(&mut run);
    std::thread::sleep(Duration::from_secs(1));
    kill(pid, Signal::KILL).unwrap();
    run.wait_for(
        "word of the stall",
        LIMIT,
        |e| matches!(e, Event::Notice { text, .. } if text.contains("does not answer")),
    );
    comes_home(&home, run, page);
}

#[test]
fn a_job_of_a_server_that_is_killed_is_sent_again() {
    let home = Home::new();
    let port = free_port();
    let mut run = framepack(&home, &port, &["--step-seconds", "0.3"]);
    let (pid, _) = run.spawned(1);
    let page = Page::submit(&home, &port);
    first_video(&mut run);
    std::thread::sleep(Duration::from_secs(1));
    kill(pid, Signal::KILL).unwrap();
    comes_home(&home, run, page);
}

#[test]
fn a_job_that_its_user_has_stopped_is_not_sent_again() {
    let home = Home::new();
    let port = free_port();
    let mut run = hanging(&home, &port);
    let _page = Page::submit(&home, &port);
    first_video(&mut run);
    std::thread::sleep(Duration::from_secs(8));
    // the decode hangs already, and never sees it
    let end = ureq::post(format!(
        "http://127.0.0.1:{port}/gradio_api/call/end_process"
    ))
    .header("content-type", "application/json")
    .send("{\"data\": []}")
    .unwrap();
    assert!(end.status().is_success());
    let lost = run.wait_for("look", LIMIT, |e| matches!(e, Event::LostJobs(_)));
    assert!(
        matches!(&lost.envelope.event, Event::LostJobs(l) if l.jobs.is_empty()),
        "{lost:?}"
    );
    run.wait_for(
        "second server",
        LIMIT,
        |e| matches!(e, Event::Line(l) if l.attempt == 2 && l.text.contains("local URL")),
    );
    std::thread::sleep(Duration::from_secs(3));
    assert_nothing_was_sent(&stop(run));
}

/// The queue of a ComfyUI that is killed waits for the user, who sends it by the command
/// that is told.
#[test]
fn a_queue_of_comfyui_waits_for_the_users_word() {
    let home = Home::new();
    let port = free_port();
    let main = comfyui();
    let words_ = [
        python().display().to_string(),
        main.display().to_string(),
        port.clone(),
    ];
    let mut run = run(&home, &words_);
    let (pid, _) = run.spawned(1);
    run.wait_for_line("To see the GUI", LIMIT);
    for id in ["a", "b", "c"] {
        submit(&port, id);
    }
    assert!(wait_until(LIMIT, || keeper(&home).is_some()));
    kill(pid, Signal::KILL).unwrap();
    let asked = run.wait_for(
        "question",
        LIMIT,
        |e| matches!(e, Event::Resend(r) if matches!(r.word, ResendWord::Waiting { .. })),
    );
    let Event::Resend(asked) = asked.envelope.event else {
        unreachable!()
    };
    let ResendWord::Waiting {
        prompts, entries, ..
    } = &asked.word
    else {
        unreachable!()
    };
    assert_eq!((*prompts, entries.len()), (3, 1));
    let text = asked.word.words();
    let (_, command) = text.split_once("framepack-tui ").unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(queue(&port), json!([]), "nothing is sent unasked");
    let mut resend = Command::new(BINARY);
    home.dress(&mut resend);
    let output = resend
        .args(command.split_whitespace())
        .current_dir(home.dir())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(queue(&port), json!(["a", "b", "c"]));
    assert_nothing_was_sent(&stop(run));
}

/// The screen says how many prompts wait, and one key sends them in their order.
#[test]
fn a_key_sends_the_queue() {
    let home = Home::new();
    let port = free_port();
    let profile = home.path("resend.toml");
    std::fs::write(&profile, PROFILE).unwrap();
    let main = comfyui();
    let program: Vec<std::ffi::OsString> = vec![
        BINARY.into(),
        "run".into(),
        "--agent".into(),
        "auto".into(),
        "--profile".into(),
        profile.into(),
        "--".into(),
        python().into(),
        main.into(),
        port.clone().into(),
    ];
    let mut screen = Terminal::open(&home, (120, 36), &program);
    let up = || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok();
    assert!(wait_until(LIMIT, up), "{}", screen.text());
    for id in ["a", "b", "c"] {
        submit(&port, id);
    }
    let kept = wait_until(LIMIT, || keeper(&home).is_some());
    assert!(kept, "{}", screen.text());
    let server = keeper(&home).unwrap();
    kill(server, Signal::KILL).unwrap();
    screen.wait_for("3 prompts were lost with the server: r", LIMIT);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(queue(&port), json!([]), "nothing is sent unasked");
    screen.press("r");
    let sent = || queue(&port) == json!(["a", "b", "c"]);
    assert!(wait_until(LIMIT, sent), "{}", screen.text());
    screen.wait_for("3 prompts queued again", LIMIT);
    screen.press("\x03");
    screen.assert_restored(130);
}

/// The server whose queue is kept with all three graphs in it.
fn keeper(home: &Home) -> Option<u32> {
    let vault = std::fs::read_dir(home.path("data/framepack-tui/vault")).ok()?;
    let mut queues = vault.filter_map(|f| {
        let path = f.ok()?.path();
        let whole = path.file_name()?.to_str()?.starts_with("queue.");
        let text = std::fs::read_to_string(path).ok().filter(|_| whole)?;
        serde_json::from_str::<serde_json::Value>(&text).ok()
    });
    let told = queues.find(|q| q["items"].as_array().is_some_and(|i| i.len() == 3))?;
    u32::try_from(told["pid"].as_u64()?).ok()
}

/// Names of what runs and waits, front to back.
fn queue(port: &str) -> serde_json::Value {
    let mut answer = ureq::get(format!("http://127.0.0.1:{port}/queue"))
        .call()
        .unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |name: &str| told[name].as_array().unwrap().clone();
    let all = of("queue_running").into_iter().chain(of("queue_pending"));
    all.map(|item| item[1].clone()).collect()
}
