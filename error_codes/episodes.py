"""Failures grouped into episodes: one step that failed, how often, and whether it was overcome.

Recovery and the codes E2 and E4 are counted on episodes: attempts at the same step, not single
error lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from ..trajectories.models import Action, Run, Segmentation, Stage
from ..trajectories.record.strangers import Stranger
from ..trajectories.turns.failures import Failure
from ..trajectories.turns.turn_features import TurnFeatures
from .models import EpisodeInfo

SURE_FAILURE = 0.7
"""Failures below this confidence are hints and start no episode."""
WINDOW = 8
"""Turns after its last attempt during which a failure of the same step still belongs to the
episode."""

_FEW_WORDS = 10
"""Different words in two pieces of code below which common words prove nothing: one line may patch
what the other line runs."""
_SAME_STEP = 0.45
"""Share of common words from which two pieces of code try the same step."""
_SAME_GOAL = 0.2
"""The same for consecutive turns with the same goal."""
_REWRITTEN = 0.3
"""The same for code that reaches the goal of a failed step by other means."""
_MAX_CODE = 60_000
"""Characters of an action's code that are compared."""
_MAX_LOG_CODE = 2_000
"""Characters of an action's code in which log files are looked for."""
_MANY_SCRIPTS = 3
"""Scripts that an action may mention before a mere mention counts for nothing."""
_MAX_CAUSE = 110

_WORD = re.compile(r"[A-Za-z_]\w{2,40}")
_SCRIPT = re.compile(r"[\w./-]{1,120}\.(?:py|sh|R|ipynb|c|cpp)\b")
_PACKAGE = re.compile(r"(?:No module named|found for|requirement) '?([A-Za-z]\w{1,40})")
_LOG = re.compile(r"[\w./-]{1,120}\.(?:log|out)\b")
_SAME_LACK = (
    frozenset({"package", "shell", "network", "permission"}),
    frozenset({"package", "network", "permission", "model", "device", "memory", "disk"}),
)
"""Families of failures that getting one package, or one model with its packages, runs into."""
_GOALS = (
    "writes_outputs",
    "forward_pass",
    "training",
    "loads_model",
    "obtains_weights",
    "installs_packages",
    "builds",
)
"""Turn features that say what a turn is for, the furthest in the work first."""

_Place = tuple[int, int]
"""An action: its turn, and its position among the actions of the turn."""


class Episode(EpisodeInfo):
    """One step that failed: what a scorecard keeps of it, and how its attempts differ."""

    errors: int = 1
    """Number of different errors that the attempts ended in."""


def find_episodes(
    run: Run,
    segmentation: Segmentation,
    features: Sequence[TurnFeatures],
    failures: Sequence[Failure],
) -> tuple[Episode, ...]:
    """Episodes in order of their first turn.

    Blocked calls, misused tools and fruitless look-ups are not failed steps.
    """
    steps = _Steps(run, segmentation, features, failures)
    groups: list[list[Failure]] = []
    for failure in failures:
        if failure.confidence < SURE_FAILURE or failure.family in ("blocked", "tool"):
            continue
        for group in reversed(groups):
            if steps.belongs(failure, group[-1]):
                group.append(failure)
                break
        else:
            groups.append([failure])
    return tuple(_episode(group, steps) for group in groups)


def short_cause(cause: str) -> str:
    """A cause as part of a sentence: quoted, without round brackets, at most 110 characters."""
    return Stranger(cause.replace("(", "[").replace(")", "]"), _MAX_CAUSE).quoted


def _episode(group: Sequence[Failure], steps: _Steps) -> Episode:
    kinds = [failure.kind for failure in group]
    kind = max(dict.fromkeys(kinds), key=kinds.count)
    message = next(failure.message for failure in group if failure.kind == kind)
    return Episode(
        cause=message if message.startswith(kind) else f"{kind}: {message}",
        kind=kind,
        stage=steps.stage(group[0].turn),
        environment=sum(failure.environment for failure in group) * 2 > len(group),
        first_turn=group[0].turn,
        turns=tuple(dict.fromkeys(failure.turn for failure in group)),
        attempts=len(group),
        errors=len({failure.signature for failure in group}),
        resolved_at=steps.resolved_at(group[-1]),
    )


