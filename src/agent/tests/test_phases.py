"""Spans, jobs and the hooks that need no library."""
import threading
import types
import unittest

from support_mem import AgentTest

from fpt_agent import framepack, phases
from fpt_agent.state import state


class Spans(AgentTest):
    def test_comes_back(self):
        with state.span("sampling"):
            with state.span("vae_decode"):
                pass
        self.assertEqual(self.path(), ["sampling", "vae_decode", "sampling", "startup"])

    def test_same_phase_is_quiet(self):
        with state.span("vae_decode"):
            with state.span("vae_decode"):
                self.assertEqual(state.spans(), ["vae_decode", "vae_decode"])
        self.assertEqual(self.path(), ["vae_decode", "startup"])

    def test_loads_inside_loads_are_quiet(self):
        with state.span("model_load"):
            with state.span("offload"):
                pass
        self.assertEqual(self.path(), ["model_load", "startup"])

    def test_outermost_offload_speaks(self):
        with state.span("offload"):
            pass
        self.assertEqual(self.path(), ["offload", "startup"])

    def test_then(self):
        with state.span("unknown"):
            state.within("sampling")
            with state.span("vae_decode", then="unknown"):
                pass
        self.assertEqual(self.path(), ["unknown", "sampling", "vae_decode", "unknown", "startup"])

    def test_a_file_whose_end_nobody_tells_is_said_only_where_something_ends_it(self):
        phases.writing()
        self.assertEqual(self.path(), [])
        with phases.Job("job"):
            phases.writing()
        self.assertEqual(self.path(), ["unknown", "save", "unknown"])

    def test_the_exception_is_the_programs_own_and_told_once(self):
        error = ValueError("boom")
        with self.assertRaises(ValueError) as caught:
            with state.span("sampling"):
                with state.span("vae_decode"):
                    raise error
        self.assertIs(caught.exception, error)
        self.assertIsNone(error.__cause__)
        self.assertIsNone(error.__context__)
        told = self.sent("error")
        self.assertEqual([(m["phase"], m["kind"], m["message"]) for m in told], [("vae_decode", "ValueError", "boom")])

    def test_a_watcher_that_fails_costs_nothing(self):
        def watch(phase, error):
            raise KeyError("ours")

        state.watchers.append(watch)
        try:
            with self.assertRaises(ValueError):
                with state.span("save"):
                    raise ValueError("theirs")
        finally:
            state.watchers.remove(watch)
        self.assertEqual(len(self.sent("hook_failed", hook="watch")), 1)
        self.messages.clear()

    def test_threads_have_their_own_spans(self):
        import threading

        inner = []
        with state.span("sampling"):
            thread = threading.Thread(target=lambda: inner.append(list(state.spans())))
            thread.start()
            thread.join()
        self.assertEqual(inner, [[]])


class Requests(AgentTest):
    in_request = True

    def test_a_job_ends_with_the_request_that_its_loop_runs(self):
        seen = []

        def pipeline(fails):
            with phases.Job("clip"):
                if fails:
                    raise ValueError("boom")

        def handle(fails):
            try:
                pipeline(fails)
            except ValueError:
                pass
            phases.look()
            seen.append([m["state"] for m in self.sent("job")])
            with state.span("save"):
                pass

        phases._server = True
        try:
            for fails in (False, True, False):
                handle(fails)
            phases.look()
        finally:
            phases._server = False
        # the second begins in the thread of the first, and its failure does not wait
        self.assertEqual(seen, [["started"], ["started", "ended", "started", "failed"],
                                ["started", "ended", "started", "failed", "started"]])
        self.assertEqual([m["state"] for m in self.sent("job")][5:], ["ended"])
        self.assertEqual(self.path()[-3:], ["save", "unknown", "idle"])

    def test_a_server_that_starts_after_a_trial_run_has_no_job(self):
        def pipeline():
            with phases.Job("warm-up"):
                pass

        def trial():
            pipeline()
            phases.serving()
            return [m["state"] for m in self.sent("job")]

        try:
            self.assertEqual([trial() for _ in range(1)], [["started", "ended"]])
        finally:
            phases._server = False

    def test_without_a_loop_the_job_ends_with_its_pipeline(self):
        def alone():
            with phases.Job("clip"):
                pass

        thread = threading.Thread(target=alone)
        thread.start()
        thread.join()
        self.assertEqual([m["state"] for m in self.sent("job")], ["started", "ended"])


class Jobs(AgentTest):
    def test_started_and_ended(self):
        with phases.Job("a", rest="done"):
            with phases.Job("inner"):
                with state.span("sampling"):
                    pass
        self.assertEqual([(m["state"], m["id"]) for m in self.sent("job")], [("started", "a"), ("ended", "a")])
        self.assertEqual(self.path(), ["unknown", "sampling", "unknown", "done"])
        self.assertIsNone(phases.job())

    def test_failed(self):
        with self.assertRaises(RuntimeError):
            with phases.Job("a"):
                raise RuntimeError("no")
        self.assertEqual(self.sent("job", state="failed")[0]["error"], "RuntimeError: no")

    def test_the_users_end_is_no_failure(self):
        with self.assertRaises(KeyboardInterrupt):
            with phases.Job("a"):
                raise KeyboardInterrupt("the user asked for the end")
        self.assertEqual([m["state"] for m in self.sent("job")], ["started", "ended"])

    def test_a_server_is_idle_after_it(self):
        phases.serving()
        with phases.Job("a", rest="done"):
            pass
        self.assertEqual(self.path(), ["idle", "unknown", "idle"])


class Worker(AgentTest):
    def module(self):
        module = types.SimpleNamespace(__name__="diffusers_helper.thread_utils")
        module.async_run = lambda func, *args, **kwargs: func(*args, **kwargs)
        framepack.worker(module)
        return module

    def test_sections_by_name_and_by_place(self):
        def worker(image, total_second_length, latent_window_size):
            pass

        def told(func, *args):
            return framepack.sections(framepack.inputs(func, args, {}))

        self.assertEqual(told(worker, None, 5, 9), 4)
        self.assertEqual(told(lambda *a: None, None, "p", "n", 1, 2.4, 9, 25, 1, 10, 0, 6, True, 16), 2)
        self.assertIsNone(told(lambda *a: None, 1))

    def test_the_state_knows_the_sections_while_the_job_runs(self):
        seen = []

        def worker(total_second_length, latent_window_size):
            seen.append((state.section, state.sections))

        self.module().async_run(worker, 2.4, 9)
        self.assertEqual(seen, [(None, 2)])
        self.assertEqual((state.section, state.sections), (None, None))

    def test_what_the_worker_catches_is_the_jobs_error(self):
        import contextlib
        import io
        import traceback

        def worker():
            try:
                raise RuntimeError("HIP out of memory")
            except RuntimeError:
                traceback.print_exc()

        plain = traceback.print_exc
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            self.module().async_run(worker)
        self.assertIn("HIP out of memory", shown.getvalue())
        self.assertIs(traceback.print_exc, plain)
        self.assertEqual(self.sent("job")[-1]["error"], "RuntimeError: HIP out of memory")
        self.assertEqual(self.sent("job")[-1]["state"], "failed")

    def test_arguments_and_result_pass(self):
        self.assertEqual(self.module().async_run(lambda a, b: (a, b), 1, b=2), (1, 2))


if __name__ == "__main__":
    unittest.main()
