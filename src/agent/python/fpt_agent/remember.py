"""What was learned of convolutions: with which tier to begin for a shape.

In this process always; with `conv_memory` (docs/agent.md) also from attempt to attempt. A hang inside the
native call cannot be ended from within, so what is tried for the first time is noted beforehand, in a small file
of this process' own; whoever starts after a dead attempt finds it and begins one tier lower, for that
shape only.
"""
import json
import os
import threading

from .config import TIERS

#: Shapes at most; the oldest give way. A decode has some fifty.
MOST = 4096
#: Of these in the file, which is written anew with each.
MOST_LASTING = 1024
#: Bytes of a file; a longer one is not ours.
LONGEST = 4 << 20
NOTE = ".flight-"
#: A thread waits so long for another one that writes a file.
WAIT_S = 0.25


def numbers(value):
    """A parameter as it is compared and written: a number, a list of numbers, a word."""
    if isinstance(value, (int, str)):
        return value
    values = tuple(int(v) for v in value)
    return values[0] if len(set(values)) == 1 else values


class Memory:
    """Key -> index of the tier to begin with. A key is made by `key`. Safe with several threads."""

    def __init__(self, path=None, run=None, attempt=None):
        self._fresh()
        self.tiers = {}
        self.lasting = set()
        self.path, self.run, self.attempt = path, run, attempt
        self.problems = []

    def _fresh(self):
        self.flights = {}
        self.stale = set()  # files that do not say what is so
        self.writing, self.writer = threading.Lock(), None

    @staticmethod
    def key(op, shape, weight, dtype, device, params):
        """op: "conv3d"; shapes: of any sequence type; dtype "torch.float16"; device "cuda" or "cuda:0"; params:
        (stride, padding, dilation, groups)."""
        dtype, device = str(dtype).replace("torch.", ""), str(device).split(":")[0]
        return (op, tuple(shape), tuple(weight), dtype, device, tuple(numbers(p) for p in params))

    def begin(self, key):
        """Index of the tier to begin with; 0 where nothing is known."""
        found = self.tiers.get(key)
        if found is None and self.path:
            found = self.tiers.get(key[:5] + (None,))  # written by one who does not know the parameters
        return found or 0

    def learn(self, key, tier, lasting):
        """`tier` (index) worked where those above did not. `lasting`: true of the next attempt as well."""
        if self.tiers.get(key) == tier and (key in self.lasting or not lasting or self.path is None):
            return
        while len(self.tiers) >= MOST and key not in self.tiers:
            try:
                oldest = next(iter(self.tiers))
            except (RuntimeError, StopIteration):  # another thread was at it
                continue
            self.tiers.pop(oldest, None)
            self.lasting.discard(oldest)
        self.tiers[key] = tier
        if lasting and self.path is not None and len(self.lasting) < MOST_LASTING:
            self.lasting.add(key)
            self._bring("shapes")

    def take_off(self, key, tier):
        """Notes that `tier` is tried for the shape; `land` ends it."""
        if self.path is None:
            return
        self.flights[threading.get_ident()] = (key, tier)
        self._bring("note")

    def land(self):
        """The call of this thread has come back, whatever its end."""
        if self.path is None:
            return
        if self.flights.pop(threading.get_ident(), None) is not None:
            self._bring("note")

    def watch(self, long):
        """What a look from outside found in flight: thread -> (key, tier). What it no longer finds has come back."""
        seen = {("seen", thread): flight for thread, flight in long.items()}
        was = {k: v for k, v in self.flights.copy().items() if isinstance(k, tuple)}
        if seen != was:
            for key in was:
                if key not in seen:
                    self.flights.pop(key, None)
            self.flights.update(seen)
            self._bring("note")

    def _bring(self, which):
        """Brings a file up to date. Where that happens at this moment, in another thread or below this finalizer or signal
        handler, it is done there once more; another thread is waited for, but not for ever."""
        self.stale.add(which)
        me = threading.get_ident()
        while self.writer != me and self.writing.acquire(timeout=WAIT_S):
            try:
                self.writer = me
                for name, write in (("shapes", self._save), ("note", self._note)):
                    if name in self.stale:
                        self.stale.discard(name)
                        write()
            finally:
                self.writer = None
                self.writing.release()
            if not self.stale:
                return

    def load(self):
        """Reads what earlier attempts learned, and what they died of. What is damaged is told and left alone."""
        if self.path is None:
            return
        # notes first: who clears one has saved it before
        notes = self._notes()
        for entry in self._read(self.path).get("shapes", ()):
            self._take(entry, 0)
        hung = 0
        for name, told in notes:
            for entry in told.get("flights", ()):
                hung += self._take(entry, 1)
        if hung:
            self._save()
        for name, _ in notes:
            self._remove(name)

    def _notes(self):
        """The notes of dead attempts: not those of the processes that run beside us."""
        folder, base = os.path.split(os.path.abspath(self.path))
        try:
            names = sorted(n for n in os.listdir(folder) if n.startswith(base + NOTE))
        except OSError:
            return []
        found = []
        for name in names[:100]:
            told = self._read(os.path.join(folder, name))
            if not told or (told.get("run"), told.get("attempt")) != (self.run, self.attempt):
                found.append((os.path.join(folder, name), told))
        return found

    def _take(self, entry, lower):
        """Learns one entry of a file, `lower` tiers below what it says. 1: learned."""
        try:
            params = entry.get("params")
            key = self.key(entry["op"], entry["shape"], entry["weight"], entry["dtype"], entry["device"], params or ())
            if params is None:
                key = key[:5] + (None,)
            tier = min(TIERS.index(entry["tier"]) + lower, len(TIERS) - 1)
            hash(key)
        except (AttributeError, KeyError, TypeError, ValueError):
            self.problems.append("conv_memory: an entry cannot be understood: %.200r" % (entry,))
            return 0
        if lower and key[4] == "cpu":
            return 0  # no library searches there: a lower tier would only give other last digits
        if key[0] == "conv2d" and TIERS[tier] == "split":
            tier += 1
        if len(self.tiers) >= MOST and key not in self.tiers:
            return 0
        self.tiers[key] = max(tier, self.tiers.get(key, 0))
        if len(self.lasting) < MOST_LASTING:
            self.lasting.add(key)
        return 1

    def _read(self, path):
        try:
            with open(path, "rb") as file:
                data = file.read(LONGEST + 1)
            if len(data) > LONGEST:
                raise ValueError("longer than %d bytes" % LONGEST)
            told = json.loads(data.decode("utf-8"))
            if not isinstance(told, dict):
                raise ValueError("not an object")
            for name in ("shapes", "flights"):
                if not isinstance(told.get(name, []), list):
                    raise ValueError("`%s` is no list" % name)
            return told
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            self.problems.append("conv_memory: %s: %s" % (os.path.basename(path), error))
            return {}

    def _save(self):
        shapes = [entry_of(key, tier) for key, tier in self.tiers.copy().items() if key in self.lasting]
        self._write(self.path, {"version": 1, "shapes": shapes})

    def _note(self):
        path = "%s%s%d" % (self.path, NOTE, os.getpid())
        flights = [entry_of(key, tier) for key, tier in self.flights.copy().values()]
        if flights:
            self._write(path, {"version": 1, "run": self.run, "attempt": self.attempt, "flights": flights})
        else:
            self._remove(path)

    def _write(self, path, what):
        """Whole or not at all. A full disk costs what was learned, once told."""
        beside = "%s.%d.new" % (path, os.getpid())
        try:
            with open(beside, "w") as file:
                json.dump(what, file, separators=(",", ":"))
            os.replace(beside, path)
        except OSError as error:
            self._remove(beside)
            if len(self.problems) < 20:
                self.problems.append("conv_memory: %s" % error)

    def _remove(self, path):
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except OSError as error:
            if len(self.problems) < 20:
                self.problems.append("conv_memory: %s" % error)

    def forked(self):
        """In the child of a fork: another process with the same path, and no thread that writes."""
        self._fresh()


def entry_of(key, tier):
    """One shape of a file."""
    op, shape, weight, dtype, device, params = key
    return {"op": op, "shape": shape, "weight": weight, "dtype": dtype, "device": device, "params": params,
            "tier": TIERS[tier]}
