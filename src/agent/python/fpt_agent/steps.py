"""Sampling steps of diffusers' transformers are kept, and handed back when a restart asks for the same again.

Each call's key is a hash of the model and of all its inputs. What is handed back is what was computed, bit for bit, so
the scheduler between the calls arrives at the same inputs for the next one: a restart runs through the finished steps
without the model, whatever pipeline or loop calls it, and goes on where the dead run stood. Where a text encoder does not
repeat itself to the bit, the keys are others and the steps are computed. FramePack's own sampler is kept as a whole
(`sections`), and a model with a cache of its own is left alone: its result depends on the calls before.
"""
import atexit
import threading
import time

from . import fingerprint, plainly, store as files, vault
from .config import config
from .hooks import on, wrap
from .sections import entry, inside, replays
from .state import link, torch

#: Steps shorter than this are not worth a file each, unless the setting `replay_steps` says so.
WORTH_S = 0.5
WHERE = "transformer.forward"
_inside = threading.local()
_written = []


class Step:
    """One call of a model."""

    def __init__(self, model, args, kwargs):
        self.key = fingerprint.key_of(model, list(args), kwargs)

    def stored(self):
        """The model's result from the vault; None."""
        found = entry("step", self.key)
        if found is None:
            return None
        path, tensors, metadata = found
        result = tensors["out"].to(metadata["device"])
        _written.append(files.os.path.basename(path))
        link.send("vault", event="replayed", what="step", path=path, shape=list(result.shape))
        return (result,)

    def keep(self, result):
        """Queues the result where it is a tuple of one tensor, as loops and pipelines ask for it."""
        if type(result) is not tuple or len(result) != 1 or not vault.real(result[0]):
            return
        tensor = vault.copied(result[0])
        name = "step.%s.%s.safetensors" % (files.store.run, self.key[:40])
        # not synced: it must outlive the process, not the machine
        task = vault.task(name, {"out": tensor}, dict(vault.common(result[0]), key=self.key), "step", tensor.shape, sync=False)
        task.message["what"] = None  # some hundred a run: told when they are handed back
        if files.store.put(task):
            _written.append(name)


def worth(model):
    """The call is to be kept: steps of this model take long enough. Its first is, as nothing is known yet, and so is
    the one after a step that was handed back, which was worth it and takes no time now."""
    said = config.flag("replay_steps")
    now, last, replayed = time.monotonic(), getattr(_inside, "last", None), getattr(_inside, "replayed", False)
    _inside.last, _inside.replayed = (id(model), now), False
    if said is not None:
        return said
    return last is None or last[0] != id(model) or replayed or now - last[1] >= WORTH_S


def kept(is_compiling):
    """For `hooks.wrap`: the model's forward with its finished steps kept and handed back."""

    def make(plain):
        def forward(self, *args, **kwargs):
            if is_compiling() or getattr(_inside, "on", False) or getattr(self, "is_cache_enabled", False) or not plainly.eager(args, kwargs):
                return plain(self, *args, **kwargs)
            _inside.on = True
            try:
                step = plainly.apart(WHERE, begin, self, args, kwargs)
                found = plainly.apart(WHERE, step.stored) if step is not None and replays() else None
                if found is not None:
                    _inside.replayed = True
                    return found
                result = plain(self, *args, **kwargs)
                if step is not None:
                    plainly.apart(WHERE, step.keep, result)
                return result
            finally:
                _inside.on = False

        return forward

    return make


def begin(model, args, kwargs):
    """The step where it is one to be kept; None."""
    if inside.sampler or torch().is_grad_enabled() or not worth(model):
        return None
    return Step(model, args, kwargs)


def transformers(module):
    """Each transformer of diffusers that samples."""
    compiling = plainly.compiling()
    if compiling is bool:  # a torch that cannot tell
        return
    for name, kind in list(vars(module).items()):
        if isinstance(kind, type) and kind.__module__ == module.__name__ and name.endswith(("Transformer3DModel", "Transformer2DModel")):
            wrap(kind, "forward", kept(compiling))


def forget():
    """A run that ends by itself needs its steps no more."""
    if _written:
        files.store.forget(*_written)


if files.store is not None:
    on("diffusers.models.transformers.*")(transformers)
    atexit.register(forget)
