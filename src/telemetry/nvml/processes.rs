//! The processes on one card: memory and use, as the driver tells them.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::{ProcessInfo, ProcessUtilizationSample};

use super::super::clients::NvmlProcess;
use super::super::file::ReadResult;
use super::card::answer;
use crate::model::Bytes;

/// The driver samples each process every 1/6 to 1 s, so that in this time one has at
/// least one sample.
const WINDOW: Duration = Duration::from_secs(2);

/// The processes with a compute context on the card. Missing where the card does not
/// offer the list.
pub(crate) fn on(device: &Device<'_>) -> ReadResult<Vec<NvmlProcess>> {
    let running = answer("processes", device.running_compute_processes())?;
    if running.is_empty() {
        return Ok(Vec::new());
    }
    // microseconds since 1970; a clock that stands before that asks for all there is
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |d| micros(d.saturating_sub(WINDOW)));
    let samples = match device.process_utilization_stats(since) {
        Ok(samples) => Some(samples),
        // nothing was sampled: nobody used the card
        Err(NvmlError::NotFound) => Some(Vec::new()),
        // no right, MIG, an old card: unknown, not zero
        Err(_) => None,
    };
    Ok(merge(running, samples.as_deref(), since))
}

fn micros(d: Duration) -> u64 {
    u64::try_from(d.as_micros()).unwrap_or(u64::MAX)
}

/// One entry for each process. The driver lists a sample only for processes that used
/// the card in it, so one without a sample used nothing.
fn merge(
    running: Vec<ProcessInfo>,
    samples: Option<&[ProcessUtilizationSample]>,
    since: u64,
) -> Vec<NvmlProcess> {
    let newest: Option<HashMap<u32, (u64, u32)>> = samples.map(|samples| {
        let mut newest: HashMap<u32, (u64, u32)> = HashMap::new();
        for s in samples {
            // the driver fills some entries with nothing or with nonsense
            if s.pid == 0 || s.sm_util > 100 || s.timestamp < since {
                continue;
            }
            let entry = newest.entry(s.pid).or_default();
            if s.timestamp >= entry.0 {
                *entry = (s.timestamp, s.sm_util);
            }
        }
        newest
    });
    let mut out: Vec<NvmlProcess> = Vec::with_capacity(running.len());
    for p in running {
        let vram = match p.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(Bytes(bytes)),
            UsedGpuMemory::Unavailable => None,
        };
        // with MIG one process may stand there once for each slice
        if let Some(known) = out.iter_mut().find(|o| o.pid == p.pid) {
            let sum = known.vram.zip(vram);
            known.vram = sum.map(|(a, b)| Bytes(a.0.saturating_add(b.0)));
            continue;
        }
        let busy = newest
            .as_ref()
            .map(|n| n.get(&p.pid).map_or(0.0, |(_, util)| f64::from(*util)));
        out.push(NvmlProcess {
            pid: p.pid,
            vram,
            busy,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, used: Option<u64>) -> ProcessInfo {
        ProcessInfo {
            pid,
            used_gpu_memory: used.map_or(UsedGpuMemory::Unavailable, UsedGpuMemory::Used),
            gpu_instance_id: None,
            compute_instance_id: None,
        }
    }

    fn sample(pid: u32, timestamp: u64, sm_util: u32) -> ProcessUtilizationSample {
        ProcessUtilizationSample {
            pid,
            timestamp,
            sm_util,
            mem_util: 0,
            enc_util: 0,
            dec_util: 0,
        }
    }

    #[test]
    fn the_newest_sample_counts_and_no_sample_is_no_use() {
        let samples = [
            sample(7, 110, 30),
            sample(7, 120, 60),
            sample(7, 90, 99),
            sample(8, 120, 4_000_000),
            sample(0, 120, 50),
        ];
        let running = vec![process(7, Some(1 << 30)), process(8, None)];
        let out = merge(running.clone(), Some(&samples), 100);
        assert_eq!(
            out,
            [
                NvmlProcess {
                    pid: 7,
                    vram: Some(Bytes(1 << 30)),
                    busy: Some(60.0)
                },
                NvmlProcess {
                    pid: 8,
                    vram: None,
                    busy: Some(0.0)
                },
            ]
        );
        let untold = merge(running, None, 100);
        assert!(untold.iter().all(|p| p.busy.is_none()));
    }

    #[test]
    fn a_process_in_two_slices_is_one_and_an_unknown_part_makes_the_sum_unknown() {
        let both = merge(vec![process(7, Some(5)), process(7, Some(6))], None, 0);
        assert_eq!(both.len(), 1);
        assert_eq!(both[0].vram, Some(Bytes(11)));
        let part = merge(vec![process(7, Some(5)), process(7, None)], None, 0);
        assert_eq!(part[0].vram, None);
    }
}
