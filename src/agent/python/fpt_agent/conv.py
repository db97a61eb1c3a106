"""The convolution fallback: torch.nn.functional.conv3d and conv2d by the first tier that works.

`native`; `split` (conv3d as a sum of conv2d's); `nocudnn` (cudnn/MIOpen off for the call, in parts); `cpu`.
`torch.nn.Conv3d` and the like look the function up at each call, so they are covered too. Compiled code, code under
export, tracing, vmap and tensor subclasses get the native function as if nothing were there. Only errors of
the convolution library and lack of memory are answered; after an error of the device itself the context is
dead, and every further call would fail.
"""
import os
import sys
import threading
import time

from . import calls, databases, errors
from .config import TIERS, config
from .hooks import on, wrap as wrap_in
from .plans import Plan, desk
from .state import link, state
from .wire import said

MODES = ("off", "watch", "fallback")
# read now, so that a word that is none is told with the other problems of the start
MODE = config.word("conv", MODES) or "fallback"
START = config.word("conv_tier", TIERS) or "native"
SCOPE = config.word("conv_scope", ("all", "decoder")) or "all"
START_2D = config.word("conv2d_tier", ("native", "nocudnn", "cpu")) or "native"

#: Calls that are known to be fine, for each function.
MOST_KNOWN = 4096


