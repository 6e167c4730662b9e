"""Which scorecard of each run counts: one rule, which every command, page and function asks.

A run may have several scorecards: by several judges, by several versions of a rubric, or of a copy.
The scorecard in force is the newest by the judge that scored most runs. `CardChoice` names another
judge or rubric. A run counts once, whatever was done to it: `identified` says which scorecards are
of one run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...console import counted
from ...errors import InputError
from ...trajectories.reading.layout import run_around
from .run_identity import Identity, RunState, identities
from .run_ids import NamedRun, distinct_ids

if TYPE_CHECKING:
    from .scorecard import ScoreCard

ALL_JUDGES = "all"
"""Name of a judge that stands for the newest scorecard of each judge."""
_MAX_NAMED = 4
"""Rubrics that a sentence names; the others are counted."""


class CardHead(NamedTuple):
    """What the rule looks at in a scorecard. Scorecards are given in the order of their age."""

    run_id: str | None
    path: str | None
    """Of the run's conversation."""
    sha256: str | None
    """Of the conversation's bytes."""
    agent: str | None
    task: str | None
    tier: str | None
    repeat: int | None
    track: str | None
    judge: str | None
    rubric: str | None
    version: str | None
    """Of the rubric."""
    rubric_sha256: str | None = None
    identity: Identity | None = None
    """Of the run as it is now, while the scorecard may be of an earlier state (`identified`)."""


def head_of(card: ScoreCard) -> CardHead:
    """What the rule looks at in a scorecard."""
    return _head(vars(card.run), vars(card.rubric), card.judge.name)


def head_of_values(card: Mapping[str, Any]) -> CardHead:
    """What the rule looks at in a scorecard given as plain values; KeyError if it is none."""
    return _head(card["run"], card["rubric"], card["judge"]["name"])


def _head(run: Mapping[str, Any], rubric: Mapping[str, Any], judge: str) -> CardHead:
    return CardHead(
        run_id=run["id"],
        path=run["path"],
        sha256=run.get("sha256"),
        agent=run["agent"],
        task=run["task"],
        tier=run["tier"],
        repeat=run["repeat"],
        track=run["track"],
        judge=judge,
        rubric=rubric["id"],
        version=rubric["version"],
        rubric_sha256=rubric.get("sha256"),
    )


class RubricName(NamedTuple):
    """A rubric by its id, or one version of it."""

    id: str
    version: str | None = None

    @staticmethod
    def parse(text: str) -> RubricName:
        """Read `ID` or `ID@VERSION`."""
        rubric_id, _, version = text.partition("@")
        return RubricName(rubric_id, version or None)

    def __str__(self) -> str:
        return self.id if self.version is None else f"{self.id}@{self.version}"

    def includes(self, head: CardHead) -> bool:
        """Whether a scorecard was made with this rubric."""
        return self.id == head.rubric and self.version in (None, head.version)


@dataclass(frozen=True)
class CardChoice:
    """What a user asks for in place of the scorecards in force."""

    judge: str | None = None
    """None: the judge that scored most runs; ALL_JUDGES: each of them."""
    rubrics: tuple[RubricName, ...] = ()
    """Scorecards by these rubrics; runs of tracks that none of them judged keep theirs."""
    versions: bool = False
    """Whether the newest scorecard by each version of a rubric counts, not only the newest."""


def choice_of(judge: str | None = None, rubric: str | Path | None = None) -> CardChoice:
    """The scorecards by this judge and this rubric, an `ID`, `ID@VERSION` or a YAML file."""
    from ...rubrics.load import load_rubric

    if rubric is None:
        return CardChoice(judge)
    if Path(rubric).is_file():
        loaded = load_rubric(rubric)
        return CardChoice(judge, (RubricName(loaded.id, loaded.version),))
    return CardChoice(judge, (RubricName.parse(str(rubric)),))


def rubric_to_score_with(rubric: str | Path | None) -> str | Path | None:
    """The rubric for runs without a scorecard, where `choice_of` takes this one.

    A version chooses among scorecards; new ones are made with the version that there is.
    """
    if rubric is None or Path(rubric).is_file():
        return rubric
    return RubricName.parse(str(rubric)).id


