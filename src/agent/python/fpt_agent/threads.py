"""Threads of the agent. `threading` does not know them: a program may join all that it lists, or wait until one is left.

Nor does a start import it: it takes as long as all the rest, and whoever imports it first is the main thread to it.

Locks. A finalizer or a signal handler of the program's runs between any two steps of any code in Python, ours too, in the very
thread that it interrupts, and may draw a bar, import, or wait for another thread. So what a thread of the program's calls of the agent takes no
lock that it could wait for without an end:

* messages, progress, statistics, what is learned and in flight of convolutions: none. Single calls of deque, dict, set, list and
  `itertools.count`, which are one step to Python, on objects that are whole before and after each.
* `Link.writing` (who writes to the socket): the link's own thread; the end of the program waits for it as long as it has time. Nothing that
  sends takes it, so a finalizer below it may send.
* `Bell` (here): never waited for by who rings; who waits does so for a given time, with nothing held.
* `Memory.writing` (who writes the file): waited for 0.25 s at most, and not at all below itself (`Memory.writer`).
* `Desk.lock`, `CudnnOff.lock`: reentrant; each line leaves what a call from within finds usable. The agent's threads never take them.
* `Store` (store.py): none; its queue is a list of which each call takes or adds one. `Task.done` is a `Bell`.
"""
import os
import sys
import time
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread

from .descriptors import status
from .loaded import loaded

try:
    import _signal as signal  # what `signal` is made of, without its enums
except ImportError:
    import signal

#: Ident of the thread in which the agent has started.
FIRST = get_ident()
#: Name of each of them in /proc, at most 15 characters; src/model/agent.rs has the same.
KERNEL_NAME = "fpt-agent"
#: Ident of each of them -> its name.
names = {}
#: The kernel's numbers of them.
numbers = set()
#: Bells that a thread of ours may wait at without an end.
bells = []
#: Signals that a fault of the thread itself raises: blocked, they would end the process past its own handler. All others
#: are the program's: the kernel gives a signal of the process to any thread that does not block it, so what the program
#: blocks, to take it later or not at all, would come to ours. That goes for SIGUSR2 too (stacks.py).
FAULTS = frozenset(getattr(signal, name) for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS")
                   if hasattr(signal, name))


class Deserted(BaseException):
    """What a thread of ours raises where the process has no other threads than ours."""


def start(function, name):
    """Calls the function in a thread of its own, which ends with the process; the thread's ident. RuntimeError: there can
    be none. Whatever else than `Deserted` the function raises, it is called again: nothing is printed and nothing ends the
    thread."""

    def run():
        name_for_kernel()
        names[get_ident()] = name  # here too: a handler of the program's may raise before the line below
        numbers.add(get_native_id())
        while True:
            try:
                function()
            except Deserted:
                return
            except BaseException:  # a finalizer of the program's runs in any thread and may raise SystemExit here
                time.sleep(0.2)

    ident = deaf(start_new_thread, run, ())
    names[ident] = name
    return ident


def leave_if_deserted():
    """Raises `Deserted` where the main thread has ended by itself (`pthread_exit`) and no thread but ours is left: without
    the agent the process would be over."""
    me = os.getpid()
    try:
        if status.read().partition(b"\nState:")[2].split(None, 1)[0] not in (b"Z", b"X"):
            return
        left = {int(number) for number in os.listdir("/proc/self/task")}
    except (OSError, ValueError, IndexError):  # nobody can tell
        return
    if left <= numbers | {me}:
        for bell in bells:
            bell.ring()
        raise Deserted


def name_for_kernel():
    """Gives the calling thread its name in /proc: by it the supervisor knows that it is not the job's."""
    try:
        with open("/proc/thread-self/comm", "w") as f:
            f.write(KERNEL_NAME)
    except OSError:
        pass


def deaf(function, *args):
    """The function's result, all signals but `FAULTS` blocked in the calling thread meanwhile: a thread that it starts
    keeps them so, from its first moment. What came meanwhile comes afterwards."""
    mask = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        return function(*args)
    was = mask(signal.SIG_BLOCK, ())
    try:  # each call runs the program's handlers of what has come already, and they may raise
        mask(signal.SIG_BLOCK, signal.valid_signals() - FAULTS)
        return function(*args)
    finally:
        mask(signal.SIG_SETMASK, was)


class Bell:
    """What one thread waits for until another rings."""

    def __init__(self):
        self._lock = allocate_lock()
        self._lock.acquire()

    def ring(self):
        """Lets the waiting thread, or the next that waits, go on. May be rung again."""
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:
                return  # another has rung at the same moment

    def wait(self, seconds):
        """Until it rings, or so long at most (-1: for ever); then it is silent again. True: it has rung."""
        return self._lock.acquire(True, seconds)


def unlist():
    """Takes the calling thread off `threading`'s list again: a finalizer of the program's that happens to run in it and
    asks for `current_thread`, as logging does, puts it there for good."""
    threading = loaded("threading", "_active")
    if threading is not None:
        threading._active.pop(get_ident(), None)


class Quiet:
    """Keeps Python 3.12 and later from warning of a fork on account of the agent's threads alone.

    Python counts the threads that the kernel knows. Where these are the calling one and the agent's, it would say nothing
    without the agent: the warning of this one fork is then taken out. Of a process with threads of its own it is
    said as ever. An item of `warnings.filters` whose `match` is asked for the text does that: in front of the
    program's own, which may turn a warning into an error, and until the first text that it is asked for. (3.12 warns
    before, 3.13 after the functions that are called after a fork in the parent.)"""

    def __init__(self):
        self.item = ("ignore", self, DeprecationWarning, None, 0)
        self.armed = None

    def before(self):
        """Before a fork."""
        self.after()
        if not names or kernel_threads() != 1 + len(names):
            return
        self.armed = get_ident()
        # not by `filterwarnings`: it has Python tell anew what is told once
        filters().insert(0, self.item)

    def match(self, text):
        """Asked by `warnings`, of any text that it tells meanwhile."""
        if self.armed != get_ident():
            return False
        self.after()
        return "is multi-threaded, use of " in text

    def after(self):
        """Once it is over."""
        if self.armed is not None:
            self.armed = None
            found = filters()
            found[:] = [item for item in found if item is not self.item]


def filters():
    """The list that `warnings` goes by, where nobody has imported that too."""
    import _warnings

    return getattr(loaded("warnings", "filters"), "filters", _warnings.filters)


def kernel_threads():
    """Threads of this process as Python counts them for its warning; 0: unknown."""
    try:
        with open("/proc/self/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[17])
    except (OSError, ValueError, IndexError):
        return 0


if hasattr(os, "register_at_fork"):
    # the numbers may be those of the child's own threads
    os.register_at_fork(after_in_child=names.clear)
    os.register_at_fork(after_in_child=numbers.clear)
    if sys.version_info >= (3, 12):
        _quiet = Quiet()
        os.register_at_fork(before=_quiet.before, after_in_child=_quiet.after)
