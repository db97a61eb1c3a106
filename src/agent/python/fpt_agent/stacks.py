"""Stacks of all threads, by socket and by signal, and the two ways to ask a program to end.

By signal they come even where a native call holds the interpreter lock: faulthandler writes them
from the handler, without the interpreter.
"""
import faulthandler
import gc
import os
import sys

from . import threads
from .descriptors import high, identity, status
from .loaded import loaded

try:
    import _signal as signal  # what `signal` is made of, without its enums
except ImportError:
    import signal

_stop = False
#: What ends a job in this program. A server may have a class of its own, which it catches: another one would end the
#: thread that takes its jobs, and no later job would ever begin.
ending = KeyboardInterrupt
#: Frames of one thread at most.
DEEPEST = 64


class Dump:
    """The file that SIGUSR2 writes to, and whether it is still behind its number: faulthandler writes to a bare number,
    and where the program closes all descriptors, what it opens next may get that one."""

    path = descriptor = who = None
    #: What faulthandler has for the signal where it is ours. It cannot be asked, but its module holds the files.
    sink = None
    #: What the supervisor was told last: may it send the signal?
    told = False


class Sink:
    """A number as faulthandler takes a file."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def fileno(self):
        """The number."""
        return self.descriptor

    def flush(self):
        """Nothing waits."""


_dump = Dump()


def arm(path):
    """Lets SIGUSR2 write all stacks to the file at `path`. False: it does not, and must not be sent."""
    if not path or not hasattr(faulthandler, "register"):
        return False
    try:
        if not _free():
            return False
        # a bare number, never closed: where the program has closed it, it may be that of a file of the program's
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        descriptor = high(os.open(path, flags, 0o600))
        _dump.path, _dump.descriptor, _dump.who = path, descriptor, identity(descriptor)
        sink = Sink(descriptor)
        (_register or faulthandler.register)(signal.SIGUSR2, sink, all_threads=True, chain=False)
        _dump.sink = sink if _held(sink) else None
        _let_go()
        return True
    except (OSError, ValueError, RuntimeError):
        return False


def keep():
    """To be called now and then: where the number is no longer that of the file, SIGUSR2 gets another one."""
    if _dump.path is None or identity(_dump.descriptor) == _dump.who:
        return
    path, _dump.path = _dump.path, None
    if _free() and (_dump.sink is None or _held(_dump.sink)):
        arm(path)  # without `unregister`, after which the signal would for a moment end the process


def usable():
    """"SIGUSR2" while it writes the stacks; None where it must not be sent, as the program has something else in its place."""
    _dump.told = _dump.path is not None and _ours()
    return "SIGUSR2" if _dump.told else None


def changed():
    """Whether the supervisor is to be told at once that the signal is the program's now. Costs next to nothing."""
    return _dump.told and not _ours()


def _caught():
    """Something catches the signal: where the program has put the default back, it would be killed by it. And the main thread
    lets it through: what the program blocks it may wait for, and it would wait for nothing else."""
    try:
        told = status.read()
        caught, blocked = (int(told.partition(name)[2].split(None, 1)[0], 16) for name in (b"SigCgt:", b"SigBlk:"))
        return bool((caught & ~blocked) >> (signal.SIGUSR2 - 1) & 1)
    except (OSError, ValueError, IndexError):  # not Linux
        return True


def _native():
    """Native code of the program's has put a handler there: one that lies in another object than Python's own. `ctypes` is asked where the
    program has it, as all do that use torch."""
    ctypes = loaded("ctypes", "pythonapi", "cast")
    if ctypes is None or not sys.platform.startswith("linux"):
        return False
    if _native_calls is None:
        try:
            _prepare(ctypes)
        except (AttributeError, OSError):  # a C library of another kind
            _unknown()
    return _native_calls()


#: What asks the C library, once it is prepared; False also where that cannot tell.
_native_calls = None


def _unknown():
    """Has `_native_calls` say no."""
    global _native_calls
    _native_calls = bool


def _prepare(ctypes):
    """Makes `_native_calls`."""
    global _native_calls
    library, word = ctypes.CDLL(None), ctypes.c_void_p
    action, info = (word * 64)(), (word * 4)()

    def base(address):
        # Dl_info: name of the file, where it lies, name of the symbol, where that lies
        return info[1] if library.dladdr(word(address), info) else None

    def ask():
        # on the machines that torch runs on the handler stands first in the structure
        return not library.sigaction(int(signal.SIGUSR2), None, action) and bool(action[0]) and base(action[0]) != own

    own = base(ctypes.cast(ctypes.pythonapi.Py_IncRef, word).value)
    ask()  # AttributeError: here, not at a heartbeat
    _native_calls = ask if own is not None else bool


def _free():
    """The program has no handler of its own in Python."""
    return signal.getsignal(signal.SIGUSR2) in (signal.SIG_DFL, None)


def _ours():
    """The signal writes to our file: no handler of the program's, none of faulthandler's for the program, and not the default."""
    return _free() and (_dump.sink is None or _held(_dump.sink)) and _caught() and not _native()


def _held(sink):
    """faulthandler has it."""
    return any(one is sink for one in gc.get_referents(faulthandler))


#: faulthandler's own `register`, once ours stands for it.
_register = None


def _let_go():
    """Has faulthandler forget ours before it takes something for the program: by itself it would only change the file, without a look
    at the handler that the program has set for it to call after."""
    global _register
    if _register is not None:
        return
    _register = plain = faulthandler.register

    def register(*args, **kwargs):
        if (args[0] if args else kwargs.get("signum")) == signal.SIGUSR2 and _dump.path is not None:
            return threads.deaf(given, args, kwargs)  # between the two the signal would end the process
        return plain(*args, **kwargs)

    def given(args, kwargs):
        _forget()
        return plain(*args, **kwargs)

    register.__module__, register.__doc__ = plain.__module__, plain.__doc__
    faulthandler.register = register


def _forget():
    """The signal is the program's from now on."""
    handler = signal.getsignal(signal.SIGUSR2)
    if _dump.sink is None or not _held(_dump.sink):
        return
    if not _free() and threads.get_ident() != threads.FIRST:
        return  # a handler of the program's that could not be put back from here
    _dump.path = None
    faulthandler.unregister(signal.SIGUSR2)
    if not _free():
        signal.signal(signal.SIGUSR2, handler)


def command(_message=None):
    """Stack of each thread, innermost frame last.

    Read off the frames alone: to look up source lines, as `traceback` does, costs a tenth of a second of CPU and
    reads files, and a program that hangs would seem to work again because it was asked.
    """
    names = dict(threads.names)
    threading = loaded("threading", "enumerate")
    if threading is not None:
        names.update((t.ident, t.name) for t in threading.enumerate())
    else:
        names.setdefault(threads.FIRST, "MainThread")
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
    global _stop
    _stop = True
    return {}


def step():
    """To be called at each step, in the thread that takes it."""
    global _stop
    if _stop:
        _stop = False
        raise ending("the user asked for the end after this step")
