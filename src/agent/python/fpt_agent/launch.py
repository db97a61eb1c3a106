"""Runs a script, a module or code as Python itself would: in the real `__main__`, with its `sys.argv` and `sys.path`.

`runpy.run_path` would run it in a module of its own, which is gone while the program's threads still run on and which
`pickle` and `multiprocessing` do not find.
"""
import os
import sys
from importlib.machinery import BuiltinImporter


def main(words, cut=False):
    """`words`: `-m NAME …`, `-c CODE …`, `- …` or `SCRIPT …`. What the program raises goes on, without our frames. `cut`: the
    script's first line is left out (`python -x`)."""
    program = prepare(words, cut)
    try:
        return program()
    except SystemExit:
        raise
    except BaseException as raised:
        error = raised
    # printed here, as it is printed last in a program of its own; Python's own printing of what goes on would show our
    # frames. Outside of `except`, as an excepthook of the program's finds nothing that is being handled.
    error.__traceback__ = own(error.__traceback__)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    last_words(error)
    if isinstance(error, KeyboardInterrupt) or sys.flags.inspect:  # the exit is a signal's, or there is none yet
        sys.excepthook = lambda *_: None
        raise error
    sys.exit(1)


def last_words(error):
    """Has the exception printed as Python does, whatever the program's own hook for that does."""
    show = sys.__excepthook__
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        sys.stderr.write("sys.excepthook is missing\n")
        return show(type(error), error, error.__traceback__)
    try:
        return hook(type(error), error, error.__traceback__)
    except SystemExit:
        raise
    except BaseException as raised:
        failed = raised
    for words, one in (("Error in sys.excepthook:\n", failed), ("\nOriginal exception was:\n", error)):
        one.__traceback__ = own(one.__traceback__)  # the hook may have raised the same one again
        sys.stderr.write(words)
        show(type(one), one, one.__traceback__)
    return None


def own(trace):
    """The traceback from the program's first frame on, None for a program that cannot be compiled; that of runpy stays
    for `-m`, as Python shows it too."""
    while trace is not None and trace.tb_frame.f_code.co_filename == own.__code__.co_filename:
        trace = trace.tb_next
    return trace


def prepare(words, cut):
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
        return (lambda: module(words[1])) if kind == "-m" else (lambda: code(noted(words[1]), "<string>", space))
    sys.argv = list(words)
    if kind == "-":
        if not safe:
            sys.path.insert(0, "")
        space.update(__file__="<stdin>")
        return lambda: run(sys.stdin.buffer.read(), "<stdin>", space, lambda: None)
    if packed(kind):
        sys.path.insert(0, absolute(kind))
        return lambda: module("__main__", False)
    if not safe:
        sys.path.insert(0, os.path.dirname(os.path.realpath(kind)))
    return lambda: script(kind, space, cut)


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
        called = (getattr(sys, "orig_argv", None) or [sys.executable])[0]
        sys.stderr.write("%s: can't open file %r: [Errno %s] %s\n" % (called, absolute(path), error.errno, error.strerror))
        sys.exit(2)


def module(name, alter=True):
    """As `python -m`. Python's own entry is private but the same since 3.1."""
    import runpy

    runpy._run_module_as_main(name, alter)


def noted(text):
    """The code of `-c`, from 3.13 on where tracebacks look for its lines."""
    if sys.version_info >= (3, 13):
        import linecache

        linecache.cache["<string>"] = len(text), None, [line + "\n" for line in text.splitlines()], "<string>"
    return text


def code(text, name, space):
    """Compiles and runs."""
    exec(compile(text, name, "exec", dont_inherit=True), space)


def script(path, space, cut):
    """Runs a source file, or a compiled one."""
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    file = open_or_leave(path)
    path = absolute(path)
    space.update(__file__=path, __cached__=None)
    with file:
        if path.endswith(".pyc"):
            import marshal

            file.seek(16)
            program = marshal.load(file)
            space.update(__loader__=SourcelessFileLoader("__main__", path))
            return exec(program, space)
        text = file.read()
    if cut:
        text = text[text.find(b"\n"):] if b"\n" in text else b""  # its end stays, and with it the numbers of the lines
    return run(text, path, space, lambda: space.update(__loader__=SourceFileLoader("__main__", path)))


def run(text, name, space, ready):
    """Runs the bytes of a file; `ready` is called before."""
    program = None
    try:
        if understood(text):
            program = compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        pass  # said by `as_file`
    ready()
    if program is None:
        return as_file(text, name, space)
    return exec(program, space)


def understood(text):
    """Whether the bytes are UTF-8 or say what else they are: `compile` looks at no comment for that."""
    try:
        text.decode()
        return True
    except UnicodeDecodeError:
        return b"coding" in b"".join(text.splitlines()[:2])


def as_file(text, name, space):
    """Has Python read what it does not compile from a file: only then are its words those of a script, and an old Python
    takes what it otherwise refuses (a null byte)."""
    import ctypes

    libc, python = ctypes.CDLL(None), ctypes.pythonapi
    libc.fmemopen.restype = ctypes.c_void_p
    libc.fmemopen.argtypes = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p
    python.PyRun_FileExFlags.restype = ctypes.py_object
    python.PyRun_FileExFlags.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.py_object, ctypes.py_object,
                                         ctypes.c_int, ctypes.c_void_p)
    python.PyRun_FileExFlags(libc.fmemopen(text, len(text), b"rb"), os.fsencode(name), 257, space, space, 1, None)
