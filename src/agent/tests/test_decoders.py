"""Autoencoders of a program's own are known by their shape: phases, latents in the vault, what is none of them left alone."""
import filecmp
import json
import os
import sys
import unittest

from support_vault import PACKAGE, WORKLOADS, Supervisor, kill
from safetensors import safe_open

SHAPES = os.path.join(WORKLOADS, "decoder_shapes")
#: Script and arguments -> family, shape of the latents, whether they are in the decoder's own space.
KINDS = {
    ("wan_reference.py",): ("wan", [1, 16, 3, 8, 8], "false"),
    ("wan_reference.py", "--two"): ("wan2.2", [1, 48, 3, 4, 4], "false"),
    ("musubi.py",): ("wan", [1, 16, 3, 8, 8], "false"),
    ("diffsynth.py",): ("wan", [1, 16, 3, 8, 8], "false"),
    ("diffsynth.py", "--tiled"): ("wan", [1, 16, 3, 8, 8], "false"),
    ("wan_wrapper.py",): ("wan", [1, 16, 3, 8, 8], "false"),
    ("wan_wrapper.py", "--tiled"): ("wan", [1, 16, 3, 8, 8], "false"),
    ("hunyuan_reference.py",): ("hunyuan", [1, 16, 3, 8, 8], "true"),
}


def entries(supervisor):
    """Metadata and latents of each entry."""
    found = []
    for name in sorted(os.listdir(supervisor.vault)) if os.path.isdir(supervisor.vault) else ():
        with safe_open(os.path.join(supervisor.vault, name), "pt") as file:
            found.append((file.metadata(), file.get_tensor("latents")))
    return found


def phases(supervisor):
    """The phases of the program, in order, without those that stand for nothing known."""
    return [m["phase"] for m in supervisor.of("phase") if m["phase"] not in ("unknown", "startup")]


class Programs(unittest.TestCase):
    def test_phases_and_latents_of_each_shape(self):
        for (script, *more), (family, shape, scaled) in KINDS.items():
            with self.subTest([script, *more]), Supervisor() as s:
                code, _, err = s.run(os.path.join(SHAPES, script), *more)
                self.assertEqual(code, 0, err)
                s.wait("bye")
                seen = [phase for phase in phases(s) if phase != "vae_encode"]
                self.assertEqual(seen, ["sampling", "vae_decode", "save"])
                self.assertEqual(s.of("hook_failed"), [])
                self.assertEqual(s.of("problem"), [])
                ((metadata, latents),) = entries(s)
                told = (metadata["vae_family"], json.loads(metadata["shape"]), metadata["scaling_applied"])
                self.assertEqual(told, (family, shape, scaled))
                self.assertEqual(list(latents.shape), shape)
                self.assertEqual((metadata["program"], metadata["known_by"], metadata["latent_frames"]), ("other", "shape", "3"))

    def test_the_video_is_the_same_with_and_without_the_agent(self):
        for script in ("diffsynth.py",):
            with self.subTest(script), Supervisor() as s:
                for out, env in (("with", None), ("without", {**os.environ, "FPT_AGENT_SOCKET": ""})):
                    code, _, err = s.run(os.path.join(SHAPES, script), "--out", out, env=env)
                    self.assertEqual(code, 0, err)
                name = script.replace(".py", ".mp4")
                self.assertTrue(filecmp.cmp(*(os.path.join(s.folder, out, name) for out in ("with", "without")), shallow=False))

    def test_a_decode_that_hangs_has_its_latents_on_the_disk(self):
        for script in ("wan_reference.py", "musubi.py", "diffsynth.py", "wan_wrapper.py", "hunyuan_reference.py"):
            with self.subTest(script), Supervisor() as s:
                process = s.start(os.path.join(SHAPES, script), "--fault", "hang-idle", "--fault-conv", "3")
                beats = s.wait("beat", count=3, phase="vae_decode")
                kill(process)
                self.assertEqual([op["name"] for op in beats[-1]["ops"]], ["conv3d"])
                ((metadata, latents),) = entries(s)
                self.assertEqual((metadata["vae_class"].rpartition(".")[2][-3:] != "", latents.dim()), (True, 5))
                self.assertEqual(phases(s)[-2:], ["sampling", "vae_decode"])


