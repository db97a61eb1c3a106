"""conv_fallback in users' own code."""
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
        self.assertEqual(desk.scopes, 0)
        desk.wrappers.clear()

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
