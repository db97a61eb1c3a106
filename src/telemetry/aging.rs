//! One change over every metric of a sample: growing old, failing as a whole.

#[cfg(feature = "rocm-smi")]
use crate::model::Opinion;
use crate::model::{GpuSample, HostSample, Metric, ProcSample, TreeOnCard};

/// A change that treats a metric of any type alike.
pub(crate) trait Change {
    /// The changed metric.
    fn apply<T>(&self, metric: Metric<T>) -> Metric<T>;
}

/// Lets `age_ms` pass; what is then older than `fresh_ms` is no longer fresh.
pub(crate) struct Age {
    /// Time since the reading.
    pub(crate) age_ms: u64,
    /// Oldest age that counts as fresh.
    pub(crate) fresh_ms: u64,
}

impl Change for Age {
    fn apply<T>(&self, metric: Metric<T>) -> Metric<T> {
        match metric {
            Metric::Fresh(value) if self.age_ms > self.fresh_ms => Metric::Stale {
                value,
                age_ms: self.age_ms,
            },
            Metric::Stale { value, age_ms } => Metric::Stale {
                value,
                age_ms: age_ms.saturating_add(self.age_ms),
            },
            Metric::Failed { why, for_ms } => Metric::Failed {
                why,
                for_ms: for_ms.saturating_add(self.age_ms),
            },
            same => same,
        }
    }
}

/// Everything has failed for one reason.
pub(crate) struct Fail<'a> {
    /// The reason.
    pub(crate) why: &'a str,
    /// For how long.
    pub(crate) for_ms: u64,
    /// Whether values that were never offered fail as well: so before the first
    /// answer, when it is not known what is offered.
    pub(crate) unread: bool,
}

impl Change for Fail<'_> {
    fn apply<T>(&self, metric: Metric<T>) -> Metric<T> {
        if metric.is_supported() || self.unread {
            Metric::Failed {
                why: self.why.to_owned(),
                for_ms: self.for_ms,
            }
        } else {
            metric
        }
    }
}

/// Changes every metric of a card.
pub(crate) fn gpu(sample: GpuSample, change: &impl Change) -> GpuSample {
    GpuSample {
        id: sample.id,
        index: sample.index,
        vendor: sample.vendor,
        name: sample.name,
        arch: sample.arch,
        apu: sample.apu,
        source: sample.source,
        state: change.apply(sample.state),
        busy: change.apply(sample.busy),
        mem_busy: change.apply(sample.mem_busy),
        power_w: change.apply(sample.power_w),
        power_cap_w: change.apply(sample.power_cap_w),
        vram_used: change.apply(sample.vram_used),
        vram_total: change.apply(sample.vram_total),
        gtt_used: change.apply(sample.gtt_used),
        gtt_total: change.apply(sample.gtt_total),
        temp_edge: change.apply(sample.temp_edge),
        temp_junction: change.apply(sample.temp_junction),
        temp_mem: change.apply(sample.temp_mem),
        sclk_mhz: change.apply(sample.sclk_mhz),
        mclk_mhz: change.apply(sample.mclk_mhz),
        fan_rpm: change.apply(sample.fan_rpm),
        fan_percent: change.apply(sample.fan_percent),
        video_busy: change.apply(sample.video_busy),
        throttle: change.apply(sample.throttle),
        link: change.apply(sample.link),
        perf_level: change.apply(sample.perf_level),
        resets: change.apply(sample.resets),
        ttm_limit: change.apply(sample.ttm_limit),
        compute_index: sample.compute_index,
        // the second source grows old by itself
        second: sample.second,
        disagreements: sample.disagreements,
    }
}

