#!/usr/bin/env python3
"""Ways to start a generation x what happens in it, under the real supervisor.

    tests/proof/matrix.py [--bin PROGRAM] [--jobs 6] [--only TEXT] [--combo ...] [--live] [--out FOLDER]

Right: a hang is declared within twice the limit of its phase; a healthy or slow program is left alone and ends with 0; an error
is the verdict, and no hang. Of a server that is well nothing is ended while it idles. Programs: tests/workloads/more, with
real diffusers pipelines. `--live` runs the 16 cells of CI. Default combination: with the agent and the imitated card.

What stands in, because it is not installed: `uv` (a program of that name that starts `python` as a child and waits, as uv run
does on Unix) where PATH has none; `jupyter nbconvert --execute` (kernel.py, of the same shape) where the environment has no
nbconvert; ComfyUI (comfy_shaped: same queue and lines, no websocket; scripts/real-comfyui runs the real one).
"""
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys

from cells import batch, limits
from cells.runner import Cell, Expectation, Helper

MORE = pathlib.Path(__file__).resolve().parents[1] / "workloads" / "more"
FAULTS = ("healthy", "slow", "decode", "sampling", "outside", "error")
#: FAULT variables (faults/fault_pth.py). WAN's decoder has kernels of 3, its patch embedding one of 2.
VARIABLES = {
    "healthy": {},
    "slow": {"FAULT": "slow", "FAULT_KERNEL": "2"},
    "decode": {"FAULT": "hang", "FAULT_KERNEL": "3", "FAULT_CALL": "20"},
    "sampling": {"FAULT": "hang", "FAULT_KERNEL": "2", "FAULT_CALL": "5"},
    "outside": {"FAULT": "outside"},
    "error": {"FAULT": "error", "FAULT_KERNEL": "3", "FAULT_CALL": "20",
              "FAULT_TEXT": "The size of tensor a (16) must match the size of tensor b (8)"},
}
PHASES = {"decode": ["vae_decode"], "sampling": ["sampling"], "outside": ["unknown", "done", "save", "vae_decode", "idle"]}
SLOW_CALL_S = 15
IDLE_S = 150
#: 16 cells for CI: each way and each fault at least once.
LIVE = {"direct/decode", "direct/healthy", "module/sampling", "wrapper/decode", "launcher/healthy", "launcher/decode", "uv/outside",
        "notebook/sampling", "torchrun/decode", "torchrun/error", "spawned/sampling", "gradio/decode", "gradio/slow",
        "gradio_spawned/decode", "comfy_silent/healthy", "comfy_polling/decode"}


