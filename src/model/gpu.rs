//! One card: who it is, what it reads, what a second source says of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::sample::{Metric, ProcSample};
use super::units::Bytes;

/// A card, by its PCI address (`0000:0c:00.0`): card and hwmon numbers change
/// between boots, the address does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuId(pub String);

impl fmt::Display for GpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whether a runtime status (the kernel's `power/runtime_status`: `active`, `resuming`,
/// `suspended`, `suspending`, …) is that of a card that sleeps or is about to.
pub fn is_suspended(runtime_status: &str) -> bool {
    runtime_status.starts_with("suspend")
}

/// Who made a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    /// AMD, read through amdgpu's sysfs.
    Amd,
    /// NVIDIA, read through NVML.
    Nvidia,
    /// Of a recording that does not tell it; never read from a card.
    Unknown,
}

/// One reading of one card. All values are the card's, over all processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    /// PCI address.
    pub id: GpuId,
    /// Position in the list of cards, by PCI address, from 0.
    pub index: u32,
    /// Maker.
    pub vendor: Vendor,
    /// Marketing name where known, else vendor and device id.
    pub name: String,
    /// Architecture: `gfx1100`, `sm_90`; absent where it cannot be told.
    pub arch: Option<String>,
    /// Whether VRAM is (a part of) the host's memory.
    pub apu: bool,
    /// Which source gave the values: `sysfs`, `nvml`, `script`. Never a mixture.
    pub source: String,
    /// `active`, `suspended`, …: amdgpu's runtime status.
    pub state: Metric<String>,
    /// Percent of time that the graphics or compute engine was busy.
    pub busy: Metric<f64>,
    /// Percent of time that the memory controller was busy.
    pub mem_busy: Metric<f64>,
    /// Watts. On an APU the whole package.
    pub power_w: Metric<f64>,
    /// Watts: the limit in force.
    pub power_cap_w: Metric<f64>,
    /// VRAM in use.
    pub vram_used: Metric<Bytes>,
    /// VRAM of the card.
    pub vram_total: Metric<Bytes>,
    /// System memory mapped for the GPU, in use.
    pub gtt_used: Metric<Bytes>,
    /// Limit of the above.
    pub gtt_total: Metric<Bytes>,
    /// Edge temperature, °C.
    pub temp_edge: Metric<f64>,
    /// Junction (hot spot) temperature, °C.
    pub temp_junction: Metric<f64>,
    /// Memory temperature, °C.
    pub temp_mem: Metric<f64>,
    /// Shader clock, MHz.
    pub sclk_mhz: Metric<f64>,
    /// Memory clock, MHz.
    pub mclk_mhz: Metric<f64>,
    /// Fan: revolutions a minute.
    pub fan_rpm: Metric<f64>,
    /// Fan: percent of its greatest duty.
    #[serde(default)]
    pub fan_percent: Metric<f64>,
    /// Percent of time that the video engine (VCN; NVDEC on NVIDIA) was busy.
    #[serde(default)]
    pub video_busy: Metric<f64>,
    /// What holds the clocks down at the moment; empty: nothing does.
    #[serde(default)]
    pub throttle: Metric<Vec<ThrottleReason>>,
    /// The PCIe link. Absent on APUs, whose link is inside the package.
    #[serde(default)]
    pub link: Metric<Link>,
    /// `auto`, `low`, `high`, …: amdgpu's forced performance level; a forced one makes
    /// clocks and power say nothing about work.
    #[serde(default)]
    pub perf_level: Metric<String>,
    /// Resets of the card, as far as the kernel tells.
    #[serde(default)]
    pub resets: Metric<Resets>,
    /// The limit that the kernel sets to memory mapped for GPUs (`ttm.pages_limit`),
    /// over all cards of the machine.
    #[serde(default)]
    pub ttm_limit: Metric<Bytes>,
    /// Position in HIP's (CUDA's) list of cards before any `*_VISIBLE_DEVICES`, from 0.
    /// Absent where it cannot be told.
    #[serde(default)]
    pub compute_index: Option<u32>,
    /// What a second source says of the same card at nearly the same time.
    #[serde(default)]
    pub second: Option<Box<Opinion>>,
    /// Where the two sources contradict each other; neither is taken for the truth.
    #[serde(default)]
    pub disagreements: Vec<Disagreement>,
}

/// Why clocks are held down, in the words that AMD and NVIDIA share. The vendors' bits
/// are grouped: nobody can act on a single bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    /// A power limit.
    Power,
    /// A current limit.
    Current,
    /// A temperature.
    Thermal,
    /// Asked for by the board or the firmware (power brake, PROCHOT, sync boost).
    External,
    /// A reason that we have no word for.
    Other,
}

impl ThrottleReason {
    /// The word of JSON and screen.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Current => "current",
            Self::Thermal => "thermal",
            Self::External => "external",
            Self::Other => "other",
        }
    }
}

/// A PCIe link, now and at best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Transfers a second and lane, in GT/s.
    pub gts: f64,
    /// Lanes.
    pub width: u8,
    /// The best that card and slot can do, GT/s; absent where not told.
    pub max_gts: Option<f64>,
    /// The most lanes; absent where not told.
    pub max_width: Option<u8>,
}

