"""What is hooked looks to the program as it is without the agent: imports and their errors, names, signatures, sources."""
import os
import subprocess
import sys
import textwrap
import unittest
import zipfile

from support_vault import Supervisor


class Imports(unittest.TestCase):
    def both(self, s, code, std):
        """What a program prints by itself and under the agent, beside a package `tqdm` with this module `std`."""
        for name, text in {"main.py": code, "tqdm/__init__.py": "", "tqdm/std.py": std}.items():
            path = os.path.join(s.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(textwrap.dedent(text))
        runs = []
        for package in (False, True):
            env = s.environment(package=package)
            if not package:
                env = {name: value for name, value in env.items() if not name.startswith("FPT_")}
            done = subprocess.run([sys.executable, "main.py"], env=env, cwd=s.folder, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=240)
            runs.append((done.returncode, done.stdout, done.stderr))
        self.assertEqual(runs[1], runs[0])
        return runs[0]

    def test_an_import_that_fails(self):
        with Supervisor() as s:
            for body in ("raise OSError('bad')", "import nothing_there", "x x", "from os import nothing_there", "def f(): 1 / 0\nf()",
                         "raise KeyboardInterrupt"):
                for code in ("import tqdm.std", "import sys, traceback\ntry: import tqdm.std\n"
                             "except BaseException: traceback.print_exc(file=sys.stdout)"):
                    code, out, err = self.both(s, code, body)
                    self.assertIn("line", out + err)
            self.assertTrue(s.of("hello"))
            # Python cuts nothing out of what this raises
            out = self.both(s, "import importlib\ntry: importlib.import_module('tqdm.std')\nexcept OSError as error:\n"
                            "    while error.__traceback__: last, error.__traceback__ = error.__traceback__, error.__traceback__.tb_next\n"
                            "    print(last.tb_lineno)", "\n\nraise OSError")[1]
            self.assertEqual(out, "3\n")

    def test_a_warning_of_an_import_has_the_importers_place(self):
        with Supervisor() as s:
            out = self.both(s, "import tqdm.std", "import warnings\nwarnings.warn('old', FutureWarning, stacklevel=2)")
            self.assertIn("main.py:1: FutureWarning: old", out[2])

    def test_a_wrapper_looks_like_what_it_wraps(self):
        bar = """
            class tqdm:
                n, total, desc, unit, disable = 0, 3, "", "it", False
                def display(self):
                    "Draws."
                    print("drawn")
                def update(self, n=1):
                    self.n += n
        """
        code = """
            import importlib, inspect, pickle, tqdm.std
            for turn in range(2):
                for f in (tqdm.std.tqdm.update, tqdm.std.tqdm.display):
                    print(inspect.signature(f), f.__name__, f.__qualname__, f.__module__, f.__doc__, pickle.loads(pickle.dumps(f)) is f)
                    print(inspect.getsource(f), inspect.getsourcelines(f)[1])
                t = tqdm.std.tqdm()
                t.update(1)
                t.display()
                print(t.n)
                importlib.reload(tqdm.std)
        """
        with Supervisor() as s:
            self.assertIn("(self, n=1) update tqdm.update tqdm.std None True", self.both(s, code, bar)[1])
            s.wait("progress")

    @unittest.skipIf(sys.version_info < (3, 10), "its importer has no exec_module that could be hooked")
    def test_one_loader_for_all_of_a_zip_file(self):
        with Supervisor() as s:
            path = os.path.join(s.folder, "all.zip")
            with zipfile.ZipFile(path, "w") as box:
                box.writestr("tqdm/__init__.py", "")
                box.writestr("tqdm/std.py", "class tqdm:\n    def display(self): pass\n    def update(self, n=1): pass\n")
                box.writestr("tqdm/other.py", "print('other')\n")
            out = s.run("-c", "import sys; sys.path.insert(0, %r); import tqdm.std, tqdm.other" % path)
            self.assertEqual(out, (0, "other\n", ""))
            s.wait("bye")
            self.assertEqual([m["module"] for m in s.of("hooked")], ["tqdm.std"])
            self.assertFalse(s.of("hook_failed"))


if __name__ == "__main__":
    unittest.main()
