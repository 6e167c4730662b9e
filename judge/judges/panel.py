"""Several judges, or several samples of one, as one judge; every vote stays in the result.

Rules, for the ballots of one criterion (a ballot is usable when it states a value or
`not_applicable`):
- what a member leaves to a reader (`not_read`: the rules judge, where no fact decides) is no
  ballot;
- fewer than half usable: unscored, with the commonest reason of the others;
- more `not_applicable` than values: not applicable;
- else the lower median of the values. That is the majority's value whenever there is one; in a tie,
  as even panels have,
  the less favourable of the two middle values: to be met, an item needs more than half.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low, mode

from pydantic import JsonValue

from ...errors import ConfigError, JudgeError
from ...trajectories.record.quotes import Evidence
from ..base import (
    Estimate,
    EstimatingJudge,
    Judge,
    QuestionName,
    Reply,
    Request,
    Usage,
    answers,
    is_criteria,
)
from ..card.stage_results import CriterionResult, Vote, unscored

_MOST_EVIDENCE = 10


@dataclass(frozen=True)
class Ballot:
    """What one member said in one sample."""

    judge: str
    sample: int
    reply: Reply


class Panel:
    """A `Judge` made of judges."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        if not judges:
            raise ConfigError("a panel needs at least one judge", "name judges with --judge")
        self.judges = tuple(judges)

    @property
    def name(self) -> str:
        return "panel"

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(judge.name for judge in self.judges)

    @property
    def prompt_sha256(self) -> str | None:
        known = [judge.prompt_sha256 or "" for judge in self.judges]
        return hashlib.sha256("\n".join(known).encode()).hexdigest() if any(known) else None

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        # as in stored keys
        found: dict[str, str | int | float | bool | None] = {"rule": "majority", "samples": 1}
        for place, judge in enumerate(self.judges):
            found |= {
                f"{place}.{judge.name}.{key}": value for key, value in judge.parameters.items()
            }
        return found

    @property
    def questions(self) -> frozenset[QuestionName]:
        return frozenset[QuestionName]().union(*map(answers, self.judges))

    def _asked(self, request: Request) -> list[Judge]:
        """The members that answer this question."""
        return [
            j
            for j in self.judges
            if is_criteria(request.question) or request.question in answers(j)
        ]

    def evidence_sha256(self, request: Request) -> str:
        hashes = [judge.evidence_sha256(request) for judge in self._asked(request)]
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()

    def estimate(self, request: Request) -> Estimate:
        """The sum over members; those that cannot say are taken as free (they call nothing)."""
        able = [judge for judge in self._asked(request) if isinstance(judge, EstimatingJudge)]
        return sum((judge.estimate(request) for judge in able), Estimate())

    async def judge(self, request: Request) -> Reply:
        """Asks all members at once. A member that cannot work loses its votes; JudgeError when none
        can."""
        asked = self._asked(request)
        answers = await asyncio.gather(*(self._ask(judge, request) for judge in asked))
        errors = [a for a in answers if isinstance(a, JudgeError)]
        if len(errors) == len(answers):
            raise errors[0]
        ballots = [
            Ballot(
                judge.name,
                0,
                _silent(request, answer) if isinstance(answer, JudgeError) else answer,
            )
            for judge, answer in zip(asked, answers, strict=True)
        ]
        return combine(request, ballots)

    async def _ask(self, judge: Judge, request: Request) -> Reply | JudgeError:
        try:
            return await judge.judge(request)
        except JudgeError as error:
            return error


def _silent(request: Request, error: JudgeError) -> Reply:
    return Reply(
        unscored(request.criteria, "judge_error", error.message[:300]), warnings=(str(error),)
    )


