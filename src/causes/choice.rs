//! The cause that fits a verdict, in words.

use std::collections::BTreeMap;

use super::catalogue::{Places, catalogue};
use super::entry::{Cause, Needs, Strength, Variant, pattern};
use super::evidence::{Evidence, Shown};
use super::facts::{Facts, Known};
use super::programs;
use super::template::{self, fill};
use crate::model::{ActionId, Cite, VerdictId};

/// A cause with its words filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Which cause.
    pub id: String,
    /// What happened; absent: the verdict's own sentence stands.
    pub sentence: Option<String>,
    /// What to do.
    pub cure: String,
    /// The action, where it is another than the verdict's own.
    pub action: Option<ActionId>,
    /// Variables that the cure sets.
    pub env: BTreeMap<String, String>,
    /// Where this is told.
    pub source: String,
    /// The line that shows it.
    pub cite: Option<Cite>,
}

/// Of two causes that fit: the one that is no fallback, then the one whose sign came first, then
/// the one that asks for more, then the one that stands first in its file.
type Order = (bool, u64, std::cmp::Reverse<usize>, usize);

impl Evidence {
    /// The cause that explains a verdict, by what was shown and what is known.
    pub fn explain(&self, verdict: VerdictId, known: &Known<'_>) -> Option<Explanation> {
        let facts = self.facts().with(known);
        let mut best: Option<(Order, Explanation)> = None;
        for (n, cause, places) in catalogue().of_verdict(verdict) {
            let Some(shown) = self.fits(cause, places, &facts) else {
                continue;
            };
            let seq = shown.sign.map_or(u64::MAX, |s| s.cite.seq);
            let asks = cause.with.len() + cause.needs.count();
            let order = (cause.fallback, seq, std::cmp::Reverse(asks), n);
            if best.as_ref().is_some_and(|(b, _)| *b <= order) {
                continue;
            }
            if let Some(words) = in_words(cause, &shown, &facts) {
                best = Some((order, words));
            }
        }
        best.map(|(_, words)| words)
    }

    /// What to do about a decode that stands still, by what is known.
    pub fn decode_that_stands(&self, known: &Known<'_>) -> Option<String> {
        self.facts().with(known).place("decode")
    }

    /// What to do about a ROCm that has no code for the card yet; none: nothing tells of one.
    pub fn stack_older_than_card(&self, known: &Known<'_>) -> Option<String> {
        self.facts().with(known).stack_older_than_card()
    }

    /// The actions that change nothing, because the program does so already.
    pub fn in_force(&self, known: &Known<'_>) -> Vec<ActionId> {
        self.facts().with(known).settings.actions_in_force()
    }

    /// The verdicts that a line makes together with what is known so far, with where in the
    /// line each sign begins.
    pub fn decided(&self, line: &str) -> Vec<(VerdictId, Strength, usize)> {
        let all = catalogue();
        let matched = all.matches(line);
        let mut found = Vec::new();
        if matched.is_empty() {
            return found;
        }
        for (cause, places) in all.conditional() {
            let signs = places.signs.iter().filter(|p| matched.contains(p));
            let start = signs.filter_map(|p| {
                let (regex, _) = all.pattern(*p)?;
                Some(regex.find(line.as_bytes())?.start())
            });
            let (Some(start), Some(strength)) = (start.min(), cause.decides) else {
                continue;
            };
            if self.fits(cause, places, self.facts()).is_some() {
                found.push((cause.verdict, strength, start));
            }
        }
        found
    }

    /// What shows that this cause is there; none: it is not.
    fn fits(&self, cause: &Cause, places: &Places, facts: &Facts) -> Option<Matched<'_>> {
        let signs = places.signs.iter().filter_map(|p| self.sign(*p));
        let sign = signs.min_by_key(|s| s.cite.seq);
        if sign.is_none() && !places.signs.is_empty() {
            return None;
        }
        let with: Option<Vec<&Shown>> = places.with.iter().map(|p| self.context(*p)).collect();
        let with = with?;
        let barred = places.without.iter().any(|p| self.context(*p).is_some());
        (!barred && holds(&cause.needs, facts)).then_some(Matched { sign, with })
    }
}