class Conv:
    """One function: what happens off the common path."""

    def __init__(self, torch, op, native):
        from . import tiers

        self.torch, self.op, self.native, self.tiers = torch, op, native, tiers
        self.conv2d = getattr(torch.nn.functional.conv2d, "_fpt_plain", torch.nn.functional.conv2d)
        self.no_memory = tiers.out_of_memory(torch)
        self.dead_type = getattr(torch, "AcceleratorError", ())
        self.moded = calls.moded(torch)
        self.warns = getattr(torch, "is_warn_always_enabled", bool)
        self.plain_types = (torch.Tensor, torch.nn.Parameter)
        self.known = set()
        self.tried = set()

    def rescuable(self, error):
        """True: another tier may help."""
        if self.dead(error):
            return False
        return isinstance(error, self.no_memory) or errors.of_library(error)

    def dead(self, error):
        """True: the device's context is lost, nothing on it will work again."""
        return isinstance(error, self.dead_type) or errors.names_dead(error)

    def foreign(self, args):
        """True: only the native function can be right: subclasses, meta, functorch, tracing to a graph."""
        plain = self.plain_types
        if type(args[0]) not in plain or type(args[1]) not in plain or args[0].is_meta:
            return True
        core = self.torch._C
        if (args[2] is not None and type(args[2]) not in plain) or core._get_tracing_state() is not None:
            return True
        try:
            if core._functorch.peek_interpreter_stack() is not None:
                return True
            keys = core._TorchDispatchModeKey
            return any(core._get_dispatch_mode(key) is not None for key in (keys.FAKE, keys.PROXY))
        except AttributeError:  # an older torch has other names for them, and types of their own
            return False

    def key(self, args):
        """Key of the call, or None for one that is the native function's alone: another kind of tensor, or one that torch
        refuses, in its own words. A mode of the program's sees none of the questions."""
        if self.moded():
            with self.torch._C.DisableTorchFunction():
                return self._key(args)
        return self._key(args)

    def _key(self, args):
        x, weight = args[:2]
        try:
            from .remember import Memory

            if self.foreign(args) or not calls.taken(self.torch, self.tiers, self.op, args):
                return None
            return Memory.key(self.op, x.shape, weight.shape, x.dtype, x.device, args[3:])
        except (TypeError, ValueError, AttributeError):  # no numbers, no tensor
            return None

    def written(self, args, native):
        """The call with a mode of the program's on, to which `native` is the native one as the program wrote it."""
        me, quick = threading.get_ident(), desk.quick
        state.ops[me] = self.op, args[0], args[1], "native", state.number()
        try:
            return native() if quick else self.slow(args, native)
        except RuntimeError as error:
            if not quick or not self.rescuable(error):
                raise
            return self.answer(error, args)
        finally:
            state.ops[me] = None

    def slow(self, args, native=None):
        """A call that must be looked up: new parameters, a lower tier to begin with, a scope, a mode. `native`: stands for
        the native function."""
        native = native or self.native
        plan, outer = desk.plans()
        key = None if plan is None or plan.mode != "fallback" else self.key(args)
        if key is None:
            return self.tiers.placed(native, args)
        floor = outer.begin(self.op, key) if outer is not None and outer.mode == "fallback" else 0
        first = plan.begin(self.op, key, floor)
        if first:
            return self.lower(args, plan, key, first, None)
        noted = self.first_time(0, key)
        try:
            out = self.tiers.placed(native, args)
        except RuntimeError as error:
            if not self.rescuable(error):
                raise
            return self.rescue(error, args, plan, key)
        finally:
            if noted is not None:
                noted.land()
                desk.problems(noted)
        plan.fine(self.op, key)
        if not desk.scopes and not plan.partial:  # the same shape may begin lower elsewhere
            self.fine(args)
        return out

    def fine(self, args):
        """The native call is right for these: no look-up any more."""
        x, weight = args[:2]
        if isinstance(args[4], str) and self.warns():
            return  # of which each call is then to be `placed`
        if len(self.known) >= MOST_KNOWN:
            self.known.clear()
        if desk.fresh:
            self.known.add((id(weight), args[4]) if isinstance(args[4], str) else id(weight))
            return
        if self.moded():
            return  # which would see the questions
        try:
            self.known.add((x.shape, weight.shape, x.dtype, x.device) + args[3:])
        except TypeError:
            return  # lists cannot be looked up; the next call comes here again

    def answer(self, error, args):
        """The result for a native call of the common path that failed so."""
        plan, _ = desk.plans()
        key = None if plan is None else self.key(args)
        if key is None:
            raise error
        return self.rescue(error, args, plan, key)

    def rescue(self, error, args, plan, key):
        """The result by a lower tier; raises `error` where there is none."""
        desk.count(self.op, 0, "failed")
        desk.tell("failed", key, 0, message=said(error)[:300])
        if plan.mode != "fallback":
            raise error
        try:
            if isinstance(error, self.no_memory):
                # what the cache held in pieces may now be one
                self.torch.cuda.empty_cache()
                try:
                    return self.native(*args)
                except RuntimeError as again:
                    if not self.rescuable(again):
                        raise
            return self.lower(args, plan, key, 1, error)
        finally:
            del error  # its traceback holds this frame, and that the tensors

    def lower(self, args, plan, key, first, original):
        """The result of the first tier from `first` on that works. `original`: what the native call raised."""
        last, lasting = None, not isinstance(original, self.no_memory)
        try:
            for tier in plan.below(self.op, first):
                began = time.monotonic()
                try:
                    out = self.run(tier, args, key)
                except Exception as error:
                    desk.count(self.op, tier, "failed")
                    desk.tell("failed", key, tier, message=said(error)[:300])
                    if self.dead(error):
                        raise
                    if isinstance(error, self.no_memory):
                        lasting = False
                        if original is None or not isinstance(original, self.no_memory):
                            self.torch.cuda.empty_cache()
                    last = error
                    continue
                desk.count(self.op, tier, "ok")
                if original is not None and lasting and plan.failed(self.op, original, tier):
                    desk.count(self.op, 0, "left")
                if tier > plan.first(self.op) and not (original is None and plan.guessed(self.op, key, tier)):
                    self.learned(plan, key, tier, lasting, time.monotonic() - began)
                return out
            if original is None:
                raise last
            errors.chain(original, last)
            raise original
        finally:
            del last, original

    def learned(self, plan, key, tier, lasting, took):
        """`tier` worked for the shape where the first did not."""
        desk.tell("chosen", key, tier, took_s=round(took, 4))
        was = plan.memory.begin(key)
        plan.memory.learn(key, tier, lasting)
        desk.problems(plan.memory)
        if was != tier:
            desk.refresh()

    def first_time(self, tier, key):
        """The memory where it is noted that this is tried for the first time, whose `land` is then to be called; or
        None."""
        memory = None if desk.process is None else desk.process.memory
        if memory is None or memory.path is None or (tier, key) in self.tried:
            return None
        if len(self.tried) >= MOST_KNOWN:
            self.tried.clear()
        self.tried.add((tier, key))
        memory.take_off(key, tier)
        return memory

    def run(self, tier, args, key):
        """One tier."""
        me = threading.get_ident()
        state.ops[me] = self.op, args[0], args[1], TIERS[tier], object()
        desk.count(self.op, tier, "tried")
        noted = self.first_time(tier, key)
        try:
            if TIERS[tier] == "split":
                return self.tiers.split(self.torch, self.conv2d, *args)
            if TIERS[tier] == "nocudnn":
                return self.tiers.nocudnn(self.torch, self.native, *args)
            if TIERS[tier] == "cpu":
                return self.tiers.cpu(self.torch, self.native, *args)
            return self.native(*args)
        finally:
            if noted is not None:
                noted.land()


class Function:
    """Stands in for a function of torch. It is equal to that, as a key too: tables of `__torch_function__` are made
    of what stands in torch.nn.functional and asked for what torch passes on, the native one. Like that, it
    does not become a method where it is an attribute of a class."""

    def __init__(self, op, native, conv):
        self.__name__ = self.__qualname__ = op
        self.__module__ = "torch.nn.functional"  # by which pickle finds it
        self.__doc__ = native.__doc__
        self._fpt_plain = native
        self._fpt_conv = conv

    def __hash__(self):
        return hash(self._fpt_plain)

    def __eq__(self, other):
        if self is other:
            return True
        # dynamo has a table of functions as well, by which it would take this one into its graph instead of tracing it
        asker = sys._getframe(1).f_globals.get("__name__") or ""
        return other is self._fpt_plain and not asker.startswith("torch._dynamo")

    def __reduce__(self):
        return self.__name__

    @property
    def __signature__(self):
        import inspect

        return inspect.signature(calls.shown)

    def __repr__(self):
        return repr(self._fpt_plain)


