//! Which card is supervised, and which profile suits the machine.

use crate::cli::CliError;
use crate::model::Vendor;
use crate::model::visible::Visible;
use crate::model::{Bytes, GpuSample};
use crate::profile::{Card, Catalog, Machine, Profile, best};

/// The card that the run supervises, where nobody names one: the first that the
/// program is shown.
pub(in crate::cli) fn choose_shown(
    cards: &[GpuSample],
    asked: Option<&str>,
    shown: &Visible,
) -> Result<Option<GpuSample>, CliError> {
    match shown {
        Visible::These { cards: list, .. } if asked.is_none() => {
            Ok(list.first().and_then(|i| cards.get(*i)).cloned())
        }
        _ => choose(cards, asked),
    }
}

/// Where the program may use another card than the one that is supervised.
pub(super) fn mismatch(cards: &[GpuSample], card: &GpuSample, shown: &Visible) -> Option<String> {
    let name = |c: &GpuSample| format!("{} at {}", c.name, c.id);
    let chosen = name(card);
    match shown {
        Visible::Nothing { by } => Some(format!(
            "{by} shows the program no card; {chosen} is supervised all the same"
        )),
        Visible::Unknown { .. } if cards.len() < 2 => None,
        Visible::Unknown { by, why } => Some(format!(
            "which card {by} means is not known ({why}); {chosen} is supervised, name another with --gpu"
        )),
        Visible::These { cards: list, by } => {
            let named: Vec<&GpuSample> = list.iter().filter_map(|i| cards.get(*i)).collect();
            let first = named.first()?;
            if !named.iter().any(|c| c.id == card.id) {
                return Some(format!(
                    "{by} makes the program use {}, but {chosen} is supervised: give --gpu {} or change the variable",
                    name(first),
                    first.id
                ));
            }
            let others: Vec<String> = named
                .iter()
                .filter(|c| c.id != card.id)
                .map(|c| name(c))
                .collect();
            (!others.is_empty()).then(|| {
                let begins = if first.id == card.id {
                    ""
                } else {
                    " (it begins with the first of its list)"
                };
                format!(
                    "{by} shows the program {} cards{begins}; {chosen} is supervised, not {}",
                    named.len(),
                    others.join(" and ")
                )
            })
        }
        Visible::All => unguided(cards, card, &chosen),
    }
}

/// Nothing tells the program which card to use: it takes its runtime's first.
fn unguided(cards: &[GpuSample], card: &GpuSample, chosen: &str) -> Option<String> {
    let (runtime, variable) = runtime(card.vendor);
    let mut alike = cards.iter().filter(|c| c.vendor == card.vendor);
    let first = alike.clone().find(|c| c.compute_index == Some(0));
    match (card.compute_index, first) {
        (Some(0), _) => None,
        (Some(place), Some(first)) => Some(format!(
            "{chosen} is supervised, but {runtime} puts {} at {} first, and a program that is not told otherwise uses that: export {variable}={place} for the supervised one",
            first.name, first.id
        )),
        _ if alike.nth(1).is_none() => None,
        _ => Some(format!(
            "{chosen} is supervised; in which order {runtime} counts the cards is not known, so the program may use another"
        )),
    }
}

/// What a vendor's compute runtime is called, and the variable that chooses its cards.
const fn runtime(vendor: Vendor) -> (&'static str, &'static str) {
    match vendor {
        Vendor::Amd => ("HIP", "HIP_VISIBLE_DEVICES"),
        Vendor::Nvidia => ("CUDA", "CUDA_VISIBLE_DEVICES"),
        Vendor::Unknown => ("its runtime", "its variable"),
    }
}

/// The card that the run supervises; `None`: there is no GPU, which is a notice.
pub(in crate::cli) fn choose(
    cards: &[GpuSample],
    asked: Option<&str>,
) -> Result<Option<GpuSample>, CliError> {
    let Some(asked) = asked else {
        // the one with the most memory: an APU beside a card is rarely meant
        return Ok(cards
            .iter()
            .filter(|c| c.state.last().is_none_or(|state| state != "gone"))
            .max_by_key(|c| (!c.apu, total(c), std::cmp::Reverse(c.index)))
            .cloned());
    };
    let by_number = asked.parse::<u32>().ok();
    let wanted = asked.to_ascii_lowercase();
    cards
        .iter()
        .find(|c| by_number == Some(c.index) || is_address(&c.id.0, &wanted))
        .cloned()
        .map(Some)
        .ok_or_else(|| CliError::NoSuchGpu {
            asked: asked.to_owned(),
            there: describe(cards),
        })
}

