"""Children of multiprocessing, forked and spawned: each has a link, a vault's writer and locks of its own."""
import os
import textwrap
import unittest

from support_vault import Supervisor

FAMILY = """
    import multiprocessing, os, sys, threading, torch
    import fpt_agent.store as files, fpt_agent.state as st

    def save(number):
        # as the vault's hook does, in whatever process
        from fpt_agent import vault
        vault.save(torch.full((1, 4, 2, 2), float(number)), type("VAE", (), {})(), True)
        assert files.store.flush(120)

    def work(number):
        save(number)
        x, w = torch.ones(1, 1, 3, 3, 3), torch.ones(1, 1, 2, 2, 2)
        with __import__("fpt_agent").conv_fallback(start="nocudnn"):
            y = torch.nn.functional.conv3d(x, w)
        while st.link.sock is None or st.link.queue or st.link.pending: threading.Event().wait(0.01)
        return os.getpid(), float(y.sum()), torch.backends.cudnn.enabled

    if __name__ == "__main__":
        torch.set_num_threads(1)
        save(0)  # the writer's thread is there, and not in a forked child
        held = [st.link.writing]
        found = []
        for at, way in enumerate(("fork", "spawn")):
            context = multiprocessing.get_context(way)
            pool = None
            for lock in held: lock.acquire()  # as if another thread had it at this moment
            try:
                if way == "fork": pool = context.Pool(2)
            finally:
                for lock in held: lock.release()
            with pool or context.Pool(2) as pool:
                found += pool.map(work, range(10 * at + 1, 10 * at + 3), chunksize=1)
        save(99)
        print(len({pid for pid, _, _ in found}) >= 2, {y for _, y, _ in found}, {on for _, _, on in found})
"""


class Children(unittest.TestCase):
    def test_each_keeps_its_latents_and_converts_for_itself(self):
        with Supervisor() as s:
            path = os.path.join(s.folder, "family.py")
            with open(path, "w") as file:
                file.write(textwrap.dedent(FAMILY))
            code, out, err = s.run("-W", "ignore", path)
            self.assertEqual((code, out), (0, "True {64.0} {True}\n"), err)
            names = [n for n in os.listdir(s.vault) if n.startswith("latents.")]
            self.assertEqual(len(names), 6, names)
            s.wait("vault", event="saved", what="latents", count=6)
            self.assertGreaterEqual(len({m["pid"] for m in s.of("vault")}), 3)
            self.assertFalse(s.of("hook_failed"))
            self.assertEqual([n for n in os.listdir(s.vault) if n.startswith(".")], [])


if __name__ == "__main__":
    unittest.main()
