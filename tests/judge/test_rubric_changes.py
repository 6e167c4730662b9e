"""Rejudging only what changed: real runs on disk, a real store, and a judge that counts what it is
asked."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ambjudge.errors import InputError
from ambjudge.judge.base import Estimate, Reply, Request, Usage, extra_questions
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.engine import judge_run
from ambjudge.judge.judges.rules import RulesJudge
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.questions.question_keys import QuestionKeys
from ambjudge.judge.questions.verdict_keys import identity
from ambjudge.judge.rejudge.staleness import plan_rejudge, planned_requests
from ambjudge.judge.scope import Scope
from ambjudge.judge.session import ScoreOptions, run_session
from ambjudge.judge.store import open_store
from ambjudge.judge.store.reuse import StoredJudge
from ambjudge.rubrics.load import load_rubric, rubric_for
from ambjudge.trajectories.reading.layout import find_conversations, run_id
from ambjudge.trajectories.reading.load import load_conversation, load_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUBRIC = load_rubric("segmentation")
RUNS = 10
ALL = QuestionSet(ask_all=True)
"""Every criterion, though the facts of runs without any execution decide most of them."""


def asking(rubric) -> Scope:
    return Scope((rubric,), questions=ALL)


def by_criterion(planned):
    """Stale verdicts by (rubric, criterion), counted by reason."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for need in planned.needs:
        for criterion, reasons in need.reasons.items():
            counts.setdefault((need.rubric_id, criterion), Counter())["+".join(reasons)] += 1
    return counts


@dataclass
class LengthJudge:
    """Judges by the parity of a hash of evidence and question: useless, but deterministic, and it
    counts its calls."""

    model: str = "length-1"
    prompt: str = "p1"
    temperature: float = 0.0
    fail: set[str] = field(default_factory=set)
    requests: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    members: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.model

    @property
    def prompt_sha256(self) -> str:
        return hashlib.sha256(self.prompt.encode()).hexdigest()

    @property
    def parameters(self):
        return {"temperature": self.temperature}

    def evidence_sha256(self, request: Request) -> str:
        turns = request.segmentation.turns_of(request.question)
        text = "\0".join(request.run.turn(i).code + request.run.turn(i).output for i in turns)
        return hashlib.sha256(
            f"{request.run.id}{request.question}{text}{request.run.plan.text}".encode(
                "utf-8", "replace"
            )
        ).hexdigest()

    def estimate(self, request: Request) -> Estimate:
        return Estimate(Usage(1, 100, 10, 0.01), Usage(2, 200, 40, 0.03))

    async def judge(self, request: Request) -> Reply:
        self.requests.append(
            (request.run.id, request.question, tuple(c.id for c in request.criteria))
        )
        return Reply(
            tuple(self._one(request, c) for c in request.criteria),
            Usage(1, 150, 20, 0.02),
            raw=("raw",),
        )

    def _one(self, request: Request, criterion) -> CriterionResult:
        if criterion.id in self.fail:
            return CriterionResult(
                id=criterion.id, value=None, status="unscored", reason="judge_error", detail="503"
            )
        evidence = self.evidence_sha256(request)
        text = f"{evidence}{criterion.text}{self.model}{self.prompt}{self.temperature}"
        choice = int(hashlib.sha256(text.encode()).hexdigest(), 16) % len(criterion.values)
        return CriterionResult(
            id=criterion.id, value=criterion.values[choice], status="scored", rationale="parity"
        )


def make_runs(folder: Path, count: int) -> list[Path]:
    """The beginning of one recorded run, many times: alike but for their last words, so that most
    evidence is the same bytes; old enough for their file times to be trusted."""
    source = RECORDED / "runs" / "kidney-lite-01" / "process" / "conversation.json"
    data = json.loads(source.read_text())
    data["messages"] = [*data["messages"][:8], {"role": "assistant", "content": ""}]
    data["code_executions"] = data["trace_events"] = []
    paths = []
    for number in range(count):
        path = folder / f"run-{number:05d}" / "process" / "conversation.json"
        path.parent.mkdir(parents=True)
        data["messages"][-1]["content"] = f"Done, run {number}."
        data["tier"] = "standard"
        path.write_text(json.dumps(data))
        paths.append(path)
    age(folder)
    return paths


