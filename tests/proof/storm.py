#!/usr/bin/env python3
"""A storm: supervised generations in which somebody is killed at a random moment, and what must hold after it.

    tests/proof/storm.py --rounds 200 --bin target/debug/framepack-tui --out outputs/proof/storm
    tests/proof/storm.py --pairs --rounds 12

Each round has a seed, which decides who is killed and when: one or two of the supervisor, its guardian, the child (the
generation) and the agent inside the child. With `--pairs` the rounds go through all twelve orders of two. Then four things are checked:

* orphans: every process of the round ends, without help. Where supervisor and guardian were both killed, nobody is left to end
  the generation: it ends with its work, or is still there when the next run looks.
* latents: every entry of the vault that the stream had reported as saved is there, and `vault show` finds its data whole.
* lock: right after the kill another run asks for the card. It is refused while the first run lives, waits (and names the process)
  while anything of the first holds memory of the card, and begins only when nothing of it lives; a last run begins at once. Where
  supervisor and guardian are both gone, a process that has not taken memory yet does not hold the card.
* replay: `replay --assert` of every record of the round is exact.

One JSON line a round in `results.jsonl`, a table in `results.md`. Exit code 0: every round is right.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from cells import card as cards
from cells import processes

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parent / "workloads" / "tiny_framepack.py"
ROLES = ("supervisor", "guardian", "child", "agent")
#: Two of them, in each order.
PAIRS = list(itertools.permutations(ROLES, 2))
#: Who is killed: each alone as often as two in some order.
VICTIMS = [(role,) for role in ROLES] * 3 + PAIRS
#: What the first run has told when the time until the kill begins: the process, its agent, its latents.
MOMENTS = ("spawned", "hello", "latents 1", "latents 2", "latents 3")
#: Most seconds from there to the kill.
LATEST_S = 1.5
#: On a machine that is busy or stalls.
PATIENCE_S = 120
SHORT = ["sh", "-c", "echo storm: the next run has begun"]


class Run:
    """A run of the supervisor whose stream goes to a file."""

    def __init__(self, storm, name, command):
        self.storm, self.name = storm, name
        self.path = storm.folder / (name + ".jsonl")
        self.stderr = storm.folder / (name + ".err")
        with open(self.path, "wb") as out, open(self.stderr, "wb") as err:
            argv = storm.card.wrap([storm.binary, "run", "--headless", "--", *map(str, command)])
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=storm.env, cwd=storm.work)

    def events(self):
        """The stream up to now; a line that is cut off is left out."""
        text = self.path.read_bytes()
        lines = text[:text.rfind(b"\n") + 1].splitlines()
        return [json.loads(line)["event"] for line in lines]

    def first(self, kind):
        return next((e for e in self.events() if e["kind"] == kind), None)

    def wait_for(self, kind, patience_s=PATIENCE_S):
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            over = self.process.poll() is not None
            event = self.first(kind)
            if event or over:
                return event
            time.sleep(0.02)
        return None

    def wait(self, patience_s=PATIENCE_S):
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            processes.interrupt_supervisor(self.process)
            return "still there after %d s" % patience_s


class Storm:
    """One round."""

    def __init__(self, seed, binary, python, out, victims=None):
        self.victims = victims
        self.seed, self.python, self.binary = seed, os.path.abspath(python), str(pathlib.Path(binary).resolve())
        self.folder = pathlib.Path(out).resolve() / ("round-%d" % seed)
        self.work = self.folder / "work"
        self.mark = "storm-%d-%d" % (os.getpid(), seed)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("MIOPEN_", "FPT_", "TINY_"))}
        self.env |= {processes.MARK_NAME: self.mark, "FPT_TIME_SCALE": os.environ.get("FPT_TIME_SCALE", "4"),
                     "TINY_PLAYS": "rocm", "HF_HUB_OFFLINE": "1"}
        for name in ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            self.env[name] = str(self.folder / name.lower())
        self.wrong = []

    def play(self):
        dice = random.Random(self.seed)
        if dice.random() < 0.5:
            self.env["STORM_STUBBORN"] = "1"
        victims, moment = self.victims or dice.choice(VICTIMS), dice.choice(MOMENTS)
        after_s, gap_s = dice.uniform(0.0, LATEST_S), dice.choice([0.0, dice.uniform(0.0, 3.0)])
        subprocess.run(["rm", "-rf", self.folder], check=True)
        self.work.mkdir(parents=True)
        for name, path in self.env.items():
            if name.startswith("XDG_") or name == "HOME":
                pathlib.Path(path).mkdir(mode=0o700)
        result = {"seed": self.seed, "killed": "+".join(victims), "ignores_sigterm": "STORM_STUBBORN" in self.env,
                  "moment": moment, "after_s": round(after_s, 2),
                  "gap_s": round(gap_s, 2) if len(victims) > 1 else None}
        try:
            with cards.ImitatedCard(self.folder, self.mark, "unused") as self.card:
                self.round(victims, moment, after_s, gap_s, result)
        except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            self.wrong.append("the round itself failed: %r" % error)
        finally:
            processes.kill_marked(self.mark, grace_s=0)
        result["wrong"] = self.wrong
        if not self.wrong and not os.environ.get("KEEP"):
            subprocess.run(["rm", "-rf", self.folder], check=True)
        return result

    def round(self, victims, moment, after_s, gap_s, result):
        client = [self.python, cards.TOOL, "client", self.card.tree, "vram=%d" % (17 << 30), "--"]
        first = Run(self, "first", [*client, self.python, HERE / "storm_program.py", SCRIPT, "--out", self.work,
                                    "--sections", "4", "--steps", "4", "--step-seconds", "0.1"])
        spawned = first.wait_for("spawned")
        if not spawned:
            return self.wrong.append("the first run did not begin: %s" % first.stderr.read_text()[-300:])
        self.roles = self.find_roles(first.process.pid, spawned["pid"])
        if not self.wait_for_moment(first, moment):
            return self.wrong.append("the first run ended before its moment: %s" % moment)
        time.sleep(after_s)
        for nth, victim in enumerate(victims):
            time.sleep(gap_s if nth else 0)
            self.kill(victim)
        killed_at = time.monotonic()
        asks = Run(self, "asks", SHORT)
        result["lock"] = self.check_lock(asks, victims)
        result["first_exit"] = first.wait()
        if victims == ("agent",) and result["first_exit"] != 0:
            self.wrong.append("nobody but the agent was ended, and the first run ended with %s" % result["first_exit"])
        self.check_orphans(killed_at, result)
        asks.wait()
        last = Run(self, "last", SHORT)
        if last.wait() != 0:
            self.wrong.append("the card is free, and the last run ended with %s: %s" % (
                last.process.returncode, last.stderr.read_text()[-300:]))
        self.check_latents(first, result)
        self.check_replay(result)

    @staticmethod
    def wait_for_moment(first, moment):
        """Whether it came before the end of the run."""
        word, _, number = moment.partition(" ")
        is_it = {"spawned": lambda e: e["kind"] == "spawned",
                 "hello": lambda e: e["kind"] == "agent" and e["word"] == "hello",
                 "latents": lambda e: is_saved(e, "latents")}[word]
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            over = first.process.poll() is not None
            if sum(map(is_it, first.events())) >= int(number or 1):
                return True
            if over:
                return False
            time.sleep(0.02)
        return False

    @staticmethod
    def find_roles(supervisor, child):
        """The guardian is the parent of the child."""
        with open("/proc/%d/stat" % child) as f:
            guardian = int(f.read().rpartition(") ")[2].split()[1])
        return {"supervisor": supervisor, "guardian": guardian, "child": child}

    def kill(self, victim):
        if victim == "agent":
            (self.work / "end-agent").touch()
            return
        try:
            os.kill(self.roles[victim], signal.SIGKILL)
        except ProcessLookupError:
            pass  # the run was over before

    def living(self, besides=()):
        """Processes of the first run: marked as the supervisor's own, and alive."""
        found = {}
        for pid, command in processes.find_marked(self.mark).items():
            try:
                with open("/proc/%d/environ" % pid, "rb") as f:
                    ours = (b"FRAMEPACK_TUI_MARK=%d-" % self.roles["supervisor"]) in f.read()
            except OSError:
                continue
            if (ours or pid in self.roles.values()) and pid not in besides:
                found[pid] = command
        return found

    def held_before(self, pid, moment):
        """Whether the process held memory of the card at that time, by the entry that the card's tree has of it."""
        try:
            return (self.card.tree / "sys/class/kfd/kfd/proc" / str(pid)).stat().st_ctime < moment
        except FileNotFoundError:
            return False

    def check_lock(self, asks, victims):
        """What the run that asked right after the kill has met."""
        ours_are_dead = {"supervisor", "guardian"} <= set(victims)
        held, asked = None, time.time()
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            over = asks.process.poll() is not None
            events = asks.events()
            kinds = [e["kind"] for e in events]
            if "attempt_started" in kinds:
                left = self.living()
                if ours_are_dead:
                    left = {pid: command for pid, command in left.items() if self.held_before(pid, asked)}
                if left:
                    self.wrong.append("the next run began while these lived: %s" % left)
                return "waited: %s" % held if held else "begun at once"
            if "card_held" in kinds and not held:
                told = next(e for e in events if e["kind"] == "card_held")
                pids = [p["pid"] for p in told["processes"]]
                held = "guardian %s" % ("named" if told["guardian"] else "gone")
                if pids:
                    held += ", %d process%s named" % (len(pids), "" if len(pids) == 1 else "es")
            if held and ours_are_dead:
                # nobody else ends it: do what the run says
                told = [e for e in events if e["kind"] == "card_held"][-1]
                for process in told["processes"]:
                    if process["pid"] not in self.living():
                        continue
                    held = "both gone, process named and ended by hand"
                    os.kill(process["pid"], signal.SIGKILL)
            if over:
                code = asks.process.returncode
                said = asks.stderr.read_text()
                if code != 69 or "uses it" not in said or "supervisor" in victims:
                    self.wrong.append("the run that asked ended with %s: %s" % (code, said[-300:]))
                return "refused, the run goes on"
            time.sleep(0.02)
        self.wrong.append("the run that asked did nothing for %d s" % PATIENCE_S)
        return None

    def check_orphans(self, killed_at, result):
        end = time.monotonic() + 40
        left = self.living()
        while left and time.monotonic() < end:
            time.sleep(0.05)
            left = self.living()
        if left:
            self.wrong.append("left behind: %s" % left)
        result["gone_after_s"] = round(time.monotonic() - killed_at, 1)

    def check_latents(self, first, result):
        saved, pruned = {}, set()
        for event in first.events():
            if is_saved(event, "latents") or is_saved(event, "section"):
                saved[event["file"]] = event["of"]
            elif event["kind"] == "agent" and event["word"] == "vault" and event["what"] == "pruned":
                pruned.add(event["file"])
        result["latents"] = sum(of == "latents" for of in saved.values())
        result["sections"] = sum(of == "section" for of in saved.values())
        for name in sorted(set(saved) - pruned):
            show = self.tool("vault", "show", name)
            if show.returncode:
                self.wrong.append("lost: %s: %s" % (name, (show.stdout + show.stderr)[-300:]))

    def check_replay(self, result):
        runs = sorted(p.name for p in (pathlib.Path(self.env["XDG_STATE_HOME"]) / "framepack-tui" / "runs").iterdir() if p.is_dir())
        result["records"] = len(runs)
        for run in runs:
            replay = self.tool("replay", "--assert", run)
            if replay.returncode:
                differs = [line for line in replay.stdout.splitlines() if line.startswith(("new", "lost", "earlier", "later"))]
                self.wrong.append("replay of %s: %s" % (run, differs[:6] or (replay.stdout + replay.stderr)[-300:]))

    def tool(self, *words):
        return subprocess.run([self.binary, *words], env=self.env, cwd=self.work, capture_output=True, text=True,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL)


