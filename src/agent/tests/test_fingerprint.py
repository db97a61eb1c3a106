"""The key of a model: whatever can change its result is another key, and the same model has the same one."""
import copy
import dataclasses
import enum
import functools
import os
import random
import subprocess
import sys
import threading
import types
import unittest
import logging

import support_cpu  # noqa: F401
import torch
from torch import nn

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
sys.path.insert(0, PACKAGE)

from fpt_agent.fingerprint import key_of, sample, state_of, unchanged  # noqa: E402


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(48, 48)
        self.strength, self.scaling, self.active = 1.0, {"style": 0.5, "face": 0.25}, ["style"]
        self.table = torch.ones(5)
        self.register_buffer("seen", torch.zeros(3))


def model():
    torch.manual_seed(0)
    return nn.Sequential(*[Layer() for _ in range(20)])


class Fingerprint(unittest.TestCase):
    def changed(self, *changes):
        """Each change, made to a model of its own, gives a key that no other gives."""
        keys = {key_of(model()): None}
        for change in changes:
            one = model()
            change(one)
            key = key_of(one)
            self.assertNotIn(key, keys, changes.index(change))
            self.assertEqual(key, key_of(one))
            keys[key] = change

    def test_attributes_of_every_module_count(self):
        self.changed(
            lambda m: setattr(m[7], "strength", 0.5), lambda m: setattr(m[8], "strength", 0.5),
            lambda m: setattr(m[7], "strength", 1), lambda m: setattr(m[7], "strength", None), lambda m: setattr(m[7], "strength", "1.0"),
            lambda m: m[7].scaling.update(face=0.5), lambda m: m[7].active.append("face"), lambda m: setattr(m[7], "active", {"style"}),
            lambda m: m[7].table.mul_(2), lambda m: m[7].eval(), lambda m: m.eval(), lambda m: setattr(m[3], "late", True),
            lambda m: m[7].register_forward_hook(functools.partial(print, 1)),
            lambda m: m[7].register_forward_hook(functools.partial(print, 2)))

    def test_every_weight_counts(self):
        def one(of, value):
            def change(m):
                with torch.no_grad():
                    of(m).add_(value)
            return change

        self.changed(*[one(lambda m, at=at: m[at].base.weight, 1) for at in range(20)], one(lambda m: m[7].base.bias, 1),
                     one(lambda m: m[7].seen, 1), lambda m: m.half(), lambda m: m[7].register_buffer("more", torch.zeros(3)),
                     lambda m: setattr(m[7], "base", nn.Linear(48, 48, bias=False)), lambda m: m[7].base.register_parameter("bias", None))

    def test_a_class_and_a_hidden_module_count(self):
        class Other(Layer):
            pass

        def patch(strength):
            def change(m):
                lora = Layer()
                lora.base, lora.strength = m[7].base, strength
                m[7].base.forward = lora.forward  # as loaders of LoRA do; the layer is no child of the model
            return change

        def closed(strength):
            def change(m):
                m[7].forward = lambda x: x * strength
            return change

        self.changed(lambda m: setattr(m[7], "__class__", Other), patch(0.5), patch(0.25), closed(0.5), closed(0.25))

    def test_functions_count_by_what_they_do(self):
        def patch(function):
            return lambda m: setattr(m[7], "forward", function)

        def made(text, name="f", **more):
            space = dict(more, __name__="program")
            exec(text, space)
            return space[name]

        def counted(count):
            function = made("def f(x): return x")
            function.count = count
            return function

        def kind(strength):
            class Scale:
                def __call__(self, x):
                    return x * strength
            return Scale()

        def plain():
            class Scale:
                def __call__(self, x):
                    return x
            return Scale()

        def module(value):
            found = types.ModuleType("settings")
            found.scale = value
            return found

        def library(function):
            def change(m):
                m[7].kind = type("Kind", (), {"__module__": "diffusers.x", "run": function})
            return change

        self.changed(
            patch(lambda x: x * 1.0), patch(lambda x: x * 2.0), patch(lambda x: x + 2.0), patch(lambda x, by=2.0: x * by),
            patch(lambda x, by=3.0: x * by), patch(lambda x, *, by=2.0: x * by), patch(lambda x, *, by=3.0: x * by),
            patch(lambda x: [y * 2.0 for y in x]), patch(lambda x: [y * 3.0 for y in x]), patch(lambda x: (lambda: x * 2.0)()),
            patch(lambda x: (lambda: x * 3.0)()), patch(made("def f(x): return x * scale", scale=1.0)),
            patch(made("def f(x): return x * scale", scale=2.0)), patch(made("def f(x): return x * s['a']", s={"a": 1})),
            patch(made("def f(x): return x * s['a']", s={"a": 2})), patch(made("def g(): return 1\ndef f(x): return x * g()")),
            patch(made("def g(): return 2\ndef f(x): return x * g()")), patch(made("def f(x): return x * m.scale", m=module(1))),
            patch(made("def f(x): return x * m.scale", m=module(2))), patch(counted(1)), patch(counted(2)), patch(kind(1.0)),
            patch(kind(2.0)), patch(plain()), patch(types.MethodType(made("def f(self, x): return x * 2"), 1)),
            patch(types.MethodType(made("def f(self, x): return x * 3"), 1)), library(made("def f(self, x): return x * 2")),
            library(made("def f(self, x): return x * 3")))

    def test_modules_of_the_program_count_wherever_they_are_reached(self):
        package, conf = types.ModuleType("mypkg"), types.ModuleType("mypkg.conf")
        package.conf, conf.N, conf.__file__ = conf, 1.0, "/home/user/mypkg/conf.py"
        for one in package, conf:
            sys.modules[one.__name__] = one
            self.addCleanup(sys.modules.pop, one.__name__)

        def made(text, **more):
            space = dict({"__name__": "program", "__package__": "mypkg"}, **more)
            exec(text, space)
            return space["f"]

        class Meta(type):
            @property
            def scale(cls):
                return conf.N

        class Kind(metaclass=Meta):
            pass

        reading = {
            "through a module": made("def f(x): return x * mypkg.conf.N", mypkg=package),
            "imported inside": made("def f(x):\n from mypkg import conf\n return x * conf.N"),
            "imported as": made("def f(x):\n import mypkg.conf as c\n return x * c.N"),
            "relative": made("def f(x):\n from .conf import N\n return x * N"),
            "relative, the module": made("def f(x):\n from . import conf\n return x * conf.N"),
            "by text": made("def f(x): return x * getattr(conf, 'N')", conf=conf),
            "inner": made("def f(x): return (lambda: x * mypkg.conf.N)()", mypkg=package),
            "an attribute": conf, "in a dict": {"m": [conf]}, "of a metaclass": Kind,
        }
        for name, value in reading.items():
            with self.subTest(name):
                one, keys = model(), []
                one[7].own = value
                for conf.N in 1.0, 2.0, 1.0:
                    keys.append(key_of(one))
                self.assertEqual(keys[0], keys[2])
                self.assertNotEqual(keys[0], keys[1])
        for text in ("globals()['N']", "eval('N')", "__import__('mypkg').conf.N", "importlib.import_module('mypkg.conf').N",
                     "sys.modules['mypkg.conf'].N"):
            with self.subTest(text), self.assertRaisesRegex(TypeError, "has no fingerprint"):
                one = model()
                one[7].own = made("def f(x): return x * " + text, importlib=__import__("importlib"), sys=sys)
                key_of(one)
        # what modules of libraries hold is their own
        one = model()
        one[7].own = made("def f(x): return x * torch.ones(1) * math.pi", torch=torch, math=__import__("math"))
        self.assertEqual(key_of(one), key_of(one))

    def test_objects_count_to_the_bottom(self):
        @dataclasses.dataclass
        class Settings:
            scale: float = 1.0
            more: object = None

        class Slots:
            __slots__ = ("scale", "__own")

            def __init__(self, scale, own):
                self.scale, self.__own = scale, own

        class Listed(list):
            pass

        class Way(enum.Enum):
            FAST, SLOW = 1, 2

        def listed(note):
            found = Listed([1])
            found.note = note
            return found

        def nested(value):
            for _ in range(8):
                value = Settings(1.0, [{"a": (value,)}])
            return value

        def drawn(source):
            source.random()
            return source

        import collections
        import itertools
        import numpy

        values = [
            nested(1.0), nested(2.0), Slots(1, 1), Slots(1, 2), Slots(2, 1), listed(1), listed(2), {1: 2}, {"1": 2}, Way.FAST, Way.SLOW,
            torch.Generator().manual_seed(1), torch.Generator().manual_seed(2), nested(torch.Generator().manual_seed(1)),
            nested(torch.Generator().manual_seed(2)), random.Random(1), drawn(random.Random(1)), numpy.random.default_rng(1),
            drawn(numpy.random.default_rng(1)), numpy.random.RandomState(1), numpy.random.RandomState(2), itertools.cycle([1, 2]),
            itertools.cycle([2, 1]), iter([1, 2]), collections.deque([1]), collections.deque([2]), bytearray(b"a"), bytearray(b"b"),
            types.SimpleNamespace(scale=1), types.SimpleNamespace(scale=2), numpy.arange(2000), numpy.arange(2000) * (numpy.arange(2000) != 7),
            torch.arange(2000), torch.arange(2000) * (torch.arange(2000) != 7), {"a", 1}, {"a", 2}, functools.partial(max, 1),
            functools.partial(max, 2), functools.partial(min, 1), [1].append, [2].append, range(3), range(4),
            numpy.poly1d([1, 2]), numpy.poly1d([1, 3]), torch.ones(3, 4) * torch.arange(4), (torch.ones(3, 4) * torch.arange(4)).t().contiguous().t()]

        def given(value):
            return lambda m: setattr(m[7], "processor", types.SimpleNamespace(value=value))

        self.changed(*[given(value) for value in values])

    def test_inputs_count_by_their_values_and_how_they_lie(self):
        x = torch.randn(3, 4)
        negative = torch.complex(x, x).conj()
        self.assertTrue(negative.imag.is_neg() and negative.is_conj())
        keys = [key_of(one) for one in (x, negative.imag, torch.complex(x, x), negative, x.t().contiguous().t(), x.double(), x[:2])]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(key_of(-x), key_of((-x).clone()))

    def test_what_cannot_be_looked_into_has_no_key_and_what_has_no_part_in_a_result_does_no_harm(self):
        with open(os.devnull) as file:
            for value in (file, (x for x in [1]), memoryview(b"a").__iter__(), {torch.nn.Identity()}, sys._getframe()):
                one = model()
                one[7].processor = types.SimpleNamespace(value=value)
                self.assertRaises(TypeError, key_of, one)
        keys = set()
        for _ in range(2):
            one = model()
            one[7].processor = types.SimpleNamespace(lock=threading.Lock(), log=logging.getLogger("a"), event=threading.Event())
            one[7].itself = one[7].processor.itself = one[7].processor
            keys.add(key_of(one))
        self.assertEqual(len(keys), 1)

    def test_a_value_that_no_sample_has_is_seen_within_a_process(self):
        one = model()
        one.big = nn.Parameter(torch.zeros(500, 500), requires_grad=False)
        before = state_of(one)
        self.assertTrue(unchanged(before, state_of(one)))
        one.big[3, 7] += 1
        self.assertEqual(before[0], state_of(one)[0])
        self.assertFalse(unchanged(before, state_of(one)))
        kept, one[3].late = state_of(one, ("late",)), 1
        self.assertFalse(unchanged(kept, state_of(one, ("late",))), "of the model itself alone")
        kept, one.late = state_of(one, ("late",)), 1
        self.assertTrue(unchanged(kept, state_of(one, ("late",))))

    def test_the_same_model_has_the_same_key_in_another_process_and_as_a_copy(self):
        self.assertEqual(key_of(model()), key_of(copy.deepcopy(model())))
        code = """if 1:
            import torch
            from diffusers import WanTransformer3DModel
            from fpt_agent.fingerprint import key_of
            torch.manual_seed(0)
            kind = dict(num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4, text_dim=8, freq_dim=8, ffn_dim=16, num_layers=2)
            model = WanTransformer3DModel(**kind).eval()
            before = key_of(model)
            model(hidden_states=torch.ones(1, 4, 1, 4, 4), timestep=torch.tensor([3]), encoder_hidden_states=torch.ones(1, 5, 8))
            print(before == key_of(model), before)
        """
        env = dict({k: v for k, v in os.environ.items() if not k.startswith("FPT_")}, PYTHONPATH=PACKAGE)
        outs = {subprocess.run([sys.executable, "-c", code], env=dict(env, PYTHONHASHSEED=seed), capture_output=True, text=True,
                               check=True).stdout for seed in ("1", "2")}
        self.assertEqual(len(outs), 1, outs)
        self.assertTrue(outs.pop().startswith("True "))

    def test_what_cannot_be_read_has_no_key(self):
        one = model()
        one[7].base.to("meta")
        self.assertRaises(TypeError, key_of, one)
        one = model()
        one[7].words = list(range(100000))
        self.assertRaises(TypeError, key_of, one)
        one = model()
        one[7].table = torch.eye(4).to_sparse()
        self.assertRaises(TypeError, key_of, one)

    def test_a_sample_is_spread_over_the_tensor_and_bounded(self):
        for shape in ((4096, 512), (3, 5, 7, 11), (100000,), (65, 1), (2, 640)):
            values = torch.arange(torch.Size(shape).numel()).reshape(shape)
            found = sample(values)
            self.assertLessEqual(found.numel(), 64)
            self.assertGreater(found.max().item() - found.min().item(), values.numel() * 0.9 - 1, shape)
        columns = sample(torch.arange(512).repeat(4096, 1))
        self.assertGreater(len(set(columns.tolist())), 50, "a column that was changed alone is met")
        image = torch.randn(32, 16, 3, 3)
        for view in (image.to(memory_format=torch.channels_last), image.transpose(0, 1), image[:, ::2], image[:1].expand(8, 16, 3, 3)):
            found = sample(view)
            self.assertLessEqual(found.numel(), 81)
            self.assertTrue(set(found.tolist()) <= set(view.flatten().tolist()))

    def test_types_that_hold_other_widths(self):
        for dtype in (torch.bool, torch.uint8, torch.bfloat16, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.int64):
            keys = set()
            for value in (0, 1):
                one = nn.Module()
                one.register_buffer("x", torch.full((100,), value).to(dtype))
                one.register_buffer("y", torch.zeros(0))
                one.register_buffer("z", torch.tensor(2.5))
                keys.add(key_of(one))
            self.assertEqual(len(keys), 2, dtype)


if __name__ == "__main__":
    unittest.main()
