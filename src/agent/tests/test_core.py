"""The link, the way in and the hooks: what goes wrong there never reaches the program."""
import glob
import json
import os
import socket
import subprocess
import sys
import textwrap
import time
import unittest

from support_vault import PACKAGE, Supervisor

LAUNCHER = os.path.join(PACKAGE, "fpt_run.py")


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(textwrap.dedent(text))
    return path


class Channel(unittest.TestCase):
    def test_hello_and_bye_of_the_shortest_program(self):
        with Supervisor() as s:
            self.assertEqual(s.run("-c", "pass"), (0, "", ""))
            hello = s.wait("hello")[0]
            s.wait("bye")
            self.assertEqual((hello["protocol"], hello["run"], hello["attempt"], hello["seq"]), (1, "r1", 1, 1))

    def test_nobody_listens(self):
        with Supervisor(listens=False) as s:
            self.assertEqual(s.run("-c", "print(1)"), (0, "1\n", ""))

    def test_a_supervisor_that_goes_and_comes_back_hears_hello_again(self):
        with Supervisor() as s:
            process = s.start("-c", "import time, fpt_agent.state as st\n"
                              "while True: time.sleep(0.01); st.link.send('problem', text='x')")
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            s.wait("hello")
            s.silence()
            time.sleep(0.5)
            self.assertIsNone(process.poll())
            s.messages.clear()
            s.listen()
            hello = s.wait("hello")[0]
            self.assertEqual(hello["pid"], process.pid)
            s.wait("problem", count=5)

    def test_a_supervisor_that_will_not_hear_us(self):
        class HangsUp(Supervisor):
            def _read(self, connection):
                self.messages.append({"type": "hello", "data": connection.recv(5)})
                connection.close()

        with HangsUp() as s:
            self.assertEqual(s.run("-c", "import time; time.sleep(0.5); print(1)", timeout=60), (0, "1\n", ""))
            self.assertTrue(s.of("hello"))

    def test_sigpipe_of_a_lost_supervisor_kills_nobody(self):
        with Supervisor() as s:
            process = s.start("-c", "import signal, time, fpt_agent.state as st\n"
                              "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile st.link.sock is None: time.sleep(0.01)\n"
                              "while st.link.sock is not None: time.sleep(0.01); st.link.send('problem', text='x' * 5000)")
            self.addCleanup(process.kill)
            s.wait("problem", count=3)
            s.silence()
            out, err = process.communicate(timeout=240)
            self.assertEqual((process.returncode, out, err), (0, "", ""))

    def test_a_supervisor_that_never_reads_costs_bounded_memory(self):
        code = """
            import resource, fpt_agent.state as st, time
            full, same = 0, 0
            while same < 5:  # nothing leaves any more
                for i in range(100): st.link.send("problem", text="x" * 1000)
                time.sleep(0.05)
                was, full = full, len(st.link.pending)
                same = same + 1 if was == full >= 1 << 16 else 0
            for i in range(20000): st.link.send("problem", text="x" * 1000)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for i in range(100000):
                st.link.send("problem", text="x" * 1000)
                if i % 1000 == 0: time.sleep(0.001)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            print(grown, len(st.link.queue), len(st.link.pending), st.link.dropped)
        """
        with Supervisor(reads=False) as s:
            code, out, err = s.run("-c", textwrap.dedent(code))
            self.assertEqual((code, err), (0, ""))
            grown, queued, pending, dropped = map(int, out.split())
            self.assertLess(grown, 20000)  # KiB; all of it would be 100 MB and more
            self.assertLessEqual(queued, 2000)
            self.assertLess(pending, 1 << 18)
            self.assertGreater(dropped, 50000)  # counted anew from each message that tells it

    def test_strange_commands_and_strange_values(self):
        with Supervisor() as s:
            process = s.start("-c", "import time, fpt_agent.state as st\n"
                              "st.link.send('problem', text=float('nan'), more={(1, 2): float('inf'), 'a': [object]})\ntime.sleep(600)")
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            s.wait("hello")
            got = s.wait("problem")[0]
            self.assertIsNone(got["text"])
            for line in (b"{}\n", b"no json\n", b"[1]\n", b'{"id": 7, "cmd": "later_version"}\n', b'{"id": 8, "cmd": "snapshot", "new": 1}\n',
                         b"\xff\xfe\n"):
                s.connections[0].sendall(line)
            replies = s.wait("reply", count=6)
            self.assertEqual([r["ok"] for r in replies], [False, False, False, False, True, False])
            self.assertEqual(replies[3]["id"], 7)
            s.connections[0].sendall(b"x" * (1 << 17))  # none of ours: hung up, and looked for again
            s.wait("hello", count=2)

    def test_stacks_name_each_frame_and_read_no_file(self):
        text = """
            import linecache, threading
            from fpt_agent import stacks
            def outer(): inner()
            def inner(): ready.set(); go.wait()
            ready, go = threading.Event(), threading.Event()
            thread = threading.Thread(target=outer, name="generation")
            thread.start(); ready.wait()
            read, linecache.getlines = [], lambda name, *_: read.append(name) or []
            told = stacks.command(); go.set(); thread.join()
            one = next(t for t in told if t["thread"] == "generation")
            print([f.split()[-1] for f in one["frames"]][-4:-2], one["ident"] == thread.ident, read)
        """
        with Supervisor() as s:
            code, out, err = s.run(write(s.folder, "p.py", text))
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(out, "['outer', 'inner'] True []\n")
            deep = """
                import threading
                from fpt_agent import stacks
                def down(n): return down(n - 1) if n else stacks.command()
                frames = next(t for t in down(200) if t["thread"] == "MainThread")["frames"]
                print(len(frames), frames[-1].split()[-1], frames[-2].split()[-1], frames[0].split()[-1])
            """
            code, out, _ = s.run(write(s.folder, "deep.py", deep))
            self.assertEqual((code, out), (0, "64 command down down\n"))

    def test_a_socket_number_above_1023(self):
        with Supervisor() as s:
            code = ("import os, resource, time\nresource.setrlimit(resource.RLIMIT_NOFILE, (3000, 3000))\n"
                    "held = [os.open('/dev/null', 0) for _ in range(1500)]\nimport fpt_agent.state as st\n"
                    "while st.link.sock is None or st.link.pending: time.sleep(0.01)\n"
                    "st.link._lose()\nheld.append(os.open('/dev/null', 0))\nwhile st.link.sock is None: time.sleep(0.01)\n"
                    "print(st.link.sock.fileno() > 1023)")
            hard = __import__("resource").getrlimit(__import__("resource").RLIMIT_NOFILE)[1]
            if hard < 3000:
                self.fail("the test needs 3000 descriptors, the limit is %d" % hard)
            code, out, err = s.run("-c", code)
            self.assertEqual((code, out, err), (0, "True\n", ""))
            self.assertGreaterEqual(len(s.of("hello")), 2)
            self.assertTrue(s.of("bye"))

    def test_each_child_says_hello_with_its_own_pid(self):
        code = """
            import multiprocessing, os, subprocess, sys, time
            import fpt_agent.state as st
            def work(_):
                while st.link.sock is None or st.link.pending: time.sleep(0.01)
                return os.getpid()
            if __name__ == "__main__":
                pids = [os.getpid()]
                for way in ("fork", "spawn"):
                    with multiprocessing.get_context(way).Pool(1) as pool: pids += pool.map(work, [0])
                child = os.fork()
                if child == 0: work(0); os._exit(0)
                os.waitpid(child, 0); pids.append(child)
                pids.append(int(subprocess.check_output([sys.executable, "-c", "import os; print(os.getpid())"])))
                print(*pids)
        """
        with Supervisor() as s:
            code, out, err = s.run(write(s.folder, "family.py", code))
            self.assertEqual(code, 0, err)
            if sys.version_info < (3, 12):  # later ones warn of a fork beside any thread, such as the link's
                self.assertEqual(err, "")
            want = {int(pid) for pid in out.split()}
            self.assertEqual(len(want), 5)
            s.wait("hello", count=5)
            self.assertLessEqual(want, {m["pid"] for m in s.of("hello")})
            for pid in want:
                numbers = [m["seq"] for m in s.messages if m["pid"] == pid]
                self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

    def test_two_pythons_in_one_tree(self):
        others = glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))
        other = next((p for p in sorted(others) if "3.9." in p or "3.13." in p), sys.executable)
        with Supervisor() as s:
            code, out, err = s.run("-c", "import subprocess, sys; sys.exit(subprocess.call([%r, '-c', 'print(1)']))" % other)
            self.assertEqual((code, out, err), (0, "1\n", ""))
            s.wait("bye", count=2)
            one, other = s.of("hello")
            self.assertTrue(other["ppid"] == one["pid"] or one["ppid"] == other["pid"])

    def test_a_broken_configuration_is_told_and_costs_nothing(self):
        with Supervisor() as s:
            env = s.environment()
            env["FPT_AGENT_CONFIG"] = "{broken"
            self.assertEqual(s.run("-c", "print(1)", env=env), (0, "1\n", ""))
            self.assertIn("FPT_AGENT_CONFIG", s.wait("problem")[0]["text"])

    def test_a_setting_of_the_engine_alone_is_told(self):
        with Supervisor() as s:
            env = s.environment()
            env["FPT_AGENT_CONFIG"] = json.dumps({"settings": {"vae_piece_limit": "90"}})
            self.assertEqual(s.run("-c", "print(1)", env=env), (0, "1\n", ""))
            self.assertIn("vae_piece_limit = 90: only the embedded engine", s.wait("problem")[0]["text"])


