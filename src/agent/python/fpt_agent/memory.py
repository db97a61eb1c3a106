"""Memory guard: a cap on what torch may take, what the programs believe to be free, cleaning between stages.

Everything is done only where a setting asks for it. Nothing here initialises a device: the cap is queued and
set when the program itself begins to use the card.
"""
import functools
import os
import sys
import weakref

from .config import config
from .hooks import fenced, on
from .plainly import compiling, eager  # noqa: F401, the first for its users
from .state import fix, link, torch as torch_or_none

GIB = 1 << 30
#: Variables that torch reads its allocator's settings from, the newest name first.
ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
_problems = set()
_cache = {}


class Once:
    """Whether something is done for the first time with an object. Objects that cannot be referred to weakly
    count as one."""

    def __init__(self):
        self._seen = weakref.WeakKeyDictionary()
        self._other = set()

    def first(self, thing, what):
        """True at the first call for this object and word."""
        try:
            words = self._seen.setdefault(thing, set())
        except TypeError:
            words = self._other
        if what in words:
            return False
        words.add(what)
        return True


_told = Once()


def problem(text):
    """A setting that cannot be followed: said once in a process."""
    if text not in _problems:
        _problems.add(text)
        link.send("problem", text=text)


def setting(name, read, *more):
    """A setting by one of config's readers, each read (and complained about) once."""
    if name not in _cache:
        before = len(config.problems)
        _cache[name] = getattr(config, read)(name, *more)
        for text in config.problems[before:]:
            problem(text)
        del config.problems[before:]
    return _cache[name]


def full_unload():
    """True: a complete unload before the decode."""
    return bool(setting("full_unload", "flag"))


def vae_device():
    """`cpu` or None: where it is anyway."""
    return "cpu" if setting("vae_device", "word", ("cpu", "gpu", "cuda")) == "cpu" else None


def preserved():
    """(bytes, True where they come on top of the program's own figure) or None."""
    size = setting("preserved_memory", "size")
    if size is None:
        return None
    return size, (config.text("preserved_memory") or "").strip().startswith("+")


def fraction():
    """`vram_cap_fraction` as a number above 0 and up to 1, or None."""
    if "fraction" not in _cache:
        value, text = None, config.text("vram_cap_fraction")
        if text is not None:
            try:
                value = float(text)
            except ValueError:
                value = None
            if value is None or not 0 < value <= 1:
                value = None
                problem("vram_cap_fraction = %s: write a number above 0 and up to 1" % text)
        _cache["fraction"] = value
    return _cache["fraction"]


def allocator_fraction(environ=None):
    """The cap that torch itself reads from the environment: a fraction, or None."""
    environ = os.environ if environ is None else environ
    for variable in ALLOCATOR:
        for pair in (environ.get(variable) or "").split(","):
            name, _, value = pair.partition(":")
            if name.strip() == "per_process_memory_fraction":
                try:
                    return float(value)
                except ValueError:
                    return None
    return None


def capped():
    """True where a cap is asked for, here or of torch's allocator."""
    return setting("vram_cap", "size") is not None or fraction() is not None or allocator_fraction() is not None


def cap_fraction(total):
    """The cap of a card of `total` bytes as a fraction of it, or None. The lowest counts."""
    found = [fraction(), allocator_fraction()]
    size = setting("vram_cap", "size")
    if size is not None and total > 0:
        found.append(min(1.0, size / total))
    found = [value for value in found if value is not None]
    return min(found) if found else None


def excess(device=None):
    """Bytes that the driver calls free beyond what the cap leaves; 0 without a cap or a card in use."""
    torch = torch_or_none()
    if torch is None or not torch.cuda.is_initialized() or not capped():
        return 0
    if device is not None and torch.device(device).type != "cuda":
        return 0
    free, total = torch.cuda.mem_get_info(device)
    share = cap_fraction(total)
    if share is None:
        return 0
    left = max(0, int(share * total) - torch.cuda.memory_reserved(device))
    return max(0, free - left)


@on("torch")
def cap(torch):
    """Queues the cap, and takes page-locked memory away where asked."""
    if setting("vram_cap", "size") is not None or fraction() is not None:
        torch.cuda._lazy_call(lambda: fenced("vram_cap", set_cap, torch))
    if setting("pinned_memory", "flag") is False:
        unpinned(torch)


def set_cap(torch):
    """Sets the cap on every card; runs when the program first uses one.

    What torch's allocator has read from its environment is not set a second time. It is asked what it has really
    taken where it can tell: an older torch does not read the newest of the names."""
    told = getattr(torch.cuda, "get_per_process_memory_fraction", None) if allocator_fraction() is not None else None
    for index in range(torch.cuda.device_count()):
        total = torch.cuda.get_device_properties(index).total_memory
        share = cap_fraction(total)
        if share is None:
            continue
        ours = told is None or told(index) > share + 1e-6
        if ours:
            torch.cuda.set_per_process_memory_fraction(float(share), index)
        fix("vram_cap", device=index, bytes=int(share * total), fraction=round(share, 4),
            by="agent" if ours else "environment")


def unpinned(torch):
    """`pin_memory()` of a tensor hands the tensor back as it is. Copies from it are then not asynchronous; no
    result depends on that. What a program page-locks by other ways is not reached (problem)."""
    told = []

    @functools.wraps(torch.Tensor.pin_memory)
    def pin_memory(self, *args, **kwargs):
        if not told:
            told.append(True)
            fix("pinned_memory", text="tensors are not page-locked")
        return self

    torch.Tensor.pin_memory = pin_memory
    problem("pinned_memory = false: Tensor.pin_memory() is followed; memory locked by `pin_memory=True` in torch.empty "
            "or a DataLoader is not")


def stage(*_):
    """Between two stages: the cache emptied, the pools trimmed, as the settings ask. Returns None."""
    few = setting("host_copies", "word", ("few",)) == "few"
    if not (few or setting("trim_stages", "flag")) or not eager():
        return
    fenced("stage", trim, few)


def trim(host):
    """Frees what nobody uses: garbage, torch's cached blocks, with `host` the pools of host memory too."""
    import gc

    gc.collect()
    torch = torch_or_none()
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        if host:
            # the cache of page-locked blocks; the name has changed between versions
            for name in ("_accelerator_emptyHostCache", "_host_emptyCache"):
                empty = getattr(torch._C, name, None)
                if empty is not None:
                    empty()
                    break
    if host:
        libc_trim()
    if _told.first(Once, "trim"):
        fix("trim_stages", host=host)


def libc_trim():
    """glibc gives unused heap pages back. False where there is no glibc."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    trim_heap = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim_heap is None:
        return False
    trim_heap(0)
    return True
