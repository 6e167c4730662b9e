"""The rules judge: facts decide or nobody does, with quotes that stand; what is presumed is no
verdict."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from ambjudge.analysis.report.display import display
from ambjudge.analysis.statistics.descriptive import stage_profile
from ambjudge.analysis.tables.cohorts import cohort
from ambjudge.judge.card import presumed
from ambjudge.judge.card.presumed import presumption_for, presumptions
from ambjudge.judge.card.verify import parse_card, verify
from ambjudge.judge.engine import judge_run, make_scorecard, prepare
from ambjudge.judge.judges import rules
from ambjudge.judge.judges.rules import RULES_BY_NAME, RulesJudge, bindings, rule_for
from ambjudge.judge.store import open_store
from ambjudge.judge.store.reuse import StoredJudge
from ambjudge.rubrics import load
from ambjudge.rubrics.load import builtin_ids, load_rubric, starter_rubric
from ambjudge.trajectories.models import Run
from ambjudge.trajectories.reading.load import iter_runs, load_run
from ambjudge.trajectories.record.quotes import QuoteIndex
from conversations import bash, converse

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
EXTERNAL = Path(
    os.environ.get(
        "AMBJUDGE_EXTERNAL_DATA", Path(__file__).parents[3] / "shared" / "data" / "external"
    )
)
RUNS = sorted(p.stem for p in (RECORDED / "labels" / "gold").glob("*.json"))


async def judged(run: Run):
    ready, judge = prepare(run), RulesJudge()
    replies = [await judge.judge(request) for request in ready.requests(judge)]
    return {result.id: result for reply in replies for result in reply.results}


CRITERIA_WITHOUT_RULE = {
    "report_generation": "S1b S1c S1d S1e S1f S1g S1h S1j S1k S2g S3g",
    "workflow": "S1a S1b S1c",
    "vqa": "S1b S1c S1d S1e S1f",
}
"""What only a judge that reads can answer, by rubric; TRACK_CRITERIA_WITHOUT_RULE in the others."""
TRACK_CRITERIA_WITHOUT_RULE = "S1b S1c S1d S1f"


@pytest.mark.parametrize("id", builtin_ids())
def test_every_builtin_criterion_that_takes_no_reader_has_its_rule(id: str) -> None:
    unbound = {c.id for c in load_rubric(id).criteria() if rule_for(c) is None}
    expected = CRITERIA_WITHOUT_RULE.get(id, TRACK_CRITERIA_WITHOUT_RULE)
    assert unbound == set(expected.split()), (
        "a criterion gained or lost its rule; if on purpose, change CRITERIA_WITHOUT_RULE"
    )


def all_bindings():
    return [bound.binding for bound in bindings()] + [p.binding for p in presumptions()]


def test_every_binding_has_its_criterion_and_no_criterion_has_two_rules() -> None:
    unmatched = {
        f"{binding.criterion}, meaning {binding.meaning}, of {rubric}"
        for binding in all_bindings()
        for rubric in binding.unmatched()
    }
    assert not unmatched, (
        "judge/judges/rules.yaml or judge/card/presumed.yaml is bound to criteria that are not in"
        " the rubrics: read each rule against the new text, then raise `meaning` there and"
        " VERSION in rules.py, or take the rubric out of the row"
    )
    for rows in ([bound.binding for bound in bindings()], [p.binding for p in presumptions()]):
        bound = [(rubric, row.criterion) for row in rows for rubric in row.rubrics]
        assert len(bound) == len(set(bound))


def reworded(text: str) -> str:
    """A rubric file with two more words in its first criterion."""
    return re.sub(r"(text: >-\s+)", r"\1In short: ", text, count=1)


@pytest.fixture
def edited_rubric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Edits a shipped rubric in a copy of their folder, as a contributor edits the tree."""
    folder = tmp_path / "rubrics"
    folder.mkdir()
    for path in load._FOLDER.glob("*.yaml"):
        (folder / path.name).write_bytes(path.read_bytes())
    caches = (
        load._rubric_files,
        load._load_builtin,
        presumed._presumptions_by_key,
        rules._rules_by_key,
    )

    def forget() -> None:
        for cached in caches:
            cached.cache_clear()

    def edit(rubric_id: str, change: Callable[[str], str]) -> None:
        path = folder / f"{rubric_id}.yaml"
        text = path.read_text("utf-8")
        assert change(text) != text
        path.write_text(change(text), "utf-8")
        forget()

    monkeypatch.setattr(load, "_FOLDER", folder)
    forget()
    yield edit
    monkeypatch.undo()
    forget()


def bound_to(rubric):
    """The rule and the presumed value of each criterion of a rubric."""
    return {c.id: (rule_for(c), presumption_for(c)) for c in rubric.criteria()}


