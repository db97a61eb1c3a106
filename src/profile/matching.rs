//! Which profile suits a machine.

use crate::model::Bytes;
use crate::model::Vendor;

use super::place::At;
use super::schema::{Match, MatchVendor, Profile};

/// A card, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Card {
    /// Name for people, such as `RX 7900 XTX`.
    pub name: Option<String>,
    /// Maker.
    pub vendor: Option<Vendor>,
    /// AMD architecture: `gfx1100`.
    pub gfx: Option<String>,
    /// NVIDIA architecture: `sm_90`.
    pub sm: Option<String>,
    /// VRAM as the driver reports it.
    pub vram: Option<Bytes>,
    /// VRAM is a part of the host's memory.
    pub unified: bool,
}

/// The machine and what is to run on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// The cards that the run may use: the supervised one, or all.
    pub cards: Vec<Card>,
    /// Adapter id of the workload (`framepack`, `comfyui`, …).
    pub adapter: String,
}

/// The profile that suits best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its id.
    pub id: String,
    /// Why, as a sentence for the user that ends in the id.
    pub why: String,
}

/// Whether a condition of `[match]` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// The fact is not known; the condition then counts as not met.
    Unknown,
}

/// What [`Condition::have`] is of every condition on a card where there is none.
pub const NO_GPU: &str = "no GPU";

/// One condition of `[match]` and what the machine has in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What is compared: `maker`, `architecture`, `VRAM`, `memory`, `workload`, `system`, `GPU`.
    pub what: &'static str,
    /// What the profile asks for: `gfx1100 or gfx1101`, `at least 23.0 GiB`.
    pub wanted: String,
    /// What the machine has; absent: not known.
    pub have: Option<String>,
    /// The comparison.
    pub holds: Holds,
}

impl Condition {
    fn of(what: &'static str, wanted: String, have: Option<String>, holds: bool) -> Self {
        let holds = match (&have, holds) {
            (None, _) => Holds::Unknown,
            (Some(_), true) => Holds::Yes,
            (Some(_), false) => Holds::No,
        };
        Self {
            what,
            wanted,
            have,
            holds,
        }
    }
}

/// What came of comparing `[match]` with a machine.
pub(super) struct Judged<'m> {
    /// Every condition, with the card that meets most of them.
    pub conditions: Vec<Condition>,
    /// That card.
    card: Option<&'m Card>,
    /// How much the conditions say.
    weight: u32,
}

impl Judged<'_> {
    /// Whether every condition holds.
    pub(super) fn fits(&self) -> bool {
        self.conditions.iter().all(|c| c.holds == Holds::Yes)
    }
}

/// The profile whose conditions hold and say most; the user's own before a shipped
/// one that says as much. Absent: no profile's conditions hold.
pub fn best(profiles: &[Profile], machine: &Machine) -> Option<Choice> {
    let mut candidates: Vec<(Judged<'_>, &Profile)> = profiles
        .iter()
        .map(|p| (judge(&p.matches, machine), p))
        .filter(|(judged, _)| judged.fits())
        .collect();
    // Of equals the one whose id comes first in the alphabet, so that the choice is stable.
    candidates.sort_by(|(a, p), (b, q)| {
        let key = |j: &Judged<'_>, p: &Profile| (j.weight, !p.is_shipped());
        key(b, q)
            .cmp(&key(a, p))
            .then_with(|| p.id.value.cmp(&q.id.value))
    });
    let (judged, profile) = candidates.first()?;
    Some(Choice {
        id: profile.id.value.clone(),
        why: why(profile, judged.card, machine),
    })
}

/// Whether what names an adapter is meant for another: for the same, and for a fork, whose
/// name begins with it (`framepack-studio` is a `framepack`).
pub(super) fn is_meant_for(wanted: &str, adapter: &str) -> bool {
    let rest = adapter.strip_prefix(wanted);
    !wanted.is_empty() && rest.is_some_and(|r| r.is_empty() || r.starts_with('-'))
}

/// Compares every condition. Of several cards the first that meets all of them
/// counts, else the one that misses fewest.
pub(super) fn judge<'m>(m: &Match, machine: &'m Machine) -> Judged<'m> {
    let mut conditions = Vec::new();
    if let Some(os) = &m.os {
        let holds = os.iter().any(|v| v.value == OS);
        conditions.push(Condition::of(
            "system",
            either(os),
            Some(String::from(OS)),
            holds,
        ));
    }
    if let Some(list) = &m.workload {
        let have = Some(machine.adapter.clone()).filter(|a| !a.is_empty());
        let holds = list
            .iter()
            .any(|v| is_meant_for(&v.value, &machine.adapter));
        conditions.push(Condition::of("workload", either(list), have, holds));
    }
    let no_gpu = matches!(&m.vendor, Some(v) if v.value == MatchVendor::NoGpu);
    let card = if no_gpu {
        conditions.push(without_gpu(machine));
        None
    } else {
        machine
            .cards
            .iter()
            .min_by_key(|card| missed(&of_card(m, Some(card))))
    };
    conditions.extend(of_card(m, card));
    Judged {
        conditions,
        card,
        weight: weight(m),
    }
}

