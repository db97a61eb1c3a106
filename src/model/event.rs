//! The event log: one ordered stream of closed events.
//!
//! Screen, headless output, plain text, the record on disk and (later) replay
//! are readers of this one stream. Its JSON form is documented in
//! `docs/events.md`; [`SCHEMA`] is its version.

use serde::{Deserialize, Serialize};

use super::agent::AgentNote;
use super::attempt::{Artefact, AttemptSpec, ExitReport, ExitStatus, Outcome, RungId, SkippedRung};
use super::card_held::CardHeld;
use super::effect::{Scope, Signal};
use super::gpu::GpuId;
use super::health::Verdict;
use super::line::Line;
use super::plan::Plan;
use super::probe::Probe;
use super::progress::{FindMark, JobChange, PhaseChange, Progress};
use super::resend::{LostJobs, Resend};
use super::sample::Sample;
use super::setting::Setting;
use super::time::Mono;
use super::units::Bytes;
use super::vocab::VerdictId;

/// What [`Event::GuardianLost`] says in words.
pub const GUARDIAN_LOST: &str =
    "the guardian process is gone; all that the workload started is ended";

/// Version of the event stream: major.minor. Readers refuse another major.
pub const SCHEMA: &str = "1.11";
/// Milliseconds of one turn of the supervisor's clock: a sample is taken at every second
/// turn, and a tick told at the others.
pub const TURN_MS: u64 = 250;

/// One event with its place in the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Position in the stream, from 1, without gaps.
    pub seq: u64,
    /// When, in milliseconds since the run began.
    pub at: Mono,
    /// Who told it, where it was not read from the console or seen by the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Speaker>,
    /// What.
    pub event: Event,
}

/// Who tells an event that could also be read from the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The agent inside the program.
    Agent,
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Good to know.
    Info,
    /// Something is not as it should be.
    Warn,
}

/// The head of every stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Version of the stream, see [`SCHEMA`].
    pub schema: String,
    /// Our version.
    pub program: String,
    /// Id of the run: also the folder of its record.
    pub run: String,
    /// Wall clock at [`Mono::ZERO`], RFC 3339 with offset.
    pub wall_clock: String,
    /// The user's command.
    pub argv: Vec<String>,
    /// Working directory of the child.
    pub cwd: String,
    /// Profile id.
    pub profile: String,
    /// Why this profile: `asked for`, or how it matched.
    pub profile_why: String,
    /// Adapter that reads the console: `framepack`, `comfyui`, `diffusers`, `generic`.
    pub adapter: String,
    /// The supervised card; absent: no GPU.
    pub gpu: Option<GpuId>,
    /// VRAM cap in force.
    pub vram_cap: Option<Bytes>,
    /// Whether a kill is announced with a countdown (a person is at the keys).
    pub interactive: bool,
    /// The resolved plan, so that a record explains and replays itself.
    pub plan: Plan,
    /// The process was there before us: it is watched, and ended only on the user's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
}

/// A process that somebody else started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its id.
    pub pid: u32,
    /// When it began, in clock ticks since boot: with the id it names one process for
    /// good.
    pub start: u64,
}

/// A plan made anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replanned {
    /// What changed, for people: `find mode FAST`.
    pub what: String,
    /// Profile id.
    pub profile: String,
    /// Why this profile.
    pub profile_why: String,
    /// Adapter that reads the console from the next attempt on.
    pub adapter: String,
    /// The plan, what was chosen included.
    pub plan: Plan,
}

/// What a decision was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Choice {
    /// End the attempt and start again on a rung.
    Restart {
        /// Which rung.
        rung: RungId,
        /// When the kill begins, for the countdown; the same as now when headless.
        kill_at: Mono,
        /// The user asked for it: no fault, nothing of the budget is spent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_user: bool,
    },
    /// Nothing answers, or the budget is spent.
    GiveUp,
    /// Told, not acted on.
    Advise,
    /// Held by the user: nothing happens until released.
    Hold,
    /// The user let it go on (`false alarm`, `wait`).
    Resume,
}

/// A decision with its reasons: verdict, rung, rule, budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Which attempt it ends or spares.
    pub attempt: u32,
    /// The verdict it answers.
    pub verdict: VerdictId,
    /// What.
    pub choice: Choice,
    /// Why, in a sentence or two.
    pub why: String,
    /// Rungs that would have answered but cannot be taken.
    pub skipped: Vec<SkippedRung>,
    /// Restarts left after this decision.
    pub restarts_left: u32,
}

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceItem {
    /// `threads`, `log_tail`, `gpu`, `kernel`, `environment`, `python_stacks`, …
    pub kind: String,
    /// File name within the run's folder; absent when it failed.
    pub file: Option<String>,
    /// Bytes written.
    pub bytes: u64,
    /// Why there is none, or not all.
    pub failed: Option<String>,
    /// Nothing of the kind is here, which is no failure; always false in records before
    /// 1.4.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
}

