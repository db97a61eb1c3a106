#!/usr/bin/env python3
"""What the agent adds to the start of Python: `python -c pass`, and `import torch` where there is one.

    python src/agent/bench/startup.py [PYTHON …]

Pairs with and without the agent, alternating; medians, the ratio, and the median of the differences. A supervisor
listens, so the connection and the last word at the end are counted.
"""
import json
import os
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
    began = time.perf_counter()
    subprocess.run([python, "-c", code], env=env, check=True)
    return (time.perf_counter() - began) * 1000


def compare(python, code, pairs, with_, without):
    took(python, code, with_), took(python, code, without)  # writes the compiled files
    rows = [(took(python, code, without), took(python, code, with_)) for _ in range(pairs)]
    a, b = (statistics.median(column) for column in zip(*rows))
    more = statistics.median(y - x for x, y in rows)
    print("%-14s without %7.1f ms  with %7.1f ms  ratio %.3f  difference %+.1f ms (median of %d pairs)" % (code, a, b, b / a, more, pairs))


def main():
    for python in sys.argv[1:] or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            listen(os.path.join(folder, "s"))
            without = {k: v for k, v in os.environ.items() if not k.startswith(("FPT_", "PYTHONPATH"))}
            told = {"run": "r", "attempt": 1, "vault": folder, "stacks_file": os.path.join(folder, "stacks"), "settings": {}}
            with_ = dict(without, PYTHONPATH=PACKAGE, FPT_AGENT_SOCKET=os.path.join(folder, "s"), FPT_AGENT_CONFIG=json.dumps(told))
            print(python, subprocess.check_output([python, "-c", "import sys; print(sys.version.split()[0])"], text=True).strip())
            compare(python, "pass", 31, with_, without)
            compare(python, "import json, re", 31, with_, without)
            if subprocess.run([python, "-c", "import torch"], env=without, stderr=subprocess.DEVNULL).returncode == 0:
                compare(python, "import torch", 5, with_, without)


if __name__ == "__main__":
    main()
