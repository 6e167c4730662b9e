"""The site: whole runs and their verdicts on pages that fetch nothing and escape everything, also
in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from ambjudge import library
from ambjudge.analysis import frame, write_frame
from ambjudge.analysis.report.html_report import render
from ambjudge.analysis.report.results import analyse
from ambjudge.cli import run
from ambjudge.errors import InputError
from ambjudge.judge.card.scorecard import ScoreCard
from ambjudge.judge.engine import make_scorecard
from ambjudge.sanitize import replaced
from ambjudge.trajectories.record.quotes import Evidence
from ambjudge.web.marked_text import Mark, disjoint, marked, room_for_each, weight
from ambjudge.web.site import DATA, FIELDS, MAX_BYTES, Site, row_values
from ambjudge.web.site_links import links_to_site
from chromium import browse
from filter_cases import FINDS, MARKED, REFUSES, ROWS
from html_page import Page as HtmlPage
from tiny_runs import say, submit, write_run

TESTS = Path(__file__).parents[1]
CARDS = TESTS / "data" / "tui" / "cards.jsonl"
NASTY = '"><script>alert(1)</script>\x1b[2J\u202e</pre>{{ 7*7 }}\ud800'


class Page(HtmlPage):
    """The words of each mark, ids and links beside tags and all words."""

    def __init__(self, path: Path) -> None:
        self.marks: list[str] = []
        super().__init__(path.read_text("utf-8"))
        self.ids = [attrs["id"] for _, attrs in self.tags if "id" in attrs]

    @property
    def text(self) -> str:
        return " ".join(super().text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag == "mark":
            self.marks.append("")

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if "mark" in self.open:
            self.marks[-1] += data

    @property
    def links(self) -> list[str]:
        return [
            value
            for _, attrs in self.tags
            for name in ("href", "src")
            if (value := attrs.get(name))
        ]


def data_of(site: Path) -> dict[str, list]:
    text = (site / DATA).read_text("utf-8")
    rows = json.loads(text[text.index("rows: ") + 6 : text.rindex(", rubrics:")])
    return {row[FIELDS.index("id")]: row for row in rows}


def cards() -> dict[str, ScoreCard]:
    found = [ScoreCard.model_validate_json(line) for line in CARDS.read_text("utf-8").splitlines()]
    return {card.run.id: card for card in found}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("made") / "site"
    assert (
        run(
            [
                "-q",
                "site",
                str(CARDS),
                "--runs",
                str(TESTS / "data" / "recorded"),
                "--out",
                str(out),
                "--title",
                "Runs <of> May",
                "--no-report",
            ]
        )
        == 0
    )
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A run whose every text is hostile, a huge output, and a scorecard that quotes from the middle
    of it."""
    folder = tmp_path_factory.mktemp("hostile")
    noise = "".join(f"<b>{n}</b> {NASTY}\n" for n in range(12_000))
    huge = noise[: len(noise) // 2] + "NEEDLE in <hay>\n" + noise[len(noise) // 2 :]
    write_run(
        folder / "run",
        [say(NASTY, f"print('{NASTY}')", huge, 1), submit()],
        plan=f"# {NASTY[:-1]}",
        task=NASTY,
    )
    from ambjudge.trajectories.reading.load import load_run

    made = make_scorecard(load_run(folder / "run"))
    stage = made.stages["S1"]
    found = Evidence(turn=1, quote="NEEDLE in <hay>", check="verified")
    first = stage.criteria[0].model_copy(update={"rationale": NASTY * 9_000, "evidence": (found,)})
    stages = {
        **made.stages,
        "S1": stage.model_copy(update={"criteria": (first, *stage.criteria[1:])}),
    }
    info = made.run.model_copy(update={"id": f"../../{NASTY}", "agent": NASTY, "model": "con"})
    made = made.model_copy(update={"stages": stages, "run": info, "warnings": (NASTY,)})
    site = Site(folder / "site", title=NASTY)
    site.add(made)
    site.add(made)
    site.finish()
    return folder / "site"


def test_every_page_is_whole_and_leads_only_into_the_site(site: Path, hostile: Path) -> None:
    for folder in (site, hostile):
        pages = {path: Page(path) for path in folder.rglob("*.html") if path.name != "report.html"}
        for path, page in pages.items():
            assert (page.open, page.wrong) == ([], []), path
            assert len(page.ids) == len(set(page.ids)), path
            assert path.stat().st_size <= MAX_BYTES
            policy = next(
                a["content"]
                for _, a in page.tags
                if a.get("http-equiv") == "Content-Security-Policy"
            )
            assert policy.startswith("default-src 'self';")
            assert "unsafe" not in policy
            assert not any(
                name == "style" or name.startswith("on") for _, attrs in page.tags for name in attrs
            )
            assert all(attrs.get("src") for tag, attrs in page.tags if tag == "script")
            assert not any(tag == "style" for tag, _ in page.tags)
            assert not replaced(path.read_text("utf-8"))
            for link in page.links:
                where, _, anchor = link.partition("#")
                target = (path.parent / unquote(where)).resolve() if where else path
                assert target.is_relative_to(folder.resolve()), link
                assert target.is_file(), link
                assert (
                    not anchor
                    or target not in pages
                    or where.endswith("index.html")
                    or anchor in pages[target].ids
                )


def test_a_page_shows_the_run_its_verdicts_and_the_quotes_at_their_place(site: Path) -> None:
    for id, card in cards().items():
        row = data_of(site)[id]
        page = Page(site / "pages" / f"{row[FIELDS.index('page')]}.html")
        results = [result for stage in card.stages.values() for result in stage.criteria]
        assert all(result.id in page.text for result in results)
        assert all(" ".join(code.why.split()) in page.text for code in card.codes)
        assert {f"t{n}" for n in range(1, card.run.turns + 1)} <= set(page.ids)
        assert row[FIELDS.index("overall")] == pytest.approx(card.overall)
        quotes = {e.quote for result in results for e in result.evidence if e.check == "verified"}
        marks = " ".join(" ".join(page.marks).split())
        shown = sum(" ".join(quote.split()) in marks for quote in quotes)
        assert shown >= 0.8 * len(quotes), (id, shown, len(quotes))
    kidney = Page(site / "pages" / f"{data_of(site)['kidney-lite-02'][0]}.html").text
    assert "kits_organ_lesion.pt" in kidney
    assert "Delivered files" in kidney


def test_facts_that_a_code_rests_on_stand_in_the_scorecard_and_on_its_page(tmp_path: Path) -> None:
    folder = TESTS / "data" / "recorded" / "runs" / "kidney-lite-02"
    code = {
        "turns": [5],
        "quote": {"turn": 5, "quote": "Traceback"},
        "facts": ["F1", "F999"],
        "why": "It crashed.",
        "verdict": "present",
        "confidence": 0.9,
    }
    (tmp_path / "kidney-lite-02.json").write_text(json.dumps({"diagnosis": {"E4": code}}), "utf-8")
    card = library.score(folder, f"replay:{tmp_path}")
    decided = {"plan.md came with the run."}
    (fact,) = [
        fact
        for fact in card.facts
        if fact.text not in decided and "executions failed" not in fact.text
    ]
    assert fact.id == "F1"
    assert ScoreCard.model_validate_json(card.to_json()).to_json() == card.to_json()
    site = Site(tmp_path / "site")  # without its transcript too
    site.add(card)
    page = Page(next((tmp_path / "site" / "pages").iterdir()))
    assert "F1" in page.ids
    assert "#F1" in page.links
    assert " ".join(fact.text.split()) in page.text


def test_the_report_leads_to_the_runs(tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    for card in cards().values():
        site.add(card)
    found = analyse(str(CARDS), only=["clusters", "checks", "codes", "codes_read", "stages"])
    site.finish(render(found, [], links=site.links))
    links = Page(tmp_path / "site" / "report.html").links
    assert "index.html" in links
    runs = [link for link in links if link.startswith("pages/")]
    assert len(set(runs)) > 5
    assert all((tmp_path / "site" / link.partition("#")[0]).is_file() for link in runs)
    assert any(link.startswith("index.html#") for link in links)
    assert 'href="report.html"' in (tmp_path / "site" / "index.html").read_text("utf-8")


def test_hostile_texts_stay_texts(hostile: Path) -> None:
    names = {path.name for path in (hostile / "pages").iterdir()}
    assert len(names) == 2
    assert all(re.fullmatch(r"[a-z0-9-]+\.html", name) for name in names)
    for path in hostile.rglob("*.html"):
        text = path.read_text("utf-8")
        assert "<script>alert" not in text
        assert "49" not in re.findall(r"alert\(1\).{0,40}", text)
    page = Page(next((hostile / "pages").iterdir()))
    assert "NEEDLE in <hay>" in page.marks
    assert "characters left out" in page.text
    assert "more characters" in page.text
    assert "alert" not in (hostile / DATA).read_text("utf-8").partition("rows:")[0]


def test_a_run_that_changed_since_is_not_shown(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [say("First words.", "print(1)", "1"), submit()])
    from ambjudge.trajectories.reading.load import load_run

    made = make_scorecard(load_run(tmp_path / "run"))
    conversation = tmp_path / "run" / "process" / "conversation.json"
    conversation.write_text(conversation.read_text().replace("First words", "Other words"))
    site = Site(tmp_path / "site")
    site.add(made)
    site.finish()
    text = Page(next((tmp_path / "site" / "pages").iterdir())).text
    assert "has changed since" in text
    assert "Other words" not in text


def test_written_anew_it_holds_the_present_runs_and_never_takes_a_foreign_folder(
    tmp_path: Path, capsys
) -> None:
    some = CARDS.read_text("utf-8").splitlines()
    few = tmp_path / "few.jsonl"
    for lines, count in ((some[:3], 3), (some[1:3], 2)):
        few.write_text("\n".join([*lines, "no card"]), "utf-8")
        assert run(["-q", "site", str(few), "--out", str(tmp_path / "out"), "--no-report"]) == 1
        assert (
            len(list((tmp_path / "out" / "pages").iterdir()))
            == count
            == len(data_of(tmp_path / "out"))
        )
        assert "1 input could not be read" in Page(tmp_path / "out" / "index.html").text
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        "index.html",
        "compare.html",
        "site.css",
        "site.js",
    }
    assert not list((tmp_path / "out").rglob(".*"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    assert run(["-q", "site", str(few), "--out", str(tmp_path / "mine")]) == 2
    assert "holds other files" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_long_text_is_cut_around_its_quotes() -> None:
    text = "<" * 10_000 + "quoted words" + ">" * 10_000
    marks, covered = disjoint(
        [Mark(10_005, 10_020, "q1"), Mark(10_000, 10_012, "q0"), Mark(10_003, 10_009, "q2")]
    )
    assert covered == {"q2": "q0"}
    cut = marked(text, marks, 4_000)
    assert '<mark id="q0">quoted words</mark><mark id="q1">&gt;' in cut
    left_out = [int(n.replace(",", "")) for n in re.findall(r"… ([\d,]+) characters left out", cut)]
    kept = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r'<span class="cut">.*?</span>', "", cut)))
    assert len(kept) + sum(left_out) == len(text)
    assert len(left_out) == 2
    assert marked("a < b", [], 100) == "a &lt; b"
    assert room_for_each([10, 20, 1000], 130) == 100
    assert weight("<é") == 7


