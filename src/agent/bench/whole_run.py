#!/usr/bin/env python3
"""What the agent costs a whole run: pairs with and without it, alternating.

    python src/agent/bench/whole_run.py [--pairs 10] [--threads 1] [PROGRAM …]

The programs are tests/workloads/tiny_framepack.py and tiny_framepack_app.py, with a vault and a supervisor that listens,
so that everything is on that is on in a run. A run's time is that of the whole process, first line to exit. Prints the
median of the ratios with its sign-test interval (95 %), for the time that passed and for the processor time, which a
busy machine hides less; and how many pairs were slower with the agent.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from startup import PACKAGE, listen

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
WORKLOADS = os.path.join(ROOT, "tests", "workloads")
PROGRAMS = {
    "tiny_framepack.py": ["--sections", "3", "--steps", "8"],
    "tiny_framepack_app.py": ["--job", "once", "--exit-on-error", "--sections", "3", "--steps", "8"],
}


def interval(ratios):
    """The pair of order statistics between which the median lies with 95 % or more (sign test)."""
    n, ordered = len(ratios), sorted(ratios)
    rank = 0
    while rank < n // 2 and 2 * sum(math.comb(n, k) for k in range(rank + 1)) / 2 ** n <= 0.05:
        rank += 1
    return (ordered[rank - 1], ordered[n - rank]) if rank else (float("nan"), float("nan"))


def took(program, env, threads):
    """(seconds that passed, seconds of processor time) of one run in a folder of its own."""
    folder = tempfile.mkdtemp(prefix="fpt")
    env = dict(env, OMP_NUM_THREADS=str(threads), HF_HUB_OFFLINE="1")
    if "FPT_AGENT_SOCKET" in env:
        told = {"run": "r", "attempt": 1, "vault": os.path.join(folder, "vault"), "settings": {},
                "stacks_file": os.path.join(folder, "stacks"), "conv_memory": os.path.join(folder, "shapes.json")}
        env["FPT_AGENT_CONFIG"] = json.dumps(told)
    try:
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-W", "ignore", os.path.join(WORKLOADS, program), "--out", folder, *PROGRAMS[program]],
                                   env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        passed = time.perf_counter() - began
        process.returncode = status
        if status:
            raise SystemExit("%s: status %d" % (program, status))
        return passed, used.ru_utime + used.ru_stime
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("programs", nargs="*", default=sorted(PROGRAMS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        listen(os.path.join(folder, "s"))
        without = {k: v for k, v in os.environ.items() if not k.startswith(("FPT_", "PYTHONPATH"))}
        with_ = dict(without, PYTHONPATH=PACKAGE, FPT_AGENT_SOCKET=os.path.join(folder, "s"))
        print("| program | clock | without, s | with, s | median of ratios | 95 % interval | slower with | pairs |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for program in args.programs:
            took(program, with_, args.threads)  # reads the files into memory
            rows = []
            for pair in range(args.pairs):
                # whoever comes second finds the machine as the first has left it: in turn
                order = ((without, with_), (with_, without))[pair % 2]
                one, other = took(program, order[0], args.threads), took(program, order[1], args.threads)
                rows.append((one, other) if pair % 2 == 0 else (other, one))
            for clock, name in ((0, "passed"), (1, "processor")):
                plain, ours = [r[0][clock] for r in rows], [r[1][clock] for r in rows]
                ratios = [b / a for a, b in zip(plain, ours)]
                low, high = interval(ratios)
                print("| `%s` | %s | %.2f | %.2f | %.3f | %.3f to %.3f | %d | %d |" % (
                    program, name, statistics.median(plain), statistics.median(ours), statistics.median(ratios), low, high,
                    sum(r > 1 for r in ratios), len(ratios)), flush=True)


if __name__ == "__main__":
    main()
