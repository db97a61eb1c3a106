"""Errors as programs print them while they handle them themselves."""

TEXTS = {
    "oom": "HIP out of memory. Tried to allocate 9.46 GiB. GPU 0 has a total capacity of 23.98 GiB of which 2.10 GiB is free. "
           "Of the allocated memory 18.20 GiB is allocated by PyTorch, and 2.95 GiB is reserved by PyTorch but unallocated.",
    "miopen": "miopenStatusUnknownError",
    "dtype": "Input type (c10::Half) and bias type (float) should be the same",
    "dev": "HIP error: invalid device function\nHIP kernel errors might be asynchronously reported at some other API call, "
           "so the stacktrace below might be incorrect.",
    "hipblas": "CUDA error: HIPBLAS_STATUS_UNKNOWN_ERROR when calling `hipblasLtMatmul`",
    "flash": "No module named 'flash_attn'",
}


def raise_and_handle(kind, then):
    """Prints the traceback of this error, and what the program does about it."""
    import traceback

    import torch
    try:
        if kind == "flash":
            import flash_attn  # noqa: F401
        if kind == "oom":
            raise torch.OutOfMemoryError(TEXTS[kind])
        raise RuntimeError(TEXTS[kind])
    except Exception:  # noqa: BLE001 - as the programs do it
        traceback.print_exc()
        print(then, flush=True)
