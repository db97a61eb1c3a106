"""Real diffusers pipelines with tiny random weights, and the FramePack-shaped app as a program of its own."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from support_mem import PYTHON, ROOT, AgentTest

from fpt_agent import phases
from fpt_agent.state import state


def wan():
    """WanPipeline, random weights, the same in every call."""
    import torch
    from diffusers import AutoencoderKLWan, FlowMatchEulerDiscreteScheduler, WanPipeline, WanTransformer3DModel

    torch.manual_seed(0)
    transformer = WanTransformer3DModel(num_attention_heads=2, attention_head_dim=24, text_dim=32, freq_dim=32,
                                        ffn_dim=64, num_layers=1, rope_max_seq_len=64).eval()
    vae = AutoencoderKLWan(base_dim=8, z_dim=16, dim_mult=[1, 1, 2, 2], num_res_blocks=1).eval()
    pipe = WanPipeline(tokenizer=None, text_encoder=None, vae=vae, transformer=transformer,
                       scheduler=FlowMatchEulerDiscreteScheduler(shift=5.0))
    pipe.set_progress_bar_config(disable=True)
    return pipe


def call(pipe, run=None, output_type="pt", **more):
    import torch

    g = torch.Generator("cpu").manual_seed(1)
    embeds = torch.randn(1, 8, 32, generator=g)
    run = pipe if run is None else run
    return run(prompt_embeds=embeds, negative_prompt_embeds=embeds * 0, height=32, width=32, num_frames=5,
               num_inference_steps=2, generator=g, output_type=output_type, **more).frames


class Pipelines(AgentTest):
    @classmethod
    def setUpClass(cls):
        cls.pipe = wan()

    def test_phases_in_order(self):
        call(self.pipe)
        self.assertEqual(self.path(), ["unknown", "text_encode", "unknown", "sampling", "vae_decode", "unknown", "offload",
                                       "unknown"])
        decode = self.sent("phase", phase="vae_decode")[0]
        self.assertEqual((decode["model"], decode["shape"]), ("AutoencoderKLWan", [1, 16, 2, 4, 4]))
        self.assertEqual([m["state"] for m in self.sent("job")], ["started", "ended"])

    def test_a_decode_by_hand_behind_the_pipeline_is_its_own_phase(self):
        import torch

        latents = call(self.pipe, output_type="latent")
        held, plain = [], self.pipe.vae._decode

        def decode(*args, **kwargs):
            held.append(state.beat()["holder"])
            return plain(*args, **kwargs)

        self.pipe.vae._decode = decode
        try:
            with torch.no_grad():
                self.pipe.vae.decode(latents, return_dict=False)
        finally:
            self.pipe.vae._decode = plain
        self.assertEqual(self.path()[-3:], ["unknown", "vae_decode", "unknown"])
        self.assertEqual(self.sent("job")[-1]["state"], "ended")
        self.assertEqual(held, [threading.get_native_id()])

    def test_bit_for_bit(self):
        plain = type(self.pipe).__call__.__wrapped__
        self.assertTrue(call(self.pipe).equal(call(self.pipe, lambda **more: plain(self.pipe, **more))))

    def test_the_second_call_is_a_second_job(self):
        call(self.pipe)
        call(self.pipe)
        names = [m["id"] for m in self.sent("job")]
        self.assertEqual(len(set(names)), 2)

    def test_without_a_bar_the_first_step_counts(self):
        pipe = self.pipe

        def quiet(total):
            import contextlib

            return contextlib.nullcontext(type("Bar", (), {"update": lambda self: None})())

        pipe.progress_bar = quiet
        try:
            call(pipe)
        finally:
            del pipe.progress_bar
        self.assertIn("sampling", self.path())
        self.assertEqual(len(pipe.transformer._forward_pre_hooks), 0)

    def test_inside_another_job_it_says_nothing(self):
        with phases.Job("prompt", rest="idle"):
            call(self.pipe)
            self.assertEqual(state.phase, "unknown")
        self.assertEqual([m["id"] for m in self.sent("job")], ["prompt", "prompt"])

    def test_the_exception_is_the_programs_own(self):
        error = RuntimeError("mine")

        def bad(*args, **kwargs):
            raise error

        self.pipe.vae._decode, plain = bad, self.pipe.vae._decode
        try:
            with self.assertRaises(RuntimeError) as caught:
                call(self.pipe)
        finally:
            self.pipe.vae._decode = plain
        self.assertIs(caught.exception, error)
        self.assertEqual([m["phase"] for m in self.sent("error")], ["vae_decode"])
        self.assertEqual(self.sent("job")[-1]["error"], "RuntimeError: mine")
        self.assertEqual(state.spans(), [])

    def test_a_subclass_that_calls_its_parent(self):
        class Mine(type(self.pipe)):
            def __call__(self, *args, **kwargs):
                return super().__call__(*args, **kwargs)

        mine = Mine(**self.pipe.components)
        mine.set_progress_bar_config(disable=True)
        call(mine)
        self.assertEqual([m["state"] for m in self.sent("job")], ["started", "ended"])

    def test_loading(self):
        from diffusers import AutoencoderKLWan

        with tempfile.TemporaryDirectory() as folder:
            self.pipe.vae.save_pretrained(folder)
            AutoencoderKLWan.from_pretrained(folder)
        self.assertEqual(self.path(), ["model_load", "startup"])
        self.assertEqual(self.sent("phase")[0]["model"], "AutoencoderKLWan")

    def test_names_and_signatures_stay(self):
        import inspect

        from diffusers import AutoencoderKLWan, DiffusionPipeline, WanPipeline

        hook = DiffusionPipeline.__init_subclass__
        self.assertEqual((hook.__name__, hook.__doc__), ("__init_subclass__", object.__init_subclass__.__doc__))
        for owner, name in ((WanPipeline, "__call__"), (WanPipeline, "to"), (AutoencoderKLWan, "decode"), (DiffusionPipeline, "from_pretrained")):
            found = getattr(owner, name)
            self.assertNotIn("kwargs", list(inspect.signature(found).parameters)[:1])
            self.assertEqual((found.__name__, found.__module__.split(".")[0]), (name, "diffusers"))
            self.assertNotIn("fpt_agent", inspect.getsource(found))

    def test_a_decode_outside_a_pipeline(self):
        import torch

        with torch.no_grad():
            self.pipe.vae.decode(torch.zeros(1, 16, 1, 4, 4))
        self.assertEqual(self.path(), ["vae_decode", "startup"])


class Compiled(AgentTest):
    def test_a_compiled_decode_has_no_break(self):
        import torch
        from test_memory import autoencoder

        model = autoencoder("AutoencoderKL")
        latents = torch.randn(1, 4, 4, 4)
        with torch.no_grad():
            want = model.decode(latents, return_dict=False)[0]
            self.messages.clear()
            seen = torch.compile(model.decode, backend="eager", fullgraph=True)(latents, return_dict=False)[0]
        self.assertTrue(seen.equal(want))
        self.assertEqual(self.messages, [])


class App(unittest.TestCase):
    """tests/workloads/tiny_framepack_app.py under the agent, messages through the real socket."""

    def run_app(self, *arguments, **settings):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            server = socket.socket(socket.AF_UNIX)
            server.bind(path)
            server.listen(4)
            messages = []

            def listen():
                connection, _ = server.accept()
                with connection, connection.makefile("r", encoding="utf-8") as lines:
                    messages.extend(json.loads(line) for line in lines)

            thread = threading.Thread(target=listen, daemon=True)
            thread.start()
            env = dict(os.environ, FPT_AGENT_SOCKET=path, FPT_AGENT_CONFIG=json.dumps({"settings": settings}),
                       PYTHONPATH=PYTHON)
            done = subprocess.run(
                [sys.executable, os.path.join(ROOT, "tests", "workloads", "tiny_framepack_app.py"), "--job", "once",
                 "--exit-on-error", "--sections", "2", "--steps", "2", "--window", "2", "--size", "64", "--out",
                 os.path.join(folder, "out"), *arguments],
                env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=300)
            thread.join(10)
            server.close()
        self.assertEqual([m for m in messages if m["type"] == "hook_failed"], [])
        return done, messages

    def test_a_job_with_settings(self):
        # a decode needs more than is free while the transformer is only offloaded in part
        done, messages = self.run_app("--decode-needs", "12", full_unload="true", vae_tile="32", preserved_memory="+2 GiB")
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])
        self.assertIn("with preserved memory: 8.0 GB", done.stdout)
        self.assertIn("to preserve memory: inf GB", done.stdout)
        self.assertEqual(sorted(m["what"] for m in messages if m["type"] == "fix"),
                         ["full_unload", "preserved_memory", "vae_tile"])
        seen = [(m["phase"], m.get("section"), m.get("sections")) for m in messages if m["type"] == "phase"
                if m["phase"] in ("sampling", "vae_decode", "save")]
        self.assertEqual(seen, [(phase, section, 2) for section in (1, 2) for phase in ("sampling", "vae_decode", "save")])
        self.assertEqual([m["state"] for m in messages if m["type"] == "job"], ["started", "ended"])

    def test_without_the_setting_the_job_fails(self):
        done, messages = self.run_app("--decode-needs", "12")
        self.assertEqual(done.returncode, 1)
        last = [m for m in messages if m["type"] == "job"][-1]
        self.assertEqual(last["state"], "failed")
        self.assertTrue(last["error"].startswith("OutOfMemoryError"), last["error"])
        self.assertEqual([m["phase"] for m in messages if m["type"] == "error"], ["vae_decode"])


if __name__ == "__main__":
    unittest.main()
