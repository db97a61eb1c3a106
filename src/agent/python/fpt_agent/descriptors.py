"""Descriptors of the agent's own, kept clear of those that the program uses and closes.

A number that is free belongs to the program: it may close all above 2, or be started with a standard stream closed and open
one again, which then must get that number.
"""
import os

#: Descriptors are given out from the lowest free number on: whoever closes them all does not come to have these again
#: before hundreds are open.
HIGH = range(1000, 900, -1)


def identity(descriptor):
    """Device and inode of what is behind the number; None: nothing."""
    try:
        about = os.fstat(descriptor)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def above_standard(descriptor):
    """The descriptor under a number above 2. Where a program is started with standard input, output or errors closed, ours
    would stand in its place, and what libraries write there would go to the supervisor."""
    held = []
    while descriptor <= 2:
        held.append(descriptor)
        descriptor = os.dup(descriptor)  # not inheritable, as all of ours
    for number in held:
        os.close(number)
    return descriptor


def high(descriptor):
    """The descriptor under a number that is not given out soon; itself where there is none."""
    for number in HIGH:
        if identity(number) is None:
            try:
                os.dup2(descriptor, number, inheritable=False)
            except OSError:  # above what this process may have
                break
            os.close(descriptor)
            return number
    return above_standard(descriptor)


class Status:
    """/proc/self/status, held open: a file that is opened at each heartbeat would for a moment have the number of a
    standard stream that is closed, and a program that opens one then would not get that number."""

    def __init__(self):
        self.descriptor = self.who = None

    def read(self):
        """The text as it is now; OSError: not Linux, or no descriptor is left."""
        if self.descriptor is None or identity(self.descriptor) != self.who:
            descriptor = high(os.open("/proc/self/status", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
            self.descriptor, self.who = descriptor, identity(descriptor)
        return os.pread(self.descriptor, 1 << 14, 0)

    def forked(self):
        """In the child of a fork: the open file is about the parent."""
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None and identity(descriptor) == self.who:
            os.close(descriptor)


#: The one of this process.
status = Status()
