//! The imitated card: made, changed and broken from the test.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use framepack_tui::model::Bytes;
use tempfile::TempDir;

use super::home::Home;
use super::tools::{python, root};

/// Name of the only card of the tree.
const CARD: &str = "card0";

/// A synthetic sysfs tree with one card. It idles with 0.5 GiB of 24 in use until
/// told otherwise.
pub(crate) struct Card {
    tree: TempDir,
    follower: Option<Child>,
}

impl Card {
    /// Its PCI address.
    pub(crate) const ADDRESS: &str = "0000:03:00.0";

    /// An RX 7900 XTX.
    pub(crate) fn rx7900xtx() -> Self {
        let card = Self::several(&["rx7900xtx"]);
        card.set("busy=0 power_w=18 vram_used=0.5G");
        card
    }

    /// Several cards, `card0` first: profile and options of `fake-amdgpu make`.
    pub(crate) fn several(cards: &[&str]) -> Self {
        let tree = tempfile::Builder::new()
            .prefix("fpt-card-")
            .tempdir()
            .unwrap();
        let card = Self {
            tree,
            follower: None,
        };
        let mut args = vec!["make", "ROOT"];
        args.extend(cards.iter().flat_map(|c| ["--card", *c]));
        card.tool(&args);
        card
    }

    /// Takes a card off the bus: its folder leaves sysfs, and its links lead nowhere.
    pub(crate) fn vanish(&self, address: &str) {
        fs::rename(self.device(address), self.root().join("away")).unwrap();
    }

    /// Puts it back.
    pub(crate) fn come_back(&self, address: &str) {
        fs::rename(self.root().join("away"), self.device(address)).unwrap();
    }

    fn device(&self, address: &str) -> PathBuf {
        let bus = "sys/devices/pci0000:f0/0000:f0:01.0";
        self.root().join(bus).join(address)
    }

    /// Sets readings: `busy=0 vram_used=17G`.
    pub(crate) fn set(&self, readings: &str) {
        let mut args = vec!["set", "ROOT", CARD];
        args.extend(readings.split_whitespace());
        self.tool(&args);
    }

    /// Breaks one file of the card's folder: `missing`, `eio`, `einval`, `garbage`,
    /// `empty`, `stall` (reading it blocks), or mends it with `ok`.
    pub(crate) fn break_file(&self, file: &str, how: &str) {
        self.tool(&["break", "ROOT", CARD, file, how]);
    }

    /// Takes its hwmon folder away, before anything looks at it.
    #[cfg(feature = "rocm-smi")]
    pub(crate) fn hide_hwmon(&self) {
        let mut folders = vec![self.root().join("sys/devices")];
        while let Some(folder) = folders.pop() {
            let hwmon = folder.join("hwmon");
            if folder.ends_with(Self::ADDRESS) && hwmon.is_dir() {
                std::fs::rename(hwmon, self.root().join("hidden-hwmon")).unwrap();
                return;
            }
            let below = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
            let below = below.filter(|e| e.file_type().unwrap().is_dir());
            folders.extend(below.map(|e| e.path()));
        }
        panic!("no hwmon folder of {}", Self::ADDRESS);
    }

    /// From now on the card shows what the Python processes of `home` do: busy and
    /// hot while they compute, idle with 17 GiB held while they hang, and the memory
    /// back `linger_s` seconds after they are gone.
    pub(crate) fn follow(&mut self, home: &Home, linger_s: u32) {
        let mark = home.marked();
        let linger = format!("linger={linger_s}");
        let child = self
            .command(&["follow", "ROOT", CARD, &mark, "vram=17G", &linger])
            .spawn()
            .unwrap();
        self.follower = Some(child);
    }

    /// The first words of a command that becomes a client of the card and holds this
    /// much of its memory; for a command that runs inside the tree.
    pub(crate) fn client(&self, vram: Bytes) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![python().into(), script().into(), "client".into()];
        words.push(self.root().into());
        words.extend([format!("vram={}", vram.0).into(), "--".into()]);
        words
    }

    /// Makes a process that is none of the run's hold this much of the card's memory.
    pub(crate) fn client_elsewhere(&self, pid: u32, vram: Bytes) {
        let (pid, vram) = (pid.to_string(), format!("vram={}", vram.0));
        self.tool(&["proc", "ROOT", &pid, &vram]);
    }

    /// A command that runs inside the tree; `exec`s, so its process is the program's.
    pub(crate) fn inside(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command(&["run", "ROOT", "--"]);
        command.arg(program);
        command.stdin(Stdio::null());
        command
    }

    fn tool(&self, args: &[&str]) {
        let output = self.command(args).output().unwrap();
        assert!(
            output.status.success(),
            "fake-amdgpu {args:?}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(python());
        command.arg(script());
        for arg in args {
            match *arg {
                "ROOT" => command.arg(self.root()),
                other => command.arg(other),
            };
        }
        command
    }

    fn root(&self) -> &Path {
        self.tree.path()
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if let Some(mut follower) = self.follower.take() {
            // Only fails when it has already ended.
            let _ended = follower.kill();
            let _reaped = follower.wait();
        }
    }
}

/// Arguments that put any program into the tree, for tests that start it in a terminal.
impl Card {
    /// Program and its first arguments.
    pub(crate) fn enter(&self) -> [PathBuf; 5] {
        [
            python(),
            script(),
            "run".into(),
            self.root().to_owned(),
            "--".into(),
        ]
    }
}

fn script() -> PathBuf {
    root().join("tests/tools/fake-amdgpu/fake-amdgpu")
}
