"""Real tiny generations that hang in a known place, for hang.py and hang_more.py.

Each function blocks for ever; the moment is noted in `hang-began` first. diffusers' classes with tiny random weights.
"""
import sys

import common

sys.path.insert(0, common.WORKLOADS)


#: Clips that need few seconds of CPU: bfloat16 and the usual sizes take half a minute of a busy machine.
SMALL_WAN = ("--float32", "--size", "64", "--frames", "9")
SMALL_FRAMEPACK = ("--float32", "--size", "64")


def note_onset():
    """Makes the planted faults of the tiny workloads note their begin."""
    import tiny_faults

    def noted(function):
        def begin(*arguments, **options):
            common.note("hang-began")
            return function(*arguments, **options)
        return begin
    tiny_faults.block_without_cpu = noted(tiny_faults.block_without_cpu)
    tiny_faults.spin_native = noted(tiny_faults.spin_native)


def framepack(*arguments):
    """tiny_framepack.py with these arguments, in this process."""
    import tiny_framepack
    note_onset()
    sys.argv = ["tiny_framepack.py", *SMALL_FRAMEPACK, *arguments]
    return tiny_framepack.main()


def wan(*arguments):
    """A small clip of tiny_wan.py with these arguments, in this process."""
    import tiny_wan
    note_onset()
    sys.argv = ["tiny_wan.py", *SMALL_WAN, *arguments]
    return tiny_wan.main()


def framepack_hangs_in_decode(*rest):
    framepack("--fault", "hang-idle", "--fault-section", "1", *rest)


def framepack_hangs_in_sampling(*rest):
    framepack("--fault", "hang-sampling", "--fault-section", "1", *rest)


def wan_hangs_in_decode(*rest):
    wan("--fault", "hang-idle", "--fault-section", "1", *rest)


def wan_hangs_in_sampling(*rest):
    wan("--fault", "hang-sampling", "--fault-section", "1", *rest)


def pause_for_ever():
    """A native wait that nothing ends."""
    import ctypes
    common.note("hang-began")
    libc = ctypes.CDLL(None)
    while True:
        libc.pause()
