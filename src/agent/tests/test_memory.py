"""The cap and what is believed to be free, against a pretended torch.cuda; the VAE's settings on diffusers' classes."""
import types
import unittest

from support_mem import AgentTest

from fpt_agent import diffusers_hooks, framepack, memory, vae

GIB = 1 << 30


class Card:
    """torch.cuda as far as the guard asks it: two cards, nothing initialised until `begin`."""

    def __init__(self, total=24 * GIB, reserved=0, active=0, free=None):
        self.total, self.reserved, self.active = total, reserved, active
        self.free = total - reserved if free is None else free
        self.queue, self.begun, self.fractions, self.emptied = [], False, {}, 0
        self.told = 1.0  # the fraction that the allocator has from its environment

    def _lazy_call(self, function):
        self.queue.append(function)

    def begin(self):
        self.begun = True
        for function in self.queue:
            function()

    def is_initialized(self):
        return self.begun

    def device_count(self):
        return 2

    def get_device_properties(self, index):
        return types.SimpleNamespace(total_memory=self.total)

    def set_per_process_memory_fraction(self, fraction, index):
        assert self.begun, "the device must not be initialised by us"
        self.fractions[index] = fraction

    def get_per_process_memory_fraction(self, index):
        return self.fractions.get(index, self.told)

    def mem_get_info(self, device=None):
        return self.free, self.total

    def memory_reserved(self, device=None):
        return self.reserved

    def memory_stats(self, device=None):
        return {"active_bytes.all.current": self.active, "reserved_bytes.all.current": self.reserved}

    def empty_cache(self):
        self.emptied += 1


def torch_with(card):
    device = lambda one: types.SimpleNamespace(type=str(one).split(":")[0])  # noqa: E731
    return types.SimpleNamespace(cuda=card, device=device, Tensor=type("Tensor", (), {}), nn=None,
                                 _C=types.SimpleNamespace())


