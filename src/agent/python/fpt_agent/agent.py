"""Starting: configuration, hello, stacks on request, hooks."""
import atexit
import os
import sys
import time

from . import PROTOCOL, VERSION, compiled, counted, holder, hooks, programs, stacks
from .config import config
from .descriptors import status
from .state import link, state
from .wire import said

#: Loaded with bars alone, which programs without a model have as well.
PROGRESS = ("tqdm",)
PACKAGES = programs.packages()
PARTS = programs.parts()


def start():
    """See `fpt_agent.start`."""
    stacks.arm(config.stacks_file)
    link.greeting = greeting
    link.heartbeat, link.urgent = beat, stacks.changed
    link.looks.append(holder.watch.look)
    link.commands.update(
        stacks=stacks.command, snapshot=lambda _: now(), interrupt=stacks.interrupt,
        stop_after_step=stacks.stop_after_step,
    )
    link.start()
    hooks.when(lambda: load("progress"), *PROGRESS)
    hooks.when(lambda: load(*PARTS), *PACKAGES)
    hooks.install()
    problems()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)
    atexit.register(goodbye)
    if compiled.missing():
        compiled.write()


def load(*parts):
    """Imports the parts, each of which registers its hooks; a second time it does nothing. One that fails to costs only its own."""
    for part in parts:
        try:
            __import__(__package__ + "." + part)
        except Exception as error:
            link.send("hook_failed", module="fpt_agent." + part, hook="import", message=said(error, repr)[:500])
    problems()


def problems():
    """Tells each setting that cannot be understood, once: parts read theirs as they are loaded."""
    while config.problems:
        link.send("problem", text=config.problems.pop(0))


def forked():
    """In the child of a fork."""
    state.forked()
    counted.forked()
    status.forked()
    link.forked()


def greeting():
    """The fields of `hello`."""
    return {
        "protocol": PROTOCOL,
        "agent": VERSION,
        "ppid": os.getppid(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "executable": sys.executable,
        "argv": list(getattr(sys, "orig_argv", None) or getattr(sys, "argv", [])),
        "run": config.run,
        "attempt": config.attempt,
        "rank": holder.rank(),
        "stacks_signal": stacks.usable(),
    }


def beat():
    """The fields of the heartbeat."""
    stacks.keep()
    return dict(now(), stacks_signal=stacks.usable())


def now():
    """What the process does."""
    return dict(state.beat(), job=link.job(), steps=counted.beat())


def goodbye():
    """The last word of a process that ends by itself. What the program has put in the place of torch may answer with anything."""
    for look in link.looks:
        hooks.fenced("goodbye", look, time.monotonic())
    beat = hooks.fenced("goodbye", now)
    if beat is not None:
        link.send("beat", **beat)  # the last counts
    link.send("bye", calls=state.calls, tiers=state.tiers)
    hooks.fenced("goodbye", link.flush, 0.3)