/// What became of an item of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// Whole.
    Ok,
    /// Nothing of the kind is here to be taken: no such card, program or tool.
    Absent,
    /// It is there and could not be had, or not whole.
    Failed,
}

impl EvidenceItem {
    /// What became of it.
    pub const fn state(&self) -> ItemState {
        match (self.absent, &self.failed) {
            (true, _) => ItemState::Absent,
            (false, Some(_)) => ItemState::Failed,
            (false, None) => ItemState::Ok,
        }
    }
}

/// How many items of a bundle are ok, absent and failed: the one count that is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemCounts {
    /// Whole.
    pub ok: usize,
    /// Not here to be taken.
    pub absent: usize,
    /// Not to be had, or not whole.
    pub failed: usize,
}

impl std::fmt::Display for ItemCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ok", self.ok)?;
        for (n, word) in [(self.absent, "absent"), (self.failed, "failed")] {
            if n > 0 {
                write!(f, ", {n} {word}")?;
            }
        }
        Ok(())
    }
}

/// Bundles of evidence that a run takes at most.
pub const MAX_BUNDLES: u32 = 10;

/// A bundle is on disk (or could not be).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceReport {
    /// Number of the bundle in this run.
    pub number: u32,
    /// Which attempt.
    pub attempt: u32,
    /// Folder, absolute.
    pub dir: String,
    /// What it holds.
    pub items: Vec<EvidenceItem>,
    /// How long it took.
    pub took_ms: u64,
    /// When it was asked for, on the clock of the stream; absent in records before 1.9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Mono>,
}

impl EvidenceReport {
    /// How many of its items are ok, absent and failed.
    pub fn counts(&self) -> ItemCounts {
        let mut counts = ItemCounts::default();
        for item in &self.items {
            match item.state() {
                ItemState::Ok => counts.ok += 1,
                ItemState::Absent => counts.absent += 1,
                ItemState::Failed => counts.failed += 1,
            }
        }
        counts
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        let each = self.items.iter().map(|i| i.bytes);
        each.fold(0, u64::saturating_add)
    }
}

/// Why no judgement was possible for a while; windows are cut there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standstill {
    /// The machine slept.
    MachineSuspended,
    /// We ourselves did not run.
    SupervisorStalled,
    /// The workload was stopped (`T`) or traced.
    ChildStopped,
}

impl Standstill {
    /// The same in words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::MachineSuspended => "the machine slept",
            Self::SupervisorStalled => "the supervisor did not run",
            Self::ChildStopped => "the program was stopped or traced",
        }
    }
}

/// What a user, a signal or the UI asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Stop the countdown; nothing happens until `Release`.
    Hold,
    /// Let a held action go ahead.
    Release,
    /// Wait 60 s more before acting.
    Wait,
    /// The verdict is wrong: spare the attempt, raise the limit.
    FalseAlarm,
    /// Take evidence now.
    Evidence,
    /// End the run gracefully.
    Stop,
    /// SIGTERM came to us: end the run gracefully, exit code 143.
    Terminate,
    /// Kill at once and end the run.
    Kill,
    /// The terminal is gone, or the last screen was left; the run goes on headless.
    TerminalLost,
    /// A screen was attached where there was none: a person sees what is announced.
    ScreenAttached,
    /// End the watching of a process that is not ours; it goes on.
    Leave,
    /// Switch a setting, from the next attempt on.
    Set {
        /// Which.
        setting: Setting,
        /// Its value as the user wrote it; absent: as the profile says.
        value: Option<String>,
    },
    /// Use another profile, from the next attempt on.
    UseProfile {
        /// Its id.
        id: String,
    },
    /// End the attempt and start it again with what was chosen.
    ApplyNow,
    /// Take this rung next; if an attempt runs that nothing ends, end it for that.
    TakeRung {
        /// Which.
        rung: RungId,
    },
    /// Save what is chosen as a profile of the user's own.
    SaveProfile {
        /// Its id.
        id: String,
    },
    /// Send the queue of a ComfyUI again that was lost with the attempt before.
    Resend,
    /// Ask the agent to end the job after the step that it is at.
    StopAfterStep,
}

