"""Runs one cell: helpers outside the tree, the card, the supervisor, the program; then compares with the expectation.

Each cell has a folder of its own (working directory, XDG folders, stream). The workloads note the begin of their hang in
`hang-began` and a good end in `done`, both in the working directory; the times are those of CLOCK_MONOTONIC.
"""
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

from . import card as cards
from . import limits, processes, stream

HUNG = ("hung", "failing", "failed")


@dataclasses.dataclass
class Expectation:
    """What is right for a cell.

    `alone`: never ended, no alarm but for `verdicts`, ends by itself. `declared`: one of `verdicts` with health hung, in time.
    `recovers`: declared as before, then restarted to a good end (exit code 10). `state`: one of `verdicts` is shown in time, and
    nothing is ended. `error`: the program's own error is the verdict.
    """
    kind: str
    verdicts: tuple = ()
    phases: tuple = ()
    within_s: float = 0
    exit_status: int | None = 0
    result: str | None = "done"
    any_health: bool = False
    #: Of a server: once its client has noted `done`, it must be left alone for so long; then we end the run.
    idle_after_done_s: float = 0


@dataclasses.dataclass
class Helper:
    """A process outside the tree. With `announces`, its first line goes into that variable of the program."""
    argv: list
    announces: str | None = None


@dataclasses.dataclass
class Cell:
    name: str
    argv: list
    expect: Expectation
    agent: bool = True
    card: str = "held"  # held, unused, none; real: what this machine has
    env: dict = dataclasses.field(default_factory=dict)
    helpers: list = dataclasses.field(default_factory=list)
    options: list = dataclasses.field(default_factory=list)
    files: tuple = ()  # created empty in the working directory before the start
    wall_s: float = 600
    #: Files that must equal those of a run without supervisor and without FAULT variables, to the bit.
    same: tuple = ()
    #: Nothing else may run meanwhile.
    alone: bool = False

    @property
    def combo(self):
        return "%s-agent,%s-card" % ("with" if self.agent else "no", "no" if self.card == "none" else "with")

    @property
    def key(self):
        return "%s %s" % (self.name, self.combo)


def run_cell(cell, binary, out):
    """One result: a dictionary that becomes one JSON line."""
    folder = pathlib.Path(out) / "cells" / cell.key.replace(" ", "~").replace("/", "~")
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    work.mkdir(parents=True)
    for name in cell.files:
        (work / name).touch()
    mark = "%s-%d" % (folder.name, os.getpid())
    began = time.monotonic()
    reader, code, problem, wall = None, None, None, False
    try:
        if cell.same:
            run_plainly(cell, folder)
        with contextlib.ExitStack() as stack:
            env = cell_environment(cell, folder, start_helpers(cell, folder, stack))
            command = supervisor_command(cell, binary)
            if cell.card not in ("none", "real"):
                command = stack.enter_context(cards.ImitatedCard(folder, mark, cell.card)).wrap(command)
            env[processes.MARK_NAME] = mark
            env["FAULT_NOTE"] = str(work / "hang-began")
            reader, code, wall = supervise(cell, command, work, env, folder, began)
    except (OSError, subprocess.SubprocessError) as error:
        problem = "%s: %s" % (type(error).__name__, error)
    left = processes.kill_marked(mark)
    return judge(cell, work, reader, code, wall, left, problem, time.monotonic() - began)


def supervisor_command(cell, binary):
    agent = [] if cell.agent else ["--agent", "off"]
    return [str(binary), "run", "--headless", *agent, *cell.options, "--", *cell.argv]


def cell_environment(cell, folder, announced):
    env = dict(os.environ, HF_HUB_OFFLINE="1", GRADIO_ANALYTICS_ENABLED="False", OMP_NUM_THREADS="1",
               FPT_PROOF_SCALE=str(limits.time_scale()), **cell.env, **announced)
    for name in ("STATE", "DATA", "CACHE", "CONFIG"):
        env["XDG_%s_HOME" % name] = str(folder / ("xdg-" + name.lower()))
    return env


def run_plainly(cell, folder):
    """The program alone, in the folder `plain`."""
    (folder / "plain").mkdir()
    env = {k: v for k, v in cell_environment(cell, folder, {}).items() if not k.startswith("FAULT")}
    with open(folder / "plain.log", "w") as log:
        subprocess.run(cell.argv, cwd=folder / "plain", env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
                       timeout=cell.wall_s)


#: Rungs whose profile says that they alter the result by rounding: sums in another order.
ROUNDING = {"conv_split"}
#: Largest and mean difference of pixels of 8 bits, after the video's own losses.
LEVELS, MEAN_LEVELS = 24, 1.0
FRAMES = """
import sys
def frames(path):
    try:
        import imageio
        return imageio.mimread(path)
    except (ImportError, ValueError):
        import av
        with av.open(path) as box:
            return [frame.to_ndarray(format="rgb24") for frame in box.decode(video=0)]
import numpy
one, other = (numpy.asarray(frames(path), dtype="int16") for path in sys.argv[1:])
gap = abs(one - other) if one.shape == other.shape else numpy.array([255])
print(gap.max(), gap.mean())
"""


