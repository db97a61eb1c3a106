"""How full the folder of the vault is: counted now and then, and kept up to date with what this process writes."""
import time

#: The folder is counted anew after so long, and once so large a part of the limit was written: other processes
#: write there, too.
RECOUNT_S, RECOUNT_PART = 10.0, 1 / 16


class Room:
    """The entries as (name, bytes, time of writing), oldest first, and what has been written and removed since."""

    def __init__(self, entries, run):
        self.entries = entries
        self.total = sum(entry[1] for entry in entries)
        self.mine = [entry[:2] for entry in entries if entry[0].split(".")[1] == run]
        #: Entries of runs that are over, and bytes of others that go on; looked up when room is short.
        self.over = self.living = None
        self.since, self.began = 0, time.monotonic()

    def old(self, limit):
        """True: to be counted anew."""
        return time.monotonic() - self.began > RECOUNT_S or self.since > limit * RECOUNT_PART

    def add(self, name, size):
        """This run has written an entry that was not there."""
        self.total += size
        self.since += size
        self.mine.append((name, size))

    def kept(self, of_others):
        """Bytes that may not be removed: this run's newest entry, and those of other runs that go on. `of_others` tells
        from the entries those of runs that are over, and the bytes of these."""
        if self.over is None:
            over, self.living = of_others(self.entries)
            self.over = [entry[:2] for entry in over]
        return self.living + (self.mine[-1][1] if self.mine else 0)

    def next(self):
        """(name, bytes) of the entry that is to go next, which counts as gone: of a run that is over, then of this run's
        latents and steps, then of its others; never its newest."""
        if self.over:
            found = self.over.pop(0)
        else:
            at = (at for at in range(len(self.mine) - 1) if self.mine[at][0].startswith(("latents.", "step.")))
            found = self.mine.pop(next(at, 0))
        self.total -= found[1]
        return found