@pytest.mark.parametrize("id", ["segmentation", "vqa"])
def test_two_words_of_a_shipped_criterion_may_change_and_no_rule_is_lost(edited_rubric, id) -> None:
    sha256 = load_rubric(id).sha256
    before = {name: bound_to(load_rubric(name)) for name in builtin_ids()}
    edited_rubric(id, reworded)
    assert load_rubric(id).sha256 != sha256
    assert {name: bound_to(load_rubric(name)) for name in builtin_ids()} == before
    assert not any(binding.unmatched() for binding in all_bindings())


def test_a_raised_meaning_unbinds_rule_and_presumption_and_is_reported(edited_rubric) -> None:
    edited_rubric(
        "detection", lambda text: text.replace("id: S2b\n", "id: S2b\n        meaning: 2\n")
    )
    (criterion,) = [c for c in load_rubric("detection").criteria() if c.id == "S2b"]
    assert criterion.meaning == 2
    assert rule_for(criterion) is presumption_for(criterion) is None
    (other,) = [c for c in load_rubric("segmentation").criteria() if c.id == "S2b"]
    assert rule_for(other) is not None, "another rubric's criterion with this id stays bound"
    unmatched = [(b.criterion, b.unmatched()) for b in all_bindings() if b.unmatched()]
    assert unmatched == [("S2b", ("detection",))] * 2


def test_a_users_copy_is_bound_where_its_words_are_ours_whatever_its_id(tmp_path: Path) -> None:
    shipped = bound_to(load_rubric("segmentation"))
    text = starter_rubric("segmentation")
    for id in ("my-segmentation", "segmentation"):
        path = tmp_path / f"{id}.yaml"
        copy = text.replace("id: my-segmentation", f"id: {id}", 1)
        path.write_text(copy, "utf-8")
        assert bound_to(load_rubric(path)) == shipped
        # The same ids in a rubric that is not ours promise nothing: only the words count.
        path.write_text(reworded(copy), "utf-8")
        edited = bound_to(load_rubric(path))
        assert edited.pop("S1a") == (None, None) != shipped["S1a"]
        assert edited == {name: bound for name, bound in shipped.items() if name != "S1a"}


def test_presumed_values_are_on_the_scale_of_a_builtin_criterion_and_clear() -> None:
    assert presumptions()
    for presumption in presumptions():
        assert presumption.n >= 5
        assert 0.6 <= presumption.share <= 1
        for rubric in presumption.binding.rubrics:
            criteria = {c.id: c for c in load_rubric(rubric).criteria()}
            criterion = criteria[presumption.binding.criterion]
            assert presumption.value in criterion.values
            assert criterion.conditional is None
            assert presumption_for(criterion) is presumption


async def test_an_edited_criterion_is_left_to_a_reader_and_unscored() -> None:
    run, rubric = load_run(RECORDED / "runs" / "kidney-lite-01"), load_rubric("segmentation")
    stage = rubric.stages["S1"]
    first = stage.criteria[0].model_copy(update={"text": "Did the agent sing about bananas?"})
    stage = stage.model_copy(update={"criteria": (first, *stage.criteria[1:])})
    card = make_scorecard(
        run, rubric=rubric.model_copy(update={"stages": {**rubric.stages, "S1": stage}})
    )
    (result,) = [c for c in card.stages["S1"].criteria if c.id == "S1a"]
    assert (result.value, result.status, result.reason) == (None, "unscored", "not_read")


async def test_what_facts_decide_equals_the_labels() -> None:
    """A floor against regressions, not a claim: the labels were seen while the rules were
    written."""
    equal = scored = 0
    for name in RUNS:
        gold = json.loads((RECORDED / "labels" / "gold" / f"{name}.json").read_text("utf-8"))[
            "criteria"
        ]
        for result in (await judged(load_run(RECORDED / "runs" / name))).values():
            if result.status == "scored":
                scored += 1
                equal += result.value == gold[result.id]
    assert scored > 60
    assert equal / scored >= 0.96


@pytest.mark.parametrize("name", RUNS[::3])
async def test_quotes_stand_where_they_are_cited_and_replies_repeat(name: str) -> None:
    first, second = (load_run(RECORDED / "runs" / name) for _ in range(2))
    by_id = await judged(first)
    assert by_id == await judged(second)
    index = QuoteIndex(first)
    for result in by_id.values():
        assert result.rationale or result.status == "unscored"
        assert result.reason in (None, "not_read")
        for evidence in result.evidence:
            assert index.check(evidence.turn, evidence.quote) == evidence
            assert evidence.check == "verified"


@pytest.mark.parametrize(
    ("out", "exit_code", "expected"),
    [
        pytest.param(
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'x'",
            1,
            0.0,
            id="failed",
        ),
        pytest.param("ready", 0, None, id="something ran: a reader must say what"),
    ],
)
async def test_where_no_execution_succeeded_nothing_was_set_up_or_validated(
    tmp_path: Path, out: str, exit_code: int, expected: float | None
) -> None:
    run = executed(tmp_path, [("python3 run.py", out, exit_code)])
    by_id = await judged(run)
    assert {by_id[id].value for id in ("S2a", "S2b", "S2c", "S2e", "S3")} == {expected}
    assert (by_id["S1a"].value, by_id["S1e"].value) == (0.0, 0.0)


