"""The folder of the rescue vault: atomic writing off the hot path, the size limit, looking entries up.

A file is named `WHAT.RUN.REST`: what it is (`latents`, `section`, `step`, `job`, `queue`), whose it is, and the rest. It is written
under a temporary name, synced and renamed, so a file with its final name is whole.

The queue has no lock (threads.py says why): a handler or finalizer of the program's that decodes may run between any two steps
of `put`. Whoever has taken a task out of `tasks` owns it.
"""
import atexit
import hashlib
import os
import time

from . import threads
from .config import config
from .living import lives, records
from .room import Room
from .state import link
from .wire import said

#: Bytes of tensors that wait for the disk at most. Beyond that the oldest latents that wait give way: their decode is
#: over, and a hang would need the newest. Where there are none, what comes is not kept, which is told as failed.
WAITING = 512 << 20
#: So many latents wait at most, whatever their size: each costs the disk a sync, and the end of the program waits for them.
MOST_LATENTS = 16
#: Where nothing but files that do not press waits, one is written so often: the writer takes its part of the interpreter
#: lock from the program's own thread, and of a time slice each time.
PACE_S = 0.1
#: Room that stays free on the disk.
SPARE = 64 << 20
#: Default of the setting `vault_limit`.
LIMIT = 2 << 30
#: Longest wait of a decode for its latents to be on the disk. The writer thread cannot finish once a decode hangs that
#: holds the interpreter lock; a disk that is slower once is not waited for again.
GRACE_S = 0.25
#: Longest wait for the disk when the program ends by itself.
LAST_S = 2.0
PIECE = 4 << 20
TEMP = ".part-"
#: What an entry may be; another file in the folder is none of the vault's.
WORDS = ("latents", "section", "step", "job", "queue")


def plain(text):
    """The text as part of a file name."""
    return "".join(c if c.isalnum() and c.isascii() or c in "-_" else "-" for c in str(text))[:60] or "none"


class Task:
    """One file to be written. `parts` are bytes-like; `keep` holds what they point into."""

    def __init__(self, name, parts, keep=(), shape=None, sync=True, finish=None, tells=True):
        self.name, self.parts, self.keep, self.sync = name, parts, keep, sync
        self.size = sum(len(part) for part in parts)
        #: What is told of it: a failure always, that it is written only where it `tells`.
        self.message = dict({} if shape is None else {"shape": list(shape)}, what=name.split(".")[0], bytes=self.size)
        self.tells = tells
        #: Called in the writer with the parts; returns those to write (a digest belongs into a header), None: nothing.
        self.finish = finish
        #: Rings once, when it is written or never will be.
        self.done = threads.Bell()
        self.ok = False
        #: False: it may wait, and give way to a later one.
        self.presses = True


