"""Turns to stages S1-S5: weak reasons for each turn, then one consistent path over the whole run.

The reasons (`stage_signals`) are log-odds. A path that prefers to stay or to go forward, yet may go
back, is found with Viterbi over all turns; forward-backward over the same weights gives each turn's
posterior probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..models import STAGES, Run, Segmentation, Signal, Stage
from .features import features
from .stage_signals import signals, turn_contexts

_STAY, _NEXT, _SKIP, _BACK = 0.60, 0.20, 0.06, 0.06
"""Odds of the next turn's stage before normalising: a stage lasts some turns, mostly hands over to
the next one, may skip some (no validation at all is common) and is sometimes taken up again (a plan
amended, a batch repaired)."""

_ALIKE = 1e-9
"""Log-odds that differ by less are the same: far above rounding (4e-16 a step), far below what any
signal weighs."""

_Row = tuple[float, ...]


def segment(run: Run, *, explain: bool = False) -> Segmentation:
    """One stage a turn with its posterior probability in [0, 1]; `explain` adds the signals behind
    each turn.

    A run without turns gives an empty segmentation. Deterministic; time grows linearly with turns
    and code.
    """
    if not run.turns:
        return Segmentation(turn_stages=(), segments=())
    told = features(run)
    found = [signals(context) for context in turn_contexts(run, told)]
    weights = [_totals(reasons) for reasons in found]
    # A to-do list or a look at the machine's state interrupts a stage without ending it, and a turn
    # of which nothing is
    # known says nothing: they stand outside the chain, however many there are.
    chain = [
        i
        for i, facts in enumerate(told)
        if not (facts.todo_only or facts.asks_machine) and found[i]
    ]
    chain = chain or list(range(len(told)))
    linked = [weights[i] for i in chain]
    path = _viterbi(linked)
    stages = [_alone(row) for row in weights]
    confidence = [_share(row, stage) for row, stage in zip(weights, stages, strict=True)]
    for i, stage, sure in zip(chain, path, _posterior(linked, path), strict=True):
        stages[i], confidence[i] = stage, sure
    inside = set(chain)
    for i, (stage, sure) in _surrounded(
        [i in inside for i in range(len(told))], weights, stages, confidence
    ).items():
        if not told[i].todo_only:
            stages[i], confidence[i] = stage, sure
    return Segmentation.from_stages(stages, confidence, tuple(found) if explain else ())


def _surrounded(
    inside: Sequence[bool],
    weights: Sequence[_Row],
    stages: Sequence[Stage],
    confidence: Sequence[float],
) -> dict[int, tuple[Stage, float]]:
    """For turns outside the chain: the stage around them with its probability. Where the stage
    changes, what suits the turn best of all from the one before to the one after: a look at the
    machine between plan and pilot is setup."""
    known = [(STAGES.index(stage), sure) for stage, sure in zip(stages, confidence, strict=True)]
    following: list[tuple[int, float] | None] = [None]
    for i in reversed(range(len(inside))):
        following.append(known[i] if inside[i] else following[-1])
    following.reverse()
    found: dict[int, tuple[Stage, float]] = {}
    before: tuple[int, float] | None = None
    for i, row in enumerate(weights):
        if inside[i]:
            before = known[i]
            continue
        after = following[i]
        start, end = before[0] if before else 0, after[0] if after else 4
        between = range(end, start - 1, -1) if start <= end else (start, end)
        odds = [
            row[s] + (_LOG[start][s] if before else _START[s]) + (_LOG[s][end] if after else 0.0)
            for s in between
        ]
        best = _first_best(odds)
        sure = math.exp(odds[best] - _sum(odds))
        found[i] = (
            STAGES[between[best]],
            sure * min(near[1] for near in (before, after, (0, 1.0)) if near),
        )
    return found


def _first_best(odds: Sequence[float]) -> int:
    """The first of the best, told apart only beyond what rounding moves: equal odds are decided
    alike on every machine."""
    floor = max(odds) - _ALIKE
    return next(i for i, value in enumerate(odds) if value >= floor)


def _alone(row: _Row) -> Stage:
    return STAGES[_first_best(row)]


def _share(row: _Row, stage: Stage) -> float:
    return math.exp(row[STAGES.index(stage)] - _sum(row))


def _totals(reasons: Sequence[Signal]) -> _Row:
    return tuple(math.fsum(r.weight for r in reasons if r.stage == stage) for stage in STAGES)


def _transition(start: int, end: int) -> float:
    step = end - start
    return _STAY if step == 0 else _NEXT if step == 1 else _SKIP if step > 1 else _BACK


_LOG: tuple[_Row, ...] = tuple(
    tuple(math.log(_transition(a, b) / sum(_transition(a, c) for c in range(5))) for b in range(5))
    for a in range(5)
)
_START: _Row = tuple(math.log(p) for p in (0.8, 0.1, 0.04, 0.04, 0.02))
"""Runs begin with planning unless the first turn speaks clearly for something else."""


def _viterbi(weights: Sequence[_Row]) -> tuple[Stage, ...]:
    best = [start + weight for start, weight in zip(_START, weights[0], strict=True)]
    back: list[list[int]] = []
    for row in weights[1:]:
        came = [_first_best([best[a] + _LOG[a][b] for a in range(5)]) for b in range(5)]
        best = [best[a] + _LOG[a][b] + row[b] for b, a in enumerate(came)]
        back.append(came)
    state = _first_best(best)
    path = [state]
    for came in reversed(back):
        state = came[state]
        path.append(state)
    return tuple(STAGES[state] for state in reversed(path))


def _posterior(weights: Sequence[_Row], path: Sequence[Stage]) -> tuple[float, ...]:
    """P(the chosen stage | all signals), by forward-backward in log space."""
    forward = [[start + weight for start, weight in zip(_START, weights[0], strict=True)]]
    for row in weights[1:]:
        last = forward[-1]
        forward.append([_sum([last[a] + _LOG[a][b] for a in range(5)]) + row[b] for b in range(5)])
    backward = [[0.0] * 5]
    for row in reversed(weights[1:]):
        after = backward[-1]
        backward.append(
            [_sum([_LOG[a][b] + row[b] + after[b] for b in range(5)]) for a in range(5)]
        )
    backward.reverse()
    total = _sum(forward[-1])
    return tuple(
        min(1.0, math.exp(f[STAGES.index(stage)] + b[STAGES.index(stage)] - total))
        for f, b, stage in zip(forward, backward, path, strict=True)
    )


def _sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
