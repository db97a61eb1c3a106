"""The pipeline is done, the script is not: after.py block|conv. It blocks in what comes after (an upscaler, a barrier)."""
import ctypes
import sys
import threading

import clip

frames = clip.make_frames(clip.load_wan())
clip.note_moment("hang-began")
print("upscaling", flush=True)
if sys.argv[1] == "block":
    threading.Event().wait()
elif sys.argv[1] == "conv":  # an upscaler of conv2d whose third call never returns
    import torch
    picture, layer = torch.rand(1, 3, 64, 64), torch.nn.Conv2d(3, 3, 3, padding=1)
    for _ in range(2):
        picture = layer(picture)
    while True:
        ctypes.CDLL(None).pause()
clip.write_clip(frames, "after.mp4")
