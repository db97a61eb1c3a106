#!/usr/bin/env python3
"""Every row of tests/workloads/more/README.md under the real supervisor: real diffusers pipelines, handled errors, launchers.

    tests/proof/rows.py [--bin PROGRAM] [--jobs 4] [--only TEXT] [--combo ...] [--out FOLDER]

A healthy program leaves the same file to the bit as without the supervisor. After a hang in the decode the restart does too
(exit code 10). Default combination: with the agent and the imitated card, profile generic-amd. The server rows with a
client are in matrix.py (gradio, gradio_spawned).
"""
import sys

import matrix
from cells import batch, limits
from cells.runner import Cell, Expectation

DECODE = {"FAULT_KERNEL": "3", "FAULT_CALL": "20", "FAULT_FLAG": "flag"}
#: Decoders of fewer convolutions.
CALLS = {"ltx": "8"}
HIP_FAULT = "HIP error: an illegal memory access was encountered"
GENERATIONS = {
    "wan": ["--kind", "wan"], "ltx": ["--kind", "ltx"], "hunyuan": ["--kind", "hunyuan"], "cog": ["--kind", "cog"],
    "wan-callback": ["--kind", "wan", "--callback"], "wan-tiling": ["--kind", "wan", "--tiling"],
    "wan-compile": ["--kind", "wan", "--compile"], "wan-latent": ["--kind", "wan", "--latent"],
}
HANDLED = ("oom", "miopen", "dtype", "flash")
SERVERS = ("oom", "miopen", "dtype", "dev", "hipblas", "flash")


class Rows:
    def __init__(self, ways, has_agent, has_card):
        self.ways, self.has_agent, self.has_card = ways, has_agent, has_card
        self.env = {"MORE_WORK": str(ways.tools), "VENV": str(ways.tools / "venv")}

    def cell(self, name, argv, expect, env=None, **more):
        options = more.pop("options", ["--profile", "generic-amd"] if self.has_card else [])
        return Cell(name, argv, expect, self.has_agent, "held" if self.has_card else "none", {**self.env, **(env or {})},
                    options=options, wall_s=expect.within_s + 600, **more)

    def declared(self, kind="declared", phases=("vae_decode",), verdicts=("silent_hang",)):
        phases = [*phases, *([] if self.has_agent else ["unknown"])]
        return Expectation(kind, verdicts, tuple(phases), limits.declared_within(phases, self.has_card))

    def generations(self):
        for name, arguments in GENERATIONS.items():
            argv = self.ways.script("gen.py", *arguments)
            yield self.cell("healthy/" + name, argv, Expectation("alone", result="output.mp4"), same=("output.mp4",))
            if name != "wan-compile":  # a compiled decoder does not call the function that the fault wraps
                for kind in ("hang", "hang_gil") if name == "wan" else ("hang",):
                    fault = {"FAULT": kind, **DECODE, "FAULT_CALL": CALLS.get(name, DECODE["FAULT_CALL"])}
                    # with the interpreter lock held at once the agent may not have told the phase
                    phases = ("vae_decode", "sampling") if kind == "hang_gil" else ("vae_decode",)
                    yield self.cell("%s/%s" % (kind, name), argv, self.declared("recovers", phases), fault,
                                    same=("output.mp4",), files=("flag",))
        yield self.cell("healthy/wan-two-clips", self.ways.script("gen.py", "--kind", "wan", "--n", "2"),
                        Expectation("alone", result="output_1.mp4"), same=("output_0.mp4", "output_1.mp4"))

    def after_the_pipeline(self):
        for kind in ("conv", "block"):
            phases = ("unknown", "done", "save", "vae_decode")
            yield self.cell("after/" + kind, self.ways.script("after.py", kind), self.declared(phases=phases))

    def ranks(self):
        yield self.cell("ranks/healthy", self.ways.torchrun(), Expectation("alone", result="rank0_0.mp4"))
        yield self.cell("ranks/hang", self.ways.torchrun(), self.declared(phases=("sampling", "vae_decode", "unknown")),
                        {"FAULT": "hang", "FAULT_CALL": "40", "FAULT_RANK": "0"})
        yield self.cell("ranks/memory-fault", self.ways.torchrun(), Expectation("error", ("memory_fault",)),
                        {"FAULT": "error", "FAULT_TEXT": HIP_FAULT, "FAULT_CALL": "40", "FAULT_RANK": "1"})

    def launchers(self):
        generation = "'%s' '%s'" % (self.ways.python, matrix.MORE / "gen.py")
        pause = "%g" % (15 / limits.time_scale())
        argv = ["bash", "-c", generation + " --kind wan --callback --slow " + pause + " --out b.mp4 > b.txt 2>&1 & echo started"]
        yield self.cell("launcher/slow", argv, Expectation("alone", result="b.mp4"))
        for name in ("launch.sh", "webui.sh"):
            yield self.cell("launcher/" + name, [str(matrix.MORE / name)], Expectation("alone", result="output.mp4"), same=("output.mp4",))

    def handled_errors(self):
        well = Expectation("alone", result=None)
        yield self.cell("handled/chain", [self.ways.python, str(matrix.MORE / "chain.py")], well,
                        options=["--profile", str(matrix.MORE / "fp.toml")])
        for kind in HANDLED:
            yield self.cell("handled/script-" + kind, self.ways.script("handled.py", kind, "2"), well)
        for kind in SERVERS:
            yield self.cell("handled/server-" + kind, self.ways.script("server.py", kind, "60"), well)


def read_cells(ways, has_agent, has_card):
    rows = Rows(ways, has_agent, has_card)
    return [cell for part in (rows.generations, rows.after_the_pipeline, rows.ranks, rows.launchers, rows.handled_errors) for cell in part()]


def main():
    p = batch.parser(__doc__, "outputs/proof/rows")
    p.set_defaults(jobs=4)
    options = p.parse_args()
    out = batch.pathlib.Path(options.out).resolve()
    ways = matrix.Ways(out / "tools" if options.list else matrix.prepare_tools(options, ["wan", "ltx", "hunyuan", "cog"]))
    combos = batch.combos(options) if options.combo else [(True, True)]
    return batch.run_batch([c for combo in combos for c in read_cells(ways, *combo)], options, "Rows of tests/workloads/more")


if __name__ == "__main__":
    sys.exit(main())
