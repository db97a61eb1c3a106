"""The key of a model: whatever can change its result is another key, and the same model has the same one."""
import copy
import functools
import os
import subprocess
import sys
import unittest

import support_cpu  # noqa: F401
import torch
from torch import nn

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
sys.path.insert(0, PACKAGE)

from fpt_agent.fingerprint import key_of, sample  # noqa: E402


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