def wrap(torch, op, native):
    """The function that stands in for `native`. What it costs is measured by src/agent/bench/conv_call.py."""
    conv = Conv(torch, op, native)
    known, rescuable, answer, slow = conv.known, conv.rescuable, conv.answer, conv.slow
    Tensor, Parameter = torch.Tensor, torch.nn.Parameter
    compiler = getattr(torch, "compiler", None)
    # the second one does more than is needed here: tensors of torch.export are of another type
    compiling = getattr(compiler, "is_dynamo_compiling", None) or getattr(compiler, "is_compiling", None) or (lambda: False)
    tracing, moded = torch._C._get_tracing_state, conv.moded
    ops, ident, next_number, number, shared, none = state.ops, threading.get_ident, state.number, id, desk, calls.NONE

    # no `*args, **kwargs`: to make both for every call takes longer than the rest of it
    def __call__(_, input=none, weight=none, bias=none, stride=none, padding=none, dilation=none, groups=none):
        if groups is none or dilation is none or padding is none or stride is none or bias is none:
            return short((input, weight, bias, stride, padding, dilation, groups))
        if compiling() or (type(input) is not Tensor and type(input) is not Parameter):
            if type(padding) is str and not compiling():
                return conv.tiers.placed(native, (input, weight, bias, stride, padding, dilation, groups))
            return native(input, weight, bias, stride, padding, dilation, groups)
        me = ident()
        # the tensors themselves: to ask for shapes costs more than all the rest, and the heartbeat can
        ops[me] = op, input, weight, "native", next_number()
        looked_up = False
        try:
            if shared.quick and type(padding) is not str:
                return native(input, weight, bias, stride, padding, dilation, groups)
            try:
                if not shared.fresh:
                    # under jit.trace the questions would be recorded, and a mode would see them
                    fine = tracing() is None and not moded() and (
                        input.shape, weight.shape, input.dtype, input.device, stride, padding, dilation, groups) in known
                elif type(padding) is str:
                    fine = (number(weight), padding) in known
                else:  # to ask for the input's size as well doubles it
                    fine = number(weight) in known
            except Exception:  # parameters in lists, or no tensor at all: seen to in there
                fine = False
            if fine:
                return native(input, weight, bias, stride, padding, dilation, groups)
            looked_up = True
            return slow((input, weight, bias, stride, padding, dilation, groups))
        except RuntimeError as error:
            if looked_up or not rescuable(error):
                raise
            return answer(error, (input, weight, bias, stride, padding, dilation, groups))
        finally:
            ops[me] = None  # to take it out would take longer

    short = calls.other(__call__, conv.written, native, (Tensor, Parameter), compiling, moded)
    __call__.__name__ = __call__.__qualname__ = op
    wrapper = type("Function", (Function,), {"__call__": __call__})(op, native, conv)
    builtin(torch, op, native, wrapper)
    return wrapper


def builtin(torch, op, native, wrapper):
    """Lets TorchScript compile the wrapper as what it stands for."""
    table = torch.jit._builtins
    if not isinstance(native, type(len)):
        return  # another's wrapper already: TorchScript compiles its source or says that it cannot
    if table._builtin_table is None:
        table._builtin_ops.append((wrapper, "aten::" + op))  # to build the table now would cost start-up
    else:
        table._register_builtin(wrapper, "aten::" + op)


@on("torch")
def torch(module):
    """Says which torch it is and puts the wrappers in."""
    version = module.version
    found = databases.of_loaded() if version.hip else None
    link.send("torch", version=str(module.__version__), hip=version.hip, cuda=version.cuda, find_dbs=found)
    if MODE == "off":
        return
    from .remember import Memory

    memory = Memory(config.conv_memory, config.run, config.attempt)
    memory.load()
    desk.problems(memory)
    start = {"conv3d": TIERS.index(START), "conv2d": TIERS.index(START_2D)}
    desk.process = Plan(MODE, start, range(len(TIERS)), memory, in_decoder if SCOPE == "decoder" else None)
    desk.install(module, wrap)
    desk.refresh()
    if memory.path is not None:
        watch_over()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=desk.forked)


def in_decoder():
    """`conv_scope = decoder`: the call is one of the VAE's."""
    from .decoders import calls_here  # which asks for torch

    return calls_here("conv_tier = %s, conv2d_tier = %s" % (START, START_2D))


@on("torch.ao.quantization.fx.match_utils")
def patterns(module):
    """Graphs have the native functions in them, patterns what stood in torch.nn.functional when they were made, and the two
    are compared by `is`."""

    def native(pattern):
        if isinstance(pattern, tuple):
            return tuple(map(native, pattern))
        return pattern._fpt_plain if isinstance(pattern, Function) else pattern

    def make(plain):
        def _is_match(modules, node, pattern, *args, **kwargs):
            return plain(modules, node, native(pattern), *args, **kwargs)

        return _is_match

    wrap_in(module, "_is_match", make)


def watch_over():
    """Each heartbeat looks for calls that last; the end of the process does, so that no note outlives its call."""
    import atexit

    beat = link.heartbeat

    def watched():
        desk.watch()
        return beat()

    if beat is not None:
        link.heartbeat = watched
    atexit.register(desk.watch)
