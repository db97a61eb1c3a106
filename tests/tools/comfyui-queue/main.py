#!/usr/bin/env python3
"""POST /prompt and GET /queue as ComfyUI has them, over a worker that takes the first graph and never ends it.

`main.py PORT`; standard library only. A graph with a node of the class Unknown is refused.
"""
import json
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import execution

queue = execution.PromptQueue()
number = 0


def work():
    queue.get()
    time.sleep(600)


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with queue.mutex:
            self.answer(200, {"queue_running": list(queue.currently_running.values()), "queue_pending": sorted(queue.queue)})

    def do_POST(self):
        global number
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if any(node["class_type"] == "Unknown" for node in told["prompt"].values()):
            return self.answer(400, {"error": {"type": "invalid_prompt", "message": "Cannot execute because node Unknown does not exist.",
                                               "details": ""}, "node_errors": {}})
        prompt_id = told.get("prompt_id") or uuid.uuid4().hex
        extra = dict(told.get("extra_data") or {}, client_id=told.get("client_id", ""))
        print("got prompt", flush=True)
        queue.put((number, prompt_id, told["prompt"], extra, [], {}))
        number += 1
        return self.answer(200, {"prompt_id": prompt_id, "number": number, "node_errors": {}})

    def log_message(self, *_):
        """Silent."""


if __name__ == "__main__":
    threading.Thread(target=work, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print("To see the GUI go to: http://127.0.0.1:%s" % sys.argv[1], flush=True)
    server.serve_forever()
