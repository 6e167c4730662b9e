"""A rubric of one's own over runs of any kind: judged, kept, verified, judged again, shown,
exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ambjudge.analysis import cohort, leaderboard
from ambjudge.analysis.tables.flat_tables import criterion_rows
from ambjudge.commands.render import row, rows, scorecard
from ambjudge.judge.card.fields import Policy
from ambjudge.judge.card.stage_results import CriterionResult
from ambjudge.judge.card.verify import parse_card, verify
from ambjudge.judge.engine import prepare
from ambjudge.judge.judges.api.messages import Messages
from ambjudge.judge.rejudge.score_change import CardSide, split_change
from ambjudge.judge.scoring.formulas import aggregate
from ambjudge.judge.session import ScoreOptions
from ambjudge.judge.store import open_store
from ambjudge.library import score
from ambjudge.rubrics.load import load_rubric, starter_rubric
from ambjudge.rubrics.model import Rubric
from ambjudge.testing import ScriptedJudge, tiny_run
from ambjudge.trajectories.models import Run
from ambjudge.views.collection import Collection
from ambjudge.views.run_rows import row_of
from ambjudge.views.scorecard_differences import difference_lines
from ambjudge.views.scorecard_panel import scorecard_lines


@pytest.fixture
def mine(tmp_path: Path) -> Rubric:
    file = tmp_path / "mine.yaml"
    file.write_text(starter_rubric(), "utf-8")
    return load_rubric(file)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return tiny_run(tmp_path / "run")


JUDGE = ScriptedJudge({"labels": 0, "checked": 0.5})


def test_agentic_is_the_mean_of_the_groups_and_nothing_of_the_benchmark_is_scored(
    run: Run, mine: Rubric
) -> None:
    card = score(run, JUDGE, rubric=mine)
    assert {name: stage.score for name, stage in card.stages.items()} == {"care": 0.5, "honesty": 0}
    assert card.agentic == pytest.approx(0.2)
    total = aggregate({"care": 0.5}, {}, {"care": 1}, 0.8)
    assert (total.overall, total.overall_bounds) == (
        None,
        (0, 100),
    ), "Overall is of the benchmark's five stages"
    assert card.codes_read, "codes are looked for all the same"
    assert not [line for line in card.warnings if "S4" in line or "tier" in line]
    read = parse_card(json.loads(card.to_json()), "card")
    assert verify(read, mine) == []
    wrong = read.model_copy(update={"agentic": 0.9})
    assert [found.field for found in verify(wrong, mine)] == ["agentic"]
    assert "stages.care" in [found.field for found in verify(read, load_rubric("workflow"))]


def test_a_disqualified_run_keeps_what_is_no_stage_of_the_benchmark(run: Run, mine: Rubric) -> None:
    broken = run.model_copy(update={"status": run.status.model_copy(update={"disqualified": True})})
    card = score(broken, JUDGE, rubric=mine)
    assert card.stages["care"].score == 0.5
    assert verify(card, mine) == []


DOES_NOT_APPLY = CriterionResult(id="checked", value=None, status="not_applicable")


@pytest.mark.parametrize("missing", ["renormalize", "zero"])
def test_a_group_that_does_not_apply_is_not_unread(run: Run, mine: Rubric, missing, capsys) -> None:
    """What does not apply need not be read: the run has its point, and counts in every mean."""
    policy = Policy(missing=missing)
    card = score(
        run,
        ScriptedJudge({"labels": 1, "checked": DOES_NOT_APPLY}),
        rubric=mine,
        policy=policy,
    )
    care = card.stages["care"]
    assert (care.score, care.method) == (None, "not_applicable")
    assert (card.read_share, card.standing) == (1.0, "read")
    assert (card.agentic, card.agentic_bounds) == (1.0, (1.0, 1.0))
    assert not card.gist.incomplete
    assert verify(parse_card(json.loads(card.to_json()), "card"), mine) == []
    scorecard(card)
    text = capsys.readouterr().out
    assert "does not apply" in text
    assert "too few judged criteria" not in text
    assert row_of(1, json.loads(card.to_json())).agentic == 1.0
    board = leaderboard(cohort([card]).runs, "agentic", scopes=("overall",))
    assert board["value"].to_list() == [1.0, 1.0]
    forged = card.model_copy(
        update={"stages": card.stages | {"honesty": care.model_copy(update={"criteria": ()})}}
    )
    assert "stages.honesty.method" in [found.field for found in verify(forged, mine)]


def test_rules_say_that_it_takes_a_reader(run: Run, mine: Rubric) -> None:
    card = score(run, rubric=mine)
    assert {c.reason for stage in card.stages.values() for c in stage.criteria} == {"not_read"}
    assert card.agentic is None


def test_the_prompt_has_the_preamble_and_speaks_of_no_stage(run: Run, mine: Rubric) -> None:
    messages = Messages(100_000, images=False, outputs=False, cache_breakpoint=False)
    wanted = ScriptedJudge(questions=frozenset())
    asked = {
        r.question: messages.question_text(r) for r in prepare(run, rubric=mine).requests(wanted)
    }
    assert set(asked) == {"care", "honesty"}
    assert asked["care"].startswith("The record is of an agent that worked on a task with data.")
    assert (
        "\n\nQuestion: what did the agent do, and what came of it? Grade these criteria, each alone"
        in asked["care"]
    )
    assert "stage" not in asked["care"]
    theirs = prepare(run).requests(wanted)[0]
    assert messages.question_text(theirs).startswith(
        'Question: how well was the stage "Plan" of the work done?'
    )


def test_it_is_shown_and_tabulated(
    run: Run, mine: Rubric, capsys: pytest.CaptureFixture[str]
) -> None:
    card, other = score(run, JUDGE, rubric=mine), score(run)
    scorecard(card, verbose=True)
    assert "honesty" in capsys.readouterr().out
    rows([row(card), row(other)])
    heads = capsys.readouterr().out.split("\n")[0].split()
    stages = [name for name in ("S1", "S2", "S3", "S4", "S5", "care", "honesty") if name in heads]
    start = heads.index(stages[0])
    assert heads[start : start + len(stages)] == stages, "groups of one's own after S1-S5"
    assert stages[-2:] == ["care", "honesty"]
    line = row_of(1, json.loads(card.to_json()))
    assert (line.stages, line.agentic) == ((None,) * 5, pytest.approx(0.2))
    assert any("honesty" in str(part) for part in scorecard_lines(card, mine))
    assert difference_lines(card, other, mine)
    tables = cohort([card, other])
    told = (
        tables.criteria.filter(tables.criteria["rubric"] == "mine")
        .select("stage", "criterion", "value")
        .rows()
    )
    assert told == [("care", "checked", 0.5), ("honesty", "labels", 0.0)]
    assert [line[4:7] for line in criterion_rows(card)] == [
        ("care", "checked", 0.5),
        ("honesty", "labels", 0.0),
    ]


def test_a_change_of_weights_is_told_apart_from_one_of_verdicts(
    run: Run, mine: Rubric, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        starter_rubric()
        .replace("weight: 0.6", "weight: 0.4")
        .replace("weight: 0.4\n", "weight: 0.6\n"),
        "utf-8",
    )
    heavier = load_rubric(file)
    before = score(run, JUDGE, rubric=mine)
    after = score(run, ScriptedJudge({"labels": 0, "checked": 1}), rubric=heavier)
    change = split_change(CardSide(before, mine), CardSide(after, heavier)).agentic
    assert change is not None
    assert change.change == pytest.approx((after.agentic or 0) - (before.agentic or 0))
    assert not {"text", "data"} & change.parts.keys()


def test_the_browser_finds_its_words_in_the_store(run: Run, mine: Rubric, tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        card = score(run, JUDGE, rubric=mine, store=store)
        runs = Collection(tmp_path, options=ScoreOptions, store=lambda: store)
        assert runs.rubric_of_card(card) == mine
