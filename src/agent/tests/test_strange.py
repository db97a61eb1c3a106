"""What the program puts where the agent looks: modules that are not loaded yet, objects whose words raise, functions of other kinds."""
import asyncio
import inspect
import os
import textwrap
import types
import unittest

from support_mem import AgentTest
from support_vault import Supervisor
from test_signals import PYTHONS

from fpt_agent import hooks, phases
from fpt_agent.state import state

#: The recipe of `importlib`'s documentation; `sys.argv`: names of modules.
LAZY = """
    import importlib.util, os, sys, time
    import fpt_agent.state as st
    sys.path.insert(0, os.getcwd())
    made = []
    # later versions make lazy modules with `threading` itself
    for name in sys.argv[1:] + ["threading"] * (sys.version_info < (3, 12)):
        sys.modules.pop(name, None)
        spec = importlib.util.find_spec(name)
        loader = spec.loader = importlib.util.LazyLoader(spec.loader)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        made.append(module)
    beats, beat = [], st.link.heartbeat
    def counted():
        found = beat()
        beats.append(1)
        return found
    st.link.heartbeat = counted
    end = time.monotonic() + 120
    while len(beats) < 2 and time.monotonic() < end: time.sleep(0.02)
    __import__("fpt_agent.stacks").stacks.command()
    time.sleep(0.3)
    print(len(made) >= 3, {type(module).__name__ for module in made})
    sys.stdout.flush()
    os._exit(0)  # at its end Python itself asks `threading`
"""
STRANGE = """
    import sys, types
    class Strange:
        def __getattr__(self, name): raise RuntimeError(name)
    whole = types.ModuleType("torch")
    whole.Tensor = whole.nn = whole.cuda = Strange()
    sys.modules["torch"] = Strange() if sys.argv[1] == "no module" else whole
"""


class Refused(Exception):
    """Its words raise, as those of many exceptions do whose fields are not what they expect."""

    def __str__(self):
        return "%d" % self.args

    __repr__ = __str__


class Modules(unittest.TestCase):
    def test_what_is_lazy_stays_so(self):
        for python in PYTHONS:
            with self.subTest(python=python), Supervisor() as s:
                for name in ("torch", "numpy", "torchvision"):
                    with open(os.path.join(s.folder, name + ".py"), "w") as file:
                        file.write("raise SystemExit('its body has run')\n")
                code = textwrap.dedent(LAZY)
                found = s.run("-c", code, "torch", "numpy", "torchvision", python=python, vault=None, timeout=150)
                self.assertEqual(found, (0, "True {'_LazyModule'}\n", ""))

    def test_what_stands_for_torch_may_be_anything(self):
        for python in PYTHONS:
            for way in ("no module", "a module"):
                with self.subTest(way, python=python), Supervisor() as s:
                    self.assertEqual(s.run("-c", textwrap.dedent(STRANGE), way, python=python, vault=None, timeout=60), (0, "", ""))
                    s.wait("bye")

    def test_a_last_word_that_fails_is_not_printed(self):
        code = "import fpt_agent.state as st\ndef fails(): raise KeyError('x')\nst.state.beat = fails"
        with Supervisor() as s:
            self.assertEqual(s.run("-c", code, vault=None, timeout=60), (0, "", ""))
            s.wait("bye")
            self.assertEqual([m["module"] for m in s.of("hook_failed")], ["goodbye"])


class Words(AgentTest):
    def test_an_exception_whose_words_raise_comes_out_itself(self):
        error = Refused("E7")
        with self.assertRaises(Refused) as caught, phases.Job("a", phase="sampling"), state.span("vae_decode"):
            raise error
        self.assertIs(caught.exception, error)
        self.assertIsNone(error.__context__)
        self.assertEqual([(m["kind"], m["message"]) for m in self.sent("error")], [("Refused", "(Refused, whose text raises TypeError)")])
        self.assertEqual([m["state"] for m in self.sent("job")], ["started", "failed"])
        self.assertEqual(self.path(), ["sampling", "vae_decode", "sampling", "unknown"])

    def test_one_of_a_hook_is_told_all_the_same(self):
        def fails():
            raise Refused("E7")

        self.assertIsNone(hooks.fenced("here", fails))
        self.assertEqual([m["message"] for m in self.sent("hook_failed", module="here")], ["(Refused, whose text raises TypeError)"])
        self.messages.clear()

    def test_one_out_of_a_convolution(self):
        import torch
        from fpt_agent import errors, plans

        class OfTorch(Refused, RuntimeError):
            pass

        error = OfTorch("E7")
        self.assertFalse(errors.of_library(error) or errors.names_dead(error))
        self.assertEqual(plans.kind_of(error)[0], "OfTorch")
        for watch in state.watchers:
            watch("sampling", error)
        self.assertTrue(torch.Tensor)


class Kinds(AgentTest):
    def test_a_function_whose_body_runs_later_is_not_wrapped(self):
        class Owner:
            async def coroutine(self):
                return 1

            def generator(self):
                yield 1

            async def both(self):
                yield 1

            def plain(self):
                return 1

        kept = dict(vars(Owner))
        for name in ("coroutine", "generator", "both"):
            self.assertFalse(hooks.around(Owner, name, "sampling"))
            self.assertIs(vars(Owner)[name], kept[name])
        self.assertTrue(hooks.around(Owner, "plain", "sampling"))

    def test_pipelines_keep_their_kind(self):
        from diffusers import DiffusionPipeline
        from fpt_agent import diffusers_hooks

        seen = []

        def look(pipe, args, kwargs):
            seen.append(type(pipe).__name__)
            return args, dict(kwargs, more=2)

        before = list(diffusers_hooks.before_call)
        self.addCleanup(diffusers_hooks.before_call.__setitem__, slice(None), before)
        diffusers_hooks.before_call[:] = [look]

        class Waits(DiffusionPipeline):
            async def __call__(self, more=1):
                await asyncio.sleep(0)
                return more

        class WaitsToo(Waits):
            async def __call__(self, more=1):
                return 10 * await super().__call__(more)

        class Gives(DiffusionPipeline):
            def __call__(self, more=1):
                got = yield more
                return got

        class GivesLater(DiffusionPipeline):
            async def __call__(self, more=1):
                yield more

        class Static(DiffusionPipeline):
            @staticmethod
            def __call__(more=1):
                return more

        self.assertTrue(inspect.iscoroutinefunction(Waits.__call__) and asyncio.iscoroutinefunction(Waits().__call__))
        self.assertEqual((asyncio.run(Waits()()), asyncio.run(WaitsToo()())), (2, 20))
        self.assertTrue(inspect.isgeneratorfunction(Gives.__call__))
        given = Gives()()
        self.assertEqual(next(given), 2)
        with self.assertRaises(StopIteration) as end:
            given.send("back")
        self.assertEqual(end.exception.value, "back")
        self.assertTrue(inspect.isasyncgenfunction(GivesLater.__call__))
        self.assertEqual(Static()(3), 3)
        self.assertIsInstance(vars(Static)["__call__"], staticmethod)
        self.assertEqual(seen, ["Waits", "WaitsToo", "Gives"])
        self.assertEqual(self.sent("job"), [])
        self.assertIsInstance(Waits.__call__, types.FunctionType)


if __name__ == "__main__":
    unittest.main()
