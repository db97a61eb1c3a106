"""The rescue vault: the file format, the folder's limits, what a bad disk costs, which decodes are seen."""
import json
import os
import stat
import subprocess
import sys
import textwrap
import time
import unittest
import unittest.mock

from support_vault import PACKAGE, WORKLOADS, Supervisor, kill, until
import torch
from safetensors import safe_open
from safetensors.torch import save_file

sys.path.insert(0, PACKAGE)
from fpt_agent import safetensors, store as files, vault  # noqa: E402

DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32,
          torch.int64, torch.bool, torch.float8_e4m3fn]
DECODE = """
    import sys, time, torch
    from diffusers import AutoencoderKLHunyuanVideo
    torch.manual_seed(0)
    vae = AutoencoderKLHunyuanVideo(block_out_channels=(8, 8, 8, 8), layers_per_block=1, norm_num_groups=4).eval()
    vae.enable_tiling(tile_sample_min_height=32, tile_sample_min_width=32, tile_sample_stride_height=24, tile_sample_stride_width=24)
    z = torch.randn(1, 16, 2, 8, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for _ in range(%d): out = vae.decode(z).sample
    print(tuple(out.shape), round(float(out.double().sum()), 6))
    import fpt_agent.store as f
    if f.store is not None: f.store.flush(120)
"""


def decode(times=1, before=""):
    return before + textwrap.dedent(DECODE % times)


def fill(store, name, size, age=0):
    os.makedirs(store.folder, exist_ok=True)
    path = os.path.join(store.folder, name)
    with open(path, "wb") as file:
        file.write(b"x" * size)
    os.utime(path, (time.time() - age,) * 2)


class Format(unittest.TestCase):
    def file(self, tensors, metadata):
        parts = [safetensors.data_of(t) for t in tensors.values()]
        about = {n: (safetensors.name_of(t.dtype), t.shape, len(p)) for (n, t), p in zip(tensors.items(), parts)}
        path = os.path.join(self.folder, "x.safetensors")
        with open(path, "wb") as file:
            for part in [safetensors.header_of(about, metadata)] + parts:
                file.write(part)
        return path

    def run(self, result=None):
        with Supervisor(listens=False) as s:
            self.folder = s.folder
            return super().run(result)

    def tensors(self):
        g = torch.Generator().manual_seed(0)
        found = {str(d): torch.randint(0, 2, (2, 3, 5), generator=g).to(d) for d in DTYPES}
        return dict(found, normal=torch.randn(7, generator=g), scalar=torch.tensor(3.5), empty=torch.empty(0, 4))

    def test_the_package_reads_what_we_write(self):
        tensors = self.tensors()
        path = self.file(tensors, {"a": "ä\n", "n": 3})
        with safe_open(path, "pt") as file:
            self.assertEqual(file.metadata(), {"a": "ä\n", "n": "3"})
            self.assertEqual(set(file.keys()), set(tensors))
            for name, tensor in tensors.items():
                self.assertEqual(file.get_tensor(name).dtype, tensor.dtype)
                self.assertTrue(torch.equal(file.get_tensor(name).float(), tensor.float()), name)

    def test_we_read_what_the_package_writes(self):
        tensors, path = self.tensors(), os.path.join(self.folder, "y.safetensors")
        save_file(tensors, path, {"k": "v"})
        got, metadata = safetensors.read(path, torch)
        self.assertEqual(metadata, {"k": "v"})
        for name, tensor in tensors.items():
            self.assertEqual((got[name].dtype, got[name].shape), (tensor.dtype, tensor.shape))
            self.assertTrue(torch.equal(got[name].float(), tensor.float()), name)

    def test_a_torn_file_is_refused_at_every_length(self):
        path = self.file({"a": torch.arange(4)}, {})
        with open(path, "rb") as file:
            whole = file.read()
        for length in range(len(whole)):
            with open(path, "wb") as file:
                file.write(whole[:length])
            with self.assertRaises(ValueError):
                safetensors.read(path, torch)

    def test_the_digest_vouches_for_every_byte(self):
        path = self.file({"latents": torch.arange(3), "global_torch": torch.arange(3, dtype=torch.uint8)}, {})
        with open(path, "rb") as file:
            data = file.read()[-27:]
        path = self.file({"latents": torch.arange(3), "global_torch": torch.arange(3, dtype=torch.uint8)},
                         {"sha256": files.sha256([data]), "device": "cuda:0", "key": "\u00e4"})
        _, metadata = safetensors.read(path, torch, sealed=True)
        with open(path, "rb") as file:
            whole = file.read()
        length = int.from_bytes(whole[:8], "little")
        for at in range(8, len(whole)):
            if whole[at:8 + length].strip() == b"" and at < 8 + length:
                continue  # blanks at the header's end
            for mask in (0x01, 0x40):
                with open(path, "wb") as file:
                    file.write(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1:])
                with self.assertRaises((ValueError, LookupError, TypeError, AttributeError), msg=(at, whole[at - 9:at + 9])):
                    if "seal" not in safetensors.read(path, torch, sealed=True)[1]:
                        raise ValueError("its name was hit: an entry without one, and the digest of the data holds")

    def test_an_entry_without_a_seal_is_read(self):
        data = safetensors.data_of(torch.arange(3))
        head = {"__metadata__": {"sha256": files.sha256([data])}, "latents": {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]}}
        text, path = json.dumps(head).encode(), os.path.join(self.folder, "old.safetensors")
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + bytes(data))
        self.assertEqual(safetensors.read(path, torch, sealed=True)[0]["latents"].tolist(), [0, 1, 2])

    def test_a_view_keeps_its_tensor(self):
        views = [safetensors.data_of(torch.full((1000,), i, dtype=torch.uint8)) for i in range(50)]
        self.assertEqual([bytes(v) for v in views], [bytes([i]) * 1000 for i in range(50)])


