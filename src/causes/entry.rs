//! A file of causes: reading it and checking it.

use std::collections::BTreeMap;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::facts::PastedNeeds;
use super::settings::Setting;
use super::template;
use crate::model::{ActionId, Backend, Phase, VerdictId};

/// How much a sign explains where it makes the verdict by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// A kind of error that has several causes.
    General,
    /// One cause.
    Specific,
    /// What the program says later is its consequence.
    Root,
}

/// What must be known for a cause to apply. A fact that is not known is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Needs {
    /// What the program computes with, one of these: `hip`, `cuda`, `vulkan`, `cpu`.
    pub backend: Vec<BackendWord>,
    /// Where it happened, one of these.
    pub phase: Vec<Phase>,
    /// The program runs in a container.
    pub container: Option<bool>,
    /// It runs in WSL.
    pub wsl: Option<bool>,
    /// It runs on Windows itself.
    pub windows: Option<bool>,
    /// It is packaged with Nix, or runs on NixOS.
    pub nix: Option<bool>,
    /// The request alone is larger than the card's whole memory.
    pub more_than_card: Option<bool>,
    /// The card's memory was full, by its readings, as it happened.
    pub card_full: Option<bool>,
    /// Other processes hold a large part of the card's memory.
    pub taken_by_others: Option<bool>,
    /// Far more of the card was free than was asked for.
    pub plenty_free: Option<bool>,
    /// The card's memory is the half of the host's that an APU gets by default.
    pub half_of_ram: Option<bool>,
    /// There is more than one card.
    pub second_card: Option<bool>,
    /// One of them is the processor's own graphics.
    pub integrated: Option<bool>,
    /// A variable hides cards.
    pub mask: Option<bool>,
    /// `HSA_OVERRIDE_GFX_VERSION` makes ROCm take the card for one of another family.
    pub other_family: Option<bool>,
    /// The host has less memory than this, in GiB.
    pub ram_below: Option<u64>,
    /// The card has less memory than this, in GiB.
    pub card_below: Option<u64>,
    /// A pattern that the card's architecture matches.
    pub arch: Option<String>,
    /// The program, by the name of its adapter, or one that was made from it.
    pub program: Vec<String>,
    /// Settings that have one of these words each; an empty list: any word.
    pub settings: BTreeMap<Setting, Vec<String>>,
    /// Settings that have none of these words.
    pub not_settings: BTreeMap<Setting, Vec<String>>,
    /// The variables that were set do not contain one of these.
    pub not_tried: Vec<String>,
    /// Facts that must have words, by the names of their places in a sentence.
    pub known: Vec<String>,
    /// What a person pasted beside the log. It may stand below the error, so it chooses among
    /// causes and cures but decides no verdict.
    pub pasted: PastedNeeds,
}

impl Needs {
    /// How many conditions there are: of two causes that fit, the one with more says more.
    pub fn count(&self) -> usize {
        let flags = [
            self.container,
            self.wsl,
            self.windows,
            self.nix,
            self.more_than_card,
            self.card_full,
            self.second_card,
            self.integrated,
            self.mask,
            self.other_family,
            self.taken_by_others,
            self.plenty_free,
            self.half_of_ram,
        ];
        flags.iter().flatten().count()
            + usize::from(!self.backend.is_empty())
            + usize::from(!self.phase.is_empty())
            + usize::from(self.ram_below.is_some())
            + usize::from(self.card_below.is_some())
            + usize::from(self.arch.is_some())
            + usize::from(!self.program.is_empty())
            + self.settings.len()
            + self.not_settings.len()
            + self.known.len()
            + self.pasted.count()
    }
}

/// A backend's word in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendWord {
    /// ROCm.
    Hip,
    /// NVIDIA's own.
    Cuda,
    /// Vulkan.
    Vulkan,
    /// No card.
    Cpu,
    /// Nothing says it.
    Unknown,
}

impl BackendWord {
    /// What it stands for.
    pub const fn backend(self) -> Backend {
        match self {
            Self::Hip => Backend::Hip,
            Self::Cuda => Backend::Cuda,
            Self::Vulkan => Backend::Vulkan,
            Self::Cpu => Backend::Cpu,
            Self::Unknown => Backend::Unknown,
        }
    }
}