class Ways:
    """The commands of the ways to start, for one environment."""

    def __init__(self, tools):
        self.tools, self.python = tools, str(tools / "venv" / "bin" / "python")

    def script(self, name, *arguments):
        return [self.python, str(MORE / name), *arguments]

    def notebook(self):
        if has_module(self.python, "nbconvert"):
            notebook = str(write_notebook(self.tools))
            return [self.python, "-m", "nbconvert", "--to", "notebook", "--execute", notebook, "--output", "executed"]
        return self.script("kernel.py", str(MORE / "gen.py"))

    def uv(self):
        uv = shutil.which("uv") or str(write_uv_stand_in(self.tools))
        return [uv, "run", "--no-project", "--python", self.python, "python", str(MORE / "gen.py")]

    def torchrun(self):
        """Two ranks. Each cell gets a port of its own: torchrun's default is one for the whole machine."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        return [self.python, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(port), str(MORE / "mp.py")]

    @property
    def commands(self):
        quoted = "'%s' '%s'" % (self.python, MORE / "gen.py")
        return {
            "direct": self.script("gen.py"),
            "module": [self.python, "-m", "gen"],
            "wrapper": [str(MORE / "launch.sh")],
            "launcher": ["bash", "-c", quoted + " > gen.log 2>&1 & echo started"],
            "uv": self.uv(),
            "notebook": self.notebook(),
            "torchrun": self.torchrun(),
            "spawned": self.script("spawned.py"),
            "gradio": self.script("app.py"),
            "gradio_spawned": self.script("app2.py"),
            "comfy_silent": self.script("comfy_shaped/main.py"),
            "comfy_polling": self.script("comfy_shaped/main.py"),
        }


CLIENTS = {"gradio": "gradio", "gradio_spawned": "gradio", "comfy_silent": "comfy-silent", "comfy_polling": "comfy-polling"}
RESULTS = {"torchrun": "rank0_0.mp4"}


def has_module(python, name):
    return os.path.exists(python) and subprocess.run([python, "-c", "import %s" % name], capture_output=True).returncode == 0


def write_executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def write_uv_stand_in(tools):
    """`uv run OPTIONS python ARGUMENTS`: starts that interpreter as a child and waits for it."""
    return write_executable(tools / "bin" / "uv", '''#!/bin/sh
# Stands in for uv: run --no-project --python PYTHON python ARGUMENTS
python=$4
shift 5
trap : INT TERM
"$python" "$@" &
wait $!
''')


def write_notebook(tools):
    import json
    code = ("import sys, runpy\nsys.argv = ['gen.py']\nsys.path.insert(0, %r)\nrunpy.run_path(%r, run_name='__main__')\n"
            % (str(MORE), str(MORE / "gen.py")))
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": code, "id": "one"}
    path = tools / "generate.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def prepare_tools(options, kinds=("wan",)):
    """An environment over the given one, with the faults in a .pth file, and the weights."""
    tools = pathlib.Path(options.out).resolve() / "tools"
    python = tools / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([options.python, "-m", "venv", "--without-pip", tools / "venv"], check=True)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    ours, theirs = (subprocess.run([p, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
                    for p in (python, options.python))
    (pathlib.Path(ours) / "fault.pth").write_text("%s\n%s\nimport fault_pth\n" % (theirs, MORE / "faults"))
    subprocess.run([python, MORE / "make_models.py", *kinds], check=True, env=dict(os.environ, MORE_WORK=str(tools)),
                   stdout=subprocess.DEVNULL)
    return tools


def expectation(way, fault, has_agent, has_card):
    scale = limits.time_scale()
    server = way in CLIENTS
    if fault in PHASES:
        # a bar of the load may be the last line of a console: another rank's, or one that is freed late
        late_bar = ["model_load"] if fault == "outside" else []
        phases = [*PHASES[fault], *([] if has_agent else ["unknown"])]
        within = limits.declared_within(phases, has_card)
        return Expectation("declared", ("silent_hang",), (*phases, *late_bar), within)
    if server:
        own_error = ("app_error",) if fault == "error" else ()
        return Expectation("alone", own_error, idle_after_done_s=IDLE_S / scale)
    if fault == "error" and way == "launcher":  # the launcher has returned 0 before; the error is in its log
        return Expectation("alone", ("app_error",), exit_status=None, result=None)
    if fault == "error":
        return Expectation("error", ("app_error",))
    return Expectation("alone", result=RESULTS.get(way, "output.mp4"))


def make_cell(ways, way, fault, has_agent, has_card):
    expect = expectation(way, fault, has_agent, has_card)
    scale = limits.time_scale()
    env = {**VARIABLES[fault], "MORE_WORK": str(ways.tools), "VENV": str(ways.tools / "venv")}
    if fault == "slow":
        env["FAULT_SECONDS"] = "%g" % (SLOW_CALL_S / scale)
    if way == "module":
        env["PYTHONPATH"] = str(MORE)
    if way == "torchrun" and fault in ("decode", "sampling", "outside", "error"):
        env["FAULT_RANK"] = "1" if fault == "error" else "0"
    helpers = []
    if way in CLIENTS:
        helpers.append(Helper([ways.python, str(MORE / "client.py"), CLIENTS[way], "error" if fault == "error" else "file"]))
    return Cell("%s/%s" % (way, fault), ways.commands[way], expect, has_agent, "held" if has_card else "none", env, helpers,
                wall_s=expect.within_s + expect.idle_after_done_s + 12 * SLOW_CALL_S / scale + 300)


def main():
    p = batch.parser(__doc__, "outputs/proof/matrix")
    p.add_argument("--live", action="store_true", help="only the 16 cells of CI")
    options = p.parse_args()
    ways = Ways(pathlib.Path(options.out).resolve() / "tools" if options.list else prepare_tools(options))
    combos = batch.combos(options) if options.combo else [(True, True)]
    cells = [make_cell(ways, way, fault, *combo) for combo in combos for way in ways.commands for fault in FAULTS
             if not options.live or "%s/%s" % (way, fault) in LIVE]
    return batch.run_batch(cells, options, "Ways to start")


if __name__ == "__main__":
    sys.exit(main())