class Values(unittest.TestCase):
    """The readers of settings take what the supervisor lets through (src/model/agent_setting.rs)."""

    def config(self, **settings):
        sys.path.insert(0, PACKAGE)
        self.addCleanup(sys.path.remove, PACKAGE)
        from fpt_agent.config import Config

        return Config({"FPT_AGENT_CONFIG": json.dumps({"settings": settings})})

    def test_sizes(self):
        for text, size in (("18 GiB", 18 << 30), ("+4 GiB", 4 << 30), ("0 GiB", 0), ("512M", 512 << 20), ("2.5G", 5 << 29),
                           ("64KB", 64000), (".5G", 1 << 29), ("1 TiB", 1 << 40), ("7 B", 7), ("7", 7)):
            config = self.config(vault_limit=text)
            self.assertEqual((config.size("vault_limit"), config.problems), (size, []), text)
        for text in ("", "much", "++4 GiB", "-4 GiB", "nan", "inf", "1 PiB", "6 iB"):
            config = self.config(vault_limit=text)
            self.assertEqual((config.size("vault_limit"), len(config.problems)), (None, 1), text)

    def test_whole_numbers(self):
        config = self.config(vae_overlap="0", vae_tile="9" * 5000, vae_chunk="0")
        self.assertEqual((config.whole("vae_overlap", 0), config.problems), (0, []))
        self.assertEqual((config.whole("vae_tile"), config.whole("vae_chunk"), len(config.problems)), (None, None, 2))


