"""Errors of convolutions: which of them another tier may help, and which are none of ours."""
from .wire import said

#: How the messages of torch's own checks of cudnn and MIOpen begin, in lower case: AT_CUDNN_CHECK and
#: AT_CUDNN_FRONTEND_CHECK, the search for a plan or an algorithm, cudnn's frontend itself, MIOPEN_CHECK (the bare name
#: of the status) and MIOpen's search.
LIBRARY = ("cudnn error: cudnn_status_", "cudnn frontend error: ", "find was unable to find an engine to execute",
           "get was unable to find an engine to execute", "unable to find an engine to execute this computation",
           "unable to find a valid cudnn algorithm to run convolution", "cudnn_status_", "cudnn_backend_", "miopenstatus",
           "miopen error: ", "miopenconv", "no suitable algorithm was found")
#: Errors after which the context is dead, whatever else the message says.
DEAD = ("hip error", "cuda error", "hsa_status", "illegal memory access", "device-side assert", "launch failure",
        "device lost")


def of_library(error):
    """True: in the words of the convolution library, or of torch's checks of it."""
    return said(error).lower().startswith(LIBRARY)


def names_dead(error):
    """True: the message is one after which nothing on the device works."""
    text = said(error).lower()
    return any(part in text for part in DEAD)


def theirs(error):
    """True: Python code of the program's has raised it, in a mode, a subclass or a hook below the call. What torch raises
    comes out of a call."""
    trace = error.__traceback__
    if trace is None:
        return False
    import opcode

    while trace.tb_next is not None:
        trace = trace.tb_next
    if trace.tb_frame.f_code.co_code[trace.tb_lasti] != opcode.opmap["RAISE_VARARGS"]:
        return False
    name = trace.tb_frame.f_globals.get("__name__") or ""
    return name.partition(".")[0] not in ("torch", __package__)


def chain(error, later):
    """Makes `later` the context of `error`, without a ring: `later` came up while `error` was handled."""
    if later is None or later is error:
        return
    node = later
    while node.__context__ is not None:
        if node.__context__ is error:
            node.__context__ = None
            break
        node = node.__context__
    error.__context__ = later
