"""The board of a site: its numbers are those of the leaderboard and the report, its names stay
texts, and its pickers, rows and stages work in a real browser."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ambjudge.analysis import cohort, frame, leaderboard, stage_profile, write_frame
from ambjudge.analysis.report.report_tables import all_tables
from ambjudge.analysis.simulated.simulation import simulate
from ambjudge.analysis.statistics.board import (
    GROUPINGS,
    MAX_TASKS,
    RESOURCES,
    Selection,
    board_cell,
    board_runs,
    measures_of,
    selections,
)
from ambjudge.analysis.statistics.descriptive import failure_rates
from ambjudge.analysis.statistics.interval_estimates import wide
from ambjudge.analysis.statistics.run_arrays import UNKNOWN
from ambjudge.analysis.tables.grouping import with_row_names
from ambjudge.cli import run
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.rounding import fixed
from ambjudge.views.frame_rows import rows_of_frame
from ambjudge.views.run_filter import compile_query
from ambjudge.web.board_page import BOARD_DATA, board_page
from ambjudge.web.site import Site, build
from chromium import browse
from html_page import Page

TESTS = Path(__file__).parents[1]
CARDS = TESTS / "data" / "tui" / "cards.jsonl"
NASTY = '"><script>alert(1)</script>\x1b[2J\u202e " {{ 7*7 }}'


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> pl.DataFrame:
    """The runs of the demo, read by the judge that its settings name."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    cards = folder / "cards.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        assert run(["-q", "demo", "--out", str(folder)]) == 0
        patch.chdir(folder)
        assert run(["-q", "score", "runs", "--out", str(cards)]) == 0
    return frame(str(cards))


@pytest.fixture(scope="module")
def mixed() -> pl.DataFrame:
    """Two tracks and two tiers; a model in two agents, an agent with two models, unknown costs,
    tasks of one name in two tracks, and a run without a tier."""
    table = simulate(seed=3, n_agents=4, n_tasks=6, n_tracks=2, n_rep=3).frame()
    number = pl.int_range(pl.len())
    model = pl.when(pl.col("agent") == "agent-1").then(pl.lit("m-") + (number % 2).cast(pl.String))
    model = model.when(pl.col("agent") == "agent-2").then(pl.lit("m-0")).otherwise("agent")
    task = pl.col("task").str.replace(r"^.*-(\d+)$", "task-$1")
    return table.with_columns(
        model=model,
        task=task,
        cost_usd=pl.when(number % 5 > 0).then("cost_usd"),
        tier=pl.when(number > 0).then("tier"),
    )


COHORTS = ["demo", "mixed", "recorded"]


