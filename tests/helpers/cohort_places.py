"""The numbers of a cohort, read from every place that shows them, in one shape.

A place is a function that reads `Numbers` from one output: text of a terminal, JSON, a page, a
file, the browser's rows, Python. `assert_same_numbers` reads all places and compares them with one
another, each as exactly as it shows its numbers. A new place is a function more in `PLACES`.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import ambjudge
import polars as pl
from ambjudge.cli import run
from ambjudge.commands.browse import collect
from ambjudge.config import load
from ambjudge.judge.card.choice import CardChoice, RubricName
from ambjudge.rounding import fixed
from ambjudge.views.run_query import RunQuery
from html_page import Page

Cell = float | int | bool | str | None
"""A number as exact as it is known, or the text that stands for it; None where nothing is known."""
Row = dict[str, Cell]
STAGES = ("S1", "S2", "S3", "S4", "S5")
SCORES = (*STAGES, "agentic", "task_score", "overall")
BESIDE = ("agentic", "task_score", *STAGES, "failed", "cost_usd", "turns", "wall_time_s")
"""Means of agents that stand beside Overall on a board."""
_NONE = ("–", "", "None")


@dataclass(frozen=True)
class Numbers:
    """What a place shows. A field that a place does not show is missing in its rows."""

    runs: dict[str, Row] | None = None
    """By the run's id; None if the place shows no single runs."""
    agents: dict[str, Row] | None = None
    """By agent; None if the place shows no means."""
    n_runs: int | None = None
    """Runs in all, where the place says so."""


@dataclass(frozen=True)
class Desk:
    """Where a user sits: a folder of runs, and the flags that every command is given."""

    runs: Path
    scratch: Path
    judge: str | None = None
    rubric: str | None = None
    where: str | None = None
    store: Path | None = None
    rubrics: Sequence[Path] = ()
    """Own ones, which `verify` is given."""
    outputs: dict[str, Any] = field(default_factory=dict)
    """What commands printed for several places."""

    @property
    def flags(self) -> list[str]:
        """The flags that choose scorecards."""
        chosen = {
            "--judged-by": self.judge,
            "--rubric": self.rubric,
            "--where": self.where,
            "--store": self.store,
        }
        return [str(part) for pair in chosen.items() if pair[1] is not None for part in pair]

    @property
    def arguments(self) -> dict[str, Any]:
        """The same for functions in Python."""
        names = {"judged_by": self.judge, "rubric": self.rubric, "run_filter": self.where}
        return {**names, "store": self.store}

    def call(self, *args: str | Path, code: Iterable[int] = (0,)) -> tuple[str, str]:
        """Run a command line in this process; stdout and stderr."""
        stdout = io.TextIOWrapper(io.BytesIO(), "utf-8")
        stderr = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            exit_code = run([str(arg) for arg in args])
        texts = []
        for stream in (stdout, stderr):
            stream.seek(0)
            texts.append(stream.read())
        line = f"ambjudge {' '.join(map(str, args))}: exit {exit_code}: {texts[1]}"
        assert exit_code in code, line
        assert "internal error" not in texts[1], line
        return texts[0], texts[1]

    def read(self, command: str, *more: str | Path) -> str:
        """What a command that reads scorecards prints about these runs; run once."""
        key = " ".join(map(str, (command, *more)))
        if key not in self.outputs:
            self.outputs[key] = self.call(*command.split(), self.runs, *self.flags, *more)
        return self.outputs[key][0]

    def notes(self, command: str, *more: str | Path) -> str:
        """What the command said on stderr."""
        self.read(command, *more)
        return self.outputs[" ".join(map(str, (command, *more)))][1]

    def folder(self, name: str) -> Path:
        """An empty folder for what a command writes."""
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        return path

    @cached_property
    def choice(self) -> CardChoice:
        rubrics = () if self.rubric is None else (RubricName.parse(self.rubric),)
        return CardChoice(self.judge, rubrics)

    @cached_property
    def cohort(self) -> ambjudge.analysis.Cohort:
        """The runs that count, by Python."""
        from ambjudge.analysis.tables.card_sources import CardReading

        reading = None if self.store is None else CardReading(store_of=lambda _: self.store)
        return ambjudge.analysis.cohort(self.runs, reading, self.choice, self.query)

    @cached_property
    def query(self) -> RunQuery | None:
        return None if self.where is None else RunQuery(self.where, [self.runs])