/// What showed a cause.
struct Matched<'a> {
    sign: Option<&'a Shown>,
    with: Vec<&'a Shown>,
}

/// Whether what a cause needs is known.
fn holds(needs: &Needs, facts: &Facts) -> bool {
    let flag = |wanted: Option<bool>, is: bool| wanted.is_none_or(|w| w == is);
    let below = |limit: Option<u64>, has: Option<u64>| {
        limit.is_none_or(|gib| has.is_some_and(|bytes| bytes < gib << 30))
    };
    let backend =
        needs.backend.is_empty() || needs.backend.iter().any(|b| b.backend() == facts.backend());
    let arch = needs.arch.as_ref().is_none_or(|wanted| {
        let arch = facts.arch.as_deref().unwrap_or_default();
        pattern(wanted).is_ok_and(|r| !arch.is_empty() && r.is_match(arch.as_bytes()))
    });
    backend
        && arch
        && (needs.phase.is_empty() || facts.phase.is_some_and(|p| needs.phase.contains(&p)))
        && flag(needs.container, facts.container)
        && flag(needs.wsl, facts.wsl)
        && flag(needs.windows, facts.windows)
        && flag(needs.nix, facts.nix)
        && flag(needs.more_than_card, facts.asks_for_more_than_the_card())
        && flag(needs.card_full, facts.card_full)
        && flag(needs.taken_by_others, facts.is_taken_by_others())
        && flag(needs.plenty_free, facts.has_plenty_free())
        && flag(needs.half_of_ram, facts.is_half_of_ram())
        && flag(needs.second_card, facts.cards > 1)
        && flag(needs.integrated, facts.has_integrated_beside())
        && flag(needs.mask, facts.mask.is_some())
        && flag(needs.other_family, facts.is_taken_for_another_family())
        && below(needs.ram_below, facts.ram)
        && below(needs.card_below, facts.card_memory)
        && (needs.program.is_empty() || is_for_program(&needs.program, facts))
        && needs
            .settings
            .iter()
            .all(|(s, w)| facts.settings.is_one_of(*s, w))
        && !needs
            .not_settings
            .iter()
            .any(|(s, w)| facts.settings.is_one_of(*s, w))
        && !needs.not_tried.iter().any(|name| facts.was_set(name))
        && facts.pasted.meets(&needs.pasted)
        && needs.known.iter().all(|name| facts.place(name).is_some())
}

/// Whether the program is one of these, or starts one of them.
fn is_for_program(names: &[String], facts: &Facts) -> bool {
    let started = programs::run_by(facts.program().unwrap_or_default());
    facts.is_program(names) || started.is_some_and(|s| names.iter().any(|n| n == s))
}

