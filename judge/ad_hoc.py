"""An ad-hoc question asked of many runs: planned, paid for and kept like every other verdict, then
read back.

    answered = await ask(store, paths, judge, ask_item("Did the agent look at an image of its
    output?")) for one in answered.answers: print(one.run.id, one.answer, one.turns)

The key of an answer is that of any verdict: question and form of the answer, record, judge. Asking
again goes on where it stopped and pays only for what changed; another question, or another form, is
asked anew. What failed is unscored with its reason, never "no"; "the record does not say" is
unscored as `no_evidence`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from ..errors import ConfigError
from ..trajectories.models import Frozen, Tier, TrackName
from ..trajectories.quantities import Whole
from ..trajectories.reading.json_bytes import without_lone_surrogates
from ..trajectories.record.quotes import Evidence
from ..version import __version__
from .base import Judge, extra_questions
from .card.fields import RunInfo
from .card.stage_results import CriterionResult, UnscoredReason, Vote
from .judges.limits import Allowance
from .questions.items import AnswerKind, AskItem, QuestionSet
from .questions.question_keys import QuestionKeys
from .questions.verdict_keys import identity
from .rejudge.execute import Execution, Spending, execute_plan
from .rejudge.staleness import RejudgePlan, plan_rejudge
from .scope import Scope
from .session import Scorer
from .store import Store, StoredRun
from .store.reuse import last_attempt

SCHEMA: Literal["ambjudge.answer/1"] = "ambjudge.answer/1"
_CHUNK = 500


class AnsweredBy(Frozen):
    """The judge that was asked."""

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
    """Of an unscored one; no_evidence: the judge cannot tell from the record."""
    detail: str = ""
    answer: JsonValue = None
    """true or false, one of the options, a number, a text, or what the user's JSON Schema
    describes; null if unscored."""
    turns: tuple[Whole, ...] = ()
    """Where the quotes really stand, each turn once; 0 is the plan, the brief and the facts. Empty:
    nothing proves it."""
    quotes: tuple[Evidence, ...] = ()
    """As the judge gave them, each searched in the run."""
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
    """What asking came to. `execution` is None when nothing had to be asked; `answers` reads the
    store as it is used."""

    plan: RejudgePlan
    execution: Execution | None
    answers: Iterator[RunAnswer]
    broken: frozenset[Path]
    """Runs that could not be read, by absolute path; they have no answer."""


def ask_scope(
    judge: Judge,
    item: AskItem,
    *,
    track: TrackName | None = None,
    tier: Tier | None = None,
    public: Path | None = None,
) -> Scope:
    """The scope of a plan that asks this and nothing else; ConfigError for a judge that answers no
    questions."""
    if "ask" not in extra_questions(judge):
        raise ConfigError(
            f"judge {judge.name} cannot be asked: only a model reads a question",
            "name one, for example --judge openai/gpt-5.4-mini or --judge local:PATH",
        )
    return Scope(None, track, tier, QuestionSet(criteria=False, diagnosis=False, ask=item), public)


async def ask(
    store: Store,
    paths: Iterable[Path],
    judge: Judge,
    question: AskItem | Scope,
    *,
    concurrency: int = 8,
    budget: Allowance | None = None,
    scorer: Scorer | None = None,
    on_planning: Callable[[int], None] | None = None,
    on_planned: Callable[[RejudgePlan], None] | None = None,
    on_progress: Callable[[Spending], None] | None = None,
    signals: bool = True,
) -> Answered:
    """Ask the runs at these conversation files what the store does not know yet; the answers are in
    the paths' order.

    `question`: an item (`ask_item`), or a scope (`ask_scope`) that also says track, tier or public
    inputs. One run is in memory for each call under way. JudgeError when the judge cannot be used
    at all; ConfigError for one that cannot be asked, or a cost limit on a judge without a known
    price. `scorer`: workers, as for `execute_plan`.
    """
    scope = question if isinstance(question, Scope) else ask_scope(judge, question)
    paths = tuple(paths)
    made = plan_rejudge(store, paths, judge, scope, on_progress=on_planning)
    if on_planned is not None:
        on_planned(made)
    done = None
    if made.needs:
        done = await execute_plan(
            made,
            store,
            judge,
            concurrency=concurrency,
            budget=budget,
            scorer=scorer,
            on_progress=on_progress,
            signals=signals,
        )
    broken = frozenset(path for path, _ in (*made.errors, *(done.lost if done is not None else ())))
    readable = (path for path in paths if path.absolute() not in broken)
    return Answered(made, done, stored_answers(store, readable, judge, scope), broken)


def stored_answers(
    store: Store, paths: Iterable[Path], judge: Judge, scope: Scope
) -> Iterator[RunAnswer]:
    """The answers that the store has for runs which were planned with this scope, in the order of
    the paths.

    Nothing is asked and no run is read. What the store lacks is unscored, for the reason of its
    last attempt.
    """
    reader = _Reader(store, judge, scope)
    rest = iter(paths)
    while chunk := list(islice(rest, _CHUNK)):
        yield from reader.read(chunk)


class _Reader:
    """From paths to keys to answers, by what planning left in the store: the runs' contents and the
    evidence hashes."""

    def __init__(self, store: Store, judge: Judge, scope: Scope) -> None:
        if scope.questions.ask is None:
            raise ValueError("the scope asks nothing")
        self.store, self.scope, self.item = store, scope, scope.questions.ask
        self.keys = QuestionKeys(
            identity(judge), extra_questions(judge), scope.questions, scope.public
        )
        self.by = AnsweredBy(
            name=judge.name, members=judge.members, prompt_sha256=judge.prompt_sha256
        )
        self.question = self.item.text.partition("\n")[0]  # the form of the answer follows

    def read(self, paths: Sequence[Path]) -> Iterator[RunAnswer]:
        seen = self.store.stamped([path.absolute() for path in paths])
        runs = {path: seen[path.absolute()].run for path in paths if path.absolute() in seen}
        contexts = {path: self._context(run) for path, run in runs.items()}
        evidence = self.store.evidence(
            {run.content_sha256 for run in runs.values()}, set(contexts.values())
        )
        make = self.keys.key_maker(self.item)
        shown = {
            path: evidence.get((run.content_sha256, contexts[path])) for path, run in runs.items()
        }
        keys = {path: make.sha256(sha) for path, sha in shown.items() if sha is not None}
        known = self.store.verdicts(keys.values())
        tried = self.store.attempts(key for key in keys.values() if key not in known)
        for path in paths:
            if path not in runs:
                continue
            key = keys.get(path, "")
            result = known[key].result if key in known else last_attempt("ask", tried.get(key, ()))
            yield self._answer(path, runs[path], result)

    def _context(self, run: StoredRun) -> str:
        return self.keys.context("ask", run.track or self.scope.track, run.tier or self.scope.tier)

    def _answer(self, path: Path, run: StoredRun, result: CriterionResult) -> RunAnswer:
        stands = (e.actual_turn for e in result.evidence if e.check != "not_found")
        known = {name: getattr(run, name) for name in RunInfo.model_fields}
        said = {
            "path": without_lone_surrogates(str(path)),
            "track": run.track or self.scope.track,
            "tier": run.tier or self.scope.tier,
        }
        return RunAnswer(
            run=RunInfo(**known | said),
            question=self.question,
            kind=self.item.answer.kind,
            judge=self.by,
            status="scored" if result.status == "scored" else "unscored",
            reason=result.reason,
            detail=result.detail,
            answer=result.answer if result.status == "scored" else None,
            turns=tuple(sorted({turn for turn in stands if turn is not None})),
            quotes=result.evidence,
            rationale=result.rationale,
            votes=result.votes,
        )
