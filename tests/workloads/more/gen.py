"""A script of a user: loads a pipeline, makes clips, writes them. gen.py [--kind wan|ltx|hunyuan|cog] [options]."""
import argparse
import os
import time

import torch

import clip


def read_arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--kind", default="wan", choices=("wan", "ltx", "hunyuan", "cog"))
    p.add_argument("--out", default="output.mp4")
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--n", type=int, default=1, help="clips")
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--frames", type=int, default=9)
    p.add_argument("--callback", action="store_true", help="print a line after each step")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--tiling", action="store_true")
    p.add_argument("--latent", action="store_true", help="output_type latent, then a decode by hand")
    p.add_argument("--slow", type=float, default=0, help="seconds that the callback waits")
    p.add_argument("--dtype", default="float32")
    return p.parse_args()


def load(arguments):
    import diffusers
    classes = dict(wan="WanPipeline", ltx="LTXPipeline", hunyuan="HunyuanVideoPipeline", cog="CogVideoXPipeline")
    pipeline = getattr(diffusers, classes[arguments.kind])
    pipe = pipeline.from_pretrained(os.path.join(clip.MODELS, arguments.kind), torch_dtype=getattr(torch, arguments.dtype))
    if arguments.tiling:
        pipe.vae.enable_tiling()
    if arguments.compile:
        pipe.transformer = torch.compile(pipe.transformer, mode="default", fullgraph=False)
    return pipe


def decode_by_hand(pipe, kind, latents):
    """The decode as users write it after output_type="latent"."""
    vae = pipe.vae
    if kind == "wan":
        mean = torch.tensor(vae.config.latents_mean).view(1, -1, 1, 1, 1)
        latents = latents * torch.tensor(vae.config.latents_std).view(1, -1, 1, 1, 1) + mean
    else:
        latents = latents / vae.config.scaling_factor
    with torch.no_grad():
        video = vae.decode(latents.to(vae.dtype), return_dict=False)[0]
    return pipe.video_processor.postprocess_video(video, output_type="np")[0]


def main():
    a = read_arguments()
    pipe = load(a)

    def on_step(pipe, index, timestep, values):
        time.sleep(a.slow)
        print("step", index, float(timestep), values["latents"].float().mean().item(), flush=True)
        return values

    for number in range(a.n):
        options = dict(prompt="a cat walks on the grass, realistic style", num_inference_steps=a.steps, height=a.size,
                       width=a.size, num_frames=a.frames, max_sequence_length=16,
                       generator=torch.Generator().manual_seed(number))
        if a.kind == "hunyuan":
            options["prompt_template"] = {"template": "{}", "crop_start": 0}
        if a.callback:
            options["callback_on_step_end"] = on_step
        if a.latent:
            frames = decode_by_hand(pipe, a.kind, pipe(**options, output_type="latent").frames)
        else:
            frames = pipe(**options).frames[0]
        clip.after_pipeline()
        path = a.out if a.n == 1 else a.out.replace(".", "_%d." % number)
        clip.write_clip(frames, path)
        print("wrote", path, flush=True)


if __name__ == "__main__":
    main()