def combine(request: Request, ballots: Sequence[Ballot]) -> Reply:
    """One reply from many, in the order of `request.criteria`, with usage, raw replies and warnings
    joined."""
    results = tuple(
        _decide(place, criterion.id, ballots) for place, criterion in enumerate(request.criteria)
    )
    again = frozenset(
        r.id
        for r in results
        if r.status == "unscored" and any(r.id in b.reply.transient for b in ballots)
    )
    disputed = [r for r in results if len({v.value for v in r.votes if v.value is not None}) > 1]
    warnings = [text for ballot in ballots for text in ballot.reply.warnings]
    if disputed:
        lines = ", ".join(f"{r.id} ({', '.join(_say(v) for v in r.votes)})" for r in disputed)
        warnings.append(f"{request.question}: votes differ on {lines}")
    return Reply(
        results=results,
        usage=sum((b.reply.usage for b in ballots), Usage()),
        warnings=tuple(dict.fromkeys(warnings)),
        raw=tuple(text for b in ballots for text in b.reply.raw),
        transient=again,
    )


def _say(vote: Vote) -> str:
    return f"{vote.value:g}" if vote.value is not None else str(vote.reason or "not applicable")


def _decide(place: int, name: str, ballots: Sequence[Ballot]) -> CriterionResult:
    answered = [(ballot, ballot.reply.results[place]) for ballot in ballots]
    cast = [(ballot, result) for ballot, result in answered if result.reason != "not_read"]
    if not cast:
        return answered[0][1]
    votes = tuple(
        vote for ballot, result in cast for vote in result.votes or (_vote(ballot, result),)
    )
    scored = [(b, r) for b, r in cast if r.status == "scored"]
    excluded = [(b, r) for b, r in cast if r.status == "not_applicable"]
    failed = [r for _, r in cast if r.status == "unscored"]
    if 2 * (len(scored) + len(excluded)) < len(cast):
        reason = mode(r.reason or "judge_error" for r in failed)
        detail = (
            f"{len(failed)} of {len(cast)} ballots are unusable:"
            f" {next(r.detail for r in failed if (r.reason or 'judge_error') == reason)}"
        )
        return CriterionResult.unscored(name, reason, detail[:400], votes=votes)
    if len(excluded) > len(scored):
        return excluded[0][1].model_copy(update={"votes": votes})
    if any(r.value is None for _, r in scored):
        return _most_said([r for _, r in scored], votes)
    value = median_low(r.value for _, r in scored if r.value is not None)
    agreeing = [(b, r) for b, r in scored if r.value == value]
    speaker, said = agreeing[0]
    evidence: dict[Evidence, None] = dict.fromkeys(e for _, r in agreeing for e in r.evidence)
    return CriterionResult(
        id=name,
        value=value,
        status="scored",
        votes=votes,
        evidence=tuple(evidence)[:_MOST_EVIDENCE],
        rationale=f"{speaker.judge}: {said.rationale}" if said.rationale else "",
        answer=said.answer,
        detail=said.detail,
    )


def _vote(ballot: Ballot, result: CriterionResult) -> Vote:
    said = result.answer if result.value is None else None
    return Vote(
        judge=ballot.judge,
        value=result.value,
        reason=result.reason,
        sample=ballot.sample,
        answer=said,
    )


def _most_said(scored: Sequence[CriterionResult], votes: tuple[Vote, ...]) -> CriterionResult:
    """One answer from several that have no value: of numbers the lower median, of lists of one
    length (the stages of all turns) the commonest entry of each place, else the commonest answer;
    the first of equally common ones."""
    said = [r.answer for r in scored]
    numbers = [a for a in said if isinstance(a, int | float) and not isinstance(a, bool)]
    lists = [a for a in said if isinstance(a, list)]
    chosen: JsonValue
    if len(numbers) == len(said):
        chosen = median_low(numbers)
    elif len(lists) == len(said) and len({len(a) for a in lists}) == 1:
        chosen = [_commonest_json(place) for place in zip(*lists, strict=True)]
    else:
        chosen = _commonest_json(said)
    speaker = next((r for r in scored if r.answer == chosen), scored[0])
    return speaker.model_copy(update={"answer": chosen, "votes": votes})


def _commonest_json(said: Sequence[JsonValue]) -> JsonValue:
    chosen: JsonValue = json.loads(mode(json.dumps(answer, sort_keys=True) for answer in said))
    return chosen
