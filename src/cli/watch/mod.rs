//! `framepack-tui watch`: a process that somebody else started. It is judged and
//! evidence is taken of it; it is ended on the user's word alone.

mod console;
mod target;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::model::{Attached, Chosens, GpuSample, exit};
use crate::profile::Catalog;
use crate::telemetry::{Sampler, SamplerConfig};
use crate::workload::adapter::AdapterKind;

use super::CliError;
use super::args::WatchArgs;
use super::clock;
use super::run::attach::Attachment;
use super::run::planner::Planner;
use super::run::setup::{self, Setup};
use super::run::{Ready, Refused, machine, ready};
use super::show::Output;
use console::Console;
use target::Target;

/// What a process holds of the cards is known within this time.
const HOLDINGS: Duration = Duration::from_millis(1500);

/// Why a process is not watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// Nothing is known of any process.
    #[error(
        "read /proc: it is not there, so no process can be watched from here; in a container it has to be mounted"
    )]
    NoProc,
    /// There is none.
    #[error(
        "there is no process {pid}; `ps` lists those that can be seen from here (not those outside of a container, nor those that the mount option hidepid hides)"
    )]
    NoSuchProcess {
        /// Its number.
        pid: u32,
    },
    /// The number was given away anew.
    #[error("process {pid} is another one now: the one that was meant has ended")]
    Another {
        /// Its number.
        pid: u32,
    },
    /// It is a zombie.
    #[error("process {pid} has ended; only its parent has not noticed yet")]
    HasEnded {
        /// Its number.
        pid: u32,
    },
    /// What is known of it cannot be read.
    #[error("process {pid} cannot be looked at: {why}")]
    Unreadable {
        /// Its number.
        pid: u32,
        /// Why.
        why: String,
    },
    /// A thread's number was given.
    #[error("{pid} is a thread of process {of}; watch that with --pid {of}")]
    Thread {
        /// The thread.
        pid: u32,
        /// Its process.
        of: u32,
    },
    /// Process 1.
    #[error(
        "process 1 is the first process of the machine, on which all others rest; it is not watched"
    )]
    First,
    /// Ourselves.
    #[error("process {pid} is this program itself")]
    Own {
        /// Its number.
        pid: u32,
    },
    /// One that we run under.
    #[error(
        "process {pid} ({name}) is above this program, which would end with it; name the generation itself"
    )]
    Above {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Part of the kernel.
    #[error("process {pid} ({name}) is a thread of the kernel")]
    Kernel {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// A run of ours has it.
    #[error(
        "process {pid} is supervised already, by run {run}; `framepack-tui follow {run}` shows it"
    )]
    Supervised {
        /// Its number.
        pid: u32,
        /// The run.
        run: String,
    },
    /// `--log` names no file that can be read.
    #[error("the log {} cannot be read: {why}", path.display())]
    Log {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The system refused something that never fails in a healthy one.
    #[error("failed to {what}: {why}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        why: io::Error,
    },
}

impl WatchError {
    /// The exit code, part of the contract.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NoProc
            | Self::NoSuchProcess { .. }
            | Self::Another { .. }
            | Self::HasEnded { .. }
            | Self::Unreadable { .. }
            | Self::Log { .. } => exit::MISSING,
            Self::Thread { .. }
            | Self::First
            | Self::Own { .. }
            | Self::Above { .. }
            | Self::Kernel { .. }
            | Self::Supervised { .. } => exit::USAGE,
            Self::System { .. } => exit::INTERNAL,
        }
    }
}

/// Watches a process until it ends or the user leaves; gives the exit code.
pub(super) fn main(args: &WatchArgs) -> Result<u8, CliError> {
    let ready = prepare(args, None).map_err(|refused| refused.why)?;
    ready.supervise()
}

/// Decides everything, or says why the process is not watched; `start`: it must have
/// begun then, in clock ticks since boot.
pub(super) fn prepare(args: &WatchArgs, start: Option<u64>) -> Result<Ready, Refused> {
    let (target, console, catalog) = judge(args, start)?;
    ready(Output::choose(args.show), true, || {
        set_up(args, target, console, catalog)
    })
}

/// What can be judged before a screen is up.
fn judge(args: &WatchArgs, start: Option<u64>) -> Result<(Target, Console, Catalog), CliError> {
    let target = Target::open(args.pid, start)?;
    let console = Console::find(args.pid, args.log.as_deref())?;
    let catalog = Catalog::load();
    if let Some(asked) = &args.profile {
        catalog.get(asked)?;
    }
    Ok((target, console, catalog))
}

