"""What the wrappers of the convolutions share: plans, what was told, who stands in for what."""
import threading
import time
from contextvars import ContextVar

from .config import TIERS
from .state import link, state
from .wire import said

#: `conv` messages of a process.
MOST_TOLD = 500
#: After so many shapes in a row that the native call failed, with one error, new shapes begin lower.
IN_A_ROW = 8
#: Shapes that are known to work natively after others have failed.
MOST_WORKED = 4096
#: A call in flight for so many seconds may be one that hangs.
LONG_S = 1.0


class Plan:
    """Which tiers, in which order, and what was learned with them."""

    def __init__(self, mode, start, tiers, memory, applies=None):
        self.mode = mode
        self.memory = memory
        #: Asked whether the starting tiers count for the call that is made now; None: they count for every one.
        self.applies = applies
        self.start = {op: self._of(op, [index])[0] for op, index in start.items()}
        self.tiers = {op: self._of(op, tiers) for op in ("conv3d", "conv2d")}
        #: Function -> (kind of error, tiers that worked instead of the native call, one a shape); since when it failed
        #: in a row.
        self.row = {}
        #: Function -> tier at which new shapes begin after `IN_A_ROW`.
        self.early = {}
        self.worked = set()

    @staticmethod
    def _of(op, tiers):
        # conv2d is what `split` is made of: the native call
        return sorted({0 if op == "conv2d" and i == 1 else i for i in tiers})

    @property
    def partial(self):
        """True: a lower tier is to begin with for some calls only."""
        return self.applies is not None and any(self.start.values())

    def first(self, op):
        """Index of the tier with which new shapes begin in the call that is made now."""
        start = self.start[op]
        return start if not start or self.applies is None or self.applies() else 0

    def begin(self, op, key, floor=0):
        """Index of the tier to begin with, not above `floor`; the last one where that is below all."""
        known = self.memory.begin(key)
        first = max(self.first(op), known, floor)
        if not known and op in self.early and key not in self.worked:
            first = max(first, self.early[op])
        return next((i for i in self.tiers[op] if i >= first), self.tiers[op][-1])

    def fine(self, op, key):
        """The native call is right for this shape: whatever failed before, it does not fail for all."""
        if op not in self.early:
            self.row.pop(op, None)
        if len(self.worked) < MOST_WORKED:
            self.worked.add(key)

    def failed(self, op, error, tier):
        """The native call failed a new shape, where `tier` then worked. True: new shapes begin lower from now on. For
        this process only: what failed may be mended by the next."""
        kind, tiers = self.row.get(op, (None, ()))
        now = kind_of(error)
        tiers = tiers + (tier,) if kind == now else (tier,)
        self.row[op] = (now, tiers)
        if op in self.early or len(tiers) < IN_A_ROW:
            return False
        self.early[op] = min(tiers)
        return True

    def guessed(self, op, key, tier):
        """The shape began at this tier because others had failed: nothing was learned of itself."""
        return tier == self.early.get(op) and not self.memory.begin(key)

    def below(self, op, first):
        """The tiers from `first` on."""
        return [i for i in self.tiers[op] if i >= first]

    @property
    def native(self):
        """True: nothing but the native call comes into question before a first failure."""
        return self.untouched and self.memory.path is None

    @property
    def untouched(self):
        """True: every shape begins at the native tier."""
        return not any(self.start.values()) and not self.memory.tiers


def kind_of(error):
    """What errors of one cause have in common: class and words, without numbers and places."""
    return type(error).__name__, "".join(c for c in said(error).split("\n")[0][:200] if not c.isdigit())


class Scope:
    """A plan that somebody has entered and not yet left. It ends by itself, wherever it was put: a generator may be closed in
    another thread or task than it was begun in, and a task has a copy of what its maker was in."""

    __slots__ = ("plan", "frame", "on")

    def __init__(self, plan, frame):
        # the number of the frame that has entered: `with` leaves from the same one. No reference, which would be a ring
        self.plan, self.frame, self.on = plan, id(frame), True


#: The scopes of this thread or task, outermost first; with them some that are over.
_entered = ContextVar("fpt_agent_scopes", default=())


