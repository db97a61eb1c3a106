"""A key over everything that a computation's result depends on: generator, tensors by their bytes, numbers, texts.

A model counts by all of its modules: class, configuration, training flag, plain attributes (a LoRA's strength is one),
and of every parameter and buffer name, shape, dtype and a sample of its values: hashing all of 26 GB would cost more
than it can save. What a model reads from elsewhere (global variables, files) is not seen.
"""
import functools
import hashlib
import types

from . import safetensors
from .state import torch

#: Values looked at of each parameter and buffer. A key of 1100 tensors in 1140 modules takes 32 ms on a CPU (bench/vault_cost.py).
VALUES = 64
#: Items of an attribute, and levels of one within another: what has more cannot be told in bounded time, and has no key.
ITEMS, LEVELS = 4096, 8
SCALARS = (bool, int, float, complex, str, bytes, type(None))
#: Values of a class' attributes that count; the rest are functions and descriptions.
PLAIN = SCALARS + (list, tuple, dict, set, frozenset)
#: accelerate's own notes (addresses of weights, the forward behind its own).
SKIPPED = ("_hf_hook", "_old_forward")
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
        raise TypeError("%s has no fingerprint" % type(value).__qualname__)


def feed_tensor(digest, tensor):
    """Adds a tensor: dtype, shape, kind of device, bytes. Copies it to the CPU, which waits for the device."""
    plain = tensor.detach()
    word(digest, "tensor", plain.dtype, tuple(plain.shape), plain.device.type)
    if plain.device.type == "meta":
        raise TypeError("a tensor without data has no fingerprint")
    digest.update(safetensors.data_of(plain.cpu().contiguous()))


def name_of(kind):
    """A class or function by module and name."""
    return "%s.%s" % (getattr(kind, "__module__", ""), getattr(kind, "__qualname__", type(kind).__qualname__))


class Model:
    """Adds a model to a digest, see the module. TypeError, RuntimeError: a part of it cannot be read."""

    def __init__(self, digest, module):
        self.digest, self.torch = digest, module
        self.whole = {1: module.uint8, 2: module.int16, 4: module.int32, 8: module.int64}
        self.seen = {}  # modules and objects by identity; held, so that no address is used again
        self.kinds = set()  # classes that were met
        self.samples = []  # views of some values of each tensor, as whole numbers of their width
        self.internal = set(vars(module.nn.Module())) - {"training"}

    def feed(self, model):
        """Adds the model with all that hangs on it."""
        word(self.digest, "model", getattr(model, "dtype", ""))
        self.modules(model)
        for data in self.bytes_of_samples():
            self.digest.update(data)

    def modules(self, model):
        """All modules below this one, those not met before."""
        for path, module in model.named_modules():
            if id(module) in self.seen:
                word(self.digest, path, "again", self.seen[id(module)][0])
                continue
            self.seen[id(module)] = (len(self.seen), module)
            own = vars(module)
            word(self.digest, "module", path, name_of(type(module)))
            self.classes(type(module))
            for kind in ("_parameters", "_buffers"):
                for name, tensor in own[kind].items():
                    word(self.digest, kind, name)
                    self.attribute(tensor, 0)
            for name in HOOKS:  # by their numbers, which are no property of the model
                for hook in own[name].values():
                    word(self.digest, name)
                    self.attribute(hook, 1)
            for name in sorted(own.keys() - self.internal):
                if name not in SKIPPED:
                    word(self.digest, name)
                    self.attribute(own[name], 0)

    def classes(self, kind):
        """Plain attributes of a module's class and of those that it inherits from: counters of a cache lie there, too."""
        if kind in self.kinds:
            return
        for one in kind.__mro__:
            if one in self.kinds or one.__module__ == "torch.nn.modules.module" or one is object:
                continue
            self.kinds.add(one)
            for name, value in sorted(vars(one).items()):
                if not name.startswith("__") and isinstance(value, PLAIN + (self.torch.Tensor,)):
                    word(self.digest, name)
                    self.attribute(value, 0)

    def attribute(self, value, level):
        """One attribute; objects by their class and their own plain attributes."""
        digest, torch = self.digest, self.torch
        if isinstance(value, SCALARS):
            word(digest, type(value).__name__, value if isinstance(value, bytes) else repr(value))
        elif isinstance(value, torch.Tensor):
            self.tensor(value, level)
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            self.items(value, level)
        elif isinstance(value, torch.nn.Module):
            if id(value) in self.seen:
                word(digest, "again", self.seen[id(value)][0])
            else:  # hidden from its parent, in a list or behind a method
                self.modules(value)
        elif isinstance(value, (torch.dtype, torch.device, torch.Size)):
            word(digest, type(value).__name__, value)
        elif isinstance(value, type):
            word(digest, "class", name_of(value))
        elif isinstance(value, types.FunctionType) and id(value) not in self.seen:
            self.seen[id(value)] = (len(self.seen), value)
            word(digest, "function", name_of(value))
            self.items([cell.cell_contents for cell in value.__closure__ or ()] + list(value.__defaults__ or ()), level + 1)
        elif isinstance(value, types.MethodType):  # a LoRA's forward in the place of its layer's
            word(digest, "method", name_of(value.__func__))
            self.attribute(value.__self__, level + 1)
        elif isinstance(value, functools.partial):
            self.items([value.func, value.args, value.keywords], level + 1)
        elif hasattr(value, "__array_interface__") and hasattr(value, "nbytes"):
            self.tensor(torch.from_numpy(value), level)
        elif hasattr(value, "tobytes"):
            feed(digest, value)
        elif id(value) in self.seen:
            word(digest, "again", self.seen[id(value)][0])
        else:
            self.seen[id(value)] = (len(self.seen), value)
            word(digest, "object", name_of(type(value)))
            # an object's objects lead anywhere, into the whole program in the end
            if level < 2 and not isinstance(value, types.ModuleType):
                self.items(getattr(value, "__dict__", {}), level + 2)

    def items(self, value, level):
        """The items of a container."""
        if len(value) > ITEMS or level > LEVELS:
            raise TypeError("a model with a %s of %d items has no fingerprint" % (type(value).__qualname__, len(value)))
        word(self.digest, type(value).__name__, len(value))
        if isinstance(value, dict):
            # diffusers' own notes in a configuration are in no certain order; a reloaded folder may hold other weights
            notes = hasattr(value, "_FrozenDict__frozen")
            for name in sorted(value, key=str):
                if not (notes and str(name).startswith("_") and name != "_name_or_path"):
                    word(self.digest, name)
                    self.attribute(value[name], level + 1)
        elif isinstance(value, (set, frozenset)):
            word(self.digest, *sorted(repr(item) if isinstance(item, SCALARS) else type(item).__name__ for item in value))
        else:
            for item in value:
                self.attribute(item, level + 1)

    def tensor(self, tensor, level):
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
            raise TypeError("a tensor without data has no fingerprint")
        if plain.numel():
            flat = sample(plain)
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
