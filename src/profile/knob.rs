//! The catalogue of environment variables that a profile may name, and the
//! check of their values.
//!
//! The facts are data in `knobs.toml` beside this file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::problem::{near, or_list};

/// When a library looks at a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Read {
    /// At first use; a change needs a new process.
    Once,
    /// Each time it is needed.
    Each,
}

/// What values a variable takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// Names that also have a number, read without regard to case.
    Words,
    /// MIOpen's booleans: `0`, `1` or a word such as `off`, `enabled`.
    Bool,
    /// One of a list of values.
    OneOf,
    /// A whole number from 0.
    Uint,
    /// A whole number.
    Int,
    /// Any text.
    Text,
    /// A file or folder.
    Path,
    /// `key:value` pairs of PyTorch's allocator, separated by commas.
    AllocConf,
    /// `11.0.0`.
    GfxVersion,
}

/// A value that people use and that does not do what they think.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadValue {
    /// The value.
    pub value: String,
    /// What the library does with it.
    pub does: String,
    /// What was probably meant.
    pub instead: String,
}

/// One environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Its name.
    pub name: String,
    /// Who reads it.
    pub library: String,
    /// What values it takes.
    pub domain: Domain,
    /// Names and numbers of [`Domain::Words`].
    #[serde(default)]
    pub words: BTreeMap<String, u64>,
    /// Values of [`Domain::OneOf`].
    #[serde(default)]
    pub values: Vec<String>,
    /// When it is read.
    pub read: Read,
    /// What it does, in a sentence.
    pub effect: String,
    /// No examined version of the library reads it.
    #[serde(default)]
    pub no_effect: bool,
    /// What to use in its place.
    #[serde(default)]
    pub instead: Option<String>,
    /// First ROCm whose library reads it: `7.14`; absent: not known.
    #[serde(default)]
    pub since: Option<String>,
    /// Values known to mislead.
    #[serde(default)]
    pub bad: Vec<BadValue>,
    /// Where the facts come from.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    knob: Vec<Knob>,
}

#[expect(
    clippy::expect_used,
    reason = "the file is compiled in and a test reads it"
)]
static KNOBS: LazyLock<BTreeMap<String, Knob>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("knobs.toml")).expect("knobs.toml is well formed");
    file.knob.into_iter().map(|k| (k.name.clone(), k)).collect()
});

/// Every variable of the catalogue, by name.
pub fn knobs() -> impl Iterator<Item = &'static Knob> {
    KNOBS.values()
}

/// The variable of this name, if it is in the catalogue.
pub fn knob(name: &str) -> Option<&'static Knob> {
    KNOBS.get(name)
}

/// What is wrong with a setting `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnobProblem {
    /// The name is not in the catalogue.
    #[error("`{name}` is not in the catalogue of variables that a profile may set")]
    Unknown {
        /// The name.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// The name is known to do nothing.
    #[error("`{name}` has no effect. {effect}")]
    NoEffect {
        /// The name.
        name: String,
        /// What is known of it.
        effect: String,
        /// What to use in its place.
        instead: Option<String>,
    },
    /// The value is not one that the library knows.
    #[error("`{name}={value}` is not a value that {library} knows: {does}")]
    OutOfDomain {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// Library as its makers write it.
        library: &'static str,
        /// What the library would do with it.
        does: String,
        /// What is right.
        right: String,
    },
    /// A number that has a name, and the name says more.
    #[error("`{name}={number}` means `{word}`")]
    NumberForWord {
        /// The name.
        name: String,
        /// The number as it was written.
        number: String,
        /// The word for it.
        word: String,
    },
}