def age(folder: Path) -> None:
    past = time.time() - 3600
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.utime(Path(root) / name, (past, past))


def score_all(store, paths, judge, scope) -> None:
    async def all_of_them() -> None:
        for path in paths:
            await judge_run(
                load_conversation(path),
                StoredJudge(judge, store),
                rubric=scope.rubrics[0] if scope.rubrics else None,
                questions=scope.questions,
            )

    asyncio.run(all_of_them())


def execute(store, planned, judge) -> None:
    async def all_of_them() -> None:
        for request in planned_requests(planned, judge):
            await StoredJudge(judge, store).judge(request)

    asyncio.run(all_of_them())


def edited(stage: str, id: str, **update):
    """The segmentation rubric with one criterion edited."""
    old = RUBRIC.stages[stage]
    criteria = tuple(c.model_copy(update=update) if c.id == id else c for c in old.criteria)
    stages = {**RUBRIC.stages, stage: old.model_copy(update={"criteria": criteria})}
    return RUBRIC.model_copy(
        update={"stages": stages, "sha256": hashlib.sha256(repr(update).encode()).hexdigest()}
    )


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Ten runs, all judged."""
    folder = tmp_path_factory.mktemp("judged")
    paths = make_runs(folder, RUNS)
    with open_store(folder / ".ambjudge" / "ambjudge.db") as store:
        score_all(store, paths, LengthJudge(), asking(RUBRIC))
    return folder, paths


@pytest.fixture
def stored(judged, tmp_path):
    """The ten runs with a store of this test's own."""
    folder, paths = judged
    shutil.copy(folder / ".ambjudge" / "ambjudge.db", tmp_path / "s.db")
    with open_store(tmp_path / "s.db", root=folder) as store:
        yield store, paths


CRITERIA = len(RUBRIC.criteria())


@pytest.mark.parametrize(
    ("judge", "scope", "calls", "stages", "reason"),
    [
        pytest.param(LengthJudge(), asking(RUBRIC), 0, set(), None, id="nothing"),
        pytest.param(
            LengthJudge(),
            asking(edited("S3", "S3", text="Was it tried?")),
            RUNS,
            {"S3"},
            "criterion",
            id="text",
        ),
        pytest.param(
            LengthJudge(), asking(edited("S3", "S3", weight=3.0)), 0, set(), None, id="weight"
        ),
        pytest.param(
            LengthJudge(),
            asking(edited("S1", "S1b", requires=())),
            0,
            set(),
            None,
            id="requirement",
        ),
        pytest.param(
            LengthJudge(model="length-2"),
            asking(RUBRIC),
            3 * RUNS,
            {"S1", "S2", "S3"},
            "judge",
            id="model",
        ),
        pytest.param(
            LengthJudge(prompt="p2"),
            asking(RUBRIC),
            3 * RUNS,
            {"S1", "S2", "S3"},
            "prompt",
            id="prompt",
        ),
        pytest.param(
            LengthJudge(temperature=1.0),
            asking(RUBRIC),
            3 * RUNS,
            {"S1", "S2", "S3"},
            "parameters",
            id="temperature",
        ),
    ],
)
def test_an_edit_costs_exactly_the_calls_that_it_needs(stored, judge, scope, calls, stages, reason):
    store, paths = stored
    judge = LengthJudge(judge.model, judge.prompt, judge.temperature)
    planned = plan_rejudge(store, paths, judge, scope)
    assert planned.calls == calls
    assert {need.question for need in planned.needs} == stages
    assert {reason for counts in by_criterion(planned).values() for reason in counts} == (
        {reason} if reason else set()
    )
    assert planned.current + planned.stale == RUNS * CRITERIA
    assert judge.requests == []
    execute(store, planned, judge)
    assert len(judge.requests) == calls
    assert {stage for _, stage, _ in judge.requests} == stages
    assert Counter((r, s) for r, s, _ in judge.requests) == Counter(
        (run_id(n.path), n.question) for n in planned.needs
    )
    again = plan_rejudge(store, paths, judge, scope)
    assert (again.calls, again.current) == (0, RUNS * CRITERIA)


