"""The VAE's settings on diffusers' autoencoders: tiles, slices, chunks of time, precision, device.

Every class has its own names for tiles; they are looked up in its own `enable_tiling` and attributes at run time.
What a class cannot follow is said as a `problem` with class and setting.
"""
import weakref

from . import memory
from .config import config
from .memory import problem, setting
from .state import fix

DTYPES = ("float32", "float16", "bfloat16")
_done = weakref.WeakSet()


def wanted():
    """True where any of the VAE's settings is set."""
    return any(config.text(name) is not None for name in (
        "vae_tile", "vae_overlap", "vae_chunk", "vae_slicing", "vae_dtype", "vae_device"))


def spatial(vae):
    """Pixels of one latent, in one direction."""
    ratio = getattr(vae, "spatial_compression_ratio", None)
    if isinstance(ratio, int) and ratio > 0:
        return ratio
    blocks = getattr(getattr(vae, "config", None), "block_out_channels", None)
    return 2 ** (len(blocks) - 1) if blocks else 8


def temporal(vae):
    """Frames of one latent frame."""
    ratio = getattr(vae, "temporal_compression_ratio", None)
    return ratio if isinstance(ratio, int) and ratio > 0 else 4


def parameters(function):
    """The names of a method's parameters without self."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount] if code is not None else ()


def prepare(vae):
    """Carries tiles, slices and chunks out on a VAE, once for each."""
    if vae in _done:
        return
    _done.add(vae)
    name = type(vae).__name__
    tile = setting("vae_tile", "whole")
    overlap = setting("vae_overlap", "whole", 0)
    if tile is not None:
        tiling(vae, name, tile, overlap)
    elif overlap is not None:
        problem("vae_overlap = %d: needs vae_tile" % overlap)
    chunk = setting("vae_chunk", "whole")
    if chunk is not None:
        chunking(vae, name, chunk)
    slices = setting("vae_slicing", "flag")
    if slices is not None:
        slicing(vae, name, slices)


def tiling(vae, name, tile, overlap):
    """Tiles of `tile` pixels that overlap by `overlap` (a quarter where it is not told)."""
    ratio = spatial(vae)
    size = max(ratio, tile // ratio * ratio)
    shared = size // 4 if overlap is None else min(overlap, size - ratio)
    stride = max(ratio, (size - shared) // ratio * ratio)
    shared = size - stride
    values = {"tile_overlap_factor": shared / size, "tile_sample_min_size": size}
    for side in ("height", "width"):
        values["tile_sample_min_" + side] = size
        values["tile_sample_stride_" + side] = stride
        values["tile_latent_min_" + side] = size // ratio
        values["tile_overlap_factor_" + side] = shared / size
        values["tile_sample_min_overlap_" + side] = shared
    enable = getattr(type(vae), "enable_tiling", None)
    names = parameters(enable)
    known = {key: values[key] for key in names if key in values}
    try:
        if not callable(enable):
            raise NotImplementedError
        vae.enable_tiling(**known)
        if not known:
            known = by_attributes(vae, values, size // ratio)
    except NotImplementedError:
        known = None
    if not known:
        problem("vae_tile = %d: %s has no tiles" % (tile, name))
        return
    fix("vae_tile", model=name, tile=size, overlap=shared)


def by_attributes(vae, values, latent):
    """For classes whose `enable_tiling` takes no sizes: those that they keep as attributes. None: they keep none."""
    if not hasattr(vae, "tile_sample_min_size") or not hasattr(vae, "tile_latent_min_size"):
        vae.use_tiling = False
        return None
    vae.tile_sample_min_size = values["tile_sample_min_size"]
    vae.tile_latent_min_size = latent
    if hasattr(vae, "tile_overlap_factor"):
        vae.tile_overlap_factor = values["tile_overlap_factor"]
    return values


def chunking(vae, name, chunk):
    """`chunk` latent frames at a time."""
    if hasattr(vae, "tile_sample_min_num_frames"):
        ratio = temporal(vae)
        vae.tile_sample_min_num_frames = chunk * ratio
        if hasattr(vae, "tile_sample_stride_num_frames"):
            vae.tile_sample_stride_num_frames = max(1, chunk * 3 // 4) * ratio
        if hasattr(vae, "use_framewise_decoding"):
            vae.use_framewise_decoding = True
    elif hasattr(vae, "num_latent_frames_batch_size"):
        vae.num_latent_frames_batch_size = chunk
        if hasattr(vae, "use_framewise_decoding"):
            vae.use_framewise_decoding = True
    else:
        problem("vae_chunk = %d: %s has no such setting" % (chunk, name))
        return
    fix("vae_chunk", model=name, frames=chunk)


def slicing(vae, name, on):
    """One image or clip of a batch at a time."""
    switch = getattr(vae, "enable_slicing" if on else "disable_slicing", None)
    try:
        if switch is None:
            raise NotImplementedError
        switch()
    except NotImplementedError:
        problem("vae_slicing = %s: %s has no slices" % ("true" if on else "false", name))
        return
    fix("vae_slicing", model=name, on=on)


class Moved:
    """A VAE during one call with the precision and device of the settings.

    `latents` carries them to it, `carried` what came out to where they were. The precision stays (the program
    asks for it and casts its next latents itself); under model CPU offload the device is the
    CPU for this call only, since the pipeline asks the VAE's hook where it computes.
    """

    def __init__(self, vae):
        self.vae, self.hook, self.device = vae, None, None

    def __enter__(self):
        vae = self.vae
        torch = memory.torch_or_none()
        first = next(iter(vae.parameters()), None)
        if torch is None or first is None:
            return self
        to_cpu = memory.vae_device() == "cpu"
        dtype = setting("vae_dtype", "word", DTYPES)
        if dtype is None and to_cpu and first.dtype == torch.float16:
            dtype = "float32"  # half precision on a CPU is slow where it works at all
        name = type(vae).__name__
        if to_cpu and first.device.type != "cpu" and not self._may_move(name):
            to_cpu = False
        change = {}
        if dtype is not None and first.dtype != getattr(torch, dtype):
            change["dtype"] = getattr(torch, dtype)
        if to_cpu and first.device.type != "cpu":
            change["device"] = torch.device("cpu")
        if to_cpu and self.hook is not None:
            self.device, self.hook.execution_device = self.hook.execution_device, torch.device("cpu")
        if change:
            vae.to(**change)
            for key in change:
                if memory._told.first(vae, key):
                    fix("vae_" + key, model=name, value=str(change[key]).replace("torch.", ""))
        return self

    def _may_move(self, name):
        """False where hooks keep the VAE's parts in motion themselves."""
        hook = getattr(self.vae, "_hf_hook", None)
        if hook is None:
            return getattr(self.vae, "hf_device_map", None) is None
        if type(hook).__name__ == "CpuOffload":
            self.hook = hook
            return True
        problem("vae_device = cpu: %s is moved by another hook (%s)" % (name, type(hook).__name__))
        return False

    def latents(self, value):
        """A tensor as the VAE now wants it."""
        first = next(iter(self.vae.parameters()), None)
        if first is None or not hasattr(value, "to") or not value.is_floating_point():
            return value
        if self.hook is None and getattr(self.vae, "_hf_hook", None) is not None:
            return value.to(dtype=first.dtype)
        return value.to(device=first.device, dtype=first.dtype)

    def __exit__(self, kind, error, trace):
        if self.hook is not None and self.device is not None:
            self.hook.execution_device = self.device
        return False


def carried(value, device):
    """Tensors of a tuple, of an output object, or of its distribution, on another device. In place for objects."""
    if hasattr(value, "is_floating_point"):
        return value.to(device) if value.device != device else value
    if type(value) is tuple:
        return tuple(carried(one, device) for one in value)
    for name in ("sample", "latent_dist", "latents"):
        part = getattr(value, name, None)
        if part is not None and not callable(part):
            setattr(value, name, carried(part, device))
    given = getattr(value, "parameters", None)
    if hasattr(given, "is_floating_point") and given.device != device:
        return type(value)(given.to(device), deterministic=getattr(value, "deterministic", False))
    return value
