"""Which runs and items `--criteria`, `--disagree`, `--below-confidence` and `--again` choose, and
what second opinions came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .. import console
from ..errors import ConfigError, InputError

if TYPE_CHECKING:
    from ..judge.base import Judge
    from ..judge.card.scorecard import ScoreCard
    from ..judge.card.stage_results import CriterionResult
    from ..judge.rejudge.selection import ItemsByRun, ItemSelection
    from ..judge.rejudge.staleness import RejudgePlan, SecondOpinion
    from ..judge.store import Store

_MAX_ROWS = 40
"""Rows that people read through."""


class Selected(NamedTuple):
    """What a command asks, where its options choose."""

    files: list[Path]
    """Runs with a chosen item."""
    items: ItemSelection | None
    """None: every item."""


def chooses_items(flags: Mapping[str, Any]) -> bool:
    """Whether an option chooses items."""
    return bool(
        flags.get("criteria")
        or flags.get("disagree")
        or flags.get("below_confidence") is not None
        or flags.get("again")
    )


def selected_items(
    store: Store, files: Sequence[Path], judge: Judge, flags: Mapping[str, Any], quiet: bool
) -> Selected:
    """The runs, out of these, and the items that the options choose; notes say how many.

    InputError if they choose nothing; ConfigError for a second opinion of the rules.
    """
    from ..judge.card.fields import RULES
    from ..judge.rejudge.selection import ItemSelection, both

    if not chooses_items(flags):
        return Selected(list(files), None)
    if flags.get("again") and judge.name == RULES:
        raise ConfigError("the rules say the same again", "name a model with --judge")
    by_run: ItemsByRun | None = None
    if flags.get("disagree"):
        by_run = _disputed(store, files, flags["disagree"], quiet)
    if flags.get("below_confidence") is not None:
        by_run = both(by_run, _unsure(store, files, flags["below_confidence"], quiet))
    if by_run is not None:
        files = [file for file in files if file.absolute() in by_run]
        if not files:
            raise InputError("no item of these runs is chosen", "loosen the options that choose")
    names = _names(flags.get("criteria") or "")
    return Selected(list(files), ItemSelection(names, by_run, bool(flags.get("again"))))


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def two_judges(text: str) -> tuple[str, str]:
    """The judges that `A,B` names; a usage error for anything else."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise click.UsageError(f"--disagree takes two judges, as A,B, not {text!r}")
    return names[0], names[1]


def _disputed(store: Store, files: Sequence[Path], judges: str, quiet: bool) -> ItemsByRun:
    from ..judge.rejudge.selection import disputed_items

    first, second = two_judges(judges)
    items = disputed_items(store, files, first, second)
    console.note(f"{first} and {second} differ on {_count(items)}", quiet)
    return items


def _unsure(store: Store, files: Sequence[Path], below: float, quiet: bool) -> ItemsByRun:
    from ..judge.rejudge.selection import unsure_items

    unsure = unsure_items(store, files, below, None)
    text = f"{_count(unsure.items)} have a confidence below {below:g}"
    if unsure.without:
        text += (
            f"; {console.counted(unsure.without, 'item')} have none (codes that are present state"
            " one; a criterion has one if several votes or a likelihood stand behind it)"
        )
    console.note(text, quiet)
    return unsure.items


def _count(items: ItemsByRun) -> str:
    count = sum(len(of_run) for of_run in items.values())
    return f"{console.counted(count, 'item')} of {console.counted(len(items), 'run')}"


def note_nothing_asked(plan: RejudgePlan, items: ItemSelection | None, quiet: bool) -> None:
    """Say how to ask chosen items whose verdicts all stand."""
    if items is not None and not items.again and not plan.calls and plan.current:
        console.note("every chosen verdict stands (--again asks once more)", quiet)


# Tracks and tiers


def note_given_facts(
    store: Store, files: Iterable[Path], flags: Mapping[str, Any], quiet: bool
) -> None:
    """Say that --track and --tier select nothing, where runs name another track or tier.

    `files` may have to be searched for: they are asked for only if one of the two is given.
    """
    given = {name: flags.get(name) for name in ("track", "tier") if flags.get(name)}
    if not given:
        return
    paths = [file.absolute() for file in files]
    stamped = store.stamped(paths)
    for name, value in given.items():
        stated = [getattr(file.run, name) for file in stamped.values()]
        others = sum(own is not None and own != value for own in stated)
        if others:
            console.note(
                f"--{name} {value} selects no runs: {others:,} of"
                f" {console.counted(len(paths), 'run')} name another {name} and keep it"
                f" (--where '{name}:{value}' selects)",
                quiet,
            )


# What was asked


def show_chosen(items: ItemSelection | None, cards: Iterable[ScoreCard], judge: Judge) -> None:
    """List what the judge says of items that were chosen one by one."""
    from ..judge.card.differences import opinions

    if items is None or items.by_run is None:
        return
    rows = []
    for card in cards:
        by_item = opinions(card)
        path = Path(card.run.path).absolute()
        for item, reason in items.by_run.get(path, {}).items():
            opinion = by_item.get(item)
            if opinion is not None and items.takes(path, opinion.question, item):
                rows.append([card.run.id, item, reason, str(opinion), opinion.why])
    if rows:
        heads = ["Run", "Item", "Before", judge.name, "Why"]
        console.table(heads, rows[:_MAX_ROWS], flexible=4)
    if len(rows) > _MAX_ROWS:
        console.say(f"and {len(rows) - _MAX_ROWS:,} more (export --what verdicts has all)")


def show_second_opinions(store: Store, plan: RejudgePlan, judge: Judge) -> None:
    """Say how many second opinions differ from the verdicts in force, and list those."""
    asked = plan.second_opinions
    if not asked:
        return
    verdicts = store.verdicts(key for each in asked for key in (each.in_force, each.further))
    answered = [each for each in asked if each.further in verdicts]
    differing = [
        each
        for each in answered
        if _answer(verdicts[each.in_force].result) != _answer(verdicts[each.further].result)
    ]
    console.say(
        f"second opinions: {len(answered):,} of {len(asked):,} given, {len(differing):,} differ;"
        f" the first verdict stays in force{_how_both_count(judge)}"
    )
    if differing:
        console.table(
            ["Run", "Item", "In force", "Second", "Why"],
            [_row(store, each, verdicts) for each in differing[:_MAX_ROWS]],
            flexible=4,
        )
    if len(differing) > _MAX_ROWS:
        console.say(f"and {len(differing) - _MAX_ROWS:,} more")


def _how_both_count(judge: Judge) -> str:
    if judge.members:
        return ""
    samples = int(judge.parameters.get("samples") or 1) + 1
    return f" (--samples {samples} lets both vote, without a further call)"


def _row(store: Store, each: SecondOpinion, verdicts: Mapping[str, Any]) -> list[str]:
    from ..trajectories.reading.layout import run_id

    further = verdicts[each.further].result
    return [
        run_id(each.path),
        each.item,
        _text(verdicts[each.in_force].result),
        _text(further),
        further.rationale or further.detail,
    ]


def _answer(result: CriterionResult) -> tuple[object, ...]:
    answer = result.answer if result.id == "ask" else None
    return result.status, result.value, result.reason, repr(answer)


def _text(result: CriterionResult) -> str:
    if result.status == "scored" and result.id == "ask":
        return str(result.answer)
    if result.value is not None:
        return f"{result.value:g}"
    return result.reason or result.status.replace("_", " ")
