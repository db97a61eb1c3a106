"""Autoencoders of a program's own, known by their shape: phases, latents for the vault, tiles.

The reference code of WAN and HunyuanVideo, musubi-tuner, DiffSynth and WanVideoWrapper bring autoencoders that are no
classes of diffusers. They share a shape: a torch.nn.Module with `encode` and `decode` that holds convolutions and makes of latents
pixels at several times their height and width. So the methods of each such class are wrapped as the class is made; the tensors
and weights of a call decide whether it is a decode of video latents, and the size of the first result confirms it.
"""
import json
import sys
import types
import weakref

from . import memory, phases, plainly, progress, shapes, store as files, vae, vault
from .config import config
from .hooks import each_subclass, fenced, later, on
from .memory import problem
from .state import fix, link, state, torch

#: Method -> phase of its outermost call.
METHODS = {
    "decode": "vae_decode", "decode_video": "vae_decode", "tiled_decode": "vae_decode", "single_decode": "vae_decode",
    "encode": "vae_encode", "encode_video": "vae_encode", "tiled_encode": "vae_encode", "single_encode": "vae_encode",
}
#: Packages whose classes are none of a program's own, or are seen to elsewhere.
ELSEWHERE = ("torch", "torchvision", "torchaudio", "transformers", "accelerate", "peft", "timm", "sentence_transformers")
#: Modules with decoders that other parts of the agent keep the latents of.
KEPT_ELSEWHERE = ("diffusers_helper.hunyuan", "comfy.sd")
#: Names of the argument that holds latents or pixels.
FIRST = ("z", "zs", "latents", "latent", "hidden_states", "hidden_state", "samples", "sample", "x", "videos", "video", "images")
#: Words for a bar of sampling steps; one without a word may be one too.
STEPS = ("sampl", "step", "denois", "diffus", "generat", "infer")
#: Settings that would have to move or convert what a class of the program's own keeps beside its weights.
NOT_FOLLOWED = ("vae_dtype", "vae_device", "vae_slicing", "vae_chunk")
NOTHING_KEPT = ("nothing of this run can be kept: the agent knows no decoder of this program, so there are no latents to go on from. "
                "After a hang or a crash only the files that the program has written itself are left")

#: Classes with the methods of an autoencoder, those left out that a call has shown to be something else.
candidates = weakref.WeakSet()
#: Instance -> True: its first result was confirmed; False: it is no such decoder.
_verdicts = weakref.WeakKeyDictionary()
_ready = weakref.WeakSet()
_told = memory.Once()
_noticed = False
#: The bar of sampling steps that is on its way.
_bar = None


@on("torch")
def classes(module):
    """Every class of a module, as soon as it is made."""
    each_subclass(module.nn.Module, candidate)


def candidate(cls):
    """Wraps the methods that the class defines itself, where it has those of an autoencoder."""
    name = cls.__module__
    if name.partition(".")[0] in ELSEWHERE or name.startswith("diffusers.models."):
        return
    if not (callable(getattr(cls, "encode", None)) and callable(getattr(cls, "decode", None)) or "decode_video" in cls.__dict__):
        return
    for method, phase in METHODS.items():
        plain = cls.__dict__.get(method)
        if isinstance(plain, types.FunctionType) and later(plain) is None and not getattr(plain, "_fpt_decoder", False):
            setattr(cls, method, wrapped(plain, phase))
            candidates.add(cls)


def wrapped(plain, phase):
    """The method, its calls with tensors in the phase. It has the global names of the program's own: TorchScript compiles the
    source of what it finds in a class with the names of the function there."""
    compiling, call, first, Tensor, several = plainly.compiling(), coded, first_argument, torch().Tensor, (list, tuple)

    def wrapper(self, *args, **kwargs):
        # text, tokens of Python and bytes are none of ours, and may come by the thousand
        given = args[0] if args else first(args, kwargs)
        if type(given) in several and given:
            given = given[0]
        if not isinstance(given, Tensor) or compiling():
            return plain(self, *args, **kwargs)
        return call(plain, phase, self, args, kwargs)

    found = types.FunctionType(wrapper.__code__, plain.__globals__, plain.__name__, None, wrapper.__closure__)
    for attribute in ("__module__", "__qualname__", "__doc__", "__annotations__"):
        setattr(found, attribute, getattr(plain, attribute))
    found.__dict__.update(plain.__dict__)
    found.__wrapped__, found._fpt_plain, found._fpt_decoder = plain, plain, True
    return found


