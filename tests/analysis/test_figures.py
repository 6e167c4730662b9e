"""Figures of tables with and without data: texts, reasons, equal bytes, and safe names."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import polars as pl
import pytest
from ambjudge.analysis import TABLES, all_tables, simulate
from ambjudge.analysis.figures import FIGURES, Figure, draw, draw_all, draw_on_sheet, write
from ambjudge.analysis.figures.figure_result import NothingToDraw
from ambjudge.analysis.figures.leaderboards import ValueText
from ambjudge.analysis.figures.rendering import LAYOUT_DIGITS, fix_layout, inline
from ambjudge.analysis.figures.style import (
    INK,
    ROLES,
    distinct_labels,
    figure_style,
    label_log_axis,
)
from ambjudge.analysis.statistics.corrected_means import corrected_leaderboard
from ambjudge.analysis.statistics.raters import AGREEMENT_SCHEMA, agreement_of
from figure_measures import faults, smallest_text
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure as MatplotlibFigure

HOSTILE = '<script>alert(1)</script>$x_{1}$\x1b[31m\u202e --> ]]> & "q" 医'


@pytest.fixture(scope="module")
def runs() -> pl.DataFrame:
    return simulate("judge", seed=5, n_rep=7, n_tasks=10, n_agents=4, n_tracks=3).frame()


@pytest.fixture(scope="module")
def tables(runs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """All tables, with those that need labels: the truth of the simulation plays the human."""
    tables = all_tables(runs)
    tasks = runs["task"].to_list()
    rows = []
    for code in ("E2", "E3", "E5"):
        human, judge = (runs[name].cast(pl.Float64).to_numpy() for name in (f"{code}_human", code))
        coefficients = agreement_of(human, judge, tasks)
        rows += [{"item": code, "kind": "code", **row} for row in coefficients]
    coefficients = agreement_of(runs["S3"].to_numpy(), runs["S3"].reverse().to_numpy(), tasks)
    rows += [{"item": "S3", "kind": "criterion", **row} for row in coefficients]
    tables["agreement"] = pl.DataFrame(rows, schema=AGREEMENT_SCHEMA)
    tables["corrected_leaderboard"] = corrected_leaderboard(
        runs, runs.head(60).select("run_id", human=pl.col("overall") - 3)
    )
    return tables


@pytest.fixture(scope="module")
def figures(tables, runs) -> dict[str, Figure]:
    return {figure.name: figure for figure in draw_all(tables, runs)}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_with_caption_and_description(name: str, figures) -> None:
    figure = figures[name]
    assert figure.reason is None
    assert figure.png is not None
    assert figure.png.startswith(b"\x89PNG")
    assert figure.caption
    assert figure.description
    root = ET.fromstring(figure.svg)
    texts = "".join(root.itertext())
    assert len(texts) > 20, "text must stay text"
    assert not re.search(r"\bnan\b|\binf\b", figure.svg)


@pytest.mark.parametrize("name", FIGURES)
def test_its_text_can_be_read_on_a_phone(name: str, tables, runs) -> None:
    narrow = draw(name, tables, runs, png=False, narrow=True).narrow
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', narrow)[1])
    sizes = [float(size) for size in re.findall(r"font(?:-size)?:[^;\"]*?([\d.]+)px", narrow)]
    assert sizes
    percent = re.search(r"width: (\d+)%", inline(narrow, "", narrow=True))
    pixels = 368 * float(percent[1]) / 100 if percent else 368
    assert min(sizes) * pixels / width >= 10, "pixels on a screen of 368"


LONG_NAMES = (
    "openhands-v0.38-claude-opus-4-20250514-thinking",
    "openhands-v0.38-claude-sonnet-4-20250514",
    "swe-agent-1.1-gpt-5-2025-08-07-high",
    "swe-agent-1.1-gpt-5-mini-2025-08-07-low",
    "terminus-2-gemini-2.5-pro-preview-06-05",
    "aide-ml-deepseek-r1-0528-distill-qwen3-8b",
    "mini-swe-agent-qwen3-coder-480b-a35b-instruct",
    "codex-cli-0.21-o4-mini-high",
    "medagent-pro-llama-4-maverick-17b-128e",
    "autogen-magentic-one-gpt-4.1-2025-04-14",
    "Forschungsgruppe Bildverarbeitung, Versuch 2",
    "医療画像解析エージェント第十二版",
)


def with_labels(runs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """All tables; of those that need labels, the means."""
    tables = all_tables(runs)
    human = pl.col("overall") - 3 + 2 * pl.col("S3")
    tables["corrected_leaderboard"] = corrected_leaderboard(
        runs, runs.sample(fraction=0.6, seed=1).select("run_id", human=human)
    )
    return tables


@pytest.fixture(scope="module")
def two_agents() -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    runs = simulate("paper", seed=3, n_rep=4, n_tasks=6, n_agents=2, n_tracks=3).frame()
    # A narrow range of costs: not one power of ten in it.
    runs = runs.with_columns(cost_usd=0.11 + 0.1 * pl.col("cost_usd") / pl.col("cost_usd").max())
    return with_labels(runs), runs


@pytest.fixture(scope="module")
def twelve_agents() -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    runs = simulate("paper", seed=5, n_rep=3, n_tasks=6, n_agents=12, n_tracks=2).frame()
    names = {f"agent-{number}": name for number, name in enumerate(LONG_NAMES, 1)}
    runs = runs.with_columns(pl.col("agent").replace_strict(names))
    return with_labels(runs), runs


@pytest.mark.parametrize("columns", ["two columns", "one column"])
@pytest.mark.parametrize("cohort", ["usual", "two_agents", "twelve_agents"])
@pytest.mark.parametrize("name", FIGURES)
def test_a_journal_can_print_it(
    name: str, cohort: str, columns: str, request: pytest.FixtureRequest
) -> None:
    """No text overlaps another, leaves the figure or is struck through; every scale has two
    labelled ticks; every mark is whole; the width is that of a column, and text has 6 pt."""
    if cohort == "usual":
        tables, runs = request.getfixturevalue("tables"), request.getfixturevalue("runs")
    else:
        tables, runs = request.getfixturevalue(cohort)
    with figure_style():
        try:
            figure = draw_on_sheet(name, tables, runs, narrow=columns == "one column").figure
        except NothingToDraw:
            assert cohort != "usual"
            assert name in ("agreement", "sensitivity", "code_effects"), "needs labels or effects"
            return
        assert faults(figure) == []
        assert smallest_text(figure) >= 6
        millimetres = 25.4 * figure.get_size_inches()[0]
    assert millimetres == pytest.approx(89 if columns == "one column" else 183)


def test_the_measures_see_every_fault() -> None:
    """What the test above rests on: a figure in which everything is wrong."""
    with figure_style():
        figure = MatplotlibFigure(figsize=(3, 2))
        ax = figure.add_axes((0.2, 0.2, 0.7, 0.7))
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_xticks([0.5])
        ax.plot([0, 1], [0.5, 0.5])
        ax.plot([1.0], [0.2], "o")
        ax.text(0.5, 0.5, "struck", va="center")
        ax.text(0.5, 0.55, "above", va="center")
        ax.text(0.9, 0.9, "out of the figure")
        said = "\n".join(faults(figure))
    for fault in (
        "'struck' overlaps 'above'",
        "'out of the figure' leaves the figure",
        "a line crosses 'struck'",
        "x of axes 0 has 1 labelled ticks",
        "is cut",
    ):
        assert fault in said


@given(st.floats(1e-4, 1e9), st.floats(1, 1e6))
def test_a_logarithmic_axis_has_labelled_ticks_for_every_range(low: float, ratio: float) -> None:
    ax = MatplotlibFigure().add_subplot()
    label_log_axis(ax, low, low * ratio)
    labels = [label.get_text() for label in ax.get_xticklabels()]
    left, right = ax.get_xlim()
    assert left < low <= low * ratio < right
    assert 2 <= len(labels) == len(set(labels)) <= 6
    assert all(left <= tick <= right for tick in ax.get_xticks())


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_data_give_the_same_bytes(name: str, figures, tables, runs) -> None:
    again = draw(name, tables, runs)
    assert (again.svg, again.png) == (figures[name].svg, figures[name].png)
    assert "dc:date" not in again.svg


def test_bytes_do_not_depend_on_the_process(tables, runs, tmp_path) -> None:
    runs_file, leaderboard_file = tmp_path / "runs.parquet", tmp_path / "leaderboard.parquet"
    runs.write_parquet(runs_file)
    tables["leaderboard"].write_parquet(leaderboard_file)
    code = """
