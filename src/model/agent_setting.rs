//! The settings of a profile that an agent inside the program carries out, and the values that they take. The agent
//! (`src/agent/python`) and the worker of the engine take no others; tests tie the lists together.

use std::fmt;

use super::units::Bytes;

/// Words that switch something on or off.
const FLAG: &[&str] = &["true", "false", "on", "off", "1", "0", "yes", "no"];
/// Precisions of the VAE.
const PRECISIONS: &[&str] = &["float32", "float16", "bfloat16"];

/// The values that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// One of these words, the one that is meant for people first.
    Word(&'static [&'static str]),
    /// A whole number.
    Whole {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
        /// Of what: `pixels`.
        of: &'static str,
    },
    /// A size with its unit.
    Size {
        /// A `+` in front means: more than now.
        more: bool,
    },
    /// A number above 0 and up to 1.
    Share,
}

impl Takes {
    /// Whether this is such a value.
    pub fn has(self, value: &str) -> bool {
        match self {
            Self::Word(words) => words.contains(&value),
            // as the agent reads it: digits, no sign
            Self::Whole { least, most, .. } => {
                value.bytes().all(|b| b.is_ascii_digit())
                    && value.parse().is_ok_and(|n| (least..=most).contains(&n))
            }
            Self::Size { more } => {
                let plain = if more {
                    value.strip_prefix('+').unwrap_or(value)
                } else {
                    value
                };
                let bytes = plain.parse::<Bytes>();
                bytes.is_ok_and(|b| more || b == Bytes::mib(0) || b >= Bytes::mib(1))
            }
            Self::Share => value
                .parse()
                .is_ok_and(|share: f64| share > 0.0 && share <= 1.0),
        }
    }
}

impl fmt::Display for Takes {
    /// Fits after "write ".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(FLAG) => f.write_str("`true` or `false`"),
            Self::Word([only]) => write!(f, "`{only}`"),
            Self::Word(words) => write!(f, "one of `{}`", words.join("`, `")),
            Self::Whole { least, most, of } => {
                write!(f, "a whole number of {of} from {least} to {most}")
            }
            Self::Size { more: false } => {
                f.write_str("a size from 1 MiB, such as `\"2 GiB\"`, or `\"0 B\"` for nothing")
            }
            Self::Size { more: true } => {
                f.write_str("a size such as `\"6 GiB\"`, or `\"+4 GiB\"` for more than now")
            }
            Self::Share => f.write_str("a number above 0 and up to 1"),
        }
    }
}

/// A setting that an agent carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentSetting {
    /// Its name in `[workload.settings]`.
    pub key: &'static str,
    /// Its values.
    pub takes: Takes,
}

/// Every one, by name.
pub const AGENT_SETTINGS: [AgentSetting; 22] = [
    word("conv", &["off", "watch", "fallback"]),
    word("conv2d_tier", &["native", "nocudnn", "cpu"]),
    word("conv_scope", &["all", "decoder"]),
    word("conv_tier", &["native", "split", "nocudnn", "cpu"]),
    word("device_placement", &["warn", "execution_device"]),
    word("full_unload", FLAG),
    word("host_copies", &["few"]),
    word("pinned_memory", FLAG),
    of("preserved_memory", Takes::Size { more: true }),
    word("replay", FLAG),
    word("replay_steps", FLAG),
    word("trim_stages", FLAG),
    whole("vae_chunk", 1, 1024, "latent frames"),
    word("vae_device", &["cpu", "gpu", "cuda"]),
    word("vae_dtype", PRECISIONS),
    whole("vae_overlap", 0, 8192, "pixels"),
    whole("vae_piece_limit", 1, 86400, "seconds"),
    word("vae_slicing", FLAG),
    whole("vae_tile", 32, 8192, "pixels"),
    of("vault_limit", Takes::Size { more: false }),
    word("vault_prompt", FLAG),
    of("vram_cap_fraction", Takes::Share),
];

const fn of(key: &'static str, takes: Takes) -> AgentSetting {
    AgentSetting { key, takes }
}

