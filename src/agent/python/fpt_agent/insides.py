"""What hangs on a model besides its tensors: objects with all that they hold, functions by their code, classes.

Nothing counts by its name alone where it can be another one of that name: an object counts by its attributes however
deep they lie, a function by its code, what it closes over, its defaults and the global values that it reads, an object
of C by what it would be pickled as (a random generator by its state). What shows none of these has no fingerprint.
"""
import enum
import functools
import os
import sys
import types
import weakref

#: Packages whose functions and classes are what their name and code say; what they read from elsewhere is their own.
LIBRARIES = ("torch", "diffusers", "accelerate", "transformers", "peft", "diffusers_helper", "fpt_agent")
#: Where the code of libraries lies.
PLACES = ("site-packages", "dist-packages", "<frozen", os.path.dirname(os.__file__) + os.sep)
#: Modules of objects that move weights and change nothing of a result; they hold addresses, locks and streams.
MOVERS = ("accelerate.hooks", "diffusers.hooks.group_offloading")
#: Kinds without state that could change a result, by module and name.
OPAQUE = {"_thread.lock", "_thread.RLock", "logging.Logger", "logging.RootLogger", "logging.LoggerAdapter"}
#: Told by their text.
TEXTS = {"pathlib.PosixPath", "pathlib._local.PosixPath", "re.Pattern", "builtins.range", "builtins.slice", "builtins.ellipsis",
         "builtins.NotImplementedType", "torch.memory_format", "torch.layout", "torch.finfo", "torch.iinfo", "torch.qscheme"}
BUILTIN = (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType,
           types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType)
#: Built-in functions by which code reads values that nothing in it names: whose function uses one has no fingerprint.
UNNAMED = {"globals", "eval", "exec", "__import__", "import_module"}
#: By which it reads an attribute of a module that nothing in it names.
BY_TEXT = {"getattr", "vars", "dir", "attrgetter"}
#: Modules of Python's own, those without a file too.
PYTHONS = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)
_codes, _libraries, _pure = {}, {}, {}


class Unkeyed(TypeError):
    """A value cannot be told from another of its kind, and so has no key; why, in words."""


def name_of(kind):
    """A class or function by module and name."""
    return "%s.%s" % (getattr(kind, "__module__", ""), getattr(kind, "__qualname__", type(kind).__qualname__))


def library(module, path=""):
    """A module of this name, or code from this file, is one of a library."""
    found = _libraries.get((module, path))
    if found is None:
        found = module.partition(".")[0] in LIBRARIES + ("builtins",) or any(place in path for place in PLACES)
        _libraries[module, path] = found
    return found


def module_of(function):
    """The module whose global values a function reads; `__module__` may be the one of what it wraps."""
    return function.__globals__.get("__name__") or ""


def of_library(kind):
    """A class of a library."""
    name = getattr(kind, "__module__", None)
    name = name if isinstance(name, str) else ""
    return library(name, getattr(sys.modules.get(name), "__file__", None) or "")


def of_others(module):
    """A module of a library or of Python's own."""
    name = module.__name__
    return name.partition(".")[0] in PYTHONS or library(name, getattr(module, "__file__", None) or name)


class Code:
    """What a code object says: its digest, and the names of global values, attributes and imported modules in it and in the
    functions that it makes."""

    def __init__(self, code):
        import dis
        import hashlib

        self.code = code  # held: its address stands for it
        self.names, self.attributes, self.imports = set(), set(code.co_names), set()
        digest = hashlib.sha256()
        for part in (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags):
            digest.update(repr(part).encode("utf-8", "surrogatepass"))
        for value in code.co_consts:
            if isinstance(value, types.CodeType):
                inner = code_of(value)
                self.names |= inner.names
                self.attributes |= inner.attributes
                self.imports |= inner.imports
                digest.update(inner.key)
            else:
                digest.update(repr(sorted(value, key=repr) if isinstance(value, frozenset) else value).encode("utf-8", "surrogatepass"))
        for one in dis.get_instructions(code):
            if one.opname == "IMPORT_NAME":
                self.imports.add(one.argval)
            elif one.opname.endswith(("_GLOBAL", "_NAME")):
                self.names.add(one.argval)
        self.key = digest.digest()


