"""The program of a storm round: runs a script in this process, with a way to end the agent inside from without.

    storm_program.py SCRIPT ARGUMENTS...

With STORM_STUBBORN in the environment it ignores SIGTERM. Once the file `end-agent` appears in the working directory, the agent loses its connection and its threads get SystemExit.
"""
import ctypes
import os
import runpy
import signal
import socket
import stat
import sys
import threading
import time

AGENT_THREADS = ("fpt-agent", "fpt-vault")


def end_agent():
    for name in os.listdir("/proc/self/fd"):
        try:
            number = int(name)
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as end:
                if end.family == socket.AF_UNIX:
                    end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    for thread in threading.enumerate():
        if thread.name in AGENT_THREADS:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def wait_for_the_word():
    while not os.path.exists("end-agent"):
        time.sleep(0.02)
    end_agent()
    with open("agent-ended", "w"):
        pass


if __name__ == "__main__":
    if os.environ.get("STORM_STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=wait_for_the_word, name="storm", daemon=True).start()
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
