use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use VerdictId::*;

#[test]
fn patterns_compile() {
    let rows: usize = TABLES.iter().map(|t| t.len()).sum();
    let all = SIGNATURES.as_ref().unwrap();
    assert_eq!(all.reported.len(), rows);
    assert!((0..rows).all(|n| all.patterns.regex(n).is_some()));
    assert!(noise::all_compile() && GATE.is_some());
}

/// Whatever a row matches has one of the words that let a line through: no row has a
/// literal without them that stands for the whole.
#[test]
fn the_words_let_every_row_through() {
    let gate = GATE.as_ref().expect("compiles");
    let rows = TABLES.iter().flat_map(|t| t.iter());
    let parts = rows.flat_map(|Row(pattern, ..)| alternatives(pattern));
    let barred: Vec<_> = parts
        .filter(|p| !gate.is_match(p.replace(r"\b", " ").as_bytes()))
        .collect();
    assert!(barred.is_empty(), "{barred:#?}");
}

/// The alternatives of a pattern at its top level.
fn alternatives(pattern: &str) -> Vec<String> {
    let (mut depth, mut class, mut escaped) = (0, false, false);
    let mut parts = vec![String::new()];
    for c in pattern.chars() {
        let plain = !escaped && !class;
        match c {
            '(' if plain => depth += 1,
            ')' if plain => depth -= 1,
            '[' if plain => class = true,
            ']' if !escaped => class = false,
            _ => {}
        }
        if c == '|' && plain && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    parts
}

/// What programs on AMD and NVIDIA cards print, per verdict.
const REAL: &[(VerdictId, &[&str])] = &[
    (
        BlockAllocator,
        &[
            "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
            "terminate called: HSA exception: MemoryRegion::BlockAllocator::alloc failed",
            " 50%|#####     | 4/8 [00:01<00:09, 1.20s/it]HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
            "[ERROR] rocr: BlockAllocator: allocation failed",
        ],
    ),
    (
        GpuOom,
        &[
            "ggml_vulkan: Device memory allocation of size 4831838208 failed.",
            "[ERROR] ggml_extend.hpp:72   - ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.53 GiB. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.98 GiB total capacity)",
            "!!! Exception during processing !!! Allocation on device 0 would exceed allowed memory. (out of memory)",
            "RuntimeError: HIP error: out of memory",
            "torch.AcceleratorError: CUDA error: out of memory",
            "RuntimeError: [enforce fail] hipErrorOutOfMemory",
            "ggml_backend_cuda_buffer_type_alloc_buffer: failed to allocate 512.00 MiB on device 0",
            "[2026-02-11 10:22:31.123] [ERROR] !!! Exception during processing !!! HIP out of memory. Tried to allocate 35.31 GiB.",
            "cudaMalloc failed: out of memory",
            "[ERROR] ggml_extend.hpp:75   - ggml_gallocr_reserve_n: failed to allocate Vulkan0 buffer of size 9773256964",
            "RuntimeError: Could not allocate tensor with 4915840 bytes. There is not enough GPU video memory available!",
            "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB.",
            "RuntimeError: MPS backend out of memory (MPS allocated: 17.20 GB, max allowed: 18.13 GB).",
            "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
            "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate memory for requested buffer of size 1073741824",
            "vkAllocateMemory failed -2",
        ],
    ),
    (
        HostOom,
        &[
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "  what():  std::bad_alloc",
            "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)",
            "RuntimeError: DefaultCPUAllocator: not enough memory: you tried to allocate 100663296 bytes.",
            "MemoryError",
            "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 1.19 GiB for an array with shape (33, 544, 720)",
            "OSError: [Errno 12] Cannot allocate memory",
            "memory allocation of 4294967296 bytes failed",
            "ggml_gallocr_reserve_n: failed to allocate CPU buffer of size 9773256964",
            "OSError: [WinError 8] Not enough memory resources are available to process this command",
        ],
    ),
    (
        PinnedMemory,
        &[
            "RuntimeError: hipHostMalloc failed with error: out of memory",
            "RuntimeError: CUDA error: resource already mapped",
            "RuntimeError: HIP error: part or all of the requested memory range is already mapped",
            "cudaHostRegister(ptr, size, 1) failed: invalid argument",
            "[ERROR] Failed to pin memory for 4096 MB buffer",
            "RuntimeError: Caught RuntimeError in pin memory thread for device 0.",
            "!!! Exception during processing !!! HostBuffer.read_file_slice failed",
            "error: could not page-lock 2048 MiB of host memory",
            "Pinning memory failed: out of memory",
        ],
    ),
    (
        GttExhausted,
        &[
            "RuntimeError: GTT exhausted: 61.9 of 62.0 GiB in use",
            "amdgpu: ttm pool out of memory",
            "error: GTT limit reached",
            "ROCm: GTT is full",
        ],
    ),
    (
        NoAlgorithm,
        &[
            "MIOpen Error: /src/ocl/convolutionocl.cpp:275: No suitable algorithm was found to execute the required convolution",
            "RuntimeError: miopenStatusUnknownError",
            "RuntimeError: GET was unable to find an engine to execute this computation",
            "RuntimeError: FIND was unable to find an engine to execute this computation",
            "MIOpen(HIP): Error [ConvolutionForwardImmediate] immediate mode fallback unsuccessful",
            "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous input.",
        ],
    ),
    (
        MiopenDb,
        &[
            "MIOpen(HIP): Warning [FindWinogradSolutions] /root/driver/MLOpen/src/sqlite_db.cpp:212: Internal error while accessing SQLite database: disk I/O error",
            "MIOpen(HIP): Warning [FindFftSolutions] /MIOpen/src/sqlite_db.cpp:109: open memvfs: unable to open database file",
            "/data/driver/MLOpen/src/include/miopen/kern_db.hpp:147: Internal error while accessing SQLite database: database disk image is malformed",
            "MIOpen Error: sqlite_db.cpp:227: Internal error while accessing SQLite database: database is locked",
            "MIOpen(HIP): Error [LockFile] lock file /tmp/miopen-lockfiles/gfx1100.ukdb.lock timed out",
            "MIOpen(HIP): Error [ReadonlyRamDb] Ill-formed record: user db file gfx1100_48.HIP.ufdb.txt is corrupted",
            "  what():  boost::filesystem::permissions: No such file or directory: \"/home/u/.config/miopen//gfx906_60.HIP.2_11_0.ufdb.txt\"",
            "MIOpen(HIP): Warning [Measure] Db::Update failed, file is locked: /home/u/.config/miopen/gfx1030_30.HIP.3_2_0.ufdb.txt",
        ],
    ),
    (
        GpuReset,
        &[
            "HW Exception by GPU node-1 (Agent handle: 0x11dd2220) reason :GPU Hang",
            " 25%|##   | 5.00/20.0 [1:04:24<3:07:19, 749s/it]HW Exception by GPU node-1 (Agent handle: 0x3508fba0) reason :GPU Hang",
            "Unable to determine the device handle for GPU0: 0000:01:00.0: GPU is lost. Reboot the system to recover this GPU",
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            "RuntimeError: CUDA error: the launch timed out and was terminated",
        ],
    ),
    (
        MemoryFault,
        &[
            "Memory access fault by GPU node-1 (Agent handle: 0x31a0c7b0) on address 0x7412a607e000. Reason: Page not present or supervisor privilege.",
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            "torch.AcceleratorError: HIP error: an illegal memory access was encountered",
            "CUDA error 700: cudaErrorIllegalAddress",
            ":0:rocdevice.cpp :2984: Callback: Queue 0x7f00 aborting with error : HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted to access memory beyond the largest legal address.",
            "RuntimeError: HIP error: unspecified launch failure",
        ],
    ),
    (
        NoKernelImage,
        &[
            "!!! Exception during processing !!! HIP error: invalid device function",
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "rocBLAS error: Cannot read /opt/rocm-5.4.0/lib/rocblas/library/TensileLibrary.dat: Illegal seek",
            "rocblaslt error: Could not load \"/opt/rocm/lib/hipblaslt/library/TensileLibrary_lazy_gfx1030.dat\"",
            "rocBLAS error: Cannot read /x/TensileLibrary.dat: No such file or directory for GPU arch : gfx1103",
            "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",
            "RuntimeError: HIP error: device kernel image is invalid",
            "FATAL: kernel `fmha_cutlassF_f16_aligned_64x128_rf_sm80` is for sm80-sm100, but was built for sm37",
            "CUDA error: the provided PTX was compiled with an unsupported toolchain.",
            "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
        ],
    ),
    (
        GpuUnavailable,
        &[
            "RuntimeError: No HIP GPUs are available",
            "RuntimeError: No CUDA GPUs are available",
            "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com",
            "Failed to initialize NVML: Driver/library version mismatch",
            "UserWarning: CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start.",
            "RuntimeError: HIP error: invalid device ordinal",
            "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
            "Unable to open /dev/kfd read-write: No such file or directory",
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW",
        ],
    ),
    (
        PermissionKfd,
        &[
            "Unable to open /dev/kfd read-write: Permission denied",
            "'Unable to open /dev/kfd read-write: Operation not permitted'",
            "someone is not member of \"render\" group, the default DRM access group.",
            "PermissionError: [Errno 13] Permission denied: '/dev/dri/renderD128'",
        ],
    ),
    (
        PortInUse,
        &[
            "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8188): address already in use",
            "OSError: Cannot find empty port in range: 7860-7860. You can specify a different port by setting the GRADIO_SERVER_PORT environment variable",
            "OSError: Port 7860 is in use. If a gradio.Blocks is running on the port, you can close() it or gradio.close_all().",
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 7860): address already in use",
        ],
    ),
    (
        MissingDependency,
        &[
            "ModuleNotFoundError: No module named 'diffusers'",
            "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
            "ImportError: cannot import name 'cached_download' from 'huggingface_hub'",
            "python3: error while loading shared libraries: libamdhip64.so.6: cannot open shared object file: No such file or directory",
            "ImportError: T5Tokenizer requires the SentencePiece library but it was not found in your environment.",
            "FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'",
        ],
    ),
    (
        DtypeMismatch,
        &[
            "RuntimeError: expected scalar type Half but found Float",
            "RuntimeError: Input type (c10::Half) and bias type (float) should be the same",
            "!!! Exception during processing !!! mat1 and mat2 must have the same dtype, but got Float and BFloat16",
            "RuntimeError: expected mat1 and mat2 to have the same dtype, but got: struct c10::Half != struct c10::BFloat16",
            "RuntimeError: \"slow_conv2d_cpu\" not implemented for 'Half'",
            "Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same",
            "RuntimeError: Expected query, key, and value to have the same dtype, but got query.dtype: c10::Half key.dtype: float",
        ],
    ),
    (
        DeviceMismatch,
        &[
            "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
            "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'",
            "ValueError: Cannot generate a cpu tensor from a generator of type cuda.",
            "!!! Exception during processing !!! Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
            "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cpu)",
            "NotImplementedError: Cannot copy out of meta tensor; no data!",
            "RuntimeError: Tensor for argument #2 'mat1' is on CPU, but expected it to be on GPU (while checking arguments for addmm)",
        ],
    ),
    (
        BlasError,
        &[
            "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasLtMatmul( ltHandle, ...)`",
            "RuntimeError: CUDA error: HIPBLAS_STATUS_NOT_SUPPORTED when calling `HIPBLAS_STATUS_NOT_SUPPORTED`",
            "rocblas_gemm_ex returned rocblas_status_internal_error",
            "rocBLAS error: Tensile solution found, but exception thrown for { a_type: \"f16_r\" }",
            "hipblasLtMatmul failed, falling hard",
            "ggml_cuda_mul_mat: CUBLAS_STATUS_INTERNAL_ERROR",
        ],
    ),
    (
        CorruptModel,
        &[
            "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
            "!!! Exception during processing !!! Error while deserializing header: HeaderTooLarge",
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
            "RuntimeError: unexpected EOF, expected 4097 more bytes. The file might be corrupted.",
            "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
            "_pickle.UnpicklingError: invalid load key, '<'.",
            "The safetensors file is corrupt/incomplete. Check the file size and make sure you have copied it correctly.",
            "OSError: Unable to load weights from pytorch checkpoint file: unexpected end of file",
        ],
    ),
    (
        DiskFull,
        &[
            "OSError: [Errno 28] No space left on device: '/home/u/outputs/x.mp4'",
            "RuntimeError: [enforce fail at inline_container.cc:603] . PytorchStreamWriter failed writing file data/0: file write failed: No space left on device",
            "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: \"No space left on device\" })",
            "av_interleaved_write_frame(): No space left on device",
            "OSError: [Errno 122] Disk quota exceeded",
            "OSError: [Errno 27] File too large",
            "framepack-tui worker: failed to decode: /home/u/v.mp4.parts/0123456789abcdef/.part: File too large (os error 27): raise the limit",
        ],
    ),
    (
        NanOutput,
        &[
            "/app/ComfyUI/nodes.py:1607: RuntimeWarning: invalid value encountered in cast",
            "/venv/diffusers/image_processor.py:147: RuntimeWarning: invalid value encountered in cast",
            "modules.devices.NansException: A tensor with NaNs was produced in Unet.",
            "[WARNING] VAE output contains NaN values",
            "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
        ],
    ),
    (
        CpuFallback,
        &[
            "AssertionError: Torch not compiled with CUDA enabled",
            "RuntimeError: Cannot initialize CUDA without ATen_cuda library.",
            "!!! Exception during processing !!! Torch not compiled with CUDA enabled",
            "[ERROR] AssertionError: Torch not compiled with ROCm enabled",
        ],
    ),
];

