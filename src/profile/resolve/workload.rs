//! How the workload is told a setting: by the arguments that the profile names for
//! it, else by those that its adapter knows, else by the agent inside it.

use std::collections::BTreeMap;

use crate::model::{Bytes, Follow, Setting, agent_setting};
use crate::profile::matching::is_meant_for;
use crate::profile::place::At;
use crate::profile::schema::{GIB, MIB, Profile, VALUE};

use super::{Inputs, NoArgument, values};

/// Arguments by key and value, as far as they were asked for.
pub(super) type ArgsOf = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// By what a workload follows a setting.
enum By {
    Arguments(Vec<String>),
    Agent,
}

/// How a workload is told its settings.
pub(super) struct Told<'a> {
    profile: &'a Profile,
    inputs: &'a Inputs<'a>,
    /// Whether the profile's `[workload]` is meant for this workload.
    pub(super) meant: bool,
    /// Everything that was found, for the plan.
    pub(super) found: ArgsOf,
}

impl<'a> Told<'a> {
    pub(super) fn new(profile: &'a Profile, inputs: &'a Inputs<'a>) -> Self {
        let adapter = &profile.workload.adapter;
        let meant = adapter
            .as_ref()
            .is_none_or(|a| is_meant_for(&a.value, &inputs.adapter));
        Self {
            profile,
            inputs,
            meant,
            found: ArgsOf::new(),
        }
    }

    /// The way of `key = value`, or why the workload cannot follow it.
    fn way(&self, key: &str, value: &str) -> Result<By, String> {
        let own = self.profile.workload.arguments.get(key);
        if let Some(words) = own.filter(|_| self.meant) {
            return put_in(key, value, words).map(By::Arguments);
        }
        let why = match (self.inputs.setting_args)(key, value) {
            Ok(args) => return Ok(By::Arguments(args)),
            Err(NoArgument::Wrong(why)) => return Err(why),
            Err(NoArgument::None(why)) => why,
        };
        if agent_setting(key).is_none() {
            return Err(why);
        }
        match self.inputs.agent.lack() {
            None => Ok(By::Agent),
            Some(lack) => Err(format!("{why}, and {lack}")),
        }
    }

    /// The same; arguments are kept for the plan. What has none there is the agent's.
    pub(super) fn follow(&mut self, key: &str, value: &str) -> Result<(), String> {
        if let By::Arguments(args) = self.way(key, value)? {
            let of_key = self.found.entry(key.to_owned()).or_default();
            of_key.insert(value.to_owned(), args);
        }
        Ok(())
    }

    /// Whether each setting that can be switched reaches the workload.
    pub(super) fn switches(&self) -> BTreeMap<Setting, Follow> {
        let follow = |setting: Setting| match setting {
            Setting::VramCap if self.inputs.gpu.is_none() => Follow::No {
                why: "no card is supervised".to_owned(),
            },
            Setting::VramCap => Follow::Ours,
            Setting::FindMode => match &self.inputs.no_miopen {
                Some(why) => Follow::No { why: why.clone() },
                None => Follow::Yes {
                    how: format!("{}={}", setting.key(), setting.example()),
                },
            },
            _ => match self.way(setting.key(), setting.example()) {
                Ok(By::Agent) => Follow::Yes {
                    how: "by the agent".to_owned(),
                },
                Ok(By::Arguments(args)) if args.is_empty() => Follow::Yes {
                    how: "as it does anyway".to_owned(),
                },
                Ok(By::Arguments(args)) => Follow::Yes {
                    how: args.join(" "),
                },
                Err(why) => Follow::No { why },
            },
        };
        Setting::ALL.into_iter().map(|s| (s, follow(s))).collect()
    }
}

/// The words of `[workload.arguments]` with the value in its place.
fn put_in(key: &str, value: &str, words: &[At<String>]) -> Result<Vec<String>, String> {
    let in_unit = |unit: Bytes| -> Option<f64> {
        let bytes: Bytes = value.parse().ok()?;
        #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
        let n = bytes.0 as f64 / unit.0 as f64;
        Some(n)
    };
    let mut out = Vec::new();
    for mut word in values(Some(words)) {
        for (holder, unit, places) in [(GIB, Bytes::gib(1), 2), (MIB, Bytes::mib(1), 0)] {
            if !word.contains(holder) {
                continue;
            }
            let Some(n) = in_unit(unit) else {
                return Err(format!(
                    "`{key} = {value}`: write a size such as `6 GiB`, since its argument has {holder}"
                ));
            };
            let mut text = format!("{n:.places$}");
            if places > 0 {
                text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
            }
            word = word.replace(holder, &text);
        }
        out.push(word.replace(VALUE, value));
    }
    Ok(out)
}
