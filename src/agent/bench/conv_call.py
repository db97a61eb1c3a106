"""What the convolution wrapper costs a call, over the native function.

    python src/agent/bench/conv_call.py [--repeats 200] [--calls 300]

The smallest convolution there is, so that the call itself counts, on one thread under inference_mode. Ways are
measured in turn and in short rounds, so that a busy machine hits all alike; a way's cost is its median difference
to the native rounds beside it, or that of the fastest rounds, which other programs have not interrupted. `quick`: nothing to look up; `fresh`: with conv_memory, nothing learned yet; `known`: a
shape has learned a lower tier, and each call is looked up; `scope`: inside conv_fallback, for comparison.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import torch

import fpt_agent
from fpt_agent.conv import wrap
from fpt_agent.plans import Plan, desk
from fpt_agent.remember import Memory

#: What a call may cost more than the native one.
LIMIT_US = 1.0


def once(function, calls):
    """Microseconds a call."""
    began = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - began) / calls * 1e6


def ways(torch, folder):
    """(name, what to do before, function) of each way."""
    functional = torch.nn.functional
    native = functional.conv3d
    x = torch.randn(1, 1, 1, 1, 1)
    layer = torch.nn.Conv3d(1, 1, 1)
    weight, bias, ones, none = layer.weight, layer.bias, (1, 1, 1), (0, 0, 0)
    start = {"conv3d": 0, "conv2d": 0}
    quick = Plan("fallback", start, range(4), Memory())
    fresh = Plan("fallback", start, range(4), Memory(os.path.join(folder, "shapes.json"), "bench", 1))
    known = Plan("fallback", start, range(4), Memory())
    known.memory.learn(("conv3d", (2,), (2,), "float16", "cuda", (1, 0, 1, 1)), 1, True)
    desk.install(torch, wrap)
    wrapped = functional.conv3d

    def use(plan, function=wrapped):
        def before():
            desk.process = plan
            functional.conv3d = function
            desk.refresh()
        return before

    def call(function):
        return lambda: function(x, weight, bias, ones, none, ones, 1)

    def scoped():
        with fpt_agent.conv_fallback():
            for _ in range(100):
                wrapped(x, weight, bias, ones, none, ones, 1)

    return [
        ("conv3d native", use(None, native), call(native), 1),
        ("conv3d quick", use(quick), call(wrapped), 1),
        ("conv3d fresh", use(fresh), call(wrapped), 1),
        ("conv3d known", use(known), call(wrapped), 1),
        ("conv3d scope", use(quick), scoped, 100),
        ("nn.Conv3d native", use(None, native), lambda: layer(x), 1),
        ("nn.Conv3d quick", use(quick), lambda: layer(x), 1),
        ("nn.Conv3d fresh", use(fresh), lambda: layer(x), 1),
        ("nn.Conv3d known", use(known), lambda: layer(x), 1),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--calls", type=int, default=300)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rounds = {}
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        all_ways = ways(torch, folder)
        for turn in range(args.repeats + 1):
            for name, before, function, inner in all_ways:
                before()
                function()
                took = once(function, max(1, args.calls // inner)) / inner
                if turn:  # the first warms up
                    rounds.setdefault(name, []).append(took)
    print("| way | median us | least us | over native, us (median of pairs) | over native, us (least) | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    worst = 0.0
    for name, took in rounds.items():
        base = rounds[name.split(" ")[0] + " native"]
        pairs = statistics.median(a - b for a, b in zip(took, base))
        least = min(took) - min(base)
        if name.endswith(("quick", "fresh")):
            worst = max(worst, least)
        print("| %s | %.2f | %.2f | %+.2f | %+.2f | %.2f |" % (
            name, statistics.median(took), min(took), pairs, least, statistics.median(took) / statistics.median(base)))
    print("\nan empty function: %.3f us, the machine's own speed" % min(once(lambda: None, 1000) for _ in range(50)))
    print("largest cost of a call that fell back nowhere: %.2f us, allowed %.2f (torch %s, Python %s)" % (
        worst, LIMIT_US, torch.__version__, sys.version.split()[0]))


main()
