"""Runs that a command needs scorecards of and that have none: how they are scored, and what the user is told about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import console

if TYPE_CHECKING:
    from ..analysis.sources import Scoring

_OPTIONS = ("rubric", "track", "tier", "public", "missing", "breach", "malformed")
"""What `run_options` and `policy_options` offer."""


def scoring_of(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> Scoring:
    """Flags and settings as what runs without a scorecard are held against."""
    from ..analysis.sources import Scoring
    from ..config import load
    from .scoring import score_options

    return Scoring(score_options(load(obj["config"]), flags))


def tell(scoring: Scoring, paths: tuple[str, ...], flags: dict[str, Any], quiet: bool) -> None:
    """One line on stderr where the numbers may not be those that the user thinks of: runs were scored on the way although
    a store is near, or options speak of scoring and nothing was scored."""
    from ..judge.session import default_store

    given = [f"--{name}" for name in _OPTIONS if flags.get(name) is not None]
    if not scoring.done:
        if given:
            console.note(f"{', '.join(given)}: no effect, scorecards keep what they were scored with", quiet)
        return
    runs = "1 run" if scoring.done == 1 else f"{scoring.done} runs"
    near = default_store(paths[0] if paths else ".")
    hint = f"; for stored scorecards give {near}" if near.is_file() else ""
    console.note(f"{runs} scored by the rules judge{hint}", quiet)
