"""Decodes latents of the rescue vault without the program that made them: a program of its own.

    PYTHONPATH=…/src/agent/python python -m fpt_agent.rescue LATENTS.safetensors -o OUT [--model FOLDER] [--device cpu]

The decoder is made by the class and the configuration of the metadata, its weights come from `--model`, or from the folder or
hub name that the metadata tell. It needs the torch and diffusers of the program's environment, which the agent never imports.
OUT is a folder for numbered PNG files, or a name that ends in .mp4 where PyAV is there.
"""
import argparse
import importlib
import json
import os
import sys

from . import jobs, safetensors


#: Family of a decoder that was known by its shape -> the class of diffusers for the same models.
FAMILIES = {"wan": "AutoencoderKLWan", "wan2.2": "AutoencoderKLWan", "hunyuan": "AutoencoderKLHunyuanVideo"}


def decoder(metadata, folder, torch):
    """The decoder of the metadata with its weights, in eval mode, tiling on. SystemExit: it cannot be made."""
    path, name = metadata.get("vae_class", "").rpartition(".")[::2]
    if path.startswith("diffusers."):
        kind, source = getattr(importlib.import_module(path), name), folder or metadata.get("vae_path")
    else:
        instead = FAMILIES.get(metadata.get("vae_family"))
        if instead is None:
            sys.exit("the latents were made for %s, which is no class of diffusers, and nothing tells which model it is: "
                     "decode them with its program" % (metadata.get("vae_class") or "?"))
        if not folder:
            sys.exit("the latents were made for %s of the program's own: give --model FOLDER with the weights of the same model for "
                     "diffusers' %s" % (name, instead))
        kind, source = getattr(importlib.import_module("diffusers"), instead), folder
    if not source:
        sys.exit("the metadata do not tell where the decoder's weights lie: give --model FOLDER")
    if os.path.isfile(source):  # a single file of weights
        vae = kind.from_config(json.loads(metadata["vae_config"]))
        vae.load_state_dict(safetensors.read(source, torch)[0])
    else:
        vae = pretrained(kind, source)
    if hasattr(vae, "enable_tiling"):
        vae.enable_tiling()
    return vae.eval()


def pretrained(kind, source):
    """The decoder from a folder or a hub name: its own, or that of a whole pipeline. diffusers notes the name alone, and
    whether a name on the hub is a pipeline's is known only when it is asked."""
    inside = {"subfolder": "vae"}
    if os.path.isdir(source):
        return kind.from_pretrained(source, **(inside if os.path.isdir(os.path.join(source, "vae")) else {}))
    try:
        return kind.from_pretrained(source)
    except OSError:
        return kind.from_pretrained(source, **inside)


def frames_of(latents, metadata, vae, torch):
    """uint8 tensor (frames, height, width, 3) of the first clip or of all pictures."""
    if metadata.get("scaling_applied") != "true":
        latents = unscaled(latents, metadata, torch)
    if latents.dim() == 4 and metadata.get("known_by") == "shape":
        latents = latents.unsqueeze(0)  # a clip without a batch
    with torch.inference_mode():
        pixels = vae.decode(latents.to(vae.device, vae.dtype), return_dict=False)[0]
    pixels = ((pixels.float().cpu().clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
    pixels = pixels[0].permute(1, 2, 3, 0) if pixels.dim() == 5 else pixels.permute(0, 2, 3, 1)
    return pixels.contiguous()


def unscaled(latents, metadata, torch):
    """Latents in the decoder's own space. FramePack's and diffusers' rule is latents = (raw - shift) * scale; WAN's has a mean and
    a deviation of each channel."""
    if "latents_mean" in metadata:
        mean, std = (torch.tensor(json.loads(metadata["latents_" + name])).view(-1, 1, 1, 1) for name in ("mean", "std"))
        return latents.float() * std + mean
    return latents / float(metadata.get("scaling_factor", 1)) + float(metadata.get("shift_factor", 0))


def write(frames, out, fps):
    """Writes the frames; the path."""
    if out.endswith(".mp4"):
        try:
            import av
        except ImportError:
            sys.exit("an mp4 needs PyAV: give the name of a folder for PNG files")
        with av.open(out, "w") as box:
            stream = box.add_stream("libx264", rate=fps)
            stream.height, stream.width, stream.pix_fmt = frames.shape[1], frames.shape[2], "yuv420p"
            for frame in frames.numpy():
                box.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            box.mux(stream.encode())
        return out
    os.makedirs(out, exist_ok=True)
    for at, frame in enumerate(frames):
        with open(os.path.join(out, "%05d.png" % at), "wb") as file:
            file.write(jobs.png(frame.shape, safetensors.data_of(frame)))
    return out


def main(words=None):
    """See the module; the exit code."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("latents")
    p.add_argument("-o", "--out", required=True)
    p.add_argument("--model", help="folder of the decoder or of the whole pipeline, or a safetensors file of weights")
    p.add_argument("--device", default="cpu")
    p.add_argument("--fps", type=int)
    args = p.parse_args(words)
    import torch

    try:
        tensors, metadata = safetensors.read(args.latents, torch)
    except (OSError, ValueError) as error:
        sys.exit("%s: %s" % (args.latents, error))
    vae = decoder(metadata, args.model, torch).to(args.device)
    frames = frames_of(tensors["latents"], metadata, vae, torch)
    print("%s: %d frames of %d x %d" % (write(frames, args.out, args.fps or int(metadata.get("fps", 16))), len(frames),
                                        frames.shape[2], frames.shape[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