# Places with a row for each run


def _frame_rows(frame: pl.DataFrame) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for row in frame.to_dicts():
        codes = " ".join(code for code in ("E1", "E2", "E3", "E4", "E5") if row[code])
        numbers = {name: row[name] for name in SCORES}
        rubric = f"{row['rubric']} {row['rubric_version']}"
        about = {"judge": row["judge"], "rubric": rubric, "agent": row["agent"]}
        assert row["run_id"] not in rows, f"{row['run_id']} counts twice"
        numbers["contradictions"] = row["contradictions"]
        rows[row["run_id"]] = {**about, **numbers, "codes": codes}
    return rows


def python_cohort(desk: Desk) -> Numbers:
    """`ambjudge.analysis.cohort`."""
    return Numbers(_frame_rows(desk.cohort.runs))


def python_frame(desk: Desk) -> Numbers:
    """`ambjudge.analysis.frame`, which takes no choice."""
    if desk.flags:
        return Numbers()
    return Numbers(_frame_rows(ambjudge.analysis.frame(desk.runs)))


def python_analyze(desk: Desk) -> Numbers:
    """`ambjudge.analyze`."""
    analysis = ambjudge.analyze(desk.runs, only=["leaderboard"], **desk.arguments)
    board = analysis["leaderboard"].to_dicts()
    return Numbers(_frame_rows(analysis.runs), _board_rows(board), analysis.runs.height)


def python_leaderboard(desk: Desk) -> Numbers:
    """`ambjudge.leaderboard`."""
    board = ambjudge.leaderboard(desk.runs, **desk.arguments)
    return Numbers(agents=_board_rows(board.table.to_dicts()), n_runs=board.basis["runs"])


def export_jsonl(desk: Desk) -> Numbers:
    """`export`, JSON Lines on stdout."""
    lines = desk.read("export").splitlines()
    rows = [json.loads(line) for line in lines]
    return Numbers(_frame_rows(pl.DataFrame(rows, infer_schema_length=None)), n_runs=len(rows))


def export_csv(desk: Desk) -> Numbers:
    file = desk.scratch / "runs.csv"
    desk.read("export", "--out", file)
    return Numbers(_frame_rows(ambjudge.analysis.read_frame(file)))


def export_parquet(desk: Desk) -> Numbers:
    file = desk.scratch / "runs.parquet"
    desk.read("export", "--out", file)
    return Numbers(_frame_rows(pl.read_parquet(file)))


def export_scorecards(desk: Desk) -> Numbers:
    """`export --what scorecards`; `verify` must agree with each."""
    file = desk.scratch / "scorecards.jsonl"
    desk.read("export", "--what", "scorecards", "--out", file)
    cards = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    if cards:
        rubrics = [str(part) for path in desk.rubrics for part in ("--rubric", path)]
        text, err = desk.call("verify", file, *rubrics, code=(0, 1))
        assert f"{len(cards)} of {len(cards)} scorecards add up" in err, text
    rows: dict[str, Row] = {}
    for card in cards:
        stages = {name: card["stages"].get(name, {"score": None})["score"] for name in STAGES}
        codes = {code["code"] for code in card["codes"] if code["taxonomy"] == "paper"}
        rows[card["run"]["id"]] = {
            "judge": card["judge"]["name"],
            "rubric": f"{card['rubric']['id']} {card['rubric']['version']}",
            "agent": card["run"]["agent"],
            **stages,
            "agentic": card["agentic"],
            "task_score": card["task"],
            "overall": card["overall"],
            "codes": " ".join(sorted(codes)),
            "contradictions": len(card["contradictions"]),
        }
    return Numbers(rows)


def browser(desk: Desk) -> Numbers:
    """The rows of the terminal browser."""
    settings = load(None)
    flags = {"judge": desk.judge, "rubric": desk.rubric, "store": desk.store}
    collection = collect(desk.runs, settings, flags)
    rows: dict[str, Row] = {}
    try:
        for batch in collection.batches():
            for row in batch:
                is_chosen = desk.query is None or desk.query.accepts_row(row)
                if row.state != "scored" or not is_chosen:
                    continue
                rows[row.id] = _run_row(row._asdict())
    finally:
        collection.close()
    return Numbers(rows)


