"""An ad-hoc question to many runs: planned, paid for and stored like every verdict, then read back.

    item = ask_item("Did the agent look at an image of its output?")
    answered = await ask(store, paths, judge, item)
    for answer in answered.answers:
        print(answer.run.id, answer.answer, answer.turns)

The key of an answer is that of any verdict: question and form of the answer, record, judge. Asking
again continues where it stopped and pays only for what changed; another question or form is asked
anew. A failure is unscored with its reason, never "no"; "the record does not say" is unscored as
`no_evidence`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from ..errors import ConfigError
from ..trajectories.models import Frozen, Tier, TrackName
from ..trajectories.quantities import Whole
from ..trajectories.reading.json_bytes import without_lone_surrogates
from ..trajectories.reading.running import RunningRule
from ..trajectories.record.quotes import Evidence
from ..version import __version__
from .base import Judge, extra_questions
from .card.fields import RunInfo
from .card.stage_results import CriterionResult, UnscoredReason, Vote
from .judges.limits import Allowance
from .judges.panel import result_of_votes
from .questions.items import AnswerKind, AskItem, QuestionSet
from .questions.question_keys import VoteKeys
from .rejudge.execute import Execution, Spending, execute_plan
from .rejudge.selection import ItemSelection
from .rejudge.staleness import RejudgePlan, plan_rejudge
from .scope import Scope
from .session import Scorer
from .store import Store, StoredRun
from .store.reuse import last_attempt

SCHEMA: Literal["ambjudge.answer/1"] = "ambjudge.answer/1"
_CHUNK = 500
"""Runs that are looked up in the store at a time."""


class AnsweredBy(Frozen):
    """The judge that answered."""

    name: str
    members: tuple[str, ...] = ()
    prompt_sha256: str | None = None


class RunAnswer(Frozen):
    """One run's answer with its proof, or why there is none (`ambjudge.answer/1`)."""

    schema_: Literal["ambjudge.answer/1"] = Field(default=SCHEMA, alias="schema")
    ambjudge: str = __version__
    run: RunInfo
    question: str
    kind: AnswerKind
    judge: AnsweredBy
    status: Literal["scored", "unscored"]
    reason: UnscoredReason | None = None
    """Why there is no answer; no_evidence: the judge cannot tell from the record."""
    detail: str = ""
    answer: JsonValue = None
    """true or false, one of the options, a number, a text, or what the user's JSON Schema
    describes; null if unscored."""
    turns: tuple[Whole, ...] = ()
    """The turns of the quotes that were found, each once; 0 is the plan, the brief and the facts.
    Empty: nothing proves the answer."""
    quotes: tuple[Evidence, ...] = ()
    """As the judge gave them, each checked against the run."""
    rationale: str = ""
    votes: tuple[Vote, ...] = ()

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    @property
    def cannot_tell(self) -> bool:
        return self.reason == "no_evidence"

    def to_json(self) -> str:
        """One line of JSON."""
        return self.model_dump_json()


@dataclass(frozen=True)
class Answered:
    """What asking came to."""

    plan: RejudgePlan
    execution: Execution | None
    """None if nothing had to be asked."""
    answers: Iterator[RunAnswer]
    """Reads the store as it is consumed."""
    broken: frozenset[Path]
    """Runs that could not be read, by absolute path; they have no answer."""


def ask_scope(
    judge: Judge,
    item: AskItem,
    *,
    track: TrackName | None = None,
    tier: Tier | None = None,
    public: Path | None = None,
    running: RunningRule | None = None,
) -> Scope:
    """The scope of a plan that asks this and nothing else.

    ConfigError for a judge that answers no questions.
    """
    if "ask" not in extra_questions(judge):
        raise ConfigError(
            f"judge {judge.name} cannot be asked: only a model reads a question",
            "name one, for example --judge openai/gpt-5.4-mini or --judge local:PATH",
        )
    questions = QuestionSet(criteria=False, diagnosis=False, ask=item)
    return Scope((), track, tier, questions, public, running or RunningRule())


async def ask(
    store: Store,
    paths: Iterable[Path],
    judge: Judge,
    question: AskItem | Scope,
    *,
    concurrency: int = 8,
    budget: Allowance | None = None,
    scorer: Scorer | None = None,
    again: bool = False,
    on_planning: Callable[[int], None] | None = None,
    on_planned: Callable[[RejudgePlan], None] | None = None,
    on_progress: Callable[[Spending], None] | None = None,
    signals: bool = True,
) -> Answered:
    """Ask what the store does not know yet; the answers come in the order of the paths.

    `paths`: conversation files. `question`: an item (`ask_item`), or a scope (`ask_scope`) that
    also names track, tier or public inputs. `scorer`: workers, as for `execute_plan`. `again`: ask
    for a second opinion where there is an answer. One run is in memory for each call under way.
    JudgeError if the judge cannot be used at all; ConfigError for
    one that cannot be asked, or for a cost limit on a judge without a known price.
    """
    scope = question if isinstance(question, Scope) else ask_scope(judge, question)
    paths = tuple(paths)
    selection = ItemSelection(again=True) if again else None
    plan = plan_rejudge(store, paths, judge, scope, selection=selection, on_progress=on_planning)
    if on_planned is not None:
        on_planned(plan)
    execution = None
    failures = list(plan.errors)
    if plan.needs:
        execution = await execute_plan(
            plan,
            store,
            judge,
            concurrency=concurrency,
            budget=budget,
            scorer=scorer,
            on_progress=on_progress,
            signals=signals,
        )
        failures += execution.lost
    broken = frozenset(path for path, _ in failures)
    readable = (path for path in paths if path.absolute() not in broken)
    return Answered(plan, execution, stored_answers(store, readable, judge, scope), broken)