class _Steps:
    """Tells whether two actions of a run try the same step, and whether a step worked later."""

    def __init__(
        self,
        run: Run,
        segmentation: Segmentation,
        features: Sequence[TurnFeatures],
        failures: Sequence[Failure],
    ) -> None:
        self._run, self._segmentation, self._features = run, segmentation, features
        self._failed = {
            _place(failure) for failure in failures if failure.confidence >= SURE_FAILURE
        }
        self._words: dict[_Place, frozenset[str]] = {}
        self._scripts: dict[_Place, frozenset[str]] = {}

    def stage(self, turn: int) -> Stage:
        return self._segmentation.stage_of(turn) or "S5"

    def belongs(self, failure: Failure, last: Failure) -> bool:
        """Whether a failure is another attempt at the step whose last failure so far is `last`."""
        if failure.turn - last.turn > WINDOW:
            return False
        return self._tries_same(failure, last) and not self._worked_between(last, failure)

    def _tries_same(self, failure: Failure, last: Failure) -> bool:
        place, last_place = _place(failure), _place(last)
        if self._script_names(place) & self._script_names(last_place):
            return True
        same_lack = _about_same_lack(failure, last)
        different_lacks = failure.environment and last.environment and not same_lack
        if not different_lacks and self._similar(place, last_place):
            return True
        if _same_error(failure, last):
            return True
        distance = failure.turn - last.turn
        if same_lack:
            # The same lack, tried by other means: another installer, source or version.
            close = distance <= 3 and self.stage(failure.turn) == self.stage(last.turn)
            if close:
                return True
        if different_lacks or distance > 1:
            return False
        goal = self._goal(failure.turn)
        return (
            goal is not None
            and goal == self._goal(last.turn)
            and self._similarity(place, last_place) >= _SAME_GOAL
        )

    def _worked_between(self, first: Failure, second: Failure) -> bool:
        """Whether the step of the first failure worked before the second one."""
        start, end = _place(first), _place(second)
        goal = self._goal(first.turn)
        other_error = first.signature != second.signature
        for place in self._successes(first.turn, second.turn):
            if not start < place < end:
                continue
            if self._repeats(place, start):
                return True
            # Rewritten around what failed: a later failure with another error is another step.
            if (
                other_error
                and goal is not None
                and self._features[place[0] - 1].has(goal)
                and self._similarity(place, start) >= _REWRITTEN
            ):
                return True
        return False

    def resolved_at(self, last: Failure) -> int | None:
        """The first later turn in which the same step, or what it was for, worked."""
        goal = self._goal(last.turn)
        further = () if goal is None else _GOALS[: _GOALS.index(goal)]
        for place in self._successes(last.turn, len(self._run.turns)):
            if place <= _place(last):
                continue
            turn = place[0]
            if goal is None:
                if self._similar(place, _place(last)):
                    return turn
                continue
            # Looking at files shares words with the step without being the step: where the goal is
            # known, it must be reached.
            feature = self._feature(turn)
            if feature is not None and (feature.has(goal) or feature.has(*further)):
                return turn
        return None

    def _successes(self, first_turn: int, last_turn: int) -> Iterator[_Place]:
        """Executions in these turns that worked, in order."""
        for turn in range(first_turn, last_turn + 1):
            for slot, action in enumerate(self._run.turn(turn).actions):
                if (turn, slot) not in self._failed and _worked(action):
                    yield turn, slot

    def _repeats(self, place: _Place, earlier: _Place) -> bool:
        """Whether an action runs an earlier step again.

        Editing, reading or listing the files of a step is not running it.
        """
        if self._started_scripts(place) & self._script_names(earlier):
            return True
        words, earlier_words = self._code_words(place), self._code_words(earlier)
        if len(words | earlier_words) < _FEW_WORDS and words != earlier_words:
            return False
        has_goal = self._goal(place[0]) is not None or self._goal(earlier[0]) is None
        return has_goal and self._similarity(place, earlier) >= _SAME_STEP

    def _similar(self, place: _Place, other: _Place) -> bool:
        """Whether two actions name the same script, or share enough words."""
        if self._script_names(place) & self._script_names(other):
            return True
        return self._similarity(place, other) >= _SAME_STEP

    def _similarity(self, place: _Place, other: _Place) -> float:
        """Share of words that two pieces of code have in common, in [0, 1]."""
        words, other_words = self._code_words(place), self._code_words(other)
        union = len(words | other_words)
        return len(words & other_words) / union if union else 0.0

    def _code_words(self, place: _Place) -> frozenset[str]:
        if place not in self._words:
            self._words[place] = frozenset(_WORD.findall(self._code(place)[:_MAX_CODE]))
        return self._words[place]

    def _script_names(self, place: _Place) -> frozenset[str]:
        """Stems of the scripts and logs that an action names, unless it names many scripts."""
        if place not in self._scripts:
            code = self._code(place)
            mentioned = set(_SCRIPT.findall(code[:_MAX_CODE]))
            names = {*self._run_paths(place[0]), *_LOG.findall(code[:_MAX_LOG_CODE])}
            if len(mentioned) <= _MANY_SCRIPTS:
                names |= mentioned
            self._scripts[place] = frozenset(PurePosixPath(name).stem for name in names)
        return self._scripts[place]

    def _started_scripts(self, place: _Place) -> frozenset[str]:
        """Those scripts that the turn started."""
        started = {PurePosixPath(path).stem for path in self._run_paths(place[0])}
        return self._script_names(place) & started

    def _code(self, place: _Place) -> str:
        turn, slot = place
        return self._run.turn(turn).actions[slot].code

    def _run_paths(self, turn: int) -> tuple[str, ...]:
        feature = self._feature(turn)
        return () if feature is None else feature.run_paths

    def _feature(self, turn: int) -> TurnFeatures | None:
        return self._features[turn - 1] if turn <= len(self._features) else None

    def _goal(self, turn: int) -> str | None:
        """The furthest thing that a turn tried to do."""
        feature = self._feature(turn)
        if feature is not None:
            for goal in _GOALS:
                if feature.has(goal):
                    return goal
        return None


def _place(failure: Failure) -> _Place:
    return failure.turn, failure.action


def _worked(action: Action) -> bool:
    return (
        action.kind == "execute"
        and action.observation is not None
        and action.observation.kind in ("ok", "unknown")
    )


def _same_error(failure: Failure, other: Failure) -> bool:
    """Whether two failures end in the same error.

    Two files that are missing are two look-ups, however similar the messages.
    """
    if failure.signature != other.signature:
        return False
    return failure.family != "path" or failure.message == other.message


def _about_same_lack(failure: Failure, other: Failure) -> bool:
    """Whether two failures of access may have one cause: packages, or models and data.

    Failures that name two different packages do not.
    """
    if not (failure.environment and other.environment):
        return False
    families = {failure.family, other.family}
    if not any(families <= lack for lack in _SAME_LACK):
        return False
    packages = frozenset(_PACKAGE.findall(failure.message))
    other_packages = frozenset(_PACKAGE.findall(other.message))
    return not packages or not other_packages or bool(packages & other_packages)
