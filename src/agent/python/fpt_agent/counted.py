"""The function whose steps a bar counts: its thread, and whether the program has left it.

A page may give up a job in the middle and keep the bar, which then looks like steps that stopped. So the call that the steps
belong to is remembered at each drawing: what a `while` loop around the function runs once (decision 18), or the coroutine of
an event loop's task, or a generator that a page reads, else the outermost function of the thread. When that has returned the
steps are over.
"""
import sys
import weakref
from _thread import get_ident

from . import request
from .holder import threads

#: Frames are looked at up to this depth.
DEEPEST = request.DEEPEST
#: CO_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, CO_ASYNC_GENERATOR: calls that rest beside their thread's stack.
RESTS = 0x20 | 0x80 | 0x100 | 0x200
#: Parts of a bar's own code, by the beginning of a module's name.
OF_A_BAR = ("tqdm.", "fpt_agent.")


class Call:
    """A call that is in progress. Its frame alone keeps this object, as its trace function (see `request.Request`), so that
    this ends with the frame."""

    __slots__ = ("thread", "rests", "__weakref__")

    def __init__(self, frame):
        self.thread = get_ident()
        self.rests = bool(frame.f_code.co_flags & RESTS)
        frame.f_trace = self

    def __call__(self, _frame, _event, _argument):
        """As a trace function: nothing is traced."""
        return None

    def lasts(self):
        """Whether it has not returned. A coroutine that waits lies in no thread's stack."""
        if self.rests:
            return True
        frame, depth = sys._current_frames().get(self.thread), 0
        while frame is not None and depth < DEEPEST:
            if frame.f_trace is self:
                return True
            frame, depth = frame.f_back, depth + 1
        return False


class Steps:
    """The steps of the bar that was drawn last and has not become full."""

    def __init__(self, bar, n, total):
        self.bar, self.n, self.total = bar, n, total
        self.thread = self.call = None
        #: Loops around the call that run once for each step.
        self.inner = 0

    def advanced(self, n, frame):
        """The bar was drawn with a higher count; `frame`: whose step it was."""
        threads.know()
        self.n, self.thread = n, get_ident()
        if self.call is not None and not self.left():
            return
        if self.call is not None:
            # the steps go on: what has returned was one of them
            self.inner += 1
        self.call = call_of(frame, self.inner)

    def left(self):
        """Whether the call of the steps has returned; None: not known."""
        if self.call is None:
            return None
        call = self.call()
        return call is None or not call.lasts()


def call_of(frame, inner):
    """A weak reference to the call that the steps of this function belong to, beyond this many loops; None: nothing tells."""
    depth = 0
    while frame.f_back is not None and depth < DEEPEST:
        outer = frame.f_back
        if request.loop_of(outer) == "while":
            if not inner:
                break
            inner -= 1
        if frame.f_code.co_flags & RESTS and not outer.f_code.co_flags & RESTS:
            break
        frame, depth = outer, depth + 1
    known = frame.f_trace
    if inner or depth == DEEPEST or known is not None and not isinstance(known, Call):
        return None
    return weakref.ref(known or Call(frame))


def function_of(frame):
    """The function outside the bar's own code that this frame belongs to; None: the bar draws itself, from a thread of its own."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name == "tqdm._monitor":
            return None
        if not name.startswith(OF_A_BAR):
            return frame
        frame = frame.f_back
    return None


#: The steps at hand; None: there are none, or the bar is full.
now = None


def drawn(bar, n, total, unit, last):
    """A bar was drawn by the calling thread; `last`: it ends here. A repaint of the same count is nobody's step."""
    global now
    is_known = now is not None and now.bar == id(bar) and now.total == total and n >= now.n
    if last:
        # one that is closed before it is full has steps that the program may have left
        now = None if is_known and n >= total else now
        return
    # files and bytes are counted by other units
    if unit != "it" or not total or total < 2:
        return
    if not is_known:
        # who makes a bar need not be who counts
        now = Steps(id(bar), n, total)
    elif n > now.n:
        frame = function_of(sys._getframe(1))
        if frame is not None:
            now.advanced(n, frame)


def beat():
    """The field of the heartbeat: `tid` of the thread that counted last, the bar's `total`, whether the program has `left` its steps
    (null: not known); None: there is no such bar, it is full, or nobody has counted yet."""
    steps = now
    if steps is None or steps.thread is None:
        return None
    return {"tid": threads.number(steps.thread), "total": steps.total, "left": steps.left()}


def forked():
    """In the child of a fork: the steps are the parent's."""
    global now
    now = None