async def test_what_was_scored_is_settled(tmp_path):
    """A run whose every criterion was answered needs no look at its verdicts; an open criterion
    that a requirement decides for the score stays open."""
    shutil.copytree(RECORDED / "runs", tmp_path / "runs")
    age(tmp_path / "runs")
    paths = list(find_conversations(tmp_path / "runs"))
    with open_store(tmp_path / "s.db", root=tmp_path) as store:
        for judge, expected in ((RulesJudge(), len(paths)), (Mute(), 0)):
            await run_session(
                paths,
                judge,
                ScoreOptions(questions=ALL),
                lambda _: None,
                store=store,
                signals=False,
            )
            contents = [run.content_sha256 for run in store.iter_runs()]
            assert len(store.settled(contents, questions(judge, paths))) == expected
        assert plan_rejudge(store, paths, RulesJudge(), Scope(questions=ALL)).calls == 0
        again = plan_rejudge(store, paths, Mute(), Scope(questions=ALL))
        assert again.read == 0
        assert again.calls == 3 * len(paths)


class Mute:
    """Fails on one criterion of every stage, the last, which others may overrule."""

    name, members, prompt_sha256, parameters = "mute", (), None, {}

    def evidence_sha256(self, request: Request) -> str:
        return request.run.content_sha256

    async def judge(self, request: Request) -> Reply:
        *most, last = request.criteria
        results = [CriterionResult(id=c.id, value=0.0, status="scored") for c in most]
        return Reply(
            (
                *results,
                CriterionResult(id=last.id, value=None, status="unscored", reason="judge_error"),
            )
        )


def questions(judge, paths) -> set[str]:
    ask, hashes = QuestionKeys(identity(judge), extra_questions(judge), ALL), set()
    for path in paths:
        run = load_run(path)
        hashes.add(ask.sha256(rubric_for(run.track, run.task), run.tier, run.track))
    return hashes


def test_unchanged_runs_are_not_read_and_changed_ones_are(stored, judged, tmp_path):
    store, paths = stored
    first = plan_rejudge(store, paths, LengthJudge(), asking(RUBRIC))
    assert first.read == RUNS  # score_run noted the runs without stamps
    assert plan_rejudge(store, paths, LengthJudge(), asking(RUBRIC)).read == 0
    assert plan_rejudge(store, paths, LengthJudge(), asking(RUBRIC), verify=True).read == RUNS
    text = paths[7].read_text()
    try:
        paths[7].write_text(text.replace("patient", "pacient"))
        planned = plan_rejudge(store, paths, LengthJudge(), asking(RUBRIC))
        assert planned.read == 1
        assert {need.path for need in planned.needs} == {paths[7]}
        assert {reason for need in planned.needs for reason in need.reasons.values()} == {
            ("evidence",)
        }
    finally:
        paths[7].write_text(text)
        age(judged[0])
    assert plan_rejudge(store, paths, LengthJudge(), asking(RUBRIC)).calls == 0


def test_failures_are_planned_again_as_failures(tmp_path):
    paths = make_runs(tmp_path / "runs", 2)
    broken, well = LengthJudge(fail={"S2b"}), LengthJudge()
    with open_store(tmp_path / "s.db") as store:
        score_all(store, paths, broken, asking(RUBRIC))
        planned = plan_rejudge(store, paths, well, asking(RUBRIC))
        assert by_criterion(planned) == {("segmentation", "S2b"): Counter({"failed": 2})}
        execute(store, planned, well)
        assert well.requests == [
            ("runs/run-00000", "S2", ("S2b",)),
            ("runs/run-00001", "S2", ("S2b",)),
        ]
        assert plan_rejudge(store, paths, well, asking(RUBRIC)).calls == 0


def test_a_new_run_is_new_and_a_broken_one_is_an_error(stored, tmp_path):
    store, paths = stored
    (new,) = make_runs(tmp_path / "more", 1)
    new.write_text(new.read_text().replace("patient", "pacient"))
    (broken,) = make_runs(tmp_path / "broken", 1)
    broken.write_text("{")
    planned = plan_rejudge(
        store, [*paths, new, broken, tmp_path / "gone.json"], LengthJudge(), asking(RUBRIC)
    )
    assert planned.runs == RUNS + 3
    assert [path for path, _ in planned.errors] == [broken, tmp_path / "gone.json"]
    assert {(need.path, reason) for need in planned.needs for reason in need.reasons.values()} == {
        (new, ("new",))
    }
    new.unlink()
    with pytest.raises(InputError):
        list(planned_requests(planned, LengthJudge()))
