"""Rescue vault: the latents are on the disk before each decode begins.

The tensor is copied to the CPU in the caller's thread. On a GPU that waits for the sampling to end, which the decode,
the next on the same stream, would do as well. Writing is the work of the store's thread.
"""
import itertools
import json
import threading
import time

from . import plainly, safetensors, store as files
from .config import config
from .hooks import on, wrap
from .state import state, torch

#: Version of the entries' metadata; docs/agent.md, *The vault*.
VERSION = "1"
#: Decoders for previews and for pictures of a moment are not worth a file.
PREVIEWS = ("AutoencoderTiny",)
#: Decodes that follow each other faster are not made to wait for the disk: what one of them could lose is so little.
RARE_S = 0.2
_inside = threading.local()
#: Class of a decoder -> when its last decode began.
_began = {}
_numbers = itertools.count(1)
_swept = False


def copied(tensor):
    """The tensor on the CPU, contiguous, and the program's hands off it."""
    plain = tensor.detach()
    plain = plain.cpu() if plain.device.type != "cpu" else plain.clone()
    return plain.contiguous()


def strides_of(tensor):
    """The strides of a tensor that is not contiguous, where each value has a place of its own and few places are unused;
    None."""
    expected = 1
    if tensor.is_contiguous() or not tensor.numel():
        return None
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1:
            if stride < expected:
                return None
            expected = stride * size
    return list(tensor.stride()) if expected <= 4 * tensor.numel() else None


def restorable(tensor):
    """`laid_out` gives it back as it lies: other kernels than those for its order could make other bits of it."""
    return tensor.is_contiguous() or not tensor.numel() or strides_of(tensor) is not None


def laid_out(tensor, metadata):
    """A tensor of an entry as it lay in the program: device and strides. Raises where there is no such device."""
    strides = json.loads(metadata["strides"]) if "strides" in metadata else tensor.stride()
    found = torch().empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=metadata["device"])
    return found.copy_(tensor)


def real(value):
    """The value is a tensor with data in it, not one of a tracer or on the meta device."""
    module = torch()
    if module is None or not isinstance(value, module.Tensor):
        return False
    return plainly.eager(value) and value.layout == module.strided


def task(name, tensors, metadata, shape, sync=True):
    """A file of the store with these CPU tensors; the digest of its data is taken in the writer's thread."""
    parts = [safetensors.data_of(tensor) for tensor in tensors.values()]
    about = {n: (safetensors.name_of(t.dtype), t.shape, len(part)) for (n, t), part in zip(tensors.items(), parts)}

    def finish(parts):
        head = safetensors.header_of(about, dict(metadata, sha256=files.sha256(parts)))
        return [head] + list(parts)

    return files.Task(name, parts, list(tensors.values()), shape, sync, finish)


def common(tensor):
    """Metadata that every entry has."""
    found = {
        "format": "framepack-tui", "version": VERSION, "program": program(), "run": config.run, "attempt": config.attempt,
        "section": state.section, "sections": state.sections, "time": round(time.time(), 3),
        "dtype": str(tensor.dtype).replace("torch.", ""), "shape": json.dumps(list(tensor.shape)), "device": str(tensor.device),
    }
    strides = strides_of(tensor)
    if strides is not None:
        found["strides"] = json.dumps(strides)
    return {k: v for k, v in found.items() if v is not None}


def program():
    """framepack, comfyui, or diffusers."""
    import sys

    if "diffusers_helper" in sys.modules:
        return "framepack"
    return "comfyui" if "comfy.sd" in sys.modules else "diffusers"


def describe(vae):
    """Metadata about a decoder: class, configuration, where it came from."""
    inner = getattr(vae, "first_stage_model", vae)  # ComfyUI's VAE holds the model
    found = {"vae_class": "%s.%s" % (type(inner).__module__, type(inner).__qualname__)}
    about = getattr(inner, "config", None)
    if not hasattr(about, "keys"):  # a program's own class may hold anything there
        about = None
    if about is not None:
        settings = {k: v for k, v in dict(about).items() if not str(k).startswith("_")}
        found["vae_config"] = json.dumps(settings, default=str, sort_keys=True)
        origin = getattr(about, "_name_or_path", None) or dict(about).get("_name_or_path")
        if origin:
            found["vae_path"] = str(origin)
    for name in ("scaling_factor", "shift_factor"):
        value = getattr(about, name, None) if about is not None else None
        if value is not None:
            found[name] = value
    return found


