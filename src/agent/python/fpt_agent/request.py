"""The request that a job belongs to: what a loop around a pipeline's call runs once.

A handler of a page, a task of a worker or the cell of a notebook goes on after its pipeline has returned: it writes a file, it
joins frames. Its job ends when it returns. The loop is the innermost `while`, beyond `for` loops over the clips of one request;
where all are `for` loops, the innermost. Where no loop is around the call (a script, a thread of one job) nothing tells how far
the request reaches, and the job ends with the pipeline.
"""
import bisect
import sys
from _thread import get_ident

#: Frames that are looked at, at most.
DEEPEST = 4096
#: Instructions after which the next one does not run, by the beginning of their names.
ENDS = ("RETURN_", "RAISE_VARARGS", "RERAISE")
#: Jumps that are always taken, by the beginning of their names.
JUMPS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE")
_loops = {}


class Request:
    """One call of the function that its loop runs. The frame of the call carries the request as its trace function, which nobody
    calls where nobody traces: a reference to the frame would keep tensors alive, and the next call has a frame of its own."""

    def __init__(self, frame):
        self.thread = get_ident()
        frame.f_trace = self

    def __call__(self, _frame, _event, _argument):
        """As a trace function: nothing is traced."""
        return None

    def lasts(self):
        """Whether the function has not returned."""
        frame, depth = sys._current_frames().get(self.thread), 0
        while frame is not None and depth < DEEPEST:
            if frame.f_trace is self:
                return True
            frame, depth = frame.f_back, depth + 1
        return False


def find(frame):
    """The request in which `frame` calls a pipeline; None: no loop is around it, or the loop calls the pipeline itself."""
    found = first = None
    inner, outer = None, frame.f_back
    while outer is not None:
        kind = loop_of(outer)
        if kind is not None:
            found = inner, outer
            first = first or found
            if kind == "while":
                break
        inner, outer = outer, outer.f_back
    else:
        found = first
    inner = None if found is None else found[0]
    # a debugger has its own there
    return None if inner is None or inner.f_trace is not None else Request(inner)


def loop_of(frame):
    """"while" or "for": the kind of loop, of several the one that is not a `for`, in which the frame is at this moment; None."""
    code, at = frame.f_code, frame.f_lasti
    if (code, at) not in _loops:
        if len(_loops) > 256:
            _loops.clear()
        _loops[code, at] = Flow(code).loop_of(at)
    return _loops[code, at]


class Flow:
    """How the instructions of a function follow one another, without exceptions."""

    def __init__(self, code):
        import dis
        jumping = set(dis.hasjrel) | set(dis.hasjabs)
        steps = list(dis.get_instructions(code))
        self.offsets = [step.offset for step in steps]
        place = {offset: number for number, offset in enumerate(self.offsets)}
        #: Of each instruction those that may run next. Of FOR_ITER apart: into the body, and behind the loop.
        self.next, self.bodies = [], {}
        for number, step in enumerate(steps):
            name, following = step.opname, []
            if not name.startswith(ENDS + JUMPS):
                following.append(number + 1)
            # the loop by which `await` asks for values is none
            if step.opcode in jumping and not name.startswith("SETUP_") and "NO_INTERRUPT" not in name:
                target = place.get(step.argval, len(steps))
                if name.startswith("FOR_ITER"):
                    self.bodies[number] = following.pop()
                following.append(target)
            self.next.append(following)

    def reaches(self, starts, goal, bodies=True):
        """Whether `goal` runs some time after one of `starts`; `bodies`: loops of `for` may run."""
        seen, waiting = set(), list(starts)
        while waiting:
            number = waiting.pop()
            if number == goal:
                return True
            if number in seen or number >= len(self.next):
                continue
            seen.add(number)
            waiting += self.next[number]
            if bodies and number in self.bodies:
                waiting.append(self.bodies[number])
        return False

    def loop_of(self, at):
        """See the function of this name; of the instruction at this offset."""
        place, kind = bisect.bisect_right(self.offsets, at) - 1, None
        left = dict(self.bodies)
        while True:
            if self.reaches(self.next[place], place, bodies=False):
                return "while"
            around = [f for f, body in left.items()
                      if f != place and self.reaches([body], place) and self.reaches(self.next[place], f)]
            if not around:
                return kind
            # the innermost `for`: its body is in that of each other
            place = next((f for f in around if all(g == f or self.reaches([self.bodies[g]], f) for g in around)), around[0])
            kind = "for"
            del left[place]
