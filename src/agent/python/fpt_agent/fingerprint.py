"""A key over everything that a computation's result depends on: generator, tensors by their bytes, numbers, texts.

A model counts by all of its modules: class, configuration, training flag, attributes with all that they hold (a LoRA's
strength is one; `insides`), and of every parameter and buffer name, shape, dtype and a sample of its values: hashing all
of 26 GB would cost more than it can save.
"""
import collections
import enum
import hashlib
import types

from . import safetensors
from .insides import Insides, Unkeyed, library, module_of, name_of
from .state import torch

#: Values looked at of each parameter and buffer. A key of 1100 tensors in 1140 modules takes 32 ms on a CPU (bench/vault_cost.py).
VALUES = 64
#: Items of an attribute, and levels of one within another: what has more cannot be told in bounded time, and has no key.
ITEMS, LEVELS = 4096, 100
#: Attributes of a whole model: who holds more holds the program.
PARTS = 200000
#: Bytes up to which buffers and tensors among the attributes are looked at whole.
WHOLE = 16384
SCALARS = (bool, int, float, complex, str, bytes, type(None))
#: Values of a class' attributes that count; the rest are functions and descriptions.
PLAIN = SCALARS + (list, tuple, dict, set, frozenset)
HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def key_of(value, *more):
    """Hexadecimal key of the values. TypeError: one of them cannot be told from another of its kind."""
    digest = hashlib.sha256()
    for item in (value,) + more:
        feed(digest, item)
    return digest.hexdigest()


def word(digest, *parts):
    """Adds parts that cannot run into each other."""
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:%b" % (len(data), data))


def feed(digest, value):
    """Adds one value of any kind that a sampler is given."""
    module = torch()
    if isinstance(value, SCALARS):
        word(digest, type(value).__name__, value if isinstance(value, bytes) else repr(value))
    elif isinstance(value, dict):
        word(digest, "dict", len(value))
        for name in sorted(value, key=str):
            word(digest, name)
            feed(digest, value[name])
    elif isinstance(value, (list, tuple)):
        word(digest, "list", len(value))
        for item in value:
            feed(digest, item)
    elif module is not None and isinstance(value, module.nn.Module):
        Model(digest, module).feed(value)
    elif module is not None and isinstance(value, module.Tensor):
        feed_tensor(digest, value)
    elif module is not None and isinstance(value, module.Generator):
        word(digest, "generator", value.device.type)
        feed_tensor(digest, value.get_state())
    elif module is not None and isinstance(value, (module.dtype, module.device)):
        word(digest, type(value).__name__, value)
    elif hasattr(value, "tobytes"):  # an array of numpy, a picture of PIL
        word(digest, type(value).__name__, getattr(value, "dtype", getattr(value, "mode", "")),
             getattr(value, "shape", getattr(value, "size", "")), value.tobytes())
    else:
        raise Unkeyed("%s has no fingerprint" % type(value).__qualname__)


def feed_tensor(digest, tensor):
    """Adds a tensor: dtype, shape, how it lies, kind of device, bytes. Copies it to the CPU, which waits for the device."""
    plain = resolved(tensor.detach())
    word(digest, "tensor", plain.dtype, tuple(plain.shape), plain.stride() if plain.layout is torch().strided else "", plain.device.type)
    if plain.device.type == "meta":
        raise Unkeyed("a tensor without data has no fingerprint")
    digest.update(safetensors.data_of(plain.cpu().contiguous()))


def resolved(tensor):
    """The tensor with what is only noted to be done to its bytes (conjugate, negative) done."""
    return tensor.resolve_conj().resolve_neg() if tensor.is_neg() or tensor.is_conj() else tensor


def function_key(function):
    """Key of a function by what it does. TypeError: it cannot be told from another of its name."""
    digest = hashlib.sha256()
    look = Model(digest, torch())
    look.attribute(function, 0)
    for data in look.bytes_of_samples():
        digest.update(data)
    return digest.hexdigest()


def patched(space):
    """(name, key) of the functions in a library's module that the program has put there."""
    return [[name, function_key(value)] for name, value in sorted(vars(space).items())
            if isinstance(value, types.FunctionType) and not library(module_of(value), value.__code__.co_filename)]


def state_of(model, apart=()):
    """(key, marks) of a model without the attributes named in `apart`; the marks show what `key_of` cannot, see `unchanged`."""
    digest = hashlib.sha256()
    look = Model(digest, torch(), apart)
    look.feed(model)
    return digest.hexdigest(), look.marks


def unchanged(before, after):
    """Two looks at a model in one process saw the same: by its key, and by torch's count of the changes that were made in place to
    each tensor, which sees the values that no sample has. A tensor that was carried away and back counts by its samples."""
    if before[0] != after[0] or len(before[1]) != len(after[1]):
        return False
    return all(old == new for old, new in zip(before[1], after[1]) if old[0] == new[0])


