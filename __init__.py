"""ambjudge: reads what a research agent did, judges each stage, tags what went wrong, tells a cohort's story.

Names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import analysis
    from .errors import AmbjudgeError
    from .judge.engine import score
    from .judge.scorecard import ScoreCard
    from .trajectories.load import load_run
    from .trajectories.models import Run

_WHERE = {
    "AmbjudgeError": "errors",
    "Run": "trajectories.models",
    "ScoreCard": "judge.scorecard",
    "load_run": "trajectories.load",
    "score": "judge.engine",
}

__all__ = ["AmbjudgeError", "Run", "ScoreCard", "__version__", "analysis", "load_run", "score"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    if name == "analysis":
        return import_module(".analysis", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
