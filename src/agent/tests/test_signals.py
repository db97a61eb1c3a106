"""Signals: those that the program blocks are its own, and SIGUSR2 is, once it takes it."""
import glob
import os
import signal
import subprocess
import sys
import textwrap
import unittest

from support_vault import PACKAGE, Supervisor, kill

#: Every Python here that the agent is for.
PYTHONS = [sys.executable] + [
    python for python in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 9))"], stderr=subprocess.DEVNULL).returncode == 0]

#: Both threads of the agent are there before anything is blocked: of a thread that inherits the mask nothing would be seen.
BOTH = """
    import os, signal, sys, time
    import fpt_agent.store as files, fpt_agent.threads as t
    task = files.Task("latents.r1.1.x", [b"x"])
    files.store.put(task)
    assert task.done.wait(240) and len(t.names) == 2
"""
WAYS = {
    "a save that must not be ended": """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)
        print(signal.sigpending() == {signal.SIGTERM}, signal.sigwait({signal.SIGTERM}) == signal.SIGTERM)
    """,
    "a timer that is waited for": """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(0.3)
        print(True, signal.sigwait({signal.SIGALRM}) == signal.SIGALRM)
    """,
    "a handler while it is blocked": """
        heard = []
        signal.signal(signal.SIGHUP, lambda *_: heard.append(1))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(0.3)
        print(not heard, signal.sigpending() == {signal.SIGHUP})
    """,
    "the signal of the stacks": """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        os.kill(os.getpid(), signal.SIGUSR2)
        time.sleep(0.3)
        print(os.path.getsize(sys.argv[1]) == 0, signal.sigwait({signal.SIGUSR2}) == signal.SIGUSR2)
    """,
    "the child of a fork": """
        pid = os.fork()
        if pid:
            os._exit(os.waitpid(pid, 0)[1] and 1)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)
        print(signal.sigpending() == {signal.SIGTERM}, True)
    """,
}
#: What the kernel says of each thread of ours; and the program's own mask is what it was.
MASKS = """
    import signal
    import fpt_agent.threads as threads
    want = signal.valid_signals() - {getattr(signal, "SIG" + n) for n in ("SEGV", "BUS", "FPE", "ILL", "ABRT", "TRAP", "SYS", "KILL", "STOP")}
    found = []
    for task in os.listdir("/proc/self/task"):
        text = open("/proc/self/task/%s/status" % task).read()
        mask = int(text.partition("SigBlk:")[2].split()[0], 16)
        found.append({n for n in range(1, 65) if mask >> (n - 1) & 1})
    print(sorted(map(len, found))[0], [one == want for one in found].count(True), signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""

#: `sys.argv`: file of stacks, what the program does.
TAKES = """
    import faulthandler, os, signal, sys, time
    path, way = sys.argv[1:]
    mine = open(os.path.join(os.path.dirname(path), "mine"), "w")
    heard = []
    if way == "after a handler":
        signal.signal(signal.SIGUSR2, lambda *_: heard.append(1))
    time.sleep(1.2)  # the supervisor has been told that it may be sent
    faulthandler.register(signal.SIGUSR2, file=mine, chain=way != "alone")
    print("taken", flush=True)
    sys.stdin.readline()
    if way != "chain":
        os.kill(os.getpid(), signal.SIGUSR2)
        time.sleep(0.1)
    print(os.path.getsize(path), os.path.getsize(mine.name) > 0, heard)
"""


class Signals(unittest.TestCase):
    def test_what_the_program_blocks_is_its_own(self):
        for python in PYTHONS:
            for name, way in WAYS.items():
                with self.subTest(name, python=python), Supervisor() as s:
                    path = os.path.join(s.folder, "stacks-1.txt")
                    code = textwrap.dedent(BOTH) + textwrap.dedent(way)
                    found = s.run("-W", "ignore", "-c", code, path, python=python, stacks_file=path, timeout=300)
                    self.assertEqual(found, (0, "True True\n", ""))

    def test_all_but_faults_are_blocked_in_them_and_nothing_in_the_program(self):
        for python in PYTHONS:
            with self.subTest(python=python), Supervisor() as s:
                code = textwrap.dedent(BOTH) + textwrap.dedent(MASKS)
                self.assertEqual(s.run("-c", code, python=python, timeout=300), (0, "0 2 set()\n", ""))

    def test_a_handler_that_raises_meanwhile_leaves_the_mask(self):
        sys.path.insert(0, PACKAGE)
        self.addCleanup(sys.path.remove, PACKAGE)
        from fpt_agent import threads

        def handler(*_):
            raise KeyboardInterrupt

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
        with self.assertRaises(KeyboardInterrupt):
            threads.deaf(os.kill, os.getpid(), signal.SIGUSR1)
        self.assertEqual(signal.pthread_sigmask(signal.SIG_BLOCK, ()), set())


class Stacks(unittest.TestCase):
    def test_faulthandlers_own_use_of_the_signal_is_as_without_us(self):
        for python in PYTHONS:
            for way, code in (("alone", 0), ("chain", 0), ("after a handler", 0), ("default", -signal.SIGUSR2)):
                with self.subTest(way, python=python), Supervisor() as s:
                    path = os.path.join(s.folder, "stacks-1.txt")
                    env = s.environment(stacks_file=path)
                    process = subprocess.Popen([python, "-c", textwrap.dedent(TAKES), path, way], env=env, cwd=s.folder, text=True,
                                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    self.addCleanup(kill, process)
                    self.assertEqual(process.stdout.readline(), "taken\n")
                    if way != "after a handler":
                        s.wait("beat", stacks_signal="SIGUSR2")
                    s.wait("beat", stacks_signal=None, seconds=60)
                    out, err = process.communicate("\n", timeout=60)
                    want = "0 %s %s\n" % (way != "chain", [1] if way == "after a handler" else []) if code == 0 else ""
                    self.assertEqual((process.returncode, out, err), (code, want, ""))

    def test_what_the_program_takes_in_other_ways_is_not_to_be_sent(self):
        code = """
            import ctypes, signal, sys, time
            time.sleep(1.2)  # a heartbeat has looked with ctypes there
            sys.stdin.readline()
            if sys.argv[1] == "blocked": signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
            else: ctypes.CDLL(None).signal(int(signal.SIGUSR2), ctypes.CDLL(None).abs)
            sys.stdin.readline()
        """
        for way, pythons in (("blocked", PYTHONS[:1]), ("native", PYTHONS)):
            for python in pythons:
                with self.subTest(way, python=python), Supervisor() as s:
                    env = s.environment(stacks_file=os.path.join(s.folder, "stacks-1.txt"))
                    process = subprocess.Popen([python, "-c", textwrap.dedent(code), way], env=env, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    self.addCleanup(kill, process)
                    s.wait("beat", stacks_signal="SIGUSR2", count=2)
                    self.assertEqual(s.of("beat", stacks_signal=None), [])
                    process.stdin.write("\n")
                    process.stdin.flush()
                    s.wait("beat", stacks_signal=None, seconds=60)
                    self.assertEqual(process.communicate("\n", timeout=60), ("", ""))


if __name__ == "__main__":
    unittest.main()
