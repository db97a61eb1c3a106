"""InvokeAI: a queue item is a job, and the error of a node is the job's.

Names as in invoke-ai/InvokeAI at 8e71a8a, `app/services/session_processor/session_processor_default.py`. Its decodes are those of diffusers'
autoencoders, which `diffusers_hooks` knows.
"""
from . import phases
from .hooks import around, on, wrap


def failed(args, kwargs):
    """A node raised: the runner reports it and lives on."""
    job = phases.job()
    if job is not None and job.failed is None:
        kind = phases.argument(args, kwargs, 3, "error_type")
        message = phases.argument(args, kwargs, 4, "error_message")
        job.failed = ("%s: %s" % (kind, message))[:2000]


@on("invokeai.app.services.session_processor.session_processor_default")
def processor(module):
    """Its runner and its worker."""

    def make(plain):
        def run(self, queue_item, *args, **kwargs):
            with phases.Job("item-%s" % getattr(queue_item, "item_id", "?")):
                return plain(self, queue_item, *args, **kwargs)

        return run

    runner = getattr(module, "DefaultSessionRunner", None)
    if isinstance(runner, type):
        wrap(runner, "run", make)
        around(runner, "_on_node_error", before=failed)
    worker = getattr(module, "DefaultSessionProcessor", None)
    if isinstance(worker, type):
        around(worker, "start", after=phases.serving)
