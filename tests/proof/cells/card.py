"""The imitated AMD card of a cell: tests/tools/fake-amdgpu with an RX 7900 XTX.

`held`: the card works while the cell's Python processes use the CPU, until the workload notes its hang; it lists the first
of them as the holder of 12 GiB. `unused`: the card is there, and nobody uses it. Nothing here was run on AMD hardware.
"""
import pathlib
import subprocess
import sys

from . import processes

FOLLOWER = pathlib.Path(__file__).with_name("follow_card.py")
TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "fake-amdgpu" / "fake-amdgpu"


class ImitatedCard:
    def __init__(self, folder, mark, use):
        self.tree, self.mark, self.use = folder / "amd", mark, use
        self.onset = folder / "work" / "hang-began"
        self.follower = None

    def __enter__(self):
        self._tool("make", self.tree, "--card", "rx7900xtx")
        self._tool("set", self.tree, "card0", "vram_used=0.5G")
        if self.use == "held":
            mark = "%s=%s" % (processes.MARK_NAME, self.mark)
            self.follower = subprocess.Popen(
                [sys.executable, FOLLOWER, TOOL, self.tree, mark, self.onset], stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        if self.follower:
            processes.end_child(self.follower)

    def wrap(self, command):
        """The command, run where /sys shows the imitated card."""
        return [sys.executable, str(TOOL), "run", str(self.tree), "--", *command]

    @staticmethod
    def _tool(*arguments):
        subprocess.run([sys.executable, TOOL, *map(str, arguments)], check=True, stdin=subprocess.DEVNULL)
