"""Two processes by torchrun or accelerate, each with its part of the prompts (diffusers' guide to distributed inference)."""
from accelerate import PartialState

import clip

state = PartialState(cpu=True)
pipe = clip.load_wan()
pipe.set_progress_bar_config(disable=state.process_index > 0)
with state.split_between_processes(["a cat walks", "dance monkey"]) as prompts:
    for number, prompt in enumerate(prompts):
        frames = clip.make_frames(pipe, prompt, state.process_index)
        clip.write_clip(frames, "rank%d_%d.mp4" % (state.process_index, number))
state.wait_for_everyone()
