//! One card's values through NVML.

use std::collections::HashMap;
use std::path::Path;

use nvml_wrapper::Device;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::{Bits, NvmlError};

use super::super::file::{ReadError, ReadResult};
use super::super::pci::PciAddress;
use super::super::track::Tracker;
use crate::model::{Bytes, GpuId, GpuSample, Link, Metric, ThrottleReason, Vendor};

/// An answer of NVML as ours: what a card does not offer is missing.
pub(super) fn answer<T>(what: &str, result: Result<T, NvmlError>) -> ReadResult<T> {
    result.map_err(|error| match error {
        NvmlError::NotSupported
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound => ReadError::Missing,
        other => ReadError::text(Path::new(what), other.to_string()),
    })
}

/// The card's PCI address; of a form that we do not know, NVML's own text.
pub(crate) fn id(device: &Device<'_>) -> Result<GpuId, NvmlError> {
    let bus = device.pci_info()?.bus_id;
    Ok(PciAddress::parse(&bus).map_or_else(|| GpuId(bus.to_lowercase()), PciAddress::id))
}

/// Reads every value that the card offers.
pub(super) fn read(
    device: &Device<'_>,
    trackers: &mut HashMap<GpuId, Tracker>,
) -> Result<GpuSample, NvmlError> {
    let id = id(device)?;
    let t = trackers.entry(id.clone()).or_default();
    let name = device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned());
    let mut s = GpuSample::unread(id, 0, Vendor::Nvidia, name, "nvml");
    s.arch = device
        .cuda_compute_capability()
        .ok()
        .map(|c| format!("sm_{}{}", c.major, c.minor));
    // A card that answers a query is awake: the query itself wakes it.
    s.state = Metric::Fresh("active".to_owned());
    let use_ = utilization(device, "utilization", Device::utilization_rates);
    s.busy = t.settle("gpu utilization", use_.clone().map(|u| f64::from(u.gpu)));
    s.mem_busy = t.settle("memory utilization", use_.map(|u| f64::from(u.memory)));
    let video = utilization(device, "decoder utilization", Device::decoder_utilization);
    s.video_busy = t.settle(
        "decoder utilization",
        video.map(|u| f64::from(u.utilization)),
    );
    let watts = |what, result| answer(what, result).map(|mw| f64::from(mw) / 1e3);
    s.power_w = t.settle("power", watts("power", device.power_usage()));
    s.power_cap_w = t.settle(
        "power limit",
        watts("power limit", device.enforced_power_limit()),
    );
    // NVIDIA's parts with unified memory (GB10) answer NotSupported: there is no VRAM
    // of their own, and the host's memory is told by the host.
    let memory = answer("memory", device.memory_info());
    s.vram_used = t.settle("memory in use", memory.clone().map(|m| Bytes(m.used)));
    s.vram_total = t.settle("memory", memory.map(|m| Bytes(m.total)));
    let edge = answer("temperature", device.temperature(TemperatureSensor::Gpu));
    s.temp_edge = t.settle("temperature", edge.map(f64::from));
    let clock = |what, kind| answer(what, device.clock_info(kind)).map(f64::from);
    s.sclk_mhz = t.settle("graphics clock", clock("graphics clock", Clock::Graphics));
    s.mclk_mhz = t.settle("memory clock", clock("memory clock", Clock::Memory));
    let fan = |what, result| {
        // a card without a fan may answer 0 for one that it does not have
        if device.num_fans().is_ok_and(|n| n == 0) {
            return Err(ReadError::Missing);
        }
        answer(what, result).map(f64::from)
    };
    s.fan_rpm = t.settle("fan", fan("fan", device.fan_speed_rpm(0)));
    s.fan_percent = t.settle("fan percent", fan("fan percent", device.fan_speed(0)));
    s.throttle = t.settle("clock reasons", throttle(device));
    s.link = t.settle("link", link(device));
    Ok(s)
}

/// A utilisation, or that the card does not tell it because it is cut in slices:
/// the whole card's counters stop with MIG, and CUDA sees the slices only.
fn utilization<'nvml, T>(
    device: &Device<'nvml>,
    what: &str,
    ask: impl Fn(&Device<'nvml>) -> Result<T, NvmlError>,
) -> ReadResult<T> {
    let told = ask(device);
    if matches!(told, Err(NvmlError::NotSupported)) && is_cut(device) {
        let why = "not told while MIG is on: the card is cut in slices";
        return Err(ReadError::text(Path::new(what), why));
    }
    answer(what, told)
}

/// Whether MIG is on.
fn is_cut(device: &Device<'_>) -> bool {
    device.mig_mode().is_ok_and(|mode| mode.current == 1)
}

fn throttle(device: &Device<'_>) -> ReadResult<Vec<ThrottleReason>> {
    match device.current_throttle_reasons_strict() {
        // a bit that is newer than the wrapper
        Err(NvmlError::IncorrectBits(Bits::U64(bits))) => Ok(reasons(bits)),
        other => answer("clock reasons", other.map(|r| reasons(r.bits()))),
    }
}

