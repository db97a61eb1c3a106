"""WanGP: a task of its queue is a job.

Names as in deepbeepmeep/Wan2GP at 8681e9f: `wgp.py` is the main script, whose `generate_media` (`generate_video` until 2026) makes one task.
It catches what goes wrong, sends it to its page by `send_cmd("error", text)` and returns False.
"""
import itertools
import sys

from . import phases
from .hooks import around, fenced, on, wrap

_numbers = itertools.count(1)
NAMES = ("generate_media", "generate_video")


def heard(send_cmd, job):
    """`send_cmd`, of which the first error is the job's."""

    def told(cmd, *data):
        if cmd == "error" and job.failed is None:
            job.failed = str(getattr(data[0], "message", data[0]) if data else "error")[:2000]
        return send_cmd(cmd, *data)

    return told


def make(plain):
    """A task, as a job."""

    def generate(*args, **kwargs):
        with phases.Job("task-%d" % next(_numbers)) as job:
            if callable(kwargs.get("send_cmd")):
                kwargs["send_cmd"] = heard(kwargs["send_cmd"], job)
            elif len(args) > 1 and callable(args[1]):
                args = (args[0], heard(args[1], job)) + args[2:]
            return plain(*args, **kwargs)

    return generate


def tasks(_args=None, _kwargs=None):
    """The main script has been read to its end when its queue begins."""
    main = sys.modules.get("__main__")
    for name in NAMES:
        if callable(getattr(main, name, None)):
            wrap(main, name, make)


@on("shared.utils.thread_utils")
def starts(module):
    """The thread of the queue begins."""
    for name in ("async_run_in", "async_run"):
        around(module, name, before=lambda args, kwargs: fenced("wangp", tasks), part="wangp." + name)
