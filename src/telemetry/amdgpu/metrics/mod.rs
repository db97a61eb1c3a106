//! The driver's binary table of sensors (`gpu_metrics`).
//!
//! One read of it makes the driver ask the card's firmware, so it is read once a sample.
//! It is the only source of throttling, and stands in for values that have no file of
//! their own. Where it differs from a file, the file counts: the two are averages over
//! different windows.
//!
//! Fields and units: the kernel's `kgd_pp_interface.h` (`struct gpu_metrics_v*`).

mod layout;
mod throttle;

use layout::{At, LAYOUTS, Layout, Throttling, Width};
pub(super) use throttle::{Throttle, Watch};

/// Bytes of the header: size, format and content revision.
const HEADER: usize = 4;

/// Why a table gave no values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MetricsError {
    /// Not even the header is there.
    #[error("{0} bytes are no table")]
    NoHeader(usize),
    /// A version whose fields are not read. Those for data centre cards (1.4 and later)
    /// are known by name only.
    #[error("version {0}.{1} is not read")]
    Version(u8, u8),
    /// The table says of itself another size than its version has.
    #[error("version {format}.{content} with {said} bytes, where it has {right}")]
    Size {
        /// Format revision.
        format: u8,
        /// Content revision.
        content: u8,
        /// Size in the header.
        said: usize,
        /// Size of this version.
        right: usize,
    },
    /// The file ends before the table does.
    #[error("{there} of {said} bytes")]
    Cut {
        /// Bytes that were read.
        there: usize,
        /// Size in the header.
        said: usize,
    },
}

/// What a table says; `None`: this card or version does not tell it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Metrics {
    /// Percent of time that the graphics engine was busy.
    pub(super) busy: Option<f64>,
    /// Percent of time that the memory controller was busy.
    pub(super) mem_busy: Option<f64>,
    /// Percent of time that the video engine was busy.
    pub(super) video_busy: Option<f64>,
    /// Watts; on an APU the whole package.
    pub(super) power_w: Option<f64>,
    /// Edge temperature (that of the graphics part on an APU), °C.
    pub(super) temp_edge: Option<f64>,
    /// Junction temperature, °C.
    pub(super) temp_junction: Option<f64>,
    /// Memory temperature, °C.
    pub(super) temp_mem: Option<f64>,
    /// Shader clock, MHz.
    pub(super) sclk_mhz: Option<f64>,
    /// Memory clock, MHz.
    pub(super) mclk_mhz: Option<f64>,
    /// What holds the clocks down.
    pub(super) throttle: Option<Throttle>,
}

/// Reads a table. What follows it (some files are padded to a page) does not matter.
pub(crate) fn parse(bytes: &[u8]) -> Result<Metrics, MetricsError> {
    let Some(&[low, high, format, content]) = bytes.first_chunk::<HEADER>() else {
        return Err(MetricsError::NoHeader(bytes.len()));
    };
    let said = usize::from(u16::from_le_bytes([low, high]));
    let layout = LAYOUTS
        .iter()
        .find(|l| l.version == (format, content))
        .ok_or(MetricsError::Version(format, content))?;
    if said != layout.size {
        return Err(MetricsError::Size {
            format,
            content,
            said,
            right: layout.size,
        });
    }
    let table = bytes.get(..said).ok_or(MetricsError::Cut {
        there: bytes.len(),
        said,
    })?;
    Ok(values(table, layout))
}

fn values(table: &[u8], layout: &Layout) -> Metrics {
    let one = |at: Option<At>| number(table, at?);
    let percent = |at| one(at).filter(|value| *value <= 100.0);
    // Cards without the sensor leave a zero there; none of these is ever zero.
    let sensor = |at| one(at).filter(|value| *value > 0.0);
    let first = |all: &[At]| all.iter().find_map(|at| sensor(Some(*at)));
    Metrics {
        busy: percent(layout.busy),
        mem_busy: percent(layout.mem_busy),
        video_busy: percent(layout.video_busy),
        power_w: sensor(layout.power_w),
        temp_edge: sensor(layout.temp_edge),
        temp_junction: sensor(layout.temp_junction),
        temp_mem: sensor(layout.temp_mem),
        sclk_mhz: first(&layout.sclk_mhz),
        mclk_mhz: first(&layout.mclk_mhz),
        throttle: match layout.throttle {
            Throttling::Bits { own, common } => {
                let common = common.and_then(|offset| u64_at(table, offset));
                let own = u32_at(table, own);
                common
                    .map(throttle::of_common)
                    .or_else(|| own.map(throttle::of_own))
            }
            Throttling::Counters(offset) => throttle::counters(table, offset),
        },
    }
}

/// A number of the table; all bits set stand for "not there".
fn number(table: &[u8], at: At) -> Option<f64> {
    let raw = match at.width {
        Width::Two => {
            let raw = u16::from_le_bytes(*table.get(at.offset..)?.first_chunk()?);
            (raw != u16::MAX).then_some(u32::from(raw))?
        }
        Width::Four => u32_at(table, at.offset)?,
    };
    Some(f64::from(raw) / at.per_unit)
}

fn u32_at(table: &[u8], offset: usize) -> Option<u32> {
    let raw = u32::from_le_bytes(*table.get(offset..)?.first_chunk()?);
    (raw != u32::MAX).then_some(raw)
}

fn u64_at(table: &[u8], offset: usize) -> Option<u64> {
    let raw = u64::from_le_bytes(*table.get(offset..)?.first_chunk()?);
    (raw != u64::MAX).then_some(raw)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
