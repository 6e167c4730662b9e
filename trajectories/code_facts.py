"""What Python code does, read from its syntax tree: loads, forward passes, outputs, and over how many cases.

The reader follows what is executed: a function counts where it is called, a module where it is run or imported. Loop
sizes are followed through assignments as far as they are literal, so that "one case", "three cases" and "every case of
the folder" can be told apart without running anything.
"""

from __future__ import annotations

import re

from .code_evaluation import Scope
from .code_modules import Facts, Library, Module
from .code_statements import Statements


def python_facts(
    module: Module, library: Library, outputs: re.Pattern[str], arguments: int | None = None, scope: Scope | None = None,
) -> Facts:  # fmt: skip
    """Facts of running this module. `arguments`: how many cases its command line names (None: not known); `scope`:
    the words of that command line, of which the values of its options follow."""
    reader = Statements(module, library, outputs, arguments, scope=scope or Scope())
    reader.values["__name__"] = "__main__"
    try:
        reader.block(module.tree.body, 1)
    except RecursionError:
        reader.facts.note("too_deep", "")
    return reader.facts
