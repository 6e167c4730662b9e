"""Words about failures fall into groups that a reader can name, the same for the same cards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from ambjudge.analysis.report.failure_texts import (
    KINDS,
    MAX_PATTERNS,
    SCHEMA,
    FailureTexts,
    failure_clusters,
    pattern,
)
from ambjudge.analysis.report.findings import findings, named
from ambjudge.analysis.report.results import analyse
from ambjudge.analysis.tables.card_sources import HeadedCard, iter_cards_and_frames
from ambjudge.error_codes.models import FiredCode
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.views.run_filter import compile_query
from ambjudge.views.run_rows import row_of
from hypothesis import given
from hypothesis import strategies as st

RECORDED = Path(__file__).parents[1] / "data" / "recorded"


@pytest.fixture(scope="module")
def cards() -> list[ScoreCard]:
    problems: list[str] = []
    items = list(iter_cards_and_frames(RECORDED / "runs", problems))
    assert not problems
    return [item.card for item in items if isinstance(item, HeadedCard)]


def with_reasons(card: ScoreCard, number: int, *reasons: str) -> ScoreCard:
    """A copy of a card that has nothing to say but these reasons of codes."""
    fired = tuple(
        FiredCode(
            code="E3",
            taxonomy="paper",
            stage="S3",
            turns=(1,),
            why=why,
            by="detector:x",
            confidence=1.0,
            independence="from_trace",
        )
        for why in reasons
    )
    stages = {
        name: stage.model_copy(update={"criteria": (), "checks": None})
        for name, stage in card.stages.items()
    }
    run = card.run.model_copy(update={"id": f"run-{number:04d}", "agent": f"agent-{number % 3}"})
    return card.model_copy(update={"run": run, "codes": fired, "episodes": (), "stages": stages})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("5 of 12 masks are empty", "of masks are empty", id="numbers"),
        pytest.param("patient_0007: mask missing", ": mask missing", id="names with digits"),
        pytest.param("cannot open /data/public/x.nii.gz today", "cannot open today", id="paths"),
        pytest.param(
            "prints “all is 100 % fine” and goes on", "prints and goes on", id="quoted words"
        ),
        pytest.param("  Mask\n\tMISSING ", "mask missing", id="space and case"),
        pytest.param("12 / 13", "", id="nothing but noise"),
    ],
)
def test_pattern_keeps_what_runs_share(text: str, expected: str) -> None:
    assert pattern(text) == expected


@given(st.text(max_size=600))
def test_pattern_takes_any_text(text: str) -> None:
    assert len(pattern(text)) <= 2 * 400


def test_like_reasons_form_a_group_named_by_their_words(cards) -> None:
    kinds = (
        "Mask of patient_{n} is empty and nobody looked at it",
        "CUDA ran out of memory on batch {n} while loading the checkpoint",
        "The prediction file has column label_{n} where patient_id is required",
    )
    texts = FailureTexts()
    for number in range(60):
        texts.add(
            with_reasons(cards[0], number, kinds[number % 3 if number < 45 else 0].format(n=number))
        )
    rows = texts.table().filter(kind="code").to_dicts()
    assert [row["runs"] for row in rows] == [30, 15, 15]
    assert rows[0]["share"] == 0.5
    assert "mask" in rows[0]["label"]
    assert {"cuda", "memory", "checkpoint"} & set(
        " ".join(rows[1]["label"].split(",")).split()
        + " ".join(rows[2]["label"].split(",")).split()
    )
    assert rows[0]["example_runs"] == [f"run-{n:04d}" for n in (0, 3, 6, 9, 12)]
    assert rows[0]["where"] == "E3 30"


def test_a_run_counts_once_in_a_group(cards) -> None:
    card = with_reasons(cards[0], 1, "mask 1 is empty", "mask 2 is empty", "mask 3 is empty")
    row = failure_clusters([card]).filter(kind="code").to_dicts()[0]
    assert (row["runs"], row["mentions"], row["patterns"]) == (1, 3, 1)


def test_recorded_runs_give_every_kind_of_group(cards) -> None:
    table = failure_clusters(cards)
    assert dict(table.schema) == SCHEMA
    known = table.filter(table["rank"].is_not_null())
    assert set(known["kind"]) == set(KINDS)
    assert (known["runs"] >= 1).all()
    assert (known["share"] <= 1).all()
    assert known["label"].str.len_chars().min() > 0


def test_groups_do_not_depend_on_the_order_of_cards(cards) -> None:
    shuffled = list(cards)
    random.Random(3).shuffle(shuffled)
    same = ["kind", "rank", "label", "runs", "mentions", "patterns", "where"]
    assert failure_clusters(cards).select(same).equals(failure_clusters(shuffled).select(same))
    assert failure_clusters(cards).equals(failure_clusters(cards))


def test_cards_without_words_give_rows_with_the_reason(cards) -> None:
    for table in (failure_clusters([]), failure_clusters([with_reasons(cards[0], 1)])):
        assert table["kind"].to_list() == list(KINDS)
        assert set(table["reason"]) == {"no scorecard has such texts"}


@pytest.mark.parametrize("text", ["?!", "12 / 13", "a", "医", "\x00\u202e", "$" * 900], ids=repr)
def test_odd_words_are_no_error(cards, text: str) -> None:
    assert failure_clusters([with_reasons(cards[0], 1, text)]).height == len(KINDS)


def test_more_patterns_than_are_clustered_join_the_nearest_group(cards) -> None:
    words = [
        f"{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}x"
        for i in range(MAX_PATTERNS + 200)
    ]
    texts = FailureTexts()
    for number, word in enumerate(words):
        texts.add(with_reasons(cards[0], number, f"the mask is empty and nobody looked {word}"))
    rows = texts.table().filter(kind="code").to_dicts()
    assert rows[0]["runs"] > 0.9 * len(words)
    assert "mask" in rows[0]["label"] or "nobody" in rows[0]["label"]


@pytest.fixture(scope="module")
def twelve_agents(cards) -> list[ScoreCard]:
    """Names that begin alike (`agent-1`, `agent-10`), and a failure that 16 runs share."""
    numbered = []
    for number in range(24):
        reason = "the mask of the lesion is empty" if number < 16 else f"word{chr(97 + number)}"
        card = with_reasons(cards[0], number, reason)
        names = {"id": f"run-{number}", "agent": f"agent-{number % 12 + 1}"}
        numbered.append(card.model_copy(update={"run": card.run.model_copy(update=names)}))
    return numbered


def runs_of_filter(text: str, cards: list[ScoreCard]) -> list[str]:
    rows = [row_of(number, card.to_dict()) for number, card in enumerate(cards)]
    predicate = compile_query(text)
    return [row.id for row in rows if predicate(row)]


def test_the_filter_of_a_failure_gives_all_its_runs_and_no_other(twelve_agents) -> None:
    analysis = analyse(twelve_agents, only=["clusters"])
    (finding,) = findings(analysis.tables)
    assert "(16 runs)" in finding.text
    assert runs_of_filter(finding.runs, twelve_agents) == [f"run-{n}" for n in range(16)]


def test_the_filter_of_failed_checks_gives_all_their_runs(twelve_agents) -> None:
    broken = [
        card.model_copy(update={"overall": 99.0}) if number < 11 else card
        for number, card in enumerate(twelve_agents)
    ]
    tables = analyse(broken, only=["checks"]).tables
    problems = tables["checks"].filter(status="problem")
    ids = set(problems["run_ids"].explode())
    assert len(ids) > 5
    (finding,) = [line for line in findings(tables) if "found problems" in line.text]
    assert set(runs_of_filter(finding.runs, broken)) == ids


@pytest.mark.parametrize(
    ("name", "names"),
    [
        pytest.param("agent-1", ["agent-1", "agent-10", "agent-11"], id="begins like others"),
        pytest.param("Ångström 2", ["Ångström 2", "Ångström 20"], id="space and accents"),
        pytest.param("a:b=c<1", ["a:b=c<1", "a"], id="signs of the language"),
    ],
)
def test_a_name_in_a_filter_stands_for_itself_alone(cards, name: str, names: list[str]) -> None:
    named_cards = [
        card.model_copy(update={"run": card.run.model_copy(update={"id": other, "agent": other})})
        for card, other in zip(cards, names, strict=False)
    ]
    assert runs_of_filter(named("agent", name), named_cards) == [name]
