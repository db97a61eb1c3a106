//! The lines by which programs tell their settings, and the arguments that set them: the only
//! list of those words. Read in the sources of the programs:
//!
//! | program | revision | files |
//! | --- | --- | --- |
//! | ComfyUI | Comfy-Org/ComfyUI 02b2b38 | `comfy/model_management.py`, `comfy/ldm/modules/attention.py`, `comfy/sd.py`, `comfy/model_base.py`, `main.py` |
//! | SD.Next | vladmandic/sdnext 058a7f0 | `modules/devices.py`, `modules/shared.py`, `modules/shared_defaults.py`, `modules/sd_offload.py`, `modules/processing_vae.py` |
//! | FramePack | lllyasviel/FramePack 97fe5db | `demo_gradio.py`, `diffusers_helper/memory.py`, `diffusers_helper/models/hunyuan_video_packed.py` |
//! | FramePack-Studio | colinurbs/FramePack-Studio f4369da | `studio.py`, `diffusers_helper/models/hunyuan_video_packed.py` |
//! | WanGP | deepbeepmeep/Wan2GP 8681e9f, deepbeepmeep/mmgp | `wgp.py`, `src/mmgp/offload.py` |
//! | InvokeAI | invoke-ai/InvokeAI 8e71a8a | `backend/model_manager/load/model_cache/model_cache.py` (it prints neither attention nor precision) |
//! | stable-diffusion.cpp | leejet/stable-diffusion.cpp 97d2990 | `src/stable-diffusion.cpp`, `src/model/vae/vae.hpp`, `src/core/ggml_graph_cut.cpp` |
//! | musubi-tuner | kohya-ss/musubi-tuner 30c658c | `src/musubi_tuner/*_generate_*.py` |

use super::settings::Setting;

/// A pattern of a line, and the setting that it tells. Its group `v` holds the value; where it
/// has none, `value` is that.
pub(super) struct Printed {
    pub(super) setting: Setting,
    pub(super) value: &'static str,
    pub(super) pattern: &'static str,
}

const fn reads(setting: Setting, pattern: &'static str) -> Printed {
    Printed {
        setting,
        value: "",
        pattern,
    }
}

const fn means(setting: Setting, value: &'static str, pattern: &'static str) -> Printed {
    Printed {
        setting,
        value,
        pattern,
    }
}

/// Later lines count: `FramePack` names its attention libraries from the last to the first choice.
pub(super) const PRINTED: &[Printed] = &[
    // ComfyUI; older versions say "cross attention"
    reads(
        Setting::Attention,
        r"\bUsing (?P<v>sage|Flash|xformers|pytorch|split|sub quadratic|Comfy Kitchen)(?: optimization for)?(?: cross)? [Aa]ttention(?:\s*$|,)",
    ),
    reads(
        Setting::VramMode,
        r"\bSet vram state to: (?P<v>(?:NO|LOW|NORMAL|HIGH)_VRAM|DISABLED|SHARED)\b",
    ),
    means(
        Setting::DynamicVram,
        "on",
        r"\bDynamicVRAM support detected and enabled\b",
    ),
    means(
        Setting::PinnedMemory,
        "on",
        r"\bEnabled pinned memory \d|\bpinned (?:entirely )?to reserved RAM\b|\bPinning data of '[^']+' to reserved RAM",
    ),
    reads(
        Setting::Reserved,
        r"\bReserving (?P<v>\d+(?:\.\d+)?MB) vram for other applications\b|\bto preserve memory: (?P<v2>\d+(?:\.\d+)? GB)\b|\bwith preserved memory: (?P<v3>\d+(?:\.\d+)? GB)\b|--max-vram < 0 auto-detected .{0,60}\breserving (?P<v4>\d+\.\d+ GiB)",
    ),
    reads(
        Setting::VaeDevice,
        r"\bVAE load device: (?P<v>cpu|cuda)\b|\bVAE Autoencoder: Using (?P<v2>CPU) backend",
    ),
    reads(
        Setting::VaePrecision,
        r"\bVAE load device: .{0,60}\bdtype: (?P<v>torch\.\w+)|\bTorch override: no-half-vae dtype=(?P<v2>torch\.\w+)|\bVAE weight type stat: +(?P<v3>f32|f16|bf16): \d+\s*$",
    ),
    reads(
        Setting::Precision,
        r"\bmodel weight dtype (?P<v>torch\.\w+), manual cast|\bTorch parameters: backend=.{0,120}? dtype=(?P<v2>torch\.\w+)|\bTorch override: no-half dtype=(?P<v3>torch\.\w+)|\b(?:DiT weight )?weight precision: (?P<v4>torch\.\w+)|\b(?P<v5>FP32), if this improves things please report it",
    ),
    means(
        Setting::Precision,
        "fp8",
        r"\bEnabling FP8 acceleration\b|\bLoaded FP8 optimized weights\b",
    ),
    means(
        Setting::Precision,
        "fp16",
        r"\bSwitching to FP16 models when possible as GPU architecture\b",
    ),
    means(
        Setting::Offload,
        "partial",
        r"\bloaded partially\b|\bLoaded model '[^']+' \(\w+\) onto .{0,90}VRAM: [\d.]+MB \((?:\d{1,2}\.\d)%\)",
    ),
    // SD.Next
    reads(
        Setting::Attention,
        r#"\bEngine: backend=.{0,120}\battention="(?P<v>[\w -]+)"|\bTorch parameters: backend=.{0,200}\boptimization="(?P<v2>[\w -]+)""#,
    ),
    reads(
        Setting::Attention,
        r#"\bTorch attention: type="(?P<v>Flash|Sage|Triton Flash|Flex|SDNQ) attention"(?: backend=.*| matmul=.*)?\s*$"#,
    ),
    reads(
        Setting::VramMode,
        r"\bDevice detect: memory=.{0,60}\boptimization=(?P<v>low|med)vram\b",
    ),
    reads(
        Setting::Offload,
        r"\bOffload: type=(?P<v>balanced) op=init\b|\bSetting \w+: offload=(?P<v2>none|model|sequential|group|balanced)\b",
    ),
    reads(
        Setting::Tiles,
        r#"\bDecode: vae=".{0,160}\btiling=(?P<v>True|False)\b|\bVAE tiling: (?P<v2>true|false)\b"#,
    ),
    // FramePack
    reads(Setting::VramMode, r"\bHigh-VRAM Mode: (?P<v>True|False)\b"),
    means(
        Setting::Attention,
        "pytorch",
        r"^Xformers is not installed!|\bNo attention library found\. Using native PyTorch\b",
    ),
    reads(
        Setting::Attention,
        r"^(?P<v>Xformers|Flash Attn|Sage Attn) is installed!",
    ),
    // FramePack-Studio
    reads(
        Setting::Attention,
        r"\bUsing (?:(?P<v>SAGE|Flash) Attention \(high|(?P<v2>xFormers)\.)",
    ),
    // WanGP
    reads(
        Setting::Profile,
        r"\bProfile '(?P<v>\w+)' sets the following options",
    ),
    means(
        Setting::Offload,
        "blocks",
        r"\bAsync loading plan for model '|\bEnable swap \d+ blocks to CPU\b|\bEnabling block swap: offloading \d+ blocks\b",
    ),
    // stable-diffusion.cpp
    means(
        Setting::Attention,
        "flash",
        r"\bUsing flash attention(?: in the diffusion model)?\s*$",
    ),
    means(
        Setting::Tiles,
        "on",
        r"\bVAE Tile size: \d|\b[Rr]etrying with (?:tiled VAE|(?:spatial |temporal )?til)|\btiled VAE (?:decod|fallback)",
    ),
    means(
        Setting::Offload,
        "cpu",
        r"\btotal params memory size = .{0,60}\bRAM [1-9].{0,120}\bdiffusion_model [\d.]+MB\(RAM\)",
    ),
    // musubi-tuner
    reads(
        Setting::Blocks,
        r"\bEnable swap (?P<v>\d+) blocks to CPU\b|\bEnabling block swap: offloading (?P<v2>\d+) blocks\b",
    ),
];

