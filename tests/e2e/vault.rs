//! What the agent kept of servers that were killed, listed, checked, pruned and sent again.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{BINARY, Home, comfyui, free_port, python, submit, wait_until, workload};

const LIMIT: Duration = Duration::from_mins(3);

/// A server under the agent; it is killed when dropped.
struct Server(Child);

impl Server {
    /// Python with `words`, as attempt `attempt`.
    fn start(home: &Home, attempt: u32, words: &[String]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let told = json!({"run": "20260101-0001-00aa", "attempt": attempt, "resume": attempt > 1,
            "vault": home.path("data/framepack-tui/vault"), "settings": {}});
        let console = std::fs::File::create(home.path("console.txt")).unwrap();
        let mut command = Command::new(python());
        home.dress(&mut command);
        command
            .args(words)
            .current_dir(home.dir())
            .env("PYTHONPATH", root.join("src/agent/python"))
            .env("PYTHONUNBUFFERED", "1")
            .env("FPT_AGENT_CONFIG", told.to_string())
            .stdin(Stdio::null())
            .stderr(console.try_clone().unwrap())
            .stdout(console);
        Self(command.spawn().unwrap())
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // it may be gone already, which is what is wanted
        let _gone = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// `framepack-tui vault WORDS`: exit code, what it printed, what it complained of.
fn vault(home: &Home, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(BINARY);
    command.arg("vault").args(words).current_dir(home.dir());
    home.dress(&mut command);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn listed(home: &Home) -> Vec<Value> {
    let (code, told, wrong) = vault(home, &["list", "--json"]);
    assert_eq!(code, Some(0), "{wrong}");
    let lines = told.lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn of(entries: &[Value], what: &str) -> Vec<Value> {
    let found = entries.iter().filter(|e| e["what"] == what);
    found.cloned().collect()
}

fn videos(home: &Home) -> usize {
    let files = std::fs::read_dir(home.out())
        .into_iter()
        .flatten()
        .flatten();
    files
        .filter(|f| f.path().extension().is_some_and(|e| e == "mp4"))
        .count()
}

fn console(home: &Home) -> String {
    std::fs::read_to_string(home.path("console.txt")).unwrap_or_default()
}

/// A job whose server is killed in its second section is sent again and finishes.
#[test]
fn a_job_of_framepack_is_sent_again() {
    let home = Home::new();
    let port = free_port();
    let mut words: Vec<String> = [
        workload("tiny_framepack_server.py").display().to_string(),
        "--port".to_owned(),
        port.clone(),
        "--out".to_owned(),
        home.out().display().to_string(),
    ]
    .into();
    let fast = words.clone();
    words.extend(["--step-seconds", "0.5"].map(str::to_owned));
    let server = Server::start(&home, 1, &words);
    let mut client = Command::new(python());
    home.dress(&mut client);
    let mut client = client
        .arg(workload("submit_job.py"))
        .args(["--port", &port, "--wait", "120"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let section = || !of(&listed(&home), "section").is_empty();
    assert!(wait_until(LIMIT, section), "{}", console(&home));
    server.kill();
    assert_eq!(
        client.wait().unwrap().code(),
        Some(1),
        "its connection broke"
    );

    let entries = listed(&home);
    let job = &of(&entries, "job")[0];
    assert_eq!(
        (&job["state"], &job["job"]["state"]),
        (&"whole".into(), &"started".into()),
        "{job}"
    );
    assert_eq!(job["job"]["inputs"]["seed"], 31337);
    let (code, _, wrong) = vault(&home, &["resend", "job", "--port", &port, "--wait", "1s"]);
    assert_eq!(code, Some(69), "{wrong}");
    let (code, _, wrong) = vault(&home, &["resend", "section", "--port", &port]);
    assert_eq!(code, Some(65), "{wrong}");

    let before = videos(&home);
    let _server = Server::start(&home, 2, &fast);
    let (code, told, wrong) = vault(&home, &["resend", "job", "--port", &port, "--wait", "2min"]);
    assert_eq!(code, Some(0), "{told}{wrong}{}", console(&home));
    assert!(
        told.contains("the job is over: 3 files for 3 sections"),
        "{told}"
    );
    assert_eq!(videos(&home), before + 3, "{told}");
    assert_eq!(of(&listed(&home), "job"), Vec::<Value>::new());
    a_latent_is_checked_and_removed(&home);
}

fn a_latent_is_checked_and_removed(home: &Home) {
    let entries = of(&listed(home), "latents");
    let newest = &entries[0];
    assert_eq!(newest["decoder"], "AutoencoderKLHunyuanVideo", "{newest}");
    let name = newest["name"].as_str().unwrap();
    let (code, told, wrong) = vault(home, &["show", name]);
    assert_eq!(code, Some(0), "{told}{wrong}");
    assert!(told.contains("digest    holds"), "{told}");
    assert!(
        !told.contains("a girl dances"),
        "no prompt with latents: {told}"
    );

    let path = PathBuf::from(newest["path"].as_str().unwrap());
    let mut bytes = Vec::new();
    std::fs::File::open(&path)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (code, told, wrong) = vault(home, &["show", name, "--json"]);
    assert_eq!(code, Some(65), "{wrong}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["digest"], "differs");
    std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let (code, told, wrong) = vault(home, &["show", name]);
    assert_eq!(code, Some(65), "{told}");
    assert!(wrong.contains("7 bytes are missing"), "{wrong}");

    let (code, told, _) = vault(home, &["prune", name, "--dry-run"]);
    assert_eq!((code, path.exists()), (Some(0), true), "{told}");
    let (code, told, _) = vault(home, &["prune", name]);
    assert_eq!((code, path.exists()), (Some(0), false), "{told}");
    let (code, _, wrong) = vault(home, &["show", name]);
    assert_eq!(code, Some(66), "{wrong}");
    let (code, _, wrong) = vault(home, &["prune"]);
    assert_eq!(code, Some(64), "{wrong}");
    let (code, told, _) = vault(home, &["prune", "--run", "20260101", "--dry-run"]);
    assert_eq!(code, Some(0), "{told}");
    let (code, _, wrong) = vault(home, &["prune", "--keep", "1"]);
    assert_eq!(code, Some(64), "bytes, or what? {wrong}");
    let before = listed(home).len();
    let (code, told, wrong) = vault(home, &["prune", "--keep", "0"]);
    assert_eq!(code, Some(0), "{told}{wrong}");
    assert!(
        told.contains(&format!("{before} entries, which gives")),
        "{told}"
    );
    assert_eq!(listed(home), Vec::<Value>::new(), "{told}");
}

/// The queue of a ComfyUI that was killed is put into the next one's, front to back.
#[test]
fn a_queue_of_comfyui_is_sent_again() {
    let home = Home::new();
    let port = free_port();
    let main = comfyui();
    let words = [main.display().to_string(), port.clone()];
    let server = Server::start(&home, 1, &words);
    let up = || console(&home).contains("To see the GUI");
    assert!(wait_until(LIMIT, up), "{}", console(&home));
    for id in ["a", "b", "c"] {
        submit(&port, id);
    }
    let all_kept = || {
        let queue = of(&listed(&home), "queue");
        queue
            .first()
            .is_some_and(|q| q["job"]["queue"] == json!(["a", "b", "c"]))
    };
    assert!(wait_until(LIMIT, all_kept), "{:?}", listed(&home));
    server.kill();
    let server = Server::start(&home, 2, &words);
    assert!(wait_until(LIMIT, up), "{}", console(&home));
    submit(&port, "b");
    let name = format!("queue.20260101-0001-00aa.{}.json", 1);
    let (code, told, wrong) = vault(&home, &["resend", &name, "--port", &port]);
    assert_eq!(code, Some(0), "{told}{wrong}{}", console(&home));
    assert!(
        told.contains("2 graphs queued, 1 were in the queue already, 0 refused"),
        "{told}"
    );
    let in_order = || {
        let queue = of(&listed(&home), "queue");
        queue.len() == 1 && queue[0]["job"]["queue"] == json!(["b", "a", "c"])
    };
    assert!(wait_until(LIMIT, in_order), "{:?}", listed(&home));
    server.kill();
}