/// Another instruction for the same cause, where more is known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Where it applies.
    pub needs: Needs,
    /// What to do there.
    pub cure: String,
    /// Arguments that it takes out of the command, beside those of the cause.
    #[serde(default)]
    pub removes: Vec<String>,
    /// The action, where it is another than the cause's.
    pub action: Option<ActionId>,
    /// Variables that it sets; absent: those of the cause.
    pub env: Option<BTreeMap<String, String>>,
}

/// A cause, as its file has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Its name, which no other cause has.
    pub id: String,
    /// The verdict that it explains: the name of the file.
    #[serde(skip, default = "unknown")]
    pub verdict: VerdictId,
    /// One of `signs` makes the verdict by itself, where the rest is there as well; absent:
    /// something else must.
    pub decides: Option<Strength>,
    /// It explains only what no other cause does, however early its sign came.
    #[serde(default)]
    pub fallback: bool,
    /// Patterns of lines that report the error. One of them must be there.
    #[serde(default)]
    pub signs: Vec<String>,
    /// Patterns of which each must match some line, whatever that line is.
    #[serde(default)]
    pub with: Vec<String>,
    /// Patterns that no line may match.
    #[serde(default)]
    pub without: Vec<String>,
    /// What else must be known.
    #[serde(default)]
    pub needs: Needs,
    /// What happened; absent: the verdict's own sentence stands.
    pub sentence: Option<String>,
    /// What to do. A part in `[[` `]]` is left out where a setting that it names is in force.
    pub cure: String,
    /// Arguments that the cure takes out of the command: they may be in force.
    #[serde(default)]
    pub removes: Vec<String>,
    /// The action, where it is another than the verdict's own.
    pub action: Option<ActionId>,
    /// Variables that the cure sets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// A public thread or page where this is told.
    pub source: String,
    /// Instructions that come before `cure`: the first that applies.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
}

const fn unknown() -> VerdictId {
    VerdictId::AppError
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Lists of patterns that several causes share: a cause names one as `@name`.
    #[serde(default)]
    patterns: BTreeMap<String, Vec<String>>,
    cause: Vec<Cause>,
}

impl File {
    /// A list with the patterns that its `@name` stand for.
    fn spelled_out(&self, list: &[String]) -> Result<Vec<String>, String> {
        let mut all = Vec::with_capacity(list.len());
        for pattern in list {
            let Some(name) = pattern.strip_prefix('@') else {
                all.push(pattern.clone());
                continue;
            };
            let shared = self.patterns.get(name);
            let shared = shared.ok_or_else(|| format!("no patterns are called `{name}`"))?;
            all.extend(shared.iter().cloned());
        }
        Ok(all)
    }
}

/// The causes of one file, whose name is `verdict`.
pub(super) fn read(verdict: &str, text: &str) -> Result<Vec<Cause>, String> {
    let wrong = |why: String| format!("causes/{verdict}.toml: {why}");
    let id: VerdictId = verdict.parse().map_err(|e| wrong(format!("{e}")))?;
    let mut file: File = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let mut causes = std::mem::take(&mut file.cause);
    for cause in &mut causes {
        cause.verdict = id;
        for list in [&mut cause.signs, &mut cause.with, &mut cause.without] {
            let spelled_out = file.spelled_out(list);
            *list = spelled_out.map_err(|e| wrong(format!("{}: {e}", cause.id)))?;
        }
    }
    Ok(causes)
}

/// The same, with a check of each.
pub(super) fn read_checked(verdict: &str, text: &str) -> Result<Vec<Cause>, String> {
    let causes = read(verdict, text)?;
    for cause in &causes {
        let wrong = |why: String| format!("causes/{verdict}.toml: {}: {why}", cause.id);
        check(cause).map_err(wrong)?;
    }
    Ok(causes)
}

/// A pattern as it is matched: bytes, ASCII classes.
pub(super) fn pattern(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).unicode(false).build()
}