@dataclass(frozen=True)
class Selection:
    """The scorecards that count, by their positions among those that were given."""

    numbers: tuple[int, ...]
    """One for each run: by the judge in force, or by each judge with ALL_JUDGES."""
    other_judges: tuple[int, ...] = ()
    """The newest of each run by each of the other judges."""
    judges: tuple[str | None, ...] = ()
    """The judge of the scorecards that count; with ALL_JUDGES each of them."""
    rubrics: tuple[tuple[str, int], ...] = ()
    """Rubrics of the scorecards that count, as `ID VERSION`, with their numbers of runs."""
    outdated: int = 0
    """Scorecards for which there is a newer one of the same run and judge."""
    copies: int = 0
    """Scorecards of copies of a run."""
    parts: int = 0
    """Scorecards of parts of runs, such as those of sub-agents."""
    other_rubrics: int = 0
    """Scorecards by other rubrics than those asked for."""
    unjudged: int = 0
    """Runs that only other judges scored."""

    @property
    def is_everything(self) -> bool:
        """Whether no scorecard was left out."""
        left_out = self.outdated + self.copies + self.parts + self.other_rubrics
        return left_out + len(self.other_judges) == 0

    @property
    def mixes_versions(self) -> bool:
        """Whether scorecards by several versions of one rubric count."""
        ids = [name.partition(" ")[0] for name, _ in self.rubrics]
        return len(set(ids)) < len(ids)

    def sentence(self) -> str:
        """Which scorecards count and what was left out, in one line.

        "" if all of them count and each rubric has one version.
        """
        if self.is_everything and not self.mixes_versions:
            return ""
        judge = ", ".join(str(name) for name in self.judges)
        text = f"scorecards of judge {judge}, {_rubrics_text(self.rubrics)}"
        left_out = self.left_out()
        return f"{text}; left out: {left_out}" if left_out else text

    def __str__(self) -> str:
        """Which scorecards count and what was left out, also if nothing was."""
        judge = ", ".join(str(name) for name in self.judges)
        numbered = counted(len(self.numbers), "scorecard")
        text = f"{numbered} of judge {judge or 'unknown'}"
        if self.rubrics:
            text += f", {_rubrics_text(self.rubrics)}"
        left_out = self.left_out()
        return f"{text}; left out: {left_out}" if left_out else text

    def left_out(self) -> str:
        """What does not count and why; "" if everything counts."""
        parts = []
        if self.other_judges:
            text = f"{len(self.other_judges):,} of other judges"
            if self.unjudged:
                judge = ", ".join(str(name) for name in self.judges)
                text += f" ({counted(self.unjudged, 'run')} that {judge} did not judge)"
            parts.append(text)
        if self.other_rubrics:
            parts.append(f"{self.other_rubrics:,} by other rubrics")
        if self.outdated:
            parts.append(f"{self.outdated:,} outdated")
        if self.copies:
            parts.append(f"{self.copies:,} of copied runs")
        if self.parts:
            parts.append(f"{self.parts:,} of parts of runs")
        return ", ".join(parts)


def choose(
    heads: Sequence[CardHead],
    choice: CardChoice | None = None,
    accepted: Container[int] | None = None,
) -> Selection:
    """The scorecards that count, of the given ones from the oldest to the newest.

    Which of them are of one run does not depend on the choice (`identified`). What another agent
    did within a run is no run of its own, unless nothing else is given. `accepted`: positions that
    a filter lets through, which does not change the judge in force; None for all.
    InputError if there are scorecards, but none of the judge or the rubric that was asked for.
    """
    choice = choice or CardChoice()
    heads = identified(heads)
    numbers = _with_rubric(heads, choice.rubrics)
    other_rubrics = len(heads) - len(numbers)
    of_runs = _without_parts(heads, numbers)
    parts = len(numbers) - len(of_runs)
    numbers = of_runs
    newest: dict[Hashable, list[int]] = defaultdict(list)
    for number in numbers:
        head = heads[number]
        version = (head.rubric, head.version) if choice.versions else None
        newest[head.identity, head.judge, version].append(number)
    outdated, copies = 0, 0
    chosen: list[int] = []
    for candidates in newest.values():
        number = _newest(heads, candidates)
        chosen.append(number)
        copied = sum(heads[other].path != heads[number].path for other in candidates)
        copies += copied
        outdated += len(candidates) - 1 - copied
    chosen.sort()
    judges = judges_by_use(heads[number].judge for number in chosen)
    in_force = chosen
    if choice.judge != ALL_JUDGES and judges:
        judges = [_judge_in_force(judges, choice.judge)]
        in_force = [number for number in chosen if heads[number].judge == judges[0]]
    others = sorted(set(chosen) - set(in_force))
    if accepted is not None:
        in_force = [number for number in in_force if number in accepted]
        others = [number for number in others if number in accepted]
    judged_runs = {heads[number].identity for number in in_force}
    rubrics = Counter(_rubric_text(heads[number]) for number in in_force)
    return Selection(
        numbers=tuple(in_force),
        other_judges=tuple(others),
        judges=tuple(judges),
        rubrics=tuple(rubrics.most_common()),
        outdated=outdated,
        copies=copies,
        parts=parts,
        other_rubrics=other_rubrics,
        unjudged=len({heads[number].identity for number in others} - judged_runs),
    )