class Model(Insides):
    """Adds a model to a digest, see the module. TypeError, RuntimeError: a part of it cannot be read."""

    plain_kinds = PLAIN

    def __init__(self, digest, module, apart=()):
        self.digest, self.torch, self.apart = digest, module, apart
        self.plain_kinds = PLAIN + (module.Tensor, module.Generator)
        self.whole = {1: module.uint8, 2: module.int16, 4: module.int32, 8: module.int64}
        self.seen = {}  # modules and objects by identity; held, so that no address is used again
        self.held = []  # what was made to look into objects of C
        self.kinds = set()  # classes that were met
        self.places = set()  # (key of the code that reads it, module of the program's)
        self.samples = []  # views of some values of each tensor, as whole numbers of their width
        self.marks = []  # (address, count of changes) of each tensor
        self.left = PARTS
        self.internal = set(vars(module.nn.Module())) - {"training"}

    def word(self, *parts):
        """Adds parts to the digest."""
        word(self.digest, *parts)

    def feed(self, model):
        """Adds the model with all that hangs on it."""
        word(self.digest, "model", getattr(model, "dtype", ""))
        self.modules(model, self.apart)
        for data in self.bytes_of_samples():
            self.digest.update(data)

    def modules(self, model, apart=()):
        """All modules below this one, those not met before."""
        for path, module in model.named_modules():
            if id(module) in self.seen:
                word(self.digest, path, "again", self.seen[id(module)][0])
                continue
            self.seen[id(module)] = (len(self.seen), module)
            own = vars(module)
            word(self.digest, "module", path, name_of(type(module)), own.get("_compiled_call_impl") is not None)
            self.classes(type(module))
            for kind in ("_parameters", "_buffers"):
                for name, tensor in own[kind].items():
                    word(self.digest, kind, name)
                    self.attribute(tensor, 0, kind == "_parameters")
            for name in HOOKS:  # by their numbers, which are no property of the model
                for hook in own[name].values():
                    word(self.digest, name)
                    self.attribute(hook, 1)
            for name in sorted(own.keys() - self.internal):
                if not (path == "" and name in apart):
                    word(self.digest, name)
                    self.attribute(own[name], 0)

    def attribute(self, value, level, weight=False):
        """One attribute, with all that it holds."""
        digest, torch = self.digest, self.torch
        self.left -= 1
        if self.left < 0 or level > LEVELS:
            raise Unkeyed("a model with more than %d parts, or %d within one another, has no fingerprint" % (PARTS, LEVELS))
        kind = type(value)
        if kind in SCALARS:
            word(digest, kind.__name__, value if kind is bytes else repr(value))
        elif isinstance(value, torch.Tensor):
            self.tensor(value, level, weight)
        elif isinstance(value, (dict, list, tuple, set, frozenset, collections.deque, types.MappingProxyType)):
            self.items(value, level)
        elif isinstance(value, torch.nn.Module):
            if id(value) in self.seen:
                word(digest, "again", self.seen[id(value)][0])
            else:  # hidden from its parent, in a list or behind a method
                word(digest, "hidden")
                self.modules(value)
        elif isinstance(value, (torch.dtype, torch.device)):
            word(digest, kind.__name__, value)
        elif isinstance(value, torch.Generator):
            feed(digest, value)
        elif isinstance(value, SCALARS) and not isinstance(value, enum.Enum):
            base = next(one for one in SCALARS if isinstance(value, one) and one is not bool)
            word(digest, name_of(kind), base.__repr__(value))
            self.items(getattr(value, "__dict__", {}), level + 1)
        elif isinstance(value, types.ModuleType) or isinstance(value, type):
            self.other(value, level)
        elif hasattr(value, "__array_interface__") and hasattr(value, "nbytes") and hasattr(value, "tobytes"):
            self.array(value, level)
        elif kind is bytearray or kind.__module__ == "array" or hasattr(value, "tobytes"):
            word(digest, name_of(kind), bytes(value) if kind is bytearray else value.tobytes())
        else:
            self.other(value, level)

    def array(self, value, level):
        """An array of numpy: small ones whole, as no count of changes is kept of it."""
        word(self.digest, "array", value.dtype, value.shape)
        if value.dtype.hasobject:
            self.items(value.ravel().tolist(), level + 1)
        elif value.nbytes <= WHOLE or not getattr(value, "shape", ()):
            word(self.digest, value.tobytes())
        else:
            self.tensor(self.torch.from_numpy(value), level)

    def items(self, value, level):
        """The items of a container."""
        if len(value) > ITEMS or level > LEVELS:
            raise Unkeyed("a model with a %s of %d items has no fingerprint" % (type(value).__qualname__, len(value)))
        word(self.digest, type(value).__name__, len(value))
        if isinstance(value, (dict, types.MappingProxyType)):
            # diffusers' own notes in a configuration are in no certain order; a reloaded folder may hold other weights
            notes = hasattr(value, "_FrozenDict__frozen")
            told = all(isinstance(name, str) for name in value)
            for name in sorted(value) if told else list(value):
                if notes and str(name).startswith("_") and name != "_name_or_path":
                    continue
                if told:
                    word(self.digest, name)
                else:
                    self.attribute(name, level + 1)
                self.attribute(value[name], level + 1)
            if notes:
                return  # its attributes are its items
        elif isinstance(value, (set, frozenset)):
            word(self.digest, *sorted(self.member(item) for item in value))
        else:
            for item in value:
                self.attribute(item, level + 1)
        more = getattr(value, "__dict__", None)  # of a class of the program's
        if more:
            self.items(more, level + 1)

    def member(self, item):
        """A member of a set, which has no order, as text."""
        if isinstance(item, SCALARS):
            return "%s %r" % (type(item).__name__, item)
        if isinstance(item, tuple):
            return "tuple %r" % [self.member(one) for one in item]
        if isinstance(item, (type, types.FunctionType, enum.Enum, self.torch.dtype, self.torch.device)):
            return "%s %s" % (type(item).__name__, name_of(item) if hasattr(item, "__qualname__") else item)
        if id(item) in self.seen:
            return "again %d" % self.seen[id(item)][0]
        raise Unkeyed("a model with a set of %s has no fingerprint" % name_of(type(item)))

    def tensor(self, tensor, level, weight=False):
        """A parameter, a buffer or a tensor among the attributes."""
        torch = self.torch
        word(self.digest, type(tensor).__name__, tensor.dtype, tuple(tensor.shape))
        if hasattr(type(tensor), "__tensor_flatten__"):  # a quantized one that is made of others
            names, about = tensor.__tensor_flatten__()
            self.items([getattr(tensor, name) for name in names] + [about], level + 1)
            return
        more = getattr(tensor, "__dict__", None)
        if more:  # scales of quantized weights
            self.items(more, level + 1)
        plain = tensor.detach()
        if type(plain) is not torch.Tensor:
            plain = plain.as_subclass(torch.Tensor)
        if plain.device.type == "meta" or plain.layout != torch.strided:
            raise Unkeyed("a tensor without data has no fingerprint")
        self.marks.append((plain.data_ptr(), None if plain.is_inference() else tensor._version))
        if plain.numel():
            if not plain.is_contiguous():  # other kernels, which add up in another order
                word(self.digest, plain.stride())
            plain = resolved(plain)
            small = not weight and plain.numel() * plain.element_size() <= WHOLE
            flat = plain.reshape(-1) if small else sample(plain)
            size = flat.element_size()
            self.samples.append(flat.view(self.whole[size]) if size in self.whole else flat.contiguous().view(torch.uint8))

    def bytes_of_samples(self):
        """The bytes of each sample in order, whichever device it lies on; one copy for each device."""
        groups = {}
        for at, flat in enumerate(self.samples):
            groups.setdefault(flat.device, {}).setdefault(flat.element_size(), []).append(at)
        found = [b""] * len(self.samples)
        for of_size in groups.values():
            joined = [self.torch.cat([self.samples[at] for at in places]).view(self.torch.uint8) for places in of_size.values()]
            data, begin = bytes(safetensors.data_of(self.torch.cat(joined).cpu())), 0
            for size, places in of_size.items():
                for at in places:
                    end = begin + size * self.samples[at].numel()
                    found[at], begin = data[begin:end], end
        return found


def sample(tensor):
    """A flat view of at most `VALUES` values from all over the tensor (strided, not empty)."""
    count = tensor.numel()
    if tensor.is_contiguous() or dense(tensor):
        if count <= VALUES:
            return tensor.as_strided((count,), (1,))
        step, width = count // VALUES, tensor.shape[-1]
        if step > 2 * width:  # from row to row the column changes too, by the golden ratio of a row: they spread evenly
            step -= (step - width * 618 // 1000) % width
        return tensor.as_strided((VALUES,), (step,))
    for at in range(tensor.dim()):
        each = max(1, round(VALUES ** (1 / tensor.dim())))
        tensor = tensor[(slice(None),) * at + (slice(None, None, -(-tensor.shape[at] // each)),)]
    return tensor.reshape(-1)


def dense(tensor):
    """Its values lie side by side in some order, as in channels-last."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
