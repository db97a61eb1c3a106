"""A key over everything that a computation's result depends on: generator, tensors by their bytes, numbers, texts.

A model counts by class, configuration, dtype, its plain attributes and a sample of its weights: hashing all of 26 GB
would cost more than it can save.
"""
import hashlib

from . import safetensors
from .state import torch

#: Weights looked at, and values of each.
SAMPLED, VALUES = 8, 16


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
        digest.update(b"%d:" % len(data))
        digest.update(data)


def feed(digest, value):
    """Adds one value of any kind that a sampler is given."""
    module = torch()
    if value is None or isinstance(value, (bool, int, float, str, bytes, complex)):
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
        feed_model(digest, value)
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


def feed_model(digest, model):
    """Adds a model, see the module."""
    kind = type(model)
    word(digest, "model", getattr(kind, "__qualname__", kind), getattr(model, "dtype", ""))
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "items"):
        for name, value in sorted(config.items(), key=lambda item: str(item[0])):
            # diffusers' own notes in it are in no certain order; a reloaded folder may hold other weights
            if not str(name).startswith("_") or name == "_name_or_path":
                word(digest, name, value)
    for name, value in sorted(vars(model).items()):  # caches such as TeaCache are switched by attributes
        if isinstance(value, (bool, int, float, str)) and name != "training":
            word(digest, name, repr(value))
    weights = list(model.parameters())
    word(digest, "weights", len(weights))
    for at in range(0, len(weights), max(1, len(weights) // SAMPLED)):
        weight = weights[at].detach()
        word(digest, weight.dtype, tuple(weight.shape))
        if weight.device.type != "meta" and type(weights[at].data) is torch().Tensor:
            values = weight.flatten()[:VALUES].cpu().contiguous()
            digest.update(safetensors.data_of(values))
