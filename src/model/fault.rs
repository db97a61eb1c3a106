//! What the kernel said about a card, or about a process that it killed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::gpu::GpuId;

/// What happened, in words that AMD and NVIDIA share where they can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A ring of the card did not come to the end of its work in time.
    RingTimeout,
    /// A unit of the card (an IP block, the scheduler MES, the SMU) does not answer.
    EngineHang,
    /// A reset of a ring or of the whole card began.
    ResetBegun,
    /// It succeeded. Whatever ran on the card is lost all the same.
    ResetDone,
    /// It failed.
    ResetFailed,
    /// The content of the card's memory was lost in a reset.
    VramLost,
    /// A program on the card touched memory that is not mapped.
    PageFault,
    /// Queues or memory could not be taken off the card.
    EvictFailed,
    /// The driver refused work for want of memory.
    NoMemory,
    /// The card was too hot and took itself off.
    OverTemperature,
    /// Memory errors that could not be corrected.
    EccError,
    /// The card no longer answers on the bus.
    BusLost,
    /// The kernel killed a process for want of host memory.
    OomKill,
    /// An error report of NVIDIA's driver; its number tells which.
    Xid,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::RingTimeout,
        Self::EngineHang,
        Self::ResetBegun,
        Self::ResetDone,
        Self::ResetFailed,
        Self::VramLost,
        Self::PageFault,
        Self::EvictFailed,
        Self::NoMemory,
        Self::OverTemperature,
        Self::EccError,
        Self::BusLost,
        Self::OomKill,
        Self::Xid,
    ];

    /// The words of the screen.
    pub const fn words(self) -> &'static str {
        match self {
            Self::RingTimeout => "ring timeout",
            Self::EngineHang => "engine hang",
            Self::ResetBegun => "reset begun",
            Self::ResetDone => "reset done",
            Self::ResetFailed => "reset failed",
            Self::VramLost => "VRAM lost",
            Self::PageFault => "page fault",
            Self::EvictFailed => "evict failed",
            Self::NoMemory => "out of GPU memory",
            Self::OverTemperature => "over temperature",
            Self::EccError => "memory error",
            Self::BusLost => "lost from the bus",
            Self::OomKill => "OOM kill",
            Self::Xid => "Xid",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

/// A line of the kernel log, understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFault {
    /// What happened.
    pub kind: FaultKind,
    /// The card, where the line names it by its PCI address.
    pub gpu: Option<GpuId>,
    /// Ring, IP block or unit (`gfx_0.0.0`, `sdma_v6_0`, `MES`), where named.
    pub part: Option<String>,
    /// Process that is named as the cause, or that was killed.
    pub pid: Option<u32>,
    /// Its name, cut off by the kernel at 15 letters.
    pub process: Option<String>,
    /// Number of an Xid.
    pub code: Option<u32>,
}

impl KernelFault {
    /// A fault of which nothing is known but its kind.
    pub const fn new(kind: FaultKind) -> Self {
        Self {
            kind,
            gpu: None,
            part: None,
            pid: None,
            process: None,
            code: None,
        }
    }

    /// Whether it is a fault of a card that is not the supervised one. A fault that
    /// names no card may be of any.
    pub fn is_of_another(&self, supervised: Option<&GpuId>) -> bool {
        match (&self.gpu, supervised) {
            (Some(gpu), Some(ours)) => gpu != ours,
            _ => false,
        }
    }

    /// Short words without card and process: `ring timeout gfx_0.0.0`,
    /// `Xid 79 (fallen off the bus)`, `OOM kill`.
    pub fn words(&self) -> String {
        let kind = self.kind.words();
        match (self.code, &self.part) {
            (Some(code), _) => match xid_meaning(code) {
                Some(meaning) => format!("{kind} {code} ({meaning})"),
                None => format!("{kind} {code}"),
            },
            (None, Some(part)) => format!("{kind} {part}"),
            (None, None) => kind.to_owned(),
        }
    }
}

/// What NVIDIA's catalogue says of the common numbers, in few words:
/// <https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>.
pub const fn xid_meaning(code: u32) -> Option<&'static str> {
    Some(match code {
        8 | 43 => "GPU stopped processing",
        13 => "graphics engine exception",
        31 => "GPU memory page fault",
        32 => "invalid push buffer",
        45 => "clean-up after an earlier error",
        48 => "memory error that could not be corrected",
        61 => "internal micro-controller warning",
        62 => "internal micro-controller halt",
        63 => "memory row remapped",
        64 => "memory row could not be remapped",
        74 => "NVLink error",
        79 => "fallen off the bus",
        92 => "many corrected memory errors",
        94 => "contained memory error",
        95 => "uncontained memory error",
        109 => "context switch timeout",
        119 => "GSP timeout",
        120 => "GSP error",
        154 => "recovery action changed",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_complete_and_its_words_differ() {
        let words: std::collections::BTreeSet<_> =
            FaultKind::ALL.iter().map(|k| k.words()).collect();
        assert_eq!(words.len(), FaultKind::ALL.len());
        for kind in FaultKind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<FaultKind>(&json).unwrap(), kind);
        }
        assert_eq!(
            serde_json::to_string(&FaultKind::OomKill).unwrap(),
            "\"oom_kill\""
        );
    }

    #[test]
    fn a_fault_is_of_another_card_only_where_both_are_known() {
        let id = |s: &str| GpuId(s.to_owned());
        let mut fault = KernelFault::new(FaultKind::ResetBegun);
        assert!(!fault.is_of_another(Some(&id("0000:0c:00.0"))));
        fault.gpu = Some(id("0000:03:00.0"));
        assert!(fault.is_of_another(Some(&id("0000:0c:00.0"))));
        assert!(!fault.is_of_another(Some(&id("0000:03:00.0"))));
        assert!(!fault.is_of_another(None));
    }

    #[test]
    fn words_are_short() {
        let mut fault = KernelFault::new(FaultKind::Xid);
        fault.code = Some(79);
        assert_eq!(fault.words(), "Xid 79 (fallen off the bus)");
        fault.code = Some(7777);
        assert_eq!(fault.words(), "Xid 7777");
        let mut fault = KernelFault::new(FaultKind::RingTimeout);
        fault.part = Some("gfx_0.0.0".to_owned());
        assert_eq!(fault.words(), "ring timeout gfx_0.0.0");
    }
}
