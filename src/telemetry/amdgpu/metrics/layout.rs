//! Where each version of the table has which value.
//!
//! Only what is sure is listed. Left out are: media activity of v2 (a percentage or
//! hundredths, by chip), graphics activity of v3.0 (the same, by firmware: the kernel
//! compares its version with 0x5d4600), power of v2.0 and v2.2 (watts or milliwatts on
//! Renoir, by firmware), fan speed (a zero stands for both a fan at rest and none), and
//! v1.4 to v1.8 as a whole.

/// Bytes of a number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Width {
    /// `u16`.
    Two,
    /// `u32`.
    Four,
}

/// Where a number lies, and how many of its steps make one of our units.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) offset: usize,
    pub(super) width: Width,
    pub(super) per_unit: f64,
}

/// How a version tells throttling.
#[derive(Debug, Clone, Copy)]
pub(super) enum Throttling {
    /// Bits that are set while it goes on.
    Bits {
        /// 32 bits whose meaning is the chip's own.
        own: usize,
        /// 64 bits that mean the same on every chip.
        common: Option<usize>,
    },
    /// Seven counters that rise while it goes on: PROCHOT; the sustained, fast and slow
    /// power limit; the temperature of cores, graphics and the rest of the chip.
    Counters(usize),
}

/// One version of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Format and content revision.
    pub(super) version: (u8, u8),
    /// Bytes with the header.
    pub(super) size: usize,
    pub(super) busy: Option<At>,
    pub(super) mem_busy: Option<At>,
    pub(super) video_busy: Option<At>,
    pub(super) power_w: Option<At>,
    pub(super) temp_edge: Option<At>,
    pub(super) temp_junction: Option<At>,
    pub(super) temp_mem: Option<At>,
    /// Now, then the average: APUs fill the second only.
    pub(super) sclk_mhz: [At; 2],
    pub(super) mclk_mhz: [At; 2],
    pub(super) throttle: Throttling,
}

/// The versions that are read.
pub(super) const LAYOUTS: [Layout; 10] = [
    v1_0(),
    v1(1, 96, None),
    v1(2, 104, None),
    v1(3, 120, Some(112)),
    v2_0(),
    v2(1, 120, None, Some(two(40, MILLI))),
    v2(2, 128, Some(120), None),
    v2(3, 152, Some(120), Some(two(40, MILLI))),
    v2(4, 168, Some(120), Some(two(40, MILLI))),
    V3_0,
];

/// Steps of a hundredth.
const CENTI: f64 = 100.0;
/// Steps of a thousandth.
const MILLI: f64 = 1000.0;

const fn two(offset: usize, per_unit: f64) -> At {
    At {
        offset,
        width: Width::Two,
        per_unit,
    }
}

const fn whole(offset: usize) -> At {
    two(offset, 1.0)
}

/// Cards, first version: a clock before everything else, and a shorter energy counter.
const fn v1_0() -> Layout {
    Layout {
        version: (1, 0),
        size: 80,
        busy: Some(whole(28)),
        mem_busy: Some(whole(30)),
        video_busy: Some(whole(32)),
        power_w: Some(whole(34)),
        temp_edge: Some(whole(16)),
        temp_junction: Some(whole(18)),
        temp_mem: Some(whole(20)),
        sclk_mhz: [whole(54), whole(40)],
        mclk_mhz: [whole(58), whole(44)],
        throttle: Throttling::Bits {
            own: 68,
            common: None,
        },
    }
}

/// Cards from v1.1: each version only adds to the end.
const fn v1(content: u8, size: usize, common: Option<usize>) -> Layout {
    Layout {
        version: (1, content),
        size,
        busy: Some(whole(16)),
        mem_busy: Some(whole(18)),
        video_busy: Some(whole(20)),
        power_w: Some(whole(22)),
        temp_edge: Some(whole(4)),
        temp_junction: Some(whole(6)),
        temp_mem: Some(whole(8)),
        sclk_mhz: [whole(54), whole(40)],
        mclk_mhz: [whole(58), whole(44)],
        throttle: Throttling::Bits { own: 68, common },
    }
}

/// APUs, first version: the clock comes first.
const fn v2_0() -> Layout {
    Layout {
        version: (2, 0),
        size: 120,
        busy: Some(two(40, CENTI)),
        temp_edge: Some(two(16, CENTI)),
        sclk_mhz: [whole(80), whole(68)],
        mclk_mhz: [whole(84), whole(72)],
        throttle: Throttling::Bits {
            own: 112,
            common: None,
        },
        ..v2(0, 120, None, None)
    }
}

/// APUs from v2.1: each version only adds to the end.
const fn v2(content: u8, size: usize, common: Option<usize>, power_w: Option<At>) -> Layout {
    Layout {
        version: (2, content),
        size,
        busy: Some(two(28, CENTI)),
        mem_busy: None,
        video_busy: None,
        power_w,
        temp_edge: Some(two(4, CENTI)),
        temp_junction: None,
        temp_mem: None,
        sclk_mhz: [whole(76), whole(64)],
        mclk_mhz: [whole(80), whole(68)],
        throttle: Throttling::Bits { own: 108, common },
    }
}

/// APUs from Strix Point on. Averages only.
const V3_0: Layout = Layout {
    version: (3, 0),
    size: 264,
    busy: None,
    mem_busy: None,
    video_busy: Some(two(44, CENTI)),
    power_w: Some(At {
        offset: 112,
        width: Width::Four,
        per_unit: MILLI,
    }),
    temp_edge: Some(two(4, CENTI)),
    temp_junction: None,
    temp_mem: None,
    sclk_mhz: [whole(174); 2],
    mclk_mhz: [whole(186); 2],
    throttle: Throttling::Counters(228),
};
