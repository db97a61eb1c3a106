//! The settings that a user may switch while a run is watched, and where every
//! effective setting comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::attempt::RungId;
use super::units::Bytes;

/// MIOpen's variable for the find mode.
pub const FIND_MODE: &str = "MIOPEN_FIND_MODE";
/// MIOpen's variable that turns any find mode into NORMAL unless it is `NONE`.
pub const FIND_ENFORCE: &str = "MIOPEN_FIND_ENFORCE";

/// Find modes by name, as in MIOpen's `src/find_controls.cpp`; a name is read
/// without regard to case.
pub const FIND_MODES: [&str; 6] = [
    "NORMAL",
    "FAST",
    "HYBRID",
    "DYNAMIC_HYBRID",
    "TRUST_VERIFY",
    "TRUST_VERIFY_FULL",
];

/// A setting that can be switched while the run is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// How MIOpen picks a solver: a word of [`FIND_MODES`].
    FindMode,
    /// Latent frames decoded at a time; a whole number from 1.
    ChunkSize,
    /// Edge of a VAE tile in pixels; a multiple of 8 from 32.
    TileSize,
    /// Precision of the VAE: `float32`, `float16` or `bfloat16`.
    Precision,
    /// Warn line of VRAM use; a size.
    VramCap,
    /// VRAM kept free for inference; a size.
    PreservedMemory,
}

impl Setting {
    /// Every one, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::FindMode,
        Self::ChunkSize,
        Self::TileSize,
        Self::Precision,
        Self::VramCap,
        Self::PreservedMemory,
    ];

    /// The word in JSON and on the command line: `find_mode`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::FindMode => "find_mode",
            Self::ChunkSize => "chunk_size",
            Self::TileSize => "tile_size",
            Self::Precision => "precision",
            Self::VramCap => "vram_cap",
            Self::PreservedMemory => "preserved_memory",
        }
    }

    /// For people: `find mode`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FindMode => "find mode",
            Self::ChunkSize => "chunk size",
            Self::TileSize => "tile size",
            Self::Precision => "precision",
            Self::VramCap => "VRAM cap",
            Self::PreservedMemory => "preserved memory",
        }
    }

    /// Its name in a profile: a variable, a key of `[workload.settings]`, or
    /// `vram_cap` of `[limits]`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::FindMode => FIND_MODE,
            Self::ChunkSize => "vae_chunk",
            Self::TileSize => "vae_tile",
            Self::Precision => "vae_dtype",
            Self::VramCap => "vram_cap",
            Self::PreservedMemory => "preserved_memory",
        }
    }

    /// Its place among the effective settings: [`Effective::key`].
    pub fn path(self) -> String {
        match self {
            Self::FindMode => env_path(self.key()),
            Self::VramCap => format!("limits.{}", self.key()),
            _ => workload_path(self.key()),
        }
    }

    /// The setting behind a name of a profile; MIOpen's enforcement belongs to the find mode.
    pub fn of_key(key: &str) -> Option<Self> {
        if key == FIND_ENFORCE {
            return Some(Self::FindMode);
        }
        Self::ALL.into_iter().find(|s| s.key() == key)
    }

    /// Values that are worth offering; others may be typed where [`Setting::parse`] takes them.
    pub const fn choices(self) -> &'static [&'static str] {
        match self {
            Self::FindMode => &FIND_MODES,
            Self::ChunkSize => &["1", "2", "4", "8", "16"],
            Self::TileSize => &["128", "192", "256", "384", "512"],
            Self::Precision => &["float32", "float16", "bfloat16"],
            Self::VramCap | Self::PreservedMemory => &[],
        }
    }

    /// Whether any value of its kind may be typed, not only one of [`Setting::choices`].
    pub const fn is_free(self) -> bool {
        !matches!(self, Self::FindMode | Self::Precision)
    }

    /// A value for [`Setting::parse`], as an example.
    pub const fn example(self) -> &'static str {
        match self {
            Self::FindMode => "FAST",
            Self::ChunkSize => "4",
            Self::TileSize => "256",
            Self::Precision => "float32",
            Self::VramCap => "21 GiB",
            Self::PreservedMemory => "6 GiB",
        }
    }

    /// The value as a profile would have it.
    ///
    /// # Errors
    ///
    /// What to write instead, for people.
    pub fn parse(self, text: &str) -> Result<String, String> {
        let text = text.trim();
        let bad = |want: &str| Err(format!("{}: `{text}` is not {want}", self.name()));
        match self {
            Self::FindMode => {
                let upper = text.to_ascii_uppercase();
                if FIND_MODES.contains(&upper.as_str()) {
                    Ok(upper)
                } else {
                    bad(&format!("one of {}", FIND_MODES.join(", ")))
                }
            }
            Self::Precision => {
                let lower = text.to_ascii_lowercase();
                let long = match lower.as_str() {
                    "fp32" => "float32",
                    "fp16" | "half" => "float16",
                    "bf16" => "bfloat16",
                    other => other,
                };
                if self.choices().contains(&long) {
                    Ok(long.to_owned())
                } else {
                    bad("one of float32, float16, bfloat16")
                }
            }
            Self::ChunkSize => match text.parse::<u32>() {
                Ok(n @ 1..=1024) => Ok(n.to_string()),
                _ => bad("a number of latent frames from 1 to 1024"),
            },
            Self::TileSize => match text.parse::<u32>() {
                Ok(n @ 32..=8192) if n.is_multiple_of(8) => Ok(n.to_string()),
                _ => bad("a multiple of 8 pixels from 32 to 8192"),
            },
            Self::VramCap | Self::PreservedMemory => match size(text) {
                Some(size) => Ok(size),
                None => bad("a size such as `20 GiB` or `512 MiB`"),
            },
        }
    }
}

