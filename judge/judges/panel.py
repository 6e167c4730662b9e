"""Several judges, or several samples of one, as one judge; every vote stays in the result.

A panel and a sampled judge ask no model themselves: what they say is a pure function of the votes
of others, and so is their scorecard. A vote is the verdict that its judge gives alone: it has a key
of its own by that judge and the number of its sample. Sample 0, the first, is what the judge says
if it is asked once. A vote that is stored is therefore never asked for again, whoever it was asked
for (`with_voters`).

Rules for the ballots of one criterion. A ballot is usable if it states a value or `not_applicable`.

- What a member leaves to a reader (`not_read`: the rules judge, where no fact decides) is no
  ballot.
- Fewer than half usable: unscored, with the most common reason of the others.
- More `not_applicable` than values: not applicable.
- Else the lower median of the values. That is the majority's value if there is one. In a tie, as
  even panels have, it is the less favourable of the two middle values: to be met, a criterion needs
  more than half.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low, mode
from typing import NamedTuple

from pydantic import JsonValue

from ...errors import ConfigError, JudgeError
from ...trajectories.record.quotes import Evidence
from ..base import (
    Estimate,
    EstimatingJudge,
    Judge,
    JudgeWrapper,
    QuestionName,
    Reply,
    Request,
    Usage,
    extra_questions,
    is_criteria,
)
from ..card.stage_results import CriterionResult, Vote, unscored
from .limits import judge_within_allowance

_MAX_EVIDENCE = 10


@dataclass(frozen=True)
class Ballot:
    """One member's reply in one sample."""

    judge: str
    sample: int
    reply: Reply


class Panel:
    """A `Judge` made of judges.

    With a store, equal ones have one vote: `Samples` asks a judge several times.
    """

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
        text = self.prompt_bytes
        return hashlib.sha256(text).hexdigest() if text.strip() else None

    @property
    def prompt_bytes(self) -> bytes:
        """The hash of the prompts of each member, a line each."""
        return "\n".join(judge.prompt_sha256 or "" for judge in self.judges).encode()

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        # These names are part of stored keys.
        parameters: dict[str, str | int | float | bool | None] = {"rule": "majority", "samples": 1}
        for index, judge in enumerate(self.judges):
            for name, value in judge.parameters.items():
                parameters[f"{index}.{judge.name}.{name}"] = value
        return parameters

    @property
    def questions(self) -> frozenset[QuestionName]:
        supported: frozenset[QuestionName] = frozenset()
        for judge in self.judges:
            supported |= extra_questions(judge)
        return supported

    def _members_for(self, request: Request) -> list[Judge]:
        """The members that answer the request's question."""
        return [judge for judge in self.judges if answers(judge, request.question)]

    def evidence_sha256(self, request: Request) -> str:
        hashes = [judge.evidence_sha256(request) for judge in self._members_for(request)]
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()

    def estimate(self, request: Request) -> Estimate:
        """The sum over members; those without an estimate call nothing and are free."""
        estimates = [
            judge.estimate(request)
            for judge in self._members_for(request)
            if isinstance(judge, EstimatingJudge)
        ]
        # What members do not reserve themselves is reserved when they are asked.
        return replace(sum(estimates, Estimate()), reserved=Usage())

    async def judge(self, request: Request) -> Reply:
        """Ask all members at once.

        A member that cannot work loses its votes. Raises JudgeError if no member can.
        """
        members = self._members_for(request)
        outcomes = await asyncio.gather(*(_reply_or_error(judge, request) for judge in members))
        errors = [outcome for outcome in outcomes if isinstance(outcome, JudgeError)]
        if len(errors) == len(outcomes):
            raise errors[0]
        ballots = []
        for judge, outcome in zip(members, outcomes, strict=True):
            if isinstance(outcome, JudgeError):
                outcome = _failed_reply(request, outcome)
            ballots.append(Ballot(judge.name, 0, outcome))
        return combine(request, ballots)


class Samples(JudgeWrapper):
    """A `Judge` that asks another one several times."""

    def __init__(self, inner: Judge, count: int) -> None:
        """`count`: samples of each answer; ConfigError if it is below 1."""
        super().__init__(inner)
        if count < 1:
            raise ConfigError("samples must be above 0", "leave them out for one")
        self.count = count

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool | None]:
        return {**self.inner.parameters, "samples": self.count}

    def estimate(self, request: Request) -> Estimate:
        """The sum over samples; all but the first find the record in the provider's cache."""
        first, *others = self._sample_requests(request)
        estimates = [super().estimate(first)]
        estimates += [super(Samples, self).estimate(replace(other, warm=True)) for other in others]
        return replace(sum(estimates, Estimate()), reserved=Usage())

    async def judge(self, request: Request) -> Reply:
        """The reply that the samples' combine to; JudgeError if the judge cannot work at all."""
        requests = self._sample_requests(request)
        replies = await ask_first_alone(self.inner, requests)
        ballots = [
            Ballot(self.name, sample.sample, reply)
            for sample, reply in zip(requests, replies, strict=True)
        ]
        return combine(request, ballots)

    def _sample_requests(self, request: Request) -> list[Request]:
        """The request once for each sample, numbered on from the samples of earlier requests."""
        first = request.sample * self.count
        return [replace(request, sample=first + number) for number in range(self.count)]


