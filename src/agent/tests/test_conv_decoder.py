"""`conv_scope`: the tier of a rung reaches the decode and the encode of the VAE, not the rest of the program."""
import os
import unittest

from support_vault import WORKLOADS, Supervisor

SHAPES = os.path.join(WORKLOADS, "decoder_shapes")
#: The first: in a program without a decoder. The second: a decoder of its own beside a patch embedding of the very same shape.
PLAIN = """
import torch
conv = torch.nn.Conv3d(4, 4, 3, padding=1)
conv2d = torch.nn.Conv2d(4, 4, 3)
with torch.no_grad():
    for _ in range(3): conv(torch.ones(1, 4, 2, 5, 5))
    conv2d(torch.ones(1, 4, 5, 5))
"""
SAME_SHAPE = """
import torch
from torch import nn
class Codec(nn.Module):
    def __init__(self):
        super().__init__(); self.convs = nn.ModuleList(nn.Conv3d(4, 4, 3, padding=1) for _ in range(3))
    def encode(self, x): return x
    def decode(self, z):
        for conv in self.convs: z = conv(z)
        return nn.functional.interpolate(z, scale_factor=(1.0, 8.0, 8.0))
codec, other = Codec(), nn.Conv3d(4, 4, 3, padding=1)
z = torch.ones(1, 4, 2, 5, 5)
with torch.no_grad():
    for _ in range(2):
        other(z); other(z); codec.decode(z); other(z)
"""


class Scope(unittest.TestCase):
    def tiers(self, *command, **settings):
        """Tier statistics of the program, and its problems."""
        with Supervisor() as s:
            code, _, err = s.run(*command, settings=settings)
            self.assertEqual(code, 0, err)
            (bye,) = s.wait("bye")
            self.assertEqual(s.of("hook_failed"), [])
            return bye["tiers"], [m["text"] for m in s.of("problem")]

    def test_the_patch_embedding_stays_native_and_the_decoder_is_split(self):
        script = os.path.join(SHAPES, "diffsynth.py")
        everywhere, _ = self.tiers(script, "--steps", "4", conv_tier="split")
        inside, problems = self.tiers(script, "--steps", "4", conv_tier="split", conv_scope="decoder")
        self.assertEqual(problems, [])
        # one patch embedding a step
        self.assertEqual(everywhere["conv3d.split.ok"] - inside["conv3d.split.ok"], 4)
        self.assertGreater(inside["conv3d.split.ok"], 4)

    def test_the_same_shape_is_native_outside_and_split_inside_whatever_came_first(self):
        found, _ = self.tiers("-c", SAME_SHAPE, conv_tier="split", conv_scope="decoder")
        self.assertEqual(found, {"conv3d.split.tried": 6, "conv3d.split.ok": 6})

    def test_without_any_known_decoder_the_tiers_count_everywhere_and_that_is_said_once(self):
        found, problems = self.tiers("-c", PLAIN, conv_tier="split", conv2d_tier="nocudnn", conv_scope="decoder")
        self.assertEqual((found["conv3d.split.ok"], found["conv2d.nocudnn.ok"]), (3, 1))
        self.assertEqual([text.partition(":")[0] for text in problems], ["conv_scope = decoder"])

    def test_the_decode_of_diffusers_is_inside(self):
        script = os.path.join(WORKLOADS, "tiny_wan.py")
        everywhere, _ = self.tiers(script, "--steps", "2", conv_tier="split", conv2d_tier="nocudnn")
        inside, problems = self.tiers(script, "--steps", "2", conv_tier="split", conv2d_tier="nocudnn", conv_scope="decoder")
        self.assertEqual(problems, [])
        # two steps with and without the prompt's guidance
        self.assertEqual(everywhere["conv3d.split.ok"] - inside["conv3d.split.ok"], 4)
        self.assertEqual(everywhere["conv2d.nocudnn.ok"], inside["conv2d.nocudnn.ok"])


if __name__ == "__main__":
    unittest.main()
