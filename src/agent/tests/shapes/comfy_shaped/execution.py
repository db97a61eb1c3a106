"""Runs a prompt: here a function. What it raises is caught and kept, as the server must live on."""
import asyncio

import comfy.model_management


class PromptExecutor:
    def __init__(self, server=None):
        self.status_messages, self.success = [], True

    def add_message(self, event, data, broadcast):
        self.status_messages.append((event, data))

    def execute(self, prompt, prompt_id, extra_data={}, execute_outputs=[]):
        asyncio.run(self.execute_async(prompt, prompt_id, extra_data, execute_outputs))

    async def execute_async(self, prompt, prompt_id, extra_data={}, execute_outputs=[]):
        self.status_messages, self.success = [], False
        self.add_message("execution_start", {"prompt_id": prompt_id}, False)
        try:
            prompt()
        except comfy.model_management.InterruptProcessingException:
            self.add_message("execution_interrupted", {"prompt_id": prompt_id}, True)
            return
        except Exception as error:
            self.add_message("execution_error", {
                "prompt_id": prompt_id, "exception_type": type(error).__name__, "exception_message": str(error)}, False)
            return
        self.success = True
        self.add_message("execution_success", {"prompt_id": prompt_id}, False)


class PromptQueue:
    def get(self, timeout=None):
        return None