impl KnobProblem {
    /// The lint code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "K101",
            Self::NoEffect { .. } => "K102",
            Self::OutOfDomain { .. } => "K103",
            Self::NumberForWord { .. } => "K104",
        }
    }

    /// How to put it right, where that is known.
    pub fn fix(&self) -> Option<String> {
        match self {
            Self::Unknown { near, .. } if near.is_empty() => Some(String::from(
                "see `docs/profiles.md` for the names that a profile may set",
            )),
            Self::Unknown { near, .. } => Some(format!("did you mean {}?", or_list(near))),
            Self::NoEffect { instead, .. } => Some(instead.as_ref().map_or_else(
                || String::from("remove it"),
                |i| format!("remove it; instead: {i}"),
            )),
            Self::OutOfDomain { right, .. } => Some(right.clone()),
            Self::NumberForWord { word, .. } => Some(format!("write `{word}`")),
        }
    }
}

/// Checks one setting against the catalogue; reports the worst that is wrong.
///
/// # Errors
///
/// [`KnobProblem`], whose code tells errors (`K101`, `K103`) from warnings.
pub fn check_value(name: &str, value: &str) -> Result<(), KnobProblem> {
    let Some(knob) = knob(name) else {
        return Err(KnobProblem::Unknown {
            name: name.to_owned(),
            near: near(name, KNOBS.keys().map(String::as_str)),
        });
    };
    if knob.no_effect {
        return Err(KnobProblem::NoEffect {
            name: name.to_owned(),
            effect: knob.effect.clone(),
            instead: knob.instead.clone(),
        });
    }
    knob.check(value)
}

/// Whether two values of a variable mean the same to its library: `2`, `fast` and
/// `FAST` are one find mode.
pub fn same_value(name: &str, a: &str, b: &str) -> bool {
    let number = |v: &str| {
        let words = &knob(name)?.words;
        let word = words.get(&v.to_ascii_uppercase()).copied();
        word.or_else(|| v.parse().ok().filter(|n| words.values().any(|w| w == n)))
    };
    a == b || number(a).is_some_and(|n| number(b) == Some(n))
}

impl Knob {
    /// First ROCm whose library reads it; absent: not known.
    pub fn first_rocm(&self) -> Option<[u32; 2]> {
        release(self.since.as_deref()?)
    }

    fn check(&self, value: &str) -> Result<(), KnobProblem> {
        let known_bad = self
            .bad
            .iter()
            .find(|b| b.value.eq_ignore_ascii_case(value));
        if let Some(bad) = known_bad {
            return Err(self.outside(value, &bad.does, format!("use {}", bad.instead)));
        }
        match self.domain {
            Domain::Words => self.check_word(value),
            Domain::Bool if is_miopen_bool(value) => Ok(()),
            Domain::Bool => Err(self.outside(
                value,
                "MIOpen throws `Invalid value for env variable` and the call fails",
                "use 0 or 1 (or off, on, no, yes, false, true, disable, enable)",
            )),
            Domain::OneOf if self.values.iter().any(|v| v == value) => Ok(()),
            Domain::OneOf => Err(self.outside(
                value,
                "what it does with it is not defined",
                format!("use one of {}", self.values.join(", ")),
            )),
            Domain::Uint if is_uint(value) => Ok(()),
            Domain::Uint => Err(self.outside(
                value,
                "text that is not a number is read as 0, or refused",
                "use a whole number from 0",
            )),
            Domain::Int if value.parse::<i64>().is_ok() => Ok(()),
            Domain::Int => Err(self.outside(
                value,
                "text that is not a number is read as 0, or refused",
                "use a whole number",
            )),
            Domain::Path if value.is_empty() => Err(self.outside(
                value,
                "an empty path is no folder",
                "use a folder, or leave the variable unset",
            )),
            Domain::Path | Domain::Text => Ok(()),
            Domain::AllocConf => self.check_alloc_conf(value),
            Domain::GfxVersion if is_gfx_version(value) => Ok(()),
            Domain::GfxVersion => Err(self.outside(
                value,
                "the run time cannot read it and no device starts",
                "use three numbers such as 11.0.0 (gfx1100)",
            )),
        }
    }

