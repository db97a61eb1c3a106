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
import weakref

from . import fingerprint, memory, plainly, safetensors, steady, store as files, surroundings, vault
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


def drawn_from(before, drawn):
    """Metadata about an entry: the sources that the computation has drawn from, with digests of what they were."""
    found = {name: fingerprint.key_of(before.get(name)) for name in ("torch", "cuda", "python", "numpy") if "global_" + name in drawn}
    return {"drawn_from": json.dumps(found, sort_keys=True)} if found else {}


def drawn_alike(before, metadata):
    """The sources that an entry's computation has drawn from stand as they stood before it."""
    told = json.loads(metadata.get("drawn_from", "{}"))
    return all(fingerprint.key_of(before.get(name)) == key for name, key in told.items())


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


#: Models whose `initialize_teacache` was called since their last section began.
_renewed = weakref.WeakSet()
#: Model -> names of sections that were kept in the belief that the program renews the model's cache before each.
_believed = weakref.WeakKeyDictionary()


def renewing(model):
    """Names of a model's attributes that are set anew before each section: those that its `initialize_teacache` sets and does not read."""
    import dis

    plain = getattr(type(model), "initialize_teacache", None)
    code = getattr(getattr(plain, "_fpt_plain", plain), "__code__", None)
    found = {True: set(), False: set()}
    for one in dis.get_instructions(code) if code is not None else ():
        if one.opname.endswith(("_ATTR", "_METHOD")):
            found[one.opname == "STORE_ATTR"].add(one.argval)
    return tuple(sorted(found[True] - found[False]))


def renewed(plain):
    """`initialize_teacache` of a transformer, which is noted."""

    def initialize_teacache(self, *args, **kwargs):
        result = plain(self, *args, **kwargs)
        _renewed.add(self)
        return result

    return initialize_teacache


def transformers(module):
    """Hook of FramePack's transformers."""
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and kind.__module__ == module.__name__ and "initialize_teacache" in vars(kind):
            wrap(kind, "initialize_teacache", renewed)


class Watched:
    """A model among a sampler's inputs. What it carries from one section to the next is lost where a section is handed back: it must
    carry nothing but what the program sets anew before each."""

    def __init__(self, model):
        self.model, self.renewed = model, model in _renewed
        _renewed.discard(model)
        names = () if self.renewed else _believed.pop(model, ())
        if names:  # the program's first call was its only one
            files.store.forget(*names)
        self.state = fingerprint.state_of(model, renewing(model) if self.renewed else ())

    def carries(self):
        """Why the section cannot be handed back, in words; None."""
        why = steady.hindrance(self.model)
        if why is None and not fingerprint.unchanged(self.state, fingerprint.state_of(self.model, renewing(self.model) if self.renewed else ())):
            why = "sampling changes the model's own state, which the next section finds"
        return why


class Section:
    """One call of the sampler."""

    def __init__(self, args, kwargs):
        module = torch()
        self.args, self.kwargs = args, {k: v for k, v in kwargs.items() if k not in TOLD}
        self.own = generators(self.kwargs, module)
        self.before = globals_now(module)
        # without a generator of its own the sampler draws from torch's global one
        drawn = () if self.own else (self.before["torch"], self.before.get("cuda"))
        self.key = fingerprint.key_of(list(args), self.kwargs, list(drawn), surroundings.key(module))
        self.models = [Watched(one) for one in list(args) + list(self.kwargs.values()) if isinstance(one, module.nn.Module)]
        self.given = self.given_now()
        self.found = {name: generator.get_state() for name, generator in self.own.items()}

    def again(self, plain):
        """Samples a section that was handed back, for what that leaves in the model; all random sources end where they stand."""
        module = torch()
        now, left = {name: generator.get_state() for name, generator in self.own.items()}, globals_now(module)
        self.turn(self.found, self.before, module)
        try:
            plain(*self.args, **self.kwargs)
        finally:
            self.turn(now, left, module)

    def turn(self, own, everyone, module):
        """Sets all random sources."""
        for name, generator in self.own.items():
            generator.set_state(own[name])
        told = {name: json.dumps(value) for name, value in everyone.items() if name in ("python", "numpy")}
        put_back({"global_" + name: value for name, value in everyone.items() if name not in told},
                 {name + "_random": value for name, value in told.items()}, module)

    def given_now(self):
        """Key of the inputs that are neither models nor generators, as they are."""
        module = torch()
        kinds = (module.nn.Module, module.Generator)
        return fingerprint.key_of([one for one in self.args if not isinstance(one, kinds)],
                                  {k: v for k, v in self.kwargs.items() if not isinstance(v, kinds)})

    def stored(self):
        """(result,) of this very section from the vault, the generators set to what they were after it; None."""
        module, began = torch(), time.monotonic()
        found = entry("section", self.key)
        if found is None:
            return None
        path, tensors, metadata = found
        if not drawn_alike(self.before, metadata):
            return None
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
        if not vault.real(result) or not vault.restorable(result):
            return
        for one in self.models:
            why = one.carries()
            if why is not None:
                steady.say("sections", one.model, why)
                return
        if self.given_now() != self.given or steady.places(result) & steady.places([self.args, self.kwargs]):
            memory.problem("sections are sampled anew after a restart: sampling changes its inputs in place, or hands them out")
            return
        module = torch()
        tensors = {"latents": vault.copied(result)}
        metadata = dict(vault.common(result), key=self.key)
        for name, generator in self.own.items():
            tensors["generator_" + name] = generator.get_state()
        drawn = moved(self.before, module)
        metadata.update(drawn_from(self.before, drawn))
        tensors.update(drawn)
        name = "section.%s.%s.safetensors" % (files.store.run, self.key[:40])
        job = vault.task(name, tensors, metadata, result.shape)
        if files.store.put(job):
            files.store.grace(job)
            for one in self.models:
                if one.renewed:
                    _believed.setdefault(one.model, []).append(name)


#: Model -> its last section where that was handed back in the belief that the program renews the model's cache before the next.
_owed = weakref.WeakKeyDictionary()


def settle(plain, args, kwargs):
    """Where the program does not renew it after all: the section is sampled now, before the next, which finds what it leaves."""
    for model in [one for one in list(args) + list(kwargs.values()) if isinstance(one, torch().nn.Module)]:
        owed = _owed.pop(model, None)
        if owed is not None and model not in _renewed:
            steady.say("sections", model, "its cache goes on from one section to the next")
            owed.again(plain)


def kept(plain):
    """The sampler, with its finished sections kept and handed back."""

    def sample_hunyuan(*args, **kwargs):
        if _owed:
            settle(plain, args, kwargs)
        section = plainly.apart(WHERE, Section, args, kwargs) if plainly.eager(args, kwargs) else None
        if section is not None and replays():
            found = plainly.apart(WHERE, section.stored)
            if found is not None:
                _owed.update((one.model, section) for one in section.models if one.renewed)
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
    on("diffusers_helper.models.*")(transformers)
