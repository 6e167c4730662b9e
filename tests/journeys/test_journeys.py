"""Three people at their whole jobs, over many commands on one folder of runs.

After each step every number that stands in two places is the same in both (cohort_places.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import ambjudge
import pytest
from ambjudge.commands.browse import collect
from ambjudge.config import load
from cohort_places import (
    MEDIUM,
    PLACES,
    QUICK,
    Desk,
    Numbers,
    assert_same_numbers,
    export_csv,
    export_scorecards,
    python_leaderboard,
    single_runs,
    site_rows,
)
from workshop import JUDGES, Workshop

IMPORTS = Path(__file__).parents[1] / "data" / "imports"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """An empty workshop."""
    monkeypatch.chdir(tmp_path)
    shop = Workshop(tmp_path / "shop")
    yield shop
    monkeypatch.chdir(tmp_path)
    shop.close()


def overall_of(numbers: Numbers) -> dict[str, float]:
    return {run: row["overall"] for run, row in (numbers.runs or {}).items()}


def test_a_maintainer_edits_a_rubric_and_goes_back(shop: Workshop) -> None:
    """A judge, another weight, another wording, another track untouched, an older version asked
    for, and the rubric that ships again: 7 runs all the time, and no question asked twice."""
    judge = JUDGES[0]
    for number in range(6):
        agent = ("elm", "oak")[number % 2]
        task = ("kidney-seg-task", "liver-seg-task", "lung-seg-task")[number // 2]
        shop.add_run(f"run-{number}", agent=agent, task=task, task_score=number / 10)
    shop.add_run("slake-1", task="slake-vqa-task", track="vqa")
    shop.score("rules")
    shop.score(judge)
    first = assert_same_numbers(shop.desk(), [*QUICK, *MEDIUM])
    assert first.n_runs == 7
    judgements = agreement_counts(shop)
    calls = shop.server.count

    heavier = shop.rubric(version="2.0", weight=20)
    shop.rejudge(None, "--judge", judge, "--rubric", heavier)
    second = assert_same_numbers(shop.desk(), QUICK)
    assert shop.server.count == calls, "weights cost no call"
    assert set(second.runs or {}) == set(first.runs or {})
    assert overall_of(second) != overall_of(first)
    assert overall_of(second)["slake-1"] == overall_of(first)["slake-1"]
    assert max(agreement_counts(shop).values()) <= 7, "agreement counts a run once"
    shop.score("rules", "--rubric", heavier)
    assert agreement_counts(shop) == judgements, "both judged by the same rubric again"

    reworded = shop.rubric(version="3.0", weight=20, words="Was an input looked at?")
    shop.rejudge(None, "--judge", judge, "--rubric", reworded)
    third = assert_same_numbers(shop.desk(), PLACES)
    assert shop.server.count > calls, "other words are another question"
    versions = {row["rubric"] for row in (third.runs or {}).values()}
    assert versions == {"own 3.0", "vqa 1.1"}

    older = assert_same_numbers(shop.desk(rubric="own@2.0"), [*QUICK, python_leaderboard])
    assert overall_of(older) == overall_of(second)
    shipped = assert_same_numbers(shop.desk(rubric="segmentation"), QUICK)
    assert overall_of(shipped) == overall_of(first)
    by_rules = assert_same_numbers(shop.desk(judge="rules"), QUICK)
    assert {row["judge"] for row in (by_rules.runs or {}).values()} == {"rules"}

    calls = shop.server.count
    shop.rejudge(None, "--judge", judge)
    assert assert_same_numbers(shop.desk(), QUICK).runs == third.runs, "the rubric stays in force"
    shop.rejudge(None, "--judge", judge, "--rubric", "segmentation")
    back = assert_same_numbers(shop.desk(), [*QUICK, single_runs])
    assert shop.server.count == calls, "its verdicts are in the store"
    assert back.runs == first.runs
    assert back.agents == first.agents
    assert max(shop.asked.values()) == 1


def agreement_counts(shop: Workshop) -> dict[str, int]:
    """How many runs `agreement` compares two judges on, by item; terminal and JSON say the same."""
    text, _ = shop.desk().call("agreement", "runs")
    data = json.loads(shop.desk().call("agreement", "runs", "--json")[0])
    in_text = {
        item: int(n) for item, n in re.findall(r"^([SE]\d[a-z]?) +(\d+) ", text, re.MULTILINE)
    }
    in_json = {row["item"]: row["n"] for row in data["rows"]}
    assert in_text == {item: in_json[item] for item in in_text}
    assert in_text
    return in_text


def test_a_developer_reads_runs_of_another_harness(shop: Workshop) -> None:
    """Foreign logs with outcomes, no track and a rubric of their own: rows, filters, labels."""
    call = shop.desk().call
    for source in ("openai.json", "inspect.json", "swe-agent.traj", "mini-swe-agent"):
        call("import", "auto", IMPORTS / source, "--out", "runs", code=(0, 1))
    n_runs = len(shop.run_folders())
    text, _ = call("rubric", "new")
    rubric = shop.folder / "mine.yaml"
    rubric.write_text(text, encoding="utf-8")
    shop.rubrics[rubric] = None
    shop.score(JUDGES[0], "--rubric", rubric)
    numbers = assert_same_numbers(shop.desk(), [*QUICK, *MEDIUM])
    assert numbers.n_runs == n_runs
    calls = shop.server.count
    shop.score(JUDGES[0], "--rubric", rubric)
    assert shop.server.count == calls

    frame = ambjudge.analysis.frame(shop.desk().runs)
    agent = frame["agent"].drop_nulls()[0]
    part = assert_same_numbers(shop.desk(where=f'agent="{agent}"'), [*QUICK, *MEDIUM])
    assert part.n_runs == frame.filter(frame["agent"] == agent).height < n_runs
    outcomes = [name for name in frame.columns if name.startswith("outcome.")]
    assert outcomes
    exported = [json.loads(line) for line in shop.desk().read("export").splitlines()]
    for name in outcomes:
        assert [row[name] for row in exported] == frame[name].to_list()


def test_a_researcher_defends_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo: labels drawn, imported, agreed with, corrected by; a comparison; all the same in
    the terminal, JSON, a report and Python."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    desk = Desk(Path("runs"), tmp_path / "scratch")
    desk.call("demo")
    monkeypatch.chdir("ambjudge-demo")
    desk.call("score", "runs", "--out", "cards.jsonl")
    before = assert_same_numbers(desk, QUICK)

    desk.call("label", "next", "runs", "-n", "4", "--out", "todo", "--annotator", "a2")
    assert len(list(Path("todo").rglob("*.yaml"))) == 4
    _, notes = desk.call("label", "import", "labels", "--runs", "runs")
    assert "16" in notes
    labels = Path(".ambjudge/ambjudge.db")
    for source in ("labels", labels):
        assert agreement_of(desk, source) == agreement_of(desk, "labels")

    corrected = corrected_of(desk, "labels")
    assert corrected == corrected_of(desk, labels)
    report = desk.folder("report")
    desk.call(
        "analyze", "runs", "--labels", "labels", "--table", "corrected_leaderboard", "--out", report
    )
    table = json.loads((report / "tables.json").read_text("utf-8"))["tables"]
    assert rounded(table["corrected_leaderboard"]["rows"]) == corrected

    text, _ = desk.call("compare", "agent-ash", "agent-elm", "runs")
    data = json.loads(desk.call("compare", "agent-ash", "agent-elm", "runs", "--json")[0])
    result = ambjudge.compare("agent-ash", "agent-elm", "runs")
    assert " ".join(data["sentences"]) == " ".join(result.sentences)
    assert words(" ".join(data["sentences"])) in words(text)
    means = {side["name"]: side["mean"] for side in data["sides"]}
    agents = before.agents or {}
    assert means == {name: pytest.approx(row["overall"]) for name, row in agents.items()}
    assert data["rows"][0]["value"] == pytest.approx(means["agent-ash"] - means["agent-elm"])

    after = assert_same_numbers(Desk(desk.runs, desk.scratch), QUICK)
    assert after == before, "labels change no score"


def test_a_judge_cannot_deny_a_proven_fact_in_silence(shop: Workshop) -> None:
    """What a fact decides is not asked; asked all the same, a denial is a contradiction, in every
    place."""
    for number in range(3):
        folder = shop.add_run(f"case-{number}")
        plan = folder / "outputs" / "plan" / "plan.md"
        plan.parent.mkdir(parents=True)
        plan.write_text("# Plan\nThe network runs over every case and writes masks.\n", "utf-8")
    shop.score("openai/lowest")
    numbers = assert_same_numbers(shop.desk(), [*QUICK, export_scorecards])
    assert plan_was_met(shop) == [1, 1, 1]
    assert [row["contradictions"] for row in (numbers.runs or {}).values()] == [0, 0, 0]

    shop.score("openai/lowest", "--ask-all")
    numbers = assert_same_numbers(shop.desk(), [*QUICK, export_scorecards, site_rows])
    assert plan_was_met(shop) == [0, 0, 0]
    assert all(row["contradictions"] for row in (numbers.runs or {}).values())
    text, _ = shop.desk().call("score", "runs/case-1", code=(0, 1))
    assert "plan.md came with the run" in text


def plan_was_met(shop: Workshop) -> list[float]:
    """The values of S1a, whether there is a plan.md, of all runs."""
    lines = shop.desk().read("export", "--what", "criteria").splitlines()
    rows = [json.loads(line) for line in lines]
    return [row["value"] for row in rows if row["criterion"] == "S1a"]


def words(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def agreement_of(desk: Desk, labels: str | Path) -> list[tuple[str, int, float | None]]:
    """Item, n and AC1, which terminal, JSON and Python agree on."""
    text, _ = desk.call("agreement", "runs", "--labels", labels)
    data = json.loads(desk.call("agreement", "runs", "--labels", labels, "--json")[0])
    frame = ambjudge.agreement("runs", labels=labels).table.to_dicts()
    in_json = [(r["item"], r["n"], r["value"]) for r in data["rows"] if r["coefficient"] == "ac1"]
    assert [(r["item"], r["n"], r["value"]) for r in frame if r["coefficient"] == "ac1"] == in_json
    in_text = re.findall(r"^([SE]\d[a-z]?) +(\d+) ", text, re.MULTILINE)
    assert in_text == [(item, str(n)) for item, n, _ in in_json]
    return in_json


def corrected_of(desk: Desk, labels: str | Path) -> list[tuple[str, ...]]:
    """Agent, mean and interval of the corrected leaderboard: terminal and JSON."""
    flags = ("--labels", labels, "--table", "corrected_leaderboard")
    data = json.loads(desk.call("analyze", "runs", *flags, "--json")[0])
    rows = rounded(data["tables"]["corrected_leaderboard"]["rows"])
    text, _ = desk.call("analyze", "runs", *flags)
    pattern = r"^(\S+) +corrected +\d+ +(\S+)(?: \[\d+\])* +\[(\S+), (\S+)\]"
    assert re.findall(pattern, text, re.MULTILINE) == rows
    return rows


def rounded(rows: list[dict]) -> list[tuple[str, ...]]:
    """Agent, mean and interval with one decimal, of the corrected rows that have an interval."""
    return [
        (row["agent"], *(f"{row[name]:.1f}" for name in ("value", "lo", "hi")))
        for row in rows
        if row["kind"] == "corrected" and row["lo"] is not None
    ]


def test_scoring_one_run_by_rules_changes_no_models_board(shop: Workshop) -> None:
    """A run that grew is what another path holds: the model's scorecards count as before, whoever
    reads the run first, and the browser shows what they are."""
    judge = JUDGES[0]
    for number in range(4):
        shop.add_run(f"run-{number}", agent=("elm", "oak")[number % 2], task_score=number / 10)
    shop.score(judge)
    grown = shop.runs / "run-1"
    shop.grow(grown)
    shop.copy(grown, "run-1-goes-on")
    args = ("--judge", judge, "--api-base", shop.server.url)
    shop.desk().call("score", "runs/run-1-goes-on", *args)
    before = assert_same_numbers(shop.desk(), [*QUICK, *MEDIUM])
    assert before.n_runs == 4
    shop.desk().call("score", "runs/run-1", "--judge", "rules")
    shop.add_run("run-4")
    shop.desk().call("score", "runs/run-4", "--judge", "rules")
    after = assert_same_numbers(shop.desk(), [*QUICK, *MEDIUM])
    assert overall_of(after) == overall_of(before)
    collection = collect(shop.runs, load(None), {})
    rows = {row.id: row for batch in collection.batches() for row in batch}
    assert {row.judge for row in rows.values()} == {judge, None}
    notes = collection.open(rows["runs/run-4"]).notes
    collection.close()
    assert any(f"judge {judge} has not judged this run" in note for note in notes)
    assert not collection.lets_rules_score
    for folder in shop.run_folders():
        shop.delete(folder)
    assert assert_same_numbers(shop.desk(), QUICK).n_runs == 4


def test_runs_of_one_name_have_one_id_each_everywhere(shop: Workshop) -> None:
    """Whatever part of them is looked at, and labels made before there was a second one count."""
    shop.add_run("elm/kidney")
    shop.score("rules")
    label = {"run": "kidney", "annotator": "a1", "criteria": {"S1a": 0}}
    file = shop.folder / "label.json"
    file.write_text(json.dumps(label), encoding="utf-8")
    shop.add_run("oak/kidney", agent="oak")
    shop.add_run("oak/liver", agent="oak", task="liver-seg-task")
    shop.score("rules")
    ids = {"elm/kidney", "oak/kidney", "liver"}
    places = [*QUICK, export_scorecards, export_csv, site_rows]
    assert set(assert_same_numbers(shop.desk(), places).runs or {}) == ids
    assert set(assert_same_numbers(shop.desk(where="agent=oak"), places).runs or {}) < ids
    part = Desk(Path("runs/oak"), shop.scratch)
    assert set(assert_same_numbers(part, [*QUICK, export_scorecards]).runs or {}) < ids
    labelled = ambjudge.agreement(shop.runs, labels=file).table
    assert set(labelled["n"]) == {1}
    shop.move(shop.runs / "elm" / "kidney", "ash/kidney")
    shop.score("rules")
    moved = {"ash/kidney", "oak/kidney", "liver"}
    assert set(assert_same_numbers(shop.desk(), places).runs or {}) == moved
