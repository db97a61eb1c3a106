"""What programs, libraries and the kernel say when something failed."""
from programs import *  # noqa: F401,F403
from programs import B, BLIP, C, Case, NA, R, a1111, bad, comfy26, comfy_job, ends, fault, gauge, hy3d, kohya, script, sdnext, text, train_bar
from casegen import comfy_boot, fp_boot, fp_job

NOISE = ["FutureWarning: Importing from timm.models.layers is deprecated, please import via timm.layers",
         "No module named 'triton'; some optimizations will not be available",
         "Set PYTORCH_HIP_ALLOC_CONF=expandable_segments:True if you see HIP out of memory",
         "Could not load bitsandbytes native library, 8-bit optimizers are not available"]


def build():
    cs = []

    c = Case("hunyuan-7900gre-not-implemented", "rx7900gre", "diffusers", 200, 21, argv=["python3", "hv.py"])
    script(c, 55, vram=13000, first=NOISE)
    c.bar(57, 130, 30)
    c.seg(55, 131, "sample")
    c.seg(131, 139, "vae", gpu=C(40, 20), power=C(90, 20))
    c.out(139, "MIOpen Error: /src/MIOpen/src/ocl/convolutionocl.cpp:533: Requested convolution is not supported or Immediate mode Fallback unsuccessful.",
          *bad(['  File "diffusers/models/autoencoders/autoencoder_kl_hunyuan_video.py", in decode', "    return F.conv3d(input, weight, bias)",
                "RuntimeError: miopenStatusNotImplemented"]))
    ends(c, 140, 200, code=1)
    cs.append(fault(c, "no_algorithm", "unknown", 139, 144, [text("Immediate mode Fallback unsuccessful"), text("miopenStatusNotImplemented")],
                    "no solver for this shape", must_not=["gpu_oom", "app_error", "silent_hang"], checkpoints=[(100, ["healthy"]), (180, ["no_algorithm"])]))

    c = Case("sdnext-7600xt-database-timeout", "rx7600xt", "sdnext", 170, 22, argv=["python3", "launch.py", "--use-rocm"])
    sdnext(c, 20)
    c.seg(20, 30, "idle")
    c.out(30, "10:15:01-120044 INFO     Base: pipeline=StableDiffusionXLPipeline task=TEXT_2_IMAGE batch=1/1x1")
    c.seg(30, 34, "encode", vram=9100)
    c.seg(34, 66, "hang")
    c.out(66, "MIOpen(HIP): Error [Query] Timeout while waiting for Database: .cache/miopen/3.4.0/gfx1102_32.ukdb",
          "MIOpen Error: /src/MIOpen/src/sqlite_db.cpp:193: Timeout while waiting for Database: .cache/miopen/3.4.0/gfx1102_32.ukdb",
          "10:15:37-210331 ERROR    Exception: miopenStatusInternalError", "10:15:37-210900 ERROR    Processing: args={'width': 1024, 'height': 1024} miopenStatusInternalError",
          "RuntimeError: miopenStatusInternalError", "10:15:37-310331 INFO     Processed: images=0 its=0.00")
    c.seg(66, 170, "idle")
    cs.append(fault(c, "miopen_db", "sampling", 66, 71, [text("Timeout while waiting for Database"), text("miopenStatusInternalError")],
                    "another process holds the cache: a fresh folder for this run", must_not=["no_algorithm", "app_error"],
                    checkpoints=[(25, ["idle_waiting"]), (100, ["miopen_db"])]))

    c = Case("sd35-6700xt-database-malformed", "rx6700xt", "comfyui", 130, 23)
    comfy_boot(c, 12, 12272, 31800, "2.7.1+rocm6.3", "AMD Radeon RX 6700 XT", extra=NOISE[:2])
    c.seg(12, 19, "idle")
    comfy_job(c, 19, 45, "SD3", 11000, te="SD3ClipModel_")
    c.raw(45, "\r  0%|                    | 0/20 [00:00<?, ?it/s]")
    c.seg(45, 47, "sample", gpu=C(30, 8), power=C(60, 9))
    c.out(47, "MIOpen(HIP): Warning [SQLiteBase] Unable to read system database file:gfx1031_40.db Performance may degrade",
          "MIOpen(HIP): Error [Exec] Internal error while accessing SQLite database: database disk image is malformed",
          "!!! Exception during processing !!! miopenStatusInternalError", *bad(['  File "comfy/ldm/modules/diffusionmodules/mmdit.py", in forward', "RuntimeError: miopenStatusInternalError"]))
    c.out(48, "Prompt executed in 28.40 seconds")
    c.seg(47, 130, "idle")
    cs.append(fault(c, "miopen_db", "sampling", 47, 52, [text("database disk image is malformed")], "a damaged cache",
                    must_not=["no_algorithm", "corrupt_model", "app_error"], checkpoints=[(16, ["idle_waiting"]), (90, ["miopen_db"])]))

    # resets and lost cards
    c = Case("invoke-strixhalo-gpu-hang", "strixhalo", "script", 180, 24, host_ram_mib=127600, kernel_t0=5512.0, argv=["invokeai-web"])
    c.out(3, "[2026-04-14 09:01:00,120]::[InvokeAI]::INFO --> Patchmatch not loaded (nonfatal)", "[2026-04-14 09:01:02,300]::[InvokeAI]::INFO --> Using torch device: AMD Radeon 8060S Graphics",
          *["[2026-04-14 09:01:03,4%d0]::[InvokeAI]::INFO --> Loading model manager %d" % (i, i) for i in range(5)])
    c.out(16, "[2026-04-14 09:01:16,001]::[uvicorn.error]::INFO --> Uvicorn running on http://127.0.0.1:9090 (Press CTRL+C to quit)")
    c.seg(0, 16, "startup", gtt=2000)
    c.seg(16, 30, "idle")
    c.out(30, "[2026-04-14 09:01:30,001]::[InvokeAI]::INFO --> Executing queue item 12, session 9f1c")
    c.seg(30, 50, "load", gtt=24000)
    c.bar(51, 90, 20)
    c.seg(50, 92, "sample")
    c.seg(92, 97, "vae", power=C(40, 3))
    c.klog(94, "amdgpu 0000:c3:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE", "amdgpu 0000:c3:00.0: amdgpu: failed to remove hardware queue from MES, doorbell=0x1202",
           "amdgpu 0000:c3:00.0: amdgpu: MES might be in unrecoverable state, issue a GPU reset", "amdgpu 0000:c3:00.0: amdgpu: GPU reset begin!")
    c.klog(96, "amdgpu 0000:c3:00.0: amdgpu: MODE2 reset", "amdgpu 0000:c3:00.0: amdgpu: GPU reset succeeded, trying to resume", "amdgpu 0000:c3:00.0: amdgpu: GPU reset(4) succeeded!")
    c.out(97, "", "HW Exception by GPU node-1 (Agent handle: 0x5ab48bbcc960) reason :GPU Hang")
    ends(c, 98, 180, signal="SIGABRT")
    cs.append(fault(c, "gpu_reset", "unknown", 94, 102, [text("reason :GPU Hang"), ("kernel", "GPU reset begin!", ""), ("event", "exit", "SIGABRT")],
                    "the driver recovered; once more at lower settings", must_not=["crash_segv", "gpu_oom", "idle_waiting"],
                    checkpoints=[(80, ["healthy"]), (150, ["gpu_reset"])]))

    c = Case("ltx-5090-off-the-bus", "rtx5090", "comfyui", 150, 25, kernel_t0=1990.7)
    comfy26(c, 11, 32607, 96000, "2.9.1+cu130", "NVIDIA GeForce RTX 5090")
    c.seg(11, 18, "idle")
    comfy_job(c, 18, 34, "LTXAV", 25100, te="LTXAVTEModel_", p="[INFO] ", new=True)
    c.bar(35, 72, 40, 0, 27, final=False)
    c.seg(34, 73, "sample")
    c.klog(73, "NVRM: GPU at PCI:0000:01:00: GPU-5f7a9ad6-8a58-1f45-473a-76281b72153c", "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
           "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.")
    c.seg(73, 78, "hang")
    c.out(77, "", "[ERROR] !!! Exception during processing !!! CUDA error: unspecified launch failure", "[ERROR] Traceback (most recent call last):",
          "torch.AcceleratorError: CUDA error: unspecified launch failure")
    c.seg(78, 150, "idle")
    for i, (a, b, m) in enumerate(c.segs):
        if a >= 73:
            m.update(gpu=NA, power=NA, vram=NA)
    cs.append(fault(c, "gpu_reset", "sampling", 73, 79, [("kernel", "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus", ""), text("unspecified launch failure")],
                    "the card is gone until the machine is started again", action=("reboot_host", 4, False), must_not=["gpu_oom", "memory_fault", "idle_waiting"],
                    checkpoints=[(60, ["healthy"]), (120, ["gpu_reset"])]))

    c = Case("wan-7900gre-reset-failed", "rx7900gre", "diffusers", 160, 26, kernel_t0=30211.2, argv=["python3", "wan_i2v.py"])
    script(c, 48, vram=14800)
    c.bar(50, 88, 30, 0, 11, final=False)
    c.seg(48, 90, "sample")
    c.seg(90, 104, "hang", gpu=C(100, 0), power=C(61, 3), cpu=C(100, 1))
    c.klog(100, "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.1.0 timeout, signaled seq=4410, emitted seq=4412",
           "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process python3 pid 4242 thread python3 pid 4242", "amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!")
    c.klog(103, "amdgpu 0000:0c:00.0: amdgpu: PSP create ring failed!", "amdgpu 0000:0c:00.0: amdgpu: GPU reset(1) failed", "amdgpu 0000:0c:00.0: amdgpu: GPU reset end with ret = -62")
    c.out(104, "", *["Warning: attention mask is unused in block %d" % i for i in range(6)])
    c.out(104.5, "RuntimeError: HIP error: unspecified launch failure")
    ends(c, 106, 160, code=1)
    cs.append(fault(c, "gpu_reset", "sampling", 100, 108, [("kernel", "GPU reset end with ret = -62", ""), ("kernel", "GPU reset begin!", "")],
                    "the driver could not bring the card back", action=("reboot_host", 4, False), must_not=["app_error", "gpu_oom", "memory_fault"],
                    checkpoints=[(75, ["healthy"]), (140, ["gpu_reset"])]))

    # page faults
    c = Case("kohya-3060-illegal-access", "rtx3060", "kohya", 130, 27, kernel_t0=700.0, argv=["accelerate", "launch", "train_network.py"])
    kohya(c, 36)
    train_bar(c, 38, 70, 0, 11)
    c.seg(36, 71, "sample")
    c.klog(71, "NVRM: Xid (PCI:0000:09:00): 31, pid=4242, name=python3, Ch 0000000c, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f3a_81000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ")
    c.out(71, "", *bad(['  File "train_network.py", line 1120, in train', "RuntimeError: CUDA error: an illegal memory access was encountered",
          "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."]))
    ends(c, 73, 130, code=1)
    cs.append(fault(c, "memory_fault", "sampling", 71, 77, [text("an illegal memory access was encountered"), ("kernel", "31, pid=4242", "")], "once more",
                    accept=["gpu_reset"], must_not=["gpu_oom", "app_error"], checkpoints=[(60, ["healthy"]), (110, ["memory_fault", "gpu_reset"])]))

    c = Case("flux-9070xt-fault-no-kernel-log", "rx9070xt", "comfyui", 110, 28)
    comfy26(c, 12, 16304, 64100, "2.10.0+rocm7.1", "AMD Radeon RX 9070 XT")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 42, "Flux", 14900, p="[INFO] ", new=True)
    c.bar(43, 60, 20, 0, 6, final=False)
    c.seg(42, 61, "sample")
    c.out(61, "Memory access fault by GPU node-1 (Agent handle: 0x629f9f9dae60) on address 0x7cb3770e0000. Reason: Unknown.")
    ends(c, 62, 110, signal="SIGABRT")
    cs.append(fault(c, "memory_fault", "sampling", 61, 66, [text("Memory access fault by GPU node-1"), ("event", "exit", "")], "once more",
                    must_not=["crash_segv", "gpu_oom"], checkpoints=[(55, ["healthy"]), (90, ["memory_fault"])]))

    # no code for the card
    c = Case("hy3d-6700xt-tensile", "rx6700xt", "hunyuan3d", 110, 29, argv=["python3", "gradio_app.py", "--low_vram_mode"])
    hy3d(c, 30)
    c.seg(30, 41, "idle")
    c.out(41, "INFO:     127.0.0.1:51022 - \"POST /queue/join HTTP/1.1\" 200 OK", "INFO:hy3dgen.shapgen:Removing background")
    c.seg(41, 46, "encode")
    c.out(46, "", "rocBLAS error: Cannot read lib/python3.11/site-packages/torch/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : gfx1031",
          " List of available TensileLibrary Files : ", "\"rocblas/library/TensileLibrary_lazy_gfx1030.dat\"", "\"rocblas/library/TensileLibrary_lazy_gfx1100.dat\"")
    ends(c, 47, 110, signal="SIGABRT")
    cs.append(fault(c, "no_kernel_image", "sampling", 46, 51, [text("TensileLibrary.dat: Illegal seek for GPU arch : gfx1031")], "this build has nothing for gfx1031",
                    must_not=["crash_segv", "blas_error", "gpu_oom", "corrupt_model"], checkpoints=[(36, ["idle_waiting"]), (90, ["no_kernel_image"])]))

    c = Case("a1111-5090-no-kernel-image", "rtx5090", "sdwebui", 90, 30, argv=["python3", "launch.py", "--xformers"])
    c.out(0.5, "UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
          "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.")
    a1111(c, 18)
    c.seg(18, 27, "idle")
    c.raw(27, "\r  0%|                    | 0/20 [00:00<?, ?it/s]")
    c.seg(27, 29, "encode")
    c.out(29, "", "*** Error completing request", "*** Arguments: ('task(q1)', '...', 20, 'DPM++ 2M', 1, 1, 7)",
          "    Traceback (most recent call last):", '      File "modules/call_queue.py", line 74, in f',
          "    RuntimeError: CUDA error: no kernel image is available for execution on the device", "---")
    c.seg(29, 90, "idle")
    cs.append(fault(c, "no_kernel_image", "sampling", 29, 34, [text("no kernel image is available for execution on the device")], "this torch was not built for sm_120",
                    earliest=0.4, must_not=["app_error", "gpu_oom"], checkpoints=[(60, ["no_kernel_image"])]))

    # no device at all
    c = Case("diffusers-3060-driver-mismatch", "rtx3060", "diffusers", 70, 31, kernel_t0=120.0, argv=["python3", "sdxl.py"])
    c.klog(3, "NVRM: API mismatch: the client has the version 570.133.07, but\\x0aNVRM: this kernel module has the version 570.124.06.")
    c.out(3, *NOISE)
    c.out(4, "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? "
          "Error 803: system has unsupported display driver / cuda driver combination (Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:109.)", "  return torch._C._cuda_getDeviceCount() > 0")
    c.out(8, *bad(['  File "sdxl.py", line 9, in <module>', "    pipe.to('cuda')", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination"]))
    c.seg(0, 10, "startup", gpu=NA, power=NA)
    ends(c, 9, 70, code=1, mode="startup")
    cs.append(fault(c, "gpu_unavailable", "startup", 8, 13, [text("Error 803: system has unsupported display driver / cuda driver combination")], "driver and library differ until the machine is started again",
                    action=("reboot_host", 4, False), earliest=3, must_not=["app_error", "cpu_fallback", "no_kernel_image"], checkpoints=[(50, ["gpu_unavailable"])]))

    c = Case("fp-7900xtx-no-hip-after-resume", "rx7900xtx", "framepack", 70, 32, argv=["python3", "demo_gradio.py"])
    c.out(1, "Currently enabled native sdp backends: ['flash', 'math', 'mem_efficient', 'cudnn']", "Xformers is not installed!", "Flash Attn is not installed!", "Sage Attn is not installed!")
    c.out(3, *bad(['  File "demo_gradio.py", line 25, in <module>', '  File "diffusers_helper/memory.py", line 7, in <module>', "    gpu = torch.device(f'cuda:{torch.cuda.current_device()}')", '  File "torch/cuda/__init__.py", in _lazy_init',
          "RuntimeError: No HIP GPUs are available"]))
    c.seg(0, 5, "startup")
    ends(c, 4, 70, code=1, mode="startup")
    cs.append(fault(c, "gpu_unavailable", "startup", 3, 8, [text("RuntimeError: No HIP GPUs are available")], "the runtime offers no device", must_not=["app_error", "missing_dependency"],
                    checkpoints=[(50, ["gpu_unavailable"])]))

    c = Case("script-w7900-kfd-permission", "w7900", "script", 70, 33, argv=["python3", "generate.py"])
    c.out(2, "Unable to open /dev/kfd read-write: Permission denied", "sd is not member of \"render\" group, the default DRM access group. Users must be a member of the \"render\" group or another DRM access group in order for ROCm applications to run successfully.")
    c.out(3, *NOISE)
    c.out(5, *bad(['  File "generate.py", line 12, in <module>', '  File "torch/cuda/__init__.py", in _lazy_init', "    torch._C._cuda_init()", "RuntimeError: No HIP GPUs are available"]))
    c.seg(0, 6, "startup")
    ends(c, 6, 70, code=1, mode="startup")
    cs.append(fault(c, "permission_kfd", "startup", 2, 10, [text("Unable to open /dev/kfd read-write: Permission denied")], "the user is not in the group render",
                    must_not=["app_error", "no_kernel_image", "missing_dependency"], checkpoints=[(50, ["permission_kfd"])]))

    c = Case("comfy-780m-render-node", "r780m", "comfyui", 70, 34)
    c.out(1, "Checkpoint files will always be loaded safely.", *NOISE)
    c.out(3, "failed to open /dev/dri/renderD128: Permission denied", "amdgpu_device_initialize failed", *bad(['  File "main.py", line 149, in <module>', '  File "comfy/model_management.py", line 221, in get_total_memory',
          "RuntimeError: No HIP GPUs are available"]))
    c.seg(0, 5, "startup")
    ends(c, 4, 70, code=1, mode="startup")
    cs.append(fault(c, "permission_kfd", "startup", 3, 9, [text("/dev/dri/renderD128: Permission denied")], "no access to the render node", must_not=["app_error", "cpu_fallback"],
                    checkpoints=[(50, ["permission_kfd"])]))

    # ports
    c = Case("comfy-7900gre-port-taken", "rx7900gre", "comfyui", 70, 35, argv=["python3", "main.py", "--port", "8190"])
    comfy_boot(c, 12, 16368, 64000, "2.8.0+rocm6.4", "AMD Radeon RX 7900 GRE", extra=["Import failed: optional nodes need 'insightface'"])
    c.emits = [e for e in c.emits if "GUI go to" not in e[1]]
    c.out(13, *bad(['  File "main.py", line 312, in <module>', '  File "asyncio/base_events.py", line 1584, in create_server',
          "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8190): address already in use"]))
    ends(c, 14, 70, code=1)
    c.seg(12, 14, "startup")
    cs.append(fault(c, "port_in_use", "startup", 13, 18, [text("address already in use")], "another server has this port", must_not=["app_error", "missing_dependency"],
                    checkpoints=[(50, ["port_in_use"])]))

    c = Case("a1111-rx6800-port-range", "rx6800", "sdwebui", 70, 36, argv=["python3", "launch.py", "--port", "7861"])
    a1111(c, 20)
    c.emits = [e for e in c.emits if not any(w in e[1] for w in ("Running on local", "Startup time", "Loading weights", "Creating model", "Model loaded"))]
    c.out(21, *bad(['  File "launch.py", line 48, in main', '  File "gradio/networking.py", line 121, in start_server',
          "OSError: Cannot find empty port in range: 7861-7861. You can specify a different port by setting the GRADIO_SERVER_PORT environment variable or passing the `server_port` parameter to `launch()`."]))
    ends(c, 22, 70, code=1)
    c.seg(20, 22, "startup")
    cs.append(fault(c, "port_in_use", "startup", 21, 26, [text("Cannot find empty port in range: 7861-7861")], "another server has this port", must_not=["app_error", "missing_dependency"],
                    checkpoints=[(50, ["port_in_use"])]))

    # modules: the one that the job needs
    c = Case("hy3d-9070xt-rasterizer-missing", "rx9070xt", "comfyui-hunyuan3d", 130, 37)
    comfy_boot(c, 13, 16304, 64000, "2.9.0+rocm6.4", "AMD Radeon RX 9070 XT", extra=["ModuleNotFoundError: No module named 'bpy'", "Cannot import custom_nodes/pack_x module for custom nodes: No module named 'bpy'"], nodes=3)
    c.seg(13, 22, "idle")
    c.out(22, "got prompt", "Loading model from models/diffusion_models/hunyuan3d-dit-v2-0.safetensors")
    c.seg(22, 38, "load", vram=5900)
    c.bar(39, 70, 50, desc="Diffusion Sampling:: ")
    c.seg(38, 71, "sample")
    c.out(70.5, "Loading multiview and paint pipeline hunyuan3d-paint-v2-0 for texture")
    c.out(71, "!!! Exception during processing !!! No module named 'custom_rasterizer_kernel'", *bad(['  File "hy3dgen/texgen/differentiable_renderer/mesh_render.py", in __init__', "    import custom_rasterizer as cr",
          "ModuleNotFoundError: No module named 'custom_rasterizer_kernel'"]))
    c.out(72, "Prompt executed in 49.66 seconds")
    c.seg(71, 130, "idle")
    cs.append(fault(c, "missing_dependency", "texture", 71, 76, [text("ModuleNotFoundError: No module named 'custom_rasterizer_kernel'")], "build the rasterizer for this torch",
                    must_not=["app_error", "no_kernel_image"], checkpoints=[(18, ["idle_waiting"]), (60, ["healthy"]), (100, ["missing_dependency"])]))

    c = Case("kohya-7900xtx-bitsandbytes-missing", "rx7900xtx", "kohya", 70, 38, argv=["python3", "sdxl_train_network.py", "--optimizer_type", "AdamW8bit"])
    kohya(c, 40)
    c.emits = [e for e in c.emits if e[0] < 33]
    c.out(33, *NOISE[:2])
    c.out(35, *bad(['  File "library/train_util.py", line 4610, in get_optimizer', "    import bitsandbytes as bnb", "ModuleNotFoundError: No module named 'bitsandbytes'", "", "During handling of the above exception, another exception occurred:", ""]),
          *bad(['  File "sdxl_train_network.py", line 184, in <module>', "ImportError: No bitsandbytes / bitsandbytesがインストールされていないようです"]))
    ends(c, 37, 70, code=1, mode="load")
    cs.append(fault(c, "missing_dependency", "startup", 35, 41, [text("ModuleNotFoundError: No module named 'bitsandbytes'")], "install it or take another optimizer", must_not=["app_error", "corrupt_model"],
                    checkpoints=[(55, ["missing_dependency"])]))

    # precisions
    c = Case("sdnext-rx6800-half-float", "rx6800", "sdnext", 110, 39, argv=["python3", "launch.py"])
    sdnext(c, 20)
    c.seg(20, 31, "idle")
    c.out(31, "10:15:12-120044 INFO     Base: pipeline=StableDiffusionXLPipeline task=TEXT_2_IMAGE batch=1/1x1")
    c.seg(31, 35, "encode", vram=8800)
    c.out(35, "10:15:16-331200 ERROR    Processing: Input type (c10::Half) and bias type (float) should be the same", *bad(['  File "modules/processing_diffusers.py", in process_base', "RuntimeError: Input type (c10::Half) and bias type (float) should be the same"]))
    c.seg(35, 110, "idle")
    cs.append(fault(c, "dtype_mismatch", "sampling", 35, 40, [text("Input type (c10::Half) and bias type (float) should be the same")], "one precision for the VAE and its input",
                    must_not=["device_mismatch", "app_error"], checkpoints=[(26, ["idle_waiting"]), (80, ["dtype_mismatch"])]))

    c = Case("wan-strixhalo-mat-dtype", "strixhalo", "comfyui-wan", 110, 40, host_ram_mib=127600)
    comfy26(c, 12, 98304, 127600, "2.10.0+rocm7.1", "AMD Radeon 8060S Graphics")
    c.seg(12, 20, "idle")
    c.out(20, "[INFO] got prompt", "[INFO] Requested to load WanTEModel")
    c.seg(20, 44, "load", gtt=21000)
    c.raw(45, "\r  0%|                    | 0/20 [00:00<?, ?it/s]")
    c.seg(44, 46, "sample")
    c.out(46, "", "[ERROR] !!! Exception during processing !!! mat1 and mat2 must have the same dtype, but got Half and BFloat16", "[ERROR] Traceback (most recent call last):",
          "RuntimeError: mat1 and mat2 must have the same dtype, but got Half and BFloat16", "", "[INFO] Prompt executed in 26.00 seconds")
    c.seg(46, 110, "idle")
    cs.append(fault(c, "dtype_mismatch", "sampling", 46, 51, [text("mat1 and mat2 must have the same dtype, but got Half and BFloat16")], "one precision",
                    must_not=["device_mismatch", "app_error"], checkpoints=[(16, ["idle_waiting"]), (80, ["dtype_mismatch"])]))

    # devices
    c = Case("ltx-w7900-two-devices", "w7900", "diffusers", 100, 41, argv=["python3", "ltx_i2v.py"])
    script(c, 38, vram=14000, first=NOISE)
    c.out(38, "Encoding prompt and image")
    c.seg(38, 41, "encode")
    c.out(41, *bad(['  File "diffusers/pipelines/ltx/pipeline_ltx_image2video.py", in __call__',
          "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking argument for argument mat2 in method wrapper_CUDA_mm)"]))
    ends(c, 42, 100, code=1)
    cs.append(fault(c, "device_mismatch", "text_encode", 41, 46, [text("found at least two devices, cuda:0 and cpu!")], "inputs to the pipeline's device", must_not=["app_error", "dtype_mismatch"],
                    checkpoints=[(30, ["loading_io", "healthy"]), (80, ["device_mismatch"])]))

    c = Case("sd-3060-generator-device", "rtx3060", "script", 80, 42, argv=["python3", "batch.py"])
    script(c, 30, vram=5000, first=NOISE)
    c.out(30, "Encoding prompt")
    c.out(31, *bad(['  File "diffusers/utils/torch_utils.py", in randn_tensor', "ValueError: Cannot generate a cpu tensor from a generator of type cuda."]))
    c.seg(30, 32, "encode")
    ends(c, 32, 80, code=1)
    cs.append(fault(c, "device_mismatch", "text_encode", 31, 36, [text("Cannot generate a cpu tensor from a generator of type cuda")], "the generator on the execution device", must_not=["dtype_mismatch"],
                    accept=[], checkpoints=[(70, ["device_mismatch"])]))

    # BLAS
    c = Case("flux-7900gre-hipblas-alloc", "rx7900gre", "comfyui", 120, 43)
    comfy26(c, 12, 16368, 64000, "2.10.0a0+rocm7.9", "AMD Radeon RX 7900 GRE")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 40, "Flux", 12100, p="[INFO] ", new=True)
    c.raw(40, "\r  0%|                    | 0/20 [00:00<?, ?it/s]")
    c.seg(40, 42, "sample")
    c.out(42, "", "[ERROR] !!! Exception during processing !!! CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`", "[ERROR] Traceback (most recent call last):", "    return torch.nn.functional.linear(input, weight, bias)",
          "RuntimeError: CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`")
    c.out(43, "[INFO] Prompt executed in 22.20 seconds")
    c.seg(42, 120, "idle")
    cs.append(fault(c, "blas_error", "sampling", 42, 47, [text("HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`")], "once more", must_not=["app_error", "host_oom"],
                    checkpoints=[(16, ["idle_waiting"]), (90, ["blas_error"])]))

    c = Case("kohya-4090-cublaslt", "rtx4090", "kohya", 110, 44, argv=["python3", "flux_train_network.py"])
    kohya(c, 36, vram=20100)
    train_bar(c, 38, 66, 0, 9)
    c.seg(36, 67, "sample")
    c.out(67, "", *bad(['  File "library/flux_models.py", in forward', "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasLtMatmul( ltHandle, computeDesc.descriptor(), &alpha_val)`"]))
    ends(c, 68, 110, code=1)
    cs.append(fault(c, "blas_error", "sampling", 67, 72, [text("CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasLtMatmul(")], "once more", must_not=["app_error", "gpu_oom"],
                    checkpoints=[(60, ["healthy"]), (95, ["blas_error"])]))

    # files
    c = Case("forge-7600xt-truncated-weights", "rx7600xt", "sdwebui", 90, 45, argv=["python3", "launch.py"])
    a1111(c, 22, version="f2.0.1v1.10.1")
    c.seg(22, 31, "idle")
    c.out(31, "Loading Model: {'checkpoint_info': {'filename': 'models/Stable-diffusion/flux1-dev-fp8.safetensors'}}")
    c.seg(31, 34, "load")
    c.out(34, *bad(['  File "backend/utils.py", line 26, in load_torch_file', "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
          "Error while deserializing header: incomplete metadata, file not fully covered"]))
    c.seg(34, 90, "idle")
    cs.append(fault(c, "corrupt_model", "model_load", 34, 39, [text("incomplete metadata, file not fully covered")], "fetch the file again", must_not=["app_error", "missing_dependency"],
                    checkpoints=[(27, ["idle_waiting"]), (70, ["corrupt_model"])]))

    c = Case("script-6800-zip-archive", "rx6800", "script", 70, 46, argv=["python3", "infer.py", "--ckpt", "model.pt"])
    c.out(2, "infer.py 0.4", "torch 2.8.0+rocm6.4", "device: cuda", *NOISE)
    c.out(9, "loading model.pt", *bad(['  File "infer.py", line 40, in load', "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"]))
    c.seg(0, 4, "startup")
    c.seg(4, 10, "load")
    ends(c, 10, 70, code=1, mode="load")
    cs.append(fault(c, "corrupt_model", "model_load", 9, 14, [text("PytorchStreamReader failed reading zip archive: failed finding central directory")], "fetch the file again", must_not=["app_error"],
                    checkpoints=[(50, ["corrupt_model"])]))

    c = Case("wan-9070xt-no-space-for-video", "rx9070xt", "comfyui-wan", 150, 47)
    comfy26(c, 12, 16304, 64000, "2.9.1+rocm6.4", "AMD Radeon RX 9070 XT")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 42, "WAN21", 14000, te="WanTEModel", p="[INFO] ", new=True)
    c.bar(43, 80, 6)
    c.seg(42, 81, "sample")
    c.out(81, "[INFO] Requested to load WanVAE")
    c.seg(81, 95, "vae", vram=12100)
    c.seg(95, 99, "cpuN", cpu=C(600, 50), wr=C(3e6, 1e6))
    c.out(99, "[ERROR] An error occurred in the ffmpeg subprocess:", "[out#0/mp4] Error writing trailer: No space left on device", "[ERROR] !!! Exception during processing !!! [Errno 28] No space left on device",
          "[ERROR] Traceback (most recent call last):", "OSError: [Errno 28] No space left on device")
    c.out(100, "[INFO] Prompt executed in 79.02 seconds")
    c.seg(99, 150, "idle")
    cs.append(fault(c, "disk_full", "save", 99, 104, [text("[Errno 28] No space left on device")], "free space", must_not=["app_error", "host_oom"],
                    checkpoints=[(70, ["healthy"]), (130, ["disk_full"])]))

    c = Case("hub-780m-no-space-download", "r780m", "diffusers", 90, 48, argv=["python3", "fetch_and_run.py"])
    c.bar(4, 40, 100, 0, 61, desc="model-00001-of-00002.safetensors: ", unit="%", every=3, final=False)
    c.seg(0, 4, "startup")
    c.seg(4, 41, "download")
    c.out(1, "fetch_and_run.py", "cache: hub", *NOISE)
    c.out(41, "", "UserWarning: Not enough free disk space to download the file.", *bad(['  File "huggingface_hub/file_download.py", in http_get', "OSError: [Errno 28] No space left on device"]))
    ends(c, 42, 90, code=1)
    cs.append(fault(c, "disk_full", "download", 41, 46, [text("OSError: [Errno 28] No space left on device")], "free space", must_not=["app_error", "download_stall"], earliest=40,
                    checkpoints=[(30, ["download_wait"]), (75, ["disk_full"])]))

    # it "succeeds"
    c = Case("sdxl-7600xt-black-image", "rx7600xt", "comfyui", 140, 49)
    comfy26(c, 12, 16368, 31800, "2.9.1+rocm6.4", "AMD Radeon RX 7600 XT")
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 38, "SDXL", 7900, te="SDXLClipModel", p="[INFO] ", new=True)
    c.bar(39, 66, 25)
    c.seg(38, 67, "sample")
    c.out(67, "[INFO] Requested to load AutoencoderKL")
    c.seg(67, 72, "vae", vram=9100)
    c.out(72, "nodes.py:1662: RuntimeWarning: invalid value encountered in cast", "  img = Image.fromarray(np.clip(i, 0, 255).astype(np.uint8))", "[INFO] Prompt executed in 52.30 seconds")
    c.seg(72, 140, "idle")
    cs.append(fault(c, "nan_output", "vae_decode", 72, 77, [text("RuntimeWarning: invalid value encountered in cast")], "the VAE in fp32", must_not=NO_HANG,
                    checkpoints=[(60, ["healthy"]), (120, ["nan_output", "idle_waiting"])]))

    c = Case("a1111-6700xt-nans", "rx6700xt", "sdwebui", 110, 50, argv=["python3", "launch.py", "--medvram"])
    a1111(c, 20)
    c.seg(20, 29, "idle")
    c.bar(30, 44, 20)
    c.seg(29, 45, "sample")
    c.out(45, "*** Error completing request", "*** Arguments: ('task(k2)', '...')", "    Traceback (most recent call last):", '      File "modules/processing.py", line 636, in process_images_inner',
          "    modules.devices.NansException: A tensor with all NaNs was produced in VAE. This could be because there's not enough precision to represent the picture. Try adding --no-half-vae commandline argument to fix this.", "---")
    c.seg(45, 110, "idle")
    cs.append(fault(c, "nan_output", "vae_decode", 45, 50, [text("A tensor with all NaNs was produced in VAE")], "the VAE in fp32", must_not=["app_error", "dtype_mismatch"],
                    checkpoints=[(26, ["idle_waiting"]), (90, ["nan_output", "idle_waiting"])]))

    c = Case("kohya-7900xtx-loss-nan", "rx7900xtx", "kohya", 150, 51, argv=["python3", "train_network.py", "--mixed_precision", "fp16"])
    kohya(c, 36, vram=15000)
    train_bar(c, 38, 70, 0, 12)
    train_bar(c, 72, 148, 13, 40, loss="nan")
    c.seg(36, 150, "sample")
    cs.append(fault(c, "nan_output", "sampling", 72, 90, [text("avr_loss=nan")], "train in bf16 or fp32", must_not=NO_HANG, checkpoints=[(65, ["healthy"])]))

    # the end without a word
    c = Case("comfy-mi100-segfault", "mi100", "comfyui", 90, 52)
    comfy_boot(c, 12, 32752, 257000, "2.6.0+rocm6.2", "AMD Instinct MI100", extra=NOISE)
    c.seg(12, 20, "idle")
    comfy_job(c, 20, 40, "SDXL", 9900, te="SDXLClipModel")
    c.bar(41, 47, 20, 0, 5, final=False)
    c.seg(40, 48, "sample")
    c.out(48, "", "Fatal Python error: Segmentation fault", "", "Thread 0x00007f11 (most recent call first):", '  File "torch/_ops.py", line 1158 in __call__')
    ends(c, 49, 90, signal="SIGSEGV")
    cs.append(fault(c, "crash_segv", "sampling", 48, 54, [text("Fatal Python error: Segmentation fault"), ("event", "exit", "SIGSEGV")], "native code crashed", must_not=["gpu_oom", "app_error", "memory_fault"],
                    checkpoints=[(45, ["healthy"]), (80, ["crash_segv"])]))

    c = Case("script-780m-invalid-pointer", "r780m", "script", 70, 53, argv=["python3", "tiny.py"])
    c.out(2, "tiny.py: start", *NOISE)
    for k in range(6):
        c.out(12 + 3 * k, "step %d/40" % (k + 1))
    c.seg(0, 10, "load", gtt=3000)
    c.seg(10, 31, "sample")
    c.out(31, "free(): invalid pointer")
    ends(c, 31, 70, signal="SIGABRT")
    cs.append(fault(c, "crash_segv", "sampling", 31, 36, [text("free(): invalid pointer"), ("event", "exit", "SIGABRT")], "native code crashed", must_not=["gpu_oom", "app_error", "gpu_reset"], accept=[],
                    checkpoints=[(28, ["healthy"]), (60, ["crash_segv"])]))

    c = Case("ltx-7900xtx-wrong-size", "rx7900xtx", "diffusers", 80, 54, argv=["python3", "ltx.py", "--height", "481"])
    script(c, 34, first=NOISE)
    c.out(35, *bad(['  File "diffusers/pipelines/ltx/pipeline_ltx.py", in check_inputs', "ValueError: `height` and `width` have to be divisible by 32 but are 481 and 704."]))
    ends(c, 36, 80, code=1)
    c.seg(34, 36, "cpu1")
    cs.append(fault(c, "app_error", "model_load", 35, 40, [text("have to be divisible by 32"), ("event", "exit", "code 1")], "a setting of the user's", must_not=["crash_segv", "gpu_oom", "missing_dependency"],
                    checkpoints=[(70, ["app_error"])]))

    c = Case("comfy-4090m-node-failed", "rtx4090m", "comfyui", 90, 55)
    comfy26(c, 12, 16376, 31800, "2.9.1+cu130", "NVIDIA GeForce RTX 4090 Laptop GPU")
    c.seg(12, 20, "idle")
    c.out(20, "[INFO] got prompt", "[ERROR] !!! Exception during processing !!! 'NoneType' object has no attribute 'shape'", "[ERROR] Traceback (most recent call last):",
          '  File "custom_nodes/pack_a/nodes.py", line 88, in run', "AttributeError: 'NoneType' object has no attribute 'shape'", "", "[INFO] Prompt executed in 0.04 seconds")
    c.seg(20, 90, "idle")
    cs.append(fault(c, "app_error", "unknown", 20, 26, [text("AttributeError: 'NoneType' object has no attribute 'shape'")], "the workflow lacks an input", must_not=["crash_segv", "missing_dependency"],
                    checkpoints=[(16, ["idle_waiting"]), (80, ["app_error", "idle_waiting"])]))

    # ended from outside
    c = Case("fp-7900xtx-killed-outside", "rx7900xtx", "framepack", 150, 56, kernel_t0=61.5, argv=["python3", "demo_gradio.py"])
    fp_boot(c, 34, 23.4)
    c.seg(34, 41, "idle")
    fp_job(c, 41, 57, 20400)
    c.bar(58, 100, 25, 0, 11, final=False)
    c.seg(57, 101, "sample")
    c.klog(90, "wlp4s0: deauthenticated from aa:bb:cc:dd:ee:ff (Reason: 3=DEAUTH_LEAVING)", "audit: type=1400 apparmor=\"DENIED\" operation=\"capable\" comm=\"cupsd\"")
    ends(c, 101, 150, signal="SIGKILL", mode="sample")
    cs.append(fault(c, "killed", "sampling", 101, 106, [("event", "exit", "SIGKILL that nobody explains")], "somebody else ended it", must_not=["host_oom", "crash_segv", "gpu_oom"],
                    checkpoints=[(90, ["healthy"]), (130, ["killed"])]))

    c = Case("kohya-w7900-sigterm", "w7900", "kohya", 110, 57, argv=["python3", "train_network.py"])
    kohya(c, 36, vram=22000)
    train_bar(c, 38, 80, 0, 16)
    c.seg(36, 81, "sample")
    c.out(81, "", "Terminated")
    ends(c, 81, 110, signal="SIGTERM", mode="sample")
    cs.append(fault(c, "killed", "sampling", 81, 86, [("event", "exit", "SIGTERM not sent by us")], "a service manager or a person ended it", must_not=["crash_segv", "app_error", "host_oom"],
                    checkpoints=[(70, ["healthy"]), (100, ["killed"])]))

    # the wrong processor
    c = Case("comfy-7900gre-cpu-torch", "rx7900gre", "comfyui", 220, 58)
    c.out(2, "Total VRAM 64000 MB, total RAM 64000 MB", "pytorch version: 2.9.1+cpu", "Set vram state to: DISABLED", "Device: cpu", "Using sub quadratic optimization for attention, if you have memory or speed issues try using: --use-split-cross-attention")
    c.out(14, "Starting server", "To see the GUI go to: http://127.0.0.1:8188")
    c.seg(0, 14, "startup")
    c.seg(14, 24, "idle")
    c.out(24, "got prompt", "Requested to load SDXLClipModel", "loaded completely 9.5e+25 1560.80 True", "Requested to load SDXL")
    c.seg(24, 44, "load")
    c.bar(45, 215, 20, 0, 4, final=False)
    c.seg(44, 220, "cpuN", cpu=C(1120, 60))
    cs.append(fault(c, "cpu_fallback", "sampling", 2, 110, [text("pytorch version: 2.9.1+cpu"), text("Device: cpu"), gauge("the card idle, a dozen cores busy")], "install a torch for this card",
                    must_not=STALLS + ["healthy"], checkpoints=[(210, ["cpu_fallback"])]))

    c = Case("script-3060-torch-without-cuda", "rtx3060", "script", 200, 59, argv=["python3", "txt2img.py"])
    c.out(3, *NOISE)
    c.out(5, "CUDA not available, using device: cpu", "UserWarning: User provided device_type of 'cuda', but CUDA is not available. Disabling")
    script(c, 30, vram=500)
    c.bar(32, 196, 30, 0, 6, final=False)
    c.seg(30, 200, "cpuN", cpu=C(1180, 70))
    cs.append(fault(c, "cpu_fallback", "sampling", 5, 120, [text("using device: cpu"), gauge("the card idle, a dozen cores busy")], "this torch has no CUDA", must_not=STALLS + ["healthy"],
                    checkpoints=[(190, ["cpu_fallback"])]))
    return cs
