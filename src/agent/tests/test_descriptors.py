"""Descriptors that the program closes under the agent's feet, and the mode of the file of stacks."""
import os
import signal
import stat
import subprocess
import sys
import textwrap
import unittest

from support_vault import Supervisor, kill, until

#: A daemon closes all that it does not know, and opens files and sockets of its own under the same numbers.
DAEMON = """
    import os, socket, sys, time
    import fpt_agent.state as st
    end = time.monotonic() + 120
    def until(what):
        while not what() and time.monotonic() < end: time.sleep(0.01)
    until(lambda: st.link.sock is not None and not st.link.queue and not st.link.pending)  # hello has left
    number, lost = st.link.sock.fileno(), st.link.sock
    os.closerange(3, 64)
    pairs = [socket.socketpair() for _ in range(4)]
    assert number in {x.fileno() for pair in pairs for x in pair}
    %s
    del lost  # its finalizer
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            one.setblocking(False)
            try: print("came", one.recv(1000))
            except BlockingIOError: pass
            other.sendall(b"mine")
            assert one.recv(10) == b"mine"
    print("whole")
"""
WAYS = {
    "beats": "until(lambda: st.link.sock is not None and st.link.sock is not lost)",
    # a command for us cannot come there, but what comes for the program must stay
    "reads": "for p in pairs:\n        for x in p: x.sendall(b'{}')\n"
             "    until(lambda: st.link.sock is not None and st.link.sock is not lost)\n"
             "    for p in pairs:\n        for x in p: assert x.recv(10) == b'{}'",
    "fork": "pid = os.fork()\n    if pid: os._exit(os.waitpid(pid, 0)[1])\n    pairs[0][0].fileno()",
    "end": "st.link.flush(1)",
}


