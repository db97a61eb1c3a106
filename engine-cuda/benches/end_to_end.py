#!/usr/bin/env python3
"""The real programs on one card, end to end: `framepack-tui decode --device cuda` and what it falls back to.

    python end_to_end.py WORK_FOLDER FRAMEPACK_TUI FRAMEPACK_TUI_CUDA [CASE…]

Each case is one run of the program with --headless, judged by its events, by the pictures that it wrote and by what the
card had in use meanwhile. Prints a line a case; the exit code is 1 where one is not as it should be. Needs torch for
CUDA, diffusers, safetensors, NumPy, Pillow; `tier` also gcc. The models are diffusers' own classes at full size with
random weights.
"""
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

GIB = 1 << 30
HUNYUAN, WAN = "hunyuan", "wan"
# settings that make several chunks
CHUNKS = "vae_tile = 256\nvae_chunk = 4\n"
SMALL, MIDDLE, LARGE, WIDE = (3, 12, 12), (9, 68, 90), (18, 90, 160), (21, 60, 104)


class Wrong(Exception):
    pass


def expect(truth, words):
    if not truth:
        raise Wrong(words)


# -- models and what diffusers makes of them ------------------------------------------------------------------------

def prepare(work):
    """Models, latents, and diffusers' pictures; once."""
    import torch
    from diffusers import AutoencoderKLHunyuanVideo, AutoencoderKLWan
    from safetensors.torch import save_file

    torch.set_grad_enabled(False)
    for name, cls in ((HUNYUAN, AutoencoderKLHunyuanVideo), (WAN, AutoencoderKLWan)):
        torch.manual_seed(7)
        model = cls().eval().to(torch.bfloat16)
        model.save_pretrained(work / name)
    # group norms undo the size of what they read: float16 alone cannot hold it on the way
    torch.manual_seed(7)
    model = AutoencoderKLHunyuanVideo().eval().to(torch.bfloat16)
    model.decoder.conv_in.conv.bias.fill_(3e5)
    model.save_pretrained(work / "loud")
    for name, size in (("small", SMALL), ("middle", MIDDLE), ("large", LARGE), ("wide", WIDE)):
        latents = torch.randn((1, 16, *size), generator=torch.Generator().manual_seed(8))
        save_file({"latents": latents}, work / f"{name}.safetensors", {"scaling_applied": "true"})
    for name, cls, latents in ((HUNYUAN, AutoencoderKLHunyuanVideo, "middle"), (WAN, AutoencoderKLWan, "wide"), ("loud", AutoencoderKLHunyuanVideo, "small")):
        reference(work, cls, name, latents)


def reference(work, cls, name, latents):
    import numpy
    import torch
    from safetensors.torch import load_file

    model = cls.from_pretrained(work / name, torch_dtype=torch.bfloat16).to("cuda")
    model.use_framewise_decoding = False
    z = load_file(work / f"{latents}.safetensors")["latents"].to("cuda", torch.bfloat16)
    video = model.decode(z).sample[0].float().clamp(-1, 1)
    numpy.save(work / f"{name}-{latents}.npy", ((video / 2 + 0.5) * 255).round().byte().permute(1, 2, 3, 0).cpu().numpy())


# -- a run ----------------------------------------------------------------------------------------------------------

def in_use():
    import torch

    free, total = torch.cuda.mem_get_info()
    return total - free


def environment(tools, work, **more):
    home = work / "home"
    return {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "FPT_CUDA_WORKER": str(tools[1]), **more}


def profile_of(work, settings):
    """A profile with these lines of settings."""
    path = work / "profile.toml"
    path.write_text('schema = 1\n[profile]\nid = "bench-case"\nversion = "1.0.0"\ntitle = "a case"\n[workload.settings]\n' + settings)
    return path


