//! What the text and the machine tell of the case: backend, memory, cards, container.

mod amount;
mod card;
mod origin;
mod pasted;
mod patterns;

use regex::Regex;

use amount::{bytes, gib};
use origin::Origin;
pub use pasted::{Pasted, PastedNeeds};
use patterns::{ANY, PATTERNS, Patterns};

use super::decode::{self, InForce};
use super::settings::{Setting, Settings};
use crate::model::{Backend, Bytes, Phase};

/// Places of a sentence that facts fill, beside those of the settings.
const PLACES: &[&str] = &[
    "decode",
    "asked",
    "total",
    "ram",
    "arch",
    "wheels",
    "mask",
    "taken_for",
    "card",
    "others",
    "free",
    "node",
    "pack",
    "package",
    "file",
    "masks",
    "safetensors",
    "torch",
    "torch_index",
    "torch_build",
    "odd_package",
    "cuda_driver",
    "kfd_group",
    "full_disk",
    "free_disk",
    "holder",
];

/// Whether a fact or a setting fills this place of a sentence.
pub(super) fn is_place(name: &str) -> bool {
    PLACES.contains(&name) || Setting::ALL.iter().any(|(_, place)| *place == name)
}

/// What is known beside the text: of the card and the phase. Absent values are not known.
#[derive(Debug, Clone, Default)]
pub struct Known<'a> {
    /// Where it happened.
    pub phase: Option<Phase>,
    /// What the program computes with.
    pub backend: Backend,
    /// Memory of the card.
    pub card_memory: Option<Bytes>,
    /// Architecture of the card.
    pub arch: Option<&'a str>,
    /// Memory of the card was full as it happened, by its readings.
    pub card_full: bool,
    /// The text came out of a container.
    pub container: bool,
    /// The program, by the name of its adapter; absent: nothing is known of it.
    pub program: Option<&'a str>,
    /// The command that it was started with.
    pub argv: &'a [String],
    /// What a person pasted beside the log; absent: there is no paste.
    pub pasted: Option<&'a Pasted>,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of one case, independent of each other"
)]
pub struct Facts {
    /// Where it happened.
    pub(super) phase: Option<Phase>,
    backend: Backend,
    /// It runs in a container.
    pub(super) container: bool,
    /// It runs in WSL.
    pub(super) wsl: bool,
    /// It runs on Windows.
    pub(super) windows: bool,
    /// It is packaged with Nix, or runs on NixOS.
    pub(super) nix: bool,
    /// Its packages of Python lie in the Nix store.
    pub(super) in_nix_store: bool,
    /// The text names a build of a native program for cards.
    card_build: bool,
    /// Bytes that were asked for in vain.
    asked: Option<u64>,
    /// Bytes of the card in all.
    pub(super) card_memory: Option<u64>,
    /// Bytes of the card that were free as the request failed.
    free: Option<u64>,
    /// Bytes of the card that are neither free nor this program's own.
    others: Option<u64>,
    /// Bytes of the host in all.
    pub(super) ram: Option<u64>,
    /// Cards that the program found.
    pub(super) cards: usize,
    /// One of them is the processor's own graphics.
    integrated: bool,
    /// `gfx1100`.
    pub(super) arch: Option<String>,
    /// The same by the name of the card, for programs that print no number.
    arch_by_name: Option<&'static str>,
    /// Its name.
    card: Option<String>,
    /// Variable that hides cards, with its value.
    pub(super) mask: Option<String>,
    /// The architecture that `HSA_OVERRIDE_GFX_VERSION` makes of the card.
    taken_for: Option<String>,
    /// The card was full by its readings.
    pub(super) card_full: bool,
    /// Names of variables and options that the text shows as set.
    set: Vec<String>,
    /// Which program it is.
    program: Option<String>,
    /// Where the first of the last exceptions was raised.
    origin: Origin,
    /// Release of ROCm that torch was built with.
    rocm: Option<(u32, u32)>,
    /// MIOpen's search is set to its fast mode.
    fast_find: bool,
    /// What it printed of its settings, and what its command sets.
    pub(super) settings: Settings,
    /// What a person pasted beside the log.
    pub(super) pasted: Pasted,
}

/// Where AMD publishes torch for Windows and Linux, with code for one card each.
/// <https://rocm.docs.amd.com/en/latest/install/rocm.html>
const AMD_INDEX: &str = "https://repo.amd.com/rocm/whl-multi-arch/";

/// Most names of variables that are kept.
const MOST_SET: usize = 64;

