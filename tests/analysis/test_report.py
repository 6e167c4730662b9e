"""The report holds everything, fetches nothing, escapes every text, and renders in a real
browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from ambjudge.analysis import all_tables, simulate, wide
from ambjudge.analysis.figures import draw_all
from ambjudge.analysis.report.display import HEADINGS, ORDER, display
from ambjudge.analysis.report.findings import findings
from ambjudge.analysis.report.glossary import Glossary, terms_of
from ambjudge.analysis.report.html_report import MAX_ROWS, METHOD_HEADINGS, render, write_report
from ambjudge.analysis.report.report_outline import SECTIONS
from ambjudge.analysis.report.report_tables import TABLES
from ambjudge.analysis.report.results import Analysis, analyse
from ambjudge.analysis.tables.codes_read import CODES
from ambjudge.analysis.tables.number_format import number
from ambjudge.errors import InputError
from chromium import browse
from html_page import Page as HtmlPage

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
SCORES = [
    "overall",
    "agentic",
    "task_score",
    "S1",
    "S2",
    "S3",
    "S4",
    "S5",
    "S1_free",
    "S2_free",
    "S3_free",
]


class Page(HtmlPage):
    """The text is what stands outside scripts, styles and drawings."""

    def __init__(self, html: str) -> None:
        super().__init__(html, frozenset({"script", "style", "svg"}))


@pytest.fixture(scope="module")
def runs() -> pl.DataFrame:
    return simulate("paper", seed=5, n_rep=8, n_tasks=10, n_agents=3, n_tracks=2).frame()


@pytest.fixture(scope="module")
def found(runs) -> Analysis:
    return analyse(runs)


@pytest.fixture(scope="module")
def folder(found, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("report")
    write_report(found, out, title="Cohort <1> & friends")
    return out


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    return (folder / "report.html").read_text("utf-8")


def test_names_are_explained_where_they_first_stand(html: str) -> None:
    places = {
        name: html.index(f'href="#n-{name}"') for name in ("overall", "s1", "e3", "rv", "mde80")
    }
    assert max(places["overall"], places["s1"], places["e3"]) < html.index('class="findings"')
    for name in places:
        assert re.search(rf'<a class="name" href="#n-{name}"><abbr title="[^"]+">', html)
        assert re.search(rf'<dt id="n-{name}">[^<]+</dt><dd>[^<]+</dd>', html)
    assert '<abbr title="verification' in html


PLAIN_HEADINGS = {
    *("rank", "name", "agent", "estimate", "runs", "tasks", "turns", "notes"),
    *("time, s", "tokens in", "tokens out", "cost, $"),
}


@pytest.mark.parametrize("table", ["leaderboard", "pairwise", "code_effects", "compare"])
def test_every_heading_of_a_board_is_plain_or_explained(table: str) -> None:
    headings = {HEADINGS.get(name, name.replace("_", " ")) for name in ORDER[table]}
    explained = {term.name for term in terms_of([])}
    assert headings - PLAIN_HEADINGS - {"other", "code"} <= explained


def test_criteria_of_ones_own_rubric_are_explained_in_tables_alone() -> None:
    names = Glossary(terms_of(["mine"], {"mine": {"checked": "result looked at"}}))
    assert names.prose("it was checked") == "it was checked"
    assert "Criterion: result looked at" in names.beside(["checked"])


def test_runs_that_are_named_lead_to_where_they_lie() -> None:
    html = render(analyse(str(RECORDED.parent / "tui" / "cards.jsonl"), only=["clusters"]), [])
    page = Page(html)
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    runs = [link for _, attrs in page.tags if (link := attrs.get("href") or "").startswith("#r-")]
    assert runs
    assert {link[1:] for link in runs} <= ids
    assert re.search(r'<dt id="r-0">[^<]+</dt><dd>[^<]*turn[^<]*<br><code>[^<]+</code>', html)


def test_another_outcome_is_named_everywhere(runs: pl.DataFrame) -> None:
    told = runs.with_columns(pl.Series("outcome.passed", (runs["overall"] > 50).cast(pl.Float64)))
    found = analyse(
        told,
        outcome="outcome.passed",
        only=["leaderboard", "pairwise", "cliff", "code_effects", "cost"],
    )
    html = render(found, draw_all(found.tables, found.runs, found.outcome, png=False))
    assert "by passed (share of runs, 0–1)" in html
    assert "mean passed (share of runs, 0–1)" in html
    assert "Overall" not in re.sub(
        r"<abbr.*?</abbr>|<title>.*?</title>", "", html.split('<h2 id="methods"')[0]
    )
    assert {t["title"] for t in found.to_dict()["tables"].values()} >= {
        "Leaderboard by passed (share of runs, 0–1)"
    }


def page_of(runs: pl.DataFrame) -> tuple[str, Analysis]:
    found = analyse(runs)
    return render(found, draw_all(found.tables, found.runs, png=False)), found


def test_every_table_comes_in_three_formats_with_the_same_rows(folder: Path) -> None:
    data = json.loads((folder / "tables.json").read_text("utf-8"))
    assert data["schema"] == "ambjudge.analysis/1"
    for name, table in data["tables"].items():
        parquet = pl.read_parquet(folder / "tables" / f"{name}.parquet")
        csv = pl.read_csv(folder / "tables" / f"{name}.csv", infer_schema_length=0)
        assert parquet.columns == csv.columns == table["columns"]
        assert parquet.height == csv.height == len(table["rows"]), name
    assert (folder / "tables" / "runs.parquet").exists()


def test_figures_come_in_the_formats_and_widths_of_journals(folder: Path) -> None:
    files = {path.name for path in (folder / "figures").iterdir()}
    for name in ("leaderboard", "cliff", "stage_profile", "cost_score"):
        assert {f"{name}.svg", f"{name}.pdf", f"{name}.png"} <= files
    assert {"leaderboard-89mm.svg", "leaderboard-89mm.pdf"} <= files


def test_the_page_is_well_formed_and_titled(html: str) -> None:
    page = Page(html)
    assert (page.open, page.wrong) == ([], [])
    assert "Cohort <1> & friends" in page.text
    ids = [
        attrs["id"]
        for tag, attrs in page.tags
        if "id" in attrs and tag in ("h2", "p", "dt", "details", "section", "main")
    ]
    assert len(ids) == len(set(ids))
    for tag, attrs in page.tags:
        if tag == "a":
            assert attrs["href"].removeprefix("#") in ids


def test_the_page_fetches_nothing(html: str) -> None:
    page = Page(html)
    policy = next(
        attrs["content"]
        for tag, attrs in page.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert "connect-src" not in policy
    for tag, attrs in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base", "form")
        assert not any(name.startswith("on") for name in attrs), attrs
        for name in ("src", "href", "xlink:href"):
            assert (attrs.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    assert "url(http" not in html
    assert "@import" not in html


def test_every_number_says_what_it_is(html: str, found) -> None:
    text = Page(html).text
    for heading in METHOD_HEADINGS:
        assert heading in text
    for name, table in found.tables.items():
        assert f'id="m-{name}"' in html
        if {"estimand", "method"} <= set(table.columns):
            for estimand in table["estimand"].unique():
                assert estimand in text, (name, estimand)


def test_all_tables_have_a_place(runs) -> None:
    named = {item.name for section in SECTIONS for item in section.items if item.kind == "table"}
    assert named == set(TABLES.names)


def test_a_table_nobody_placed_is_shown_at_the_end(runs) -> None:
    found = analyse(runs, only=["cohort"])
    found.tables["extra"] = pl.DataFrame({"colour": ["mauve"]})
    assert "mauve" in Page(render(found, [])).text


def test_findings_name_the_leader_and_the_lowest_stage(found) -> None:
    lines = [finding.text for finding in findings(found.tables)]
    board = (
        found.tables["leaderboard"].filter(scope="overall", rank=1, population="new").to_dicts()[0]
    )
    assert lines[0].startswith("Nobody has checked this judge")
    assert lines[1].startswith(
        f"{board['agent']} has the highest mean Overall (0–100) {number(board['value'])} ["
    )
    assert any(line.startswith("Of the stages S3 (") for line in lines)
    assert any("not causes" in line or "no effect of a code is claimed" in line for line in lines)


def test_findings_without_support_are_not_written() -> None:
    """Users' and reviewers' cases: ties, one run, nothing found, everything equal."""
    runs = simulate(seed=2, n_tasks=6, n_rep=3).frame()
    said = {
        "one run": findings(all_tables(runs.head(1))),
        "equal": findings(all_tables(runs.with_columns(overall=pl.lit(50.0)))),
        "zero": findings(
            all_tables(runs.with_columns(overall=pl.lit(0.0), disqualified=pl.lit(True)))
        ),
        "three": findings(all_tables(runs.head(3))),
    }
    whole = " ".join(line.text for lines in said.values() for line in lines)
    assert "1 runs" not in whole
    assert "leads" not in whole
    assert not any("differ" in line.text or "lowest" in line.text for line in said["three"])
    assert "share the highest mean" in said["equal"][1].text
    assert "[50.0, 50.0]" not in whole


@pytest.mark.slow
def test_the_same_runs_give_the_same_page(runs, html: str) -> None:
    found = analyse(runs)
    again = render(
        found, draw_all(found.tables, found.runs, png=False, narrow=True), "Cohort <1> & friends"
    )
    assert again == html
    assert str(Path.cwd()) not in html


def _blank(runs: pl.DataFrame) -> pl.DataFrame:
    return runs.with_columns(
        pl.lit(None, dtype=kind).alias(name)
        for name, kind in runs.schema.items()
        if name != "run_id"
    )


DEGENERATE = {
    "one run": lambda runs: runs.head(1),
    "one agent": lambda runs: runs.filter(pl.col("agent") == "agent-1"),
    "one task": lambda runs: runs.filter(pl.col("task") == runs["task"][0]),
    "no codes": lambda runs: runs.with_columns(
        pl.lit(False).alias(c) for c in runs.columns if re.match(r"E\d", c)
    ),
    "every code": lambda runs: runs.with_columns(pl.lit(True).alias(c) for c in CODES),
    "all nulls": _blank,
    "no scores": lambda runs: runs.with_columns(
        pl.lit(None, dtype=pl.Float64).alias(c) for c in SCORES
    ),
    "constant score": lambda runs: runs.with_columns(overall=pl.lit(50.0)),
    "NaN score": lambda runs: runs.with_columns(overall=pl.lit(float("nan"))),
    "all disqualified": lambda runs: runs.with_columns(disqualified=pl.lit(True)),
    "infinite cost": lambda runs: runs.with_columns(cost_usd=pl.lit(float("inf"))),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "case",
    [
        c if c in ("no codes", "infinite cost") else pytest.param(c, marks=pytest.mark.slow)
        for c in DEGENERATE
    ],
)
def test_odd_cohorts_give_a_page_with_reasons(case: str) -> None:
    small = simulate("paper", seed=2, n_rep=2, n_tasks=4, n_agents=2, n_tracks=2).frame()
    html, found = page_of(DEGENERATE[case](small))
    page = Page(html)
    assert (page.open, page.wrong) == ([], [])
    assert not re.search(r"\b(nan|NaN|inf|None|Traceback)\b", page.text)
    assert not re.search(r'data-n="(nan|inf|-inf)"', html)
    json.dumps(found.to_dict(), allow_nan=False)


def test_an_empty_cohort_is_an_error_that_says_what_to_do(runs) -> None:
    with pytest.raises(InputError, match="no run to analyse"):
        analyse(runs.head(0))


HOSTILE = '</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e" onload="x'


def test_texts_from_data_stay_texts(runs) -> None:
    bad = runs.with_columns(
        agent=pl.when(pl.col("agent") == "agent-1").then(pl.lit(HOSTILE)).otherwise("agent"),
        task=pl.lit(HOSTILE) + pl.col("task"),
        track=pl.lit(HOSTILE) + pl.col("track"),
        judge=pl.lit(HOSTILE),
    )
    html, _ = page_of(bad)
    page = Page(html)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "img" not in [tag for tag, _ in page.tags]
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert (page.open, page.wrong) == ([], [])


def test_long_tables_are_cut_on_the_page_and_whole_in_the_files(runs, tmp_path) -> None:
    many = pl.concat(
        [
            runs.with_columns(agent=pl.lit(f"a{i:02d}"), run_id=f"{i}-" + pl.col("run_id"))
            for i in range(45)
        ]
    )
    found = analyse(many, only=["leaderboard", "cohort"])
    html = render(found, [])
    assert "more rows are in tables/leaderboard.csv" in html
    assert html.count("<tr>") < 2 * MAX_ROWS + 400


def test_a_folder_that_cannot_be_written_is_named(runs, tmp_path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        write_report(analyse(runs, only=["cohort"]), tmp_path / "file", png=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "–"),
        (0.12345, "0.123"),
        (1.239, "1.24"),
        (65.94, "65.9"),
        (-0.0001, "0.000"),
        (-28.13, "−28.1"),
        (1234567.0, "1,234,567"),
    ],
    ids=str,
)
def test_numbers_are_rounded_to_what_they_bear(value, expected) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(("name", "subjects"), [("code_effects", len(CODES)), ("pairwise", 3)])
def test_both_populations_stand_on_one_row_even_when_p_differs(
    name: str, subjects: int, found
) -> None:
    table = found.tables[name].with_columns(p_holm=pl.int_range(pl.len()) / 100)
    assert wide(table).height == subjects
    shown = display(table, name)
    assert {"interval", "same_interval", "p_holm"} <= set(shown.columns)


@pytest.mark.parametrize(("scheme", "light"), [("light", True), ("dark", False)])
def test_it_renders_in_a_browser(scheme: str, light: bool, folder: Path, tmp_path: Path) -> None:
    from PIL import Image

    shot = tmp_path / "page.png"
    browse(
        folder / "report.html",
        tmp_path,
        f"--screenshot={shot}",
        f"--blink-settings=preferredColorScheme={int(light)}",
    )
    image = Image.open(shot).convert("RGB")
    ground = image.getpixel((3, 3))
    assert (min(ground) > 240) if light else (max(ground) < 40)
    red, green, blue = np.moveaxis(np.asarray(image.crop((300, 300, 1300, 1600)), dtype=int), -1, 0)
    blues = ((blue > red + 60) & (blue > green + 15)).sum()
    assert blues > 2000, "the leaderboard's marks must be visible"


def test_the_script_runs_under_the_policy(folder: Path, tmp_path: Path) -> None:
    """Headings become buttons only when the script was allowed to run; sorting is then a click."""
    page = folder / "report.html"
    clicking = page.with_name("clicked.html")
    text = page.read_text("utf-8")
    policy_free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    click = (
        "<script>for (const b of document.querySelectorAll('h3 + p + div th button')) { b.click();"
        " b.click(); }</script></body>"
    )
    clicking.write_text(policy_free.replace("</body>", click), "utf-8")
    assert '<th scope="col"><button' in browse(page, tmp_path, "--dump-dom")
    dom = browse(clicking, tmp_path, "--dump-dom")
    assert 'aria-sort="descending"' in dom