DRIVER = """
const report = {};
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const load = (address) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.width = 1200; frame.height = 900;
  frame.onload = () => done(frame.contentWindow);
  frame.src = address;
  document.body.append(frame);
});
const press = (win, ...keys) => keys.forEach((key) =>
  win.document.body.dispatchEvent(new win.KeyboardEvent("keydown", { key: key, bubbles: true, cancelable: true })));
const outside = (win) => win.performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith("file:"));
(async () => {
  const rows = CASES.rows.map((values, number) => Object.fromEntries([["number", number], ...CASES.fields.map((f, i) => [f, values[i]])]));
  rows.forEach((row) => { row.groups = new Map(Object.entries(row.groups)); });
  report.finds = CASES.finds.map((query) => rows.filter(runFilter(query, new Set(CASES.marked))).map((row) => row.number));
  report.refuses = CASES.refuses.map((query) => { try { runFilter(query); return ""; } catch (error) { return error.message; } });
  const table = await load("index.html#code%3AE3");
  const names = () => Array.from(table.document.querySelectorAll("#runs td.name a"), (a) => a.textContent);
  report.filtered = names();
  const filter = table.document.getElementById("filter");
  const type = async (text) => { filter.value = text; filter.dispatchEvent(new table.Event("input")); await wait(200); };
  await type("nonsense:1");
  report.problem = table.document.getElementById("count").textContent;
  await type("");
  report.all = names();
  Array.from(table.document.querySelectorAll("#runs th button")).find((b) => b.textContent === "Overall").click();
  report.sorted = names();
  press(table, "j", " ", " ", "?");
  report.help = table.document.getElementById("help").open;
  report.compare = table.document.getElementById("compare").getAttribute("href");
  table.document.getElementById("help").close();
  press(table, "/");
  report.focus = table.document.activeElement.id;
  const page = await load("pages/" + CASES.page + ".html");
  press(page, "e");
  await wait(50);
  report.quote = page.document.querySelector("mark.now").textContent;
  report.seen = page.document.querySelector("mark.now").checkVisibility();
  press(page, "o");
  report.open = page.document.querySelectorAll("details.turn:not([open])").length;
  press(page, "j", "Enter");
  report.folded = page.document.querySelectorAll("details.turn:not([open])").length;
  press(page, "4");
  report.stage = page.document.querySelector("details.here").className;
  const two = await load(report.compare);
  report.two = Array.from(two.document.querySelectorAll("thead a"), (a) => a.textContent);
  report.lines = Array.from(two.document.querySelectorAll("tbody tr"), (tr) => Array.from(tr.cells, (td) => td.textContent));
  report.frames = Array.from(two.document.querySelectorAll("iframe"), (f) => f.src.split("/").pop());
  const wrong = await load("compare.html?a=javascript:alert(1)&b=../../etc");
  report.wrong = Array.from(wrong.document.querySelectorAll("iframe"), (f) => f.getAttribute("src"));
  report.outside = [table, page, two, wrong].flatMap(outside);
  report.wide = [table, page, two].map((win) => win.document.documentElement.scrollWidth - win.innerWidth);
  document.getElementById("report").textContent = JSON.stringify(report);
})();
"""


