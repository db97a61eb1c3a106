"""Honest work and honest waiting that look like something else."""
from programs import *  # noqa: F401,F403
from programs import B, BLIP, C, Case, MIX, NA, NO_HANG, R, a1111, calm, comfy26, comfy_job, ends, fault, gauge, hy3d, kohya, script, sdnext, text, train_bar
from casegen import comfy_boot, fp_boot, fp_job

DARK = ("gpu_busy_pct", "power_w", "vram_used_mib", "gtt_used_mib")
ERRORS = ["gpu_oom", "host_oom", "app_error", "gpu_reset", "memory_fault", "missing_dependency", "nan_output", "crash_segv"]


def build():
    cs = []

    # 1: compilation, announced and not
    c = Case("wan-mi300x-inductor-first-run", "mi300x", "diffusers", 420, 81, argv=["python3", "wan.py", "--compile"])
    script(c, 50, vram=41000, first=["torch.compile enabled: mode=max-autotune"])
    c.out(52, "Compiling the transformer, the first step can take several minutes")
    c.raw(53, "\r  0%|                    | 0/40 [00:00<?, ?it/s]")
    for i in range(8):
        c.out(90 + 30 * i, "AUTOTUNE mm(%dx5120, 5120x13824) strides: [5120, 1], [1, 5120]" % (4096 + 1024 * i), "  triton_mm_%d 0.8%d ms 100.0%%" % (i, i))
    c.seg(50, 340, "cpuN", cpu=C(900, 300), gpu=B(13, 0.2, 60, 1, 8), power=B(13, 0.2, 260, 141, 9))
    c.bar(341, 418, 40, 1, 30, final=False, start=53)
    c.seg(340, 420, "sample")
    cs.append(calm(c, "healthy", "sampling", [text("Compiling the transformer"), text("AUTOTUNE mm"), gauge("cores busy, the card in bursts")], "compilation that advances", accept=["compile_warmup"],
                   checkpoints=[(200, ["compile_warmup"]), (410, ["healthy"])]))

    c = Case("sdxl-9070xt-find-advances", "rx9070xt", "comfyui", 400, 82, env={"MIOPEN_LOG_LEVEL": "5"})
    comfy26(c, 12, 16304, 64000, "2.9.1+rocm6.4", "AMD Radeon RX 9070 XT")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 38, "SDXL", 8100, te="SDXLClipModel", p="[INFO] ", new=True)
    c.raw(39, "\r  0%|                    | 0/20 [00:00<?, ?it/s]")
    for i in range(11):
        c.out(42 + i * 26, "MIOpen(HIP): Info [FindConvFwdAlgorithm] requestAlgoCount = 1, workspace = 0", "MIOpen(HIP): Info [EvaluateInvokers] Evaluating Solver: ConvHipImplicitGemmGroupFwdXdlops",
              "MIOpen(HIP): Info [FindConvolution] FW Chosen Algorithm: ConvHipImplicitGemmGroupFwdXdlops , 0, %.3f" % (0.4 + 0.01 * i))
    c.seg(38, 330, "cpu1", gpu=B(26, 0.1, 55, 1, 7), power=B(26, 0.1, 90, 20, 5), cpu=C(112, 9), wr=BLIP(0, 0.1, 4096, 70000))
    c.bar(330, 372, 20, 0, 20, start=39)
    c.seg(330, 373, "sample")
    c.seg(373, 378, "vae")
    c.out(378, "[INFO] Prompt executed in 358.00 seconds")
    c.seg(378, 400, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [text("FW Chosen Algorithm:"), gauge("shape after shape is found")], "one shape after the other: the first run", accept=["healthy"],
                   checkpoints=[(200, ["compile_warmup", "healthy"]), (360, ["healthy"]), (395, ["idle_waiting", "healthy"])]))

    # 2 and 3: weights
    c = Case("fp-7900gre-network-disk", "rx7900gre", "framepack", 420, 83, argv=["python3", "demo_gradio.py"])
    c.out(1, "Currently enabled native sdp backends: ['flash', 'math', 'mem_efficient', 'cudnn']", "Xformers is not installed!", "Flash Attn is not installed!", "Sage Attn is not installed!",
          "Namespace(share=False, server='0.0.0.0', port=7860, inbrowser=False)", "Free VRAM 15.4 GB", "High-VRAM Mode: False", "/usr/lib/python3/dist-packages/huggingface_hub: UserWarning: cache-system uses symlinks", "a", "b")
    c.bar(6, 396, 4, 0, 3, desc="Loading checkpoint shards: ", final=False)
    c.seg(0, 5, "startup")
    c.seg(5, 420, "hdd", rd=C(1.9e7, 5e6), cpu=C(3, 1), net=C(2.0e7, 4e6), d=BLIP(1, 0.3, 0, 1))
    cs.append(calm(c, "loading_io", "model_load", [text("Loading checkpoint shards"), gauge("19 MB/s all the time")], "a network disk", accept=["healthy"],
                   must_not=NO_HANG + ["download_stall", "thrash", "idle_waiting"], checkpoints=[(200, ["loading_io"]), (410, ["loading_io"])]))

    c = Case("flux-5090-mapped-weights", "rtx5090", "comfyui", 240, 84, host_ram_mib=128000)
    comfy26(c, 11, 32607, 128000, "2.9.1+cu130", "NVIDIA GeForce RTX 5090")
    c.seg(11, 20, "idle")
    c.out(20, "[INFO] got prompt", "[INFO] Requested to load FluxClipModel_", "[INFO] loaded completely; 30110.00 MB usable, 9319.23 MB loaded, full load: True", "[INFO] Requested to load Flux")
    c.seg(20, 95, "load", rd=0, wr=0, cpu=C(61, 18), d=0, vram=24000)
    c.out(95, "[INFO] loaded completely; 22210.00 MB usable, 22700.13 MB loaded, full load: True")
    c.bar(96, 150, 28)
    c.seg(95, 151, "sample")
    c.seg(151, 156, "vae")
    c.out(156, "[INFO] Prompt executed in 136.00 seconds")
    c.seg(156, 240, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [gauge("no bytes read: the page cache has them; cpu works and vram grows")], "loaded by memory map", accept=["healthy"],
                   checkpoints=[(80, ["loading_io", "healthy"]), (130, ["healthy"]), (230, ["idle_waiting"])]))

    # 4: dips
    c = Case("hub-w7900-xet-with-dips", "w7900", "diffusers", 330, 85, argv=["python3", "qwen_image.py"])
    c.out(2, *["UserWarning: `local_dir_use_symlinks` is deprecated (%d)" % i for i in range(11)])
    c.raw(5, "\rFetching 18 files:   0%|          | 0/18 [00:00<?, ?it/s]")
    t = 6
    for k in range(5):
        c.bar(t, t + 44, 18, k * 2, k * 2 + 2, desc="Fetching 18 files: ", final=False, start=5)
        c.seg(t - 6 if k == 0 else t, t + 44, "download", wr=B(9, 0.5, 9e7, 0, 2e6))
        c.seg(t + 44, t + 62, "idle")
        t += 62
    c.seg(t, 330, "download")
    cs.append(calm(c, "download_wait", "download", [text("Fetching 18 files"), gauge("bytes flow; dips of 18 s")], "a lame network", must_not=NO_HANG + ["download_stall", "idle_waiting", "finished"],
                   checkpoints=[(40, ["download_wait"]), (66, ["download_wait"]), (320, ["download_wait"])]))

    # 5: some swapping beside work that goes on
    c = Case("ltx-7600xt-swaps-and-works", "rx7600xt", "comfyui", 300, 86, host_ram_mib=15800)
    comfy_boot(c, 13, 16368, 15800, "2.8.0+rocm6.4", "AMD Radeon RX 7600 XT")
    c.seg(13, 20, "idle")
    comfy_job(c, 20, 50, "LTXV", 13900, te="LTXVTEModel_")
    c.seg(36, 48, "load", rd=C(1.5e8, 4e7), wr=C(9e7, 3e7), d=C(2, 1), cpu=C(60, 20))
    c.bar(51, 250, 40)
    c.seg(50, 251, "sample", rd=BLIP(0, 0.3, 2e6, 3e7), wr=BLIP(0, 0.3, 2e6, 2e7))
    c.seg(251, 270, "vae")
    c.out(270, "Prompt executed in 249.80 seconds")
    c.seg(270, 300, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [gauge("reads and writes beside a busy card; steps come")], "pressure, not thrashing", accept=["healthy"], must_not=NO_HANG + ["host_oom", "crawl"],
                   checkpoints=[(150, ["healthy"]), (295, ["idle_waiting", "healthy"])]))

    # 6: idle
    c = Case("comfy-6700xt-idle-helper-thread", "rx6700xt", "comfyui", 560, 87)
    comfy_boot(c, 14, 12272, 31800, "2.8.0+rocm6.3", "AMD Radeon RX 6700 XT", extra=["[crystools INFO] CPU monitor started"], nodes=4)
    for i in range(12):
        c.out(40 + i * 42, "FETCH ComfyRegistry Data: %d/94" % (5 * i + 5))
    c.seg(14, 560, "idle", cpu=C(100.4, 0.8), net=MIX(2000, 60000, 0.3, 60000, 140000))
    cs.append(calm(c, "idle_waiting", "idle", [text("To see the GUI go to:"), gauge("one core at 100 % for nine minutes, no job")], "a helper thread polls", must_not=NO_HANG + ["cpu_fallback", "download_stall"],
                   checkpoints=[(100, ["idle_waiting"]), (550, ["idle_waiting"])]))

    # 7: a decode on the CPU
    c = Case("wan-9070xt-cpu-vae", "rx9070xt", "comfyui-wan", 480, 88, argv=["python3", "main.py", "--cpu-vae"])
    comfy26(c, 12, 16304, 64000, "2.9.1+rocm6.4", "AMD Radeon RX 9070 XT", extra=["[INFO] VAE load device: cpu, offload device: cpu, dtype: torch.float32"])
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 40, "WAN21", 13900, te="WanTEModel", p="[INFO] ", new=True)
    c.bar(41, 100, 8)
    c.seg(40, 101, "sample")
    c.out(101, "[INFO] Requested to load WanVAE", "[INFO] VAE load device: cpu, offload device: cpu, dtype: torch.float32")
    c.seg(101, 480, "cpuN")
    cs.append(calm(c, "cpu_phase", "vae_decode", [text("VAE load device: cpu"), gauge("all cores busy, the card idle")], "the user asked for the CPU", must_not=NO_HANG + ["cpu_fallback", "crawl"], accept=["healthy"],
                   checkpoints=[(80, ["healthy"]), (300, ["cpu_phase"]), (470, ["cpu_phase"])]))

    c = Case("fp-7900xtx-program-falls-back-to-cpu", "rx7900xtx", "framepack", 420, 89, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 36, 23.4)
    c.seg(36, 44, "idle")
    fp_job(c, 44, 60, 20800, pad=0, last=True)
    c.bar(61, 130, 25)
    c.seg(60, 131, "sample")
    c.out(131, "Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely", "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.", "[VAE Decode] Attempting GPU decode on cuda:0")
    c.seg(131, 140, "vae", vram=7100)
    c.out(140, "MIOpen Error: /src/MIOpen/src/ocl/convolutionocl.cpp:275: No suitable algorithm was found to execute the required convolution",
          "[VAE Decode] GPU decode FAILED: miopenStatusUnknownError", "[VAE Decode] Falling back to CPU decode (this will take several minutes)")
    c.seg(140, 360, "cpuN", vram=1600)
    c.out(360, "[VAE Decode] CPU decode SUCCESS - shape: torch.Size([1, 3, 33, 544, 720])", "Decoded. Current latent shape torch.Size([1, 16, 9, 68, 90]); pixel shape torch.Size([1, 3, 33, 544, 720])")
    c.seg(360, 420, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [text("Falling back to CPU decode"), text("CPU decode SUCCESS")], "the program answered the error itself", must_not=NO_HANG + ["cpu_fallback", "no_algorithm", "app_error"], accept=["healthy"],
                   checkpoints=[(250, ["cpu_phase"]), (410, ["idle_waiting"])]))

    # 8 and 9: output that does not come in lines
    c = Case("script-7900gre-buffered-output", "rx7900gre", "script", 420, 90, argv=["python3", "generate.py"])
    c.seg(0, 20, "startup")
    c.seg(20, 50, "load", vram=11000)
    c.seg(50, 330, "sample")
    c.seg(330, 390, "vae")
    c.out(391, *["frame batch %d done" % i for i in range(16)])
    c.seg(390, 420, "cpuN", cpu=C(500, 60), wr=C(3e6, 1e6))
    cs.append(calm(c, "healthy", "startup", [gauge("no line for six minutes; the card works all the time")], "stdout goes to a pipe and is buffered", accept=["cpu_phase"], must_not=NO_HANG + ["idle_waiting"],
                   checkpoints=[(200, ["healthy"]), (380, ["healthy"])]))

    c = Case("script-rx6800-dots", "rx6800", "script", 330, 91, argv=["python3", "render.py"])
    c.out(2, *["config %d: ok" % i for i in range(11)])
    c.raw(30, "sampling ")
    for i in range(70):
        c.raw(32 + i * 4.2, ".")
    c.seg(0, 8, "startup")
    c.seg(8, 30, "load", vram=9000)
    c.seg(30, 330, "sample")
    cs.append(calm(c, "healthy", "sampling", [text("sampling ....")], "dots without a line end", must_not=NO_HANG + ["idle_waiting"], checkpoints=[(200, ["healthy"]), (320, ["healthy"])]))

    # 10: others on the card
    c = Case("comfy-7900xtx-idle-beside-a-game", "rx7900xtx", "comfyui", 360, 92)
    comfy_boot(c, 13, 24560, 64000, "2.8.0+rocm6.4", "AMD Radeon RX 7900 XTX", nodes=3)
    c.out(60, *["[ComfyUI-Manager] default cache updated: item %d" % i for i in range(4)])
    c.seg(13, 100, "idle")
    c.seg(100, 360, "idle", gpu=C(97, 3), power=C(290, 14), vram=9800)
    cs.append(calm(c, "idle_waiting", "idle", [gauge("the card is busy for another program")], "no job of ours", must_not=NO_HANG + ["healthy"], checkpoints=[(60, ["idle_waiting"]), (350, ["idle_waiting"])]))

    c = Case("flux-w7900-shared-card", "w7900", "comfyui", 330, 93)
    comfy26(c, 12, 49136, 128000, "2.9.1+rocm6.4", "AMD Radeon PRO W7900")
    c.seg(12, 20, "idle", gpu=C(88, 8), power=C(180, 20))
    comfy_job(c, 20, 40, "Flux", 31000, p="[INFO] ", new=True)
    c.bar(41, 101, 40, 0, 20, final=False)
    c.bar(106, 236, 40, 21, 40, start=41)
    c.seg(40, 237, "sample", vram=44000)
    c.seg(237, 244, "vae")
    c.out(244, "[INFO] Prompt executed in 224.00 seconds")
    c.seg(244, 330, "idle", gpu=C(91, 6), power=C(190, 20))
    cs.append(calm(c, "idle_waiting", "idle", [gauge("steps take twice as long beside another job, and come")], "shared card", must_not=NO_HANG + ["vram_spill", "crawl", "healthy"],
                   checkpoints=[(80, ["healthy"]), (200, ["healthy"]), (320, ["idle_waiting"])]))

    # 11 and 12: readings that lie or lack
    c = Case("wan-mi100-counter-at-zero", "mi100", "diffusers", 330, 94, argv=["python3", "wan.py"])
    script(c, 50, vram=24000)
    c.bar(52, 250, 30)
    c.seg(50, 251, "sample", gpu=C(0, 0))
    c.seg(251, 330, "vae", gpu=C(0, 0))
    cs.append(calm(c, "healthy", "unknown", [gauge("gpu_busy 0 all the time; power and steps say otherwise")], "a counter stuck at 0", must_not=NO_HANG + ["cpu_fallback", "idle_waiting"],
                   checkpoints=[(200, ["healthy"]), (320, ["healthy"])]))

    c = Case("fp-7900gre-container-no-gauges", "rx7900gre", "framepack", 330, 95, missing=DARK, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 38, 15.4, patched=False)
    c.seg(38, 45, "idle")
    fp_job(c, 45, 61, 13000, pad=0, last=True)
    c.bar(62, 170, 25)
    c.seg(61, 171, "sample")
    c.out(171, "Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely", "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.")
    c.seg(171, 250, "vae")
    c.out(250, "Unloaded AutoencoderKLHunyuanVideo as complete.", "Decoded. Current latent shape torch.Size([1, 16, 9, 64, 96]); pixel shape torch.Size([1, 3, 33, 512, 768])")
    c.seg(250, 330, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [text("Decoded. Current latent shape"), gauge("nothing of the card can be read")], "a decode of 79 s, one core waits", accept=["healthy"],
                   checkpoints=[(120, ["healthy"]), (230, ["healthy"]), (320, ["idle_waiting"])]))

    c = Case("sd-wsl-3060-no-vram", "rtx3060", "sdwebui", 200, 96, missing=("vram_used_mib", "power_w"), argv=["python3", "launch.py"])
    a1111(c, 22)
    c.seg(22, 32, "idle")
    for k in range(4):
        t = 32 + k * 36
        c.bar(t, t + 26, 20)
        c.seg(t, t + 26, "sample")
        c.seg(t + 26, t + 29, "vae")
        c.seg(t + 29, t + 36, "idle")
    c.out(30, "Total progress: 100%")
    c.seg(176, 200, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [gauge("four pictures, then the page waits; neither power nor vram")], "WSL", accept=["healthy"], checkpoints=[(50, ["healthy"]), (195, ["idle_waiting", "healthy"])]))

    c = Case("flux-890m-apu-low-power", "strixpoint", "diffusers", 420, 97, argv=["python3", "flux.py"], missing=("power_w",))
    script(c, 70, vram=490)
    c.bar(72, 400, 20)
    c.seg(70, 401, "sample", gtt=11000, gpu=C(100, 0))
    c.seg(401, 420, "vae")
    cs.append(calm(c, "healthy", "unknown", [gauge("an APU: no power, 16 s a step")], "slow and even", must_not=NO_HANG + ["crawl", "throttled", "gtt_exhausted"], checkpoints=[(250, ["healthy"]), (390, ["healthy"])]))

    c = Case("wan-strixhalo-low-power", "strixhalo", "comfyui-wan", 360, 98, host_ram_mib=127600)
    comfy26(c, 12, 98304, 127600, "2.10.0+rocm7.1", "AMD Radeon 8060S Graphics")
    c.seg(12, 20, "idle")
    c.out(20, "[INFO] got prompt", "[INFO] Requested to load WanTEModel")
    c.seg(20, 60, "load")
    c.bar(61, 300, 20)
    c.seg(60, 301, "sample", power=C(19, 2), gpu=C(100, 0))
    c.out(301, "[INFO] Requested to load WanVAE")
    c.seg(301, 350, "vae", power=C(17, 2))
    c.out(350, "[INFO] Prompt executed in 330.00 seconds")
    c.seg(350, 360, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [gauge("19 W while it works, memory readings do not move")], "an APU", accept=["healthy"], checkpoints=[(200, ["healthy"]), (340, ["healthy"])]))

    # 13 and 14: the world stops
    c = Case("hunyuan-4090m-laptop-slept", "rtx4090m", "diffusers", 260, 99, kernel_t0=8001.0, argv=["python3", "hv.py"])
    script(c, 40, vram=14000)
    c.bar(42, 120, 40, 0, 20, final=False)
    c.seg(40, 121, "sample")
    c.gap(121, 5400)
    c.bar(127, 205, 40, 21, 40, start=42)
    c.seg(121, 206, "sample")
    c.seg(206, 240, "vae")
    c.klog(120, "PM: suspend entry (deep)", "nvidia-modeset: Suspending")
    c.klog(121, "ACPI: PM: Waking up from system sleep state S3", "PM: suspend exit")
    c.out(240, "saved out.mp4")
    ends(c, 241, 260, code=0)
    cs.append(calm(c, "finished", "done", [("kernel", "PM: suspend entry (deep)", ""), gauge("the clock jumps by an hour and a half")], "the machine slept", accept=["healthy"], must_not=NO_HANG + ["crawl", "killed"],
                   checkpoints=[(100, ["healthy"]), (5560, ["healthy"])]))

    c = Case("kohya-7900xtx-ctrl-z", "rx7900xtx", "kohya", 330, 100, argv=["python3", "train_network.py"])
    kohya(c, 36, vram=15000)
    train_bar(c, 38, 110, 0, 26)
    c.seg(36, 111, "sample")
    c.event(111, "stopped")
    c.seg(111, 250, "idle", cpu=0)
    c.event(250, "continued")
    train_bar(c, 253, 325, 27, 52)
    c.seg(250, 330, "sample")
    cs.append(calm(c, "healthy", "sampling", [("event", "stopped", ""), ("event", "continued", "")], "stopped for a while by the user", accept=["paused"], must_not=NO_HANG + ["crawl"],
                   checkpoints=[(90, ["healthy"]), (200, ["paused"]), (320, ["healthy"])]))

    c = Case("comfy-6800-stopped-at-the-end", "rx6800", "comfyui", 220, 101)
    comfy_boot(c, 12, 16368, 31800, "2.8.0+rocm6.4", "AMD Radeon RX 6800", nodes=3)
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 36, "SDXL", 8000, te="SDXLClipModel")
    c.bar(37, 60, 25, 0, 9, final=False)
    c.seg(36, 61, "sample")
    c.event(61, "stopped")
    c.seg(61, 220, "idle", cpu=0)
    cs.append(calm(c, "paused", "sampling", [("event", "stopped", "")], "stopped by the user", must_not=NO_HANG + ["killed"], checkpoints=[(50, ["healthy"]), (210, ["paused"])]))

    # 16: a native call that holds the interpreter
    c = Case("hy3d-7900xtx-native-call", "rx7900xtx", "hunyuan3d", 330, 102, argv=["python3", "gradio_app.py"])
    hy3d(c, 28)
    c.seg(28, 40, "idle")
    c.out(40, "INFO:     127.0.0.1:51022 - \"POST /queue/join HTTP/1.1\" 200 OK", "INFO:hy3dgen.shapgen:Encode cond takes 0.41 seconds")
    c.bar(42, 80, 50, desc="Diffusion Sampling:: ")
    c.seg(40, 81, "sample")
    c.bar(82, 110, 100, desc="Volume Decoding: ")
    c.seg(81, 111, "vae")
    c.seg(111, 169, "cpu1")
    c.out(169, "INFO:hy3dgen.shapgen:---Face Reduction takes 58.1 seconds ---")
    c.seg(169, 260, "cpu1")
    c.out(260, "INFO:hy3dgen.shapgen:---UV wrap takes 90.2 seconds ---", "INFO:hy3dgen.texgen:Baking texture", "INFO:hy3dgen.texgen:done")
    c.seg(260, 270, "vae")
    c.seg(270, 330, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [text("Face Reduction takes 58.1 seconds"), gauge("one core for 150 s, the card idle")], "mesh work", accept=["healthy", "cpu_phase"],
                   checkpoints=[(70, ["healthy"]), (240, ["cpu_phase", "healthy"])]))

    # 17: ffmpeg at the end
    c = Case("wan-7900gre-ffmpeg-at-the-end", "rx7900gre", "comfyui-wan", 360, 103)
    comfy26(c, 12, 16368, 64000, "2.9.1+rocm6.4", "AMD Radeon RX 7900 GRE")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 44, "WAN21", 14100, te="WanTEModel", p="[INFO] ", new=True)
    c.bar(45, 140, 20)
    c.seg(44, 141, "sample")
    c.out(141, "[INFO] Requested to load WanVAE")
    c.seg(141, 180, "vae")
    c.seg(180, 320, "cpuN", cpu=C(1350, 80), wr=B(7, 0.2, 4e6, 0, 1e5), gpu=C(100, 0), power=C(41, 2))
    c.out(320, "[INFO] Prompt executed in 300.00 seconds")
    c.seg(320, 360, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [gauge("all cores for 140 s, a full counter at idle power")], "the video is encoded", accept=["healthy"], must_not=NO_HANG + ["cpu_fallback"],
                   checkpoints=[(100, ["healthy"]), (350, ["idle_waiting"])]))

    # 18: slow from heat, moving
    c = Case("flux-7600xt-warm", "rx7600xt", "diffusers", 360, 104, argv=["python3", "flux.py"])
    script(c, 44, vram=15000)
    c.bar(46, 126, 50, 0, 20, final=False)
    c.seg(44, 127, "sample")
    c.bar(133, 355, 50, 21, 49, final=False, start=46)
    c.seg(127, 360, "sample", power=R(150, 88, 3))
    cs.append(calm(c, "healthy", "sampling", [gauge("power falls to 88 W, a step takes 8 s instead of 4 s")], "slow but moving", accept=["throttled"], must_not=NO_HANG + ["vram_spill", "crawl"],
                   checkpoints=[(110, ["healthy"]), (340, ["healthy", "throttled"])]))

    # 19: memory of others moves
    c = Case("fp-7800xt-memory-of-others", "rx7800xt", "framepack", 330, 105, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 38, 12.1)
    c.seg(38, 330, "idle")
    for k in range(7):
        c.seg(60 + 36 * k, 96 + 36 * k, "idle", vram=[9100, 1200, 11900, 700, 8000, 15300, 900][k], gtt=[900, 5000, 300, 2000, 7000, 300, 200][k])
    cs.append(calm(c, "idle_waiting", "idle", [gauge("vram and gtt rise and fall for other programs")], "no job of ours", must_not=NO_HANG + ["vram_spill", "healthy", "gpu_oom"], checkpoints=[(200, ["idle_waiting"]), (325, ["idle_waiting"])]))

    # the kernel speaks of others
    c = Case("sdxl-7900xtx-kernel-speaks-of-others", "rx7900xtx", "comfyui", 240, 106, kernel_t0=4100.0)
    comfy26(c, 12, 24560, 64000, "2.9.1+rocm6.4", "AMD Radeon RX 7900 XTX")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 36, "SDXL", 8000, te="SDXLClipModel", p="[INFO] ", new=True)
    c.bar(37, 200, 60)
    c.seg(36, 201, "sample")
    c.seg(201, 206, "vae")
    c.out(206, "[INFO] Prompt executed in 186.00 seconds")
    c.seg(206, 240, "idle")
    c.klog(50, "iwlwifi 0000:05:00.0: Microcode SW error detected. Restarting 0x0.", "iwlwifi 0000:05:00.0: reporting on firmware reset")
    c.klog(80, "amdgpu 0000:7c:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:40 vmid:3 pasid:32771)", "amdgpu 0000:7c:00.0: amdgpu:  Process gnome-shell pid 2101 thread gnome-shel:cs0 pid 2188",
           "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, but soft recovered")
    c.klog(110, "Out of memory: Killed process 30112 (chrome) total-vm:1180021344kB, anon-rss:412000kB, file-rss:0kB, shmem-rss:120kB, UID:1000 pgtables:2900kB oom_score_adj:300")
    c.klog(130, "usb 1-4: device descriptor read/64, error -110", "EXT4-fs error (device sdb1): ext4_find_entry:1463: inode #2: comm gvfsd: reading directory lblock 0", "traps: steam[5121] general protection fault ip:f7a1 sp:ffa2 error:0 in libc.so.6")
    cs.append(calm(c, "idle_waiting", "idle", [("kernel", "Out of memory: Killed process 30112 (chrome)", "not ours")], "none of it concerns the child or its card", accept=["healthy"], must_not=NO_HANG + ERRORS,
                   checkpoints=[(100, ["healthy"]), (180, ["healthy"]), (230, ["idle_waiting"])]))

    # errors that were survived
    c = Case("wan-7800xt-tiles-after-retry", "rx7800xt", "comfyui-wan", 220, 107)
    comfy26(c, 12, 16368, 31800, "2.9.1+rocm6.4", "AMD Radeon RX 7800 XT")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 44, "WAN21", 14100, te="WanTEModel", p="[INFO] ", new=True)
    c.bar(45, 110, 10)
    c.seg(44, 111, "sample")
    c.out(111, "[INFO] Requested to load WanVAE")
    c.seg(111, 190, "vae", vram=16300)
    c.out(118, "[WARNING] Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.")
    c.out(190, "[INFO] Prompt executed in 170.00 seconds")
    c.seg(190, 220, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [text("retrying with tiled VAE decoding")], "caught and answered", accept=["healthy"], must_not=NO_HANG + ERRORS, checkpoints=[(150, ["healthy"]), (215, ["idle_waiting"])]))

    c = Case("comfy-9070xt-noisy-start", "rx9070xt", "comfyui", 200, 108)
    c.out(1, "Checkpoint files will always be loaded safely.", "DeprecationWarning: `torch.cuda.amp.autocast(args...)` is deprecated.", "xFormers not available", "No module named 'sageattention'",
          "Traceback (most recent call last):", '  File "nodes.py", line 2131, in load_custom_node', "ModuleNotFoundError: No module named 'insightface'", "", "Cannot import custom_nodes/pack_b module for custom nodes: No module named 'insightface'",
          "If you get an out of memory error, lower the tile size or set PYTORCH_HIP_ALLOC_CONF", "[rgthree] NaN checks are disabled", "IMPORT FAILED: nodes_canny.py", "Warning, you are using an old pytorch version and some ckpt/pt files might be loaded unsafely.")
    c.out(12, "Starting server", "To see the GUI go to: http://127.0.0.1:8188")
    c.seg(0, 12, "startup")
    c.seg(12, 30, "idle")
    comfy_job(c, 30, 46, "SDXL", 8000, te="SDXLClipModel")
    c.bar(47, 110, 30)
    c.seg(46, 111, "sample")
    c.seg(111, 116, "vae")
    c.out(112, "clip missing: ['text_projection.weight']", "token length exceeds the limit, some tokens were dropped")
    c.out(116, "Prompt executed in 86.00 seconds")
    c.seg(116, 200, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [text("No module named 'insightface'", "an optional pack")], "noise of a start", accept=["healthy"], must_not=NO_HANG + ERRORS, checkpoints=[(25, ["idle_waiting"]), (90, ["healthy"]), (190, ["idle_waiting"])]))

    c = Case("sdxl-3060-rejected-and-interrupted-jobs", "rtx3060", "comfyui", 240, 109)
    comfy_boot(c, 12, 12288, 31800, "2.8.0+cu128", "NVIDIA GeForce RTX 3060")
    c.seg(12, 20, "idle")
    c.out(20, "got prompt", "Failed to validate prompt for output 9:", "* CheckpointLoaderSimple 4:", "  - Value not in list: ckpt_name: 'missing.safetensors' not in ['sdxl.safetensors']", "Output will be ignored",
          "invalid prompt: {'type': 'prompt_outputs_failed_validation', 'message': 'Prompt outputs failed validation', 'details': '', 'extra_info': {}}")
    c.seg(20, 40, "idle")
    comfy_job(c, 40, 54, "SDXL", 7900, te="SDXLClipModel")
    c.bar(55, 75, 25, 0, 8, final=False)
    c.seg(54, 76, "sample")
    c.out(76, "", "Processing interrupted", "Prompt executed in 36.00 seconds")
    c.seg(76, 100, "idle")
    c.out(100, "got prompt")
    c.bar(101, 160, 25)
    c.seg(100, 161, "sample")
    c.seg(161, 165, "vae")
    c.out(165, "Prompt executed in 65.00 seconds")
    c.seg(165, 240, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [text("Processing interrupted"), text("Failed to validate prompt")], "the user's own doing, then a good job", accept=["healthy"], must_not=NO_HANG + ERRORS,
                   checkpoints=[(35, ["idle_waiting"]), (90, ["idle_waiting"]), (140, ["healthy"]), (230, ["idle_waiting"])]))

    # a job that failed, and one after it that did not: the first is still what happened
    c = Case("flux-7900gre-first-fails-then-succeeds", "rx7900gre", "comfyui", 240, 110)
    comfy26(c, 12, 16368, 64000, "2.9.1+rocm6.4", "AMD Radeon RX 7900 GRE")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 42, "Flux", 16200, p="[INFO] ", new=True)
    c.raw(43, "\r  0%|                    | 0/20 [00:00<?, ?it/s]")
    c.seg(42, 46, "sample", vram=16350)
    c.out(46, "", "[ERROR] !!! Exception during processing !!! HIP out of memory. Tried to allocate 1.41 GiB.", "[ERROR] Traceback (most recent call last):", "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.41 GiB.",
          "[ERROR] Got an OOM, unloading all loaded models.", "[INFO] Prompt executed in 26.00 seconds")
    c.seg(46, 80, "idle", vram=900)
    comfy_job(c, 80, 96, "Flux", 12100, p="[INFO] ", new=True)
    c.bar(97, 170, 20)
    c.seg(96, 171, "sample")
    c.seg(171, 176, "vae")
    c.out(176, "[INFO] Prompt executed in 96.00 seconds")
    c.seg(176, 240, "idle")
    cs.append(fault(c, "gpu_oom", "sampling", 46, 51, [text("HIP out of memory. Tried to allocate 1.41 GiB"), text("Prompt executed in 96.00 seconds", "the next job went well")], "the first job did not fit", must_not=NO_HANG + ["host_oom"],
                    checkpoints=[(60, ["gpu_oom", "idle_waiting"]), (150, ["healthy", "gpu_oom"]), (230, ["idle_waiting", "healthy", "gpu_oom"])]))

    # the end
    c = Case("ltx-7600xt-finished-with-noise", "rx7600xt", "diffusers", 200, 111, argv=["python3", "ltx.py"])
    script(c, 40, vram=12100)
    c.bar(42, 120, 30)
    c.seg(40, 121, "sample")
    c.seg(121, 150, "vae")
    c.seg(150, 156, "cpuN", cpu=C(700, 90), wr=C(4e6, 1e6))
    c.out(156, "Saved out.mp4", "Exception ignored in: <function DeviceMesh.__del__ at 0x7f00>", "AttributeError: 'NoneType' object has no attribute 'cuda'",
          "[W301 12:00:00] Warning: destroy_process_group() was not called before program exit", "resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown")
    ends(c, 158, 200, code=0)
    cs.append(calm(c, "finished", "done", [("event", "exit", "code 0")], "it ended well", must_not=NO_HANG + ERRORS + ["killed"], checkpoints=[(100, ["healthy"]), (190, ["finished"])]))

    # a decode by slow kernels, within its budget
    c = Case("hunyuan-6700xt-slow-kernels", "rx6700xt", "diffusers", 460, 112, argv=["python3", "hv.py"])
    script(c, 44, vram=11000)
    c.bar(46, 130, 25)
    c.seg(44, 131, "sample")
    c.seg(131, 400, "vae", power=C(101, 4), gpu=C(100, 0), vram=11800)
    c.out(400, "Saved hv.mp4")
    ends(c, 403, 460, code=0)
    c.seg(400, 402, "cpuN")
    cs.append(calm(c, "finished", "done", [gauge("busy 100 % at 101 W of 180 W for four minutes, then the result")], "slow kernels, no stall", accept=["healthy"], must_not=NO_HANG + ["crawl"],
                   checkpoints=[(100, ["healthy"]), (380, ["healthy"])]))

    c = Case("kohya-mi210-latent-cache", "mi210", "kohya", 330, 113, argv=["python3", "sdxl_train_network.py", "--cache_latents_to_disk"])
    kohya(c, 36, vram=14000)
    c.out(37, "INFO     caching latents with caching strategy...")
    c.bar(38, 200, 300, every=20, desc="caching latents: ")
    c.seg(36, 201, "vae", wr=BLIP(0, 0.4, 1e5, 4e6))
    train_bar(c, 205, 328, 0, 44)
    c.seg(201, 330, "sample")
    cs.append(calm(c, "healthy", "sampling", [text("caching latents")], "training goes on", must_not=NO_HANG + ERRORS, checkpoints=[(150, ["healthy"]), (320, ["healthy"])]))

    c = Case("forge-7900xtx-long-idle-after-job", "rx7900xtx", "sdwebui", 420, 114, argv=["python3", "launch.py"])
    a1111(c, 22, version="f2.0.1v1.10.1")
    c.seg(22, 30, "idle")
    c.bar(30, 60, 20)
    c.out(60.5, "Total progress: 100%|##########| 20/20 [00:30<00:00,  1.50s/it]")
    c.seg(30, 61, "sample", vram=9000)
    c.seg(61, 66, "vae")
    c.seg(66, 420, "idle", gpu=C(100, 0), power=C(86, 2))
    cs.append(calm(c, "idle_waiting", "idle", [text("Total progress: 100%"), gauge("a full counter after the job")], "the job is over", must_not=NO_HANG, checkpoints=[(28, ["idle_waiting"]), (50, ["healthy"]), (410, ["idle_waiting"])]))
    # recordings that end in the middle
    c = Case("hunyuan-9070xt-triton-compiles", "rx9070xt", "diffusers", 330, 115, argv=["python3", "hv.py", "--compile"])
    script(c, 50, vram=13000)
    c.out(52, "Compiling kernels for gfx1201, the first run takes several minutes")
    c.raw(53, "\r  0%|                    | 0/30 [00:00<?, ?it/s]")
    c.seg(50, 330, "cpuN", cpu=C(760, 200), wr=BLIP(0, 0.3, 1e5, 2e6), gpu=BLIP(0, 0.1, 1, 20))
    cs.append(calm(c, "compile_warmup", "sampling", [text("Compiling kernels for gfx1201"), gauge("eight cores busy")], "announced compilation", must_not=NO_HANG + ["cpu_fallback", "idle_waiting"],
                   checkpoints=[(200, ["compile_warmup"]), (320, ["compile_warmup"])]))

    c = Case("hy3d-6800-mesh-reduction", "rx6800", "comfyui-hunyuan3d", 330, 116)
    comfy_boot(c, 13, 16368, 31800, "2.8.0+rocm6.4", "AMD Radeon RX 6800", nodes=3)
    c.seg(13, 20, "idle")
    c.out(20, "got prompt", "Loading model from models/diffusion_models/hunyuan3d-dit-v2-0.safetensors")
    c.seg(20, 36, "load", vram=5900)
    c.bar(37, 80, 50, desc="Diffusion Sampling:: ")
    c.seg(36, 81, "sample")
    c.bar(82, 110, 100, every=10, desc="FlashVDM Volume Decoding: ")
    c.seg(81, 111, "vae")
    c.out(111, "Decoded mesh with 1421133 vertices and 2842310 faces", "Reduced faces, unwrapping UVs: this runs on the CPU")
    c.seg(111, 330, "cpu1")
    cs.append(calm(c, "cpu_phase", "mesh_post", [text("Decoded mesh with 1421133 vertices"), gauge("one core for minutes, the card idle")], "mesh work", must_not=NO_HANG + ["cpu_fallback", "idle_waiting"], accept=["healthy"],
                   checkpoints=[(70, ["healthy"]), (300, ["cpu_phase"])]))

    c = Case("invoke-7900gre-weights-from-usb", "rx7900gre", "script", 300, 117, argv=["invokeai-web"])
    c.out(3, *["[2026-02-01 10:00:0%d,000]::[InvokeAI]::INFO --> start %d" % (i, i) for i in range(8)])
    c.out(20, "[2026-02-01 10:00:20,000]::[uvicorn.error]::INFO --> Uvicorn running on http://127.0.0.1:9090 (Press CTRL+C to quit)")
    c.seg(0, 20, "startup")
    c.seg(20, 30, "idle")
    c.out(30, "[2026-02-01 10:00:30,000]::[InvokeAI]::INFO --> Executing queue item 3, session 77ab", "[2026-02-01 10:00:30,100]::[InvokeAI]::INFO --> Loading model flux1-dev, type: transformer")
    c.seg(30, 300, "hdd", rd=C(3.8e7, 6e6))
    cs.append(calm(c, "loading_io", "model_load", [text("Loading model flux1-dev"), gauge("38 MB/s all the time")], "a slow disk", accept=["healthy"], must_not=NO_HANG + ["thrash", "idle_waiting"],
                   checkpoints=[(26, ["idle_waiting", "healthy"]), (280, ["loading_io"])]))

    c = Case("wan-rx6700xt-desktop-slept", "rx6700xt", "comfyui-wan", 240, 118, kernel_t0=150.0)
    comfy_boot(c, 12, 12272, 31800, "2.8.0+rocm6.3", "AMD Radeon RX 6700 XT", nodes=3)
    c.seg(12, 20, "idle")
    c.gap(60, 28000)
    c.klog(59, "PM: suspend entry (s2idle)")
    c.klog(60, "PM: suspend exit", "amdgpu 0000:0a:00.0: amdgpu: SMU is resumed successfully!")
    c.seg(20, 240, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [("kernel", "PM: suspend exit", "")], "slept while the page waited", must_not=NO_HANG + ["gpu_reset", "gpu_unavailable"], checkpoints=[(50, ["idle_waiting"]), (28230, ["idle_waiting"])]))
    return cs
