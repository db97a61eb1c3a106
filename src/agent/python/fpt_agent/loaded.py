"""Modules that the program has imported, asked without a touch.

A module of Python's LazyLoader runs its body as soon as anybody asks it for an attribute, in the thread that asks, and an
object that stands for a module may answer as it likes. So only the table of names is looked at.
"""
import sys


def loaded(name, *attributes):
    """The module where the program has imported it and these names are in its table; None."""
    module = sys.modules.get(name)
    try:
        table = object.__getattribute__(module, "__dict__")
    except AttributeError:  # none is there, or what stands there is no module
        return None
    for attribute in attributes:
        if attribute not in table:
            return None
    return module