def code_of(code):
    """`Code` of a code object, made once."""
    found = _codes.get(id(code))
    if found is None:
        if len(_codes) > 4096:
            _codes.clear()
        found = _codes[id(code)] = Code(code)
    return found


def slots_of(kind):
    """Names of the slots of a class and of those that it inherits from."""
    found = []
    for one in kind.__mro__:
        slots = vars(one).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name not in ("__dict__", "__weakref__"):
                mangled = name.startswith("__") and not name.endswith("__")
                found.append("_%s%s" % (one.__name__.lstrip("_"), name) if mangled else name)
    return found


def pure(kind):
    """Objects of the class hold nothing but attributes: no state in C."""
    found = _pure.get(kind)
    if found is None:
        word = tuple.__itemsize__
        more = len(slots_of(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
        found = kind.__itemsize__ == 0 and kind.__basicsize__ <= object.__basicsize__ + word * more
        if len(_pure) > 4096:
            _pure.clear()
        _pure[kind] = found
    return found


class Insides:
    """Of `fingerprint.Model`, which has `word`, `attribute`, `items`, `seen`, `kinds` and `torch`."""

    def again(self, value):
        """The value was met before, which is said. Held, so that no address is used again."""
        if id(value) in self.seen:
            self.word("again", self.seen[id(value)][0])
            return True
        self.seen[id(value)] = (len(self.seen), value)
        return False

    def other(self, value, level):
        """A value that is no number, tensor, container or module."""
        if isinstance(value, type):
            self.word("class", name_of(value))
            self.classes(value)
        elif isinstance(value, types.FunctionType):
            self.function(value, level)
        elif isinstance(value, types.MethodType):  # a LoRA's forward in the place of its layer's
            self.word("method")
            self.attribute(value.__func__, level + 1)
            self.attribute(value.__self__, level + 1)
        elif isinstance(value, functools.partial):
            self.word("partial")
            self.items([value.func, value.args, value.keywords], level + 1)
        elif isinstance(value, (staticmethod, classmethod)):
            self.attribute(value.__func__, level + 1)
        elif isinstance(value, property):
            self.items([one for one in (value.fget, value.fset) if one is not None], level + 1)
        elif isinstance(value, enum.Enum):
            self.word("enum", name_of(type(value)), value.name)
        elif isinstance(value, types.ModuleType):
            self.reached(value, None, level)
        elif isinstance(value, BUILTIN):
            self.word("builtin", name_of(value))
            owner = getattr(value, "__self__", None)
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                self.attribute(owner, level + 1)
        elif isinstance(value, weakref.ReferenceType):
            self.word("reference")
            self.attribute(value(), level + 1)
        elif name_of(type(value)) in TEXTS:
            self.word(name_of(type(value)), repr(value))
        elif not self.again(value):
            self.thing(value, level)

    def thing(self, value, level):
        """An object: its class, and all that it holds."""
        kind = type(value)
        self.word("object", name_of(kind))
        if self.idle(value):
            return
        if kind.__module__ in MOVERS:
            self.word(getattr(value, "execution_device", None))
            self.attribute(getattr(value, "hooks", None), level + 1)
            return
        self.classes(kind)
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict) and own:
            self.items(own, level + 1)
        for name in slots_of(kind):
            if hasattr(value, name):
                self.word(name)
                self.attribute(getattr(value, name), level + 1)
        if hasattr(value, "__wrapped__") and not own:  # functools.lru_cache
            self.attribute(value.__wrapped__, level + 1)
        elif not pure(kind):
            self.pickled(value, level)

    def idle(self, value):
        """An object that has no part in a result: a lock, a logger, a stream of a device."""
        if any(name_of(one) in OPAQUE for one in type(value).__mro__):
            return True
        kinds = tuple(kind for kind in (getattr(self.torch, name, None) for name in ("Stream", "Event")) if isinstance(kind, type))
        return isinstance(value, kinds + (self.torch.cuda.Stream, self.torch.cuda.Event))

    def pickled(self, value, level):
        """An object with state in C, by what it is pickled as; most random generators are of this kind."""
        try:
            parts = value.__reduce_ex__(2)
        except Exception as error:
            raise Unkeyed("a model with a %s has no fingerprint: what it holds cannot be told (%s)" % (name_of(type(value)), error))
        if isinstance(parts, tuple):
            parts = list(parts[:3]) + [None if one is None else list(one) for one in parts[3:5]]
        self.held.append(parts)
        self.attribute(parts, level + 1)

    def function(self, value, level):
        """A function by its code, what it closes over, its defaults and attributes, and the global values that it reads."""
        if self.again(value):
            return
        if module_of(value).partition(".")[0] == "fpt_agent":  # the agent's own counts and locks are none of the model's
            inner = [getattr(value, "__wrapped__", None)] + cells(value)
            self.items([one for one in inner if isinstance(one, (types.FunctionType, types.MethodType))], level + 1)
            return
        code = code_of(value.__code__)
        self.word("function", name_of(value), code.key)
        self.items(cells(value) + list(value.__defaults__ or ()), level + 1)
        self.items(value.__kwdefaults__ or {}, level + 1)
        if value.__dict__:
            self.items(value.__dict__, level + 1)
        if not library(module_of(value), value.__code__.co_filename):
            self.globals(value.__globals__, code, level + 1)

    def globals(self, space, code, level):
        """The global values that a function of the program's uses; of the program's modules the attributes that it names."""
        unnamed = {name for name in code.names & UNNAMED if name not in space} | code.attributes & {"import_module"}
        modules = "modules" in code.attributes and ("sys" in code.imports or any(space.get(name) is sys for name in code.names))
        if unnamed or modules:
            raise Unkeyed("a model with a function that uses %s has no fingerprint" % ", ".join(sorted(unnamed) or ["sys.modules"]))
        for name in sorted(code.names):
            if name in space and not name.startswith("__"):
                self.word(name)
                self.read(space[name], code, level)
        for name in sorted(code.imports):
            for module in imported(name, space.get("__package__") or ""):
                self.reached(module, code, level)

    def read(self, value, code, level):
        """A value that a function reads by its name."""
        if isinstance(value, types.ModuleType):
            self.reached(value, code, level)
        else:
            self.attribute(value, level)

    def reached(self, module, code, level):
        """A module. Of the program's with what it holds: of those names that the `code` which reads it has, or all where that is not
        known or asks for attributes by their text."""
        self.word("package", module.__name__)
        if of_others(module):
            return
        whole = code is None or bool(code.names & BY_TEXT or code.attributes & BY_TEXT)
        place = None if whole else code.key, module
        if place in self.places or (None, module) in self.places:
            return
        self.places.add(place)
        held = vars(module)
        for name in sorted(held if whole else code.attributes & held.keys()):
            if not name.startswith("__"):
                self.word(name)
                self.read(held[name], None if whole else code, level + 1)

    def classes(self, kind):
        """A class and those that it inherits from. Of a library's the plain attributes, where a cache's counters lie, and functions
        that the program has put there; of the program's all."""
        if kind in self.kinds:
            return
        for one in kind.__mro__:
            if one in self.kinds or one.__module__ == "torch.nn.modules.module" or one is object:
                continue
            self.kinds.add(one)
            foreign = of_library(one)
            for name, value in sorted(vars(one).items()):
                if self.counts(name, value, foreign):
                    self.word(name)
                    self.attribute(value, 0)
        if type(kind) is not type and not of_library(type(kind)):
            self.classes(type(kind))

    def counts(self, name, value, foreign):
        """This attribute of a class is to be looked at."""
        plain = getattr(value, "__func__", value)
        if isinstance(plain, property):
            plain = plain.fget
        if isinstance(plain, types.FunctionType):
            return not (foreign and (library(module_of(plain), plain.__code__.co_filename)))
        if name.startswith("__") or name == "_abc_impl":
            return False
        if isinstance(value, self.plain_kinds):
            return True
        return not foreign and not hasattr(type(value), "__get__")


def imported(name, package):
    """The modules that an import of this name in a module of this package has brought, and those that they lie in; the dots in front
    of a relative one are not known here."""
    names, outer = [], package.split(".") if package else []
    for depth in range(len(outer) + 1):
        parts = outer[:depth] + (name.split(".") if name else [])
        names += [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    found = [sys.modules.get(one) for one in dict.fromkeys(names)]
    return [one for one in found if isinstance(one, types.ModuleType)]


def cells(function):
    """What a function closes over."""
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not yet filled
            found.append("empty")
    return found
