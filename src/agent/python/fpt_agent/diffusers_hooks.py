"""diffusers: pipelines as jobs, their phases, the VAE's settings, a complete unload before the decode."""
import functools
import itertools
import threading
import weakref

from . import hunyuan3d, memory, phases, plainly, vae
from .hooks import around, each_subclass, fenced, later, on
from .memory import problem
from .state import fix, state

_numbers = itertools.count(1)
_local = threading.local()
_told = memory.Once()
#: Modules that were carried to the CPU before a decode -> the device that they came from.
_away = weakref.WeakKeyDictionary()
#: Called with (pipeline, args, kwargs) before a call; may return changed arguments.
before_call = []


def pipeline():
    """The innermost pipeline that runs in this thread, or None."""
    stack = getattr(_local, "pipelines", None)
    return stack[-1] if stack else None


@on("diffusers.pipelines.pipeline_utils")
def pipelines(module):
    """Every subclass of DiffusionPipeline, as soon as it is made."""
    base = module.DiffusionPipeline
    around(base, "from_pretrained", "model_load", describe=phases.of_class)
    around(base, "progress_bar", before=bar)
    around(base, "maybe_free_model_hooks", "offload")
    to = base.to

    @functools.wraps(to)
    def moved(self, *args, **kwargs):
        with state.span("model_load", model=type(self).__name__):
            return to(self, *args, **kwargs)

    base.to = moved
    each_subclass(base, subclass)


def subclass(cls):
    """Wraps what a pipeline class defines itself."""
    call = cls.__dict__.get("__call__")
    method = callable(call) and hasattr(type(call), "__get__") and not isinstance(call, (staticmethod, classmethod))
    if method and not getattr(call, "_fpt_call", False):
        kind = later(call)
        cls.__call__ = calling(call) if kind is None else CALLING[kind](call) if kind in CALLING else call
    for name in ("encode_prompt", "encode_image"):
        if name in cls.__dict__:
            around(cls, name, "text_encode", after=memory.stage)


def calling(call):
    """A pipeline's `__call__` as a job."""

    @functools.wraps(call)
    def wrapper(self, *args, **kwargs):
        if pipeline() is self:  # a subclass calls its parent's
            return call(self, *args, **kwargs)
        args, kwargs = prepared(self, args, kwargs)
        stack = _local.pipelines = getattr(_local, "pipelines", None) or []
        stack.append(self)
        watch = fenced("first_step", first_step, self)
        try:
            own = fenced("own_phase", hunyuan3d.own_phase, self) or "unknown"
            with phases.Job("%s-%d" % (type(self).__name__, next(_numbers)), phase=own):
                return call(self, *args, **kwargs)
        finally:
            stack.pop()
            if watch is not None:
                watch.remove()

    wrapper._fpt_call = True
    return wrapper


def prepared(pipe, args, kwargs):
    """The arguments as the settings want them."""
    for look in before_call if plainly.eager(args, kwargs) else ():
        changed = plainly.apart("before_call", look, pipe, args, kwargs)
        if changed is not None:
            args, kwargs = changed
    fenced("before_call", bring_back, pipe)
    return args, kwargs


def generating(call):
    """The same where `__call__` is a generator: what it gives is given on. No job: nobody need ever ask it for its end, and
    what runs between two of its values is not of it."""

    @functools.wraps(call)
    def wrapper(self, *args, **kwargs):
        if type(self).__call__ is wrapper:  # else a subclass calls its parent's
            args, kwargs = prepared(self, args, kwargs)
        return (yield from call(self, *args, **kwargs))

    wrapper._fpt_call = True
    return wrapper


def awaiting(call):
    """The same where it is a coroutine: others run in its thread while it waits."""

    @functools.wraps(call)
    async def wrapper(self, *args, **kwargs):
        if type(self).__call__ is wrapper:
            args, kwargs = prepared(self, args, kwargs)
        return await call(self, *args, **kwargs)

    wrapper._fpt_call = True
    return wrapper


#: An asynchronous generator is left as it is: what is sent into it could not be handed on.
CALLING = {"generator": generating, "coroutine": awaiting}


def bar(args, _kwargs):
    """A pipeline's progress bar: sampling has begun."""
    if pipeline() is args[0] and state.spans()[-1:] == ["unknown"]:
        state.within("sampling")


def first_step(pipe):
    """For a pipeline without a progress bar: its model's first call. Compiled models are let alone."""
    for name in ("transformer", "unet", "prior", "decoder"):
        model = getattr(pipe, name, None)
        hook = getattr(model, "register_forward_pre_hook", None)
        if hook is None or hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None:
            continue

        def begins(_module, _args):
            handle.remove()
            if state.phase == "unknown":
                state.within("sampling")

        handle = hook(begins)
        return handle
    return None


@on("diffusers.models.autoencoders.*")
def autoencoders(module):
    """Every class AutoencoderKL* and its kin, with the settings of the VAE. Not the tiny one: it draws previews."""
    for name, cls in list(vars(module).items()):
        if not isinstance(cls, type) or cls.__module__ != module.__name__:
            continue
        if name.startswith("Autoencoder") and name != "AutoencoderTiny":
            for method, phase in (("decode", "vae_decode"), ("encode", "vae_encode")):
                plain = cls.__dict__.get(method)
                if callable(plain) and later(plain) is None and not getattr(plain, "_fpt_vae", False):
                    setattr(cls, method, coding(plain, phase))


