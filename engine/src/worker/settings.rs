//! What the supervisor asks for: `FPT_AGENT_CONFIG` (docs/agent.md).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;

/// The variable with the configuration, one JSON object.
const VARIABLE: &str = "FPT_AGENT_CONFIG";
/// Settings that this worker follows.
const FOLLOWED: [&str; 8] = [
    "host_copies",
    "vae_chunk",
    "vae_device",
    "vae_dtype",
    "vae_overlap",
    "vae_tile",
    "vae_piece_limit",
    "vram_cap",
];
/// Settings of which a worker has nothing that they could change: what they ask for is so.
const NOTHING_TO_DO: [&str; 12] = [
    "conv",
    "conv_scope",
    "device_placement",
    "full_unload",
    "pinned_memory",
    "preserved_memory",
    "replay",
    "replay_steps",
    "trim_stages",
    "vae_slicing",
    "vault_limit",
    "vault_prompt",
];

/// Settings that concern convolutions in torch, or how torch counts memory: followed where they ask for what is so.
const NOT_HERE: [&str; 3] = ["conv2d_tier", "conv_tier", "vram_cap_fraction"];

/// Faults that are a want of the host's memory.
const OF_MEMORY: [&str; 2] = ["host_oom", "thrash"];

/// Pixels of a tile's edge. A smaller one sees next to nothing of what it shows, a larger one is larger than any video.
const TILE: RangeInclusive<u64> = 32..=8192;
/// Pixels that tiles share.
const OVERLAP: RangeInclusive<u64> = 0..=8192;
/// Latent frames at a time.
const CHUNK: RangeInclusive<u64> = 1..=1024;
/// Seconds for a piece: a day at most.
const PIECE: RangeInclusive<u64> = 1..=86400;
/// Bytes of a card: none leaves nothing to compute in.
const CAP: RangeInclusive<u64> = 1..=u64::MAX;

