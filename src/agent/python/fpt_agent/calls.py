"""How a convolution is called: which calls torch takes, and what was written where not all arguments are given."""
from . import errors

#: Stands for an argument that was not given.
NONE = object()
NAMES = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
DEFAULTS = (NONE, NONE, None, 1, 0, 1, 1)


def shown(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """How the function is called."""


def moded(torch):
    """The function that tells whether a TorchFunctionMode is on: it sees how a call was written, and each question that a
    tensor is asked. An older torch that cannot tell has none that is told of functions called here."""
    return getattr(torch._C, "_is_torch_function_mode_enabled", None) or (lambda: False)


def other(full, written, native, plain_types, compiling, mode):
    """A call with fewer arguments than all. Where torch refuses it, that is in the words for how it was written, and who looks
    at calls (a proxy, a subclass, a mode) sees it as that. `full`: with all arguments; `written(args, call)`: with a mode on,
    `call` being what it is to see of the native one."""

    def call(given):
        """`given`: the seven arguments, `NONE` in the place of those that were left out."""
        left_out = next(at for at, one in enumerate(given) if one is NONE)  # not by `==`, which tensors answer
        named = {name: one for name, one in zip(NAMES[left_out:], given[left_out:]) if one is not NONE}
        args = tuple([default if one is NONE else one for one, default in zip(given, DEFAULTS)])
        bias = args[2]
        if (compiling() or args[1] is NONE or type(args[0]) not in plain_types or type(args[1]) not in plain_types
                or (bias is not None and type(bias) not in plain_types)):
            return native(*given[:left_out], **named)
        if mode():
            return written(args, lambda *_: native(*given[:left_out], **named))
        try:
            return full(None, *args)
        except TypeError as error:
            if errors.theirs(error):
                raise
        return native(*given[:left_out], **named)

    return call


def taken(torch, tiers, op, args):
    """Whether torch would take the call, as far as it says so before any work is done. The lower tiers are made of other
    calls, which would round a number, widen a type or say no in the words of another function: what is not surely taken is
    the native call's to answer. False too for what no library of convolutions is asked for: whole numbers, types of one byte,
    other layouts, tensors without elements."""
    x, weight, bias, *rest = args
    given = (x, weight) if bias is None else (x, weight, bias)
    if any(one.layout is not torch.strided or one.is_quantized or one.numel() == 0 for one in given):
        return False
    if not all(one.dtype == x.dtype for one in given) and len({tiers.cast_to(torch, one) for one in given}) > 1:
        return False
    wide = x.element_size() > 1 and (x.is_floating_point() or x.is_complex())
    return wide and sizes(3 if op == "conv3d" else 2, x.shape, weight.shape, None if bias is None else bias.shape, *rest)


def sizes(n, x, weight, bias, stride, padding, dilation, groups):
    """The part of `taken` that asks for numbers: `n` dimensions, three shapes and the parameters."""
    several = [numbers(value, n) for value in (stride, 0 if isinstance(padding, str) else padding, dilation)]
    if not all(several) or not whole(groups) or groups < 1 or len(weight) != n + 2 or len(x) not in (n + 1, n + 2):
        return False
    stride, sides, dilation = several
    if min(stride) < 1 or min(sides) < 0 or min(dilation) < 1:
        return False
    if weight[0] % groups or x[-n - 1] != weight[1] * groups or (bias is not None and tuple(bias) != (weight[0],)):
        return False
    if padding == "same":
        return max(stride) == 1
    if isinstance(padding, str) and padding != "valid":
        return False
    return all(size + 2 * side >= step * (taps - 1) + 1 for size, side, step, taps in zip(x[-n:], sides, dilation, weight[2:]))


def numbers(value, n):
    """A parameter for each of the dimensions; None where torch takes it for none."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not values or not all(map(whole, values)):
        return None
    return values * n if len(values) == 1 else values if len(values) == n else None


def whole(value):
    """Not what Python counts as a number and torch does not take as one."""
    return not isinstance(value, (bool, float, str)) and value == int(value)
