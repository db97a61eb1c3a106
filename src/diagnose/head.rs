//! The head of the stream that a recording becomes.

use std::time::Duration;

use crate::model::event::{RunStarted, SCHEMA};
use crate::model::{AgentWay, Bytes, Chosens, GpuId, Plan, Vendor};
use crate::profile::resolve::{Inputs, env_names};
use crate::profile::{Card, Catalog, Machine, best, resolve};
use crate::workload::adapter::{self, AdapterKind, LaunchInfo};
use crate::workload::capabilities;

use super::meta::Meta;
use super::readings::CARD;

/// The family that a recording's command line suggests.
pub fn kind(meta: &Meta) -> AdapterKind {
    let (cwd, names) = folder(meta);
    AdapterKind::detect(&meta.argv, &cwd, |folder| {
        if folder == cwd {
            names.clone()
        } else {
            Vec::new()
        }
    })
}

/// The working directory that the program's name suggests, and what lies there.
fn folder(meta: &Meta) -> (String, Vec<String>) {
    let all = AdapterKind::ALL.iter();
    let named = all.filter(|kind| meta.app.starts_with(kind.as_str()));
    // of `framepack` and a fork of it the name that says more
    let kind = named.max_by_key(|kind| kind.as_str().len());
    let (name, beside) = kind.unwrap_or(&AdapterKind::Generic).home();
    let beside = beside.iter().map(|name| (*name).to_owned());
    (format!("/home/user/{name}"), beside.collect())
}

/// The head, with the plan of the profile that fits; limits are the built-in ones where
/// none does.
pub(super) fn started(meta: &Meta, kind: AdapterKind) -> RunStarted {
    let (profile, profile_why, plan) = plan(meta, kind).unwrap_or_else(|| {
        let plan = Plan {
            argv: meta.argv.clone(),
            gpu: gpu(meta),
            server: server(meta, kind),
            ..Plan::default()
        };
        (String::new(), "no profile fits".to_owned(), plan)
    });
    RunStarted {
        schema: SCHEMA.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        run: "recording".to_owned(),
        wall_clock: String::new(),
        argv: meta.argv.clone(),
        cwd: folder(meta).0,
        profile,
        profile_why,
        adapter: kind.to_string(),
        gpu: plan.gpu.clone(),
        vram_cap: plan.vram_cap,
        interactive: false,
        attached: None,
        plan,
    }
}

fn gpu(meta: &Meta) -> Option<GpuId> {
    meta.maker().map(|_| GpuId(CARD.to_owned()))
}

fn server(meta: &Meta, kind: AdapterKind) -> bool {
    let launch = LaunchInfo {
        argv: meta.argv.clone(),
        on_cpu: false,
    };
    adapter::new(kind, &launch).is_server()
}

fn plan(meta: &Meta, kind: AdapterKind) -> Option<(String, String, Plan)> {
    // a card of unknown make is no machine without a card: those limits are not its own
    if meta.maker() == Some(Vendor::Unknown) {
        return None;
    }
    let arch = |prefix: &str| Some(meta.arch.clone()).filter(|a| a.starts_with(prefix));
    let card = meta.vendor().map(|vendor| Card {
        name: Some(meta.gpu.clone()),
        vendor: Some(vendor),
        gfx: arch("gfx"),
        sm: arch("sm_"),
        vram: meta.vram_total_mib.map(Bytes::mib),
        unified: meta.apu,
    });
    let machine = Machine {
        cards: card.into_iter().collect(),
        adapter: kind.to_string(),
    };
    // the profiles that we ship: those of this machine's user belong to another machine
    let catalog = Catalog::with_folder(None);
    let choice = best(&catalog.all(), &machine)?;
    let profile = catalog.get(&choice.id).ok()?;
    let names = env_names(&profile);
    let env = meta.env.iter().filter(|(name, _)| names.contains(*name));
    let plan = resolve(
        &profile,
        &Inputs {
            argv: meta.argv.clone(),
            user_env: env.map(|(k, v)| (k.clone(), v.clone())).collect(),
            cap: None,
            gpu: gpu(meta),
            adapter: kind.to_string(),
            server: server(meta, kind),
            countdown: Duration::ZERO,
            setting_args: &|key, value| capabilities::arguments(kind, &meta.argv, key, value),
            agent: AgentWay::Unknown,
            agent_asked: None,
            no_miopen: None,
            chosen: Chosens::default(),
        },
    )
    .plan;
    Some((choice.id, choice.why, plan))
}