/// The configuration, as far as a worker needs it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The run.
    pub run: Option<String>,
    /// Which attempt of it, from 1.
    pub attempt: Option<u64>,
    /// The fault that this attempt answers, where one ended the attempt before.
    after: Option<String>,
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

    /// Every setting that a worker knows, whether or not it has something to follow it with.
    pub fn known() -> impl Iterator<Item = &'static str> {
        [&FOLLOWED[..], &NOTHING_TO_DO, &NOT_HERE]
            .concat()
            .into_iter()
    }

    /// Why a setting is not followed, and what is done instead.
    fn lack(&self, key: &str, value: &str) -> Option<String> {
        let wrong =
            |want: &str, instead: &str| Some(format!("{key} = {value}: write {want}; {instead}"));
        let number = |range: &RangeInclusive<u64>, of: &str, instead: &str| {
            if self.number(key, range).is_some() {
                return None;
            }
            let (least, most) = (range.start(), range.end());
            wrong(&format!("{of} from {least} to {most}"), instead)
        };
        match key {
            "vae_tile" => number(&TILE, "pixels", "the planner chooses the tiles"),
            "vae_overlap" => number(&OVERLAP, "pixels", "tiles share a quarter").or_else(|| {
                self.tile().is_none().then(|| {
                    format!(
                        "{key} = {value}: needs vae_tile; the planner chooses tiles and overlap"
                    )
                })
            }),
            "vae_chunk" => number(&CHUNK, "latent frames", "the planner chooses the runs"),
            "vae_piece_limit" => number(
                &PIECE,
                "seconds",
                "a piece may take 20 times the slowest before it, and ten minutes at least",
            ),
            "vram_cap" => number(&CAP, "bytes", "what is free is taken"),
            "vae_device" if !matches!(value, "cpu" | "gpu" | "cuda") => {
                wrong("cpu or gpu", "the device of the command is taken")
            }
            "vae_dtype" if !matches!(value, "float32" | "float16" | "bfloat16") => wrong(
                "float32, float16 or bfloat16",
                "a card computes in bfloat16, the processor in float32",
            ),
            "host_copies" if value != "few" => {
                wrong("few", "the planner takes what memory is free")
            }
            "conv_tier" | "conv2d_tier" if value == "native" => None,
            _ if FOLLOWED.contains(&key) || NOTHING_TO_DO.contains(&key) => None,
            _ if NOT_HERE.contains(&key) => Some(format!(
                "{key} = {value}: this engine has nothing that it could change"
            )),
            _ => Some(format!("{key} = {value}: this engine has no such setting")),
        }
    }

    fn number(&self, key: &str, range: &RangeInclusive<u64>) -> Option<u64> {
        let number = self.by_key.get(key)?.trim().parse().ok()?;
        range.contains(&number).then_some(number)
    }

    fn size(&self, key: &str, range: &RangeInclusive<u64>) -> Option<usize> {
        usize::try_from(self.number(key, range)?).ok()
    }

    /// Edge of a tile in pixels.
    pub(super) fn tile(&self) -> Option<usize> {
        self.size("vae_tile", &TILE)
    }

    /// Pixels by which tiles overlap.
    pub(super) fn overlap(&self) -> Option<usize> {
        self.size("vae_overlap", &OVERLAP)
    }

    /// Latent frames at a time.
    pub(super) fn chunk(&self) -> Option<usize> {
        self.size("vae_chunk", &CHUNK)
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

    /// Less of the host's memory than before: it ran out. That a profile asks for few copies from the first attempt on
    /// tells nothing of that.
    pub(super) fn is_host_short(&self) -> bool {
        let after = self.after.as_deref();
        after.is_some_and(|fault| OF_MEMORY.contains(&fault))
            && self.by_key.get("host_copies").is_some_and(|v| v == "few")
    }

    /// Bytes of the card's memory.
    pub(super) fn cap(&self) -> Option<u64> {
        self.number("vram_cap", &CAP)
    }

    /// Longest time for one piece.
    pub(super) fn piece_limit(&self) -> Option<Duration> {
        self.number("vae_piece_limit", &PIECE)
            .map(Duration::from_secs)
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
        assert!(s.problems[0].contains("conv_tier = split: this engine has nothing"));
        assert!(s.problems[3].contains("weather = fair: this engine has no such setting"));
        let s = Settings::parse("no JSON");
        assert!(s.problems[0].starts_with("FPT_AGENT_CONFIG cannot be understood"));
    }

    #[test]
    fn memory_is_short_after_a_want_of_it_alone() {
        let short = |after: &str, value: &str| {
            let text = format!(r#"{{"after": {after}, "settings": {{"host_copies": "{value}"}}}}"#);
            let s = Settings::parse(&text);
            s.is_host_short()
        };
        assert!(short(r#""host_oom""#, "few") && short(r#""thrash""#, "few"));
        // as the profile asks for it, whatever ended the attempt before
        assert!(!short("null", "few") && !short(r#""spin_hang""#, "few"));
        assert!(!short(r#""host_oom""#, "many"));
        assert!(!Settings::parse(r#"{"settings": {"host_copies": "few"}}"#).is_host_short());
    }

    #[test]
    fn nonsense_is_not_followed_and_what_is_done_instead_is_said() {
        for (key, values, want) in [
            (
                "vae_tile",
                &["0", "-5", "31", "8193", "18446744073709551616", "1e3", ""][..],
                "write pixels from 32 to 8192; the planner chooses the tiles",
            ),
            (
                "vae_overlap",
                &["-1", "9000", "half"],
                "write pixels from 0 to 8192; tiles share a quarter",
            ),
            (
                "vae_chunk",
                &[
                    "0",
                    "-1",
                    "1025",
                    "4611686018427387904",
                    "18446744073709551615",
                ],
                "write latent frames from 1 to 1024; the planner chooses the runs",
            ),
            (
                "vae_piece_limit",
                &["0", "-1", "86401", "5 min"],
                "write seconds from 1 to 86400; a piece may take 20 times",
            ),
            ("vram_cap", &["0", "21 GiB"], "bytes from 1 to "),
            (
                "host_copies",
                &["many", ""],
                "write few; the planner takes what memory is free",
            ),
            (
                "vae_device",
                &["mars", ""],
                "the device of the command is taken",
            ),
            (
                "vae_dtype",
                &["purple", "fp16"],
                "a card computes in bfloat16",
            ),
        ] {
            for value in values {
                let told = serde_json::json!({ "settings": { key: value } });
                let s = Settings::parse(&told.to_string());
                assert_eq!(s.problems.len(), 1, "{key} = {value}: {:?}", s.problems);
                assert!(
                    s.problems[0].starts_with(&format!("{key} = {value}: "))
                        && s.problems[0].contains(want),
                    "{:?}",
                    s.problems
                );
                let followed = (s.tile(), s.overlap(), s.chunk(), s.dtype());
                assert_eq!(followed, (None, None, None, None), "{key} = {value}");
                assert_eq!((s.cap(), s.piece_limit(), s.on_cpu()), (None, None, false));
                assert!(!s.is_host_short());
            }
        }
        let s = Settings::parse(r#"{"settings": {"vae_overlap": "64"}}"#);
        assert_eq!(
            s.problems,
            ["vae_overlap = 64: needs vae_tile; the planner chooses tiles and overlap"]
        );
        let s = Settings::parse(r#"{"settings": {"vae_piece_limit": "90"}}"#);
        assert_eq!(
            (s.piece_limit(), s.problems),
            (Some(Duration::from_secs(90)), Vec::new())
        );
    }
}