/// A size from 1 MiB to 16 TiB as `20 GiB`, `20.5 GiB` or `512 MiB`.
fn size(text: &str) -> Option<String> {
    let bytes: Bytes = text.parse().ok()?;
    if !(Bytes::MIB..=Bytes::gib(16 << 10).0).contains(&bytes.0) {
        return None;
    }
    Some(size_text(bytes))
}

/// A size as a profile would have it, in whole MiB or thousandths of a GiB.
pub fn size_text(bytes: Bytes) -> String {
    let mib = bytes.0.div_ceil(Bytes::MIB);
    if mib < 1024 {
        return format!("{mib} MiB");
    }
    let gib = format!("{:.3}", Bytes::mib(mib).as_gib_f64());
    let gib = gib.trim_end_matches('0').trim_end_matches('.');
    format!("{gib} GiB")
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Setting {
    type Err = String;

    /// Reads [`Setting::word`], [`Setting::key`], and the words without their underscores.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |s: &str| s.to_ascii_lowercase().replace(['_', '-', ' '], "");
        let found = Self::ALL
            .into_iter()
            .find(|s| plain(s.word()) == plain(text) || s.key() == text);
        found.ok_or_else(|| {
            let words: Vec<&str> = Self::ALL.iter().map(|s| s.word()).collect();
            format!("`{text}` is none of {}", words.join(", "))
        })
    }
}

/// [`Effective::key`] of a variable.
pub fn env_path(name: &str) -> String {
    format!("env.{name}")
}

/// [`Effective::key`] of a setting of the workload.
pub fn workload_path(key: &str) -> String {
    format!("workload.settings.{key}")
}

/// A value that the user chose while watching.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The value, as [`Setting::parse`] gives it.
    pub value: String,
    /// Rungs in force at that time: what they say about this setting no longer
    /// counts, while a later rung wins over the choice.
    pub over: Vec<RungId>,
}

/// All that the user chose while watching.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosens {
    /// Another profile; absent: the one with which the run began.
    pub profile: Option<String>,
    /// Settings.
    pub settings: BTreeMap<Setting, Chosen>,
}

impl Chosens {
    /// Whether a choice made after `rung` was taken silences its word on `key`.
    pub fn silences(&self, rung: &RungId, key: &str) -> bool {
        Setting::of_key(key)
            .and_then(|s| self.settings.get(&s))
            .is_some_and(|c| c.over.contains(rung))
    }
}