class Run:
    """One run of the program and what it said."""

    def __init__(self, tools, work, latents, model, out, *options, env=None, profile=None, seen=None, fresh=True):
        self.out = work / out
        if fresh:
            for folder in (self.out, work / f"{out}.parts"):
                shutil.rmtree(folder, ignore_errors=True)
        words = [tools[0], "decode", work / f"{latents}.safetensors", "--model", work / model, "-o", self.out, "--device", "cuda", "--headless", *options]
        if profile:
            words += ["--profile", profile_of(work, profile)]
        variables = environment(tools, work, **(env or {}))
        before, most, going = in_use(), 0, True
        self.events, self.errors, self.phases, start = [], [], [], time.perf_counter()

        def watch():
            nonlocal most
            while going:
                most = max(most, in_use())
                time.sleep(0.01)

        thread = threading.Thread(target=watch)
        thread.start()
        done = subprocess.Popen([str(word) for word in words], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        errors = threading.Thread(target=lambda: self.errors.extend(done.stderr))
        errors.start()
        for line in done.stdout:
            entry = json.loads(line)
            event = entry["event"]
            self.events.append(event)
            if event["kind"] == "phase":
                self.phases.append((event["phase"], entry["at"] / 1000))
            if seen:
                seen(event)
        self.code = done.wait(60)
        self.seconds = time.perf_counter() - start
        going = False
        thread.join()
        errors.join()
        self.took = (most - before) / GIB

    def lines(self):
        return [event["text"] for event in self.events if event["kind"] == "line"]

    def says(self, words):
        return [line for line in self.lines() if words in line]

    def times(self):
        """Seconds of each phase."""
        ends = [at for _, at in self.phases[1:]]
        return ", ".join(f"{name} {end - at:.1f}" for (name, at), end in zip(self.phases, ends))

    def fixes(self):
        """What the worker has changed by itself."""
        return [event["what"] for event in self.events if event["kind"] == "agent" and event.get("word") == "fix"]

    def good(self, frames):
        expect(self.code == 0, f"exit code {self.code}: {self.lines()[-3:]} {self.errors[-3:]}")
        names = sorted(path.name for path in self.out.iterdir())
        expect(len(names) == frames, f"{len(names)} pictures, not {frames}")
        result = [event for event in self.events if event["kind"] == "run_finished"][0]["result"]
        expect(result and result["frames"] == frames, f"the result is {result}")
        return self

    def pictures(self):
        import numpy
        from PIL import Image

        return numpy.stack([numpy.asarray(Image.open(path)) for path in sorted(self.out.iterdir())])


def apart(one, other):
    """Mean and largest difference in levels of 255."""
    import numpy

    off = numpy.abs(one.astype(numpy.int16) - other.astype(numpy.int16))
    return f"{off.mean():.2f} levels apart in the mean, {off.max()} at most", off.mean(), off.max()


# -- the cases ------------------------------------------------------------------------------------------------------

def reference_pictures(work, name):
    import numpy

    return numpy.load(work / name)


def plain(tools, work):
    run = Run(tools, work, "middle", HUNYUAN, "plain", "--cap", "20GiB").good(33)
    expect(run.says("in one piece"), f"not in one piece: {run.lines()}")
    expect(run.took < 21.5, f"{run.took:.2f} GiB of the card")
    words, mean, _ = apart(run.pictures(), reference_pictures(work, "hunyuan-middle.npy"))
    expect(mean < 3, words)
    return f"in one piece, {run.seconds:.1f} s in all ({run.times()}), card {run.took:.2f} GiB; diffusers' pictures: {words}"


def exact(tools, work):
    whole = Run(tools, work, "middle", HUNYUAN, "plain", "--cap", "20GiB").good(33).pictures()
    run = Run(tools, work, "middle", HUNYUAN, "exact", "--cap", "7GiB").good(33)
    expect(run.says("whole, in "), f"{run.lines()}")
    expect(run.took < 8.5, f"{run.took:.2f} GiB of the card")
    words, mean, _ = apart(run.pictures(), whole)
    expect(mean < 1.5, words)
    return f"cap 7 GiB: the exact mode, card {run.took:.2f} GiB; the same in one piece: {words}"


def hd(tools, work):
    run = Run(tools, work, "large", HUNYUAN, "hd", "--cap", "20GiB").good(69)
    return f"69x720x1280, cap 20 GiB: {run.says('decoding on')}, {run.seconds:.1f} s in all ({run.times()}), card {run.took:.2f} GiB"


def tiles(tools, work):
    run = Run(tools, work, "middle", HUNYUAN, "tiles", "--cap", "1GiB").good(33)
    expect(run.says("tiles of "), f"{run.lines()}")
    expect(run.took < 2.2, f"{run.took:.2f} GiB of the card")
    return f"cap 1 GiB: {run.says('decoding on')[0]}, card {run.took:.2f} GiB"


def processor(tools, work):
    run = Run(tools, work, "small", HUNYUAN, "processor", "--cap", "200MiB").good(9)
    expect(run.fixes().count("vae_device") == 1, f"{run.fixes()}")
    return f"cap 200 MiB, less than the weights: {run.says('once more')}, then {run.says('decoding on')[-1]}"


def precision(tools, work):
    run = Run(tools, work, "small", "loud", "precision", profile='vae_dtype = "float16"\n').good(9)
    expect("vae_dtype" in run.fixes(), f"{run.fixes()}")
    words, mean, _ = apart(run.pictures(), reference_pictures(work, "loud-small.npy"))
    expect(mean < 6, words)
    return f"{run.says('once more')}; diffusers in bfloat16: {words}"


SHIM = """
#include <dlfcn.h>
typedef long (*call)(long, long, long, long, long, long);
static call own(const char *name) { return (call)dlsym(dlopen("REAL", RTLD_NOW), name); }
/* all of cuDNN's functions that are used take at most six numbers or addresses */
#define ITS(name) long name(long a, long b, long c, long d, long e, long f) { return own(#name)(a, b, c, d, e, f); }
ITS(cudnnGetVersion) ITS(cudnnGetErrorString) ITS(cudnnCreate) ITS(cudnnDestroy) ITS(cudnnSetStream)
ITS(cudnnBackendCreateDescriptor) ITS(cudnnBackendDestroyDescriptor) ITS(cudnnBackendSetAttribute)
ITS(cudnnBackendGetAttribute) ITS(cudnnBackendFinalize)
/* every fifth convolution fails */
long cudnnBackendExecute(long a, long b, long c, long d, long e, long f) {
    static unsigned calls;
    return ++calls % 5 ? own("cudnnBackendExecute")(a, b, c, d, e, f) : 5000;
}
"""


def tier(tools, work):
    import nvidia.cudnn

    folder = Path(list(nvidia.cudnn.__path__)[0]) / "lib"
    shim = work / "shim"
    shim.mkdir(exist_ok=True)
    (shim / "shim.c").write_text(SHIM.replace("REAL", str(folder / "libcudnn.so.9")))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", shim / "libcudnn.so.9", shim / "shim.c", "-ldl"], check=True)
    whole = Run(tools, work, "small", HUNYUAN, "sound").good(9).pictures()
    run = Run(tools, work, "small", HUNYUAN, "tier", env={"LD_LIBRARY_PATH": f"{shim}:{os.environ.get('LD_LIBRARY_PATH', '')}"}).good(9)
    failed = [event for event in run.events if event["kind"] == "agent" and event.get("word") == "conv" and event["what"] == "failed"]
    words, mean, _ = apart(run.pictures(), whole)
    expect(mean < 1.5, words)
    expect(failed and all(event["tier"] == "native" for event in failed), f"{failed}")
    return f"a cuDNN that fails of every fifth convolution: {len(failed)} were made on the processor ({failed[0]['message']}); without the fault: {words}"


def crowded(tools, work):
    """Another program takes the card's memory while we decode: smaller pieces, no failure."""
    import torch

    held = []

    def seen(event):
        if not held and event["kind"] == "line" and "decoding on" in event["text"]:
            free, _ = torch.cuda.mem_get_info()
            held.append(torch.empty(max(free - 5 * GIB, 0), dtype=torch.uint8, device="cuda"))

    try:
        run = Run(tools, work, "large", HUNYUAN, "crowded", seen=seen)
    finally:
        held.clear()
        torch.cuda.empty_cache()
    run.good(69)
    expect(run.says("once more"), f"it did not retreat: {run.lines()}")
    return f"all but 5 GiB taken by another program: {run.says('decoding on')}"


def killed(tools, work):
    """The worker is killed after some finished chunks: the next attempt goes on, to the same bits."""
    profile = CHUNKS
    whole = Run(tools, work, "large", HUNYUAN, "whole", profile=profile).good(69)
    worker, state = [], {}

    def seen(event):
        if event["kind"] == "spawned":
            worker[:] = [event["pid"]]
        if event["kind"] == "line" and " of 69 frames" in event["text"] and not state and not event["text"].startswith("69"):
            state["at"] = event["text"]
            os.kill(worker[0], signal.SIGKILL)

    run = Run(tools, work, "large", HUNYUAN, "killed", profile=profile, seen=seen)
    expect(state, f"it was over too soon: {run.lines()}")
    if run.code:
        run = Run(tools, work, "large", HUNYUAN, "killed", profile=profile, fresh=False)
    run.good(69)
    expect(run.says("are there from an earlier attempt"), f"{run.lines()}")
    words, _, most = apart(run.pictures(), whole.pictures())
    expect(most == 0, f"other pictures than undisturbed: {words}")
    return f"killed after “{state['at']}”: {run.says('earlier attempt')[0]}; the same bits as undisturbed"


def wan(tools, work):
    run = Run(tools, work, "wide", WAN, "wan-pictures", "--cap", "20GiB").good(81)
    words, mean, _ = apart(run.pictures(), reference_pictures(work, "wan-wide.npy"))
    expect(mean < 3, words)
    return f"81x480x832: {run.says('decoding on')}, {run.seconds:.1f} s in all ({run.times()}), card {run.took:.2f} GiB; diffusers' pictures: {words}"


def encode(tools, work):
    """The pictures that we made, to latents: beside diffusers' encoder on the same pictures."""
    import numpy
    import torch
    from diffusers import AutoencoderKLWan
    from safetensors.torch import load_file

    video = Run(tools, work, "wide", WAN, "wan-pictures", "--cap", "20GiB").good(81).pictures()
    words = [tools[0], "encode", work / "wan-pictures", "--model", work / WAN, "-o", work / "again.safetensors", "--force", "--device", "cuda", "--cap", "20GiB", "--headless"]
    done = subprocess.run([str(word) for word in words], env=environment(tools, work), capture_output=True, text=True, timeout=120)
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-300:]} {done.stdout[-600:]}")
    got = load_file(work / "again.safetensors")["latents"].float()
    torch.set_grad_enabled(False)
    model = AutoencoderKLWan.from_pretrained(work / WAN, torch_dtype=torch.bfloat16).to("cuda")
    z = torch.from_numpy(numpy.ascontiguousarray(video)).permute(3, 0, 1, 2)[None].to("cuda", torch.bfloat16) / 127.5 - 1
    # as the decoder takes them, which `scaling_applied` of our file says: not yet scaled for a diffusion model
    want = model.encode(z).latent_dist.mode().float().cpu()
    got = got.reshape(want.shape)
    off = float((got - want).norm() / want.norm())
    expect(off < 0.1, f"{off:.3f} of the latents' size apart")
    return f"81x480x832: {off:.1e} of diffusers' latents apart"


