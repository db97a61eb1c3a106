"""Runs a script, a module or code as Python itself would: in the real `__main__`, with its `sys.argv` and `sys.path`.

`runpy.run_path` would run it in a module of its own, which is gone while the program's threads still run on and which
`pickle` and `multiprocessing` do not find.
"""
import os
import sys
from importlib.machinery import BuiltinImporter


def main(words):
    """`words`: `-m NAME …`, `-c CODE …`, `- …` or `SCRIPT …`. What the program raises goes on, without our frames."""
    program = prepare(words)
    try:
        program()
    except SystemExit:
        raise
    except BaseException as error:
        # printed here, as it is printed last in a program of its own; Python's own printing of what goes on would
        # show our frames. Raised on for the exit code, which is a signal's for KeyboardInterrupt.
        error.__traceback__ = own(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        sys.excepthook = lambda *_: None
        raise


def own(trace):
    """The traceback from the program's first frame on, None for a program that cannot be compiled; that of runpy stays
    for `-m`, as Python shows it too."""
    while trace is not None and trace.tb_frame.f_code.co_filename == own.__code__.co_filename:
        trace = trace.tb_next
    return trace


def prepare(words):
    """The function that runs the program, once `sys.argv`, `sys.path` and `__main__` are as it expects them."""
    kind, safe = words[0], sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    space = sys.modules["__main__"].__dict__
    for name in list(space):
        if name not in ("__name__", "__builtins__"):
            del space[name]
    # Python gives a program without a file the loader of built-in modules
    space.update(__doc__=None, __package__=None, __loader__=BuiltinImporter, __spec__=None, __annotations__={})
    if kind in ("-m", "-c"):
        sys.argv = [kind] + words[2:]
        if not safe:
            sys.path.insert(0, os.getcwd() if kind == "-m" else "")
        return (lambda: module(words[1])) if kind == "-m" else (lambda: code(words[1], "<string>", space))
    sys.argv = list(words)
    if kind == "-":
        if not safe:
            sys.path.insert(0, "")
        space.update(__file__="<stdin>")
        return lambda: code(sys.stdin.buffer.read(), "<stdin>", space)
    if packed(kind):
        sys.path.insert(0, absolute(kind))
        return lambda: module("__main__", False)
    if not safe:
        sys.path.insert(0, os.path.dirname(os.path.realpath(kind)))
    return lambda: script(kind, space)


def absolute(path):
    """As Python makes it: `./` stays in it."""
    return os.path.join(os.getcwd(), path)


def packed(path):
    """A folder, a zip file (also one behind a line `#!`, or a part of one), or what else can be a place to import from: it is
    run by its __main__.py. Asked as Python asks."""
    for hook in sys.path_hooks:
        try:
            return hook(path) is not None
        except ImportError:
            continue
    return False


def open_or_leave(path):
    """The file, open; or the words and the exit code with which Python says that there is none."""
    try:
        return open(path, "rb")
    except OSError as error:
        sys.stderr.write("%s: can't open file %r: [Errno %s] %s\n" % (sys.executable, path, error.errno, error.strerror))
        sys.exit(2)


def module(name, alter=True):
    """As `python -m`. Python's own entry is private but the same since 3.1."""
    import runpy

    runpy._run_module_as_main(name, alter)


def code(text, name, space):
    """Compiles and runs."""
    exec(compile(text, name, "exec", dont_inherit=True), space)


def script(path, space):
    """Runs a source file, or a compiled one."""
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    file = open_or_leave(path)
    path = absolute(path)
    with file:
        if path.endswith(".pyc"):
            import marshal

            file.seek(16)
            program, loader = marshal.load(file), SourcelessFileLoader("__main__", path)
        else:
            program, loader = compile(file.read(), path, "exec", dont_inherit=True), SourceFileLoader("__main__", path)
    space.update(__file__=path, __cached__=None, __loader__=loader)
    exec(program, space)
