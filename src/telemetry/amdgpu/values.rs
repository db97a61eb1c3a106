//! How a sample did as a whole.

use crate::model::{GpuSample, Metric};

/// How many values of a sample are good and how many fail.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// Values that were read.
    pub(super) good: usize,
    /// Values that failed.
    pub(super) failed: usize,
    /// Why the first of these did.
    pub(super) why: Option<String>,
}

impl Values {
    /// Counts what the driver must ask the card for. What it, the PCI core or the kernel
    /// know without the card (level, link, kinds of reset, limits) says nothing of it.
    pub(super) fn count(s: &GpuSample) -> Self {
        let mut values = Self::default();
        for metric in [
            &s.busy,
            &s.mem_busy,
            &s.power_w,
            &s.power_cap_w,
            &s.temp_edge,
            &s.temp_junction,
            &s.temp_mem,
            &s.sclk_mhz,
            &s.mclk_mhz,
            &s.fan_rpm,
            &s.fan_percent,
            &s.video_busy,
        ] {
            values.add(metric);
        }
        for metric in [&s.vram_used, &s.vram_total, &s.gtt_used, &s.gtt_total] {
            values.add(metric);
        }
        values.add(&s.throttle);
        values
    }

    fn add<T>(&mut self, metric: &Metric<T>) {
        match metric {
            Metric::Fresh(_) => self.good += 1,
            Metric::Failed { why, .. } => {
                self.failed += 1;
                self.why.get_or_insert_with(|| why.clone());
            }
            Metric::Stale { .. } | Metric::Unsupported => {}
        }
    }
}
