"""Shared by the tests of the convolution fallback."""
import os
import random
import subprocess
import sys
import unittest

import support_cpu  # noqa: F401

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")
if PYTHON not in sys.path:
    sys.path.insert(0, PYTHON)


def whole(seed, *shape, most=2, share=1.0):
    """A float32 tensor of whole numbers from -most to most, the same on every machine; about `share` of them are
    not left at 0. Sums of their products are whole numbers too, and as long as those of their absolute values
    stay up to 256 every type from bfloat16 on holds them: whatever the order, the type and the instructions of
    the CPU, the result is the same."""
    import torch

    dice = random.Random(seed)
    count = 1
    for size in shape:
        count *= size
    values = [dice.choice([n for n in range(-most, most + 1) if n]) if dice.random() < share else 0 for _ in range(count)]
    return torch.tensor(values, dtype=torch.float32).view(shape)


def same(got, want):
    """Whether two results of whole numbers are the same. The hundredth is for algorithms that compute with fractions
    in between (Winograd's)."""
    return got.shape == want.shape and (got.double() - want.double()).abs().max().item() < 0.01


class Failing:
    """A stand-in for a native function that fails as a convolution library does, `times` times (None: for ever)
    or while `when` is true of its input."""

    def __init__(self, native, error, times=None, when=None):
        self.native, self.error, self.times, self.when, self.calls = native, error, times, when, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if (self.when is None or self.when(args[0])) and (self.times is None or self.times > 0):
            if self.times is not None:
                self.times -= 1
            raise self.error() if callable(self.error) else self.error
        return self.native(*args, **kwargs)


def run(code, **environ):
    """Runs code in a Python of its own that starts the agent as the supervisor would; its output."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("FPT_")}
    env.update({"PYTHONPATH": PYTHON, "FPT_AGENT_CONFIG": "{}", "FPT_AGENT_DEBUG": "1"}, **environ)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode:
        raise AssertionError("exit %d\n%s\n%s" % (done.returncode, done.stdout, done.stderr))
    return done.stdout


class WithWrapper(unittest.TestCase):
    """Puts the wrappers in for each test, with `native` functions of its choice below them."""

    def put(self, mode="fallback", start=0, start2=0, memory=None, conv3d=None, conv2d=None):
        """Installs; conv3d and conv2d stand in for the native functions. Returns the plan."""
        import torch
        from fpt_agent import conv
        from fpt_agent.remember import Memory

        self.addCleanup(self.take, torch)
        functional = torch.nn.functional
        self.natives = (torch.conv3d, torch.conv2d)
        functional.conv3d, functional.conv2d = conv3d or torch.conv3d, conv2d or torch.conv2d
        conv.desk.wrappers.clear()
        conv.desk.told.clear()
        conv.state.counts.clear()
        conv.desk.process = conv.Plan(mode, {"conv3d": start, "conv2d": start2}, range(4), memory or Memory())
        # the split tier calls what lies below the wrapper of conv2d
        conv.desk.install(torch, conv.wrap)
        conv.desk.refresh()
        return conv.desk.process

    def raised(self, x, weight, error, **more):
        """The error of a native conv3d comes out as it is: that function, and what was caught."""
        import torch

        native = Failing(torch.conv3d, error)
        self.put(conv3d=native, **more)
        with self.assertRaises(type(error)) as caught:
            torch.nn.functional.conv3d(x, weight)
        self.assertIs(caught.exception, error)
        return native, caught.exception

    def take(self, torch):
        """As it was."""
        from fpt_agent import conv

        conv.desk.process = None
        conv.desk.wrappers.clear()
        torch.nn.functional.conv3d, torch.nn.functional.conv2d = torch.conv3d, torch.conv2d
        conv.desk.refresh()
        self.assertEqual(in_flight(conv.state), [])


def in_flight(state):
    """What a heartbeat would tell of calls in flight."""
    return [op for op in state.ops.values() if op is not None]


def counts():
    """Tier statistics."""
    from fpt_agent.state import state

    return state.tiers
