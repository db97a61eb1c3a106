//! Settings that a program printed, or was started with.
//!
//! A cause asks for them (`needs.settings`), and a cure leaves out what is in force already.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::bytes::Captures;
use serde::Deserialize;

use super::prefilter::Patterns;
use super::printed::{ARGUMENTS, Argument, PRINTED};
use crate::model::ActionId;

/// What a program may have set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// The implementation: `pytorch`, `sub_quadratic`, `split`, `sage`, `flash`, `xformers`.
    Attention,
    /// Of the diffusion model's weights: `fp32`, `fp16`, `bf16`, `fp8`.
    Precision,
    /// Of the VAE.
    VaePrecision,
    /// `cpu` or `gpu`.
    VaeDevice,
    /// How much stays on the card: `high`, `normal`, `medium`, `low`, `none`, `disabled`,
    /// `shared`.
    VramMode,
    /// `ComfyUI` loads weights as they are used: `on`, `off`.
    DynamicVram,
    /// Host memory is page-locked: `on`, `off`.
    PinnedMemory,
    /// How weights leave the card: `none`, `model`, `sequential`, `group`, `balanced`,
    /// `blocks`, `cpu`, `partial`.
    Offload,
    /// Blocks that are swapped to the host.
    Blocks,
    /// Memory of the card that stays free, with its unit.
    Reserved,
    /// The VAE decodes in tiles: `on`, `off`.
    Tiles,
    /// `WanGP`'s memory profile: `1` to `5`.
    Profile,
    /// Models that stay in host memory between two jobs: `none`.
    ModelCache,
}

impl Setting {
    /// All of them, with the name of their place in a sentence.
    pub(super) const ALL: &'static [(Self, &'static str)] = &[
        (Self::Attention, "attention"),
        (Self::Precision, "precision"),
        (Self::VaePrecision, "vae_precision"),
        (Self::VaeDevice, "vae_device"),
        (Self::VramMode, "vram_mode"),
        (Self::DynamicVram, "dynamic_vram"),
        (Self::PinnedMemory, "pinned_memory"),
        (Self::Offload, "offload"),
        (Self::Blocks, "blocks"),
        (Self::Reserved, "reserved"),
        (Self::Tiles, "tiles"),
        (Self::Profile, "profile"),
        (Self::ModelCache, "model_cache"),
    ];

    /// The words that it may have; none: any.
    pub(super) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Attention => &[
                "pytorch",
                "sub_quadratic",
                "split",
                "sage",
                "flash",
                "xformers",
                "other",
            ],
            Self::Precision | Self::VaePrecision => &["fp32", "fp16", "bf16", "fp8"],
            Self::VaeDevice => &["cpu", "gpu"],
            Self::VramMode => &[
                "high", "normal", "medium", "low", "none", "disabled", "shared",
            ],
            Self::DynamicVram | Self::PinnedMemory | Self::Tiles => &["on", "off"],
            Self::Offload => &[
                "none",
                "model",
                "sequential",
                "group",
                "balanced",
                "blocks",
                "cpu",
                "partial",
            ],
            Self::Profile => &["1", "2", "3", "3.5", "4", "4.5", "5"],
            Self::ModelCache => &["none"],
            Self::Blocks | Self::Reserved => &[],
        }
    }
}

static SET: LazyLock<Option<Patterns>> =
    LazyLock::new(|| Patterns::new(PRINTED.iter().map(|p| p.pattern)).ok());

/// The value of the groups `v`, `v2`, ... in a match.
fn value(found: &Captures<'_>) -> Option<String> {
    let groups = ["v", "v2", "v3", "v4", "v5"];
    let found = groups.iter().find_map(|name| found.name(name))?;
    Some(String::from_utf8_lossy(found.as_bytes()).into_owned())
}

/// The word of the list for what a program wrote; absent: nothing that is known.
fn word(setting: Setting, printed: &str) -> Option<&'static str> {
    let text = printed.trim().to_lowercase();
    let has = |part: &str| text.contains(part);
    let found = match setting {
        Setting::Attention if has("sage") => "sage",
        Setting::Attention if has("flash") => "flash",
        Setting::Attention if has("xformers") => "xformers",
        Setting::Attention if has("quadratic") => "sub_quadratic",
        Setting::Attention if has("split") => "split",
        Setting::Attention if has("pytorch") || has("scaled-dot") || has("sdpa") => "pytorch",
        Setting::Attention => "other",
        Setting::Precision | Setting::VaePrecision if has("bf16") || has("bfloat16") => "bf16",
        Setting::Precision | Setting::VaePrecision if has("float8") || has("fp8") => "fp8",
        Setting::Precision | Setting::VaePrecision if has("16") || has("half") => "fp16",
        Setting::Precision | Setting::VaePrecision if has("32") || has("float") => "fp32",
        Setting::VaeDevice if has("cpu") => "cpu",
        Setting::VaeDevice => "gpu",
        // FramePack asks for one mode alone
        Setting::VramMode if text == "true" => "high",
        Setting::VramMode if text == "false" => "normal",
        Setting::VramMode if text == "med" => "medium",
        Setting::VramMode if text == "no_vram" => "none",
        Setting::Tiles if text == "true" => "on",
        Setting::Tiles if text == "false" => "off",
        // mmgp's `profile_type`
        Setting::Profile => match text.as_str() {
            "highram_highvram" => "1",
            "highram_lowvram" => "2",
            "lowram_highvram" => "3",
            "lowram_lowvram" => "4",
            "verylowram_lowvram" => "5",
            other => Setting::Profile
                .words()
                .iter()
                .copied()
                .find(|w| *w == other)?,
        },
        _ => {
            let bare = text.trim_end_matches("_vram");
            setting.words().iter().copied().find(|w| *w == bare)?
        }
    };
    Some(found)
}

