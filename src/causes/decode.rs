//! What to do about a decode of the VAE that stands still: the only wording of it.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::Backend;

/// How the programs decode in tiles.
pub const TILES: &str = "ComfyUI: the node VAE Decode (Tiled); diffusers: pipe.vae.enable_tiling(); InvokeAI: force_tiled_decode; SD.Next: VAE tiling in its settings";

/// What is in force already of that which helps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct InForce {
    /// The VAE decodes in tiles.
    pub(super) tiles: bool,
    /// `MIOPEN_FIND_MODE` is set.
    pub(super) fast_find: bool,
}

/// Whether a line sets MIOpen's search to its fast mode.
pub(super) fn sets_fast_find(text: &str) -> bool {
    static FAST: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"MIOPEN_FIND_MODE["']?\s*[=:]\s*["']?(?:FAST|2)\b"#).ok());
    text.contains("MIOPEN_FIND_MODE") && FAST.as_ref().is_some_and(|r| r.is_match(text))
}

/// The instruction, as a clause.
pub(super) fn that_stands(backend: Backend, in_force: InForce) -> String {
    let tiles = if in_force.tiles {
        "take smaller tiles".to_owned()
    } else {
        format!("decode in tiles ({TILES})")
    };
    match backend {
        Backend::Vulkan if in_force.tiles => {
            "take smaller tiles (--vae-tile-size 16x16), or let the processor decode (--vae-on-cpu)"
                .to_owned()
        }
        Backend::Vulkan => "decode in tiles (--vae-tiling, with --vae-conv-direct), then on the processor (--vae-on-cpu): variables of MIOpen change nothing under Vulkan".to_owned(),
        Backend::Cuda => format!("{tiles}: the card's memory is probably full, and variables of MIOpen change nothing on a card of NVIDIA"),
        _ if in_force.fast_find => format!("{tiles}, for MIOPEN_FIND_MODE is set already; the processor comes last"),
        _ => {
            let fast = "start with MIOPEN_FIND_MODE=FAST (on an AMD card MIOpen searches its kernels at the first decode of a size)";
            if in_force.tiles {
                fast.to_owned()
            } else {
                format!("{fast}, then {tiles}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_is_not_advised() {
        let none = InForce::default();
        let tiles = InForce {
            tiles: true,
            ..none
        };
        let fast = InForce {
            fast_find: true,
            ..none
        };
        for backend in [Backend::Hip, Backend::Unknown] {
            assert!(that_stands(backend, none).contains("MIOPEN_FIND_MODE=FAST"));
            assert!(that_stands(backend, none).contains("tiles"));
            assert!(!that_stands(backend, tiles).contains("tiles"));
            assert!(!that_stands(backend, fast).contains("=FAST"));
        }
        assert!(!that_stands(Backend::Vulkan, none).contains("FIND_MODE"));
        assert!(that_stands(Backend::Vulkan, none).contains("--vae-tiling"));
        assert!(!that_stands(Backend::Vulkan, tiles).contains("--vae-tiling"));
    }
}