class Cap(AgentTest):
    def setUp(self):
        super().setUp()
        for variable in memory.ALLOCATOR:
            self.assertIsNone(memory.os.environ.get(variable))

    def card(self, **more):
        card = Card(**more)
        plain, torch = memory.torch_or_none, torch_with(card)
        memory.torch_or_none = lambda: torch
        self.addCleanup(setattr, memory, "torch_or_none", plain)
        return card, torch

    def test_queued_and_set_at_the_first_use(self):
        self.use(vram_cap="18 GiB")
        card, torch = self.card()
        memory.cap(torch)
        self.assertEqual((card.begun, card.fractions), (False, {}))
        card.begin()
        self.assertEqual(card.fractions, {0: 0.75, 1: 0.75})
        self.assertEqual([m["bytes"] for m in self.sent("fix", what="vram_cap")], [18 * GIB] * 2)

    def test_without_a_setting_nothing_is_queued(self):
        card, torch = self.card()
        memory.cap(torch)
        self.assertEqual(card.queue, [])
        self.assertFalse(memory.capped())

    def test_a_cap_above_the_card_is_the_card(self):
        self.use(vram_cap="80 GiB")
        card, torch = self.card()
        memory.cap(torch)
        card.begin()
        self.assertEqual(card.fractions[0], 1.0)

    def test_the_lower_of_two(self):
        self.use(vram_cap="18 GiB", vram_cap_fraction="0.5")
        card, torch = self.card()
        memory.cap(torch)
        card.begin()
        self.assertEqual(card.fractions[0], 0.5)

    def test_fractions_that_are_none(self):
        for text in ("0", "1.5", "much"):
            self.use(vram_cap_fraction=text)
            self.assertIsNone(memory.fraction())
            self.assertEqual(len(self.sent("problem")), 1)
            self.messages.clear()

    def test_the_environments_cap_is_not_set_twice(self):
        for variable in memory.ALLOCATOR:
            self.use(vram_cap="18 GiB")
            card, torch = self.card()
            memory.os.environ[variable] = "garbage_collection_threshold:0.8,per_process_memory_fraction:0.7"
            try:
                self.assertEqual(memory.allocator_fraction(), 0.7)
                card.told = 0.7
                memory.cap(torch)
                card.begin()
                self.assertEqual(card.fractions, {})
                self.assertEqual(self.sent("fix", what="vram_cap")[0]["by"], "environment")
            finally:
                del memory.os.environ[variable]
            self.messages.clear()

    def test_a_name_that_an_older_torch_does_not_read(self):
        self.use(vram_cap="18 GiB")
        memory.os.environ["PYTORCH_ALLOC_CONF"] = "per_process_memory_fraction:0.7"
        try:
            card, torch = self.card()
            memory.cap(torch)
            card.begin()  # it has taken nothing from there
        finally:
            del memory.os.environ["PYTORCH_ALLOC_CONF"]
        self.assertEqual(card.fractions, {0: 0.7, 1: 0.7})
        self.assertEqual(self.sent("fix", what="vram_cap")[0]["by"], "agent")

    def test_a_failing_driver_does_not_break_the_programs_start(self):
        self.use(vram_cap="18 GiB")
        card, torch = self.card()
        card.get_device_properties = lambda index: 1 / 0
        memory.cap(torch)
        card.begin()
        self.assertEqual(len(self.sent("hook_failed", module="vram_cap")), 1)
        self.messages.clear()

    def test_excess(self):
        self.use(vram_cap="18 GiB")
        card, _ = self.card(reserved=10 * GIB, active=7 * GIB, free=14 * GIB)
        self.assertEqual(memory.excess(), 0)  # not in use yet
        card.begun = True
        self.assertEqual(memory.excess(), 6 * GIB)  # 14 free for the driver, 8 below the cap
        self.assertEqual(memory.excess("cpu"), 0)
        card.free = 5 * GIB  # others fill the card: the driver's word is the lower one
        self.assertEqual(memory.excess(), 0)

    def test_framepacks_free_memory_knows_the_cap(self):
        self.use(vram_cap="18 GiB")
        card, torch = self.card(reserved=10 * GIB, active=7 * GIB, free=14 * GIB)
        card.begun = True
        module = types.SimpleNamespace(__name__="diffusers_helper.memory", gpu="cuda:0")

        def get_cuda_free_memory_gb(device=None):
            stats = card.memory_stats()
            idle = stats["reserved_bytes.all.current"] - stats["active_bytes.all.current"]
            return (card.mem_get_info()[0] + idle) / GIB

        module.get_cuda_free_memory_gb = get_cuda_free_memory_gb
        framepack.policy(module)
        self.assertEqual(get_cuda_free_memory_gb(), 17)
        self.assertEqual(module.get_cuda_free_memory_gb(), 8 + 3)  # below the cap, and the idle pool

    def test_trim(self):
        self.use(host_copies="few")
        card, torch = self.card()
        memory.stage()
        self.assertEqual(card.emptied, 0)  # the card is not in use
        card.begun = True
        hosts = []
        torch._C._accelerator_emptyHostCache = lambda: hosts.append(1)
        memory.stage()
        self.assertEqual((card.emptied, len(hosts)), (1, 1))
        self.assertEqual(len(self.sent("fix", what="trim_stages")), 1)
        self.use()
        memory.stage()
        self.assertEqual(card.emptied, 1)

    def test_pinned(self):
        self.use(pinned_memory="false")
        _, torch = self.card()

        def pin_memory(self, device=None):
            """Page-locked."""

        torch.Tensor.pin_memory = pin_memory
        memory.cap(torch)
        self.assertEqual(torch.Tensor.pin_memory.__doc__, "Page-locked.")
        tensor = torch.Tensor()
        self.assertIs(tensor.pin_memory(), tensor)
        self.assertIs(tensor.pin_memory("cuda"), tensor)
        self.assertEqual(len(self.sent("fix", what="pinned_memory")), 1)
        self.assertEqual(len(self.sent("problem")), 1)


