//! Which card is supervised, and which profile suits the machine.

use crate::cli::CliError;
use crate::model::Vendor;
use crate::model::{Bytes, GpuSample};
use crate::profile::{Card, Catalog, Machine, Profile, best};

/// The card that the run supervises; `None`: there is no GPU, which is a notice.
pub(in crate::cli) fn choose(
    cards: &[GpuSample],
    asked: Option<&str>,
) -> Result<Option<GpuSample>, CliError> {
    let Some(asked) = asked else {
        // the one with the most memory: an APU beside a card is rarely meant
        return Ok(cards
            .iter()
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
        .map(|c| format!("{} = {} at {}", c.index, c.name, c.id))
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
        vram: card.vram_total.last().copied(),
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
    }
}
