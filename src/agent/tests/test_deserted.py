"""A process whose main thread has left ends with its last thread, as it would without the agent."""
import subprocess
import textwrap
import unittest

from support_vault import Supervisor, kill
from test_signals import BOTH, PYTHONS

#: Ends the calling thread alone, as `pthread_exit` does.
LEAVE = """
    import ctypes, platform
    ctypes.CDLL(None).syscall({"aarch64": 93}.get(platform.machine(), 60), 0)
"""
#: A thread of the program's, which works on for a moment.
WORKS_ON = """
    import _thread
    def work():
        time.sleep(3)
        print("worked on", flush=True)
    _thread.start_new_thread(work, ())
"""


class Deserted(unittest.TestCase):
    def leaves(self, code, python, says):
        with Supervisor() as s:
            process = s.start("-W", "ignore", "-c", textwrap.dedent(code), python=python)
            try:
                out, err = process.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                self.fail("the agent keeps the process: %s" % (kill(process),))
            self.assertEqual((process.returncode, out, err), (0, says, ""))

    def test_our_threads_leave_with_it(self):
        for python in PYTHONS:
            with self.subTest(python=python):
                self.leaves("import time" + textwrap.dedent(LEAVE), python, "")

    def test_the_writer_of_the_vault_leaves_too(self):
        for python in PYTHONS:
            with self.subTest(python=python):
                self.leaves(textwrap.dedent(BOTH) + textwrap.dedent(LEAVE), python, "")

    def test_a_thread_of_the_program_is_waited_for(self):
        with Supervisor() as s:
            code = "import time" + textwrap.dedent(WORKS_ON) + textwrap.dedent(LEAVE)
            process = s.start("-c", code)
            beats = len(s.wait("beat"))
            s.wait("beat", count=beats + 1, seconds=60)  # it goes on as long as the program does
            out, err = process.communicate(timeout=120)
            self.assertEqual((process.returncode, out, err), (0, "worked on\n", ""))


if __name__ == "__main__":
    unittest.main()
