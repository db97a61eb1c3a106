"""Threads of the agent. `threading` does not know them: a program may join all that it lists, or wait until one is left."""
import os
import threading
import time
from _thread import get_ident, start_new_thread

#: Ident of each of them -> its name.
names = {}


def start(function, name):
    """Calls the function in a thread of its own, which ends with the process; the thread's ident. RuntimeError: there can
    be none. Whatever the function raises, it is called again: nothing is printed and nothing ends the thread."""

    def run():
        while True:
            try:
                function()
            except BaseException:  # a finalizer of the program's runs in any thread and may raise SystemExit here
                time.sleep(0.2)

    ident = start_new_thread(run, ())
    names[ident] = name
    return ident


def unlist():
    """Takes the calling thread off `threading`'s list again: a finalizer of the program's that happens to run in it and
    asks for `current_thread`, as logging does, puts it there for good."""
    getattr(threading, "_active", {}).pop(get_ident(), None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=names.clear)  # the numbers may be those of the child's own threads
