//! The immutable view model that every reader of the present state is handed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use super::log_lines::LogLines;
pub use super::trail::{Lack, Lapse, Mark, MarkKind, Quantity, Raised, ShownState, Trail};
pub use crate::detect::{Working, kernel_fault};
pub use crate::forecast::{Card, Cure, FindView, Forecast};
use crate::model::attempt::Artefact;
use crate::model::event::{EvidenceReport, Survivor};
use crate::model::{
    ActionId, AgentOp, AttemptSpec, Budget, BusyTrust, Bytes, Chosens, Effective, Follow, GpuId,
    GpuSample, HostSample, IdleBaseline, KernelFault, KillPlan, Mono, Origin, Outcome, Phase,
    ProcSample, Progress, RungId, Setting, SourceStatus, Tier, Verdict,
};

/// One point of the charts; a missing reading is a gap, never a zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// When.
    pub at: Mono,
    /// Busy percent of the supervised card.
    pub busy: Option<f64>,
    /// Watts of the supervised card.
    pub power_w: Option<f64>,
    /// Memory in use (the pool that counts).
    pub mem_used: Option<Bytes>,
    /// CPU of the tree, 100 = one core.
    pub cpu: Option<f64>,
    /// Degrees Celsius of the supervised card: junction, else edge.
    pub temp_c: Option<f64>,
    /// Shader clock of the supervised card, MHz.
    pub sclk_mhz: Option<f64>,
    /// Bytes a second that the tree read and wrote.
    pub io_bps: Option<f64>,
}

impl Point {
    /// Watts for each percent of busy, where the card is busy enough for the
    /// power of an idle card not to count (from 20 %). A card that is busy with
    /// nothing draws far less than one that works.
    pub fn watts_per_busy(&self) -> Option<f64> {
        watts_per_busy(self.power_w?, self.busy?)
    }
}

/// See [`Point::watts_per_busy`].
pub fn watts_per_busy(watts: f64, busy: f64) -> Option<f64> {
    (busy >= 20.0 && busy.is_finite()).then(|| watts / busy)
}

/// What a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// The child's standard output.
    Stdout,
    /// The child's standard error.
    Stderr,
    /// Our own word, in the same order.
    Own,
}

/// One line of the log pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When.
    pub at: Mono,
    /// Whose.
    pub kind: LogKind,
    /// Text.
    pub text: String,
    /// Phase that the workload was in.
    pub phase: Phase,
    /// A bar that may still be rewritten.
    pub bar: bool,
    /// Earlier states of the same bar, or equal lines, folded into this one.
    pub folded: u32,
}

impl LogLine {
    /// Whether it is a bar, also in its final state.
    pub fn is_bar(&self) -> bool {
        self.bar || crate::model::looks_like_bar(&self.text)
    }
}

/// Whether a job is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Not known yet (start-up).
    Unknown,
    /// In flight since.
    InFlight(Mono),
    /// A server that waits for its user since.
    Waiting(Mono),
    /// Over.
    Ended,
}

/// What the supervisor is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Nothing launched yet.
    Preparing,
    /// Nothing launched yet: an earlier run still has the card.
    CardHeld {
        /// What has it, and what the user can do.
        held: Box<crate::model::CardHeld>,
        /// When the wait is given up.
        until: Mono,
    },
    /// An attempt runs and is watched.
    Watching,
    /// A kill is announced.
    Countdown {
        /// The rung that follows.
        rung: RungId,
        /// When.
        kill_at: Mono,
        /// Stopped by the user.
        held: bool,
    },
    /// Evidence is being taken before the first signal.
    TakingEvidence {
        /// Since.
        since: Mono,
    },
    /// First signal sent; SIGKILL follows.
    Terminating {
        /// When SIGKILL is sent.
        kill_at: Mono,
    },
    /// SIGKILL sent.
    Killing {
        /// Since.
        since: Mono,
    },
    /// The card's memory is not back yet.
    WaitingVram {
        /// In use now, where readable.
        used: Option<Bytes>,
        /// Before the run.
        before: Bytes,
        /// When the wait is given up.
        until: Mono,
    },
    /// A pause before the next attempt.
    Delay {
        /// Until.
        until: Mono,
    },
    /// Over.
    Ended,
}

