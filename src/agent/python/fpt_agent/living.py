"""Which runs go on: what they keep in the vault is not another run's to remove."""
import os

from . import wire

#: A queue's file is no longer.
LONGEST = 64 << 20


def records(stacks_file):
    """Folders that may hold the records of runs: that of this run, which is known by a file of it, the default, and the
    one below the folder for temporary files."""
    found = []
    if stacks_file:  # RECORDS/RUN/agent/FILE
        found.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(stacks_file)))))
    state = os.environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(state):
        state = os.path.expanduser("~/.local/state")
    temporary = os.path.join(os.environ.get("TMPDIR") or "/tmp", "framepack-tui-%d" % os.geteuid())
    # anybody may have made a folder there
    found += [os.path.join(folder, "runs") for folder in (os.path.join(state, "framepack-tui"), temporary) if private(folder)]
    return found


def private(folder):
    """The folder and the one with the runs in it are ours, and nobody else may write to them."""
    try:
        about = [os.stat(path) for path in (folder, os.path.join(folder, "runs"))]
    except OSError:
        return False
    return all(seen.st_uid == os.geteuid() and not seen.st_mode & 0o022 for seen in about)


def held(folder):
    """Somebody holds the lock of the run in this folder; None: no run is recorded there."""
    import fcntl

    try:
        descriptor = os.open(os.path.join(folder, "run.lock"), os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        # shared: two who look at the same time do not take each other for the run
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)


def lives(run, names, vault, folders):
    """The run goes on. Its record tells; where none is found, the processes that its entries (`names`, in the folder
    `vault`) name do."""
    told = [held(os.path.join(folder, run)) for folder in folders]
    if True in told:
        return True
    if False in told:
        return False
    return any(alive(writer(vault, name)) for name in names)


def writer(vault, name):
    """Id of the process that wrote the entry, where its name or its content tells; None."""
    what, _, rest = name.split(".", 2)
    try:
        if what == "latents":  # ATTEMPT-PID-N
            return int(rest.split(".")[0].split("-")[-2])
        path = os.path.join(vault, name)
        if what == "queue" and os.path.isfile(path) and os.path.getsize(path) <= LONGEST:
            with open(path, "rb") as file:
                return int(wire.loads(file.read().decode("utf-8"))["pid"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return None


def alive(pid):
    """A process of this user has this id; ours cannot be another run's."""
    if pid is None or pid <= 0 or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return True
