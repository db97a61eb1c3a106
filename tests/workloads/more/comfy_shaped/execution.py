"""ComfyUI's module of this name in small: its queue (tests/tools/comfyui-queue) and an executor that catches errors."""
import importlib.util
import os
import traceback

_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "comfyui-queue", "execution.py")
_spec = importlib.util.spec_from_file_location("comfyui_queue", _path)
_queue = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_queue)


class PromptQueue(_queue.PromptQueue):
    """A class of this module, as the agent looks for it here."""


class PromptExecutor:
    """Runs the one node of a graph, `run`; an error goes into its messages and to the console, not up."""

    def __init__(self, run):
        self.run, self.status_messages, self.success = run, [], True

    def execute(self, prompt, prompt_id, extra_data=None, execute_outputs=()):
        self.status_messages, self.success = [], True
        try:
            self.run(prompt)
            self.status_messages.append(("execution_success", {"prompt_id": prompt_id}))
        except Exception as error:  # noqa: BLE001 - as ComfyUI does
            self.success = False
            print("!!! Exception during processing !!! %s" % error, flush=True)
            traceback.print_exc()
            self.status_messages.append(("execution_error", {
                "prompt_id": prompt_id, "exception_type": type(error).__name__, "exception_message": str(error)}))
