"""What changed between two rubrics, sorted by what it costs: stale verdicts, or only a new sum.

`diff_rubrics(a, b)` compares meaning, so layout, comments and order never show; `render_diff`
writes it as text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from ..trajectories.models import TIERS, Tier
from .load import criterion_sha256
from .model import Criterion, Level, Node, Rubric

JUDGED_FIELDS = ("title", "text", "scale", "conditional", "evidence", "preamble")
"""A change here makes the criterion's verdicts stale (the fields of `criterion_sha256`)."""
SUMMED_FIELDS = ("weight", "requires", "credit", "tiers")
"""A change here only changes how verdicts are combined."""
BOUND_FIELDS = ("meaning",)
"""A change here leaves the rules and presumed values that are bound to the criterion without it."""
_WIDTH = 110


class Change(Node):
    """One field before and after, as text; None where it was not set."""

    field: str
    before: str | None
    after: str | None


class CriterionDiff(Node):
    """What changed in one criterion that both rubrics have."""

    id: str
    changes: tuple[Change, ...]
    stale: bool
    """Its stored verdicts no longer answer the question that is asked now."""
    newly_asked: bool
    """It is now asked in a tier where it was credited or did not apply, so verdicts may be missing
    there."""


class RubricDiff(Node):
    """Differences from rubric `before` to rubric `after`, each named as `id version`."""

    before: str
    after: str
    before_sha256: str
    after_sha256: str
    header: tuple[Change, ...] = ()
    """id, version, track, tasks, title, source, derived."""
    stage_weights: dict[str, tuple[float, float]] = Field(default_factory=dict)
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    added_texts: dict[str, str] = Field(default_factory=dict)
    removed_texts: dict[str, str] = Field(default_factory=dict)
    changed: tuple[CriterionDiff, ...] = ()

    @property
    def same(self) -> bool:
        """Nothing of the meaning differs."""
        return self.before_sha256 == self.after_sha256

    @property
    def stale(self) -> tuple[str, ...]:
        """Criteria whose stored verdicts go stale; added ones have none yet."""
        return tuple(c.id for c in self.changed if c.stale)


def diff_rubrics(a: Rubric, b: Rubric) -> RubricDiff:
    """The difference from `a` to `b`, criteria matched by id."""
    old, new = ({c.id: c for c in rubric.criteria()} for rubric in (a, b))
    header = ("id", "version", "track", "tasks", "title", "source", "derived")
    return RubricDiff(
        before=f"{a.id} {a.version}",
        after=f"{b.id} {b.version}",
        before_sha256=a.sha256,
        after_sha256=b.sha256,
        header=tuple(_changes(a, b, header)),
        stage_weights={
            stage: (a.stages[stage].weight, b.stages[stage].weight)
            for stage in sorted(set(a.stages) & set(b.stages))
            if a.stages[stage].weight != b.stages[stage].weight
        },
        added=tuple(sorted(set(new) - set(old))),
        removed=tuple(sorted(set(old) - set(new))),
        added_texts={name: new[name].text for name in sorted(set(new) - set(old))},
        removed_texts={name: old[name].text for name in sorted(set(old) - set(new))},
        changed=tuple(
            found
            for name in sorted(set(old) & set(new))
            if (found := _criterion_diff(old[name], new[name])).changes
        ),
    )


def _criterion_diff(a: Criterion, b: Criterion) -> CriterionDiff:
    return CriterionDiff(
        id=a.id,
        changes=tuple(_changes(a, b, (*JUDGED_FIELDS, *SUMMED_FIELDS, *BOUND_FIELDS, "source"))),
        stale=criterion_sha256(a) != criterion_sha256(b),
        newly_asked=bool(_asked(b) - _asked(a)),
    )


def _asked(criterion: Criterion) -> set[Tier]:
    """Tiers in which the criterion needs a verdict."""
    return set(TIERS if criterion.tiers is None else criterion.tiers) - set(criterion.credit)


def _changes(a: Node, b: Node, fields: tuple[str, ...]) -> Iterator[Change]:
    for field in fields:
        before, after = _words(getattr(a, field)), _words(getattr(b, field))
        if before != after:
            yield Change(field=field, before=before, after=after)


def _words(value: Any) -> str | None:
    if value is None or value == ():
        return None
    if isinstance(value, tuple):
        if all(isinstance(item, Level) for item in value):
            return "\n".join(
                f"{level.value:g}: {level.text}" for level in sorted(value, key=lambda x: -x.value)
            )
        return ", ".join(sorted(map(str, value)))
    return f"{value:g}" if isinstance(value, float) else str(value)


def render_diff(diff: RubricDiff) -> str:
    """The difference as unified text: a block a criterion, headed by what it means for stored
    verdicts.

    Empty when nothing differs. The text is the rubric's own: pass it through `sanitize` before a
    terminal.
    """
    if diff.same:
        return ""
    lines = [
        f"--- {diff.before} ({diff.before_sha256[:12]})",
        f"+++ {diff.after} ({diff.after_sha256[:12]})",
    ]
    if diff.header:
        lines += ["@@ rubric: no new call @@", *_body(diff.header)]
    for stage, (before, after) in sorted(diff.stage_weights.items()):
        lines += [
            f"@@ {stage} weight: no new call @@",
            f"-weight: {before:g}",
            f"+weight: {after:g}",
        ]
    for name in diff.removed:
        lines += [
            f"@@ {name} removed: its verdicts are kept, and no longer used @@",
            *_marked("-", f"text: {diff.removed_texts[name]}"),
        ]
    for name in diff.added:
        lines += [
            f"@@ {name} added: to be judged @@",
            *_marked("+", f"text: {diff.added_texts[name]}"),
        ]
    for item in diff.changed:
        lines += [f"@@ {item.id}: {_effect(item)} @@", *_body(item.changes)]
    return "\n".join(lines) + "\n"


def _effect(
    item: CriterionDiff,
) -> Literal["verdicts go stale", "no new call", "asked in more tiers"]:
    return (
        "verdicts go stale"
        if item.stale
        else "asked in more tiers"
        if item.newly_asked
        else "no new call"
    )


def _body(changes: tuple[Change, ...]) -> Iterator[str]:
    for change in changes:
        for sign, value in (("-", change.before), ("+", change.after)):
            if value is not None:
                yield from _marked(sign, f"{change.field}: {value}")


def _marked(sign: str, text: str) -> Iterator[str]:
    for paragraph in text.splitlines():
        for line in textwrap.wrap(paragraph, _WIDTH, subsequent_indent="  ") or [""]:
            yield f"{sign}{line}"