/// The only system there is.
const OS: &str = "linux";

/// How many conditions do not hold.
fn missed(conditions: &[Condition]) -> usize {
    let bad = conditions.iter().filter(|c| c.holds != Holds::Yes);
    bad.count()
}

/// How much the conditions say: an architecture more than a workload, and so on.
fn weight(m: &Match) -> u32 {
    8 * u32::from(m.workload.is_some())
        + u32::from(m.vendor.is_some())
        + 16 * u32::from(m.gfx.is_some() || m.sm.is_some())
        + 2 * u32::from(m.vram_min.is_some() || m.vram_max.is_some())
        + 2 * u32::from(m.unified.is_some())
}

fn without_gpu(machine: &Machine) -> Condition {
    let cards: Vec<&str> = machine
        .cards
        .iter()
        .filter_map(|c| Some(c.name.as_deref().unwrap_or(maker(c.vendor?))))
        .collect();
    let none = cards.is_empty();
    let have = if none {
        String::from("none")
    } else {
        cards.join(", ")
    };
    Condition::of("GPU", String::from("none"), Some(have), none)
}

/// The conditions on a card, compared with this one; absent: there is no card.
fn of_card(m: &Match, card: Option<&Card>) -> Vec<Condition> {
    let mut out = Vec::new();
    let mut add = |what, wanted: String, have: Option<String>, holds: bool| {
        let have = card.map_or_else(|| Some(String::from(NO_GPU)), |_| have);
        out.push(Condition::of(what, wanted, have, holds));
    };
    if let Some(MatchVendor::Card(vendor)) = m.vendor.as_ref().map(|v| v.value) {
        let have = card.and_then(|c| c.vendor);
        let name = have.map(|v| maker(v).to_owned());
        add(
            "maker",
            maker(vendor).to_owned(),
            name,
            have == Some(vendor),
        );
    }
    let gfx = card.and_then(|c| c.gfx.as_ref());
    let sm = card.and_then(|c| c.sm.as_ref());
    for (list, have) in [(&m.gfx, gfx), (&m.sm, sm)] {
        if let Some(list) = list {
            let holds = have.is_some_and(|h| list.iter().any(|v| v.value == *h));
            add("architecture", either(list), have.cloned(), holds);
        }
    }
    let vram = card.and_then(|c| c.vram);
    let least = (
        &m.vram_min,
        "at least",
        Bytes::ge as fn(&Bytes, &Bytes) -> bool,
    );
    for (limit, words, ok) in [least, (&m.vram_max, "at most", Bytes::le)] {
        if let Some(limit) = limit {
            let holds = vram.is_some_and(|v| ok(&v, &limit.value));
            let have = vram.map(|v| v.to_string());
            add("VRAM", format!("{words} {}", limit.value), have, holds);
        }
    }
    if let Some(unified) = &m.unified {
        let have = card.map(|c| c.unified);
        let words = have.map(|u| memory(u).to_owned());
        let holds = have == Some(unified.value);
        add("memory", memory(unified.value).to_owned(), words, holds);
    }
    out
}

const fn maker(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Amd => "AMD",
        Vendor::Nvidia => "NVIDIA",
        Vendor::Unknown => "unknown",
    }
}

const fn memory(unified: bool) -> &'static str {
    if unified {
        "shared with the host"
    } else {
        "the card's own"
    }
}

