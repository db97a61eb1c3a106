//! Rows of readings as the samples that a run takes.

use crate::model::{Bytes, GpuId, GpuSample, HostSample, Metric, ProcSample, Sample, ThreadSample};

use super::meta::Meta;

/// PCI address of the card of a recording, which does not hold it.
pub(super) const CARD: &str = "0000:0c:00.0";
/// Rates are a second's; samples come twice in a row.
const SAMPLES: f64 = 2.0;

/// Seconds from a row to the next.
pub type Step = f64;

/// One row of readings; `None`: could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Seconds since the program started.
    pub t: f64,
    /// Busy percent of the card.
    pub busy: Option<f64>,
    /// Watts of the card.
    pub power: Option<f64>,
    /// VRAM in use, MiB.
    pub vram_mib: Option<f64>,
    /// GTT in use, MiB.
    pub gtt_mib: Option<f64>,
    /// CPU of the process tree, 100 = one core.
    pub cpu: Option<f64>,
    /// Bytes a second that the tree reads.
    pub read_bps: Option<f64>,
    /// Bytes a second that it writes.
    pub write_bps: Option<f64>,
    /// Bytes a second that the host receives.
    pub net_bps: Option<f64>,
    /// Threads in uninterruptible sleep.
    pub d_state: Option<f64>,
    /// Whether the process exists.
    pub alive: bool,
    /// Minor faults a second; not in recorded files.
    pub faults: Option<f64>,
    /// Names of child processes; not in recorded files.
    pub children: Vec<String>,
    /// Major faults a second; not in recorded files.
    pub major_faults: Option<f64>,
    /// Percent of the time in which the card's memory controller works; not in recorded
    /// files.
    pub mem_busy: Option<f64>,
    /// Percent of the last 10 s in which a task waited for a CPU; not in recorded files.
    pub psi_cpu: Option<f64>,
    /// The same for memory; not in recorded files.
    pub psi_mem: Option<f64>,
    /// A round of the tree's threads; not in recorded files.
    pub threads: Vec<ThreadSample>,
}

/// Cumulated counters of the process tree and the host.
#[derive(Debug, Default, Clone)]
pub(super) struct Counters {
    cpu_ns: f64,
    read: f64,
    write: f64,
    net: f64,
    faults: f64,
    major_faults: f64,
}

impl Counters {
    /// Half a row passes.
    pub(super) fn pass(&mut self, row: &Row, step: Step) {
        let half = |rate: Option<f64>| rate.unwrap_or(0.0) * step / SAMPLES;
        self.cpu_ns += half(row.cpu) * 1e7;
        self.read += half(row.read_bps);
        self.write += half(row.write_bps);
        self.net += half(row.net_bps);
        self.faults += half(row.faults);
        self.major_faults += half(row.major_faults);
    }

    /// The sample at this moment; `alive`: pid and state letter of the root process.
    pub(super) fn sample(&self, row: &Row, meta: &Meta, alive: Option<(u32, char)>) -> Sample {
        Sample {
            gpus: row.card(meta).into_iter().collect(),
            process: alive.map(|(pid, letter)| self.process(row, pid, letter)),
            host: HostSample {
                net_rx_bytes: counter(row.net_bps, self.net),
                psi_cpu: row.psi_cpu.map_or_else(Metric::default, Metric::Fresh),
                psi_mem: row.psi_mem.map_or_else(Metric::default, Metric::Fresh),
                ..HostSample::default()
            },
            sources: Vec::new(),
        }
    }

    fn process(&self, row: &Row, pid: u32, letter: char) -> ProcSample {
        ProcSample {
            pid,
            processes: 1 + u32::try_from(row.children.len()).unwrap_or(u32::MAX - 1),
            threads: 30,
            children: row.children.clone(),
            state: Metric::Fresh(letter),
            cpu_ns: counter(row.cpu, self.cpu_ns),
            minor_faults: counter(row.faults, self.faults),
            major_faults: row
                .major_faults
                .map_or_else(Metric::default, |_| Metric::Fresh(whole(self.major_faults))),
            per_thread: row.threads.clone(),
            read_bytes: counter(row.read_bps, self.read),
            write_bytes: counter(row.write_bps, self.write),
            d_state: row.d_state.map_or_else(failed, |d| {
                Metric::Fresh(u32::try_from(whole(d)).unwrap_or(u32::MAX))
            }),
            ..ProcSample::default()
        }
    }
}

impl Row {
    /// Whether anything of a card could be read.
    pub(super) fn has_card(&self) -> bool {
        let read = [self.busy, self.power, self.vram_mib];
        read.iter().any(Option::is_some)
    }

    /// The card as it reads here; none where neither readings nor a maker of one are known.
    pub(super) fn card(&self, meta: &Meta) -> Option<GpuSample> {
        let vendor = meta.maker()?;
        let id = GpuId(CARD.to_owned());
        let mut g = GpuSample::unread(id, 0, vendor, meta.gpu.clone(), "recording");
        g.arch = Some(meta.arch.clone()).filter(|a| !a.is_empty());
        g.apu = meta.apu;
        let mib = |v: Option<f64>| v.map_or_else(failed, |m| Metric::Fresh(Bytes(whole(m) << 20)));
        g.busy = self.busy.map_or_else(failed, Metric::Fresh);
        g.power_w = self.power.map_or_else(failed, Metric::Fresh);
        if let Some(percent) = self.mem_busy {
            g.mem_busy = Metric::Fresh(percent);
        }
        g.vram_used = mib(self.vram_mib);
        // an APU has no board limit of its own
        if let (Some(watts), false) = (meta.board_power_w, meta.apu) {
            g.power_cap_w = Metric::Fresh(watts);
        }
        if let Some(total) = meta.vram_total_mib {
            g.vram_total = Metric::Fresh(Bytes::mib(total));
        }
        if let Some(total) = meta.gtt_total_mib {
            g.gtt_used = mib(self.gtt_mib);
            g.gtt_total = Metric::Fresh(Bytes::mib(total));
        }
        Some(g)
    }
}

fn failed<T>() -> Metric<T> {
    Metric::Failed {
        why: "not in the recording".to_owned(),
        for_ms: 0,
    }
}

fn counter(rate: Option<f64>, total: f64) -> Metric<u64> {
    rate.map_or_else(failed, |_| Metric::Fresh(whole(total)))
}

/// Most MiB that are believed, so that they can be counted in bytes.
const MOST: f64 = 1e12;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped, and readers refuse what is larger"
)]
fn whole(v: f64) -> u64 {
    v.max(0.0).round() as u64
}

/// Whether a reading can be one.
pub(super) fn plausible(v: f64) -> bool {
    v.is_finite() && (0.0..MOST).contains(&v)
}
