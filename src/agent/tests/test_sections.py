"""FramePack's sections: what was finished before a death is not sampled again, and nobody sees the difference."""
import json
import os
import re
import textwrap
import time
import unittest

from support_vault import WORKLOADS, Supervisor, kill, until

APP = os.path.join(WORKLOADS, "tiny_framepack_app.py")


def films(folder):
    """name without the job's own part -> bytes"""
    found = {}
    for name in os.listdir(folder):
        if name.endswith(".mp4"):
            with open(os.path.join(folder, name), "rb") as file:
                found[name.rsplit("_", 1)[1]] = file.read()
    return found


def entries(s, what):
    """What lies in the vault, whether or not it could still be told."""
    if not os.path.isdir(s.vault):
        return []
    return [name for name in os.listdir(s.vault) if name.startswith(what + ".")]


def steps(out):
    return int(re.search(r"\((\d+) model steps\)", out).group(1))


class Sections(unittest.TestCase):
    def run_app(self, s, out, *more, **told):
        return s.run(APP, "--out", os.path.join(s.folder, out), "--exit-on-error", *more, **told)

    def test_a_hang_after_section_two_costs_only_the_decode(self):
        for fault in ("hang-idle", "hang-idle-gil"):
            with self.subTest(fault), Supervisor() as s:
                code, out, err = self.run_app(s, "undisturbed", env=None, vault=None)
                self.assertEqual(code, 0, err)
                self.assertEqual(steps(out), 24)
                s.messages.clear()
                process = s.start(APP, "--out", os.path.join(s.folder, "films"), "--fault", fault)
                self.addCleanup(kill, process)
                until(lambda: len(entries(s, "latents")) == 2 == len(entries(s, "section")))
                time.sleep(1)  # a decode that did not hang would begin the next section
                kill(process)
                code, out, err = self.run_app(s, "films", attempt=2, resume=True)
                self.assertEqual(code, 0, err)
                self.assertEqual(steps(out), 8)
                self.assertEqual(len(s.of("vault", event="replayed")), 2)
                self.assertFalse(s.of("hook_failed"))
                want, have = films(os.path.join(s.folder, "undisturbed")), films(os.path.join(s.folder, "films"))
                self.assertEqual(len(want), 3)
                self.assertEqual(want, have)

    def test_another_seed_and_another_setting_are_sampled_anew(self):
        with Supervisor() as s:
            code, _, err = self.run_app(s, "a", "--sections", "1", "--steps", "3")
            self.assertEqual(code, 0, err)
            for change in (["--seed", "2"], ["--gs", "7"], ["--prompt", "a cat"], ["--teacache"]):
                code, out, err = self.run_app(s, "b", "--sections", "1", "--steps", "3", *change, attempt=2, resume=True)
                self.assertEqual((code, steps(out)), (0, 3), (change, err))
            code, out, _ = self.run_app(s, "c", "--sections", "1", "--steps", "3", attempt=2, resume=True)
            self.assertEqual((code, steps(out)), (0, 0))
            code, out, _ = self.run_app(s, "d", "--sections", "1", "--steps", "3")
            self.assertEqual((code, steps(out)), (0, 3), "without resume nothing is handed back")
            code, out, _ = self.run_app(s, "e", "--sections", "1", "--steps", "3", settings={"replay": "true"})
            self.assertEqual((code, steps(out)), (0, 0))
            code, out, _ = self.run_app(s, "f", "--sections", "1", "--steps", "3", resume=True, settings={"replay": "false"})
            self.assertEqual((code, steps(out)), (0, 3))

    def test_only_entries_of_the_own_run_are_handed_back(self):
        with Supervisor() as s:
            for run in ("r1", "r.1", None):
                code, out, err = self.run_app(s, "a", "--sections", "1", "--steps", "2", run=run, resume=True)
                self.assertEqual((code, steps(out)), (0, 2), (run, err))
            code, out, err = self.run_app(s, "a", "--sections", "1", "--steps", "2", run=None, resume=True)
            self.assertEqual((code, steps(out)), (0, 2), "without a run there is no own one")
            # names of two runs that are one in a file's name
            code, out, err = self.run_app(s, "a", "--sections", "1", "--steps", "2", run="r-1", resume=True)
            self.assertEqual((code, steps(out)), (0, 2), err)
            code, out, err = self.run_app(s, "a", "--sections", "1", "--steps", "2", run="r1", attempt=2, resume=True)
            self.assertEqual((code, steps(out)), (0, 0), err)

    def test_a_damaged_section_is_sampled_anew_and_told(self):
        with Supervisor() as s:
            code, _, err = self.run_app(s, "want", "--sections", "1", "--steps", "2")
            self.assertEqual(code, 0, err)
            (name,) = entries(s, "section")
            path = os.path.join(s.vault, name)
            with open(path, "r+b") as file:
                length = int.from_bytes(file.read(8), "little")
                begin = json.loads(file.read(length))["latents"]["data_offsets"][0]
                file.seek(8 + length + begin + 3)
                byte = file.read(1)[0]
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte ^ 0x40]))
            code, out, err = self.run_app(s, "have", "--sections", "1", "--steps", "2", attempt=2, resume=True)
            self.assertEqual((code, steps(out)), (0, 2), err)
            s.wait("bye", count=2)
            (failed,) = s.of("vault", event="failed")
            self.assertEqual((failed["what"], failed["path"]), ("section", path))
            self.assertIn("not what was written", failed["message"])
            self.assertFalse(s.of("hook_failed") + s.of("vault", event="replayed"))
            self.assertEqual(films(os.path.join(s.folder, "want")), films(os.path.join(s.folder, "have")))
            # what was sampled has taken the place of the damaged one
            code, out, err = self.run_app(s, "again", "--sections", "1", "--steps", "2", attempt=3, resume=True)
            self.assertEqual((code, steps(out)), (0, 0), err)

    def test_the_random_sources_lie_under_the_digest(self):
        code = """
            import json, os, random, sys, numpy, torch
            from fpt_agent import sections, safetensors, store as files
            def plain(generator): return torch.rand(3, generator=generator) + random.random() + numpy.random.rand() + torch.rand(1)
            sample = sections.kept(plain)
            def once():
                random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
                got = sample(generator=torch.Generator().manual_seed(2))
                return got.tolist() + [random.random(), numpy.random.rand(), torch.rand(1).item()]
            sections.config.resume = True
            first = once()
            assert files.store.flush(60)
            (name,) = os.listdir(files.store.folder)
            tensors, metadata = safetensors.read(os.path.join(files.store.folder, name), torch, sealed=True)
            print(sorted(tensors), sorted(n for n in metadata if "random" in n))
            print(once() == first)
            # as an earlier version wrote them
            for source in ("python", "numpy"): metadata[source + "_random"] = bytes(tensors.pop("global_" + source).tolist()).decode()
            random.seed(9), numpy.random.seed(9)
            sections.put_back(tensors, metadata, torch)
            print([random.random(), numpy.random.rand()] == first[3:5])
        """
        with Supervisor() as s:
            code, out, err = s.run("-c", textwrap.dedent(code))
            self.assertEqual((code, out), (0, "['generator_generator', 'global_numpy', 'global_python', 'global_torch', 'latents'] []\n"
                                              "True\nTrue\n"), err)
            s.wait("vault", event="replayed", what="section")

    def test_a_vault_that_takes_nothing_costs_only_the_vault(self):
        with Supervisor() as s:
            code, out, err = self.run_app(s, "films", "--sections", "2", "--steps", "2", settings={"vault_limit": "1 KiB"})
            self.assertEqual((code, steps(out)), (0, 4), err)
            s.wait("bye")
            failed = s.of("vault", event="failed")
            self.assertLessEqual({"latents", "section"}, {m["what"] for m in failed})
            self.assertTrue(all("vault_limit" in m["message"] for m in failed))
            self.assertFalse(s.of("hook_failed"))
            self.assertEqual(entries(s, "latents") + entries(s, "section"), [])
            self.assertEqual([m["state"] for m in s.of("job")], ["started", "ended"])

    def test_a_section_that_was_not_finished_is_not_stored(self):
        with Supervisor() as s:
            process = s.start(APP, "--out", s.folder, "--sections", "2", "--fault", "hang-sampling")
            self.addCleanup(kill, process)
            s.wait("vault", event="saved", what="section")
            s.wait("progress", n=8.0)
            time.sleep(1)
            kill(process)
            self.assertEqual(len(entries(s, "section")), 1)


if __name__ == "__main__":
    unittest.main()