/// What is known of resets of a card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resets {
    /// Resets since the driver was loaded, where the kernel counts them.
    pub count: Option<u64>,
    /// Kinds of reset that the driver can do (`soft`, `queue`, `full`, `pipe`), where it says so.
    pub kinds: Vec<String>,
    /// A device core dump lies there: the card was reset, or hung, in the last minutes.
    /// None: this kernel does not offer them.
    pub core_dump: Option<bool>,
}

/// What a second source says of a card. Its values are never put in the place of the
/// first one's: rocm-smi turns errors into zeros.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Opinion {
    /// `rocm-smi`.
    pub source: String,
    /// Percent, as [`GpuSample::busy`].
    pub busy: Metric<f64>,
    /// Percent, as [`GpuSample::mem_busy`].
    pub mem_busy: Metric<f64>,
    /// Watts, as [`GpuSample::power_w`].
    pub power_w: Metric<f64>,
    /// Watts.
    pub power_cap_w: Metric<f64>,
    /// Bytes.
    pub vram_used: Metric<Bytes>,
    /// Bytes.
    pub vram_total: Metric<Bytes>,
    /// Bytes.
    pub gtt_used: Metric<Bytes>,
    /// Bytes.
    pub gtt_total: Metric<Bytes>,
    /// °C.
    pub temp_edge: Metric<f64>,
    /// °C.
    pub temp_junction: Metric<f64>,
    /// °C.
    pub temp_mem: Metric<f64>,
    /// Revolutions a minute.
    pub fan_rpm: Metric<f64>,
}

/// Two sources that say different things of one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disagreement {
    /// Name of the value: the field of [`GpuSample`].
    pub value: String,
    /// What the first source says, with unit, or its error.
    pub first: String,
    /// What the second source says, with unit.
    pub second: String,
    /// What is known of the cause, in words; absent where nothing is.
    pub note: Option<String>,
}

impl GpuSample {
    /// A sample of a card of which nothing is known yet but its identity.
    pub fn unread(id: GpuId, index: u32, vendor: Vendor, name: String, source: &str) -> Self {
        Self {
            id,
            index,
            vendor,
            name,
            arch: None,
            apu: false,
            source: source.to_owned(),
            state: Metric::Unsupported,
            busy: Metric::Unsupported,
            mem_busy: Metric::Unsupported,
            power_w: Metric::Unsupported,
            power_cap_w: Metric::Unsupported,
            vram_used: Metric::Unsupported,
            vram_total: Metric::Unsupported,
            gtt_used: Metric::Unsupported,
            gtt_total: Metric::Unsupported,
            temp_edge: Metric::Unsupported,
            temp_junction: Metric::Unsupported,
            temp_mem: Metric::Unsupported,
            sclk_mhz: Metric::Unsupported,
            mclk_mhz: Metric::Unsupported,
            fan_rpm: Metric::Unsupported,
            fan_percent: Metric::Unsupported,
            video_busy: Metric::Unsupported,
            throttle: Metric::Unsupported,
            link: Metric::Unsupported,
            perf_level: Metric::Unsupported,
            resets: Metric::Unsupported,
            ttm_limit: Metric::Unsupported,
            compute_index: None,
            second: None,
            disagreements: Vec::new(),
        }
    }

    /// The pool that counts for models: VRAM, or on an APU the larger of VRAM and
    /// GTT (the kernel allocates from the larger one; never their sum). Returns
    /// (used, total) where both were ever read.
    pub fn pool(&self) -> Option<(Bytes, Bytes)> {
        let vram = self
            .vram_used
            .last()
            .copied()
            .zip(self.vram_total.last().copied());
        let gtt = self
            .gtt_used
            .last()
            .copied()
            .zip(self.gtt_total.last().copied());
        match (self.apu, vram, gtt) {
            (true, Some(v), Some(g)) => Some(if g.1 > v.1 { g } else { v }),
            (true, None, Some(g)) => Some(g),
            (_, v, _) => v,
        }
    }

    /// Whether the pool that counts is GTT: an APU whose carve-out is the smaller one.
    pub fn pool_is_gtt(&self) -> bool {
        let total = |m: &Metric<Bytes>| m.last().copied();
        self.apu
            && match (total(&self.vram_total), total(&self.gtt_total)) {
                (Some(v), Some(g)) => g > v,
                (None, Some(_)) => true,
                (_, None) => false,
            }
    }

    /// Memory of the pool that counts held by processes outside the supervised tree:
    /// all of it less what the tree holds, so all of it where the tree has not opened the
    /// card (it is then listed with zeros). `None` where either is not known. What the
    /// driver itself takes is among it.
    pub fn held_by_others(&self, tree: Option<&ProcSample>) -> Option<Bytes> {
        let gtt = self.pool_is_gtt();
        let used = if gtt { &self.gtt_used } else { &self.vram_used }.fresh()?;
        let ours = tree?.on_card(&self.id)?;
        let held = if gtt { &ours.gtt } else { &ours.vram }.fresh()?;
        Some(used.saturating_sub(*held))
    }
}
