"""A script that answers an error itself, as ComfyUI and many nodes do, and goes on in tiles: handled.py KIND CLIPS."""
import sys
import time

import clip
import error_texts

kind, clips = sys.argv[1], int(sys.argv[2])
pipe = clip.load_wan()
error_texts.raise_and_handle(kind, "Warning: falling back to the tiled decode")
pipe.vae.enable_tiling()
for number in range(clips):
    clip.write_clip(clip.make_frames(pipe, seed=number), "h_%s_%d.mp4" % (kind, number))
    time.sleep(1)
