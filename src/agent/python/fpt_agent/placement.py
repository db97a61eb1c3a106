"""Placement guard: whether a pipeline's inputs and generator sit where it computes.

`device_placement = warn` (the default) only tells; `execution_device` carries tensors and generator there.

A generator on the CPU is right for every pipeline: diffusers draws its numbers on the CPU and moves them, so that
the seed means the same on every card. One on a card that the pipeline does not compute on is wrong. It is replaced by
one made once from its seed. Between two cards the numbers are the same then; between a card and the CPU they are not,
since the two draw by different methods: the picture is another one, of the same quality.
"""
import re
import weakref

from . import diffusers_hooks
from .hooks import fenced
from .memory import setting
from .state import finding, fix, state, torch
from .wire import said

_seen = weakref.WeakKeyDictionary()
#: Arguments that are pictures. Embeddings and latents belong on the card, pictures of an offloaded pipeline do not.
_PICTURES = ("image", "video", "mask", "frame", "argument")
_DEVICES = re.compile(r"\b(?:cuda|cpu|mps|xpu|meta|hip)(?::\d+)?\b")


class Seen:
    """What is known of one pipeline."""

    def __init__(self):
        self.told = set()
        self.slots = {}  # place in the list of generators -> Slot; a lone generator is the first


class Slot:
    """What is known of one of the generators that a pipeline is given."""

    def __init__(self):
        self.last = None  # (seed, state) of the generator at the last call
        self.ours = {}  # device as text -> our generator
        self.theirs = None  # the program's generator that ours stands for
        self.start = None  # its state when ours was seeded


def fixes():
    """True where placements are put right, not only told."""
    return setting("device_placement", "word", ("warn", "execution_device")) == "execution_device"


def same(one, other):
    """Whether two devices are one; a missing index is any."""
    return one.type == other.type and (one.index is None or other.index is None or one.index == other.index)


def offloaded(pipe):
    """The kind of CPU offload of a pipeline; None: its models stay where they are."""
    for part in pipe.components.values():
        hook = getattr(part, "_hf_hook", None)
        if hook is not None:
            return "model CPU offload" if type(hook).__name__ == "CpuOffload" else "sequential CPU offload"
    return None


def is_tensor(value):
    """True for tensors, without importing torch."""
    return hasattr(value, "device") and hasattr(value, "is_floating_point") and hasattr(value, "to")


def is_generator(value):
    """True for a torch.Generator."""
    return hasattr(value, "initial_seed") and hasattr(value, "get_state") and hasattr(value, "device")


def picture(name):
    """True for the name of an argument that is a picture, or may be one."""
    return any(word in name for word in _PICTURES)


def tensors(args, kwargs):
    """(name, tensor) of all arguments, lists of tensors included."""
    named = [("argument %d" % (i + 1), value) for i, value in enumerate(args)] + list(kwargs.items())
    for name, value in named:
        if is_tensor(value):
            yield name, value
        elif isinstance(value, (list, tuple)):
            for one in value:
                if is_tensor(one):
                    yield name, one


def check(pipe, args, kwargs):
    """Called before each pipeline call: findings, and in fix mode changed arguments, or None."""
    fixes()  # a setting that cannot be read is told, needed or not
    device = pipe._execution_device
    seen = _seen.get(pipe)
    if seen is None:
        seen = _seen[pipe] = Seen()
    changed = inputs(pipe, device, seen, args, kwargs)
    if changed is not None:
        args, kwargs = changed
    generator = kwargs.get("generator")
    if is_generator(generator):
        ours = one_generator(pipe, device, seen, generator)
        if ours is not None:
            changed = args, dict(kwargs, generator=ours)
    elif isinstance(generator, (list, tuple)) and any(map(is_generator, generator)):
        # one for each picture of the batch, each with its own numbers
        ours = [one_generator(pipe, device, seen, one, place) if is_generator(one) else None
                for place, one in enumerate(generator)]
        if any(one is not None for one in ours):
            changed = args, dict(kwargs, generator=[theirs if one is None else one for one, theirs in zip(ours, generator)])
    return changed


diffusers_hooks.before_call.append(check)


