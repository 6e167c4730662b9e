"""Figures of tables with and without data: texts, reasons, equal bytes, and safe names."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import polars as pl
import pytest
from ambjudge.analysis import TABLES, all_tables, simulate
from ambjudge.analysis.figures import FIGURES, Figure, draw, draw_all, write
from ambjudge.analysis.figures.rendering import LAYOUT_DIGITS, fix_layout, inline
from ambjudge.analysis.figures.style import INK, ROLES, distinct_labels
from ambjudge.analysis.statistics.corrected_means import corrected_leaderboard
from ambjudge.analysis.statistics.raters import AGREEMENT_SCHEMA, agreement_of
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


def test_write_puts_both_formats_side_by_side(tables, runs, tmp_path) -> None:
    paths = write(
        [
            draw("code_rates", tables, runs),
            draw("agreement", {}, runs),
        ],
        tmp_path,
    )
    assert [path.name for path in paths] == ["code_rates.svg", "code_rates.png"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["a", "b"], ["a", "b"], id="short"),
        pytest.param(
            ["x" * 30 + "1", "x" * 30 + "2"],
            ["…" + "x" * 8 + "1", "…" + "x" * 8 + "2"],
            id="alike at the start",
        ),
        pytest.param(["y" * 30, "b"], ["y" * 9 + "…", "b"], id="long"),
    ],
)
def test_labels_stay_distinct(names: list[str], expected: list[str]) -> None:
    assert distinct_labels(names, 10) == expected
