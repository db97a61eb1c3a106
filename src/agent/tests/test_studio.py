"""FramePack-Studio's queue is in the vault while jobs are not over, and after a restart its user is told what was lost."""
import json
import os
import textwrap
import unittest

from support_vault import Supervisor

#: Modules with Studio's names and call shapes.
MODULES = {
    "diffusers_helper/__init__.py": "",
    "diffusers_helper/thread_utils.py": """
        import threading
        class FIFOQueue:
            def push(self, item): self.item = item
        class AsyncStream:
            def __init__(self): self.input_queue = FIFOQueue(); self.output_queue = FIFOQueue()
        def async_run(func, *args, **kwargs):
            thread = threading.Thread(target=func, args=args, kwargs=kwargs); thread.start(); return thread
    """,
    "modules/__init__.py": "",
    "modules/video_queue.py": """
        import json, queue, threading, time, uuid
        from enum import Enum
        from diffusers_helper.thread_utils import AsyncStream
        class JobStatus(Enum):
            PENDING = "pending"; RUNNING = "running"; COMPLETED = "completed"; FAILED = "failed"; CANCELLED = "cancelled"
        class Job:
            def __init__(self, id, params, child_job_ids=()):
                self.id, self.params, self.status, self.created_at = id, params, JobStatus.PENDING, time.time()
                self.generation_type, self.stream, self.child_job_ids = params.get("model_type", "Original"), AsyncStream(), list(child_job_ids)
        class VideoJobQueue:
            def __init__(self):
                self.queue, self.jobs, self.current_job, self.lock = queue.Queue(), {}, None, threading.Lock()
            def set_worker_function(self, function): self.worker_function = function
            def save_queue_to_json(self):
                with self.lock: saved = {i: {"id": i, "status": j.status.value, "prompt": j.params["prompt_text"]} for i, j in self.jobs.items()}
                with open("queue.json", "w") as f: json.dump(saved, f)
            def add_job(self, params):
                job = Job("%08d-job" % (len(self.jobs) + params.get("first", 0)), params, params.get("children", ()))
                with self.lock: self.jobs[job.id] = job; self.queue.put(job.id)
                self.save_queue_to_json(); return job.id
            def cancel_job(self, job_id):
                with self.lock: self.jobs[job_id].status = JobStatus.CANCELLED
                self.save_queue_to_json(); return True
            def load_queue_from_json(self, file_path=None):
                with open(file_path or "queue.json") as f: saved = json.load(f)
                for i, one in saved.items():
                    if one["status"] not in ("completed", "failed", "cancelled"):
                        with self.lock: self.jobs[i] = Job(i, {"prompt_text": one["prompt"]})
                return len(saved)
            def next(self):
                job = self.jobs[self.queue.get()]
                with self.lock: job.status = JobStatus.RUNNING; self.current_job = job
                from diffusers_helper.thread_utils import async_run
                async_run(self.worker_function, **job.params, job_stream=job.stream).join()
                with self.lock: job.status = JobStatus.COMPLETED; self.current_job = None
                self.save_queue_to_json()
    """,
}
HEAD = """
    import os, sys; sys.path.insert(0, ".")
    import diffusers_helper.thread_utils
    from modules.video_queue import VideoJobQueue
    import fpt_agent.store as f
    q = VideoJobQueue()
    def worker(prompt_text, job_stream=None, **_):
        if "die" in sys.argv: f.store.flush(120); os.kill(os.getpid(), 9)
    q.set_worker_function(worker)
"""
FILL = HEAD + """
    for n in range(3): q.add_job({"prompt_text": "secret words", "total_second_length": 5, "model_type": "F1"})
    q.cancel_job("00000002-job")
    q.next(); q.next(); f.store.flush(120)
"""


class Studio(unittest.TestCase):
    def program(self, s, text):
        for name, body in dict(MODULES, **{"studio.py": text}).items():
            path = os.path.join(s.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(textwrap.dedent(body))
        return path

    def entry(self, s, attempt=1):
        with open(os.path.join(s.vault, "queue.r1.%d.json" % attempt)) as file:
            return json.load(file)

    def names(self, s):
        return sorted(os.listdir(s.vault)) if os.path.isdir(s.vault) else []

    def test_what_waits_and_runs_is_kept_without_prompts(self):
        with Supervisor() as s:
            self.assertEqual(s.run(self.program(s, FILL), "die")[0], -9)
            entry = self.entry(s)
            self.assertEqual(entry["program"], "framepack-studio")
            self.assertEqual([(i["id"], i["state"], i["kind"], i["seconds"]) for i in entry["items"]],
                             [("00000000-job", "running", "F1", 5), ("00000001-job", "queued", "F1", 5)])
            self.assertNotIn("secret", json.dumps(entry))
            s.run(self.program(s, FILL), "die", attempt=2, settings={"vault_prompt": "true"})
            self.assertEqual(self.entry(s, 2)["items"][0]["prompt"], "secret words")
            self.assertEqual([m for m in s.of("hook_failed")], [])

    def test_a_queue_that_is_done_leaves_nothing(self):
        with Supervisor() as s:
            code, _, err = s.run(self.program(s, FILL))
            self.assertEqual((code, self.names(s)), (0, []), err)

    def test_after_a_restart_the_user_is_told_what_was_lost_and_what_brings_it_back(self):
        with Supervisor() as s:
            s.run(self.program(s, FILL), "die")
            s.run(self.program(s, HEAD), attempt=2, resume=True)
            (told,) = s.wait("problem")
            self.assertTrue(told["text"].startswith("FramePack-Studio's queue was lost with attempt 1: 2 jobs, 00000000 (F1, 5 s, running), "
                                                    "00000001 (F1, 5 s, queued); its queue.json has all of them: press Load Queue"), told)
            # once they are loaded, the entry of the dead attempt is of no use
            s.run(self.program(s, HEAD + "    q.load_queue_from_json(); f.store.flush(120)\n"), attempt=3, resume=True)
            self.assertEqual(self.names(s), ["queue.r1.3.json"])

    def test_what_the_programs_own_file_has_lost_is_said(self):
        with Supervisor() as s:
            s.run(self.program(s, FILL), "die")
            os.unlink(os.path.join(s.folder, "queue.json"))
            s.run(self.program(s, HEAD), attempt=2, resume=True)
            self.assertIn("2 jobs, ", s.wait("problem")[0]["text"])
            self.assertTrue(s.of("problem")[0]["text"].endswith("its queue.json has none of them: enter them again"))

    def test_a_grid_counts_by_its_children(self):
        text = HEAD + """
    q.add_job({"prompt_text": "", "first": 1}); q.add_job({"prompt_text": "", "first": 1, "children": ["00000001-job"]}); f.store.flush(120)
"""
        with Supervisor() as s:
            code, _, err = s.run(self.program(s, text))
            self.assertEqual(code, 0, err)
            self.assertEqual([i["id"] for i in self.entry(s)["items"]], ["00000001-job"])


if __name__ == "__main__":
    unittest.main()
