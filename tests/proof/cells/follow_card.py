"""Lets the imitated card show what the cell's Python processes do: follow_card.py TOOL TREE NAME=VALUE ONSET.

As `fake-amdgpu follow`, with one difference: once the file ONSET exists the card rests with its memory held. A job that
hangs gives its card no work, whatever the program's other threads do.
"""
import importlib.machinery
import importlib.util
import os
import sys


def load_tool(path):
    loader = importlib.machinery.SourceFileLoader("fake_amdgpu", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fake_amdgpu", loader))
    loader.exec_module(module)
    return module


def main(tool, tree, mark, onset):
    fake = load_tool(tool)
    read_usage, frozen = fake.marked, []

    def usage(wanted):
        """Once the hang has begun, CPU time counts no longer as work of the card."""
        found = read_usage(wanted)
        if found is None or not os.path.exists(onset):
            return found
        frozen[:] = frozen or [found[0]]
        return frozen[0], found[1]

    fake.marked = usage
    fake.follow(tree, "card0", mark, 12 << 30, 4.0)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(*sys.argv[1:])
