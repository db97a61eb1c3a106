//! NVIDIA cards through NVML, the driver's library, which is loaded at run time.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::aging::{self, Fail};
use super::clients::{NvmlCard, NvmlFeed, NvmlProcess};
use super::file::{ReadError, ReadResult};
use super::pci::PciAddress;
use super::source::{Answer, Source, SourceError, lock};
use super::track::Tracker;
use crate::model::Vendor;
use crate::model::time::millis;
use crate::model::{Bytes, GpuId, GpuSample, Metric};

/// Reads every card of NVIDIA.
#[derive(Default)]
pub(crate) struct NvmlSource {
    nvml: Option<Nvml>,
    /// The last sample of each card by NVML's index: a card that fell off the bus
    /// can no longer tell its address.
    known: HashMap<u32, GpuSample>,
    lost_since: HashMap<u32, Instant>,
    trackers: HashMap<GpuId, Tracker>,
    /// Where the processes on each card go.
    holders: NvmlFeed,
}

impl NvmlSource {
    /// A reader that puts the processes on each card there.
    pub(crate) fn new(holders: NvmlFeed) -> Self {
        Self {
            holders,
            ..Self::default()
        }
    }
}

impl Source for NvmlSource {
    type Reading = Vec<GpuSample>;

    fn name(&self) -> String {
        "nvml".to_owned()
    }

    fn read(&mut self) -> Result<Answer<Self::Reading>, SourceError> {
        let nvml = match self.nvml.take() {
            Some(nvml) => nvml,
            None => Nvml::init().map_err(|e| absent(&e))?,
        };
        let nvml = self.nvml.insert(nvml);
        let count = nvml.device_count().map_err(|e| failed(&e))?;
        if count == 0 {
            return Err(SourceError::Absent("no card of NVIDIA".to_owned()));
        }
        let mut samples = Vec::new();
        let mut trouble = None;
        let mut holders = Vec::new();
        for index in 0..count {
            let sample = nvml.device_by_index(index).and_then(|device| {
                let sample = read_card(&device, &mut self.trackers)?;
                holders.extend(processes(&device, &sample.id));
                Ok(sample)
            });
            match sample {
                Ok(sample) => {
                    self.known.insert(index, sample.clone());
                    self.lost_since.remove(&index);
                    samples.push(sample);
                }
                Err(error) => {
                    let why = error.to_string();
                    let since = *self.lost_since.entry(index).or_insert_with(Instant::now);
                    let fail = Fail {
                        why: &why,
                        for_ms: millis(since.elapsed()),
                        unread: false,
                    };
                    samples.extend(self.known.get(&index).map(|s| aging::gpu(s.clone(), &fail)));
                    trouble = Some(format!("card {index}: {why}"));
                }
            }
        }
        *lock(&self.holders) = holders;
        Ok(Answer {
            reading: samples,
            trouble,
        })
    }
}

fn absent(error: &NvmlError) -> SourceError {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => {
            SourceError::Absent("no libnvidia-ml.so.1: no driver of NVIDIA".to_owned())
        }
        NvmlError::DriverNotLoaded => {
            SourceError::Absent("the driver of NVIDIA is not loaded".to_owned())
        }
        other => failed(other),
    }
}

fn failed(error: &NvmlError) -> SourceError {
    SourceError::Failed(error.to_string())
}

/// An answer of NVML as ours: what a card does not offer is missing.
fn answer<T>(what: &str, result: Result<T, NvmlError>) -> ReadResult<T> {
    result.map_err(|error| match error {
        NvmlError::NotSupported
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound => ReadError::Missing,
        other => ReadError::text(Path::new(what), other.to_string()),
    })
}

