"""Loops and pipelines of diffusers: steps that were finished before a death are not computed again."""
import os
import unittest

from support_vault import WORKLOADS, Supervisor, kill, until


class Steps(unittest.TestCase):
    def film(self, folder):
        names = sorted(n for n in os.listdir(folder) if n.endswith(".mp4"))
        with open(os.path.join(folder, max(names, key=lambda n: os.path.getsize(os.path.join(folder, n)))), "rb") as file:
            return file.read()

    def through(self, script, section, steps):
        with Supervisor() as s:
            path, told = os.path.join(WORKLOADS, script), {"settings": {"replay_steps": "true"}}
            for folder in ("want", "have"):
                os.makedirs(os.path.join(s.folder, folder))
            code, _, err = s.run(path, "--out", "want", vault=None)
            self.assertEqual(code, 0, err)
            process = s.start(path, "--out", "have", "--fault", "hang-idle", "--fault-section", str(section), **told)
            self.addCleanup(kill, process)
            until(lambda: len(s.of("vault", what="latents", event="saved")) >= section)
            kill(process)
            code, _, err = s.run(path, "--out", "have", attempt=2, resume=True, **told)
            self.assertEqual(code, 0, err)
            s.wait("bye")
            self.assertEqual(len(s.of("vault", event="replayed", what="step")), steps)
            self.assertFalse(s.of("hook_failed"))
            self.assertEqual([n for n in os.listdir(s.vault) if n.startswith("step")], [], "a run that has ended keeps no steps")
            self.assertEqual(self.film(os.path.join(s.folder, "want")), self.film(os.path.join(s.folder, "have")))

    def test_a_compiled_model_meets_no_hook(self):
        code = """if 1:
            import torch
            from diffusers import WanTransformer3DModel
            torch.manual_seed(0)
            model = WanTransformer3DModel(num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4, text_dim=8,
                                          freq_dim=8, ffn_dim=16, num_layers=1).eval()
            given = dict(hidden_states=torch.randn(1, 4, 1, 4, 4), timestep=torch.tensor([3]), encoder_hidden_states=torch.randn(1, 5, 8),
                         return_dict=False)
            with torch.no_grad():
                want = model(**given)[0]
                have = torch.compile(model, fullgraph=True, backend="eager")(**given)[0]
            print(torch.equal(want, have), hasattr(WanTransformer3DModel.forward, "_fpt"))
        """
        with Supervisor() as s:
            code, out, err = s.run("-c", code, settings={"replay_steps": "true"})
            self.assertEqual((code, out), (0, "True True\n"), err)

    def test_a_loop_of_its_own(self):
        self.through("tiny_framepack.py", 2, 16)

    def test_a_pipeline(self):
        self.through("tiny_wan.py", 1, 20)


if __name__ == "__main__":
    unittest.main()
