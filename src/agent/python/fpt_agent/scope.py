"""The convolution fallback for users' own code, with or without the supervisor."""
import sys

from . import state
from .config import TIERS
from .conv import wrap
from .plans import Plan, desk
from .remember import Memory


class conv_fallback:
    """Convolutions inside it fall back to a lower tier where the native call fails. `with` block or decorator.

        with fpt_agent.conv_fallback(start="split"):
            frames = vae.decode(latents)

        @fpt_agent.conv_fallback()
        def decode(latents): ...

    `start`: tier to begin with. `tiers`: the ones that may be used, of `native`, `split`, `nocudnn`, `cpu`; the order
    is always this. For conv2d `split` means native. Holds for the thread or the task (asyncio) that enters, may be nested
    (the innermost counts) and used again: an object keeps what it learned of shapes. Where the supervisor, or a hang that
    it has seen, asks for a lower tier, that counts. A generator that is suspended inside leaves it in force for who runs it.

    ValueError: no such tier, or none of `tiers` at or below `start`. RuntimeError on entering: torch is not imported.
    TypeError: decorates a generator or a coroutine function, whose body runs after the call: use `with` in it.
    """

    def __init__(self, start="native", tiers=TIERS):
        tiers = [tiers] if isinstance(tiers, str) else list(tiers)
        for tier in [start] + tiers:
            if tier not in TIERS:
                raise ValueError("no tier %r: one of %s" % (tier, ", ".join(TIERS)))
        first = TIERS.index(start)
        allowed = [TIERS.index(tier) for tier in tiers if TIERS.index(tier) >= first]
        if not allowed:
            raise ValueError("none of the tiers %s at or below %s" % (", ".join(tiers), start))
        begin = min(allowed)
        self.plan = Plan("fallback", {"conv3d": begin, "conv2d": begin}, allowed, Memory())

    def __enter__(self):
        torch = state.torch()
        if torch is None:
            raise RuntimeError("conv_fallback: import torch first")
        desk.enter(self.plan, sys._getframe(1), torch, wrap)
        return self

    def __exit__(self, *_):
        desk.leave(self.plan, sys._getframe(1), state.torch())
        return False

    def __call__(self, function):
        import functools
        import inspect

        for odd in (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction):
            if odd(function):
                raise TypeError("conv_fallback: %s runs after its call; use `with` inside it"
                                % getattr(function, "__name__", "the function"))

        @functools.wraps(function)
        def inside(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return inside
