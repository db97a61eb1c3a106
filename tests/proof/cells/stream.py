"""What a cell needs to know of the supervisor's event stream (docs/events.md)."""
import json
import threading
import time

#: Fields of the answers to the three questions that a result line keeps.
QUESTIONS = ("job", "moves", "waits")


class StreamReader(threading.Thread):
    """Reads `run --headless` line by line and remembers verdicts, decisions, signals and ends."""

    def __init__(self, pipe, copy):
        super().__init__(daemon=True)
        self.pipe, self.copy = pipe, copy
        self.verdicts, self.decisions, self.signals, self.exits = [], [], [], []
        self.attempts, self.end, self.bad_lines, self.agents = 0, None, 0, 0
        self.probes = 0

    def run(self):
        for line in self.pipe:
            self.copy.write(line)
            try:
                record = json.loads(line)
                self._take(record["event"], record["at"] / 1000)
            except (ValueError, KeyError, TypeError):
                self.bad_lines += 1
        self.copy.flush()

    def _take(self, event, at_s):
        kind = event["kind"]
        if kind == "verdict":
            self.verdicts.append(read_verdict(event, at_s))
        elif kind == "decision":
            self.decisions.append({"at_s": at_s, **{k: event.get(k) for k in ("verdict", "choice", "why")}})
        elif kind == "signal_sent":
            self.signals.append({"at_s": at_s, "signal": event["signal"], "scope": event["scope"], "reached": event["reached"]})
        elif kind == "attempt_started":
            self.attempts = max(self.attempts, event["number"])
        elif kind == "exited":
            self.exits.append({"at_s": at_s, "status": event["status"]})
        elif kind == "run_finished":
            self.end = {"end": event["outcome"]["end"], "exit_code": event["exit_code"], "summary": event["summary"]}
        elif kind == "agent":
            self.agents += 1
        elif kind == "probe":
            self.probes += 1


def read_verdict(event, at_s):
    """A verdict as a result line shows it. `seen_s` is the machine's clock, as the workloads note their hang."""
    verdict = {"at_s": at_s, "seen_s": time.monotonic()}
    for field in ("id", "health", "phase", "confidence"):
        verdict[field] = event.get(field)
    verdict["sentence"] = event.get("sentence", "")[:300]
    questions = event.get("questions") or {}
    verdict["questions"] = {name: questions[name] for name in QUESTIONS if name in questions}
    return verdict
