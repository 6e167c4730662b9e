"""What changed between two rubrics, and what it costs: stale verdicts, or only a new sum.

`diff_rubrics(before, after)` compares meaning, so layout, comments and order do not count;
`render_diff` writes the result as text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from pydantic import Field

from ..trajectories.models import TIERS, Tier
from .load import criterion_sha256
from .model import Criterion, Level, Node, Rubric

JUDGED_FIELDS = ("title", "text", "scale", "conditional", "evidence", "preamble")
"""A change here makes the criterion's verdicts stale (the fields of `criterion_sha256`)."""
SUMMED_FIELDS = ("weight", "requires", "credit", "tiers")
"""A change here only changes how verdicts are combined."""
BOUND_FIELDS = ("meaning",)
"""A change here detaches the rules and presumed values that are bound to the criterion."""
_HEADER_FIELDS = ("id", "version", "track", "tasks", "title", "source", "derived")
_PROSE = ("title", "text", "conditional", "preamble", "source")
"""Fields of which the changed words are shown, and not both texts."""
_WIDTH = 98
_CONTEXT = 4
"""Words that are shown before and after changed ones."""
_SIMILAR = 0.5
"""Two texts that share fewer of their words are shown one after the other."""


class Change(Node):
    """One field before and after, as text; None if it was not set."""

    field: str
    before: str | None
    after: str | None


class CriterionDiff(Node):
    """What changed in one criterion that both rubrics have."""

    id: str
    changes: tuple[Change, ...]
    """None of its own if only the rubric's preamble changed."""
    stale: bool
    """Whether its stored verdicts no longer answer the question that is asked now."""
    newly_asked: bool
    """Whether it is now asked in a tier where it was credited or did not apply: verdicts may be
    missing there."""