impl Facts {
    /// Takes a line.
    pub(super) fn observe(&mut self, text: &str) {
        self.settings.observe(text);
        self.origin.observe(text);
        self.fast_find |= decode::sets_fast_find(text);
        self.arch_by_name = self.arch_by_name.or_else(|| card::arch(text));
        if !ANY
            .as_ref()
            .is_some_and(|any| any.match_any(text.as_bytes()))
        {
            return;
        }
        let Some(p) = PATTERNS.as_ref() else {
            return;
        };
        if let Some(n) = p.asked.captures(text).and_then(|c| bytes(&c)) {
            self.asked = self.asked.max(Some(n));
        }
        if let Some(n) = p.total.captures(text).and_then(|c| bytes(&c)) {
            self.card_memory = Some(n);
        }
        self.observe_shares(p, text);
        if let Some(n) = p.ram.captures(text).and_then(|c| bytes(&c)) {
            self.ram = Some(n);
        }
        self.container |= p.container.is_match(text);
        self.wsl |= p.wsl.is_match(text);
        self.windows |= p.windows.is_match(text);
        self.in_nix_store |= p.nix_store.is_match(text);
        self.nix |= self.in_nix_store || p.nix.is_match(text);
        self.card_build |= p.card_build.is_match(text);
        self.observe_cards(p, text);
        if let Some(m) = p.mask.captures(text) {
            self.mask.get_or_insert_with(|| m["m"].to_owned());
        }
        if let Some(m) = p.taken_for.captures(text).filter(|_| !takes_away(text)) {
            self.taken_for = card::of_override(&m["v"]);
        }
        // a warning that advises a variable has not set it
        let command = p.command.is_match(text);
        if command {
            self.settings.observe_command(text.split_whitespace());
        }
        for found in p.set.captures_iter(text).filter(|_| command) {
            let name = found.name("k").or_else(|| found.name("o"));
            if let Some(name) = name.filter(|_| self.set.len() < MOST_SET) {
                self.set.push(name.as_str().to_owned());
            }
        }
        if let Some(found) = p.rocm.captures(text) {
            let number = |name: &str| found.name(name)?.as_str().parse().ok();
            let major = number("a").or_else(|| number("c"));
            let minor = number("b").or_else(|| number("d"));
            self.rocm = self.rocm.or(major.zip(minor));
        }
        self.observe_backend(p, text);
    }

    /// What of the card is free, and what others hold. Some ROCm releases print numbers that are
    /// larger than any card.
    fn observe_shares(&mut self, p: &Patterns, text: &str) {
        let Some(total) = self.card_memory else {
            return;
        };
        let part = |r: &Regex| r.captures(text).and_then(|c| bytes(&c));
        let Some(free) = part(&p.free).filter(|free| *free <= total) else {
            return;
        };
        self.free = Some(free);
        if let Some(own) = part(&p.own) {
            self.others = (total - free).checked_sub(own);
        }
    }

    fn observe_cards(&mut self, p: &Patterns, text: &str) {
        if let Some(found) = p.device.captures(text) {
            let named = |n: &regex::Captures<'_>| n["n"].parse::<usize>().ok();
            let is_card = p.arch.is_match(text)
                || ["AMD", "Radeon", "NVIDIA", "GeForce", "RADV"]
                    .iter()
                    .any(|w| text.contains(w));
            if let Some(n) = named(&found).filter(|_| is_card) {
                self.cards = self.cards.max(n + 1);
                self.integrated |= p.integrated.is_match(text);
                self.card
                    .get_or_insert_with(|| found["name"].trim().to_owned());
            }
        }
        if let Some(found) = p.arch.captures(text) {
            self.arch.get_or_insert_with(|| found["a"].to_owned());
        }
    }

    fn observe_backend(&mut self, p: &Patterns, text: &str) {
        if let Some(told) = Backend::of_line(text) {
            self.backend = told;
            return;
        }
        if self.backend != Backend::Unknown {
            return;
        }
        self.backend = if p.vulkan.is_match(text) {
            Backend::Vulkan
        } else if p.hip.is_match(text) {
            Backend::Hip
        } else if p.cuda.is_match(text) {
            Backend::Cuda
        } else {
            Backend::Unknown
        };
    }

    /// A new job: what the last one asked for is past.
    pub(super) fn forget_failure(&mut self) {
        self.asked = None;
        self.others = None;
        self.free = None;
        self.origin = Origin::default();
    }

    /// With what is known beside the text, which counts for more.
    pub(super) fn with(&self, known: &Known<'_>) -> Self {
        let mut all = self.clone();
        all.phase = known.phase;
        all.card_full = known.card_full;
        all.container |= known.container;
        if known.backend != Backend::Unknown {
            all.backend = known.backend;
        }
        if let Some(bytes) = known.card_memory {
            all.card_memory = Some(bytes.0);
        }
        if let Some(arch) = known.arch {
            all.arch = Some(arch.to_owned());
        }
        // under an override the runtime tells the architecture of another card
        let told = all
            .arch
            .take()
            .filter(|arch| all.arch_by_name.is_none() || all.taken_for.as_ref() != Some(arch));
        all.arch = told.or_else(|| all.arch_by_name.map(str::to_owned));
        all.program = known.program.map(str::to_owned);
        if let Some(pasted) = known.pasted {
            all.pasted = pasted.clone();
            all.ram = all.ram.or_else(|| pasted.ram());
            all.card_memory = all.card_memory.or_else(|| pasted.card_memory());
        }
        // what the program printed of itself counts for more than its command
        let mut settings = Settings::default();
        settings.observe_command(known.argv.iter().map(String::as_str));
        all.settings.add(settings);
        all
    }