def test_in_a_browser(site: Path, tmp_path: Path) -> None:
    """The filter finds what the browser in the terminal finds; keys, quotes, comparison; nothing
    leaves, nothing complains."""
    here = tmp_path / "site"
    shutil.copytree(site, here)
    known = data_of(site)
    cases = {
        "fields": FIELDS,
        "rows": [row_values(row, "p") for row in ROWS],
        "marked": sorted(MARKED),
        "page": known["kidney-lite-02"][0],
        "finds": [query for query, _ in FINDS],
        "refuses": [query for query, _ in REFUSES],
    }
    (here / "drive.js").write_text(f"const CASES = {json.dumps(cases)};\n{DRIVER}", "utf-8")
    (here / "drive.html").write_text(
        '<!DOCTYPE html><meta charset="utf-8"><script src="run_filter.js"></script><body><pre'
        ' id="report"></pre><script src="drive.js"></script>'
    )
    dom = browse(
        here / "drive.html",
        tmp_path,
        "--allow-file-access-from-files",
        "--virtual-time-budget=20000",
        "--dump-dom",
    )
    found = re.search(r'<pre id="report">(.+?)</pre>', dom, re.DOTALL)
    assert found, dom[:2000]
    said = json.loads(html.unescape(found.group(1)))
    assert said["finds"] == [numbers for _, numbers in FINDS]
    assert all(said["refuses"]), said["refuses"]
    scorecards = cards()
    assert set(said["filtered"]) == {
        id for id, card in scorecards.items() if any(c.code == "E3" for c in card.codes)
    }
    assert said["problem"].startswith("no facet nonsense:")
    assert set(said["all"]) == set(scorecards)
    assert [scorecards[id].overall for id in said["sorted"]] == sorted(
        card.overall for card in scorecards.values()
    )
    assert (said["help"], said["focus"]) == (True, "filter")
    first = next(
        e
        for s in scorecards["kidney-lite-02"].stages.values()
        for c in s.criteria
        for e in c.evidence
        if e.turn == 1
    )
    assert said["quote"] == first.quote
    assert said["seen"]
    assert (said["open"], said["folded"]) == (0, 1)
    assert " s4" in said["stage"]
    assert said["two"] == said["sorted"][:2]
    assert said["lines"][0][:3] == [
        "Overall",
        *(f"{scorecards[id].overall:.1f}" for id in said["two"]),
    ]
    assert said["frames"] == [f"{known[id][0]}.html" for id in said["two"]]
    assert said["wrong"] == [None, None]
    assert said["outside"] == []
    assert said["wide"] == [0, 0, 0]


