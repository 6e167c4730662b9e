"""The error codes of the paper's taxonomy by name, and what decides each; light enough for a first
paint."""

from __future__ import annotations

CODES = ("E1", "E2", "E3", "E4", "E5")
BY_FACTS = ("E2", "E4", "E5")
"""Codes that files, exit codes and tracebacks decide: without a reader too, what did not fire is
absent."""
BY_READING = ("E1", "E3")
"""Codes that take reading: facts can show them, never exclude them."""
