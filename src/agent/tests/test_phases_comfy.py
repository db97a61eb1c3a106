"""ComfyUI's shape: phases, prompts, tiles, unload, free memory."""
import sys
import unittest

from support_mem import AgentTest

from fpt_agent import stacks
from fpt_agent.state import state

GIB = 1 << 30


class Comfy(AgentTest):
    def load(self, **settings):
        """The modules afresh, hooked with these settings."""
        self.use(**settings)
        for name in ("execution", "comfy", "comfy.sd", "comfy.samplers", "comfy.model_management", "comfy.utils"):
            sys.modules.pop(name, None)
        self.addCleanup(setattr, stacks, "ending", stacks.ending)
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

    def test_the_overlap_lets_the_tiles_of_a_picture_advance(self):
        self.load(vae_tile="64", vae_overlap="56")
        vae = self.sd.VAE()
        vae.latent_dim = 2
        vae.decode(self.latents()[:, :, 0])
        self.assertEqual(vae.tiles, (8, 8, 2, None, None))
        self.assertEqual(self.sent("fix", what="vae_tile")[0]["overlap"], 16)
        self.load(vae_tile="8")
        vae = self.sd.VAE()
        vae.latent_dim = 2
        vae.decode(self.latents()[:, :, 0])
        self.assertEqual(vae.tiles, (2, 2, 0, None, None))

    def test_a_file_of_weights_is_a_load(self):
        self.load()
        import comfy.utils

        self.assertEqual(comfy.utils.load_torch_file("a.safetensors", return_metadata=True), ({"weight": "a.safetensors"}, None))
        self.assertEqual(self.path(), ["model_load", "startup"])

    def test_steps_without_tqdm(self):
        self.load()
        state.progress = None
        self.run_prompt(steps=3)  # whose bar is off
        self.assertEqual([(m["n"], m["total"]) for m in self.sent("progress")][-1], (3.0, 3.0))

    def test_bars_that_move_fast_are_told_now_and_then(self):
        self.load()
        import comfy.utils

        bar = comfy.utils.ProgressBar(20000)
        for _ in range(20000):
            bar.update(1)
        told = self.sent("progress")
        self.assertLess(len(told), 2000)
        self.assertEqual(told[-1]["n"], 20000.0)

    def test_stop_after_this_step_ends_the_prompt_and_not_its_thread(self):
        self.load()
        stacks.stop_after_step()
        self.assertEqual(self.run_prompt()[0], None)  # an exception that came out would end the server's thread
        self.assertEqual([(m["state"], m["error"]) for m in self.sent("job")],
                         [("started", None), ("ended", "KeyboardInterrupt: interrupted by the user")])
        self.assertIsNotNone(self.run_prompt()[0])

    def test_interrupt_of_the_thread_ends_the_prompt_and_not_the_thread(self):
        import threading
        import time

        self.load()
        begun, ends = threading.Event(), []

        def endless():
            begun.set()
            while not ends or time.monotonic() < ends[0]:
                time.sleep(0.001)

        def worker():
            for number, prompt in enumerate((endless, lambda: None)):
                self.execution.PromptExecutor().execute(prompt, "p-%d" % number, {}, [])

        thread = threading.Thread(target=worker)
        thread.start()
        begun.wait(10)
        stacks.interrupt({"ident": thread.ident})
        thread.join(10)
        ends.append(0.0)  # whatever happened, the thread ends
        self.assertEqual([(m["state"], m["id"]) for m in self.sent("job")],
                         [("started", "p-0"), ("ended", "p-0"), ("started", "p-1"), ("ended", "p-1")])

    def test_keyword_calls(self):
        self.load()
        vae = self.sd.VAE()
        self.assertTrue(vae.decode(samples_in=self.latents()).equal(vae.decode(self.latents())))
        self.mm.load_models_gpu(models=[vae.patcher], memory_required=3)


if __name__ == "__main__":
    unittest.main()
