#!/usr/bin/env python3
"""Runs every behaviour of tests/workloads/behaviours under the real supervisor, in four combinations or, with --once, in one.

    tests/proof/behaviours.py [--bin PROGRAM] [--jobs 6] [--only TEXT] [--combo with-agent,no-card] [--once] [--out FOLDER]

Combinations: with the agent or `--agent off`; with an imitated RX 7900 XTX or without a card. Expectations are those of
expected.toml. FPT_TIME_SCALE=4 divides the limits and the workloads' times by 4. A run that was interrupted goes on where
it stopped; results are in FOLDER/results.jsonl and results.md. Exit code: 0 all cells are right, 1 not.
"""
import pathlib
import sys
import tomllib

from cells import batch, limits
from cells.runner import Cell, Expectation, Helper

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "workloads" / "behaviours"
#: Before the scale. The longest silence limit without a job is 120 s.
HONEST_S = 200
#: `not_ended` after the result, `paused` after the stop: before the scale.
STATE_WITHIN_S = {"not_ended": 240, "paused": 60}
HONEST_FILES, HANGING_FILES = ("honest", "honest_more", "honest_jobs"), ("hang", "hang_more", "hang_jobs")


def read_cells(options):
    with open(FOLDER / "expected.toml", "rb") as f:
        expected = tomllib.load(f)
    cells = []
    for has_agent, has_card in batch.combos(options):
        def runs(row):
            return (has_agent or row.get("no_agent", True)) and (has_card or row.get("no_card", True))
        for file in HONEST_FILES:
            cells += [honest_cell(file, name, row, has_agent, has_card, options)
                      for name, row in expected[file].items() if runs(row)]
        for file in HANGING_FILES:
            cells += [hanging_cell(file, name, row, has_agent, has_card, options)
                      for name, row in expected[file].items() if runs(row)]
    return cells


def command(file, name, row, options):
    seconds = "%g" % max(1, round(HONEST_S / limits.time_scale()))
    if "argv" in row:
        return [a.replace("{seconds}", seconds).replace("{here}", str(FOLDER)).replace("{python}", options.python) for a in row["argv"]]
    return [options.python, str(FOLDER / (file + ".py")), name]


def helpers(row, options):
    """Processes outside the tree that a behaviour needs."""
    peer = {"given": "honest.py", "own": "peer.py"}
    found = []
    if "peer" in row:
        found.append(Helper([options.python, str(FOLDER / peer[row["peer"]]), "serve"], "FPT_PEER"))
    if "scrape" in row:
        found.append(Helper([options.python, str(FOLDER / "peer.py"), "scrape", "port", "1", row["scrape"]]))
    if "user" in row:
        user = {"waits": "order", "cancels": "cancel"}
        found.append(Helper([options.python, str(FOLDER / "peer.py"), user[row["user"]], "port"]))
    if row.get("trace"):
        found.append(Helper([options.python, str(FOLDER / "peer.py"), "trace", "pid"]))
    return found


def honest_cell(file, name, row, has_agent, has_card, options):
    expect = Expectation("alone", exit_status=row.get("exit", 0), result=row.get("result", "done") or None)
    return Cell("%s/%s" % (file, name), command(file, name, row, options), expect, has_agent,
                row.get("card", "held") if has_card else "none", {"FPT_SECONDS": str(HONEST_S)},
                helpers(row, options), wall_s=HONEST_S / limits.time_scale() + 240)


def hanging_cell(file, name, row, has_agent, has_card, options):
    if "state" in row:
        within = STATE_WITHIN_S[row["state"]] / limits.time_scale() + limits.SLACK_S
        expect = Expectation("state", (row["state"],), within_s=within)
    else:
        phases = row["phase"] if has_agent else row.get("phase_console", [*row["phase"], "unknown"])
        within = limits.declared_within(phases, has_card, row.get("spins", False))
        expect = Expectation("declared", tuple(row.get("verdicts", ["silent_hang"])), tuple(phases), within,
                             any_health=row.get("any_health", False))
    return Cell("%s/%s" % (file, name), command(file, name, row, options), expect, has_agent,
                "held" if has_card else "none", {}, helpers(row, options), wall_s=expect.within_s + 300)


def one_of_each(cells):
    """Each behaviour in one combination: honest ones in turn, hangs with a card, where they are declared soonest."""
    combinations = {}
    for cell in cells:
        combinations.setdefault(cell.name, []).append(cell)
    chosen = []
    for number, mine in enumerate(combinations.values()):
        if mine[0].expect.kind != "alone":
            mine = [c for c in mine if c.card != "none"]
        chosen.append(mine[number % len(mine)])
    return chosen


def main():
    p = batch.parser(__doc__, "outputs/proof/behaviours")
    p.add_argument("--once", action="store_true", help="each behaviour in one combination")
    options = p.parse_args()
    cells = read_cells(options)
    return batch.run_batch(one_of_each(cells) if options.once else cells, options, "Behaviours")


if __name__ == "__main__":
    sys.exit(main())
