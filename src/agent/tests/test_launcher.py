"""The launcher's words and exit codes are those of Python itself."""
import os
import subprocess
import sys
import unittest

from support_vault import PACKAGE, Supervisor

LAUNCHER = os.path.join(PACKAGE, "fpt_run.py")
HOOK = b"import sys\ndef hook(kind, value, trace):\n    %s\nsys.excepthook = hook\n1/0\n"
LAST = (b"import atexit, sys\natexit.register(lambda: print(sys.last_value, sys.last_traceback.tb_lineno, sys.last_traceback.tb_next,"
        b" sys.excepthook is sys.__excepthook__))\n1/0\n")


class Launcher(unittest.TestCase):
    def setUp(self):
        self.supervisor = Supervisor(listens=False)
        self.addCleanup(self.supervisor.__exit__)

    def same(self, *words, flags=("-I",), given=b"", file=None):
        """The command does by itself what it does through the launcher; the latter's exit code, output and errors."""
        if file is not None:
            with open(os.path.join(self.supervisor.folder, words[0]), "wb") as out:
                out.write(file)
        runs = []
        for launcher in ([], [LAUNCHER]):
            done = subprocess.run([sys.executable, *flags, *launcher, *words], env=self.supervisor.environment(package=False),
                                  cwd=self.supervisor.folder, input=given, capture_output=True, timeout=240)
            runs.append((done.returncode, done.stdout, done.stderr))
        self.assertEqual(runs[1], runs[0], (flags, words, given, file))
        self.assertNotIn(b"fpt_agent", runs[1][2])
        return runs[1]

    def test_the_first_line_is_left_out(self):
        for flags in (["-xE"], ["-I", "-x"], ["-E", "-x", "-B"]):
            code, out, _ = self.same("x.py", "a", flags=flags, file=b"garbage line\nimport sys\nprint(sys.argv)\n")
            self.assertEqual((code, out.split()), (0, [b"['x.py',", b"'a']"]))
            self.assertIn(b"line 3", self.same("x.py", flags=flags, file=b"garbage line\r\n\r\n1/0\r\n")[2])
            self.assertEqual(self.same("x.py", flags=flags, file=b"garbage")[0], 0)
            self.assertEqual(self.same("-c", "print(1)", flags=flags)[1].strip(), b"1")
            self.assertEqual(self.same("-", flags=flags, given=b"print(1)\n")[1].strip(), b"1")
        self.assertEqual(self.same("x.py", file=b"print(1)\nprint(2)\n")[1].split(), [b"1", b"2"])

    def test_what_cannot_be_compiled(self):
        sources = (b"print(1)\n\0print(2)\n", b"x = 1\nprint(1)\0 (\nprint(3)\n", b"# caf\xe9\nprint(1)\n", b'x = 1\ny = "\xe9"\n',
                   b"# -*- coding: nonsense -*-\n", b'# -*- coding: latin-1 -*-\nprint(ascii("\xe9"))\n',
                   b"\xef\xbb\xbf# -*- coding: latin-1 -*-\nprint(1)\n", b"x = 1\nif x\n  y", b"if 1:\nprint(2)\n", b"x = (1,\n",
                   b'x = """abc\n', b"if 1:\n\tx = 1\n        y = 2\n")
        for source in sources:
            self.same("x.py", file=source)
            if b"latin" not in source:  # Python reads such a file again from its start, which a pipe cannot do
                self.same("-", given=source)

    def test_no_such_file(self):
        for path in ("none.py", "./a/../none.py"):
            code, _, err = self.same(path)
            self.assertEqual((code, os.path.join(self.supervisor.folder, path).encode() in err), (2, True))

    def test_the_lines_of_code(self):
        for text in ("1/0", "def f():\n  1/0\nf()", "x x", "exec('1/0')"):
            self.same("-c", text)

    def test_what_an_excepthook_does(self):
        for body in (b"raise KeyError('mine')", b"sys.exit(7)", b"print(kind, value, trace.tb_lineno, sys.exc_info(), sys.last_value)"):
            self.same("x.py", file=HOOK % body)
        self.same("x.py", file=b"import sys\ndel sys.excepthook\n1/0\n")
        self.same("x.py", file=b"import sys\nsys.excepthook = 3\n1/0\n")
        self.same("x.py", file=HOOK % b"print(kind)" + b"raise KeyboardInterrupt\n")
        self.assertIn(b"division by zero 3 None True", self.same("x.py", file=LAST)[1])


if __name__ == "__main__":
    unittest.main()
