#!/usr/bin/env python3
"""How much slower is a generation that is watched?

    benches/slowdown.py --binary target/release/framepack-tui [--pairs 10] [--out FILE]
                        [--python .venv/bin/python] [--device cpu] [--btop] [-- WORKLOAD ARGS...]

Interleaved rounds of the same generation with the same seed: bare, watched by framepack-tui on a
screen of 120x36 (the costliest way), and with --btop also with btop running beside it. The order
changes with every round. Wall time and CPU time are those of the generation itself, taken by its
parent; what is compared is each round's ratio to its bare run, so that a machine whose speed drifts
does not decide. Stated are the median of the ratios and its 95 % interval (bootstrap, fixed seed).

Only the standard library is used. Standard error shows how far it is.
"""
import argparse, contextlib, fcntl, json, os, pty, random, shutil, signal, statistics, struct, subprocess, sys
import tempfile, termios, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
COLUMNS, ROWS = 120, 36
LIMIT_S = 900
GROUP = "Slowdown of a generation that is watched"
TARGET_PERCENT = 0.5
WIDE_PERCENT = 5    # an interval as wide as this says nothing about the target


def timed(told, command):
    """Runs a command and writes its wall time, CPU time and exit code to a file."""
    begun = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, used = os.wait4(pid, 0)
    wall = time.monotonic() - begun
    code = os.waitstatus_to_exitcode(status)
    with open(told + ".part", "w") as f:
        json.dump(dict(wall=wall, cpu=used.ru_utime + used.ru_stime, code=code), f)
    os.rename(told + ".part", told)
    sys.exit(code if code >= 0 else 128 - code)


class Terminal:
    """A program on a screen that somebody reads."""

    def __init__(self, command, env):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.master = master
        self.process = subprocess.Popen(
            command, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.tail = b""
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 65536):
                self.tail = (self.tail + data)[-20000:]

    def cpu(self):
        """CPU seconds of the program itself, its children left out."""
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def press(self, keys):
        with contextlib.suppress(OSError):
            os.write(self.master, keys)

    def end(self, keys):
        """Presses keys until the program has ended."""
        for _ in range(100):
            self.press(keys)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.2)
                break
        else:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


def home(folder):
    """An environment in which nothing of the user's is read or written."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MIOPEN_", "FPT_"))}
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        env[name] = os.path.join(folder, name.lower())
        os.mkdir(env[name], 0o700)
    env.update(TERM="xterm-256color", LANG="C.UTF-8", HF_HUB_OFFLINE="1")
    return env


def generation(args, folder):
    """The command of one generation, and the file that tells what it took."""
    told = os.path.join(folder, "told")
    work = [args.python, os.path.join(ROOT, "tests/workloads/tiny_framepack.py"), "--device", args.device,
            "--out", os.path.join(folder, "out"), *args.workload]
    return [sys.executable, os.path.abspath(__file__), "--timed", told, "--", *work], told


def once(kind, args):
    """One generation of a kind; what it took."""
    with tempfile.TemporaryDirectory(prefix="fpt-slowdown-") as folder:
        env = home(folder)
        command, told = generation(args, folder)
        beside = None
        if kind == "framepack-tui":
            terminal = Terminal([args.binary, "run", "--profile", args.profile, "--", *command], env)
        else:
            terminal = Terminal(command, env)
        if kind == "btop":
            conf = os.path.join(env["XDG_CONFIG_HOME"], "btop")
            os.mkdir(conf)
            with open(os.path.join(conf, "btop.conf"), "w") as f:
                f.write("update_ms=500\n")
            beside = Terminal(["btop", "--utf-force"], env)
        end = time.monotonic() + LIMIT_S
        watcher = 0.0
        while not os.path.exists(told):
            if time.monotonic() > end or terminal.process.poll() is not None and not os.path.exists(told):
                terminal.end(b"q")
                sys.exit(f"slowdown: the {kind} run came to nothing:\n{terminal.tail.decode(errors='replace')}")
            time.sleep(0.1)
        if kind == "framepack-tui":
            watcher = terminal.cpu()
            time.sleep(1)   # the screen leaves at a key only when the run is over
        elif beside:
            watcher = beside.cpu()
            beside.end(b"q")
        terminal.end(b"q")
        with open(told) as f:
            took = json.load(f)
        if took["code"]:
            sys.exit(f"slowdown: the generation failed ({kind}):\n{terminal.tail.decode(errors='replace')}")
        return dict(wall=took["wall"], cpu=took["cpu"], watcher=watcher)


def interval(ratios, rounds=20000):
    """Median with its 95 % interval: percentiles of the medians of resampled rounds."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return statistics.median(ratios), medians[int(rounds * 0.025)], medians[int(rounds * 0.975)]


