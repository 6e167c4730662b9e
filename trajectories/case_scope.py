"""For how many of a run's cases a turn did its work: none, one, few, all, or not to be told."""

from __future__ import annotations

from collections.abc import Iterable

from .code_modules import Facts
from .code_names import ALL
from .code_parts import clip
from .command_lines import CASE, PLAIN_CASE, SIDED_CASE
from .models import Turn
from .turn_features import Scope
from .world import World


def case_scope(
    turn: Turn, world: World, facts: Facts, executed: Iterable[str], started: bool
) -> tuple[Scope, float | None, tuple[str, ...]]:
    """The scope of a turn's work, its share of the known cases in [0, 1], and the case ids it names or prints."""
    named = _cases_in("\n".join(executed), world)
    printed = _cases_in(clip(turn.output), world)
    cases = tuple(dict.fromkeys((*named, *printed)))
    if not facts.scope:
        return "none", None, cases
    size: int = facts.scope
    if facts.open_ended and size <= 1:
        if not printed:
            return "unknown", None, cases
        size = len(printed)
    elif size == 1 and len(printed) > 1 and started and not facts.told:
        size = len(printed)  # a script whose loop was not seen, but which prints a line a case
    share = min(1.0, size / world.total) if world.total else 1.0 if size >= ALL else None
    return scope_label(size, world.total), share, cases


def scope_label(size: int, total: int | None) -> Scope:
    """The word for so many cases out of `total` (None: not known)."""
    if size <= 0:
        return "none"
    if size >= ALL or (total is not None and total >= 3 and size >= 0.9 * total):
        return "all"
    return "one" if size == 1 else "few"


def _cases_in(text: str, world: World) -> tuple[str, ...]:
    if not world.known:
        return ()
    found = (p + d for pattern in (CASE, PLAIN_CASE, SIDED_CASE) for p, d in pattern.findall(text))
    return tuple(dict.fromkeys(case for case in found if case in world.known))
