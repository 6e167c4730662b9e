"""What is asked again, and what that costs: every question over real HTTP, a real store, two
recorded runs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ambjudge.judge.judges.api.judge import ApiJudge
from ambjudge.judge.judges.api.prices import Price
from ambjudge.judge.judges.api.transport import Retry
from ambjudge.judge.questions.items import QuestionSet
from ambjudge.judge.rejudge.execute import Execution, execute_plan
from ambjudge.judge.rejudge.staleness import RejudgePlan, plan_rejudge
from ambjudge.judge.scope import Scope
from ambjudge.judge.session import ScoreOptions, ScoreOutcome, run_session
from ambjudge.judge.store import Store
from ambjudge.rubrics.load import load_rubric
from ambjudge.rubrics.model import Rubric
from ambjudge.trajectories.reading.layout import find_conversations

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
RUNS = ("crc-lite-02", "crc-std-01")
RUBRIC = load_rubric("classification")
QUESTIONS = {"S1", "S2", "S3", "diagnosis"}
DEAR = Price(2.0, 8.0, "test", "2026-01-01", cached=0.2, cache_write=2.5)


def judge_of(server, **options) -> ApiJudge:
    return ApiJudge("good", server.url, **{"retry": Retry(attempts=1), "images": False, **options})


async def bring(
    store: Store, runs: list[Path], judge: ApiJudge, scope: Scope | None = None, **options
) -> tuple[RejudgePlan, Execution]:
    """Plan and carry out; `options` are those of `execute`."""
    planned = plan_rejudge(store, runs, judge, scope or Scope())
    return planned, await execute_plan(planned, store, judge, signals=False, **options)


def edited(id: str, **update) -> Rubric:
    """The rubric with one criterion edited."""
    stages = {
        stage: part.model_copy(
            update={
                "criteria": tuple(
                    c.model_copy(update=update) if c.id == id else c for c in part.criteria
                )
            }
        )
        for stage, part in RUBRIC.stages.items()
    }
    return RUBRIC.model_copy(update={"stages": stages, "sha256": "e" * 64})


async def test_an_edited_criterion_asks_its_stage_once_and_nothing_else(
    judge_server, loopback, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(judge_server)
    first, done = await bring(store, runs, judge)
    assert {need.question for need in first.needs} == QUESTIONS
    assert judge_server.count == first.calls == done.usage.calls == 2 * len(QUESTIONS)
    assert plan_rejudge(store, runs, judge, Scope()).calls == 0
    again, _ = await bring(
        store, runs, judge, Scope((edited("S2b", text="Did it check the device?"),))
    )
    assert [need.reasons for need in again.needs] == [{"S2b": ("criterion",)}] * 2
    requests = judge_server.requests[first.calls :]
    assert [list(loopback.entries_of(body)) for body in requests] == [["S2b"]] * 2
    assert plan_rejudge(store, runs, judge, Scope((edited("S2b", weight=9.0),))).calls == 0


async def test_an_edited_code_asks_the_diagnosis_alone(
    judge_server, loopback, store: Store, runs: list[Path], edit_code
) -> None:
    judge = judge_of(judge_server)
    first, _ = await bring(store, runs, judge)
    edit_code(E3="Outputs that are all alike were handed over as if they were right.")
    again, _ = await bring(store, runs, judge)
    assert [(need.question, dict(need.reasons)) for need in again.needs] == [
        ("diagnosis", {"E3": ("criterion",)})
    ] * 2
    requests = judge_server.requests[first.calls :]
    assert [list(loopback.entries_of(body)) for body in requests] == [["E3"]] * 2
    assert all(
        "Outputs that are all alike were handed over" in loopback.prompt_of(body)
        for body in requests
    )
    assert plan_rejudge(store, runs, judge).calls == 0
    edit_code()
    assert plan_rejudge(store, runs, judge).calls == 0, (
        "back to the old words, whose verdicts are still there"
    )


async def test_stages_by_the_judge_are_kept_and_used_again(
    judge_server, store: Store, runs: list[Path]
) -> None:
    judge = judge_of(judge_server)
    options = ScoreOptions(questions=QuestionSet(stages="judge"))

    async def cards(options: ScoreOptions) -> list:
        outcomes: list[ScoreOutcome] = []
        await run_session(runs, judge, options, outcomes.append, store=store, signals=False)
        return [outcome.card for outcome in outcomes]

    first = await cards(options)
    assert judge_server.count == 2 * (len(QUESTIONS) + 1)
    assert {card.stages_from for card in first} == {"judge"}
    assert {stage for card in first for stage in card.turn_stages} == {"S1"}, "as this server says"
    assert plan_rejudge(store, runs, judge, options.scope()).calls == 0
    again = await cards(options)
    assert judge_server.count == 2 * (len(QUESTIONS) + 1)
    assert [card.turn_stages for card in again] == [card.turn_stages for card in first]
    by_rules = await cards(ScoreOptions())
    assert {card.stages_from for card in by_rules} == {"rules"}
    mixed = ScoreOptions(questions=QuestionSet(stages="mixed"))
    assert plan_rejudge(store, runs, judge, mixed.scope()).calls == 0, (
        "what was read is known, sure or not"
    )
    assert judge_server.count == 2 * (len(QUESTIONS) + 1), (
        "who labels the turns is no matter of what else is asked"
    )


async def test_a_stage_reading_that_fits_no_run_leaves_the_rules(
    judge_server, store: Store, runs: list[Path]
) -> None:
    judge_server.script = ["stages_bad"]
    outcomes: list[ScoreOutcome] = []
    options = ScoreOptions(questions=QuestionSet(criteria=False, diagnosis=False, stages="judge"))
    await run_session(
        runs[:1], judge_of(judge_server), options, outcomes.append, store=store, signals=False
    )
    assert outcomes[0].card.stages_from == "rules"
    again = plan_rejudge(store, runs[:1], judge_of(judge_server), options.scope())
    assert [dict(need.reasons) for need in again.needs] == [{"stages": ("failed",)}]


async def test_other_public_inputs_make_verdicts_stale(
    judge_server, store: Store, runs: list[Path], tmp_path: Path
) -> None:
    """What was expected of the run is a fact in its record."""
    judge = judge_of(judge_server)
    public = tmp_path / "public"
    shutil.copytree(RECORDED / "public" / "nct-crc-cls-task", public / "nct-crc-cls-task")
    scope = Scope(public=public)
    await bring(store, runs, judge)
    with_public, _ = await bring(store, runs, judge, scope)
    assert with_public.calls == 2 * len(QUESTIONS)
    assert {reasons for need in with_public.needs for reasons in need.reasons.values()} == {
        ("evidence",)
    }
    from_store = plan_rejudge(store, runs, judge, scope)
    assert (from_store.calls, from_store.read) == (0, 0)
    cases = sorted((public / "nct-crc-cls-task").iterdir())
    shutil.copytree(cases[0], cases[0].with_name("case_9999"))
    more = plan_rejudge(store, runs, judge, scope)
    assert (more.calls, more.read) == (2 * len(QUESTIONS), 2)
    shutil.rmtree(cases[0].with_name("case_9999"))
    back = plan_rejudge(store, runs, judge, scope)
    assert back.calls == 0, "read again, but the same verdicts stand"
    assert plan_rejudge(store, runs, judge, Scope()).calls == 0


async def test_a_dry_run_knows_that_the_record_is_cached(
    judge_server, loopback, store: Store, runs: list[Path]
) -> None:
    """The first question on a run is cold, the others find the record in the cache: what is
    expected is less, the most the same."""
    judge_server.cache = loopback.PromptCache()
    plain = Price(DEAR.input, DEAR.output, DEAR.source, DEAR.date)
    costs = {
        name: plan_rejudge(store, runs, judge_of(judge_server, price=price)).estimate
        for name, price in (("cached", DEAR), ("plain", plain))
    }
    assert costs["cached"].expected.cost_usd < 0.7 * costs["plain"].expected.cost_usd
    assert costs["cached"].high.cost_usd >= costs["plain"].high.cost_usd
    judge = judge_of(judge_server, price=DEAR)
    separate_cost = sum(
        plan_rejudge(store, runs, judge, Scope(questions=questions)).estimate.expected.cost_usd
        for questions in (QuestionSet(diagnosis=False), QuestionSet(criteria=False))
    )
    assert separate_cost > costs["cached"].expected.cost_usd, "asked apart, each run is read twice"
    planned, done = await bring(store, runs, judge)
    assert done.usage.cached_tokens > 0.5 * done.usage.input_tokens
    estimate = planned.estimate
    assert estimate.low.cost_usd <= estimate.expected.cost_usd <= estimate.high.cost_usd
    assert estimate.low.cost_usd <= done.usage.cost_usd <= estimate.high.cost_usd


async def test_a_question_that_comes_alone_is_estimated_cold(
    judge_server, store: Store, runs: list[Path], edit_code
) -> None:
    judge = judge_of(judge_server, price=DEAR)
    await bring(store, runs, judge)
    edit_code(E3="Other words.")
    again = plan_rejudge(store, runs, judge)
    assert again.calls == 2
    assert again.estimate.expected.cached_tokens == 0


@pytest.mark.parametrize("command", ["score", "rejudge"])
async def test_copies_are_asked_about_once(
    judge_server, store: Store, runs: list[Path], command: str
) -> None:
    """Four copies of a run cost one, and each has its scorecard."""
    judge = judge_of(judge_server)
    folder = runs[0].parents[1]
    copies = [folder.with_name(f"copy-{number}") for number in range(3)]
    for copy in copies:
        shutil.copytree(folder, copy)
    paths = [folder, *copies]
    outcomes: list[ScoreOutcome] = []
    options = ScoreOptions(concurrency=8)
    if command == "rejudge":
        planned, done = await bring(store, list(find_conversations(folder.parent)), judge)
        assert planned.calls == done.usage.calls == judge_server.count
        # One of its four copies and the other run.
        assert planned.calls == 2 * len(QUESTIONS)
        options = replace(options, stored_only=True)
    await run_session(paths, judge, options, outcomes.append, store=store, signals=False)
    assert judge_server.count == len(QUESTIONS) * (2 if command == "rejudge" else 1)
    cards = [outcome.card for outcome in outcomes if outcome.card is not None]
    assert [card.run.id for card in cards] == [path.name for path in paths]
    assert len({card.overall for card in cards}) == 1
    assert not any(card.gist.unscored for card in cards)
