"""A tiny image-to-image pipeline with model CPU offload, fed from elsewhere and with a generator made in the loop.

There is no card here: the pipeline computes on `cpu:0` through accelerate's real offload hooks, and what lies on a card
is an object that says so and becomes a tensor when it is carried to the CPU.
"""
import unittest

from support_mem import AgentTest

from fpt_agent import placement


def pipeline():
    """StableDiffusionInstructPix2PixPipeline, random weights, the same in every call."""
    import torch
    from diffusers import (AutoencoderKL, EulerDiscreteScheduler, StableDiffusionInstructPix2PixPipeline,
                           UNet2DConditionModel)
    from transformers import CLIPTextConfig, CLIPTextModel

    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        block_out_channels=(8, 16), layers_per_block=1, sample_size=16, in_channels=8, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), norm_num_groups=4,
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=16, attention_head_dim=4)
    vae = AutoencoderKL(block_out_channels=(8, 16), in_channels=3, out_channels=3, latent_channels=4, sample_size=32,
                        norm_num_groups=4, down_block_types=("DownEncoderBlock2D",) * 2,
                        up_block_types=("UpDecoderBlock2D",) * 2)
    text = CLIPTextModel(CLIPTextConfig(vocab_size=99, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                        num_attention_heads=2, bos_token_id=1, eos_token_id=2, pad_token_id=0))
    pipe = StableDiffusionInstructPix2PixPipeline(
        vae=vae, text_encoder=text, tokenizer=None, unet=unet, scheduler=EulerDiscreteScheduler(), safety_checker=None,
        feature_extractor=None, requires_safety_checker=False)
    pipe.set_progress_bar_config(disable=True)
    return pipe


class OnCard:
    """A tensor that says it lies on a card."""

    def __init__(self, tensor, device="cuda:0"):
        import torch

        self.tensor, self.device = tensor, torch.device(device)

    def is_floating_point(self):
        return True

    def to(self, device):
        return self.tensor.to(device)


class CardGenerator:
    """A torch.Generator that says it lies on a card."""

    def __new__(cls, device="cuda:0"):
        import torch

        if str(device).startswith("cpu"):
            return torch.Generator("cpu")
        self = object.__new__(cls)
        self.device, self.inner = torch.device(device), torch.Generator("cpu")
        return self

    def manual_seed(self, seed):
        self.inner.manual_seed(seed)
        return self

    def initial_seed(self):
        return self.inner.initial_seed()

    def get_state(self):
        return self.inner.get_state()


