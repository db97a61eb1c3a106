//! A case: what was recorded, and the answer (format: `tests/cases/README.md`).

use std::collections::BTreeMap;
use std::path::Path;

use framepack_tui::model::{ExitStatus, Phase, VerdictId};
use serde::Deserialize;

/// One second of readings; `None`: could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) t: f64,
    pub(crate) busy: Option<f64>,
    pub(crate) power: Option<f64>,
    pub(crate) vram_mib: Option<f64>,
    pub(crate) gtt_mib: Option<f64>,
    pub(crate) cpu: Option<f64>,
    pub(crate) read_bps: Option<f64>,
    pub(crate) write_bps: Option<f64>,
    pub(crate) net_bps: Option<f64>,
    pub(crate) d_state: Option<f64>,
    pub(crate) alive: bool,
    /// Minor faults a second and names of child processes: not in recorded files.
    pub(crate) faults: Option<f64>,
    pub(crate) children: Vec<String>,
}

/// What the supervisor itself saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Happening {
    Exit(ExitStatus),
    Stopped,
    Continued,
}

/// What is known beforehand.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Meta {
    pub(crate) app: String,
    pub(crate) argv: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) gpu: String,
    pub(crate) vendor: String,
    pub(crate) arch: String,
    #[serde(default)]
    pub(crate) apu: bool,
    pub(crate) vram_total_mib: u64,
    pub(crate) gtt_total_mib: Option<u64>,
    pub(crate) board_power_w: Option<f64>,
    pub(crate) kernel_t0: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Action {
    pub(crate) id: String,
    pub(crate) auto_restart: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) t_s: f64,
    pub(crate) any_of: Vec<VerdictId>,
}

/// The answer.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Expected {
    pub(crate) verdict: VerdictId,
    #[serde(default)]
    pub(crate) accept: Vec<VerdictId>,
    #[serde(default)]
    pub(crate) must_not: Vec<VerdictId>,
    pub(crate) phase: Phase,
    pub(crate) false_alarm_case: bool,
    pub(crate) earliest_s: Option<f64>,
    pub(crate) detect_by_s: Option<f64>,
    pub(crate) action: Action,
    #[serde(default)]
    pub(crate) checkpoint: Vec<Checkpoint>,
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) meta: Meta,
    /// Pieces of output and when they came.
    pub(crate) console: Vec<(f64, Vec<u8>)>,
    pub(crate) rows: Vec<Row>,
    pub(crate) kernel: Vec<(f64, String)>,
    pub(crate) events: Vec<(f64, Happening)>,
    /// The supervisor has only the clock to learn that the machine slept.
    pub(crate) sleep_untold: bool,
    pub(crate) expected: Expected,
}

/// Reads a case folder.
pub(crate) fn read(dir: &Path) -> Case {
    let text = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let optional = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    let meta: Meta = toml::from_str(&text("meta.toml")).unwrap();
    let log = std::fs::read(dir.join("console.log")).unwrap();
    let console = rows(&text("console.idx"))
        .map(|c| {
            let at = |i: usize| c[i].parse::<usize>().unwrap();
            (number(c[0]).unwrap(), log[at(1)..at(2)].to_vec())
        })
        .collect();
    let kernel = optional("kernel.log")
        .lines()
        .map(|l| {
            let (stamp, said) = l.trim_start_matches('[').split_once("] ").unwrap();
            let stamp: f64 = stamp.trim().parse().unwrap();
            (stamp - meta.kernel_t0.unwrap(), said.to_owned())
        })
        .collect();
    let events = rows(&optional("events.csv"))
        .map(|c| (number(c[0]).unwrap(), happening(c[1], c[2])))
        .collect();
    Case {
        name: dir.file_name().unwrap().to_string_lossy().into_owned(),
        console,
        rows: rows(&text("telemetry.csv")).map(|c| row(&c)).collect(),
        kernel,
        events,
        sleep_untold: false,
        expected: toml::from_str(&text("expected.toml")).unwrap(),
        meta,
    }
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|l| l.split(',').collect())
}

fn number(cell: &str) -> Option<f64> {
    (!cell.is_empty()).then(|| cell.parse().unwrap())
}

fn row(c: &[&str]) -> Row {
    Row {
        t: number(c[0]).unwrap(),
        busy: number(c[1]),
        power: number(c[2]),
        vram_mib: number(c[3]),
        gtt_mib: number(c[4]),
        cpu: number(c[5]),
        read_bps: number(c[6]),
        write_bps: number(c[7]),
        net_bps: number(c[8]),
        d_state: number(c[9]),
        alive: c[10] == "1",
        faults: None,
        children: Vec::new(),
    }
}

fn happening(event: &str, detail: &str) -> Happening {
    match event {
        "stopped" => Happening::Stopped,
        "continued" => Happening::Continued,
        "exit" => Happening::Exit(match detail.split_once('=') {
            Some(("code", n)) => ExitStatus::Code(n.parse().unwrap()),
            Some(("signal", name)) => ExitStatus::Signal(signal(name)),
            _ => panic!("exit without a way: {detail}"),
        }),
        other => panic!("unknown event {other}"),
    }
}

fn signal(name: &str) -> i32 {
    match name {
        "SIGINT" => 2,
        "SIGILL" => 4,
        "SIGABRT" => 6,
        "SIGBUS" => 7,
        "SIGKILL" => 9,
        "SIGSEGV" => 11,
        "SIGTERM" => 15,
        other => panic!("unknown signal {other}"),
    }
}
