//! Lines as the programs print them, with what they set.

use super::*;

fn after(lines: &[&str]) -> Settings {
    let mut settings = Settings::default();
    for line in lines {
        settings.observe(line);
    }
    settings
}

fn has(lines: &[&str], setting: Setting, value: &str) {
    assert_eq!(after(lines).get(setting), Some(value), "{lines:?}");
}

#[test]
fn every_pattern_is_one_and_every_value_a_word() {
    let set = SET.as_ref().unwrap();
    assert!((0..PRINTED.len()).all(|n| set.regex(n).is_some()));
    let printed = PRINTED.iter().map(|p| (p.setting, p.value));
    let arguments = ARGUMENTS.iter().map(|a| (a.setting, a.value));
    for (setting, value) in printed.chain(arguments) {
        let known = value.is_empty() || setting.words().contains(&value);
        assert!(known, "{setting:?} {value}");
    }
}

#[test]
fn comfyui() {
    for (line, setting, value) in [
        ("Set vram state to: LOW_VRAM", Setting::VramMode, "low"),
        (
            "[INFO] Set vram state to: NO_VRAM",
            Setting::VramMode,
            "none",
        ),
        (
            "Set vram state to: NORMAL_VRAM",
            Setting::VramMode,
            "normal",
        ),
        ("Set vram state to: HIGH_VRAM", Setting::VramMode, "high"),
        ("Set vram state to: DISABLED", Setting::VramMode, "disabled"),
        ("Using pytorch attention", Setting::Attention, "pytorch"),
        (
            "Using pytorch cross attention",
            Setting::Attention,
            "pytorch",
        ),
        ("Using sage attention", Setting::Attention, "sage"),
        ("Using Flash Attention", Setting::Attention, "flash"),
        ("Using xformers attention", Setting::Attention, "xformers"),
        (
            "Using split optimization for attention",
            Setting::Attention,
            "split",
        ),
        (
            "Using sub quadratic optimization for attention, if you have memory or speed issues try using: --use-split-cross-attention",
            Setting::Attention,
            "sub_quadratic",
        ),
        ("Enabled pinned memory 29414.0", Setting::PinnedMemory, "on"),
        (
            "DynamicVRAM support detected and enabled",
            Setting::DynamicVram,
            "on",
        ),
        (
            "Reserving 2048.0MB vram for other applications.",
            Setting::Reserved,
            "2048.0MB",
        ),
        (
            "VAE load device: cuda:0, offload device: cpu, dtype: torch.bfloat16",
            Setting::VaePrecision,
            "bf16",
        ),
        (
            "VAE load device: cpu, offload device: cpu, dtype: torch.float32",
            Setting::VaeDevice,
            "cpu",
        ),
        (
            "model weight dtype torch.float8_e4m3fn, manual cast: torch.bfloat16",
            Setting::Precision,
            "fp8",
        ),
        (
            "Forcing FP32, if this improves things please report it.",
            Setting::Precision,
            "fp32",
        ),
        (
            "loaded partially 5120.0 5119.9 0",
            Setting::Offload,
            "partial",
        ),
        (
            "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.",
            Setting::Tiles,
            "on",
        ),
    ] {
        has(&[line], setting, value);
    }
    // the VAE's own attention is another matter
    let vae = ["Using sage attention", "Using pytorch attention in VAE"];
    has(&vae, Setting::Attention, "sage");
}

