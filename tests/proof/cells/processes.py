"""Processes of a cell: found by a mark in their environment, so that nothing of a cell outlives it."""
import os
import signal
import subprocess
import time

MARK_NAME = "FPT_PROOF_CELL"


def find_marked(mark):
    """Pid and command line of every living process that has the mark."""
    wanted = ("%s=%s" % (MARK_NAME, mark)).encode()
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open("/proc/%s/environ" % entry, "rb") as f:
                if wanted not in f.read().split(b"\0"):
                    continue
            with open("/proc/%s/cmdline" % entry, "rb") as f:
                command = f.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            continue
        if command:  # a zombie has none
            found[int(entry)] = command[:160]
    return found


def kill_marked(mark, grace_s=5, patience_s=10):
    """Kills what is left of a cell. Returns the command lines of what had not ended within the grace time."""
    end = time.monotonic() + grace_s
    first = find_marked(mark)
    while first and time.monotonic() < end:
        time.sleep(0.2)
        first = find_marked(mark)
    end = time.monotonic() + patience_s
    left = first
    while left and time.monotonic() < end:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.2)
        left = find_marked(mark)
    return sorted(first.values())


def end_child(process, patience_s=5):
    """SIGTERM, then SIGKILL, to a process that we started."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def interrupt_supervisor(process, patience_s=20):
    """Ends a supervised run as a user would: SIGINT, again for at once, at last SIGKILL."""
    for _ in range(2):
        if process.poll() is not None:
            return
        try:
            process.send_signal(signal.SIGINT)
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
    if process.poll() is None:
        process.kill()
        process.wait()
