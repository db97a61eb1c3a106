"""The package's compiled files, where the interpreter has been told to write none (PYTHONDONTWRITEBYTECODE, -B).

Compiling takes longer than all the rest of a start. Python writes them itself where it may; where not, this does so
once for each version of Python, beside the sources and nowhere else.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def missing():
    """Whether Python will compile the package again at each start, though it could be helped."""
    cached = globals().get("__cached__")
    return bool(sys.dont_write_bytecode and cached and not os.path.exists(cached)
                and os.path.abspath(cached).startswith(HERE + os.sep) and os.access(HERE, os.W_OK))


def write():
    """Compiles every module of the package, and `sitecustomize` beside it. What cannot be written costs time at each
    start, nothing else."""
    import py_compile

    start = os.path.join(os.path.dirname(HERE), "sitecustomize.py")
    for path in [start] * os.path.exists(start) + [os.path.join(HERE, name) for name in sorted(os.listdir(HERE))]:
        if not path.endswith(".py"):
            continue
        try:
            # beside and renamed: whoever starts at the same time reads a whole file or none
            py_compile.compile(path, doraise=True, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
        except (OSError, py_compile.PyCompileError):
            return
