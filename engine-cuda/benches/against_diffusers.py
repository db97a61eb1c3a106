#!/usr/bin/env python3
"""Full-size decoders on one card, ours and diffusers', one after the other, with the same random weights and latents.

    python against_diffusers.py WORK_FOLDER MEASURE_BINARY [CASE…]

MEASURE_BINARY is `engine-cuda/examples/measure`, built by scripts/build-cuda. Needs torch for CUDA, diffusers and
safetensors. Every decode runs in a process of its own; medians after a warm-up.
"""
import json
import os
import statistics
import subprocess
import sys
import time

# kind, latent, whether diffusers can decode it untiled
CASES = {
    "hunyuan-544": ("hunyuan", (9, 68, 90), True),
    "hunyuan-720": ("hunyuan", (18, 90, 160), False),
    "wan-480": ("wan", (21, 60, 104), True),
    "wan-320": ("wan", (5, 40, 40), True),
}
# our runs of each: name, options of `measure decode`
CAP = ["--cap", "20"]
TILES = ("tiles of 256, runs of 16 frames as diffusers, cap 20 GiB", [*CAP, "--tile", "256,192", "--runs", "16,12", "--times", "1", "--against", "tiled"])
RUNS = {
    "hunyuan-544": [("nothing cut, cap 20 GiB", CAP), ("exact low-memory mode, 6 GiB, cap 8 GiB", ["--cap", "8", "--exact", "6"]), TILES],
    "hunyuan-720": [("nothing cut", ["--times", "2"]), ("what the planner takes, cap 20 GiB", [*CAP, "--plan", "1", "--times", "2"]),
                    ("what the planner takes, cap 24 GiB", ["--cap", "24", "--plan", "1", "--times", "2"]),
                    ("runs of 16 frames, cap 20 GiB", [*CAP, "--runs", "16,12", "--times", "2"]), TILES],
    "wan-480": [("chunks of 1 latent, cap 20 GiB", CAP), ("chunks of 4, cap 20 GiB", [*CAP, "--chunk", "16"])],
    "wan-320": [("chunks of 1 latent, cap 20 GiB", CAP), ("chunks of 4, cap 20 GiB", [*CAP, "--chunk", "16"])],
}
GIB = 1 << 30


def model_class(kind):
    from diffusers import AutoencoderKLHunyuanVideo, AutoencoderKLWan

    return AutoencoderKLHunyuanVideo if kind == "hunyuan" else AutoencoderKLWan


def reference(kind, folder, size, untiled):
    import torch
    from safetensors.torch import save_file

    torch.set_grad_enabled(False)
    torch.manual_seed(7)
    model = model_class(kind)().eval().to(torch.bfloat16)
    model.save_pretrained(folder)
    model = model.to("cuda")
    t, h, w = size
    latents = torch.randn((1, 16, t, h, w), generator=torch.Generator().manual_seed(8))
    saved = {"z": latents}
    z = latents.to("cuda", torch.bfloat16)
    results = {}

    def measure(name, times):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        seconds = []
        for _ in range(times + 1):
            torch.cuda.synchronize()
            start = time.perf_counter()
            out = model.decode(z).sample
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        results[name] = {"seconds": statistics.median(seconds[1:]), "peak_gib": torch.cuda.max_memory_reserved() / GIB}
        return out

    # HunyuanVideo's cuts time even where it does not cut space, unless told not to
    model.use_framewise_decoding = False
    if untiled:
        saved["out"] = measure("diffusers, nothing cut", 3).float().cpu()
    model.use_framewise_decoding = True
    model.enable_tiling()
    tiled = measure("diffusers, its default tiling", 1 if t == 18 else 2)
    if kind == "hunyuan":
        saved["tiled"] = tiled.float().cpu()
    save_file({k: v.contiguous() for k, v in saved.items()}, os.path.join(folder, "case.safetensors"))
    print("RESULTS " + json.dumps(results))


def ours(binary, folder, options):
    file = os.path.join(folder, "case.safetensors")
    done = subprocess.run([binary, "decode", folder, file, *options], capture_output=True, text=True)
    words = done.stdout.split()
    if done.returncode or "RESULT" not in words:
        return {"error": (done.stderr or done.stdout).strip()[-300:]}
    value = lambda name: float(words[words.index(name) + 1])
    for line in done.stdout.splitlines():
        if line.startswith("planned"):
            print(f"<!-- {line} -->")
    result = {"seconds": value("seconds"), "peak_gib": value("used_high_gib"), "reserved_gib": value("reserved_high_gib")}
    if "relative_rms" in words:
        result["relative_rms"], result["largest"] = value("relative_rms"), value("max")
    return result


def main():
    work, binary, *names = sys.argv[1:]
    print("| decode | by | seconds | peak, GiB | differs from diffusers: relative, largest |\n| --- | --- | --- | --- | --- |")
    for name in names or CASES:
        kind, size, untiled = CASES[name]
        folder = os.path.join(work, name)
        row = lambda by, r: print(f"| {name} | {by} | " + (r["error"].replace("\n", " ") + " | | |" if "error" in r else
              f"{r['seconds']:.3f} | {r['peak_gib']:.2f} | " + (f"{r['relative_rms']:.2e}, {r['largest']:.2e} |" if "largest" in r else "|")), flush=True)
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "reference", name, folder], capture_output=True, text=True)
        if "RESULTS" not in done.stdout:
            print(done.stderr[-2000:])
            continue
        for by, result in json.loads(done.stdout.split("RESULTS ")[1]).items():
            row(by, result)
        for by, options in RUNS[name]:
            row("ours, " + by, ours(binary, folder, options))


if __name__ == "__main__":
    if sys.argv[1] == "reference":
        kind, size, untiled = CASES[sys.argv[2]]
        reference(kind, sys.argv[3], size, untiled)
    else:
        main()