/// `0000:0c:00.0`, also written without its domain.
fn is_address(id: &str, wanted: &str) -> bool {
    id == wanted || id.split_once(':').is_some_and(|(_, rest)| rest == wanted)
}

fn describe(cards: &[GpuSample]) -> String {
    if cards.is_empty() {
        return "no GPU was found on this machine".to_owned();
    }
    let list: Vec<String> = cards
        .iter()
        .map(|c| {
            let place = c
                .compute_index
                .map(|n| format!(" ({} {n})", runtime(c.vendor).0));
            format!(
                "{} = {} at {}{}",
                c.index,
                c.name,
                c.id,
                place.unwrap_or_default()
            )
        })
        .collect();
    format!("there are: {}", list.join(", "))
}

/// Memory of the pool that counts.
pub(super) fn total(card: &GpuSample) -> Option<Bytes> {
    card.pool().map(|(_, total)| total)
}

/// The profile that was asked for, or the best match, with the reason.
pub(in crate::cli) fn profile(
    catalog: &Catalog,
    asked: Option<&str>,
    card: Option<&GpuSample>,
    adapter: &str,
) -> Result<(Profile, String), CliError> {
    if let Some(asked) = asked {
        return Ok((catalog.get(asked)?, "asked for".to_owned()));
    }
    let choice = best(&catalog.all(), &with(card, adapter))
        .ok_or_else(|| CliError::NoProfile(catalog.ids().join(", ")))?;
    Ok((catalog.get(&choice.id)?, choice.why))
}

/// The machine as profiles look at it: the card that is used, what runs on it.
pub(in crate::cli) fn with(card: Option<&GpuSample>, adapter: &str) -> Machine {
    Machine {
        cards: card.map(as_card).into_iter().collect(),
        adapter: adapter.to_owned(),
    }
}

/// A card as profiles look at it.
pub(in crate::cli) fn as_card(card: &GpuSample) -> Card {
    let arch = |prefix: &str| card.arch.clone().filter(|a| a.starts_with(prefix));
    Card {
        name: Some(card.name.clone()),
        vendor: Some(card.vendor),
        gfx: (card.vendor == Vendor::Amd).then(|| arch("gfx")).flatten(),
        sm: (card.vendor == Vendor::Nvidia)
            .then(|| arch("sm_"))
            .flatten(),
        // on an APU the pool that models lie in, not the carve-out
        vram: if card.apu {
            total(card)
        } else {
            card.vram_total.last().copied()
        },
        unified: card.apu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuId, Metric};

    fn card(index: u32, address: &str, gib: u64, apu: bool) -> GpuSample {
        let mut g = GpuSample::unread(
            GpuId(address.to_owned()),
            index,
            Vendor::Amd,
            "card".to_owned(),
            "sysfs",
        );
        g.apu = apu;
        g.vram_total = Metric::Fresh(Bytes::gib(gib));
        g.vram_used = Metric::Fresh(Bytes(0));
        g
    }

    #[test]
    fn the_card_is_found_by_number_and_address() {
        let cards = [
            card(0, "0000:03:00.0", 24, false),
            card(1, "0000:0c:00.0", 96, true),
        ];
        let pick = |asked| choose(&cards, asked).map(|c| c.map(|c| c.index));
        assert_eq!(pick(None).unwrap(), Some(0), "a card before an APU");
        assert_eq!(pick(Some("1")).unwrap(), Some(1));
        assert_eq!(pick(Some("0000:0C:00.0")).unwrap(), Some(1));
        assert_eq!(pick(Some("03:00.0")).unwrap(), Some(0));
        let e = pick(Some("7")).unwrap_err();
        assert_eq!(e.exit_code(), 69);
        assert!(e.to_string().contains("0 = card at 0000:03:00.0"));
        assert_eq!(choose(&[], None).unwrap(), None);
        let mut cards = cards;
        cards[0].state = Metric::Fresh("gone".to_owned());
        let left = choose(&cards, None).unwrap().map(|c| c.index);
        assert_eq!(left, Some(1), "a card that is gone is not chosen");
    }
}
