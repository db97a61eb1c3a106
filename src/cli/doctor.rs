//! `framepack-tui doctor`: looks the machine over, says what is wrong and how to cure it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::doctor::facts::{Look, ProfileFacts, SourceFact};
use crate::doctor::{Ask, Gathering, Report, Rest};
use crate::model::visible::Visible;
use crate::model::{GpuSample, Sample, SourceState};
use crate::profile::{Catalog, Profile};
use crate::record::Store;
use crate::telemetry::{ReadTime, Sampler, SamplerConfig};
use crate::ui::doctor::text;
use crate::workload::adapter::AdapterKind;

use super::args::DoctorArgs;
use super::run::{machine, setup};
use super::{CliError, page};

/// Time between two readings of a source, so that more than one is timed.
const PERIOD: Duration = Duration::from_millis(200);
/// How long the sources are read.
const READ_FOR: Duration = Duration::from_millis(700);
/// Longest wait for the first answer of every source.
const ANSWERS: Duration = Duration::from_secs(4);
/// Looks, judges, prints.
pub(super) fn main(args: &DoctorArgs) -> Result<u8, CliError> {
    let cwd = setup::working_directory(args.cwd.as_deref())?;
    let env = setup::exported();
    let catalog = Catalog::load();
    if let Some(asked) = &args.profile {
        catalog.get(asked)?;
    }
    let begun = Instant::now();
    let sampler = Sampler::start(SamplerConfig {
        period: PERIOD,
        ..SamplerConfig::with_own_reader()
    });
    // what reads the supervised process is timed on this one
    sampler.set_target(Some(std::process::id()), None);
    let adapter = adapter(&args.command, &cwd);
    let exported = env.clone();
    let looks = Gathering::start(&Ask {
        argv: args.command.clone(),
        adapter: adapter.to_owned(),
        cwd,
        python: args.python.clone(),
        timeout: Duration::from_secs(args.timeout),
        env,
        root: PathBuf::from("/"),
        state: Store::open_default().ok().map(|s| s.root().to_owned()),
        temp: std::env::temp_dir(),
    });
    let sample = settled(&sampler, begun);
    let (card, visible) = supervised(args, &catalog, &exported, &sample.gpus)?;
    let asked = args.profile.as_deref();
    let profile = profile(&catalog, asked, card.as_ref(), adapter);
    let sources = sources(&sample, &sampler.read_times());
    let report = Report::of(looks.finish(Rest {
        sources,
        cards: sample.gpus,
        supervised: card.map(|c| c.id),
        visible,
        host: sample.host,
        profile,
        broken_profiles: catalog.broken().iter().map(ToString::to_string).collect(),
    }));
    print(args, &report)?;
    Ok(report.exit_code)
}

/// The sample once every source has answered and was read more than once, or has had
/// its time.
fn settled(sampler: &Sampler, begun: Instant) -> Sample {
    // waits for the cards itself
    let _cards = sampler.cards();
    loop {
        let sample = sampler.sample();
        let waits = sample
            .sources
            .iter()
            .any(|s| s.state == SourceState::Starting);
        let passed = begun.elapsed();
        if (!waits && passed >= READ_FOR) || passed >= ANSWERS {
            return sample;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn sources(sample: &Sample, times: &BTreeMap<String, ReadTime>) -> Vec<SourceFact> {
    let ms = |d: Duration| (d.as_secs_f64() * 1e6).round() / 1e3;
    let fact = |s: &crate::model::SourceStatus| {
        let time = times.get(&s.name);
        SourceFact {
            name: s.name.clone(),
            state: s.state,
            why: s.why.clone(),
            first_ms: time.map(|t| ms(t.first)),
            read_ms: time.and_then(|t| t.latest).map(ms),
        }
    };
    sample.sources.iter().map(fact).collect()
}

/// The family that the command suggests; without one, what lies in the folder.
fn adapter(argv: &[String], cwd: &Path) -> &'static str {
    let main = ["python", "main.py"].map(str::to_owned);
    let argv = if argv.is_empty() && cwd.join("main.py").exists() {
        &main
    } else {
        argv
    };
    AdapterKind::detect(argv, &cwd.display().to_string(), setup::names_in).as_str()
}

/// The card that a run of the command would supervise, and what the command is shown.
fn supervised(
    args: &DoctorArgs,
    catalog: &Catalog,
    exported: &BTreeMap<String, String>,
    cards: &[GpuSample],
) -> Result<(Option<GpuSample>, Visible), CliError> {
    let changes = match &args.profile {
        Some(asked) => setup::profile_vars(&catalog.get(asked)?, exported),
        None => Vec::new(),
    };
    let visible = setup::shown(cards, exported, &changes, &args.command);
    Ok((machine::choose_shown(cards, None, &visible)?, visible))
}

/// The profile that a run would take here.
fn profile(
    catalog: &Catalog,
    asked: Option<&str>,
    card: Option<&GpuSample>,
    adapter: &str,
) -> Look<ProfileFacts> {
    match machine::profile(catalog, asked, card, adapter) {
        Ok((profile, why)) => Look::Known(profile_facts(&profile, why)),
        Err(e) => Look::Unknown(e.to_string()),
    }
}

fn profile_facts(profile: &Profile, why: String) -> ProfileFacts {
    ProfileFacts {
        id: profile.id.value.clone(),
        why,
        sets: profile.env.set.keys().cloned().collect(),
        host_ram_min: profile.limits.host_ram_min.as_ref().map(|at| at.value),
    }
}

fn print(args: &DoctorArgs, report: &Report) -> Result<(), CliError> {
    page::print(report, args.json, args.ascii, |layout| {
        text(report, layout, args.quiet)
    })
}
