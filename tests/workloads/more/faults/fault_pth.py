"""Faults from outside, begun by a line `import fault_pth` in a .pth file of the environment: no sitecustomize, no PYTHONPATH.

FAULT            hang, hang_gil (the interpreter lock held), spin, error, abort, slow; outside: clip.after_pipeline blocks
FAULT_CALL=N     at the N-th call of the function in this process (1 is the first); 0: at any, once FAULT_FLAG exists
FAULT_FUNC       a function of torch.nn.functional (default conv3d)
FAULT_KERNEL=K   count only convolutions whose kernel's last size is K (3: a decoder's; 2: WAN's patch embedding)
FAULT_FLAG=FILE  only while this file exists; it is removed as the fault begins, so a restart is healthy
FAULT_UNLESS=NAME=VALUE   not where this variable has this value (a cure)
FAULT_RANK=N     only where RANK is N
FAULT_EVERY=1    errors from the N-th call on, not once
FAULT_TEXT       text of the error
FAULT_SECONDS    of slow: how much longer each call takes

The begin of a hang is noted in the file FAULT_NOTE (CLOCK_MONOTONIC).
"""
import os
import sys
import time


def is_due():
    """Whether rank, cure and flag allow the fault; takes the flag away."""
    rank = os.environ.get("FAULT_RANK")
    if rank is not None and os.environ.get("RANK") != rank:
        return False
    name, _, value = os.environ.get("FAULT_UNLESS", "").partition("=")
    if name and os.environ.get(name) == value:
        return False
    flag = os.environ.get("FAULT_FLAG")
    if flag:
        try:
            os.unlink(flag)
        except OSError:
            return False
    return True


def note_onset():
    note = os.environ.get("FAULT_NOTE")
    if note:
        with open(note, "w") as f:
            f.write(repr(time.monotonic()))


def hang_outside():
    if os.environ.get("FAULT") == "outside" and is_due():
        block("hang")


def block(kind):
    import ctypes
    note_onset()
    while kind == "hang":
        ctypes.CDLL(None).pause()
    while kind == "hang_gil":
        ctypes.PyDLL(None).sleep(100000)
    while True:
        pass


def begin(kind):
    if kind == "error":
        raise RuntimeError(os.environ.get("FAULT_TEXT", "miopenStatusUnknownError"))
    if kind == "abort":
        os.abort()
    block(kind)


def wrap(module):
    """Puts the fault around the function. Calls are counted in this process."""
    name, kind = os.environ.get("FAULT_FUNC", "conv3d"), os.environ["FAULT"]
    at, kernel = int(os.environ.get("FAULT_CALL", "1")), os.environ.get("FAULT_KERNEL")
    plain, calls = getattr(module, name), [0]

    def has_kernel(args, kwargs):
        weight = args[1] if len(args) > 1 else kwargs["weight"]
        return not kernel or weight.shape[-1] == int(kernel)

    def faulty(*args, **kwargs):
        if has_kernel(args, kwargs):
            calls[0] += 1
            if kind == "slow":
                time.sleep(float(os.environ["FAULT_SECONDS"]))
            elif (at in (0, calls[0]) or (os.environ.get("FAULT_EVERY") and calls[0] > at)) and is_due():
                begin(kind)
        return plain(*args, **kwargs)

    setattr(module, name, faulty)


class FunctionalFinder:
    """Wraps torch.nn.functional right after its import."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch.nn.functional":
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1:]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self.wrap_loader(spec.loader)
                return spec
        return None

    @staticmethod
    def wrap_loader(loader):
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            wrap(module)
        loader.exec_module = exec_module


if os.environ.get("FAULT") and os.environ["FAULT"] != "outside":
    sys.meta_path.insert(0, FunctionalFinder())