#[test]
fn real_errors_are_seen() {
    let mut wrong = String::new();
    for (want, texts) in REAL {
        assert!(texts.len() >= 4, "{want}");
        for text in *texts {
            let got = of_line(text).map(|r| r.verdict);
            if got != Some(*want) {
                let _ = writeln!(wrong, "{want}, not {got:?}: {text}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Lines with the words of an error that report none.
const NEAR: &[&str] = &[
    // answered by the program
    "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.",
    "GPU decode failed: HIP out of memory, falling back to CPU decode",
    "[MIOpen Fallback] conv3d: miopenStatusUnknownError, fallback to conv2d sum",
    "CUBLAS_STATUS_NOT_SUPPORTED, disabling hipBLASLt",
    "Failed to pin memory, continuing without",
    "No module named 'triton', skipping",
    "ignoring: Memory access fault by GPU",
    // advice, conditions, settings
    "Lower this to avoid out of memory",
    "large batches may cause CUDA out of memory",
    "If you get CUDA out of memory errors, lower the resolution",
    "when you see HIP error: invalid device function, set HSA_OVERRIDE_GFX_VERSION",
    "Tip: HIP out of memory is cured by --lowvram",
    "Note: MemoryRegion::BlockAllocator::alloc failed is known on 24 GiB cards",
    "use --disable-pinned-memory to prevent hipHostMalloc failed",
    "HIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
    "Potential NSFW content was detected in one or more images. A black image will be returned instead.",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    "Search for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/cuda/ for more information.",
    "To avoid CUBLAS_STATUS_ALLOC_FAILED preserve more memory",
    "in case of a GPU Hang run it again",
    // code, comments, quotations
    "    except torch.cuda.OutOfMemoryError:",
    "    raise OutOfMemoryError(\"HIP out of memory\")",
    "    raise ImportError(\"xformers\")",
    "# CUDA error: an illegal memory access was encountered",
    "prompt: a robot that says Memory access fault by GPU",
    "got prompt: \"no space left on device\"",
    "> RuntimeError: No HIP GPUs are available",
    "the user wrote \"MemoryError\" on a wall",
    "import torch; catch OutOfMemoryError",
    // optional parts
    "Xformers is not installed!",
    "Flash Attn is not installed!",
    "xformers not installed!",
    "Cannot import /x/custom_nodes/pack module for custom nodes: No module named 'insightface'",
    "   0.4 seconds (IMPORT FAILED): /x/custom_nodes/pack",
    // what only looks alike
    "RuntimeError: The size of tensor a (9) must match the size of tensor b (8)",
    "size mismatch for proj.weight: copying a param with shape torch.Size([1]) from checkpoint",
    "Free VRAM 23.1 GB",
    "Using pinned memory",
    "pin_memory=True",
    "enabled pinned memory 45000.0",
    "port 7860",
    "Running on local URL:  http://127.0.0.1:7860",
    "GTT 180 MiB of 32000 MiB in use",
    "amdgpu.gttsize=126976",
    "MIOpen(HIP): Warning [SQLiteBase] Unable to read system database file:/opt/rocm/share/miopen/db/gfx1100.kdb Performance may degrade",
    "MIOpen(HIP): Warning [IsEnoughWorkspace] Solver <GemmFwdRest>, workspace required: 2189426688, provided ptr: 0 size: 0",
    "MIOpen(HIP): Info [KernDb] database opened",
    "rocBLAS version 4.1.2",
    "hipblaslt is enabled",
    "GPU hang check enabled",
    "Loading weights in fp16 (Half), VAE in Float",
    "VAE dtype: torch.bfloat16, expected by the model: torch.float16",
    "latents on cuda:0, generator on cpu",
    "device: cuda:0",
    "disk space: 120 GB left on device",
    "finished, 0 NaN in the latents",
    "No kernel image cache yet",
    "CUDA is available",
    "safetensors header ok",
    "reading model.safetensors: EOF",
    "member of render group",
    "opened /dev/kfd",
    "Could not find triton, some optimizations will not be available: No module named 'triton'",
    "Error caught was: No module named 'triton'",
    "UserWarning: Attempting to use hipBLASLt on an unsupported architecture! Overriding blas backend to hipblas",
    "FutureWarning: You are using `torch.load` with `weights_only=False`",
    "WARNING: No VAE weights detected, VAE not initalized.",
    "lora key not loaded: lora_unet_x",
    "/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory",
    "Warning, This is not a checkpoint file, trying to load it as a diffusion model only.",
    "sqlite3.OperationalError: database is locked",
    "RuntimeWarning: invalid value encountered in divide",
    "ERROR: unknown argument --vae",
];

#[test]
fn near_misses_are_not() {
    let mut wrong = String::new();
    for text in NEAR {
        if let Some(r) = of_line(text) {
            let _ = writeln!(wrong, "{} ({:?}): {text}", r.verdict, r.rank);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Behind each real line stands one that says the same of what might be.
#[test]
fn no_verdict_comes_from_a_condition() {
    for (verdict, texts) in REAL {
        for text in *texts {
            let text = text.trim_start();
            for near in [
                format!("If you see {text}, lower the resolution"),
                format!("# {text}"),
                format!("Tip: {text}"),
                format!("> {text}"),
                format!("prompt: {text}"),
                format!("ignored: {text} (harmless)"),
            ] {
                assert_eq!(of_line(&near), None, "{verdict}: {near}");
            }
        }
    }
}

#[test]
fn the_more_telling_of_two_signatures_counts() {
    for (text, want) in [
        ("hipHostMalloc failed: hipErrorOutOfMemory", PinnedMemory),
        (
            "rocBLAS error: Cannot read /x/TensileLibrary.dat: rocblas_status_internal_error",
            NoKernelImage,
        ),
        (
            "HW Exception by GPU node-1 reason :GPU Hang HSA_STATUS_ERROR_OUT_OF_RESOURCES",
            GpuReset,
        ),
    ] {
        assert_eq!(of_line(text).map(|r| r.verdict), Some(want), "{text}");
    }
}

#[test]
fn compilation_and_requests() {
    for text in [
        "Compiling triton kernels, this may take several minutes",
        "[inductor] autotuning mm(4096x3072)",
        "Building extension custom_rasterizer",
        "First run: kernels are built, this can take a few minutes",
    ] {
        assert!(is_compilation(text), "{text}");
    }
    for text in [
        "torch.compile disabled",
        "compilation took 12 s",
        "autotuning finished",
        "compiled with rocm",
    ] {
        assert!(!is_compilation(text), "{text}");
    }
    assert!(is_request(
        "INFO:     127.0.0.1:5124 - \"GET /queue/status HTTP/1.1\" 200 OK"
    ));
    assert!(!is_request("Decoding"));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,400}") {
        let _ = (of_line(&text), hint(&text), is_request(&text), is_compilation(&text));
    }

    /// What a program writes before an error does not hide it, if it is a logger's.
    #[test]
    fn a_loggers_prefix_hides_nothing(
        level in "(INFO|WARNING|ERROR|CRITICAL)",
        n in 0usize..REAL.len(),
        k in 0usize..4,
    ) {
        let (want, texts) = REAL[n];
        for prefix in [
            format!("[{level}] "),
            format!("2026-02-11 10:22:31,123 - {level} - "),
            format!("(EngineCore_DP0 pid=9817) {level} "),
        ] {
            let line = format!("{prefix}{}", texts[k].trim_start());
            prop_assert_eq!(of_line(&line).map(|r| r.verdict), Some(want), "{}", line);
        }
    }
}
