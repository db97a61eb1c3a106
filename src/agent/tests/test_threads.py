"""The agent's threads, descriptors and files are no business of the program's."""
import glob
import os
import shutil
import subprocess
import sys
import textwrap
import unittest
import warnings

from support_vault import PACKAGE, Supervisor

sys.path.insert(0, PACKAGE)
from fpt_agent import threads  # noqa: E402

THREADS = """
    import os, sys, threading, time
    import fpt_agent.state as st, fpt_agent.store as files
    def seen(): return threading.active_count(), [t.name for t in threading.enumerate()]
    def save(name):
        task = files.Task("latents.r1." + name, [b"x" * 100])
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
    names = [open("/proc/self/task/%s/comm" % t).read().strip() for t in os.listdir("/proc/self/task")]
    print(names.count("fpt-agent") > 0, open("/proc/self/comm").read().strip() != "fpt-agent")
    # at the end nothing is lost
    for i in range(50): files.store.put(files.Task("latents.r1.end-%d.x" % i, [b"x" * 1000]))
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
    bad = files.Task("latents.r1.1.x", [b"x"], finish=ends)
    files.store.put(bad)
    assert bad.done.wait(240)
    good = files.Task("latents.r1.2.x", [b"x"])
    files.store.put(good)
    assert good.done.wait(240) and good.ok
    end = time.monotonic() + 120
    while (len(turns) < 5 or threading.active_count() > 1) and time.monotonic() < end: time.sleep(0.05)
    print(len(turns) >= 5, threading.active_count(), os.listdir(files.store.folder))
"""


FORKS = """
    import os, threading, time, warnings
    import fpt_agent.state as st, fpt_agent.threads as t
    if %s: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    end = time.monotonic() + 60
    while not t.names and time.monotonic() < end: time.sleep(0.01)
    found = []
    def fork():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            pid = os.fork()
            if pid == 0: os._exit(0)
            os.waitpid(pid, 0)
        found.append(any("multi-threaded" in str(w.message) for w in told))
    for _ in range(3): fork()
    # and under -W error, where there is nothing to be told
    if not any(found):
        pid = os.fork()
        if pid == 0: os._exit(0 if not any("Quiet" in str(f) for f in warnings.filters) else 1)
        assert os.waitpid(pid, 0)[1] == 0
    found.append(len(t.names))
    assert not any("Quiet" in str(f) for f in warnings.filters)
    print(found)
    os._exit(0)
"""


class Threads(unittest.TestCase):
    def test_the_program_sees_its_own_only(self):
        with Supervisor() as s:
            own = "1 ['MainThread']\n"
            code, out, err = s.run("-W", "ignore", "-c", textwrap.dedent(THREADS), timeout=120)
            self.assertEqual((code, out, err), (0, own * 3 + "['MainThread', 'fpt-agent', 'fpt-vault']\nTrue True\n", ""))
            s.wait("bye")
            # of decodes in quick succession not each is kept
            saved = len(s.of("vault", event="saved"))
            self.assertGreaterEqual(saved, 2)
            self.assertEqual(len(os.listdir(s.vault)), saved)
            self.assertEqual(len({m["pid"] for m in s.of("hello")}), 2)

    def test_what_is_raised_in_them_is_not_printed_and_ends_nothing(self):
        with Supervisor() as s:
            self.assertEqual(s.run("-c", textwrap.dedent(RAISES), timeout=240), (0, "True 1 ['latents.r1.2.x']\n", ""))
            s.wait("beat", count=2)

    def test_a_fork_is_warned_of_only_where_it_would_be_without_us(self):
        found = [sys.executable] if sys.version_info >= (3, 12) else []
        for version in ("3.12", "3.13", "3.14"):
            found += glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python3" % version))
            found += filter(None, [shutil.which("python" + version)])
        found = [python for python in found if subprocess.run([python, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0]
        if not found:
            self.skipTest("NOT RUN: no Python 3.12 or later here")
        for python in found:
            for own in (False, True):
                with self.subTest(python, own=own), Supervisor() as s:
                    code = textwrap.dedent(FORKS % own)
                    want = (0, "%s\n" % ([own] * 3 + [1]), "")
                    self.assertEqual(s.run("-W", "error", "-c", code, python=python, timeout=120), want)

    def test_the_item_among_the_filters(self):
        self.addCleanup(threads.names.clear)
        self.addCleanup(setattr, threads, "kernel_threads", threads.kernel_threads)
        text = "This process (pid=1) is multi-threaded, use of fork() may lead to deadlocks in the child."
        for count, quiet in ((3, True), (4, False), (0, False)):
            threads.names.update({1: "a", 2: "b"})
            threads.kernel_threads = lambda count=count: count
            guard = threads.Quiet()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                was = list(warnings.filters)
                guard.before()
                warnings.warn_explicit(text, DeprecationWarning, "f", 1)
                self.assertEqual(warnings.filters, was)
                warnings.warn_explicit(text, DeprecationWarning, "f", 1)
                guard.before()
                warnings.warn("another", DeprecationWarning)
                self.assertEqual(warnings.filters, was)
            self.assertEqual([str(w.message) for w in told], [text] * (1 if quiet else 2) + ["another"])

    def test_they_cannot_be_interrupted(self):
        with Supervisor() as s:
            code = ("import fpt_agent.stacks as k\nident = None\n"
                    "while not ident: ident = next((t['ident'] for t in k.command() if t['thread'] == 'fpt-agent'), None)\n"
                    "try: k.interrupt({'ident': ident})\nexcept ValueError as e: print(e)")
            self.assertEqual(s.run("-c", code), (0, "no such thread\n", ""))


if __name__ == "__main__":
    unittest.main()