def stored_answers(
    store: Store, paths: Iterable[Path], judge: Judge, scope: Scope
) -> Iterator[RunAnswer]:
    """The store's answers for runs that were planned with this scope, in the order of the paths.

    No judge is asked and no run is read. What the store lacks is unscored, with the reason of its
    last attempt.
    """
    reader = _AnswerReader(store, judge, scope)
    remaining = iter(paths)
    while chunk := list(islice(remaining, _CHUNK)):
        yield from reader.read(chunk)


class _AnswerReader:
    """Finds stored answers by what planning left in the store: run contents and evidence hashes."""

    def __init__(self, store: Store, judge: Judge, scope: Scope) -> None:
        if scope.questions.ask is None:
            raise ValueError("the scope asks no question")
        self.store, self.scope, self.item = store, scope, scope.questions.ask
        self._asked = judge
        self.keys = VoteKeys(judge, scope.questions, scope.public)
        self.judge = AnsweredBy(
            name=judge.name, members=judge.members, prompt_sha256=judge.prompt_sha256
        )
        # The item's text is the question, then lines about the form of the answer.
        self.question = self.item.text.partition("\n")[0]

    def read(self, paths: Sequence[Path]) -> Iterator[RunAnswer]:
        stamped = self.store.stamped([path.absolute() for path in paths])
        runs = {path: stamped[path.absolute()].run for path in paths if path.absolute() in stamped}
        keys = self._keys_by_path(runs)
        all_keys = [key for of_run in keys.values() for key in of_run.values()]
        verdicts = self.store.verdicts(all_keys)
        attempts = self.store.attempts(key for key in all_keys if key not in verdicts)
        for path in paths:
            if path not in runs:
                continue
            votes: dict[int, CriterionResult] = {}
            for voter in self.keys.voters_on("ask"):
                key = keys[path].get(voter, "")
                if key in verdicts:
                    votes[voter] = verdicts[key].result
                else:
                    votes[voter] = last_attempt("ask", attempts.get(key, ()))
            of_all = (votes.get(voter) for voter in range(len(self.keys.voters)))
            yield self._answer(path, runs[path], result_of_votes(self._asked, "ask", of_all))

    def _keys_by_path(self, runs: Mapping[Path, StoredRun]) -> dict[Path, dict[int, str]]:
        """The verdict keys of each run, by voter, as far as its evidence was recorded."""
        asked = self.keys.voters_on("ask")
        contexts = {
            (path, voter): self._context(run, voter)
            for path, run in runs.items()
            for voter in asked
        }
        evidence = self.store.evidence(
            {run.content_sha256 for run in runs.values()}, set(contexts.values())
        )
        keys: dict[Path, dict[int, str]] = {path: {} for path in runs}
        for (path, voter), context in contexts.items():
            evidence_sha256 = evidence.get((runs[path].content_sha256, context))
            if evidence_sha256 is not None:
                maker = self.keys[voter].key_maker(self.item)
                keys[path][voter] = maker.sha256(evidence_sha256)
        return keys

    def _context(self, run: StoredRun, voter: int) -> str:
        track, tier = run.track or self.scope.track, run.tier or self.scope.tier
        return self.keys[voter].context("ask", track, tier)

    def _answer(self, path: Path, run: StoredRun, result: CriterionResult) -> RunAnswer:
        info = {name: getattr(run, name) for name in RunInfo.model_fields}
        info["path"] = without_lone_surrogates(str(path))
        info["track"] = run.track or self.scope.track
        info["tier"] = run.tier or self.scope.tier
        scored = result.status == "scored"
        quote_turns = {quote.actual_turn for quote in result.evidence if quote.check != "not_found"}
        return RunAnswer(
            run=RunInfo(**info),
            question=self.question,
            kind=self.item.answer.kind,
            judge=self.judge,
            status="scored" if scored else "unscored",
            reason=result.reason,
            detail=result.detail,
            answer=result.answer if scored else None,
            turns=tuple(sorted(quote_turns)),
            quotes=result.evidence,
            rationale=result.rationale,
            votes=result.votes,
        )