def screen(tools, work):
    """The bytes of the screen while it decodes on the card, to look at in a terminal of this size."""
    shutil.rmtree(work / "screen", ignore_errors=True)
    words = [tools[0], "decode", work / "large.safetensors", "--model", work / HUNYUAN, "-o", work / "screen", "--device", "cuda", "--profile", profile_of(work, CHUNKS), "--cap", "20GiB"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(str(tools[0]), [str(word) for word in words], environment(tools, work, TERM="xterm-256color", LANG="C.UTF-8"))
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    end, said = time.time() + 40, b""
    while time.time() < end:
        try:
            said += os.read(terminal, 65536)
        except OSError:
            break
        if (work / "screen").exists() and end > time.time() + 3:
            end = time.time() + 3
            (work / "screen.bytes").write_bytes(said)
    os.write(terminal, b"q")
    (work / "screen.after.bytes").write_bytes(said)
    time.sleep(1)
    os.close(terminal)
    expect((work / "screen").exists(), f"no pictures: {said[-400:]}")
    return f"{len(said)} bytes in screen.bytes"


CASES = {case.__name__: case for case in (plain, exact, hd, tiles, processor, precision, tier, crowded, killed, wan, encode, screen)}


def main():
    work, main_program, worker, *names = sys.argv[1:]
    work = Path(work)
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "loud-small.npy").exists():
        prepare(work)
    tools, wrong = (Path(main_program).resolve(), Path(worker).resolve()), 0
    for name in names or CASES:
        start = time.perf_counter()
        try:
            words = "as it should be: " + CASES[name](tools, work)
        except (Wrong, subprocess.SubprocessError, OSError) as e:
            wrong += 1
            words = f"WRONG: {e}"
        print(f"{name} ({time.perf_counter() - start:.0f} s): {words}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