/// What an argument sets. The cures' instructions are read by this list as well.
pub(super) struct Argument {
    pub(super) words: &'static str,
    pub(super) setting: Setting,
    pub(super) value: &'static str,
}

const fn argument(words: &'static str, setting: Setting, value: &'static str) -> Argument {
    Argument {
        words,
        setting,
        value,
    }
}

/// The first of a word is what it sets; the others make it needless as well.
pub(super) const ARGUMENTS: &[Argument] = &[
    argument("--lowvram", Setting::VramMode, "low"),
    argument("--lowvram", Setting::VramMode, "none"),
    // ComfyUI's own help: it does nothing where dynamic VRAM is on
    argument("--lowvram", Setting::DynamicVram, "on"),
    argument("--medvram", Setting::VramMode, "medium"),
    argument("--medvram", Setting::VramMode, "low"),
    argument("--novram", Setting::VramMode, "none"),
    argument("--highvram", Setting::VramMode, "high"),
    argument("--gpu-only", Setting::VramMode, "high"),
    argument("--disable-dynamic-vram", Setting::DynamicVram, "off"),
    argument("--disable-pinned-memory", Setting::PinnedMemory, "off"),
    argument("--cpu-vae", Setting::VaeDevice, "cpu"),
    argument("--vae-on-cpu", Setting::VaeDevice, "cpu"),
    argument("--fp32-vae", Setting::VaePrecision, "fp32"),
    argument("--no-half-vae", Setting::VaePrecision, "fp32"),
    argument("--fp16-vae", Setting::VaePrecision, "fp16"),
    argument("--bf16-vae", Setting::VaePrecision, "bf16"),
    argument("--force-fp32", Setting::Precision, "fp32"),
    argument("--no-half", Setting::Precision, "fp32"),
    argument("--fp8_scaled", Setting::Precision, "fp8"),
    argument(
        "--use-pytorch-cross-attention",
        Setting::Attention,
        "pytorch",
    ),
    argument(
        "--use-quad-cross-attention",
        Setting::Attention,
        "sub_quadratic",
    ),
    argument("--use-split-cross-attention", Setting::Attention, "split"),
    argument("--use-sage-attention", Setting::Attention, "sage"),
    argument("--use-flash-attention", Setting::Attention, "flash"),
    argument("--diffusion-fa", Setting::Attention, "flash"),
    argument("--vae-tiling", Setting::Tiles, "on"),
    argument("--vae_tiling", Setting::Tiles, "on"),
    argument("enable_tiling()", Setting::Tiles, "on"),
    argument("--offload-to-cpu", Setting::Offload, "cpu"),
    argument("enable_model_cpu_offload()", Setting::Offload, "model"),
    argument(
        "enable_sequential_cpu_offload()",
        Setting::Offload,
        "sequential",
    ),
    argument("--profile 5", Setting::Profile, "5"),
    argument("--cache-none", Setting::ModelCache, "none"),
];
