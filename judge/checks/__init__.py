"""Deterministic checks of what a run delivered: S4, S5, Task with its gate, and facts for the error-code detectors."""

from .check import check_outputs
from .outcome import CaseCheck, Fact, FactKind, OutputCheck

__all__ = ["CaseCheck", "Fact", "FactKind", "OutputCheck", "check_outputs"]
