"""Runs a function once a module of the program has been imported, before anything binds its names.

A finder at the front of `sys.meta_path` looks each imported name up in a table; for a watched one
it takes the spec that the program would have got and wraps its loader's `exec_module`.
"""
import functools
import sys
import threading

from .state import link, state

_table = {}
_prefixes = []


def on(*names):
    """Decorator: calls the function with the module when one of `names` has been imported; a name that ends
    in `*` stands for all that begin so."""

    def register(function):
        for name in names:
            if name.endswith("*"):
                _prefixes.append((name[:-1], function))
            else:
                _table.setdefault(name, []).append(function)
        return function

    return register


def _wanted(name):
    found = list(_table.get(name, ()))
    found.extend(function for prefix, function in _prefixes if name.startswith(prefix))
    return found


def _run(module, functions):
    for function in functions:
        try:
            function(module)
            link.send("hooked", module=module.__name__, hook=function.__name__)
        except Exception as error:
            link.send("hook_failed", module=module.__name__, hook=function.__name__, message=repr(error)[:500])


class Finder:
    """See the module."""

    def __init__(self):
        self._busy = threading.local()

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
            _run(module, functions)

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:
            link.send("hook_failed", module=name, hook="*", message="its loader cannot be wrapped")
        return spec

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


def around(owner, name, phase=None, before=None, after=None, describe=None):
    """Wraps `owner.name`: in a span of `phase`; `before(args, kwargs)` may return changed ones, `after(result,
    args, kwargs)` is told the result, `describe(args, kwargs)` gives fields of the phase. What fails in one
    of the three is reported once and costs nothing else."""
    plain = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
    # several parts may wrap one function; the same wrapper twice is refused
    mark = (phase, before, after, describe)
    if not callable(plain) or mark in getattr(plain, "_fpt_marks", ()):
        return False
    where = "%s.%s" % (getattr(owner, "__name__", owner), name)

    @functools.wraps(plain)
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

    wrapper._fpt = True
    wrapper._fpt_marks = getattr(plain, "_fpt_marks", ()) + (mark,)
    wrapper._fpt_plain = plain
    setattr(owner, name, wrapper)
    return True


_told = set()


def fenced(where, function, *args):
    """The function's result; None and one message where it fails."""
    try:
        return function(*args)
    except Exception as error:
        if where not in _told:
            _told.add(where)
            link.send("hook_failed", module=where, hook=getattr(function, "__name__", "?"), message=repr(error)[:500])
        return None
