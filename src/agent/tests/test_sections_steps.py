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

    def program(self, body):
        """A loop over a small transformer whose steps take 0.15 s and are worth a file from 0.05 s on."""
        return """if 1:
            import os, sys, time
            import torch
            from diffusers import WanTransformer3DModel
            from fpt_agent import steps, store
            steps.WORTH_S, steps.TIMES = 0.05, 0
            torch.manual_seed(0)
            model = WanTransformer3DModel(num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4, text_dim=8,
                                          freq_dim=8, ffn_dim=16, num_layers=1).eval()
            class Lora(torch.nn.Module):
                def __init__(self, base):
                    super().__init__()
                    self.base, self.strength = base, 0.0
                def forward(self, x):
                    return self.base(x) + self.strength * x[..., :1].sum(-1, keepdim=True)
            lora = model.blocks[0].ffn = Lora(model.blocks[0].ffn)
            pipe = os.pipe()
            os.set_blocking(pipe[0], False)
            def counted():
                try:
                    return len(os.read(pipe[0], 4096))
                except BlockingIOError:
                    return 0
            plain = model.condition_embedder.forward
            def slow(*args, **kwargs):
                os.write(pipe[1], b".")  # counted outside of Python: what a function reads there belongs to the key
                time.sleep(0.15)
                return plain(*args, **kwargs)
            model.condition_embedder.forward = slow
            start, text = torch.randn(1, 4, 1, 4, 4), torch.randn(1, 5, 8)
            def film():
                x = start
                with torch.no_grad():
                    for t in (900, 700, 500, 300, 100):
                        x = x - 0.3 * model(hidden_states=x, timestep=torch.tensor([t]), encoder_hidden_states=text, return_dict=False)[0]
                return x.double().sum().item()
            def die():
                if store.store is not None:
                    store.store.flush(60)
                sys.stdout.flush()
                os._exit(9)
        """ + body

    def test_steps_that_were_handed_back_keep_their_worth(self):
        code = self.program("""
            print(film(), counted())
            die()
        """)
        with Supervisor() as s:
            died, first, err = s.run("-c", code)
            self.assertEqual((died, first.split()[1]), (9, "5"), err)
            died, second, err = s.run("-c", code, attempt=2, resume=True)
            self.assertEqual((died, second.split()), (9, [first.split()[0], "0"]), err)

    def test_another_strength_of_a_lora_is_another_model(self):
        code = self.program("""
            for lora.strength in map(float, os.environ["STRENGTHS"].split()):
                print(film(), counted())
            die()
        """)
        with Supervisor() as s:
            def run(strengths, **told):
                died, out, err = s.run("-c", code, env=dict(s.environment(**told), STRENGTHS=strengths))
                self.assertEqual(died, 9, err)
                return [line.split() for line in out.splitlines()]

            ((zero, _),) = run("0")
            (again, zeroed), (half, computed) = run("0 0.5", attempt=2, resume=True)
            self.assertEqual((again, zeroed, computed), (zero, "0", "5"))
            ((want, _),) = run("0.5", vault=None)
            self.assertEqual(half, want)

    def test_a_damaged_step_is_computed_anew_and_told(self):
        code = self.program("""
            print(film(), counted())
            die()
        """)
        with Supervisor() as s:
            _, first, _ = s.run("-c", code)
            path = os.path.join(s.vault, sorted(n for n in os.listdir(s.vault) if n.startswith("step."))[0])
            with open(path, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                byte = file.read(1)[0]
                file.seek(-1, os.SEEK_END)
                file.write(bytes([byte ^ 0x40]))
            _, second, err = s.run("-c", code, attempt=2, resume=True)
            self.assertEqual(second.split(), [first.split()[0], "1"], err)
            self.assertEqual([m["path"] for m in s.wait("vault", seconds=20, event="failed")], [path])
            _, other, _ = s.run("-c", code, run="r2", attempt=2, resume=True)
            self.assertEqual(other.split(), [first.split()[0], "5"], "another run's steps are none of ours")

    def test_a_loop_of_its_own(self):
        self.through("tiny_framepack.py", 2, 16)

    def test_a_pipeline(self):
        self.through("tiny_wan.py", 1, 20)


if __name__ == "__main__":
    unittest.main()
