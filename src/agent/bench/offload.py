#!/usr/bin/env python3
"""An image-to-image pipeline with model CPU offload, fed from the wrong device and with a generator made in the loop.

    python src/agent/bench/offload.py [--size tiny|medium] [--images 6] [--steps 4] [--rounds 5] [--cases loop,card,away]

diffusers' StableDiffusionInstructPix2PixPipeline with random weights, as a node calls it that makes several views: for
each picture a new generator from the same seed. Without the agent, with `device_placement = warn` and with
`execution_device`, each in a process of its own, in turn. Cases:

* `loop`: pictures in host memory, generator on the CPU, made anew for each;
* `card` (needs CUDA): computes on the card, pictures and generators lie there already, beside the offload;
* `away` (needs CUDA): computes on the CPU, pictures and generators lie on the card: fails unless it is put right.

Prints a Markdown table; the exit code is the number of expectations that did not hold.
"""
import argparse
import hashlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
WAYS = ("without", "warn", "execution_device")
SIZES = {"tiny": ((8, 16), 4, 32), "medium": ((128, 256), 32, 256)}


def pipeline(torch, size, device):
    """Random weights, the same in every process."""
    from diffusers import (AutoencoderKL, EulerDiscreteScheduler, StableDiffusionInstructPix2PixPipeline,
                           UNet2DConditionModel)
    from transformers import CLIPTextConfig, CLIPTextModel

    channels, norm, side = SIZES[size]
    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        block_out_channels=channels, layers_per_block=1, sample_size=side // 2, in_channels=8, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=norm, cross_attention_dim=16, attention_head_dim=4)
    vae = AutoencoderKL(block_out_channels=channels, in_channels=3, out_channels=3, latent_channels=4, sample_size=side,
                        norm_num_groups=norm, down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    text = CLIPTextModel(CLIPTextConfig(vocab_size=99, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                        num_attention_heads=2, bos_token_id=1, eos_token_id=2, pad_token_id=0))
    pipe = StableDiffusionInstructPix2PixPipeline(
        vae=vae, text_encoder=text, tokenizer=None, unet=unet, scheduler=EulerDiscreteScheduler(), safety_checker=None,
        feature_extractor=None, requires_safety_checker=False)
    pipe.set_progress_bar_config(disable=True)
    pipe.enable_model_cpu_offload(device=device)
    return pipe, side


def child(args):
    """Makes the pictures; prints one JSON object: seconds and hash of each, or the error."""
    import torch

    torch.use_deterministic_algorithms(True, warn_only=True)
    compute, source, home = {"loop": (args.device, "cpu", "cpu"), "card": ("cuda", "cuda", "cuda"),
                             "away": ("cpu", "cuda", "cuda"), "right": ("cpu", "cpu", "cpu")}[args.case]
    pipe, side = pipeline(torch, args.size, compute)
    draw = torch.Generator().manual_seed(3)
    pictures = [torch.rand(1, 3, side, side, generator=draw) for _ in range(args.images)]
    embeds = torch.randn(1, 7, 16, generator=draw)
    told = {"seconds": [], "hashes": [], "error": None}
    for picture in pictures:
        picture = picture.to(source)
        began = time.perf_counter()
        try:
            generator = torch.Generator(home).manual_seed(42)
            made = pipe(image=picture, prompt_embeds=embeds, negative_prompt_embeds=embeds * 0, generator=generator,
                        num_inference_steps=args.steps, output_type="pt").images.cpu()
        except (RuntimeError, ValueError) as error:
            told["error"] = str(error)[:200]
            break
        told["seconds"].append(time.perf_counter() - began)
        told["hashes"].append(hashlib.sha256(made.float().numpy().tobytes()).hexdigest()[:16])
    print(json.dumps(told))


class Listener:
    """A supervisor's end of the socket."""

    def __init__(self, folder):
        self.path, self.messages, self.threads = os.path.join(folder, "s"), [], []
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(4)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.server.accept()
            thread = threading.Thread(target=self.read, args=(connection,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def read(self, connection):
        with connection, connection.makefile("r", encoding="utf-8") as lines:
            self.messages.extend(json.loads(line) for line in lines)


def run(args, case, way):
    """One process: what it printed, and the agent's findings and fixes."""
    with tempfile.TemporaryDirectory() as folder:
        listener = Listener(folder)
        env = {k: v for k, v in os.environ.items() if not k.startswith("FPT_")}
        env.update(CUBLAS_WORKSPACE_CONFIG=":4096:8", HF_HUB_OFFLINE="1")
        env.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other are all that a busy machine would show
        if way != "without":
            path = [PACKAGE] + [p for p in (env.get("PYTHONPATH"),) if p]
            env.update(PYTHONPATH=os.pathsep.join(path), FPT_AGENT_SOCKET=listener.path,
                       FPT_AGENT_CONFIG=json.dumps({"settings": {"device_placement": way}}))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", os.path.abspath(__file__), "--child", "--case", case, "--device", args.device,
             "--size", args.size, "--images", str(args.images), "--steps", str(args.steps)],
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit("%s, %s: exit %d\n%s" % (case, way, done.returncode, done.stderr[-3000:]))
        for thread in listener.threads:
            thread.join(10)
        told = json.loads(done.stdout.strip().splitlines()[-1])
        told["findings"] = [m for m in listener.messages if m["type"] == "finding" and m["verdict"] == "device_mismatch"]
        told["fixes"] = [m for m in listener.messages if m["type"] == "fix"]
        told["failed"] = [m for m in listener.messages if m["type"] == "hook_failed"]
        return told


def judge(case, first, right):
    """What did not hold, in words."""
    plain, warn, fix = (first[way] for way in WAYS)
    wrong = []
    if any(told["failed"] for told in first.values()):
        wrong.append("a hook failed")
    if not warn["findings"] or not fix["findings"]:
        wrong.append("no finding")
    if case == "away":
        if not plain["error"] or not warn["error"]:
            wrong.append("it was to fail without the fix")
        if fix["error"] or not fix["fixes"]:
            wrong.append("not put right: %s" % fix["error"])
        if fix["hashes"] != right["hashes"]:
            wrong.append("not the pictures of a pipeline fed from the CPU")
    elif any(told["error"] or told["hashes"] != plain["hashes"] for told in first.values()):
        wrong.append("other pictures than without the agent")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny")
    parser.add_argument("--images", type=int, default=6)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default=None, help="some of loop, card, away, with commas between; default: all that can be run")
    parser.add_argument("--device", default=None, help="where the case `loop` computes")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args)
    import torch

    card = torch.cuda.is_available()
    args.device = args.device or ("cuda" if card else "cpu")
    print("torch %s, %s, size %s, %d pictures of %d steps, %d rounds in turn; seconds a picture without the first\n" % (
        torch.__version__, torch.cuda.get_device_name(0) if card else "CPU", args.size, args.images, args.steps, args.rounds))
    print("| case | agent | seconds a picture | over without (median of rounds) | pictures | findings | fixes |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    bad = 0
    cases = args.cases.split(",") if args.cases else ["loop"] + ["card", "away"] * card
    unknown = set(cases) - {"loop", "card", "away"} or set(cases) - {"loop"} and not card
    if unknown:
        parser.error("--cases %s: loop, and with a CUDA device card and away" % args.cases)
    for case in cases:
        rounds = [{way: run(args, case, way) for way in WAYS} for _ in range(args.rounds)]
        right = run(args, "right", "without") if case == "away" else rounds[0]["without"]
        for way in WAYS:
            told = [one[way] for one in rounds]
            each = [statistics.median(one["seconds"][1:]) if one["seconds"][1:] else None for one in told]
            base = [statistics.median(one["without"]["seconds"][1:]) if one["without"]["seconds"][1:] else None for one in rounds]
            ratios = [a / b for a, b in zip(each, base) if a and b]
            first = told[0]
            same = "fails: " + first["error"][:60] if first["error"] else "as %s" % (
                "fed from the CPU" if case == "away" else "without") if first["hashes"] == right["hashes"] else "others"
            print("| %s | %s | %s | %s | %s | %s | %s |" % (
                case, way, "%.4f" % statistics.median(each) if each[0] else "", "%.3f" % statistics.median(ratios) if ratios else "",
                same, "; ".join(m["text"] for m in first["findings"]),
                "; ".join("%s" % (m.get("inputs") or "generator on " + str(m.get("generator"))) for m in first["fixes"])), flush=True)
        for text in judge(case, rounds[0], right):
            bad += 1
            print("\nBAD %s: %s\n" % (case, text))
    return bad


if __name__ == "__main__":
    sys.exit(main())