class FramePackPolicy(AgentTest):
    def module(self):
        module = types.SimpleNamespace(__name__="diffusers_helper.memory", calls=[])
        for name in ("load_model_as_complete", "unload_complete_models",
                     "move_model_to_device_with_memory_preservation",
                     "offload_model_from_device_for_memory_preservation"):
            setattr(module, name, lambda *args, _name=name, **kwargs: module.calls.append((_name, args, kwargs)))
        framepack.policy(module)
        return module

    def moved(self, module, *args, **kwargs):
        module.move_model_to_device_with_memory_preservation(*args, **kwargs)
        return module.calls[-1][2]["preserved_memory_gb"]

    def test_preserved_memory(self):
        model = types.SimpleNamespace()
        self.use(preserved_memory="+4 GiB")
        module = self.module()
        self.assertEqual(self.moved(module, model, "gpu", preserved_memory_gb=6), 10)
        self.assertEqual(self.moved(module, model, "gpu", 7), 11)
        self.assertEqual(module.calls[-1][1], (model, "gpu"))
        self.use(preserved_memory="18 GiB")
        self.assertEqual(self.moved(self.module(), model, target_device="gpu", preserved_memory_gb=6), 18)

    def test_full_unload(self):
        self.use(full_unload="true")
        module = self.module()
        module.offload_model_from_device_for_memory_preservation("model", target_device="gpu", preserved_memory_gb=8)
        self.assertEqual(module.calls[-1][2]["preserved_memory_gb"], float("inf"))
        self.use()
        module.offload_model_from_device_for_memory_preservation("model", target_device="gpu", preserved_memory_gb=8)
        self.assertEqual(module.calls[-1][2]["preserved_memory_gb"], 8)

    def test_a_vae_for_the_cpu_stays_there(self):
        import torch

        self.use(vae_device="cpu")
        module = self.module()
        module.load_model_as_complete(type("AutoencoderKLHunyuanVideo", (), {})(), target_device="gpu")
        self.assertEqual(module.calls[-1][2]["target_device"], torch.device("cpu"))
        module.load_model_as_complete(type("CLIPTextModel", (), {})(), target_device="gpu")
        self.assertEqual(module.calls[-1][2]["target_device"], "gpu")


def autoencoder(name, **more):
    """Each class with tiny random weights, the same in every call."""
    import diffusers
    import torch

    torch.manual_seed(0)
    given = {
        "AutoencoderKL": dict(block_out_channels=(8, 16, 16), down_block_types=("DownEncoderBlock2D",) * 3,
                              up_block_types=("UpDecoderBlock2D",) * 3, latent_channels=4, norm_num_groups=4,
                              sample_size=256),
        "AutoencoderKLHunyuanVideo": dict(block_out_channels=(8, 8, 16, 16), layers_per_block=1, norm_num_groups=4),
        "AutoencoderKLWan": dict(base_dim=8, z_dim=16, dim_mult=[1, 1, 2, 2], num_res_blocks=1),
        "AutoencoderKLCogVideoX": dict(
            block_out_channels=(8, 8, 8, 8), latent_channels=4, layers_per_block=1, norm_num_groups=2,
            down_block_types=("CogVideoXDownBlock3D",) * 4, up_block_types=("CogVideoXUpBlock3D",) * 4,
            sample_height=64, sample_width=64, temporal_compression_ratio=4),
        "AutoencoderKLMochi": dict(
            latent_channels=4, out_channels=3, encoder_block_out_channels=(32, 32, 32, 32),
            decoder_block_out_channels=(32, 32, 32, 32), layers_per_block=(1, 1, 1, 1, 1)),
        "AutoencoderKLLTXVideo": dict(
            latent_channels=8, block_out_channels=(8, 8, 8, 8), decoder_block_out_channels=(8, 8, 8, 8),
            layers_per_block=(1, 1, 1, 1, 1), decoder_layers_per_block=(1, 1, 1, 1, 1)),
    }[name]
    return getattr(diffusers, name)(**dict(given, **more)).eval()