@pytest.fixture(scope="module")
def cohorts(demo: pl.DataFrame, mixed: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {"demo": demo, "mixed": mixed, "recorded": frame(str(CARDS))}


@pytest.fixture(scope="module")
def boards(cohorts: dict[str, pl.DataFrame]) -> dict[str, dict[str, Any]]:
    return {name: data_of(runs) for name, runs in cohorts.items()}


def data_of(runs: pl.DataFrame) -> dict[str, Any]:
    """The JSON of the board."""
    text = board_page(cohort(runs), []).data
    return json.loads(text.removeprefix("window.AMBJUDGE_BOARD = ").removesuffix(";\n"))


def groupings_of(data: dict[str, Any], cell: list[Any]) -> dict[str, dict[str, list[Any]]]:
    """Grouping -> label -> the row of a cell, with shared rows put back in their place."""
    by_grouping = {}
    for name, grouping in zip(data["groupings"], cell[2], strict=True):
        rows, labels = grouping[0], None
        if isinstance(rows, int):
            rows, labels = cell[2][rows][0], grouping[1]
        names = labels or [row[0] for row in rows]
        by_grouping[name] = {
            data["labels"][label]: row for label, row in zip(names, rows, strict=True)
        }
    return by_grouping


def key_of(data: dict[str, Any], selection: Selection) -> str:
    """The key of a selection in the JSON."""
    tracks, tiers = ([name for name, _ in data[part]] for part in ("tracks", "tiers"))
    task = "-"
    if selection.task is not None:
        place = [tracks.index(selection.track), selection.task]
        task = str([entry[:2] for entry in data["tasks"]].index(place))
    track = "-" if selection.track is None else str(tracks.index(selection.track))
    tier = "-" if selection.tier is None else str(tiers.index(selection.tier))
    return f"{track} {task} {tier}"


def cells_of_codes(data: dict[str, Any]) -> dict[int, list[Any]]:
    """The codes of the whole cohort by agent's label."""
    return {int(label): numbers for label, numbers in data["cells"]["- - -"][2][0][1].items()}


def in_unit(value: float | None, measure: list[Any]) -> float | None:
    """A number as the board shows it, worked out from the measure's name and unit."""
    key, _, unit, digits = measure[:4]
    if value is None:
        return None
    factor = {"M": 1e-6, "k": 1e-3, "min": 1 / 60}.get(unit, 1)
    if key not in ("overall", *RESOURCES) or key == "failed":
        factor = 100
    return float(fixed(factor * value, digits))


def shown_numbers(numbers: list[Any] | None) -> list[Any]:
    """Value and both intervals of numbers of the JSON; an unknown end is None."""
    padded = (numbers or []) + [None] * 7
    return [padded[0], *padded[2:6]]


@pytest.mark.parametrize("cohort", COHORTS)
@pytest.mark.parametrize(("grouping", "step"), [("agent", 1), ("model", 4), ("agent+model", 5)])
def test_every_cell_has_the_numbers_of_the_leaderboard(
    cohorts: dict[str, pl.DataFrame],
    boards: dict[str, Any],
    cohort: str,
    grouping: str,
    step: int,
) -> None:
    """All selections by agent, and some of them by model."""
    runs, data = board_runs(cohorts[cohort]), boards[cohort]
    measures = data["measures"]
    assert [measure[0] for measure in measures] == list(measures_of(runs))
    checked = 0
    for selection in list(selections(runs))[::step]:
        selected = with_row_names(selection.rows(runs), grouping)
        rows = groupings_of(data, data["cells"][key_of(data, selection)])[grouping]
        assert set(rows) == set(selected["agent"])
        for place, measure in enumerate(measures):
            board = wide(leaderboard(selected, measure[0], scopes=("overall",))).to_dicts()
            expected = {row["agent"]: row for row in board if row["value"] is not None}
            for label, row in rows.items():
                ends = ("value", "lo", "hi", "same_lo", "same_hi")
                values = [expected.get(label, {}).get(end) for end in ends]
                numbers = shown_numbers(row[7][place])
                assert numbers == [in_unit(value, measure) for value in values], (selection, label)
                checked += numbers[0] is not None
    assert checked > 20


@pytest.mark.parametrize("cohort", COHORTS)
def test_the_whole_cohort_has_the_numbers_of_the_report(
    cohorts: dict[str, pl.DataFrame], boards: dict[str, Any], cohort: str
) -> None:
    table, data = cohorts[cohort], boards[cohort]
    cell = data["cells"]["- - -"]
    rows = groupings_of(data, cell)["agent"]
    place = {measure[0]: number for number, measure in enumerate(data["measures"])}
    names = {"task": "task_score"}
    ends = ("value", "lo", "hi", "same_lo", "same_hi")
    profile = wide(stage_profile(table)).rename({"stage": "what"}).drop("presumed")
    rates = wide(failure_rates(table)).filter(pl.col("what") == "failed")
    for line in pl.concat([profile, rates]).filter(pl.col("agent") != "(all)").to_dicts():
        number = place[names.get(line["what"], line["what"])]
        measure = data["measures"][number]
        values = [in_unit(line[end], measure) for end in ends]
        assert shown_numbers(rows[line["agent"]][7][number]) == values, line

    tables = all_tables(table, only=["codes_by_agent", "stages_by_code", "run_means"])
    means = {line["measure"]: line for line in wide(tables["run_means"]).to_dicts()}
    for key, number in place.items():
        measure = data["measures"][number]
        values = [in_unit(means[key][end], measure) for end in ends]
        assert shown_numbers(cell[3][number]) == values
    stages = {
        (line["code"], line["stage"], line["runs_with_code"]): line["value"]
        for line in tables["stages_by_code"].filter(pl.col("population") == "new").to_dicts()
    }
    percent = ["", "", "", 1]
    for k, code in enumerate(data["codes"]):
        for s, stage in enumerate(data["stages"]):
            for g, group in enumerate(data["groups"]):
                value = stages[code, stage, group]
                assert cell[4][k][s][g][0] == in_unit(value, percent)
    fired = {
        (line["agent"], line["code"]): line
        for line in wide(tables["codes_by_agent"]).to_dicts()
        if line["measure"] == "rate per run"
    }
    codes = cell[2][0][1]
    for label, numbers in codes.items():
        for k, code in enumerate(data["codes"]):
            line = fired[data["labels"][int(label)], code]
            assert numbers[k][:3] == [line["fired"], line["read"], line["runs"]]
            assert numbers[k][3][0] == in_unit(line["value"], percent)


def test_a_cell_has_the_numbers_that_leaderboard_prints(
    mixed: pl.DataFrame, boards: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The filter of a selection of the board, as `--where`, and its rows, as `--by`."""
    write_frame(mixed, tmp_path / "runs.parquet")
    data = boards["mixed"]
    measures = {measure[0]: (place, measure) for place, measure in enumerate(data["measures"])}
    key = next(key for key in data["cells"] if key.startswith("1 - ") and key != "1 - -")
    where = f"{data['tracks'][1][1]} {data['tiers'][int(key.split()[2])][1]}"
    rows = groupings_of(data, data["cells"][key])["model"]
    for outcome in ("overall", "S3"):
        place, measure = measures[outcome]
        arguments = ["--where", where, "--by", "model", "--by", "overall", "--outcome", outcome]
        assert run(["-q", "leaderboard", str(tmp_path / "runs.parquet"), *arguments, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)["rows"]
        assert {line["agent"] for line in printed} == set(rows)
        for line in printed:
            value, lo, hi, same_lo, same_hi = shown_numbers(rows[line["agent"]][7][place])
            ends = (lo, hi) if line["population"] == "new" else (same_lo, same_hi)
            expected = [in_unit(line[end], measure) for end in ("value", "lo", "hi")]
            assert [value, *ends] == expected


def test_stages_by_code_are_means_over_runs(mixed: pl.DataFrame) -> None:
    """Counted by hand from the rows: each run counts once, a run that was not read not at all."""
    table = all_tables(mixed, only=["stages_by_code"])["stages_by_code"]
    rows = table.filter(pl.col("population") == "new").rows(named=True)
    assert len(rows) == 5 * 3 * 3
    for row in rows:
        code, stage = row["code"], row["stage"]
        scored = mixed.filter(pl.col(stage).is_not_null() & pl.col(code).is_not_null())
        with_code, without = (scored.filter(pl.col(code) == fired) for fired in (True, False))
        means = {"with": with_code[stage].mean(), "without": without[stage].mean()}
        if None not in means.values():
            means["difference"] = means["with"] - means["without"]
        assert row["value"] == pytest.approx(means.get(row["runs_with_code"]), abs=1e-12)
        if row["value"] is None:
            assert row["reason"]


def test_a_mixture_is_named_and_unknown_is_no_zero(mixed: pl.DataFrame) -> None:
    one_task = mixed.filter(pl.col("task") == mixed["task"][0])
    is_first = pl.col("agent") == one_task["agent"].sort()[0]
    unknown_costs = pl.when(~is_first).then("cost_usd")
    no_time = pl.lit(None, dtype=pl.Float64)
    data = data_of(one_task.with_columns(wall_time_s=no_time, cost_usd=unknown_costs))
    rows = groupings_of(data, data["cells"]["- - -"])
    names = {
        grouping: {
            label: [[data["labels"][name] for name in part] for part in row[3]]
            for label, row in rows[grouping].items()
        }
        for grouping in GROUPINGS
    }
    assert names["agent"]["agent-1"][1] == ["m-0", "m-1"]
    assert names["model"]["m-0"][0] == ["agent-1", "agent-2"]
    assert names["agent+model"]["agent-1 · m-0"][:2] == [["agent-1"], ["m-0"]]
    assert UNKNOWN in {tier for row in names["agent"].values() for tier in row[2]}
    measures = [measure[0] for measure in data["measures"]]
    assert "wall_time_s" not in measures
    cost = measures.index("cost_usd")
    unknown = rows["agent"][min(rows["agent"])][7]
    assert unknown[cost] is None
    assert unknown[measures.index("turns")][0] > 0


def test_outcomes_of_another_harness_are_columns(mixed: pl.DataFrame) -> None:
    number = pl.int_range(pl.len())
    outcomes = {
        "outcome.resolved": (number % 2).cast(pl.Float64),
        "outcome.reward": number.cast(pl.Float64),
        "outcome.verdict": pl.lit("fine"),
    }
    table = mixed.with_columns(**outcomes)
    data = data_of(table)
    names = {measure[0]: measure[1:] for measure in data["measures"]}
    assert names["outcome.resolved"][:2] == ["resolved", "%"]
    assert names["outcome.reward"][:2] == ["reward", ""]
    assert "outcome.verdict" not in names
    place = list(names).index("outcome.reward")
    board = leaderboard(table, "outcome.reward", scopes=("overall",))
    rows = groupings_of(data, data["cells"]["- - -"])["agent"]
    for line in wide(board).to_dicts():
        assert rows[line["agent"]][7][place][0] == float(fixed(line["value"], 1))


def test_a_code_that_was_not_read_says_in_how_many_runs_it_fired(boards: dict[str, Any]) -> None:
    data = boards["recorded"]
    numbers = cells_of_codes(data)[data["labels"].index("(all)")][data["codes"].index("E3")]
    assert numbers[0] is None
    assert numbers[3][0] is None
    assert "it fired in 8 of all" in data["notes"][numbers[3][6]]


def test_partly_read_runs_have_a_range_and_no_point() -> None:
    runs = frame(str(CARDS)).with_columns(
        S3=pl.lit(None, dtype=pl.Float64),
        S3_method=pl.lit("unscored"),
        read_share=pl.lit(0.4),
        overall_lo=pl.lit(20.0),
        overall_hi=pl.lit(70.0),
    )
    data = data_of(runs)
    for row in groupings_of(data, data["cells"]["- - -"])["agent"].values():
        assert row[7][0] is None
        assert row[6][0] == [20.0, 70.0]
        assert row[5] == row[1]


@pytest.mark.parametrize("cohort", COHORTS)
def test_the_filter_of_a_row_finds_exactly_its_runs(
    cohorts: dict[str, pl.DataFrame], boards: dict[str, Any], cohort: str
) -> None:
    table, data = cohorts[cohort], boards[cohort]
    runs = board_runs(table)
    listed = list(rows_of_frame(table, 0))
    for selection in selections(runs):
        track, task, tier = (
            int(part) if part != "-" else None for part in key_of(data, selection).split()
        )
        terms = []
        terms += [data["tracks"][track][1]] if track is not None else []
        terms += [data["tasks"][task][2]] if task is not None else []
        terms += [data["tiers"][tier][1]] if tier is not None else []
        rows = groupings_of(data, data["cells"][key_of(data, selection)])
        for grouping in GROUPINGS:
            filters = {data["labels"][label]: text for label, text in data["filters"][grouping]}
            for label, row in rows[grouping].items():
                matches = compile_query(" ".join([filters[label], *terms]))
                assert sum(map(matches, listed)) == row[1], (selection, label)
    everyone = cells_of_codes(data)[data["labels"].index("(all)")]
    for k, code in enumerate(data["codes"]):
        fired = everyone[k][0]
        if fired is not None:
            assert sum(map(compile_query(f"code:{code}"), listed)) == fired


def test_a_cohort_without_runs_has_an_empty_board(tmp_path: Path) -> None:
    recorded = cohort(str(CARDS))
    page = board_page(replace(recorded, runs=recorded.runs.clear()), [])
    assert (page.cells, page.about) == (0, ())
    site = Site(tmp_path / "site")
    site.finish(board=page)
    assert "no runs to show" in Page((tmp_path / "site" / "board.html").read_text("utf-8")).text
    again = Site(tmp_path / "site")
    again.finish()
    assert not (tmp_path / "site" / "board.html").exists()
    assert not (tmp_path / "site" / BOARD_DATA).exists()


def test_many_tasks_are_not_offered_one_by_one(mixed: pl.DataFrame) -> None:
    number = pl.int_range(pl.len())
    names = {"task": pl.format("task-{}", number), "run_id": pl.format("run-{}", number)}
    many = pl.concat([mixed, mixed]).with_columns(**names)
    assert many.height > MAX_TASKS
    offered = list(selections(board_runs(many)))
    assert {selection.task for selection in offered} == {None}
    assert len({selection.track for selection in offered}) == 3


@pytest.fixture(scope="module")
def site(mixed: pl.DataFrame, tmp_path_factory) -> Path:
    """A site of cards and of a frame whose names are hostile."""
    folder = tmp_path_factory.mktemp("board")
    hostile = mixed.with_columns(
        agent=pl.when(pl.col("agent") == "agent-3").then(pl.lit(NASTY)).otherwise("agent"),
        run_id=pl.format("r{}", pl.int_range(pl.len())),
        rubric=pl.lit("vqa"),
        rubric_version=pl.lit("0.9"),
    )
    write_frame(hostile, folder / "runs.parquet")
    arguments = ["-q", "site", str(folder / "runs.parquet"), "--out", str(folder / "site")]
    assert run([*arguments, "--no-report", "--title", NASTY]) == 0
    return folder / "site"


def test_the_page_is_whole_and_says_how_a_stage_adds_up(site: Path) -> None:
    text = (site / "board.html").read_text("utf-8")
    page = Page(text)
    assert (page.open, page.wrong) == ([], [])
    assert "<script>alert" not in text
    assert "Failure rate" in page.text
    words = " ".join(page.text.split())
    assert "S1 = (S1a + S1b + S1c + S1d + S1e + S1f) / 6." in words
    assert "credited in lite" in words
    assert "0.35 × S3" in words
    assert "judged by vqa 0.9 with another text" in words
    assert "board.html" in (site / "index.html").read_text("utf-8")


DRIVER = """
const report = {};
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const load = (address, width) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.width = width; frame.height = 900;
  frame.onload = () => done(frame.contentWindow);
  frame.src = address;
  document.body.append(frame);
});
const cells = (win, id) => Array.from(win.document.querySelectorAll("#" + id + " tbody tr"), (tr) =>
  Array.from(tr.cells, (td) => Array.from(td.childNodes, (node) => node.textContent)));