class Desk:
    """What the wrappers share. One in a process."""

    def __init__(self):
        #: True: no call needs to be looked up.
        self.quick = True
        #: True: nothing was learned, only what was never tried is of interest; a layer is known by its weight for that,
        #: whatever its input's shape, as `watch` sees what hangs then.
        self.fresh = False
        self.process = None
        self.scopes = 0
        #: All scopes that are on, of every thread and task.
        self.open = []
        self.lock = threading.RLock()  # of the scopes
        self.wrappers = {}
        self.told = {}
        self.problems_told = 0

    def plans(self):
        """(the plan of this thread or task or None, the process' one if it is another)."""
        if self.scopes:
            for scope in reversed(_entered.get()):
                if scope.on:
                    return scope.plan, self.process
        return self.process, None

    def enter(self, plan, frame, torch, wrap):
        """The plan counts from here on, for the thread or task that says so; `frame` is its caller's."""
        scope = Scope(plan, frame)
        with self.lock:
            self.scopes += 1
            self.open.append(scope)
            if self.scopes == 1:
                self.install(torch, wrap)
            self.refresh()
        _entered.set(tuple([one for one in _entered.get() if one.on]) + (scope,))

    def leave(self, plan, frame, torch):
        """Ends the scope that this frame has entered with the plan, or else this thread's or task's last, or else the last."""
        mine = _entered.get()
        with self.lock:
            found = [one for one in self.open if one.plan is plan]
            if not found:
                return
            # max takes the first of equals
            scope = max(reversed(found), key=lambda one: (one.frame == id(frame), one in mine))
            scope.on = False
            self.open.remove(scope)
            self.scopes -= 1
            if self.scopes == 0 and self.process is None:
                self.remove(torch)
            self.refresh()
        if scope in mine:
            _entered.set(tuple([one for one in mine if one.on]))

    def refresh(self):
        """To be called when a plan came, went or learned."""
        self.quick = not self.scopes and (
            self.process is None or self.process.mode != "fallback" or self.process.native)
        self.fresh = not self.scopes and self.process is not None and self.process.untouched
        for wrapper in self.wrappers.values():
            wrapper._fpt_conv.known.clear()

    def install(self, torch, wrap):
        """Puts the wrappers in; `wrap(torch, op, native)` makes one, once."""
        functional = torch.nn.functional
        for op in ("conv3d", "conv2d"):
            if op not in self.wrappers:
                self.wrappers[op] = wrap(torch, op, getattr(functional, op))
            setattr(functional, op, self.wrappers[op])

    def remove(self, torch):
        """Takes them out, where nobody has put another over them."""
        for op, wrapper in self.wrappers.items():
            if getattr(torch.nn.functional, op) is wrapper:
                setattr(torch.nn.functional, op, wrapper._fpt_plain)

    def count(self, op, tier, what):
        """Tier statistics."""
        state.count("%s.%s.%s" % (op, TIERS[tier], what))

    def tell(self, event, key, tier, **more):
        """One `conv` message for each shape and tier."""
        mine = object()
        if len(self.told) >= MOST_TOLD or self.told.setdefault((event, tier, key), mine) is not mine:
            return
        op, shape, weight, dtype, device, params = key
        names = ("stride", "padding", "dilation", "groups")
        link.send("conv", event=event, op=op, tier=TIERS[tier], shape=shape, weight=weight, dtype=dtype, device=device,
                  params=dict(zip(names, params)), **more)

    def watch(self):
        """Notes the calls in flight that last, of shapes that were tried before too, for the next attempt."""
        memory = None if self.process is None else self.process.memory
        if memory is None or memory.path is None or self.process.mode != "fallback":
            return
        long = {}
        for thread, op, x, weight, tier, age in state.flights(time.monotonic()):
            if op in self.wrappers and age >= LONG_S:
                key = memory.key(op, x.shape, weight.shape, x.dtype, x.device, ())
                long[thread] = (key[:5] + (None,), TIERS.index(tier))
        memory.watch(long)
        self.problems(memory)

    def problems(self, memory):
        """What went wrong with the file of the memory, once each."""
        for text in memory.problems[self.problems_told:]:
            link.send("problem", text=text)
        self.problems_told = len(memory.problems)

    def forked(self):
        """In the child of a fork a thread that held a lock is gone."""
        self.lock = threading.RLock()
        if self.process is not None:
            self.process.memory.forked()
        for wrapper in self.wrappers.values():
            conv = wrapper._fpt_conv
            conv.tiers.off.forked(conv.torch)


desk = Desk()
