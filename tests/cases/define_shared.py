"""The 16 cases.  python3 define_shared.py [OUT_DIR]  (default: this folder)."""
import os
import sys

from casegen import BLIP, B, C, R, Case, FIVE, TR, VAE, comfy_boot, fp_boot, fp_job

FAST = {"MIOPEN_FIND_MODE": "FAST", "MIOPEN_FIND_ENFORCE": "NONE"}
NO_HANG = ["silent_hang", "find_stall", "busy_idle", "device_mismatch"]


def build():
    cs = []

    # 01 -- silent VAE hang, FramePack, 24 GB card -----------------------------------------
    c = Case("fp-7900xtx-vae-silent-hang", "rx7900xtx", "framepack", 330, 101, argv=["python3", "demo_gradio.py"],
             env={"MIOPEN_FIND_MODE": "NORMAL", "MIOPEN_FIND_ENFORCE": "SEARCH"})
    fp_boot(c, 38, 23.4)
    c.seg(38, 56, "idle")
    fp_job(c, 56, 72, 20900)
    c.bar(73, 160, 25)
    c.seg(72, 161, "sample")
    c.out(161, "Unloading %s completely" % TR, "[post-transformer-unload] ROCm mempool trimmed")
    c.seg(161, 164, "load", vram=1650, rd=0, cpu=C(92, 9))
    c.out(163, "[Before VAE Load] Free: 18.3 GB | Allocated: 1.6 GB (8.0% of 20GB limit)")
    c.out(164, "Loaded %s to cuda:0 as complete." % VAE)
    c.out(165, "[VAE Decode] Starting - latents shape: torch.Size([1, 16, 9, 68, 90]), device: cpu",
          "[VAE Decode] VAE device: cuda:0, VAE dtype: torch.float16", "[VAE Decode] Attempting GPU decode on cuda:0")
    c.seg(164, 170, "vae", vram=4100, gpu=C(22, 12), power=C(74, 14))
    c.seg(170, 330, "hang")
    c.expect("silent_hang", "vae_decode", "error",
             [("console", "[VAE Decode] Attempting GPU decode on cuda:0", "last line; never followed by GPU decode SUCCESS"),
              ("telemetry", "", "from t=170 on: gpu_busy about 0, cpu under 3, no io, power at idle level, vram flat at about 4.1 GiB while a job is in flight")],
             "fast_find", 1, True, "MIOpen search wedged in a 3-D convolution; restart with fast find and immediate-mode fallback",
             onset=170, earliest=190, detect_by=260, must_not=["idle_waiting", "compile_warmup", "healthy"], env=FAST,
             checkpoints=[(48, ["idle_waiting"]), (120, ["healthy"]), (320, ["silent_hang"])])
    cs.append(c)

    # 02 -- BlockAllocator flood after offload instead of unload ----------------------------
    c = Case("fp-7900xtx-blockalloc-offload", "rx7900xtx", "framepack", 210, 102, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 36, 23.5, patched=False)
    c.seg(36, 44, "idle")
    fp_job(c, 44, 59, 22050, preserved=6)
    c.bar(60, 168, 25)
    c.seg(59, 169, "sample")
    c.out(169, "Offloading %s from cuda:0 to preserve memory: 22 GB" % TR)
    c.seg(169, 173, "load", vram=21400, rd=0, cpu=C(101, 5))
    c.out(172, "Loaded %s to cuda:0 as complete." % VAE)
    c.out(173, "[VAE Decode] Attempting GPU decode on cuda:0")
    c.seg(173, 183, "vae", vram=24380)
    for i in range(18):
        c.out(177 + i * 0.31, "HSA exception: MemoryRegion::BlockAllocator::alloc failed.")
    c.event(184, "exit", signal="SIGABRT")
    c.seg(183, 185, "cpu1")
    c.seg(185, 210, "dead", vram=640)
    c.expect("block_allocator", "vae_decode", "error",
             [("console", "HSA exception: MemoryRegion::BlockAllocator::alloc failed", "repeats"),
              ("console", "Offloading %s from cuda:0 to preserve memory: 22 GB" % TR, "transformer kept on the card"),
              ("telemetry", "", "vram within 1 % of total at the failure"), ("event", "exit", "SIGABRT")],
             "full_unload", 1, True, "unload the transformer completely before the VAE is loaded, preserve 18 GB",
             onset=177, earliest=177, detect_by=187, also=["offload_risk"], must_not=["silent_hang", "find_stall"],
             checkpoints=[(110, ["healthy"]), (171, ["offload_risk", "healthy"]), (200, ["block_allocator"])])
    cs.append(c)

    # 03 -- MIOpen finds no algorithm --------------------------------------------------------
    c = Case("fp-7800xt-miopen-no-algorithm", "rx7800xt", "framepack", 220, 103, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 41, 15.6, patched=False)
    c.seg(41, 50, "idle")
    fp_job(c, 50, 66, 13900, pad=6, preserved=8)
    c.bar(67, 157, 20)
    c.seg(66, 158, "sample")
    c.out(158, "Offloading %s from cuda:0 to preserve memory: 9 GB" % TR, "Loaded %s to cuda:0 as complete." % VAE)
    c.seg(158, 162, "load", vram=8200, rd=0)
    c.seg(162, 166, "vae", gpu=C(30, 12), power=C(80, 15))
    c.out(166, "MIOpen Error: /src/MIOpen/src/ocl/convolutionocl.cpp:275: No suitable algorithm was found to execute the required convolution",
          "Traceback (most recent call last):", '  File "demo_gradio.py", in worker', "    pixels = vae_decode(latents, vae).cpu()",
          '  File "diffusers_helper/hunyuan.py", in vae_decode', "RuntimeError: miopenStatusUnknownError")
    c.out(168, *["Unloaded %s as complete." % m for m in FIVE])
    c.seg(166, 170, "load", vram=900, rd=0)
    c.seg(170, 220, "idle")
    c.expect("no_algorithm", "vae_decode", "error",
             [("console", "No suitable algorithm was found to execute the required convolution", ""),
              ("console", "RuntimeError: miopenStatusUnknownError", "")],
             "tiled_vae", 2, True, "no solver fits this convolution (GEMM's workspace over its limit, or all disabled): smaller tiles make GEMM fit again; CPU decode last",
             onset=166, earliest=166, detect_by=171, must_not=["gpu_oom", "silent_hang"],
             checkpoints=[(100, ["healthy"]), (210, ["no_algorithm", "idle_waiting"])])
    cs.append(c)

    # 04 -- HIP OOM at the first transformer step -------------------------------------------
    c = Case("fp-7900xtx-hip-oom-sampling", "rx7900xtx", "framepack", 150, 104, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 35, 22.9)
    c.seg(35, 45, "idle")
    fp_job(c, 45, 61, 23300, pad=27, preserved=6)
    c.raw(62, "\r  0%|                    | 0/25 [00:00<?, ?it/s]")
    c.seg(61, 67, "sample", vram=24490, gpu=C(71, 15), power=C(190, 30))
    c.out(67, "", "Traceback (most recent call last):", '  File "demo_gradio.py", in worker', "    generated_latents = sample_hunyuan(",
          '  File "diffusers_helper/models/hunyuan_video_packed.py", in forward',
          "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.83 GiB. GPU 0 has a total capacity of 23.98 GiB of which 214.00 MiB is free. "
          "Of the allocated memory 21.77 GiB is allocated by PyTorch, and 1.42 GiB is reserved by PyTorch but unallocated.")
    c.out(69, *["Unloaded %s as complete." % m for m in FIVE])
    c.seg(67, 72, "load", vram=820, rd=0)
    c.seg(72, 150, "idle")
    c.expect("gpu_oom", "sampling", "error",
             [("console", "torch.OutOfMemoryError: HIP out of memory.", ""), ("telemetry", "", "vram above 98 % of total just before")],
             "lower_settings", 2, True, "raise preserved memory to 18 GB, then fewer frames or a smaller resolution",
             onset=67, earliest=67, detect_by=72, must_not=["block_allocator", "host_oom", "gtt_exhausted"],
             checkpoints=[(40, ["idle_waiting"]), (75, ["gpu_oom"])])
    cs.append(c)

    # 05 -- 100 % busy, low power, crawling steps: inputs on another device ------------------
    c = Case("hy3d-7900xtx-delight-device-mismatch", "rx7900xtx", "comfyui-hunyuan3d", 300, 105)
    comfy_boot(c, 14, 24560, 64211, "2.6.0+rocm6.2", "AMD Radeon RX 7900 XTX", nodes=3)
    c.seg(14, 24, "idle")
    c.out(24, "got prompt", "Hy3D: loading delight pipeline hunyuan3d-delight-v2-0")
    c.seg(24, 40, "load", vram=5200)
    c.out(40, "Hy3D: enable_model_cpu_offload active, pipeline execution device: cpu", "Image in shape: torch.Size([1, 3, 512, 512]), device: cuda:0")
    c.bar(42, 291, 50, 0, 11, final=False)
    c.seg(40, 300, "spin", vram=5350, power=C(71, 3.0), cpu=C(101, 3), gpu=C(99.7, 0.5))
    c.expect("device_mismatch", "delight", "error",
             [("console", "pipeline execution device: cpu", "offloaded pipeline expects inputs on the CPU"),
              ("console", "Image in shape: torch.Size([1, 3, 512, 512]), device: cuda:0", "input sits on the GPU"),
              ("telemetry", "", "gpu_busy about 100 with power about 71 W of 355 W for minutes; one step takes 23 s")],
             "fix_device_placement", 1, True, "put inputs and generator on the pipeline's execution device, or turn CPU offload off",
             onset=44, earliest=60, detect_by=170, accept=["busy_idle"], must_not=["healthy", "silent_hang", "vram_spill"],
             checkpoints=[(20, ["idle_waiting"]), (34, ["loading_io", "healthy"]), (290, ["device_mismatch", "busy_idle"])])
    cs.append(c)

    # 06 -- twin of 01: the server just waits for the user ------------------------------------
    c = Case("fp-7900xtx-idle-server", "rx7900xtx", "framepack", 420, 106, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 37, 23.4)
    c.seg(37, 140, "idle")
    fp_job(c, 140, 156, 20700, pad=0, last=True)
    c.bar(157, 232, 25)
    c.seg(156, 233, "sample")
    c.out(233, "Unloading %s completely" % TR, "[post-transformer-unload] ROCm mempool trimmed")
    c.out(235, "Loaded %s to cuda:0 as complete." % VAE)
    c.out(236, "[VAE Decode] Attempting GPU decode on cuda:0")
    c.seg(233, 236, "load", vram=1700, rd=0)
    c.seg(236, 251, "vae", vram=9800)
    c.out(251, "[VAE Decode] GPU decode SUCCESS - result device: cuda:0, shape: torch.Size([1, 3, 33, 544, 720])",
          "Decoded. Current latent shape torch.Size([1, 16, 9, 68, 90]); pixel shape torch.Size([1, 3, 33, 544, 720])")
    c.seg(251, 255, "cpuN", vram=2100, cpu=C(640, 60), wr=C(4.0e6, 1.0e6))
    c.out(254, "Unloaded %s as complete." % VAE)
    c.seg(255, 420, "idle")
    c.expect("idle_waiting", "idle", "info",
             [("console", "is_last_section = True", "the last section was announced"), ("console", "Decoded. Current latent shape", "and decoded: the job is over"),
              ("telemetry", "", "0/0/0 afterwards, exactly like a silent hang, with 2.1 GiB still held")],
             "none", 0, False, "no job in flight; the page waits for the user",
             false_alarm=True, must_not=NO_HANG, checkpoints=[(100, ["idle_waiting"]), (200, ["healthy"]), (410, ["idle_waiting"])])
    cs.append(c)

    # 07 -- healthy, two sections, unloads as it should ---------------------------------------
    c = Case("fp-7900xtx-healthy-two-sections", "rx7900xtx", "framepack", 360, 107, argv=["python3", "demo_gradio.py"], env=FAST)
    fp_boot(c, 34, 23.5, attn=True)
    c.seg(34, 40, "idle")
    fp_job(c, 40, 55, 20400, pad=1)
    t = 56
    for sec in range(2):
        c.bar(t, t + 95, 25)
        c.seg(t - 1, t + 96, "sample")
        c.out(t + 96, "Unloading %s completely" % TR, "[post-transformer-unload] ROCm mempool trimmed",
              "[Before VAE Load] Free: 18.2 GB | Allocated: 1.8 GB (9.0% of 20GB limit)")
        c.seg(t + 96, t + 100, "load", vram=1800, rd=0)
        c.out(t + 99, "Loaded %s to cuda:0 as complete." % VAE, "[VAE Decode] Attempting GPU decode on cuda:0")
        c.seg(t + 100, t + 124, "vae", vram=11200)
        c.out(t + 124, "[VAE Decode] GPU decode SUCCESS - result device: cuda:0, shape: torch.Size([1, 3, %d, 544, 720])" % (33 + 36 * sec),
              "Decoded. Current latent shape torch.Size([1, 16, %d, 68, 90]); pixel shape torch.Size([1, 3, %d, 544, 720])" % (9 + 9 * sec, 33 + 36 * sec),
              "Unloaded %s as complete." % VAE)
        c.seg(t + 124, t + 127, "cpuN", vram=1500, cpu=C(520, 60), wr=C(3.0e6, 8e5))
        if sec == 0:
            c.out(t + 128, "latent_padding_size = 0, is_last_section = True", "Moving %s to cuda:0 with preserved memory: 18 GB" % TR)
            c.seg(t + 127, t + 136, "load", vram=20400, rd=0)
            t += 137
    c.seg(t + 127, 360, "idle")
    c.expect("healthy", "done", "info",
             [("console", "GPU decode SUCCESS", "both sections decoded"), ("console", "Unloading %s completely" % TR, "")],
             "none", 0, False, "progress all the way, then idle", false_alarm=True, accept=["idle_waiting"],
             must_not=NO_HANG + ["offload_risk", "crawl"], checkpoints=[(120, ["healthy"]), (166, ["healthy"]), (260, ["healthy"]), (352, ["healthy", "idle_waiting"])])
    cs.append(c)

    # 08 -- first-run MIOpen tuning that makes progress ---------------------------------------
    c = Case("comfy-6800-first-run-tuning", "rx6800", "comfyui", 300, 108)
    comfy_boot(c, 12, 16368, 32011, "2.5.1+rocm6.2", "AMD Radeon RX 6800")
    c.seg(12, 20, "idle")
    c.out(20, "got prompt", "model_type EPS", "Requested to load SDXL")
    c.seg(20, 33, "load", vram=6900)
    c.out(33, "loaded completely 13120.4 4897.05 True")
    c.bar(34, 52, 20)
    c.seg(33, 53, "sample")
    c.out(53, "Requested to load AutoencoderKL", "loaded completely 9211.7 159.56 True")
    t, left = 56, 412
    for k in range(5):
        c.out(t, "MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...")
        for j in range(4):
            c.out(t + 7 + 8.5 * j, "MIOpen(HIP): Warning [SearchImpl] Runs left: %d, min time so far: %.3f, curr time: %.3f" % (left, 4.8 - 0.3 * j, 11.0 + j))
            left = max(0, left - 97)
        t, left = t + 38, 388
    c.seg(53, 246, "cpu1", vram=9400, cpu=C(106, 5), gpu=B(9, 0.35, 47, 1, 6), power=B(9, 0.35, 88, 26, 6), wr=BLIP(0, 0.12, 4096, 90000))
    c.seg(246, 254, "vae", vram=9800)
    c.out(254, "Prompt executed in 233.81 seconds")
    c.seg(254, 300, "idle")
    c.expect("compile_warmup", "vae_decode", "info",
             [("console", "[SearchImpl] Runs left:", "the counter goes down: the search advances"), ("telemetry", "", "one core busy, GPU in short bursts")],
             "wait", 0, False, "one-off tuning, it ends by itself and is cached", false_alarm=True, accept=["healthy", "idle_waiting"], must_not=NO_HANG,
             checkpoints=[(45, ["healthy"]), (150, ["compile_warmup"]), (294, ["idle_waiting", "healthy"])])
    cs.append(c)

    # 09 -- find stall: search silent, one core spinning ---------------------------------------
    c = Case("comfy-9070xt-find-stall", "rx9070xt", "comfyui-wan", 460, 109, env={"MIOPEN_FIND_MODE": "NORMAL", "MIOPEN_FIND_ENFORCE": "SEARCH"})
    comfy_boot(c, 13, 16304, 64055, "2.8.0+rocm6.4", "AMD Radeon RX 9070 XT")
    c.seg(13, 19, "idle")
    c.out(19, "got prompt", "Using pytorch attention in VAE", "Requested to load WanTEModel")
    c.seg(19, 38, "load", vram=9100)
    c.out(38, "loaded completely 14003.2 6419.48 True", "Requested to load WAN21", "loaded partially 11250.1 11249.9 0")
    c.seg(38, 50, "load", vram=13600)
    c.bar(51, 131, 10)
    c.seg(50, 132, "sample")
    c.out(132, "Requested to load WanVAE", "loaded completely 3120.9 242.03 True")
    c.out(134, "MIOpen(HIP): Warning [IsEnoughWorkspace] [EvaluateInvokers] Solver <GemmFwdRest>, workspace required: 2189426688, provided ptr: 0 size: 0",
          "MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 10 dim space. Please, be patient...")
    c.seg(132, 140, "vae", vram=9900, gpu=C(60, 16))
    c.seg(140, 460, "cpu1", gpu=BLIP(0, 0.10, 1, 4), power=C(39, 1.6))
    c.expect("find_stall", "vae_decode", "error",
             [("console", "[SearchImpl] Searching the best solution", "last line, no Runs left line ever follows"),
              ("telemetry", "", "one core at 100 % for minutes, gpu_busy about 0, no io, vram flat, no output")],
             "fast_find", 1, True, "the search does not advance; restart with fast find mode",
             onset=140, earliest=200, detect_by=380, must_not=["idle_waiting", "healthy"], env=FAST,
             checkpoints=[(100, ["healthy"]), (170, ["compile_warmup", "healthy"]), (450, ["find_stall"])])
    cs.append(c)

    # 10 -- model download, incl. a short network dip -------------------------------------------
    c = Case("fp-4090-model-download", "rtx4090", "framepack", 300, 110, argv=["python3", "demo_gradio.py"])
    c.out(1, "Currently enabled native sdp backends: ['flash', 'math', 'mem_efficient', 'cudnn']", "Xformers is not installed!",
          "Flash Attn is not installed!", "Sage Attn is not installed!")
    c.out(2, "Free VRAM 23.1 GB", "High-VRAM Mode: False")
    c.seg(0, 4, "startup")
    c.bar(4, 5, 1, desc="config.json: ")
    c.bar(5, 97, 100, desc="model-00001-of-00004.safetensors: ", every=4, unit="%")
    c.bar(99, 120, 100, 0, 26, desc="model-00002-of-00004.safetensors: ", every=4, unit="%", final=False)
    c.bar(134, 193, 100, 26, 100, desc="model-00002-of-00004.safetensors: ", every=4, unit="%", start=99)
    c.bar(195, 279, 100, desc="model-00003-of-00004.safetensors: ", every=4, unit="%")
    c.bar(281, 299, 100, 0, 22, desc="model-00004-of-00004.safetensors: ", every=4, unit="%", final=False)
    c.seg(4, 120, "download")
    c.seg(120, 133, "idle")
    c.seg(133, 300, "download")
    c.expect("download_wait", "download", "info",
             [("console", "model-00001-of-00004.safetensors", "download bar"), ("telemetry", "", "net_rx and io_write at 40 MB/s, GPU idle")],
             "wait", 0, False, "weights are being fetched; a 13 s network dip is not a stall", false_alarm=True, must_not=NO_HANG + ["download_stall", "idle_waiting"],
             checkpoints=[(60, ["download_wait"]), (131, ["download_wait"]), (250, ["download_wait"])])
    cs.append(c)

    # 11 -- slow disk ---------------------------------------------------------------------------
    c = Case("comfy-7900xtx-slow-hdd-load", "rx7900xtx", "comfyui", 360, 111)
    comfy_boot(c, 30, 24560, 31920, "2.6.0+rocm6.2.4", "AMD Radeon RX 7900 XTX")
    c.seg(0, 30, "hdd")
    c.seg(30, 39, "idle")
    c.out(39, "got prompt", "Using pytorch attention in VAE", "Requested to load FluxClipModel_")
    c.seg(39, 130, "hdd", vram=700)
    c.out(130, "loaded completely 21011.3 9319.23 True")
    c.seg(130, 134, "encode", vram=10100)
    c.out(134, "Requested to load Flux")
    c.seg(134, 318, "hdd")
    c.seg(318, 324, "load", vram=22100, rd=0)
    c.out(323, "loaded completely 22087.0 22700.13 False")
    c.bar(325, 355, 20, 0, 14, final=False)
    c.seg(324, 360, "sample")
    c.expect("loading_io", "model_load", "info",
             [("console", "Requested to load Flux", "then silence for three minutes"), ("telemetry", "", "io_read steady at about 110 MB/s, one thread in D state, cpu 7 %, gpu 0")],
             "wait", 0, False, "22 GB from a hard disk takes minutes", false_alarm=True, accept=["healthy"], must_not=NO_HANG + ["thrash", "idle_waiting"],
             checkpoints=[(90, ["loading_io"]), (300, ["loading_io"]), (352, ["healthy"])])
    cs.append(c)

    # 12 -- ring timeout and GPU reset ------------------------------------------------------------
    c = Case("comfy-7900xtx-ring-timeout", "rx7900xtx", "comfyui", 180, 112, kernel_t0=7311.25)
    comfy_boot(c, 12, 24560, 64210, "2.3.0+rocm5.7", "AMD Radeon RX 7900 XTX")
    c.seg(12, 18, "idle")
    c.out(18, "got prompt", "Requested to load SVD_img2vid")
    c.seg(18, 34, "load", vram=12800)
    c.bar(35, 104, 20, 0, 9, final=False)
    c.seg(34, 107, "sample")
    c.seg(107, 118, "hang", gpu=C(100, 0), power=C(96, 4), cpu=C(100, 1), d=2)
    c.klog(117, "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=88121, emitted seq=88123",
           "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process compositor pid 2210 thread compositor:cs0 pid 2262",
           "amdgpu 0000:0d:00.0: amdgpu: GPU reset begin!")
    c.klog(119, "amdgpu 0000:0d:00.0: amdgpu: MODE1 reset", "amdgpu 0000:0d:00.0: amdgpu: GPU reset succeeded, trying to resume",
           "[drm] VRAM is lost due to GPU reset!")
    c.out(121, "", "Memory critical error by agent node-0 (Agent handle: 0x5d0c11f40b90) on address 0x7e1a10400000. Reason: Memory in use.")
    c.seg(118, 122, "hang", gpu=0, power=C(24, 2), vram=0)
    c.event(122, "exit", signal="SIGABRT")
    c.seg(122, 180, "dead", vram=510)
    c.expect("gpu_reset", "sampling", "critical",
             [("kernel", "ring gfx_0.0.0 timeout", ""), ("kernel", "GPU reset begin!", ""), ("event", "exit", "SIGABRT"), ("telemetry", "", "vram drops to 0 at the reset")],
             "retry_same", 2, True, "the card came back; one restart at lower settings, stop after a second reset",
             onset=117, earliest=117, detect_by=125, must_not=["idle_waiting", "gpu_oom"], checkpoints=[(80, ["healthy"]), (150, ["gpu_reset"])])
    cs.append(c)

    # 13 -- memory access fault --------------------------------------------------------------------
    c = Case("comfy-6800-memory-fault", "rx6800", "comfyui", 120, 113, kernel_t0=20145.7)
    comfy_boot(c, 11, 16368, 32011, "2.10.0.dev+rocm7.1", "AMD Radeon RX 6800", extra=["/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory"])
    c.seg(11, 16, "idle")
    c.out(16, "got prompt", "Requested to load SDXL", "loaded completely 12911.0 4897.05 True")
    c.seg(16, 27, "load", vram=8100)
    c.bar(28, 47, 29, 0, 12, final=False)
    c.seg(27, 48, "sample")
    c.out(48, "Memory access fault by GPU node-1 (Agent handle: 0x31a0c7b0) on address 0x7412a607e000. Reason: Page not present or supervisor privilege.",
          "Failed to create GPU coredump: File exists", "GPU core dump failed")
    c.klog(48, "amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32791)",
           "amdgpu 0000:03:00.0: amdgpu:   in page starting at address 0x00007412a607e000 from client 10")
    c.event(49, "exit", signal="SIGABRT")
    c.seg(48, 50, "cpu1")
    c.seg(50, 120, "dead", vram=480)
    c.expect("memory_fault", "sampling", "error",
             [("console", "Memory access fault by GPU node-1", ""), ("kernel", "[gfxhub] page fault", ""), ("event", "exit", "SIGABRT")],
             "retry_same", 1, True, "retry once without pinned or async offload; a second fault needs the user",
             onset=48, earliest=48, detect_by=53, must_not=["gpu_oom", "crash_segv"], checkpoints=[(40, ["healthy"]), (100, ["memory_fault"])])
    cs.append(c)

    # 14 -- no kernel image for the architecture -----------------------------------------------------
    c = Case("comfy-strix-no-kernel-image", "strixhalo", "comfyui", 90, 114, host_ram_mib=127600, cpu_threads=32)
    comfy_boot(c, 10, 98304, 127600, "2.10.0.dev+rocm7.0", "AMD Radeon Graphics")
    c.seg(10, 15, "idle")
    c.out(15, "got prompt", "Requested to load SD1ClipModel")
    c.seg(15, 18, "load", gtt=900)
    c.out(18, "!!! Exception during processing !!! HIP error: invalid device function", "HIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
          "Traceback (most recent call last):", '  File "execution.py", in execute', "RuntimeError: HIP error: invalid device function", "Prompt executed in 2.91 seconds")
    c.seg(18, 90, "idle")
    c.expect("no_kernel_image", "text_encode", "error", [("console", "HIP error: invalid device function", "")],
             "fix_environment", 4, False, "this torch build has no code for gfx1151; install a matching build, a restart cannot help",
             onset=18, earliest=18, detect_by=22, must_not=["gpu_oom", "crash_segv"], checkpoints=[(80, ["no_kernel_image", "idle_waiting"])])
    cs.append(c)

    # 15 -- host OOM killer ------------------------------------------------------------------------------
    c = Case("comfy-4090-host-oom-killed", "rtx4090", "comfyui-wan", 150, 115, host_ram_mib=31890, kernel_t0=4410.02)
    comfy_boot(c, 11, 24564, 31890, "2.8.0+cu128", "NVIDIA GeForce RTX 4090")
    c.seg(11, 16, "idle")
    c.out(16, "got prompt", "Using pytorch attention in VAE", "Requested to load WanTEModel")
    c.seg(16, 34, "load", vram=11900)
    c.out(34, "loaded completely 22110.8 10835.47 True", "Requested to load WAN21")
    c.seg(34, 52, "load", rd=C(9.0e8, 1.2e8), vram=11900)
    c.seg(52, 64, "load", rd=C(2.2e8, 8e7), wr=C(1.1e8, 3e7), d=C(5, 1.2), cpu=C(63, 15))
    c.klog(63, "python3 invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0, oom_score_adj=0",
           "Out of memory: Killed process 48213 (python3) total-vm:91240412kB, anon-rss:29871144kB, file-rss:4096kB, shmem-rss:8192kB, oom_score_adj:0")
    c.event(64, "exit", signal="SIGKILL")
    c.seg(64, 150, "dead", vram=530)
    c.expect("host_oom", "model_load", "critical",
             [("kernel", "Out of memory: Killed process", ""), ("event", "exit", "SIGKILL not sent by the supervisor"), ("telemetry", "", "VRAM at half when the process dies")],
             "free_memory", 2, True, "smaller text encoder or fp8 weights, no offload copy in RAM, more swap",
             onset=63, earliest=63, detect_by=68, must_not=["gpu_oom", "crash_segv", "finished"], checkpoints=[(45, ["loading_io", "healthy"]), (100, ["host_oom"])])
    cs.append(c)

    # 16 -- job over, GPU counter stuck at 100 % ------------------------------------------------------------
    c = Case("fp-7900xtx-busy-counter-after-job", "rx7900xtx", "framepack", 400, 116, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 33, 23.4)
    c.seg(33, 42, "idle")
    fp_job(c, 42, 58, 20300, pad=0, last=True)
    c.bar(59, 139, 25)
    c.seg(58, 140, "sample")
    c.out(140, "Unloading %s completely" % TR, "[post-transformer-unload] ROCm mempool trimmed")
    c.seg(140, 144, "load", vram=1600, rd=0)
    c.out(143, "Loaded %s to cuda:0 as complete." % VAE, "[VAE Decode] Attempting GPU decode on cuda:0")
    c.seg(144, 160, "vae", vram=10100)
    c.out(160, "[VAE Decode] GPU decode SUCCESS - result device: cuda:0, shape: torch.Size([1, 3, 33, 544, 720])",
          "Decoded. Current latent shape torch.Size([1, 16, 9, 68, 90]); pixel shape torch.Size([1, 3, 33, 544, 720])")
    c.seg(160, 164, "cpuN", vram=1900, cpu=C(600, 50), wr=C(4e6, 1e6), gpu=C(100, 0), power=C(104, 2))
    c.out(163, "Unloaded %s as complete." % VAE)
    c.seg(164, 400, "idle", gpu=C(100, 0), power=C(103, 1.4))
    c.expect("idle_waiting", "idle", "info",
             [("console", "is_last_section = True", ""), ("console", "Decoded. Current latent shape", "job over"),
              ("telemetry", "", "gpu_busy stays at 100 and power at about 103 W although nothing runs (RDNA3 idle counter); cpu about 0")],
             "none", 0, False, "no job in flight: a busy counter alone is not a fault; mention it at most",
             false_alarm=True, must_not=NO_HANG + ["healthy"], checkpoints=[(38, ["idle_waiting"]), (100, ["healthy"]), (390, ["idle_waiting"])])
    cs.append(c)
    return cs


if __name__ == "__main__":
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for case in build():
        print(case.write(root))
