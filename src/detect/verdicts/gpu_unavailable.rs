use super::Definition;
use crate::model::Severity;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "Driver or runtime cannot offer any device (version mismatch, lost after resume).",
    severity: Severity::Critical,
    failure: "no card can be used",
    advice: |_, _, _| {
        Some(
        "the runtime finds no card: see whether `rocminfo` (NVIDIA: `nvidia-smi`) lists it; if not, look at the driver and at the groups of the user (render, video), in a container at --device /dev/kfd --device /dev/dri (NVIDIA: --gpus all); if it does, look at HIP_VISIBLE_DEVICES and at the build of PyTorch".to_owned()
    )
    },
    ..Definition::fault()
};
