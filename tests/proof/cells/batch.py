"""Runs many cells at once, writes `results.jsonl` and `results.md`, and goes on where an earlier batch stopped."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import threading

from . import limits, runner

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMBOS = {"with-agent,with-card": (True, True), "no-agent,with-card": (False, True),
          "with-agent,no-card": (True, False), "no-agent,no-card": (False, False)}


def parser(description, out):
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default=os.environ.get("FPT_BIN", str(ROOT / "target" / "debug" / "framepack-tui")))
    # absolute, since each cell runs in a folder of its own
    p.add_argument("--python", type=os.path.abspath, default=str(ROOT / ".venv" / "bin" / "python"), help="interpreter of the workloads")
    p.add_argument("--out", default=out, help="folder for results and streams")
    p.add_argument("--jobs", "-n", type=int, default=6, help="cells at once")
    p.add_argument("--only", action="append", default=[], metavar="TEXT", help="cells whose name contains TEXT (may be repeated)")
    p.add_argument("--combo", action="append", default=[], choices=sorted(COMBOS), help="default: all four")
    p.add_argument("--again", action="store_true", help="run the cells of this choice that have been wrong once more")
    p.add_argument("--list", action="store_true", help="print the cells and stop")
    return p


def combos(options):
    return [COMBOS[name] for name in (options.combo or COMBOS)]


def chosen(cells, options):
    return [c for c in cells if not options.only or any(text in c.key for text in options.only)]


def run_batch(cells, options, title, card="The card is an imitation: not yet run on AMD hardware"):
    """Runs what has no result yet, cells that must be alone last. Returns the exit code: 1 if any cell is wrong."""
    cells = chosen(cells, options)
    if options.list:
        print("\n".join("%-60s %s" % (c.key, c.expect.kind) for c in cells))
        return 0
    if not os.access(options.bin, os.X_OK):
        sys.exit("%s: no program; build it, or name one with --bin" % options.bin)
    out = pathlib.Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = read_results(out / "results.jsonl")
    waiting = [c for c in cells if c.key not in results or (options.again and not results[c.key]["right"])]
    numbers = (len(cells), len(waiting), options.jobs, limits.time_scale())
    print("%d cells, %d to run, %d at once, time scale %g" % numbers, flush=True)
    lock = threading.Lock()
    binary = pathlib.Path(options.bin).resolve()

    def run_and_note(cell):
        result = runner.run_cell(cell, binary, out)
        with lock, open(out / "results.jsonl", "a") as f:
            f.write(json.dumps(result) + "\n")
            results[cell.key] = result
            print("%-5s %-70s %s" % ("right" if result["right"] else "WRONG", cell.key, summarise(result)), flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(run_and_note, cell) for cell in waiting if not cell.alone]:
            future.result()
    for cell in waiting:
        if cell.alone:
            run_and_note(cell)
    rows = [results[c.key] for c in cells]
    (out / "results.md").write_text(markdown(rows, title, card))
    wrong = [r for r in rows if not r["right"]]
    print("%d of %d cells are right; %s" % (len(rows) - len(wrong), len(rows), out / "results.md"))
    return 1 if wrong else 0


def read_results(path):
    """The last result of each cell; a line that was cut off by a kill is skipped."""
    results = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                result = json.loads(line)
                results[result["cell"]] = result
            except (ValueError, KeyError):
                continue
    return results


def summarise(result):
    if result["wrong"]:
        return "; ".join(result["wrong"])
    if "delay_s" in result:
        return "after %.0f s of %.0f s" % (result["delay_s"], result["within_s"])
    return "left alone, %s" % (result.get("child") or ["?"])[-1]


def markdown(rows, title, card):
    """A table with one row a program and one column a combination."""
    names = list(dict.fromkeys(r["name"] for r in rows))
    columns = [c for c in COMBOS if any(r["combo"] == c for r in rows)]
    by_key = {(r["name"], r["combo"]): r for r in rows}
    right = sum(r["right"] for r in rows)
    lines = ["# " + title, "", "%d of %d cells are right. Time scale %g. %s." % (
        right, len(rows), rows[0]["scale"] if rows else 1, card), "",
        "| program | expected | %s |" % " | ".join(c.replace(",", ", ") for c in columns),
        "| --- | --- |%s" % (" --- |" * len(columns))]
    for name in names:
        mine = [by_key.get((name, c)) for c in columns]
        expect = next(r["expect"] for r in mine if r)
        cells = ["" if r is None else ("" if r["right"] else "**wrong** ") + summarise(r).replace("|", "/") for r in mine]
        lines.append("| %s | %s | %s |" % (name, expect, " | ".join(cells)))
    return "\n".join(lines) + "\n"