class Hooks(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, PACKAGE)
        self.addCleanup(sys.path.remove, PACKAGE)
        from fpt_agent import hooks
        self.hooks = hooks

    def test_wrappers_of_several_parts_stack_once_each(self):
        seen = []

        class Owner:
            def work(self, value):
                """doc"""
                seen.append(value)
                if value == 9:
                    raise KeyError(value)
                return value + 1

        plain = Owner.work
        for part in ("a", "b", "a", "b"):
            self.hooks.around(Owner, "work", part=part, before=lambda args, kw, part=part: seen.append(part),
                              after=lambda result, args, kw, part=part: seen.append(part + "!"))
        self.assertEqual(Owner().work(1), 2)
        self.assertEqual(seen, ["b", "a", 1, "a!", "b!"])
        self.assertEqual((Owner.work.__doc__, Owner.work._fpt_plain._fpt_plain), ("doc", plain))
        with self.assertRaises(KeyError) as caught:
            Owner().work(9)
        self.assertEqual(caught.exception.args, (9,))
        self.assertIsNone(caught.exception.__context__)

        class Child(Owner):
            pass

        self.assertFalse(self.hooks.around(Child, "work", part="c"))
        self.assertFalse(self.hooks.around(Owner, "absent", part="c"))

    def test_what_fails_in_a_hook_costs_nothing(self):
        class Owner:
            @staticmethod
            def plain():
                return 7

        space = type("space", (), {})()
        space.work = Owner.plain
        broken = lambda *_: 1 / 0  # noqa: E731
        self.assertTrue(self.hooks.around(space, "work", phase="x", before=broken, after=broken, describe=broken, part="z"))
        self.assertEqual(space.work(), 7)

    def test_every_hooked_module_wakes_the_parts(self):
        code = """
            import fpt_agent.agent as a, fpt_agent.hooks as h
            a.load("progress", *a.PARTS)
            names = list(h._table) + [p for below in h._prefixes.values() for p, _ in below]
            print([n for n in names if n.split(".")[0] not in a.PACKAGES + a.PROGRESS], len(names) > 5)
        """
        with Supervisor() as s:
            self.assertEqual(s.run("-c", textwrap.dedent(code)), (0, "[] True\n", ""))

    def test_parts_wait_for_their_packages(self):
        code = """
            import sys
            def parts(): return sorted(m for m in sys.modules if m in ("fpt_agent.vault", "fpt_agent.conv", "fpt_agent.progress"))
            print(parts())
            import json, email, sqlite3
            print(parts())
            try: import nodes
            except ImportError: pass
            print(parts())
        """
        with Supervisor() as s:
            code, out, err = s.run("-c", textwrap.dedent(code))
            self.assertEqual((code, out, err), (0, "[]\n[]\n['fpt_agent.conv', 'fpt_agent.progress', 'fpt_agent.vault']\n", ""))


