//! Who holds memory of NVIDIA's cards, by NVML.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;

use super::super::pci::PciAddress;
use crate::model::{Bytes, CardMemory, GpuId};

/// A driver that is not there is looked for again this often.
const AGAIN: Duration = Duration::from_secs(15);

/// The library, loaded when it is there.
#[derive(Default)]
pub(super) struct Holders {
    nvml: Option<Nvml>,
    tried: Option<Instant>,
}

impl Holders {
    /// Memory by process. Nothing where there is no driver of NVIDIA; a card that does
    /// not answer is left out.
    pub(super) fn read(&mut self) -> HashMap<u32, Vec<CardMemory>> {
        let mut out: HashMap<u32, Vec<CardMemory>> = HashMap::new();
        if self.nvml.is_none() && self.tried.is_none_or(|at| at.elapsed() >= AGAIN) {
            self.tried = Some(Instant::now());
            self.nvml = Nvml::init().ok();
        }
        let Some(nvml) = &self.nvml else { return out };
        for index in 0..nvml.device_count().unwrap_or(0) {
            let Ok(device) = nvml.device_by_index(index) else {
                continue;
            };
            let (Ok(pci), Ok(holders)) = (device.pci_info(), device.running_compute_processes())
            else {
                continue;
            };
            let bus = pci.bus_id;
            let gpu =
                PciAddress::parse(&bus).map_or_else(|| GpuId(bus.to_lowercase()), PciAddress::id);
            for holder in holders {
                let vram = match holder.used_gpu_memory {
                    UsedGpuMemory::Used(bytes) => Some(Bytes(bytes)),
                    UsedGpuMemory::Unavailable => None,
                };
                out.entry(holder.pid).or_default().push(CardMemory {
                    gpu: gpu.clone(),
                    vram,
                    gtt: None,
                });
            }
        }
        out
    }
}