def first_argument(args, kwargs):
    """What is decoded or encoded; None."""
    return args[0] if args else next((kwargs[name] for name in FIRST if name in kwargs), None)


def large(first):
    """The tensor, or the first of several, has the dimensions of pictures or clips."""
    one = first[0] if isinstance(first, (list, tuple)) else first
    with torch()._C.DisableTorchFunction():  # a mode of the program's sees who asks a tensor for what it is
        return one.dim() in (4, 5)


def coded(plain, phase, module, args, kwargs):
    """A call with tensors: as a decode or an encode, or as it is."""
    first = first_argument(args, kwargs)
    if _verdicts.get(module) is False or state.spans()[-1:] == [phase] or not large(first) or not plainly.eager(first):
        return plain(module, *args, **kwargs)
    clips = plainly.apart(phase, recognised, phase, module, first)
    if not clips:
        return plain(module, *args, **kwargs)
    kwargs = fenced("tiles", tiled, plain, module, clips, args, kwargs) or kwargs
    facts = {"model": type(module).__name__, "shape": list(clips[0].shape)}
    decodes = phase == "vae_decode"
    memory.stage()
    try:
        with vault.Outermost() as outermost, state.span(phase, **facts):
            saved = plainly.apart("vault", keep, module, clips, args, kwargs) if decodes and outermost else None
            result = plain(module, *args, **kwargs)
    finally:
        memory.stage()
    if decodes and module not in _verdicts:
        plainly.apart(phase, confirm, module, clips, result, saved)
    return result


def recognised(phase, module, first):
    """The clips of the call where it is one of a video decoder, by the tensors and the weights; None."""
    clips = shapes.clips(first)
    if not clips or not shapes.convolves(module):
        return None
    if phase == "vae_decode" and not shapes.takes(module, shapes.channels(clips[0])):
        return None
    if phase == "vae_decode" and not shapes.of_video(module) and under_way():
        return None  # a preview from within a step, by a small decoder of pictures
    phases.own_decoder = True
    return clips


def confirm(module, clips, result, saved):
    """By the first result: pixels at several times the height and width. Else the class is no decoder, and what was kept goes."""
    right = shapes.enlarged(clips, result)
    if right is None:
        return
    _verdicts[module] = right
    if not right:
        candidates.discard(type(module))
        if saved:
            files.store.forget(*saved)


def under_way():
    """A bar of steps is not full."""
    bar = state.progress
    return bool(bar and bar["total"] and bar["n"] is not None and bar["n"] < bar["total"])


def keep(module, clips, args, kwargs):
    """Saves the latents; the names of the entries."""
    if files.store is None:
        return None
    about = dict(described(module, clips[0], args, kwargs), program="other", known_by="shape")
    scaled = about.pop("scaled")
    found = []
    for at, clip in enumerate(clips[:files.MOST_LATENTS]):
        more = dict(about, clip=at + 1, clips=len(clips)) if len(clips) > 1 else dict(about)
        if clip.dim() == 4 and shapes.of_video(module):
            more["latent_frames"] = clip.shape[1]
        found.append(vault.save(clip, module, scaled, more))
    return [name for name in found if name]


def described(module, clip, args, kwargs):
    """Metadata by which another decoder of the same weights can be chosen: `vae_family` (`wan`, `wan2.2`, `hunyuan`, `unknown`),
    `scaled` (whether the latents are in the decoder's own space), the statistics by which they were normalised."""
    channels = shapes.channels(clip)
    statistics = shapes.statistics(kwargs.get("scale", args[1] if len(args) > 1 else None), channels)
    statistics = statistics or shapes.statistics(getattr(module, "scale", None), channels)
    if statistics is not None:
        mean, std = statistics
        family = {16: "wan", 48: "wan2.2"}.get(channels, "unknown")
        return {"vae_family": family, "scaled": False, "latents_mean": json.dumps(mean), "latents_std": json.dumps(std)}
    about = getattr(module, "config", None)
    factor = getattr(about, "scaling_factor", None)
    if isinstance(factor, (int, float)):
        hunyuan = channels == 16 and abs(factor - 0.476986) < 1e-5
        # diffusers' custom, which these follow: the caller divides
        return {"vae_family": "hunyuan" if hunyuan else "unknown", "scaled": True, "scaling_factor": factor}
    return {"vae_family": "unknown", "scaled": None}