def compare_files(cell, folder, rungs):
    """Differences between the files of the supervised and of the plain run: to the bit, or of their frames after a rung that
    rounds otherwise."""
    def digest(path):
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "missing"

    wrong = []
    for name in cell.same:
        ours, plain = folder / "work" / name, folder / "plain" / name
        if digest(ours) == digest(plain):
            continue
        gap = frame_gap(cell.argv[0], ours, plain) if ROUNDING & set(rungs) and ours.exists() else None
        if gap is None or gap[0] > LEVELS or gap[1] > MEAN_LEVELS:
            wrong.append("%s differs from the plain run%s" % (name, "" if gap is None else " by %d levels, %.2f on average" % gap))
    return wrong


def frame_gap(python, one, other):
    """Largest and mean difference of two videos in levels of 255; None: they cannot be read."""
    done = subprocess.run([python, "-c", FRAMES, one, other], capture_output=True, text=True)
    numbers = done.stdout.split()
    return (float(numbers[0]), float(numbers[1])) if done.returncode == 0 and len(numbers) == 2 else None


def start_helpers(cell, folder, stack):
    """Starts the cell's helpers; returns the variables that they announce."""
    announced = {}
    for number, helper in enumerate(cell.helpers):
        log = stack.enter_context(open(folder / ("helper-%d.err" % number), "w"))
        process = subprocess.Popen(helper.argv, cwd=folder / "work", text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=log)
        stack.callback(processes.end_child, process)
        if helper.announces:
            line = process.stdout.readline().strip()
            if not line:
                raise OSError("the helper %s announced nothing" % helper.argv)
            announced[helper.announces] = line
    return announced


def supervise(cell, command, work, env, folder, began):
    """Runs the supervisor until its end, until the expected verdict, or to the wall limit."""
    with open(folder / "stream.jsonl", "w") as copy, open(folder / "supervisor.err", "w") as err:
        process = subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=err, text=True, errors="replace", start_new_session=True)
        reader = stream.StreamReader(process.stdout, copy)
        reader.start()
        hit_wall = False
        try:
            while process.poll() is None:
                time.sleep(0.25)
                if goal_reached(cell, reader, work):
                    break
                if time.monotonic() - began > cell.wall_s or too_late(cell, reader, work):
                    hit_wall = True
                    break
        finally:
            stopped_by_us = process.poll() is None
            reader.signals_before_stop = len(reader.signals)
            reader.attempts_before_stop = reader.attempts
            processes.interrupt_supervisor(process)
            reader.join(10)
        return reader, None if stopped_by_us else process.returncode, hit_wall


def goal_reached(cell, reader, work):
    """Whether the verdict that the cell waits for is there. Honest programs are watched to their end."""
    expect = cell.expect
    if expect.idle_after_done_s:
        done = noted_time(work / "done")
        return done is not None and time.monotonic() - done > expect.idle_after_done_s
    if expect.kind == "declared":
        return any(is_declaration(v, expect) for v in reader.verdicts)
    if expect.kind == "state":
        shown = [v for v in reader.verdicts if v["id"] in expect.verdicts]
        # Some seconds more: a state that is followed by a signal is no state.
        return bool(shown) and time.monotonic() - shown[0]["seen_s"] > 15
    return False


def too_late(cell, reader, work):
    """Whether the time for a declaration is over: there is no need to watch a hang to the wall limit."""
    onset = noted_time(work / "hang-began")
    if cell.expect.kind not in ("declared", "state", "recovers") or onset is None:
        return False
    if cell.expect.kind == "recovers" and any(is_declaration(v, cell.expect) for v in reader.verdicts):
        return False
    return time.monotonic() - onset > cell.expect.within_s + 30


def is_declaration(verdict, expect):
    return verdict["id"] in expect.verdicts and (expect.any_health or verdict["health"] in HUNG)