class RubricDiff(Node):
    """Differences from rubric `before` to rubric `after`, each named as `id version`."""

    before: str
    after: str
    before_sha256: str
    after_sha256: str
    header: tuple[Change, ...] = ()
    """Changes of id, version, track, tasks, title, source, derived."""
    preamble: Change | None = None
    """The change of what is told before every criterion, which makes the verdicts on all stale."""
    stage_weights: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """Weights before and after, of stages whose weight changed."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added_texts: dict[str, str] = Field(default_factory=dict)
    removed_texts: dict[str, str] = Field(default_factory=dict)
    changed: tuple[CriterionDiff, ...] = ()

    @property
    def same(self) -> bool:
        """Whether both rubrics have the same meaning."""
        return self.before_sha256 == self.after_sha256

    @property
    def stale(self) -> tuple[str, ...]:
        """Criteria whose stored verdicts become stale; added criteria have none yet."""
        return tuple(criterion.id for criterion in self.changed if criterion.stale)


def diff_rubrics(before: Rubric, after: Rubric) -> RubricDiff:
    """The difference between two rubrics, with criteria matched by id."""
    old = {criterion.id: criterion for criterion in before.criteria()}
    new = {criterion.id: criterion for criterion in after.criteria()}
    added, removed = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    common = sorted(old.keys() & new.keys())
    diffs = [_diff_criterion(old[name], new[name]) for name in common]
    return RubricDiff(
        before=f"{before.id} {before.version}",
        after=f"{after.id} {after.version}",
        before_sha256=before.sha256,
        after_sha256=after.sha256,
        header=tuple(_changes(before, after, _HEADER_FIELDS)),
        preamble=next(_changes(before, after, ("preamble",)), None),
        stage_weights=_changed_weights(before, after),
        added=tuple(added),
        removed=tuple(removed),
        added_texts={name: new[name].text for name in added},
        removed_texts={name: old[name].text for name in removed},
        changed=tuple(diff for diff in diffs if diff.changes or diff.stale),
    )


def _changed_weights(before: Rubric, after: Rubric) -> dict[str, tuple[float, float]]:
    weights = {}
    for name in sorted(before.stages.keys() & after.stages.keys()):
        pair = before.stages[name].weight, after.stages[name].weight
        if pair[0] != pair[1]:
            weights[name] = pair
    return weights


def _diff_criterion(before: Criterion, after: Criterion) -> CriterionDiff:
    # The rubric's preamble is told of the rubric, once.
    judged = (field for field in JUDGED_FIELDS if field != "preamble")
    fields = (*judged, *SUMMED_FIELDS, *BOUND_FIELDS, "source")
    return CriterionDiff(
        id=before.id,
        changes=tuple(_changes(before, after, fields)),
        stale=criterion_sha256(before) != criterion_sha256(after),
        newly_asked=bool(_judged_tiers(after) - _judged_tiers(before)),
    )


def _judged_tiers(criterion: Criterion) -> set[Tier]:
    """Tiers in which the criterion needs a verdict."""
    tiers = TIERS if criterion.tiers is None else criterion.tiers
    return set(tiers) - set(criterion.credit)


def _changes(before: Node, after: Node, fields: Sequence[str]) -> Iterator[Change]:
    for field in fields:
        old, new = _field_text(getattr(before, field)), _field_text(getattr(after, field))
        if old != new:
            yield Change(field=field, before=old, after=new)


def _field_text(value: Any) -> str | None:
    if value is None or value == ():
        return None
    if isinstance(value, float):
        return f"{value:g}"
    if not isinstance(value, tuple):
        return str(value)
    if all(isinstance(item, Level) for item in value):
        levels = sorted(value, key=lambda level: -level.value)
        return "\n".join(f"{level.value:g}: {level.text}" for level in levels)
    return ", ".join(sorted(map(str, value)))


def render_diff(diff: RubricDiff) -> str:
    """The difference as text: a block a criterion, headed by its effect on verdicts.

    Of prose, changed words stand as `[-old-]` and `{+new+}` among a few unchanged ones. Empty if
    nothing differs. The text comes from the rubrics: pass it through `sanitize` before a
    terminal.
    """
    if diff.same:
        return ""
    lines = [
        f"--- {diff.before} ({diff.before_sha256[:12]})",
        f"+++ {diff.after} ({diff.after_sha256[:12]})",
    ]
    if diff.header:
        lines += ["@@ rubric: no new call @@", *_change_lines(diff.header)]
    for stage, (before, after) in sorted(diff.stage_weights.items()):
        lines += [
            f"@@ {stage} weight: no new call @@",
            f"-weight: {before:g}",
            f"+weight: {after:g}",
        ]
    for name in diff.removed:
        lines.append(f"@@ {name} removed: its verdicts are kept, and no longer used @@")
        lines += _signed_lines("-", f"text: {diff.removed_texts[name]}")
    for name in diff.added:
        lines.append(f"@@ {name} added: to be judged @@")
        lines += _signed_lines("+", f"text: {diff.added_texts[name]}")
    if diff.preamble is not None:
        names = ", ".join(diff.stale)
        lines += textwrap.wrap(f"@@ preamble: verdicts go stale, on {names} @@", _WIDTH)
        lines += _change_lines([diff.preamble])
    for criterion in diff.changed:
        if criterion.changes:
            lines.append(f"@@ {criterion.id}: {_effect(criterion)} @@")
            lines += _change_lines(criterion.changes)
    return "\n".join(lines) + "\n"


def _effect(criterion: CriterionDiff) -> str:
    if criterion.stale:
        return "verdicts go stale"
    return "asked in more tiers" if criterion.newly_asked else "no new call"


def _change_lines(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        if change.field in _PROSE and change.before is not None and change.after is not None:
            marked = _marked_words(change.before, change.after)
            if marked is not None:
                yield from _signed_lines("~", f"{change.field}: {marked}")
                continue
        if change.before is not None:
            yield from _signed_lines("-", f"{change.field}: {change.before}")
        if change.after is not None:
            yield from _signed_lines("+", f"{change.field}: {change.after}")


def _marked_words(before: str, after: str) -> str | None:
    """The words that changed, each with a few unchanged ones around; None if hardly any stayed."""
    old, new = before.split(), after.split()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _SIMILAR:
        return None
    parts: list[str] = []
    steps = matcher.get_opcodes()
    for number, (kind, old_start, old_end, new_start, new_end) in enumerate(steps):
        if kind == "equal":
            words = old[old_start:old_end]
            parts.append(_shortened(words, number == 0, number == len(steps) - 1))
            continue
        if old_start < old_end:
            parts.append(f"[-{' '.join(old[old_start:old_end])}-]")
        if new_start < new_end:
            parts.append(f"{{+{' '.join(new[new_start:new_end])}+}}")
    return " ".join(parts)


def _shortened(words: Sequence[str], is_first: bool, is_last: bool) -> str:
    """Unchanged words, but for those that stand near no changed one."""
    head = [] if is_first else list(words[:_CONTEXT])
    tail = [] if is_last else list(words[-_CONTEXT:])
    if len(head) + len(tail) >= len(words):
        return " ".join(words)
    return " ".join([*head, "…", *tail])


def _signed_lines(sign: str, text: str) -> Iterator[str]:
    """The text wrapped into lines that begin with +, - or ~."""
    for paragraph in text.splitlines():
        for line in textwrap.wrap(paragraph, _WIDTH, subsequent_indent="  ") or [""]:
            yield f"{sign}{line}"
