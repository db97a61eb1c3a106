//! What adapters read out of the console.

use serde::{Deserialize, Serialize};

use super::convolution::Convolution;
use super::find::{FindFigures, MiopenRelease, Workspace};
use super::vocab::Phase;

/// The workload entered a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseChange {
    /// The phase.
    pub phase: Phase,
    /// Section (1-based) of a section-wise generation, where known.
    pub section: Option<u32>,
    /// Sections in all, where known.
    pub sections: Option<u32>,
    /// A CPU step was announced by the program (or by our rung): GPU 0 % is right.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_cpu: bool,
}

/// A bar moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What is counted, where the bar says (`Loading checkpoint shards`).
    pub what: Option<String>,
    /// Done so far.
    pub done: f64,
    /// In all.
    pub total: Option<f64>,
    /// Seconds a step, where the bar says.
    pub seconds_per_step: Option<f64>,
    /// Whether these are denoising steps (not a loading or download bar).
    pub sampling: bool,
    /// The program ended the line of a bar that rewrites itself before the bar was full: its
    /// loop was left. Since 1.7.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
}

/// Whether a job is in flight. Silence counts only while one is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobChange {
    /// A job began.
    Started,
    /// The program is a server, is up and waits for its user.
    Waiting,
    /// The job ended well.
    Done,
    /// The job ended with an error; a server lives on.
    Failed {
        /// The program's own words, first line; absent when it ended without any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

/// One of MIOpen's lines about its search, read from its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "snake_case")]
pub enum FindMark {
    /// A Find of one convolution began.
    Opened {
        /// MIOpenDriver arguments or find-db key: names the convolution.
        key: String,
    },
    /// The convolution itself ran, or Find said that it ended.
    Closed {
        /// As in `Opened`; empty where the line does not say.
        key: String,
    },
    /// A solver is being timed or tuned.
    Solver {
        /// Its name, such as `ConvDirectNaiveConvFwd`.
        name: String,
    },
    /// Search or tuning moved: a falling count, a better time, an ETA.
    Advance {
        /// The line's own figures in short (`194 runs left, best 4.2 ms`).
        detail: String,
    },
    /// MIOpen said which find mode is in force.
    Mode {
        /// `DYNAMIC_HYBRID(5)`.
        mode: String,
    },
    /// The convolution of the open Find, taken apart.
    Convolution(Convolution),
    /// The figures of the line that the next `Advance` tells in words.
    Figures(FindFigures),
    /// A solver has too little workspace and is left out.
    Workspace(Workspace),
    /// The console told which ROCm or MIOpen this is.
    Release(MiopenRelease),
}

impl FindMark {
    /// Key of a search that only warnings told of: MIOpen names no convolution then,
    /// and prints no line when it is over.
    pub const UNNAMED: &'static str = "a convolution";
}
