"""Tracks: what is particular to one kind of task, as data.

The tracks that ship with ambjudge are the modules `judge/checks/<track>.py`, each with its `TRACK`;
packages add theirs by the door `tracks`. All other code asks these values: no track's name stands
anywhere else. What a track does with files (opening and checking them) is in
`judge/checks/track.py`, as a `CheckedTrack`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .plugins import Door

Output = Literal["masks", "boxes", "images", "labels", "texts", "answers", "files"]
"""What is delivered for a case; `files` for anything else."""
Bands = Mapping[str, Mapping[str, float]]
"""Rating, best first -> metric of the report -> lowest value for it. `score` is the headline
metric; a run below all bands is rated F."""
PLAN_ITEMS: Mapping[str, str] = {"model": "S2e", "pilot": "S3"}
"""What no execution of a run may even look like -> id of the criterion about it, in rubrics that
follow the shared workflow. (What facts prove is bound to criteria in `judge/judges/rules.yaml`.)"""


def score_bands(good: float, okay: float) -> Mapping[str, Bands]:
    """Bands of the headline metric, in [0, 1], for every task of a track.

    A from `good`, B from `okay`, C below.
    """
    return {"": {"A": {"score": good}, "B": {"score": okay}, "C": {}}}


@dataclass(frozen=True)
class HarnessBranch:
    """How a track's branch of the public harness adds up scores; for `--policy harness` alone."""

    missing: Literal["renormalize", "zero"] = "zero"
    """How unscored stages count."""
    breach_turns: tuple[int, ...] | None = (5, 10, 15)
    """A breach after the n-th of these turns leaves the first n stages unscored instead of 0.
    None: a breach changes nothing."""
    judged_digits: int = 2
    """Decimals of S1 and S2 (those of S3 follow from its scale)."""
    rate_digits: int | None = None
    """Decimals of completion and of the shares of answers; None: not rounded."""
    s4_digits: int | None = None
    """Decimals of S4; None: not rounded."""
    outputs_folder: str = "agents_outputs"
    """The folder that the branch scores."""


@dataclass(frozen=True)
class Track:
    """The data of one track. Only `name` is needed; the other fields default to no claim."""

    name: str
    """Lower-case letters, digits and `_`."""
    output: Output = "files"
    """What is delivered for a case.

    For `texts` and `answers`, one valid output is a valid result; for `images`, a metric must have
    been computed, and for all others a metric must be above zero. For `answers`, the share of
    readable ones stands for the format, placeholders are counted, and a model must have been
    called.
    """
    files: tuple[str, ...] = ()
    """Names of all files of this track; the first is the one that every case has."""
    rubrics: tuple[str | Path, ...] = ()
    """Ids of built-in rubrics or paths of YAML files: the track's rubric, then variants that name
    their tasks. Empty: the rubric `workflow`."""
    aliases: tuple[str, ...] = ()
    """Other words by which a run's files may state the track. A stated word matches if it begins
    with `name` or with one of these."""
    words: tuple[str, ...] = ()
    """Parts of `-task-name-` that indicate the track if no file states it."""
    keys: tuple[str, ...] = ()
    """Keys of conversation.json that, all together, only runs of this track have."""
    gate: bool = False
    """Whether one missing case makes the submission score 0 (the completeness gate)."""
    counts_valid: bool = False
    """Whether completion counts valid files instead of delivered ones."""
    metrics: tuple[str, ...] = ()
    """Parts of the names of those report metrics that show whether anything was scored."""
    headline: str | None = None
    """The metric that stands for the run as a whole; None: the task score."""
    near_zero: float | None = None
    """A valid run whose headline metric is below this counts as a logic failure of S4."""
    bands: Mapping[str, Bands] = field(default_factory=dict)
    """Part of a task's name ("": any task) -> published limits of its ratings. Tasks without bands
    are rated by the report alone."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Dotted name of a report metric that is split into parts -> what it is split by, e.g.
    `per_class_ap` -> `class`."""
    weak: Mapping[str, float] = field(default_factory=dict)
    """Report metric -> limit: a valid run below all limits is a logic failure in the harness's
    taxonomy."""
    fails_below: float | None = None
    """A run whose task score is below this counts as failed although its submission was scored."""
    levels: tuple[str, ...] = ()
    """Quantities measured in the files (`Submission.measure`) that agree among images of one
    kind."""
    unit: str = ""
    """Unit of the quantities measured in the files."""
    branch: HarnessBranch | None = None
    """How the track's branch of the public harness adds up scores; None: it has no branch, and
    `--policy harness` changes nothing."""
    items: Mapping[str, str] = field(default_factory=dict)
    """Like `PLAN_ITEMS`, for the track's own rubric."""

    @property
    def one_output_suffices(self) -> bool:
        """Whether one valid output is a valid result, whatever the metrics."""
        return self.output in ("texts", "answers")

    def main_metric(self, metrics: Mapping[str, Any], task_score: float | None) -> float | None:
        """The headline metric of a report, else the task score; None if neither is known."""
        value = None if self.headline is None else metrics.get(self.headline)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        return task_score


def _problem(name: str, loaded: Any) -> str:
    """Why a loaded object cannot serve as the track `name`; "" if it can."""
    if not isinstance(loaded, Track) or loaded.name != name:
        return f"it is not a Track named {name!r}"
    if not callable(getattr(loaded, "check", None)):
        return "it has no check; make it a CheckedTrack (ambjudge.judge.checks.track)"
    return ""


BUILT_IN = (
    "report_generation",
    "vqa",
    "detection",
    "enhancement",
    "classification",
    "synthesis",
    "segmentation",
)
"""The tracks that ship with ambjudge, in the order in which a task's name is searched for their
words."""
TRACKS: Door[Track] = Door(
    "tracks",
    "track",
    {name: f"{__package__}.judge.checks.{name}:TRACK" for name in BUILT_IN},
    _problem,
)


def infer_track(
    stated: tuple[str | None, ...], task: str | None, keys: Mapping[str, Any]
) -> str | None:
    """The track of a run; None if nothing indicates one.

    The first text in `stated` that begins with a track's name or alias decides, then the task's
    name, then the keys of conversation.json. Installed packages are tried before built-in tracks,
    as their words are made for fewer tasks.
    """
    tracks = sorted(TRACKS, key=lambda track: not TRACKS.entries[track.name].package)
    for text in stated:
        track = None if text is None else _track_by_prefix(text, tracks)
        if track is not None:
            return track
    if task:
        name = f"-{task.lower().replace('_', '-')}-"
        for candidate in tracks:
            if any(word in name for word in candidate.words):
                return candidate.name
    for candidate in tracks:
        if candidate.keys and all(key in keys for key in candidate.keys):
            return candidate.name
    return None


def _track_by_prefix(text: str, tracks: list[Track]) -> str | None:
    """The track with the longest name or alias that the text begins with."""
    words = text.strip().lower().replace("-", "_").replace(" ", "_").strip("_")
    matches = [
        (len(prefix), track.name)
        for track in tracks
        for prefix in (track.name, *track.aliases)
        if words.startswith(prefix)
    ]
    return max(matches)[1] if matches else None