/// Changes every metric of a second opinion.
#[cfg(feature = "rocm-smi")]
pub(crate) fn opinion(opinion: Opinion, change: &impl Change) -> Opinion {
    Opinion {
        source: opinion.source,
        busy: change.apply(opinion.busy),
        mem_busy: change.apply(opinion.mem_busy),
        power_w: change.apply(opinion.power_w),
        power_cap_w: change.apply(opinion.power_cap_w),
        vram_used: change.apply(opinion.vram_used),
        vram_total: change.apply(opinion.vram_total),
        gtt_used: change.apply(opinion.gtt_used),
        gtt_total: change.apply(opinion.gtt_total),
        temp_edge: change.apply(opinion.temp_edge),
        temp_junction: change.apply(opinion.temp_junction),
        temp_mem: change.apply(opinion.temp_mem),
        fan_rpm: change.apply(opinion.fan_rpm),
    }
}

/// Changes every metric of a process tree.
pub(crate) fn process(sample: ProcSample, change: &impl Change) -> ProcSample {
    ProcSample {
        pid: sample.pid,
        processes: sample.processes,
        threads: sample.threads,
        children: sample.children,
        state: change.apply(sample.state),
        traced: sample.traced,
        stopped: sample.stopped,
        cpu_ns: change.apply(sample.cpu_ns),
        minor_faults: change.apply(sample.minor_faults),
        major_faults: change.apply(sample.major_faults),
        read_bytes: change.apply(sample.read_bytes),
        write_bytes: change.apply(sample.write_bytes),
        read_chars: change.apply(sample.read_chars),
        write_chars: change.apply(sample.write_chars),
        switches: change.apply(sample.switches),
        d_state: change.apply(sample.d_state),
        wait_channel: change.apply(sample.wait_channel),
        rss: change.apply(sample.rss),
        swap: change.apply(sample.swap),
        per_thread: sample.per_thread,
        // of a source of its own, which grows old by itself
        on_cards: sample.on_cards,
    }
}

/// Changes every metric of what a tree does on a card.
pub(crate) fn on_card(on: TreeOnCard, change: &impl Change) -> TreeOnCard {
    TreeOnCard {
        gpu: on.gpu,
        source: on.source,
        processes: on.processes,
        vram: change.apply(on.vram),
        gtt: change.apply(on.gtt),
        evicted: change.apply(on.evicted),
        evicted_ms: change.apply(on.evicted_ms),
        queues: change.apply(on.queues),
        cu_occupancy: change.apply(on.cu_occupancy),
        engines: on.engines,
        busy: change.apply(on.busy),
        compute_note: on.compute_note,
    }
}

/// Changes every metric of the host.
pub(crate) fn host(sample: HostSample, change: &impl Change) -> HostSample {
    HostSample {
        mem_total: change.apply(sample.mem_total),
        mem_available: change.apply(sample.mem_available),
        swap_total: change.apply(sample.swap_total),
        swap_used: change.apply(sample.swap_used),
        psi_cpu: change.apply(sample.psi_cpu),
        psi_io: change.apply(sample.psi_io),
        psi_mem: change.apply(sample.psi_mem),
        load1: change.apply(sample.load1),
        net_rx_bytes: change.apply(sample.net_rx_bytes),
        oom_kills: change.apply(sample.oom_kills),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_grows_stale_and_a_failure_longer() {
        let age = Age {
            age_ms: 2000,
            fresh_ms: 1500,
        };
        assert_eq!(
            age.apply(Metric::Fresh(7)),
            Metric::Stale {
                value: 7,
                age_ms: 2000
            }
        );
        let failed = Metric::<u64>::Failed {
            why: "x".to_owned(),
            for_ms: 10,
        };
        assert!(matches!(
            age.apply(failed),
            Metric::Failed { for_ms: 2010, .. }
        ));
        assert_eq!(
            age.apply(Metric::<u64>::Unsupported),
            Metric::<u64>::Unsupported
        );
        let young = Age {
            age_ms: 1500,
            fresh_ms: 1500,
        };
        assert_eq!(young.apply(Metric::Fresh(7)), Metric::Fresh(7));
    }
}
