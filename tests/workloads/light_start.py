"""Imports torch and diffusers without transformers and without torch's compiler: a third of the CPU time of a start.

For programs that need neither; import it before diffusers. As its modules are imported, diffusers asks `torch._dynamo` for two
decorators and gets ones that change nothing. After that both are as if nothing had been imported, so that torch.compile works.
"""
import importlib
import sys
import types

import torch

#: What our programs import, and diffusers.hooks, which asks for the decorators.
MODULES = ("diffusers", "diffusers.hooks", "diffusers.models.autoencoders", "diffusers.models.transformers", "diffusers.schedulers")
HIDDEN = ("transformers", "peft")


def unchanged(function=None, *_, **__):
    return (lambda f: f) if function is None else function


if not {"diffusers", "transformers", "torch._dynamo"} & set(sys.modules):
    stand_in = types.ModuleType("torch._dynamo")
    stand_in.allow_in_graph = stand_in.disable = unchanged
    sys.modules["torch._dynamo"] = torch._dynamo = stand_in
    sys.modules.update(dict.fromkeys(HIDDEN))
    try:
        for module in MODULES:
            importlib.import_module(module)
    finally:
        del sys.modules["torch._dynamo"], torch._dynamo
        for module in HIDDEN:
            del sys.modules[module]