import sys, hashlib, polars as pl
from ambjudge.analysis.figures import draw
runs, leaderboard = map(pl.read_parquet, sys.argv[1:])
figure = draw("leaderboard", {"leaderboard": leaderboard}, runs)
print(hashlib.sha256(figure.svg.encode() + figure.png).hexdigest())
"""
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code, str(runs_file), str(leaderboard_file)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed), "PATH": "/usr/bin"},
        ).stdout
        for seed in (1, 2)
    }
    assert len(hashes) == 1


def test_a_layout_is_rounded() -> None:
    """The solver's last digits differ from process to process, and would change the SVG's ids."""
    figure = MatplotlibFigure(layout="constrained")
    figure.add_subplot().set_ylabel("a label that takes room")
    figure.draw_without_rendering()
    solved = figure.axes[0].get_position().bounds
    fix_layout(figure)
    fixed = figure.axes[0].get_position().bounds
    assert fixed == pytest.approx(solved, abs=1e-3)
    assert fixed == pytest.approx([round(edge, LAYOUT_DIGITS) for edge in fixed], abs=1e-12)


@pytest.mark.parametrize("name", FIGURES)
def test_without_its_table_a_figure_says_so(name: str, runs) -> None:
    figure = draw(name, {}, runs)
    if figure.svg is None:
        assert "was not computed" in (figure.reason or "")
    else:
        assert name == "stage_profile", "only this one needs no table"


@pytest.mark.parametrize("name", FIGURES)
def test_a_table_that_could_not_be_computed_passes_its_reason_on(name: str, runs) -> None:
    failed = pl.DataFrame({"reason": ["the dog ate it"]})
    figure = draw(name, dict.fromkeys(TABLES.names, failed), runs)
    assert figure.svg is not None or figure.reason == "the dog ate it"


@pytest.mark.slow
def test_names_from_data_are_harmless(runs) -> None:
    hostile = runs.with_columns(
        agent=pl.when(pl.col("agent") == "agent-1").then(pl.lit(HOSTILE)).otherwise("agent"),
        track=pl.lit("a_b$\\frac{}") + pl.col("track"),
    )
    for figure in draw_all(all_tables(hostile), hostile, png=False):
        if figure.svg:
            assert "<script" not in figure.svg
            assert "\x1b" not in figure.svg
            assert "\u202e" not in figure.svg
            assert "<script" not in inline(figure.svg, HOSTILE)
            ET.fromstring(inline(figure.svg, figure.description).replace("xlink:href", "href"))


def test_inline_svg_takes_its_colours_from_the_page(figures) -> None:
    figure = figures["leaderboard"]
    text = inline(figure.svg, "what it shows")
    assert text.startswith('<svg role="img" aria-label="what it shows"')
    assert not re.search(r'style="[^"]*(' + "|".join(ROLES.values()) + ")", text)
    assert "var(--ink)" in text
    assert INK in figure.svg
    assert "<style" not in text
    assert not re.search(r'<svg[^>]* (width|height)="', text)
    assert "<?xml" not in text


def test_a_name_that_spells_a_colour_stays(runs) -> None:
    named = runs.with_columns(agent=pl.lit(INK) + pl.col("agent"))
    figure = draw("leaderboard", all_tables(named, only=["leaderboard"]), named)
    assert f">{INK}agent-1<" in inline(figure.svg, "")


def test_of_many_runs_a_sample_is_drawn(tables) -> None:
    many = simulate("paper", seed=1, n_rep=12).frame()
    figure = draw("cliff", all_tables(many, only=["cliff"]), many, png=False)
    assert "A dot stands for every" in figure.caption
    assert len(figure.svg) < 200_000


def test_write_puts_formats_and_widths_side_by_side(tables, runs, tmp_path) -> None:
    paths = write(
        [draw("code_rates", tables, runs, narrow=True, pdf=True), draw("agreement", {}, runs)],
        tmp_path,
    )
    endings = (".svg", ".pdf", ".png", "-89mm.svg", "-89mm.pdf")
    assert [path.name for path in paths] == [f"code_rates{ending}" for ending in endings]
    for ending, millimetres in ((".svg", 183), ("-89mm.svg", 89)):
        svg = (tmp_path / f"code_rates{ending}").read_text("utf-8")
        width = float(re.search(r'width="([\d.]+)pt"', svg)[1])
        assert width * 25.4 / 72 == pytest.approx(millimetres, abs=0.1)


def test_one_column_that_is_higher_than_a_page_is_not_written(tables, runs, tmp_path) -> None:
    figure = draw("cost_score", tables, runs, png=False, narrow=True)
    tall = re.sub(r'height="[\d.]+pt"', 'height="700pt"', figure.narrow, count=1)
    paths = write([replace(figure, narrow=tall)], tmp_path)
    assert [path.name for path in paths] == ["cost_score.svg"]


def test_a_pdf_holds_text_in_fonts_that_journals_take(tables, runs) -> None:
    pdf = draw("leaderboard", tables, runs, png=False, pdf=True).pdf
    assert b"/FontFile2" in pdf, "TrueType"
    assert b"/Subtype /Type3" not in pdf
    assert b"CreationDate" not in pdf


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["a", "b"], ["a", "b"], id="short"),
        pytest.param(
            ["abcd" + "x" * 30 + "1", "abcd" + "x" * 30 + "2"],
            ["abcdx…xxx1", "abcdx…xxx2"],
            id="alike at the start",
        ),
        pytest.param(
            ["x" * 20 + "1" + "x" * 20, "x" * 20 + "2" + "x" * 20],
            ["xxxxx… (1)", "xxxxx… (2)"],
            id="alike at both ends",
        ),
        pytest.param(["a" * 12, "a" * 12], ["aaaaa…aaaa"] * 2, id="the same"),
        pytest.param(["y" * 30, "b"], ["y" * 9 + "…", "b"], id="long"),
    ],
)
def test_labels_stay_distinct(names: list[str], expected: list[str]) -> None:
    assert distinct_labels(names, 10) == expected


@pytest.mark.parametrize(
    ("value", "digits", "is_rounded", "text"),
    [
        pytest.param(10.5, 1, False, "+10.5", id="as in the table"),
        pytest.param(10.54, 1, True, "+10.5", id="a zero within stays"),
        pytest.param(-0.34, 1, True, "−.3", id="a zero before the point goes"),
        pytest.param(-0.34, 2, False, "−0.34", id="unless there is room"),
        pytest.param(0.3, 0, True, "0", id="nothing but zero"),
    ],
)
def test_a_difference_keeps_its_size_in_a_narrow_cell(
    value: float, digits: int, is_rounded: bool, text: str
) -> None:
    form = ValueText(7, digits, is_rounded=is_rounded)
    assert form.write(value, significant=False) == text
    assert form.write(value, significant=True) == f"{text}*"
