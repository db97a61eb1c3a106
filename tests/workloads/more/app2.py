"""A page in one process, the pipeline in a spawned worker, as servers with several cards have it."""
import multiprocessing
import sys

import clip


def work(jobs, results):
    pipe = clip.load_wan()
    while True:
        prompt, seed, steps = jobs.get()
        try:
            frames = clip.make_frames(pipe, prompt, int(seed), num_inference_steps=int(steps))
            results.put(clip.write_clip(frames, "app2_%d.mp4" % int(seed)))
        except RuntimeError as error:
            import traceback
            traceback.print_exc()
            results.put("error: %s" % error)


def main():
    import gradio as gr
    context = multiprocessing.get_context("spawn")
    jobs, results = context.Queue(), context.Queue()
    context.Process(target=work, args=(jobs, results), daemon=True).start()

    def generate(prompt, seed, steps):
        jobs.put((prompt, seed, steps))
        answer = results.get()
        if answer.startswith("error"):
            raise gr.Error(answer)
        return answer

    with gr.Blocks() as demo:
        prompt, seed, steps, path = gr.Textbox(), gr.Number(0), gr.Number(6), gr.Textbox()
        gr.Button("go").click(generate, [prompt, seed, steps], path)
    demo.queue().launch(server_name="127.0.0.1", server_port=int(sys.argv[1]) if len(sys.argv) > 1 else clip.free_port())


if __name__ == "__main__":
    main()
