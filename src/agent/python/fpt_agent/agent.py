"""Starting: configuration, hello, stacks on request, hooks."""
import atexit
import importlib
import os
import sys

from . import PROTOCOL, VERSION, hooks, stacks
from .config import config
from .state import link, state

#: Each registers its hooks when imported; one that fails to costs only its own part. A later one wraps the earlier:
#: a section that is handed back counts as one, and latents are kept before anything is moved for their decode.
PARTS = (
    "phases", "sections", "framepack", "comfy", "diffusers_hooks", "progress", "conv", "memory", "vault", "placement",
    "preflight",
)


def start():
    """See `fpt_agent.start`."""
    ready = stacks.arm(config.stacks_file)
    link.greeting = lambda: greeting(ready)
    link.heartbeat = state.beat
    link.commands.update(
        stacks=stacks.command, snapshot=lambda _: state.beat(), interrupt=stacks.interrupt,
        stop_after_step=stacks.stop_after_step,
    )
    link.start()
    for part in PARTS:
        try:
            importlib.import_module("." + part, __package__)
        except Exception as error:
            link.send("hook_failed", module="fpt_agent." + part, hook="import", message=repr(error)[:500])
    hooks.install()
    for problem in config.problems:
        link.send("problem", text=problem)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=link.forked)
    atexit.register(goodbye)


def greeting(ready):
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
        "stacks_signal": "SIGUSR2" if ready else None,
    }


def goodbye():
    """The last word of a process that ends by itself."""
    link.send("bye")
    link.flush(0.3)
