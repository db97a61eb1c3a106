//! What the supervisor asks for: `FPT_AGENT_CONFIG` (docs/agent.md).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

/// The variable with the configuration, one JSON object.
const VARIABLE: &str = "FPT_AGENT_CONFIG";
/// Settings that this worker follows.
const FOLLOWED: [&str; 7] = [
    "vae_chunk",
    "vae_device",
    "vae_dtype",
    "vae_overlap",
    "vae_tile",
    "vae_piece_limit",
    "vram_cap",
];
/// Settings of which a worker has nothing that they could change: what they ask for is so.
const NOTHING_TO_DO: [&str; 11] = [
    "conv",
    "device_placement",
    "full_unload",
    "host_copies",
    "pinned_memory",
    "preserved_memory",
    "replay",
    "replay_steps",
    "trim_stages",
    "vault_limit",
    "vault_prompt",
];

/// The configuration, as far as a worker needs it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The run.
    pub run: Option<String>,
    /// Which attempt of it, from 1.
    pub attempt: Option<u64>,
    #[serde(rename = "settings")]
    by_key: BTreeMap<String, String>,
    /// What cannot be understood or followed, a sentence each.
    #[serde(skip)]
    pub problems: Vec<String>,
}

impl Settings {
    /// Those of this process; none without a supervisor.
    pub fn from_environment() -> Self {
        match std::env::var(VARIABLE) {
            Ok(text) => Self::parse(&text),
            Err(_unset) => Self::default(),
        }
    }

    /// Reads the object; what is wrong in it becomes a problem, never an error.
    pub fn parse(text: &str) -> Self {
        let mut settings: Self = match serde_json::from_str(text) {
            Ok(settings) => settings,
            Err(e) => Self {
                problems: vec![format!("{VARIABLE} cannot be understood: {e}")],
                ..Self::default()
            },
        };
        let told: Vec<String> = settings
            .by_key
            .iter()
            .filter_map(|(key, value)| settings.lack(key, value))
            .collect();
        settings.problems.extend(told);
        settings
    }

    /// Why a setting is not followed.
    fn lack(&self, key: &str, value: &str) -> Option<String> {
        let wrong = |want: &str| Some(format!("{key} = {value}: write {want}"));
        match key {
            "vae_tile" | "vae_chunk" if self.number(key).is_none_or(|n| n == 0) => {
                wrong("a whole number from 1")
            }
            "vae_overlap" | "vram_cap" if self.number(key).is_none() => wrong("a whole number"),
            "vae_piece_limit" if self.number(key).is_none() => wrong("seconds"),
            "vae_device" if !matches!(value, "cpu" | "gpu" | "cuda") => wrong("cpu or gpu"),
            "vae_dtype" if !matches!(value, "float32" | "float16" | "bfloat16") => {
                wrong("float32, float16 or bfloat16")
            }
            "conv_tier" | "conv2d_tier" if value == "native" => None,
            _ if FOLLOWED.contains(&key) || NOTHING_TO_DO.contains(&key) => None,
            _ => Some(format!("{key} = {value}: this engine has no such setting")),
        }
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.by_key.get(key)?.trim().parse().ok()
    }

    fn size(&self, key: &str) -> Option<usize> {
        let number = self.number(key).filter(|n| *n > 0)?;
        usize::try_from(number).ok()
    }

    /// Edge of a tile in pixels.
    pub(super) fn tile(&self) -> Option<usize> {
        self.size("vae_tile")
    }

    /// Pixels by which tiles overlap.
    pub(super) fn overlap(&self) -> Option<usize> {
        usize::try_from(self.number("vae_overlap")?).ok()
    }

    /// Latent frames at a time.
    pub(super) fn chunk(&self) -> Option<usize> {
        self.size("vae_chunk")
    }

    /// What it is computed in.
    pub(super) fn dtype(&self) -> Option<&str> {
        let dtype = self.by_key.get("vae_dtype")?.as_str();
        matches!(dtype, "float32" | "float16" | "bfloat16").then_some(dtype)
    }

    /// Not on the card.
    pub(super) fn on_cpu(&self) -> bool {
        self.by_key.get("vae_device").is_some_and(|v| v == "cpu")
    }

    /// Bytes of the card's memory.
    pub(super) fn cap(&self) -> Option<u64> {
        self.number("vram_cap")
    }

    /// Longest time for one piece.
    pub(super) fn piece_limit(&self) -> Option<Duration> {
        self.number("vae_piece_limit").map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_understood_is_followed_and_the_rest_is_said() {
        let s = Settings::parse(
            r#"{"run": "r", "attempt": 2, "vault": "/v", "settings": {"vae_tile": "256", "vae_overlap": "0",
            "vae_chunk": "4", "vae_dtype": "float32", "vae_device": "cpu", "vram_cap": "1000", "full_unload": "true"}}"#,
        );
        assert_eq!(s.problems, Vec::<String>::new());
        assert_eq!(
            (s.attempt, s.tile(), s.overlap(), s.chunk()),
            (Some(2), Some(256), Some(0), Some(4))
        );
        assert_eq!(
            (s.dtype(), s.on_cpu(), s.cap()),
            (Some("float32"), true, Some(1000))
        );
        let s = Settings::parse(
            r#"{"settings": {"vae_tile": "big", "vae_dtype": "fp8", "conv_tier": "split", "weather": "fair"}}"#,
        );
        assert_eq!((s.tile(), s.dtype(), s.problems.len()), (None, None, 4));
        assert!(s.problems[0].contains("conv_tier = split: this engine has no such setting"));
        let s = Settings::parse("no JSON");
        assert!(s.problems[0].starts_with("FPT_AGENT_CONFIG cannot be understood"));
    }
}
