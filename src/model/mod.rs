//! Plain data of the program: no I/O, no clock, nothing of ours but this.
//!
//! Time comes in as [`Mono`], milliseconds since the run began. The words
//! ([`VerdictId`], [`Phase`], [`ActionId`]) are closed lists that code, JSON,
//! TOML and screen share.

pub mod agent;
pub mod agent_setting;
pub mod attempt;
pub mod backend;
pub mod baselines;
pub mod card_held;
pub mod convolution;
pub mod effect;
pub mod event;
pub mod exception;
pub mod fault;
pub mod find;
pub mod flood;
pub mod found;
pub mod gpu;
pub mod health;
pub(crate) mod interpreter;
pub mod line;
pub mod os_text;
pub mod plan;
pub mod probe;
pub mod progress;
pub mod questions;
pub mod request;
pub mod resend;
pub mod sample;
pub mod setting;
pub mod time;
pub mod time_scale;
pub mod trust;
pub mod units;
pub mod visible;
pub mod vocab;
pub mod windows;
pub mod worker;

pub use agent::{AgentBeat, AgentNote, AgentOp, AgentRank, AgentSteps, AgentWay, AgentWord};
pub use agent_setting::{AGENT_SETTINGS, AgentSetting, agent_setting};
pub use attempt::{
    AttemptSpec, EnvChange, EnvOrigin, ExitReport, ExitStatus, Outcome, RungId, SkippedRung,
};
pub use backend::Backend;
pub use baselines::{Baselines, Fingerprint, Observed, PhaseBaseline};
pub use card_held::{CardHeld, CardHolder};
pub use convolution::{ConvDirection, ConvLayout, ConvType, Convolution, ConvolutionError};
pub use effect::{Effect, Scope, Signal};
pub use event::{Attached, Command, Envelope, Event, Speaker};
pub use fault::{FaultKind, KernelFault};
pub use find::{FindFigures, FindState, MiopenRelease, Workspace};
pub use flood::{Flood, Repeated, gap_words};
pub use found::{CardMemory, FoundProcess};
pub use gpu::{
    Disagreement, GpuId, GpuSample, Link, Opinion, Resets, ThrottleReason, Vendor, is_suspended,
};
pub use health::{
    Cause, Cite, CiteKind, Considered, Finding, Health, NextStep, Remedy, RuleState, Verdict,
};
pub mod exit;
pub use line::{Line, Stream, looks_like_bar};
pub use plan::{Acts, Answers, Budget, KillPlan, Limits, PhaseLimits, Plan, Rung};
pub use probe::{PeerTraffic, Probe, ProbedProcess, ProbedThread, Tracer, Wait, WaitTarget};
pub use progress::{FindMark, JobChange, PhaseChange, Progress};
pub use questions::{Answer, Answered, Questions, Waits, WaitsFor};
pub use request::{Request, Seen};
pub use resend::{JobProgram, LostJob, LostJobs, RefusedPrompt, Resend, ResendWord};
pub use sample::{
    EngineTime, HostSample, Metric, ProcSample, Sample, SourceState, SourceStatus, ThreadSample,
    TreeOnCard,
};
pub use setting::{Chosen, Chosens, Effective, Follow, Origin, Setting};
pub use time::Mono;
pub use time_scale::TimeScale;
pub use trust::{BusyTrust, IdleBaseline};
pub use units::Bytes;
pub(crate) use vocab::for_each_verdict;
pub use vocab::{ActionId, Phase, Severity, Tier, VerdictId};
