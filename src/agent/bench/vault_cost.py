#!/usr/bin/env python3
"""What the rescue vault costs the thread that generates: a decode's latents, and a step of diffusers' transformers.

    python src/agent/bench/vault_cost.py [--repeats 30]

On the CPU, with shapes of real jobs and a folder in the temporary directory. `queued`: until the program may go on;
`written`: until the file has its name, for comparison. A decode then waits for the writer 0.25 s at most, and not again
once that was too short. `key`: the hash of a step's inputs and of samples of the model's weights, before the call;
`keep`: the copy of its result, after it.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
#: FramePack: 9 latent frames of 640 x 640 and its last section of 36; a text of 512 tokens.
DECODES = {"9 latent frames": (1, 16, 9, 80, 80), "36 latent frames": (1, 16, 36, 80, 80)}
STEP = {"hidden_states": (1, 16, 9, 80, 80), "encoder_hidden_states": (1, 512, 4096)}


def median(function, repeats):
    """Milliseconds of one call: (median, slowest)."""
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), max(took)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=30)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FPT_AGENT_CONFIG"] = json.dumps({"run": "r", "attempt": 1, "vault": folder, "settings": {"replay_steps": "true"}})
        sys.path.insert(0, PACKAGE)
        import torch
        from diffusers import AutoencoderKLHunyuanVideo, WanTransformer3DModel

        from fpt_agent import steps, store as files, vault

        torch.set_num_threads(1)
        vae = AutoencoderKLHunyuanVideo(block_out_channels=(8, 8, 8, 8), layers_per_block=1, norm_num_groups=4)
        model = WanTransformer3DModel(num_attention_heads=2, attention_head_dim=12, num_layers=30, ffn_dim=64)
        print("| what | size | median, ms | slowest, ms |\n| --- | --- | --- | --- |")
        store = files.store

        def tell(what, size, function):
            print("| %s | %.1f MiB | %.2f | %.2f |" % ((what, size / 2 ** 20) + median(function, args.repeats)), flush=True)
            store.flush(120)

        grace, store.grace = store.grace, lambda job: None
        for name, shape in DECODES.items():
            latents = torch.randn(shape).half()
            size = latents.numel() * 2

            def queued():
                vault.save(latents, vae, True)

            def written():
                vault.save(latents, vae, True)
                store.flush(120)

            vault.save(latents, vae, True)
            tell("decode of %s, queued" % name, size, queued)
            tell("decode of %s, written" % name, size, written)
        store.grace = grace
        given = {name: torch.randn(shape).half() for name, shape in STEP.items()}
        size = sum(t.numel() * 2 for t in given.values())
        made = []
        with torch.no_grad():
            tell("step: key", size, lambda: made.append(steps.Step(model, (), given)))
            out = (torch.randn(STEP["hidden_states"]).half(),)
            tell("step: keep", out[0].numel() * 2, lambda: made[-1].keep(out))


if __name__ == "__main__":
    main()
