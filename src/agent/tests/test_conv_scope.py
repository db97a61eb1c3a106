"""conv_fallback in users' own code."""
import asyncio
import contextlib
import threading
import unittest

from support_conv import Failing, WithWrapper, counts, run, same, whole, PYTHON
import torch
import fpt_agent
from fpt_agent.plans import desk

F = torch.nn.functional
X, W = whole(1, 1, 2, 4, 5, 5), whole(2, 3, 2, 3, 3, 3)
WANT = torch.conv3d(X.double(), W.double(), None, 1, 1)


def miopen():
    return RuntimeError("miopenStatusUnknownError")


class Alone(unittest.TestCase):
    """No supervisor: nothing is there outside of the scope."""

    def setUp(self):
        fpt_agent.conv_fallback  # noqa: B018  (imports it)
        desk.process = None
        desk.wrappers.clear()
        from fpt_agent.state import state

        state.counts.clear()
        self.native = F.conv3d

    def tearDown(self):
        self.assertIs(F.conv3d, self.native)
        self.assertEqual((desk.scopes, desk.open), (0, []))
        desk.wrappers.clear()

    def tier(self):
        """The tier that a call is made by here."""
        before = counts()
        F.conv3d(X, W)
        return [name.split(".")[1] for name, number in counts().items() if name.endswith("ok") and number > before.get(name, 0)] or ["native"]

    def test_with_and_decorator(self):
        with fpt_agent.conv_fallback(start="split"):
            self.assertIsNot(F.conv3d, self.native)
            self.assertTrue(same(F.conv3d(X, W, padding=1), WANT))
        self.assertEqual(counts()["conv3d.split.ok"], 1)

        @fpt_agent.conv_fallback(start="cpu")
        def decode(x, *, padding):
            """Doc."""
            return F.conv3d(x, W, padding=padding)

        self.assertTrue(same(decode(X, padding=1), WANT))
        self.assertTrue(same(decode(X, padding=1), WANT))
        self.assertEqual((counts()["conv3d.cpu.ok"], decode.__name__, decode.__doc__), (2, "decode", "Doc."))

    def test_restored_on_an_exception(self):
        error = KeyError("mine")
        with self.assertRaises(KeyError) as caught:
            with fpt_agent.conv_fallback():
                raise error
        self.assertIs(caught.exception, error)
        self.assertIsNone(error.__context__)

    def test_answers_and_remembers(self):
        native = Failing(torch.conv3d, miopen)
        F.conv3d, was = native, F.conv3d
        try:
            scope = fpt_agent.conv_fallback()
            for _ in range(2):
                with scope:
                    self.assertTrue(same(F.conv3d(X, W, padding=1), WANT))
            self.assertEqual((native.calls, counts()["conv3d.split.ok"]), (1, 2))
            with self.assertRaises(RuntimeError):
                F.conv3d(X, W)
        finally:
            F.conv3d = was

    def test_only_the_tiers_asked_for(self):
        with fpt_agent.conv_fallback(start="split", tiers=("nocudnn", "cpu")):
            F.conv3d(X, W)
        self.assertEqual(counts(), {"conv3d.nocudnn.tried": 1, "conv3d.nocudnn.ok": 1})
        with fpt_agent.conv_fallback(tiers=("split", "cpu")):
            F.conv3d(X, W)
            F.conv2d(X[:, :, 0], W[:, :, 0])
        self.assertEqual({k: v for k, v in counts().items() if "nocudnn" not in k},
                         {"conv3d.split.tried": 1, "conv3d.split.ok": 1})
        for wrong in ({"start": "fast"}, {"tiers": ("gpu",)}, {"tiers": ()}, {"start": "cpu", "tiers": ("native",)}):
            with self.assertRaises(ValueError):
                fpt_agent.conv_fallback(**wrong)

    def test_nested(self):
        with fpt_agent.conv_fallback(start="split"):
            with fpt_agent.conv_fallback(start="cpu"):
                F.conv3d(X, W)
            self.assertEqual(counts(), {"conv3d.cpu.tried": 1, "conv3d.cpu.ok": 1})
            F.conv3d(X, W)
            self.assertEqual(counts()["conv3d.split.ok"], 1)

    def test_other_threads_are_native(self):
        done = []
        with fpt_agent.conv_fallback(start="split"):
            thread = threading.Thread(target=lambda: done.append(F.conv3d(X, W)))
            thread.start()
            thread.join()
            self.assertEqual((len(done), counts()), (1, {}))
            outer = F.conv3d
        self.assertIsNot(F.conv3d, outer)

    def test_not_for_bodies_that_run_later(self):
        def generator():
            yield 1

        async def coroutine():
            return 1

        for function in (generator, coroutine):
            with self.assertRaises(TypeError):
                fpt_agent.conv_fallback()(function)

    def test_tasks_have_their_own(self):
        seen = []

        async def task(start, mine, theirs, scope=None):
            with scope or fpt_agent.conv_fallback(start=start):
                for _ in range(3):
                    seen.append((start, self.tier()))
                    theirs.set()
                    await mine.wait()
                    mine.clear()
            theirs.set()

        async def child():
            seen.append(("child", self.tier()))
            await done.wait()
            seen.append(("child later", self.tier()))

        async def both():
            nonlocal done
            one, two, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
            await asyncio.gather(task("split", one, two), task("cpu", two, one))
            self.assertEqual(self.tier(), ["native"])
            shared = fpt_agent.conv_fallback(start="nocudnn")  # one object in two tasks
            await asyncio.gather(task("nocudnn", one, two, shared), task("nocudnn", two, one, shared))
            with fpt_agent.conv_fallback(start="cpu"):
                below = asyncio.ensure_future(child())
                await asyncio.sleep(0)
            done.set()
            await below

        done = None
        asyncio.run(both())
        self.assertEqual(len(seen), 14)
        for start, got in seen:
            self.assertEqual(got, [{"child": "cpu", "child later": "native"}.get(start, start)], seen)

    def test_generators(self):
        def generator(start):
            with fpt_agent.conv_fallback(start=start):
                yield self.tier()
                yield self.tier()

        first, second = generator("split"), generator("cpu")
        self.assertEqual((next(first), next(second)), (["split"], ["cpu"]))
        # suspended inside: in force for who runs it, as `contextlib.contextmanager` wants it
        self.assertEqual(self.tier(), ["cpu"])
        first.close()  # not the last one that was entered
        self.assertEqual(self.tier(), ["cpu"])
        second.close()
        self.assertEqual(self.tier(), ["native"])

        @contextlib.contextmanager
        def mine():
            with fpt_agent.conv_fallback(start="split"):
                yield

        with mine():
            self.assertEqual(self.tier(), ["split"])
        self.assertEqual(self.tier(), ["native"])

    def test_a_generator_that_another_thread_closes(self):
        scope = fpt_agent.conv_fallback(start="cpu")

        def generator():
            with scope:
                yield self.tier()

        def elsewhere():
            with scope:
                mine.close()
                seen.append(self.tier())

        mine, seen, errors = generator(), [], []
        self.assertEqual(next(mine), ["cpu"])
        hook, threading.excepthook = threading.excepthook, lambda told: errors.append(told.exc_value)
        try:
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        finally:
            threading.excepthook = hook
        self.assertEqual((seen, errors, self.tier()), ([["cpu"]], [], ["native"]))

    def test_entered_and_left_by_others(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(fpt_agent.conv_fallback(start="cpu"))
            self.assertEqual(self.tier(), ["cpu"])
        scope = fpt_agent.conv_fallback(start="cpu")
        scope.__enter__()
        scope.__enter__()
        scope.__exit__(None, None, None)
        self.assertEqual(self.tier(), ["cpu"])
        scope.__exit__(None, None, None)
        scope.__exit__(None, None, None)  # once too often: nothing

    def test_another_wrapper_on_top_stays(self):
        scope = fpt_agent.conv_fallback()
        scope.__enter__()
        inner = F.conv3d

        def mine(*args, **kwargs):
            return inner(*args, **kwargs)

        F.conv3d = mine
        scope.__exit__(None, None, None)
        self.assertIs(F.conv3d, mine)
        self.assertTrue(same(F.conv3d(X, W, padding=1), WANT))
        F.conv3d = self.native

    def test_torch_is_needed_on_entering_only(self):
        out = run("import sys\nsys.path.insert(0, %r)\nimport fpt_agent\ns = fpt_agent.conv_fallback()\ntry:\n  s.__enter__()\nexcept RuntimeError as e: print(e)\n"
                  "import torch\nf = torch.nn.functional.conv3d\nwith s: assert torch.nn.functional.conv3d is not f\n"
                  "assert torch.nn.functional.conv3d is f; print(hasattr(f, '_fpt_plain'))" % PYTHON, PYTHONPATH="",
                  FPT_AGENT_CONFIG="")
        self.assertEqual(out.split("\n")[:2], ["conv_fallback: import torch first", "False"])


class UnderTheSupervisor(WithWrapper):
    """The lower one of the two counts."""

    def test_lower_start_wins(self):
        self.put(start=2)
        with fpt_agent.conv_fallback():
            F.conv3d(X, W)
        self.assertEqual(counts(), {"conv3d.nocudnn.tried": 1, "conv3d.nocudnn.ok": 1})
        with fpt_agent.conv_fallback(start="cpu"):
            F.conv3d(X, W)
        self.assertEqual(counts()["conv3d.cpu.ok"], 1)
        self.assertTrue(hasattr(F.conv3d, "_fpt_plain"))

    def test_what_the_process_learned_counts(self):
        native = Failing(torch.conv3d, miopen)
        self.put(conv3d=native)
        F.conv3d(X, W)
        with fpt_agent.conv_fallback():
            F.conv3d(X, W)
        self.assertEqual((native.calls, counts()["conv3d.split.ok"]), (1, 2))


if __name__ == "__main__":
    unittest.main()