def site_rows(desk: Desk) -> Numbers:
    """The rows of a site's table, and a page for each."""
    folder = _site(desk)
    text = (folder / "runs.js").read_text("utf-8")
    fields = json.loads(re.search(r"fields: (\[.*?\])", text)[1])
    rows: dict[str, Row] = {}
    for line in re.findall(r"^(\[.*\]),?$", text, re.MULTILINE):
        row = dict(zip(fields, json.loads(line), strict=False))
        assert row["id"] not in rows, f"{row['id']} counts twice"
        rows[row["id"]] = _run_row(row)
        page = (folder / "pages" / f"{row['page']}.html").read_text("utf-8")
        overall = re.search(r"Overall </span><b[^>]*>([^<]*)</b>", page)
        if overall and row["overall"] is not None:
            shown = overall[1].lstrip("~").partition(" ")[0]
            assert shown == fixed(row["overall"], 1), f"{row['page']}: {shown}"
    pages = list((folder / "pages").rglob("*.html"))
    assert len(pages) == len(rows), "a page for each run"
    return Numbers(rows)


def _run_row(row: Mapping[str, Any]) -> Row:
    """A row of the browser or the site; a score that is only a range there is left out."""
    names = ("judge", "rubric", "agent", "task_score", "contradictions")
    cells: Row = {name: row[name] for name in names}
    cells |= dict(zip(STAGES, row["stages"], strict=True))
    cells["codes"] = " ".join(sorted(code for code in row["codes"] if re.fullmatch("E[1-5]", code)))
    if row["agentic"] is not None:
        cells |= {"agentic": row["agentic"], "overall": row["overall"]}
    return cells


def single_runs(desk: Desk) -> Numbers:
    """`score RUN` of each run whose scorecard in force is by a model."""
    if desk.flags:
        return Numbers()
    rows: dict[str, Row] = {}
    frame = ambjudge.analysis.frame(desk.runs)
    for row in frame.filter(pl.col("judge") != "rules").to_dicts():
        file = Path(row["path"])
        # A run that has changed would be scored by rules, and a place only reads.
        if not file.is_file() or sha256(file.read_bytes()).hexdigest() != row["sha256"]:
            continue
        folder = file.parents[1]
        text, _ = desk.call("score", folder, code=(0, 1))
        codes, _ = desk.call("codes", folder, "--json", code=(0, 1))
        totals = dict(re.findall(r"\b(Agentic|Task|Overall) ~?(\S+)", text.partition("\n\n")[2]))
        names = {"agentic": "Agentic", "task_score": "Task", "overall": "Overall"}
        cells: Row = {name: totals[word] for name, word in names.items() if word in totals}
        fired = {code["code"] for code in json.loads(codes)["codes"]}
        cells["codes"] = " ".join(sorted(code for code in fired if code.startswith("E")))
        # A range is no score.
        if "–" not in totals["Agentic"]:
            rows[row["run_id"]] = cells
    return Numbers(rows)


# Places with a row for each agent


def _board_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, Row]:
    """Agents of a leaderboard in the form of `leaderboard --json`."""
    agents: dict[str, Row] = {}
    for row in rows:
        if row["scope"] != "overall":
            continue
        cells = agents.setdefault(row["agent"], {"n": row["runs"], "overall": row["value"]})
        cells |= {name: row[name] for name in BESIDE if name in row}
        cells |= {f"{row['population']} {end}": row[end] for end in ("lo", "hi")}
        tokens = row["input_tokens"], row["output_tokens"]
        cells["total_tokens"] = None if None in tokens else sum(tokens)
    return agents


def leaderboard_json(desk: Desk) -> Numbers:
    data = json.loads(desk.read("leaderboard", "--json"))
    return Numbers(agents=_board_rows(data["rows"]), n_runs=data["basis"]["runs"])


def leaderboard_text(desk: Desk) -> Numbers:
    text = desk.read("leaderboard")
    n_runs = re.search(r"^Judge .*?, ([\d,]+) runs?[:. ]", text.replace("\n", " "))
    total = None if n_runs is None else int(n_runs[1].replace(",", ""))
    return Numbers(agents=_text_board(text.partition("All tracks")[2]), n_runs=total)


def analyze_text(desk: Desk) -> Numbers:
    text = desk.read("analyze")
    return Numbers(agents=_text_board(text.partition("Leaderboard by")[2]))


