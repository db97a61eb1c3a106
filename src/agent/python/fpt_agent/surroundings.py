"""What a computation's result depends on besides its inputs and the model: torch's own switches, and diffusers' attention."""
import sys

from . import fingerprint

#: Kinds of devices whose autocast counts.
DEVICES = ("cpu", "cuda", "xpu", "mps")
#: Functions of torch, by path, that tell a switch. One that this torch does not have, or that fails, is told as that.
ASKED = (
    "get_default_dtype", "get_num_threads", "get_float32_matmul_precision", "are_deterministic_algorithms_enabled",
    "is_deterministic_algorithms_warn_only_enabled", "is_inference_mode_enabled", "is_grad_enabled", "is_autocast_cache_enabled",
    "backends.cuda.flash_sdp_enabled", "backends.cuda.math_sdp_enabled", "backends.cuda.mem_efficient_sdp_enabled",
    "backends.cuda.cudnn_sdp_enabled", "backends.cuda.fp16_bf16_reduction_math_sdp_allowed", "backends.cuda.preferred_linalg_library",
    "backends.cuda.preferred_blas_library", "backends.cuda.preferred_rocm_fa_library", "_C._get_sdp_priority_order",
)
#: Switches of torch that are attributes, by path.
READ = (
    "backends.fp32_precision", "backends.cuda.matmul.allow_tf32", "backends.cuda.matmul.fp32_precision",
    "backends.cuda.matmul.allow_fp16_reduced_precision_reduction", "backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "backends.cuda.matmul.allow_fp16_accumulation", "backends.cudnn.enabled", "backends.cudnn.allow_tf32", "backends.cudnn.benchmark",
    "backends.cudnn.deterministic", "backends.cudnn.fp32_precision", "backends.cudnn.conv.fp32_precision", "backends.mkldnn.enabled",
    "backends.mkldnn.deterministic", "backends.mkldnn.allow_tf32", "backends.mkldnn.fp32_precision",
    "backends.mkldnn.matmul.fp32_precision", "backends.mkldnn.conv.fp32_precision", "backends.opt_einsum.enabled",
    "backends.opt_einsum.strategy", "backends.quantized.engine", "utils.deterministic.fill_uninitialized_memory",
)


def key(module):
    """Digest of all of it."""
    return fingerprint.key_of([told(module, path, True) for path in ASKED], [told(module, path, False) for path in READ],
                              [autocast(module, kind) for kind in DEVICES], denormals(module), *elsewhere(module))


def told(module, path, asked):
    """A switch as text."""
    try:
        for name in path.split("."):
            module = getattr(module, name)
        return repr(module() if asked else module)
    except Exception as error:  # absent, or a mix of old and new settings that torch itself cannot tell
        return type(error).__name__


def autocast(module, kind):
    """The precision that autocast casts to on a kind of device; None."""
    try:
        return str(module.get_autocast_dtype(kind)) if module.is_autocast_enabled(kind) else None
    except (TypeError, AttributeError):  # an older torch
        if kind == "cpu":
            return str(module.get_autocast_cpu_dtype()) if module.is_autocast_cpu_enabled() else None
        return str(module.get_autocast_gpu_dtype()) if kind == "cuda" and module.is_autocast_enabled() else None
    except RuntimeError:  # no such device in this build
        return None


def denormals(module):
    """Whether the processor keeps numbers that are too small to be normal, which torch itself does not tell."""
    return bool((module.tensor([1e-310], dtype=module.float64) * 0.5).item())


def elsewhere(module):
    """The device of tensors that are made without one, functions that the program has put in the place of torch's, who answers
    for attention, and its backend in diffusers."""
    local = getattr(module, "_GLOBAL_DEVICE_CONTEXT", None)
    device = getattr(getattr(local, "device_context", None), "device", None)
    attention = module.nn.functional.scaled_dot_product_attention
    diffusers = sys.modules.get("diffusers.models.attention_dispatch")
    backend = getattr(getattr(diffusers, "_AttentionBackendRegistry", None), "_active_backend", None)
    return [str(device), fingerprint.patched(module.nn.functional), fingerprint.name_of(attention), str(backend)]
