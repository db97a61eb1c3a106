"""Stalls and slowness: what only readings and pace can tell."""
from programs import *  # noqa: F401,F403
from programs import B, BLIP, C, Case, MIX, NO_HANG, STALLS, comfy26, comfy_job, fault, gauge, kohya, script, sdnext, text, train_bar
from casegen import comfy_boot, fp_boot, fp_job

DARK = ("gpu_busy_pct", "power_w", "vram_used_mib", "gtt_used_mib")


def build():
    cs = []

    c = Case("wan-9070xt-script-decode-silent", "rx9070xt", "diffusers", 330, 61, argv=["python3", "wan_t2v.py"])
    script(c, 50, vram=13800, first=["Some weights were not used", *["UserWarning: torch_dtype is deprecated, use dtype (%d)" % i for i in range(5)]])
    c.bar(52, 150, 30)
    c.seg(50, 151, "sample")
    c.seg(151, 156, "vae", gpu=C(30, 14), power=C(80, 16), vram=6100)
    c.seg(156, 330, "hang")
    cs.append(fault(c, "silent_hang", "unknown", 156, 290, [gauge("after the last step nothing moves: cpu, io, card")], "a search wedged in the first convolution of the decode", earliest=176,
                    must_not=["idle_waiting", "finished", "compile_warmup", "healthy"], checkpoints=[(120, ["healthy"]), (320, ["silent_hang"])]))

    c = Case("flux-7900gre-sampling-silent", "rx7900gre", "comfyui", 300, 62)
    comfy26(c, 12, 16368, 64000, "2.9.1+rocm6.4", "AMD Radeon RX 7900 GRE")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 46, "Flux", 14300, p="[INFO] ", new=True)
    c.bar(47, 92, 25, 0, 11, final=False)
    c.seg(46, 93, "sample")
    c.seg(93, 300, "hang", net=MIX(300, 9000, 0.3, 20000, 90000))
    cs.append(fault(c, "silent_hang", "sampling", 93, 185, [text(" 11/25 "), gauge("then nothing moves")], "a wedged queue or a lost wake-up; once more", earliest=113,
                    must_not=["idle_waiting", "healthy"], checkpoints=[(80, ["healthy"]), (290, ["silent_hang"])]))

    # container: only the process can be seen
    c = Case("fp-w7900-container-decode-silent", "w7900", "framepack", 330, 63, missing=DARK, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 40, 47.1, patched=False)
    c.seg(40, 50, "idle")
    fp_job(c, 50, 66, 21000)
    c.bar(67, 150, 25)
    c.seg(66, 151, "sample")
    c.out(151, "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB", "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.")
    c.seg(151, 157, "vae")
    c.seg(157, 330, "hang")
    cs.append(fault(c, "silent_hang", "vae_decode", 157, 250, [text("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete."), gauge("cpu and io about 0 while a job is in flight")], "a wedged search", earliest=177,
                    must_not=["idle_waiting", "healthy"], checkpoints=[(45, ["idle_waiting"]), (120, ["healthy"]), (320, ["silent_hang"])]))

    c = Case("f1-7600xt-encode-silent", "rx7600xt", "framepack-f1", 260, 64, argv=["python3", "demo_gradio_f1.py"], env={"MIOPEN_FIND_ENFORCE": "SEARCH"})
    fp_boot(c, 40, 15.4, patched=False)
    c.seg(40, 60, "idle")
    c.out(60, *["Unloaded %s as complete." % m for m in ("DynamicSwap_LlamaModel", "CLIPTextModel", "SiglipVisionModel", "AutoencoderKLHunyuanVideo")])
    c.out(62, "Loaded CLIPTextModel to cuda:0 as complete.", "Unloaded CLIPTextModel as complete.")
    c.out(66, "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.")
    c.seg(60, 69, "encode", vram=3900)
    c.seg(69, 260, "hang")
    cs.append(fault(c, "silent_hang", "vae_encode", 69, 160, [text("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete."), gauge("nothing moves")], "the first convolution wedges the search", earliest=89,
                    must_not=["idle_waiting", "healthy"], checkpoints=[(52, ["idle_waiting"]), (250, ["silent_hang"])]))

    # MIOpen is at it, and does not come on
    c = Case("hunyuan-7600xt-solver-stall", "rx7600xt", "diffusers", 460, 65, argv=["python3", "hv.py"], env={"MIOPEN_LOG_LEVEL": "5", "MIOPEN_ENABLE_LOGGING_CMD": "1"})
    script(c, 50, vram=12000)
    c.bar(52, 130, 20)
    c.seg(50, 131, "sample")
    cmd = "MIOpen: Command [LogCmdFindConvolution] ./bin/MIOpenDriver convbfp16 -n 1 -c 256 --in_d 9 -H 272 -W 480 -k 256 --fil_d 3 -y 3 -x 3 --pad_d 0 -p 0 -q 0 --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m conv -g 1 -F 1 -t 1"
    c.out(134, cmd, "MIOpen: Info [FindConvFwdAlgorithm] requestAlgoCount = 1, workspace = 150994944", "MIOpen: Info [TryLoad] Find-db regenerating.")
    for i, s in enumerate(["GemmFwdRest", "ConvHipImplicitGemm3DGroupFwdXdlops", "ConvDirectNaiveConvFwd"]):
        c.out(136 + 3 * i, "MIOpen: Info [EvaluateInvokers] Evaluating Solver: %s" % s)
    c.seg(131, 143, "vae", gpu=C(50, 20), power=C(70, 12), vram=9100)
    c.seg(143, 460, "cpu1", gpu=B(40, 0.04, 22, 1, 2))
    cs.append(fault(c, "find_stall", "unknown", 143, 340, [text("LogCmdFindConvolution"), text("Evaluating Solver: ConvDirectNaiveConvFwd"), gauge("one core busy, the card in rare short bursts")],
                    "the search hangs at one solver", earliest=190, must_not=["idle_waiting", "healthy", "busy_idle"],
                    checkpoints=[(110, ["healthy"]), (170, ["compile_warmup", "healthy"]), (450, ["find_stall"])]))

    c = Case("sdnext-6700xt-search-stall", "rx6700xt", "sdnext", 420, 66, argv=["python3", "launch.py"])
    sdnext(c, 20)
    c.seg(20, 30, "idle")
    c.out(30, "10:15:01-120044 INFO     Base: pipeline=StableDiffusionXLPipeline task=TEXT_2_IMAGE batch=1/1x1")
    c.bar(34, 70, 20, desc="Progress ")
    c.seg(30, 71, "sample", vram=9100)
    c.out(73, "MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...",
          "MIOpen(HIP): Warning [SearchImpl] Runs left: 366, min time so far: 120.078, curr time: 949.031")
    c.seg(71, 80, "vae", gpu=C(40, 10), power=C(60, 9), vram=10800)
    c.seg(80, 420, "cpu1", gpu=BLIP(0, 0.08, 1, 4))
    cs.append(fault(c, "find_stall", "unknown", 80, 300, [text("Runs left: 366"), gauge("no falling count for minutes, one core busy")], "the count does not fall", earliest=135,
                    must_not=["idle_waiting", "healthy", "spin_hang"], checkpoints=[(60, ["healthy"]), (110, ["compile_warmup", "healthy"]), (410, ["find_stall"])]))

    # a loop
    c = Case("ltx-3060-sampling-spins", "rtx3060", "comfyui", 400, 67)
    comfy26(c, 12, 12288, 31800, "2.9.1+cu130", "NVIDIA GeForce RTX 3060")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 40, "LTXV", 9400, te="LTXVTEModel_", p="[INFO] ", new=True)
    c.bar(41, 80, 30, 0, 17, final=False)
    c.seg(40, 81, "sample")
    c.seg(81, 400, "cpu1")
    cs.append(fault(c, "spin_hang", "sampling", 81, 325, [text(" 17/30 "), gauge("one core busy without end, the card at rest")], "a loop on the host", earliest=141,
                    must_not=["idle_waiting", "healthy", "find_stall", "cpu_phase"], checkpoints=[(70, ["healthy"]), (390, ["spin_hang"])]))

    c = Case("wan-strixhalo-encode-spins", "strixhalo", "comfyui-wan", 380, 68, host_ram_mib=127600)
    comfy_boot(c, 12, 98304, 127600, "2.9.0+rocm7.0", "AMD Radeon 8060S Graphics")
    c.seg(12, 20, "idle")
    c.out(20, "got prompt", "Requested to load WanTEModel", "loaded completely 9.5e+25 6419.48 True")
    c.seg(20, 40, "load", gtt=11000)
    c.seg(40, 45, "encode")
    c.seg(45, 380, "cpu1", power=C(26, 2))
    cs.append(fault(c, "spin_hang", "text_encode", 45, 300, [text("Requested to load WanTEModel"), gauge("one core busy without end")], "a loop on the host", earliest=100,
                    must_not=["idle_waiting", "healthy", "gtt_exhausted"], checkpoints=[(16, ["idle_waiting"]), (370, ["spin_hang"])]))

    # the queue is wedged
    c = Case("f1-7900gre-decode-wedged", "rx7900gre", "framepack-f1", 340, 69, argv=["python3", "demo_gradio_f1.py"])
    fp_boot(c, 40, 15.4, attn=True)
    c.seg(40, 48, "idle")
    fp_job(c, 48, 64, 13900, pad=0, last=True)
    c.bar(65, 140, 25)
    c.seg(64, 141, "sample")
    c.out(141, "Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely")
    c.out(143, "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.")
    c.seg(141, 150, "vae", vram=6200)
    c.seg(150, 340, "spin", power=C(58, 2))
    cs.append(fault(c, "busy_idle", "vae_decode", 150, 330, [gauge("gpu_busy 100 at 58 W of 241 W, no output")], "the queue is wedged", earliest=195,
                    must_not=["healthy", "idle_waiting", "device_mismatch"], checkpoints=[(120, ["healthy"]), (338, ["busy_idle"])]))

    c = Case("kohya-mi100-queue-wedged", "mi100", "kohya", 340, 70, argv=["python3", "train_network.py"])
    kohya(c, 36, vram=19000)
    train_bar(c, 38, 130, 0, 34)
    c.seg(36, 131, "sample")
    c.seg(131, 340, "spin", power=C(64, 2))
    cs.append(fault(c, "busy_idle", "sampling", 131, 320, [gauge("gpu_busy 100 at 64 W of 232 W; a step took 3 s, now none for minutes")], "the queue is wedged", earliest=176,
                    must_not=["healthy", "device_mismatch"], checkpoints=[(110, ["healthy"]), (335, ["busy_idle"])]))

    # memory spills, steps go on
    c = Case("ltx-7600xt-spill", "rx7600xt", "diffusers", 420, 71, argv=["python3", "ltx.py"])
    script(c, 44, vram=15200)
    c.bar(46, 106, 40, 0, 20, final=False)
    c.seg(44, 107, "sample", vram=15900)
    c.bar(119, 410, 40, 21, 37, final=False, start=46)
    c.seg(107, 122, "sample", vram=16355, gtt=4200, power=C(96, 6))
    c.seg(122, 420, "sample", gtt=7900, power=C(74, 5), gpu=C(97, 3), cpu=C(101, 2))
    cs.append(fault(c, "vram_spill", "sampling", 107, 250, [gauge("vram at its total, gtt grows by gigabytes, a step takes 18 s instead of 3 s")], "the working set does not fit", earliest=112,
                    must_not=["healthy", "busy_idle", "silent_hang", "device_mismatch"], checkpoints=[(90, ["healthy"]), (400, ["vram_spill"])]))

    c = Case("wan-6700xt-second-job-spills", "rx6700xt", "comfyui-wan", 420, 72)
    comfy26(c, 12, 12272, 63800, "2.8.0+rocm6.3", "AMD Radeon RX 6700 XT")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 40, "WAN21", 10100, te="WanTEModel", p="[INFO] ", new=True)
    c.bar(41, 101, 15)
    c.seg(40, 102, "sample")
    c.out(103, "[INFO] Requested to load WanVAE")
    c.seg(102, 118, "vae")
    c.out(118, "[INFO] Prompt executed in 98.01 seconds")
    c.seg(118, 130, "idle")
    c.out(130, "[INFO] got prompt", "[INFO] loaded partially; 8841.20 MB usable, 8840.00 MB loaded, 1001.39 MB offloaded, lowvram patches: 0")
    c.bar(133, 415, 15, 0, 9, final=False)
    c.seg(130, 140, "sample", vram=12250, gtt=3900, power=C(100, 10))
    c.seg(140, 420, "sample", gtt=6800, power=C(88, 6))
    cs.append(fault(c, "vram_spill", "sampling", 140, 330, [text("1001.39 MB offloaded"), gauge("vram full, gtt up by 6 GiB, a step takes 31 s instead of 4 s")], "the larger job does not fit", earliest=140,
                    must_not=["busy_idle", "silent_hang", "device_mismatch"], checkpoints=[(80, ["healthy"]), (125, ["idle_waiting"]), (410, ["vram_spill"])]))

    # the host swaps
    c = Case("flux-6700xt-thrash", "rx6700xt", "comfyui", 300, 73, host_ram_mib=15900)
    comfy_boot(c, 18, 12272, 15900, "2.8.0+rocm6.3", "AMD Radeon RX 6700 XT")
    c.seg(18, 26, "idle")
    c.out(26, "got prompt", "Requested to load FluxClipModel_")
    c.seg(26, 60, "load", vram=5200)
    c.out(60, "loaded completely 9600.3 4777.54 True", "Requested to load Flux")
    c.seg(60, 80, "load")
    c.seg(80, 300, "load", rd=C(1.7e8, 4e7), wr=C(1.4e8, 4e7), d=C(6, 1.2), cpu=C(19, 7))
    cs.append(fault(c, "thrash", "model_load", 80, 155, [gauge("reads and writes together, six threads in D state, little cpu, the card idle")], "host memory is short", earliest=90,
                    must_not=STALLS + ["host_oom"], checkpoints=[(50, ["loading_io", "healthy"]), (290, ["thrash"])]))

    c = Case("script-890m-thrash-in-sampling", "strixpoint", "diffusers", 330, 74, host_ram_mib=15600, argv=["python3", "gen.py"])
    script(c, 60, vram=480)
    c.bar(62, 140, 30, 0, 13, final=False)
    c.seg(60, 142, "sample", gtt=14000)
    c.seg(142, 330, "load", rd=C(9.5e7, 2e7), wr=C(8.8e7, 2e7), d=C(4, 1), cpu=C(14, 5), gpu=BLIP(0, 0.1, 3, 30))
    cs.append(fault(c, "thrash", "sampling", 142, 220, [gauge("reads and writes together, threads in D state, cpu 14 %")], "host memory is short", earliest=152, must_not=STALLS + ["gtt_exhausted"],
                    checkpoints=[(120, ["healthy"]), (320, ["thrash"])]))

    # held down
    c = Case("wan-4090m-throttled", "rtx4090m", "comfyui-wan", 420, 75)
    comfy26(c, 12, 16376, 63800, "2.9.1+cu130", "NVIDIA GeForce RTX 4090 Laptop GPU")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 40, "WAN21", 13800, te="WanTEModel", p="[INFO] ", new=True)
    c.bar(41, 141, 40, 0, 20, final=False)
    c.seg(40, 142, "sample")
    c.bar(153, 410, 40, 21, 40, final=False, start=41)
    c.seg(142, 420, "sample", power=C(52, 2), gpu=C(99, 0.6))
    cs.append(fault(c, "throttled", "sampling", 142, 300, [gauge("busy 99 % at 52 W instead of 138 W; a step takes 13 s instead of 5 s, evenly")], "heat or a limit holds the clocks down", earliest=150,
                    must_not=NO_HANG + ["vram_spill"], accept=[], checkpoints=[(120, ["healthy"]), (400, ["throttled"])]))

    # slower, and nothing says why
    c = Case("hunyuan-w7900-crawl", "w7900", "diffusers", 520, 76, argv=["python3", "hv.py"])
    script(c, 50, vram=31000)
    c.bar(52, 132, 50, 0, 20, final=False)
    c.seg(50, 133, "sample")
    c.bar(160, 500, 50, 21, 32, final=False, start=52)
    c.seg(133, 520, "sample", gpu=C(61, 20), power=C(170, 25))
    cs.append(fault(c, "crawl", "sampling", 133, 330, [gauge("a step took 4 s and now takes 31 s; memory, heat and host look as before")], "cause not established", earliest=155,
                    must_not=NO_HANG + ["vram_spill", "throttled"], accept=[], checkpoints=[(120, ["healthy"]), (510, ["crawl"])]))

    # bytes stop
    c = Case("hub-7600xt-xet-at-zero", "rx7600xt", "diffusers", 220, 77, argv=["python3", "qwen_image.py"])
    c.out(2, *["Warning: You are sending unauthenticated requests to the HF Hub (%d)" % i for i in range(10)])
    c.raw(6, "\rFetching 12 files:   0%|          | 0/12 [00:00<?, ?it/s]")
    c.bar(7, 50, 100, 0, 34, desc="model-00001-of-00009.safetensors: ", unit="%", every=2, final=False)
    c.seg(0, 6, "startup")
    c.seg(6, 51, "download")
    c.seg(51, 220, "idle")
    c.out(5, "Downloading bytes:")
    cs.append(fault(c, "download_stall", "download", 51, 150, [text("Fetching 12 files"), gauge("nothing received for minutes")], "the transfer is dead", earliest=75,
                    must_not=["silent_hang", "idle_waiting", "healthy", "finished"], checkpoints=[(40, ["download_wait"]), (210, ["download_stall"])]))

    c = Case("comfy-3060-url-download-stalls", "rtx3060", "comfyui-hunyuan3d", 240, 78)
    comfy_boot(c, 13, 12288, 31800, "2.8.0+cu128", "NVIDIA GeForce RTX 3060", nodes=3)
    c.seg(13, 21, "idle")
    c.out(21, "got prompt", "Downloading model to: models/diffusers/hunyuan3d-delight-v2-0")
    c.bar(23, 70, 14, 0, 5, desc="Fetching 14 files: ", final=False)
    c.seg(21, 71, "download")
    c.seg(71, 240, "idle", net=MIX(800, 9000, 0.1, 9000, 14000))
    cs.append(fault(c, "download_stall", "download", 71, 170, [text("Downloading model to:"), gauge("nothing received for minutes")], "the transfer is dead", earliest=95,
                    must_not=["silent_hang", "healthy", "idle_waiting"], checkpoints=[(17, ["idle_waiting"]), (60, ["download_wait"]), (230, ["download_stall"])]))

    # two devices, without an error: crawl with the console's evidence
    c = Case("hy3d-7900gre-multiview-two-devices", "rx7900gre", "comfyui-hunyuan3d", 360, 79)
    comfy26(c, 13, 16368, 64000, "2.8.0+rocm6.3", "AMD Radeon RX 7900 GRE")
    c.seg(13, 21, "idle")
    c.out(21, "[INFO] got prompt", "[INFO] Loading multiview pipeline hunyuan3d-paint-v2-0")
    c.seg(21, 36, "load", vram=6100)
    c.out(36, "[INFO] pipeline.enable_model_cpu_offload(): execution device: cpu", "[INFO] reference image: torch.Size([1, 3, 512, 512]) device: cuda:0")
    c.bar(38, 350, 30, 0, 12, final=False)
    c.seg(36, 360, "spin", vram=6300, power=C(55, 2.5), cpu=C(101, 3))
    cs.append(fault(c, "device_mismatch", "texture", 40, 190, [text("execution device: cpu"), text("device: cuda:0"), gauge("busy 100 % at 55 W of 241 W, a step takes 26 s")], "inputs to the pipeline's device", earliest=50,
                    accept=["busy_idle"], must_not=["healthy", "silent_hang", "vram_spill"], checkpoints=[(17, ["idle_waiting"]), (340, ["device_mismatch", "busy_idle"])]))
    # the same decode takes ten times as long in the second section, with a bar of its own
    c = Case("wan-7800xt-tiles-crawl", "rx7800xt", "script", 480, 80, argv=["python3", "tiled_upscale.py"])
    script(c, 44, vram=9000)
    c.bar(46, 136, 90, 0, 45, every=3, desc="tiles: ", final=False)
    c.seg(44, 137, "vae")
    c.bar(150, 470, 90, 46, 62, desc="tiles: ", final=False, start=46)
    c.seg(137, 480, "vae", gpu=C(93, 4), power=C(172, 9))
    cs.append(fault(c, "crawl", "unknown", 137, 330, [gauge("a tile took 2 s and now takes 20 s; nothing else changed")], "cause not established", earliest=150,
                    must_not=NO_HANG + ["vram_spill"], checkpoints=[(120, ["healthy"]), (470, ["crawl"])]))

    c = Case("flux-7900xtx-junction-throttle", "rx7900xtx", "comfyui", 420, 120, kernel_t0=77001.0)
    comfy_boot(c, 12, 24560, 64000, "2.8.0+rocm6.4", "AMD Radeon RX 7900 XTX")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 40, "Flux", 21800)
    c.bar(41, 131, 60, 0, 30, final=False)
    c.seg(40, 132, "sample")
    c.bar(140, 412, 60, 31, 60, final=False, start=41)
    c.seg(132, 420, "sample", power=C(131, 3), gpu=C(99, 0.6))
    cs.append(fault(c, "throttled", "sampling", 132, 290, [gauge("busy 99 % at 131 W instead of 318 W; a step takes 9 s instead of 3 s, evenly")], "heat or a limit holds the clocks down", earliest=140,
                    must_not=NO_HANG + ["vram_spill"], checkpoints=[(110, ["healthy"]), (410, ["throttled"])]))
    return cs
