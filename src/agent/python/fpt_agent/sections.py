"""FramePack's finished sections are kept, and handed back when the same job is made again after a restart.

The key of a section is the random generator's state and every input of the sampler. What is handed back is what was
sampled, bit for bit, and the generator is left as sampling had left it: what follows cannot tell the difference. That
holds on every device, as long as what comes before (text and image encoders, the start image's latent) gives the same
bytes again; where it does not, the key is another one and the section is sampled anew. A section that was not finished
is never stored.
"""
import json
import os
import random
import threading
import time

from . import fingerprint, plainly, safetensors, store as files, vault
from .config import config
from .hooks import on, wrap
from .loaded import loaded
from .state import link, state, torch

WHERE = "sample_hunyuan"


class Inside(threading.local):
    """Of each thread: whether FramePack's sampler runs in it, whose sections are kept as a whole."""

    sampler = False


inside = Inside()
#: Inputs that say how the result is told or stopped, not what it is.
TOLD = ("callback", "callback_on_step_end")


def replays():
    """Finished sections are handed back: `replay` says so, else where this attempt follows a dead one."""
    said = config.flag("replay")
    return config.resume if said is None else said


def generators(kwargs, module):
    """The program's own generators among the inputs, by name."""
    return {k: v for k, v in kwargs.items() if isinstance(v, module.Generator)}


def globals_now(module):
    """State of the global random sources: torch's on the CPU and on a card in use, Python's, numpy's where loaded."""
    found = {"torch": module.get_rng_state(), "python": random.getstate()}
    if module.cuda.is_initialized():
        found["cuda"] = module.cuda.get_rng_state()
    numpy = loaded("numpy", "__version__")  # its `random` comes when it is asked for
    if numpy is not None:
        kind, words, *rest = numpy.random.get_state()
        found["numpy"] = [kind, words.tolist()] + list(rest)
    return found


def same(a, b):
    """Two states of one source are equal."""
    return bool((a == b).all()) if hasattr(a, "all") else a == b


def moved(before, module):
    """States of those global sources that are others than before, as tensors by their names in an entry."""
    now, found = globals_now(module), {}
    for name in ("torch", "cuda"):
        if name in now and not (name in before and same(now[name], before[name])):
            found["global_" + name] = now[name]
    for name in ("python", "numpy"):
        if name in now and now[name] != before.get(name):
            # a tensor, as the digest is one of what is in tensors
            found["global_" + name] = module.frombuffer(bytearray(json.dumps(now[name]), "ascii"), dtype=module.uint8)
    return found


def put_back(tensors, metadata, module):
    """Sets those global sources that the sampler had used to what it left."""
    metadata = dict(metadata)
    for name in ("python", "numpy"):  # entries of older versions have them in the metadata
        if "global_" + name in tensors:
            metadata[name + "_random"] = bytes(tensors["global_" + name].tolist())
    if "global_torch" in tensors:
        module.set_rng_state(tensors["global_torch"])
    if "global_cuda" in tensors:
        module.cuda.set_rng_state(tensors["global_cuda"])
    if "python_random" in metadata:
        version, words, gauss = json.loads(metadata["python_random"])
        random.setstate((version, tuple(words), gauss))
    numpy = loaded("numpy", "__version__")  # its `random` comes when it is asked for
    if "numpy_random" in metadata and numpy is not None:
        kind, words, *rest = json.loads(metadata["numpy_random"])
        numpy.random.set_state((kind, numpy.array(words, dtype=numpy.uint32), *rest))


def written():
    """The global random sources as text by name; {} without torch."""
    module = torch()
    if module is None:
        return {}
    return {name: bytes(value.tolist()).hex() if name in ("torch", "cuda") else json.dumps(value)
            for name, value in globals_now(module).items()}


def read_back(told):
    """Sets the global random sources to what `written` gave, where this process has them too."""
    module = torch()
    if module is None:
        return
    tensors = {"global_" + name: module.tensor(list(bytes.fromhex(told[name])), dtype=module.uint8)
               for name in ("torch", "cuda") if name in told and (name == "torch" or module.cuda.is_initialized())}
    put_back(tensors, {name + "_random": told[name] for name in ("python", "numpy") if name in told}, module)


def entry(what, key):
    """(path, tensors, metadata) of the own run's entry with this key; None, also where it is damaged, which is told."""
    path = files.store.find(what, key[:40] + ".safetensors")
    if path is None:
        return None
    try:
        tensors, metadata = safetensors.read(path, torch(), sealed=True)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        files.store.fail({"what": what, "path": path}, "%s is not used: %s" % (os.path.basename(path), error))
        return None
    # two runs' names may be the same in a file's
    return (path, tensors, metadata) if (metadata.get("key"), metadata.get("run")) == (key, str(config.run)) else None


class Section:
    """One call of the sampler."""

    def __init__(self, args, kwargs):
        module = torch()
        self.kwargs = {k: v for k, v in kwargs.items() if k not in TOLD}
        self.own = generators(self.kwargs, module)
        self.before = globals_now(module)
        # without a generator of its own the sampler draws from torch's global one
        drawn = () if self.own else (self.before["torch"], self.before.get("cuda"))
        self.key = fingerprint.key_of(list(args), self.kwargs, list(drawn))

    def stored(self):
        """(result,) of this very section from the vault, the generators set to what they were after it; None."""
        module, began = torch(), time.monotonic()
        found = entry("section", self.key)
        if found is None:
            return None
        path, tensors, metadata = found
        result = vault.laid_out(tensors["latents"], metadata)  # raises, and is sampled anew, where there is no such device
        states = [(generator, tensors["generator_" + name]) for name, generator in self.own.items()]
        for generator, left in states:
            generator.set_state(left)
        put_back(tensors, metadata, module)
        link.send("vault", event="replayed", what="section", path=path, shape=list(result.shape),
                  bytes=result.numel() * result.element_size(), took_s=round(time.monotonic() - began, 3))
        return (result,)

    def keep(self, result):
        """Queues the section with the generators' states after it."""
        if not vault.real(result):
            return
        module = torch()
        tensors = {"latents": vault.copied(result)}
        metadata = dict(vault.common(result), key=self.key)
        for name, generator in self.own.items():
            tensors["generator_" + name] = generator.get_state()
        tensors.update(moved(self.before, module))
        name = "section.%s.%s.safetensors" % (files.store.run, self.key[:40])
        job = vault.task(name, tensors, metadata, result.shape)
        if files.store.put(job):
            files.store.grace(job)


def kept(plain):
    """The sampler, with its finished sections kept and handed back."""

    def sample_hunyuan(*args, **kwargs):
        section = plainly.apart(WHERE, Section, args, kwargs) if plainly.eager(args, kwargs) else None
        if section is not None and replays():
            found = plainly.apart(WHERE, section.stored)
            if found is not None:
                return found[0]
        before, inside.sampler = inside.sampler, True
        try:
            result = plain(*args, **kwargs)
        finally:
            inside.sampler = before
        if section is not None:
            plainly.apart(WHERE, section.keep, result)
        return result

    return sample_hunyuan


def sampler(module):
    """Hook of FramePack's sampler."""
    wrap(module, WHERE, kept)


if files.store is not None:
    on("diffusers_helper.pipelines.k_diffusion_hunyuan")(sampler)