def identified(
    heads: Sequence[CardHead], bytes_now: Mapping[str, str | None] | None = None
) -> list[CardHead]:
    """The heads with the identity of their runs; those that have one keep it.

    `bytes_now`: see `run_identity.identities`.
    """
    if all(head.identity is not None for head in heads):
        return list(heads)
    states = [
        RunState(
            head.path,
            head.sha256,
            head.run_id,
            (head.agent, head.task, head.tier, head.repeat),
            head.identity,
        )
        for head in heads
    ]
    numbered = zip(heads, identities(states, bytes_now or {}), strict=True)
    return [head._replace(identity=identity) for head, identity in numbered]


def ids_of(heads: Sequence[CardHead], others: Sequence[NamedRun] = ()) -> list[str]:
    """The id of the run of each identified head (`run_ids`), told from those of `others`, too."""
    own = [NamedRun(head.run_id, head.path, _bytes_of(head)) for head in heads]
    # Where a run is now names it, not where it was.
    is_now = [number for number, head in enumerate(heads) if _is_of_now(head)]
    ids = distinct_ids([*own, *(own[number] for number in is_now), *others])
    return ids[: len(own)]


def _bytes_of(head: CardHead) -> Hashable:
    """The bytes of a run, or what stands for them where they are not known."""
    return head.identity if head.identity is None else head.identity[0] or head.identity


def judges_by_use(judges: Iterable[str | None]) -> list[str | None]:
    """The judges by their number of runs, most first: the first one is in force.

    If tied, a judge that reads runs comes before the rules, then the first by name.
    """
    from .fields import RULES

    counts = Counter(judges)
    return sorted(
        counts, key=lambda judge: (judge is None, -counts[judge], judge == RULES, judge or "")
    )


def _judge_in_force(judges: Sequence[str | None], name: str | None) -> str | None:
    """The judge that the user names, else the one of most runs. InputError for an unknown one."""
    if name is None:
        return judges[0]
    if name not in judges:
        names = ", ".join(sorted(str(judge) for judge in judges))
        raise InputError(f"there are no scorecards of judge {name!r}", f"choose from {names}")
    return name


def _with_rubric(heads: Sequence[CardHead], rubrics: tuple[RubricName, ...]) -> list[int]:
    """Positions of the scorecards by these rubrics, and of all runs of other tracks than theirs."""
    if not rubrics or not heads:
        return list(range(len(heads)))
    tracks = set()
    for rubric in rubrics:
        of_rubric = {head.track for head in heads if rubric.includes(head)}
        if not of_rubric:
            names = ", ".join(sorted({_rubric_text(head).replace(" ", "@") for head in heads}))
            raise InputError(f"there are no scorecards by rubric {rubric}", f"choose from {names}")
        tracks |= of_rubric
    return [
        number
        for number, head in enumerate(heads)
        if head.track not in tracks or any(rubric.includes(head) for rubric in rubrics)
    ]


def _without_parts(heads: Sequence[CardHead], numbers: list[int]) -> list[int]:
    """Positions without those of parts of runs; all of them if there is nothing but parts."""
    of_runs = []
    for number in numbers:
        path = heads[number].path
        if path is None or run_around(Path(path)) is None:
            of_runs.append(number)
    return of_runs or numbers


def _newest(heads: Sequence[CardHead], candidates: Sequence[int]) -> int:
    """The newest of one run's scorecards by one judge.

    Those of the run as it is now come before those of an earlier state. Of a run and its copies,
    which have the same bytes, the oldest that is still there counts: its name is the one that
    labels know.
    """
    of_now = [number for number in candidates if _is_of_now(heads[number])]
    candidates = of_now or candidates
    newest = heads[candidates[-1]]
    equals = [number for number in candidates if _made_alike(heads[number], newest)]
    for number in equals:
        path = heads[number].path
        if path == newest.path:
            break
        if path is not None and Path(path).is_file():
            return max(other for other in equals if heads[other].path == path)
    return candidates[-1]


def _is_of_now(head: CardHead) -> bool:
    """Whether a scorecard is of its run as it is now, not of an earlier state."""
    return head.identity is not None and head.sha256 == head.identity[0]


def _made_alike(head: CardHead, other: CardHead) -> bool:
    """Whether two scorecards of a run are of the same bytes and by the same rubric."""
    return (head.sha256, head.rubric, head.version, head.rubric_sha256) == (
        other.sha256,
        other.rubric,
        other.version,
        other.rubric_sha256,
    )


def _rubric_text(head: CardHead) -> str:
    return " ".join(text for text in (head.rubric, head.version) if text) or "unknown"


def _rubrics_text(rubrics: Sequence[tuple[str, int]]) -> str:
    """The rubrics with their numbers of runs; a single one without."""
    if len(rubrics) == 1:
        return f"rubric {rubrics[0][0]}"
    named = ", ".join(f"{name} ({count:,})" for name, count in rubrics[:_MAX_NAMED])
    more = len(rubrics) - _MAX_NAMED
    return f"rubrics {named}" + (f" and {more} more" if more > 0 else "")