class Vae(AgentTest):
    """Every class with its own names of tiles."""

    def latents(self, *shape):
        import torch

        return torch.randn(*shape, generator=torch.Generator().manual_seed(2))

    def decoded(self, model, latents):
        import torch

        with torch.no_grad():
            return model.decode(latents).sample

    def test_hunyuan(self):
        self.use(vae_tile="64", vae_overlap="16", vae_chunk="2", vae_slicing="true")
        model = autoencoder("AutoencoderKLHunyuanVideo")
        out = self.decoded(model, self.latents(1, 16, 3, 12, 12))
        self.assertEqual(tuple(out.shape), (1, 3, 9, 96, 96))
        self.assertTrue(model.use_tiling and model.use_slicing)
        self.assertEqual((model.tile_sample_min_height, model.tile_sample_stride_width), (64, 48))
        self.assertEqual((model.tile_sample_min_num_frames, model.tile_sample_stride_num_frames), (8, 4))
        self.decoded(model, self.latents(1, 16, 1, 4, 4))
        self.assertEqual(sorted(m["what"] for m in self.sent("fix")), ["vae_chunk", "vae_slicing", "vae_tile"])
        self.assertEqual(self.sent("problem"), [])
        by_hand = autoencoder("AutoencoderKLHunyuanVideo")
        by_hand.enable_tiling(64, 64, 8, 48, 48, 4)
        self.use()
        self.assertTrue(self.decoded(by_hand, self.latents(1, 16, 3, 12, 12)).equal(out))

    def test_hunyuan_one_frame_at_a_time(self):
        self.use(vae_chunk="1")
        model = autoencoder("AutoencoderKLHunyuanVideo")
        out = self.decoded(model, self.latents(1, 16, 3, 4, 4))
        self.assertEqual(tuple(out.shape), (1, 3, 9, 32, 32))
        self.assertFalse(model.use_tiling)  # chunks of time are no tiles

    def test_wan_has_no_chunks(self):
        self.use(vae_tile="64", vae_chunk="2")
        model = autoencoder("AutoencoderKLWan")
        out = self.decoded(model, self.latents(1, 16, 2, 12, 12))
        self.assertEqual(tuple(out.shape), (1, 3, 5, 96, 96))
        self.assertEqual((model.tile_sample_min_height, model.tile_sample_stride_height), (64, 48))
        problems = self.sent("problem")
        self.assertEqual(len(problems), 1)
        self.assertIn("AutoencoderKLWan", problems[0]["text"])
        self.assertIn("vae_chunk", problems[0]["text"])

    def test_image(self):
        self.use(vae_tile="64", vae_overlap="16")
        model = autoencoder("AutoencoderKL")
        out = self.decoded(model, self.latents(1, 4, 32, 32))
        self.assertEqual(tuple(out.shape), (1, 3, 128, 128))
        self.assertEqual((model.tile_sample_min_size, model.tile_latent_min_size, model.tile_overlap_factor),
                         (64, 16, 0.25))

    def test_cogvideox(self):
        self.use(vae_tile="32", vae_overlap="8", vae_chunk="1")
        model = autoencoder("AutoencoderKLCogVideoX")
        self.decoded(model, self.latents(1, 4, 2, 6, 6))
        self.assertEqual((model.tile_sample_min_height, model.tile_latent_min_width), (32, 4))
        self.assertEqual((model.tile_overlap_factor_width, model.num_latent_frames_batch_size), (0.25, 1))

    def test_mochi(self):
        self.use(vae_tile="64", vae_chunk="3")
        model = autoencoder("AutoencoderKLMochi")
        self.decoded(model, self.latents(1, 4, 2, 2, 2))
        self.assertEqual((model.tile_sample_min_height, model.tile_sample_stride_height), (64, 48))
        self.assertEqual((model.num_latent_frames_batch_size, model.use_framewise_decoding), (3, True))

    def test_ltx(self):
        self.use(vae_tile="128", vae_chunk="4")
        model = autoencoder("AutoencoderKLLTXVideo")
        self.decoded(model, self.latents(1, 8, 2, 2, 2))
        self.assertEqual((model.tile_sample_min_height, model.tile_sample_stride_height), (128, 96))
        self.assertEqual((model.tile_sample_min_num_frames, model.use_framewise_decoding), (32, True))

    def test_a_class_without_tiles(self):
        class Bare:
            def enable_tiling(self):
                raise NotImplementedError

        self.use(vae_tile="64", vae_slicing="true", vae_chunk="2")
        vae.prepare(Bare())
        self.assertEqual(len(self.sent("problem")), 3)
        self.assertTrue(all("Bare" in m["text"] for m in self.sent("problem")))

    def test_sizes_no_multiple_of_the_ratio(self):
        self.use(vae_tile="70", vae_overlap="500")
        model = autoencoder("AutoencoderKLWan")
        vae.prepare(model)
        self.assertEqual((model.tile_sample_min_height, model.tile_sample_stride_height), (64, 8))

    def test_precision(self):
        import torch

        self.use(vae_dtype="float32")
        model = autoencoder("AutoencoderKLWan").to(torch.bfloat16)
        out = self.decoded(model, self.latents(1, 16, 1, 4, 4).to(torch.bfloat16))
        self.assertEqual((out.dtype, model.dtype), (torch.float32, torch.float32))
        self.assertEqual(self.sent("fix")[0]["value"], "float32")

    def test_keyword_call_and_encode(self):
        import torch

        self.use(vae_dtype="float32", vae_device="cpu")
        model = autoencoder("AutoencoderKLWan").to(torch.bfloat16)
        with torch.no_grad():
            out = model.decode(z=self.latents(1, 16, 1, 4, 4).to(torch.bfloat16), return_dict=False)[0]
            seen = model.encode(torch.zeros(1, 3, 1, 32, 32, dtype=torch.bfloat16)).latent_dist.mode()
        self.assertEqual((out.dtype, seen.dtype), (torch.float32, torch.float32))
        self.assertEqual(self.path(), ["vae_decode", "startup", "vae_encode", "startup"])

    def test_the_hooks_device_for_the_call_only(self):
        import torch

        self.use(vae_device="cpu")
        model = autoencoder("AutoencoderKLWan")
        hook = type("CpuOffload", (), {"execution_device": "cuda:0"})()
        model._hf_hook = hook
        moved = vae.Moved(model)
        moved._may_move("AutoencoderKLWan")
        self.assertIs(moved.hook, hook)
        moved.device, hook.execution_device = hook.execution_device, torch.device("cpu")
        moved.__exit__(None, None, None)
        self.assertEqual(hook.execution_device, "cuda:0")
        model._hf_hook = type("AlignDevicesHook", (), {})()
        self.assertFalse(vae.Moved(model)._may_move("AutoencoderKLWan"))
        self.assertIn("AlignDevicesHook", self.sent("problem")[0]["text"])
        del model._hf_hook

    def test_without_settings_bit_for_bit(self):
        model = autoencoder("AutoencoderKLWan")
        latents = self.latents(1, 16, 2, 4, 4)
        import torch

        with torch.no_grad():
            plain = type(model).decode.__wrapped__(model, latents).sample
        self.assertTrue(self.decoded(model, latents).equal(plain))


