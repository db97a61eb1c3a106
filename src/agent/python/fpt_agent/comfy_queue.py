"""ComfyUI's queue is kept, so that it can be sent again after a restart.

The graphs that wait and run, as `queue.RUN.ATTEMPT.json`; removed when none is left. Forms: docs/agent.md, *The vault*.
"""
import json
import os
import time

from . import store as files
from .config import config
from .hooks import fenced, on, wrap

VERSION = 1
#: Parts of ComfyUI's extra data that are nobody's business.
SECRET = ("api_key", "auth_token", "password", "secret")


def body(item):
    """The form in which `POST /prompt` takes a queued item of ComfyUI, without its user's keys."""
    number, prompt_id, graph, extra = item[:4]
    extra = {k: v for k, v in dict(extra or {}).items() if not any(word in k.lower() for word in SECRET)}
    told = {"prompt": graph, "prompt_id": prompt_id, "extra_data": extra}
    if extra.get("client_id"):
        told["client_id"] = extra["client_id"]
    return {"prompt_id": prompt_id, "number": number, "body": told}


def queue(waiting):
    """Writes what waits and runs in ComfyUI's queue."""
    name = "queue.%s.%s.json" % (files.store.run, files.plain(config.attempt))
    with waiting.mutex:  # to the end: of two changes at once the later one must be the one that is written last
        items = [("running", item) for item in waiting.currently_running.values()]
        items += [("queued", item) for item in sorted(waiting.queue, key=lambda item: item[0])]
        if not items:
            files.store.forget(name)
            return
        entry = {"version": VERSION, "program": "comfyui", "run": config.run, "attempt": config.attempt, "pid": os.getpid(),
                 "time": round(time.time(), 3), "items": [dict(body(item), state=word) for word, item in items]}
        files.store.put(files.Task(name, [json.dumps(entry, default=str).encode("utf-8")], tells=False))


def comfyui(module):
    """ComfyUI's queue, after each change."""

    def make(plain):
        def changed(self, *args, **kwargs):
            result = plain(self, *args, **kwargs)
            fenced("PromptQueue", queue, self)
            return result

        return changed

    for name in ("put", "task_done", "wipe_queue", "delete_queue_item"):
        wrap(module.PromptQueue, name, make)

    def got(plain):
        def get(self, *args, **kwargs):
            result = plain(self, *args, **kwargs)
            if result is not None:
                fenced("PromptQueue", queue, self)
            return result

        return get

    wrap(module.PromptQueue, "get", got)


if files.store is not None:
    on("execution")(comfyui)