def test_hostile_pages_run_nothing(hostile: Path, tmp_path: Path) -> None:
    page = next((hostile / "pages").iterdir())
    dom = browse(page, tmp_path, "--virtual-time-budget=3000", "--dump-dom")
    assert "alert(1)&lt;/script&gt;" in dom


def test_a_report_elsewhere_leads_to_the_pages_of_a_site(site: Path, tmp_path: Path) -> None:
    found = analyse(str(CARDS), only=["clusters"])
    pages = links_to_site(site, tmp_path)
    (tmp_path / "report.html").write_text(render(found, [], links=pages), "utf-8")
    links = [
        link.partition("#")[0] for link in Page(tmp_path / "report.html").links if "pages/" in link
    ]
    assert links
    assert all((tmp_path / unquote(link)).resolve().is_file() for link in links)
    with pytest.raises(InputError, match="is not a site"):
        links_to_site(tmp_path, tmp_path)


def test_runs_of_a_frame_have_rows_and_no_pages(tmp_path: Path) -> None:
    table = frame(str(CARDS))
    write_frame(table, tmp_path / "runs.parquet")
    assert (
        run(
            [
                "-q",
                "site",
                str(tmp_path / "runs.parquet"),
                "--out",
                str(tmp_path / "site"),
                "--no-report",
            ]
        )
        == 0
    )
    rows = data_of(tmp_path / "site")
    assert len(rows) == table.height
    first = cards()[next(id for id in rows if id in cards())]
    row = dict(zip(FIELDS, rows[first.run.id], strict=False))
    assert (row["page"], row["agent"], row["stages"][3]) == (
        "",
        first.run.agent,
        first.stages["S4"].score,
    )
    assert set(row["codes"]) == {code.code for code in first.codes if code.taxonomy == "paper"}
    assert list((tmp_path / "site" / "pages").iterdir()) == []
    assert "came as numbers in a table" in Page(tmp_path / "site" / "index.html").text
