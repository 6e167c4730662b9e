"""ambjudge: trajectory analytics and LLM judging of research agents.

It reads what an agent did, judges each stage, finds what went wrong, and analyses cohorts of runs.
Names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import analysis
    from .cohort_library import agreement, analyze, compare, leaderboard, power
    from .errors import AmbjudgeError
    from .judge.card.scorecard import ScoreCard
    from .library import ask, diagnose, iter_runs, make_judge, score, score_many, segment
    from .trajectories.models import Run
    from .trajectories.reading.load import load_run

_LOCATIONS = {
    "AmbjudgeError": "errors:AmbjudgeError",
    "Run": "trajectories.models:Run",
    "ScoreCard": "judge.card.scorecard:ScoreCard",
    "load_run": "trajectories.reading.load:load_run",
    **{
        name: f"cohort_library:{name}"
        for name in ("agreement", "analyze", "compare", "leaderboard", "power")
    },
    **{
        name: f"library:{name}"
        for name in ("ask", "diagnose", "iter_runs", "make_judge", "score", "score_many", "segment")
    },
}

__all__ = [
    "AmbjudgeError",
    "Run",
    "ScoreCard",
    "__version__",
    "agreement",
    "analysis",
    "analyze",
    "ask",
    "compare",
    "diagnose",
    "iter_runs",
    "leaderboard",
    "load_run",
    "make_judge",
    "power",
    "score",
    "score_many",
    "segment",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LOCATIONS:
        module, _, attribute = _LOCATIONS[name].partition(":")
        return getattr(import_module(f".{module}", __name__), attribute)
    if name == "analysis":
        return import_module(".analysis", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
