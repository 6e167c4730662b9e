"""The heuristic judge: rules on observable evidence (`judge`), one module a stage, and the facts that they share."""

from .judge import HeuristicJudge

__all__ = ["HeuristicJudge"]
