//! The plan of a run: made before the first attempt, and anew after each choice that
//! the user makes while watching.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cli::CliError;
use crate::model::Vendor;
use crate::model::{AgentWay, Bytes, Chosens, GpuSample, Plan, Setting};
use crate::profile::resolve::{Inputs, agent_off, env_names};
use crate::profile::schema::AgentUse;
use crate::profile::{Catalog, Owner, Problem, Profile, lint, resolve};
use crate::workload::adapter::{self, AdapterKind, LaunchInfo};
use crate::workload::capabilities;

use super::machine;

/// What a plan depends on and no choice changes.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "answers of the command line, independent of each other"
)]
pub(in crate::cli) struct Planner {
    pub(in crate::cli) catalog: Catalog,
    /// The user's command.
    pub(in crate::cli) argv: Vec<String>,
    /// The profile that was asked for on the command line.
    pub(in crate::cli) asked: Option<String>,
    /// `--cap`.
    pub(in crate::cli) cap: Option<Bytes>,
    /// The supervised card.
    pub(in crate::cli) card: Option<GpuSample>,
    /// A card may be there whose driver has not answered.
    pub(in crate::cli) card_unknown: bool,
    /// What reads the console, where the profile does not say.
    pub(in crate::cli) detected: AdapterKind,
    /// The script itself says that it uses diffusers: any other of Python is only read as one that does.
    pub(in crate::cli) diffusers: bool,
    /// Whether an agent can be put into the command.
    pub(in crate::cli) agent: AgentWay,
    /// `--agent`.
    pub(in crate::cli) agent_asked: Option<AgentUse>,
    /// It is left out by choice, not for want of Python.
    pub(in crate::cli) left_out: bool,
    /// The user's exported variables.
    pub(in crate::cli) exported: BTreeMap<String, String>,
    /// Countdown before a kill.
    pub(in crate::cli) countdown: Duration,
    /// `--end-after-result`.
    pub(in crate::cli) end_after_result: bool,
}

/// A plan with what belongs to it.
pub(in crate::cli) struct Planned {
    pub(in crate::cli) plan: Plan,
    pub(in crate::cli) profile: Profile,
    /// Why this profile.
    pub(in crate::cli) why: String,
    /// What reads the console.
    pub(in crate::cli) kind: AdapterKind,
    /// What is said of it: no more than is known.
    pub(in crate::cli) adapter: AdapterKind,
    pub(in crate::cli) notices: Vec<String>,
}

impl Planner {
    /// The plan with these choices, or what is wrong with them.
    pub(in crate::cli) fn plan(&self, chosen: &Chosens) -> Result<Planned, CliError> {
        let (profile, why) = match &chosen.profile {
            Some(id) => (self.catalog.get(id)?, "chosen by you".to_owned()),
            None => machine::profile(
                &self.catalog,
                self.asked.as_deref(),
                self.card.as_ref(),
                self.detected.as_str(),
            )?,
        };
        // a profile of the user's own may name what is not detected; one that came with the
        // program is meant for a card, and its adapter only says whose settings it holds
        let named = profile.workload.adapter.as_ref();
        let named = named.filter(|a| a.place.source.owner == Owner::User);
        let kind = named.and_then(|name| name.value.parse().ok());
        let guessed = kind.is_none() && !self.diffusers;
        let kind = kind.unwrap_or(self.detected);
        let adapter = match kind {
            AdapterKind::Diffusers if guessed => AdapterKind::Generic,
            known => known,
        };
        let mut notices: Vec<String> = lint(&profile).iter().map(Problem::one_line).collect();
        let follow = |key: &str, value: &str| capabilities::arguments(kind, &self.argv, key, value);
        let inputs = Inputs {
            argv: self.argv.clone(),
            user_env: self.exported_for(&profile),
            cap: self.cap,
            gpu: self.card.as_ref().map(|c| c.id.clone()),
            adapter: adapter.to_string(),
            server: self.is_server(kind),
            countdown: self.countdown,
            setting_args: &follow,
            agent: self.agent.clone(),
            agent_asked: self.agent_asked,
            no_miopen: self.no_miopen(),
            chosen: chosen.clone(),
        };
        let mut resolved = resolve(&profile, &inputs);
        resolved.plan.end_after_result = self.end_after_result;
        resolved.plan.lost_job = adapter.after_restart().warning.map(str::to_owned);
        notices.extend(resolved.notices);
        self.check_cap(&resolved.plan, &profile, chosen)?;
        Ok(Planned {
            plan: resolved.plan,
            profile,
            why,
            kind,
            adapter,
            notices,
        })
    }

    /// The plan of a run's beginning. Whether the agent is put in is decided here, for the
    /// whole run: a profile that is chosen later changes nothing about it.
    pub(in crate::cli) fn first_plan(&mut self) -> Result<Planned, CliError> {
        let planned = self.plan(&Chosens::default())?;
        let Some(why) = agent_off(&planned.profile, self.agent_asked) else {
            return Ok(planned);
        };
        self.agent = AgentWay::Off { why };
        self.left_out = true;
        self.plan(&Chosens::default())
    }

    fn exported_for(&self, profile: &Profile) -> BTreeMap<String, String> {
        let names = env_names(profile);
        let vars = self.exported.iter();
        vars.filter(|(name, _)| names.contains(*name))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    fn is_server(&self, kind: AdapterKind) -> bool {
        let launch = LaunchInfo {
            argv: self.argv.clone(),
            on_cpu: false,
        };
        adapter::new(kind, &launch).is_server()
    }

    /// MIOpen runs on AMD cards alone; a card that could not be read may be one.
    fn no_miopen(&self) -> Option<String> {
        let of_another = match &self.card {
            Some(card) => card.vendor != Vendor::Amd,
            None => !self.card_unknown,
        };
        of_another.then(|| "no AMD card is supervised, and MIOpen runs on no other".to_owned())
    }

    fn check_cap(&self, plan: &Plan, profile: &Profile, chosen: &Chosens) -> Result<(), CliError> {
        let total = self.card.as_ref().and_then(machine::total);
        let (Some(cap), Some(total)) = (plan.vram_cap, total) else {
            return Ok(());
        };
        if cap <= total {
            return Ok(());
        }
        let origin = if chosen.settings.contains_key(&Setting::VramCap) {
            "your choice".to_owned()
        } else if self.cap.is_some() {
            "--cap".to_owned()
        } else {
            format!("profile {}", profile.id.value)
        };
        Err(CliError::CapAboveCard { cap, origin, total })
    }
}