    /// MIOpen upper-cases the text, compares it with its names, and gives the rest
    /// to `stoul`; an empty text counts as unset.
    fn check_word(&self, value: &str) -> Result<(), KnobProblem> {
        let upper = value.to_ascii_uppercase();
        if value.is_empty() || self.words.contains_key(&upper) {
            return Ok(());
        }
        let mut by_number: Vec<(&u64, &String)> = self.words.iter().map(|(w, n)| (n, w)).collect();
        by_number.sort();
        let words: Vec<&String> = by_number.iter().map(|(_, w)| *w).collect();
        let right = format!("use {}", or_list(&words));
        let Ok(number) = value.parse::<u64>() else {
            return Err(self.outside(
                value,
                "MIOpen throws `stoul` and every convolution fails",
                right,
            ));
        };
        match by_number.iter().find(|(n, _)| **n == number) {
            Some((_, word)) => Err(KnobProblem::NumberForWord {
                name: self.name.clone(),
                number: value.to_owned(),
                word: (*word).clone(),
            }),
            None => Err(self.outside(
                value,
                "MIOpen logs an error line and takes its default",
                right,
            )),
        }
    }

    /// Limits of `max_split_size_mb` and `garbage_collection_threshold` as PyTorch checks them.
    fn check_alloc_conf(&self, value: &str) -> Result<(), KnobProblem> {
        for pair in value.split(',').filter(|_| !value.contains('[')) {
            let Some((key, v)) = pair.split_once(':') else {
                return Err(self.outside(
                    value,
                    "PyTorch fails at its first allocation",
                    "write key:value pairs separated by commas, such as `expandable_segments:True`",
                ));
            };
            let v = v.trim();
            let ok = match key.trim() {
                "max_split_size_mb" => v.parse::<u64>().is_ok_and(|n| n >= 20),
                "garbage_collection_threshold" => {
                    v.parse::<f64>().is_ok_and(|x| x > 0.0 && x < 1.0)
                }
                "expandable_segments" => matches!(v, "True" | "False"),
                _ => true,
            };
            if !ok {
                return Err(self.outside(
                    value,
                    "PyTorch fails at its first allocation",
                    "max_split_size_mb is at least 20, garbage_collection_threshold lies between 0 and 1, expandable_segments is True or False",
                ));
            }
        }
        Ok(())
    }

    fn outside(&self, value: &str, does: &str, right: impl Into<String>) -> KnobProblem {
        KnobProblem::OutOfDomain {
            name: self.name.clone(),
            value: value.to_owned(),
            library: library_name(&self.library),
            does: does.to_owned(),
            right: right.into(),
        }
    }
}

/// Major and minor number of a release of ROCm: `7.14`, `7.14.0`, `6.4.43482`.
pub fn release(text: &str) -> Option<[u32; 2]> {
    let mut parts = text.trim().split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let end = minor.find(|c: char| !c.is_ascii_digit());
    Some([major, minor[..end.unwrap_or(minor.len())].parse().ok()?])
}

/// The spelling that its makers use.
fn library_name(library: &str) -> &'static str {
    match library {
        "miopen" => "MIOpen",
        "torch" => "PyTorch",
        "hip" => "HIP",
        "hsa" => "the ROCm run time",
        "comfyui" => "ComfyUI",
        "huggingface" => "the Hugging Face library",
        "hipblaslt" => "rocBLAS or hipBLASLt",
        "flash_attention" => "flash-attn",
        "triton" => "Triton",
        _ => "its library",
    }
}

/// `0`, `1` and the words of MIOpen's `src/include/miopen/env.hpp`.
fn is_miopen_bool(value: &str) -> bool {
    const WORDS: &[&str] = &[
        "0", "1", "no", "off", "false", "disable", "disabled", "yes", "on", "true", "enable",
        "enabled",
    ];
    WORDS.iter().any(|w| w.eq_ignore_ascii_case(value))
}

/// Decimal, or hexadecimal with `0x`, as `strtoull` with base 0 reads it.
fn is_uint(value: &str) -> bool {
    value.strip_prefix("0x").map_or_else(
        || value.parse::<u64>().is_ok(),
        |hex| u64::from_str_radix(hex, 16).is_ok(),
    )
}

