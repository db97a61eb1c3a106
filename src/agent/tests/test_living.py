"""Room in the vault: nothing of another run that goes on is taken for it."""
import fcntl
import json
import os
import subprocess
import sys
import textwrap
import time
import unittest

from support_vault import PACKAGE, Supervisor

sys.path.insert(0, PACKAGE)
from fpt_agent import living, store as files  # noqa: E402

OTHERS = ("latents.other.1-4242-001.safetensors", "section.other.k.safetensors", "step.other.k.safetensors", "job.other.j.json",
          "job.other.j.png", "queue.other.1.json")


class Room(unittest.TestCase):
    def run(self, result=None):
        with Supervisor(listens=False) as s:
            self.records = os.path.join(s.folder, "runs")
            self.store = files.Store(s.vault, limit=1000, run="me", records=[self.records, os.path.join(s.folder, "none")])
            os.makedirs(s.vault)
            self.age = 1000
            return super().run(result)

    def fill(self, name, data=b"x" * 100):
        path = os.path.join(self.store.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        self.age -= 1
        os.utime(path, (time.time() - self.age,) * 2)

    def record(self, run):
        """The lock of a recorded run, open."""
        os.makedirs(os.path.join(self.records, run), exist_ok=True)
        lock = open(os.path.join(self.records, run, "run.lock"), "w")
        self.addCleanup(lock.close)
        return lock

    def names(self):
        return {entry[0] for entry in self.store.entries()}

    def test_a_run_that_holds_its_lock_keeps_all(self):
        lock = self.record("other")
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.record("dead")
        for name in OTHERS + ("section.dead.k.safetensors", "latents.me.1.x", "section.me.k.x", "latents.me.2.x"):
            self.fill(name)
        self.store.make_room(200)  # the dead run's, then the oldest own latents
        self.assertEqual(self.names(), set(OTHERS) | {"section.me.k.x", "latents.me.2.x"})
        before = self.names()
        with self.assertRaisesRegex(OSError, "vault_limit leaves no room for 0 MiB: other runs that go on keep 0 MiB"):
            self.store.make_room(400)
        self.assertEqual(self.names(), before)  # nothing is given for nothing
        lock.close()
        self.store.make_room(400)
        self.assertEqual(self.names(), set(OTHERS[2:]) | {"section.me.k.x", "latents.me.2.x"})

    def test_without_a_record_the_process_tells(self):
        process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.fill("latents.a.1-%d-001.safetensors" % process.pid)
        self.fill("section.a.k.safetensors", b"x" * 300)
        self.fill("queue.b.1.json", json.dumps({"pid": process.pid, "items": []}).encode())
        self.fill("job.b.j.png", b"x" * 300)
        self.fill("latents.c.1-99999999-001.safetensors")
        self.fill("queue.d.1.json", b"torn")
        kept = {n for n in self.names() if n.split(".")[1] in "ab"}
        with self.assertRaisesRegex(OSError, "other runs that go on"):
            self.store.make_room(600)
        self.store.make_room(200)
        self.assertEqual(self.names() & kept, kept)
        self.assertNotIn("latents.c.1-99999999-001.safetensors", self.names())
        # the record knows better: an id may be another process' by now
        self.record("a")
        self.store.make_room(500)
        self.assertFalse([n for n in self.names() if n.startswith(("latents.a", "section.a"))])

    def test_a_file_that_is_none_of_ours_stays(self):
        self.fill("my.other.notes", b"x" * 500)
        self.fill("latents.other.1.x", b"x" * 900)
        self.store.make_room(500)
        self.assertEqual(self.names(), {"my.other.notes"})

    def test_where_runs_are_recorded(self):
        self.assertEqual(living.records(os.path.join(self.records, "me", "agent", "stacks-1.txt"))[0], self.records)

    def test_it_is_told_as_a_full_disk_is(self):
        code = """
            import fpt_agent.store as files
            for i in range(2):
                task = files.Task("latents.r1.%d.x" % i, [b"x" * 900])
                files.store.put(task)
                assert task.done.wait(240) and not task.ok
        """
        with Supervisor() as s:
            lock = self.record("other")
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name in OTHERS[:3]:
                self.fill(name)
            got = s.run("-c", textwrap.dedent(code), vault=self.store.folder, settings={"vault_limit": "1 KiB"},
                        stacks_file=os.path.join(self.records, "r1", "stacks", "stacks-1.txt"))
            self.assertEqual(got, (0, "", ""))
            s.wait("bye")
            self.assertEqual([m["event"] for m in s.of("vault")], ["failed", "failed"])
            self.assertIn("other runs that go on", s.of("vault")[0]["message"])
            self.assertEqual(self.names(), set(OTHERS[:3]))


if __name__ == "__main__":
    unittest.main()