CLASSES = """
import torch, fpt_agent.decoders as d, fpt_agent.store as f
from torch import nn
class Tokens(nn.Module):
    def encode(self, text): return [1, 2]
    def decode(self, ids, skip_special_tokens=True): return "text"
class Codec(nn.Module):
    def __init__(self):
        super().__init__(); self.a = nn.Conv1d(8, 8, 3, padding=1)
    def encode(self, x): return self.a(x)
    def decode(self, z): return self.a(z)
class Mask(nn.Module):
    "the size of what goes in: no decoder"
    def __init__(self):
        super().__init__(); self.convs = nn.ModuleList(nn.Conv3d(8, 8, 3, padding=1) for _ in range(4))
    def encode(self, x): return x
    def decode(self, z):
        for conv in self.convs: z = conv(z)
        return z
assert Tokens().decode([1, 2]) == "text" and Tokens().decode(ids=torch.ones(2, dtype=torch.long)) == "text"
assert Codec().decode(torch.ones(1, 8, 4)).shape == (1, 8, 4)
mask = Mask()
with torch.no_grad():
    assert mask.decode(torch.ones(1, 8, 2, 4, 4)).shape == (1, 8, 2, 4, 4)
    mask.decode(torch.ones(1, 8, 2, 4, 4))
assert Mask not in d.candidates and Codec in d.candidates
import json; json.JSONDecoder().decode("1"); b"a".decode()
f.store.flush(120)
"""

SCRIPTED = """
import sys; sys.path.insert(0, ".")
import torch
from scripted import Whole
whole = Whole()
plain = whole(torch.ones(1, 8, 2, 4, 4))
assert torch.equal(torch.jit.script(whole)(torch.ones(1, 8, 2, 4, 4)), plain)
assert torch.equal(torch.compile(whole, backend="eager", fullgraph=True)(torch.ones(1, 8, 2, 4, 4)), plain)
import copy, pickle; pickle.loads(pickle.dumps(whole)); copy.deepcopy(whole)
import inspect; assert list(inspect.signature(Whole.decode).parameters) == ["self", "z", "factor"]
print("as it was")
"""
WHOLE = """
import torch
import torch.nn.functional as names_of_the_program
class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.convs = torch.nn.ModuleList([torch.nn.Conv3d(8, 8, 3, padding=1) for _ in range(4)])
    @torch.jit.export
    def encode(self, z):
        return z
    @torch.jit.export
    def decode(self, z, factor: int = 8):
        for conv in self.convs: z = conv(z)
        return names_of_the_program.interpolate(z, scale_factor=(1.0, float(factor), float(factor)))
    def forward(self, z):
        return self.decode(z, 8)
"""


class Others(unittest.TestCase):
    def test_what_only_has_the_names_is_left_alone(self):
        with Supervisor() as s:
            code, _, err = s.run("-c", CLASSES)
            self.assertEqual(code, 0, err)
            s.wait("bye")
            # the first call alone is taken for a decode, until its result is seen
            self.assertEqual([m["phase"] for m in s.of("phase")], ["vae_decode", "startup"])
            self.assertEqual(entries(s), [])
            self.assertEqual(s.of("hook_failed"), [])

    def test_torchscript_compilers_and_pickle_find_the_class_as_it_was(self):
        with Supervisor() as s:
            with open(os.path.join(s.folder, "scripted.py"), "w") as file:
                file.write(WHOLE)
            code, out, err = s.run("-c", SCRIPTED)
            self.assertEqual((code, out), (0, "as it was\n"), err)

    def test_a_program_without_a_known_decoder_says_at_once_that_nothing_can_be_kept(self):
        bars = "import torch\nfrom tqdm import tqdm\nfor name in tqdm(['a', 'b']): pass\nfor n in tqdm(range(3), desc='Loading'): pass\n"
        with Supervisor() as s:
            code, _, err = s.run("-c", bars)
            self.assertEqual((code, s.of("problem")), (0, []), err)
            code, _, err = s.run("-c", bars + "for t in tqdm(torch.arange(3)): pass\nfor t in tqdm(torch.arange(3)): pass\n")
            self.assertEqual(code, 0, err)
            s.wait("bye", count=2)
            (told,) = s.of("problem")
            self.assertTrue(told["text"].startswith("nothing of this run can be kept: "), told)
            self.assertEqual(phases(s), [])