/// Whether and how the workload learns of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "follows", rename_all = "snake_case")]
pub enum Follow {
    /// It is told like this: `MIOPEN_FIND_MODE=FAST`, `--fp32-vae`.
    Yes {
        /// With an example value.
        how: String,
    },
    /// A line of ours: it moves at once, the workload is not told.
    Ours,
    /// It cannot follow.
    No {
        /// Why, for people.
        why: String,
    },
}

/// Who set an effective setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Nobody: the default of this program.
    BuiltIn,
    /// The supervisor, so that it can see.
    Supervisor,
    /// A profile.
    Profile {
        /// File, as messages name it.
        file: String,
        /// Line, from 1.
        line: usize,
    },
    /// The user's exported environment.
    Environment,
    /// The command line.
    CommandLine,
    /// Learned from the workload or the machine.
    Detected,
    /// The user, while watching.
    Live,
    /// A rung of the ladder.
    Rung {
        /// Which.
        rung: RungId,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("default"),
            Self::Supervisor => f.write_str("framepack-tui"),
            Self::Profile { file, line } => write!(f, "{file}:{line}"),
            Self::Environment => f.write_str("your environment"),
            Self::CommandLine => f.write_str("command line"),
            Self::Detected => f.write_str("detected"),
            Self::Live => f.write_str("chosen by you"),
            Self::Rung { rung } => write!(f, "rung {rung}"),
        }
    }
}

/// One setting of rung 0 that is in force, with who set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    /// `env.MIOPEN_FIND_MODE`, `workload.settings.vae_tile`, `limits.vram_cap`,
    /// `budget.restarts`, …: its place in a profile.
    pub key: String,
    /// Its value; absent: taken away, or nothing says anything.
    pub value: Option<String>,
    /// Who set it.
    pub origin: Origin,
    /// What it overrides, with whose value that was.
    pub overrides: Option<String>,
    /// Why it has no effect here; absent: it has.
    pub idle: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_made_the_same_or_refused_with_a_cure() {
        let good = |s: Setting, text| s.parse(text).unwrap();
        assert_eq!(good(Setting::FindMode, "fast"), "FAST");
        assert_eq!(good(Setting::Precision, "bf16"), "bfloat16");
        assert_eq!(good(Setting::VramCap, "21G"), "21 GiB");
        assert_eq!(good(Setting::VramCap, "20.5GiB"), "20.5 GiB");
        assert_eq!(good(Setting::PreservedMemory, "512 MiB"), "512 MiB");
        assert_eq!(good(Setting::TileSize, " 256 "), "256");
        for (setting, text) in [
            (Setting::FindMode, "DYNAMIC"),
            (Setting::ChunkSize, "0"),
            (Setting::TileSize, "250"),
            (Setting::TileSize, "-8"),
            (Setting::Precision, "int8"),
            (Setting::VramCap, "21"),
            (Setting::VramCap, "0 B"),
            (Setting::PreservedMemory, ""),
        ] {
            let e = setting.parse(text).unwrap_err();
            assert!(
                e.starts_with(setting.name()) && e.contains(" is not "),
                "{e}"
            );
        }
    }

    #[test]
    fn every_offered_value_is_taken_as_it_stands() {
        for setting in Setting::ALL {
            for value in setting.choices().iter().chain([&setting.example()]) {
                assert_eq!(setting.parse(value).as_deref(), Ok(*value));
            }
            assert_eq!(setting.word().parse(), Ok(setting));
            assert_eq!(setting.key().parse(), Ok(setting));
            assert_eq!(setting.name().parse(), Ok(setting));
            assert_eq!(Setting::of_key(setting.key()), Some(setting));
        }
    }

    proptest::proptest! {
        #[test]
        fn a_value_that_was_taken_is_taken_again(text in "\\PC{0,12}", n in 0..6_usize) {
            let setting = Setting::ALL[n];
            if let Ok(value) = setting.parse(&text) {
                proptest::prop_assert_eq!(setting.parse(&value), Ok(value.clone()));
            }
        }
    }
}
