"""ComfyUI: prompts as jobs, its phases, its memory policy, tiles.

Names are those of 0.3; older and newer versions lack some, which costs only what hangs on them.
"""
import functools
import time

from . import memory, phases, stacks, vae
from .hooks import around, fenced, on, wrap
from .memory import problem, setting
from .state import fix, state
from .wire import said

#: Some of ComfyUI's bars move thousands of times a second; so many seconds lie between two messages.
BETWEEN_S = 0.1
_told = memory.Once()
_shown = 0.0


@on("execution")
def prompts(module):
    """A prompt is a job. The executor catches what its nodes raise and keeps it in its messages."""
    executor = getattr(module, "PromptExecutor", None)
    if executor is None:  # another program's module of that name
        return
    plain = executor.execute

    @functools.wraps(plain)
    def execute(self, prompt, prompt_id=None, *args, **kwargs):
        phases.serving()
        with phases.Job(said(prompt_id) if prompt_id is not None else "prompt", rest="idle") as job:
            result = plain(self, prompt, prompt_id, *args, **kwargs)
            job.failed = fenced("execute", outcome, self)
            return result

    executor.execute = execute
    queue = getattr(module, "PromptQueue", None)
    if queue is not None:
        around(queue, "get", before=lambda args, kwargs: phases.serving())


def outcome(executor):
    """The error of a prompt from the executor's messages; None where it went well."""
    for event, data in reversed(getattr(executor, "status_messages", None) or []):
        if event == "execution_error":
            return "%s: %s" % (data.get("exception_type"), str(data.get("exception_message")).strip()[:1500])
        if event == "execution_interrupted":
            return "KeyboardInterrupt: interrupted by the user"
        if event == "execution_success":
            return None
    return None if getattr(executor, "success", True) else "failed"


@on("comfy.samplers")
def samplers(module):
    """Sampling, by the nodes' common way and by the guiders'."""
    around(module, "sample", "sampling")
    for name in ("CFGGuider", "KSampler"):
        owner = getattr(module, name, None)
        if isinstance(owner, type):
            around(owner, "sample", "sampling")


@on("comfy.utils")
def utilities(module):
    """Every loader's way to read a file, and the bars that the page shows: tqdm's may be off, and not all have one."""
    around(module, "load_torch_file", "model_load")
    bar = getattr(module, "ProgressBar", None)
    if isinstance(bar, type):
        wrap(bar, "update_absolute", stepping)


def stepping(plain):
    """A step of a bar, at which the user's wish to stop is heard."""

    def update_absolute(self, *args, **kwargs):
        result = plain(self, *args, **kwargs)
        fenced("ProgressBar.update_absolute", shown, self)
        stacks.step()
        return result

    return update_absolute


def shown(bar):
    """Tells the bar's state, as often as tqdm would, and at its end."""
    from . import progress  # which waits for tqdm

    global _shown
    now = time.monotonic()
    if now - _shown >= BETWEEN_S or bar.current >= bar.total:
        _shown = now
        progress.moved(bar.current, bar.total, bar=id(bar), last=bar.current >= bar.total)


@on("comfy.model_management")
def management(module):
    """Loads and unloads, and what the module believes to be free."""
    own = getattr(module, "InterruptProcessingException", None)
    if isinstance(own, type) and issubclass(own, BaseException):
        stacks.ending = own
    plain = module.load_models_gpu

    @functools.wraps(plain)
    def load_models_gpu(models, *args, **kwargs):
        # it is called before every use: a phase only where there is something to load
        missing = fenced("load_models_gpu", absent, module, models)
        if not missing:
            return plain(models, *args, **kwargs)
        with state.span("model_load", model=missing):
            return plain(models, *args, **kwargs)

    module.load_models_gpu = load_models_gpu
    around(module, "unload_all_models", "offload")
    if memory.capped() and hasattr(module, "get_free_memory"):
        module.get_free_memory = bounded(module.get_free_memory, module)
    size = memory.preserved()
    if size is not None and hasattr(module, "minimum_inference_memory"):
        module.minimum_inference_memory = preserving(module.minimum_inference_memory, size)
    if memory.vae_device() == "cpu":
        module.vae_device = placed(module.vae_device, module)
    dtype = setting("vae_dtype", "word", vae.DTYPES)
    if dtype is not None:
        module.vae_dtype = typed(module.vae_dtype, module, dtype)
    if setting("pinned_memory", "flag") is False and hasattr(module, "pin_memory"):
        module.pin_memory = lambda *args, **kwargs: False


def absent(module, models):
    """The class of the first model that is not on the card yet; None where all are."""
    there = [getattr(one, "model", None) for one in module.current_loaded_models]
    for patcher in models:
        if not any(one is patcher for one in there):
            return type(getattr(patcher, "model", patcher)).__name__
    return None


def bounded(plain, module):
    """Free memory that knows the cap."""

    @functools.wraps(plain)
    def get_free_memory(dev=None, *args, **kwargs):
        result = plain(dev, *args, **kwargs)
        over = fenced("get_free_memory", lambda: memory.excess(module.get_torch_device() if dev is None else dev))
        if not over:
            return result
        if isinstance(result, tuple):
            return (max(0, result[0] - over),) + tuple(result[1:])
        return max(0, result - over)

    return get_free_memory


def preserving(plain, size):
    """The memory kept free for inference."""

    @functools.wraps(plain)
    def minimum_inference_memory(*args, **kwargs):
        own = plain(*args, **kwargs)
        value = own + size[0] if size[1] else size[0]
        if _told.first(plain, "preserved"):
            fix("preserved_memory", asked_gib=round(own / memory.GIB, 3), gib=round(value / memory.GIB, 3))
        return value

    return minimum_inference_memory