#[test]
fn sdnext() {
    for (line, setting, value) in [
        (
            "10:01:02-345678 INFO     Torch parameters: backend=rocm device=cuda config=Auto dtype=torch.bfloat16 fp16=pass bf16=pass triton=pass optimization=\"Scaled-Dot-Product\"",
            Setting::Precision,
            "bf16",
        ),
        (
            "10:01:02-345678 INFO     Torch parameters: backend=rocm device=cuda config=Auto dtype=torch.bfloat16 fp16=pass bf16=pass triton=pass optimization=\"Scaled-Dot-Product\"",
            Setting::Attention,
            "pytorch",
        ),
        (
            "10:01:02-345678 INFO     Torch override: no-half-vae dtype=torch.float32",
            Setting::VaePrecision,
            "fp32",
        ),
        (
            "10:01:02-345678 INFO     Device detect: memory=8.0 default=balanced optimization=medvram",
            Setting::VramMode,
            "medium",
        ),
        (
            "10:01:02-345678 INFO     Offload: type=balanced op=init watermark=0.2-0.6 gpu=3-9:16 cpu=62.7",
            Setting::Offload,
            "balanced",
        ),
        (
            "10:01:02-345678 DEBUG    Setting model: offload=sequential limit=0.0",
            Setting::Offload,
            "sequential",
        ),
        (
            "10:01:02-345678 DEBUG    Decode: vae=\"default\" scale=8 upcast=0 slicing=True tiling=True latents=[1, 4, 128, 128]:cuda:0",
            Setting::Tiles,
            "on",
        ),
        (
            "10:01:02-345678 DEBUG    Torch attention: type=\"Flash attention\"",
            Setting::Attention,
            "flash",
        ),
    ] {
        has(&[line], setting, value);
    }
    let failed = "10:01:02-345678 ERROR    Torch attention: type=\"Flash attention\" No module named 'flash_attn'";
    assert_eq!(after(&[failed]).get(Setting::Attention), None);
}

#[test]
fn framepack_and_its_studio() {
    has(&["High-VRAM Mode: False"], Setting::VramMode, "normal");
    has(&["High-VRAM Mode: True"], Setting::VramMode, "high");
    let none = [
        "Xformers is not installed!",
        "Flash Attn is not installed!",
        "Sage Attn is not installed!",
    ];
    has(&none, Setting::Attention, "pytorch");
    let two = [
        "Xformers is installed!",
        "Flash Attn is not installed!",
        "Sage Attn is installed!",
    ];
    has(&two, Setting::Attention, "sage");
    let kept = "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB";
    has(&[kept], Setting::Reserved, "8 GB");
    let kept = "Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6.5 GB";
    has(&[kept], Setting::Reserved, "6.5 GB");
    for (line, value) in [
        (
            "\u{2705}  Using SAGE Attention (highest performance).",
            "sage",
        ),
        (
            "\u{2705}  Using Flash Attention (high performance).",
            "flash",
        ),
        ("\u{2705}  Using xFormers.", "xformers"),
        (
            "No attention library found. Using native PyTorch Scaled Dot Product Attention.",
            "pytorch",
        ),
    ] {
        has(&[line], Setting::Attention, value);
    }
}

#[test]
fn wangp() {
    for (line, setting, value) in [
        (
            "Profile 'LowRAM_LowVRAM' sets the following options:",
            Setting::Profile,
            "4",
        ),
        (
            "The whole model was pinned to reserved RAM: 160 large blocks spread across 15423.64 MB",
            Setting::PinnedMemory,
            "on",
        ),
        (
            "Async loading plan for model 'transformer' : base size of 2.06 MB will be preloaded with a 400 MB async shuttle",
            Setting::Offload,
            "blocks",
        ),
        (
            "Switching to FP16 models when possible as GPU architecture doesn't support optimed BF16 Kernels",
            Setting::Precision,
            "fp16",
        ),
    ] {
        has(&[line], setting, value);
    }
}

#[test]
fn invokeai_tells_a_model_that_does_not_fit() {
    let partly = "[MODEL CACHE] Loaded model 'a:transformer' (FluxTransformer) onto cuda device #0 in 12.20s. Total model size: 11400.00MB, VRAM: 8000.00MB (70.2%)";
    has(&[partly], Setting::Offload, "partial");
    let whole = "[MODEL CACHE] Loaded model 'a:vae' (AutoencoderKL) onto cuda device in 0.20s. Total model size: 160.00MB, VRAM: 160.00MB (100.0%)";
    assert_eq!(after(&[whole]), Settings::default());
}

