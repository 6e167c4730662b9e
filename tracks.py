"""Tracks: everything that is particular to one kind of task, in one value.

What we ship are the modules `judge/checks/<track>.py`, each with its `TRACK`; packages add theirs
behind the door `tracks`. All other code asks the value: no track's name stands anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .plugins import Door

if TYPE_CHECKING:
    from .judge.checks.case_checks import TrackCheck
    from .judge.checks.submission import Submission
    from .judge.checks.workspace import Workspace
    from .trajectories.models import Run

Output = Literal["masks", "boxes", "images", "labels", "texts", "answers", "files"]
"""What a case's output is; `files` for anything else."""
Bands = Mapping[str, Mapping[str, float]]
"""Rating, best first -> metric of the report -> the least value for it. `score` is the headline
metric; below all is F."""
PLAN_ITEMS: Mapping[str, str] = {
    "plan": "S1a",
    "picture": "S1e",
    "environment": "S2c",
    "model": "S2e",
    "pilot": "S3",
}
"""What facts of a run can deny -> id of the criterion that says so, in rubrics after the shared
workflow."""


def by_score(good: float, okay: float) -> Mapping[str, Bands]:
    """Bands of every task by the headline metric, in [0, 1]: A from `good` on, B from `okay` on, C
    below."""
    return {"": {"A": {"score": good}, "B": {"score": okay}, "C": {}}}


@dataclass(frozen=True)
class Branch:
    """How a track's branch of the public harness adds up; in force with `--like harness` alone."""

    missing: Literal["renormalize", "zero"] = "zero"
    """What becomes of unscored stages."""
    breach_turns: tuple[int, ...] | None = (5, 10, 15)
    """After the n-th of these turns, the n stages before the breach are left unscored and not 0;
    None: a breach changes nothing."""
    judged_digits: int = 2
    """Decimals of S1 and S2 (S3 has them by its scale)."""
    rate_digits: int | None = None
    """Decimals of completion, and of the shares of answers; None: as they are."""
    s4_digits: int | None = None
    """Decimals of S4; None: as it is."""
    workspace: Callable[[Run, int | None], Workspace] | None = None
    """What lies in the agent's workspace; the argument is the number of expected cases."""


@dataclass(frozen=True)
class Track:
    """One track. Only `name` and `check` are needed; the rest has defaults that claim nothing."""

    name: str
    """Lower-case letters, digits and `_`."""
    check: Callable[[Submission], TrackCheck]
    """Opens the delivered files of the expected cases and says what is wrong with them."""
    output: Output = "files"
    """`texts`, `answers`: one valid output is a valid result; elsewhere a metric must be above zero
    (of `images`: there). `answers`: the share of readable ones stands for the format, placeholders
    are counted, and a model must have been called."""
    files: tuple[str, ...] = ()
    """Names of all files of this track; the first is the one that every case has."""
    required: Callable[[Submission], tuple[str, ...]] | None = None
    """The files that every case must have, where that depends on the run."""
    delivered: Callable[[Submission], set[str]] | None = None
    """The cases that were delivered, where that is not a file in a folder of each."""
    rubrics: tuple[str | Path, ...] = ()
    """Ids of ours or paths of YAML files: the track's rubric, then variants that name their tasks.
    None: `workflow`."""
    aliases: tuple[str, ...] = ()
    """Other words with which a run's files may state the track; `name` and these count as
    beginnings."""
    words: tuple[str, ...] = ()
    """Parts of `-task-name-` that speak for the track where nothing states it."""
    keys: tuple[str, ...] = ()
    """Keys of conversation.json that only runs of this track have, all of them."""
    gate: bool = False
    """One missing case and the submission scores 0 (benchmark.md section 4)."""
    counts_valid: bool = False
    """Completion counts valid files, not delivered ones."""
    metrics: tuple[str, ...] = ()
    """Parts of the names of the report's metrics that say whether anything was scored."""
    headline: str | None = None
    """The metric that speaks for the run as a whole; None: the task score."""
    near_zero: float | None = None
    """Below this headline metric a valid run counts as a logic failure of S4."""
    bands: Mapping[str, Bands] = field(default_factory=dict)
    """Part of a task's name ("": any) -> published limits of its ratings; of a task without any the
    report's word is known."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Dotted name of one of the report's metrics -> what it is split by there, e.g. `per_class_ap`
    -> `class`."""
    weak: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the report -> limits: below all of them a valid run is a logic failure in the
    harness's taxonomy."""
    fails_below: float | None = None
    """Below this task score a run counts as failed though its submission could be scored."""
    levels: tuple[str, ...] = ()
    """Quantities measured in the files (`Submission.measure`) in which the images of one kind
    agree."""
    unit: str = ""
    """Of what is measured in the files."""
    branch: Branch | None = None
    """How its branch of the public harness adds up; None: it has none, and `--like harness` changes
    nothing."""
    items: Mapping[str, str] = field(default_factory=dict)
    """As `PLAN_ITEMS`, for the track's own rubric; what is left out is not held against any fact.
    """

    @property
    def one_is_enough(self) -> bool:
        """Whether one valid output is a valid result."""
        return self.output in ("texts", "answers")

    def main_metric(self, metrics: Mapping[str, Any], task_score: float | None) -> float | None:
        """The headline metric of a report, else the task score; None when unknown."""
        value = None if self.headline is None else metrics.get(self.headline)
        return (
            task_score
            if not isinstance(value, int | float) or isinstance(value, bool)
            else float(value)
        )


def _fits(name: str, loaded: Any) -> str:
    return (
        ""
        if isinstance(loaded, Track) and loaded.name == name
        else f"it is no Track named {name!r}"
    )


OURS = (
    "report_generation",
    "vqa",
    "detection",
    "enhancement",
    "classification",
    "synthesis",
    "segmentation",
)
"""In the order in which their words are looked for in a task's name."""
TRACKS: Door[Track] = Door(
    "tracks", "track", {name: f"{__package__}.judge.checks.{name}:TRACK" for name in OURS}, _fits
)


def track_of(
    stated: tuple[str | None, ...], task: str | None, keys: Mapping[str, Any]
) -> str | None:
    """The track of a run: the first stated one that is known, else by its task's name, else by the
    keys of its file.

    Words of installed packages go before ours, as they are made for fewer tasks.
    """
    known = sorted(TRACKS, key=lambda track: not TRACKS.entries[track.name].package)
    for text in stated:
        if text is not None:
            words = text.strip().lower().replace("-", "_").replace(" ", "_").strip("_")
            begun = [
                (len(s), t.name) for t in known for s in (t.name, *t.aliases) if words.startswith(s)
            ]
            if begun:
                return max(begun)[1]
    if task:
        name = f"-{task.lower().replace('_', '-')}-"
        for track in known:
            if any(word in name for word in track.words):
                return track.name
    return next(
        (track.name for track in known if track.keys and all(key in keys for key in track.keys)),
        None,
    )