def analyze_json(desk: Desk) -> Numbers:
    data = json.loads(desk.read("analyze", "--table", "leaderboard", "--json"))
    return Numbers(agents=_board_rows(data["tables"]["leaderboard"]["rows"]), n_runs=data["runs"])


def report_files(desk: Desk) -> Numbers:
    """tables.json and the run frame of `analyze --out`."""
    folder = _report(desk)
    data = json.loads((folder / "tables.json").read_text("utf-8"))
    frame = pl.read_parquet(folder / "tables" / "runs.parquet")
    board = _board_rows(data["tables"]["leaderboard"]["rows"])
    return Numbers(_frame_rows(frame), board, data["runs"])


def report_page(desk: Desk) -> Numbers:
    """The leaderboard in report.html."""
    html = (_report(desk) / "report.html").read_text("utf-8")
    tables = re.findall(r"<table.*?</table>", html, re.DOTALL)
    table = next(text for text in tables if "estimate" in text)
    heading, *rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    names = [_words(cell) for cell in re.findall(r"<th.*?</th>", heading, re.DOTALL)]
    agents: dict[str, Row] = {}
    for row in rows:
        texts = [_words(re.sub(r"<sup.*?</sup>", "", c)) for c in re.findall(r"<td.*?</td>", row)]
        cells = dict(zip(names, texts, strict=True))
        if cells.get("name", "overall") == "overall":
            agents.setdefault(cells["agent"], _agent_cells(cells))
    return Numbers(agents=agents)


def site_board(desk: Desk) -> Numbers:
    """The page of boards of a site, over all runs."""
    text = (_site(desk) / "board_data.js").read_text("utf-8")
    data = json.loads(text[text.index("{") : text.rindex("}") + 1])
    n_runs, _, groupings, *_ = data["cells"]["- - -"]
    digits = {name: number for name, _, _, number, _ in data["measures"]}
    factors = {name: _FACTORS.get((name, unit), 100.0) for name, _, unit, _, _ in data["measures"]}
    agents: dict[str, Row] = {}
    for row in groupings[data["groupings"].index("agent")][0]:
        label, n = data["labels"][row[0]], row[1]
        cells: Row = {"n": n}
        for name, numbers in zip(digits, row[7], strict=True):
            if not numbers or name not in ("overall", "total_tokens", *BESIDE):
                continue
            cells[f"{name} x{factors[name]!r}"] = _in_digits(numbers[0], digits[name])
            if name == "overall":
                ends = (("new", 2), ("same", 4))
                for population, place in ends:
                    low, high = (*numbers[2:6], None, None, None, None)[place - 2 : place]
                    cells[f"{population} lo"] = _in_digits(low, digits[name])
                    cells[f"{population} hi"] = _in_digits(high, digits[name])
        agents[label] = cells
    return Numbers(agents=agents, n_runs=n_runs)


_FACTORS = {
    ("overall", ""): 1.0,
    ("turns", ""): 1.0,
    ("cost_usd", "$"): 1.0,
    ("wall_time_s", "min"): 1 / 60,
    ("wall_time_s", "s"): 1.0,
    ("total_tokens", "k"): 1e-3,
    ("total_tokens", "M"): 1e-6,
}
"""What a board multiplies a measure by, by its unit; scores and shares by 100."""


def _in_digits(value: float | None, digits: int) -> str | None:
    return None if value is None else fixed(value, digits)


def _text_board(text: str) -> dict[str, Row]:
    """The board below a title, in the text of a terminal."""
    lines = iter(text.partition("\n\n")[0].splitlines())
    heading = next((line for line in lines if " estimate " in line), None)
    if heading is None:
        return {}
    names = re.split(r"\s{2,}", heading.strip())
    agents: dict[str, Row] = {}
    for line in lines:
        if not line.strip() or line.startswith("  ["):
            break
        texts = [re.sub(r" \[\d+\]", "", t) for t in re.split(r"\s{2,}", line.strip())]
        cells = dict(zip(names, texts, strict=True))
        agents[cells["agent"]] = _agent_cells(cells)
    return agents


