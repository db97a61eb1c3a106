"""Runs a function once a module of the program has been imported, before anything binds its names.

A finder at the front of `sys.meta_path` looks each imported name up in a table; for a watched one
it takes the spec that the program would have got and wraps its loader's `exec_module`.
"""
import sys
from _thread import _local

from .state import link, state
from .wire import said

#: The file name by which Python knows the frames of its import.
IMPORTLIB = "<frozen importlib._bootstrap>"

_table = {}
#: Top-level package -> (prefix, function) for the names below it.
_prefixes = {}
#: Top-level package -> functions that register hooks, called once when the program first asks for it.
_waiting = {}


def on(*names):
    """Decorator: calls the function with the module when one of `names` has been imported; a name that ends
    in `.*` stands for all below that package."""

    def register(function):
        for name in names:
            if name.endswith("*"):
                _prefixes.setdefault(name.partition(".")[0], []).append((name[:-1], function))
            else:
                _table.setdefault(name, []).append(function)
        return function

    return register


def when(function, *tops):
    """Calls the function, which registers hooks, once the first of the packages `tops` is asked for: a program
    that never uses them pays nothing for the parts that hook them."""
    for top in tops:
        _waiting.setdefault(top, []).append(function)


def _wanted(name):
    """The functions for the module. Asked of each name that is imported, of which torch alone has thousands."""
    top = name.partition(".")[0]
    if top in _waiting:
        for function in _waiting.pop(top):
            function()
    found = _table.get(name)
    if top not in _prefixes:
        return found and list(found)
    return (found or []) + [function for prefix, function in _prefixes[top] if name.startswith(prefix)]


def _run(module, functions):
    name = said(module, lambda module: str(module.__name__))
    for function in functions:
        try:
            function(module)
            link.send("hooked", module=name, hook=function.__name__)
        except Exception as error:
            link.send("hook_failed", module=name, hook=function.__name__, message=said(error, repr)[:500])


def of_importlib(function):
    """The function as if it stood in importlib: Python then cuts its frame out of what an import raises together with those
    around it, and `warnings` does not count it. It may raise nothing of its own."""
    function.__code__ = function.__code__.replace(co_filename=IMPORTLIB)
    return function


class Finder:
    """See the module."""

    def __init__(self):
        self._busy = _local()

    @of_importlib
    def find_spec(self, name, path=None, target=None):
        """The spec of the other finders, with its loader wrapped where the module is watched."""
        functions = _wanted(name)
        if not functions or getattr(self._busy, "name", None) == name:
            return None
        self._busy.name = name
        try:
            spec = self._others(name, path, target)
        finally:
            self._busy.name = None
        run = getattr(getattr(spec, "loader", None), "exec_module", None)
        if run is None:
            return spec

        def exec_module(module):
            run(module)
            if getattr(module, "__name__", name) == name:  # a zip file has one loader for all that is in it
                _run(module, functions)

        try:
            spec.loader.exec_module = of_importlib(exec_module)
        except AttributeError:
            link.send("hook_failed", module=name, hook="*", message="its loader cannot be wrapped")
        return spec

    @of_importlib
    def _others(self, name, path, target):
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                return spec
        return None


def install():
    """Puts the finder in front, and hooks what is imported already."""
    sys.meta_path.insert(0, Finder())
    for name, module in list(sys.modules.items()):
        functions = _wanted(name)
        if functions and module is not None:
            _run(module, functions)


#: Code that runs after its call: of a generator, a coroutine, an asynchronous generator, and a generator that `types.coroutine` has
#: made one (bits of `co_flags`, as `inspect` has them).
LATER = {0x20: "generator", 0x80: "coroutine", 0x100: "coroutine of old", 0x200: "asynchronous generator"}


def later(function):
    """What the function makes, where its body runs after the call; None. Whoever looks takes such a function for what it is, and
    a plain one in its place would be another."""
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    return next((kind for bit, kind in LATER.items() if flags & bit), None)


def wrap(owner, name, make, part=None):
    """Puts `make(plain)` in the place of the callable `owner.name`, once for each part of the agent: wrappers of
    several parts stack, the later one outside. `part` is the calling module where it is left out. A class' own
    method only (a class method stays one), never an inherited one. False: there is nothing to wrap, its body runs after the call,
    which a wrapper sees nothing of, or this part has done so already."""
    import functools

    plain = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
    of_class = isinstance(plain, classmethod)
    if of_class:
        plain = plain.__func__
    part = part or sys._getframe(1).f_globals.get("__name__", "?")
    parts = getattr(plain, "_fpt_parts", ())
    if not callable(plain) or later(plain) or part in parts:
        return False
    wrapper = functools.wraps(plain)(make(plain))
    wrapper._fpt = True
    wrapper._fpt_plain = plain
    wrapper._fpt_parts = parts + (part,)
    setattr(owner, name, classmethod(wrapper) if of_class else wrapper)
    return True


def around(owner, name, phase=None, before=None, after=None, describe=None, part=None):
    """Wraps `owner.name`: in a span of `phase`; `before(args, kwargs)` may return changed ones, `after(result,
    args, kwargs)` is told the result, `describe(args, kwargs)` gives fields of the phase. What fails in one
    of the three is reported once and costs nothing else. Stacks as `wrap` does."""
    where = "%s.%s" % (getattr(owner, "__name__", owner), name)

    def make(plain):
        def wrapper(*args, **kwargs):
            if before is not None:
                changed = fenced(where, before, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            if phase is None:
                result = plain(*args, **kwargs)
            else:
                more = (fenced(where, describe, args, kwargs) if describe else None) or {}
                with state.span(phase, **more):
                    result = plain(*args, **kwargs)
            if after is not None:
                fenced(where, after, result, args, kwargs)
            return result

        return wrapper

    # a part may want several things of one function: where it has no name, the same one twice is refused
    caller = sys._getframe(1).f_globals.get("__name__", "?")
    return wrap(owner, name, make, part or (caller, phase, before, after, describe))


def each_subclass(base, look):
    """Calls `look(cls)` with every subclass of `base`, as soon as it is made, and with those that are there already."""
    plain = base.__dict__.get("__init_subclass__")

    def init_subclass(cls, **kwargs):
        if plain is not None:
            plain.__func__(cls, **kwargs)
        else:
            super(base, cls).__init_subclass__(**kwargs)
        fenced(cls.__name__, look, cls)

    # as what it stands for is called; the signature of `object`'s own would be none
    init_subclass.__name__, init_subclass.__qualname__ = "__init_subclass__", base.__init_subclass__.__qualname__
    init_subclass.__doc__ = base.__init_subclass__.__doc__
    base.__init_subclass__ = classmethod(init_subclass)
    made = [base]  # where the program was there before us
    for cls in made:
        made.extend(one for one in cls.__subclasses__() if one not in made)
        fenced(cls.__name__, look, cls)


_told = set()


def fenced(where, function, *args):
    """The function's result; None and one message where it fails."""
    try:
        return function(*args)
    except Exception as error:
        if where not in _told:
            _told.add(where)
            link.send("hook_failed", module=where, hook=getattr(function, "__name__", "?"), message=said(error, repr)[:500])
        return None
