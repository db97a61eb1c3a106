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
import weakref

from . import fingerprint, plainly, sections, steady, store as files, surroundings, vault
from .config import config
from .hooks import on, wrap
from .state import link, torch

#: Steps shorter than this are not worth a file each, unless the setting `replay_steps` says so.
WORTH_S = 0.5
#: Nor are those that take less than so many times what the model's fingerprints take: keeping is to cost no more than 3 %.
TIMES = 33
WHERE = "transformer.forward"
_inside = threading.local()
_written = []
#: Entries that the process had which this one is a fork of.
_parents = set()


class Step:
    """One call of a model."""

    def __init__(self, model, args, kwargs):
        self.model, self.inputs, pace = model, (args, kwargs), paces().of(model)
        # first: it waits for what the device still has to do
        self.given = self.given_now()
        began = time.monotonic()
        try:
            self.state = fingerprint.state_of(model)
        finally:  # paid, too, by a model that has no fingerprint
            pace.cost = 2 * (time.monotonic() - began)  # here and in `keep`
        self.key = fingerprint.key_of(self.state[0], self.given, surroundings.key(torch()))
        self.before = sections.globals_now(torch())

    def given_now(self):
        """Key of the call's inputs as they are."""
        return fingerprint.key_of(list(self.inputs[0]), self.inputs[1])

    def stored(self):
        """The model's result from the vault; None."""
        found = sections.entry("step", self.key)
        if found is None:
            return None
        path, tensors, metadata = found
        if not sections.drawn_alike(self.before, metadata):
            return None  # the model draws, and would draw other numbers now
        result = vault.laid_out(tensors["out"], metadata)
        sections.put_back(tensors, metadata, torch())
        note(files.os.path.basename(path))
        link.send("vault", event="replayed", what="step", path=path, shape=list(result.shape))
        return (result,)

    def keep(self, result):
        """Queues the result where it is a tuple of one tensor, as loops and pipelines ask for it, and all that the call has
        left behind: a model that has changed its own state depends on the calls before, and inputs that were changed would not be
        when the result is handed back, nor would a result be a part of them."""
        if type(result) is not tuple or len(result) != 1 or not vault.real(result[0]) or not vault.restorable(result[0]):
            return
        if not fingerprint.unchanged(self.state, fingerprint.state_of(self.model)):
            steady.say("steps", self.model, "a call changes the model's own state, on which the next may depend")
            return
        if self.given_now() != self.given or steady.places(result[0]) & steady.places(self.inputs):
            steady.say("steps", self.model, "a call changes its inputs in place, or hands them out")
            return
        tensors, metadata = {"out": vault.copied(result[0])}, dict(vault.common(result[0]), key=self.key)
        drawn = sections.moved(self.before, torch())
        metadata.update(sections.drawn_from(self.before, drawn))
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


class Pace:
    """What is known of a model's steps."""

    def __init__(self):
        #: Seconds that its last step took until the next call of a model; None before that is known.
        self.took = None
        #: Seconds that its fingerprints take for one step.
        self.cost = 0.0


class Paces:
    """Of each model that a thread calls, how long its steps take."""

    def __init__(self):
        self.models = weakref.WeakKeyDictionary()
        #: The pace of the model that was called last, when that was, and whether its step was handed back.
        self.last, self.began, self.replayed = None, 0.0, False

    def of(self, model):
        """Its pace."""
        return self.models.setdefault(model, Pace())

    def worth(self, model):
        """The call is to be kept: steps of this model take long enough for what that costs. Its first is, as nothing is known yet; a
        step that was handed back says nothing of how long they take."""
        now = time.monotonic()
        if self.last is not None and not self.replayed:
            self.last.took = now - self.began
        pace = self.of(model)
        self.last, self.began, self.replayed = pace, now, False
        return pace.took is None or pace.took >= max(WORTH_S, TIMES * pace.cost)


def paces():
    """Of this thread."""
    found = getattr(_inside, "paces", None)
    if found is None:
        found = _inside.paces = Paces()
    return found


def worth(model):
    """The call is to be kept: the setting says so, else what is known of the model's steps."""
    said, found = config.flag("replay_steps"), paces().worth(model)
    return found if said is None else said


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
                    paces().replayed = True
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
    if sections.inside.sampler or torch().is_grad_enabled() or not worth(model):
        return None
    why = steady.hindrance(model)
    if why is not None:
        if not model.training:
            steady.say("steps", model, why)
        return None
    try:
        return Step(model, args, kwargs)
    except fingerprint.Unkeyed as error:
        steady.say("steps", model, error)
        return None


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