/// `gfx1100, gfx1101 or gfx1102`.
fn either(values: &[At<String>]) -> String {
    let words: Vec<&str> = values.iter().map(|v| v.value.as_str()).collect();
    match words.split_last() {
        None => String::from("nothing"),
        Some((only, [])) => (*only).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

fn why(profile: &Profile, card: Option<&Card>, machine: &Machine) -> String {
    let id = &profile.id.value;
    let Some(card) = card else {
        return if machine.cards.is_empty() {
            format!("no GPU found: {id}")
        } else {
            format!("no card of a known maker: {id}")
        };
    };
    let m = &profile.matches;
    let maker = match card.vendor {
        Some(Vendor::Amd) => "AMD card",
        Some(Vendor::Nvidia) => "NVIDIA card",
        Some(Vendor::Unknown) | None => "card of unknown maker",
    };
    if m.gfx.is_none() && m.sm.is_none() && m.unified.is_none() && m.vram_min.is_none() {
        return format!("{maker} without an own profile: {id}");
    }
    let name = card.name.as_deref().unwrap_or(maker);
    let mut facts = Vec::new();
    facts.extend(card.gfx.clone().or_else(|| card.sm.clone()));
    let shares = if card.unified { " shared" } else { "" };
    facts.extend(card.vram.map(|v| format!("{v}{shares}")));
    if facts.is_empty() {
        return format!("{name}: {id}");
    }
    format!("{name} is {}: {id}", facts.join(" with "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Catalog;

    fn choose(cards: Vec<Card>) -> String {
        let machine = Machine {
            cards,
            adapter: String::from("framepack"),
        };
        best(&Catalog::with_folder(None).all(), &machine)
            .unwrap()
            .why
    }

    fn amd(gfx: Option<&str>, gib: u64, unified: bool) -> Card {
        Card {
            vendor: Some(Vendor::Amd),
            gfx: gfx.map(str::to_owned),
            vram: Some(Bytes::gib(gib)),
            unified,
            ..Card::default()
        }
    }

    #[test]
    fn a_fork_takes_what_is_meant_for_its_origin() {
        for (wanted, adapter, holds) in [
            ("framepack", "framepack", true),
            ("framepack", "framepack-studio", true),
            ("framepack-studio", "framepack", false),
            ("comfyui", "framepack", false),
            ("diff", "diffusers", false),
            ("", "", false),
        ] {
            assert_eq!(is_meant_for(wanted, adapter), holds, "{wanted} {adapter}");
        }
    }

    #[test]
    fn the_most_specific_profile_wins_and_says_why() {
        let xtx = Card {
            name: Some(String::from("RX 7900 XTX")),
            ..amd(Some("gfx1100"), 24, false)
        };
        assert_eq!(
            choose(vec![xtx]),
            "RX 7900 XTX is gfx1100 with 24.0 GiB: rx7900xtx-safe"
        );
        assert_eq!(
            choose(vec![amd(Some("gfx1151"), 96, true)]),
            "AMD card is gfx1151 with 96.0 GiB shared: strix-halo-wan"
        );
        let other = "AMD card without an own profile: generic-amd";
        assert_eq!(choose(vec![amd(Some("gfx1100"), 20, false)]), other);
        assert_eq!(choose(vec![amd(Some("gfx1100"), 48, false)]), other);
        assert_eq!(choose(vec![amd(Some("gfx1201"), 16, false)]), other);
        let nvidia = Card {
            vendor: Some(Vendor::Nvidia),
            sm: Some(String::from("sm_90")),
            ..Card::default()
        };
        assert_eq!(
            choose(vec![nvidia]),
            "NVIDIA card without an own profile: generic-nvidia"
        );
    }

    #[test]
    fn unknown_facts_do_not_count_as_met() {
        let other = "AMD card without an own profile: generic-amd";
        assert_eq!(choose(vec![amd(None, 24, false)]), other);
        let mut card = amd(Some("gfx1100"), 24, false);
        card.vram = None;
        assert_eq!(choose(vec![card]), other);
    }

    #[test]
    fn no_card_is_a_machine_too() {
        assert_eq!(choose(Vec::new()), "no GPU found: cpu-only");
        assert_eq!(
            choose(vec![Card::default()]),
            "no card of a known maker: cpu-only"
        );
        assert_eq!(best(&[], &Machine::default()), None);
    }
}