def is_saved(event, of):
    return event["kind"] == "agent" and event["word"] == "vault" and (event["what"], event["of"]) == ("saved", of)


def table(results):
    lines = ["| killed | rounds | right | with latents | latents reported | records replayed | the run that asked meanwhile |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for killed in sorted({r["killed"] for r in results}):
        these = [r for r in results if r["killed"] == killed]
        met = sorted({(r.get("lock") or "-") for r in these})
        met = "; ".join("%s: %d" % (m, sum((r.get("lock") or "-") == m for r in these)) for m in met)
        lines.append("| %s | %d | %d | %d | %d | %d | %s |" % (
            killed, len(these), sum(not r["wrong"] for r in these), sum(r.get("latents", 0) > 0 for r in these),
            sum(r.get("latents", 0) for r in these), sum(r.get("records", 0) for r in these), met))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/debug/framepack-tui")
    parser.add_argument("--python", default=".venv/bin/python", help="has the packages of tests/workloads")
    parser.add_argument("--out", default="outputs/proof/storm", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first round; each further one has the next number")
    parser.add_argument("--pairs", action="store_true", help="two are killed in each round, each order in turn")
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 1))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = []

    def play(seed):
        victims = PAIRS[(seed - 1) % len(PAIRS)] if arguments.pairs else None
        return Storm(seed, arguments.bin, arguments.python, arguments.out, victims).play()

    seeds = range(arguments.seed, arguments.seed + arguments.rounds)
    with (concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool,
          open(arguments.out / "results.jsonl", "w", encoding="utf-8") as log):
        for result in pool.map(play, seeds):
            results.append(result)
            log.write(json.dumps(result) + "\n")
            log.flush()
            print("round %(seed)d: %(killed)s %(after_s)s s after %(moment)s:" % result, result["wrong"] or "right", flush=True)
    wrong = [r for r in results if r["wrong"]]
    (arguments.out / "results.md").write_text(table(results), encoding="utf-8")
    print(table(results))
    print("%d of %d rounds are right" % (len(results) - len(wrong), len(results)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
