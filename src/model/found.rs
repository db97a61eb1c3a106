//! Processes of this machine that look like a generation or hold GPU memory, whoever
//! started them.

use super::gpu::GpuId;
use super::units::Bytes;

/// What a process holds of one card; absent is not zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardMemory {
    /// Which card.
    pub gpu: GpuId,
    /// The card's own memory. Absent: it holds some, and how much is not told.
    pub vram: Option<Bytes>,
    /// Host memory that the card uses (GTT); absent where the driver does not tell.
    pub gtt: Option<Bytes>,
}

/// A process with those of its descendants that belong to it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundProcess {
    /// Process id.
    pub pid: u32,
    /// When it began, in clock ticks since boot: with the id it names one process for
    /// good.
    pub start: u64,
    /// What it looks like: an adapter's word (`framepack`, `comfyui`, `diffusers`).
    /// Absent: it was found by its GPU memory alone.
    pub kind: Option<String>,
    /// Name (`comm`).
    pub name: String,
    /// Command and arguments; empty where they cannot be read.
    pub argv: Vec<String>,
    /// What it holds, by card; empty: nothing, unless `hidden` says otherwise.
    pub memory: Vec<CardMemory>,
    /// Why it may hold more than `memory` tells, such as `another user's`.
    pub hidden: Option<String>,
    /// CPU of it and its descendants since the last look, 100 = one core; absent at
    /// the first look.
    pub cpu_percent: Option<f64>,
    /// For how long it has lived, milliseconds; absent where the clock of the boot
    /// cannot be read.
    pub age_ms: Option<u64>,
    /// Descendants that are shown with it.
    pub others: u32,
    /// The process of this program that supervises it, where one does.
    pub supervisor: Option<u32>,
}