class Unload(AgentTest):
    """`full_unload` for a plain pipeline: what is on a card leaves it for the decode and comes back when used."""

    def setUp(self):
        super().setUp()
        import torch

        class Model(torch.nn.Linear):
            def __init__(self):
                super().__init__(1, 1)
                self.where = "card"

            def to(self, device):
                self.where = "cpu" if str(device) == "cpu" else "card"
                return self

        self.model, self.vae = Model(), Model()
        self.pipe = types.SimpleNamespace(components={"transformer": self.model, "vae": self.vae, "scheduler": None})
        self.pipe = type("Pipe", (), {"components": self.pipe.components})()
        plain = diffusers_hooks.first_device
        diffusers_hooks.first_device = lambda model: types.SimpleNamespace(
            type="cuda" if model.where == "card" else "cpu")
        self.addCleanup(setattr, diffusers_hooks, "first_device", plain)
        diffusers_hooks._local.pipelines = [self.pipe]
        self.addCleanup(setattr, diffusers_hooks._local, "pipelines", [])

    def test_goes_and_comes_back_at_its_next_call(self):
        import torch

        self.use(full_unload="true")
        diffusers_hooks.unload(self.vae)
        self.assertEqual((self.model.where, self.vae.where), ("cpu", "card"))
        self.assertEqual(self.sent("fix", what="full_unload")[0]["parts"], ["transformer"])
        self.model(torch.zeros(1))
        self.assertEqual(self.model.where, "card")
        self.assertEqual(len(self.model._forward_pre_hooks), 0)
        self.assertEqual(self.path(), ["offload", "startup", "model_load", "startup"])

    def test_comes_back_before_the_next_call_of_the_pipeline(self):
        self.use(full_unload="true")
        diffusers_hooks.unload(self.vae)
        diffusers_hooks.bring_back(self.pipe)
        self.assertEqual(self.model.where, "card")

    def test_never_with_hooks_that_move_the_parts(self):
        self.use(full_unload="true")
        self.model._hf_hook = type("AlignDevicesHook", (), {})()
        diffusers_hooks.unload(self.vae)
        self.assertEqual(self.model.where, "card")
        self.assertIn("sequential offload", self.sent("problem")[0]["text"])

    def test_model_offload_brings_back_by_itself(self):
        self.use(full_unload="true")
        self.model._hf_hook = type("CpuOffload", (), {})()
        diffusers_hooks.unload(self.vae)
        self.assertEqual(self.model.where, "cpu")
        self.assertEqual(len(self.model._forward_pre_hooks), 0)

    def test_not_without_the_setting(self):
        diffusers_hooks.unload(self.vae)
        self.assertEqual(self.model.where, "card")


if __name__ == "__main__":
    unittest.main()
