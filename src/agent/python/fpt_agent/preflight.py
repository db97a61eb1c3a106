"""Pre-flight: what will go wrong later and can be seen before minutes of GPU work.

Checks that need no device are told when the program is about to load models or write videos; those of the device when
the program itself first uses it. A message `preflight` holds the checks that are new or have changed.
"""
import importlib.util
import re
import sys

from . import phases
from .hooks import fenced, on
from .loaded import loaded
from .state import link, state, torch as torch_or_none
from .wire import said

_told = {}
#: torch 2.x goes with torchvision 0.(x + 15).
VISION_MINOR = 15
#: AMD architectures without bfloat16 arithmetic of their own.
NO_BF16 = ("gfx7", "gfx8", "gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c", "gfx101", "gfx103")
#: Texts after which every later call of the device fails.
DEAD = re.compile(r"(HIP|CUDA) error: |hipErrorLaunchFailure|unspecified launch failure|an illegal memory access", re.I)
RECOVERABLE = ("out of memory", "not supported", "invalid argument", "no kernel image", "invalid device function")


def check(name, ok, value=None, text=None, cure=None):
    """One entry of `checks`."""
    return {"name": name, "ok": ok, "value": value, "text": text, "cure": cure}


def tell(checks):
    """Sends what has not been said so."""
    new = [one for one in checks if _told.get(one["name"]) != one]
    for one in new:
        _told[one["name"]] = one
    if new:
        link.send("preflight", checks=new)


def there(name):
    """Whether a package can be imported; it is not."""
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def numbers(version):
    """(major, minor) of a version, or None."""
    found = re.match(r"(\d+)\.(\d+)", str(version))
    return (int(found.group(1)), int(found.group(2))) if found else None


@on("torch")
def first(torch):
    """Queues the checks of the device. They run when the program begins to use it, never before."""
    torch.cuda._lazy_call(lambda: fenced("preflight", device, torch))


def versions():
    """torch and torchvision: which, and whether they belong together."""
    torch = torch_or_none()
    if torch is None:
        return []
    hip = getattr(torch.version, "hip", None)
    kind = "ROCm %s" % hip if hip else "CUDA %s" % torch.version.cuda if torch.version.cuda else "CPU"
    checks = [check("torch", True, "%s (%s)" % (torch.__version__, kind))]
    version = getattr(loaded("torchvision", "__version__"), "__version__", None)
    if version is not None:
        want, have = numbers(torch.__version__), numbers(version)
        fits = None if not want or not have or want[0] != 2 or have[0] != 0 else have[1] == want[1] + VISION_MINOR
        text = None if fits is not False else "torchvision %s was made for torch 2.%d, this is torch %s" % (
            version, have[1] - VISION_MINOR, torch.__version__)
        checks.append(check("torchvision", fits, version, text,
                            None if fits is not False else "install torch and torchvision of one release"))
    return checks


def attention():
    """The kernels for attention that are there."""
    torch = torch_or_none()
    kernels = []
    backends = getattr(getattr(torch, "backends", None), "cuda", None)
    for name in ("flash", "mem_efficient", "cudnn", "math"):
        enabled = getattr(backends, name + "_sdp_enabled", None)
        if enabled is not None and enabled():
            kernels.append(name)
    packages = [name for name in ("flash_attn", "xformers", "sageattention", "aiter") if there(name)]
    slow = kernels == ["math"] and not packages
    return [check("attention", not slow, ", ".join(kernels + packages) or None,
                  "only the slow kernel is on" if slow else None,
                  "allow the flash or memory-efficient kernel" if slow else None)]


def writer():
    """Whether torchvision can write a video: newer releases have no writer, older ones need PyAV. Asked of FramePack
    only: that others import torchvision does not mean that they write with it."""
    io = sys.modules.get("torchvision.io")
    if io is None or "diffusers_helper.utils" not in sys.modules:
        return []
    if not hasattr(io, "write_video"):
        return [check("video_writer", False, None, "this torchvision has no write_video: the video is lost when it "
                      "is to be written, after all the GPU work", "install an older torchvision, or write with PyAV")]
    if not there("av"):
        return [check("video_writer", False, None, "torchvision writes videos with PyAV, which is missing",
                      "pip install av")]
    return [check("video_writer", True, "torchvision with PyAV")]


def miopen():
    """On ROCm `torch.backends.cudnn.enabled` is MIOpen's switch."""
    torch = torch_or_none()
    if torch is None or not getattr(torch.version, "hip", None):
        return []
    if torch.backends.cudnn.enabled:
        return [check("miopen", True, "on")]
    return [check("miopen", False, "off", "the program has switched MIOpen off: convolutions take torch's own kernels, "
                  "and MIOPEN_ variables do nothing",
                  "COMFYUI_ENABLE_MIOPEN=1 in a new ComfyUI; torch.backends.cudnn.enabled = True elsewhere")]


def static():
    """All checks that need no device."""
    return versions() + attention() + writer() + miopen()


def device(torch):
    """Checks of each card, in the program's own first use of it."""
    checks = static()
    try:
        for index in range(torch.cuda.device_count()):
            checks.append(precision(torch, index))
        torch.cuda.mem_get_info()
        checks.append(check("context", True))
    except Exception as error:
        checks.append(check("context", False, None, said(error)[:500], "restart the program; if it stays so, the host"))
    tell(checks)


def precision(torch, index):
    """Whether a card computes in bfloat16."""
    properties = torch.cuda.get_device_properties(index)
    if getattr(torch.version, "hip", None):
        name = getattr(properties, "gcnArchName", "").split(":")[0]
        able = not name.startswith(NO_BF16) if name else None
    else:
        name = "sm_%d%d" % (properties.major, properties.minor)
        able = properties.major >= 8
    return check("bfloat16" if index == 0 else "bfloat16 on card %d" % index, able, name,
                 "this card has no bfloat16 arithmetic: slow, or refused" if able is False else None,
                 "float16, or float32 for the VAE (vae_dtype)" if able is False else None)


@on("diffusers.pipelines.pipeline_utils", "diffusers_helper.utils", "comfy.sd")
def program(module):
    """A program that generates: what can be seen now is told now."""
    tell(static())


def before_job():
    """At the start of a job: the program may have switched something off since."""
    tell(versions() + miopen())


phases.before_job.append(before_job)


def watch(_phase, error):
    """An error after which the device answers no more."""
    text = said(error)
    if DEAD.search(text) and not any(word in text.lower() for word in RECOVERABLE):
        tell([check("context", False, None, text.splitlines()[0][:500],
                    "every later call fails: restart the program")])


state.watchers.append(watch)
