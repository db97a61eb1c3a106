"""Checks that need a real card; the standard library and torch only, no diffusers.

    python3 src/agent/tests/gpu_check.py

Each check runs in a process of its own, since a cap and an initialised device cannot be taken back. Prints a line for
each; the exit code is the number of those that failed. Not part of the test command: it needs a GPU.
"""
import json
import os
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(os.path.dirname(HERE), "python")
GIB = 1 << 30

BEGIN = """
import sys, gc
sys.path.insert(0, {python!r})
import fpt_agent
from fpt_agent.state import link
sent = []
link.send = lambda kind, /, **fields: sent.append(dict(fields, type=kind))
fpt_agent.start()
import torch
assert not torch.cuda.is_initialized(), "the agent has initialised the device"
GIB = 1 << 30
def take(gib):
    return torch.empty(int(gib * GIB), dtype=torch.uint8, device="cuda:0")
def refused(gib):
    try:
        take(gib)
    except torch.OutOfMemoryError:
        return True
    return False
assert not [m for m in sent if m["type"] == "hook_failed"], sent
"""

CAP = """
below = take(4)
assert below.numel() == 4 * GIB
assert refused({above}), "an allocation past the cap passed"
del below
torch.cuda.empty_cache()
assert take(4).numel() == 4 * GIB, "one below it is refused afterwards"
fixes = [m for m in sent if m["type"] == "fix" and m["what"] == "vram_cap"]
assert fixes and fixes[0]["by"] == {by!r}, sent
"""

FREE = """
from fpt_agent import memory
import types
from fpt_agent import framepack
below = take(2)
total = torch.cuda.mem_get_info(0)[1]
free = torch.cuda.mem_get_info(0)[0]
assert free > 8 * GIB, "this check wants a card with more free than the cap"
module = types.SimpleNamespace(__name__="diffusers_helper.memory", gpu=torch.device("cuda:0"))
def get_cuda_free_memory_gb(device=None):
    stats = torch.cuda.memory_stats(device)
    return (torch.cuda.mem_get_info(device)[0] + stats["reserved_bytes.all.current"]
            - stats["active_bytes.all.current"]) / GIB
module.get_cuda_free_memory_gb = get_cuda_free_memory_gb
for name in ("load_model_as_complete", "unload_complete_models", "move_model_to_device_with_memory_preservation",
             "offload_model_from_device_for_memory_preservation"):
    setattr(module, name, lambda *a, **k: None)
framepack.policy(module)
def near(seen, want):
    assert abs(seen - want) < 0.1, (seen, want)
near(module.get_cuda_free_memory_gb(), 6)      # 8 GiB cap, 2 taken
del below
near(module.get_cuda_free_memory_gb(), 8)      # the idle pool counts as free
near(module.get_cuda_free_memory_gb("cuda:0"), 8)
kept = take(5)
near(module.get_cuda_free_memory_gb(), 3)
assert refused(3.5) and take(2.5) is not None, "what is told as free can be had, and no more"
"""

PREFLIGHT = """
assert not [m for m in sent if m["type"] == "preflight"], "no device yet"
torch.empty(1, device="cuda")
checks = {one["name"]: one for m in sent if m["type"] == "preflight" for one in m["checks"]}
assert checks["context"]["ok"] is True, checks
assert checks["bfloat16"]["value"], checks
assert checks["torch"]["ok"] and checks["attention"]["value"], checks
print(sorted((k, v["ok"], v["value"]) for k, v in checks.items()))
"""

TRIM = """
from fpt_agent import memory
kept = take(3)
del kept
assert torch.cuda.memory_reserved() >= 3 * GIB
memory.stage()
assert torch.cuda.memory_reserved() < GIB, torch.cuda.memory_reserved()
"""

PINNED = """
x = torch.ones(1 << 20)
assert not x.pin_memory().is_pinned()
y = x.pin_memory().to("cuda", non_blocking=True)
torch.cuda.synchronize()
assert y.cpu().equal(x)
"""

