"""The agent's threads, descriptors and files are no business of the program's."""
import os
import textwrap
import unittest

from support_vault import Supervisor

THREADS = """
    import os, sys, threading, time
    import fpt_agent.state as st, fpt_agent.store as files
    def seen(): return threading.active_count(), [t.name for t in threading.enumerate()]
    def save(name):
        task = files.Task("latents.r1." + name, [b"x" * 100], message={"what": "latents"})
        assert files.store.put(task) and task.done.wait(240) and task.ok
    def told():
        end = time.monotonic() + 60
        while (st.link.sock is None or st.link.queue or st.link.pending) and time.monotonic() < end: time.sleep(0.01)
    for _ in range(3): threading.Thread(target=time.sleep, args=(0.3,)).start()
    save("1.x")
    for t in threading.enumerate():
        if t is not threading.main_thread(): t.join()
    print(*seen())
    sys.stdout.flush()
    if os.fork() == 0:
        save("2.x")
        told()
        print(*seen())
        sys.stdout.flush()
        os._exit(0)
    os.wait()
    print(*seen())
    print(sorted(t["thread"] for t in __import__("fpt_agent.stacks").stacks.command()))
    # at the end nothing is lost
    for i in range(50): files.store.put(files.Task("latents.r1.end-%d.x" % i, [b"x" * 1000], message={"what": "latents"}))
"""

RAISES = """
    import gc, logging, os, sys, threading, time
    import fpt_agent.state as st, fpt_agent.store as files
    turns, beat = [], st.link.heartbeat
    def strange():
        # what a finalizer of the program's may do in whatever thread it runs
        threading.current_thread()
        turns.append(1)
        if len(turns) == 1: raise SystemExit(3)
        if len(turns) == 2: raise KeyboardInterrupt
        if len(turns) == 3: raise ValueError
        return beat()
    st.link.heartbeat = strange
    def ends(parts):
        threading.current_thread()
        raise KeyboardInterrupt
    bad = files.Task("latents.r1.1.x", [b"x"], message={"what": "latents"}, finish=ends)
    files.store.put(bad)
    assert bad.done.wait(240)
    good = files.Task("latents.r1.2.x", [b"x"], message={"what": "latents"})
    files.store.put(good)
    assert good.done.wait(240) and good.ok
    end = time.monotonic() + 120
    while (len(turns) < 5 or threading.active_count() > 1) and time.monotonic() < end: time.sleep(0.05)
    print(len(turns) >= 5, threading.active_count(), os.listdir(files.store.folder))
"""


class Threads(unittest.TestCase):
    def test_the_program_sees_its_own_only(self):
        with Supervisor() as s:
            own = "1 ['MainThread']\n"
            code, out, err = s.run("-W", "ignore", "-c", textwrap.dedent(THREADS), timeout=120)
            self.assertEqual((code, out, err), (0, own * 3 + "['MainThread', 'fpt-agent', 'fpt-vault']\n", ""))
            s.wait("bye")
            self.assertEqual(len(os.listdir(s.vault)), 52)
            self.assertEqual(len(s.of("vault", event="saved")), 52)
            self.assertEqual(len({m["pid"] for m in s.of("hello")}), 2)

    def test_what_is_raised_in_them_is_not_printed_and_ends_nothing(self):
        with Supervisor() as s:
            self.assertEqual(s.run("-c", textwrap.dedent(RAISES), timeout=240), (0, "True 1 ['latents.r1.2.x']\n", ""))
            s.wait("beat", count=2)

    def test_they_cannot_be_interrupted(self):
        with Supervisor() as s:
            code = ("import fpt_agent.stacks as k\nident = None\n"
                    "while not ident: ident = next((t['ident'] for t in k.command() if t['thread'] == 'fpt-agent'), None)\n"
                    "try: k.interrupt({'ident': ident})\nexcept ValueError as e: print(e)")
            self.assertEqual(s.run("-c", code), (0, "no such thread\n", ""))


if __name__ == "__main__":
    unittest.main()
