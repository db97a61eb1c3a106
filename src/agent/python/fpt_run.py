whole = True  # `python -x` leaves out the first line of its file: this one here, where the program's is meant
USAGE = """Launcher where PYTHONPATH counts for nothing (-I, -E, -S, a ._pth file beside the interpreter):

    python [flags] fpt_run.py script.py [arguments]     (a folder or zip file with a __main__.py as well)
    python [flags] fpt_run.py -m module [arguments]
    python [flags] fpt_run.py -c code [arguments]
    python [flags] fpt_run.py - [arguments]             (the program comes from standard input)
"""
import os
import sys


def _start():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    try:
        import fpt_agent

        fpt_agent.start()
    except Exception as error:  # the program must run on, whatever is wrong with us
        if os.environ.get("FPT_AGENT_DEBUG"):
            sys.stderr.write("fpt_agent: %r\n" % (error,))
    try:
        from fpt_agent import launch
    finally:
        # Python itself put our folder there as that of the script
        sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    return launch


if len(sys.argv) < 2 or (sys.argv[1] in ("-m", "-c") and len(sys.argv) < 3):
    sys.stderr.write(USAGE)
    sys.exit(64)
_start().main(sys.argv[1:], not globals().get("whole"))
