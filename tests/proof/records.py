#!/usr/bin/env python3
"""Keeps the streams of a batch for CI, and replays them there.

    tests/proof/records.py save RESULTS RECORDS       RESULTS: the --out folder of a batch; only cells that are right, in real time
    tests/proof/records.py check RECORDS [--bin PROGRAM] [--jobs 2]

`save` packs each stream and puts neutral words in place of this machine's folders and name. `check` runs `replay --assert`
on each: today's rules must say what the real run said, at the same times. Exit code 1 if any differs.
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

from cells import batch


def neutral_words(results):
    """What names this machine, longest first. Folders of one kind get one word."""
    words = {str(results.resolve()): "/proof", str(batch.ROOT): "/checkout", str((batch.ROOT / ".venv").resolve()): "/checkout/.venv",
             str((batch.ROOT / ".venv" / "bin" / "python").resolve().parents[1]): "/usr", os.path.expanduser("~"): "/home/user",
             str(batch.ROOT.parent): "/checkouts", socket.gethostname(): "host"}
    return sorted(((k, v) for k, v in words.items() if len(k) > 3 and k != "localhost"), key=lambda pair: -len(pair[0]))


def save(results, records):
    words = neutral_words(results)
    records.mkdir(parents=True, exist_ok=True)
    for result in batch.read_results(results / "results.jsonl").values():
        name = result["cell"].replace(" ", "~").replace("/", "~")
        # the run's own record: unlike the stream of --headless it has the ticks upon which the rules judge
        found = sorted((results / "cells" / name / "xdg-state" / "framepack-tui" / "runs").glob("*/events.jsonl.gz"))
        if not result["right"] or result["scale"] != 1 or len(found) != 1:
            print("left out: %s" % result["cell"])
            continue
        text = gzip.decompress(found[0].read_bytes()).decode()
        for found, word in words:
            text = re.sub(r"(?<![\w-])" + re.escape(found) + r"(?![\w-])", word, text)
        with open(records / (name + ".jsonl.gz"), "wb") as f:
            f.write(gzip.compress(text.encode(), 9, mtime=0))
        if '"event":{"kind":"kernel"' in text:
            print("%s has lines of the kernel log: read them before they are published" % name)


def replay(binary, record):
    """The exit code and the last lines of one replay."""
    with tempfile.TemporaryDirectory() as folder:
        plain = pathlib.Path(folder) / "stream.jsonl"
        plain.write_bytes(gzip.decompress(record.read_bytes()))
        done = subprocess.run([binary, "replay", plain, "--assert"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, XDG_STATE_HOME=folder), timeout=300)
    return done.returncode, (done.stdout + done.stderr).strip().splitlines()[-6:]


def check(records, binary, jobs):
    files = sorted(records.glob("*.jsonl.gz"))
    if not files:
        sys.exit("%s: no records" % records)
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for record, (code, lines) in zip(files, pool.map(lambda record: replay(binary, record), files)):
            if code != 0:
                wrong += 1
                print("WRONG %s (exit %d)\n      %s" % (record.name, code, "\n      ".join(lines)))
    print(json.dumps({"records": len(files), "wrong": wrong}))
    return 1 if wrong else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("action", choices=("save", "check"))
    p.add_argument("folders", nargs="+", type=pathlib.Path)
    p.add_argument("--bin", default=os.environ.get("FPT_BIN", str(batch.ROOT / "target" / "debug" / "framepack-tui")))
    p.add_argument("--jobs", type=int, default=2)
    options = p.parse_args()
    if options.action == "save":
        return save(*options.folders)
    return check(options.folders[0], options.bin, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
