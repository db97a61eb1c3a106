"""The start of a Python with the agent: what it imports, what it leaves on the disk."""
import glob
import json
import os
import shutil
import subprocess
import sys
import unittest
import zipapp
import zipfile

from support_vault import PACKAGE, Supervisor

LAUNCHER = os.path.join(PACKAGE, "fpt_run.py")
#: Interpreters that the agent is not for.
OLDER = [python for version in ("2.7", "3.4", "3.6", "3.8")
         for python in glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python" % version)) + [shutil.which("python" + version)]
         if python]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def both(s, *words, flags=("-I",)):
    """What a command does by itself and through the launcher: (exit code, output, errors) each."""
    runs = []
    for launcher in ([], [LAUNCHER]):
        done = subprocess.run([sys.executable, *flags, *launcher, *words], env=s.environment(package=False), cwd=s.folder,
                              text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=240)
        runs.append((done.returncode, done.stdout, done.stderr))
    return runs


class Start(unittest.TestCase):
    """What a start reads and writes."""

    def test_json_is_that_of_the_package(self):
        sys.path.insert(0, PACKAGE)
        self.addCleanup(sys.path.remove, PACKAGE)
        from fpt_agent import wire

        class Odd:
            def __str__(self):
                return "odd"

        values = [None, True, [], {}, "", "ä\n\U0001f600\ud800", 1, -2.5e300, 1e22, [1, [2, (3,)], {"a": {"b": None}}],
                  {1: 2, None: 3, "x": Odd(), (1, 2): "left out", 2.5: 4, True: 5}, [Odd()], 10 ** 40]
        for value in values:
            text = wire.dumps(value)
            self.assertEqual(text, json.dumps(value, default=str, separators=(",", ":"), allow_nan=False, skipkeys=True))
            self.assertEqual(wire.loads(text), json.loads(text))
        for text in (' {"a" : [1, 2.5, "\\u00e4", NaN, {"b": false}]} \n', "-0", '"x"'):
            self.assertEqual(repr(wire.loads(text)), repr(json.loads(text)))
        for text in ("", "{", "[1,", "{broken", "1 2", "nul", '{"a"}', '"\n"', "[1]]"):
            with self.assertRaises(ValueError, msg=text):
                wire.loads(text)
        ring = []
        ring.append(ring)
        for value in (float("nan"), [float("inf")], ring):
            with self.assertRaises(ValueError):
                wire.dumps(value)

    def test_modules_of_a_start(self):
        code = "import sys; print(sorted({'json', 're', 'enum', 'signal', 'importlib.util', 'typing', 'socket', 'threading', 'functools', 'collections'} & set(sys.modules)))"
        with Supervisor() as s:
            plain = s.run("-I", "-S", "-c", code)[1]
            self.assertEqual(plain, "[]\n")
            self.assertEqual(s.run("-I", "-S", LAUNCHER, "-c", code), (0, "[]\n", ""))
            s.wait("hello")

    def test_packed_programs(self):
        with Supervisor() as s:
            tell = "import sys, inside\nprint(__name__, sys.argv, sys.path[0], inside.__file__, __file__)"
            for name, text in (("__main__.py", tell), ("inside.py", ""), ("sub/__main__.py", tell), ("sub/inside.py", "")):
                write(os.path.join(s.folder, "app", name), text)
            app = os.path.join(s.folder, "app")
            zipapp.create_archive(app, app + ".pyz", interpreter="/usr/bin/env python3")
            zipapp.create_archive(app, app + ".zip")
            with zipfile.ZipFile(app + ".tail", "w") as file:
                file.write(os.path.join(app, "__main__.py"), "__main__.py")
                file.write(os.path.join(app, "inside.py"), "inside.py")
                file.comment = b"a word"
            write(os.path.join(s.folder, "cut.pyz"), "PK\x03\x04 no archive")
            write(os.path.join(s.folder, "empty", "nothing.py"), "")
            for words in (["app"], ["app.pyz", "a"], ["./app.zip"], ["app.tail"], ["app.pyz/sub"], ["cut.pyz"]):
                for flags in (["-I"], ["-E", "-S"]):
                    with self.subTest(words=words, flags=flags):
                        plain, ours = both(s, *words, flags=flags)
                        self.assertEqual(plain[0], 1 if words == ["cut.pyz"] else 0, plain)
                        self.assertEqual(ours[:2], plain[:2])
            plain, ours = both(s, "empty")
            self.assertEqual(ours[:2], plain[:2])
            self.assertIn("can't find '__main__' module in", ours[2])

    def test_an_older_python_finds_its_own_sitecustomize(self):
        found = [python for python in OLDER if subprocess.run([python, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0]
        if not found:
            self.skipTest("NOT RUN: no Python older than 3.9 here")
        for python in found:
            for there in (True, False):
                with self.subTest(python, there=there), Supervisor() as s:
                    home = os.path.join(s.folder, "agent")
                    shutil.copytree(PACKAGE, home, ignore=shutil.ignore_patterns("__pycache__"))
                    if there:
                        with open(os.path.join(s.folder, "sitecustomize.py"), "w") as file:
                            file.write("import sys\nname = 'theirs'\nsys.seen = __name__, __file__\n")
                    env = dict(s.environment(), PYTHONPATH=home + os.pathsep + s.folder)
                    code = ("import sys; m = sys.modules.get('sitecustomize'); print(getattr(m, 'name', None));"
                            "print(getattr(sys, 'seen', '')[:1]); print('fpt_agent' in sys.modules);"
                            "print([p for p in sys.path if p.endswith('agent')])")
                    want = "theirs\n('sitecustomize',)\nFalse\n[]\n" if there else "None\n%s\nFalse\n[]\n" % ""
                    self.assertEqual(s.run("-c", code, env=env, python=python), (0, want, ""))
                    self.assertEqual([n for n in os.listdir(home) if n.endswith(".pyc")], [])
                    self.assertFalse(s.of("hello"))

    def test_the_first_file_is_one_that_python_2_understands(self):
        try:
            from lib2to3 import pygram, pytree
            from lib2to3.pgen2 import driver
        except ImportError:
            self.skipTest("NOT RUN: lib2to3 has gone from this Python")
        with open(os.path.join(PACKAGE, "sitecustomize.py")) as file:
            driver.Driver(pygram.python_grammar, convert=pytree.convert).parse_string(file.read())

    def test_compiled_once_where_python_may_not(self):
        with Supervisor() as s:
            home = os.path.join(s.folder, "agent")
            shutil.copytree(PACKAGE, home, ignore=shutil.ignore_patterns("__pycache__"))
            with open(os.path.join(s.folder, "theirs.py"), "w") as file:
                file.write("VALUE = 1")
            env = dict(s.environment(), PYTHONPATH=home + os.pathsep + s.folder, PYTHONDONTWRITEBYTECODE="1")
            code = ("import os, sys, theirs; from fpt_agent import agent; print(os.path.exists(agent.__cached__), sys.dont_write_bytecode,"
                    " os.path.exists(theirs.__cached__))")
            self.assertEqual(s.run("-c", code, env=env), (0, "True True False\n", ""))
            package = os.path.join(home, "fpt_agent")
            names = [n for n in os.listdir(package) if n.endswith(".py")]
            compiled = os.listdir(os.path.join(package, "__pycache__"))
            self.assertEqual(sorted(n.split(".")[0] + ".py" for n in compiled), sorted(names), "whole names, each once")
            compiled = os.listdir(os.path.join(home, "__pycache__"))
            self.assertEqual([n.split(".")[0] for n in compiled], ["sitecustomize"])
            # not made anew, and not in the way where nothing can be written
            code = "import sys; print('py_compile' in sys.modules)"
            self.assertEqual(s.run("-c", code, env=env), (0, "False\n", ""))
            shutil.rmtree(os.path.join(package, "__pycache__"))
            open(os.path.join(package, "__pycache__"), "w").close()
            self.assertEqual(s.run("-c", "print(1)", env=env), (0, "1\n", ""))
            env["PYTHONPYCACHEPREFIX"] = os.path.join(s.folder, "prefix")
            self.assertEqual(s.run("-c", "print(1)", env=env), (0, "1\n", ""))
            self.assertFalse(os.path.exists(env["PYTHONPYCACHEPREFIX"]), "a folder of the user's")


if __name__ == "__main__":
    unittest.main()