/// The words of a cause; none: something that they name is not known, or all that they advise
/// is in force already.
fn in_words(cause: &Cause, matched: &Matched<'_>, facts: &Facts) -> Option<Explanation> {
    let all = || matched.sign.iter().chain(&matched.with);
    let value = |name: &str| {
        let word = all().flat_map(|s| &s.words).find(|(n, _)| n == name);
        let word = word.map(|(_, w)| w.clone()).filter(|w| !w.is_empty());
        word.or_else(|| facts.place(name))
    };
    let sentence = match &cause.sentence {
        Some(text) => Some(fill(text, value)?),
        None => None,
    };
    let instruction = |cure: &str, removes: &[String]| {
        let removed = |argument: &&str| {
            let mut all = cause.removes.iter().chain(removes);
            all.any(|r| r == argument)
        };
        let in_force = |part: &str| facts.settings.in_force(part).filter(|a| !removed(a));
        let repeats = |part: &str| {
            let again = |o: &&str| advises(part, o) && !names_value(part, o) && !removed(o);
            facts.options().any(|o| again(&o))
        };
        let program = facts.program().unwrap_or_default();
        let of_another = |part: &str| programs::is_of_another(part, program);
        // a program in C++ has no packages of Python
        let of_python = |part: &str| programs::is_native(program) && programs::is_of_python(part);
        let optional = |part: &str| {
            in_force(part).is_none() && !repeats(part) && !of_another(part) && !of_python(part)
        };
        let cure = template::keep_parts(cure, optional, |frame| in_force(frame).is_none())?;
        let cure = fill(&cure, value)?;
        let fits = !of_python(&cure) && !programs::starts_another(&cure, program);
        let place = programs::place_of_arguments(&cure, program);
        let cure = place.map_or_else(|| cure.clone(), |place| format!("{cure} {place}"));
        // pip cannot write into the store
        let cure = if facts.in_nix_store && cure.contains("pip ") {
            format!("{cure} {IN_NIX_STORE}")
        } else {
            cure
        };
        fits.then_some(cure)
    };
    let of_variant = |v: &Variant| {
        let cure = holds(&v.needs, facts).then(|| instruction(&v.cure, &v.removes))??;
        let env = v.env.as_ref().unwrap_or(&cause.env);
        Some((cure, v.action.or(cause.action), env.clone()))
    };
    let mut variants = cause.variants.iter();
    let (cure, action, env) = variants.find_map(of_variant).or_else(|| {
        let cure = instruction(&cause.cure, &[])?;
        Some((cure, cause.action, cause.env.clone()))
    })?;
    Some(Explanation {
        id: cause.id.clone(),
        sentence,
        cure,
        action,
        env,
        source: cause.source.clone(),
        cite: all().next().map(|s| s.cite.clone()),
    })
}

/// What is said beside a cure by pip, where the packages are those of the Nix store.
const IN_NIX_STORE: &str = "This program's packages come from the Nix store, where pip changes nothing: do the same in the flake (`nix flake update`, another revision, an override of the package), or run the program in a venv of its own.";

/// Words before an argument by which an instruction takes it away.
const TAKEN_AWAY: &[&str] = &[
    "without",
    "leave out",
    "in place of",
    "remove",
    "unset",
    "instead of",
    " not ",
    "nor ",
    "take ",
    "switch off",
    "although",
    "than ",
    " no ",
    "above",
    "lower",
    "higher",
];

/// Whether an instruction tells to use an argument.
fn advises(instruction: &str, argument: &str) -> bool {
    instruction.match_indices(argument).any(|(at, found)| {
        let after = instruction.get(at + found.len()..).unwrap_or_default();
        let whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
        let before = instruction.get(..at).unwrap_or_default();
        let clause = before.rsplit([';', '.', ':']).next().unwrap_or_default();
        let words = clause.to_lowercase();
        whole && !TAKEN_AWAY.iter().any(|w| words.contains(w))
    })
}

