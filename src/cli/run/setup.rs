//! Everything that is decided before the first attempt.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Zoned;

use crate::cli::args::RunArgs;
use crate::cli::show::Output;
use crate::cli::{CliError, clock};
use crate::model::event::{RunStarted, SCHEMA};
use crate::model::sample::SourceState;
use crate::model::visible::{self, Visible};
use crate::model::{
    AgentWay, Attached, Chosens, EnvChange, EnvOrigin, GpuSample, SourceStatus, TimeScale, Vendor,
};
use crate::profile::schema::AgentUse;
use crate::profile::{Catalog, Problem, Profile, check_environment};
use crate::record::{RunDir, Store};
use crate::run::COUNTDOWN;
use crate::telemetry::{Sampler, SamplerConfig};
use crate::workload::adapter::{self, AdapterKind};

use super::agent;
use super::attach::Attachment;
use super::claim::{self, Claim};
use super::learned::{Learned, fingerprint};
use super::machine;
use super::planner::{Planned, Planner};

/// How fast the run's clock goes: a number from 1 to 4, for end-to-end tests alone.
const TIME_SCALE: &str = "FPT_TIME_SCALE";

/// A run that is ready to begin.
pub(in crate::cli) struct Setup {
    pub(in crate::cli) started: RunStarted,
    pub(in crate::cli) notices: Vec<String>,
    /// What our own worker writes, where that is what runs.
    pub(in crate::cli) own: Option<PathBuf>,
    /// Notices of something that is not as it should be.
    pub(in crate::cli) warnings: Vec<String>,
    pub(in crate::cli) sampler: Sampler,
    pub(in crate::cli) store: Store,
    pub(in crate::cli) dir: RunDir,
    /// The card that the run takes; absent: it has none.
    pub(in crate::cli) claim: Option<Claim>,
    pub(in crate::cli) cwd: PathBuf,
    pub(in crate::cli) kind: AdapterKind,
    pub(in crate::cli) planner: Planner,
    /// The process that is watched in the place of one that we start.
    pub(in crate::cli) attachment: Option<Attachment>,
    /// What the supervisor writes of itself into the run's folder; absent: nothing.
    pub(in crate::cli) log: Option<String>,
    /// Native stacks are taken with the evidence, by gdb.
    pub(in crate::cli) gdb: bool,
    pub(in crate::cli) learned: Learned,
    /// What the agent needs; absent: there is none.
    pub(in crate::cli) agent: Option<super::agent::Ready>,
}

/// What the command line asks for, judged before any device is looked at.
pub(super) struct Asked {
    cwd: PathBuf,
    exported: BTreeMap<String, String>,
    notices: Vec<String>,
    pub(super) output: Output,
    /// A person sees the announcement of a kill.
    pub(super) person_watches: bool,
    detected: AdapterKind,
    catalog: Catalog,
    scale: TimeScale,
}

/// Judges what can be judged without the devices, so that most of what may be wrong
/// is said before a screen is up.
pub(super) fn judge(args: &RunArgs) -> Result<Asked, CliError> {
    let cwd = working_directory(args.cwd.as_deref())?;
    let exported = exported();
    let notices = judge_environment(&exported)?;
    let scale = time_scale(&exported)?;
    let catalog = Catalog::load();
    let output = Output::choose(args.show);
    if let Some(asked) = &args.profile {
        catalog.get(asked)?;
    }
    Ok(Asked {
        detected: AdapterKind::detect(&args.command, &cwd.display().to_string(), names_in),
        cwd,
        exported,
        notices,
        output,
        person_watches: person_watches(output),
        catalog,
        scale,
    })
}

