use super::*;

fn of(lines: &[&str]) -> Facts {
    let mut facts = Facts::default();
    for line in lines {
        facts.observe(line);
    }
    facts
}

#[test]
fn memory_that_was_asked_for_and_is_there() {
    assert!(patterns::patterns().is_ok());
    let f = of(&[
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 41.20 GiB. GPU 0 has a total capacity of 23.98 GiB of which 19.01 GiB is free.",
    ]);
    assert!(f.asks_for_more_than_the_card());
    assert_eq!(f.place("asked").as_deref(), Some("41.2 GiB"));
    assert_eq!(f.backend(), Backend::Hip);
    let f = of(&[
        "Total VRAM 16368 MB, total RAM 64210 MB",
        "CUDA out of memory. Tried to allocate 20.00 MiB",
    ]);
    assert!(!f.asks_for_more_than_the_card());
    assert_eq!(f.ram, Some(64210 << 20));
}

#[test]
fn memory_of_others_and_of_an_apu() {
    let line = |own: &str| {
        format!(
            "HIP out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of 15.98 GiB of which 20.00 MiB is free. Including non-PyTorch memory, this process has {own} GiB memory in use."
        )
    };
    let f = of(&[&line("1.50"), "torch.OutOfMemoryError: HIP out of memory."]);
    assert!(f.is_taken_by_others());
    assert_eq!(f.place("others").as_deref(), Some("14.4 GiB"));
    assert!(!of(&[&line("15.10")]).is_taken_by_others());
    assert!(!of(&[&line("17179869184.00")]).is_taken_by_others());
    let apu = "Total VRAM 512 MB, total RAM 128009 MB";
    let asks = "GPU 0 has a total capacity of 62.47 GiB of which 1.00 GiB is free";
    assert!(of(&[apu, asks]).is_half_of_ram());
    assert!(!of(&[apu]).is_half_of_ram());
    assert!(!of(&[&line("1.50")]).has_plenty_free());
    let not_full = "HIP out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacty of 15.98 GiB of which 9.00 GiB is free.";
    assert!(of(&[not_full]).has_plenty_free());
    assert_eq!(of(&[not_full]).place("asked").as_deref(), Some("64 MiB"));
    let nonsense = not_full.replace("9.00", "17179869183.96");
    assert!(!of(&[&nonsense]).has_plenty_free());
}

#[test]
fn cards_and_the_processors_own() {
    let f = of(&[
        "ggml_cuda_init: found 2 ROCm devices (Total VRAM: 55300 MiB):",
        "  Device 0: AMD Radeon RX 7900 XT, gfx1100 (0x1100), VMM: no",
        "  Device 1: AMD Radeon Graphics, gfx1036 (0x1036), VMM: no",
    ]);
    assert_eq!((f.cards, f.has_integrated_beside()), (2, true));
    assert_eq!(f.arch.as_deref(), Some("gfx1100"));
    let f = of(&[
        "ggml_vulkan: 0 = AMD Radeon RX 6800 (RADV NAVI21) (radv) | uma: 0",
        "ggml_vulkan: Found 1 Vulkan devices:",
    ]);
    assert!(!f.has_integrated_beside());
    assert_eq!(f.backend(), Backend::Vulkan);
    let f = of(&["  1 = AMD Radeon Graphics (RADV RENOIR) | uma: 1"]);
    assert!(f.has_integrated_beside());
}

#[test]
fn containers_wsl_and_masks() {
    assert!(of(&["wan-1 exited with code 1", "wan-1  | x"]).container);
    assert!(of(&["WSL environment detected."]).wsl);
    assert!(of(&["  File \"C:\\AI\\main.py\", line 3"]).windows);
    let f = of(&["$ HIP_VISIBLE_DEVICES=0 python3 t2v.py --device cuda:1"]);
    assert_eq!(f.place("mask").as_deref(), Some("HIP_VISIBLE_DEVICES=0"));
    assert!(f.was_set("--device") && f.was_set("HIP_VISIBLE_DEVICES"));
    assert!(of(&["[ENV] TORCH_BLAS_PREFER_HIPBLASLT=0"]).was_set("TORCH_BLAS_PREFER_HIPBLASLT"));
    let f = of(&["Launching Web UI with arguments: --medvram --no-half-vae"]);
    assert_eq!(f.settings.get(Setting::VaePrecision), Some("fp32"));
    let f = of(&["C:\\ai>.\\python_embeded\\python.exe main.py --cpu-vae"]);
    assert_eq!(f.settings.get(Setting::VaeDevice), Some("cpu"));
    let advice = of(&["if you have memory issues try using: --cpu-vae"]);
    assert_eq!(advice.settings.get(Setting::VaeDevice), None);
    let f = of(&["got prompt", "Requested to load WAN21", " 1%|# | 1/60"]);
    assert_eq!(f, Facts::default());
}