/// How a rung stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RungState {
    /// Ran and ended like this.
    Tried {
        /// `silent_hang after 00:02:10`.
        result: String,
    },
    /// Runs now.
    Running,
    /// Would be next if the present verdict stands.
    Next,
    /// Not tried.
    Untried,
    /// Cannot be taken, and why.
    Unavailable {
        /// Why.
        why: String,
    },
}

/// One line of the ladder panel; the first is rung 0, the profile as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LadderEntry {
    /// Which.
    pub id: RungId,
    /// What it does.
    pub action: ActionId,
    /// What it gives up.
    pub tier: Tier,
    /// How it stands.
    pub state: RungState,
}

/// A setting that can be switched while the run is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingView {
    /// Which.
    pub setting: Setting,
    /// In the attempt that runs or ran last; absent: nobody set it, the workload does
    /// as it does by itself.
    pub now: Option<String>,
    /// In the attempt that would follow.
    pub next: Option<String>,
    /// Who says so.
    pub origin: Origin,
    /// Whether and how the workload learns of it.
    pub follow: Follow,
}

/// How it stands with the agent inside the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentState {
    /// Nothing is known of one.
    #[default]
    None,
    /// It is left out, or none is expected.
    Off,
    /// The program starts, and it has not said hello yet.
    Awaited,
    /// It tells.
    Connected,
    /// Python runs, and it does not say hello.
    Silent,
    /// Its process lives, and the connection is gone.
    Lost,
}

impl AgentState {
    /// The word on screen; nothing where nothing is known.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Off => "off",
            Self::Awaited => "awaited",
            Self::Connected => "connected",
            Self::Silent => "silent",
            Self::Lost => "lost",
        }
    }
}

/// What the agent shows of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentView {
    /// How it stands.
    pub state: AgentState,
    /// One has said hello in this run, in whichever attempt: the vault keeps what it told.
    pub came: bool,
    /// The operation in flight, and for how long.
    pub op: Option<(AgentOp, Duration)>,
    /// Tiers of the convolution fallback but the native one, with their counts.
    pub tiers: Vec<(String, u64)>,
}

/// How it stands with jobs that a restart of a server loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResendView {
    /// A job that is lost is sent again by itself.
    pub by_itself: bool,
    /// Graphs of a lost queue that wait for the user's word.
    pub waiting: u32,
    /// A job was not or could not be sent: its user has to start it.
    pub failed: bool,
}

/// How a snapshot stands to the run itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// The present state, as far as its events have come.
    #[default]
    Live,
    /// An earlier state: the record is still being read.
    CatchingUp {
        /// Share of the record that is read, 0 to 99.
        percent: u8,
    },
    /// The last state of a record that breaks off; nobody writes it any more.
    CutOff,
}