def figure(kind, what, rounds, key):
    ratios = [r[kind][key] / r["bare"][key] for r in rounds]
    middle, low, high = ((x - 1) * 100 for x in interval(ratios))
    noise = low <= 0 <= high
    holds = (middle <= TARGET_PERCENT or noise) and high - low < WIDE_PERCENT
    words = f"95 % interval {low:+.2f} to {high:+.2f} %, {high - low:.2f} wide"
    if noise:
        words += ", within noise"
    if high - low >= WIDE_PERCENT:
        words += ": too noisy to tell"
    words += f"; single rounds {min(ratios) * 100 - 100:+.2f} to {max(ratios) * 100 - 100:+.2f} %, {len(rounds)} rounds"
    ours = kind == "framepack-tui"
    wanted = ours and key == "wall"
    return dict(group=GROUP, what=what, unit="%", value=middle, at_most=TARGET_PERCENT if wanted else None,
                holds=holds if wanted else None, note=words, program=kind)


def figures(kinds, rounds, args):
    bare = [r["bare"]["wall"] for r in rounds]
    out = [dict(group=GROUP, what="wall time of the bare generation", unit="s", value=statistics.median(bare),
                at_most=None, program="bare",
                note=f"{min(bare):.2f} to {max(bare):.2f} s; {args.device}, same seed")]
    for kind in kinds[1:]:
        out.append(figure(kind, "more wall time of the generation", rounds, "wall"))
        out.append(figure(kind, "more CPU time of the generation", rounds, "cpu"))
        own = [r[kind]["watcher"] / r[kind]["wall"] * 100 for r in rounds]
        out.append(dict(group=GROUP, what="CPU of the watcher itself", unit="% of a core", value=statistics.median(own),
                        at_most=None, note=f"{min(own):.2f} to {max(own):.2f} %", program=kind))
    return out


def main():
    if sys.argv[1:2] == ["--timed"]:
        timed(sys.argv[2], sys.argv[4:])
    argv, workload = sys.argv[1:], []
    if "--" in argv:
        argv, workload = argv[:argv.index("--")], argv[argv.index("--") + 1:]
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", required=True)
    p.add_argument("--python", default=os.path.join(ROOT, ".venv/bin/python"))
    p.add_argument("--device", default="cpu", help="cpu or cuda")
    p.add_argument("--profile", default="generic-amd")
    p.add_argument("--pairs", type=int, default=10)
    p.add_argument("--btop", action="store_true", help="also with btop beside it")
    p.add_argument("--out", help="JSON file of the figures; else standard output")
    args = p.parse_args(argv)
    args.workload = workload or ["--threads", "1", "--seed", "31337", "--sections", "8", "--steps", "25"]
    args.binary = os.path.abspath(args.binary)
    kinds = ["bare", "framepack-tui"] + (["btop"] if args.btop else [])
    if args.btop and not shutil.which("btop"):
        sys.exit("slowdown: btop is not installed; on Debian: apt-get install btop")
    once("bare", args)   # the first one reads everything from the disk
    rounds = []
    for n in range(args.pairs):
        order = kinds[n % len(kinds):] + kinds[:n % len(kinds)]
        rounds.append({kind: once(kind, args) for kind in order})
        took = ", ".join(f"{kind} {rounds[-1][kind]['wall']:.2f} s" for kind in kinds)
        print(f"round {n + 1} of {args.pairs}: {took}", file=sys.stderr, flush=True)
    whole = json.dumps(dict(bench="slowdown", quick=args.pairs < 10, figures=figures(kinds, rounds, args), rounds=rounds),
                       indent=2)
    if args.out:
        os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
        with open(args.out, "w") as f:
            f.write(whole)
    else:
        print(whole)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    main()
