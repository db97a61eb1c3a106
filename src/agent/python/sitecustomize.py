"""Found first on PYTHONPATH: starts the agent, then gives way to the sitecustomize it hides.

An older Python, which the agent is not for, has inherited the variable: even Python 2 must find its own. So this file
keeps to what all of them understand.
"""
import os
import sys


def _go():
    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if not p or os.path.abspath(p) != here]
    if os.environ.get("FPT_AGENT_SOCKET") or os.environ.get("FPT_AGENT_CONFIG"):
        if sys.version_info >= (3, 9):
            try:
                import fpt_agent

                fpt_agent.start()
            except Exception as error:  # the program must run on, whatever is wrong with us
                if os.environ.get("FPT_AGENT_DEBUG"):
                    sys.stderr.write("fpt_agent: %r\n" % (error,))
        # the program's own search path, as it would be without us
        sys.path[:] = path
    if sys.version_info < (3, 5):
        return _older(here, path)
    try:  # what `importlib` is made of; its own modules take a tenth of the start-up time
        from _frozen_importlib import module_from_spec
        from _frozen_importlib_external import PathFinder
    except ImportError:
        from importlib.machinery import PathFinder
        from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", [p for p in path if p])
    if spec is None or spec.loader is None or spec.origin == __file__:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _older(here, path):
    import imp

    sys.path[:] = path
    try:
        os.unlink(os.path.join(here, "sitecustomize.pyc"))  # Python 2 puts it beside the source, where nothing else may be
    except OSError:
        pass  # it has written none
    try:
        found = imp.find_module("sitecustomize", [p for p in path if p])
    except ImportError:
        return
    mine = sys.modules.pop("sitecustomize", None)  # held: Python 2 empties a module that nobody holds
    try:
        imp.load_module("sitecustomize", *found)
    finally:
        if found[0]:
            found[0].close()
        del mine


_go()
del _go, _older
