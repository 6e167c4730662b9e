"""Failures grouped into episodes: one step that failed, how often, and whether it was overcome.

An episode is what recovery and the E2/E4 codes are counted on: attempts at the same step, not
single error lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ..trajectories.models import Action, Frozen, Run, Segmentation, Stage
from ..trajectories.turns.failures import Failure
from ..trajectories.turns.turn_features import TurnFeatures

SURE = 0.7
"""Failures below this confidence are hints and start no episode."""
WINDOW = 8
"""Turns after its last attempt during which a failure of the same step still belongs to the
episode."""

SHORT = 10
"""Different words in two pieces of code below which words in common say nothing: one line that
patches, one that runs."""

_WORD = re.compile(r"[A-Za-z_]\w{2,40}")
_SCRIPT = re.compile(r"[\w./-]{1,120}\.(?:py|sh|R|ipynb|c|cpp)\b")
_PACKAGE = re.compile(r"(?:No module named|found for|requirement) '?([A-Za-z]\w{1,40})")
_LOG = re.compile(r"[\w./-]{1,120}\.(?:log|out)\b")
_MEANS = (
    frozenset({"package", "shell", "network", "permission"}),
    frozenset({"package", "network", "permission", "model", "device", "memory", "disk"}),
)
"""Families of failures that getting one package, or one model with its packages, runs into."""
_STEPS = (
    "writes_outputs",
    "forward_pass",
    "training",
    "loads_model",
    "obtains_weights",
    "installs_packages",
    "builds",
)


class Episode(Frozen):
    """One step that failed. `resolved_at` is the turn at which the step worked, None when it never
    did."""

    cause: str
    """What went wrong, one line: the kind that occurred most (of equals the first), with its first
    message."""
    kind: str
    stage: Stage
    environment: bool
    """Most attempts were stopped by data, model, package, API or resource access."""
    first_turn: int
    turns: tuple[int, ...]
    attempts: int
    errors: int = 1
    """How many different errors the attempts ended in."""
    resolved_at: int | None = None

    @property
    def resolved(self) -> bool:
        return self.resolved_at is not None


def episodes(
    run: Run,
    segmentation: Segmentation,
    features: Sequence[TurnFeatures],
    failures: Sequence[Failure],
) -> tuple[Episode, ...]:
    """Episodes in order of their first turn. Blocks, tool slips and fruitless look-ups are no
    failed steps."""
    counted = [f for f in failures if f.confidence >= SURE and f.family not in ("blocked", "tool")]
    failed = {(f.turn, f.action) for f in failures if f.confidence >= SURE}
    steps = _Steps(run, features)
    groups: list[list[Failure]] = []
    for failure in counted:
        home = next(
            (g for g in reversed(groups) if _belongs(failure, g, steps, segmentation, failed)), None
        )
        if home is None:
            groups.append([failure])
        else:
            home.append(failure)
    return tuple(_episode(group, steps, segmentation, failed) for group in groups)


def short(cause: str) -> str:
    """A cause or message as part of a sentence: one line without round brackets, at most 110
    characters."""
    text = " ".join(cause.replace("(", "[").replace(")", "]").split())
    return text if len(text) <= 110 else text[:107] + "..."


class _Steps:
    """What each action tried, for telling whether two actions try the same step."""

    def __init__(self, run: Run, features: Sequence[TurnFeatures]) -> None:
        self.run = run
        self.features = features
        self._words: dict[tuple[int, int], frozenset[str]] = {}
        self._scripts: dict[tuple[int, int], frozenset[str]] = {}

    def action(self, turn: int, slot: int) -> Action:
        return self.run.turn(turn).actions[slot]

    def words(self, turn: int, slot: int) -> frozenset[str]:
        key = (turn, slot)
        if key not in self._words:
            self._words[key] = frozenset(_WORD.findall(self.action(turn, slot).code[:60_000]))
        return self._words[key]

    def scripts(self, turn: int, slot: int) -> frozenset[str]:
        key = (turn, slot)
        if key not in self._scripts:
            names = set(_SCRIPT.findall(self.action(turn, slot).code[:60_000]))
            ran = self.features[turn - 1].run_paths if turn <= len(self.features) else ()
            logs = _LOG.findall(self.action(turn, slot).code[:2_000])
            self._scripts[key] = frozenset(
                PurePosixPath(n).stem
                for n in (*names, *ran, *logs)
                if n in ran or n in logs or len(names) <= 3
            )
        return self._scripts[key]

    def ran(self, turn: int, slot: int) -> frozenset[str]:
        """Of those, the scripts that were started."""
        started = self.features[turn - 1].run_paths if turn <= len(self.features) else ()
        return self.scripts(turn, slot) & {PurePosixPath(n).stem for n in started}

    def similarity(self, a: tuple[int, int], b: tuple[int, int]) -> float:
        """Share of words that two pieces of code have in common, in [0, 1]."""
        left, right = self.words(*a), self.words(*b)
        union = len(left | right)
        return len(left & right) / union if union else 0.0

    def same(self, a: tuple[int, int], b: tuple[int, int]) -> bool:
        return bool(self.scripts(*a) & self.scripts(*b)) or self.similarity(a, b) >= 0.45

    def repeats(self, a: tuple[int, int], b: tuple[int, int]) -> bool:
        """Whether `a` runs the step of `b` again: editing, reading or listing its files is not
        running it."""
        if self.ran(*a) & self.scripts(*b):
            return True
        if len(self.words(*a) | self.words(*b)) < SHORT and self.words(*a) != self.words(*b):
            return False
        return self.similarity(a, b) >= 0.45 and (
            self.goal(a[0]) is not None or self.goal(b[0]) is None
        )

    def goal(self, turn: int) -> str | None:
        """The farthest thing that a turn tried to do."""
        feature = self.features[turn - 1] if turn <= len(self.features) else None
        return next((s for s in _STEPS if feature is not None and feature.has(s)), None)


def _belongs(
    failure: Failure,
    group: list[Failure],
    steps: _Steps,
    segmentation: Segmentation,
    failed: set[tuple[int, int]],
) -> bool:
    last = group[-1]
    here, there = (failure.turn, failure.action), (last.turn, last.action)
    if failure.turn - last.turn > WINDOW:
        return False
    same = bool(steps.scripts(*here) & steps.scripts(*there))
    apart = failure.environment and last.environment and not _one_lack(failure, last)
    same = same or (steps.same(here, there) and not apart)
    # Two files that are not there are two look-ups, however alike the messages.
    alike = failure.signature == last.signature and (
        failure.family != "path" or failure.message == last.message
    )
    if not same and alike:
        same = True
    if not same and _one_lack(failure, last):
        # The same lack tried by other means: another installer, another source, another version.
        same = failure.turn - last.turn <= 3 and _stage(segmentation, failure.turn) == _stage(
            segmentation, last.turn
        )
    if not (same or apart) and failure.turn - last.turn <= 1:
        goal = steps.goal(failure.turn)
        same = (
            goal is not None
            and goal == steps.goal(last.turn)
            and steps.similarity(here, there) >= 0.2
        )
    return same and not _worked_between(last, failure, steps, failed)


def _one_lack(one: Failure, two: Failure) -> bool:
    """Whether two failures of access may be about one thing: packages, or models and data; and no
    two named packages."""
    if not (
        one.environment
        and two.environment
        and any({one.family, two.family} <= means for means in _MEANS)
    ):
        return False
    first, second = (frozenset(_PACKAGE.findall(failure.message)) for failure in (one, two))
    return not (first and second) or bool(first & second)


def _worked_between(
    first: Failure, second: Failure, steps: _Steps, failed: set[tuple[int, int]]
) -> bool:
    for turn in range(first.turn, second.turn + 1):
        for slot, action in enumerate(steps.run.turn(turn).actions):
            if (turn, slot) <= (first.turn, first.action) or (turn, slot) >= (
                second.turn,
                second.action,
            ):
                continue
            if not _worked(action, turn, slot, failed):
                continue
            if steps.repeats((turn, slot), (first.turn, first.action)):
                return True
            # Rewritten around what failed: what comes after it with another error is another step.
            goal = steps.goal(first.turn)
            if (
                first.signature != second.signature
                and goal is not None
                and steps.features[turn - 1].has(goal)
                and steps.similarity((turn, slot), (first.turn, first.action)) >= 0.3
            ):
                return True
    return False


def _worked(action: Action, turn: int, slot: int, failed: set[tuple[int, int]]) -> bool:
    return (
        action.kind == "execute"
        and action.observation is not None
        and action.observation.kind in ("ok", "unknown")
        and (turn, slot) not in failed
    )


def _episode(
    group: list[Failure], steps: _Steps, segmentation: Segmentation, failed: set[tuple[int, int]]
) -> Episode:
    first, last = group[0], group[-1]
    kinds = [f.kind for f in group]
    kind = max(dict.fromkeys(kinds), key=kinds.count)
    message = next(f.message for f in group if f.kind == kind)
    return Episode(
        cause=f"{kind}: {message}" if not message.startswith(kind) else message,
        kind=kind,
        stage=_stage(segmentation, first.turn),
        environment=sum(f.environment for f in group) * 2 > len(group),
        first_turn=first.turn,
        turns=tuple(dict.fromkeys(f.turn for f in group)),
        attempts=len(group),
        errors=len({f.signature for f in group}),
        resolved_at=_resolved(last, steps, failed),
    )


def _resolved(last: Failure, steps: _Steps, failed: set[tuple[int, int]]) -> int | None:
    """The first later turn in which the same step, or what it was for, worked."""
    goal = steps.goal(last.turn)
    here = (last.turn, last.action)
    for turn in range(last.turn, len(steps.run.turns) + 1):
        feature = steps.features[turn - 1] if turn <= len(steps.features) else None
        for slot, action in enumerate(steps.run.turn(turn).actions):
            if (turn, slot) <= here or not _worked(action, turn, slot, failed):
                continue
            # A look at files shares words with the step but is not the step: where a goal is known,
            # it must be reached.
            reached = goal is not None and feature is not None and feature.has(goal)
            if reached or (goal is None and steps.same((turn, slot), here)):
                return turn
            further = _STEPS[: _STEPS.index(goal)] if goal is not None else ()
            if further and feature is not None and feature.has(*further):
                return turn
    return None


def _stage(segmentation: Segmentation, turn: int) -> Stage:
    stages = segmentation.turn_stages
    return stages[turn - 1] if 0 < turn <= len(stages) else "S5"