def placed(plain, module):
    """VAEs that are made from now on run on the CPU."""

    @functools.wraps(plain)
    def vae_device(*args, **kwargs):
        if _told.first(plain, "device"):
            fix("vae_device", value="cpu")
        return module.torch.device("cpu")

    return vae_device


def typed(plain, module, name):
    """VAEs that are made from now on have this precision."""

    @functools.wraps(plain)
    def vae_dtype(device=None, allowed_dtypes=(), *args, **kwargs):
        dtype = getattr(module.torch, name)
        if allowed_dtypes and dtype not in allowed_dtypes:
            problem("vae_dtype = %s: this VAE works with %s only" % (
                name, ", ".join(str(one).replace("torch.", "") for one in allowed_dtypes)))
            return plain(device, allowed_dtypes, *args, **kwargs)
        if _told.first(plain, "dtype"):
            fix("vae_dtype", value=name)
        return dtype

    return vae_dtype


@on("comfy.sd")
def models(module):
    """VAE and text encoders."""
    owner = module.VAE
    plain, tiled = owner.decode, owner.decode_tiled

    @functools.wraps(plain)
    def decode(self, *args, **kwargs):
        fenced("full_unload", unload, self)
        memory.stage()
        samples = args[0] if args else kwargs.get("samples_in", kwargs.get("samples"))
        special = len(args) > 1 or kwargs.get("vae_options")
        tiles = None if special else fenced("VAE.decode", tile_arguments, self, samples)
        try:
            with state.span("vae_decode", **(fenced("VAE.decode", facts, self, samples) or {})):
                if tiles is not None:
                    return tiled(self, samples, **tiles)
                return plain(self, *args, **kwargs)
        finally:
            memory.stage()

    owner.decode = decode
    around(owner, "decode_tiled", "vae_decode", before=first_unload, describe=described)
    around(owner, "encode", "vae_encode", describe=described)
    around(owner, "encode_tiled", "vae_encode", describe=described)
    clip = getattr(module, "CLIP", None)
    if isinstance(clip, type):
        for name in ("encode_from_tokens", "encode_from_tokens_scheduled"):
            if name in clip.__dict__:
                around(clip, name, "text_encode", after=memory.stage)
    for name in ("load_checkpoint_guess_config", "load_diffusion_model", "load_clip"):
        if hasattr(module, name):
            around(module, name, "model_load")


def first_unload(args, _kwargs):
    """`full_unload` for the tiled node."""
    unload(args[0])


def facts(owner, samples):
    """Fields of the phase."""
    size = phases.shape(samples)
    told = {"model": type(getattr(owner, "first_stage_model", owner)).__name__}
    if size:
        told["shape"] = size
    return told


def described(args, kwargs):
    """The same, for `hooks.around`."""
    return facts(args[0], args[1] if len(args) > 1 else next(iter(kwargs.values()), None))


def tile_arguments(owner, samples):
    """The arguments of `decode_tiled` for the settings; None where the decode stays whole."""
    tile = setting("vae_tile", "whole")
    chunk = setting("vae_chunk", "whole")
    dims = getattr(samples, "ndim", 0)
    if (tile is None and chunk is None) or dims not in (4, 5) or getattr(samples, "is_nested", False):
        return None
    if getattr(owner, "latent_dim", dims - 2) != dims - 2 or getattr(owner, "extra_1d_channel", None) is not None:
        return None
    ratio = owner.spacial_compression_decode() if hasattr(owner, "spacial_compression_decode") else 8
    height, width = samples.shape[-2:]
    # no tile asked for: chunks of time only, each as large as the picture
    # a picture is made with tiles of half the width as well: never below two, nor overlapping by more than a
    # quarter, or those would not advance
    size = max(2, tile // ratio) if tile is not None else max(height, width)
    asked = setting("vae_overlap", "whole", 0)
    overlap = size // 4 if asked is None else min(asked // ratio, size // 4)
    told = {"tile_x": size, "tile_y": size, "overlap": overlap}
    whole = height <= size and width <= size
    if dims == 5 and chunk is not None:
        # tiles of time must overlap, so one frame at a time becomes two
        told["tile_t"] = max(2, chunk)
        told["overlap_t"] = max(1, told["tile_t"] // 4)
        whole = whole and samples.shape[2] <= told["tile_t"]
    if whole or not accepted(owner, told):
        return None
    if _told.first(owner, "tiles"):
        fix("vae_tile", model=facts(owner, None)["model"], tile=size * ratio, overlap=overlap * ratio,
            frames=told.get("tile_t"))
    return told


def accepted(owner, told):
    """Whether this version's `decode_tiled` has such arguments; drops those of time where it has none."""
    names = vae.parameters(type(owner).decode_tiled)
    if "tile_x" not in names or "overlap" not in names:
        problem("vae_tile: this version's VAE.decode_tiled takes no sizes")
        return False
    if "tile_t" in told and "tile_t" not in names:
        problem("vae_chunk: this version's VAE.decode_tiled knows no tiles of time")
        del told["tile_t"], told["overlap_t"]
    return True


def unload(owner):
    """`full_unload`: every model but the VAE leaves the card."""
    if not memory.full_unload():
        return
    import sys

    module = sys.modules.get("comfy.model_management")
    if module is None:
        return
    patcher = getattr(owner, "patcher", None)
    keep = [one for one in module.current_loaded_models if getattr(one, "model", None) is patcher]
    if len(keep) == len(module.current_loaded_models):
        return
    device = module.get_torch_device()
    with state.span("offload"):
        module.free_memory(1e30, device, keep)
        if hasattr(module, "soft_empty_cache"):
            module.soft_empty_cache()
    if _told.first(owner, "full_unload"):
        fix("full_unload", kept=len(keep))