async def ask_first_alone(judge: Judge, requests: Sequence[Request]) -> list[Reply]:
    """A judge's replies to requests about one run, in their order.

    Where calls are billed, the first request that makes a call goes alone, so that the others find
    the record in the provider's cache. All others are asked at the same time.
    """
    replies: list[Reply] = []
    while len(replies) < len(requests) and isinstance(judge, EstimatingJudge):
        reply = await judge.judge(requests[len(replies)])
        replies.append(reply)
        if reply.usage.calls:
            break
    others = requests[len(replies) :]
    replies += await asyncio.gather(*(judge.judge(request) for request in others))
    return replies


class Voter(NamedTuple):
    """Whoever gives one vote: a judge that is no panel and has no samples, and a sample's number.

    A judge that is asked once, alone, is its own only voter.
    """

    judge: Judge
    sample: int


def voters(judge: Judge) -> tuple[Voter, ...]:
    """All voters behind a judge's verdicts, in a fixed order."""
    if isinstance(judge, Panel):
        return tuple(voter for member in judge.judges for voter in voters(member))
    if isinstance(judge, Samples):
        return tuple(Voter(judge.inner, number) for number in range(judge.count))
    return (Voter(judge, 0),)


def voting_judges(judge: Judge) -> tuple[Judge, ...]:
    """The judges of all voters, each once."""
    return tuple({id(voter.judge): voter.judge for voter in voters(judge)}.values())


def with_voters(judge: Judge, wrap: Callable[[Judge], Judge]) -> Judge:
    """The judge with the judges of its voters wrapped: put under a limit, or given a memory."""
    if isinstance(judge, Panel):
        return Panel([with_voters(member, wrap) for member in judge.judges])
    if isinstance(judge, Samples):
        return Samples(wrap(judge.inner), judge.count)
    return wrap(judge)


def vote_requests(judge: Judge, request: Request) -> list[tuple[Judge, Request]]:
    """What every voter that answers a request's question is asked."""
    return [
        (voter.judge, replace(request, sample=voter.sample))
        for voter in voters(judge)
        if answers(voter.judge, request.question)
    ]


def answers(judge: Judge, question: QuestionName) -> bool:
    """Whether a judge answers a question: every judge does if it is about criteria."""
    return is_criteria(question) or question in extra_questions(judge)


async def _reply_or_error(judge: Judge, request: Request) -> Reply | JudgeError:
    try:
        if isinstance(judge, EstimatingJudge):
            return await judge_within_allowance(judge, request)
        return await judge.judge(request)
    except JudgeError as error:
        return error


def _failed_reply(request: Request, error: JudgeError) -> Reply:
    results = unscored(request.criteria, "judge_error", error.message[:300])
    return Reply(results, warnings=(str(error),))


class _Cast(NamedTuple):
    """One ballot on one item."""

    judge: str
    sample: int
    result: CriterionResult


def result_of_votes(
    judge: Judge, item_id: str, votes: Iterable[CriterionResult | None]
) -> CriterionResult:
    """A judge's result on an item from those of its `voters`, in their order.

    None stands for a voter that does not answer the question.
    """
    result = _result_of_votes(judge, item_id, iter(votes))
    return result or CriterionResult.unscored(item_id, "not_read", "no judge answers the question")


def _result_of_votes(
    judge: Judge, item_id: str, votes: Iterator[CriterionResult | None]
) -> CriterionResult | None:
    if isinstance(judge, Panel):
        ballots = [
            (member.name, 0, _result_of_votes(member, item_id, votes)) for member in judge.judges
        ]
    elif isinstance(judge, Samples):
        ballots = [(judge.name, number, next(votes)) for number in range(judge.count)]
    else:
        return next(votes)
    cast = [_Cast(name, sample, result) for name, sample, result in ballots if result is not None]
    return _decide(item_id, cast) if cast else None


def combine(request: Request, ballots: Sequence[Ballot]) -> Reply:
    """One reply from many, in the order of `request.criteria`.

    Usage, raw replies and warnings are joined; votes that differ are a warning.
    """
    results = tuple(
        _decide(
            criterion.id,
            [_Cast(ballot.judge, ballot.sample, ballot.reply.results[index]) for ballot in ballots],
        )
        for index, criterion in enumerate(request.criteria)
    )
    transient = frozenset(
        result.id
        for result in results
        if result.status == "unscored"
        and any(result.id in ballot.reply.transient for ballot in ballots)
    )
    warnings = [warning for ballot in ballots for warning in ballot.reply.warnings]
    disputes = [_dispute(result) for result in results if _is_disputed(result)]
    if disputes:
        warnings.append(f"{request.question}: votes differ on {', '.join(disputes)}")
    return Reply(
        results=results,
        usage=sum((ballot.reply.usage for ballot in ballots), Usage()),
        warnings=tuple(dict.fromkeys(warnings)),
        raw=tuple(text for ballot in ballots for text in ballot.reply.raw),
        transient=transient,
        served_models=_each_once(ballot.reply.served_models for ballot in ballots),
        system_fingerprints=_each_once(ballot.reply.system_fingerprints for ballot in ballots),
        verdict_keys={
            item.id: tuple(
                key for ballot in ballots for key in ballot.reply.verdict_keys.get(item.id, ())
            )
            for item in request.criteria
        },
        stored_days=frozenset(day for ballot in ballots for day in ballot.reply.days),
    )


