"""What the program does now: phase, progress, operation in flight, counts. One in a process."""
import time
from itertools import count
from _thread import _local, get_ident

from . import holder
from .config import config
from .link import Link
from .loaded import loaded
from .wire import said

link = Link(config.socket, config.time_scale)

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
        #: Operation in flight of each thread: (name, input, weight, tier, mark of the call); None: nothing. No time,
        #: which would be a tenth of what the wrapper may cost: the heartbeat knows what lasts by its mark.
        self.ops = {}
        self._numbers = count(1)
        #: The number of the next call.
        self.number = self._numbers.__next__
        self._flights = {}
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
    def calls(self):
        """Calls of wrapped operations so far."""
        return int(repr(self._numbers)[len("count("):-1]) - 1  # there is no other way to look without taking one

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
            holder.threads.know()
        return stack

    def told(self, phase, error):
        """An exception left a phase: said once, where it came out first."""
        if getattr(self._local, "error", None) == id(error):
            return
        self._local.error = id(error)  # no reference: it would keep the frames and their tensors alive
        link.send("error", phase=phase, kind=type(error).__name__, message=said(error)[:2000])
        for watch in self.watchers:
            try:
                watch(phase, error)
            except Exception as failed:
                link.send("hook_failed", module="error", hook=watch.__name__, message=said(failed, repr)[:500])

    def forget(self):
        """The next exception is another one, even where it lies at the same address."""
        self._local.error = None

    def forked(self):
        """In the child of a fork: the parent's threads, and what they had in flight, are not here."""
        self.ops.clear()  # the same table: what writes to it holds it
        holder.threads.forked()
        holder.watch.follow(None)
        if self.phase not in ("startup", "idle"):
            self.phase, self.phase_since = "unknown", time.monotonic()  # the job is the parent's

    def flights(self, now):
        """(thread, name, input, weight, tier, age in seconds) of each operation in flight. The age counts from when this
        first saw it: at most one heartbeat less than it is."""
        seen, found = {}, []
        for thread, op in self.ops.copy().items():
            if op is not None:
                name, x, weight, tier, number = op
                was = self._flights.get(thread)
                since = was[1] if was is not None and was[0] == number else now
                seen[thread] = number, since
                found.append((thread, name, x, weight, tier, now - since))
        self._flights = seen
        return found

    def beat(self):
        """The heartbeat: alive, and how long the operation in flight has been so."""
        now = time.monotonic()
        flights, threads = self.flights(now), holder.threads
        held = threads.holder(flights)
        ops = [
            {"name": name, "shape": list(x.shape), "weight": list(getattr(weight, "shape", ())),
             "dtype": str(x.dtype).replace("torch.", ""), "device": str(x.device),
             "tier": tier, "age_s": round(age, 3), "thread": thread, "tid": threads.number(thread)}
            for thread, name, x, weight, tier, age in flights
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
            "holder": None if held is None else threads.number(held),
            "stack": self.watched(held),
        }

    def watched(self, thread):
        """The digest of this thread's stack, which is watched from now on; None: it was not, or not for long enough."""
        watch = holder.watch
        if watch.thread != thread:
            watch.follow(thread)
        return watch.digest


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
        if not stack:
            holder.threads.phases[get_ident()] = stack
        stack.append(phase)
        owner.forget()
        if not quiet:
            owner.set_phase(phase, **self.more)

    def __exit__(self, kind, error, trace):
        owner = self.state
        stack = owner.spans()
        stack.pop()
        if not stack:
            holder.threads.phases.pop(get_ident(), None)
        try:
            if error is not None:
                owner.told(self.phase, error)
                if not owner.spans():
                    owner.forget()
            after = self.then or self.before
            if owner.phase != after:
                owner.set_phase(after)
        except Exception as failed:  # the program's own exception must come out, not ours
            link.send("hook_failed", module="span", hook=self.phase, message=said(failed, repr)[:500])
        return False


def torch():
    """The torch module where the program has imported it and its body is done; never imports it."""
    return loaded("torch", "Tensor", "nn")


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
