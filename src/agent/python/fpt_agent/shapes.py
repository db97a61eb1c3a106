"""Shapes of latents, pixels and autoencoders. Only sizes are looked at, no values but the statistics of a latent's channels."""
from .state import torch

#: Channels of latents. Pixels have 3, or 12 where patches of 2 x 2 are channels.
LATENT_CHANNELS = range(4, 129)
#: Pixels of one latent in one direction.
RATIOS = (4, 8, 16, 32, 64)
#: Convolutions with a kernel larger than one point that an autoencoder has at least.
LEAST_CONVOLUTIONS = 3


def clips(value):
    """The tensors of a call: one of four or five dimensions, or a list of them; None: it is something else."""
    module = torch()
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    if not found or len(found) > 1024:
        return None
    for one in found:
        if not isinstance(one, module.Tensor) or one.dim() not in (4, 5) or not one.is_floating_point() or not one.numel():
            return None
    return found


def channels(clip):
    """Channels of latents: the second of five dimensions; of four the one that can be, a clip's own before that of a batch."""
    if clip.dim() == 5:
        return clip.shape[1]
    return clip.shape[0] if clip.shape[0] in LATENT_CHANNELS else clip.shape[1]


def kernels(module):
    """Shapes of the module's convolution weights with more than one point."""
    return [p.shape for p in module.parameters() if p.dim() in (4, 5) and max(p.shape[2:]) > 1]


def convolves(module):
    """The module is made of convolutions."""
    return len(kernels(module)) >= LEAST_CONVOLUTIONS


def of_video(module):
    """It has convolutions over time."""
    return any(len(shape) == 5 for shape in kernels(module))


def takes(module, count):
    """A convolution of the module takes so many channels: the latents are for it."""
    return count in LATENT_CHANNELS and any(p.dim() in (4, 5) and count == p.shape[1] for p in module.parameters())


def enlarged(given, result):
    """The result has the height and width of the latents times one of `RATIOS`; None: it cannot be told."""
    module = torch()
    for name in ("sample", "frames", "videos"):
        if not isinstance(result, (module.Tensor, list, tuple, dict)) and hasattr(result, name):
            result = getattr(result, name)
    if isinstance(result, dict):
        result = result.get("sample")
    while isinstance(result, (list, tuple)) and result:
        result = result[0]
    if not isinstance(result, module.Tensor) or result.dim() < 3:
        return None
    height, width = given[0].shape[-2:]
    for sides in (result.shape[-2:], result.shape[-3:-1]):  # channels may come last
        if any(tuple(sides) == (height * ratio, width * ratio) for ratio in RATIOS):
            return True
    return False


def statistics(scale, count):
    """(mean, standard deviation) of each channel from a pair (mean, 1 / standard deviation), as WAN's code hands it to its
    decoder; None."""
    module = torch()
    if not isinstance(scale, (list, tuple)) or len(scale) != 2:
        return None
    if not all(isinstance(one, module.Tensor) and one.numel() == count for one in scale):
        return None
    mean, inverse = (one.detach().float().flatten().tolist() for one in scale)
    if not all(inverse):
        return None
    return mean, [1.0 / value for value in inverse]
