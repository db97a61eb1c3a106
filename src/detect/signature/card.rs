//! The card itself: faults, resets, missing device code, a device that cannot be had.

use crate::model::VerdictId::{
    CpuFallback, GpuReset, GpuUnavailable, MemoryFault, NoKernelImage, PermissionKfd,
};

use super::Rank::{Aftermath, General, Root, Specific};
use super::Row;

pub(super) const ROWS: &[Row] = &[
    // ROCr's own handlers
    Row(
        r"\bMemory access fault by (?:GPU|agent)\b",
        MemoryFault,
        Root,
    ),
    Row(
        r"\bMemory critical error by agent\b",
        MemoryFault,
        Aftermath,
    ),
    Row(r"\bHW Exception by GPU\b", GpuReset, Root),
    Row(
        r"\breason ?: ?GPU Hang\b|(?:^|[\s\]:(])GPU Hang(?:$|[\s.!,:)])",
        GpuReset,
        Root,
    ),
    Row(
        r"\bHSA_STATUS_ERROR_(?:MEMORY_APERTURE_VIOLATION|MEMORY_FAULT|EXCEPTION)\b",
        MemoryFault,
        General,
    ),
    Row(
        r"\bHSA_STATUS_ERROR_(?:INVALID_ISA|ILLEGAL_INSTRUCTION|INCOMPATIBLE_ARGUMENTS|INVALID_CODE_OBJECT)\b",
        NoKernelImage,
        Specific,
    ),
    // the CUDA and HIP runtimes, as PyTorch prints them
    Row(
        r"(?i)\ban illegal memory access was encountered\b",
        MemoryFault,
        Specific,
    ),
    Row(
        r"\b(?:hip|cuda)ErrorIllegalAddress\b|\b(?:HIP|CUDA)_ERROR_ILLEGAL_ADDRESS\b",
        MemoryFault,
        Specific,
    ),
    Row(
        r"(?i)\b(?:HIP|CUDA) error: (?:misaligned address|device-side assert triggered|an illegal instruction was encountered|invalid address space|invalid program counter)",
        MemoryFault,
        General,
    ),
    Row(
        r"(?i)\b(?:HIP|CUDA)(?: runtime)? error:? (?:\d+ )?unspecified launch failure\b|\b(?:hip|cuda)ErrorLaunchFailure\b|\b(?:HIP|CUDA)_ERROR_LAUNCH_FAILED\b",
        MemoryFault,
        Aftermath,
    ),
    Row(
        r"(?i)\b(?:the )?GPU (?:is lost|has fallen off the bus)\b|\bUnable to determine the device handle for GPU\b",
        GpuReset,
        Root,
    ),
    Row(
        r"(?i)\b(?:HIP|CUDA) error: (?:the launch timed out and was terminated|uncorrectable ECC error encountered|device (?:was )?reset|the operation cannot be performed because the device was reset)",
        GpuReset,
        Specific,
    ),
    Row(
        r"\b(?:hip|cuda)Error(?:ECCUncorrectable|ECCNotCorrectable|LaunchTimeout)\b|\bcudaErrorDevicesUnavailable\b.{0,40}\breset\b",
        GpuReset,
        Specific,
    ),
    // no code for this architecture
    Row(
        r"(?i)\b(?:HIP|CUDA|ROCm)(?: runtime)? error:? .{0,20}(?:invalid device function|no kernel image is available|device kernel image is invalid|invalid kernel file|the provided PTX was compiled with an unsupported toolchain|no binary for gpu|shared object (?:initialization|symbol not found))",
        NoKernelImage,
        Specific,
    ),
    // bitsandbytes' own library, which ends the process without a traceback
    Row(
        r"(?i)^\W{0,4}Error:? (?:invalid device function|no kernel image is available.{0,40}|device kernel image is invalid|invalid kernel file) at line \d+ in file \S+",
        NoKernelImage,
        Specific,
    ),
    Row(
        r"(?i)\bno kernel image is available for execution on the device\b",
        NoKernelImage,
        Specific,
    ),
    Row(
        r"\b(?:hip|cuda)Error(?:NoBinaryForGpu|InvalidDeviceFunction|NoKernelImageForDevice|InvalidImage|InvalidKernelFile|SharedObjectInitFailed)\b|\b(?:HIP|CUDA)_ERROR_(?:NO_BINARY_FOR_GPU|INVALID_IMAGE|UNSUPPORTED_PTX_VERSION)\b",
        NoKernelImage,
        Specific,
    ),
    Row(
        r"(?i)\bUnable to find code object for all current devices\b",
        NoKernelImage,
        Specific,
    ),
    Row(
        r"(?i)\b(?:roc|hip)blas(?:lt)? error: (?:Cannot read|Could not (?:load|initialize))\b",
        NoKernelImage,
        Root,
    ),
    Row(
        r"(?i)\b(?:cannot|could not|unable to|failed to)\b.{0,200}\bTensileLibrary\w*",
        NoKernelImage,
        Root,
    ),
    Row(
        r"(?i)\bNo such file or directory for GPU arch ?: ?gfx\w+|\bTensile library\b.{0,60}\b(?:not found|missing)",
        NoKernelImage,
        Root,
    ),
    Row(
        r"(?i)\b(?:FATAL: )?kernel `?\w+`? (?:from .{0,40} )?(?:is|was) built for sm\d|\bis for sm\d+-sm\d+, but was built for sm\d+",
        NoKernelImage,
        Specific,
    ),
    Row(
        r"(?i)\b(?:gfx\d\w+|sm_\d+)\b.{0,60}\b(?:is not compatible with the current PyTorch installation|is not supported by this (?:build|version))",
        NoKernelImage,
        General,
    ),
    // permission
    Row(
        r"(?i)/dev/(?:kfd|dri/(?:renderD|card)\d+)\b.{0,60}\b(?:permission denied|operation not permitted|not accessible|EACCES)",
        PermissionKfd,
        Root,
    ),
    Row(
        r"(?i)\b(?:permission denied|operation not permitted|cannot open|no (?:access|permission))\b.{0,60}/dev/(?:kfd|dri/(?:renderD|card)\d+)",
        PermissionKfd,
        Root,
    ),
    Row(
        r"(?i)\bis not (?:a )?(?:member of|in) (?:the )?[`'\x22]?(?:render|video)[`'\x22]? group\b",
        PermissionKfd,
        Root,
    ),
    // no device
    Row(
        r"(?i)/dev/kfd\b.{0,40}\b(?:no such (?:file|device)|cannot allocate memory|does not exist)",
        GpuUnavailable,
        Root,
    ),
    Row(
        r"(?i)\bno (?:HIP|CUDA|ROCm)(?:[- ]capable)? ?(?:GPUs?|devices?) (?:are |is |was |were )?(?:available|detected|found)",
        GpuUnavailable,
        General,
    ),
    Row(r"(?i)\bFound no NVIDIA driver\b", GpuUnavailable, Specific),
    Row(
        r"(?i)\bdriver\W{1,3}library version mismatch\b|\bAPI mismatch: the (?:client|NVIDIA kernel module) (?:has|version)",
        GpuUnavailable,
        Specific,
    ),
    Row(
        r"(?i)\bCUDA driver version is insufficient for CUDA runtime version\b|\bThe NVIDIA driver on your system is too old\b|\bsystem has unsupported display driver\b|\bforward compatibility was attempted on non supported HW\b",
        GpuUnavailable,
        Specific,
    ),
    Row(
        r"\b(?:hip|cuda)Error(?:NoDevice|InsufficientDriver|SystemDriverMismatch|CompatNotSupportedOnDevice|SystemNotReady|NotInitialized|InvalidDevice|DevicesUnavailable)\b|\b(?:HIP|CUDA)_ERROR_(?:NO_DEVICE|NOT_INITIALIZED|SYSTEM_DRIVER_MISMATCH)\b",
        GpuUnavailable,
        General,
    ),
    Row(
        r"(?i)\b(?:HIP|CUDA) error: (?:invalid device ordinal|no (?:ROCm|CUDA)-capable device|initialization error|all (?:HIP|CUDA)-capable devices are busy or unavailable|system not yet initialized|(?:HIP|CUDA)-capable device\(s\) is/are busy|unknown error)",
        GpuUnavailable,
        General,
    ),
    Row(
        r"(?i)\b(?:CUDA|HIP) (?:initialization: )?(?:CUDA|HIP)? ?unknown error\b|\bCUDA initialization: (?:unexpected error|CUDA driver initialization failed)",
        GpuUnavailable,
        General,
    ),
    Row(
        r"(?i)\bUnexpected error from (?:cuda|hip)GetDeviceCount\b|\b(?:cu|hip)Init(?:\(\))? failed\b",
        GpuUnavailable,
        General,
    ),
    Row(
        r"(?i)\btorch\.cuda\.is_available\(\) (?:is|returned|returns|==) ?False\b",
        GpuUnavailable,
        General,
    ),
    Row(
        r"(?i)\b(?:hsa_init|hsaKmtOpenKFD|rocm_smi_init)\w*(?:\(\))? (?:failed|returned)|\bROCk module is NOT loaded\b|\bNVIDIA-SMI has failed\b|\bHSA_STATUS_ERROR_NOT_INITIALIZED\b",
        GpuUnavailable,
        General,
    ),
    // a torch without any GPU code
    Row(
        r"(?i)\bTorch not compiled with (?:CUDA|ROCm|HIP|XPU) enabled\b",
        CpuFallback,
        Specific,
    ),
    Row(
        r"(?i)\bcannot initialize (?:CUDA|HIP) without ATen_(?:cuda|hip) library\b",
        CpuFallback,
        Specific,
    ),
];
