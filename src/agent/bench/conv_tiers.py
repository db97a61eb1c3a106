"""Time, memory and error of each tier on a GPU: python src/agent/bench/conv_tiers.py

Error: largest difference from native in float64, over the largest value. Memory: above what inputs and weights take.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import torch

from fpt_agent import tiers

SHAPES = [((1, 128, 9, 128, 128), 128), ((1, 256, 9, 64, 64), 256), ((1, 512, 5, 32, 32), 512),
          ((1, 128, 17, 256, 256), 128)]


def ways(torch):
    """name -> function with the arguments of conv3d."""
    native, conv2d = torch.conv3d, torch.conv2d
    return {
        "native": native,
        "split": lambda *a: tiers.split(torch, conv2d, *a),
        "nocudnn, whole": lambda *a: tiers.nocudnn(torch, native, *a, budget=1 << 60),
        "nocudnn": lambda *a: tiers.nocudnn(torch, native, *a),
        "nocudnn, 64 MiB": lambda *a: tiers.nocudnn(torch, native, *a, budget=1 << 26),
        "cpu": lambda *a: tiers.cpu(torch, native, *a),
    }


def measure(torch, function, args):
    """(milliseconds, bytes, result) of the fastest of some calls."""
    took = []
    for _ in range(4):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        began = time.perf_counter()
        out = function(*args)
        torch.cuda.synchronize()
        took.append((time.perf_counter() - began) * 1e3)
        peak = torch.cuda.max_memory_allocated() - before
    return min(took), peak, out


def main():
    if not torch.cuda.is_available():
        sys.exit("no GPU")
    torch.manual_seed(1)
    print("%s, torch %s\n" % (torch.cuda.get_device_name(), torch.__version__))
    print("| input | dtype | tier | ms | GiB more | error |\n| --- | --- | --- | --- | --- | --- |")
    with torch.inference_mode():
        for shape, out in SHAPES:
            for dtype in (torch.float16, torch.bfloat16):
                x = torch.randn(shape, device="cuda").to(dtype)
                w = (torch.randn(out, shape[1], 3, 3, 3, device="cuda") / (27 * shape[1]) ** 0.5).to(dtype)
                b = torch.randn(out, device="cuda").to(dtype)
                args = (x, w, b, 1, 1, 1, 1)
                frames = slice(0, 3)  # in float64 the whole would not be quick
                want = torch.conv3d(x[:, :, :4].double(), w.double(), b.double(), 1, 1)[:, :, frames]
                for name, way in ways(torch).items():
                    ms, peak, got = measure(torch, way, args)
                    error = (got[:, :, frames].double() - want).abs().max() / want.abs().max()
                    print("| %s | %s | %s | %.2f | %.2f | %.1e |" % (
                        "x".join(map(str, shape[1:])), str(dtype)[6:], name, ms, peak / (1 << 30), error))


main()