BARS = """
import torch
from torch import nn
from tqdm import tqdm
import fpt_agent.phases as phases, fpt_agent.store as f
class Pictures(nn.Module):
    "a decoder of pictures, as previews have"
    def __init__(self):
        super().__init__(); self.convs = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in range(4))
    def encode(self, x): return x
    def decode(self, z):
        for conv in self.convs: z = conv(z)
        return nn.functional.interpolate(z, scale_factor=8.0)
small = Pictures()
@torch.no_grad()
def sample():
    for t in tqdm(torch.arange(3), desc="Sampling"):
        small.decode(torch.ones(1, 16, 4, 4))
for name in tqdm(["a", "b"]): pass
for clip in tqdm([torch.ones(16, 3, 4, 4)] * 2): pass
for batch in tqdm(torch.utils.data.DataLoader([1, 2])): pass
for n in tqdm(range(3), desc="Loading weights"): pass
for n in tqdm(range(3), unit="B"): pass
print("none so far", flush=True)
with phases.Job("node", rest="idle"):  # as a prompt of ComfyUI
    sample()
    with torch.no_grad(): small.decode(torch.ones(1, 16, 4, 4))
f.store.flush(120)
"""


class Bars(unittest.TestCase):
    def test_sampling_is_a_bar_of_steps_inside_a_job_too_and_previews_are_part_of_it(self):
        with Supervisor() as s:
            code, _, err = s.run("-c", BARS)
            self.assertEqual(code, 0, err)
            s.wait("bye")
            self.assertEqual([m["phase"] for m in s.of("phase")], ["unknown", "sampling", "unknown", "vae_decode", "unknown", "idle"])
            self.assertEqual(len(entries(s)), 1, "the last decode alone")
            self.assertEqual((s.of("hook_failed"), s.of("problem")), ([], []))


class Tiles(unittest.TestCase):
    def test_a_method_that_takes_tiles_gets_those_of_the_profile(self):
        for script, shared in (("diffsynth.py", 16), ("hunyuan_reference.py", 16)):
            with self.subTest(script), Supervisor() as s:
                more = ("--tiled",) if script.startswith("hunyuan") else ()
                code, _, err = s.run(os.path.join(SHAPES, script), *more, settings={"vae_tile": "32", "vae_overlap": str(shared)})
                self.assertEqual(code, 0, err)
                s.wait("bye")
                (told,) = s.of("fix", what="vae_tile")
                self.assertEqual((told["tile"], told["overlap"]), (32, shared))

    def test_what_cannot_be_followed_is_a_problem(self):
        with Supervisor() as s:
            code, _, err = s.run(os.path.join(SHAPES, "wan_reference.py"), settings={"vae_tile": "32", "vae_device": "cpu"})
            self.assertEqual(code, 0, err)
            s.wait("bye")
            self.assertEqual(sorted(m["text"].partition(":")[0] for m in s.of("problem")), ["vae_device = cpu", "vae_tile = 32"])


if __name__ == "__main__":
    sys.path.insert(0, PACKAGE)
    unittest.main()
