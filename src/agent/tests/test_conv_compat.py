"""Compilers, tracers and tensors of another kind get the native function as if nothing were there."""
import copy
import io
import json
import os
import pickle
import sys
import tempfile
import unittest

from support_conv import Failing, WithWrapper, counts, in_flight, run, same, whole
import torch
from fpt_agent.remember import Memory
from fpt_agent.state import state

F = torch.nn.functional


class Model(torch.nn.Module):
    """A layer and a call of each function; few and whole numbers, so that bfloat16 holds all sums."""

    def __init__(self):
        super().__init__()
        self.deep = torch.nn.Conv3d(2, 3, 3, padding=1)
        self.flat = torch.nn.Conv2d(3, 3, 3)
        self.load_state_dict({
            "deep.weight": whole(1, 3, 2, 3, 3, 3, most=1, share=0.12), "deep.bias": whole(2, 3, most=1),
            "flat.weight": whole(3, 3, 3, 3, 3, most=1, share=0.12), "flat.bias": whole(4, 3, most=1)})

    def forward(self, x):
        y = torch.nn.functional.conv3d(self.deep(x), self.deep.weight[:, :1].repeat(1, 3, 1, 1, 1), padding="same")
        return self.flat(y[:, :, 0])


class Native(WithWrapper):
    """With every call told to begin at the split tier, so that a wrapper that is not passed by is seen."""

    def setUp(self):
        self.model = Model().eval()
        self.x = whole(5, 1, 2, 4, 8, 8, most=1, share=0.5)
        self.want = self.model(self.x)
        self.put(start=1)

    def check(self, got, split=0):
        self.assertTrue(same(got, self.want))
        self.assertEqual(counts().get("conv3d.split.tried", 0), split)
        self.assertEqual(in_flight(state), [])

    def test_the_numbers_are_small_enough(self):
        self.take(torch)
        flow = copy.deepcopy(self.model).double()
        flow.load_state_dict({name: value.abs() for name, value in flow.state_dict().items()})
        self.assertLessEqual(flow(self.x.abs().double()).max().item(), 256)
        self.assertGreater(self.want.abs().max().item(), 4)

    def test_plainly_it_splits(self):
        self.check(self.model(self.x), split=2)

    def test_compile(self):
        for backend in ("eager", "aot_eager"):
            torch._dynamo.reset()
            compiled = torch.compile(self.model, backend=backend, fullgraph=True)
            self.check(compiled(self.x))
            self.check(compiled(self.x))
        torch._dynamo.reset()
        self.assertEqual(torch._dynamo.explain(self.model)(self.x).graph_break_count, 0)

    def test_compiled_backward(self):
        torch._dynamo.reset()
        x = self.x.clone().requires_grad_()
        torch.compile(self.model, backend="aot_eager", fullgraph=True)(x).sum().backward()
        got, x.grad = x.grad, None
        self.take(torch)
        self.model(x).sum().backward()
        self.assertTrue(same(got, x.grad))

    def test_export(self):
        for strict in (False, True):
            torch._dynamo.reset()
            program = torch.export.export(self.model, (self.x,), strict=strict)
            self.check(program.module()(self.x))
            names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
            self.assertEqual(sum(n.startswith("aten.conv3d") for n in names), 2, names)

    def test_fx(self):
        class Calls(torch.nn.Module):
            def forward(self, x, w):
                return torch.nn.functional.conv3d(x, w, padding=1)

        graph = torch.fx.symbolic_trace(Calls())
        targets = [n.target for n in graph.graph.nodes if n.op == "call_function"]
        self.assertEqual(targets, [torch.conv3d])
        w = self.model.deep.weight
        self.assertTrue(same(graph(self.x, w), torch.conv3d(self.x, w, None, 1, 1)))
        self.check(torch.fx.symbolic_trace(self.model)(self.x), split=1)  # a layer is a leaf: it runs as ever

    def test_make_fx(self):
        from torch.fx.experimental.proxy_tensor import make_fx

        def function(x, w):
            return F.conv3d(x, w, padding=1)

        w = self.model.deep.weight.detach()
        for mode in ("real", "fake", "symbolic"):
            graph = make_fx(function, tracing_mode=mode)(self.x, w)
            self.assertTrue(same(graph(self.x, w), torch.conv3d(self.x, w, None, 1, 1)))
            names = [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]
            self.assertEqual(sum("convolution" in n or "conv3d" in n for n in names), 1, names)
            self.assertEqual(counts(), {})

    def test_jit_trace(self):
        traced = torch.jit.trace(self.model, self.x, check_trace=False)  # the check runs plain Python
        self.check(traced(self.x))
        larger = whole(6, 1, 2, 6, 9, 9, most=1, share=0.5)  # no size was burnt in
        want = self.model(larger)
        self.assertTrue(same(traced(larger), want))

    def test_jit_trace_records_nothing_of_ours(self):
        w = self.model.deep.weight.detach()

        def kinds():
            graph = torch.jit.trace(lambda x: F.conv3d(x, w), self.x, check_trace=False).graph
            return [n.kind() for n in graph.nodes()]

        with tempfile.TemporaryDirectory() as folder:
            found = []
            for memory in (None, Memory(os.path.join(folder, "f"), "r", 1)):
                self.put(memory=memory)
                found.append(kinds())
            self.put(start=1)
            found.append(kinds())
        self.take(torch)
        self.assertEqual(found, [kinds()] * 3)

    def test_jit_script(self):
        scripted = torch.jit.script(self.model)
        self.check(scripted(self.x))
        self.assertIn("aten::conv3d", str(scripted.inlined_graph))
        self.assertIn("aten::conv2d", str(scripted.inlined_graph))
        file = io.BytesIO()
        torch.jit.save(scripted, file)
        file.seek(0)
        self.check(torch.jit.load(file)(self.x))

    def test_vmap_and_grad(self):
        w, xs = self.model.deep.weight.detach(), whole(7, 5, 1, 2, 4, 8, 8, most=1, share=0.5)
        got = torch.vmap(lambda x: F.conv3d(x, w))(xs)
        self.assertTrue(same(got, torch.stack([torch.conv3d(x, w) for x in xs])))
        got = torch.func.grad(lambda x: F.conv3d(x, w).sum())(self.x)
        self.assertEqual(got.shape, self.x.shape)
        got = torch.func.vmap(torch.func.grad(lambda x: F.conv3d(x, w).square().sum()))(xs)
        self.assertEqual(got.shape, xs.shape)
        self.assertEqual(counts(), {})

    def test_functorch_is_not_rescued(self):
        error = RuntimeError("miopenStatusUnknownError")
        self.put(conv3d=Failing(torch.conv3d, error))
        with self.assertRaises(RuntimeError) as caught:
            torch.vmap(lambda x: F.conv3d(x, self.model.deep.weight))(whole(7, 5, 1, 2, 4, 8, 8, most=1, share=0.5))
        self.assertIs(caught.exception, error)
        self.assertEqual(counts(), {})

    def test_meta_and_fake(self):
        from torch._subclasses import FakeTensorMode

        self.assertEqual(self.model.to("meta")(self.x.to("meta")).device.type, "meta")
        with FakeTensorMode():
            got = F.conv3d(torch.empty(1, 2, 4, 8, 8), torch.empty(3, 2, 3, 3, 3))
        self.assertEqual(got.shape, (1, 3, 2, 6, 6))
        self.assertEqual(counts(), {})

    def test_subclasses(self):
        seen = []

        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs or {})

        x, w = self.x, self.model.deep.weight.detach()
        self.assertIsInstance(F.conv3d(x.as_subclass(Mine), w), Mine)
        self.assertEqual(seen.count(torch.conv3d), 1)
        self.assertIsInstance(F.conv3d(x, w.as_subclass(Mine)), Mine)
        self.assertEqual(seen.count(torch.conv3d), 2)
        self.assertEqual(counts(), {})

    def test_tables_of_functions(self):
        from torch.overrides import TorchFunctionMode

        for key in (F.conv3d, torch.conv3d):
            table = {key: lambda *args, **kwargs: "mine", F.conv2d: None}

            class Mine(torch.Tensor):
                @classmethod
                def __torch_function__(cls, func, types, args=(), kwargs=None):
                    if func in table:
                        return table[func](*args, **(kwargs or {}))
                    return super().__torch_function__(func, types, args, kwargs or {})

            class Mode(TorchFunctionMode):
                def __torch_function__(self, func, types, args=(), kwargs=None):
                    if func == F.conv3d and func in [F.conv3d] and func is torch.conv3d:
                        return table[func](*args, **(kwargs or {}))
                    return func(*args, **(kwargs or {}))

            w = self.model.deep.weight.detach()
            self.assertEqual(F.conv3d(self.x.as_subclass(Mine), w), "mine")
            self.assertEqual(torch.conv3d(self.x.as_subclass(Mine), w), "mine")
            self.take(torch)
            self.put()
            with Mode():
                self.assertEqual(F.conv3d(self.x, w), "mine")
            self.put(start=1)
        self.assertNotEqual(F.conv3d, F.conv2d)
        self.assertNotEqual(F.conv3d, torch.conv2d)
        self.assertEqual(len({F.conv3d, torch.conv3d, F.conv2d, torch.conv2d}), 2)

    def test_a_mode_sees_the_call_as_it_was_written(self):
        from torch.overrides import TorchFunctionMode

        seen, w = [], self.model.deep.weight.detach()

        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                seen.append((func, len(args), sorted(kwargs or {})))
                return func(*args, **(kwargs or {}))

        with tempfile.TemporaryDirectory() as folder:
            for plan in ({}, {"memory": Memory(os.path.join(folder, "f"), "r", 1)}, {"mode": "watch"}, {"known": True}):
                known = plan.pop("known", False)
                memory = self.put(**plan).memory
                if known:
                    memory.learn(("conv3d", (2,), (2,), "float16", "cuda", (1, 0, 1, 1)), 1, True)
                    torch.nn.functional.conv3d._fpt_conv.known.clear()
                    from fpt_agent.conv import desk

                    desk.refresh()
                for _ in range(2):
                    seen.clear()
                    with Mode():
                        F.conv3d(self.x, w, stride=1)
                        F.conv3d(self.x, w, None, 1, 0, 1, 1)
                        F.conv3d(self.x, weight=w, padding=1, groups=1)
                    self.assertEqual(seen, [(torch.conv3d, 2, ["stride"]), (torch.conv3d, 7, []),
                                            (torch.conv3d, 2, ["groups", "padding"])], (plan, known))
        seen.clear()
        F.conv3d(self.x, w.as_subclass(type("Mine", (torch.Tensor,), {"__torch_function__": classmethod(
            lambda cls, func, types, args=(), kwargs=None: seen.append((len(args), sorted(kwargs or {}))))})), stride=1)
        self.assertEqual(seen, [(2, ["stride"])])

    def test_a_call_under_a_mode_falls_back(self):
        from torch.overrides import TorchFunctionMode

        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        error = RuntimeError("miopenStatusUnknownError")
        for memory in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                native = Failing(torch.conv3d, error)
                self.put(conv3d=native, memory=Memory(os.path.join(folder, "f"), "r", 1) if memory else None)
                with Mode():
                    got = F.conv3d(self.x, self.model.deep.weight, padding=1)
                self.assertTrue(same(got, torch.conv3d(self.x, self.model.deep.weight, None, 1, 1)))
                self.assertEqual((native.calls, counts()["conv3d.native.failed"], counts()["conv3d.split.ok"]), (1, 1, 1))
        native = Failing(torch.conv3d, error)
        self.put(conv3d=native, mode="watch")
        with self.assertRaises(RuntimeError), Mode():
            F.conv3d(self.x, self.model.deep.weight, padding=1)
        self.assertEqual(counts(), {"conv3d.native.failed": 1})

    def test_an_attribute_of_a_class_is_no_method(self):
        class Layer:
            function = F.conv3d

        self.assertIs(Layer().function, F.conv3d)
        self.assertEqual(Layer().function(self.x, self.model.deep.weight).shape, (1, 3, 2, 6, 6))

    def test_dispatch_mode_below_sees_the_tiers(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Look(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        with torch.no_grad(), Look():
            F.conv3d(self.x, self.model.deep.weight)
        self.assertEqual(sum(s.startswith("aten.convolution") or s.startswith("aten.conv2d") for s in seen), 3)

    def test_pickle_copy_and_signature(self):
        import inspect

        self.assertIs(pickle.loads(pickle.dumps(F.conv3d)), F.conv3d)
        self.assertIs(copy.deepcopy(F.conv3d), F.conv3d)
        self.assertEqual((F.conv3d.__name__, F.conv3d.__doc__), ("conv3d", torch.conv3d.__doc__ or F.conv3d.__doc__))
        self.assertEqual(str(inspect.signature(F.conv3d)),
                         "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)")
        self.assertEqual(repr(F.conv3d), repr(torch.conv3d))
        with self.assertRaisesRegex(TypeError, r"^conv3d\(\) got an unexpected keyword argument 'strides'" if sys.version_info >= (3, 10) else "conv3d"):
            F.conv3d(self.x, self.model.deep.weight, strides=1)

    def test_autocast(self):
        for start in range(4):
            self.put(start=start)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                got = self.model(self.x)
            self.assertEqual(got.dtype, torch.bfloat16)
            self.assertTrue(same(got, self.want), start)

    def test_inference_mode(self):
        with torch.inference_mode():
            self.check(self.model(self.x), split=2)


class Installed(unittest.TestCase):
    """Through the hook, in a Python of its own."""

    def test_modes(self):
        code = ("import torch; f = torch.nn.functional; print(hasattr(f.conv3d, '_fpt_plain'), hasattr(f.conv2d, '_fpt_plain'));"
                "import fpt_agent.conv as c; print(c.desk.process and (c.desk.process.mode, sorted(c.desk.process.start.items())))")
        for config, want in (
                ('{}', "True True\n('fallback', [('conv2d', 0), ('conv3d', 0)])\n"),
                ('{"settings": {"conv": "off"}}', "False False\nNone\n"),
                ('{"settings": {"conv": "watch"}}', "True True\n('watch', [('conv2d', 0), ('conv3d', 0)])\n"),
                ('{"settings": {"conv_tier": "split"}}', "True True\n('fallback', [('conv2d', 0), ('conv3d', 1)])\n"),
                ('{"settings": {"conv2d_tier": "cpu"}}', "True True\n('fallback', [('conv2d', 3), ('conv3d', 0)])\n")):
            self.assertEqual(run(code, FPT_AGENT_CONFIG=config), want, config)
        self.assertIn("('conv3d', 2)", run(code, FPT_CONV_TIER="nocudnn"))

    def test_quantisation_of_a_graph(self):
        code = """
import torch, torch.nn.functional as F
from torch.ao.quantization import quantize_fx, get_default_qconfig_mapping
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1, 1, 3, 3))
    def forward(self, x):
        return F.relu(F.conv2d(x, self.weight)) + 0
x = torch.ones(1, 1, 4, 4)
graph = quantize_fx.prepare_fx(Model().eval(), get_default_qconfig_mapping("x86"), (x,))
print([(n.op, n.name, str(n.args)) for n in graph.graph.nodes])
"""
        self.assertEqual(run(code), run(code, FPT_CONV="off"))

    def test_script_where_the_builtins_are_collected_early(self):
        out = run("import torch\nimport linecache\n"
                  "from torch.jit import _builtins\nprint(_builtins._find_builtin(torch.nn.functional.conv3d))\n"
                  "print(_builtins._find_builtin(torch.conv3d))")
        self.assertEqual(out, "aten::conv3d\naten::conv3d\n")

    def test_warnings_have_the_callers_place(self):
        code = """
import sys, warnings, torch
F = torch.nn.functional
x, w = torch.ones(1, 1, 6, 6), torch.ones(1, 1, 4, 4)
layer = torch.nn.Conv2d(1, 1, 4, padding="same")
class Sub(torch.Tensor): pass
F.conv2d(x, w, padding=1)
torch.set_warn_always(True)
def told(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [(f.filename, f.lineno, str(f.message)[:20]) for f in found]
pairs = [
    (lambda: F.conv2d(x, w, padding="same"), lambda: torch.conv2d(x, w, padding="same")),
    (lambda: F.conv2d(x, w, None, 1, "same", 1, 1), lambda: torch.conv2d(x, w, None, 1, "same", 1, 1)),
    (lambda: F.conv3d(x[None], w[None], None, 1, "same"), lambda: torch.conv3d(x[None], w[None], None, 1, "same")),
    (lambda: F.conv2d(x.as_subclass(Sub), w, None, 1, "same", 1, 1),
     lambda: torch.conv2d(x.as_subclass(Sub), w, None, 1, "same", 1, 1)),
]
for ours, plain in pairs:
    want = told(plain)
    assert want
    for _ in range(2):
        got = told(ours)
        assert [g[::2] for g in got] == [g[::2] for g in want] and got[0][1] - want[0][1] in (0, -1), (got, want)
names = {f[0].replace("\\\\", "/").split("torch/")[-1] for _ in range(2) for f in told(lambda: layer(x))}
assert names == {"nn/modules/conv.py"}, names
warnings.simplefilter("default")
warnings.showwarning = lambda *a: seen.append(a)
seen = []
for _ in range(3): F.conv2d(x, w, None, 1, "same", 1, 1)
assert len(seen) == 1 and "same" in str(__warningregistry__), seen
try: F.conv2d(x, w, None, 2, "same", 1, 1)
except RuntimeError as error: print(str(error)[:40])
"""
        with tempfile.TemporaryDirectory() as folder:
            memory = json.dumps({"run": "r", "attempt": 1, "conv_memory": os.path.join(folder, "shapes.json")})
            for more in ({}, {"FPT_AGENT_CONFIG": memory}, {"FPT_CONV": "watch"}):
                with self.subTest(more):
                    self.assertEqual(run(code, **more), "padding='same' is not supported for stri\n")

    def test_a_forked_child_goes_on(self):
        run("""
import os, torch
import fpt_agent.conv as c
from fpt_agent import tiers
f = torch.nn.functional
torch.set_num_threads(1)
c.desk.lock.acquire(); c.desk.process.memory.writing.acquire(); tiers.off.enter(torch)
pid = os.fork()
if pid == 0:
    ok = torch.backends.cudnn.enabled
    with __import__('fpt_agent').conv_fallback(start='nocudnn'):
        f.conv3d(torch.zeros(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1))
    # what it has in flight is told: the call has left its mark where the heartbeat looks
    ok = ok and list(c.state.ops) == [c.threading.get_ident()]
    os._exit(0 if ok else 3)
assert os.waitpid(pid, 0)[1] == 0
""")


if __name__ == "__main__":
    unittest.main()