/// Decides everything, or says what is wrong before anything is launched. Waits for
/// the cards, for as long as [`Sampler::cards`] says.
pub(super) fn setup(args: &RunArgs, asked: Asked) -> Result<Setup, CliError> {
    let Asked {
        cwd,
        exported,
        mut notices,
        output: _,
        person_watches,
        detected,
        catalog,
        scale,
    } = asked;
    let sampler = Sampler::start(SamplerConfig::with_own_reader().at_scale(scale));
    let cards = sampler.cards();
    let shown = |of: &[EnvChange]| shown(&cards, &exported, of, &args.command);
    let asked_for = asked_for(args, &catalog, &exported)?;
    let on_cpu = args.own.as_ref().is_some_and(|own| own.on_cpu);
    let card = if on_cpu {
        None
    } else {
        machine::choose_shown(&cards, args.gpu.as_deref(), &shown(&asked_for))?
    };
    notices.extend(args.own.iter().flat_map(|own| own.notices.clone()));
    notices.extend(left_out(&catalog));
    let sources = sampler.sample().sources;
    let mut planner = Planner {
        catalog,
        argv: args.command.clone(),
        asked: args.profile.clone(),
        cap: args.cap,
        card_unknown: !on_cpu && silent_card(&sources).is_some(),
        card,
        detected,
        diffusers: names_diffusers(&args.command, &cwd),
        agent: agent::expected(&args.command),
        agent_asked: args.agent.map(AgentUse::from),
        left_out: false,
        exported: exported.clone(),
        countdown: if person_watches {
            COUNTDOWN
        } else {
            Duration::ZERO
        },
        end_after_result: args.end_after_result,
    };
    let mut plan = planner.first_plan()?;
    notices.append(&mut plan.notices);
    let card = planner.card.as_ref();
    notices.extend(host_notice(&sampler, &plan.profile));
    if !on_cpu {
        notices.extend(card_notices(&cards, card, &sources));
    }
    let warnings = card.and_then(|c| machine::mismatch(&cards, c, &shown(&plan.plan.env)));

    let place = cwd.display().to_string();
    let record = record(&args.command, &clock::now(), None, &mut notices)?;
    let agent = put_ready(&record.1, &mut planner, &mut plan, &mut notices)?;
    let card = planner.card.as_ref();
    plan.plan.time_scale = scale;
    let begun = begin(plan, &args.command, place, record, card, None);
    let claim = claim(card, &begun.dir, &mut notices)?;
    Ok(Setup {
        started: begun.started,
        notices,
        own: args.own.as_ref().map(|own| own.output.clone()),
        warnings: warnings.into_iter().collect(),
        sampler,
        store: begun.store,
        dir: begun.dir,
        claim,
        cwd,
        kind: begun.kind,
        planner,
        attachment: None,
        log: args.log.clone(),
        gdb: args.gdb,
        learned: begun.learned,
        agent,
    })
}

/// A record that is begun, and what its first event says.
pub(in crate::cli) struct Begun {
    pub(in crate::cli) started: RunStarted,
    pub(in crate::cli) store: Store,
    pub(in crate::cli) dir: RunDir,
    pub(in crate::cli) kind: AdapterKind,
    pub(in crate::cli) learned: Learned,
}

/// Begins `record` with what was planned; `attached`: of a process that is not ours.
pub(in crate::cli) fn begin(
    planned: Planned,
    argv: &[String],
    cwd: String,
    record: (Store, RunDir),
    card: Option<&GpuSample>,
    attached: Option<Attached>,
) -> Begun {
    let Planned {
        mut plan,
        profile,
        why,
        kind,
        adapter,
        ..
    } = planned;
    let (store, dir) = record;
    let kin = fingerprint(&profile.id.value, &kind.to_string(), card, argv);
    let learned = Learned::recall(&store, kin, &mut plan);
    let started = RunStarted {
        schema: SCHEMA.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        run: dir.id().to_string(),
        wall_clock: dir.manifest().wall_clock.clone(),
        argv: argv.to_vec(),
        cwd,
        profile: profile.id.value.clone(),
        profile_why: why,
        adapter: adapter.to_string(),
        gpu: plan.gpu.clone(),
        vram_cap: plan.vram_cap,
        interactive: !plan.countdown.is_zero(),
        plan,
        attached,
    };
    Begun {
        started,
        store,
        dir,
        kind,
        learned,
    }
}

/// Puts the agent where the program finds it. That it cannot be costs what only the agent
/// does, never the run.
fn put_ready(
    dir: &RunDir,
    planner: &mut Planner,
    decided: &mut Planned,
    notices: &mut Vec<String>,
) -> Result<Option<agent::Ready>, CliError> {
    if planner.left_out {
        return Ok(None);
    }
    match agent::prepare(dir, notices) {
        Ok(ready) => Ok(Some(ready)),
        Err(why) => {
            notices.push(format!("no agent is put into the program: {why}"));
            planner.agent = AgentWay::Off { why };
            decided.plan = planner.plan(&Chosens::default())?.plan;
            Ok(None)
        }
    }
}