const fn word(key: &'static str, words: &'static [&'static str]) -> AgentSetting {
    of(key, Takes::Word(words))
}

const fn whole(key: &'static str, least: u64, most: u64, unit: &'static str) -> AgentSetting {
    of(
        key,
        Takes::Whole {
            least,
            most,
            of: unit,
        },
    )
}

/// The setting of this name.
pub fn agent_setting(key: &str) -> Option<AgentSetting> {
    AGENT_SETTINGS.into_iter().find(|s| s.key == key)
}

#[cfg(test)]
mod tests {
    use framepack_engine::worker::Settings;

    use super::*;
    use crate::model::Setting;

    /// Values that lie just within and just outside of what a setting takes.
    fn edges(takes: Takes) -> (Vec<String>, Vec<String>) {
        let texts = |all: &[&str]| all.iter().map(|t| (*t).to_owned()).collect();
        match takes {
            Takes::Word(words) => (texts(words), texts(&["purple", "", "TRUE", "mars"])),
            Takes::Whole { least, most, .. } => {
                let mut bad = texts(&["-5", "", "1.5", "many", "18446744073709551616"]);
                bad.push((most + 1).to_string());
                bad.extend(least.checked_sub(1).map(|n| n.to_string()));
                (vec![least.to_string(), most.to_string()], bad)
            }
            Takes::Size { more: true } => (
                texts(&["18 GiB", "+4 GiB", "0 GiB", "512M"]),
                texts(&["18", "", "++4 GiB", "-4 GiB", "much"]),
            ),
            Takes::Size { more: false } => (
                texts(&["0 B", "1 MiB", "2 GiB", "2.5G"]),
                texts(&["1 KiB", "2", "+4 GiB", "-1 GiB", ""]),
            ),
            Takes::Share => (
                texts(&["0.9", "1", "1e-3"]),
                texts(&["0", "1.01", "-0.5", "nan", "inf", ""]),
            ),
        }
    }

    #[test]
    fn values_within_are_taken_and_those_outside_are_not() {
        for setting in AGENT_SETTINGS {
            let (good, bad) = edges(setting.takes);
            for value in good {
                assert!(setting.takes.has(&value), "{} = {value}", setting.key);
            }
            for value in bad {
                assert!(!setting.takes.has(&value), "{} = {value}", setting.key);
            }
        }
    }

    #[test]
    fn what_can_be_switched_is_what_can_be_written() {
        for setting in Setting::ALL {
            let Some(agent) = agent_setting(setting.key()) else {
                continue;
            };
            for value in setting.choices().iter().chain([&setting.example()]) {
                assert!(agent.takes.has(value), "{} = {value}", setting.key());
            }
            for value in edges(agent.takes).1 {
                // what is switched may be written short: `bf16`; none of these is
                assert!(
                    setting.parse(&value).is_err(),
                    "{} = {value}",
                    setting.key()
                );
            }
        }
    }

    fn problems(key: &str, value: &str) -> Vec<String> {
        // an overlap is of a tile
        let settings = serde_json::json!({ "vae_tile": "8192", key: value });
        Settings::parse(&serde_json::json!({ "settings": settings }).to_string()).problems
    }

    /// The worker knows the settings of this list and the cap, no others; and what it follows takes the same values.
    #[test]
    fn the_worker_of_the_engine_has_the_same_list_and_the_same_values() {
        let mut known: Vec<&str> = Settings::known().collect();
        known.retain(|key| *key != "vram_cap");
        known.sort_unstable();
        assert_eq!(known, AGENT_SETTINGS.map(|s| s.key));
        for setting in AGENT_SETTINGS {
            if !setting.key.starts_with("vae_") || setting.key == "vae_slicing" {
                continue;
            }
            let (good, bad) = edges(setting.takes);
            for value in good {
                let found = problems(setting.key, &value);
                assert!(found.is_empty(), "{found:?}");
            }
            for value in bad {
                let found = problems(setting.key, &value);
                assert!(
                    found.iter().any(|p| p.starts_with(setting.key)),
                    "{} = {value}: {found:?}",
                    setting.key
                );
            }
        }
    }

    /// The agent's own lists of words, as its sources write them.
    #[test]
    fn the_agent_in_python_has_the_same_words() {
        let sources = [
            include_str!("../agent/python/fpt_agent/config.py"),
            include_str!("../agent/python/fpt_agent/conv.py"),
            include_str!("../agent/python/fpt_agent/memory.py"),
            include_str!("../agent/python/fpt_agent/placement.py"),
            include_str!("../agent/python/fpt_agent/vae.py"),
        ]
        .concat();
        for setting in AGENT_SETTINGS {
            let Takes::Word(words) = setting.takes else {
                continue;
            };
            let tuple = match words {
                [only] => format!("(\"{only}\",)"),
                words => format!("(\"{}\")", words.join("\", \"")),
            };
            assert!(sources.contains(&tuple), "{}: {tuple}", setting.key);
        }
    }

    #[test]
    fn the_documentation_names_every_setting() {
        let text = include_str!("../../docs/profiles.md");
        let table = text.split("### Settings").nth(1).unwrap_or_default();
        for setting in AGENT_SETTINGS {
            assert!(
                table.contains(&format!("`{}`", setting.key)),
                "{}",
                setting.key
            );
            if let Takes::Word(words) = setting.takes
                && words != FLAG
            {
                for word in words {
                    assert!(
                        table.contains(&format!("`{word}`")),
                        "{} {word}",
                        setting.key
                    );
                }
            }
        }
    }
}