fn set_up(
    args: &WatchArgs,
    target: Target,
    console: Console,
    catalog: Catalog,
) -> Result<Setup, CliError> {
    let command = target.command();
    let environ = target.environ.as_ref().ok().cloned().unwrap_or_default();
    let mut notices = console.read.clone();
    let mut warnings: Vec<String> = console.warning(args.job).into_iter().collect();
    warnings.extend(target.hidden());
    let scale = setup::time_scale(&setup::exported())?;
    let sampler = Sampler::start(SamplerConfig::with_own_reader().at_scale(scale));
    sampler.set_target(Some(target.pid), None);
    let card = choose(args, &sampler, &environ, &command)?;
    let planner = Planner {
        catalog,
        argv: command.clone(),
        asked: args.profile.clone(),
        cap: None,
        card_unknown: setup::silent_card(&sampler.sample().sources).is_some(),
        card,
        detected: adapter(&command, target.cwd.as_deref()),
        diffusers: target
            .cwd
            .as_deref()
            .is_some_and(|cwd| setup::names_diffusers(&command, cwd)),
        agent: crate::model::AgentWay::Unknown,
        agent_asked: None,
        left_out: true,
        exported: environ,
        countdown: Duration::ZERO,
        end_after_result: false,
    };
    let mut plan = planner.plan(&Chosens::default())?;
    notices.append(&mut plan.notices);
    let cwd = target.cwd.clone();
    let place = cwd
        .as_ref()
        .map_or_else(String::new, |c| c.display().to_string());
    let attached = Attached {
        pid: target.pid,
        start: target.start,
    };
    let card = planner.card.as_ref();
    let record = setup::record(&command, &clock::now(), Some(target.pid), &mut notices)?;
    plan.plan.time_scale = scale;
    let begun = setup::begin(plan, &command, place, record, card, Some(attached));
    Ok(Setup {
        started: begun.started,
        notices,
        own: None,
        warnings,
        sampler,
        store: begun.store,
        dir: begun.dir,
        // whoever runs on the card may be a run of ours: what only looks takes no lock
        claim: None,
        // where its folder is hidden, so is what it writes there
        cwd: cwd.unwrap_or_else(|| format!("/proc/{}/cwd", target.pid).into()),
        kind: begun.kind,
        planner,
        attachment: Some(Attachment {
            pid: target.pid,
            start: target.start,
            handle: target.handle,
            group: target.group,
            console: console.files,
            job: args.job,
        }),
        // `--log` is the file of the program that is watched
        log: std::env::var("FPT_LOG").ok(),
        gdb: args.gdb,
        learned: begun.learned,
        agent: None,
    })
}

/// The family of programs whose console is read. The process may see other folders under
/// the same paths, so only its working directory is listed.
fn adapter(argv: &[String], cwd: Option<&Path>) -> AdapterKind {
    let shown = cwd.map_or_else(String::new, |c| c.display().to_string());
    AdapterKind::detect(argv, &shown, |folder| {
        if cwd.is_some_and(|cwd| Path::new(folder) == cwd) {
            setup::names_in(folder)
        } else {
            Vec::new()
        }
    })
}

/// The card that is asked for, else that of which the process holds most, else the
/// first that it is shown.
fn choose(
    args: &WatchArgs,
    sampler: &Sampler,
    environ: &BTreeMap<String, String>,
    command: &[String],
) -> Result<Option<GpuSample>, CliError> {
    let cards = sampler.cards();
    if args.gpu.is_none()
        && cards.len() > 1
        && let Some(card) = held(sampler, &cards)
    {
        return Ok(Some(card));
    }
    let shown = setup::shown(&cards, environ, &[], command);
    machine::choose_shown(&cards, args.gpu.as_deref(), &shown)
}

/// The card of which the tree holds most.
fn held(sampler: &Sampler, cards: &[GpuSample]) -> Option<GpuSample> {
    let begun = Instant::now();
    loop {
        let held = sampler.sample().process.and_then(|tree| {
            let used = tree.on_cards.into_iter().filter(|c| c.processes > 0);
            used.max_by_key(|c| c.vram.last().copied())
        });
        if let Some(held) = held {
            return cards.iter().find(|c| c.id == held.gpu).cloned();
        }
        if begun.elapsed() >= HOLDINGS {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
