"""FramePack: its helper modules, one generation as a job, its memory policy."""
import functools
import itertools
import sys

from . import memory, phases
from .hooks import around, fenced, on, wrap
from .state import fix, state

GIB = float(1 << 30)
_numbers = itertools.count(1)
_told = memory.Once()


@on("diffusers_helper.thread_utils")
def worker(module):
    """Each function that is handed to the worker thread is one generation."""

    def make(plain):
        def async_run(func, *args, **kwargs):
            return plain(fenced("async_run", as_job, func) or func, *args, **kwargs)

        return async_run

    wrap(module, "async_run", make)


def as_job(func):
    """The function with messages `job` around it."""

    @functools.wraps(func)
    def run(*args, **kwargs):
        with phases.Job("framepack-%d" % next(_numbers), rest="done") as job:
            told = fenced("async_run", inputs, func, args, kwargs) or {}
            job.sections = fenced("async_run", sections, told)
            state.section, state.sections = None, job.sections
            try:
                with Caught(job):
                    return func(*args, **kwargs)
            finally:
                state.section = state.sections = None

    return run


class Caught:
    """FramePack's worker catches what goes wrong, prints it and ends as if all were well: what it prints while
    the job runs in this thread is the job's error."""

    def __init__(self, job):
        self.job = job

    def __enter__(self):
        import threading
        import traceback

        job, thread, plain = self.job, threading.get_ident(), traceback.print_exc

        @functools.wraps(plain)
        def print_exc(*args, **kwargs):
            error = sys.exc_info()[1]
            if error is not None and threading.get_ident() == thread:
                job.failed = fenced("print_exc", phases.words, error)
            return plain(*args, **kwargs)

        self.module, self.plain, self.ours = traceback, plain, print_exc
        traceback.print_exc = print_exc

    def __exit__(self, kind, error, trace):
        if self.module.print_exc is self.ours:
            self.module.print_exc = self.plain
        return False


#: The inputs of FramePack's worker in their order; the class of a test or fork may hide their names.
INPUTS = ("input_image", "prompt", "n_prompt", "seed", "total_second_length", "latent_window_size", "steps", "cfg", "gs",
          "rs", "gpu_memory_preservation", "use_teacache", "mp4_crf")


def inputs(func, args, kwargs):
    """The worker's arguments by name."""
    code = getattr(func, "__code__", None) or getattr(getattr(func, "__func__", None), "__code__", None)
    names = list(code.co_varnames[: code.co_argcount]) if code is not None else []
    if names[:1] == ["self"]:
        names = names[1:]
    told = dict(zip(names, args), **kwargs)
    if "total_second_length" not in told and len(args) == len(INPUTS):
        told = dict(zip(INPUTS, args), **kwargs)
    return told


def sections(told):
    """How many sections a job has by its seconds and window; None where its inputs are others."""
    seconds, window = told.get("total_second_length"), told.get("latent_window_size")
    if seconds is None or not window:
        return None
    return int(max(round(float(seconds) * 30 / (float(window) * 4)), 1))


@on("diffusers_helper.pipelines.k_diffusion_hunyuan")
def sampler(module):
    """One call is one section."""

    def begins(args, kwargs):
        job = phases.job()
        if job is not None:
            job.section += 1
            state.section = job.section
        frames = phases.argument(args, kwargs, 7, "frames")
        more = phases.counted()
        if frames:
            more["detail"] = "%s frames" % frames
        return more

    around(module, "sample_hunyuan", "sampling", describe=begins)


@on("diffusers_helper.hunyuan")
def models(module):
    """Text encoders and VAE. The preview of each step (vae_decode_fake) is part of the sampling."""
    around(module, "encode_prompt_conds", "text_encode", after=memory.stage)
    around(module, "vae_encode", "vae_encode", describe=phases.described(0, "image"))
    around(module, "vae_decode", "vae_decode", before=memory.stage, after=memory.stage,
           describe=phases.described(0, "latents"))


@on("diffusers_helper.clip_vision")
def vision(module):
    """The image encoder."""
    around(module, "hf_clip_vision_encode", "text_encode", after=memory.stage)


@on("diffusers_helper.utils")
def files(module):
    """A section's file."""
    around(module, "save_bcthw_as_mp4", "save", describe=phases.described(0, "x"))


@on("diffusers_helper.memory")
def policy(module):
    """Which model is on the card, with the profile's settings."""
    if memory.capped():
        free = module.get_cuda_free_memory_gb

        @functools.wraps(free)
        def get_cuda_free_memory_gb(device=None):
            return free(device) - (fenced("get_cuda_free_memory_gb", excess, device) or 0.0)

        def excess(device):
            return memory.excess(module.gpu if device is None else device) / GIB

        module.get_cuda_free_memory_gb = get_cuda_free_memory_gb
    around(module, "load_model_as_complete", "model_load", before=load, describe=phases.named)
    around(module, "unload_complete_models", "offload", describe=phases.named)
    around(module, "move_model_to_device_with_memory_preservation", "model_load", before=preserve,
           describe=phases.named)
    around(module, "offload_model_from_device_for_memory_preservation", "offload", before=unload,
           describe=phases.named)


def with_third(args, kwargs, value):
    """The arguments with another preserved_memory_gb, the third of both functions."""
    kwargs = dict(kwargs, preserved_memory_gb=value)
    return args[:2], kwargs


def preserve(args, kwargs):
    """The move step with the profile's preserved memory."""
    size = memory.preserved()
    if size is None:
        return None
    asked = phases.argument(args, kwargs, 2, "preserved_memory_gb") or 0
    value = asked + size[0] / GIB if size[1] else size[0] / GIB
    if _told.first(args[0] if args else kwargs.get("model"), "preserved"):
        fix("preserved_memory", asked_gib=asked, gib=round(value, 3))
    return with_third(args, kwargs, value)


def unload(args, kwargs):
    """Before a decode: the whole transformer, not only until so much is free."""
    if not memory.full_unload():
        return None
    model = args[0] if args else kwargs.get("model")
    if _told.first(model, "unload"):
        fix("full_unload", model=type(model).__name__)
    return with_third(args, kwargs, float("inf"))


def load(args, kwargs):
    """A VAE that runs on the CPU is not carried to the card."""
    model = args[0] if args else kwargs.get("model")
    if memory.vae_device() != "cpu" or not type(model).__name__.startswith("AutoencoderKL"):
        return None
    torch = memory.torch_or_none()
    if torch is None:
        return None
    kwargs = dict(kwargs)
    if len(args) > 1:
        args = (args[0], torch.device("cpu")) + args[2:]
    else:
        kwargs["target_device"] = torch.device("cpu")
    return args, kwargs