def _each_once(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in groups for name in names))


def _is_disputed(result: CriterionResult) -> bool:
    return len({vote.value for vote in result.votes if vote.value is not None}) > 1


def _dispute(result: CriterionResult) -> str:
    """The criterion with its votes: `S1b (1, 0, not applicable)`."""
    votes = [
        f"{vote.value:g}" if vote.value is not None else str(vote.reason or "not applicable")
        for vote in result.votes
    ]
    return f"{result.id} ({', '.join(votes)})"


def _decide(criterion_id: str, ballots: Sequence[_Cast]) -> CriterionResult:
    """The result of one item from all ballots on it."""
    # The rules judge leaves most criteria to a reader, which is no vote against a verdict.
    cast = [ballot for ballot in ballots if ballot.result.reason != "not_read"]
    if not cast:
        return ballots[0].result
    votes = tuple(vote for ballot in cast for vote in _votes(ballot))
    scored = [ballot for ballot in cast if ballot.result.status == "scored"]
    inapplicable = [ballot.result for ballot in cast if ballot.result.status == "not_applicable"]
    failed = [ballot.result for ballot in cast if ballot.result.status == "unscored"]
    if 2 * (len(scored) + len(inapplicable)) < len(cast):
        return _undecided(criterion_id, failed, len(cast), votes)
    if len(inapplicable) > len(scored):
        return inapplicable[0].model_copy(update={"votes": votes})
    values = [ballot.result.value for ballot in scored if ballot.result.value is not None]
    # Answers to stages and ad-hoc questions are scored without a value.
    if len(values) < len(scored):
        return _combined_answer([ballot.result for ballot in scored], votes)
    value = median_low(values)
    agreeing = [ballot for ballot in scored if ballot.result.value == value]
    # The first member that gave this value speaks for all of them.
    speaker = agreeing[0]
    spoken = speaker.result
    evidence: dict[Evidence, None] = dict.fromkeys(
        item for ballot in agreeing for item in ballot.result.evidence
    )
    return CriterionResult(
        id=criterion_id,
        value=value,
        status="scored",
        votes=votes,
        evidence=tuple(evidence)[:_MAX_EVIDENCE],
        rationale=f"{speaker.judge}: {spoken.rationale}" if spoken.rationale else "",
        answer=spoken.answer,
        detail=spoken.detail,
    )


def _undecided(
    criterion_id: str, failed: Sequence[CriterionResult], cast: int, votes: tuple[Vote, ...]
) -> CriterionResult:
    """Unscored for the most common reason of the unusable ballots."""
    reason = mode(result.reason or "judge_error" for result in failed)
    details = [result.detail for result in failed if (result.reason or "judge_error") == reason]
    detail = f"{len(failed)} of {cast} ballots are unusable: {details[0]}"
    return CriterionResult.unscored(criterion_id, reason, detail[:400], votes=votes)


def _votes(ballot: _Cast) -> tuple[Vote, ...]:
    """The votes behind a ballot: those of its own samples if it has some, else itself."""
    result = ballot.result
    if result.votes:
        return result.votes
    vote = Vote(
        judge=ballot.judge,
        value=result.value,
        reason=result.reason,
        sample=ballot.sample,
        answer=result.answer if result.value is None else None,
    )
    return (vote,)


def _combined_answer(scored: Sequence[CriterionResult], votes: tuple[Vote, ...]) -> CriterionResult:
    """One answer from several answers without a value.

    Of numbers the lower median; of lists of equal length (the stages of all turns) the most common
    entry at each index; else the most common answer. The first of equally common ones.
    """
    replies = [result.answer for result in scored]
    numbers = [
        answer
        for answer in replies
        if isinstance(answer, int | float) and not isinstance(answer, bool)
    ]
    lists = [answer for answer in replies if isinstance(answer, list)]
    chosen: JsonValue
    if len(numbers) == len(replies):
        chosen = median_low(numbers)
    elif len(lists) == len(replies) and len({len(answer) for answer in lists}) == 1:
        chosen = [_most_common_json(entries) for entries in zip(*lists, strict=True)]
    else:
        chosen = _most_common_json(replies)
    agreeing = [result for result in scored if result.answer == chosen]
    speaker = agreeing[0] if agreeing else scored[0]
    return speaker.model_copy(update={"answer": chosen, "votes": votes})


def _most_common_json(values: Sequence[JsonValue]) -> JsonValue:
    most_common = mode(json.dumps(value, sort_keys=True) for value in values)
    chosen: JsonValue = json.loads(most_common)
    return chosen
