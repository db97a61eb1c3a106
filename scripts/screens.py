"""Draws the moments of a record that the documents show; called by scripts/screens.

Usage: screens.py SCREEN RECORD HANG CURE. SCREEN is the built example, RECORD the folder of a run
or a file of its JSON lines. HANG and CURE are the documents with the markers of each moment.
"""

import getpass
import gzip
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

def events(record):
    """The lines of the record; a last line that is not whole is left out."""
    file = record
    if record.is_dir():
        file = next(f for f in (record / "events.jsonl.gz", record / "events.jsonl") if f.exists())
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt") as text:
        lines = text.read().splitlines()
    for line in lines:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return


def moments(raw):
    """When to draw, in seconds: in the last countdown, and in the last sampling after it."""
    countdown, begun, sampling = None, None, None
    for line in raw:
        at, event = line["at"], line["event"]
        kind = event["kind"]
        if kind == "decision" and (event["choice"] or {}).get("kill_at") is not None:
            # one second before its end, so that a fast countdown is seen as well
            countdown, sampling = max(at, event["choice"]["kill_at"] - 1_000), None
        elif kind == "phase":
            if begun is not None and countdown is not None and begun > countdown:
                sampling = begun + (at - begun) * 3 // 4
            begun = at if event["phase"] == "sampling" else None
    if countdown is None or sampling is None:
        sys.exit("screens: the record has no countdown with a sampling after it")
    return countdown / 1_000, sampling / 1_000


def anonymous(text, home, tree):
    """`text` without the paths of this machine."""
    text = text.replace(str(tree) + "/", "").replace(str(tree), ".")
    # wherever the state directory of that machine was
    text = re.sub(r'[^\s"=]*/framepack-tui/runs/', "~/.local/state/framepack-tui/runs/", text)
    return text.replace(str(home), "~") if str(home) != "/" else text


def check(text):
    """Refuses a screen that still tells where and by whom it was made."""
    private = {getpass.getuser(), socket.gethostname(), str(pathlib.Path.home())}
    found = [w for w in private if re.search(rf"(?<![\w-]){re.escape(w)}(?![\w-])", text)]
    paths = re.findall(r"(?<![\w~.])/(?:home|root|work|tmp|mnt|data|Users)/\S*", text)
    if found or paths:
        sys.exit(f"screens: the drawn text names {', '.join(found + paths)}")


def main():
    screen, record = sys.argv[1], pathlib.Path(sys.argv[2])
    pages = [pathlib.Path(page) for page in sys.argv[3:5]]
    raw = list(events(record))
    countdown, sampling = moments(raw)
    tree, home = pathlib.Path(__file__).resolve().parent.parent, pathlib.Path.home()
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as clean:
        # Cleaned before it is drawn: afterwards a path may be cut or wrapped.
        for event in raw:
            clean.write(anonymous(json.dumps(event, ensure_ascii=False), home, tree) + "\n")
        clean.flush()
        drawn = [
            subprocess.run(
                [screen, clean.name, f"{at:.3f}", size], check=True, capture_output=True, text=True
            ).stdout.rstrip("\n")
            for at, size in [(countdown, "80x24"), (sampling, "120x36")]
        ]
    words = [
        "A decode that hangs, a few seconds before it is ended (`scripts/demo` at 80x24):",
        "The second attempt, on the rung that cures it (the same run at 120x36):",
    ]
    for picture in drawn:
        check(picture)
    block = re.compile(r"<!-- screen: begin -->\n.*?<!-- screen: end -->", re.DOTALL)
    for page, word, picture in zip(pages, words, drawn, strict=True):
        text = page.read_text()
        if len(block.findall(text)) != 1:
            sys.exit(f"screens: {page} has not one pair of markers <!-- screen: begin/end -->")
        new = f"<!-- screen: begin -->\n{word}\n\n```text\n{picture}\n```\n<!-- screen: end -->"
        page.write_text(block.sub(lambda _: new, text))


if __name__ == "__main__":
    main()