class Folder(unittest.TestCase):
    def run(self, result=None):
        with Supervisor(listens=False) as s:
            self.store = files.Store(s.vault, limit=1000, run="me")
            return super().run(result)

    def put(self, name, size=100):
        task = files.Task(name, [b"x" * size])
        self.store.put(task)
        self.assertTrue(self.store.flush(120))
        return task.ok

    def names(self):
        return {entry[0] for entry in self.store.entries()}

    def test_other_runs_go_first_then_own_latents_then_own_sections(self):
        fill(self.store, "section.me.1.safetensors", 300, 50)
        fill(self.store, "latents.me.1.safetensors", 300, 40)
        fill(self.store, "latents.other.1.safetensors", 200, 5)
        fill(self.store, "section.other.2.safetensors", 200, 9)
        self.assertTrue(self.put("latents.me.2.safetensors"))
        self.assertEqual(self.names(), {"section.me.1.safetensors", "latents.me.1.safetensors", "latents.other.1.safetensors",
                                        "latents.me.2.safetensors"})
        self.assertTrue(self.put("latents.me.3.safetensors", 300))
        self.assertNotIn("latents.other.1.safetensors", self.names())
        self.assertTrue(self.put("latents.me.4.safetensors", 300))
        self.assertEqual(self.names(), {"section.me.1.safetensors", "latents.me.2.safetensors", "latents.me.3.safetensors",
                                        "latents.me.4.safetensors"})
        # 900 more do not fit beside this run's newest, which stays
        self.assertFalse(self.put("latents.me.5.safetensors", 900))
        self.assertIn("latents.me.4.safetensors", self.names())
        self.assertFalse(self.put("latents.me.6.safetensors", 1001))

    def test_private_and_whole(self):
        self.put("latents.me.1.safetensors")
        self.assertEqual(stat.S_IMODE(os.stat(self.store.folder).st_mode), 0o700)
        path = os.path.join(self.store.folder, "latents.me.1.safetensors")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(os.listdir(self.store.folder), ["latents.me.1.safetensors"])

    def test_torn_files_are_not_seen_and_swept(self):
        fill(self.store, ".part-%d-1" % os.getpid(), 10)
        fill(self.store, ".part-99999999-1", 10)
        self.assertEqual(self.names(), set())
        self.store.sweep()
        self.assertEqual(os.listdir(self.store.folder), [".part-%d-1" % os.getpid()])

    def test_a_slow_disk_neither_blocks_nor_grows_without_bound(self):
        release, write, waiting = __import__("threading").Event(), self.store.write, files.WAITING
        self.store.write = lambda *a: (release.wait(300), write(*a))[1]
        files.WAITING = 250
        try:
            tasks = [files.Task("latents.me.%d.x" % i, [b"x" * 100]) for i in range(10)]
            taken = [self.store.put(task) for task in tasks]
            self.assertEqual(sum(taken), 10, "older ones give way")
            self.assertLessEqual(self.store.waiting, 300)
            steps = [files.Task("step.me.%d.x" % i, [b"x" * 100], tells=False) for i in range(10)]
            self.assertLessEqual(sum([self.store.put(task) for task in steps]), 1, "the first steps are those that count")
            self.assertLessEqual(self.store.waiting, 300)
            self.store.grace(tasks[-1])
            self.assertTrue(self.store.slow)
        finally:
            files.WAITING = waiting
            release.set()
        self.assertTrue(self.store.flush(120))
        self.assertIn("latents.me.9.x", self.names())
        self.assertLessEqual(len(self.names()), 4)

    def test_many_decodes_wait_neither_for_the_disk_nor_for_a_count_of_the_folder(self):
        counts, entries, release, write = [], files.Store.entries, __import__("threading").Event(), self.store.write
        self.store.limit = 1 << 20
        self.store.entries = lambda: counts.append(1) or entries(self.store)
        self.store.write = lambda *a: (release.wait(300), write(*a))[1]
        for i in range(200):
            task = files.Task("latents.me.%03d.x" % i, [b"x" * 100])
            task.presses = False
            self.assertTrue(self.store.put(task))
        self.assertLessEqual(self.store.open, files.MOST_LATENTS + 1)
        release.set()
        self.assertTrue(self.store.flush(120))
        self.assertIn("latents.me.199.x", self.names(), "the newest is what a hang would need")
        self.assertLessEqual(len(counts), 3)  # the first, and another on a slow machine; the last is this test's

    def test_a_full_folder_is_not_counted_for_each_file(self):
        counts, entries = [], files.Store.entries
        self.store.limit = 100000
        for i in range(200):
            fill(self.store, "latents.me.%03d.x" % i, 500, 300 - i)
        fill(self.store, "section.me.1.x", 100, 500)
        self.store.entries = lambda: counts.append(1) or entries(self.store)
        for i in range(200, 230):
            self.assertTrue(self.put("latents.me.%03d.x" % i, 500))
        self.assertLessEqual(len(counts), 8)
        self.assertEqual({n for n in self.names() if n < "section"}, {"latents.me.%03d.x" % i for i in range(31, 230)})

    def test_only_the_first_of_quick_decodes_waits(self):
        now = [5.0]
        with unittest.mock.patch.object(vault.time, "monotonic", lambda: now[0]):
            waits = []
            for after in (0, 0.01, 0.19, 1.5, 0.1, 30):
                now[0] += after
                waits.append(vault.rare(Decodes))
        self.assertEqual(waits, [True, False, False, True, False, True])


