"""Launcher where PYTHONPATH counts for nothing (-I, -E, -S, a ._pth file beside the interpreter):

    python [flags] fpt_run.py script.py [arguments]
    python [flags] fpt_run.py -m module [arguments]
    python [flags] fpt_run.py -c code [arguments]
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
    # Python itself put our folder there as that of the script
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]


def _run():
    import runpy

    safe = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind in ("-m", "-c"):
        name = sys.argv[2]
        sys.argv = [kind] + sys.argv[3:]
        if not safe:
            sys.path.insert(0, os.getcwd() if kind == "-m" else "")
        if kind == "-m":
            sys.argv[0] = name
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            space = sys.modules["__main__"].__dict__
            exec(compile(name, "<string>", "exec"), space)
        return
    sys.argv = sys.argv[1:]
    if not safe:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")


if len(sys.argv) < 2 or (sys.argv[1] in ("-m", "-c") and len(sys.argv) < 3):
    sys.stderr.write(__doc__)
    sys.exit(64)
_start()
del _start
_run()