class Placement(AgentTest):
    @classmethod
    def setUpClass(cls):
        cls.pipe = pipeline()
        cls.pipe.enable_model_cpu_offload(device="cpu:0")

    def setUp(self):
        super().setUp()
        import torch

        placement._seen.clear()
        plain = placement.advance
        placement.advance = lambda generator: generator.inner.set_state(self.used)
        self.addCleanup(setattr, placement, "advance", plain)
        other = torch.Generator().manual_seed(999)
        torch.rand(1, generator=other)
        self.used = other.get_state()
        g = torch.Generator().manual_seed(3)
        self.image = torch.rand(1, 3, 32, 32, generator=g)
        self.embeds = torch.randn(1, 7, 16, generator=g)

    def call(self, image=None, generator=None, **more):
        image = self.image if image is None else image
        embeds = self.embeds.repeat(len(generator) if isinstance(generator, list) else 1, 1, 1)
        return self.pipe(image=image, prompt_embeds=embeds, negative_prompt_embeds=embeds * 0, num_inference_steps=2, output_type="pt",
                         generator=generator, **more).images

    def cpu(self, seed=5):
        import torch

        return torch.Generator("cpu").manual_seed(seed)

    def test_right_places_say_nothing(self):
        self.call(generator=self.cpu(1))
        self.call(generator=self.cpu(2))
        self.assertEqual(self.sent("finding"), [])
        self.assertEqual(self.sent("fix"), [])

    def test_phases_of_the_call(self):
        self.call(generator=self.cpu())
        seen = self.path()
        order = [seen.index(one) for one in ("unknown", "vae_encode", "sampling", "vae_decode")]
        self.assertEqual(order, sorted(order))
        self.assertEqual(seen[-1], "unknown")
        self.assertEqual([m["state"] for m in self.sent("job")], ["started", "ended"])

    def test_warn_tells_and_changes_nothing(self):
        image = OnCard(self.image)
        with self.assertRaises(Exception):  # the pipeline cannot use it: as without us
            self.call(image=image)
        found = self.sent("finding", verdict="device_mismatch")
        self.assertEqual(len(found), 1)
        self.assertIn("image on cuda:0", found[0]["text"])
        self.assertIn("model CPU offload", found[0]["text"])
        self.assertIs(found[0]["fixed"], False)
        self.assertEqual(self.sent("fix"), [])

    def test_fix_carries_the_inputs(self):
        plain = self.call(generator=self.cpu())
        self.use(device_placement="execution_device")
        placed = self.call(image=OnCard(self.image), generator=self.cpu())
        self.assertTrue(plain.equal(placed))
        self.assertIs(self.sent("finding")[0]["fixed"], True)
        self.assertEqual(self.sent("fix", what="device_placement")[0]["inputs"], ["image"])
        self.call(image=OnCard(self.image), generator=self.cpu(6))
        self.assertEqual(len(self.sent("fix")), 1)

    def test_a_generator_of_the_loop_is_told_once(self):
        first = self.call(generator=self.cpu())
        for _ in range(2):
            self.assertTrue(self.call(generator=self.cpu()).equal(first))
        found = self.sent("finding")
        self.assertEqual(len(found), 1)
        self.assertIn("seeded anew for every call (seed 5", found[0]["text"])

    def test_one_generator_on_the_right_device(self):
        self.use(device_placement="execution_device")
        expected = self.call(generator=self.cpu())
        placement._seen.clear()
        self.messages.clear()
        made = []
        plain = CardGenerator.__new__

        def counted(cls, device="cuda:0"):
            made.append(str(device))
            return plain(cls, device)

        CardGenerator.__new__ = counted
        self.addCleanup(setattr, CardGenerator, "__new__", plain)
        for _ in range(3):  # as the node does: a new one for each picture
            self.assertTrue(self.call(generator=CardGenerator().manual_seed(5)).equal(expected))
        self.assertEqual(made.count("cpu:0"), 1)
        found = self.sent("finding")
        self.assertEqual(len(found), 1)
        self.assertIs(found[0]["fixed"], True)
        self.assertIn("another picture", found[0]["detail"])

    def test_a_generator_that_goes_on_goes_on(self):
        ours = self.cpu()
        expected = [self.call(generator=ours) for _ in range(3)]
        self.assertFalse(expected[0].equal(expected[1]))
        self.use(device_placement="execution_device")
        placement._seen.clear()
        theirs = CardGenerator().manual_seed(5)
        for one in expected:
            self.assertTrue(self.call(generator=theirs).equal(one))
        theirs.manual_seed(5)
        self.assertTrue(self.call(generator=theirs).equal(expected[0]))

    def test_a_list_of_generators(self):
        def both(make, first, second):
            return self.call(image=self.image.repeat(2, 1, 1, 1), generator=[make(first), make(second)])

        expected = both(self.cpu, 5, 6)
        self.assertFalse(expected[0].equal(expected[1]))
        self.assertEqual(self.sent("finding"), [])
        self.assertTrue(both(self.cpu, 5, 6).equal(expected))
        self.assertEqual(len(self.sent("finding")), 1, "both of them anew, told once")
        self.use(device_placement="execution_device")
        placement._seen.clear()
        self.messages.clear()
        for _ in range(2):
            self.assertTrue(both(lambda seed: CardGenerator().manual_seed(seed), 5, 6).equal(expected))
        self.assertEqual(len(self.sent("finding")), 1)
        self.assertIs(self.sent("finding")[0]["fixed"], True)
        # one of the two is right as it is, and stays the program's
        placement._seen.clear()
        right = self.cpu(6)
        mixed = [CardGenerator().manual_seed(5), right]
        _, kwargs = placement.check(self.pipe, (), {"generator": mixed})
        self.assertIs(kwargs["generator"][1], right)
        self.assertEqual(str(kwargs["generator"][0].device), "cpu")
        self.assertIsNot(kwargs["generator"], mixed, "the program's own list is as it was")

    def test_generators_of_a_list_that_go_on_go_on(self):
        ours = [self.cpu(5), self.cpu(6)]
        two = self.image.repeat(2, 1, 1, 1)
        expected = [self.call(image=two, generator=ours) for _ in range(2)]
        self.assertFalse(expected[0].equal(expected[1]))
        self.use(device_placement="execution_device")
        placement._seen.clear()
        theirs = [CardGenerator().manual_seed(5), CardGenerator().manual_seed(6)]
        for one in expected:
            self.assertTrue(self.call(image=two, generator=theirs).equal(one))

    def test_a_picture_in_host_memory_is_the_usual_way(self):
        import types

        import torch

        seen, card, cpu = placement.Seen(), torch.device("cuda:0"), self.image
        pipe = types.SimpleNamespace(components={})
        embeds = OnCard(self.embeds)
        self.assertIsNone(placement.inputs(pipe, card, seen, (), {"image": cpu, "prompt_embeds": embeds}))
        self.assertEqual(self.sent("finding"), [])
        placement.inputs(pipe, card, seen, (), {"latents": cpu, "prompt_embeds": embeds})
        self.assertIn("latents on cpu", self.sent("finding")[0]["text"])

    def test_an_unknown_mode_is_a_problem(self):
        self.use(device_placement="gpu")
        self.call(generator=self.cpu())
        self.call(generator=self.cpu(6))
        self.assertEqual(len(self.sent("problem")), 1)

    def test_the_error_of_two_devices_names_them(self):
        def bad(*args, **kwargs):
            raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:1 "
                               "and cpu!")

        plain = self.pipe.unet.forward
        self.pipe.unet.forward = bad
        try:
            with self.assertRaises(RuntimeError) as caught:
                self.call(generator=self.cpu())
        finally:
            self.pipe.unet.forward = plain
        self.assertIn("Expected all tensors", str(caught.exception))
        found = self.sent("finding")
        self.assertEqual(len(found), 1)
        self.assertIn("cpu and cuda:1", found[0]["text"])
        self.assertEqual(self.sent("job")[-1]["state"], "failed")


if __name__ == "__main__":
    unittest.main()
