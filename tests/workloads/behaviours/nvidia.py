"""Behaviours on a real NVIDIA card: nvidia.py MODE. Needs torch with CUDA; the hangs need diffusers.

A hang is a tiny FramePack generation on the card that blocks in its first decode, beside something harmless. An honest mode
computes or copies for FPT_SECONDS without a word, while a bar of steps is not full; its thread sleeps in the driver meanwhile.
`compute` works on the card for ever: the program of somebody else.
"""
import ctypes
import subprocess
import sys
import time

import common
import generations
from common import deadline, finish, repeat

GIB = 2**30
#: CU_CTX_SCHED_BLOCKING_SYNC: who waits for the card sleeps in the driver instead of asking again and again.
BLOCKING_SYNC = 4

BEHAVIOURS = {}


def behaviour(function):
    BEHAVIOURS[function.__name__] = function
    return function


def torch_that_sleeps():
    """torch whose waits for the card use no CPU; must come before CUDA is initialised."""
    cuda = ctypes.CDLL("libcuda.so.1")
    for call, arguments in (("cuInit", (0,)), ("cuDevicePrimaryCtxSetFlags", (0, BLOCKING_SYNC))):
        code = getattr(cuda, call)(*arguments)
        if code != 0:
            sys.exit("%s failed with %d" % (call, code))
    import torch
    return torch


def show_a_job():
    """A bar of steps that is not full."""
    import tqdm
    bar = tqdm.tqdm(total=8, desc="Sampling")
    for _ in range(3):
        time.sleep(1 / common.SCALE)
        bar.update()
    return bar


# --- hangs

def hang():
    generations.framepack_hangs_in_decode("--device", "cuda")


@behaviour
def beside_another_job():
    """Another program keeps the card busy (a helper of the proof)."""
    hang()


@behaviour
def beside_a_line():
    repeat(10, lambda: print("[watchdog] still alive", flush=True))
    hang()


@behaviour
def beside_a_bar():
    repeat(1, lambda: print("\r 62%|██████▎   | 5/8 [00:02<00:01,  1.90it/s]", end="", file=sys.stderr, flush=True))
    hang()


@behaviour
def beside_statistics():
    """A thread asks nvidia-smi."""
    repeat(2, lambda: subprocess.run(["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv"],
                                     stdout=subprocess.DEVNULL, check=False))
    hang()


# --- honest work

@behaviour
def one_long_kernel():
    """A kernel that takes the whole time; the clock of the card is between 1 and 2 GHz, so it may take up to twice as long."""
    torch = torch_that_sleeps()
    held = torch.ones(GIB, dtype=torch.float32, device="cuda")
    bar = show_a_job()
    torch.cuda._sleep(int(common.SECONDS * 1.6e9))
    torch.cuda.synchronize()
    assert held[-1].item() == 1
    bar.update(5)
    finish()


@behaviour
def queue_of_products():
    """Matrix products that were queued at once; then one wait for all."""
    torch = torch_that_sleeps()
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    bar = show_a_job()
    end, done = deadline(), torch.cuda.Event(blocking=True)
    while time.monotonic() < end:
        for _ in range(20000):
            torch.mm(a, a)
        done.record()
        done.synchronize()
    bar.update(5)
    finish()


@behaviour
def transfers():
    """Weights go to the card and back, as with offloading of a large model."""
    torch = torch_that_sleeps()
    on_card = torch.ones(2 * GIB, dtype=torch.uint8, device="cuda")
    on_host = torch.empty(2 * GIB, dtype=torch.uint8, pin_memory=True)
    bar = show_a_job()
    end, done = deadline(), torch.cuda.Event(blocking=True)
    while time.monotonic() < end:
        for _ in range(20):
            on_host.copy_(on_card, non_blocking=True)
            on_card.copy_(on_host, non_blocking=True)
        done.record()
        done.synchronize()
    bar.update(5)
    finish()


@behaviour
def compute():
    import torch
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    print("computing", flush=True)
    while True:
        for _ in range(200):
            torch.mm(a, a)
        torch.cuda.synchronize()


if __name__ == "__main__":
    common.run_named(BEHAVIOURS, "behaviour")