def save(latents, vae, scaled, more=None):
    """Queues the latents and gives the writer its moment. `scaled`: True where the decoder's own space has been
    reached already (divided by scaling_factor), False where that is still to be done, None where it cannot be told.
    `more`: further metadata. The name of the entry, or None."""
    global _swept
    if files.store is None or not real(latents):
        return None
    store = files.store
    if not _swept:
        _swept = True
        store.sweep()
    tensor = copied(latents)
    metadata = dict(common(latents), **describe(vae))
    metadata.update(more or {})
    if scaled is not None:
        metadata["scaling_applied"] = "true" if scaled else "false"
    if latents.dim() == 5:
        metadata["latent_frames"] = latents.shape[2]
    if metadata["program"] == "framepack":
        metadata["fps"] = 30
    if config.flag("vault_prompt") and state.prompt:
        metadata["prompt"] = state.prompt
    # taken in one step: a handler of the program's that decodes here gets a file of its own
    number = next(_numbers)
    name = "latents.%s.%s-%d-%03d.safetensors" % (store.run, files.plain(config.attempt), files.os.getpid(), number)
    job = task(name, {"latents": tensor}, metadata, tensor.shape)
    job.presses = rare(type(vae))
    if not store.put(job):
        return None
    if job.presses:
        store.grace(job)
    return name


def rare(kind):
    """The decode is worth a wait for the disk: the first of this class of decoder, or one that comes `RARE_S` or more after
    the one before. (How long that took cannot be told on a GPU, where the call returns before the work is done.)"""
    now, last = time.monotonic(), _began.get(kind)
    _began[kind] = now
    return last is None or now - last >= RARE_S


class Outermost:
    """Context manager around a decode of this thread; its value is True for the outermost, whose latents are saved."""

    def __enter__(self):
        self.first = not getattr(_inside, "on", False)
        _inside.on = True
        return self.first

    def __exit__(self, kind, error, trace):
        if self.first:
            _inside.on = False
        return False


def outermost(where, before):
    """For `hooks.wrap`: `before(args, kwargs)` ahead of the outermost call of all that are so wrapped."""
    compiling = plainly.compiling()

    def make(plain):
        def wrapper(*args, **kwargs):
            if compiling() or getattr(_inside, "on", False) or not plainly.eager():
                return plain(*args, **kwargs)
            with Outermost():
                plainly.apart(where, before, args, kwargs)
                return plain(*args, **kwargs)

        return wrapper

    return make


def argument(args, kwargs, at, *names):
    """The argument at this place or with one of these names; None."""
    if len(args) > at:
        return args[at]
    for name in names:
        if name in kwargs:
            return kwargs[name]
    return None


def autoencoders(module):
    """Each decoder of diffusers, whoever calls it."""
    for name, kind in list(vars(module).items()):
        if isinstance(kind, type) and kind.__module__ == module.__name__ and name.startswith("Autoencoder") and name not in PREVIEWS:
            wrap(kind, "decode", outermost(name + ".decode", lambda args, kwargs: save(
                argument(args, kwargs, 1, "z", "latents"), args[0], True)))


def framepack(module):
    """FramePack's own decode takes latents that are not divided yet."""
    wrap(module, "vae_decode", outermost("vae_decode", lambda args, kwargs: save(
        argument(args, kwargs, 0, "latents"), argument(args, kwargs, 1, "vae"), False)))


def comfyui(module):
    """ComfyUI's two ways to decode; its latents are in the decoder's own space by then."""
    for name in ("decode", "decode_tiled"):
        wrap(module.VAE, name, outermost("VAE." + name, lambda args, kwargs: save(
            argument(args, kwargs, 1, "samples_in", "samples"), args[0], True)))


if files.store is not None:
    on("diffusers.models.autoencoders.*")(autoencoders)
    on("diffusers_helper.hunyuan")(framepack)
    on("comfy.sd")(comfyui)