def coding(plain, phase):
    """`decode` or `encode` of an autoencoder: phase, settings, complete unload."""
    decodes = phase == "vae_decode"
    compiling = memory.compiling()

    @functools.wraps(plain)
    def wrapper(self, *args, **kwargs):
        # what is compiled or traced holds no messages
        if compiling() or not plainly.eager(first_tensor(args, kwargs)):
            return plain(self, *args, **kwargs)
        if state.spans()[-1:] == [phase]:  # FramePack's own function, or one autoencoder inside another
            return settled(plain, self, args, kwargs)
        more = plainly.apart(phase, facts, self, args, kwargs) or {}
        if decodes:
            fenced("full_unload", unload, self)
            memory.stage()
        try:
            with state.span(phase, then=fenced(phase, following) if decodes else None, **more):
                return settled(plain, self, args, kwargs)
        finally:
            memory.stage()

    wrapper._fpt_vae = True
    return wrapper


def following():
    """What comes after a decode: within a pipeline no sampling any more, unless its bar is still on its way (a
    preview from the callback of a step)."""
    if state.phase != "sampling" or pipeline() is None:
        return None
    bar = state.progress
    under_way = bar is not None and bar["total"] and bar["n"] is not None and bar["n"] < bar["total"]
    return None if under_way else "unknown"


def first_tensor(args, kwargs):
    """What is decoded or encoded: the first argument, whatever its name."""
    return args[0] if args else next((kwargs[name] for name in ("z", "x", "sample", "latents") if name in kwargs), None)


def facts(autoencoder, args, kwargs):
    """Fields of the phase."""
    size = phases.shape(first_tensor(args, kwargs))
    return dict(phases.counted(), model=type(autoencoder).__name__, **({"shape": size} if size else {}))


def settled(plain, autoencoder, args, kwargs):
    """The call as the VAE's settings want it; without any, the call as it is."""
    if not vae.wanted():
        return plain(autoencoder, *args, **kwargs)
    fenced("vae", vae.prepare, autoencoder)
    value = first_tensor(args, kwargs)
    device = getattr(value, "device", None)
    moved = fenced("vae", vae.Moved(autoencoder).__enter__)
    if moved is None:
        return plain(autoencoder, *args, **kwargs)
    try:
        ready = fenced("vae", moved.latents, value)
        if ready is not None:
            if args:
                args = (ready,) + args[1:]
            else:
                kwargs = {key: ready if one is value else one for key, one in kwargs.items()}
        result = plain(autoencoder, *args, **kwargs)
        if device is not None and memory.vae_device() == "cpu":
            carried = fenced("vae", vae.carried, result, device)
            result = result if carried is None else carried
        return result
    finally:
        fenced("vae", moved.__exit__, None, None, None)


def accelerator(device):
    """True for a device with memory of its own."""
    return device.type not in ("cpu", "meta")


def first_device(model):
    """The device of a module's first parameter, or None."""
    first = next(iter(model.parameters()), None)
    return None if first is None else first.device


def unload(autoencoder):
    """`full_unload`: everything of the pipeline but the VAE leaves the card before its decode."""
    pipe = pipeline()
    if pipe is None or not memory.full_unload():
        return
    models = {name: part for name, part in pipe.components.items()
              if hasattr(part, "parameters") and hasattr(part, "to") and part is not autoencoder}
    why = unsafe(models.values())
    if why is not None:
        problem("full_unload = true: %s moves its models by itself (%s); left to it" % (type(pipe).__name__, why))
        return
    gone = []
    with state.span("offload", model=type(pipe).__name__):
        for name, model in models.items():
            device = first_device(model)
            if device is None or not accelerator(device):
                continue
            if getattr(model, "_hf_hook", None) is None:
                _away[model] = device
                recall(model)
            model.to("cpu")
            gone.append(name)
        if gone:
            memory.trim(False)
    if gone and _told.first(pipe, "full_unload"):
        fix("full_unload", model=type(pipe).__name__, parts=gone)


def unsafe(models):
    """Why models must not be moved from here; None where they may."""
    for model in models:
        hook = getattr(model, "_hf_hook", None)
        if hook is not None and type(hook).__name__ != "CpuOffload":
            return "sequential offload" if type(hook).__name__ == "AlignDevicesHook" else type(hook).__name__
        if getattr(model, "hf_device_map", None):
            return "device_map"
        if getattr(model, "is_loaded_in_8bit", False) or getattr(model, "is_loaded_in_4bit", False):
            return "quantised weights"
        registry = getattr(model, "_diffusers_hook", None)
        if registry is not None and any("group" in name for name in getattr(registry, "hooks", ())):
            return "group offload"
        devices = {p.device for p in model.parameters()}
        if len(devices) > 1 or any(d.type == "meta" for d in devices):
            return "weights on several devices"
    return None


def recall(model):
    """The module comes back when it is next called (a later section of the same call)."""

    def back(_module, _args):
        handle.remove()
        fenced("full_unload", restore, model)

    handle = model.register_forward_pre_hook(back)


def restore(model):
    """Carries a module back to where it was."""
    device = _away.pop(model, None)
    if device is not None:
        with state.span("model_load", model=type(model).__name__):
            model.to(device)


def bring_back(pipe):
    """Before a call: what an earlier one sent away is where the pipeline expects it."""
    if _away:
        for part in pipe.components.values():
            if hasattr(part, "parameters") and part in _away:
                restore(part)
