"""The lower tiers of a convolution: the same result by another way.

Each takes torch, the native function, and by position the arguments of `torch.nn.functional.conv3d`
(input N,C,T,H,W or C,T,H,W; weight O,C/groups,kT,kH,kW; bias O or None; stride, padding, dilation, groups)
or of `conv2d` (one dimension fewer), and returns what the native call would: same shape, dtype and device,
differentiable. What they raise is torch's own, or ValueError for parameters that are none.
"""
import sys
import threading

#: Bytes of the column buffer of one call with cudnn/MIOpen off.
BUDGET = 1 << 30
#: Less than this is not worth the many launches, however little memory is free.
SMALLEST_BUDGET = 1 << 26


def each(value, n):
    """A parameter for each of n dimensions: `1`, `(1,)` and `(1, 1, 1)` mean the same."""
    try:
        values = tuple(int(v) for v in value)
    except TypeError:
        return (int(value),) * n
    if len(values) == 1:
        return values * n
    if len(values) != n:
        raise ValueError("%d values for %d dimensions" % (len(values), n))
    return values


def plain(torch, x, weight, stride, padding, dilation):
    """(x with a batch dimension, stride, padding, dilation) with a number for each dimension.

    `same` may need one more behind than in front, which no number can say: x is then padded here.
    """
    n = weight.dim() - 2
    if x.dim() == n + 1:
        x = x.unsqueeze(0)
    stride, dilation = each(stride, n), each(dilation, n)
    if not isinstance(padding, str):
        return x, stride, each(padding, n), dilation
    if padding == "valid":
        return x, stride, (0,) * n, dilation
    if padding != "same" or any(s != 1 for s in stride):
        raise ValueError("padding = %r, stride = %r" % (padding, stride))
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    if any(t % 2 for t in total):
        behind = []
        for t in reversed(total):
            behind += [0, t % 2]
        x = torch.nn.functional.pad(x, behind)
    return x, stride, tuple(t // 2 for t in total), dilation


def out_size(size, kernel, stride, padding, dilation):
    """Positions of the kernel along one dimension."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def split(torch, conv2d, x, weight, bias, stride, padding, dilation, groups):
    """conv3d as the sum over the temporal taps of conv2d's (`conv2d`: the native one) on the same device.

    Half types are summed in float32 where that much memory is there: adding partial sums in half precision
    would nearly double the error. Raises ValueError where the kernel fits nowhere.
    """
    lone = x.dim() == weight.dim() - 1
    x, (st, *s2), (pt, *p2), (dt, *d2) = plain(torch, x, weight, stride, padding, dilation)
    n, channels, time, height, width = x.shape
    taps = weight.shape[2]
    frames_out = out_size(time, taps, st, pt, dt)
    if frames_out < 1:
        raise ValueError("the kernel is longer than the input")
    # one copy for all taps (none for channels_last_3d): frames beside the batch
    frames = x.transpose(1, 2).reshape(n * time, channels, height, width).view(n, time, channels, height, width)
    out = None
    for tap in range(taps):
        # output frame j reads input frame j * st + shift
        shift = tap * dt - pt
        first = max(0, -(shift // st))
        last = min(frames_out - 1, (time - 1 - shift) // st)
        if last < first:
            if out is not None or tap < taps - 1:
                continue
            read, first, last = frames.new_zeros(n, 1, channels, height, width), 0, 0  # all of it is padding
        else:
            begin = first * st + shift
            read = frames[:, begin: begin + (last - first) * st + 1: st]
        many = read.shape[1]
        y = conv2d(read.reshape(n * many, channels, height, width), weight[:, :, tap], None, s2, p2, d2, groups)
        dtype = y.dtype
        if out is None:
            out = zeros(torch, y, (n, y.shape[1], frames_out) + tuple(y.shape[2:]))
        out.narrow(2, first, many).add_(y.view((n, many) + tuple(y.shape[1:])).transpose(1, 2))
        del y, read
    if bias is not None:
        # rounded as the native call rounds it (autocast), then added in the wider type
        out.add_(bias.to(dtype).to(out.dtype).view(1, -1, 1, 1, 1))
    out = out.to(dtype)
    return out.squeeze(0) if lone else out


#: What `placed` runs where its caller stands.
PLACED = compile("native(*args)", "", "eval")


def placed(native, args):
    """The native call where it may warn, as of padding "same" with an even kernel: torch places a warning in the
    innermost frame of Python, by which users' filters find it and by which it is told once. So that one has the file, the
    line and the globals of the program's that has called us."""
    if not isinstance(args[4], str):
        return native(*args)
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(__package__ + "."):
        frame = frame.f_back
    code = frame.f_code
    there = {"co_filename": code.co_filename, "co_firstlineno": frame.f_lineno or code.co_firstlineno, "co_name": code.co_name}
    return eval(PLACED.replace(**there), frame.f_globals, {"native": native, "args": args})


def out_of_memory(torch):
    """The class of the error; torch before 2.5 has it under cuda only."""
    return getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError


def zeros(torch, like, shape):
    """Zeros to sum into: float32 for half types, or their own where that does not fit."""
    if like.dtype in (torch.float16, torch.bfloat16):
        try:
            return like.new_zeros(shape, dtype=torch.float32)
        except out_of_memory(torch):
            torch.cuda.empty_cache()
    return like.new_zeros(shape)


class CudnnOff:
    """`with`: cudnn (MIOpen under ROCm) off, process-wide; the last thread to leave puts it back."""

    def __init__(self):
        self.lock = threading.RLock()
        self.depth = 0
        self.off = False
        self.was = True

    def enter(self, torch):
        """Off, if it is not yet."""
        with self.lock:
            # in this order: a signal handler that enters and leaves between any two of these changes nothing
            self.depth += 1
            if not self.off:
                self.was = torch._C._get_cudnn_enabled()
                self.off = True
            torch._C._set_cudnn_enabled(False)

    def leave(self, torch):
        """As it was before the first entered, once the last leaves."""
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                torch._C._set_cudnn_enabled(self.was)
                self.off = False

    def forked(self, torch):
        """In the child of a fork: the threads that would have left are not there."""
        self.lock = threading.RLock()
        if self.depth:
            self.depth, self.off = 0, False
            torch._C._set_cudnn_enabled(self.was)


off = CudnnOff()


def free_budget(torch, x):
    """Bytes for the column buffer: 1 GiB, or half of what torch takes to be free on the card of x."""
    if x.device.type != "cuda":
        return BUDGET
    try:
        # not mem_get_info: a driver call on a card that may hang
        total = torch.cuda.get_device_properties(x.device).total_memory
        free = total - torch.cuda.memory_allocated(x.device)
    except Exception:  # an estimate only: the default serves as well
        return BUDGET
    return max(SMALLEST_BUDGET, min(BUDGET, free // 2))


def nocudnn(torch, native, x, weight, bias, stride, padding, dilation, groups, budget=None):
    """The native call with cudnn/MIOpen off: torch's own column buffer and matrix product.

    The buffer holds kernel elements x input of one sample, 27 times the input for 3x3x3, so the call is made in
    parts of the output along the first dimension (time; height for conv2d), then, where one index alone is
    too large, the next. Exact: each part reads its halo. `budget`: bytes of the buffer.
    """
    off.enter(torch)
    try:
        lone = x.dim() == weight.dim() - 1
        x, stride, padding, dilation = plain(torch, x, weight, stride, padding, dilation)
        budget = budget or free_budget(torch, x)
        out = parts(torch, native, (x, weight, bias), [stride, padding, dilation], groups, 2, budget)
        return out.squeeze(0) if lone else out
    finally:
        off.leave(torch)


def parts(torch, native, tensors, params, groups, dim, budget):
    """The call in parts along `dim` of x, each with a column buffer within the budget."""
    x, weight, bias = tensors
    stride, padding, dilation = params
    kernel = weight.shape[2:]
    sizes = [out_size(*each) for each in zip(x.shape[2:], kernel, stride, padding, dilation)]
    if dim >= x.dim() or min(sizes) < 1:
        return native(x, weight, bias, stride, padding, dilation, groups)
    axis = dim - 2
    one = x.element_size() * weight.shape[1]
    for k, (size, taps) in enumerate(zip(sizes, kernel)):
        one *= taps * (1 if k == axis else size)
    many = max(1, budget // max(1, one))
    if many >= sizes[axis] and one <= budget:
        return native(x, weight, bias, stride, padding, dilation, groups)
    inner = [stride, tuple(0 if k == axis else p for k, p in enumerate(padding)), dilation]
    made, out = [], None
    for first in range(0, sizes[axis], many):
        last = min(first + many, sizes[axis]) - 1
        begin = first * stride[axis] - padding[axis]
        end = last * stride[axis] - padding[axis] + dilation[axis] * (kernel[axis] - 1) + 1
        piece = window(torch, x, dim, begin, end)
        y = parts(torch, native, (piece, weight, bias), inner, groups, dim + 1, budget)
        if y.requires_grad:
            made.append(y)
            continue
        if out is None:
            out = y.new_empty(tuple(y.shape[:dim]) + (sizes[axis],) + tuple(y.shape[dim + 1:]))
        out.narrow(dim, first, y.shape[dim]).copy_(y)
    return torch.cat(made, dim) if made else out


def window(torch, x, dim, begin, end):
    """x[begin:end] along dim, with zeros where that lies outside."""
    size = x.shape[dim]
    low, high = min(max(begin, 0), size), max(min(end, size), 0)
    inside = x.narrow(dim, low, max(0, high - low))
    if low == begin and high == end:
        return inside
    if high <= low:
        shape = list(x.shape)
        shape[dim] = end - begin
        return x.new_zeros(shape)
    around = [0, 0] * (x.dim() - 1 - dim) + [low - begin, end - high]
    return torch.nn.functional.pad(inside, around)


def cast_to(torch, x):
    """The dtype in which the native call would work: that of x, or autocast's."""
    kind = x.device.type
    try:
        on = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if on else x.dtype
    except (TypeError, AttributeError):  # torch before 2.4 has one pair of functions for each device
        on = torch.is_autocast_enabled() if kind == "cuda" else torch.is_autocast_cpu_enabled()
        dtype = x.dtype
        if on:
            dtype = torch.get_autocast_gpu_dtype() if kind == "cuda" else torch.get_autocast_cpu_dtype()
    return dtype if x.is_floating_point() and x.dtype != torch.float64 else x.dtype


def cpu(torch, native, x, weight, bias, stride, padding, dilation, groups):
    """The native call in float32 (wider types stay) on the CPU, then back to dtype and device."""
    dtype = cast_to(torch, x)

    def here(tensor):
        if tensor is None:
            return None
        wide = tensor.dtype if tensor.dtype.is_complex or tensor.dtype == torch.float64 else torch.float32
        return tensor.to("cpu", wide)

    with torch.autocast("cpu", enabled=False):
        y = native(here(x), here(weight), here(bias), stride, padding, dilation, groups)
    return y.to(x.device, dtype)