fn read_card(
    device: &Device<'_>,
    trackers: &mut HashMap<GpuId, Tracker>,
) -> Result<GpuSample, NvmlError> {
    let bus = device.pci_info()?.bus_id;
    let id = PciAddress::parse(&bus).map_or_else(|| GpuId(bus.to_lowercase()), PciAddress::id);
    let t = trackers.entry(id.clone()).or_default();
    let name = device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned());
    let mut s = GpuSample::unread(id, 0, Vendor::Nvidia, name, "nvml");
    s.arch = device
        .cuda_compute_capability()
        .ok()
        .map(|c| format!("sm_{}{}", c.major, c.minor));
    // A card that answers a query is awake: the query itself wakes it.
    s.state = Metric::Fresh("active".to_owned());
    let use_ = answer("utilization", device.utilization_rates());
    s.busy = t.settle("gpu utilization", use_.clone().map(|u| f64::from(u.gpu)));
    s.mem_busy = t.settle("memory utilization", use_.map(|u| f64::from(u.memory)));
    let watts = |what, result| answer(what, result).map(|mw| f64::from(mw) / 1e3);
    s.power_w = t.settle("power", watts("power", device.power_usage()));
    s.power_cap_w = t.settle(
        "power limit",
        watts("power limit", device.enforced_power_limit()),
    );
    let memory = answer("memory", device.memory_info());
    s.vram_used = t.settle("memory in use", memory.clone().map(|m| Bytes(m.used)));
    s.vram_total = t.settle("memory", memory.map(|m| Bytes(m.total)));
    let edge = answer("temperature", device.temperature(TemperatureSensor::Gpu));
    s.temp_edge = t.settle("temperature", edge.map(f64::from));
    let clock = |what, kind| answer(what, device.clock_info(kind)).map(f64::from);
    s.sclk_mhz = t.settle("graphics clock", clock("graphics clock", Clock::Graphics));
    s.mclk_mhz = t.settle("memory clock", clock("memory clock", Clock::Memory));
    s.fan_rpm = t.settle("fan", fan(device));
    Ok(s)
}

/// The processes on a card; none where NVML does not offer the list.
fn processes(device: &Device<'_>, gpu: &GpuId) -> Option<NvmlCard> {
    let one = |p: ProcessInfo| NvmlProcess {
        pid: p.pid,
        vram: match p.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(Bytes(bytes)),
            UsedGpuMemory::Unavailable => None,
        },
        busy: None,
    };
    let processes = match answer("processes", device.running_compute_processes()) {
        Ok(all) => Ok(all.into_iter().map(one).collect()),
        Err(ReadError::Missing) => return None,
        Err(error) => Err(error.to_string()),
    };
    Some(NvmlCard {
        gpu: gpu.clone(),
        at: Instant::now(),
        processes,
    })
}

/// Revolutions a minute; a card without a fan offers none.
fn fan(device: &Device<'_>) -> ReadResult<f64> {
    if device.num_fans().is_ok_and(|n| n == 0) {
        return Err(ReadError::Missing);
    }
    answer("fan", device.fan_speed_rpm(0)).map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_library_says_so_and_one_with_it_has_cards() {
        let mut source = NvmlSource::default();
        match source.read() {
            Err(SourceError::Absent(why)) => assert!(why.contains("NVIDIA"), "{why}"),
            Err(SourceError::Failed(why)) => assert!(!why.is_empty()),
            Ok(answer) => {
                let card = &answer.reading[0];
                assert!(PciAddress::parse(&card.id.0).is_some());
                assert!(card.arch.as_ref().is_some_and(|a| a.starts_with("sm_")));
                assert!(card.vram_total.is_supported());
            }
        }
    }

    #[test]
    fn not_supported_is_missing_and_other_errors_are_failures() {
        assert_eq!(
            answer::<u32>("fan", Err(NvmlError::NotSupported)),
            Err(ReadError::Missing)
        );
        let lost = answer::<u32>("power", Err(NvmlError::GpuLost)).unwrap_err();
        assert!(lost.to_string().starts_with("power: "), "{lost}");
    }
}
