"""Segment a run into stages S1-S5: weak reasons for each turn, one consistent path over the run.

The reasons (`stage_signals`) are log-odds. Viterbi finds the best path, which prefers to stay or to
go forward, yet may go back; forward-backward over the same weights gives each turn's posterior
probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..models import STAGES, Run, Segmentation, Signal, Stage
from .features import features
from .stage_signals import signals, turn_contexts

_STAY, _NEXT, _SKIP, _BACK = 0.60, 0.20, 0.06, 0.06
"""Odds of the next turn's stage before normalising.

A stage lasts some turns and mostly hands over to the next one; it may skip some (no validation at
all is common) and is sometimes resumed (a plan amended, a batch repaired).
"""

_ALIKE = 1e-9
"""Log-odds that differ by less are equal.

It is far above rounding (4e-16 a step) and far below the weight of any signal.
"""

_Row = tuple[float, ...]
"""One number for each stage."""


def segment(run: Run, *, explain: bool = False) -> Segmentation:
    """Assign one stage to each turn, with its posterior probability in [0, 1].

    `explain` adds the signals behind each turn. A run without turns has an empty segmentation.
    Deterministic; time grows linearly with turns and code.
    """
    if not run.turns:
        return Segmentation(turn_stages=(), segments=())
    facts = features(run)
    reasons = [signals(context) for context in turn_contexts(run, facts)]
    weights = [_totals(turn_reasons) for turn_reasons in reasons]
    # A to-do list or a look at the machine's state interrupts a stage without ending it, and a turn
    # without reasons says nothing: they stand outside the chain, however many there are.
    in_chain = [
        bool(turn_reasons) and not (fact.todo_only or fact.asks_machine)
        for fact, turn_reasons in zip(facts, reasons, strict=True)
    ]
    if not any(in_chain):
        in_chain = [True] * len(facts)
    stages = [STAGES[_first_best(row)] for row in weights]
    confidence = [_share(row, stage) for row, stage in zip(weights, stages, strict=True)]
    chain = [index for index, linked in enumerate(in_chain) if linked]
    chain_weights = [weights[index] for index in chain]
    path = _viterbi(chain_weights)
    probabilities = _posterior(chain_weights, path)
    for index, stage, probability in zip(chain, path, probabilities, strict=True):
        stages[index], confidence[index] = stage, probability
    surrounded = _surrounded(in_chain, weights, stages, confidence)
    for index, (stage, probability) in surrounded.items():
        if not facts[index].todo_only:
            stages[index], confidence[index] = stage, probability
    return Segmentation.from_stages(stages, confidence, tuple(reasons) if explain else ())


def _surrounded(
    in_chain: Sequence[bool],
    weights: Sequence[_Row],
    stages: Sequence[Stage],
    confidence: Sequence[float],
) -> dict[int, tuple[Stage, float]]:
    """Stage and probability of the turns outside the chain: those of the turns around them.

    Where the stage changes, the turn takes what suits it best of all stages from the one before to
    the one after: a look at the machine between plan and pilot is setup.
    """
    states = [
        (STAGES.index(stage), probability)
        for stage, probability in zip(stages, confidence, strict=True)
    ]
    following: list[tuple[int, float] | None] = [None]
    for index in reversed(range(len(in_chain))):
        following.append(states[index] if in_chain[index] else following[-1])
    following.reverse()
    surrounded: dict[int, tuple[Stage, float]] = {}
    before: tuple[int, float] | None = None
    for index, row in enumerate(weights):
        if in_chain[index]:
            before = states[index]
        else:
            surrounded[index] = _between(row, before, following[index])
    return surrounded


def _between(
    row: _Row, before: tuple[int, float] | None, after: tuple[int, float] | None
) -> tuple[Stage, float]:
    """The best stage between two turns of the chain, None at either end of the run."""
    start, end = before[0] if before else 0, after[0] if after else 4
    candidates = range(end, start - 1, -1) if start <= end else (start, end)
    odds = []
    for state in candidates:
        from_before = _LOG[start][state] if before else _START[state]
        to_after = _LOG[state][end] if after else 0.0
        odds.append(row[state] + from_before + to_after)
    best = _first_best(odds)
    probability = math.exp(odds[best] - _sum(odds))
    neighbours = [neighbour[1] for neighbour in (before, after) if neighbour]
    return STAGES[candidates[best]], probability * min(neighbours, default=1.0)


def _first_best(odds: Sequence[float]) -> int:
    """The index of the first of the best odds.

    Odds that differ by rounding only are equal, so that every machine decides alike.
    """
    floor = max(odds) - _ALIKE
    return next(index for index, value in enumerate(odds) if value >= floor)


def _share(row: _Row, stage: Stage) -> float:
    """The probability of a stage by a turn's own weights, in [0, 1]."""
    return math.exp(row[STAGES.index(stage)] - _sum(row))


def _totals(reasons: Sequence[Signal]) -> _Row:
    """The summed weight of each stage."""
    return tuple(math.fsum(r.weight for r in reasons if r.stage == stage) for stage in STAGES)


def _transition(start: int, end: int) -> float:
    if end == start:
        return _STAY
    if end == start + 1:
        return _NEXT
    return _SKIP if end > start else _BACK


_LOG: tuple[_Row, ...] = tuple(
    tuple(math.log(_transition(a, b) / sum(_transition(a, c) for c in range(5))) for b in range(5))
    for a in range(5)
)
_START: _Row = tuple(math.log(p) for p in (0.8, 0.1, 0.04, 0.04, 0.02))
"""Runs begin with planning unless the first turn speaks clearly for something else."""


def _viterbi(weights: Sequence[_Row]) -> tuple[Stage, ...]:
    """The most likely path of stages."""
    best = [start + weight for start, weight in zip(_START, weights[0], strict=True)]
    origins: list[list[int]] = []
    for row in weights[1:]:
        origin = [_first_best([best[a] + _LOG[a][b] for a in range(5)]) for b in range(5)]
        best = [best[a] + _LOG[a][b] + row[b] for b, a in enumerate(origin)]
        origins.append(origin)
    state = _first_best(best)
    path = [state]
    for origin in reversed(origins):
        state = origin[state]
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
    probabilities = []
    for ahead, behind, stage in zip(forward, backward, path, strict=True):
        state = STAGES.index(stage)
        probabilities.append(min(1.0, math.exp(ahead[state] + behind[state] - total)))
    return tuple(probabilities)


def _sum(logs: Sequence[float]) -> float:
    """The logarithm of the sum of exponentials, without overflow."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
