"""The find databases that come with the MIOpen that is loaded: solvers for shapes that its makers have timed.

Their names begin with the architecture and the number of compute units (``gfx110060.HIP.fdb.txt``, ``gfx1030_36.HIP.fdb.txt``;
MIOpen's ``Handle::GetDbBasename``)."""
import os
import re

#: Architecture at the beginning of a name: the rest are compute units.
_ARCH = re.compile(r"gfx(?:1[0-9]|[6-9])[0-9a-f]{2}")
_ENDING = ".fdb.txt"
_LIBRARY = "/libMIOpen.so"


def of_loaded(maps="/proc/self/maps", environ=os.environ):
    """Architectures, in order; None where it is not known which MIOpen is loaded, or its folder cannot be read."""
    folder = environ.get("MIOPEN_SYSTEM_DB_PATH") or beside(maps)
    if not folder:
        return None
    try:
        names = os.listdir(os.path.expanduser(folder))
    except OSError:
        return None
    found = (_ARCH.match(name) for name in names if name.endswith(_ENDING))
    return sorted({match.group() for match in found if match})


def beside(maps):
    """``share/miopen/db`` beside the loaded library's folder (MIOpen's ``GetSystemDbPath``); None."""
    try:
        with open(maps, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                at = line.find("/")
                path = line[at:].rstrip("\n") if at >= 0 else ""
                if _LIBRARY in path:
                    return os.path.join(os.path.dirname(os.path.dirname(path)), "share", "miopen", "db")
    except OSError:
        pass
    return None