def _agent_cells(cells: Mapping[str, str]) -> Row:
    row: Row = {"n": cells["runs"]}
    for heading, name in _HEADINGS.items():
        if heading in cells:
            row[name] = cells[heading].lstrip("~").removesuffix(" %")
    for population in ("new", "same"):
        span = re.fullmatch(r"\[(\S+), (\S+)\]", cells.get(f"95 %, {population} tasks", ""))
        if span:
            row |= {f"{population} lo": span[1], f"{population} hi": span[2]}
    return row


_HEADINGS = {
    "estimate": "overall",
    "Agentic": "agentic",
    "Task": "task_score",
    **{stage: stage for stage in STAGES},
    "failure rate": "failed x100",
    "cost, $": "cost_usd",
    "turns": "turns",
    "time, s": "wall_time_s",
}
"""Headings of a board in text, and the numbers below them."""


def _words(html: str) -> str:
    return Page(html).text.strip()


def _report(desk: Desk) -> Path:
    folder = desk.scratch / "report"
    if "report" not in desk.outputs:
        desk.outputs["report"] = desk.folder("report")
        desk.call("analyze", desk.runs, *desk.flags, "--table", "leaderboard", "--out", folder)
    return folder


def _site(desk: Desk) -> Path:
    folder = desk.scratch / "site"
    if "site" not in desk.outputs:
        desk.outputs["site"] = desk.folder("site")
        desk.call("site", desk.runs, *desk.flags, "--out", folder)
    return folder


QUICK: tuple[Callable[[Desk], Numbers], ...] = (
    python_cohort,
    export_jsonl,
    browser,
    leaderboard_json,
)
"""Places that are read in a moment."""
MEDIUM: tuple[Callable[[Desk], Numbers], ...] = (
    python_frame,
    python_analyze,
    python_leaderboard,
    export_csv,
    export_parquet,
    export_scorecards,
    single_runs,
    leaderboard_text,
    analyze_text,
    analyze_json,
)
"""Places that are read in a fraction of a second."""
PLACES: tuple[Callable[[Desk], Numbers], ...] = (
    *QUICK,
    *MEDIUM,
    report_files,
    report_page,
    site_rows,
    site_board,
)
"""Every place that shows numbers of a cohort."""


# Comparison


def assert_same_numbers(
    desk: Desk, places: Iterable[Callable[[Desk], Numbers]] = PLACES
) -> Numbers:
    """Read the places and compare all numbers with those of Python and of the leaderboard."""
    exact = python_cohort(desk)
    assert exact.runs is not None
    board = leaderboard_json(desk)
    by_agent = _means(exact.runs)
    for place in places:
        numbers = place(desk)
        name = place.__name__
        if numbers.n_runs is not None:
            assert numbers.n_runs == len(exact.runs), f"{name}: number of runs"
        if numbers.runs:
            if place is not single_runs:
                assert set(numbers.runs) == set(exact.runs), f"{name}: other runs"
            _compare(name, numbers.runs, exact.runs)
        if numbers.agents:
            assert set(numbers.agents) <= set(by_agent), f"{name}: other agents"
            _compare(name, numbers.agents, board.agents or {})
    for agent, cells in (board.agents or {}).items():
        assert cells["n"] == by_agent[agent], f"leaderboard: runs of {agent}"
    return Numbers(exact.runs, board.agents, len(exact.runs))


def _means(runs: Mapping[str, Row]) -> dict[Cell, int]:
    """Runs of each agent."""
    counts: dict[Cell, int] = {}
    for cells in runs.values():
        counts[cells["agent"]] = counts.get(cells["agent"], 0) + 1
    return counts


def _compare(place: str, rows: Mapping[str, Row], exact: Mapping[str, Row]) -> None:
    for key, cells in rows.items():
        for name, cell in cells.items():
            plain, _, factor = name.partition(" x")
            other = exact[key][plain]
            if factor and other is not None:
                other = float(factor) * float(other)
            assert _is_same(cell, other), f"{place}: {key}: {name} is {cell}, elsewhere {other}"


def _is_same(cell: Cell, exact: Cell) -> bool:
    """Whether a number is the same, as exactly as it is shown."""
    if cell is None or cell in _NONE:
        return exact is None or exact == ""
    if exact is None:
        return False
    if isinstance(exact, str):
        return cell == exact
    if isinstance(cell, str):
        text = cell.replace(",", "").replace("−", "-")
        return fixed(float(exact), len(text.partition(".")[2])) == text
    return abs(float(cell) - float(exact)) < 5e-5