/// Profiles that cannot be used.
fn left_out(catalog: &Catalog) -> Vec<String> {
    let broken = catalog.broken();
    let said = |b| format!("a profile was left out: {b}");
    broken.iter().map(said).collect()
}

/// What the profile on the command line sets.
fn asked_for(
    args: &RunArgs,
    catalog: &Catalog,
    exported: &BTreeMap<String, String>,
) -> Result<Vec<EnvChange>, CliError> {
    match &args.profile {
        Some(asked) => Ok(profile_vars(&catalog.get(asked)?, exported)),
        None => Ok(Vec::new()),
    }
}

/// The card, for the run of this record.
fn claim(
    card: Option<&GpuSample>,
    dir: &RunDir,
    notices: &mut Vec<String>,
) -> Result<Option<Claim>, CliError> {
    let run = dir.id().to_string();
    let claim = card.map(|c| claim::claim(&c.id, &run, notices)).transpose();
    let claim = claim.inspect_err(|_refused| {
        // a run that never was leaves no record; one that cannot be removed does no harm
        let _ = std::fs::remove_dir_all(dir.path());
    })?;
    Ok(claim)
}

/// The folder of the record. A state directory that cannot be written must not
/// stop the run: the record then lies in the temporary directory, and that is told.
///
/// `watched`: the process that is not ours, where the record is about one.
pub(in crate::cli) fn record(
    argv: &[String],
    now: &Zoned,
    watched: Option<u32>,
    notices: &mut Vec<String>,
) -> Result<(Store, RunDir), CliError> {
    let first = Store::open_default().and_then(|s| Ok((s.create_for(argv, now, watched)?, s)));
    let why = match first {
        Ok((dir, store)) => return Ok((store, dir)),
        Err(e) => e,
    };
    let store = Store::fallback();
    let dir = store.create_for(argv, now, watched)?;
    notices.push(format!(
        "failed to {why}; the record of this run lies in {} instead",
        dir.path().display()
    ));
    Ok((store, dir))
}

pub(in crate::cli) fn working_directory(asked: Option<&Path>) -> Result<PathBuf, CliError> {
    let path = asked.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let enter = || -> io::Result<PathBuf> {
        let full = path.canonicalize()?;
        std::fs::read_dir(&full)?;
        Ok(full)
    };
    enter().map_err(|why| CliError::Cwd {
        path: path.clone(),
        why,
    })
}

/// Names in a folder, for the adapter's look; bounded.
pub(in crate::cli) fn names_in(folder: &str) -> Vec<String> {
    std::fs::read_dir(folder).map_or_else(
        |_unreadable| Vec::new(),
        |entries| {
            entries
                .flatten()
                .take(1000)
                .map(|e| e.file_name().to_string_lossy().into_owned())
                .collect()
        },
    )
}

/// Whether the script of a command imports diffusers, as far as its own text tells.
pub(in crate::cli) fn names_diffusers(argv: &[String], cwd: &Path) -> bool {
    const MOST: u64 = 1 << 20;
    let Some(script) = adapter::script(argv) else {
        return false;
    };
    let path = cwd.join(script);
    let mut text = Vec::new();
    // to open a pipe would wait for its writer, and take what is meant for the program
    path.is_file()
        && File::open(path)
            .and_then(|file| file.take(MOST).read_to_end(&mut text))
            .is_ok()
        && adapter::imports_diffusers(&String::from_utf8_lossy(&text))
}

/// The user's exported variables; those that are no UTF-8 concern nobody here.
pub(in crate::cli) fn exported() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .collect()
}

/// The time scale of the end-to-end tests.
pub(in crate::cli) fn time_scale(vars: &BTreeMap<String, String>) -> Result<TimeScale, CliError> {
    vars.get(TIME_SCALE).map_or(Ok(TimeScale::REAL), |asked| {
        asked.parse().map_err(|why| CliError::TimeScale {
            asked: asked.clone(),
            why,
        })
    })
}