def noted_time(path):
    try:
        return float(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def judge(cell, work, reader, code, wall, left, problem, took_s):
    """Compares what happened with the expectation; `wrong` lists every difference."""
    result = {"cell": cell.key, "name": cell.name, "combo": cell.combo, "expect": cell.expect.kind, "took_s": round(took_s, 1),
              "scale": limits.time_scale()}
    if reader is None:
        return {**result, "right": False, "wrong": ["the cell could not be run: %s" % problem]}
    onset = noted_time(work / "hang-began")
    result.update(
        verdicts=[{k: v for k, v in x.items() if k not in ("questions", "seen_s")} for x in reader.verdicts],
        questions=reader.verdicts[-1]["questions"] if reader.verdicts else {},
        signals=reader.signals[:reader.signals_before_stop], attempts=reader.attempts_before_stop,
        decisions=reader.decisions, child=[x["status"] for x in reader.exits], exit_code=code, end=reader.end,
        agent_events=reader.agents, probes=reader.probes, left_behind=left)
    check = {"alone": check_alone, "declared": check_declared, "state": check_state, "error": check_error,
             "recovers": check_recovery}[cell.expect.kind]
    wrong = check(cell, work, reader, onset, result)
    if cell.same and not wall:
        rungs = [d["choice"].get("rung") for d in reader.decisions if isinstance(d.get("choice"), dict)]
        wrong += compare_files(cell, work.parent, rungs)
    if wall and not wrong:
        wrong.append("stopped at the limit of the cell")
    if reader.bad_lines:
        wrong.append("%d lines of the stream are no event" % reader.bad_lines)
    if left:
        wrong.append("processes were left behind: %s" % "; ".join(left)[:200])
    if reader.agents == 0 and cell.agent and "python" in os.path.basename(cell.argv[0]):
        wrong.append("the agent said nothing")
    return {**result, "right": not wrong, "wrong": wrong}


def check_ended_by_us(reader):
    wrong = []
    if reader.signals_before_stop:
        wrong.append("signals were sent: %s" % reader.signals[0])
    if reader.attempts_before_stop > 1:
        wrong.append("the command was started %d times" % reader.attempts_before_stop)
    return wrong


def check_alone(cell, work, reader, _onset, result):
    wrong = check_ended_by_us(reader)
    # where a program ends with an error by right, its failure does not count as an alarm
    ends_badly = cell.expect.exit_status not in (0, None)
    alarms = [v for v in reader.verdicts if v["health"] in HUNG and v["id"] not in cell.expect.verdicts
              and not (ends_badly and v["health"] == "failed")]
    if alarms:
        wrong.append("false alarm at %.0f s: %s %s" % (alarms[0]["at_s"], alarms[0]["id"], alarms[0]["health"]))
    if cell.expect.idle_after_done_s:
        return wrong + ([] if (work / "done").exists() else ["the client got no answer as expected"])
    expected = {"code": cell.expect.exit_status}
    if not reader.exits or (cell.expect.exit_status is not None and reader.exits[-1]["status"] != expected):
        wrong.append("the child's end is %s, expected %s" % (result["child"][-1:], expected))
    if cell.expect.result and not (work / cell.expect.result).exists():
        wrong.append("the program's result %s is missing" % cell.expect.result)
    if result["exit_code"] is None:
        wrong.append("the run did not end by itself")
    elif cell.expect.exit_status == 0 and result["exit_code"] != 0:
        wrong.append("exit code %s" % result["exit_code"])
    return wrong


def check_declared(cell, _work, reader, onset, result):
    expect = cell.expect
    declared = [v for v in reader.verdicts if is_declaration(v, expect)]
    if onset is None:
        return ["the workload did not reach its hang"]
    if not declared:
        return ["never declared; last: %s" % describe_last(reader)]
    first, wrong = declared[0], []
    delay = first["seen_s"] - onset
    result["delay_s"], result["within_s"] = round(delay, 1), round(expect.within_s, 1)
    if delay > expect.within_s:
        wrong.append("declared after %.0f s, limit %.0f s" % (delay, expect.within_s))
    if delay < 0:
        wrong.append("declared %.0f s before the hang" % -delay)
    if expect.phases and first["phase"] not in expect.phases:
        wrong.append("phase %s, expected %s" % (first["phase"], " or ".join(expect.phases)))
    return wrong


def check_state(cell, _work, reader, onset, result):
    expect, wrong = cell.expect, check_ended_by_us(reader)
    shown = [v for v in reader.verdicts if v["id"] in expect.verdicts]
    if onset is None:
        return wrong + ["the workload did not reach its state"]
    if not shown:
        return wrong + ["%s was never shown; last: %s" % (" or ".join(expect.verdicts), describe_last(reader))]
    delay = shown[0]["seen_s"] - onset
    result["delay_s"], result["within_s"] = round(delay, 1), round(expect.within_s, 1)
    if delay > expect.within_s:
        wrong.append("shown after %.0f s, limit %.0f s" % (delay, expect.within_s))
    return wrong


def check_recovery(cell, work, reader, onset, result):
    wrong = check_declared(cell, work, reader, onset, result)
    if result["exit_code"] != 10:
        wrong.append("exit code %s, expected 10" % result["exit_code"])
    return wrong


def check_error(cell, _work, reader, _onset, result):
    """The program failed by itself: its error is the verdict, no hang is declared before."""
    wrong = []
    hangs = [v for v in reader.verdicts if v["id"] in ("silent_hang", "spin_hang")]
    if hangs:
        wrong.append("a hang was declared: %s" % hangs[0]["sentence"][:120])
    if not any(v["id"] in cell.expect.verdicts and v["health"] in HUNG for v in reader.verdicts):
        wrong.append("no verdict %s; last: %s" % (" or ".join(cell.expect.verdicts), describe_last(reader)))
    if result["exit_code"] in (None, 0):
        wrong.append("exit code %s after an error" % result["exit_code"])
    return wrong


def describe_last(reader):
    if not reader.verdicts:
        return "no verdict at all"
    last = reader.verdicts[-1]
    return "%s %s %s: %s" % (last["id"], last["health"], last["phase"], last["sentence"][:120])


if __name__ == "__main__":
    sys.exit("this is a library: run behaviours.py, matrix.py or honest_hours.py")
