"""Stacks of all threads, by socket and by signal, and the two ways to ask a program to end.

By signal they come even where a native call holds the interpreter lock: faulthandler writes them
from the handler, without the interpreter.
"""
import faulthandler
import os
import sys
import threading

from . import threads

try:
    import _signal as signal  # what `signal` is made of, without its enums
except ImportError:
    import signal

_stop = threading.Event()
#: What ends a job in this program. A server may have a class of its own, which it catches: another one would end the
#: thread that takes its jobs, and no later job would ever begin.
ending = KeyboardInterrupt
#: Frames of one thread at most.
DEEPEST = 64


def arm(path):
    """Lets SIGUSR2 write all stacks to the file at `path`. False: it does not, and must not be sent."""
    if not path or not hasattr(faulthandler, "register"):
        return False
    try:
        if signal.getsignal(signal.SIGUSR2) not in (signal.SIG_DFL, None):
            return False  # the program's own
        # a bare number, never closed: where the program has closed it, it may be that of a file of the program's
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(path, flags, 0o600)
        faulthandler.register(signal.SIGUSR2, descriptor, all_threads=True, chain=False)
        return True
    except (OSError, ValueError, RuntimeError):
        return False


def command(_message=None):
    """Stack of each thread, innermost frame last.

    Read off the frames alone: to look up source lines, as `traceback` does, costs a tenth of a second of CPU and
    reads files, and a program that hangs would seem to work again because it was asked.
    """
    names = dict(threads.names)
    names.update((t.ident, t.name) for t in threading.enumerate())
    return [
        {"thread": names.get(ident, "?"), "ident": ident, "frames": _frames(frame)}
        for ident, frame in sys._current_frames().items()
    ]


def _frames(frame):
    frames = []
    while frame is not None and len(frames) < DEEPEST:
        code = frame.f_code
        frames.append("%s:%d %s" % (code.co_filename, frame.f_lineno or 0, code.co_name))
        frame = frame.f_back
    return frames[::-1]


def interrupt(message):
    """Raises `ending` in the thread named by `ident`. It ends a Python loop; no native call."""
    import ctypes

    ident = message.get("ident")
    if not isinstance(ident, int):
        raise ValueError("`ident` of a thread is needed (see `stacks`)")
    if ident not in sys._current_frames() or ident in threads.names:  # an end of the agent's own ends nothing
        raise ValueError("no such thread")
    hit = ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(ending))
    return {"threads": hit}


def stop_after_step(_message=None):
    """Ends the job with `ending` at the next step that a progress bar shows."""
    _stop.set()
    return {}


def step():
    """To be called at each step, in the thread that takes it."""
    if _stop.is_set():
        _stop.clear()
        raise ending("the user asked for the end after this step")
