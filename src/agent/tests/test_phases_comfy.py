"""ComfyUI's shape: phases, prompts, tiles, unload, free memory."""
import sys
import unittest

from support_mem import AgentTest

GIB = 1 << 30


class Comfy(AgentTest):
    def load(self, **settings):
        """The modules afresh, hooked with these settings."""
        self.use(**settings)
        for name in ("execution", "comfy", "comfy.sd", "comfy.samplers", "comfy.model_management"):
            sys.modules.pop(name, None)
        import comfy.samplers
        import comfy.sd
        import execution

        self.sd, self.samplers, self.execution = comfy.sd, comfy.samplers, execution
        self.mm = comfy.sd.model_management
        self.mm.current_loaded_models.clear()
        self.mm.log.clear()

    def latents(self, frames=3, height=32, width=16):
        import torch

        return torch.randn(1, 16, frames, height, width, generator=torch.Generator().manual_seed(1))

    def run_prompt(self, steps=2, bad=False):
        import torch

        vae, model = self.sd.VAE(), self.sd.ModelPatcher(torch.nn.Linear(1, 1))
        noise = self.latents() * (float("nan") if bad else 1.0)

        def prompt():
            self.sd.CLIP().encode_from_tokens([1, 2])
            samples = self.samplers.sample(model, noise, None, None, 1.0, None, None, steps, disable_pbar=True)
            prompt.pixels = vae.decode(samples)

        self.execution.PromptExecutor().execute(prompt, "p-1", {}, [])
        return getattr(prompt, "pixels", None), vae

    def test_phases_of_a_prompt(self):
        self.load()
        self.run_prompt()
        self.assertEqual(self.path(), [
            "idle", "unknown", "text_encode", "unknown", "sampling", "model_load", "sampling", "unknown", "vae_decode",
            "model_load", "vae_decode", "unknown", "idle"])
        self.assertEqual([(m["state"], m["id"], m["error"]) for m in self.sent("job")],
                         [("started", "p-1", None), ("ended", "p-1", None)])
        decode = self.sent("phase", phase="vae_decode")[0]
        self.assertEqual((decode["model"], decode["shape"]), ("WanVAE", [1, 16, 3, 32, 16]))

    def test_a_second_prompt_loads_nothing(self):
        self.load()
        vae = self.sd.VAE()
        vae.decode(self.latents())
        self.messages.clear()
        vae.decode(self.latents())
        self.assertEqual(self.path(), ["vae_decode", "startup"])

    def test_a_failed_prompt(self):
        self.load()
        self.run_prompt(bad=True)
        last = self.sent("job")[-1]
        self.assertEqual(last["state"], "failed")
        self.assertTrue(last["error"].startswith("RuntimeError: Expected all tensors"), last["error"])
        found = self.sent("finding", verdict="device_mismatch")
        self.assertEqual(len(found), 1)
        self.assertIn("cpu and cuda:0", found[0]["text"])
        self.assertIn("sampling", found[0]["text"])

    def test_tiles_by_the_profile(self):
        self.load()
        plain, _ = self.run_prompt()
        self.load(vae_tile="128", vae_overlap="32", vae_chunk="2")
        tiled, vae = self.run_prompt()
        self.assertEqual(vae.tiles, (16, 16, 4, 2, 1))
        self.assertTrue(plain.equal(tiled))  # nearest neighbours: tiles make no seam
        self.assertEqual([(m["tile"], m["overlap"], m["frames"]) for m in self.sent("fix", what="vae_tile")],
                         [(128, 32, 2)])
        vae.decode(self.latents())
        self.assertEqual(len(self.sent("fix", what="vae_tile")), 1)  # once an object

    def test_a_small_picture_stays_whole(self):
        self.load(vae_tile="512")
        _, vae = self.run_prompt()
        self.assertIsNone(vae.tiles)
        self.assertEqual(self.sent("fix"), [])

    def test_without_settings_nothing_is_changed(self):
        self.load()
        self.run_prompt()
        self.assertEqual(self.sent("fix"), [])
        self.assertEqual(self.mm.get_free_memory(), 20 * GIB)
        self.assertEqual(self.mm.minimum_inference_memory(), 1.5 * GIB)
        self.assertIs(self.mm.pin_memory(None), True)
        self.assertEqual([one for one in self.mm.log if one[0] == "free"], [])

    def test_full_unload_keeps_the_vae(self):
        self.load(full_unload="true")
        _, vae = self.run_prompt()
        self.assertIn(("free", 1e30, ["Linear"]), self.mm.log)
        self.assertEqual([type(one.model.model).__name__ for one in self.mm.current_loaded_models], ["WanVAE"])
        self.assertEqual(len(self.sent("fix", what="full_unload")), 1)
        before = len(self.mm.log)
        vae.decode(self.latents())  # only the VAE is there: nothing to do
        self.assertEqual(len(self.mm.log), before)
        self.assertIn("offload", self.path())

    def test_preserved_memory(self):
        self.load(preserved_memory="+4 GiB")
        self.assertEqual(self.mm.minimum_inference_memory(), 5.5 * GIB)
        self.load(preserved_memory="18 GiB")
        self.assertEqual(self.mm.minimum_inference_memory(), 18 * GIB)
        self.assertEqual(len(self.sent("fix", what="preserved_memory")), 2)

    def test_vae_device_and_precision(self):
        import torch

        self.load(vae_device="cpu", vae_dtype="float32", pinned_memory="false")
        vae = self.sd.VAE()
        self.assertEqual((vae.device, vae.vae_dtype), (torch.device("cpu"), torch.float32))
        self.assertIs(self.mm.pin_memory(None), False)
        self.load(vae_dtype="float16")
        self.assertEqual(self.sd.VAE().vae_dtype, torch.bfloat16)
        self.assertIn("float16", self.sent("problem")[-1]["text"])

    def test_keyword_calls(self):
        self.load()
        vae = self.sd.VAE()
        self.assertTrue(vae.decode(samples_in=self.latents()).equal(vae.decode(self.latents())))
        self.mm.load_models_gpu(models=[vae.patcher], memory_required=3)


if __name__ == "__main__":
    unittest.main()