def tiled(plain, module, clips, args, kwargs):
    """The keyword arguments with the profile's tiles, for a method that takes `tiled`, `tile_size` and `tile_stride`, in latents; a
    class with `enable_tiling` has them set; None: as they are."""
    if not vae.wanted():
        return None
    name = type(module).__name__
    for setting in NOT_FOLLOWED:
        if config.text(setting) is not None:
            problem("%s = %s: %s is a class of the program's own, for which this is not carried out" % (setting, config.text(setting), name))
    tile, overlap = memory.setting("vae_tile", "whole"), memory.setting("vae_overlap", "whole", 0)
    if tile is None:
        return None
    names = vae.parameters(plain)
    if {"tiled", "tile_size", "tile_stride"} <= set(names):
        ratio = getattr(module, "upsampling_factor", None) or 8
        size = max(2, tile // ratio)
        stride = max(1, size - (size // 4 if overlap is None else min(overlap // ratio, size - 1)))
        given = set(names[:len(args)])
        told = {"tiled": True, "tile_size": (size, size), "tile_stride": (stride, stride)}
        if given & set(told):
            problem("vae_tile = %d: the program hands its own tiles to %s" % (tile, name))
            return None
        if _told.first(module, "tiles"):
            fix("vae_tile", model=name, tile=size * ratio, overlap=(size - stride) * ratio)
        return dict(kwargs, **told)
    if module not in _ready:
        _ready.add(module)
        vae.tiling(module, name, tile, overlap)
    return None


def recognisable():
    """A decoder that the agent knows, or may come to know, is in the program."""
    if len(candidates) or any(name in sys.modules for name in KEPT_ELSEWHERE):
        return True
    return any(name.startswith("diffusers.models.autoencoders.autoencoder") for name in tuple(sys.modules))


#: The last answer of `known`, and how many modules were imported by then.
_known = False, -1


def known():
    """`recognisable`, asked at each convolution: answered anew where modules have been imported since."""
    global _known
    count = len(sys.modules)
    if not len(candidates) and _known[1] != count:
        _known = recognisable(), count
    return bool(len(candidates)) or _known[0]


def calls_here(settings):
    """A convolution made now by this thread belongs to the decode or the encode of a VAE. In a program without any that the agent
    knows every one may, which is said once, with the settings that it concerns."""
    if any(phase in ("vae_decode", "vae_encode") for phase in state.spans()):
        return True
    if known():
        return False
    problem("conv_scope = decoder: the agent knows no decoder of this program, so %s count for every convolution" % settings)
    return True


def steps(bar, n, total, desc, unit, last):
    """A bar was drawn. One of sampling steps begins the phase where the program has an autoencoder of its own, and ends it when it
    is full; the first says what cannot be kept."""
    global _bar, _noticed
    if _bar is not None and _bar() is bar:
        if last:
            _bar = None
            if state.phase == "sampling":
                state.set_phase("unknown")
        return
    if last or not counts_steps(bar, total, desc, unit) or state.spans()[-1:] not in ([], ["unknown"]):
        return
    if not _noticed:
        _noticed = True
        if files.store is not None and torch() is not None and not recognisable():
            link.send("problem", text=NOTHING_KEPT)
    if len(candidates) and state.phase in ("startup", "unknown", "model_load", "text_encode", "vae_encode", "save"):
        _bar = weakref.ref(bar)
        state.set_phase("sampling", **phases.counted())


def counts_steps(bar, total, desc, unit):
    """The bar is one of sampling steps, by its words and by what it goes through: not files, texts, tiles or batches of data."""
    if unit != "it" or not total or total < 2:
        return False
    if desc and not any(word in desc.lower() for word in STEPS):
        return False
    through = getattr(bar, "iterable", None)
    if type(through).__name__ == "DataLoader" or isinstance(through, (dict, str, bytes)):
        return False
    if isinstance(through, (list, tuple)) and through:
        return isinstance(through[0], (int, float)) or getattr(through[0], "ndim", 1) == 0
    return True


progress.watchers.append(steps)
