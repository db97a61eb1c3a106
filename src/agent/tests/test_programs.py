"""The list of programs, and the jobs of those that need no model: stand-ins with the names and call shapes of their sources."""
import os
import sys
import textwrap
import unittest

from support_vault import PACKAGE, Supervisor

sys.path.insert(0, PACKAGE)

INVOKE = {
    "invokeai/__init__.py": "",
    "invokeai/app/__init__.py": "",
    "invokeai/app/services/__init__.py": "",
    "invokeai/app/services/session_processor/__init__.py": "",
    "invokeai/app/services/session_processor/session_processor_default.py": """
        class DefaultSessionRunner:
            def run(self, queue_item):
                try:
                    queue_item.work()
                except Exception as error:
                    self._on_node_error(None, queue_item, type(error).__name__, str(error), "trace")
            def _on_node_error(self, invocation, queue_item, error_type, error_message, error_traceback): pass
        class DefaultSessionProcessor:
            def start(self, invoker): self.runner = DefaultSessionRunner()
    """,
    "main.py": """
        import sys; sys.path.insert(0, ".")
        from invokeai.app.services.session_processor.session_processor_default import DefaultSessionProcessor
        class Item:
            def __init__(self, item_id, error=None): self.item_id, self.error = item_id, error
            def work(self):
                if self.error: raise self.error
        p = DefaultSessionProcessor(); p.start(None)
        def process(items):
            for item in items: p.runner.run(item)
        process([Item(7), Item(8, RuntimeError("HIP out of memory")), Item(9)])
        from fpt_agent.state import link
        link.flush(20)
    """,
}

WANGP = {
    "shared/__init__.py": "",
    "shared/utils/__init__.py": "",
    "shared/utils/thread_utils.py": """
        import threading
        def async_run_in(runner_name, func, *args, **kwargs):
            thread = threading.Thread(target=func, args=args, kwargs=kwargs); thread.start(); thread.join()
    """,
    "wgp.py": """
        import inspect, sys; sys.path.insert(0, ".")
        from shared.utils.thread_utils import async_run_in
        def generate_media(task, send_cmd, client_id="", prompt=""):
            if task == "bad":
                try: raise RuntimeError("no room")
                except Exception as e: send_cmd("error", "it failed: %s" % e); return False
            send_cmd("progress", [0, "Denoising"]); return True
        heard = []
        def worker():
            for task in ("a", "bad", "b"):
                # the page looks at the arguments of the function before it calls it
                assert list(inspect.signature(generate_media).parameters) == ["task", "send_cmd", "client_id", "prompt"]
                generate_media(task, lambda *c: heard.append(c[0]), prompt="x")
        async_run_in("generation", worker)
        assert heard == ["progress", "error", "progress"], heard
        from fpt_agent.state import link
        link.flush(20)
    """,
}


class Programs(unittest.TestCase):
    def run_in(self, s, files, main):
        for name, body in files.items():
            path = os.path.join(s.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(textwrap.dedent(body))
        code, _, err = s.run(os.path.join(s.folder, main))
        self.assertEqual(code, 0, err)
        self.assertEqual(s.of("hook_failed"), [])
        return [(m["state"], m["id"], m["error"]) for m in s.of("job")]

    def test_a_queue_item_of_invokeai_is_a_job(self):
        with Supervisor() as s:
            self.assertEqual(self.run_in(s, INVOKE, "main.py"), [
                ("started", "item-7", None), ("ended", "item-7", None),
                ("started", "item-8", None), ("failed", "item-8", "RuntimeError: HIP out of memory"),
                ("started", "item-9", None), ("ended", "item-9", None)])

    def test_a_task_of_wangp_is_a_job(self):
        with Supervisor() as s:
            self.assertEqual(self.run_in(s, WANGP, "wgp.py"), [
                ("started", "task-1", None), ("ended", "task-1", None),
                ("started", "task-2", None), ("failed", "task-2", "it failed: no room"),
                ("started", "task-3", None), ("ended", "task-3", None)])

    def test_every_program_of_the_list_has_its_files(self):
        from fpt_agent import programs

        parts = programs.parts()
        self.assertEqual(len(set(parts)), len(parts))
        for part in parts:
            self.assertTrue(os.path.exists(os.path.join(PACKAGE, "fpt_agent", part + ".py")), part)
        names = [program.name for program in programs.PROGRAMS]
        self.assertEqual(len(set(names)), len(names))
        # a package that two programs claim, or that all use, tells nothing
        packages = programs.packages()
        self.assertEqual(len(set(packages)), len(packages))

    def test_what_wraps_what_is_as_it_was(self):
        from fpt_agent import programs

        parts = programs.parts()
        for first, later in (("phases", "sections"), ("sections", "framepack"), ("steps", "diffusers_hooks"), ("framepack", "memory"),
                             ("memory", "vault"), ("vault", "jobs"), ("jobs", "studio"), ("studio", "placement")):
            self.assertLess(parts.index(first), parts.index(later), (first, later))


if __name__ == "__main__":
    unittest.main()
