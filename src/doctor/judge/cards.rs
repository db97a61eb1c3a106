//! The cards themselves.

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Id};
use crate::model::{Bytes, GpuSample, is_suspended};

pub(super) fn judge(facts: &Facts, out: &mut Vec<Finding>) {
    for card in &facts.cards {
        one(card, facts.host.mem_total.last().copied(), out);
    }
    for device in facts.unbound() {
        let (holder, cure) = match device.driver.as_deref() {
            Some(driver) => (
                format!("is held by the driver {driver}"),
                "give the card back to amdgpu (it may be set aside for a virtual machine), or leave it if that is meant",
            ),
            None => (
                "has no driver".to_owned(),
                "sudo modprobe amdgpu; see `dmesg | grep amdgpu` why it did not take the card (blacklisted, nomodeset, missing firmware, kernel too old)",
            ),
        };
        let what = format!("the AMD card at {} {holder}", device.address);
        out.push(if device.driver.is_some() {
            Finding::warning(Id::DriverNotBound, what, cure)
        } else {
            Finding::error(Id::DriverNotBound, what, cure)
        });
    }
    if facts.cards.is_empty() && facts.unbound().next().is_none() {
        out.push(no_card(facts));
    }
}

fn one(card: &GpuSample, ram: Option<Bytes>, out: &mut Vec<Finding>) {
    let GpuSample { id, name, .. } = card;
    let arch = card.arch.as_deref().unwrap_or("architecture not told");
    let memory = card.pool().map_or_else(String::new, |(_, total)| {
        let pool = if card.pool_is_gtt() { "GTT" } else { "VRAM" };
        format!(", {total} of {pool}")
    });
    let what = format!("{name} at {id}, {arch}{memory}");
    if card.state.last().is_some_and(|s| is_suspended(s)) {
        out.push(
            Finding::note(Id::CardAsleep, format!("{what}, sleeps")).why(
                "it was not woken to be read; a sleeping card has no readings, which is not zero",
            ),
        );
    } else {
        out.push(Finding::ok(Id::CardOk, what));
    }
    if let Some(level) = card.perf_level.last().filter(|l| *l != "auto") {
        out.push(
            Finding::warning(
                Id::PerfLevelForced,
                format!("the performance level of {id} is forced: {level}"),
                format!(
                    "echo auto | sudo tee /sys/bus/pci/devices/{id}/power_dpm_force_performance_level"
                ),
            )
            .why("clocks and power of a forced card say nothing about work, and `low` makes everything slow"),
        );
    }
    if card
        .resets
        .last()
        .is_some_and(|r| r.core_dump == Some(true))
    {
        out.push(
            Finding::warning(
                Id::CardWasReset,
                format!("{id} was reset, or hung, in the last minutes"),
                "see `dmesg | grep amdgpu` for the cause; a card that does not recover needs a restart of the machine",
            )
            .why("the driver has left a device core dump, which it keeps for 5 minutes"),
        );
    }
    for d in &card.disagreements {
        let note = d
            .note
            .as_deref()
            .map_or_else(String::new, |n| format!("; {n}"));
        out.push(
            Finding::note(
                Id::SourcesDisagree,
                format!(
                    "{} of {id}: one source says {}, another {}",
                    d.value, d.first, d.second
                ),
            )
            .why(format!(
                "both are shown, neither is taken for the truth{note}"
            )),
        );
    }
    out.extend(ram.and_then(|ram| ttm(card, ram)));
}

/// An APU takes from the larger of carve-out and GTT, never from both.
fn ttm(card: &GpuSample, ram: Bytes) -> Option<Finding> {
    let gtt = *card.gtt_total.last()?;
    // a limit of half the memory is the kernel's default
    let low = card.pool_is_gtt() && gtt.0 < ram.0 / 5 * 3;
    low.then(|| {
        let pages = ram.0 / 4096 / 4 * 3;
        Finding::note(
            Id::TtmLimitLow,
            format!("{} may map {gtt} of the {ram} of memory", card.name),
        )
        .why("the kernel's default is half of it; a model that is larger fails although memory is free")
        .cure(format!(
            "kernel parameters ttm.pages_limit={pages} ttm.page_pool_size={pages} (three quarters), then restart the machine"
        ))
    })
}

