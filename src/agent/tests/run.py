#!/usr/bin/env python3
"""Runs all tests of this folder, in several processes side by side.

    python src/agent/tests/run.py [--jobs 2] [MODULE …]

Most of the time goes into starting Pythons that import torch, on one core each. Every process takes the next file when
it is done with one, so the longest come first: size of a file is a good enough measure. Prints what a file printed when
it is through; the exit code is 1 if a test failed or a file had none.
"""
import argparse
import os
import queue
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def modules():
    names = [name[:-3] for name in os.listdir(HERE) if name.startswith("test_") and name.endswith(".py")]
    return sorted(names, key=lambda name: -os.path.getsize(os.path.join(HERE, name + ".py")))


def run(name):
    """Whether all of its tests passed; prints its output."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "unittest", "-v", name], cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    # from 3.12 on unittest says so itself, by exit code 5
    empty = "\nRan 0 tests" in done.stdout
    word = "no tests" if empty else "ok" if done.returncode == 0 else "FAILED (exit code %d)" % done.returncode
    sys.stdout.write("%s\n-- %s: %s, %.0f s\n" % (done.stdout, name, word, time.monotonic() - began))
    sys.stdout.flush()
    return done.returncode == 0 and not empty


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("modules", nargs="*")
    args = parser.parse_args()
    waiting, failed = queue.SimpleQueue(), []
    names = args.modules or modules()
    for name in names:
        waiting.put(name)

    def work():
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                ok = run(name)
            except OSError as error:
                print("-- %s: %s" % (name, error))
                ok = False
            if not ok:
                failed.append(name)

    workers = [threading.Thread(target=work) for _ in range(max(1, args.jobs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("agent: %d files, %s" % (len(names), "failed: " + ", ".join(sorted(failed)) if failed else "all passed"))
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
