#!/usr/bin/env python3
"""Full-size decoders on the processor, ours and diffusers', in turn, with the same random weights.

    python against_diffusers.py WORK_FOLDER DECODE_BINARY [hunyuan|wan] [TxHxW] [PAIRS]

DECODE_BINARY is `cargo build --release -p framepack-engine --example decode`. Needs torch, diffusers and
safetensors. Writes the model once to WORK_FOLDER. Each run is a process of its own, so that its peak memory
is its own; in each the better of two decodes counts. On a machine with other work the processor's time says
more than the clock's.
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
    seconds, cpu = [], []
    for _ in range(2):
        start, cpu_start = time.perf_counter(), time.process_time()
        model.decode(case["z"])
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    print(f"seconds {min(seconds):.2f}  cpu_seconds {min(cpu):.2f}  peak_mb {peak_mb():.0f}")


def numbers(text):
    return {k: float(v) for k, v in re.findall(r"(\w+) ([\d.e+-]+)", text)}


def main():
    work, binary, kind, size, pairs = (sys.argv[1:] + ["hunyuan", "3x24x24", "5"][len(sys.argv) - 3:])[:5]
    folder = os.path.join(work, f"{kind}_{size}")
    run = lambda args: subprocess.run(args, check=True, capture_output=True, text=True).stdout
    me = [sys.executable, os.path.abspath(__file__)]
    if not os.path.exists(os.path.join(folder, "case.safetensors")):
        run(me + ["make", kind, folder, size])
    ratios = {"seconds": [], "cpu_seconds": [], "peak_mb": []}
    for i in range(int(pairs)):
        theirs = numbers(run(me + ["reference", kind, folder]))
        ours = numbers(run([binary, folder, os.path.join(folder, "case.safetensors"), "2"]))
        for key, values in ratios.items():
            values.append(ours[key] / theirs[key])
        show = lambda of: ", ".join(f"{key} {of[key]:.1f}" for key in ratios)
        print(f"pair {i + 1}: diffusers {show(theirs)}; engine {show(ours)}; ratio "
              + ", ".join(f"{key} {values[-1]:.2f}" for key, values in ratios.items())
              + f"; max abs error {ours['max_abs_error']:.1e}", flush=True)
    print("median ratio: " + ", ".join(f"{key} {statistics.median(values):.2f}" for key, values in ratios.items()))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3], [int(n) for n in sys.argv[4].split("x")])
    elif sys.argv[1] == "reference":
        reference(sys.argv[2], sys.argv[3])
    else:
        main()
