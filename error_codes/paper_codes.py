"""The error codes of the paper's taxonomy, and what decides each.

A module of its own, because the browser's first screen needs it without the rest of the package.
"""

from __future__ import annotations

CODES = ("E1", "E2", "E3", "E4", "E5")
BY_FACTS = ("E2", "E4", "E5")
"""Codes that files, exit codes and tracebacks decide: what did not fire is absent, even unread."""
OF_DELIVERY = "E5"
"""The code that is about what was handed over, so that it needs the end of a run."""
BY_READING = ("E1", "E3")
"""Codes that take reading: facts can prove them but never exclude them."""
