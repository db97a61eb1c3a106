"""Jobs of servers are kept while they are not done, in the form in which they can be sent again."""
import json
import os
import sys
import textwrap
import unittest

import numpy
from PIL import Image

from support_vault import Supervisor, kill

#: Modules with FramePack's and ComfyUI's names and call shapes.
THREAD_UTILS = """
    import threading
    class FIFOQueue:
        def push(self, item): self.item = item
    def async_run(func, *args, **kwargs):
        thread = threading.Thread(target=func, args=args, kwargs=kwargs); thread.start(); return thread
"""
EXECUTION = """
    import heapq, threading
    class PromptQueue:
        def __init__(self, server):
            self.mutex = threading.RLock(); self.not_empty = threading.Condition(self.mutex)
            self.task_counter = 0; self.queue = []; self.currently_running = {}; self.history = {}
        def put(self, item):
            with self.mutex: heapq.heappush(self.queue, item); self.not_empty.notify()
        def get(self, timeout=None):
            with self.not_empty:
                while len(self.queue) == 0:
                    self.not_empty.wait(timeout=timeout)
                    if timeout is not None and len(self.queue) == 0: return None
                item = heapq.heappop(self.queue); i = self.task_counter
                self.currently_running[i] = item; self.task_counter += 1
                return (item, i)
        def task_done(self, item_id, history_result, status):
            with self.mutex: self.currently_running.pop(item_id)
        def wipe_queue(self):
            with self.mutex: self.queue = []
        def delete_queue_item(self, function):
            with self.mutex:
                for x in range(len(self.queue)):
                    if function(self.queue[x]): self.queue.pop(x); return True
            return False
"""
FRAMEPACK = """
    import sys, traceback, numpy; sys.path.insert(0, ".")
    from diffusers_helper.thread_utils import async_run
    import fpt_agent.store as f
    def worker(input_image, prompt, n_prompt, seed, *rest):
        try:
            if prompt == "bad": raise RuntimeError("no")
            if prompt == "stop": raise KeyboardInterrupt("the user")
            if prompt == "end": import diffusers_helper.thread_utils as t; t.FIFOQueue().push(("end", None)); f.store.flush(120); print("in it", flush=True); import os, time; [time.sleep(0.05) for _ in range(12000) if not os.path.exists("go")]; t.FIFOQueue().push("end"); f.store.flush(120); print("ended", flush=True); time.sleep(600)
            if prompt == "late": f.store.flush(120); input_image.tobytes(); import time; print("in it", flush=True); time.sleep(600)
        except BaseException: traceback.print_exc()
        return "result"
    image = numpy.arange(4 * 6 * 3, dtype=numpy.uint8).reshape(4, 6, 3)
    async_run(worker, image, sys.argv[1], "", numpy.int64(31337), 1.2, 9, 25, 1.0, 10.0, 0.0, 6, True, 16).join()
    async_run(print, "another call").join()
    f.store.flush(120)
"""
COMFY = """
    import sys; sys.path.insert(0, ".")
    import execution, fpt_agent.store as f
    q = execution.PromptQueue(None)
    graph = {"1": {"class_type": "VAEDecode", "inputs": {"samples": ["2", 0]}}}
    for n in range(4): q.put((n, "id%d" % n, graph, {"client_id": "c", "api_key_comfy_org": "hush", "extra_pnginfo": {"workflow": {}}}, ["1"], {"api_key": "hush"}))
    item, number = q.get()
    q.delete_queue_item(lambda a: a[1] == "id3")
    assert q.get is not None and number == 0
    f.store.flush(120)
    if sys.argv[1] == "die": import os; os.kill(os.getpid(), 9)
    q.task_done(number, {}, None)
    if sys.argv[1] == "wipe": q.wipe_queue(); assert q.get(timeout=0.01) is None
    f.store.flush(120)
"""


def program(s, text):
    for name, body in (("diffusers_helper/__init__.py", ""), ("diffusers_helper/thread_utils.py", THREAD_UTILS),
                       ("execution.py", EXECUTION), ("main.py", text)):
        path = os.path.join(s.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(body))
    return path