@pytest.mark.parametrize(("failures", "value"), [(5, 1.0), (6, 0.0)])
async def test_environment_failures_are_counted(
    tmp_path: Path, failures: int, value: float
) -> None:
    error = (
        'Traceback (most recent call last):\n  File "a.py", line 1\nModuleNotFoundError: No'
        " module named 'monai'"
    )
    run = executed(tmp_path, [("python3 a.py", error, 1)] * failures + [("echo ok", "ok", 0)])
    result = (await judged(run))["S2d"]
    assert result.value == value
    assert "monai" in result.evidence[-1].quote


async def test_foreign_runs_are_judged_without_an_error() -> None:
    if not EXTERNAL.is_dir():
        pytest.skip(
            f"NOT RUN: no external runs at {EXTERNAL}; set AMBJUDGE_EXTERNAL_DATA to the folder"
            " that holds them"
        )
    for folder in sorted(EXTERNAL.iterdir()):
        for run in list(iter_runs(folder))[::12]:
            assert not isinstance(run, Exception)
            for result in (await judged(run)).values():
                assert result.value is None or result.rationale
                assert all(e.check == "verified" for e in result.evidence)


def executed(folder: Path, steps: list[tuple[str, str, int]]) -> Run:
    """A run of shell commands with what came back."""
    return converse(
        folder,
        *(bash(*step) for step in steps),
        task="liver-seg-task",
        track="segmentation",
        tier="pro",
    )


def test_a_card_without_a_reader_says_what_it_presumes_and_how_far_off_it_may_be() -> None:
    card = make_scorecard(load_run(RECORDED / "runs" / "bccd-lite-01"))
    s1, s3 = card.stages["S1"], card.stages["S3"]
    (pilot,) = s3.criteria
    assert (pilot.status, pilot.value, pilot.judged, pilot.evidence, pilot.votes) == (
        "presumed",
        1.0,
        None,
        (),
        (),
    )
    assert (s3.score, s3.bounds, s3.presumed) == (1.0, (0.0, 1.0), 1)
    assert s1.bounds == (
        pytest.approx(0.6667),
        1.0,
    ), "S1b and S1c were not read; the tier credits three, a file shows one"
    assert card.overall_bounds[0] < card.overall_bounds[1]
    rubric = load_rubric("detection")
    assert verify(card, rubric) == []
    data = card.to_dict()
    assert verify(parse_card(data, "card"), rubric) == []
    data["stages"]["S3"]["bounds"] = [1.0, 1.0]
    assert verify(parse_card(data, "card"), rubric), (
        "a presumed value says nothing about the bounds"
    )


def test_a_disqualified_run_rests_on_nothing_presumed() -> None:
    cards = [make_scorecard(load_run(RECORDED / "runs" / name)) for name in RUNS]
    out = [card for card in cards if card.status.disqualified]
    assert out
    assert all(card.presumed == 0 for card in out)


def test_every_rule_is_bound_to_something() -> None:
    bound = {rule_for(c) for id in builtin_ids() for c in load_rubric(id).criteria()}
    assert bound == {None, *RULES_BY_NAME.values()}


async def test_what_is_presumed_is_never_kept_as_a_verdict(tmp_path: Path) -> None:
    run = load_run(RECORDED / "runs" / "bccd-lite-01")
    with open_store(tmp_path / "s.db") as store:
        for _ in range(2):
            card = await judge_run(run, StoredJudge(RulesJudge(), store))
            stored = {v.result.id: v.result for v in store.iter_verdicts()}
            assert card.presumed == 4
            assert (stored["S3"].status, stored["S3"].reason, stored["S3"].value) == (
                "unscored",
                "not_read",
                None,
            )
            assert {r.status for r in stored.values()} == {"scored", "unscored"}


def test_frames_and_tables_tell_what_was_read_from_what_is_presumed() -> None:
    cards = [
        make_scorecard(load_run(RECORDED / "runs" / name))
        for name in ("bccd-lite-01", "bccd-std-01")
    ]
    runs_cohort = cohort(cards)
    rows = runs_cohort.criteria.filter(pl.col("status").cast(pl.String) == "presumed")
    assert rows.height == sum(card.presumed for card in cards) > 0
    assert rows["value"].null_count() == rows.height
    runs = runs_cohort.runs.sort("run_id")
    assert runs["S3"].to_list() == [1.0, 0.0]
    assert runs["S3_presumed"].to_list() == [
        1.0,
        0.0,
    ], "of the second a fact shows that there was no pilot"
    assert runs["S1_free"].null_count() == 0, "stage means are what the scores were"
    displayed = display(stage_profile(runs_cohort.runs), "stages")
    stage, value = displayed.columns.index("stage"), displayed.columns.index("value")
    marked = {row[stage].text for row in displayed.rows if row[value].text.startswith("~")}
    assert marked == {"S1", "S2", "S3", "agentic", "overall"}
