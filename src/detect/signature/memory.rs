//! Memory that ran out, on the card or on the host, and pages that could not be locked.

use crate::model::VerdictId::{BlockAllocator, GpuOom, GttExhausted, HostOom, PinnedMemory};

use super::Rank::{Aftermath, General, Root, Specific};
use super::Row;

pub(super) const ROWS: &[Row] = &[
    // ROCr
    Row(
        r"MemoryRegion::BlockAllocator::alloc(?:\(\))? failed",
        BlockAllocator,
        Root,
    ),
    Row(
        r"(?i)\bBlockAllocator\b.{0,40}\b(?:alloc\w*|allocation) failed",
        BlockAllocator,
        Root,
    ),
    // page-locked host memory: HIP and CUDA runtimes, PyTorch, ComfyUI
    Row(
        r"\b(?:hip|cuda|cu)(?:HostMalloc|HostAlloc|MallocHost|HostRegister|MemHostAlloc|MemHostRegister|MemAllocHost)\w*(?:\(\))?.{0,40}(?i:fail|error|returned|unable)",
        PinnedMemory,
        Specific,
    ),
    Row(
        r"(?i)\b(?:fail\w*|unable|error|could not|cannot)\b.{0,40}\b(?:pin(?:ned)?|page[- ]?lock(?:ed)?)\b.{0,30}\b(?:memory|buffers?|tensors?|pages?|host|alloc\w*)\b",
        PinnedMemory,
        Specific,
    ),
    Row(
        r"(?i)\b(?:pinned|page[- ]?locked)(?: host)? (?:memory|buffer|alloc\w*).{0,40}\b(?:fail\w*|error|exhausted|out of memory)",
        PinnedMemory,
        Specific,
    ),
    Row(
        r"(?i)\b(?:HIP|CUDA) error: (?:resource already mapped|part or all of the requested memory range is already mapped|pointer (?:does not correspond to a registered memory region|resides on host memory))",
        PinnedMemory,
        Specific,
    ),
    Row(
        r"\b(?:hip|cuda)Error(?:AlreadyMapped|HostMemoryAlreadyRegistered|HostMemoryNotRegistered)\b|\b(?:HIP|CUDA)_ERROR_(?:ALREADY_MAPPED|HOST_MEMORY_ALREADY_REGISTERED)\b",
        PinnedMemory,
        Specific,
    ),
    Row(
        r"(?i)\bpinning (?:of )?(?:host )?memory failed\b|\bcannot pin '[\w.]+'",
        PinnedMemory,
        Specific,
    ),
    Row(
        r"HostBuffer\.read_file_slice failed|\bCaught \w+ in pin memory thread\b",
        PinnedMemory,
        Specific,
    ),
    // an APU's share of the host's memory
    Row(
        r"(?i)\b(?:GTT|TTM)\b.{0,60}\b(?:exhausted|out of memory|limit (?:reached|exceeded)|is full)",
        GttExhausted,
        Specific,
    ),
    // device memory: PyTorch, ComfyUI, the runtimes
    Row(
        r"(?i)\b(?:HIP|CUDA|ROCm|GPU|device|VRAM)(?: error:?)?(?: ran)? out of (?:GPU |device |video )?memory\b",
        GpuOom,
        General,
    ),
    Row(
        r"\b(?:HIP|CUDA|ROCm) error: (?:\d+ )?out of memory\b",
        GpuOom,
        General,
    ),
    Row(
        r"\b(?:\w+\.)*(?:Cuda|Gpu|GPU)?OutOfMemoryError\b",
        GpuOom,
        General,
    ),
    Row(r"(?i)\bAllocation on device\b", GpuOom, General),
    Row(
        r"\bhipErrorOutOfMemory\b|\b(?:HIP|CUDA)_ERROR_OUT_OF_MEMORY\b|\bcudaErrorMemoryAllocation\b|\bhipErrorMemoryAllocation\b",
        GpuOom,
        General,
    ),
    Row(
        r"(?i)\b(?:failed|unable) to allocate \d[\d.,]* ?\w+ (?:of |on |in )?(?:GPU|device|VRAM|ROCm\d*|CUDA\d*|HIP)\b",
        GpuOom,
        General,
    ),
    Row(r"\bHSA_STATUS_ERROR_OUT_OF_RESOURCES\b", GpuOom, Aftermath),
    Row(
        r"(?i)\b(?:hip|cuda|cu)(?:Malloc|MemAlloc|MemCreate)\w*(?:\(\))?.{0,40}\b(?:failed|error)\b.{0,40}\bout of memory\b|\b(?:HIP|CUDA) driver error: out of memory\b",
        GpuOom,
        General,
    ),
    Row(
        r"\bVK_ERROR_OUT_OF_DEVICE_MEMORY\b|\bErrorOutOfDeviceMemory\b.{0,40}\b(?:terminate|abort)|^(?:terminate called .{0,80}|  what\(\):  )vk::\S+ErrorOutOfDeviceMemory",
        GpuOom,
        General,
    ),
    // ggml under Vulkan; page-locked memory is refused with the same word, and done without
    Row(
        r"\ballocateMemory: ErrorOutOfDeviceMemory\b|\bggml_vulkan: Device memory allocation of size \d+ failed\b",
        GpuOom,
        General,
    ),
    Row(
        r"(?i)\bfailed to allocate (?:Vulkan|CUDA|ROCm|HIP|SYCL|MUSA|OpenCL|Metal|MTL)\w* buffer of size\b",
        GpuOom,
        General,
    ),
    Row(
        r"(?i)\bunable to allocate (?:Vulkan|CUDA|ROCm|HIP|SYCL|OpenCL)\w* buffer\b|\bfailed to allocate the compute buffer\b|\bfailed to allocate compute buffers\b|\balloc (?:params|runtime params|compute) (?:backend )?buffer failed\b",
        GpuOom,
        Aftermath,
    ),
    // DirectML, Direct3D, oneAPI, Metal, OpenCL, cuDNN, ONNX Runtime, JAX
    Row(
        r"(?i)\bnot enough GPU video memory available\b",
        GpuOom,
        Specific,
    ),
    Row(
        r"(?i)\b(?:XPU|MPS backend|DML allocator|Metal)(?: ran)? out of memory\b|\b(?:in|un)sufficient (?:VRAM|video memory|GPU memory)\b|\bnot enough (?:VRAM|video memory|GPU memory)(?: available| left| to)\b",
        GpuOom,
        General,
    ),
    Row(
        r"\b(?:UR_RESULT|ZE_RESULT|PI)_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)\b|\bCL_(?:MEM_OBJECT_ALLOCATION_FAILURE|OUT_OF_RESOURCES)\b|\bCUDNN_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)\b",
        GpuOom,
        General,
    ),
    Row(
        r"(?i)\b(?:HIP|CUDA) (?:failure|error code) ?\d*: (?:out of memory|\w*MemoryAllocation)|\bFailed to allocate memory for requested buffer of size \d+|\bRESOURCE_EXHAUSTED: Out of memory\b|\bOOM when allocating tensor\b|\bOut of memory error on GPU \d|\bError out of memory at line \d|\bRequested amount of GPU memory\b.{0,40}\bcould not be allocated\b|\bExceeded max size of memory object allocation\b|\bvkAllocateMemory failed -2\b",
        GpuOom,
        General,
    ),
    Row(
        r"(?i)\bfailed to allocate (?:CPU|host) buffer of size\b|\bggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate\b|\bErrorOutOfHostMemory\b|\bVK_ERROR_OUT_OF_HOST_MEMORY\b|\bCL_OUT_OF_HOST_MEMORY\b",
        HostOom,
        General,
    ),
    Row(
        r"(?i)\bNot enough memory resources are available to (?:process|complete)\b|\bInsufficient system resources exist to complete\b|\[WinError (?:8|1450|1453)\]",
        HostOom,
        General,
    ),
    // host memory: the C++ runtime, PyTorch, Python, NumPy, the C library, safetensors
    Row(r"\bstd::bad_alloc\b", HostOom, General),
    Row(
        r"(?i)DefaultCPUAllocator: (?:not enough|can't allocate) memory|\balloc_cpu\.cpp\b",
        HostOom,
        Specific,
    ),
    Row(
        r"(?i)\bnot enough memory: you tried to allocate\b",
        HostOom,
        Specific,
    ),
    Row(r"(?i)\bcannot allocate memory\b", HostOom, General),
    Row(
        r"(?:^|[\s\]:.!])_?(?:Array)?MemoryError\b(?:: |$)",
        HostOom,
        Specific,
    ),
    Row(
        r"(?i)\bunable to allocate \d[\d.]* ?[KMGT]i?B for an array\b",
        HostOom,
        Specific,
    ),
    Row(r"(?i)\bmmap\w* failed\b.{0,60}\bmemory\b", HostOom, General),
    Row(
        r"(?i)\bmemory allocation of \d+ bytes failed\b",
        HostOom,
        Specific,
    ),
];
