"""Like a Space: a Gradio page around a pipeline, in one process. Its port is in the file `port`, or the first argument."""
import sys

import gradio as gr

import clip

pipe = clip.load_wan()


def generate(prompt, seed, steps):
    frames = clip.make_frames(pipe, prompt, int(seed), num_inference_steps=int(steps))
    return clip.write_clip(frames, "app_%d.mp4" % int(seed))


with gr.Blocks() as demo:
    prompt, seed, steps, path = gr.Textbox(), gr.Number(0), gr.Number(6), gr.Textbox()
    gr.Button("go").click(generate, [prompt, seed, steps], path)
demo.queue().launch(server_name="127.0.0.1", server_port=int(sys.argv[1]) if len(sys.argv) > 1 else clip.free_port())
