"""A script whose pipeline runs in a spawned worker; the main process waits at a queue, then for the worker."""
import multiprocessing
import sys

import clip


def work(results):
    frames = clip.make_frames(clip.load_wan())
    results.put(clip.write_clip(frames, "output.mp4"))


def main():
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    worker = context.Process(target=work, args=(results,))
    worker.start()
    while worker.is_alive() and results.empty():
        worker.join(0.5)
    worker.join()
    sys.exit(worker.exitcode)


if __name__ == "__main__":
    main()
