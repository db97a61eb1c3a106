"""Sampling steps of diffusers' transformers are kept, and handed back when a restart asks for the same again.

Each call's key is a hash of the model and of all its inputs. What is handed back is what was computed, bit for bit, so
the scheduler between the calls arrives at the same inputs for the next one: a restart runs through the finished steps
without the model, whatever pipeline or loop calls it, and goes on where the dead run stood. Where a text encoder does not
repeat itself to the bit, the keys are others and the steps are computed. FramePack's own sampler is kept as a whole
(`sections`), and a model with a cache of its own is left alone: its result depends on the calls before.
"""
import atexit
import functools
import threading
import time

from . import fingerprint, plainly, sections, store as files, vault
from .config import config
from .hooks import on, wrap
from .state import link, torch

#: Steps shorter than this are not worth a file each, unless the setting `replay_steps` says so.
WORTH_S = 0.5
#: Nor are those that take less than so many times what the model's fingerprints take: keeping is to cost no more than 3 %.
TIMES = 33
WHERE = "transformer.forward"
_inside = threading.local()
#: Whose hooks on a model are no reason to compute its steps anew.
LIBRARIES = ("torch", "diffusers", "accelerate", "transformers", "peft", "diffusers_helper", "fpt_agent")
_written = []
#: Entries that the process had which this one is a fork of.
_parents = set()


class Step:
    """One call of a model."""

    def __init__(self, model, args, kwargs):
        self.model = model
        given = fingerprint.key_of(list(args), kwargs)  # first: it waits for what the device still has to do
        began = time.monotonic()
        self.state = fingerprint.key_of(model)
        _inside.cost = 2 * (time.monotonic() - began)  # here and in `keep`
        self.key = fingerprint.key_of(self.state, given)
        self.before = sections.globals_now(torch())

    def stored(self):
        """The model's result from the vault; None."""
        found = sections.entry("step", self.key)
        if found is None:
            return None
        path, tensors, metadata = found
        if metadata.get("drawn_from", self.drawn_from()) != self.drawn_from():
            return None  # the model draws, and would draw other numbers now
        result = vault.laid_out(tensors["out"], metadata)
        sections.put_back(tensors, metadata, torch())
        note(files.os.path.basename(path))
        link.send("vault", event="replayed", what="step", path=path, shape=list(result.shape))
        return (result,)

    def drawn_from(self):
        """Digest of torch's global random sources before the call."""
        return fingerprint.key_of([self.before["torch"], self.before.get("cuda")])

    def keep(self, result):
        """Queues the result where it is a tuple of one tensor, as loops and pipelines ask for it, and all that the call has
        left behind: a model that has changed its own state depends on the calls before."""
        if type(result) is not tuple or len(result) != 1 or not vault.real(result[0]):
            return
        if fingerprint.key_of(self.model) != self.state:
            return
        tensors, metadata = {"out": vault.copied(result[0])}, dict(vault.common(result[0]), key=self.key)
        drawn = sections.moved(self.before, torch())
        if "global_torch" in drawn or "global_cuda" in drawn:
            metadata["drawn_from"] = self.drawn_from()
        tensors.update(drawn)
        name = "step.%s.%s.safetensors" % (files.store.run, self.key[:40])
        # not synced: it must outlive the process, not the machine
        task = vault.task(name, tensors, metadata, result[0].shape, sync=False)
        task.tells = False  # some hundred a run: told when they are handed back
        if files.store.put(task):
            note(name)


def note(name):
    """The entry is this process' to remove."""
    if name not in _parents:
        _written.append(name)


def forked():
    """In the child of a fork: what the parent has kept is the parent's, whatever the child's end."""
    _parents.update(_written)
    _written.clear()


def steady(model):
    """A step of the model leaves nothing but its result, as far as can be told: eval mode, and no hook of the program's,
    which may collect, count or draw."""
    if model.training:
        return False
    every = torch().nn.modules.module
    tables = [getattr(every, name, {}) for name in ("_global_forward_hooks", "_global_forward_pre_hooks")]
    for module in model.modules():
        tables += [table for table in (module._forward_hooks, module._forward_pre_hooks) if table]
    return all(known(hook) for table in tables for hook in table.values())


def known(hook):
    """A hook of the agent, or of a library that changes nothing from call to call."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    return (getattr(hook, "__module__", None) or type(hook).__module__).partition(".")[0] in LIBRARIES


def worth(model):
    """The call is to be kept: steps of this model take long enough for what that costs. Its first is, as nothing is known yet, and so is
    the one after a step that was handed back, which was worth it and takes no time now."""
    said = config.flag("replay_steps")
    now, last, replayed = time.monotonic(), getattr(_inside, "last", None), getattr(_inside, "replayed", False)
    _inside.last, _inside.replayed = (id(model), now), False
    if said is not None:
        return said
    cost = getattr(_inside, "cost", 0.0)
    return last is None or last[0] != id(model) or replayed or now - last[1] >= max(WORTH_S, TIMES * cost)


def kept(is_compiling):
    """For `hooks.wrap`: the model's forward with its finished steps kept and handed back."""

    def make(plain):
        def forward(self, *args, **kwargs):
            if is_compiling() or getattr(_inside, "on", False) or getattr(self, "is_cache_enabled", False) or not plainly.eager(args, kwargs):
                return plain(self, *args, **kwargs)
            _inside.on = True
            try:
                step = plainly.apart(WHERE, begin, self, args, kwargs)
                found = plainly.apart(WHERE, step.stored) if step is not None and sections.replays() else None
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
    if sections.inside.sampler or torch().is_grad_enabled() or not worth(model) or not steady(model):
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
    if hasattr(files.os, "register_at_fork"):
        files.os.register_at_fork(after_in_child=forked)