fn is_gfx_version(value: &str) -> bool {
    let parts: Vec<&str> = value.split('.').collect();
    parts.len() == 3 && parts.iter().all(|p| p.parse::<u8>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &str, value: &str) -> Option<&'static str> {
        check_value(name, value).err().map(|p| p.code())
    }

    #[test]
    fn the_catalogue_is_well_formed() {
        assert!(knobs().count() > 90);
        for k in knobs() {
            assert!(k.effect.ends_with('.'), "{}", k.name);
            assert_eq!(k.domain == Domain::Words, !k.words.is_empty(), "{}", k.name);
            assert_eq!(
                k.domain == Domain::OneOf,
                !k.values.is_empty(),
                "{}",
                k.name
            );
            let said = k
                .effect
                .rsplit_once("Since ROCm ")
                .map(|(_, v)| v.trim_end_matches('.'));
            let said = said.filter(|v| release(v).is_some() && !v.contains(' '));
            assert_eq!(said, k.since.as_deref(), "{}", k.name);
            for bad in &k.bad {
                assert_eq!(code(&k.name, &bad.value), Some("K103"), "{}", k.name);
            }
        }
    }

    #[test]
    fn values_that_the_founding_notes_got_wrong() {
        assert_eq!(code("MIOPEN_FIND_MODE", "DYNAMIC"), Some("K103"));
        assert_eq!(code("MIOPEN_FIND_MODE", "0"), Some("K103"));
        assert_eq!(code("MIOPEN_FIND_MODE", "8"), Some("K103"));
        assert_eq!(code("MIOPEN_FIND_ENFORCE", "DB_ONLY"), Some("K103"));
        assert_eq!(code("MIOPEN_DEBUG_CONV_GEMM", "2"), Some("K103"));
        assert_eq!(code("MIOPEN_FIND_TIME_LIMIT", "30"), Some("K102"));
        assert_eq!(code("MIOPEN_FIND_MODE", "1"), Some("K104"));
        assert_eq!(code("MIOPEN_FIND_MOD", "FAST"), Some("K101"));
    }

    #[test]
    fn right_values_pass() {
        for (n, v) in [
            ("MIOPEN_FIND_MODE", "FAST"),
            ("MIOPEN_FIND_MODE", "fast"),
            ("MIOPEN_FIND_MODE", ""),
            ("MIOPEN_FIND_ENFORCE", "NONE"),
            ("MIOPEN_DEBUG_CONV_GEMM", "Off"),
            ("MIOPEN_TUNING_TIME_MS_MAX", "0x10"),
            (
                "PYTORCH_ALLOC_CONF",
                "expandable_segments:True,max_split_size_mb:128",
            ),
            ("HSA_OVERRIDE_GFX_VERSION", "11.0.0"),
            ("MIOPEN_LOG_LEVEL", "5"),
        ] {
            assert_eq!(check_value(n, v), Ok(()), "{n}={v}");
        }
        assert_eq!(
            code("PYTORCH_ALLOC_CONF", "max_split_size_mb:4"),
            Some("K103")
        );
        assert_eq!(code("HSA_OVERRIDE_GFX_VERSION", "gfx1100"), Some("K103"));
    }

    #[test]
    fn a_number_and_its_word_are_the_same_value() {
        assert!(same_value("MIOPEN_FIND_MODE", "2", "FAST"));
        assert!(same_value("MIOPEN_FIND_MODE", "fast", "FAST"));
        assert!(!same_value("MIOPEN_FIND_MODE", "1", "FAST"));
        assert!(!same_value("MIOPEN_FIND_MODE", "x", "y"));
        assert!(!same_value("HF_HOME", "2", "FAST"));
    }

    #[test]
    fn messages_name_value_consequence_and_cure() {
        let p = check_value("MIOPEN_FIND_MODE", "DYNAMIC").unwrap_err();
        assert_eq!(
            p.to_string(),
            "`MIOPEN_FIND_MODE=DYNAMIC` is not a value that MIOpen knows: MIOpen throws `stoul` and every convolution fails"
        );
        assert_eq!(p.fix().unwrap(), "use DYNAMIC_HYBRID");
    }
}
