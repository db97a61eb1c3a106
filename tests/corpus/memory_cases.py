"""Memory: of the card, of the host, between them."""
from programs import *  # noqa: F401,F403
from programs import C, Case, R, a1111, bad, comfy26, comfy_job, ends, fault, gauge, kohya, script, text, train_bar
from casegen import comfy_boot, fp_boot, fp_job


def build():
    cs = []

    # the retry in tiles fails as well
    c = Case("wan-7600xt-oom-decode", "rx7600xt", "comfyui-wan", 170, 1)
    comfy26(c, 13, 16368, 63911, "2.9.1+rocm6.4", "AMD Radeon RX 7600 XT")
    c.seg(13, 20, "idle")
    comfy_job(c, 20, 44, "WAN21", 14100, te="WanTEModel", p="[INFO] ", new=True)
    c.bar(45, 96, 8)
    c.seg(44, 97, "sample")
    c.out(97, "[INFO] Requested to load WanVAE", "[INFO] loaded completely; 2144.10 MB usable, 242.03 MB loaded, full load: True")
    c.seg(97, 109, "vae", vram=16200)
    c.out(103, "[WARNING] Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.")
    c.out(109, "[ERROR] !!! Exception during processing !!! Allocation on device ", "[ERROR] Traceback (most recent call last):",
          '  File "nodes.py", line 293, in decode', "torch.OutOfMemoryError: Allocation on device ", "",
          "[ERROR] Got an OOM, unloading all loaded models.", "[INFO] Prompt executed in 88.90 seconds")
    c.seg(109, 112, "load", vram=900, rd=0)
    c.seg(112, 170, "idle")
    cs.append(fault(c, "gpu_oom", "vae_decode", 109, 114, [text("torch.OutOfMemoryError: Allocation on device"), gauge("vram near its total")],
                    "the decode does not fit, not even in tiles of the default size", earliest=109,
                    must_not=["host_oom", "block_allocator", "gtt_exhausted", "app_error"], checkpoints=[(80, ["healthy"]), (120, ["gpu_oom"])]))

    c = Case("flux-3060-cuda-oom-script", "rtx3060", "diffusers", 130, 2, argv=["python3", "flux_dev.py", "--steps", "28"], host_ram_mib=32010)
    script(c, 50, vram=11900)
    c.raw(51, "\r  0%|                    | 0/28 [00:00<?, ?it/s]")
    c.seg(50, 58, "sample", vram=12280)
    c.out(58, "", *bad(['  File "flux_dev.py", line 31, in <module>', "    image = pipe(prompt).images[0]",
          "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 72.00 MiB. GPU 0 has a total capacity of 11.76 GiB of which 41.50 MiB is free. "
          "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."]))
    c.out(57, "Some parameters are on the meta device because they were offloaded to the cpu.", "Potential OOM: consider pipe.enable_sequential_cpu_offload()")
    ends(c, 59, 130, code=1)
    cs.append(fault(c, "gpu_oom", "sampling", 58, 63, [text("CUDA out of memory. Tried to allocate"), ("event", "exit", "")],
                    "the transformer does not fit", must_not=["host_oom", "app_error", "crash_segv"], checkpoints=[(40, ["loading_io", "healthy"]), (100, ["gpu_oom"])]))

    c = Case("forge-6700xt-hip-oom", "rx6700xt", "sdwebui", 150, 3, argv=["python3", "launch.py", "--listen"])
    a1111(c, 22, version="f2.0.1v1.10.1-previous", args="--listen")
    c.seg(22, 35, "idle")
    c.out(35, "[GPU Setting] You will use 91.66% GPU memory to load weights, and use 8.34% GPU memory to do matrix computation.",
          "[Unload] Trying to free 13465.80 MB for cuda:0 with 0 models keep loaded ... Done.",
          "[Memory Management] Target: KModel, Free GPU: 11802.44 MB, Model Require: 9641.98 MB, Remaining: -1402.18 MB, CPU Swap Loaded (blocked method): 2214.00 MB, GPU Loaded: 7427.98 MB",
          "Moving model(s) has taken 6.41 seconds")
    c.seg(35, 43, "load", vram=11700)
    c.bar(44, 60, 20, 0, 5, final=False)
    c.seg(43, 61, "sample", vram=12240)
    c.out(61, "", *bad(['  File "modules_forge/main_thread.py", in work', '  File "backend/attention.py", in attention_split',
          "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 11.98 GiB of which 1.05 GiB is free."]))
    c.out(61.5, "HIP out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 11.98 GiB of which 1.05 GiB is free.")
    c.seg(61, 66, "load", vram=1500, rd=0)
    c.seg(66, 150, "idle")
    cs.append(fault(c, "gpu_oom", "sampling", 61, 66, [text("torch.OutOfMemoryError: HIP out of memory")], "smaller size or more swap of blocks",
                    must_not=["host_oom", "block_allocator"], checkpoints=[(30, ["idle_waiting"]), (55, ["healthy"]), (75, ["gpu_oom"])]))

    # an APU: GTT is the limit, the host has memory left
    c = Case("flux-890m-gtt-limit", "strixpoint", "comfyui", 150, 4, host_ram_mib=31210, cpu_threads=24, kernel_t0=902.1)
    comfy_boot(c, 14, 15860, 31210, "2.10.0.dev+rocm7.1", "AMD Radeon 890M Graphics")
    c.seg(14, 21, "idle")
    c.out(21, "got prompt", "Requested to load FluxClipModel_", "loaded completely 14210.1 4777.54 True", "Requested to load Flux")
    c.seg(21, 70, "load", gtt=15700, gpu=C(12, 6))
    c.raw(70, "\r  0%|                    | 0/20 [00:00<?, ?it/s]")
    c.klog(72, "[drm:amdgpu_cs_ioctl [amdgpu]] *ERROR* Not enough memory for command submission!")
    c.seg(70, 73, "sample", gtt=15850)
    c.out(73, "", "!!! Exception during processing !!! HIP out of memory. Tried to allocate 1.13 GiB. GPU 0 has a total capacity of 15.49 GiB of which 158.00 MiB is free. "
          "Of the allocated memory 14.71 GiB is allocated by PyTorch, and 210.22 MiB is reserved by PyTorch but unallocated.",
          *bad(['  File "comfy/ops.py", in cast_bias_weight', "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.13 GiB."]))
    c.out(74, "Got an OOM, unloading all loaded models.", "Prompt executed in 52.70 seconds")
    c.seg(73, 78, "load", gtt=500, rd=0)
    c.seg(78, 150, "idle")
    cs.append(fault(c, "gtt_exhausted", "sampling", 72, 79, [text("HIP out of memory. Tried to allocate 1.13 GiB"), gauge("gtt at its total, host memory left")],
                    "raise ttm.pages_limit: a third of the host's memory is free", must_not=["host_oom", "block_allocator"],
                    checkpoints=[(18, ["idle_waiting"]), (60, ["loading_io", "healthy"]), (90, ["gtt_exhausted"])]))

    # the host's allocator says it
    c = Case("cogvideo-w7900-host-allocation", "w7900", "diffusers", 140, 5, host_ram_mib=31800, argv=["python3", "cog.py"])
    script(c, 62, vram=1200, first=["Loading CogVideoX1.5-5B in bfloat16"], desc="Loading checkpoint shards: ")
    c.out(63, "The config attributes {'invert_scale_latents': False} were passed to CogVideoXDDIMScheduler, but are not expected and will be ignored.")
    c.seg(62, 68, "load", cpu=C(180, 30))
    c.out(68, *bad(['  File "cog.py", line 18, in <module>', "    pipe.transformer.to(torch.float32)",
          "RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 9663676416 bytes. Error code 12 (Cannot allocate memory)"]))
    ends(c, 69, 140, code=1)
    cs.append(fault(c, "host_oom", "model_load", 68, 73, [text("DefaultCPUAllocator: can't allocate memory"), ("event", "exit", "code 1")],
                    "host memory is short, the card is nearly empty", must_not=["gpu_oom", "app_error"], checkpoints=[(50, ["loading_io", "healthy"]), (110, ["host_oom"])]))

    # a container: power and counter cannot be read, the cgroup's limit kills
    c = Case("hunyuan-mi100-cgroup-kill", "mi100", "script", 160, 6, host_ram_mib=257000, kernel_t0=88012.5, missing=("gpu_busy_pct", "power_w"),
             argv=["python3", "sample_video.py", "--video-length", "129"])
    c.out(2, "2026-02-03 08:11:02.101 | INFO     | hyvideo.inference:from_pretrained:154 - Got text-to-video model root path: ckpts",
          "2026-02-03 08:11:04.300 | INFO     | hyvideo.inference:from_pretrained:189 - Building model...")
    c.seg(0, 10, "startup")
    c.seg(10, 70, "load", vram=1400)
    c.out(41, "2026-02-03 08:11:41.007 | INFO     | hyvideo.inference:load_state_dict:340 - Loading torch model ckpts/mp_rank_00_model_states.pt...",
          *["FutureWarning: You are using `torch.load` with `weights_only=False`; layer %d" % i for i in range(7)])
    c.klog(20, "usb 3-2: reset high-speed USB device number 4 using xhci_hcd", "oom_reaper: reaped process 880 (backup-agent), now anon-rss:0kB, file-rss:0kB")
    c.klog(69, "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
           "Memory cgroup out of memory: Killed process 3317 (python3) total-vm:71400212kB, anon-rss:50331220kB, file-rss:120kB, shmem-rss:0kB, UID:0 pgtables:98800kB oom_score_adj:0")
    ends(c, 70, 160, signal="SIGKILL", mode="load")
    cs.append(fault(c, "host_oom", "model_load", 69, 74, [("kernel", "Memory cgroup out of memory: Killed process 3317", ""), ("event", "exit", "SIGKILL")],
                    "the container's memory limit, not the machine's", must_not=["gpu_oom", "killed", "crash_segv"], checkpoints=[(55, ["loading_io", "healthy"]), (120, ["host_oom"])]))

    c = Case("numpy-780m-array-too-large", "r780m", "script", 110, 7, host_ram_mib=13800, argv=["python3", "upscale_video.py", "in.mp4"])
    c.out(2, "loading model RealESRGAN_x4plus", "frames: 2411", "device: AMD Radeon 780M")
    for k in range(9):
        c.out(8 + k * 6, "frame %d/2411  fps 1.51" % (k * 9))
    c.seg(0, 6, "load", gtt=1900)
    c.seg(6, 62, "sample", power=C(24, 2))
    c.out(62, *bad(['  File "upscale_video.py", line 77, in collect', "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 22.9 GiB for an array with shape (2411, 1440, 2560, 3) and data type uint8"]))
    ends(c, 63, 110, code=1)
    cs.append(fault(c, "host_oom", "unknown", 62, 67, [text("_ArrayMemoryError: Unable to allocate 22.9 GiB")], "write frames as they come",
                    must_not=["gpu_oom", "gtt_exhausted"], checkpoints=[(40, ["healthy"]), (90, ["host_oom"])]))

    # page-locked memory: the card is at a third
    c = Case("wan-5090-pinned-host", "rtx5090", "comfyui-wan", 140, 8, host_ram_mib=63800)
    comfy26(c, 12, 32607, 63800, "2.9.1+cu130", "cudaMallocAsync", extra=["[INFO] Enabled pinned memory 57420.0"])
    c.seg(12, 18, "idle")
    comfy_job(c, 18, 38, "WAN21", 9800, te="WanTEModel", p="[INFO] ", new=True)
    c.out(38.5, "[INFO] loaded partially; 5167.08 MB usable, 5167.08 MB loaded, 4633.39 MB offloaded, lowvram patches: 0", "[INFO] Attempting to release mmap (452)")
    c.seg(38, 44, "load", rd=0)
    c.out(44, "[ERROR] !!! Exception during processing !!! CUDA error: out of memory",
          "Search for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
          "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.", "",
          "[ERROR] Traceback (most recent call last):", '  File "comfy/model_management.py", line 1122, in pin_memory',
          "    if torch.cuda.cudart().cudaHostRegister(ptr, size, 1) == 0:", "torch.AcceleratorError: CUDA error: out of memory")
    c.out(45, "[INFO] Prompt executed in 26.11 seconds")
    c.seg(44, 140, "idle")
    cs.append(fault(c, "pinned_memory", "model_load", 44, 50, [text("cudaHostRegister"), gauge("vram at 30 % of its total")], "start with --disable-pinned-memory",
                    must_not=["host_oom", "app_error"], checkpoints=[(15, ["idle_waiting"]), (60, ["pinned_memory"])]))

    c = Case("ltx-9070xt-pin-memory-script", "rx9070xt", "diffusers", 120, 9, argv=["python3", "ltx.py", "--offload", "group"])
    script(c, 40, vram=3900)
    c.out(41, "apply_group_offloading(..., use_stream=True) pins the weights of each block")
    c.seg(40, 47, "load", rd=0, cpu=C(130, 20))
    c.out(47, *bad(['  File "diffusers/hooks/group_offloading.py", in _init_cpu_param_dict', "    cpu_param_dict[param] = param.data.cpu().pin_memory()",
          "RuntimeError: HIP error: out of memory", "HIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
          "For debugging consider passing AMD_SERIALIZE_KERNEL=3"]))
    ends(c, 48, 120, code=1)
    cs.append(fault(c, "pinned_memory", "model_load", 47, 52, [text(".pin_memory()"), gauge("vram at a quarter")], "no page-locked copies",
                    must_not=["host_oom", "app_error"], accept=[], checkpoints=[(35, ["loading_io", "healthy"]), (90, ["pinned_memory"])]))

    # the allocator's storm, and nothing after it; the process lives
    c = Case("f1-7900gre-allocator-then-nothing", "rx7900gre", "framepack-f1", 320, 10, argv=["python3", "demo_gradio_f1.py", "--port", "7870"])
    fp_boot(c, 40, 15.3, port=7870, patched=False)
    c.seg(40, 49, "idle")
    fp_job(c, 49, 66, 14900, preserved=6)
    c.bar(67, 170, 30)
    c.seg(66, 171, "sample")
    c.out(171, "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB")
    c.seg(171, 175, "load", vram=13900, rd=0)
    c.out(174, "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.")
    c.seg(175, 184, "vae", vram=16290)
    for i in range(10):
        c.out(180 + i * 0.4, "HSA exception: MemoryRegion::BlockAllocator::alloc failed.")
    c.seg(184, 320, "hang")
    cs.append(fault(c, "block_allocator", "vae_decode", 180, 280, [text("MemoryRegion::BlockAllocator::alloc failed"), gauge("vram full, then nothing moves")],
                    "unload the transformer before the VAE comes", also=["offload_risk"], must_not=["healthy", "idle_waiting", "gpu_oom"],
                    checkpoints=[(120, ["healthy"]), (310, ["block_allocator"])]))

    # only the risk, no failure
    c = Case("f1-7800xt-offload-risk", "rx7800xt", "framepack-f1", 250, 11, argv=["python3", "demo_gradio_f1.py"])
    fp_boot(c, 38, 15.5, patched=False)
    c.seg(38, 46, "idle")
    fp_job(c, 46, 62, 13800, preserved=8)
    c.bar(63, 150, 25)
    c.seg(62, 151, "sample")
    c.out(151, "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB")
    c.seg(151, 154, "load", vram=8100, rd=0)
    c.out(153, "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.")
    c.seg(154, 190, "vae", vram=14900)
    c.out(190, "Unloaded AutoencoderKLHunyuanVideo as complete.",
          "Decoded. Current latent shape torch.Size([1, 16, 9, 64, 96]); pixel shape torch.Size([1, 3, 33, 512, 768])")
    c.out(192, "section_index = 1, total_latent_sections = 3", "Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 8 GB")
    c.seg(190, 199, "load", vram=13800, rd=0)
    c.bar(200, 248, 25, 0, 14, final=False)
    c.seg(199, 250, "sample")
    cs.append(fault(c, "offload_risk", "vae_decode", 151, 165, [text("Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB")],
                    "16 GiB and the transformer stays on the card for the decode", must_not=["block_allocator", "gpu_oom"] + NO_HANG,
                    checkpoints=[(120, ["healthy"]), (240, ["offload_risk", "healthy"])]))

    # a training run
    c = Case("kohya-3060-cuda-oom", "rtx3060", "kohya", 130, 12, argv=["python3", "train_network.py", "--config_file", "config.toml"])
    kohya(c, 38)
    train_bar(c, 40, 78, 0, 14)
    c.seg(38, 80, "sample", vram=12250)
    c.out(80, "", *bad(['  File "train_network.py", line 1115, in train', "    accelerator.backward(loss)",
          "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 640.00 MiB. GPU 0 has a total capacity of 11.65 GiB of which 180.12 MiB is free."]))
    ends(c, 82, 130, code=1)
    cs.append(fault(c, "gpu_oom", "sampling", 80, 85, [text("CUDA out of memory. Tried to allocate 640.00 MiB")], "smaller batch",
                    must_not=["app_error", "host_oom"], checkpoints=[(70, ["healthy"]), (110, ["gpu_oom"])]))
    c = Case("fp-7900gre-allocator-abort", "rx7900gre", "framepack", 190, 13, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 36, 15.6, patched=False, attn=True)
    c.seg(36, 42, "idle")
    fp_job(c, 42, 57, 15100, pad=3, preserved=6)
    c.bar(58, 140, 20)
    c.seg(57, 141, "sample")
    c.out(141, "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB")
    c.out(144, "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.")
    c.seg(141, 150, "vae", vram=16330)
    c.out(149, "HSA exception: MemoryRegion::BlockAllocator::alloc failed.", "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
          "terminate called after throwing an instance of 'rocr::AMD::hsa_exception'", "  what():  MemoryRegion::BlockAllocator::alloc failed.")
    ends(c, 150, 190, signal="SIGABRT", mode="vae")
    cs.append(fault(c, "block_allocator", "vae_decode", 149, 155, [text("MemoryRegion::BlockAllocator::alloc failed"), ("event", "exit", "SIGABRT")], "unload the transformer before the VAE comes",
                    also=["offload_risk"], must_not=["crash_segv", "gpu_oom", "silent_hang"], checkpoints=[(120, ["healthy"]), (180, ["block_allocator"])]))

    c = Case("wan-strixhalo-gtt-limit", "strixhalo", "diffusers", 160, 14, host_ram_mib=127600, argv=["python3", "wan14b.py"], gpu_over=dict(gtt=63800))
    script(c, 70, vram=4000)
    c.seg(8, 70, "load", gtt=63000)
    c.raw(71, "\r  0%|                    | 0/30 [00:00<?, ?it/s]")
    c.seg(70, 76, "sample", gtt=63790)
    c.out(76, "", *bad(['  File "wan14b.py", line 30, in <module>', "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.08 GiB. GPU 0 has a total capacity of 62.30 GiB of which 69.28 MiB is free. "
          "Of the allocated memory 61.41 GiB is allocated by PyTorch, and 138.26 MiB is reserved by PyTorch but unallocated."]))
    ends(c, 78, 160, code=1)
    cs.append(fault(c, "gtt_exhausted", "sampling", 76, 82, [text("GPU 0 has a total capacity of 62.30 GiB"), gauge("gtt at its total, half of the host's memory left")], "raise ttm.pages_limit",
                    must_not=["host_oom", "block_allocator", "app_error"], checkpoints=[(60, ["loading_io", "healthy"]), (120, ["gtt_exhausted"])]))
    return cs
