"""Jobs, and the phases that are alike in every program: loading, video files, servers.

What belongs to one program is in framepack.py, comfy.py and diffusers_hooks.py.
"""
import os
import sys
import threading

from . import request
from .holder import threads
from .hooks import around, fenced, on
from .state import link, state
from .wire import said

_local = threading.local()
#: True once a server has been seen: between jobs it is idle, where a script may still be at work.
_server = False
#: True once an autoencoder of the program's own was used: such a script has no spans, and its files end by `writing`.
own_decoder = False
#: Called without arguments before the first phase of each job.
before_job = []
#: Jobs whose pipeline has returned and whose request goes on. A job is taken out by one call of `pop`, and so ends once.
_open = {}


def serving(_result=None, *_):
    """A server is up: nothing to do until a job comes."""
    global _server
    _server = True
    for thread in list(_open):
        end_request(thread)
    if not state.spans():
        state.within("idle")


def resting(otherwise):
    """The phase between two jobs."""
    return "idle" if _server else otherwise


def stopped(error):
    """True for the exceptions by which users end a job."""
    return isinstance(error, (KeyboardInterrupt, GeneratorExit)) or type(error).__name__.startswith("Interrupt")


def is_stop(text):
    """The same, of the text of an exception that the program has caught."""
    return text.startswith("KeyboardInterrupt")


class Job:
    """A context manager around one generation: messages `job` and, around what has no phase, `phase`.

    Only the outermost of a thread speaks. `failed` may be set to the text of an error that the program
    itself has caught; `counted` holds the fields `section` and `sections`. A job that has not failed ends with
    the request that it belongs to.
    """

    def __init__(self, name, rest="unknown", phase="unknown"):
        self.name, self.rest, self.phase = name, rest, phase
        self.failed = None
        self.section, self.sections = 0, None

    def __enter__(self):
        self.outer = getattr(_local, "job", None)
        if self.outer is None:
            _local.job, self.process = self, os.getpid()
            end_request(threading.get_ident())
            self.thread = threads.begin()
            self.request = fenced("request", request.find, sys._getframe(1))
            for look in before_job:
                fenced("before_job", look)
            link.send("job", state="started", id=self.name, error=None)
            self.span = state.span(self.phase, then=resting(self.rest) if self.request is None else self.rest)
        else:
            self.span = state.span(self.phase)
        self.span.__enter__()
        return self

    def __exit__(self, kind, error, trace):
        self.span.__exit__(kind, error, trace)
        if self.outer is None:
            _local.job = None
            text = self.failed if error is None else words(error)
            if text is None and self.request is not None and self.process == os.getpid():
                _open[self.thread] = self
            else:
                self.end(text is None or (stopped(error) if error is not None else is_stop(text)), text)
        return False

    def end(self, well, text=None):
        """The job is over; `text`: its error."""
        threads.jobs.pop(self.thread, None)
        if self.process == os.getpid():  # else the child of a fork ends; the job is its parent's
            link.send("job", state="ended" if well else "failed", id=self.name, error=text)


def end_request(thread):
    """Ends the job of this thread whose request is over."""
    job = _open.pop(thread, None)
    if job is None:
        return
    job.end(True)
    if state.phase == job.rest and not threads.phases:
        state.within(resting(job.rest))


def look(_now=None):
    """Ends the jobs whose request has returned. To be called often, in any thread."""
    for thread, job in list(_open.items()):
        if not job.request.lasts():
            end_request(thread)


link.looks.append(look)


def words(error):
    """Kind and message of an exception."""
    return ("%s: %s" % (type(error).__name__, said(error)))[:2000]


def job():
    """The job of this thread, or None."""
    return getattr(_local, "job", None)


def counted():
    """The fields of the section that this thread works on."""
    now = job()
    if now is None or not now.section:
        return {}
    # more sections than its seconds say: the program counts another way
    known = now.sections if now.sections is None or now.section <= now.sections else None
    return {"section": now.section, "sections": known}


def shape(value):
    """The shape of a tensor as a list; None for anything else."""
    size = getattr(value, "shape", None)
    # of a tracer they are tensors, or symbols that a look would fix
    return list(size) if isinstance(size, tuple) and all(type(n) is int for n in size) else None


def argument(args, kwargs, place, name):
    """An argument by its place or its name."""
    return args[place] if len(args) > place else kwargs.get(name)


def described(place, *names):
    """A `describe` for `hooks.around`: the shape of an argument, and the section."""

    def describe(args, kwargs):
        found = [argument(args, kwargs, place, name) for name in names]
        size = shape(next((value for value in found if value is not None), None))
        return dict(counted(), **({"shape": size} if size else {}))

    return describe


def named(args, kwargs):
    """A `describe`: the class of the model that is moved."""
    first = args[0] if args else next(iter(kwargs.values()), None)
    return dict(counted(), **({} if first is None else {"model": type(first).__name__}))


def of_class(args, _kwargs):
    """A `describe` for a class method: the class that is made."""
    return {"model": args[0].__name__}


@on("diffusers.models.modeling_utils", "transformers.modeling_utils")
def loading(module):
    """Weights are read from storage."""
    for name in ("ModelMixin", "PreTrainedModel"):
        owner = getattr(module, name, None)
        if isinstance(owner, type):
            around(owner, "from_pretrained", "model_load", describe=of_class)


@on("diffusers.utils.export_utils")
def exporting(module):
    """diffusers' own writers."""
    for name in ("export_to_video", "export_to_gif"):
        around(module, name, "save")


def writing(result=None, args=(), kwargs=None):
    """A file is written to from now on. Nobody tells its end: it is that of the span around, or the next phase. Without
    a span (a script with a loop of its own) the phase would last into the next sampling, so it is said only where the agent
    follows such a script."""
    if state.spans():
        state.within("save", **counted())
    elif own_decoder and not _server:
        from . import writing as files

        files.begin(argument(args, kwargs or {}, 0, "uri") or (kwargs or {}).get("file"), result)


@on("torchvision.io.video", "imageio.v2", "imageio.v3")
def writers(module):
    """Plain writers of video files."""
    for name in ("write_video", "mimwrite", "mimsave", "imwrite"):
        if hasattr(module, name):
            around(module, name, "save")
    if hasattr(module, "get_writer"):  # written to bit by bit: no end of its own, as below
        around(module, "get_writer", after=writing)


@on("av")
def containers(module):
    """PyAV: a file opened for writing. Its classes cannot be changed."""

    def opened(result, args, kwargs):
        if str(argument(args, kwargs, 1, "mode") or "r").startswith("w"):
            writing(result, args, kwargs)

    around(module, "open", after=opened)


@on("gradio.http_server")
def gradio(module):
    """A Gradio app is ready when its server runs."""
    around(module, "start_server", after=serving)