/// NVML's bits in our groups. That a card idles, or that its user set its clocks, holds
/// the clocks down as well, but is no throttling.
fn reasons(bits: u64) -> Vec<ThrottleReason> {
    use ThrottleReasons as R;
    let groups = [
        (R::SW_POWER_CAP, ThrottleReason::Power),
        (
            R::SW_THERMAL_SLOWDOWN | R::HW_THERMAL_SLOWDOWN,
            ThrottleReason::Thermal,
        ),
        (
            R::HW_POWER_BRAKE_SLOWDOWN | R::SYNC_BOOST,
            ThrottleReason::External,
        ),
    ];
    let of_the_user = R::GPU_IDLE | R::APPLICATIONS_CLOCKS_SETTING | R::DISPLAY_CLOCK_SETTING;
    // "hardware slowdown" stands beside its cause (heat or power brake) where one is
    // told; alone it may be either, or the board's protection
    let cause = R::HW_THERMAL_SLOWDOWN | R::HW_POWER_BRAKE_SLOWDOWN;
    let mut known = of_the_user;
    if bits & cause.bits() != 0 {
        known |= R::HW_SLOWDOWN;
    }
    let mut found = Vec::new();
    for (mask, reason) in groups {
        known |= mask;
        if bits & mask.bits() != 0 {
            found.push(reason);
        }
    }
    if bits & !known.bits() != 0 {
        found.push(ThrottleReason::Other);
    }
    found
}

fn link(device: &Device<'_>) -> ReadResult<Link> {
    let now = answer("link generation", device.current_pcie_link_gen())?;
    let width = answer("link width", device.current_pcie_link_width())?;
    let gts = transfers(now).ok_or_else(|| {
        ReadError::text(Path::new("link"), format!("generation {now} is not known"))
    })?;
    let width = u8::try_from(width)
        .map_err(|_too_wide| ReadError::text(Path::new("link"), format!("{width} lanes")))?;
    Ok(Link {
        gts,
        width,
        max_gts: device.max_pcie_link_gen().ok().and_then(transfers),
        max_width: device
            .max_pcie_link_width()
            .ok()
            .and_then(|w| w.try_into().ok()),
    })
}

/// GT/s of a PCIe generation.
const fn transfers(generation: u32) -> Option<f64> {
    Some(match generation {
        1 => 2.5,
        2 => 5.0,
        3 => 8.0,
        4 => 16.0,
        5 => 32.0,
        6 => 64.0,
        _ => return None,
    })
}

/// Sets the position in CUDA's list where it can be told. CUDA lists the fastest card
/// first unless `CUDA_DEVICE_ORDER=PCI_BUS_ID`, and NVML by PCI address; how CUDA ranks
/// cards is not told, so only cards of one model (or one card) have the same place in
/// both. A card cut in slices (MIG) is not in CUDA's list, its slices are.
pub(super) fn number(samples: &mut [(u32, GpuSample)], any_cut: bool) {
    let Some((_, first)) = samples.first() else {
        return;
    };
    let model = (first.name.clone(), first.vram_total.last().copied());
    let alike = |s: &GpuSample| s.name == model.0 && s.vram_total.last().copied() == model.1;
    let told = !any_cut && samples.iter().all(|(_, s)| alike(s));
    for (index, sample) in samples {
        sample.compute_index = told.then_some(*index);
    }
}

/// Whether any of the cards is cut in slices.
pub(super) fn any_cut(nvml: &nvml_wrapper::Nvml, count: u32) -> bool {
    (0..count).any(|i| nvml.device_by_index(i).is_ok_and(|d| is_cut(&d)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn not_supported_is_missing_and_other_errors_are_failures() {
        assert_eq!(
            answer::<u32>("fan", Err(NvmlError::NotSupported)),
            Err(ReadError::Missing)
        );
        let lost = answer::<u32>("power", Err(NvmlError::GpuLost)).unwrap_err();
        assert!(lost.to_string().starts_with("power: "), "{lost}");
    }

    #[test]
    fn bits_of_nvml_in_our_groups() {
        use ThrottleReason as T;
        // the numbers of nvml.h
        for (bits, want) in [
            (0x0, vec![]),
            (0x1, vec![]),
            (0x2 | 0x100, vec![]),
            (0x4, vec![T::Power]),
            (0x8, vec![T::Other]),
            (0x8 | 0x40, vec![T::Thermal]),
            (0x8 | 0x80, vec![T::External]),
            (0x20, vec![T::Thermal]),
            (0x10, vec![T::External]),
            (0x4 | 0x20 | 0x1, vec![T::Power, T::Thermal]),
            (1 << 40, vec![T::Other]),
        ] {
            assert_eq!(reasons(bits), want, "{bits:#x}");
        }
    }

    #[test]
    fn only_cards_of_one_model_have_a_place_in_cudas_list() {
        let card = |index, name: &str| {
            let id = GpuId(format!("0000:{index:02x}:00.0"));
            let s = GpuSample::unread(id, 0, Vendor::Nvidia, name.to_owned(), "nvml");
            (index, s)
        };
        let numbers = |mut cards: Vec<(u32, GpuSample)>, cut| {
            number(&mut cards, cut);
            cards
                .into_iter()
                .map(|(_, s)| s.compute_index)
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers(vec![card(0, "H100")], false), [Some(0)]);
        assert_eq!(numbers(vec![card(0, "H100")], true), [None]);
        assert_eq!(
            numbers(vec![card(0, "H100"), card(1, "H100")], false),
            [Some(0), Some(1)]
        );
        assert_eq!(
            numbers(vec![card(0, "RTX 4090"), card(1, "RTX 3060")], false),
            [None, None]
        );
        assert!(numbers(vec![], false).is_empty());
    }

    proptest! {
        #[test]
        fn any_bits_give_each_group_at_most_once(bits: u64) {
            let found = reasons(bits);
            let mut once = found.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), found.len());
        }
    }
}