def entries(s):
    return sorted(os.listdir(s.vault)) if os.path.isdir(s.vault) else []


class FramePack(unittest.TestCase):
    def test_a_good_job_leaves_nothing(self):
        with Supervisor() as s:
            code, out, err = s.run(program(s, FRAMEPACK), "good")
            self.assertEqual((code, out, err), (0, "another call\n", ""))
            s.wait("bye")
            self.assertEqual({m["state"] for m in s.of("job")}, {"started", "ended"})
            self.assertEqual([m["event"] for m in s.of("vault") if m["what"] == "job"], ["saved"])
            self.assertEqual(entries(s), [])

    def test_a_failed_job_stays_and_a_stopped_one_does_not(self):
        with Supervisor() as s:
            code, _, err = s.run(program(s, FRAMEPACK), "bad")
            self.assertEqual(code, 0)
            self.assertIn("RuntimeError: no", err)
            self.assertNotIn("fpt_agent", err)
            s.wait("bye")
            self.assertEqual([m["error"] for m in s.of("job") if m["state"] == "failed"], ["RuntimeError: no"])
            names = entries(s)
            self.assertEqual([n.rsplit(".", 1)[1] for n in names], ["json", "png"])
            with open(os.path.join(s.vault, names[0])) as file:
                self.assertEqual(json.load(file)["state"], "failed")
            s.run(program(s, FRAMEPACK), "stop")
            self.assertEqual(entries(s), names)
            self.assertIn("KeyboardInterrupt: the user", [m["error"] for m in s.of("job") if m["state"] == "ended"])

    def test_one_that_cannot_be_kept_is_named(self):
        with Supervisor() as s:
            code, out, err = s.run(program(s, FRAMEPACK), "good", vault="/proc/fpt/vault")
            self.assertEqual((code, out, err), (0, "another call\n", ""))
            s.wait("bye")
            failed = s.of("vault", event="failed")
            self.assertEqual({m["what"] for m in failed}, {"job"})
            self.assertEqual(sorted(m["message"].split(": ")[0].rsplit(".", 1)[1] for m in failed), ["json", "png"])

    def test_a_killed_job_can_be_sent_again(self):
        with Supervisor() as s:
            process = s.start(program(s, FRAMEPACK), "late")
            self.addCleanup(kill, process)
            self.assertEqual(process.stdout.readline(), "in it\n")
            kill(process)
            names = entries(s)
            with open(os.path.join(s.vault, names[0])) as file:
                job = json.load(file)
            self.assertEqual((job["state"], job["image"], job["version"]), ("started", names[1], 1))
            self.assertEqual(list(job["inputs"].values()), ["late", "", 31337, 1.2, 9, 25, 1.0, 10.0, 0.0, 6, True, 16])
            picture = numpy.asarray(Image.open(os.path.join(s.vault, job["image"])))
            self.assertTrue((picture == numpy.arange(72, dtype=numpy.uint8).reshape(4, 6, 3)).all())
            # sent again in the next attempt it is the same entry, and gone with its end
            text = FRAMEPACK.replace("time.sleep(600)", "0")
            s.run(program(s, text), "late", attempt=2)
            self.assertEqual(entries(s), [])

    def test_a_job_sent_again_after_a_death_draws_the_same_numbers(self):
        text = """
            import random, numpy, torch; drawn = [torch.rand(2), random.random(), numpy.random.rand()] if "before" in sys.argv else []
            def worker(*_):
                f.store.flush(5); print(torch.rand(2).tolist(), random.random(), numpy.random.rand(), flush=True)
                if "die" in sys.argv: import os; os.kill(os.getpid(), 9)
        """
        at = FRAMEPACK.index("    image = ")
        text = FRAMEPACK[:at] + textwrap.indent(textwrap.dedent(text), "    ") + FRAMEPACK[at:]
        with Supervisor() as s:
            first = s.run(program(s, text), "p", "before", "die")[1]
            self.assertEqual(len(entries(s)), 2, first)
            # a restart that does not hand anything back draws its own
            with open(os.path.join(s.vault, entries(s)[0]), "rb") as file:
                entry = file.read()
            self.assertNotEqual(s.run(program(s, text), "p", "die", attempt=2)[1], first)
            with open(os.path.join(s.vault, entries(s)[0]), "wb") as file:
                file.write(entry)
            for attempt in (3, 4):  # and a second death loses nothing
                self.assertEqual(s.run(program(s, text), "p", "die", attempt=attempt, resume=True)[1], first)
            code, out, err = s.run(program(s, text), "p", attempt=5, resume=True)
            self.assertEqual((code, out, err), (0, first + "another call\n", ""))
            self.assertEqual(entries(s), [])
            # without an entry the numbers are the program's own
            self.assertNotEqual(s.run(program(s, text), "p", attempt=5, resume=True)[1], out)


    def test_the_users_end_counts_though_the_worker_never_hears_of_it(self):
        with Supervisor() as s:
            process = s.start(program(s, FRAMEPACK), "end")
            self.addCleanup(kill, process)
            self.assertEqual(process.stdout.readline(), "in it\n")
            self.assertEqual(len(entries(s)), 2, "what the worker says to its page is no such word")
            with open(os.path.join(s.folder, "go"), "w"):
                pass
            self.assertEqual(process.stdout.readline(), "ended\n")
            kill(process)
            self.assertEqual(entries(s), [])


