//! Random cards.

use super::Dice;
use crate::model::{
    Disagreement, EngineTime, GpuId, GpuSample, Link, Opinion, Resets, ThrottleReason, TreeOnCard,
    Vendor,
};

impl Dice {
    pub(super) fn card(&mut self, id: GpuId) -> GpuSample {
        GpuSample {
            id,
            index: u32::MAX,
            vendor: self.pick(&[Vendor::Amd, Vendor::Nvidia]),
            name: self.text(),
            arch: self.some(Self::text),
            apu: self.below(2) == 0,
            source: self.text(),
            state: self.metric(Self::text),
            busy: self.num(),
            mem_busy: self.num(),
            power_w: self.num(),
            power_cap_w: self.num(),
            vram_used: self.metric(Self::bytes),
            vram_total: self.metric(Self::bytes),
            gtt_used: self.metric(Self::bytes),
            gtt_total: self.metric(Self::bytes),
            temp_edge: self.num(),
            temp_junction: self.num(),
            temp_mem: self.num(),
            sclk_mhz: self.num(),
            mclk_mhz: self.num(),
            fan_rpm: self.num(),
            fan_percent: self.num(),
            video_busy: self.num(),
            throttle: self.metric(|d| {
                let n = d.below(6);
                let all = [
                    ThrottleReason::Power,
                    ThrottleReason::Current,
                    ThrottleReason::Thermal,
                    ThrottleReason::External,
                    ThrottleReason::Other,
                ];
                all[..n].to_vec()
            }),
            link: self.metric(|d| Link {
                gts: d.real(),
                width: u8::MAX,
                max_gts: d.some(Self::real),
                max_width: d.some(|_| u8::MAX),
            }),
            perf_level: self.metric(Self::text),
            resets: self.metric(|d| Resets {
                count: d.some(|_| u64::MAX),
                kinds: vec![d.text()],
                core_dump: d.some(|d| d.below(2) == 0),
            }),
            ttm_limit: self.metric(Self::bytes),
            compute_index: self.some(|_| u32::MAX),
            second: self.some(|d| {
                Box::new(Opinion {
                    source: d.text(),
                    busy: d.num(),
                    power_w: d.num(),
                    vram_used: d.metric(Self::bytes),
                    ..Opinion::default()
                })
            }),
            disagreements: self.list(5, |d| Disagreement {
                value: d.text(),
                first: d.text(),
                second: d.text(),
                note: d.some(Self::text),
            }),
        }
    }

    pub(super) fn on_card(&mut self, gpu: GpuId) -> TreeOnCard {
        TreeOnCard {
            gpu,
            source: self.text(),
            processes: u32::MAX,
            vram: self.metric(Self::bytes),
            gtt: self.metric(Self::bytes),
            evicted: self.metric(Self::bytes),
            evicted_ms: self.metric(Self::int),
            queues: self.metric(|_| u32::MAX),
            cu_occupancy: self.metric(|_| u32::MAX),
            engines: self.list(7, |d| EngineTime {
                engine: d.text(),
                ns: d.int(),
            }),
            busy: self.num(),
            compute_note: self.some(Self::text),
        }
    }

    /// The card of the run with others, or none at all.
    pub(super) fn cards(&mut self, ours: &GpuId) -> Vec<GpuSample> {
        if self.below(4) == 0 {
            return Vec::new();
        }
        let ours = self.card(ours.clone());
        let others = self.list(5, |d| {
            let id = GpuId(d.text());
            d.card(id)
        });
        std::iter::once(ours).chain(others).collect()
    }
}
