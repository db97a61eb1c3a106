"""What the program does now: phase, progress, operation in flight, counts. One in a process."""
import sys
import time
from _thread import _local, get_ident

from .link import Link
from .config import config

link = Link(config.socket)

#: Moving models about inside one another is one phase: a load that first unloads says `model_load` only.
MOVES = ("model_load", "offload")


class State:
    """Written by the hooks, read by the heartbeat. No lock: each field is replaced as a whole."""

    def __init__(self):
        self.phase = "startup"
        self.phase_since = time.monotonic()
        self.progress = None
        #: Section being made and how many there will be, where the program tells; written by the phase hooks.
        self.section = self.sections = None
        #: Prompt of the job, kept only where the setting `vault_prompt` asks for it.
        self.prompt = None
        #: Operation in flight of each thread: (name, input shape, weight shape, dtype, device, tier, since); or the
        #: input and the weight themselves, then without dtype and device. None: nothing.
        self.ops = {}
        self.calls = 0
        #: Tier statistics: (event, thread) -> count. Of each thread for itself, so that none is lost without a lock.
        self.counts = {}
        self._local = _local()
        #: Called with (phase, exception) for an exception that leaves a phase.
        self.watchers = []

    def count(self, name):
        """Counts one event of the tier statistics."""
        key = name, get_ident()
        self.counts[key] = self.counts.get(key, 0) + 1

    @property
    def tiers(self):
        """Tier statistics of all threads: "conv3d.split.ok" -> count."""
        found = {}
        for (name, _), number in self.counts.copy().items():
            found[name] = found.get(name, 0) + number
        return found

    def set_phase(self, phase, **more):
        """The program has entered a phase (a word of the closed list)."""
        was, since = self.phase, self.phase_since
        self.phase, self.phase_since = phase, time.monotonic()
        link.send("phase", phase=phase, was=was, was_s=round(self.phase_since - since, 3),
                  memory=memory(), **more)

    def span(self, phase, then=None, **more):
        """A phase around a call (a context manager); the phase before it, or `then`, comes at its end, whatever
        the end."""
        return Span(self, phase, then, more)

    def within(self, phase, **more):
        """Another phase until the span around ends: for what has a beginning only, such as a progress bar."""
        if self.phase != phase:
            self.set_phase(phase, **more)

    def spans(self):
        """The phases that this thread is in, outermost first."""
        stack = getattr(self._local, "spans", None)
        if stack is None:
            stack = self._local.spans = []
        return stack

    def told(self, phase, error):
        """An exception left a phase: said once, where it came out first."""
        if getattr(self._local, "error", None) == id(error):
            return
        self._local.error = id(error)  # no reference: it would keep the frames and their tensors alive
        link.send("error", phase=phase, kind=type(error).__name__, message=str(error)[:2000])
        for watch in self.watchers:
            try:
                watch(phase, error)
            except Exception as failed:
                link.send("hook_failed", module="error", hook=watch.__name__, message=repr(failed)[:500])

    def forget(self):
        """The next exception is another one, even where it lies at the same address."""
        self._local.error = None

    def forked(self):
        """In the child of a fork: the parent's threads, and what they had in flight, are not here."""
        self.ops = {}

    def beat(self):
        """The heartbeat: alive, and how long the operation in flight has been so."""
        now = time.monotonic()
        ops = [
            {"name": op[0], "shape": list(getattr(op[1], "shape", op[1])), "weight": list(getattr(op[2], "shape", op[2])),
             "dtype": str(op[3] or op[1].dtype).replace("torch.", ""), "device": str(op[4] or op[1].device),
             "tier": op[5], "age_s": round(now - op[6], 3), "thread": thread}
            for thread, op in self.ops.copy().items() if op is not None
        ]
        return {
            "phase": self.phase,
            "phase_s": round(now - self.phase_since, 3),
            "progress": self.progress,
            "ops": ops,
            "calls": self.calls,
            "tiers": self.tiers,
            "memory": memory(),
            "cpu_s": round(time.process_time(), 3),
        }


class Span:
    """See `State.span`. Nested spans of one phase, and loads inside loads, say nothing of their own."""

    __slots__ = ("state", "phase", "then", "more", "before")

    def __init__(self, owner, phase, then, more):
        self.state, self.phase, self.then, self.more = owner, phase, then, more

    def __enter__(self):
        owner, phase = self.state, self.phase
        stack = owner.spans()
        self.before = owner.phase
        quiet = owner.phase == phase or bool(stack and stack[-1] in MOVES and phase in MOVES)
        stack.append(phase)
        owner.forget()
        if not quiet:
            owner.set_phase(phase, **self.more)

    def __exit__(self, kind, error, trace):
        owner = self.state
        owner.spans().pop()
        try:
            if error is not None:
                owner.told(self.phase, error)
                if not owner.spans():
                    owner.forget()
            after = self.then or self.before
            if owner.phase != after:
                owner.set_phase(after)
        except Exception as failed:  # the program's own exception must come out, not ours
            link.send("hook_failed", module="span", hook=self.phase, message=repr(failed)[:500])
        return False


def torch():
    """The torch module where the program has imported it and its body is done; never imports it."""
    module = sys.modules.get("torch")
    return module if hasattr(module, "Tensor") and hasattr(module, "nn") else None


def memory():
    """Bytes of the current device as torch counts them; None before the program has used a device."""
    module = torch()
    if module is None:
        return None
    try:
        cuda = module.cuda
        if not cuda.is_initialized():
            return None
        # mem_get_info would be a driver call on a card that may hang: torch's own counters are enough
        return {
            "device": cuda.current_device(),
            "allocated": cuda.memory_allocated(),
            "reserved": cuda.memory_reserved(),
            "peak": cuda.max_memory_allocated(),
        }
    except Exception:
        return None


state = State()


def finding(verdict, text, cure, fixed=False, **more):
    """A finding of the agent: a verdict of the closed list, its words, the cure, whether it was put right."""
    link.send("finding", verdict=verdict, text=text, cure=cure, fixed=fixed, **more)


def fix(what, **more):
    """Something of the program's was changed on the way, as the settings ask."""
    link.send("fix", what=what, **more)
