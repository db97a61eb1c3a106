"""What the programs of this folder share: the folder of the weights, a small job, and how a clip is written.

Make the weights once with make_models.py; MORE_WORK names the folder (default: /tmp/more).
"""
import os

MODELS = os.path.join(os.environ.get("MORE_WORK", "/tmp/more"), "models")
#: One size for all kinds: 6 steps, 9 frames of 64 x 64.
SMALL = dict(num_inference_steps=6, height=64, width=64, num_frames=9, max_sequence_length=16)


def load_wan():
    import torch
    from diffusers import WanPipeline
    torch.set_num_threads(1)
    return WanPipeline.from_pretrained(os.path.join(MODELS, "wan"), torch_dtype=torch.float32)


def make_frames(pipe, prompt="a cat", seed=0, **changes):
    import torch
    frames = pipe(prompt=prompt, generator=torch.Generator().manual_seed(seed), **{**SMALL, **changes}).frames[0]
    after_pipeline()
    return frames


def after_pipeline():
    """What a script does between the pipeline and its file. With FAULT=outside it never ends (faults/fault_pth.py)."""
    import sys
    faults = sys.modules.get("fault_pth")
    if faults is not None:
        faults.hang_outside()


def note_moment(name):
    """Writes the time into the working directory; tests/proof reads `hang-began`."""
    import time
    with open(name, "w") as f:
        f.write(repr(time.monotonic()))


def write_clip(frames, path, fps=8):
    """diffusers' export_to_video where imageio is installed, else PyAV."""
    try:
        import imageio  # noqa: F401
        from diffusers.utils import export_to_video
        return export_to_video(frames, path, fps=fps)
    except ImportError:
        return write_with_pyav(frames, path, fps)


def write_with_pyav(frames, path, fps):
    """Equal frames give equal files: x264 without its assembly, and the conversion ahead of the encoder."""
    import av
    import numpy
    with av.open(path, "w") as box:
        stream = box.add_stream("libx264", rate=fps)
        stream.height, stream.width, stream.pix_fmt = *numpy.asarray(frames[0]).shape[:2], "yuv420p"
        stream.options = {"x264-params": "asm=0"}
        for frame in frames:
            pixels = (numpy.asarray(frame) * 255).clip(0, 255).astype("uint8")
            box.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p")))
        box.mux(stream.encode())
    return path


def free_port():
    """A free port, written into the file `port` for the client."""
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open("port.new", "w") as f:
        f.write(str(port))
    os.rename("port.new", "port")
    return port
