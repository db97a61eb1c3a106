"""Whether a model leaves nothing but its result, so that what it has computed may be handed back in its place."""
import functools

from . import fingerprint, memory
from .insides import LIBRARIES
from .state import torch


def hindrance(model):
    """Why a result of the model must not be handed back, as far as can be told beforehand, in words; None. Eval mode is a must, and
    no hook of the program's, which may collect, count or draw, nor a cache of diffusers', which hands results from call to call."""
    if model.training:
        return "it is in training mode"
    every = torch().nn.modules.module
    tables = [getattr(every, name, {}) for name in ("_global_forward_hooks", "_global_forward_pre_hooks")]
    for module in model.modules():
        tables += [table for table in (module._forward_hooks, module._forward_pre_hooks) if table]
        registry = vars(module).get("_diffusers_hook")
        for hook in getattr(registry, "hooks", None) and registry.hooks.values() or ():
            if getattr(hook, "_is_stateful", False):
                return "it has a cache of its own (%s)" % type(hook).__name__
    for table in tables:
        for hook in table.values():
            if not known(hook):
                return "it has a forward hook of the program's (%s)" % fingerprint.name_of(hook)
    return None


def known(hook):
    """A hook of the agent, or of a library that changes nothing from call to call."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    return (getattr(hook, "__module__", None) or type(hook).__module__).partition(".")[0] in LIBRARIES


def places(value, levels=3):
    """Addresses of the storages of all tensors in a value and its lists and tables."""
    module = torch()
    if isinstance(value, module.Tensor):
        return {value.untyped_storage().data_ptr()} if hasattr(value, "untyped_storage") else {value.storage().data_ptr()}
    found = set()
    if levels and isinstance(value, (list, tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            found |= places(one, levels - 1)
    return found - {0}


def say(what, model, why):
    """Tells once for each class and reason that something is computed anew after a restart."""
    memory.problem("%s of %s are computed anew after a restart: %s" % (what, type(model).__name__, why))