/// What makes a cause unusable.
fn check(cause: &Cause) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if cause.id.is_empty() || !cause.id.chars().all(plain) {
        return Err("an id is made of a-z, 0-9 and _".to_owned());
    }
    if cause.signs.is_empty() && cause.with.is_empty() && cause.needs.count() == 0 {
        return Err("nothing is asked for".to_owned());
    }
    if cause.decides.is_some() && cause.signs.is_empty() {
        return Err("without a sign nothing can decide".to_owned());
    }
    if cause.decides.is_some() && cause.needs.pasted.count() > 0 {
        return Err("what was pasted decides nothing".to_owned());
    }
    if !cause.source.starts_with("https://") {
        return Err("the source is an https address".to_owned());
    }
    let mut names: Vec<String> = Vec::new();
    for text in cause.signs.iter().chain(&cause.with).chain(&cause.without) {
        let regex = pattern(text).map_err(|e| e.to_string())?;
        names.extend(regex.capture_names().flatten().map(str::to_owned));
    }
    check_needs(&cause.needs)?;
    for variant in &cause.variants {
        check_needs(&variant.needs)?;
        if variant.needs.count() == 0 {
            return Err("a variant asks for nothing".to_owned());
        }
    }
    let variants = cause.variants.iter().map(|v| &v.cure);
    let texts = cause.sentence.iter().chain([&cause.cure]).chain(variants);
    for place in texts.flat_map(|t| template::places(t)) {
        let known = super::facts::is_place(place) || names.iter().any(|n| n == place);
        if !known {
            return Err(format!("nothing fills {{{place}}}"));
        }
    }
    Ok(())
}

/// What makes conditions unusable.
fn check_needs(needs: &Needs) -> Result<(), String> {
    if let Some(arch) = &needs.arch {
        pattern(arch).map_err(|e| e.to_string())?;
    }
    if let Some(place) = needs.known.iter().find(|p| !super::facts::is_place(p)) {
        return Err(format!("nothing fills {{{place}}}"));
    }
    for (setting, words) in needs.settings.iter().chain(&needs.not_settings) {
        let known = setting.words();
        let strange = words.iter().find(|w| !known.contains(&w.as_str()));
        if let Some(word) = strange {
            return Err(format!("{setting:?} is never `{word}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[cause]]\nid = \"a\"\nsigns = ['x (?P<what>\\w+)']\ncure = \"do {what}\"\nsource = \"https://example.org\"\n";

    #[test]
    fn a_file_is_checked() {
        let causes = read_checked("app_error", GOOD).unwrap();
        assert_eq!(causes[0].verdict, VerdictId::AppError);
        for (from, to, why) in [
            ("id = \"a\"", "id = \"A b\"", "an id is"),
            ("(?P<what>\\w+)", "(", "regex"),
            ("{what}", "{other}", "nothing fills"),
            ("https", "http", "https"),
            ("signs = ['x (?P<what>\\w+)']", "", "nothing is asked"),
            ("cure", "cured", "unknown field"),
            (
                "source",
                "needs = { known = [\"colour\"] }\nsource",
                "nothing fills",
            ),
            (
                "source",
                "needs = { settings = { vram_mode = [\"lower\"] } }\nsource",
                "VramMode is never `lower`",
            ),
        ] {
            let e = read_checked("app_error", &GOOD.replace(from, to)).unwrap_err();
            assert!(e.contains(why) && e.contains("app_error.toml"), "{e}");
        }
        assert!(read("no_verdict", GOOD).is_err());
    }

    #[test]
    fn patterns_that_causes_share_stand_once() {
        let shared = format!("[patterns]\nboth = ['y', 'z']\n\n{GOOD}");
        let named = shared.replace("signs = [", "without = ['@both', 'v']\nsigns = ['@both', ");
        let causes = read_checked("app_error", &named).unwrap();
        assert_eq!(causes[0].signs, ["y", "z", "x (?P<what>\\w+)"]);
        assert_eq!(causes[0].without, ["y", "z", "v"]);
        let e = read("app_error", &named.replace("both =", "other =")).unwrap_err();
        assert!(e.contains("a: no patterns are called `both`"), "{e}");
    }
}