class Decodes(unittest.TestCase):
    def plain(self, s):
        code, out, err = s.run("-c", decode(), vault=None)
        self.assertEqual(code, 0, err)
        self.assertFalse(os.path.exists(s.vault))
        return out

    def test_one_file_for_a_decode_and_not_for_its_tiles(self):
        with Supervisor() as s:
            want = self.plain(s)
            self.assertEqual(s.run("-c", decode())[:2], (0, want))
            names = os.listdir(s.vault)
            self.assertEqual(len(names), 1)
            with safe_open(os.path.join(s.vault, names[0]), "pt") as file:
                z = torch.randn(1, 16, 2, 8, 8, generator=torch.Generator().manual_seed(1))
                self.assertTrue(torch.equal(file.get_tensor("latents"), z))
                m = file.metadata()
            self.assertEqual(m["vae_class"].rsplit(".", 1)[1], "AutoencoderKLHunyuanVideo")
            self.assertEqual(json.loads(m["vae_config"])["block_out_channels"], [8, 8, 8, 8])
            self.assertEqual((m["scaling_applied"], m["program"], m["run"], m["attempt"]), ("true", "diffusers", "r1", "1"))
            self.assertEqual(m["sha256"], __import__("hashlib").sha256(bytes(safetensors.data_of(z))).hexdigest())
            self.assertNotIn("prompt", m)

    def test_a_vault_of_no_size_keeps_nothing(self):
        for size in ("0", "0 GiB"):
            with self.subTest(size), Supervisor() as s:
                code, _, err = s.run("-c", "import fpt_agent.store as f\nassert f.store is None", settings={"vault_limit": size})
                self.assertEqual((code, err), (0, ""))
                code, _, err = s.run("-c", decode().replace("f.store.flush", "(lambda _: None)"), settings={"vault_limit": size})
                self.assertEqual(code, 0, err)
                s.wait("bye", count=2)
                self.assertFalse(os.path.exists(s.vault))
                self.assertEqual(s.of("vault") + s.of("problem") + s.of("hook_failed"), [])

    def test_a_bad_disk_is_told_once_and_costs_nothing(self):
        ways = {
            "a file in the way": ("", dict(vault="FILE"), None),
            "read-only": ("", dict(vault="/proc/fpt/vault"), None),
            "full": ("import fpt_agent.store as f\nf.write_all = lambda *a: (_ for _ in ()).throw(OSError(28, 'No space left on device'))\n",
                     {}, "No space left"),
            "full in the middle of a file": (
                "import fpt_agent.store as f\nwhole = f.write_all\n"
                "def half(descriptor, data):\n    whole(descriptor, memoryview(data)[:len(data) // 2])\n    raise OSError(28, 'No space left on device')\n"
                "f.write_all = half\n", {}, "No space left"),
            "file size limit": ("import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n", {}, "File too large"),
            "too little room": ("import fpt_agent.store as f\nf.SPARE = 1 << 60\n", {}, "too little space"),
            "limit": ("", dict(settings={"vault_limit": "1 KiB"}), "vault_limit"),
        }
        with Supervisor() as s:
            want = self.plain(s)
            open(os.path.join(s.folder, "FILE"), "w").close()
            for name, (before, told, text) in ways.items():
                with self.subTest(name):
                    s.messages.clear()
                    told = {k: os.path.join(s.folder, v) if v == "FILE" else v for k, v in told.items()}
                    code, out, err = s.run("-c", decode(3, before), **told)
                    self.assertEqual((code, out), (0, want), err)
                    s.wait("bye")
                    failed = s.of("vault", event="failed")
                    self.assertEqual(len({m["message"].split(": ", 1)[1] for m in failed}), 1, failed)
                    self.assertLessEqual(len(failed), 3)
                    self.assertIn(text or "", failed[0]["message"])
                    self.assertFalse(s.of("hook_failed"))
                    if os.path.isdir(s.vault):
                        self.assertEqual(os.listdir(s.vault), [])

    def test_a_disk_that_is_full(self):
        """A real file system of 72 MiB, filled between the look at its room and the writing: ENOSPC in mid-file."""
        with Supervisor() as s:
            want = self.plain(s)
            s.messages.clear()
            os.mkdir(s.vault)
            mount = "mount -t tmpfs -o size=72m tmpfs '%s'" % s.vault
            for inside in (["unshare", "-m"], ["unshare", "-rm"]):  # a mount of their own: nothing stays mounted
                if subprocess.run([*inside, "sh", "-c", mount], stderr=subprocess.DEVNULL).returncode == 0:
                    break
            else:
                self.skipTest("NOT RUN: no file system may be mounted here")
            before = ("import os, sys\nimport fpt_agent.store as f\nroom = f.Store.make_room\nf.Store.full = 0\n"
                      "def filled(self, size):\n    room(self, size)\n    self.full += 1\n    if self.full != 2: return\n"
                      "    with open(os.path.join(self.folder, 'FULL'), 'wb') as file:\n"
                      "        try:\n            while True: file.write(b'x' * 4096); file.flush()\n        except OSError: pass\n"
                      "        file.truncate(file.tell() // 4096 * 4096 - 4096)\n"
                      "f.Store.make_room = filled\n")
            after = ("\nimport json, fpt_agent.safetensors as t\nf.store.flush(60)\nnames = sorted(os.listdir(f.store.folder))\n"
                     "print([n.split('.')[0] for n in names])\n"
                     "for n in names:\n    if n != 'FULL': print(tuple(t.read(os.path.join(f.store.folder, n), torch, sealed=True)[0]['latents'].shape))\n")
            program = os.path.join(s.folder, "program.py")
            with open(program, "w") as file:
                file.write(decode(3, before) + after)
            done = subprocess.run([*inside, "sh", "-c", "%s && exec '%s' '%s'" % (mount, sys.executable, program)], env=s.environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, cwd=s.folder)
            self.assertEqual((done.returncode, done.stdout), (0, want + "['FULL', 'latents']\n(1, 16, 2, 8, 8)\n"), done.stderr)
            s.wait("bye")
            told = [(m["event"], m["what"]) for m in s.of("vault")]
            self.assertEqual(told[:2], [("saved", "latents"), ("failed", "latents")])
            messages = [m["message"] for m in s.of("vault", event="failed")]
            self.assertIn("No space left on device", messages[0])
            self.assertIn("too little space", messages[1])
            self.assertFalse(s.of("hook_failed"))

    def test_a_disk_that_has_room_again_is_written_to_again(self):
        before = ("import fpt_agent.store as f\nwhole, left = f.write_all, [1, 1]\n"
                  "def full(descriptor, data):\n    if left:\n        left.pop()\n        raise OSError(28, 'No space left on device')\n"
                  "    whole(descriptor, data)\nf.write_all = full\n")
        with Supervisor() as s:
            code, _, err = s.run("-c", decode(4, before))
            self.assertEqual(code, 0, err)
            s.wait("bye")
            self.assertEqual([m["event"] for m in s.of("vault")], ["failed", "failed", "saved", "saved"])
            self.assertEqual(len(os.listdir(s.vault)), 2)

    def test_the_file_is_there_when_the_decode_hangs_at_once(self):
        for script in ("tiny_framepack.py", "tiny_wan.py"):
            with self.subTest(script), Supervisor() as s:
                process = s.start(os.path.join(WORKLOADS, script), "--out", s.folder, "--fault", "hang-idle-gil",
                                  "--fault-section", "1", "--fault-conv", "1")
                self.addCleanup(kill, process)
                until(lambda: os.path.isdir(s.vault) and any(n.startswith("latents.") for n in os.listdir(s.vault)))
                time.sleep(1)  # a second one would be seen
                kill(process)
                names = [n for n in os.listdir(s.vault) if n.startswith("latents.")]
                self.assertEqual(len(names), 1)
                tensors, _ = safetensors.read(os.path.join(s.vault, names[0]), torch)
                self.assertEqual(tensors["latents"].dim(), 5)

    def test_comfyui_and_what_is_inside_its_decode(self):
        comfy = """
            import torch
            class Inner:
                config = {"scaling_factor": 0.5}
            class VAE:
                def __init__(self): self.first_stage_model = Inner()
                def decode(self, samples_in, vae_options={}):
                    return self.decode_tiled(samples_in) + 1
                def decode_tiled(self, samples, tile_x=None): return samples * 2
        """
        with Supervisor() as s:
            os.makedirs(os.path.join(s.folder, "comfy"))
            for name, text in (("__init__.py", ""), ("sd.py", textwrap.dedent(comfy))):
                with open(os.path.join(s.folder, "comfy", name), "w") as file:
                    file.write(text)
            code = ("import sys, torch; sys.path.insert(0, '.')\nimport comfy.sd\nv = comfy.sd.VAE()\nx = torch.ones(1, 4, 8, 8)\n"
                    "print(float(v.decode(x).sum()), float(v.decode_tiled(samples=x).sum()), float(v.decode(x.to('meta')).numel()))\n"
                    "import fpt_agent.store as f; f.store.flush(120)")
            code, out, err = s.run("-c", code)
            self.assertEqual((code, out), (0, "768.0 512.0 256.0\n"), err)
            self.assertEqual(len(os.listdir(s.vault)), 2)
            _, m = safetensors.read(os.path.join(s.vault, sorted(os.listdir(s.vault))[0]), torch)
            self.assertEqual(m["program"], "comfyui")


if __name__ == "__main__":
    unittest.main()