class ComfyUI(unittest.TestCase):
    def test_what_waits_and_runs_is_there_after_a_kill(self):
        with Supervisor() as s:
            code, _, err = s.run(program(s, COMFY), "die")
            self.assertEqual((code, err), (-9, ""))
            names = entries(s)
            self.assertEqual(names, ["queue.r1.1.json"])
            with open(os.path.join(s.vault, names[0])) as file:
                text = file.read()
            self.assertNotIn("hush", text)
            items = json.loads(text)["items"]
            self.assertEqual([(i["prompt_id"], i["state"]) for i in items], [("id0", "running"), ("id1", "queued"), ("id2", "queued")])
            self.assertEqual(items[0]["body"]["client_id"], "c")
            self.assertEqual(items[0]["body"]["prompt"]["1"]["class_type"], "VAEDecode")

    def test_of_two_changes_at_once_the_later_one_is_kept(self):
        late = """
            import sys, threading, time, json; sys.path.insert(0, ".")
            import execution, fpt_agent.store as f
            q = execution.PromptQueue(None)
            class Slow:  # the worker is held up between looking at the queue and writing it
                def dumps(self, *args, **kwargs):
                    if threading.current_thread() is not threading.main_thread(): time.sleep(0.5)
                    return json.dumps(*args, **kwargs)
            q.put((0, "id0", {}, {}, [], {}))
            sys.modules["fpt_agent.jobs"].json = Slow()
            threading.Thread(target=q.get, daemon=True).start(); time.sleep(0.2)
            q.put((1, "id1", {}, {}, [], {})); time.sleep(0.6); f.store.flush(120)
        """
        with Supervisor() as s:
            code, _, err = s.run(program(s, late))
            self.assertEqual((code, err), (0, ""))
            with open(os.path.join(s.vault, entries(s)[0])) as file:
                self.assertEqual([i["prompt_id"] for i in json.load(file)["items"]], ["id0", "id1"])

    def test_one_that_cannot_be_kept_is_named(self):
        with Supervisor() as s:
            code, _, err = s.run(program(s, COMFY), "done", vault="/proc/fpt/vault")
            self.assertEqual((code, err), (0, ""))
            s.wait("bye")
            self.assertEqual({m["what"] for m in s.of("vault", event="failed")}, {"queue"})

    def test_done_is_gone(self):
        with Supervisor() as s:
            code, _, err = s.run(program(s, COMFY), "done")
            self.assertEqual((code, err), (0, ""))
            with open(os.path.join(s.vault, entries(s)[0])) as file:
                self.assertEqual([i["prompt_id"] for i in json.load(file)["items"]], ["id1", "id2"])
            self.assertEqual(s.run(program(s, COMFY), "wipe")[0], 0)
            self.assertEqual(entries(s), [])


if __name__ == "__main__":
    unittest.main()