class WayIn(unittest.TestCase):
    maxDiff = None

    def test_the_hidden_sitecustomize_still_runs(self):
        with Supervisor() as s:
            theirs = os.path.join(s.folder, "theirs")
            write(theirs, "sitecustomize.py", "import sys\nsys.told = __file__\n")
            write(theirs, "usercustomize.py", "import sys\nsys.told_too = 1\n")
            env = s.environment()
            env["PYTHONPATH"] += os.pathsep + theirs
            code, out, err = s.run("-c", "import sys, sitecustomize; print(sys.told == sitecustomize.__file__)\n"
                                   "print([p for p in sys.path if 'agent' in p])\nimport usercustomize; print(sys.told_too)", env=env)
            self.assertEqual((code, out, err), (0, "True\n[]\n1\n", ""))
            s.wait("hello")

    def test_a_broken_hidden_sitecustomize_is_told_as_python_tells_it(self):
        with Supervisor() as s:
            write(s.folder, "theirs/sitecustomize.py", "raise ValueError('mine')\n")
            env = s.environment()
            env["PYTHONPATH"] += os.pathsep + os.path.join(s.folder, "theirs")
            code, out, err = s.run("-c", "print(1)", env=env)
            self.assertEqual((code, out), (0, "1\n"))
            self.assertIn("Error in sitecustomize", err)
            self.assertIn("mine", err)

    def both(self, s, *words, flags=("-I",), stdin=None):
        """What the same command does by itself and through the launcher."""
        env = s.environment(package=False)
        env.pop("PYTHONUNBUFFERED")
        runs = []
        for launcher in ([], [LAUNCHER]):
            done = subprocess.run([sys.executable, *flags, *launcher, *words], env=env, cwd=s.folder, text=True,
                                  input=stdin, capture_output=True, timeout=240)
            runs.append((done.returncode, done.stdout, done.stderr))
        return runs

    def test_the_launcher_is_not_seen(self):
        tell = ("import sys\nm = sys.modules['__main__']\n"
                "print(__name__, sys.argv, sys.path, globals().get('__file__'), m.__spec__ and m.__spec__.name, m.__package__, m.__dict__ is globals(),"
                " type(m.__loader__).__name__, sorted(k for k in globals() if k not in ('m', '__cached__')))\n")
        with Supervisor() as s:
            write(s.folder, "tell.py", tell)
            write(s.folder, "pack/__init__.py", "")
            write(s.folder, "pack/__main__.py", tell)
            write(s.folder, "pack/tell.py", tell)
            compiled = os.path.join(s.folder, "tell.pyc")
            __import__("py_compile").compile(os.path.join(s.folder, "tell.py"), compiled)
            before = len(s.of("hello"))
            for flags in (["-E"], ["-S"], ["-I"], ["-E", "-S"], ["-u"]):
                for words in (["./tell.py", "a", "-b"], ["-c", tell, "a"], ["pack"], ["-m", "pack", "x"], ["-m", "pack.tell"],
                              ["tell.pyc"], ["-", "a"]):
                    if words[0] == "-m" and "-I" in flags:
                        continue  # the module is not to be found then
                    with self.subTest(flags=flags, words=words[:2]):
                        plain, ours = self.both(s, *words, flags=flags, stdin=tell if words[0] == "-" else None)
                        self.assertEqual(plain[0], 0, plain)
                        self.assertEqual(ours, plain)
            self.assertGreater(len(s.of("hello")), before + 20)

    def test_ends_are_the_programs_own(self):
        ends = {"exit": "import sys; sys.exit(3)", "word": "import sys; sys.exit('word')", "raise": "def f():\n 1/0\nf()",
                "syntax": "a b", "chained": "try:\n 1/0\nexcept Exception as e:\n raise KeyError('x') from e",
                "hook": "import sys\nsys.excepthook = lambda t, v, b: print('mine', t.__name__, b.tb_frame.f_code.co_name)\n1/0",
                "int": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)",
                "term": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
                "thread": "import threading, atexit\natexit.register(print, 'last')\nthreading.Timer(0.2, lambda: print('late', __name__)).start()"}
        with Supervisor() as s:
            for name, text in ends.items():
                write(s.folder, name + "_.py", text)
                write(s.folder, "mod/%s.py" % name, text)
                for words, flags in (([name + "_.py"], ["-I"]), (["-c", text], ["-I"]), (["-m", "mod." + name], ["-E"])):
                    with self.subTest(end=name, words=words[0]):
                        plain, ours = self.both(s, *words, flags=flags)
                        if words[0] == "-c" and sys.version_info >= (3, 13) and name != "syntax":
                            # Python shows the lines of `-c` code, which it knows from within
                            plain, ours = ((code, out, "\n".join(l for l in err.split("\n") if l[:4] != "    "))
                                           for code, out, err in (plain, ours))
                        self.assertEqual(ours, plain)
            plain, ours = self.both(s, "absent.py")
            self.assertEqual(ours[0], plain[0])
            self.assertIn("can't open file", ours[2])
            plain, ours = self.both(s, "-m", "absent_module", flags=["-E"])
            self.assertEqual(ours, plain)

    def test_spawned_children_find_the_main_module(self):
        code = """
            import multiprocessing
            class Thing:
                pass
            def work(thing): return type(thing).__module__
            if __name__ == "__main__":
                for way in ("spawn", "fork"):
                    with multiprocessing.get_context(way).Pool(1) as pool: print(pool.map(work, [Thing()]))
        """
        with Supervisor() as s:
            write(s.folder, "spawn.py", code)
            write(s.folder, "mod/spawn.py", code)
            for words, flags in ((["spawn.py"], ["-I"]), (["spawn.py"], ["-E"]), (["-m", "mod.spawn"], ["-E"])):
                plain, ours = self.both(s, *words, flags=flags)
                self.assertEqual(plain[0], 0, plain)
                self.assertEqual(ours, plain)

    def test_an_interpreter_with_a_pth_file_beside_it(self):
        # such a file exists on Windows only; what it does is this: isolated, without site, with these folders alone
        with Supervisor() as s:
            write(s.folder, "main.py", "import sys, json, fpt_agent; print(sys.flags.isolated, sys.flags.no_site)")
            plain, ours = self.both(s, "main.py", flags=["-I", "-S"])
            self.assertNotEqual(plain[0], 0)
            self.assertEqual(ours, (0, "1 1\n", ""))
            s.wait("hello")


if __name__ == "__main__":
    unittest.main()
