"""Shared by the behaviours: their length, the notes that the proof reads, and the tiny workloads.

FPT_PROOF_SCALE divides every time (the supervisor's limits are divided by the same factor); FPT_SECONDS is the length of an
honest behaviour before that division. Under about 150 s nothing is proven: the longest silence limit is 120 s.
"""
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.environ.get("FPT_WORKLOADS", os.path.dirname(HERE))
SCALE = float(os.environ.get("FPT_PROOF_SCALE", "1"))
SECONDS = float(os.environ.get("FPT_SECONDS", "200")) / SCALE
#: Port of `peer.py serve`, a process outside the tree.
PEER = int(os.environ.get("FPT_PEER", "0"))


def note(name):
    """Writes a moment into the working directory: `hang-began` and `done` are read by tests/proof."""
    with open(name, "w") as f:
        f.write(repr(time.monotonic()))


def finish():
    """A good end."""
    print("DONE honest", flush=True)
    note("done")
    sys.exit(0)


def deadline():
    return time.monotonic() + SECONDS


def repeat(seconds, action):
    """Runs `action` in a thread of its own each `seconds`, scaled."""
    def loop():
        while True:
            time.sleep(seconds / SCALE)
            action()
    threading.Thread(target=loop, daemon=True).start()


def use_cpu(seconds):
    """Python work for so much CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def url(path):
    return "http://127.0.0.1:%d%s" % (PEER, path)


def run_named(behaviours, kind):
    """Runs the function that the first argument names, or lists them."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in behaviours:
        sys.exit("no %s %r; there are: %s" % (kind, name, " ".join(sorted(behaviours))))
    behaviours[name](*sys.argv[2:])