/// Everything that can happen. Closed: a new kind is a new minor version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// First of every stream.
    RunStarted(Box<RunStarted>),
    /// Something that the user should know.
    Notice {
        /// How much it matters.
        level: Level,
        /// A sentence.
        text: String,
    },
    /// An attempt is about to be launched.
    AttemptStarted(Box<AttemptSpec>),
    /// Its process exists.
    Spawned {
        /// Which attempt.
        attempt: u32,
        /// Root process of the workload.
        pid: u32,
        /// Its process group.
        pgid: u32,
    },
    /// It could not be started.
    SpawnFailed {
        /// Which attempt.
        attempt: u32,
        /// Why.
        why: String,
        /// Whether the program was not found.
        not_found: bool,
    },
    /// Readings.
    Sample(Box<Sample>),
    /// A deep look at the processes of the tree, while nothing of the job was seen to move.
    Probe(Box<Probe>),
    /// A line of the console.
    Line(Line),
    /// The workload entered a phase.
    Phase(PhaseChange),
    /// A bar moved.
    Progress(Progress),
    /// A job began or ended.
    Job(JobChange),
    /// MIOpen's search.
    Find(FindMark),
    /// A result was written.
    Artefact(Artefact),
    /// The agent inside the program said something, or something is to be said of it.
    Agent(Box<AgentNote>),
    /// The kernel said something about a GPU, memory or our processes.
    Kernel {
        /// Its text.
        text: String,
    },
    /// The judgement changed.
    Verdict(Box<Verdict>),
    /// What follows from it.
    Decision(Box<Decision>),
    /// Evidence is on disk.
    EvidenceTaken(EvidenceReport),
    /// A signal was sent.
    SignalSent {
        /// Which attempt.
        attempt: u32,
        /// Which signal.
        signal: Signal,
        /// Whom.
        scope: Scope,
        /// Processes that it reached; 0: nobody was left.
        reached: u32,
    },
    /// The root process ended.
    Exited(ExitReport),
    /// The command has returned, and processes that it started still run: they are the attempt.
    CommandReturned {
        /// Which attempt.
        attempt: u32,
        /// Those processes.
        processes: Vec<Survivor>,
    },
    /// A process of the attempt ended whose parent had ended before it. The ends of others are
    /// collected by their parents.
    ProcessEnded {
        /// Which attempt.
        attempt: u32,
        /// The process.
        pid: u32,
        /// How it ended.
        status: ExitStatus,
    },
    /// Every process of the attempt is gone.
    GroupGone {
        /// Which attempt.
        attempt: u32,
    },
    /// The guardian died before the processes that it held: somebody killed it.
    GuardianLost {
        /// Which attempt.
        attempt: u32,
    },
    /// The first attempt waits: processes of an earlier run still have the card.
    CardHeld(CardHeld),
    /// The card is ours, after a wait.
    CardFree {
        /// Which.
        gpu: GpuId,
        /// How long the wait took.
        took_ms: u64,
    },
    /// Processes that survive.
    Survivors {
        /// Which attempt.
        attempt: u32,
        /// Those processes: pid, name, state letter, wait channel.
        processes: Vec<Survivor>,
    },
    /// The next attempt waits until the card's memory comes back.
    VramWaiting {
        /// In use now.
        used: Bytes,
        /// In use before the run.
        before: Bytes,
    },
    /// The memory came back (or the wait was given up).
    VramReclaimed {
        /// In use now; absent where it cannot be read.
        used: Option<Bytes>,
        /// How long it took.
        took_ms: u64,
        /// Whether it really fell; `false`: given up after 60 s.
        complete: bool,
    },
    /// Someone asked for something.
    Command(Command),
    /// What the rescue vault holds of this run as a server is started again.
    LostJobs(LostJobs),
    /// What becomes of a job that was lost with a server.
    Resend(Resend),
    /// The plan changed after a choice of the user; the next attempt follows it.
    Replanned(Box<Replanned>),
    /// A profile of the user's own was written.
    ProfileSaved {
        /// Its id.
        id: String,
        /// Where, absolute.
        path: String,
    },
    /// A source changed its state.
    Source(super::sample::SourceStatus),
    /// No judgement was possible.
    Standstill {
        /// Why.
        cause: Standstill,
        /// For how long.
        for_ms: u64,
    },
    /// Lines of a flood, in the place of as many [`Event::Line`].
    Flood(Box<super::flood::Flood>),
    /// Something was not kept.
    Dropped {
        /// `lines`, `samples`, `events`.
        what: String,
        /// How many.
        n: u64,
    },
    /// Time passed.
    Tick,
    /// Last of every stream.
    RunFinished {
        /// How.
        outcome: Outcome,
        /// Our exit code.
        exit_code: u8,
        /// The result: the last artefact that is whole.
        result: Option<Artefact>,
        /// A sentence.
        summary: String,
    },
}

/// A process that does not end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Process.
    pub pid: u32,
    /// Name (`comm`).
    pub name: String,
    /// State letter.
    pub state: char,
    /// Kernel function it waits in, where readable.
    pub wchan: Option<String>,
}
