use super::Definition;

pub(super) const DEFINITION: Definition = Definition {
    meaning: "No device code for this architecture (invalid device function, no binary, Tensile library missing).",
    failure: "the program has no code for this card",
    advice: |_, facts, _| {
        Some(format!(
            "install a build with code for {} (PyTorch: uninstall torch, torchvision and torchaudio, then all three from one index that lists that number; `rocminfo | grep gfx` shows it); a restart cannot help",
            facts.arch.as_deref().unwrap_or("this card's gfx number")
        ))
    },
    ..Definition::fault()
};