/// Whether an instruction names a value of an argument: another one may help.
fn names_value(instruction: &str, argument: &str) -> bool {
    instruction.match_indices(argument).any(|(at, found)| {
        let after = instruction.get(at + found.len()..).unwrap_or_default();
        after.starts_with(['=', ' '])
            && after
                .get(1..)
                .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Backend, Bytes, Mono, Phase};

    /// The cause of a verdict after these lines.
    fn cause(verdict: VerdictId, lines: &[&str], known: &Known<'_>) -> Option<Explanation> {
        let mut evidence = Evidence::default();
        for (n, line) in lines.iter().enumerate() {
            let cite = Cite::reading(n as u64, Mono(n as u64), (*line).to_owned());
            evidence.observe(line, &cite, |_| true);
        }
        evidence.explain(verdict, known)
    }

    fn id(verdict: VerdictId, lines: &[&str], known: &Known<'_>) -> Option<String> {
        cause(verdict, lines, known).map(|c| c.id)
    }

    #[test]
    fn readings_explain_what_words_do_not() {
        let launch = ["HIP error: unspecified launch failure"];
        let mut known = Known {
            phase: Some(Phase::VaeDecode),
            ..Known::default()
        };
        // without readings the phase alone names the cure
        let by_words = id(VerdictId::MemoryFault, &launch, &known);
        assert_eq!(by_words.as_deref(), Some("launch_failed_in_decode"));
        known.card_full = true;
        let got = cause(VerdictId::MemoryFault, &launch, &known).unwrap();
        assert_eq!(got.id, "launch_failed_at_full_memory_in_decode");
        assert_eq!(got.action, Some(ActionId::TiledVae));
        known.phase = Some(Phase::Sampling);
        let got = id(VerdictId::MemoryFault, &launch, &known);
        assert_eq!(got.as_deref(), Some("launch_failed_at_full_memory"));
        let gtt = ["torch.OutOfMemoryError: HIP out of memory."];
        let got = id(VerdictId::GttExhausted, &gtt, &known);
        assert_eq!(got.as_deref(), Some("gtt_limit_of_the_kernel"));
    }

    #[test]
    fn a_hang_gets_the_cure_of_its_backend() {
        for (backend, want) in [
            (Backend::Vulkan, Some("vulkan_decode_hangs")),
            (Backend::Cuda, Some("cuda_decode_hangs")),
            (Backend::Hip, None),
            (Backend::Unknown, None),
        ] {
            let known = Known {
                phase: Some(Phase::VaeDecode),
                backend,
                ..Known::default()
            };
            let got = id(VerdictId::SilentHang, &[], &known);
            assert_eq!(got.as_deref(), want, "{backend:?}");
        }
    }

    #[test]
    fn a_sign_alone_decides_nothing_where_more_is_asked_for() {
        let line = "Call returned HSA_STATUS_ERROR_OUT_OF_RESOURCES: no resources";
        assert!(catalogue().decided(line).is_empty());
        let mut evidence = Evidence::default();
        assert!(evidence.decided(line).is_empty());
        let cite = Cite::reading(1, Mono(1), String::new());
        evidence.observe("WSL environment detected.", &cite, |_| true);
        evidence.observe(line, &cite, |_| true);
        let decided = evidence.decided(line);
        assert_eq!(decided[0].0, VerdictId::GpuUnavailable);
    }

    #[test]
    fn no_cure_advises_what_is_in_force() {
        for line in [
            "Set vram state to: LOW_VRAM",
            "Set vram state to: HIGH_VRAM",
            "DynamicVRAM support detected and enabled",
            "Using pytorch attention",
            "Using sage attention",
            "Using split optimization for attention",
            "VAE load device: cpu, offload device: cpu, dtype: torch.float32",
            "VAE load device: cuda:0, offload device: cpu, dtype: torch.bfloat16",
            "[DEBUG] vae.hpp:190  - VAE Tile size: 32x32",
            "Enable swap 20 blocks to CPU from device: cuda",
            "Profile 'VerylowRAM_LowVRAM' sets the following options:",
            "$ python main.py --disable-pinned-memory --novram --use-quad-cross-attention --fp16-vae",
        ] {
            let mut facts = Facts::default();
            facts.observe(line);
            assert_ne!(facts, Facts::default(), "{line}");
            let nothing = Matched {
                sign: None,
                with: Vec::new(),
            };
            for cause in catalogue().causes() {
                let Some(words) = in_words(cause, &nothing, &facts) else {
                    continue;
                };
                let named = facts.settings.in_force(&words.cure);
                let variants = cause.variants.iter().flat_map(|v| &v.removes);
                let removed: Vec<&String> = cause.removes.iter().chain(variants).collect();
                let named = named.filter(|a| !removed.iter().any(|r| r == a));
                assert_eq!(named, None, "{} after {line}: {}", cause.id, words.cure);
            }
        }
    }

    #[test]
    fn what_is_not_known_is_not_named() {
        let line = ["torch.OutOfMemoryError: HIP out of memory. Tried to allocate 40.00 GiB"];
        let mut known = Known::default();
        let got = cause(VerdictId::GpuOom, &line, &known);
        assert!(got.is_none_or(|c| !c.cure.contains('{')));
        known.card_memory = Some(Bytes(24 << 30));
        let got = cause(VerdictId::GpuOom, &line, &known).unwrap();
        assert!(got.cure.contains("24.0 GiB") || got.sentence.unwrap().contains("24.0 GiB"));
    }
}
