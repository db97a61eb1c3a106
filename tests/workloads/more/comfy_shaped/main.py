"""A server of ComfyUI's shape around a real tiny pipeline: POST /prompt, GET /queue and /history, one worker thread.

It has ComfyUI's console lines, its queue and an executor (execution.py); it has no websocket and is not ComfyUI, which
scripts/real-comfyui runs. A job writes comfy.mp4, or comfy.error; the port is in the file `port`.
"""
import json
import os
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

import clip  # noqa: E402
import execution  # noqa: E402

jobs = execution.PromptQueue()
pipe = None
numbers = iter(range(1 << 30))


def make_video(_graph):
    """The one node: the model is loaded once, as ComfyUI keeps it."""
    global pipe
    pipe = pipe or clip.load_wan()
    clip.write_clip(clip.make_frames(pipe), "comfy.part.mp4")
    os.rename("comfy.part.mp4", "comfy.mp4")


def run_jobs():
    """ComfyUI's prompt_worker: takes a graph, runs it, says how long it took."""
    executor = execution.PromptExecutor(make_video)
    while True:
        item, number = jobs.get()
        began = time.perf_counter()
        executor.execute(item[2], item[1])
        if not executor.success:
            open("comfy.error", "w").close()
        jobs.task_done(number, {}, None)
        print("Prompt executed in %.2f seconds" % (time.perf_counter() - began), flush=True)


class Handler(BaseHTTPRequestHandler):
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/history"):
            return self.answer({})
        with jobs.mutex:
            return self.answer({"queue_running": list(jobs.currently_running.values()), "queue_pending": sorted(jobs.queue)})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        identity, number = uuid.uuid4().hex, next(numbers)
        print("got prompt", flush=True)
        jobs.put((number, identity, request["prompt"], {"client_id": request.get("client_id", "")}, [], {}))
        return self.answer({"prompt_id": identity, "number": number, "node_errors": {}})

    def log_message(self, *_):
        """ComfyUI logs no requests either."""


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else clip.free_port()
    threading.Thread(target=run_jobs, daemon=True, name="prompt_worker").start()
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print("Starting server\n", flush=True)
    print("To see the GUI go to: http://127.0.0.1:%d" % port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
