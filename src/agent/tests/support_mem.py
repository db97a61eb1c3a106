"""Shared by the tests of phases, memory, placement and pre-flight: the agent inside the test's own process, with
settings of the test and its messages in a list."""
import os
import sys
import unittest

import support_cpu  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(os.path.dirname(HERE), "python")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
for path in (PYTHON, os.path.join(HERE, "shapes", "comfy_shaped")):
    if path not in sys.path:
        sys.path.insert(0, path)

from fpt_agent import comfy, diffusers_hooks, framepack, hooks, memory, phases, placement, preflight, request, vae  # noqa: E402
from fpt_agent.config import config  # noqa: E402
from fpt_agent.state import link, state  # noqa: E402

ALL = (comfy, diffusers_hooks, framepack, memory, phases, placement, preflight, vae)
if not any(isinstance(finder, hooks.Finder) for finder in sys.meta_path):
    hooks.install()


class AgentTest(unittest.TestCase):
    """`settings` of the class or of `use()`; `messages` as they were sent."""

    settings = {}
    #: Whether the loop in which unittest runs a test makes it a request, with which its last job ends.
    in_request = False

    def setUp(self):
        self.messages = []
        self._find = request.find
        if not self.in_request:
            request.find = lambda frame: None
        self._send, link.send = link.send, self.keep
        link.show = lambda bar, last, /, **fields: self.keep("progress", **fields)
        self._settings = config.settings
        self.use(**self.settings)
        state.phase = "startup"
        phases._server = False
        preflight._told.clear()
        hooks._told.clear()

    def tearDown(self):
        link.send = self._send
        del link.show
        request.find = self._find
        phases._open.clear()
        config.settings = self._settings
        memory._cache.clear()
        failed = [m for m in self.messages if m["type"] == "hook_failed"]
        self.assertEqual(failed, [])

    def keep(self, kind, /, **fields):
        self.messages.append(dict(fields, type=kind))

    def use(self, **settings):
        """Other settings from here on."""
        config.settings = settings
        memory._cache.clear()
        memory._problems.clear()
        vae._done.clear()
        for module in ALL:
            if hasattr(module, "_told") and isinstance(module._told, memory.Once):
                module._told = memory.Once()

    def sent(self, kind, **fields):
        """The messages of a kind that have these fields."""
        return [m for m in self.messages
                if m["type"] == kind and all(m.get(key) == value for key, value in fields.items())]

    def path(self):
        """The phases in order."""
        return [m["phase"] for m in self.messages if m["type"] == "phase"]