class Descriptors(unittest.TestCase):
    def test_nothing_of_ours_goes_into_a_socket_of_the_programs(self):
        for name, way in WAYS.items():
            with self.subTest(name), Supervisor() as s:
                code = textwrap.dedent(DAEMON % way)
                self.assertEqual(s.run("-W", "ignore", "-c", code, vault=None, timeout=150), (0, "whole\n", ""))
                if name in ("beats", "reads"):
                    s.wait("hello", count=2)
                    s.wait("bye")

    def test_the_file_of_stacks_closes_nothing_of_the_programs(self):
        code = """
            import faulthandler, os, signal, sys
            from fpt_agent import stacks
            os.closerange(3, 64)
            mine = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
            vars(stacks).clear()
            faulthandler.unregister(signal.SIGUSR2)  # nobody holds the file now
            for number in mine: os.fstat(number)
        """
        with Supervisor(listens=False) as s:
            path = os.path.join(s.folder, "stacks-1.txt")
            self.assertEqual(s.run("-X", "dev", "-c", textwrap.dedent(code), vault=None, stacks_file=path), (0, "", ""))

    def test_stacks_go_into_no_file_of_the_programs(self):
        code = """
            import os, signal, sys, time
            import fpt_agent.stacks as k
            end = time.monotonic() + 120
            number, path = k._dump.descriptor, sys.argv[1]
            mine = os.path.join(os.path.dirname(path), "mine")
            def dumped(count):
                os.kill(os.getpid(), signal.SIGUSR2)
                return os.path.getsize(mine) if count == 1 else (os.path.getsize(path) > 0, os.path.getsize(mine))
            limit = min(os.sysconf("SC_OPEN_MAX"), 4096)
            os.closerange(3, limit)
            files = [os.open(mine, os.O_CREAT | os.O_RDWR) for _ in range(100)]
            print(number in files, dumped(1))
            if sys.argv[2] == "same":
                os.dup2(files[0], number)
            while k._dump.descriptor == number and k.identity(number) != k._dump.who and time.monotonic() < end: time.sleep(0.01)
            print(dumped(2))
            if sys.argv[2] == "same":
                os.write(number, b"x")
                print(os.path.getsize(mine))
        """
        for way in ("low", "same"):
            with self.subTest(way), Supervisor() as s:
                path = os.path.join(s.folder, "stacks-1.txt")
                want = "False 0\n(True, 0)\n" + ("1\n" if way == "same" else "")
                self.assertEqual(s.run("-c", textwrap.dedent(code), path, way, vault=None, stacks_file=path), (0, want, ""))

    def test_a_handler_of_the_programs_stays(self):
        code = """
            import os, signal, sys, time
            import fpt_agent.stacks as k
            heard = []
            signal.signal(signal.SIGUSR2, lambda *_: heard.append(1))
            os.closerange(3, 4096)
            k.keep()
            os.kill(os.getpid(), signal.SIGUSR2)
            print(heard, os.path.getsize(sys.argv[1]))
        """
        with Supervisor(listens=False) as s:
            path = os.path.join(s.folder, "stacks-1.txt")
            self.assertEqual(s.run("-c", textwrap.dedent(code), path, vault=None, stacks_file=path), (0, "[1] 0\n", ""))

    def test_closed_standard_streams_stay_closed(self):
        code = """
            import os, sys, time
            import fpt_agent.state as st, fpt_agent.stacks as k, fpt_agent.descriptors as descriptors
            def there(): return [n for n in range(3) if descriptors.identity(n) is not None]
            first = there()
            with st.link.writing: st.link._lose()
            end = time.monotonic() + 60
            while st.link.sock is None and time.monotonic() < end: time.sleep(0.01)
            later = there()
            with open(sys.argv[1], "w") as file: print(first, later, k._dump.descriptor > 2, file=file)
        """
        for closed, limit in (("<&-", 2000), ("<&- >&- 2>&-", 2000), ("<&- >&- 2>&-", 64)):
            with self.subTest(closed, limit=limit), Supervisor() as s:
                told = os.path.join(s.folder, "told")
                env = s.environment(stacks_file=os.path.join(s.folder, "stacks"))
                env.pop("PYTHONUNBUFFERED")
                shell = 'ulimit -n %d; exec "$@" %s' % (limit, closed)
                done = subprocess.run(["sh", "-c", shell, "sh", sys.executable, "-c", textwrap.dedent(code), told], env=env, timeout=120)
                with open(told) as file:
                    text = file.read()
                left = list(range(closed.count("&-"), 3))
                self.assertEqual((done.returncode, text), (0, "%s %s True\n" % (left, left)))
                s.wait("bye", seconds=60)

    def test_no_heartbeat_takes_the_number_of_a_closed_stream(self):
        code = """
            import faulthandler, os, signal, sys, time
            import fpt_agent.descriptors as descriptors, fpt_agent.link as link, fpt_agent.stacks as k
            link.BEAT_S, beats, taken = 0.001, [], 0
            def watched(): beats.append(1); return heartbeat()
            from fpt_agent.state import link as own
            heartbeat, own.heartbeat = own.heartbeat, watched
            end = time.monotonic() + 60
            while len(beats) < 10 and time.monotonic() < end:
                taken += descriptors.identity(0) is not None
            # the child's own signals, not its parent's
            signal.signal(signal.SIGUSR2, signal.SIG_DFL)
            parent = k.usable()
            child = os.fork()
            if child == 0:
                faulthandler.unregister(signal.SIGUSR2)
                k.arm(sys.argv[2])
                os._exit(0 if k.usable() == "SIGUSR2" else 1)
            with open(sys.argv[1], "w") as file: print(len(beats) >= 10, taken, parent, os.waitpid(child, 0)[1], file=file)
        """
        with Supervisor() as s:
            told = os.path.join(s.folder, "told")
            env = s.environment(stacks_file=os.path.join(s.folder, "stacks"))
            subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), told,
                            os.path.join(s.folder, "stacks-child")], env=env, timeout=120)
            with open(told) as file:
                self.assertEqual(file.read(), "True 0 None 0\n")

    def test_the_signal_is_named_while_it_is_ours(self):
        code = """
            import os, signal, sys, time
            import fpt_agent.state as st, fpt_agent.link as link
            link.BEAT_S = 600.0 if sys.argv[1] == "handler" else 0.1
            print("on")
            sys.stdin.readline()
            signal.signal(signal.SIGUSR2, (lambda *_: sys.exit(7)) if sys.argv[1] == "handler" else signal.SIG_DFL)
            st.link.send("problem", text="set")
            sys.stdin.readline()
            if st.link.sock is not None: st.link._lose()
            sys.stdin.readline()
        """
        for way in ("handler", "default"):
            with self.subTest(way), Supervisor() as s:
                path = os.path.join(s.folder, "stacks-1.txt")
                with open(os.path.join(s.folder, "p.py"), "w") as file:
                    file.write(textwrap.dedent(code))
                process = subprocess.Popen([sys.executable, file.name, way], env=s.environment(stacks_file=path), text=True,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.addCleanup(kill, process)
                self.assertEqual(process.stdout.readline(), "on\n")
                s.wait("beat", stacks_signal="SIGUSR2")
                process.stdin.write("\n")
                process.stdin.flush()
                s.wait("beat", stacks_signal=None, seconds=60)  # long before its time, where it is a handler
                process.stdin.write("\n")
                process.stdin.flush()
                self.assertEqual([m["stacks_signal"] for m in s.wait("hello", count=2)], ["SIGUSR2", None])
                self.assertEqual(process.communicate("\n", timeout=60), ("", ""))
                self.assertNotIn("SIGUSR2", [m.get("stacks_signal") for m in s.of("beat")][-2:])

    def test_the_file_of_stacks_is_its_owners_alone(self):
        with Supervisor() as s:
            path = os.path.join(s.folder, "stacks-1.txt")
            old = os.umask(0)
            try:
                process = s.start("-c", "import time\nprint('on')\ntime.sleep(600)", stacks_file=path)
            finally:
                os.umask(old)
            self.addCleanup(kill, process)
            self.assertEqual(process.stdout.readline(), "on\n")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            process.send_signal(signal.SIGUSR2)
            until(lambda: os.stat(path).st_size)


if __name__ == "__main__":
    unittest.main()
