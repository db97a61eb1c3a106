#!/usr/bin/env python3
"""Hangs and honest work on a real NVIDIA card, under the real supervisor.

    tests/proof/nvidia.py [--bin PROGRAM] [--python PYTHON] [--jobs 3] [--only TEXT] [--out FOLDER]

Four harmless activities beside a hang, with the agent and without: declared within twice the limit of its phase. Three honest
programs that work on the card for long without a word: left alone. What keeps the card busy runs one after the other.
"""
import pathlib
import sys

from cells import batch, limits
from cells.runner import Cell, Expectation, Helper

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "workloads" / "behaviours" / "nvidia.py"
HANGS = ("beside_a_line", "beside_a_bar", "beside_statistics", "beside_another_job")
HONEST = ("one_long_kernel", "queue_of_products", "transfers")
HONEST_S = 200


def hanging_cell(name, has_agent, options):
    phases = ("vae_decode",) if has_agent else ("vae_decode", "unknown")
    within = limits.declared_within(phases, True)
    expect = Expectation("declared", ("silent_hang", "find_stall"), phases, within)
    beside = name == "beside_another_job"
    helpers = [Helper([options.python, str(PROGRAM), "compute"], "FPT_OTHER")] if beside else []
    return Cell("nvidia/" + name, [options.python, str(PROGRAM), name], expect, has_agent, "real", {}, helpers,
                wall_s=within + 180, alone=beside)


def honest_cell(name, has_agent, options):
    return Cell("nvidia/" + name, [options.python, str(PROGRAM), name], Expectation("alone"), has_agent, "real",
                {"FPT_SECONDS": str(HONEST_S)}, wall_s=3 * HONEST_S / limits.time_scale() + 120, alone=True)


def read_cells(options):
    cells = []
    for has_agent in (True, False):
        cells += [hanging_cell(name, has_agent, options) for name in HANGS]
        cells += [honest_cell(name, has_agent, options) for name in HONEST]
    return cells


def main():
    options = batch.parser(__doc__, "outputs/proof/nvidia").parse_args()
    return batch.run_batch(read_cells(options), options, "On an NVIDIA card", "The card is real")


if __name__ == "__main__":
    sys.exit(main())
