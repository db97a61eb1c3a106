"""The end of a file that a library writes bit by bit: each heartbeat looks whether it is still open.

PyAV's containers cannot be wrapped, and a script has no span around its writing. So the phase `save` of such a file ends by
what the kernel says of it.
"""
import os

from .state import link, state

_open = []


class File:
    """A file that a writer was made for. `writer` is asked for `closed` where it has such an attribute."""

    def __init__(self, path, writer):
        import weakref

        self.path = os.path.realpath(path)
        try:
            self.writer = weakref.ref(writer) if isinstance(getattr(writer, "closed", None), bool) else None
        except TypeError:
            self.writer = None

    def ended(self):
        """The file was written and closed."""
        if self.writer is not None:
            writer = self.writer()
            return writer is None or bool(writer.closed)
        if self.path in opened():
            return False
        try:
            return os.path.getsize(self.path) > 0  # PyAV opens it with the first packet
        except OSError:
            return False


def opened():
    """Paths behind this process' descriptors."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink("/proc/self/fd/" + name))
        except OSError:
            continue  # closed meanwhile
    return found


def begin(path, writer):
    """`save` from here on, until the file is closed."""
    if not isinstance(path, (str, os.PathLike)) or not os.path.isdir("/proc/self/fd"):
        return
    if not _open:
        watch()
    _open.append(File(os.fspath(path), writer))
    state.within("save")


def watch():
    """Has the heartbeat look."""
    beat = link.heartbeat
    if beat is None or getattr(beat, "_fpt_writing", False):
        return

    def watched():
        look()
        return beat()

    watched._fpt_writing = True
    link.heartbeat = watched


def look():
    """Ends the phase where every file is closed, or another phase has begun."""
    if _open and state.phase != "save":
        _open.clear()
    for file in [file for file in _open if file.ended()]:
        _open.remove(file)
        if not _open:
            state.set_phase("unknown")
