"""Segment a run into stages S1-S5: weak signals for each turn, one consistent path over the run.

The signals (`stage_signals`) are log-odds. Viterbi finds the most likely path over the turns:
stages tend to last or to move forward, but may be resumed. Forward-backward over the same weights
gives the posterior probability of each turn's stage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..models import STAGES, Run, Segmentation, Signal, Stage
from .features import features
from .stage_signals import turn_contexts, turn_signals
from .turn_features import TurnFeatures

_STAY, _NEXT, _SKIP, _BACK = 0.60, 0.20, 0.06, 0.06
"""Odds of the next turn's stage before normalising.

A stage lasts some turns and mostly hands over to the next one; it may skip some (no validation at
all is common) and is sometimes resumed (a plan amended, a batch repaired).
"""

_TOLERANCE = 1e-9
"""Log-odds that differ by less are equal.

It is far above rounding (4e-16 a step) and far below the weight of any signal.
"""

_StageRow = tuple[float, ...]
"""One number for each stage, in the order of STAGES."""
_LabelledTurn = tuple[int, float]
"""The index of a turn's stage in STAGES, and its probability."""
_STATES = range(len(STAGES))


def segment(run: Run, *, explain: bool = False) -> Segmentation:
    """Assign one stage to each turn, with its posterior probability in [0, 1].

    `explain` adds the signals behind each turn. A run without turns has an empty segmentation.
    Deterministic; time grows linearly with turns and code.
    """
    if not run.turns:
        return Segmentation(turn_stages=(), segments=())
    facts = features(run)
    signals = [turn_signals(context) for context in turn_contexts(run, facts)]
    weights = [_stage_weights(of_turn) for of_turn in signals]
    in_chain = _chain_membership(facts, signals)

    # First every turn by its own signals, then the turns of the chain by the best path over them.
    stages = [STAGES[_first_best(row)] for row in weights]
    confidence = [_own_probability(row, stage) for row, stage in zip(weights, stages, strict=True)]
    chain = [index for index, is_member in enumerate(in_chain) if is_member]
    chain_weights = [weights[index] for index in chain]
    path = _viterbi(chain_weights)
    probabilities = _posterior(chain_weights, path)
    for index, stage, probability in zip(chain, path, probabilities, strict=True):
        stages[index] = stage
        confidence[index] = probability

    # Last the turns outside the chain, by the turns around them; a to-do list keeps its own stage.
    for index, (stage, probability) in _interpolate(in_chain, weights, stages, confidence).items():
        if not facts[index].todo_only:
            stages[index] = stage
            confidence[index] = probability
    return Segmentation.from_stages(stages, confidence, tuple(signals) if explain else ())


def _chain_membership(
    facts: Sequence[TurnFeatures], signals: Sequence[Sequence[Signal]]
) -> list[bool]:
    """For each turn, whether it belongs to the Markov chain over the run.

    A to-do list or a look at the machine's state interrupts a stage without ending it, and a turn
    without signals says nothing: these stand outside, however many there are. If nothing else is
    left, every turn belongs to the chain.
    """
    in_chain = [
        bool(of_turn) and not (fact.todo_only or fact.asks_machine)
        for fact, of_turn in zip(facts, signals, strict=True)
    ]
    return in_chain if any(in_chain) else [True] * len(facts)


def _interpolate(
    in_chain: Sequence[bool],
    weights: Sequence[_StageRow],
    stages: Sequence[Stage],
    confidence: Sequence[float],
) -> Mapping[int, tuple[Stage, float]]:
    """Stage and probability of each turn outside the chain, from the chain's turns around it.

    Where the stage changes, the turn takes what suits it best of all stages from the one before to
    the one after: a look at the machine between plan and pilot is setup.
    """
    labelled = [
        (STAGES.index(stage), probability)
        for stage, probability in zip(stages, confidence, strict=True)
    ]
    # For each turn, the nearest chain turn at or after it.
    following: list[_LabelledTurn | None] = [None]
    for index in reversed(range(len(in_chain))):
        following.append(labelled[index] if in_chain[index] else following[-1])
    following.reverse()

    interpolated: dict[int, tuple[Stage, float]] = {}
    before: _LabelledTurn | None = None
    for index, row in enumerate(weights):
        if in_chain[index]:
            before = labelled[index]
        else:
            interpolated[index] = _best_between(row, before, following[index])
    return interpolated


