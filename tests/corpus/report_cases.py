"""Shapes of public reports that the other files lack: aborts behind a bar, queues, APUs,
schedulers of the card, resume, a program that starts itself again."""
from programs import *  # noqa: F401,F403
from programs import NO_HANG, C, Case, bad, calm, comfy26, comfy_job, ends, fault, gauge, script, sdnext, text
from casegen import fp_boot, fp_job


def queue_page(c, ready, first):
    """A Gradio page of another make, with a queue."""
    c.out(2, first, "Loading Model 'ckpts/wan2.2_i2v_14B_mbf16.safetensors' ...")
    c.out(ready, "* Running on local URL:  http://0.0.0.0:7860", "* To create a public link, set `share=True` in `launch()`.")
    c.seg(0, 8, "startup")
    c.seg(8, ready, "load", vram=1900)


def build():
    cs = []

    # the C++ runtime's last words in the decode, without a traceback
    c = Case("wan22-strixhalo-terminate-in-decode", "strixhalo", "comfyui-wan", 200, 301, host_ram_mib=126000, argv=["python3", "main.py", "--bf16-vae"])
    comfy26(c, 14, 126976, 126976, "2.11.0a0+rocm7.12", "AMD Radeon 8060S")
    c.seg(14, 20, "idle")
    comfy_job(c, 20, 60, "WAN21", 3900, te="WanTEModel", p="[INFO] ", new=True)
    c.bar(61, 140, 20)
    c.seg(60, 141, "sample", gtt=41000)
    c.out(141, "[INFO] Requested to load WanVAE", "[INFO] loaded completely; 60112.10 MB usable, 242.03 MB loaded, full load: True")
    c.seg(141, 152, "vae", gtt=70000)
    c.out(152, "terminate called after throwing an instance of 'c10::AcceleratorError'", "  what():  CUDA error: an illegal memory access was encountered",
          "Search for `hipErrorIllegalAddress' in https://rocm.docs.amd.com/projects/HIP/en/latest/index.html for more information.")
    ends(c, 153, 200, signal="SIGABRT")
    cs.append(fault(c, "memory_fault", "vae_decode", 152, 158, [text("an illegal memory access was encountered"), ("event", "exit", "SIGABRT")],
                    "the card touched memory that it may not", must_not=["app_error", "crash_segv", "gpu_oom", "killed"], checkpoints=[(120, ["healthy"]), (180, ["memory_fault"])]))

    # the second job of a server: the runtime's words follow a bar that has no end of line
    c = Case("invoke-strixhalo-second-job-hangs", "strixhalo", "invokeai", 220, 302, host_ram_mib=126000, argv=["python3", "invokeai-web"])
    p = "[2026-04-14 10:%02d:%02d,120]::[InvokeAI]::INFO --> "
    c.out(2, p % (1, 2) + "Patchmatch initialized", p % (1, 4) + "Using torch device: AMD Radeon 8060S")
    c.out(12, "INFO:     Started server process [4711]", "INFO:     Application startup complete.", p % (1, 12) + "Invoke running on http://127.0.0.1:9090 (Press CTRL+C to quit)")
    c.seg(0, 12, "startup")
    c.seg(12, 20, "idle")
    for t in (20, 110):
        c.out(t, p % (2, 1) + "Executing queue item %d, session 7be2" % (t // 20))
        c.seg(t, t + 20, "load", gtt=24000)
        c.bar(t + 20, t + 60, 20, final=t == 20)
        c.seg(t + 20, t + 61, "sample")
        if t == 20:
            c.seg(81, 90, "vae")
            c.out(89, p % (3, 9) + "Graph stats: 7be2", "                          Node                 Calls    Seconds   VRAM Used", p % (3, 10) + "Session complete")
            c.seg(90, 110, "idle")
    c.raw(171.5, "HW Exception by GPU node-1 (Agent handle: 0x55b0c1c0) reason :GPU Hang\n")
    c.seg(171, 173, "spin")
    ends(c, 173, 220, signal="SIGABRT", mode="idle")
    cs.append(fault(c, "gpu_reset", "unknown", 171, 177, [text("reason :GPU Hang"), ("event", "exit", "SIGABRT")], "nothing says that the card came back",
                    action=("reboot_host", 4, False), must_not=["crash_segv", "app_error", "killed"], checkpoints=[(70, ["healthy"]), (200, ["gpu_reset"])]))

    # a training on several cards: the words come once a card
    c = Case("train-mi300x-hang-behind-the-bar", "mi300x", "script", 170, 303, host_ram_mib=1500000, kernel_t0=5000.0, argv=["python3", "train_dit.py", "--cards", "8"])
    script(c, 40, vram=150000, first=["accelerate launch: 8 processes"])
    c.bar(42, 120, 900, 0, 20, desc="Steps: ", final=False)
    c.seg(40, 121, "sample")
    c.raw(121, "".join("HW Exception by GPU node-9 (Agent handle: 0x6313%d) reason :GPU Hang\n" % k for k in range(4)))
    c.klog(120.5, "amdgpu 0000:c6:00.0: amdgpu: GPU reset begin!")
    c.klog(122, "amdgpu 0000:c6:00.0: amdgpu: GPU reset(3) succeeded!")
    ends(c, 122, 170, signal="SIGABRT")
    cs.append(fault(c, "gpu_reset", "sampling", 120, 127, [text("reason :GPU Hang"), ("kernel", "GPU reset(3) succeeded!", "")], "the driver says that the card came back",
                    must_not=["crash_segv", "app_error"], checkpoints=[(100, ["healthy"]), (150, ["gpu_reset"])]))

    # a queue of another make: no code for the card, the page lives on
    c = Case("wangp-rx6800-invalid-device-function", "rx6800", "wangp", 150, 304, argv=["python3", "wgp.py", "--profile", "4"])
    queue_page(c, 30, "Switching to FP16 models when possible as GPU architecture doesn't support optimed BF16 Kernels")
    c.seg(30, 40, "idle")
    c.out(40, "Loading Text Encoder 'ckpts/umt5-xxl/models_t5_umt5-xxl-enc-quanto_int8.safetensors' ...", "Pinning data of 'transformer' to reserved RAM")
    c.seg(40, 70, "load", vram=7000)
    c.raw(70, "\r  0%|          | 0/30 [00:00<?, ?it/s]")
    c.seg(70, 73, "sample")
    c.out(73, "", *bad(['  File "/opt/Wan2GP/wgp.py", line 5107, in generate_video', "    samples = wan_model.generate(", '  File "shared/attention.py", line 210, in pay_attention',
          "RuntimeError: HIP error: invalid device function", "HIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."]))
    c.seg(73, 150, "idle", vram=2000, cpu=C(9, 2))
    cs.append(fault(c, "no_kernel_image", "sampling", 73, 79, [text("HIP error: invalid device function")], "this build has no code for gfx1030",
                    must_not=["app_error", "silent_hang", "memory_fault"], checkpoints=[(60, ["loading_io", "healthy"]), (100, ["no_kernel_image"])]))

    # FramePack with a queue: the worker buries the error, a helper thread stays busy
    c = Case("studio-7900gre-buried-oom", "rx7900gre", "framepack-studio", 180, 305, argv=["python3", "studio.py"])
    fp_boot(c, 34, 15.2, patched=False)
    c.seg(34, 44, "idle")
    c.out(44, "Adding job 6c519cd7 to queue, current job is None", "Starting job 6c519cd7, current job was None", "Worker starting for model type: Original")
    fp_job(c, 44, 62, 13900, preserved=6)
    c.bar(63, 99, 25, 0, 11, final=False)
    c.seg(62, 100, "sample")
    c.out(100, "", *bad(['  File "/opt/studio/modules/pipelines/worker.py", line 880, in worker', "    generated_latents = sample_hunyuan(",
          "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.13 GiB. GPU 0 has a total capacity of 15.98 GiB of which 512.00 MiB is free."]))
    c.seg(100, 180, "idle", cpu=C(100, 0.7))
    cs.append(fault(c, "gpu_oom", "sampling", 100, 106, [text("torch.OutOfMemoryError: HIP out of memory")], "preserve more memory",
                    must_not=["app_error", "spin_hang", "silent_hang"], checkpoints=[(90, ["healthy"]), (140, ["gpu_oom"])]))

    # the machine sleeps in the middle of a job, and the job never moves again
    c = Case("flux-9070xt-dead-after-resume", "rx9070xt", "diffusers", 330, 306, kernel_t0=7700.0, argv=["python3", "batch.py"])
    script(c, 40, vram=14000)
    c.bar(42, 101, 40, 0, 20, final=False)
    c.seg(40, 102, "sample")
    c.gap(102, 1800)
    c.klog(101, "PM: suspend entry (deep)")
    c.klog(103, "PM: suspend exit")
    c.seg(102, 330, "idle")
    cs.append(fault(c, "silent_hang", "sampling", 102, 2020, [gauge("nothing moves after the machine woke up")], "sleep does not count, silence after it does",
                    earliest=1930, must_not=["find_stall", "spin_hang", "busy_idle"], checkpoints=[(90, ["healthy"])]))

    # the card's scheduler hangs and the reset fails
    c = Case("sdxl-7900xtx-scheduler-hung", "rx7900xtx", "sdnext", 160, 307, kernel_t0=2500.0, argv=["python3", "launch.py"])
    sdnext(c, 24)
    c.seg(24, 34, "idle")
    c.bar(36, 60, 30, 0, 18, final=False)
    c.seg(34, 61, "sample", vram=11000)
    c.out(35, "10:15:12-120331 INFO     Base: pipeline=StableDiffusionXLPipeline task=TEXT_2_IMAGE steps=30", "10:15:12-210004 INFO     Sampler: \"DPM++ 2M\"")
    c.klog(61, "[drm:mes_v11_0_submit_pkt_and_poll_completion.constprop.0 [amdgpu]] *ERROR* MES failed to response msg=3",
           "amdgpu: failed to remove hardware queue from MES, doorbell=0x1002", "amdgpu: MES might be in unrecoverable state, issue a GPU reset")
    c.klog(62, "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", "amdgpu 0000:03:00.0: amdgpu: IP block:gfx_v11_0 is hung!")
    c.klog(64, "amdgpu 0000:03:00.0: amdgpu: GPU reset(1) failed", "amdgpu 0000:03:00.0: amdgpu: GPU reset end with ret = -110")
    c.seg(61, 160, "spin")
    cs.append(fault(c, "gpu_reset", "sampling", 61, 70, [("kernel", "GPU reset(1) failed", "")], "the reset failed", action=("reboot_host", 4, False),
                    must_not=["busy_idle", "spin_hang"], checkpoints=[(55, ["healthy"]), (120, ["gpu_reset"])]))

    # a node quotes the missing module in an exception of its own
    c = Case("wrapper-9070xt-attention-not-installed", "rx9070xt", "comfyui-wan", 120, 308)
    comfy26(c, 12, 16304, 63800, "2.9.1+rocm7.1", "AMD Radeon RX 9070 XT")
    c.seg(12, 20, "idle")
    c.out(20, "[INFO] got prompt")
    c.seg(20, 26, "load", vram=2400)
    c.out(26, "[ERROR] !!! Exception during processing !!! Can't import SageAttention: No module named 'sageattention'", "[ERROR] Traceback (most recent call last):",
          '  File "/opt/ComfyUI/custom_nodes/ComfyUI-WanVideoWrapper/nodes_model_loading.py", line 1013, in loadmodel', "ValueError: Can't import SageAttention: No module named 'sageattention'", "",
          "[INFO] Prompt executed in 6.02 seconds")
    c.seg(26, 120, "idle")
    cs.append(fault(c, "missing_dependency", "model_load", 26, 31, [text("No module named 'sageattention'")], "install it, or choose another attention",
                    must_not=["app_error"], accept=[], checkpoints=[(60, ["missing_dependency"])]))

    # weights by memory map, at the pace of a floppy disk
    c = Case("ltx-strixhalo-slow-map", "strixhalo", "comfyui", 372, 309, host_ram_mib=126000)
    comfy26(c, 14, 126976, 126976, "2.11.0a0+rocm7.12", "AMD Radeon 8060S")
    c.seg(14, 20, "idle")
    c.out(20, "[INFO] got prompt", "[INFO] Requested to load LTXAV")
    c.seg(20, 372, "hdd", gtt=38000, rd=C(3.4e7, 6e6), cpu=C(31, 4))
    cs.append(calm(c, "loading_io", "model_load", [gauge("34 MB/s for six minutes")], "bytes flow",
                   must_not=NO_HANG + ["crawl", "thrash"], checkpoints=[(200, ["loading_io"]), (360, ["loading_io"])]))

    # a program that starts itself again
    c = Case("comfy-w7900-restarts-itself", "w7900", "comfyui", 200, 310)
    comfy26(c, 12, 49136, 128000, "2.9.1+rocm6.4", "AMD Radeon PRO W7900")
    c.seg(12, 30, "idle")
    c.out(30, "[INFO] ", "[INFO] Restarting... [Legacy Mode]", "Command: ['python3', 'main.py']")
    c.out(32, "[START] Security scan", "[DONE] Security scan", "[INFO] Checkpoint files will always be loaded safely.", "[INFO] Total VRAM 49136 MB, total RAM 128000 MB", "[INFO] Set vram state to: NORMAL_VRAM")
    c.seg(30, 44, "startup")
    c.out(44, "[INFO] Starting server", "", "[INFO] To see the GUI go to: http://127.0.0.1:8188")
    c.seg(44, 60, "idle")
    comfy_job(c, 60, 80, "Flux", 24000, p="[INFO] ", new=True)
    c.bar(81, 150, 20)
    c.seg(80, 151, "sample")
    c.seg(151, 156, "vae")
    c.out(156, "[INFO] Prompt executed in 96.10 seconds")
    c.seg(156, 200, "idle")
    cs.append(calm(c, "idle_waiting", "idle", [text("Restarting... [Legacy Mode]"), text("Prompt executed in 96.10 seconds")], "a restart of its own is no fault",
                   must_not=NO_HANG + ["app_error", "killed"], checkpoints=[(100, ["healthy"]), (190, ["idle_waiting"])]))

    # a compiler that is not there, behind two layers of exceptions
    c = Case("hunyuan-mi210-no-triton", "mi210", "diffusers", 120, 311, host_ram_mib=512000, argv=["python3", "hunyuan.py", "--compile"])
    script(c, 50, vram=26000)
    c.raw(52, "\r  0%|          | 0/50 [00:00<?, ?it/s]")
    c.seg(50, 60, "cpu1")
    c.out(60, "", *bad(['  File "torch/_inductor/scheduler.py", line 4094, in create_backend',
          "torch._inductor.exc.TritonMissing: Cannot find a working triton installation. Either the package is not installed or it is too old. More information on installing Triton can be found at: https://github.com/triton-lang/triton",
          "", "The above exception was the direct cause of the following exception:", "", "Traceback (most recent call last):", '  File "hunyuan.py", line 61, in <module>',
          "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:", "TritonMissing: Cannot find a working triton installation."]))
    ends(c, 62, 120, code=1)
    cs.append(fault(c, "missing_dependency", "sampling", 60, 67, [text("Cannot find a working triton installation")], "install triton for ROCm",
                    must_not=["app_error", "no_algorithm"], checkpoints=[(40, ["loading_io", "healthy"]), (100, ["missing_dependency"])]))

    # a launch failure whose cause the kernel names
    c = Case("ltx-9070xt-launch-failure", "rx9070xt", "script", 140, 312, kernel_t0=900.0, argv=["python3", "ltx_queue.py"])
    script(c, 40, vram=15200)
    c.bar(42, 70, 30)
    c.out(71, "Decoding latents")
    c.seg(40, 71, "sample")
    c.seg(71, 78, "vae")
    c.klog(78, "amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32775)", "amdgpu 0000:03:00.0: amdgpu:  Process python3 pid 28912 thread python3 pid 28912",
           "amdgpu 0000:03:00.0: amdgpu:   in page starting at address 0x00007f8e08ce0000 from client 10")
    c.out(78.5, *bad(['  File "ltx_queue.py", line 44, in run', "torch.AcceleratorError: HIP error: unspecified launch failure",
          "Search for `hipErrorLaunchFailure' in https://rocm.docs.amd.com/projects/HIP/en/latest/index.html for more information."]))
    ends(c, 80, 140, code=1)
    cs.append(fault(c, "memory_fault", "vae_decode", 78, 85, [("kernel", "[gfxhub] page fault", ""), text("unspecified launch failure")], "the kernel names the process",
                    must_not=["app_error", "gpu_reset"], checkpoints=[(60, ["healthy"]), (120, ["memory_fault"])]))
    return cs