/// The present state of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Id of the run.
    pub run: String,
    /// Time of this snapshot.
    pub now: Mono,
    /// Whether it is the present state of the run.
    pub freshness: Freshness,
    /// Wall clock at the beginning of the run, RFC 3339.
    pub wall_clock: String,
    /// The user's command.
    pub argv: Vec<String>,
    /// The process was there before us: judged, and ended only on the user's word.
    pub attached: bool,
    /// Profile and why it was taken.
    pub profile: String,
    /// `asked for`, or how it matched.
    pub profile_why: String,
    /// Adapter.
    pub adapter: String,
    /// The attempt that runs or ran last.
    pub attempt: Option<AttemptSpec>,
    /// When it began.
    pub attempt_since: Mono,
    /// Root process of the workload, while it lives.
    pub pid: Option<u32>,
    /// Every card.
    pub gpus: Vec<GpuSample>,
    /// The supervised one.
    pub gpu: Option<GpuId>,
    /// What the supervised card reads at rest; absent: never read at rest.
    pub card_idle: Option<IdleBaseline>,
    /// Whether its busy counter is believed.
    pub busy_trust: BusyTrust,
    /// VRAM cap.
    pub vram_cap: Option<Bytes>,
    /// Supervised tree.
    pub process: Option<ProcSample>,
    /// CPU of the tree, 100 = one core.
    pub cpu_percent: Option<f64>,
    /// Threads that work; absent: not read yet in this attempt.
    pub working: Option<Working>,
    /// Storage and call reads of the tree, bytes a second.
    pub read_bps: Option<f64>,
    /// The same for writes.
    pub write_bps: Option<f64>,
    /// Host.
    pub host: HostSample,
    /// Sources.
    pub sources: Vec<SourceStatus>,
    /// Chart points of the last 10 minutes, oldest first.
    pub history: Arc<VecDeque<Point>>,
    /// Last line of any kind.
    pub last_output: Option<Mono>,
    /// Last progress.
    pub last_progress: Option<Mono>,
    /// Phase.
    pub phase: Phase,
    /// Since.
    pub phase_since: Mono,
    /// When each of the last phases began, oldest first.
    pub phases: Arc<VecDeque<(Mono, Phase)>>,
    /// Section and sections.
    pub section: Option<u32>,
    /// Sections in all.
    pub sections: Option<u32>,
    /// Last bar.
    pub progress: Option<Progress>,
    /// Job.
    pub job: JobState,
    /// MIOpen's Find, while one is open.
    pub find: Option<Box<FindView>>,
    /// The agent inside the program.
    pub agent: AgentView,
    /// Jobs that were lost with a server.
    pub resend: ResendView,
    /// Judgement in force.
    pub verdict: Verdict,
    /// Since when.
    pub verdict_since: Mono,
    /// What a diagnosis shows besides: shown verdicts, marks, missing readings.
    pub trail: Trail,
    /// What the supervisor does.
    pub stage: Stage,
    /// Ladder; empty: see [`Snapshot::is_foreign`].
    pub ladder: Vec<LadderEntry>,
    /// Restarts left.
    pub restarts_left: u32,
    /// The settings that can be switched.
    pub settings: Vec<SettingView>,
    /// All settings of the attempt that runs or ran last, with who set them.
    pub effective: Arc<Vec<Effective>>,
    /// The same of the attempt that would follow.
    pub effective_next: Arc<Vec<Effective>>,
    /// What the user chose while watching.
    pub chosen: Chosens,
    /// Of how many, and in which period.
    pub budget: Budget,
    /// How the workload is ended.
    pub kill: KillPlan,
    /// The workload is a server: a restarted one waits for its user.
    pub server: bool,
    /// Why the last decision was made, in words.
    pub decision: Option<String>,
    /// Log, oldest first, at most 500 lines.
    pub log: LogLines,
    /// Chatter lines that were folded away.
    pub chatter: u64,
    /// What was dropped: (what, how many).
    pub dropped: Vec<(String, u64)>,
    /// The last faults that the kernel told of, oldest first, at most 32; those of
    /// another card as well: see [`KernelFault::is_of_another`].
    pub faults: Vec<(Mono, KernelFault)>,
    /// Warnings from before the first attempt, oldest first, at most 8: the wrong card is
    /// watched, others use it.
    pub warnings: Vec<String>,
    /// Evidence taken.
    pub evidence: Vec<EvidenceReport>,
    /// Processes that survive SIGKILL.
    pub survivors: Vec<Survivor>,
    /// Processes that the command left running when it returned: they are the attempt.
    pub left_running: Vec<Survivor>,
    /// The program of the attempt has ended: what was judged of it last is not so any more.
    pub ended: bool,
    /// Last whole result.
    pub result: Option<Artefact>,
    /// Results written in this run, each path once in a row.
    pub results: u32,
    /// How the run ended, with its exit code and a sentence.
    pub outcome: Option<(Outcome, u8, String)>,
}

impl Snapshot {
    /// Whether a process is looked at that is not ours: nothing of it is judged, and
    /// nothing is done to it. Every run of ours has at least rung 0 in its ladder.
    pub fn is_foreign(&self) -> bool {
        self.ladder.is_empty()
    }

    /// The same state, shown while a reader stands so to the run. A run that is over is the
    /// same however late one reads of it; of an earlier state no limit is about to be reached.
    #[must_use]
    pub fn seen_as(mut self, freshness: Freshness) -> Self {
        if self.outcome.is_none() && freshness != Freshness::Live {
            self.freshness = freshness;
            self.verdict.next = None;
        }
        self
    }
}