/// Refuses values that would make every convolution fail; the rest are notices.
fn judge_environment(vars: &BTreeMap<String, String>) -> Result<Vec<String>, CliError> {
    let (errors, warnings): (Vec<_>, Vec<_>) = check_environment(vars)
        .into_iter()
        .partition(Problem::is_error);
    if errors.is_empty() {
        Ok(warnings.iter().map(Problem::one_line).collect())
    } else {
        Err(CliError::Environment(errors))
    }
}

/// Whether a person sees the announcement of a kill.
fn person_watches(output: Output) -> bool {
    match output {
        Output::Screen { .. } => true,
        Output::Plain => io::stdout().is_terminal(),
        Output::Headless => false,
    }
}

/// What the program is shown of the cards.
pub(in crate::cli) fn shown(
    cards: &[GpuSample],
    exported: &BTreeMap<String, String>,
    changes: &[EnvChange],
    argv: &[String],
) -> Visible {
    let changes = changes
        .iter()
        .map(|c| (c.name.as_str(), c.value.as_deref()));
    let vars = visible::child_vars(exported, changes, argv);
    visible::visible(cards, &vars, &uuid_of)
}

/// The UUID of a card as its driver tells it: `GPU-` and amdgpu's unique id, or the one
/// of NVIDIA's `information` file. Small files that touch no hardware.
fn uuid_of(card: &GpuSample) -> Option<String> {
    let id = &card.id;
    match card.vendor {
        Vendor::Amd => {
            let text =
                std::fs::read_to_string(format!("/sys/bus/pci/devices/{id}/unique_id")).ok()?;
            let unique = text.trim();
            (!unique.is_empty()).then(|| format!("GPU-{unique}"))
        }
        Vendor::Nvidia => {
            let text =
                std::fs::read_to_string(format!("/proc/driver/nvidia/gpus/{id}/information"));
            let text = text.ok()?;
            let line = text.lines().find_map(|l| l.strip_prefix("GPU UUID:"))?;
            Some(line.trim().to_owned())
        }
        Vendor::Unknown => None,
    }
}

/// What a profile sets, unless the user has exported it.
pub(in crate::cli) fn profile_vars(
    profile: &Profile,
    exported: &BTreeMap<String, String>,
) -> Vec<EnvChange> {
    let set = profile.env.set.iter();
    set.filter(|(name, _)| !exported.contains_key(*name))
        .map(|(name, setting)| EnvChange {
            name: name.clone(),
            value: Some(setting.value.value.clone()),
            origin: EnvOrigin::Profile,
            overrides: None,
        })
        .collect()
}

/// A source of cards that has not answered: its card is not one that is not there.
pub(in crate::cli) fn silent_card(sources: &[SourceStatus]) -> Option<&SourceStatus> {
    sources
        .iter()
        .filter(|s| s.name.starts_with("sysfs") || s.name.starts_with("nvml"))
        .find(|s| {
            use SourceState::{Lost, Stale, Starting};
            matches!(s.state, Starting | Stale | Lost)
        })
}

fn card_notices(
    cards: &[GpuSample],
    chosen: Option<&GpuSample>,
    sources: &[SourceStatus],
) -> Vec<String> {
    match chosen {
        None if let Some(s) = silent_card(sources) => vec![format!(
            "no GPU could be read: {} has not answered; the run goes on, judged by its process alone",
            s.name
        )],
        None => vec!["no GPU was found: the run goes on, judged by its process alone".to_owned()],
        Some(c) if cards.len() > 1 => vec![format!(
            "{} cards; {} at {} is supervised (choose with --gpu)",
            cards.len(),
            c.name,
            c.id
        )],
        Some(_) => Vec::new(),
    }
}

/// Less free memory than the profile asks for is told; the run goes on.
fn host_notice(sampler: &Sampler, profile: &Profile) -> Option<String> {
    let wanted = profile.limits.host_ram_min.as_ref()?.value;
    let free = *sampler.sample().host.mem_available.last()?;
    (free < wanted).then(|| {
        format!(
            "{free} of host memory are free, profile {} asks for {wanted}: the run may end by the kernel's hand",
            profile.id.value
        )
    })
}

/// Says something on standard error, where a screen is not up yet.
pub(in crate::cli) fn complain(text: &str) {
    // nowhere else to say it if stderr is closed
    let _ = writeln!(io::stderr(), "framepack-tui: {text}");
}