GENERATOR = """
from fpt_agent import placement
class Pipe:
    _execution_device = torch.device("cpu")
    components = {}
pipe = Pipe()
expected = torch.rand(4, generator=torch.Generator("cpu").manual_seed(7))
for _ in range(3):
    args, kwargs = placement.check(pipe, (), {"generator": torch.Generator("cuda").manual_seed(7)})
    assert kwargs["generator"].device.type == "cpu"
    assert torch.rand(4, generator=kwargs["generator"]).equal(expected)
same = torch.Generator("cuda").manual_seed(7)
seen = [torch.rand(4, generator=placement.check(pipe, (), {"generator": same})[1]["generator"]) for _ in range(2)]
assert seen[0].equal(expected) and not seen[1].equal(expected), "one that goes on goes on"
image = torch.rand(2, 2, device="cuda")
args, kwargs = placement.check(pipe, (), {"image": image, "prompt": "x"})
assert kwargs["image"].device.type == "cpu" and kwargs["image"].equal(image.cpu())
assert [m["verdict"] for m in sent if m["type"] == "finding"] == ["device_mismatch"] * 2, sent
class Other(Pipe):
    _execution_device = torch.device("cuda:0")
assert placement.check(Other(), (), {"generator": torch.Generator("cpu").manual_seed(7)}) is None
"""

UNLOAD = """
from fpt_agent import diffusers_hooks
big, vae = torch.nn.Linear(4096, 65536).cuda(), torch.nn.Linear(8, 8).cuda()
class Pipe:
    components = {"transformer": big, "vae": vae}
pipe = Pipe()
x = torch.ones(1, 4096, device="cuda")
want = big(x)
before = torch.cuda.memory_reserved()
diffusers_hooks._local.pipelines = [pipe]
diffusers_hooks.unload(vae)
assert not big.weight.is_cuda and vae.weight.is_cuda
assert torch.cuda.memory_reserved() < before - GIB // 2
assert big(x).equal(want) and big.weight.is_cuda, "comes back when it is called"
"""

CONV = """
try:
    conv_fallback = fpt_agent.conv_fallback
except (AttributeError, ImportError):
    print("no tiers in this build: skipped")
    sys.exit(0)
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(1, 64, 9, 64, 64, device="cuda", dtype=torch.float16)
w = torch.randn(64, 64, 3, 3, 3, device="cuda", dtype=torch.float16) / 40
want = F.conv3d(x, w, padding=1).float()
for tier in ("native", "split", "nocudnn", "cpu"):
    with conv_fallback(start=tier):
        seen = F.conv3d(x, w, padding=1).float()
    worst = (seen - want).abs().max().item()
    print(tier, "largest difference", worst)
    assert worst < 0.03, (tier, worst)
"""

#: name, settings, environment, code
CHECKS = (
    ("cap of the agent, bytes", {"vram_cap": "8 GiB"}, {}, CAP.format(above=12, by="agent")),
    ("cap of the agent, fraction", {"vram_cap_fraction": "SHARE"}, {}, CAP.format(above=12, by="agent")),
    ("cap of PYTORCH_ALLOC_CONF", {"vram_cap": "40 GiB"},
     {"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:SHARE"}, CAP.format(above=12, by="environment")),
    ("cap of PYTORCH_CUDA_ALLOC_CONF", {"vram_cap": "40 GiB"},
     {"PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:SHARE"}, CAP.format(above=12, by="environment")),
    ("free memory knows the cap", {"vram_cap": "8 GiB"}, {}, FREE),
    ("pre-flight at the first use", {}, {}, PREFLIGHT),
    ("cleaning between stages", {"trim_stages": "true", "host_copies": "few"}, {}, TRIM),
    ("no page-locked tensors", {"pinned_memory": "false"}, {}, PINNED),
    ("placement", {"device_placement": "execution_device"}, {}, GENERATOR),
    ("complete unload", {"full_unload": "true"}, {}, UNLOAD),
    ("tiers of the convolution", {}, {}, CONV),
)


def share():
    """8 GiB as a fraction of the first card."""
    code = "import torch; print(torch.cuda.get_device_properties(0).total_memory)"
    return "%.6f" % (8 * GIB / int(subprocess.check_output([sys.executable, "-c", code]).split()[-1]))


def main():
    failed, part = 0, share()
    for name, settings, environment, code in CHECKS:
        settings = {key: value.replace("SHARE", part) for key, value in settings.items()}
        env = dict(os.environ, FPT_AGENT_CONFIG=json.dumps({"settings": settings}))
        env.update({key: value.replace("SHARE", part) for key, value in environment.items()})
        text = textwrap.dedent(BEGIN).format(python=PYTHON) + code
        done = subprocess.run([sys.executable, "-c", text], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True)
        failed += done.returncode != 0
        print("%-4s %s" % ("ok" if done.returncode == 0 else "BAD", name), flush=True)
        if done.stdout.strip():
            print(textwrap.indent(done.stdout.strip()[-1500:], "     "), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
