#!/usr/bin/env python3
"""What the agent adds to the start of Python: `python -c pass`, and `import torch` where there is one.

    python src/agent/bench/startup.py [PYTHON …]

Pairs with and without the agent, alternating; medians, the median of the differences, and the fastest with over the
fastest without, which other programs have not interrupted: in milliseconds that passed, and of processor time. A
supervisor listens, so the connection and the last word at the end are counted.
"""
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")


def listen(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(16)

    def drain(connection):
        while connection.recv(1 << 16):
            pass

    def serve():
        while True:
            threading.Thread(target=drain, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def took(python, code, env):
    """(milliseconds that passed, milliseconds of processor time)"""
    began = time.perf_counter()
    process = subprocess.Popen([python, "-c", code], env=env)
    _, status, used = os.wait4(process.pid, 0)
    passed = time.perf_counter() - began
    process.returncode = status
    if status:
        raise SystemExit("%s: status %d" % (python, status))
    return passed * 1000, (used.ru_utime + used.ru_stime) * 1000


def compare(version, python, code, pairs, with_, without):
    took(python, code, with_), took(python, code, without)  # writes the compiled files
    rows = [(took(python, code, without), took(python, code, with_)) for _ in range(pairs)]
    told = ["`%s`" % code]
    for clock in (0, 1):
        columns = [[row[way][clock] for row in rows] for way in (0, 1)]
        a, b = map(statistics.median, columns)
        more = statistics.median(y - x for x, y in zip(*columns))
        told += ["%.1f" % a, "%.1f" % b, "%+.1f" % more, "%+.1f" % (min(columns[1]) - min(columns[0]))]
    print("| %s | %s | %d |" % (version, " | ".join(told), pairs))


def main():
    print("| Python | program | without | with | more | more, fastest | without, CPU | with, CPU | more, CPU | more, CPU, fastest | pairs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for python in sys.argv[1:] or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            listen(os.path.join(folder, "s"))
            # as it is unpacked: no compiled files of earlier states, which would be compiled anew at each start
            package = shutil.copytree(PACKAGE, os.path.join(folder, "agent"), ignore=shutil.ignore_patterns("__pycache__"))
            without = {k: v for k, v in os.environ.items() if not k.startswith(("FPT_", "PYTHONPATH", "PYTHONDONTWRITE"))}
            told = {"run": "r", "attempt": 1, "vault": folder, "stacks_file": os.path.join(folder, "stacks"), "settings": {}}
            with_ = dict(without, PYTHONPATH=package, FPT_AGENT_SOCKET=os.path.join(folder, "s"), FPT_AGENT_CONFIG=json.dumps(told))
            version = subprocess.check_output([python, "-c", "import sys; print(sys.version.split()[0])"], text=True).strip()
            compare(version, python, "pass", 31, with_, without)
            compare(version, python, "import json, re", 31, with_, without)
            if subprocess.run([python, "-c", "import torch"], env=without, stderr=subprocess.DEVNULL).returncode == 0:
                compare(version, python, "import torch", 11, with_, without)


if __name__ == "__main__":
    main()