def _best_between(
    row: _StageRow, before: _LabelledTurn | None, after: _LabelledTurn | None
) -> tuple[Stage, float]:
    """The best stage between two turns of the chain, None at either end of the run."""
    start = before[0] if before else 0
    end = after[0] if after else len(STAGES) - 1
    # Among equals the later stage wins. Where the run goes back, only the two stages come into it.
    candidates = range(end, start - 1, -1) if start <= end else (start, end)
    odds = []
    for state in candidates:
        from_before = _LOG_TRANSITION[start][state] if before else _LOG_START[state]
        to_after = _LOG_TRANSITION[state][end] if after else 0.0
        odds.append(row[state] + from_before + to_after)
    best = _first_best(odds)
    probability = math.exp(odds[best] - _log_sum_exp(odds))
    # The turn is no surer than the turns that it was derived from.
    neighbours = [neighbour[1] for neighbour in (before, after) if neighbour]
    return STAGES[candidates[best]], probability * min(neighbours, default=1.0)


def _first_best(odds: Sequence[float]) -> int:
    """The index of the first of the best odds.

    Odds that differ by rounding only are equal, so that every machine decides alike.
    """
    threshold = max(odds) - _TOLERANCE
    return next(index for index, value in enumerate(odds) if value >= threshold)


def _own_probability(row: _StageRow, stage: Stage) -> float:
    """The probability of a stage by the turn's own signals alone, in [0, 1]."""
    return math.exp(row[STAGES.index(stage)] - _log_sum_exp(row))


def _stage_weights(signals: Sequence[Signal]) -> _StageRow:
    """The summed weight of each stage."""
    return tuple(
        math.fsum(signal.weight for signal in signals if signal.stage == stage) for stage in STAGES
    )


def _transition_odds(start: int, end: int) -> float:
    if end == start:
        return _STAY
    if end == start + 1:
        return _NEXT
    return _SKIP if end > start else _BACK


def _log_transitions(start: int) -> _StageRow:
    """Log-probability of each next stage after a turn of stage `start`."""
    odds = [_transition_odds(start, end) for end in _STATES]
    total = sum(odds)
    return tuple(math.log(value / total) for value in odds)


_LOG_TRANSITION: tuple[_StageRow, ...] = tuple(_log_transitions(start) for start in _STATES)
"""Log-probability of a transition: row by the stage it starts from, column by the next stage."""
_LOG_START: _StageRow = tuple(math.log(probability) for probability in (0.8, 0.1, 0.04, 0.04, 0.02))
"""Runs begin with planning unless the first turn speaks clearly for something else."""


def _viterbi(weights: Sequence[_StageRow]) -> tuple[Stage, ...]:
    """The most likely path of stages, one for each row of weights."""
    best = [start + weight for start, weight in zip(_LOG_START, weights[0], strict=True)]
    back_pointers: list[list[int]] = []
    for row in weights[1:]:
        previous = [
            _first_best([best[a] + _LOG_TRANSITION[a][b] for a in _STATES]) for b in _STATES
        ]
        best = [best[a] + _LOG_TRANSITION[a][b] + row[b] for b, a in enumerate(previous)]
        back_pointers.append(previous)
    state = _first_best(best)
    path = [state]
    for previous in reversed(back_pointers):
        state = previous[state]
        path.append(state)
    return tuple(STAGES[state] for state in reversed(path))


def _posterior(weights: Sequence[_StageRow], path: Sequence[Stage]) -> tuple[float, ...]:
    """P(the chosen stage | all signals) of each turn, by forward-backward in log space."""
    forward = [[start + weight for start, weight in zip(_LOG_START, weights[0], strict=True)]]
    for row in weights[1:]:
        last = forward[-1]
        reached = [
            _log_sum_exp([last[a] + _LOG_TRANSITION[a][b] for a in _STATES]) for b in _STATES
        ]
        forward.append([reached[b] + row[b] for b in _STATES])
    backward = [[0.0] * len(STAGES)]
    for row in reversed(weights[1:]):
        after = backward[-1]
        backward.append(
            [
                _log_sum_exp([_LOG_TRANSITION[a][b] + row[b] + after[b] for b in _STATES])
                for a in _STATES
            ]
        )
    backward.reverse()
    total = _log_sum_exp(forward[-1])
    probabilities = []
    for ahead, behind, stage in zip(forward, backward, path, strict=True):
        state = STAGES.index(stage)
        # Rounding may lift the last bit above 1.
        probabilities.append(min(1.0, math.exp(ahead[state] + behind[state] - total)))
    return tuple(probabilities)


def _log_sum_exp(logs: Sequence[float]) -> float:
    """The logarithm of the sum of exponentials, without overflow."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
