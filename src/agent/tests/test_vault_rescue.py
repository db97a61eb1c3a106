"""Latents of the vault can be decoded alone, to the frames that the program would have made."""
import os
import sys
import unittest

from support_vault import PACKAGE, Supervisor
import numpy
import torch
from PIL import Image

MAKE = """
import torch
from diffusers import AutoencoderKLHunyuanVideo
torch.manual_seed(0)
AutoencoderKLHunyuanVideo(block_out_channels=(8, 8, 8, 8), layers_per_block=1, norm_num_groups=4).save_pretrained("model/vae")
vae = AutoencoderKLHunyuanVideo.from_pretrained("model/vae").eval()
vae.enable_tiling()
z = torch.randn(1, 16, 3, 8, 8, generator=torch.Generator().manual_seed(1))
with torch.inference_mode():
    out = vae.decode(z).sample
torch.save(((out[0].clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).permute(1, 2, 3, 0).contiguous(), "want.pt")
import fpt_agent.store as f; f.store.flush(120)
"""


class Rescue(unittest.TestCase):
    def test_the_frames_are_those_of_the_program(self):
        with Supervisor() as s:
            code, _, err = s.run("-c", MAKE)
            self.assertEqual(code, 0, err)
            latents = os.path.join(s.vault, os.listdir(s.vault)[0])
            want = torch.load(os.path.join(s.folder, "want.pt"))
            env = {**os.environ, "PYTHONPATH": PACKAGE}
            for out, more in (("told", []), ("given", ["--model", "model"])):
                code, text, err = s.run("-m", "fpt_agent.rescue", latents, "-o", out, *more, env=env)
                self.assertEqual((code, text), (0, "%s: 9 frames of 64 x 64\n" % out), err)
                names = sorted(os.listdir(os.path.join(s.folder, out)))
                have = numpy.stack([numpy.asarray(Image.open(os.path.join(s.folder, out, name))) for name in names])
                self.assertTrue((have == want.numpy()).all())
            with open(os.path.join(s.folder, "torn"), "wb") as file:
                file.write(b"x" * 20)
            code, _, err = s.run("-m", "fpt_agent.rescue", "torn", "-o", "x", env=env)
            self.assertEqual(code, 1)
            self.assertIn("not a safetensors file", err)
            self.assertNotIn("Traceback", err)

    def test_latents_of_a_programs_own_decoder_are_decoded_by_diffusers_class_of_the_family(self):
        code = """
import torch, fpt_agent.store as f
from torch import nn
from diffusers import AutoencoderKLWan
torch.manual_seed(0)
AutoencoderKLWan(base_dim=8, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1).save_pretrained("model")
inner = AutoencoderKLWan.from_pretrained("model").eval()
inner.enable_tiling()
class OwnWan(nn.Module):
    def __init__(self): super().__init__(); self.inner = inner
    def encode(self, x, scale): return x
    def decode(self, z, scale):
        return self.inner.decode(z / scale[1].view(1, -1, 1, 1, 1) + scale[0].view(1, -1, 1, 1, 1), return_dict=False)[0]
g = torch.Generator().manual_seed(1)
scale = [torch.randn(16, generator=g), 1 / (torch.rand(16, generator=g) + 1)]
with torch.inference_mode():
    out = OwnWan().decode(torch.randn(1, 16, 2, 4, 4, generator=g), scale)
torch.save(((out[0].clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).permute(1, 2, 3, 0).contiguous(), "want.pt")
f.store.flush(120)
"""
        with Supervisor() as s:
            code, _, err = s.run("-c", code)
            self.assertEqual(code, 0, err)
            (name,) = os.listdir(s.vault)
            latents, env = os.path.join(s.vault, name), {**os.environ, "PYTHONPATH": PACKAGE}
            code, text, err = s.run("-m", "fpt_agent.rescue", latents, "-o", "out", "--model", "model", env=env)
            self.assertEqual((code, text), (0, "out: 5 frames of 32 x 32\n"), err)
            names = sorted(os.listdir(os.path.join(s.folder, "out")))
            have = numpy.stack([numpy.asarray(Image.open(os.path.join(s.folder, "out", name))) for name in names])
            want = torch.load(os.path.join(s.folder, "want.pt")).numpy()
            self.assertLessEqual(abs(have.astype(int) - want.astype(int)).max(), 1)  # 1 / (1 / std) is not std to the last bit
            code, _, err = s.run("-m", "fpt_agent.rescue", latents, "-o", "x", env=env)
            self.assertEqual(code, 1)
            self.assertIn("give --model FOLDER with the weights of the same model for diffusers' AutoencoderKLWan", err)

    def test_a_decoder_inside_a_pipeline_of_the_hub(self):
        with Supervisor() as s:
            hub = os.path.join(s.folder, "home", "hub", "models--some--pipeline")
            os.makedirs(os.path.join(hub, "refs"))
            with open(os.path.join(hub, "refs", "main"), "w") as file:
                file.write("0" * 40)
            snapshot = "home/hub/models--some--pipeline/snapshots/" + "0" * 40 + "/vae"
            code = MAKE.replace('save_pretrained("model/vae")', 'save_pretrained("%s")' % snapshot)
            code = code.replace('from_pretrained("model/vae")', 'from_pretrained("some/pipeline", subfolder="vae")')
            more = {"HF_HOME": os.path.join(s.folder, "home"), "HF_HUB_OFFLINE": "1"}
            code, _, err = s.run("-c", code, env={**s.environment(), **more})
            self.assertEqual(code, 0, err)
            latents = os.path.join(s.vault, os.listdir(s.vault)[0])
            code, text, err = s.run("-m", "fpt_agent.rescue", latents, "-o", "out", env={**os.environ, "PYTHONPATH": PACKAGE, **more})
            self.assertEqual((code, text), (0, "out: 9 frames of 64 x 64\n"), err)


if __name__ == "__main__":
    unittest.main()
