//! Which profile suits a machine.

use crate::model::Bytes;
use crate::model::sample::Vendor;

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

/// The profile whose conditions hold and say most; the user's own before a shipped
/// one that says as much. Absent: no profile's conditions hold.
pub fn best(profiles: &[Profile], machine: &Machine) -> Option<Choice> {
    let mut candidates: Vec<(u32, bool, &Profile, Option<&Card>)> = Vec::new();
    for p in profiles {
        if let Some((weight, card)) = fits(&p.matches, machine) {
            candidates.push((weight, !p.is_shipped(), p, card));
        }
    }
    // Of equals the one whose id comes first in the alphabet, so that the choice is stable.
    candidates.sort_by(|a, b| {
        let key = |c: &(u32, bool, &Profile, Option<&Card>)| (c.0, c.1);
        key(b)
            .cmp(&key(a))
            .then_with(|| a.2.id.value.cmp(&b.2.id.value))
    });
    let (_, _, profile, card) = candidates.first()?;
    Some(Choice {
        id: profile.id.value.clone(),
        why: why(profile, *card, machine),
    })
}

/// How much the conditions say, and the card for which they hold; absent: they do not hold.
fn fits<'m>(m: &Match, machine: &'m Machine) -> Option<(u32, Option<&'m Card>)> {
    let listed = |list: &Option<Vec<At<String>>>, word: &str| {
        list.as_ref()
            .is_none_or(|l| l.iter().any(|v| v.value == word))
    };
    if !listed(&m.os, "linux") || !listed(&m.workload, &machine.adapter) {
        return None;
    }
    let mut weight = if m.workload.is_some() { 8 } else { 0 };
    if matches!(&m.vendor, Some(v) if v.value == MatchVendor::NoGpu) {
        let none = machine.cards.iter().all(|c| c.vendor.is_none());
        return none.then_some((weight + 1, None));
    }
    let asks_card = m.vendor.is_some()
        || m.gfx.is_some()
        || m.sm.is_some()
        || m.vram_min.is_some()
        || m.vram_max.is_some()
        || m.unified.is_some();
    if !asks_card {
        return Some((weight, machine.cards.first()));
    }
    let card = machine.cards.iter().find(|c| card_fits(m, c))?;
    weight += u32::from(m.vendor.is_some())
        + 16 * u32::from(m.gfx.is_some() || m.sm.is_some())
        + 2 * u32::from(m.vram_min.is_some() || m.vram_max.is_some())
        + 2 * u32::from(m.unified.is_some());
    Some((weight, Some(card)))
}

/// A condition on something unknown does not hold.
fn card_fits(m: &Match, card: &Card) -> bool {
    let arch = |list: &Option<Vec<At<String>>>, have: &Option<String>| {
        list.as_ref().is_none_or(|l| {
            have.as_ref()
                .is_some_and(|h| l.iter().any(|v| v.value == *h))
        })
    };
    let vendor = m.vendor.as_ref().is_none_or(|v| match v.value {
        MatchVendor::Card(vendor) => card.vendor == Some(vendor),
        MatchVendor::NoGpu => false,
    });
    let vram = |limit: &Option<At<Bytes>>, ok: fn(Bytes, Bytes) -> bool| {
        limit
            .as_ref()
            .is_none_or(|l| card.vram.is_some_and(|v| ok(v, l.value)))
    };
    vendor
        && arch(&m.gfx, &card.gfx)
        && arch(&m.sm, &card.sm)
        && vram(&m.vram_min, |have, least| have >= least)
        && vram(&m.vram_max, |have, most| have <= most)
        && m.unified.as_ref().is_none_or(|u| u.value == card.unified)
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
        None => "card of unknown maker",
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