#[test]
fn stable_diffusion_cpp() {
    for (line, setting, value) in [
        (
            "[INFO ] stable-diffusion.cpp:1637 - Using flash attention in the diffusion model",
            Setting::Attention,
            "flash",
        ),
        (
            "[INFO ] stable-diffusion.cpp:962  - VAE weight type stat:                  bf16: 194  ",
            Setting::VaePrecision,
            "bf16",
        ),
        (
            "[INFO ] stable-diffusion.cpp:1746 - total params memory size = 9000.00MB (VRAM 0.00MB, RAM 9000.00MB): text_encoders 3000.00MB(RAM), diffusion_model 5800.00MB(RAM), vae 200.00MB(RAM)",
            Setting::Offload,
            "cpu",
        ),
        (
            "[DEBUG] vae.hpp:190  - VAE Tile size: 32x32",
            Setting::Tiles,
            "on",
        ),
        (
            "[WARN ] backend_fit.cpp:385  - auto-fit: VAE decode failed (likely out of memory); retrying with spatial tiling",
            Setting::Tiles,
            "on",
        ),
        (
            "VAE Autoencoder: Using CPU backend",
            Setting::VaeDevice,
            "cpu",
        ),
        (
            "[INFO ] ggml_graph_cut.cpp:279 - --max-vram < 0 auto-detected 14.20 GiB free VRAM (16.00 GiB total), reserving 1.00 GiB; using 13.20 GiB",
            Setting::Reserved,
            "1.00 GiB",
        ),
    ] {
        has(&[line], setting, value);
    }
}

#[test]
fn musubi_tuner() {
    for (line, setting, value) in [
        (
            "INFO:musubi_tuner.wan_generate_video:Enable swap 20 blocks to CPU from device: cuda",
            Setting::Blocks,
            "20",
        ),
        (
            "INFO:musubi_tuner.wan_generate_video:Enable swap 20 blocks to CPU from device: cuda",
            Setting::Offload,
            "blocks",
        ),
        (
            "INFO:musubi_tuner.hv_generate_video:Using device: cuda, DiT precision: torch.bfloat16, weight precision: torch.float8_e4m3fn",
            Setting::Precision,
            "fp8",
        ),
        (
            "INFO:__main__:Using device: cuda, DiT weight weight precision: torch.bfloat16",
            Setting::Precision,
            "bf16",
        ),
    ] {
        has(&[line], setting, value);
    }
}

#[test]
fn a_command_sets_as_much_as_it_says() {
    let mut settings = Settings::default();
    let command = "python main.py --lowvram --fp32-vae --use-sage-attention --reserve-vram 2 --attn_mode=torch";
    settings.observe_command(command.split_whitespace());
    assert_eq!(settings.get(Setting::VramMode), Some("low"));
    assert_eq!(settings.get(Setting::VaePrecision), Some("fp32"));
    assert_eq!(settings.get(Setting::Attention), Some("pytorch"));
    assert_eq!(settings.get(Setting::Reserved), Some("2 GB"));
    let mut settings = Settings::default();
    settings.observe_command("wgp.py --profile 4.5 --attention auto".split_whitespace());
    assert_eq!(settings.get(Setting::Profile), Some("4.5"));
    assert_eq!(settings.get(Setting::Attention), None);
    let mut settings = Settings::default();
    settings.observe_command("x.py --blocks_to_swap 32".split_whitespace());
    assert_eq!(settings.get(Setting::Blocks), Some("32"));
}

#[test]
fn an_argument_is_a_word_of_its_own() {
    let low = after(&["Set vram state to: LOW_VRAM"]);
    assert_eq!(low.in_force("start with --lowvram"), Some("--lowvram"));
    assert_eq!(low.in_force("start with --lowvram-x or --medvram2"), None);
    let dynamic = after(&["DynamicVRAM support detected and enabled"]);
    assert_eq!(dynamic.in_force("(--lowvram)"), Some("--lowvram"));
    assert_eq!(dynamic.in_force("without --highvram"), None);
    let tiled = after(&["[DEBUG] vae.hpp:190 - VAE Tile size: 32x32"]);
    assert_eq!(tiled.in_force("add --vae-tiling."), Some("--vae-tiling"));
    assert_eq!(tiled.actions_in_force(), [ActionId::TiledVae]);
}
