"""Whether a call is a plain eager one, and the agent's own operations where no mode of the program's sees them.

Under a tracer, a compiler, functorch or the capture of a graph tensors are no tensors: a look at their data crashes the
process, fails, or becomes a part of what is traced. Whoever looks at data asks `eager` first and passes the call on
untouched where it says no.
"""
from . import hooks
from .state import torch

#: Levels of lists and tables that are looked into for tensors.
LEVELS = 3


def compiling():
    """torch's own question whether a graph is being made; one that says no where torch has none. A wrapper asks it before
    anything else: compilers know the answer, and follow nothing of what stands behind it."""
    compiler = getattr(torch(), "compiler", None)
    return getattr(compiler, "is_compiling", None) or bool


def eager(*given):
    """True: nothing traces, transforms, compiles or captures this call, and the values given, and what lists and tables of
    them hold, are plain tensors with data in them or no tensors."""
    module = torch()
    if module is None:
        return True
    if compiling()() or traced(module) or captured(module):
        return False
    with module._C.DisableTorchFunction():  # a mode sees who asks a tensor for what it is
        return all(plain(module, value, LEVELS) for value in given)


def traced(module):
    """torch.jit.trace, a transform of functorch, or a mode of torch's own that stands for a tracer. Names that an older torch
    does not have are of things that it does not have."""
    core = module._C
    if core._get_tracing_state() is not None:
        return True
    stack = getattr(getattr(core, "_functorch", None), "peek_interpreter_stack", None)
    if stack is not None and stack() is not None:
        return True
    keys, mode = getattr(core, "_TorchDispatchModeKey", None), getattr(core, "_get_dispatch_mode", None)
    if mode is not None and any(mode(getattr(keys, name)) is not None for name in ("FAKE", "PROXY", "FUNCTIONAL") if hasattr(keys, name)):
        return True
    ahead = getattr(module._ops, "_len_torch_dispatch_stack_pre_dispatch", None)
    return ahead is not None and ahead() > 0


def captured(module):
    """A graph of the device is being recorded, in which a copy to the CPU is an error."""
    cuda = module.cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


def plain(module, value, levels):
    """No tensor of another type, without data, or of a tracer, and none inside."""
    if isinstance(value, module.Tensor):
        if type(value) not in (module.Tensor, module.nn.Parameter) or value.is_meta:
            return False
        wrapped = getattr(getattr(module._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
        return not module._is_functional_tensor(value) and not (wrapped is not None and wrapped(value))
    if isinstance(value, (list, tuple, dict)):
        inside = value.values() if isinstance(value, dict) else value
        return levels == 0 or all(plain(module, one, levels - 1) for one in inside)
    return not type(value).__module__.startswith("torch.fx")  # a proxy answers to any name


def apart(where, function, *args):
    """`hooks.fenced`, the program's modes (TorchFunctionMode, TorchDispatchMode) off: they see what the program does, not the
    agent. To be used where `eager` has said yes: the modes of tracers are of another kind."""
    module = torch()
    if module is None:
        return hooks.fenced(where, function, *args)
    core = module._C
    with core.DisableTorchFunction():
        length = getattr(core, "_len_torch_dispatch_stack", None)
        modes = [core._pop_torch_dispatch_stack(None) for _ in range(length())] if length is not None and length() else []
        try:
            return hooks.fenced(where, function, *args)
        finally:
            for mode in reversed(modes):
                core._push_on_torch_dispatch_stack(mode)