const pick = (win, id, value) => {
  const select = win.document.getElementById(id);
  select.value = value;
  select.dispatchEvent(new win.Event("change"));
};
const press = (win, key) => win.document.body.dispatchEvent(
  new win.KeyboardEvent("keydown", { key: key, bubbles: true, cancelable: true }));
const all = (win, query, of) => Array.from(win.document.querySelectorAll(query), of);
(async () => {
  const board = await load("board.html", 1280);
  report.all = cells(board, "board");
  pick(board, "track", CASES.track);
  report.tasks = all(board, "#task option", (option) => option.value);
  pick(board, "task", CASES.task);
  pick(board, "tier", "lite");
  pick(board, "by", "model");
  report.hash = board.location.hash;
  report.cell = cells(board, "board");
  report.interval = board.document.getElementById("interval").value;
  report.notes = board.document.getElementById("notes").textContent;
  const linked = await load("board.html" + report.hash, 400);
  report.linked = cells(linked, "board");
  report.href = linked.document.querySelector("#board tbody a").getAttribute("href");
  const table = await load(report.href, 1280);
  report.runs = table.document.getElementById("count").textContent;
  linked.document.getElementById("sort-turns").click();
  report.sorted = cells(linked, "board").map((row) => row[CASES.turns][0]);
  report.aria = linked.document.querySelector("#board th[aria-sort]").getAttribute("aria-sort");
  press(linked, "3");
  report.stage = linked.document.querySelector("dialog[open]").textContent;
  linked.document.querySelector("dialog[open]").close();
  board.document.querySelector("#board thead th:nth-child(" + CASES.failed + ") button").click();
  report.defined = board.document.activeElement.id;
  report.charts = all(board, "#charts svg", (svg) => svg.getAttribute("aria-label"));
  press(board, "j");
  report.here = board.document.querySelectorAll("#board tr.here").length;
  const overflow = (win) => win.document.documentElement.scrollWidth - win.innerWidth;
  report.wide = [board, linked].map(overflow);
  report.scripts = board.document.querySelectorAll("script").length;
  document.getElementById("report").textContent = JSON.stringify(report);
})();
"""


def test_in_a_browser(site: Path, tmp_path: Path) -> None:
    text = (site / BOARD_DATA).read_text("utf-8")
    data = json.loads(text.removeprefix("window.AMBJUDGE_BOARD = ").removesuffix(";\n"))
    keys = [measure[0] for measure in data["measures"]]
    track, task = data["tasks"][0][0], data["tasks"][0][1]
    cases = {
        "track": data["tracks"][track][0],
        "task": task,
        "turns": 1 + keys.index("turns"),
        "failed": 2 + keys.index("failed"),
    }
    driver = site / "drive_board.html"
    (site / "drive_board.js").write_text(f"const CASES = {json.dumps(cases)};\n{DRIVER}", "utf-8")
    driver.write_text(
        '<!DOCTYPE html><meta charset="utf-8"><body><pre id="report"></pre>'
        '<script src="drive_board.js"></script>'
    )
    dom = browse(
        driver,
        tmp_path,
        "--allow-file-access-from-files",
        "--virtual-time-budget=20000",
        "--dump-dom",
    )
    found = re.search(r'<pre id="report">(.+?)</pre>', dom, re.DOTALL)
    assert found, dom[:2000]
    seen = json.loads(html.unescape(found.group(1)))

    rows = groupings_of(data, data["cells"]["- - -"])["agent"]
    assert [row[0][0] for row in seen["all"]] == list(rows)
    assert any("script" in row[0][0] for row in seen["all"])
    overall = [row[7][0][0] for row in rows.values()]
    assert [row[1][0].lstrip("~") for row in seen["all"]] == [f"{value:.1f}" for value in overall]
    assert overall == sorted(overall, reverse=True)
    assert any("mixes 2 models: m-0, m-1" in text for row in seen["all"] for text in row[0])

    assert len(seen["tasks"]) == 1 + sum(entry[0] == track for entry in data["tasks"])
    tier = [name for name, _ in data["tiers"]].index("lite")
    cell = data["cells"][f"{track} 0 {tier}"]
    models = groupings_of(data, cell)["model"]
    assert seen["cell"] == seen["linked"]
    assert [row[0][0] for row in seen["cell"]] == list(models)
    assert "task=" in seen["hash"]
    assert "by=model" in seen["hash"]
    assert seen["interval"] == "same"  # one task has no interval for new ones
    assert "one task" in seen["notes"]
    first = next(iter(models.values()))
    assert seen["runs"].startswith(f"{first[1]} of ")
    turns = [float(value) for value in seen["sorted"]]
    assert (turns, seen["aria"]) == (sorted(turns), "ascending")
    assert "S3 Validate" in seen["stage"]
    assert "S3 = the level of S3." in seen["stage"]
    assert seen["defined"] == "d-failed"
    assert len(seen["charts"]) == 5
    assert all(label.count(";") == len(models) - 1 for label in seen["charts"])
    assert seen["here"] == 1
    assert seen["wide"] == [0, 0]
    assert seen["scripts"] == 3


def test_a_cell_stands_alone(mixed: pl.DataFrame) -> None:
    """A selection has the numbers that it would have if no other run were there."""
    runs = board_runs(mixed)
    for selection in list(selections(runs))[::7]:
        alone = board_runs(selection.rows(mixed))
        rows, rows_alone = (
            board_cell(table, chosen).rows
            for table, chosen in ((runs, selection), (alone, Selection()))
        )
        assert rows == rows_alone


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({}, "S2 = (S2a + S2b + S2c + S2d + S2e) / 5.", id="as shipped"),
        pytest.param({"version": "2.0", "sha256": "0" * 64}, "with another text", id="edited"),
        pytest.param({"id": "mine", "titles": {"S2a": "my <i>title"}}, "my <i>title", id="unknown"),
    ],
)
def test_a_stage_shows_the_text_of_the_rubric_that_was_used(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    for line in CARDS.read_text("utf-8").splitlines():
        card = ScoreCard.model_validate_json(line)
        if card.rubric.id == "vqa":
            break
    card = card.model_copy(update={"rubric": card.rubric.model_copy(update=change)})
    build([card], tmp_path / "site", report=False)
    text = (tmp_path / "site" / "board.html").read_text("utf-8")
    assert said in " ".join(Page(text).text.split())
    assert "<i>title" not in text