def inputs(pipe, device, seen, args, kwargs):
    """Tensors that are not where the pipeline computes."""
    kind = offloaded(pipe)
    found = [(name, tensor.device) for name, tensor in tensors(args, kwargs)]
    wrong = [(name, where) for name, where in found if not same(where, device)]
    # pictures in host memory are the usual way in; what is on a card is where somebody has put it
    on_card = [(name, where) for name, where in found if diffusers_hooks.accelerator(where) and picture(name)]
    bad = [(name, where) for name, where in wrong if diffusers_hooks.accelerator(where)]
    mixed = len({str(where) for _, where in found}) > 1 and any(not picture(name) for name, _ in wrong)
    fed = kind is not None and bool(on_card)
    if not (bad or mixed or fed):
        return None
    repair = fixes()
    if "inputs" not in seen.told:
        seen.told.add("inputs")
        shown = ", ".join("%s on %s" % pair for pair in sorted({(n, str(w)) for n, w in (wrong or on_card)}))
        text = "%s computes on %s%s and was given %s" % (
            type(pipe).__name__, device, " with " + kind if kind else "", shown)
        finding("device_mismatch", text, cure(kind, device), fixed=repair and bool(wrong))
    if not repair or not wrong:
        return None
    if "moved" not in seen.told:
        seen.told.add("moved")
        fix("device_placement", model=type(pipe).__name__, device=str(device), inputs=sorted({n for n, _ in wrong}))
    return tuple(carried(one, device) for one in args), {k: carried(one, device) for k, one in kwargs.items()}


def cure(kind, device):
    """What to do about inputs."""
    if kind is not None:
        return ("give the pipeline pictures in host memory (.to(\"cpu\")), it carries them itself; or set "
                "device_placement = execution_device")
    return "move the inputs to %s before the call, or set device_placement = execution_device" % device


def carried(value, device):
    """An argument with its tensors on the device."""
    if is_tensor(value):
        return value if same(value.device, device) else value.to(device)
    if type(value) in (list, tuple) and any(is_tensor(one) for one in value):
        return type(value)(carried(one, device) for one in value)
    return value


def one_generator(pipe, device, seen, generator, place=0):
    """A generator on the wrong device, or made anew for every call. In fix mode ours for a wrong one, else None."""
    slot = seen.slots.setdefault(place, Slot())
    seed, now = generator.initial_seed(), generator.get_state()
    again = slot.last is not None and slot.last[0] == seed and slot.last[1].equal(now)
    slot.last = (seed, now)
    where = generator.device
    wrong = where.type != "cpu" and not same(where, device)
    name = type(pipe).__name__
    repair = wrong and fixes()
    if wrong and "generator" not in seen.told:
        seen.told.add("generator")
        equal = where.type == device.type
        finding("device_mismatch", "%s computes on %s and was given a generator on %s" % (name, device, where),
                "torch.Generator(\"%s\").manual_seed(%d), made once before the loop" % (device, seed), fixed=repair,
                detail="same numbers" if equal else
                "the CPU and a card draw different numbers from one seed: another picture of the same quality")
    elif again and not wrong and offloaded(pipe) is not None and "loop" not in seen.told:
        seen.told.add("loop")
        finding("device_mismatch", "%s, with %s, gets a generator that is seeded anew for every call (seed %d, on %s)"
                % (name, offloaded(pipe), seed, where), "make one generator before the loop", fixed=False)
    if not repair:
        return None
    ours = slot.ours.get(str(device))
    if ours is None:
        ours = slot.ours[str(device)] = type(generator)(device)
        fix("device_placement", model=name, generator=str(device), was=str(where), seed=seed)
    if generator is not slot.theirs or now.equal(slot.start):
        ours.manual_seed(seed)  # one that begins at its seed begins there with us too
        slot.theirs, slot.start = generator, now
    # else: the program goes on with the generator of the call before, and so do we
    fenced("placement", advance, generator)
    return ours


def advance(generator):
    """Draws from the program's generator as the call would have: a later call can tell a seeding from a reuse."""
    torch().rand(1, generator=generator, device=generator.device)


def watch(phase, error):
    """An error of torch about two devices: names them."""
    text = said(error)
    if not isinstance(error, RuntimeError) or "same device" not in text:
        return
    names = sorted(set(_DEVICES.findall(text)))
    finding("device_mismatch", "tensors of %s met in one operation (%s)" % (
        " and ".join(names) or "two devices", phase),
        "move them to one device before the call, or set device_placement = execution_device",
        message=text[:500])


state.watchers.append(watch)
