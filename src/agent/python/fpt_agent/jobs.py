"""A job of FramePack's page is kept, so that it can be sent again after a restart.

The thirteen inputs of the page that start it, as `job.RUN.ID.json` beside `job.RUN.ID.png`; removed when the job has ended or the
user has stopped it. Forms: docs/agent.md, *The vault*.
"""
import json
import os
import time
import zlib

from . import phases, sections, store as files
from .config import config
from .fingerprint import key_of
from .framepack import INPUTS
from .hooks import fenced, on, wrap
from .state import state

VERSION = 1


def picture(pixels):
    """PNG bytes of an array of uint8 (height, width[, 1 to 4 channels]). ValueError: it is something else."""
    if str(pixels.dtype) != "uint8":
        raise ValueError("not a picture: %s" % pixels.dtype)
    return png(pixels.shape, pixels.tobytes())


def png(shape, data):
    """PNG bytes of a picture of this shape (height, width[, 1 to 4 channels]), from its bytes row by row."""
    shape = tuple(shape) + ((1,) if len(shape) == 2 else ())
    if len(shape) != 3 or not 1 <= shape[2] <= 4 or 0 in shape:
        raise ValueError("not a picture: %s" % (shape,))
    height, width, channels = shape
    row = width * channels
    lines = b"".join(b"\0" + bytes(data[at:at + row]) for at in range(0, len(data), row))

    def chunk(kind, body):
        return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, (0, 4, 2, 6)[channels - 1], 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 1)) + chunk(b"IEND", b"")


def simple(value):
    """A number of numpy as Python's own; the rest as it is."""
    return value.item() if hasattr(value, "item") else value


#: Jobs of FramePack's page that are not over.
going = set()


class Job:
    """One job of FramePack's page; the same inputs give the same entry."""

    def __init__(self, inputs):
        self.id = key_of(list(inputs))[:16]
        self.base = "job.%s.%s" % (files.store.run, self.id)
        self.inputs = {name: simple(value) for name, value in zip(INPUTS[1:], inputs[1:])}
        json.dumps(self.inputs)  # TypeError: these are not the page's
        self.error, self.stopped = None, False
        #: The global random sources as a dead attempt had them when it began this very job. FramePack draws the start
        #: picture's latent from them: with other numbers no finished section would be recognised.
        self.earlier = fenced("job", self.known) if sections.replays() else None
        self.random = self.earlier
        if config.flag("vault_prompt"):
            state.prompt = str(inputs[1])
        files.store.put(files.Task(self.base + ".png", [picture(inputs[0])], shape=inputs[0].shape))
        self.process = os.getpid()
        self.tell("queued")
        going.add(self)

    def stop(self):
        """Its user has pressed End. A decode that hangs never hears of it, so it counts at once."""
        self.stopped = True
        self.tell("stopped")

    def known(self):
        """`random` of the entry that an earlier attempt has left; None."""
        try:
            with open(os.path.join(files.store.folder, self.base + ".json"), "rb") as file:
                entry = json.loads(file.read().decode("utf-8"))
        except FileNotFoundError:
            return None
        return entry.get("random") or None

    def begin(self):
        """In the job's thread, before the program's function."""
        if self.earlier is not None:
            fenced("job", sections.read_back, self.earlier)
        self.random = sections.written()
        self.tell("started")

    def tell(self, word):
        """The state goes into the entry; `ended` and `stopped` jobs are not kept. The supervisor hears of jobs from
        the phases. In the child of a fork nothing: the job is its parent's."""
        if self.process != os.getpid():
            return
        if word in ("ended", "stopped"):
            files.store.forget(self.base + ".json", self.base + ".png")
            return
        entry = {"version": VERSION, "program": "framepack", "run": config.run, "attempt": config.attempt, "id": self.id,
                 "state": word, "time": round(time.time(), 3), "error": self.error, "image": self.base + ".png",
                 "inputs": self.inputs, "random": self.random}
        files.store.put(files.Task(self.base + ".json", [json.dumps(entry, indent=1).encode("utf-8")], tells=False))

    def run(self, function, args, kwargs):
        """Calls the program's function as this job."""
        fenced("job", self.begin)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            self.error = fenced("job", phases.words, error)
            self.stopped = self.stopped or isinstance(error, KeyboardInterrupt)
            raise
        finally:
            fenced("job", self.over)

    def over(self):
        """The program's function is done. FramePack's worker prints what went wrong and lives on: the phases know."""
        going.discard(self)
        running = phases.job()
        if self.error is None and running is not None and running.failed is not None:
            self.error, self.stopped = running.failed, self.stopped or phases.is_stop(running.failed)
        self.tell("ended" if self.error is None else "stopped" if self.stopped else "failed")


def job_of(args):
    """A job where these are a function and the page's thirteen inputs; None."""
    inputs = args[1:]
    if len(inputs) != len(INPUTS) or len(getattr(inputs[0], "shape", ())) not in (2, 3):
        return None
    return Job(inputs)


def framepack(module):
    """FramePack's way to start a job."""

    def make(plain):
        def async_run(func, *args, **kwargs):
            job = fenced("async_run", job_of, (func,) + args)
            if job is None:
                return plain(func, *args, **kwargs)

            def worker(*inner, **more):
                return job.run(func, inner, more)

            return plain(worker, *args, **kwargs)

        return async_run

    wrap(module, "async_run", make)

    def listen(plain):
        def push(self, item, *args, **kwargs):
            result = plain(self, item, *args, **kwargs)
            # the page's word to its worker; what the worker says to the page are pairs
            if isinstance(item, str) and item == "end":
                fenced("FIFOQueue", stop_all)
            return result

        return push

    queues = getattr(module, "FIFOQueue", None)
    if isinstance(queues, type):
        wrap(queues, "push", listen)


def stop_all():
    """The page has one job at a time, and its End means that."""
    for job in list(going):
        job.stop()


if files.store is not None:
    on("diffusers_helper.thread_utils")(framepack)