/// The settings in force, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings(BTreeMap<Setting, String>);

impl Settings {
    /// Takes a line of the program.
    pub(super) fn observe(&mut self, text: &str) {
        let Some(set) = SET.as_ref() else {
            return;
        };
        for n in set.matches(text.as_bytes()) {
            let (Some(printed), Some(regex)) = (PRINTED.get(n), set.regex(n)) else {
                continue;
            };
            if !printed.value.is_empty() {
                self.put(printed.setting, printed.value);
            } else if let Some(found) = regex.captures(text.as_bytes()) {
                let Some(value) = value(&found) else { continue };
                if printed.setting.words().is_empty() {
                    self.0.insert(printed.setting, value);
                } else if let Some(word) = word(printed.setting, &value) {
                    self.put(printed.setting, word);
                }
            }
        }
    }

    /// Takes the words of a command.
    pub(super) fn observe_command<'a>(&mut self, words: impl Iterator<Item = &'a str>) {
        let mut words = words.peekable();
        while let Some(text) = words.next() {
            let (name, joined) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            let value = joined.or_else(|| words.peek().copied().filter(|w| !w.starts_with('-')));
            let set = ARGUMENTS.iter().find(|a| a.words == name);
            if let Some(a) = set.filter(|_| name.starts_with("--")) {
                self.put(a.setting, a.value);
            }
            let Some(value) = value else { continue };
            match name {
                // WanGP chooses by itself; musubi-tuner's `torch` is PyTorch's own
                "--attn_mode" | "--attention" => match word(Setting::Attention, value) {
                    Some("other") if value == "torch" => self.put(Setting::Attention, "pytorch"),
                    Some("other") | None => {}
                    Some(word) => self.put(Setting::Attention, word),
                },
                "--profile" => {
                    if let Some(word) = word(Setting::Profile, value) {
                        self.put(Setting::Profile, word);
                    }
                }
                "--blocks_to_swap" => {
                    self.0.insert(Setting::Blocks, value.to_owned());
                    self.put(Setting::Offload, "blocks");
                }
                "--reserve-vram" => {
                    self.0.insert(Setting::Reserved, format!("{value} GB"));
                }
                _ => {}
            }
        }
    }

    /// With those of another source, which counts for less.
    pub(super) fn add(&mut self, other: Self) {
        for (setting, value) in other.0 {
            self.0.entry(setting).or_insert(value);
        }
    }

    fn put(&mut self, setting: Setting, value: &str) {
        self.0.insert(setting, value.to_owned());
    }

    /// The word of a setting.
    pub(super) fn get(&self, setting: Setting) -> Option<&str> {
        self.0.get(&setting).map(String::as_str)
    }

    /// Whether a setting has one of these words; an empty list: any word.
    pub(super) fn is_one_of(&self, setting: Setting, words: &[String]) -> bool {
        self.get(setting)
            .is_some_and(|has| words.is_empty() || words.iter().any(|w| w == has))
    }

    /// The actions of the table whose effect is already in force.
    pub(super) fn actions_in_force(&self) -> Vec<ActionId> {
        let actions = [
            (Setting::Tiles, "on", ActionId::TiledVae),
            (Setting::VaeDevice, "cpu", ActionId::VaeCpu),
            (Setting::PinnedMemory, "off", ActionId::DisablePinned),
        ];
        let in_force = actions
            .into_iter()
            .filter(|(setting, value, _)| self.get(*setting) == Some(*value));
        in_force.map(|(_, _, action)| action).collect()
    }

    /// The first argument in an instruction whose effect is already in force.
    pub(super) fn in_force(&self, instruction: &str) -> Option<&'static str> {
        let said = |a: &&Argument| names(instruction, a.words);
        let holds = |a: &&Argument| self.get(a.setting) == Some(a.value);
        ARGUMENTS.iter().filter(said).find(holds).map(|a| a.words)
    }
}

/// Whether an instruction names an argument as a word of its own.
fn names(instruction: &str, argument: &str) -> bool {
    instruction.match_indices(argument).any(|(at, found)| {
        let after = instruction.get(at + found.len()..).unwrap_or_default();
        !after.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
    })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