class Store:
    """See the module. One in a process; the folder is shared with other processes and runs."""

    def __init__(self, folder, limit=None, run=None, records=()):
        self.folder, self.limit = folder, LIMIT if limit is None else limit
        self.records = records  # folders with the records of runs
        self.run = plain(run)
        self._fresh()

    def _fresh(self):
        self.tasks = []  # those that wait, in their order
        self.undone = set()  # these, and the one that is being written
        self.bell = threads.Bell()
        threads.bells.append(self.bell)
        self.sleeps = False  # the writer waits for a file, however long
        self.starts = [None]  # who takes it out starts the writer
        self.thread = None
        self.told = set()
        self.slow = self.hurries = False
        self.number = 0
        self.last = 0.0  # when the last file was written
        self.room = None

    @property
    def waiting(self):
        """Bytes that are not written yet."""
        return sum(task.size for task in tuple(self.undone))

    @property
    def open(self):
        """Files that are not written yet."""
        return len(self.undone)

    def put(self, task):
        """Queues a file, at once and without touching the disk. False: too much waits already."""
        self._give_way(task)
        waiting = self.waiting
        if waiting + task.size > WAITING and self.tasks:
            self.fail(task.message, "the disk is too slow: %d MiB wait to be written" % (waiting >> 20))
            return False
        self._start()  # first: where there can be no thread, nothing may wait for it
        self.undone.add(task)
        self.tasks.append(task)
        if task.presses or self.sleeps:
            self.bell.ring()
        return True

    def _start(self):
        """Starts the writer, unless somebody has or is about to. RuntimeError: there can be no thread."""
        try:
            self.starts.pop()
        except IndexError:
            return
        try:
            self.thread = threads.start(self._work, "fpt-vault")
        except BaseException:
            self.starts.append(None)
            raise

    def _give_way(self, task):
        """Takes the oldest latents that wait out of the queue, as far as the new file needs it. Not for a step: of these
        the first ones count, as a restart begins with them."""
        if task.name.startswith("step."):
            return
        waiting = [one for one in self.tasks if one.name.startswith("latents.")]
        while waiting and (self.waiting + task.size > WAITING or
                           len(waiting) >= MOST_LATENTS and task.name.startswith("latents.")):
            old = waiting.pop(0)
            try:
                self.tasks.remove(old)
            except ValueError:  # the writer has it, or somebody else was at it
                continue
            self.undone.discard(old)
            old.parts = old.keep = old.finish = None
            old.done.ring()

    def _next(self):
        """Waits until a file is to be written, and takes it."""
        while True:
            self.sleeps = True  # before the look: who queues a file after it rings
            rest = self._rest() if self.tasks else -1
            if rest:
                self.sleeps = rest < 0
                if self.bell.wait(rest) and not self.tasks:
                    threads.leave_if_deserted()
                continue
            self.sleeps = False
            try:
                return self.tasks.pop(0)
            except IndexError:  # it has given way
                continue

    def _rest(self):
        """Seconds until the next file is to be written, 0: at once."""
        if self.hurries or any(task.presses for task in self.tasks):
            return 0
        return max(0, self.last + PACE_S - time.monotonic())

    def grace(self, task):
        """Lets the writer finish, for `GRACE_S` at most; never again once that was too short."""
        if self.thread == threads.get_ident():  # a finalizer that decodes runs in the writer
            return
        if not self.slow and not task.done.wait(GRACE_S):
            self.slow = True

    def fail(self, message, text):
        """Tells a failure, each once until something has been written again."""
        if text not in self.told:
            self.told.add(text)
            link.send("vault", **dict(message, event="failed", message=text[:500]))

    def _work(self):
        while True:
            task = self._next()
            began = time.monotonic()
            try:
                parts = task.finish(task.parts) if task.finish else task.parts
                if parts is None:
                    continue
                path = self.write(task, parts)
                task.ok = True
                self.told.clear()
                if task.tells:
                    link.send("vault", **dict(task.message, event="saved", path=path, took_s=round(time.monotonic() - began, 3)))
            except Exception as error:
                self.fail(task.message, "%s: %s" % (task.name, said(error)))
            finally:
                self.undone.discard(task)
                self.last = time.monotonic()
                task.done.ring()
                task.parts = task.keep = task.finish = None  # a waiting caller must not hold the tensors
                threads.unlist()

    def write(self, task, parts):
        """Writes one file; its path. OSError: the disk's."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        self.make_room(task.size)
        self.number += 1
        path = os.path.join(self.folder, task.name)
        temp = os.path.join(self.folder, "%s%d-%d" % (TEMP, os.getpid(), self.number))
        try:
            descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
            try:
                for part in parts:
                    write_all(descriptor, part)
                if task.sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            again = os.path.lexists(path)
            os.rename(temp, path)
        except OSError:
            quietly_remove(temp)
            raise
        if again:
            self.room = None
        elif self.room is not None:
            self.room.add(task.name, sum(len(part) for part in parts))
        if task.sync:
            sync_folder(self.folder)
        return path

    def entries(self):
        """(name, bytes, time of writing) of each whole file, oldest first."""
        found = []
        try:
            with os.scandir(self.folder) as names:
                for entry in names:
                    if entry.name.startswith(".") or entry.name.count(".") < 2:
                        continue
                    try:
                        about = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    found.append((entry.name, about.st_size, about.st_mtime))
        except OSError:
            return []
        return sorted(found, key=lambda entry: entry[2])

    def make_room(self, size):
        """Prunes the oldest entries until `size` more bytes keep to the limit: those of runs that are over first, then
        this run's latents and steps, then the rest; never its newest, nor one of another run that goes on. OSError:
        there is no room, and nothing was removed."""
        if size > self.limit:
            raise OSError("%d MiB are more than vault_limit" % (size >> 20))
        room, counted = self.room, False
        if room is None or room.old(self.limit):
            room, counted = self.count(), True
        if room.total + size > self.limit:
            if not counted and room.kept(self.of_others) + size > self.limit:
                room = self.count()
            if room.kept(self.of_others) + size > self.limit:
                others = ": other runs that go on keep %d MiB" % (room.living >> 20) if room.living else ""
                raise OSError("vault_limit leaves no room for %d MiB%s" % (size >> 20, others))
            while room.total + size > self.limit:
                name, bytes_ = room.next()
                path = os.path.join(self.folder, name)
                quietly_remove(path)
                link.send("vault", event="pruned", what=name.split(".")[0], path=path, bytes=bytes_)
        about = os.statvfs(self.folder)
        if about.f_bavail * about.f_frsize < size + SPARE:
            raise OSError(28, "too little space on the disk of %s" % self.folder)

    def count(self):
        """Counts the folder."""
        self.room = Room([e for e in self.entries() if e[0].split(".")[0] in WORDS], self.run)
        return self.room

    def of_others(self, entries):
        """Those of the entries that are of other runs which are over, and the bytes of runs that go on."""
        runs = {}
        for entry in entries:
            runs.setdefault(entry[0].split(".")[1], []).append(entry)
        runs.pop(self.run, None)
        living = {run for run, own in runs.items() if lives(run, [e[0] for e in own], self.folder, self.records)}
        over = [e for e in entries if e[0].split(".")[1] in runs.keys() - living]
        return over, sum(e[1] for run in living for e in runs[run])

    def find(self, what, rest):
        """Path of this run's entry `WHAT.RUN.REST`; None. Another run's is never used: its program may be another one."""
        path = os.path.join(self.folder, "%s.%s.%s" % (what, self.run, rest))
        told = self.run != plain(None)
        return path if told and os.path.isfile(path) and not os.path.islink(path) else None

    def forget(self, *names):
        """Queues the removal of entries, behind what is still to be written; one that is not there is no error."""
        def remove(_):
            for name in names:
                quietly_remove(os.path.join(self.folder, name))
            self.room = None
            return None

        self.put(Task(names[0], [], finish=remove, tells=False))

    def sweep(self):
        """Removes what processes that are gone have left half written."""
        try:
            names = [n for n in os.listdir(self.folder) if n.startswith(TEMP)]
        except OSError:
            return
        for name in names:
            try:
                os.kill(int(name[len(TEMP):].split("-")[0]), 0)
            except (OSError, ValueError):
                quietly_remove(os.path.join(self.folder, name))

    def flush(self, seconds):
        """Waits until all is written, at most so long. True: it is."""
        end = time.monotonic() + seconds
        self.hurries = True
        self.bell.ring()
        while self.open and time.monotonic() < end:
            time.sleep(0.005)
        self.hurries = False
        return not self.open


def write_all(descriptor, data):
    """Writes all of it, in pieces that leave the interpreter lock to others in between."""
    view = memoryview(data)
    while len(view):
        view = view[os.write(descriptor, view[:PIECE]):]


def sync_folder(folder):
    """Makes a rename last. Some file systems cannot; the file itself is synced then."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)


def quietly_remove(path):
    """Removes a file; what cannot be removed stays."""
    try:
        os.unlink(path)
    except OSError:
        return


def sha256(parts):
    """Hexadecimal digest over the parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


#: The store of this process; None: the supervisor wants no vault, or its user one of no size.
store = None
_limit = config.size("vault_limit")
if config.vault and _limit != 0:
    store = Store(config.vault, _limit, config.run, records(config.stacks_file))
    atexit.register(store.flush, LAST_S)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=store._fresh)
