"""The holder: the thread that the job hangs on, and the part of its Python stack that stays.

A digest of that part tells the supervisor whether the program's own code goes on, where nothing else shows it. It is the
same for as long as the thread is in one loop, however the calls inside it change, and another once the thread is at another
line of the code around the loop.
"""
import os
import sys
from _collections import deque
from _thread import get_ident

from .loaded import loaded

try:
    from _thread import get_native_id
except ImportError:  # a platform without such numbers
    def get_native_id():
        """No number."""
        return None

#: A look at the stack this often, in seconds.
LOOK_S = 0.2
#: The looks of the last four seconds are compared, and at least so many.
WINDOW_S, LOOKS = 4.0, 15
#: They are compared this often, in seconds.
COMPARE_S = 0.5
#: Frames of a look: the outermost ones of a stack of at most `DEEPEST` frames.
FRAMES, DEEPEST = 64, 4096
#: An operation in flight for less, in seconds, comes and goes.
STAYS_S = 1.0


class Threads:
    """Which threads of the process work, and what the kernel calls them. No lock: each call is one step to Python."""

    def __init__(self):
        #: Ident of each thread with a job, in the order in which the jobs began.
        self.jobs = {}
        #: The phases that each thread is in, outermost first; only threads that are in one.
        self.phases = {}
        self.native = {}
        self.first = get_ident(), get_native_id()

    def know(self):
        """Remembers the calling thread's native id."""
        if len(self.native) > 1024:  # idents of threads that have ended, mostly
            self.native.clear()
        self.native[get_ident()] = get_native_id()

    def begin(self):
        """The calling thread, by its ident, begins a job."""
        self.know()
        ident = get_ident()
        self.jobs[ident] = True
        return ident

    def forked(self):
        """In the child of a fork: only the calling thread is here."""
        self.__init__()

    def number(self, ident):
        """The native id of a thread; None: not known."""
        if ident == self.first[0]:
            return self.first[1]
        threading = loaded("threading", "_active")
        thread = None if threading is None else threading._active.get(ident)
        number = getattr(thread, "native_id", None)
        return self.native.get(ident) if number is None else number

    def holder(self, flights):
        """Ident of the thread of the oldest operation that stays, else of the job that began last, else of the phase that
        began last, else of any operation; None: there is none. `flights`: as `State.flights` gives them."""
        oldest = max(flights, key=lambda flight: flight[-1], default=None)
        if oldest is not None and oldest[-1] >= STAYS_S:
            return oldest[0]
        for idents in (self.jobs.copy(), self.phases.copy()):
            frames = sys._current_frames() if idents else ()
            alive = [ident for ident in idents if ident in frames]
            if alive:
                return alive[-1]
        return None if oldest is None else oldest[0]


class Watch:
    """Looks at the stack of one thread. No reference to a frame outlives a look: it would keep tensors alive."""

    def __init__(self):
        self.follow(None)

    def follow(self, thread):
        """This thread from now on; None: none."""
        self.thread = thread
        self.looks = deque()  # [path, how often in a row, when last]
        self.count = 0
        self.began = self.looked = self.compared = None
        #: The longest outer part so far of all that can belong to one place.
        self.place = None
        self.digest = None

    def look(self, now):
        """To be called often, in any thread."""
        thread = self.thread
        if thread is None or self.looked is not None and now - self.looked < LOOK_S:
            return
        self.looked = now
        path = outline(sys._current_frames().get(thread))
        if path is None:
            return
        if self.began is None:
            self.began = self.compared = now
        looks = self.looks
        if looks and looks[-1][0] == path:
            looks[-1][1:] = looks[-1][1] + 1, now
        else:
            looks.append([path, 1, now])
        self.count += 1
        while now - looks[0][2] >= WINDOW_S and self.count - looks[0][1] >= LOOKS:
            self.count -= looks.popleft()[1]
        if self.count >= LOOKS and now - self.began >= WINDOW_S and now - self.compared >= COMPARE_S:
            self.compared = now
            self._settle(common([entry[0] for entry in looks]))

    def _settle(self, part):
        """The thread is in this part of its code. Where that may be the place at which it was, seen with more or fewer of the
        calls inside, the digest stays."""
        place = self.place
        if place is None or not may_be_one(place, part):
            self.place = part
            self.digest = "%08x" % (hash(part) & 0xFFFFFFFF)
        elif len(part) > len(place):
            self.place = part


def outline(frame):
    """The outer part of a stack: (code, line) of each frame, outermost first. A function that calls itself counts once, and
    without a line. None: there is no frame, or too many."""
    found, last, depth = [], None, 0
    while frame is not None:
        depth += 1
        if depth > DEEPEST:
            return None
        code = frame.f_code
        if code is last:
            found[-1] = found[-1][0], 0
        else:
            found.append((hash((code.co_filename, code.co_firstlineno, code.co_name)), frame.f_lineno or 0))
            last = code
        frame = frame.f_back
    return tuple(found[:-FRAMES - 1:-1]) or None


def common(paths):
    """What all paths begin with. The last frame of it counts without its line: the thread may be in a loop there."""
    first = paths[0]
    same = len(first)
    for path in paths[1:]:
        if path[:same] != first[:same]:
            same = next(at for at in range(same) if path[at:at + 1] != first[at:at + 1])
    beyond = {path[same][0] if len(path) > same else None for path in paths}
    if len(beyond) == 1 and None not in beyond:
        same += 1  # the same function at several lines
    return first[:same - 1] + ((first[same - 1][0], 0),) if same else ()


def may_be_one(one, other):
    """Whether of two such parts one is the other with calls inside it."""
    shorter, longer = sorted((one, other), key=len)
    at = len(shorter) - 1
    return at < 0 or shorter[:at] == longer[:at] and shorter[at][0] == longer[at][0]


def rank():
    """The number of the process among its equals, as torchrun and accelerate set it; None."""
    number = os.environ.get("RANK", "")
    return int(number) if number.isdigit() else None


threads, watch = Threads(), Watch()
