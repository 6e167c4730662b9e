"""The work of `analyze`, `leaderboard` and `agreement`: read, compute, print or write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import console
from ..errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from ..analysis.display import Display
    from ..analysis.results import Analysis

MOST_PROBLEMS = 20
SUMMARY = ("leaderboard", "code_effects")
"""Tables of the summary on a terminal; the rest needs --out or --json."""


def analyze(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    if flags["out"] and Path(flags["out"]).exists() and not Path(flags["out"]).is_dir():
        raise InputError("cannot be written: not a folder", "choose another --out", flags["out"])
    found = _analysis(
        obj, paths, flags, only=flags["tables"] or None, outcome=flags["outcome"], code_source=flags["codes_from"],
        judge=flags["judge"],
    )  # fmt: skip
    if flags["out"]:
        from ..analysis.html_report import write_report

        written = write_report(found, Path(flags["out"]), title=flags["title"])
        console.note(f"wrote {len(written)} files; open {written[-1]}", obj["quiet"])
    if flags["as_json"]:
        from ..analysis.results import to_json

        _json(to_json(found))
    elif not flags["out"]:
        _summary(found, flags["tables"])
    return 1 if found.cohort.problems else 0


def leaderboard(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    from ..analysis.ranking import leaderboard as board
    from ..analysis.results import rows

    found = _read(obj, paths, flags, flags["judge"])
    scopes = flags["scopes"] or ("overall", "track")
    table = board(found.runs, flags["outcome"], scopes=tuple(scopes))
    if flags["as_json"]:
        _json({"schema": "ambjudge.leaderboard/1", "outcome": flags["outcome"], "rows": rows(table)})
        return 1 if found.problems else 0
    import polars as pl

    _need_values(table, flags["outcome"])
    for scope, name in table.select("scope", "name").unique(maintain_order=True).iter_rows():
        console.say(f"All tracks, {flags['outcome']}" if scope == "overall" else f"{scope.capitalize()} {name}")
        part = table.filter((pl.col("scope") == scope) & (pl.col("name") == name))
        _print(
            part, "leaderboard", hide=("name", *(() if scope == "overall" else ("p_first", "rank_set")), *_SIDE[scope])
        )
        console.say()
    return 1 if found.problems else 0


_STAGES = ("S1", "S2", "S3", "S4", "S5")
_RESOURCES = ("turns", "wall_time_s", "input_tokens", "output_tokens", "value_missing_zero")
_SIDE = {
    "overall": ("input_tokens", "output_tokens", "value_missing_zero"),
    "track": (*_STAGES, *_RESOURCES),
    "task": (*_STAGES, *_RESOURCES, "tasks"),
}
"""Columns left out on a terminal; --json has them."""


def agreement(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any]) -> int:
    """The exit code: 0; 1 when some inputs could not be read."""
    from ..analysis.label_tables import read_labels
    from ..analysis.results import rows

    problems: tuple[str, ...] = ()
    if flags["against"]:
        from ..analysis.raters import rater_agreement

        labels = read_labels(_labels_path(flags["labels"]))
        first = flags["annotator"] or labels.usual
        for name in (first, flags["against"]):
            if name not in labels.annotators:
                raise InputError(
                    f"no labels of annotator {name!r}", f"there are {', '.join(labels.annotators) or 'none'}"
                )
        table = rater_agreement(labels.of(first), labels.of(flags["against"]))
        title = f"Annotator {first} against {flags['against']}"
    elif flags["labels"]:
        from ..analysis.raters import agreement as against_people

        labels = read_labels(_labels_path(flags["labels"]))
        name = flags["annotator"] or labels.usual
        if name not in labels.annotators:
            raise InputError(f"no labels of annotator {name!r}", f"there are {', '.join(labels.annotators) or 'none'}")
        found = _read(obj, paths, flags)
        problems = found.problems
        judges = found.runs["judge"].drop_nulls().unique().sort().to_list()
        if flags["judge"] and flags["judge"] not in judges:
            raise InputError(f"no scorecards of judge {flags['judge']!r}", f"there are {', '.join(map(str, judges))}")
        table = against_people(found, labels, annotator=name, judge=flags["judge"])
        title = f"Judge {flags['judge'] or ', '.join(map(str, judges))} against labels of {name}"
    else:
        from ..analysis.raters import judge_pairs

        found = _read(obj, paths, flags)
        problems = found.problems
        table = judge_pairs(found)
        title = "Judge against judge"
    if table.is_empty():
        raise InputError(
            "nothing to compare: no run and item that both have",
            "give --labels whose run names match the scorecards, or scorecards of two judges",
        )
    if flags["as_json"]:
        _json({"schema": "ambjudge.agreement/1", "title": title, "rows": rows(table)})
    else:
        console.say(title)
        _agreement_table(
            table, ("first", "second") if "first" in table.columns or flags["against"] else ("human", "judge")
        )
    return 1 if problems else 0


def _agreement_table(table: pl.DataFrame, raters: tuple[str, str]) -> None:
    """One line an item: the coefficients side by side, so that none is read alone. `raters` head the mean values given."""
    wanted = ("agreement", "kappa", "ac1", "sensitivity", "specificity")
    pairs = table.select("first", "second").unique(maintain_order=True).rows() if "first" in table.columns else [None]
    import polars as pl

    from ..analysis.display import interval, number

    for pair in pairs:
        part = table
        if pair is not None:
            part = table.filter((pl.col("first") == pair[0]) & (pl.col("second") == pair[1]))
            console.say(f"{pair[0]} / {pair[1]}")
        lines: dict[str, dict[str, Any]] = {}
        for row in part.iter_rows(named=True):
            lines.setdefault(row["item"], {})[row["coefficient"]] = row
        body = []
        for item, found in lines.items():
            first = found["agreement"]
            cells = [item, str(first["n"]), number(first["prevalence_human"]), number(first["prevalence_judge"])]
            for name in wanted:
                one = found.get("weighted_kappa", found.get(name)) if name == "kappa" else found.get(name)
                if one is None or one["value"] is None:
                    cells.append("–")
                else:
                    span = f" {interval(one['lo'], one['hi'])}" if one["lo"] is not None else ""
                    cells.append(number(one["value"]) + span)
            body.append(cells)
        heads = (
            "Item",
            "n",
            *(f"mean {who}" for who in raters),
            "Agreement",
            "Kappa",
            "AC1",
            "Sensitivity",
            "Specificity",
        )
        console.table(heads, body, right=range(1, 4))
        rare = [item for item, found in lines.items() if any(row["warnings"] for row in found.values())]
        if rare:
            text = f"{', '.join(rare)}: fewer than five of the rarer value; read AC1, sensitivity and specificity, not kappa."
            console.say(console.wrap(text, "  "))


def _labels_path(text: str | None) -> Path:
    if not text:
        raise InputError("no labels given", "name their folder with --labels")
    path = Path(text)
    if not path.exists():
        raise InputError("no such file or folder", "give label files or their folder", path)
    return path


def _sources(paths: tuple[str, ...]) -> list[str]:
    return list(paths) or ["."]


def _read(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any], judge: str | None = None) -> Any:
    from ..analysis.results import read
    from .unscored import scoring_of, tell

    scoring, progress = scoring_of(obj, paths, flags), _Counter(obj["quiet"])
    try:
        found = read(_sources(paths), seen=progress, scoring=scoring, judge=judge)
    finally:
        progress.clear()
    complain(found.problems)
    tell(scoring, paths, flags, obj["quiet"])
    return found


def _analysis(obj: dict[str, Any], paths: tuple[str, ...], flags: dict[str, Any], **options: Any) -> Analysis:
    from ..analysis.results import analyse
    from .unscored import scoring_of, tell

    human = None
    if flags["labels"]:
        from ..analysis.label_tables import read_labels

        human = read_labels(_labels_path(flags["labels"]))
    scoring, progress = scoring_of(obj, paths, flags), _Counter(obj["quiet"])
    try:
        found = analyse(_sources(paths), labels=human, seen=progress, scoring=scoring, **options)
    finally:
        progress.clear()
    found = _with_answers(found, flags["asked"])
    complain(found.cohort.problems)
    tell(scoring, paths, flags, obj["quiet"])
    return found


def _with_answers(found: Analysis, asked: Sequence[str]) -> Analysis:
    """Each `NAME=FILE` as a column of the run frame. InputError for a name that is taken or a file that holds no answers."""
    from dataclasses import replace

    from ..analysis.answer_tables import read_answers, with_answers

    runs = found.cohort.runs
    for text in asked:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InputError(f"--ask {text!r} is not NAME=FILE", "for example --ask looked=answers.jsonl")
        runs = with_answers(runs, read_answers(Path(file)), name)
    return replace(found, cohort=replace(found.cohort, runs=runs)) if asked else found


class _Counter:
    """Counts cards on stderr."""

    def __init__(self, quiet: bool) -> None:
        self.progress = console.Progress("read", None, quiet)
        self.done = 0

    def __call__(self) -> None:
        self.done += 1
        self.progress.update(self.done)

    def clear(self) -> None:
        self.progress.clear()


def complain(problems: Sequence[str]) -> None:
    """Names what could not be read on stderr, at most MOST_PROBLEMS lines and a count of the rest."""
    for text in problems[:MOST_PROBLEMS]:
        console.note(f"ambjudge: error: {text}")
    if len(problems) > MOST_PROBLEMS:
        console.note(f"ambjudge: error: {len(problems) - MOST_PROBLEMS} more could not be read")


def _json(data: Any) -> None:
    console.raw(json.dumps(data, ensure_ascii=False, allow_nan=False))


def _need_values(table: pl.DataFrame, outcome: str) -> None:
    if table.is_empty() or table["value"].null_count() == table.height:
        console.say(
            f"No run has a known {outcome}; a run without its Task score has no Overall (try --outcome agentic)."
        )


def _summary(found: Analysis, chosen: Sequence[str]) -> None:
    """Findings and the main tables; the chosen tables in full when some were chosen."""
    import polars as pl

    from ..analysis.findings import findings
    from ..analysis.results import PRESENTED

    if not chosen:
        for line in findings(found.tables):
            console.say(console.wrap(line, "  ", "- "))
    for name in chosen or [name for name in SUMMARY if name in found.tables]:
        table = found.tables[name]
        console.say()
        console.say(PRESENTED[name].title)
        if table.columns == ["reason"] or table.is_empty():
            console.say(f"  {table['reason'][0] if table.height else 'no rows'}")
            continue
        if name == "leaderboard" and not chosen:
            table = table.filter(pl.col("scope") == "overall")
        _print(
            table,
            name,
            hide=() if chosen else ("name", *_SIDE["overall"], "loo_task", "loo_min", "loo_max", "n", "n_clusters"),
        )
    if not chosen:
        console.say()
        console.say("--out DIR writes all tables, figures and report.html; --json prints all tables.")


def _print(table: pl.DataFrame, name: str, hide: Sequence[str] = ()) -> None:
    from ..analysis.display import display

    shown: Display = display(table, name, hide=hide)
    lines = [[cell.text + "".join(f" [{n}]" for n in cell.notes) for cell in row] for row in shown.rows]
    console.table(shown.headings, lines, right=[i for i, right in enumerate(shown.numeric) if right])
    for number, text in enumerate(shown.notes, 1):
        console.say(console.wrap(text, "      ", f"  [{number}] "))