fn no_card(facts: &Facts) -> Finding {
    let system = facts.system.known();
    let contained = system.and_then(|s| s.container.as_deref());
    let silent = facts.sources.iter().find(|s| {
        use crate::model::sample::SourceState::{Lost, Stale, Starting};
        s.name.starts_with("sysfs") && matches!(s.state, Starting | Stale | Lost)
    });
    let (why, cure) = if facts.wsl() {
        (
            "under WSL2 there is no amdgpu and nothing below /sys: no telemetry of the GPU; a run is judged by its process and its output",
            "nothing to be done under WSL2; Linux itself has the readings".to_owned(),
        )
    } else if let Some(source) = silent {
        (
            "the search for cards has not answered, so there may be one",
            format!("see `dmesg`; {} blocks", source.name),
        )
    } else if contained.is_some() {
        (
            "this is a container: it sees the cards that are passed to it",
            "start it with --device /dev/kfd --device /dev/dri --group-add video --group-add render".to_owned(),
        )
    } else {
        (
            "neither amdgpu nor NVML shows one; a run is judged by its process alone",
            "if there is a card: `lspci -nnk` shows it and its driver".to_owned(),
        )
    };
    Finding::warning(Id::NoCard, "no GPU was found", cure).why(why)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, found, healthy};
    use super::*;
    use crate::doctor::facts::PciDisplay;
    use crate::doctor::finding::Severity;
    use crate::model::{Disagreement, Metric, Resets};

    fn fresh(value: &str) -> Metric<String> {
        Metric::Fresh(value.to_owned())
    }

    #[test]
    fn no_card_is_told_with_its_reason() {
        let mut facts = healthy();
        facts.cards.clear();
        facts.system_mut().amd_devices.clear();
        assert!(found(&facts, Id::NoCard).cure.unwrap().contains("lspci"));
        facts.system_mut().container = Some("docker".to_owned());
        assert!(
            found(&facts, Id::NoCard)
                .cure
                .unwrap()
                .contains("--device /dev/kfd")
        );
        facts.system_mut().wsl = true;
        assert!(found(&facts, Id::NoCard).why.unwrap().contains("WSL2"));
    }

    #[test]
    fn a_card_without_its_driver_is_not_no_card() {
        let mut facts = healthy();
        facts.cards.clear();
        facts.system_mut().amd_devices[0].driver = None;
        let unbound = found(&facts, Id::DriverNotBound);
        assert_eq!(unbound.severity, Severity::Error);
        assert!(unbound.cure.unwrap().contains("modprobe amdgpu"));
        assert!(absent(&facts, Id::NoCard));
        facts.system_mut().amd_devices = vec![PciDisplay {
            address: "0000:04:00.0".to_owned(),
            driver: Some("vfio-pci".to_owned()),
        }];
        let held = found(&facts, Id::DriverNotBound);
        assert_eq!(held.severity, Severity::Warning);
        assert!(held.what.contains("vfio-pci"));
    }

    #[test]
    fn sleep_force_and_disagreement_are_told() {
        let mut facts = healthy();
        facts.cards[0].state = fresh("suspended");
        facts.cards[0].perf_level = fresh("low");
        facts.cards[0].resets = Metric::Fresh(Resets {
            core_dump: Some(true),
            ..Resets::default()
        });
        facts.cards[0].disagreements = vec![Disagreement {
            value: "busy".to_owned(),
            first: "97 %".to_owned(),
            second: "0 %".to_owned(),
            note: None,
        }];
        assert_eq!(found(&facts, Id::CardAsleep).severity, Severity::Note);
        assert!(
            found(&facts, Id::PerfLevelForced)
                .cure
                .unwrap()
                .contains("echo auto")
        );
        assert_eq!(found(&facts, Id::SourcesDisagree).severity, Severity::Note);
        assert_eq!(found(&facts, Id::CardWasReset).severity, Severity::Warning);
        assert!(absent(&facts, Id::CardOk));
    }

    #[test]
    fn an_apu_that_may_map_half_is_told_how_to_map_more() {
        let mut facts = healthy();
        facts.cards[0].apu = true;
        facts.cards[0].vram_total = Metric::Fresh(Bytes::mib(512));
        facts.cards[0].vram_used = Metric::Fresh(Bytes(0));
        facts.cards[0].gtt_used = Metric::Fresh(Bytes(0));
        facts.cards[0].gtt_total = Metric::Fresh(Bytes::gib(32));
        let low = found(&facts, Id::TtmLimitLow);
        assert!(low.cure.unwrap().contains("ttm.pages_limit=12582912"));
        facts.cards[0].gtt_total = Metric::Fresh(Bytes::gib(60));
        assert!(absent(&facts, Id::TtmLimitLow));
    }
}