    /// What the program computes with.
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    /// Whether the command asks for the processor.
    pub fn asks_for_cpu(&self) -> bool {
        self.was_set("--cpu") || self.was_set("--use-cpu")
    }

    /// Whether the text names a build of a native program for cards.
    pub const fn is_card_build(&self) -> bool {
        self.card_build
    }

    /// Whether one request was larger than the whole card.
    pub(super) fn asks_for_more_than_the_card(&self) -> bool {
        matches!((self.asked, self.card_memory), (Some(asked), Some(total)) if asked > total)
    }

    /// Whether other processes hold a large part of the card.
    pub(super) fn is_taken_by_others(&self) -> bool {
        let enough = |others: u64, total: u64| others > total / 4 && others >= 2 << 30;
        matches!((self.others, self.card_memory), (Some(o), Some(total)) if enough(o, total))
    }

    /// Whether far more of the card was free than was asked for.
    pub(super) fn has_plenty_free(&self) -> bool {
        let plenty = |free: u64, asked: u64| free >= 2 << 30 && free / 4 >= asked;
        matches!((self.free, self.asked), (Some(free), Some(asked)) if plenty(free, asked))
    }

    /// Whether the card's memory is the half of the host's that Linux gives to an APU.
    pub(super) fn is_half_of_ram(&self) -> bool {
        let half = |total: u64, ram: u64| total.abs_diff(ram / 2) < ram / 20;
        matches!((self.card_memory, self.ram), (Some(total), Some(ram)) if half(total, ram))
    }

    /// Whether the processor's own graphics is one of several cards.
    pub(super) const fn has_integrated_beside(&self) -> bool {
        self.integrated && self.cards > 1
    }

    /// Whether an override makes ROCm take the card for one of another family.
    pub(super) fn is_taken_for_another_family(&self) -> bool {
        let arch = self.arch.as_deref().zip(self.taken_for.as_deref());
        !self.has_integrated_beside() && arch.is_some_and(|(own, other)| card::differ(own, other))
    }

    /// Whether it is one of these programs, or made from one of them.
    pub(super) fn is_program(&self, names: &[String]) -> bool {
        let made_from = |name: &String, program: &str| {
            let rest = program.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let program = self.program.as_deref();
        program.is_some_and(|p| names.iter().any(|name| made_from(name, p)))
    }

    /// The program, where it is known.
    pub(super) fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    /// The options that the command has.
    pub(super) fn options(&self) -> impl Iterator<Item = &str> {
        let all = self.set.iter().map(String::as_str);
        all.filter(|name| name.starts_with("--"))
    }

    /// Whether the text shows that a variable or an option was set.
    pub(super) fn was_set(&self, name: &str) -> bool {
        self.set.iter().any(|s| s == name)
    }

    /// What to do about a decode that stands still.
    fn decode_that_stands(&self) -> String {
        let in_force = InForce {
            tiles: self.settings.get(Setting::Tiles) == Some("on"),
            fast_find: self.fast_find,
        };
        decode::that_stands(self.backend, in_force)
    }

    /// The command that installs AMD's own wheels for the card.
    fn wheels(&self) -> String {
        let arch = self.arch.as_deref().filter(|a| a.starts_with("gfx"));
        let device = arch.unwrap_or("all");
        format!(
            "`pip install --index-url {AMD_INDEX} \"torch[device-{device}]\" \"torchvision[device-{device}]\" torchaudio`"
        )
    }

    /// What to do about a ROCm that came out before the card; none: it knows the card, or one of
    /// the two is not known.
    pub(super) fn stack_older_than_card(&self) -> Option<String> {
        let arch = self.arch.as_deref()?;
        let has = self.rocm?;
        let first = card::first_release(arch).filter(|first| has < *first)?;
        Some(format!(
            "this torch is built with ROCm {}.{}, which has no code for {arch} (from {}.{} on): install a newer one, {}, or in a container take an image with it; no setting of MIOpen helps",
            has.0,
            has.1,
            first.0,
            first.1,
            self.wheels()
        ))
    }

    /// The words of a fact.
    pub(super) fn place(&self, name: &str) -> Option<String> {
        match name {
            "asked" => self.asked.map(gib),
            "total" => self.card_memory.map(gib),
            "ram" => self.ram.map(gib),
            "others" => self.others.map(gib),
            "free" => self.free.map(gib),
            "arch" => self.arch.clone(),
            "wheels" => Some(self.wheels()),
            "decode" => Some(self.decode_that_stands()),
            "mask" => self.mask.clone(),
            "taken_for" => self.taken_for.clone(),
            "card" => self.card.clone(),
            "node" | "pack" | "package" | "file" => self.origin.place(name),
            _ => self.pasted.place(name).or_else(|| {
                let (setting, _) = Setting::ALL.iter().find(|(_, place)| *place == name)?;
                self.settings.get(*setting).map(str::to_owned)
            }),
        }
    }
}

/// Whether a line that names a variable says that it is not set, or only advises it.
fn takes_away(text: &str) -> bool {
    let words = ["unset", "without", "try ", "Try ", "should", "may ", "e.g."];
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests;
