#!/usr/bin/env python3
"""Full-size decoders on the processor, ours and diffusers', in turn, with the same random weights.

    python against_diffusers.py WORK_FOLDER DECODE_BINARY [hunyuan|wan] [TxHxW] [PAIRS]

DECODE_BINARY is `cargo build --release -p framepack-engine --example decode`. Needs torch, diffusers and
safetensors. Writes the model once to WORK_FOLDER. Each run is a process of its own, so that its peak memory
is its own; in each the better of two decodes counts.
"""
import os
import re
import statistics
import subprocess
import sys
import time


def peak_mb():
    with open("/proc/self/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) * 1024 / 1e6


def build(kind):
    import torch
    from diffusers import AutoencoderKLHunyuanVideo, AutoencoderKLWan

    torch.manual_seed(7)
    model = AutoencoderKLHunyuanVideo() if kind == "hunyuan" else AutoencoderKLWan()
    return model.eval()


def make(kind, folder, size):
    import torch
    from safetensors.torch import save_file

    torch.set_grad_enabled(False)
    model = build(kind)
    model.save_pretrained(folder)
    t, h, w = size
    z = torch.randn((1, 16, t, h, w), generator=torch.Generator().manual_seed(8))
    save_file({"z": z, "out": model.decode(z).sample.contiguous()}, os.path.join(folder, "case.safetensors"))


def reference(kind, folder):
    import torch
    from diffusers import AutoencoderKLHunyuanVideo, AutoencoderKLWan
    from safetensors.torch import load_file

    torch.set_grad_enabled(False)
    cls = AutoencoderKLHunyuanVideo if kind == "hunyuan" else AutoencoderKLWan
    model = cls.from_pretrained(folder).eval()
    del model.encoder
    case = load_file(os.path.join(folder, "case.safetensors"))
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        model.decode(case["z"])
        seconds.append(time.perf_counter() - start)
    print(f"seconds {min(seconds):.2f}  peak_mb {peak_mb():.0f}")


def numbers(text):
    return {k: float(v) for k, v in re.findall(r"(\w+) ([\d.e+-]+)", text)}


def main():
    work, binary, kind, size, pairs = (sys.argv[1:] + ["hunyuan", "3x24x24", "5"][len(sys.argv) - 3:])[:5]
    folder = os.path.join(work, f"{kind}_{size}")
    run = lambda args: subprocess.run(args, check=True, capture_output=True, text=True).stdout
    me = [sys.executable, os.path.abspath(__file__)]
    if not os.path.exists(os.path.join(folder, "case.safetensors")):
        run(me + ["make", kind, folder, size])
    time_ratios, memory_ratios = [], []
    for i in range(int(pairs)):
        theirs = numbers(run(me + ["reference", kind, folder]))
        ours = numbers(run([binary, folder, os.path.join(folder, "case.safetensors"), "2"]))
        time_ratios.append(ours["seconds"] / theirs["seconds"])
        memory_ratios.append(ours["peak_mb"] / theirs["peak_mb"])
        print(f"pair {i + 1}: diffusers {theirs['seconds']:.2f} s {theirs['peak_mb']:.0f} MB, "
              f"engine {ours['seconds']:.2f} s {ours['peak_mb']:.0f} MB, "
              f"ratio {time_ratios[-1]:.2f} time, {memory_ratios[-1]:.2f} memory, "
              f"max abs error {ours['max_abs_error']:.1e}", flush=True)
    print(f"median ratio: {statistics.median(time_ratios):.2f} time, {statistics.median(memory_ratios):.2f} memory")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3], [int(n) for n in sys.argv[4].split("x")])
    elif sys.argv[1] == "reference":
        reference(sys.argv[2], sys.argv[3])
    else:
        main()
