//! A private home, an imitated card, a private `/dev` and `/sys`, and the real binary in
//! the middle of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_framepack-tui");

/// What was printed, and how it ended.
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Seen {
    /// The findings of this id.
    pub(crate) fn all(&self, id: &str) -> Vec<&Value> {
        let findings = self.json["findings"].as_array().unwrap();
        findings.iter().filter(|f| f["id"] == id).collect()
    }

    /// The only finding of this id.
    pub(crate) fn the(&self, id: &str) -> &Value {
        let all = self.all(id);
        assert_eq!(all.len(), 1, "{id}\n{}", self.text);
        all[0]
    }

    /// A field of the only finding of this id.
    pub(crate) fn text_of(&self, id: &str, field: &str) -> &str {
        self.the(id)[field].as_str().unwrap_or_default()
    }

    /// Whether a finding of this id is there.
    pub(crate) fn has(&self, id: &str) -> bool {
        !self.all(id).is_empty()
    }
}

/// Folders of one test.
pub(crate) struct World {
    dir: TempDir,
    card: bool,
    /// Shell lines that are run in the private mount namespace before the program.
    before: Vec<String>,
    /// The program runs as nobody, or at least without any capability.
    nobody: bool,
    env: Vec<(String, String)>,
}

impl World {
    /// A machine without a card.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("fpt-doctor-")
            .tempdir()
            .unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.path(), open).unwrap();
        for sub in ["home", "state", "config", "tmp", "work", "bin"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        Self {
            dir,
            card: false,
            before: Vec::new(),
            nobody: false,
            env: Vec::new(),
        }
    }

    /// The same with an imitated RX 7900 XTX.
    pub(crate) fn with_card() -> Self {
        let mut world = Self::new();
        world.card = true;
        world.tool(&["make", "ROOT", "--card", "rx7900xtx"]);
        world
    }

    /// Runs the tool that imitates the card.
    pub(crate) fn tool(&self, args: &[&str]) {
        let output = self.imitation(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
    }

    fn imitation(&self, args: &[&str]) -> Command {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/fake-amdgpu");
        let mut command = Command::new("python3");
        command.arg(tool.join("fake-amdgpu"));
        let tree = self.path("tree");
        for arg in args {
            if *arg == "ROOT" {
                command.arg(&tree);
            } else {
                command.arg(arg);
            }
        }
        command
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Its path as text.
    pub(crate) fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes a file.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Writes a program.
    pub(crate) fn program(&self, name: &str, text: &str) -> String {
        let path = self.put(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A Python that answers what it is told to.
    pub(crate) fn python_that_says(&self, answer: &Value) -> String {
        let text = answer.to_string().replace('\'', "");
        // -c PROGRAM MARK
        self.program(
            "bin/answering-python",
            &format!("#!/bin/sh\nprintf '%s%s\\n' \"$3\" '{text}'\n"),
        )
    }

    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// A shell line that is run in the private mount namespace before the program.
    pub(crate) fn before(&mut self, line: impl Into<String>) {
        self.before.push(line.into());
    }

    /// Device nodes (plain files in their place), owned by us with this mode.
    pub(crate) fn devices(&mut self, mode: &str) {
        let dev = self.at("dev");
        self.before(format!(
            "mkdir -p {dev}/dri && touch {dev}/null {dev}/kfd {dev}/dri/renderD128 && \
             mount --bind /dev/null {dev}/null && chmod {mode} {dev}/kfd {dev}/dri/renderD128 && \
             mount --rbind {dev} /dev"
        ));
    }

    /// The program loses its rights before it starts.
    pub(crate) fn as_nobody(&mut self) {
        self.nobody = true;
    }

    /// Runs `doctor` as text and as JSON, and checks what holds for every report.
    pub(crate) fn doctor(&self, args: &[&str]) -> Seen {
        let printed = self.run(args);
        let json = self.run(&[&["--json"], args].concat());
        let text = String::from_utf8(printed.stdout).unwrap();
        let errors = String::from_utf8_lossy(&printed.stderr).into_owned();
        assert!(!errors.contains("panicked"), "{errors}");
        let value: Value = serde_json::from_slice(&json.stdout)
            .unwrap_or_else(|e| panic!("{e}\n{errors}\n{text}"));
        let code = printed.status.code().unwrap();
        assert_eq!(json.status.code(), Some(code), "{text}");
        assert_eq!(value["exit_code"], code);
        for finding in value["findings"].as_array().unwrap() {
            let bad = matches!(finding["severity"].as_str().unwrap(), "warning" | "error");
            assert!(!bad || finding["cure"].is_string(), "no cure: {finding}");
        }
        assert!(text.starts_with("doctor: "), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(!text.contains('\u{1b}'), "colour into a pipe: {text}");
        Seen {
            code,
            text,
            json: value,
        }
    }

    fn run(&self, args: &[&str]) -> Output {
        let root = rustix::process::geteuid().is_root();
        let mut command = if self.card {
            self.imitation(&["run", "ROOT", "--", "sh"])
        } else {
            let mut command = Command::new("unshare");
            command.arg(if root { "-m" } else { "-rm" }).arg("sh");
            command
        };
        let mut script = self.before.join(" && ");
        if !script.is_empty() {
            script.push_str(" && ");
        }
        script.push_str("exec ");
        script.push_str(match (self.nobody, root) {
            (false, _) => "",
            (true, true) => "setpriv --reuid=65534 --regid=65534 --clear-groups -- ",
            (true, false) => "setpriv --bounding-set=-all --inh-caps=-all -- ",
        });
        script.push_str("\"$0\" \"$@\"");
        command.args(["-c", &script, BINARY, "doctor"]).args(args);
        let names = std::env::vars().map(|(name, _)| name);
        for name in names.filter(|n| {
            [
                "MIOPEN_",
                "FPT_",
                "HSA_",
                "HIP_",
                "PYTORCH_",
                "VIRTUAL_ENV",
                "CONDA_",
            ]
            .iter()
            .any(|p| n.starts_with(p))
        }) {
            command.env_remove(name);
        }
        command
            .current_dir(self.path("work"))
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("TMPDIR", self.path("tmp"))
            .env("LC_ALL", "C.UTF-8")
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null());
        command.output().unwrap()
    }
}
