use super::{Definition, Depth};

pub(super) const DEFINITION: Definition = Definition {
    meaning: "The child died by SIGSEGV or abort without a more specific cause.",
    depth: Depth::Ending,
    advice: |_, _, _| {
        Some(
        "start it without extensions or custom nodes (ComfyUI: --disable-all-custom-nodes, SD.Next: --safe); if it still crashes, reinstall torch, torchvision and torchaudio for this card from one index; a restart alone is no cure".to_owned()
    )
    },
    ..Definition::fault()
};
