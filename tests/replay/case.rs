//! A case: what was recorded, and the answer (format: `tests/cases/README.md`).

use std::path::{Path, PathBuf};

use framepack_tui::model::{Phase, VerdictId};
use serde::Deserialize;

pub(crate) use framepack_tui::diagnose::meta::Meta;
pub(crate) use framepack_tui::diagnose::player::Happening;
pub(crate) use framepack_tui::diagnose::readings::Row;

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
    /// The files of a recorded case; what follows is a scripted one's.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) meta: Meta,
    /// Pieces of output and when they came.
    pub(crate) console: Vec<(f64, Vec<u8>)>,
    pub(crate) rows: Vec<Row>,
    /// Readings before the launch; none: the first row.
    pub(crate) before: Vec<Row>,
    pub(crate) kernel: Vec<(f64, String)>,
    pub(crate) events: Vec<(f64, Happening)>,
    /// The supervisor has only the clock to learn that the machine slept.
    pub(crate) sleep_untold: bool,
    /// Played on after a fault, as a diagnosis.
    pub(crate) to_the_end: bool,
    pub(crate) expected: Expected,
}

/// A recorded case and its answer.
pub(crate) fn read(dir: &Path) -> Case {
    let path = dir.join("expected.toml");
    let answer =
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Case {
        name: dir.file_name().unwrap().to_string_lossy().into_owned(),
        folder: Some(dir.to_owned()),
        meta: Meta::default(),
        console: Vec::new(),
        rows: Vec::new(),
        before: Vec::new(),
        kernel: Vec::new(),
        events: Vec::new(),
        sleep_untold: false,
        to_the_end: false,
        expected: toml::from_str(&answer).unwrap(),
    }
}
